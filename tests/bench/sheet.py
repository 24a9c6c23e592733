# SPDX-License-Identifier: BSD-3-Clause
"""The report: one HTML file that needs nothing else."""
from html import escape

import modes_sheet
from plots import Dots, plot, shown, spread_text, table, title
from report import STYLE, plural  # of the harness

SERIES = {"quorlock": "k0", "raw": "k3", "sequential": "k2", "redsync": "k1", "node-redlock": "k5",
          "redisson-redlock": "k4", "redisson-multilock": "k6"}
MORE_STYLE = """
h2 { font-size: 21px; margin-top: 50px } h3 { font-size: 15px; margin: 22px 0 6px; font-weight: 640 }
.card { margin-top: 12px; overflow-x: auto } svg.wide { width: 100%; min-width: 760px; height: auto; display: block }
.dot { fill: var(--k) } .whisker { stroke: var(--k); stroke-width: 2; opacity: .55 }
.one { stroke: var(--ink); stroke-width: 1 } .k6 { --k: var(--part) }
.goal { fill: none; stroke: var(--good); stroke-width: 1.6 } .swatch { fill: var(--k) }
td.yes { color: var(--good); font-weight: 640 } td.no { color: var(--bad); font-weight: 640 }
.meta { margin-top: 10px; font-size: 13px; color: var(--soft) } pre { overflow-x: auto; font-size: 12.5px }
"""
RATIO_WORDS = {"throughput": "locks/s", "latency_p50": "p50", "latency_p99": "p99", "client_cpu": "client CPU",
               "server_cpu": "server CPU"}


# ---- figures ----

def side_cells(figures):
    names = ("locks_per_s", "p50_us", "p99_us", "p999_us", "client_cpu_us_per_lock", "server_cpu_us_per_lock",
             "server_commands_per_lock", "server_bytes_per_lock", "failed")
    return [shown(figures.get(name)) for name in names]


def absolute_table(rows):
    heads = ["", "locks/s", "p50 us", "p99 us", "p99.9 us", "client CPU us", "server CPU us", "commands", "bytes",
             "failed"]
    cells = []
    for row in rows:
        sides = {"quorlock": row["quorlock"], "raw": row["raw"], **row.get("peers", {})}
        cells += [[f"{row['name']}: {title(name)}", *side_cells(side)] for name, side in sides.items()]
    return table(heads, cells)


def ratio_table(rows):
    return table(["quorlock / raw", *RATIO_WORDS.values()],
                 [[row["name"], *(spread_text(row["ratio_to_raw"][name]) for name in RATIO_WORDS)] for row in rows])


def count_table(rows):
    names = ("allocations", "system_calls", "reads", "writes", "waits", "other_calls", "clock_readings", "requests",
             "bytes_out", "bytes_in")
    cells = [[f"{row['name']}: {title(side)}", *(shown(each[name]) for name in names)]
             for row in rows for side, each in row.get("counts", {}).items()]
    return table(["counted, a lock", *(name.replace("_", " ") for name in names)], cells) if cells else ""


def rates(rows, field="locks_per_s", unit="locks/s"):
    dots, names = Dots(unit), {}
    for row in rows:
        sides = {"quorlock": row["quorlock"], "raw": row["raw"], **row.get("peers", {})}
        points = [(name, SERIES[name], side.get(field)) for name, side in sides.items()]
        names.update((name, colour) for name, colour, value in points if value)
        dots.row(row["name"], points)
    return dots, names.items()


def ratios(rows, names=("throughput", "latency_p50", "client_cpu"), goals=None):
    dots = Dots("quorlock / raw", 1)
    for row in rows:
        for i, name in enumerate(names):
            goal = (goals or {}).get(row.get("in_flight")) if name == "throughput" else None
            dots.row(f"{row['name']}: {RATIO_WORDS[name]}", [(row["name"], f"k{i}", row["ratio_to_raw"][name])], goal)
    return dots


# ---- the sections ----

