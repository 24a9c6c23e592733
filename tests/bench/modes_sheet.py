# SPDX-License-Identifier: BSD-3-Clause
"""The report's sections of permits, readers and writers, elections, and crowds."""
from plots import Dots, plot, shown, spread_text, table

TRIPS = "round trips"


def span(figures, low="median_round_trips", high="p99_round_trips"):
    """A dot at the median, and a line to the p99."""
    return {"median": figures[low], "low": figures[low], "high": max(figures[low], figures[high])}


def name_of(row):
    return f"{row['where']}, {row['name']}"


def trips_cells(figures):
    return [shown(figures[name]) for name in ("median_us", "median_round_trips", "p99_round_trips")]


def permits_section(rows):
    dots = Dots(TRIPS, 1)
    for row in rows:
        points = [("hand-over", "k0", span(row["hand_over"]))] if row["hand_overs"] else []
        points += [("direct", "k3", span(row["direct"]))] if row["directs"] else []
        dots.row(name_of(row), points)
    heads = ["", "grants/s", "held %", "free and wanted %", "hand-overs", "us", "= round trips", "p99", "direct", "us",
             "= round trips", "p99", "overlaps"]
    cells = [[name_of(row), shown(row["grants_a_second"]), shown(100 * row["held_share"]),
              shown(100 * row["idle_share"]), str(row["hand_overs"]), *trips_cells(row["hand_over"]),
              str(row["directs"]), *trips_cells(row["direct"]), str(row["overlaps"])] for row in rows]
    return (plot("From a slot that became free, or the call of acquire, to the grant: the median, and the line to the "
                 "p99", dots, (("hand-over", "k0"), ("direct", "k3"))) + table(heads, cells))


def readers_section(rows):
    rate, waits = Dots("grants/s"), Dots(TRIPS)
    for row in rows:
        rate.row(name_of(row), [("grants", "k0", row["grants_a_second"])])
        waits.row(name_of(row), [(name, colour, span(row[name])) for name, colour in
                                 (("readers", "k0"), ("writers", "k1")) if row[name]["grants"]])
    heads = ["", "grants/s", "of all exclusive", "readers at once", "readers", "wait us", "= round trips", "p99",
             "longest ms", "writers", "wait us", "= round trips", "p99", "longest ms", "overlaps"]
    cells = [[name_of(row), shown(row["grants_a_second"]), shown(row["ratio"]), str(row["most_readers"]),
              *(cell for name in ("readers", "writers") for cell in (
                  str(row[name]["grants"]), *trips_cells(row[name]), shown(row[name]["longest_us"] / 1000))),
              str(row["overlaps"])] for row in rows]
    return (plot("Grants a second", rate)
            + plot("From the call of acquire to the grant: the median, and the line to the p99", waits,
                   (("readers", "k0"), ("writers", "k1"))) + table(heads, cells))


def elections_section(rows):
    dots = Dots(TRIPS)
    for row in rows:
        dots.row(name_of(row), [("elected", "k0", span(row["hand_over"]))], 2.5 if row["delay_ms"] else None)
    heads = ["", "elected", "hand-overs", "us", "= round trips", "p99", "kept", "terms observed", "after us",
             "= round trips", "p99", "overlaps", "terms that fall"]
    cells = [[name_of(row), str(row["grants"]), str(row["hand_overs"]), *trips_cells(row["hand_over"]),
              str(row["kept"]), str(row["observed"]), *trips_cells(row["observed_after"]), str(row["overlaps"]),
              str(row["falls"])] for row in rows]
    return (plot("From resign to elected: the median, and the line to the p99 (a green line is a goal)", dots)
            + table(heads, cells))


def compared_section(rows, base, title, column, name_of_column):
    """Rows of modes.compared()."""
    compared = (("p50_us", "p50"), ("locks_per_s", "locks/s"), ("client_cpu_us_per_lock", "client CPU"))
    dots = Dots(f"of {base}", 1)
    for row in rows:
        if row["mode"] != "plain":
            for i, (name, text) in enumerate(compared):
                dots.row(f"{row['name']}: {text}", [(row["name"], f"k{i}", row[f"{name}_ratio"])])
    heads = ["", "locks/s", "p50 us", column, "p99 us", "client CPU us", f"of {base}: p50", "locks/s", "client CPU",
             "failed"]
    cells = [[row["name"], *(shown(row[name] and row[name]["median"]) for name in ("locks_per_s", "p50_us")),
              shown(row.get(name_of_column) and row[name_of_column]["median"]),
              *(shown(row[name] and row[name]["median"]) for name in ("p99_us", "client_cpu_us_per_lock")),
              *(spread_text(row[f"{name}_ratio"]) for name, _ in compared), str(row["failed"])] for row in rows]
    return plot(title, dots) + table(heads, cells)


def uncontended_section(rows):
    return compared_section(rows, "plain", "Against plain locks beside them in the same run", "= round trips",
                            "round_trips")


def threads_section(rows):
    return compared_section(rows, "one loop", "Against as many locks under way in one loop, in the same run",
                            "switches", "switches")


def python_section(rows):
    return compared_section(rows, "the other", "Against the other one, in the same run", "", "")


def crowds_section(rows):
    heads = ["", "CPU at rest, %", "requests/s", "CPU a release, ms", "requests a release", "longest gap, ms",
             "a renewal late by, ms"]
    names = ("cpu_percent", "requests_a_second", "cpu_ms_a_grant", "requests_a_grant", "gap_ms", "late_ms")
    return table(heads, [[f"{row['name']}, {side}", *(shown(row[side][name]) for name in names)]
                         for row in rows for side in ("now", "before") if side in row])


SECTIONS = {9: permits_section, 10: readers_section, 11: elections_section, 12: uncontended_section,
            14: threads_section, 15: python_section, 16: crowds_section}
