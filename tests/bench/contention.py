# SPDX-License-Identifier: BSD-3-Clause
"""Many processes contend for one key: how fast it is handed over, at what cost, and how fairly.

Each case runs in turn: bench_contention in so many processes, and beside them, where node is here, node-redlock on the
same work (contention.js).

A hand-over counts from the call of release in one process to the callback of the grant in another one. It is given in
microseconds and in round trips: the median of a PING and its answer, measured by one more process all the time;
and, as hand-overs are when all processes wake at once, in the releases of the same moments: from call to answer.
Requests are what clients sent to all three servers, seen by MONITOR in a span of their own behind the measured
one; commands are what the servers' own statistics count in the measured span, with those inside of scripts.
"""
import collections
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from servers import QUIET_USER, Wire, launch

HERE = os.path.dirname(os.path.abspath(__file__))
LEASE_MS = 5000
LEAD_IN_NS = 300_000_000
SAME_NS = 1_000_000  # acquires that begin so close to each other have no order
COUNTED_NS = 1_000_000_000  # seen by MONITOR
HOLD_US, THINK_US = 2000, 0
PEERS = {"node-redlock": "patient", "node-redlock anew": "anew"}  # see contention.js
NOT_OURS = ("ping", "info", "monitor", "config", "hello", "client", "auth")


