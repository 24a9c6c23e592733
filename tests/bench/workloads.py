# SPDX-License-Identifier: BSD-3-Clause
"""The workloads. Each has a number, and gives rows: a name, and figures that the report knows how to show.

What is compared runs in turn, in short pieces, again and again, so that whatever the machine does meets all of it; a
figure is the median of its pieces, and a ratio the median of the ratios of pieces that stood side by side, with the
quartiles of all of them.
"""
import contextlib
import os
import signal
import statistics
import subprocess
import threading
import time

import contention
import crowds
import languages
import modes
from programs import TITLES, Failed, check_status, read_json
from ratios import ratio, spread
from servers import Servers, launch

OFF = ("--guard", "off")
RATIOS = {"throughput": "locks_per_s", "latency_p50": "p50_us", "latency_p99": "p99_us",
          "client_cpu": "client_cpu_us_per_lock", "server_cpu": "server_cpu_us_per_lock"}


class Setting:
    """What all workloads share: programs, a scratch folder, and how long and how much."""

    def __init__(self, programs, folder, options):
        self.programs, self.folder, self.options = programs, folder, options
        self.count = 0

    @property
    def seconds(self):
        return self.options.seconds

    def servers(self, n=3, **more):
        self.count += 1
        return Servers(os.path.join(self.folder, str(self.count)), n, **more)

    @contextlib.contextmanager
    def servers_behind(self, delay_ms):
        """Three servers, where it is not 0 behind a network so slow each way."""
        with self.servers() as servers:
            if delay_ms:
                servers.link(self.programs.path("chaos_proxy"), servers.all)
                servers.links.delay_all(delay_ms)
            yield servers

    def say(self, text):
        print(f"  {text}", flush=True)


def ratios_to_raw(reports):
    """Of all pairs of slices of some reports of quorlock bench."""
    pairs = []
    for report in reports:
        slices = report["slices"]
        for one, other in zip(slices[::2], slices[1::2]):
            pairs.append((one, other) if one["of"] == "quorlock" else (other, one))
    return {name: spread(ratio(ours[field], raw[field]) for ours, raw in pairs if ours["locks"] and raw["locks"])
            for name, field in RATIOS.items()}


def middle(reports, *names):
    """The median of a figure, which stands at that path."""
    values = []
    for report in reports:
        for name in names:
            report = report[name]
        values.append(report)
    return statistics.median(values)


def figures(reports, *front):
    """What the reports say of one side: of quorlock, or with "raw" in front of the baseline."""
    result = {name: middle(reports, *front, name) for name in (
        "locks_per_s", "client_cpu_us_per_lock", "server_cpu_us_per_lock", "server_commands_per_lock",
        "server_bytes_per_lock")}
    for share in ("p50", "p99", "p999"):
        result[f"{share}_us"] = middle(reports, *front, "latency_us", share)
    result["release_p50_us"] = middle(reports, *front, "release_latency_us", "p50")
    result["locks"] = sum(report["raw"]["locks"] if front else report["locks"] for report in reports)
    result["failed"] = sum(report["raw"]["failed"] if front else report["failed"] for report in reports)
    return result


def row_of(name, reports, **more):
    row = {"name": name, "quorlock": figures(reports), "raw": figures(reports, "raw"),
           "ratio_to_raw": ratios_to_raw(reports), **more}
    return row


def tell(setting, row):
    ours, ratios = row["quorlock"], row["ratio_to_raw"]
    parts = [f"{row['name']}: {ours['locks_per_s']:,.0f} locks/s, p50 {ours['p50_us']:,.0f} us"]
    for name, text in (("throughput", "throughput"), ("latency_p50", "p50"), ("client_cpu", "client CPU")):
        if ratios[name]:
            parts.append(f"{text} {ratios[name]['median']:.2f} of raw")
    parts += [f"{TITLES[name]} {each['speedup']['median']:.1f} times slower" for name, each in
              row.get("peers", {}).items() if each["speedup"]]
    setting.say("; ".join(parts))


# ---- 1: uncontended cycles, with the peers ----

