# SPDX-License-Identifier: BSD-3-Clause
"""The workloads of permits, of readers and writers, and of elections.

Processes contend as in contention.py, whose servers, baseline and counts these are; times are in microseconds and in
round trips, of a PING at the same time.
"""
import os
import time

from contention import LEASE_MS, Contention, Worker, figures, quantile
from programs import Failed
from ratios import ratio, spread
from servers import Wire

PERMITS, PROCESSES = 5, 20
LOADS = (50, 95, 120)  # per cent of the permits
HOLD_US, SHORT_HOLD_US, LEAD_US = 40_000, 2_000, 300_000
DELAYS_MS = (0, 5)
PINGS = 11  # of each node
MODES = ("plain", "permit", "shared")


class Turns(Contention):
    """Cases of workers with words of their own, and a judgement of their turns."""

    def __init__(self, setting, servers, judge_turns):
        program = setting.programs.path("bench_contention")
        super().__init__(program, servers.all, servers.nodes(), None, setting.seconds)
        self.setting, self.judge_turns, self.options = setting, judge_turns, []

    def words(self, kind, handles):
        return [self.program, "--lease-ms", str(LEASE_MS), *map(str, self.options), *self.nodes]

    def judge(self, workers, raw, first, last):
        result = {"raw_us": round(quantile(raw.raw, 0.5) / 1e3, 1), "failed": sum(each.failed for each in workers)}
        result.update(self.judge_turns(workers, result["raw_us"], first, last))
        result["grants_a_second"] = round(result["grants"] / self.seconds, 1)
        return result

    def case(self, name, kind, processes, *options):
        self.options = options
        row = self.run(name, kind, processes)
        row["processes"] = processes
        if not row["grants"] or row["failed"]:
            raise Failed(f"{name}: {row['grants']} grants, {row['failed']} failures")
        return row


def trips_us(nodes):
    """How long a PING takes to each node, again and again. What a proxy says that it adds is not what it adds."""
    found = []
    for node in nodes:
        wire = Wire(int(node.rsplit(":", 1)[1]))
        for _ in range(PINGS):
            begun_ns = time.monotonic_ns()
            wire.ask("PING")
            found.append((time.monotonic_ns() - begun_ns) / 1000)
        wire.close()
    return found


def over_delays(setting, judge_turns, cases):
    """Rows of all cases over loopback and over a slow network. cases(bench, delay_ms) gives them."""
    for delay_ms in DELAYS_MS:
        with setting.servers_behind(delay_ms) as servers:
            for row in cases(Turns(setting, servers, judge_turns), delay_ms):
                row["delay_ms"] = delay_ms
                row["where"] = f"{delay_ms} ms each way" if delay_ms else "loopback"
                yield row


def turns_of(workers, first, last):
    """(granted, release, asked, slot, shared), in the order of the grants."""
    found = [(turn[0], turn[1], turn[4], turn[5], bool(turn[6])) for worker in workers for turn in worker.turns]
    return [turn for turn in sorted(found) if first <= turn[0] < last]


def moments(turns):
    """(ns, what, turn), where what is given back stands before what is granted at the same time."""
    return sorted([(turn[1], 0, turn) for turn in turns] + [(turn[0], 1, turn) for turn in turns])


# ---- permits ----

def idle_share(turns, permits):
    """Of the time of all slots, that in which a slot was free and somebody wanted it: also while it is on its way."""
    changes = []
    for granted, release, asked, _, _ in turns:
        changes += [(asked, 1, 0), (granted, -1, 1), (release, 0, -1)]
    changes.sort()
    wanting = holding = idle = before = 0
    for at, more, held in changes:
        idle += max(0, min(wanting, permits - holding)) * (at - before)
        wanting, holding, before = wanting + more, holding + held, at
    span = changes[-1][0] - changes[0][0] if changes else 0
    return idle / (permits * span) if span else 0


