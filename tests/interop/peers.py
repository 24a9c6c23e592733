# SPDX-License-Identifier: BSD-3-Clause
"""The peers of the interoperation tests: what runs them, where their package comes from, how they are started."""
import hashlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77  # as CMakeLists.txt has it
INSTALL = "scripts/setup --for interop"
NEWER_GO = (1, 26)  # what redsync/newer.mod needs


def version_of(*words):
    """The first version number that these words print, as a tuple; None where they cannot be run."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(rb"(\d+)\.(\d+)", done.stdout)
    return tuple(int(number) for number in found.groups()) if found else None


def java(program):
    home = os.environ.get("JAVA_HOME")
    path = home and os.path.join(home, "bin", program)
    return path if path and os.access(path, os.X_OK) else program


class Peer:
    """tools: name, words that print its version, the oldest version that will do."""
    name = ""
    tools = []
    clients = []  # its names as clients of cluster/chaos
    optional = False  # CI need not have what it needs
    # Of the servers' side.
    dialect = "plain"

    def __init__(self, out):
        self.source = os.path.join(HERE, self.name)
        self.out = os.path.abspath(out)
        self.stamp = os.path.join(self.out, "prepared")

    def missing(self):
        """What this machine lacks to run the peer, in words, or None."""
        for tool, words, oldest in self.tools:
            version = version_of(*words)
            if version is None:
                return f"no {tool} here"
            if version < oldest:
                return f"{tool} is {version[0]}.{version[1]} here, {oldest[0]}.{oldest[1]} is needed"
        return None

    def state(self):
        """Changes with everything that the preparation depends on."""
        digest = hashlib.sha256()
        for folder, folders, names in os.walk(self.source):
            folders.sort()
            for name in sorted(names):
                with open(os.path.join(folder, name), "rb") as f:
                    digest.update(name.encode() + b"\0" + f.read() + b"\0")
        for _, words, _ in self.tools:
            digest.update(repr(version_of(*words)).encode())
        return digest.hexdigest()

    def prepared(self):
        try:
            with open(self.stamp, encoding="ascii") as f:
                return f.read() == self.state()
        except FileNotFoundError:
            return False

    def run(self, words, folder):
        subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, check=True)


class Redsync(Peer):
    name = "redsync"
    clients = ["redsync", "bsm-redislock"]
    tools = [("go", ("go", "version"), (1, 19))]

    def prepare(self):
        words = ["go", "build", "-buildvcs=false", "-o", os.path.join(self.out, "peer")]
        if version_of("go", "version") >= NEWER_GO:
            words.append("-modfile=newer.mod")
        self.run(words + ["."], self.source)

    def words(self, nodes):
        return [os.path.join(self.out, "peer"), *nodes]

    def client(self, name):
        """The program that talks to cluster/chaos."""
        return [os.path.join(self.out, "peer"), "chaos", name]

    def bench(self, _, nodes):
        """The program that scripts/bench measures, for a client's name."""
        return [os.path.join(self.out, "peer"), "bench", *nodes]


class NodeRedlock(Peer):
    name = "node-redlock"
    clients = ["node-redlock", "sesamecare-redlock", "redlock-universal"]
    tools = [("node", ("node", "--version"), (16, 0)), ("npm", ("npm", "--version"), (7, 0))]

    def prepare(self):
        for name in ("package.json", "package-lock.json", "peer.js", "chaos.js", "bench.js"):
            shutil.copy(os.path.join(self.source, name), self.out)
        self.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], self.out)

    def words(self, nodes):
        return ["node", os.path.join(self.out, "peer.js"), *nodes]

    def client(self, name):
        return ["node", os.path.join(self.out, "chaos.js"), name]

    def bench(self, _, nodes):
        return ["node", os.path.join(self.out, "bench.js"), *nodes]