class Watcher(threading.Thread):
    """Counts what clients ask of one server, from its start to its stop."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.wire = Wire(port)
        self.chunks = []
        self.wire.ask("MONITOR")
        self.start()

    def run(self):
        try:
            while True:
                chunk = self.wire.socket.recv(1 << 16)
                if not chunk:
                    return
                self.chunks.append(chunk)
        except OSError:
            pass

    def stop(self):
        self.wire.socket.shutdown(socket.SHUT_RDWR)
        self.join()
        seen = collections.Counter()
        # +TIME [DB ADDRESS] "COMMAND" ...; commands of a script have "lua" for an address.
        for who, name in re.findall(rb'^\+[\d.]+ \[\d+ ([^\]]+)\] "(\w+)"', b"".join(self.chunks), re.M):
            if who != b"lua":
                seen[name.decode().lower()] += 1
        return seen


class Worker:
    def __init__(self, words, env=None):
        self.process = launch(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def await_ready(self):
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"contention: {' '.join(map(str, self.process.args))}: did not start")

    def order(self, text):
        self.process.stdin.write(text)
        self.process.stdin.close()

    def collect(self):
        self.turns, self.raw, self.failed = [], [], 0
        for line in self.process.stdout:
            kind, *numbers = line.split()
            if kind == "turn":
                self.turns.append(tuple(map(int, numbers)))
            elif kind == "raw":
                self.raw.append(int(numbers[0]))
            else:
                self.failed = int(numbers[0])
        if self.process.wait():
            sys.exit(f"contention: {' '.join(map(str, self.process.args))}: status {self.process.returncode}")


def quantile(values, share):
    values = sorted(values)
    return values[int((len(values) - 1) * share)] if values else 0


def figures(values_ns, raw_us):
    result = {}
    for name, share in (("median", 0.5), ("p90", 0.9), ("p99", 0.99)):
        us = quantile(values_ns, share) / 1e3
        result[name + "_us"] = round(us, 1)
        result[name + "_round_trips"] = round(us / raw_us, 2) if raw_us else 0
    return result


def overtaken(turns):
    """The share of the grants that came while an acquire waited which had begun earlier by more than SAME_NS; None: the
    turns do not tell when their acquires began."""
    if not turns or any(len(turn) < 5 for turn in turns):
        return None
    waits = [(turn[4], turn[0]) for turn in turns]
    passed = sum(any(asked < turn[4] - SAME_NS and turn[0] < granted for asked, granted in waits) for turn in turns)
    return round(passed / len(turns), 4)


def turns_within(workers, since_ns, until_ns):
    return sum(since_ns <= turn[0] < until_ns for worker in workers for turn in worker.turns)


def per_turn(counter, turns):
    if not turns:
        return {}
    return {name: round(count / turns, 2) for name, count in sorted(counter.items())
            if name.split()[0] not in NOT_OURS}


class Contention:
    """The cases on some servers, which clients reach at `nodes`. peers: a folder whose node_modules has redlock and
    ioredis, or None."""
    count = 0

    def __init__(self, program, servers, nodes, peers, seconds):
        self.program, self.servers, self.nodes, self.peers, self.seconds = program, servers, nodes, peers, seconds

    def words(self, kind, handles):
        work = [str(HOLD_US), str(THINK_US), str(handles), str(LEASE_MS)]
        if kind in PEERS:
            return ["node", os.path.join(HERE, "contention.js"), PEERS[kind], *work, *self.nodes]
        nodes = self.nodes
        if kind == "deaf":
            nodes = [f"redis://{':'.join(QUIET_USER)}@{node}" for node in nodes]
        names = ("--hold-us", "--think-us", "--handles", "--lease-ms")
        dialect = ["--redisson"] if kind == "redisson" else ["--fair"] if kind == "fair" else []
        return [self.program, *dialect, *(word for pair in zip(names, work) for word in pair), *nodes]

    def start(self, kind, processes, handles):
        env = None
        if kind in PEERS:
            env = dict(os.environ, NODE_PATH=os.path.join(self.peers, "node_modules"))
        workers = [Worker(self.words(kind, handles), env) for _ in range(processes)]
        for worker in workers:
            worker.await_ready()
        return workers

    def run(self, name, kind, processes, handles=1, frozen=None):
        """One case: its figures. frozen: the number of a server that is frozen meanwhile."""
        # Every case has a key of its own, but all the same arbiter.
        Contention.count += 1
        workers = self.start(kind, processes, handles)
        live = [server for i, server in enumerate(self.servers) if i != frozen]
        raw = Worker([self.program, "--raw", *(node for i, node in enumerate(self.nodes) if i != frozen)])
        raw.await_ready()
        begin = time.monotonic_ns() + LEAD_IN_NS
        first = begin + LEAD_IN_NS
        last = first + int(self.seconds * 1e9)
        for worker in workers + [raw]:
            worker.order(f"contend:{Contention.count} {begin} {last + LEAD_IN_NS + COUNTED_NS}\n")
        if frozen is not None:
            self.servers[frozen].signal(signal.SIGSTOP)
        try:
            return self.measure(name, kind, workers, handles, raw, live, first, last)
        finally:
            if frozen is not None:
                self.servers[frozen].signal(signal.SIGCONT)

    def measure(self, name, kind, workers, handles, raw, live, first, last):
        time.sleep(max(0, first - time.monotonic_ns()) / 1e9)
        before, begun = [server.commands() for server in live], time.monotonic_ns()
        time.sleep(max(0, last - time.monotonic_ns()) / 1e9)
        after, ended = [server.commands() for server in live], time.monotonic_ns()
        watchers = [Watcher(server.port) for server in live]
        watched = time.monotonic_ns()
        time.sleep(COUNTED_NS / 1e9)
        seen, seen_end = [watcher.stop() for watcher in watchers], time.monotonic_ns()
        # Their output is read at the same time, else one that waits for room in a pipe delays all others.
        threads = [threading.Thread(target=worker.collect) for worker in workers + [raw]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        commands = sum((b - a for a, b in zip(before, after)), collections.Counter())
        result = self.judge(workers, raw, first, last)
        turns, seen_turns = turns_within(workers, begun, ended), turns_within(workers, watched, seen_end)
        requests = sum(seen, collections.Counter())
        result["commands_a_turn"] = per_turn(commands, turns)
        result["requests_a_turn"] = per_turn(requests, seen_turns)
        result["requests_of_each_server"] = [round(sum(per_turn(each, seen_turns).values()), 1) for each in seen]
        result["requests"] = round(sum(result["requests_a_turn"].values()), 1)
        waiters = len(workers) * handles - 1
        result["requests_a_waiter"] = round(result["requests"] / waiters, 2) if waiters else 0
        result.update(name=name, kind=kind, processes=len(workers), handles=handles)
        return result

    def judge(self, workers, raw, first, last):
        raw_us = quantile(raw.raw, 0.5) / 1e3
        turns = sorted((turn, i) for i, worker in enumerate(workers) for turn in worker.turns)
        inside = [(turn, i) for turn, i in turns if first <= turn[0] < last]
        handed, kept, released, overlaps = [], [], [], 0
        for (before, a), (after, b) in zip(inside, inside[1:]):
            overlaps += after[0] < before[1]
            (handed if a != b else kept).append(after[0] - before[1])
            released.append(before[2] - before[1])
        each = collections.Counter(i for _, i in inside)
        shares = [each[i] for i in range(len(workers))]
        gaps = [after[0][0] - before[0][0] for before, after in zip(inside, inside[1:])]
        return {
            "raw_us": round(raw_us, 1), "raw_p99_us": round(quantile(raw.raw, 0.99) / 1e3, 1),
            "grants_a_second": round(len(inside) / self.seconds, 1), "overlaps": overlaps,
            "hand_overs": len(handed), "hand_over": figures(handed, raw_us),
            "release_median_us": round(quantile(released, 0.5) / 1e3, 1),
            "in_releases": round(quantile(handed, 0.5) / max(1, quantile(released, 0.5)), 2),
            "overtaken": overtaken([turn for turn, _ in turns]), "kept": len(kept), "kept_over": figures(kept, raw_us),
            "attempts_a_grant": round(sum(turn[3] for turn, _ in inside) / max(1, len(inside)), 2),
            "turns_min": min(shares), "turns_max": max(shares),
            "longest_pause_ms": round(max(gaps, default=0) / 1e6, 1),
            "failed": sum(worker.failed for worker in workers),
        }


def cases(clients, peers, whole):
    """name, kind, processes, handles in each, frozen node; `whole`: not only more and more processes."""
    for n in clients:
        yield f"{n} processes", "quorlock", n, 1, None
        yield f"{n} processes, fair", "fair", n, 1, None
        if peers and n <= 30:
            for peer in PEERS:
                yield f"{n} processes, {peer}", peer, n, 1, None
    if not whole:
        return
    n = min(10, max(clients))
    yield f"{n} processes, redisson dialect", "redisson", n, 1, None
    yield f"{n} processes, no notices", "deaf", n, 1, None
    for frozen in range(3):
        yield f"{n} processes, node {frozen + 1} frozen", "quorlock", n, 1, frozen
    yield f"1 process, {n} handles", "quorlock", 1, n, None
    if peers:
        yield f"1 process, {n} tasks, node-redlock", "node-redlock anew", 1, n, None
        yield f"{n} processes, node 3 frozen, node-redlock", "node-redlock anew", n, 1, 2