def judge_permits(workers, raw_us, first, last):
    turns = turns_of(workers, first, last)
    freed, handed, direct, too_many, twice = {}, [], [], 0, 0
    for granted, release, asked, slot, _ in turns:
        since = freed.get(slot, 0)
        twice += since > granted
        (handed if asked < since else direct).append(granted - max(asked, since))
        freed[slot] = release
    inside = 0
    for _, what, _ in moments(turns):
        inside += 1 if what else -1
        too_many += inside > PERMITS
    busy = sum(release - granted for granted, release, *_ in turns)
    return {"grants": len(turns), "hand_overs": len(handed), "hand_over": figures(handed, raw_us),
            "directs": len(direct), "direct": figures(direct, raw_us), "overlaps": too_many + twice,
            "waited": figures([turn[0] - turn[2] for turn in turns], raw_us),
            "slots": len(freed), "held_share": round(busy / (PERMITS * (last - first)), 3),
            "idle_share": round(idle_share(turns, PERMITS), 4)}


def think_us(load, trip_us):
    """So long that all processes together want so much of the permits. The nodes see a slot taken for a round trip
    longer than its holder."""
    cycle_us = PROCESSES * (HOLD_US + trip_us) * 100 / (load * PERMITS)
    return round(cycle_us - HOLD_US - 2 * trip_us)


def permits(setting):
    def cases(bench, _):
        trip_us = quantile(trips_us(bench.nodes), 0.5)
        for load in LOADS:
            pause_us = think_us(load, trip_us)
            row = bench.case(f"{load} % of {PERMITS} permits wanted", "permits", PROCESSES, "--permits", PERMITS,
                             "--hold-us", HOLD_US, "--think-us", pause_us, "--uneven")
            row.update(load=load, permits=PERMITS)
            yield row

    for row in over_delays(setting, judge_permits, cases):
        parts = [f"{text} {row[name]['median_round_trips']:.2f}, p99 {row[name]['p99_round_trips']:.2f} round trips"
                 for name, count, text in (("hand_over", "hand_overs", "hand-over"), ("direct", "directs", "direct"))
                 if row[count]]
        setting.say(f"{row['where']}, {row['name']}: {row['grants_a_second']:,.0f} grants/s, {'; '.join(parts)}; "
                    f"{100 * row['idle_share']:.1f} % free and wanted; {row['overlaps']} overlaps")
        yield row


# ---- readers and writers ----

def judge_readers(workers, raw_us, first, last):
    turns = turns_of(workers, first, last)
    inside, overlaps, most = {True: 0, False: 0}, 0, 0
    for _, what, turn in moments(turns):
        shared = turn[4]
        if what:
            overlaps += inside[False] > 0 or (not shared and inside[True] > 0)
        inside[shared] += 1 if what else -1
        most = max(most, inside[True])
    result = {"grants": len(turns), "overlaps": overlaps, "most_readers": most}
    for name, mode in (("readers", True), ("writers", False)):
        waits = [granted - asked for granted, _, asked, _, shared in turns if shared == mode]
        result[name] = {"grants": len(waits), "longest_us": max(waits, default=0) / 1e3, **figures(waits, raw_us)}
    return result


def readers(setting):
    def cases(bench, _):
        base = None
        for share in (0, 95):
            name = f"{share} % readers" if share else "all exclusive"
            row = bench.case(f"{PROCESSES} processes, {name}", "readers", PROCESSES, "--readers", share, "--hold-us",
                             SHORT_HOLD_US)
            base = base or row["grants_a_second"]
            row.update(readers_share=share, ratio=ratio(row["grants_a_second"], base))
            yield row

    for row in over_delays(setting, judge_readers, cases):
        waits = "; ".join(f"{name} wait {row[name]['median_round_trips']:.1f}, p99 {row[name]['p99_round_trips']:.1f} "
                          "round trips" for name in ("readers", "writers") if row[name]["grants"])
        setting.say(f"{row['where']}, {row['name']}: {row['grants_a_second']:,.0f} grants/s, {row['ratio']:.1f} of all "
                    f"exclusive; {waits}; {row['overlaps']} overlaps")
        yield row


