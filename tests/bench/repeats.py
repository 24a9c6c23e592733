# SPDX-License-Identifier: BSD-3-Clause
"""What several runs say of the figures that README shows: of each the median, the least and the most."""
import statistics

from goals import find

PEERS = (("redsync", "redsync"), ("node-redlock", "node-redlock"), ("Redisson", "redisson-redlock"))
# Name, workload, the row's values, the path to the figure in that row.
FIGURES = (
    ("1 under way: locks/s", 1, {"in_flight": 1}, "quorlock.locks_per_s"),
    ("1 under way: p50, us", 1, {"in_flight": 1}, "quorlock.p50_us"),
    ("1 under way: locks/s, of raw", 1, {"in_flight": 1}, "ratio_to_raw.throughput.median"),
    ("1 under way: p50, of raw", 1, {"in_flight": 1}, "ratio_to_raw.latency_p50.median"),
    ("256 under way: locks/s", 1, {"in_flight": 256}, "quorlock.locks_per_s"),
    ("256 under way: locks/s, of raw", 1, {"in_flight": 256}, "ratio_to_raw.throughput.median"),
    *((f"256 under way: locks/s, times those of {text}", 1, {"in_flight": 256}, f"peers.{name}.speedup.median")
      for text, name in PEERS),
    *((f"256 under way, {text}: locks/s, of raw", 2, {"in_flight": 256, "variant": variant},
       "ratio_to_raw.throughput.median")
      for text, variant in (("strict guard", "guard strict"), ("fencing", "fencing"),
                            ("Redisson's dialect", "redisson dialect"))),
    *((f"1 of 3 nodes frozen, {in_flight} under way: {text}, of healthy", 3, {"name": f"1 of 3 frozen, {in_flight} in flight"},
       f"{field}.ratio.median") for in_flight in (1, 256) for text, field in (("p50", "p50_us"), ("p99", "p99_us"))),
    ("1,000,000 held: client's share of a core", 5, {"locks": 1_000_000}, "client_cpu_share"),
    ("1,000,000 held: lost", 5, {"locks": 1_000_000}, "lost"),
    ("1,000,000 held: least validity, ms", 5, {"locks": 1_000_000}, "least_valid_ms"),
    ("the limit, 256 under way: locks/s, of raw", 13, {"in_flight": 256}, "of_raw.sent.median"),
    ("beside the limit, quorlock: locks/s, of raw", 13, {"in_flight": 256}, "of_raw.quorlock.median"))


def value_at(row, path):
    for name in path.split("."):
        row = row.get(name) if row else None
    return row


def figures(runs):
    """Of each figure that was measured: its values in all runs, with their median."""
    found = []
    for name, workload, wanted, path in FIGURES:
        values = [value_at(row, path) for results in runs for row in find(results, workload, **wanted)]
        values = sorted(value for value in values if value is not None)
        if values:
            found.append({"figure": name, "values": values, "median": statistics.median(values)})
    return found