def peer_figures(runs, reports):
    """Of one peer: its figures, and how many times as many locks quorlock made beside it."""
    cycles = [run for run in runs if run["locks"]]
    times = [ratio(report["locks_per_s"], run["locks"] / run["seconds"]) for run, report in zip(runs, reports)
             if run["locks"]]
    result = {"failed": sum(run["failed"] for run in runs), "speedup": spread(times)}
    if cycles:
        result.update(
            locks_per_s=statistics.median(run["locks"] / run["seconds"] for run in cycles),
            client_cpu_us_per_lock=statistics.median(1e6 * run["cpu_s"] / run["locks"] for run in cycles),
            **{name: statistics.median(run[name] for run in cycles) for name in ("p50_us", "p99_us", "p999_us")})
    return result


def side_by_side(setting, servers, in_flight, peers):
    """Rounds of quorlock with the baseline, then each peer in turn."""
    rounds = setting.options.rounds if peers else 1
    reports, runs = [], {peer.name: [] for peer in peers}
    for peer in peers:
        peer.run(in_flight, min(1, setting.seconds))  # warms up
    for _ in range(rounds):
        reports.append(setting.programs.bench(servers.nodes(), in_flight, setting.seconds / rounds, *OFF))
        for peer in peers:
            runs[peer.name].append(peer.run(in_flight, max(0.5, setting.seconds / rounds)))
    return reports, {name: peer_figures(each, reports) for name, each in runs.items()}


def uncontended(setting):
    with setting.servers() as servers:
        peers = []
        try:
            for name in setting.programs.here() if setting.options.peers else []:
                peers.append(setting.programs.peer(name, servers.nodes()))
                setting.options.versions[name] = peers[-1].version
            for in_flight in (1, 16, 256, 4096):
                # A thread and three connections for each lock: that is not what these were made for.
                able = [peer for peer in peers if in_flight <= 256]
                reports, beside = side_by_side(setting, servers, in_flight, able)
                nodes = servers.nodes()
                counts = {"quorlock": setting.programs.counts(nodes, in_flight),
                          "raw": setting.programs.counts(nodes, in_flight, "--raw")}
                row = row_of(f"{in_flight:,} in flight", reports, in_flight=in_flight, peers=beside, counts=counts)
                tell(setting, row)
                yield row
        finally:
            for peer in peers:
                peer.end()


# ---- 2: what a guard, a fencing token, another dialect, TLS cost ----

VARIANTS = (("guard off", OFF, ()), ("guard connection", ("--guard", "connection"), ("--guard", "connection")),
            ("guard strict", ("--guard", "strict"), ("--guard", "strict")),
            ("fencing", (*OFF, "--fence"), ("--fence",)),
            ("redisson dialect", (*OFF, "--dialect", "redisson"), ("--redisson",)))


def variants(setting):
    with setting.servers() as servers, setting.servers(tls=True) as secure:
        words = [setting.programs.path("quorlock"), "--nodes", ",".join(servers.nodes()), "bootstrap", "--yes"]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for in_flight in (1, 16, 256):
            for name, options, counted in VARIANTS:
                report = setting.programs.bench(servers.nodes(), in_flight, setting.seconds, *options)
                row = row_of(f"{in_flight} in flight, {name}", [report], in_flight=in_flight, variant=name,
                             counts={"quorlock": setting.programs.counts(servers.nodes(), in_flight, *counted)})
                tell(setting, row)
                yield row
            row = tls_row(setting, secure, in_flight)
            tell(setting, row)
            yield row


def tls_row(setting, servers, in_flight):
    """Its baseline goes over TLS too."""
    report = setting.programs.bench(servers.nodes(), in_flight, setting.seconds, *OFF, "--tls-ca",
                                    servers.certificate[0])
    return row_of(f"{in_flight} in flight, guard off, over TLS", [report], in_flight=in_flight, variant="TLS")


# ---- 3: nodes that are frozen or slow, in turn with healthy ones ----