# ---- elections ----

class Candidate(Worker):
    """bench_election; turns are (elected, resign, ended, term)."""

    def collect(self):
        self.turns, self.raw, self.seen, self.failed = [], [], [], 0
        for line in self.process.stdout:
            kind, *values = line.split()
            if kind == "turn":
                self.turns.append(tuple(map(int, values)))
            elif kind == "seen":
                self.seen.append(tuple(map(int, values)))
            else:
                self.failed += 1
        self.failed += self.process.wait() != 0


class Elections(Turns):
    def start(self, kind, processes, handles):
        program = self.setting.programs.path("bench_election")
        words = [program, str(LEAD_US), str(LEASE_MS), ",".join(self.nodes)]
        workers = [Candidate(words) for _ in range(processes)]
        workers.append(Candidate([program, "--observe", *words[1:]]))
        for worker in workers:
            worker.await_ready()
        return workers


def judge_elections(workers, raw_us, first, last):
    turns = sorted((*turn, i) for i, worker in enumerate(workers) for turn in worker.turns)
    turns = [turn for turn in turns if first <= turn[0] < last]
    seen = {term: at for worker in workers for at, term in reversed(worker.seen)}
    handed, kept, overlaps, falls = [], [], 0, 0
    for before, after in zip(turns, turns[1:]):
        overlaps += after[0] < before[1]
        falls += after[3] <= before[3]
        (handed if before[4] != after[4] else kept).append(after[0] - before[1])
    lags = [seen[turn[3]] - turn[0] for turn in turns if turn[3] in seen]
    return {"grants": len(turns), "hand_overs": len(handed), "hand_over": figures(handed, raw_us), "kept": len(kept),
            "overlaps": overlaps, "falls": falls, "observed": len(lags), "observed_after": figures(lags, raw_us)}


def elections(setting):
    for delay_ms in DELAYS_MS:
        with setting.servers_behind(delay_ms) as servers:
            bench = Elections(setting, servers, judge_elections)
            for n in (2, 5, 20):
                row = bench.case(f"{n} candidates", "election", n)
                row.update(delay_ms=delay_ms, where=f"{delay_ms} ms each way" if delay_ms else "loopback")
                setting.say(f"{row['where']}, {row['name']}: from resign to elected "
                            f"{row['hand_over']['median_round_trips']:.2f}, p99 {row['hand_over']['p99_round_trips']:.2f} "
                            f"round trips; observed {row['observed']} of {row['grants']} terms, after "
                            f"{row['observed_after']['median_round_trips']:.2f} round trips; {row['overlaps']} overlaps, "
                            f"{row['falls']} terms that fall")
                yield row


# ---- uncontended, by mode ----

FIGURES = {"locks_per_s": lambda piece: piece["locks"] / piece["seconds"],
           "client_cpu_us_per_lock": lambda piece: piece["cpu_us"] / piece["locks"],
           "p50_us": lambda piece: piece["p50_us"], "p99_us": lambda piece: piece["p99_us"]}


def compared(name, pieces, base):
    """Pieces of one kind, each with that of the plain lock beside it."""
    pairs = [(one, other) for one, other in zip(pieces, base) if one["locks"] and other["locks"]]
    row = {"name": name, "locks": sum(one["locks"] for one, _ in pairs), "failed": sum(one["failed"] for one in pieces)}
    for figure, of in FIGURES.items():
        row[figure] = spread(of(one) for one, _ in pairs)
        row[f"{figure}_ratio"] = spread(ratio(of(one), of(other)) for one, other in pairs)
    return row