class Redisson(Peer):
    name = "redisson"
    clients = ["redisson-redlock", "redisson-multilock"]
    dialect = "redisson"
    tools = [("mvn", ("mvn", "--version"), (3, 6)), ("javac", (java("javac"), "-version"), (11, 0))]
    watchdog_ms = 4500

    def prepare(self):
        self.run(["mvn", "-B", "-q", "-ntp", "-Dstyle.color=never", "-f", os.path.join(self.source, "pom.xml"),
                  f"-Dout={self.out}", "compile", "dependency:copy-dependencies"], self.out)

    def program(self, name, *arguments):
        return [java("java"), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp",
                os.path.join(self.out, "classes") + ":" + os.path.join(self.out, "lib", "*"), name, *arguments]

    def words(self, nodes):
        return self.program("Peer", str(self.watchdog_ms), *nodes)

    def client(self, name):
        words = self.program("Chaos", name.removeprefix("redisson-"))
        # In a process namespace, beside another one, it would warn of a file that both use, on standard output.
        return [words[0], "-XX:-UsePerfData", *words[1:]]

    def bench(self, name, nodes):
        """With all that the compiler can do, and memory for many threads."""
        words = [word for word in self.program("Bench", name.removeprefix("redisson-"), *nodes)
                 if not word.startswith("-X")]
        return [words[0], "-Xmx1g", "-Xss512k", *words[1:]]


class Pottery(Peer):
    """As a client of cluster/chaos only, as those that follow."""
    name = "pottery"
    clients = ["pottery"]
    tools = [("pip", (sys.executable, "-m", "pip", "--version"), (19, 0))]

    def prepare(self):
        shutil.copy(os.path.join(self.source, "chaos.py"), self.out)
        self.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--upgrade", "--target",
                  os.path.join(self.out, "lib"), "-r", os.path.join(self.source, "requirements.txt")], self.out)

    def client(self, _):
        return ["env", f"PYTHONPATH={self.out}/lib", sys.executable, os.path.join(self.out, "chaos.py")]


class Rslock(Peer):
    name = "rslock"
    clients = ["rslock"]
    tools = [("cargo", ("cargo", "--version"), (1, 88))]  # for the package redis 1.8
    optional = True

    def prepare(self):
        self.run(["cargo", "build", "-q", "--release", "--locked", "--target-dir", os.path.join(self.out, "target")], self.source)

    def client(self, _):
        return [os.path.join(self.out, "target", "release", "rslock-peer")]


class RedisPlusPlus(Peer):
    """Where it is installed; Debian 12 and 13 do not have it."""
    name = "redis-plus-plus"
    clients = ["redis-plus-plus"]
    tools = [("C++ compiler", ("c++", "--version"), (7, 0)), ("redis-plus-plus", ("pkg-config", "--modversion", "redis++"), (1, 3))]
    optional = True

    def prepare(self):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "redis++"], stdout=subprocess.PIPE, text=True, check=True)
        paths = [f"-Wl,-rpath,{word[2:]}" for word in flags.stdout.split() if word.startswith("-L")]
        self.run(["c++", "-std=c++17", "-O1", os.path.join(self.source, "chaos.cpp"), "-o", os.path.join(self.out, "peer"),
                  *flags.stdout.split(), *paths, "-pthread"], self.out)

    def client(self, _):
        return [os.path.join(self.out, "peer")]


PEERS = {peer.name: peer for peer in (Redsync, NodeRedlock, Redisson, Pottery, Rslock, RedisPlusPlus)}


def peer_of_client(name, out):
    """The peer that has this name as a client of cluster/chaos."""
    for peer in PEERS.values():
        if name in peer.clients:
            return peer(out)
    sys.exit(f"'{name}' is no client; there are: {' '.join(name for peer in PEERS.values() for name in peer.clients)}")


def peer_named(name, out):
    if name not in PEERS:
        sys.exit(f"'{name}' is no peer; there are: {' '.join(PEERS)}")
    return PEERS[name](out)


def leave_without(peer):
    """Ends this test where the machine lacks what runs the peer: as skipped, but in CI as failed."""
    why = peer.missing()
    if not why:
        return
    in_ci = os.environ.get("CI", "") not in ("", "0", "false") and not peer.optional
    remedy = "" if peer.optional else f"; {INSTALL} installs it"
    print(f"{'FAILED' if in_ci else 'SKIPPED'} interop with {peer.name}: {why}{remedy}", flush=True)
    sys.exit(1 if in_ci else SKIPPED)