def cycles_section(rows):
    """Workloads 1, 2, 6 and 8: reports of quorlock bench."""
    rate, names = rates(rows)
    latency, _ = rates(rows, "p50_us", "p50 us")
    goals = {256: 2.0, 16: 1.5} if any("peers" in row for row in rows) else None
    return (plot("How many locks a second", rate, names)
            + plot("How long an acquire takes, half of them at most", latency, names)
            + plot("Against the raw baseline beside it (a green line is a goal)", ratios(rows, goals=goals))
            + ratio_table(rows) + absolute_table(rows) + count_table(rows))


def hurt_section(rows):
    dots = Dots("hurt / healthy", 1)
    cells = []
    for row in rows:
        for i, (name, text) in enumerate((("p50_us", "p50"), ("p99_us", "p99"), ("locks_per_s", "locks/s"))):
            dots.row(f"{row['name']}: {text}", [(row["name"], f"k{i}", row[name]["ratio"])],
                     1.2 if i < 2 and "frozen" in row["name"] else None)
        absolute = (row[name][kind] for name in ("p50_us", "p99_us") for kind in ("healthy", "hurt"))
        cells.append([row["name"], *(spread_text(row[name]["ratio"]) for name in ("locks_per_s", "p50_us", "p99_us")),
                      *(shown(each and each["median"]) for each in absolute),
                      f"{row['slices_healthy']}, {row['slices_hurt']}", shown(row["failed"])])
    heads = ["hurt / healthy", "locks/s", "p50", "p99", "p50 us healthy", "hurt", "p99 us healthy", "hurt", "slices",
             "failed"]
    return plot("Against healthy nodes in the same run", dots) + table(heads, cells)


def over_of(row):
    """Its hand-overs, or in one process alone what it kept."""
    return row["hand_over"] if row["hand_overs"] else row["kept_over"]


def contention_cells(row):
    over = over_of(row)
    figures = (row["grants_a_second"], row["raw_us"], over["median_us"], over["median_round_trips"], over["p99_us"],
               row["requests"], row["requests_a_waiter"])
    overtaken = row.get("overtaken")
    return [row["name"], *map(shown, figures), shown(overtaken if overtaken is None else 100 * overtaken),
            f"{row['turns_min']}..{row['turns_max']}",
            shown(row["longest_pause_ms"]), str(row["overlaps"])]


def contention_section(rows):
    parts = []
    for delay_ms in sorted({row["delay_ms"] for row in rows}):
        some = [row for row in rows if row["delay_ms"] == delay_ms]
        dots = Dots("round trips")
        for row in some:
            trips = {"median": over_of(row)["median_round_trips"], "low": over_of(row)["median_round_trips"],
                     "high": over_of(row)["p90_round_trips"]}
            dots.row(row["name"], [("median", "k5" if "redlock" in row["kind"] else "k0", trips)])
        heads = [f"{delay_ms} ms each way", "grants/s", "raw us", "hand-over us", "= round trips", "p99 us",
                 "requests a turn", "a waiter", "overtook %", "turns", "longest pause ms", "overlaps"]
        where = "over loopback" if delay_ms == 0 else f"{delay_ms} ms each way"
        parts.append(plot(f"From a release to the next grant, {where}: the median, and the line to the p90", dots)
                     + table(heads, map(contention_cells, some)))
    return "".join(parts)


def held_section(rows):
    share, memory = Dots("% of a core"), Dots("bytes a lock, beyond its key")
    for row in rows:
        share.row(row["name"], [("quorlock", "k0", 100 * row["client_cpu_share"])],
                  2 if row["locks"] == 100_000 else None)
        memory.row(row["name"], [("quorlock", "k0", row["rss_bytes_beyond_key"])],
                   300 if row["locks"] >= 100_000 else None)
    names = ("lease_ms", "take_s", "rss_bytes_per_lock", "key_bytes", "client_cpu_us_per_renewal",
             "raw_cpu_us_per_request", "ratio_to_raw", "server_cpu_us_per_renewal", "server_commands_per_renewal",
             "server_bytes_per_renewal", "least_valid_ms", "lost")
    return (plot("The client's CPU while they are held", share) + plot("Memory of the client", memory)
            + table(["", "% of a core", *(name.replace("_", " ") for name in names)],
                    [[row["name"], shown(100 * row["client_cpu_share"]), *(shown(row[name]) for name in names)]
                     for row in rows]))


