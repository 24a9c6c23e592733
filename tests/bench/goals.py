# SPDX-License-Identifier: BSD-3-Clause
"""What must hold on a machine with two cores: each goal beside what was measured."""


def find(results, number, **wanted):
    """The rows of a workload with these values."""
    rows = results["workloads"].get(str(number), {}).get("rows", [])
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def goal(text, limit, values, at_least=False, unit=""):
    """One line of the table; without a value nothing was measured. Of several values the worst counts."""
    values = [value for value in values if value is not None]
    measured = (min(values) if at_least else max(values)) if values else None
    met = None if measured is None else measured >= limit if at_least else measured <= limit
    return {"goal": text, "limit": limit, "at_least": at_least, "unit": unit, "measured": measured, "met": met}


def median_of(value):
    return value and value["median"]


def uncontended(results):
    def ratio(in_flight, name):
        return [median_of(row["ratio_to_raw"][name]) for row in find(results, 1, in_flight=in_flight)]

    def peer(*names):
        return [median_of(row["peers"][name]["speedup"]) for row in find(results, 1, in_flight=256) for name in names
                if name in row["peers"]]

    many = find(results, 1, in_flight=256)
    return [
        goal("256 in flight: locks/s, of raw", 2.0, ratio(256, "throughput"), True),
        goal("16 in flight: locks/s, of raw", 1.5, ratio(16, "throughput"), True),
        goal("256 in flight: client CPU a lock", 1.2,
             [row["quorlock"]["client_cpu_us_per_lock"] for row in many], unit="us"),
        goal("256 in flight: server CPU a lock and node", 1.7,
             [row["quorlock"]["server_cpu_us_per_lock"] / 3 for row in many], unit="us"),
        goal("256 in flight: locks/s, of node-redlock", 8, peer("node-redlock"), True),
        goal("256 in flight: locks/s, of redsync and Redisson", 4,
             peer("redsync", "redisson-redlock", "redisson-multilock"), True)]


def others(results):
    frozen = [row for row in find(results, 3) if "frozen" in row["name"]]
    far = [row["hand_over"]["median_round_trips"] for row in find(results, 4, delay_ms=5, kind="quorlock")
           if row["hand_overs"] and row["processes"] <= 30]
    most = [row for row in find(results, 5) if row["locks"] >= 1_000_000]
    return [
        goal("a node frozen: p50, of healthy", 1.2, [median_of(row["p50_us"]["ratio"]) for row in frozen]),
        goal("a node frozen: p99, of healthy", 1.2, [median_of(row["p99_us"]["ratio"]) for row in frozen]),
        goal("hand-over at 5 ms each way, in network round trips", 2.5, far),
        goal("memory a held lock, beyond its key", 700,
             [row["rss_bytes_beyond_key"] for row in find(results, 5) if row["locks"] >= 100_000], unit="B"),
        goal("100,000 held at 30 s: client CPU", 2,
             [100 * row["client_cpu_share"] for row in find(results, 5, locks=100_000, lease_ms=30_000)],
             unit="% of a core"),
        goal("1,000,000 held: locks lost", 0, [row["lost"] for row in most]),
        # Renewed at every third: what is left never falls far below two thirds.
        goal("1,000,000 held: least validity, of the lease", 0.6,
             [row["least_valid_ms"] / row["lease_ms"] for row in most], True)]


def modes(results):
    elected = [row["hand_over"]["median_round_trips"] for row in find(results, 11, delay_ms=5) if row["hand_overs"]]
    alone = [median_of(row["round_trips"]) for row in find(results, 12, delay_ms=5, in_flight=1) if row["mode"] != "plain"]
    before = [median_of(row["locks_per_s_ratio"]) for row in find(results, 12, mode="before")]
    free = [row["direct"]["p99_round_trips"] for row in find(results, 9, delay_ms=5, load=50) if row["directs"]]
    overlaps = [row["overlaps"] for number in (9, 10, 11) for row in find(results, number)]
    return [
        goal("from resign to elected at 5 ms each way, in network round trips", 2.5, elected),
        goal("an uncontended permit or reader's lock at 5 ms each way, in network round trips", 1.2, alone),
        goal("a permit that is free, half of them wanted, at 5 ms each way: p99, in network round trips", 3, free),
        goal("permits, readers and leaders too many at once", 0, overlaps),
        goal("plain locks/s, of the build before", 0.95, before, True)]


def crowds(results):
    def worst(name):
        return [row["now"][name] for row in find(results, 16)]

    return [
        goal("a crowd that waits: CPU of a node at rest", 2, worst("cpu_percent"), unit="% of a core"),
        goal("a crowd that waits: requests a release, at a node", 60, worst("requests_a_grant")),
        goal("a crowd that waits: CPU of a node a release", 1, worst("cpu_ms_a_grant"), unit="ms"),
        goal("a crowd that waits: how late it makes a renewal of the holder's other lock", 1, worst("late_ms"),
             unit="ms")]


def judge(results):
    return uncontended(results) + others(results) + modes(results) + crowds(results)