class Hurter(threading.Thread):
    """Hurts and heals in turn until the process ends, and notes when each phase lasted, by CLOCK_MONOTONIC."""

    def __init__(self, process, phase_s, hurt, heal):
        super().__init__(daemon=True)
        self.process, self.phase_s, self.hurt, self.heal = process, phase_s, hurt, heal
        self.phases = []  # (hurt, begun_us, ended_us)

    def run(self):
        hurt = False
        while self.process.poll() is None:
            (self.hurt if hurt else self.heal)()
            begun_us = time.monotonic_ns() // 1000
            end = time.monotonic() + self.phase_s
            while self.process.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            self.phases.append((hurt, begun_us, time.monotonic_ns() // 1000))
            hurt = not hurt
        self.heal()

    def slices(self, report, hurt):
        """Those of quorlock that lie within such phases."""
        def within(each):
            return any(was == hurt and begun <= each["begun_us"] and each["ended_us"] <= ended
                       for was, begun, ended in self.phases)
        return [each for each in report["slices"] if each["of"] == "quorlock" and each["locks"] and within(each)]


def hurt_row(setting, nodes, name, in_flight, hurt, heal):
    seconds = 4 * max(setting.seconds, setting.options.phase)
    words = setting.programs.bench_words(nodes, in_flight, seconds, *OFF)
    process = launch(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    hurter = Hurter(process, setting.options.phase, hurt, heal)
    hurter.start()
    out, err = process.communicate()
    hurter.join()
    check_status(words, process.returncode, err)
    report = read_json(words, out)
    healthy, hurt_ones = hurter.slices(report, False), hurter.slices(report, True)
    row = {"name": f"{name}, {in_flight} in flight", "in_flight": in_flight, "failed": report["failed"],
           "slices_healthy": len(healthy), "slices_hurt": len(hurt_ones)}
    for field in ("locks_per_s", "p50_us", "p99_us"):
        base = spread(each[field] for each in healthy)
        row[field] = {"healthy": base, "hurt": spread(each[field] for each in hurt_ones), "ratio": base and spread(
            each[field] / base["median"] for each in hurt_ones)}
    if row["p50_us"]["ratio"]:
        setting.say(f"{row['name']}: p50 {row['p50_us']['ratio']['median']:.2f}, p99 "
                    f"{row['p99_us']['ratio']['median']:.2f} of healthy")
    else:
        setting.say(f"{row['name']}: too short to compare")
    return row


def hurt_nodes(setting):
    for n, hurt in ((3, 1), (5, 2)):
        with setting.servers(n) as servers:
            chosen = servers.all[-hurt:]
            for in_flight in (1, 256):
                yield hurt_row(setting, servers.nodes(), f"{hurt} of {n} frozen", in_flight,
                               lambda chosen=chosen: [server.signal(signal.SIGSTOP) for server in chosen],
                               lambda chosen=chosen: [server.signal(signal.SIGCONT) for server in chosen])
        with setting.servers(n) as servers:
            servers.link(setting.programs.path("chaos_proxy"), servers.all[-hurt:])
            for in_flight in (1, 256):
                yield hurt_row(setting, servers.nodes(), f"{hurt} of {n} slower by 50 ms", in_flight,
                               lambda links=servers.links: links.delay_all(25),
                               lambda links=servers.links: links.delay_all(0))


# ---- 4: contention ----

def tell_contended(setting, row):
    over = row["hand_over"] if row["hand_overs"] else row["kept_over"]
    setting.say(f"{row['delay_ms']} ms each way, {row['name']}: {row['grants_a_second']:,.0f} grants/s, hand-over "
                f"{over['median_us']:,.0f} us = {over['median_round_trips']:.1f} round trips, {row['requests']:.1f} "
                "requests a turn" + ("" if row["overtaken"] is None else f", {100 * row['overtaken']:.1f} % overtook"))
    if row["overlaps"]:
        setting.say(f"{row['overlaps']} GRANTS BEFORE THE RELEASE BEFORE THEM")


def contended(setting):
    peers = setting.programs.node_modules() if setting.options.peers else None
    for delay_ms in (0, 1, 5):
        with setting.servers_behind(delay_ms) as servers:
            bench = contention.Contention(setting.programs.path("bench_contention"), servers.all, servers.nodes(),
                                          peers, setting.seconds)
            # What else there is to know is known on loopback.
            for case in contention.cases(setting.options.clients, peers, whole=not delay_ms):
                row = bench.run(*case)
                row["delay_ms"] = delay_ms
                tell_contended(setting, row)
                yield row


# ---- 5: held and renewed ----

def held(setting):
    for locks in setting.options.held:
        # So many must not end before all of them are there.
        lease_ms = setting.options.lease_ms if locks < 100_000 else 30_000
        with setting.servers() as servers:
            row = setting.programs.held(servers.nodes(), locks, setting.options.hold, lease_ms)
            row["name"] = f"{locks:,} held"
            row["ratio_to_raw"] = ratio(row["client_cpu_us_per_renewal"], row["raw_cpu_us_per_request"])
            row["rss_bytes_beyond_key"] = row["rss_bytes_per_lock"] - row["key_bytes"]
            setting.say(f"{row['name']}: {row['rss_bytes_beyond_key']:,.0f} bytes a lock beyond its key, "
                        f"{100 * row['client_cpu_share']:.2f} % of a core, {row['lost']} lost, least validity "
                        f"{row['least_valid_ms']} of {row['lease_ms']} ms")
            yield row


# ---- 6: more nodes ----

def more_nodes(setting):
    for n in (3, 5, 9, 15):
        with setting.servers(n) as servers:
            for in_flight in (1, 256):
                row = row_of(f"{n} nodes, {in_flight} in flight",
                             [setting.programs.bench(servers.nodes(), in_flight, setting.seconds, *OFF)], nodes=n,
                             in_flight=in_flight)
                tell(setting, row)
                yield row


# ---- 7: from a shell ----

def once_us(words, environment):
    begun = time.perf_counter_ns()
    process = os.posix_spawnp(words[0], words, environment)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status:
        raise Failed(f"{' '.join(words)}: status {status}")
    return (time.perf_counter_ns() - begun) / 1000


def shell(setting):
    with setting.servers() as servers:
        environment = dict(os.environ, QUORLOCK_NODES=",".join(servers.nodes()))
        file = os.path.join(setting.folder, "flock")
        # In the order of the table; the first is what the others are compared with.
        programs = {"flock FILE true": ["flock", file, "true"],
                    "quorlock run KEY -- true": [setting.programs.path("quorlock"), "run", *OFF, "bench", "--", "true"],
                    "true": ["true"]}
        times = {name: [] for name in programs}
        end = time.monotonic() + 2 * setting.seconds
        while time.monotonic() < end or len(times["true"]) < 10:
            for name, words in programs.items():
                times[name].append(once_us(words, environment))
        base = times["flock FILE true"]
        for name, each in times.items():
            row = {"name": name, "runs": len(each), "us": spread(each),
                   "p99_us": sorted(each)[int(0.99 * (len(each) - 1))],
                   "ratio": spread(ratio(one, other) for one, other in zip(each, base))}
            setting.say(f"{name}: {row['us']['median']:,.0f} us, {row['ratio']['median']:.2f} of flock")
            yield row


# ---- 8: a flood ----

def flood(setting):
    with setting.servers() as servers:
        for in_flight in setting.options.flood:
            report = setting.programs.bench(servers.nodes(), in_flight, setting.seconds, *OFF)
            row = row_of(f"{in_flight:,} acquires in one turn", [report], in_flight=in_flight)
            tell(setting, row)
            yield row


# ---- 13: the limit ----

def limit_side(each):
    """The medians of what a side cost in some rounds: rounds with the same names."""
    return {name: statistics.median(one[name] for one in each)
            for name in ("locks_per_s", "client_cpu_us_per_lock", "server_cpu_us_per_lock")}


def limits(setting):
    with setting.servers() as servers:
        for in_flight in (16, 256, 4096):
            sides = {"quorlock": [], "raw": [], "sent": [], "bare": []}
            for _ in range(setting.options.rounds):
                seconds = max(1, setting.seconds / setting.options.rounds)
                report = setting.programs.bench(servers.nodes(), in_flight, seconds, *OFF)
                limit = setting.programs.limit(servers.nodes(), in_flight, seconds)
                for side, one in (("quorlock", report), ("raw", report["raw"]), *limit.items()):
                    sides[side].append(one)
            row = {"name": f"{in_flight:,} in flight", "in_flight": in_flight,
                   "sides": {side: limit_side(each) for side, each in sides.items()},
                   "of_raw": {side: spread(ratio(one["locks_per_s"], raw["locks_per_s"])
                                           for one, raw in zip(each, sides["raw"])) for side, each in sides.items()}}
            setting.say(f"{row['name']}, of raw: " + ", ".join(
                f"{side} {row['of_raw'][side]['median']:.2f}" for side in ("quorlock", "sent", "bare")))
            yield row


# number: (title, what it is, the function that gives its rows)
WORKLOADS = {
    1: ("Uncontended locks", "Each lock has a key of its own, and is taken and given back again and again, so many at "
        "a time in one process. Guard off, three nodes.", uncontended),
    2: ("Guard, fencing, dialect, TLS", "The same with what makes a lock safer, or others understand it. Over TLS the "
        "baseline is too: its cost is to be seen in the figures, not in the ratios.", variants),
    3: ("Nodes that fail", "Healthy and hurt phases alternate in one run, under load; the ratio is of quorlock to "
        "quorlock. A frozen server is stopped by SIGSTOP, a slow one answers 50 ms late.", hurt_nodes),
    4: ("Contention", "Processes that all want one key, hold it for 2 ms, and want it again. Round trips are those of "
        "a PING at the same time; with a proxy in front of each server, that is the network.", contended),
    5: ("Held and renewed", "So many locks are taken at once and held. The baseline is what one request to all nodes "
        "costs it.", held),
    6: ("More nodes", "Uncontended locks on so many servers of this machine.", more_nodes),
    7: ("From a shell", "One process after the other, with its start and its end.", shell),
    8: ("A flood", "So many acquires in one turn of the loop, then their releases; latency is how long the last of so "
        "many waits.", flood),
    9: ("Permits under load", "Twenty processes want one of five permits, hold it, and think for a while, so that so "
        "much of the five is wanted. A hand-over is from the call that gives a slot back to the grant of it to one that "
        "waited; direct is from the call of acquire, where a slot was free.", modes.permits),
    10: ("Readers and writers", "Twenty processes that all want one key, hold it for 2 ms, and want it again: 95 of 100 "
         "turns are readers', against none.", modes.readers),
    11: ("Elections", "Candidates, of which one leads for 300 ms, resigns, and stands again a little later; and an "
         "observer. From the call of resign to the next one's callback.", modes.elections),
    12: ("Uncontended, by mode", "Plain locks, permits and readers' locks, each with a name of its own, in turn in one "
         "process; and where it is given, plain locks beside those of another build.", modes.uncontended),
    13: ("The limit", "What no client can be faster than on this machine: bytes that were made beforehand, and replies "
         "that nobody reads, on each node for itself. Sent: the bytes that quorlock sends. Bare: locks are given back "
         "by one look at all keys and one deletion of all, which tells no waiter.", limits),
    14: ("Threads", "So many threads share a client of the sync API, and each takes and gives back a lock of its own "
         "again and again, in turn with as many locks under way in one loop of the asynchronous API. A switch is a "
         "thread of the client's process that goes to sleep.", modes.by_threads),
    15: ("Python", "So many threads or tasks of asyncio share a client of the Python package, and each takes and gives back "
         "a lock of its own again and again, in turn with redis-py's own lock on one of the three servers; and where it "
         "is given, with the package of another build.", languages.by_python),
    16: ("Waiting crowds", "So many clients, in four processes, wait for one key. What that costs the busiest of three "
         "nodes while nothing happens, and each release while the first 50 are served, who hold the key for 5 ms; and where "
         "it is given, the same of another build.", crowds.waiting),
}