def shell_section(rows):
    dots = Dots("us")
    for row in rows:
        dots.row(row["name"], [(row["name"], "k0" if "quorlock" in row["name"] else "k3", row["us"])])
    cells = [[row["name"], shown(row["us"]["median"]), shown(row["p99_us"]), spread_text(row["ratio"]),
              str(row["runs"])] for row in rows]
    return plot("From start to end", dots) + table(["", "median us", "p99 us", "of flock", "runs"], cells)


def limit_section(rows):
    dots, cells, sides = Dots("of raw", 1), [], {"quorlock": "k0", "raw": "k3", "sent": "k1", "bare": "k2"}
    for row in rows:
        dots.row(row["name"], [(side, colour, row["of_raw"][side]) for side, colour in sides.items() if side != "raw"])
        for side in sides:
            one = row["sides"][side]
            cells.append([f"{row['name']}: {side}", shown(one["locks_per_s"]), spread_text(row["of_raw"][side]),
                          shown(one["client_cpu_us_per_lock"]), shown(one["server_cpu_us_per_lock"])])
    return (plot("Locks a second, against the raw baseline beside them", dots, [item for item in sides.items()
                                                                             if item[0] != "raw"])
            + table(["", "locks/s", "of raw", "client CPU us", "server CPU us"], cells))


SECTIONS = {3: hurt_section, 4: contention_section, 5: held_section, 7: shell_section, 13: limit_section, **modes_sheet.SECTIONS}


def section(key, workload):
    rows = workload["rows"]
    drawn = SECTIONS.get(int(key), cycles_section)(rows) if rows else ""
    failed = f'<p class="soft">Not finished: {escape(workload["failed"])}</p>' if workload["failed"] else ""
    return (f'<section><h2>{key}. {escape(workload["title"])}</h2><p class="soft">{escape(workload["text"])}</p>'
            f"{failed}{drawn}</section>")


def goals_table(goals):
    rows = ""
    for goal in (goal for goal in goals if goal["met"] is not None):
        unit = f" {goal['unit']}" if goal["unit"] else ""
        verdict = '<td class="yes">met</td>' if goal["met"] else '<td class="no">not met</td>'
        rows += (f'<tr><td>{escape(goal["goal"])}</td>'
                 f'<td class="n">{"at least" if goal["at_least"] else "at most"} {goal["limit"]:g}{escape(unit)}</td>'
                 f'<td class="n">{shown(goal["measured"])}{escape(unit)}</td>{verdict}</tr>')
    if not rows:
        return ""
    return ('<section><h2>Goals</h2><p class="soft">Of what was measured this time, the worst of several values.</p>'
            '<div class="card"><table><tr><th></th><th class="n">wanted</th><th class="n">measured</th><th></th></tr>'
            f"{rows}</table></div></section>")


def absent(results):
    items = "".join(f"<li>{escape(title(name))}: {escape(why)}</li>" for name, why in results["absent"].items())
    return f'<section><h2>Left out</h2><ul class="soft">{items}</ul></section>' if items else ""


def render(results):
    machine = results["machine"]
    meta = " · ".join([results["made"], results["quorlock"], f"Redis {machine['server']}",
                       plural(machine["cores"], "core"), machine["processor"], machine["system"],
                       *results["versions"].values()])
    sections = "".join(section(key, workload) for key, workload in results["workloads"].items())
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>quorlock: what a lock costs</title><style>{STYLE}{MORE_STYLE}</style></head>
<body><main>
<h1>What a lock costs</h1>
<p>Real servers on this machine, and everything that is compared runs in turn with what it is compared to, in short
pieces of one run. <b>Raw</b> is the baseline: SET NX PX and a compare-and-delete sent to all nodes at once over
pipelined connections of a plain client library, without a quorum, without renewal. A dot is a median, the line through
it spans the middle half of all pieces. Figures of another machine, or of another run, compare badly; ratios do
better.</p>
<p class="meta">{escape(meta)}</p>
<pre class="soft">{escape(results["command"])}</pre>
{goals_table(results["goals"])}
{sections}
{absent(results)}
<footer>Drawn by scripts/bench. All figures are in the JSON file beside this one.</footer>
</main></body></html>
"""