def tell_compared(setting, row):
    trips = f", {row['round_trips']['median']:.2f} round trips" if row.get("round_trips") else ""
    setting.say(f"{row['name']}: p50 {row['p50_us']['median']:,.0f} us{trips}; of plain: p50 "
                f"{row['p50_us_ratio']['median']:.2f}, locks/s {row['locks_per_s_ratio']['median']:.2f}, client CPU "
                f"{row['client_cpu_us_per_lock_ratio']['median']:.2f}")


def by_mode(setting, servers, in_flight, delay_ms):
    program = setting.programs.path("bench_modes")
    seconds = max(1, round(setting.seconds)) * (3 if delay_ms else 1)
    pings = trips_us(servers.nodes())
    result = setting.programs.run([program, in_flight, seconds, ",".join(servers.nodes())])
    trip_us = quantile(pings + trips_us(servers.nodes()), 0.5)
    where = f"{delay_ms} ms each way" if delay_ms else "loopback"
    for mode in MODES:
        row = compared(f"{where}, {in_flight} in flight, {mode}", result[mode], result["plain"])
        row.update(mode=mode, in_flight=in_flight, delay_ms=delay_ms, failed=sum(x["failed"] for x in result[mode]))
        if not row["locks"]:
            raise Failed(f"{row['name']}: no lock")
        if delay_ms:
            row["round_trips"] = spread(piece["p50_us"] / trip_us for piece in result[mode])
        tell_compared(setting, row)
        yield row


def by_threads(setting):
    """Locks of the sync API by so many threads, each beside as many under way by the asynchronous one."""
    program = setting.programs.path("bench_threads")
    for threads in (1, 8, 64):
        with setting.servers() as servers:
            result = setting.programs.run([program, threads, max(1, round(setting.seconds)), ",".join(servers.nodes())])
        row = compared(f"{threads} thread{'s' if threads > 1 else ''}", result["threads"], result["loop"])
        if not row["locks"]:
            raise Failed(f"{row['name']}: no lock")
        row.update(mode="threads", threads=threads, switches=spread(
            piece["switches"] / piece["locks"] for piece in result["threads"] if piece["locks"]))
        setting.say(f"{row['name']}: {row['locks_per_s']['median']:,.0f} locks/s, "
                    f"{row['switches']['median']:.2f} switches a lock; of as many under way in one loop: locks/s "
                    f"{row['locks_per_s_ratio']['median']:.2f}, client CPU "
                    f"{row['client_cpu_us_per_lock_ratio']['median']:.2f}")
        yield row


def before_and_now(setting, servers, in_flight):
    """Plain locks of another build, in turn with those of this one."""
    builds = {"before": setting.options.before, "now": setting.programs.build}
    pieces = {name: [] for name in builds}
    for _ in range(2 * setting.options.rounds):
        for name, build in builds.items():
            words = setting.programs.bench_words(servers.nodes(), in_flight, setting.seconds / 2, "--guard", "off")
            report = setting.programs.run([os.path.join(build, "bin", "quorlock"), *words[1:]])
            ours = [piece for piece in report["slices"] if piece["of"] == "quorlock"]
            locks = sum(piece["locks"] for piece in ours)
            pieces[name].append({"locks": locks, "failed": report["failed"],
                                 "seconds": locks / report["locks_per_s"] if locks else 0,
                                 "cpu_us": locks * report["client_cpu_us_per_lock"],
                                 "p50_us": report["latency_us"]["p50"], "p99_us": report["latency_us"]["p99"]})
    row = compared(f"loopback, {in_flight} in flight, plain, now against before", pieces["now"], pieces["before"])
    row.update(mode="before", in_flight=in_flight, delay_ms=0)
    tell_compared(setting, row)
    return row


def uncontended(setting):
    for delay_ms in DELAYS_MS:
        with setting.servers_behind(delay_ms) as servers:
            for in_flight in (1,) if delay_ms else (1, 16, 256):
                yield from by_mode(setting, servers, in_flight, delay_ms)
    if setting.options.before:
        with setting.servers() as servers:
            for in_flight in (1, 16, 256):
                yield before_and_now(setting, servers, in_flight)
