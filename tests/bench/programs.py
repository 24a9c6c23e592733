# SPDX-License-Identifier: BSD-3-Clause
"""The programs that are measured: quorlock bench, what counts and holds, and the peers.

A peer of the benchmark is started with the nodes, connects, and prints "ready NAME VERSION". Each line that it reads is
an order, "IN_FLIGHT MILLISECONDS PREFIX": it takes and gives back so many locks at a time, each with a key of its own
that begins with PREFIX, for so long, and prints one line of JSON: locks (taken and given back), failed, seconds, cpu_s
(of its process), p50_us, p99_us and p999_us (from the call that takes a lock until it has it). It ends with its input.
"""
import json
import os
import subprocess
import sys

from servers import launch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "interop"))
import peers as interop  # the last path of sys.path.insert

TITLES = {"sequential": "sequential client", "redsync": "redsync", "node-redlock": "node-redlock",
          "redisson-redlock": "Redisson RedLock", "redisson-multilock": "Redisson MultiLock"}


class Failed(Exception):
    """A program did not do its work."""


def check_status(words, status, errors):
    if status:
        raise Failed(f"{' '.join(map(str, words))}: status {status}: {errors.strip()[-400:]}")


def read_json(words, text):
    try:
        return json.loads(text)
    except ValueError:
        raise Failed(f"{' '.join(map(str, words))}: no JSON but '{text[:200]}'") from None


class Programs:
    """Where they are: the build folder, and what is said of peers that are not here."""

    def __init__(self, build, wanted):
        self.build, self.missing, self.folders = build, {}, {}
        for name in wanted:
            if name != "sequential":
                self.prepare(name)

    def path(self, name):
        return os.path.join(self.build, "bin", name)

    def prepare(self, client):
        """Brings a peer's package, once; where that is not possible it is left out, and this is said."""
        peer = next(kind for kind in interop.PEERS.values() if client in kind.clients)
        out = os.path.join(self.build, "tests", "interop", peer.name)
        why = peer(out).missing()
        if not why and not peer(out).prepared():
            done = subprocess.run([os.path.join(HERE, "..", "interop", "prepare.py"), peer.name, out], check=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            why = done.returncode and (done.stdout.strip().splitlines() or ["its package cannot be had"])[-1]
        if why:
            self.missing[client] = why
        else:
            self.folders[client] = out

    def here(self):
        """The peers that can run, by name."""
        return ["sequential"] + list(self.folders)

    def peer(self, name, nodes):
        if name == "sequential":
            return Peer(name, [self.path("bench_sequential"), *nodes])
        return Peer(name, interop.peer_of_client(name, self.folders[name]).bench(name, nodes))

    def node_modules(self):
        """The folder that holds those of node-redlock, or None."""
        return self.folders.get("node-redlock")

    def run(self, words, **more):
        done = subprocess.run([str(word) for word in words], check=False, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, **more)
        check_status(words, done.returncode, done.stderr)
        return read_json(words, done.stdout)

    def bench_words(self, nodes, in_flight, seconds, *options):
        return [self.path("quorlock"), "--nodes", ",".join(nodes), "bench", "--json", "--in-flight", str(in_flight),
                "--seconds", str(max(1, round(seconds))), *options]

    def bench(self, nodes, in_flight, seconds, *options):
        """The report of quorlock bench."""
        return self.run(self.bench_words(nodes, in_flight, seconds, *options))

    def counts(self, nodes, in_flight, *options):
        """What bench_counts counts, a lock: of some thousand locks, or of the baseline in some tenths of a second."""
        rounds = 3 if "--raw" in options else max(4, min(1000, 8000 // in_flight))
        return self.run([self.path("bench_counts"), "--in-flight", in_flight, "--rounds", rounds, *options,
                         ",".join(nodes)])

    def limit(self, nodes, in_flight, seconds):
        """What servers and kernel alone can do, by kind of requests."""
        kinds = self.run([self.path("bench_limit"), in_flight, max(1, round(seconds)), ",".join(nodes)])
        return {kind: {**each, "locks_per_s": each["locks"] / each["seconds"]} for kind, each in kinds.items()}

    def held(self, nodes, locks, seconds, lease_ms):
        return self.run([self.path("bench_held"), locks, seconds, lease_ms, ",".join(nodes)])


class Peer:
    """A running peer; it warms up in the orders that it gets first."""

    def __init__(self, name, words, environment=None):
        self.name, self.words, self.orders = name, words, 0
        self.process = launch(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              bufsize=1, env=environment)
        ready = self.process.stdout.readline()
        if not ready.startswith("ready "):
            self.fail(f"does not begin: '{ready.strip()}'")
        self.version = ready[len("ready "):].strip()

    def fail(self, why):
        self.process.kill()
        raise Failed(f"{TITLES.get(self.name, self.name)} {why}: {self.process.stderr.read().strip()[-400:]}")

    def run(self, in_flight, seconds):
        self.orders += 1
        try:
            self.process.stdin.write(f"{in_flight} {round(seconds * 1000)} peer:{self.name}:{self.orders}:\n")
        except BrokenPipeError:
            self.fail("has ended")
        line = self.process.stdout.readline()
        if not line:
            self.fail("has ended")
        return read_json(self.words, line)

    def end(self):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
