# SPDX-License-Identifier: BSD-3-Clause
"""What quorlock does on three servers, in 24 steps: STEPS has each by the name that quorlock-servers(7) gives it.

A step is a function of a Walk; an AssertionError is its no.
"""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2]))
import redis_server

LIMIT_S = 20  # for anything that must happen at all
LEASE = "3s"
LEASE_S = 3
STEPS = {}


def step(name):
    def put(function):
        STEPS[name] = function
        return function
    return put


def check(what, text):
    if not what:
        raise AssertionError(text)


class Walk:
    """The nodes, as HOST:PORT, and the command."""

    def __init__(self, quorlock, nodes):
        self.quorlock, self.nodes, self.running = quorlock, nodes, []
        self.environment = {**{name: value for name, value in os.environ.items() if not name.startswith("QUORLOCK_")},
                            "QUORLOCK_NODES": ",".join(nodes), "QUORLOCK_CONFIG": "/dev/null", "Q": quorlock}

    def start(self, *words):
        process = subprocess.Popen([self.quorlock, *words], env=self.environment, stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=redis_server.die_with_us)
        self.running.append(process)
        return process

    def end(self, process, status, text="", limit_s=LIMIT_S):
        """It ends with this status, and its output has this text."""
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"did not end: {' '.join(process.args[1:])}; {process.communicate()[1][-300:]}") from None
        check(process.returncode == status and text in out,
              f"{' '.join(process.args[1:])}: status {process.returncode} and not {status}: {(out + err)[-400:]}")
        return out

    def run(self, *words, status=0, text=""):
        return self.end(self.start(*words), status, text)

    def hold(self, *options):
        """A command that holds the lock until its input ends."""
        process = self.start("run", "--wait", f"{LIMIT_S}s", *options, "--", "sh", "-c", "echo held; read -r line || :")
        return self.said(process.stdout, "held\n", process)

    def said(self, stream, text, process):
        """The next line of this stream has the text, in time."""
        there = select.select([stream], [], [], LIMIT_S)[0]
        line = stream.readline() if there else "nothing"
        if text not in line:
            process.kill()
            raise AssertionError(f"{' '.join(process.args[1:])} says {line} and not {text}: {process.communicate()[1][-400:]}")
        return process

    def waits(self, *options):
        """A command that is known to wait for the lock."""
        process = self.start("run", "--wait", f"{LIMIT_S}s", *options, "--", "echo", "ran")
        return self.said(process.stderr, "waiting for", process)

    def ask(self, *words):
        """Of each node its reply."""
        replies = []
        for node in self.nodes:
            host, port = node.split(":")
            with redis_server.Wire(int(port), host) as wire:
                replies.append(wire.ask(*words))
        return replies

    def close(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


@step("bootstrap")
def bootstrap(walk):
    walk.run("bootstrap", "--yes", text="bootstrapped 3 nodes")


@step("doctor finds nothing unsafe")
def doctor(walk):
    process = walk.start("doctor")
    out, err = process.communicate(timeout=LIMIT_S)
    check(" 0 unsafe" in out and "3 of 3 nodes answered" in out, (out + err)[-400:])


@step("run")
def run(walk):
    walk.run("run", "run", "--", "echo", "ran", text="ran")


@step("a held lock excludes")
def excludes(walk):
    ours = walk.hold("excludes")
    walk.run("run", "-n", "excludes", "--", "true", status=1)
    walk.end(ours, 0)


@step("a release wakes a waiter")
def wakes(walk):
    ours = walk.hold("wakes")
    other = walk.waits("wakes")
    walk.end(ours, 0)
    walk.end(other, 0, "ran")


@step("renewal")
def renewal(walk):
    """The work goes on for longer than the lease."""
    walk.run("run", "--lease", LEASE, "renewal", "--", "sleep", str(1.5 * LEASE_S))


@step("a dead owner's lock expires")
def expires(walk):
    walk.run("acquire", "--lease", LEASE, "expires")
    walk.run("run", "-n", "expires", "--", "true", status=1)
    walk.run("run", "--wait", f"{LIMIT_S}s", "expires", "--", "true")


@step("fencing tokens rise")
def fencing(walk):
    first, second = (int(walk.run("run", "--fence", "fencing", "--", "printenv", "QUORLOCK_FENCE")) for _ in range(2))
    check(first < second, f"{first}, then {second}")


@step("acquire, renew, release")
def handed_on(walk):
    token = walk.run("acquire", "--lease", "20s", "handed").strip()
    walk.run("renew", "--lease", "20s", "handed", token)
    walk.run("release", "--lease", "20s", "handed", token)
    walk.run("release", "--lease", "20s", "handed", token, status=75)


@step("kept after the release")
def kept(walk):
    walk.run("run", "-n", "--keep", "20s", "kept", "--", "true")
    walk.run("run", "-n", "kept", "--", "true", status=1)


@step("several keys")
def several(walk):
    ours = walk.hold("several:1", "several:2")
    walk.run("run", "-n", "several:2", "several:3", "--", "true", status=1)
    walk.run("run", "-n", "several:3", "--", "true")
    walk.end(ours, 0)


@step("permits")
def permits(walk):
    two = [walk.hold("--permits", "2", "permits") for _ in range(2)]
    walk.run("run", "-n", "--permits", "2", "permits", "--", "true", status=1)
    for process in two:
        walk.end(process, 0)


@step("shared locks")
def shared(walk):
    two = [walk.hold("--shared", "shared") for _ in range(2)]
    walk.run("run", "-n", "shared", "--", "true", status=1)
    writer = walk.waits("shared")
    for process in two:
        walk.end(process, 0)
    walk.end(writer, 0, "ran")


@step("readers behind a writer")
def readers(walk):
    ours = walk.hold("readers")
    reader = walk.waits("--shared", "readers")
    walk.end(ours, 0)
    walk.end(reader, 0, "ran")


@step("fair locks")
def fair(walk):
    ours = walk.hold("--fair", "fair")
    first = walk.waits("--fair", "fair")
    second = walk.waits("--fair", "fair")
    walk.end(ours, 0)
    walk.end(first, 0, "ran")
    walk.end(second, 0, "ran")


@step("the redisson dialect")
def redisson(walk):
    ours = walk.hold("--dialect", "redisson", "redisson")
    check(walk.ask("TYPE", "redisson").count("hash") + walk.ask("TYPE", "redisson").count(b"hash") >= 2, "it is no hash")
    other = walk.waits("--dialect", "redisson", "redisson")
    walk.end(ours, 0)
    walk.end(other, 0, "ran")


@step("inspect")
def inspect(walk):
    ours = walk.hold("inspect")
    report = json.loads(walk.run("inspect", "--json", "inspect"))
    check(report["held"] and report["holder"], report)
    walk.end(ours, 0)


@step("ls")
def listed(walk):
    ours = walk.hold("listed")
    found = walk.run("ls", "list*")
    check(re.search(r"^listed +exclusive", found, re.M), found)
    walk.end(ours, 0)


@step("watch")
def watch(walk):
    watcher = walk.start("watch", "watched")
    walk.said(watcher.stdout, "watched", watcher)
    ours = walk.hold("watched")
    walk.said(watcher.stdout, "held", watcher)
    walk.end(ours, 0)
    watcher.send_signal(signal.SIGINT)
    watcher.communicate(timeout=LIMIT_S)


@step("elections")
def elections(walk):
    leader = walk.start("elect", "leads", "--", "sh", "-c", "echo leads; read -r line || :")
    walk.said(leader.stdout, "leads\n", leader)
    walk.run("leader", "leads", text="lead")
    walk.end(leader, 0)


@step("break, and the owner is told")
def broken(walk):
    ours = walk.hold("broken")
    walk.run("break", "broken", text="broken on")
    walk.end(ours, 75)


@step("DEL is noticed before the lease ends")
def deleted(walk):
    """By CLIENT TRACKING: the renewal that would find it is due in more than the limit."""
    ours = walk.hold("--lease", "20m", "--max-lease", "20m", "--guard", "off", "deleted")
    walk.ask("DEL", "deleted")
    walk.end(ours, 75)


@step("the guard notices a loss of memory")
def guard(walk):
    host, port = walk.nodes[0].split(":")
    with redis_server.Wire(int(port), host) as wire:
        wire.ask("FLUSHALL")
    end = time.monotonic() + LIMIT_S
    while True:
        process = walk.start("doctor")
        out = process.communicate(timeout=LIMIT_S)[0]
        if "quarantined for" in out:
            break
        walk.run("run", "--guard", "strict", "guarded", "--", "true")
        check(time.monotonic() < end, out[-400:])


@step("many locks at once")
def many(walk):
    walk.run("bench", "--seconds", "1", text="locks/s")
