# SPDX-License-Identifier: BSD-3-Clause
"""The page of a comparison: one HTML file that needs nothing else."""
import re
from html import escape

import plan
from drawing import box, patterns
from judge import KINDS
from lanes import faults_of, paint, targets
from report import document, legend, plural, story_lines
from strips import BEFORE_US, Moment, Strips, bins

LISTED_MAX = 8
LINE = re.compile(r"(?<= s), line \d+(?=:)")

MORE_STYLE = """
main { max-width: 1240px } .kicker { color: var(--soft); font-size: 13px; letter-spacing: .02em; margin: 0 0 8px }
h1 { font-size: 34px } .lead { font-size: 17px; line-height: 1.5; max-width: 72ch }
.meta { margin-top: 12px; font-size: 13px; color: var(--soft) }
h2 { font-size: 21px; margin-top: 54px; letter-spacing: -.01em }
h3 { font-size: 16px; margin: 30px 0 4px; font-weight: 650 }
.card { margin-top: 14px; overflow-x: auto } svg.wide { width: 100%; min-width: 860px; height: auto; display: block }
.score { padding: 4px 20px 8px } .score table { font-size: 15px; min-width: 900px }
.score th { vertical-align: bottom; padding-top: 10px } .score tr:last-child td { border-bottom: 0 }
.score td { padding: 13px 14px 12px 0; vertical-align: middle }
.score th.group { border-bottom: 0; padding-bottom: 0; color: var(--ink); font-weight: 600; font-size: 13px }
.score th.group.n { text-align: center } .score .edge { border-left: 1px solid var(--hair); padding-left: 18px }
.score .who b { font-size: 16px; font-weight: 640; display: block; line-height: 1.25 }
.score .who span, .score small { color: var(--soft); font-size: 12.5px } .score small { display: block }
.safe, .hurt { font-size: 19px; font-weight: 640 } .safe { color: var(--good) } .hurt { color: var(--bad) }
.absent td { color: var(--soft) } .rate { display: block; height: 6px; border-radius: 3px; background: var(--k0) }
.rate { opacity: .75; margin-top: 5px; min-width: 2px }
.mark.staled { fill: var(--warn) } text.alarm { fill: var(--bad); font-weight: 600 }
.waiting { fill: var(--k); opacity: var(--wait) } .mstopped { fill: var(--hatch); opacity: .85 }
.mdead { fill: var(--paper); stroke: var(--still); stroke-width: .6; stroke-dasharray: 2 2 }
.moment .paused { fill: var(--hatch) } .moment .violation { opacity: .13 }
.broke { border-top: 3px solid var(--bad) } .broke h3 { margin: 2px 0 6px } .broke p { max-width: 96ch }
.broke ul { margin: 6px 0; padding-left: 20px; font-size: 13.5px }
.faults td { font-size: 13.5px; padding: 3px 14px 3px 0 }
pre { background: var(--paper); border: 1px solid var(--hair); border-radius: 8px; padding: 10px 14px; margin: 8px 0;
  font: 12.5px/1.5 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
.broke details, .round details { border: 0; padding: 0; margin: 6px 0 0; background: none }
.broke summary, .round summary { cursor: pointer; color: var(--soft); font-size: 13.5px; margin-top: 8px }
dl { display: grid; grid-template-columns: minmax(130px, 190px) 1fr; gap: 0 24px; margin: 8px 0 0; font-size: 14.5px }
dt { font-weight: 600 } dd { max-width: 92ch }
dt, dd { padding: 9px 0; border-top: 1px solid var(--hair); margin: 0 }
@media (max-width: 700px) { h1 { font-size: 27px } dl { grid-template-columns: 1fr }
  dd { border-top: 0; padding-top: 0 } }
"""

MEANINGS = (
    ("Overlaps", "How often an owner was granted a lock while another still had reason to trust its own, in true time: all "
     "processes run on one machine with one clock. The window of an owner begins when the grant is reported, and ends "
     "when the owner releases the lock, is notified of its loss, or its validity ends. So a lock that warns its owner "
     "in time has no overlap, whatever happens to its nodes."),
    ("Stale writes", "Writes that reached the protected register, and were accepted, after an owner with a newer grant "
     "had been there. A fencing token prevents them: the register refuses a token older than the newest that it has "
     "seen. Without tokens it must accept every write."),
    ("Never notified", "Owners whose lock ended, or went to another, while they held it, without a notice from the lock: "
     "they noticed it by their own clock, or not at all."),
    ("Grants", "How often any process was granted any lock. A lock that waits until it is safe has fewer."),
    ("Hand-over", "The time from a release to the next grant of the key, if another process was waiting: the median, and "
     "the time that 99 of 100 do not exceed."),
    ("After healing", "The time from the end of all faults until each key was granted again."),
)
COUNT_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NODE_SIGNS = (("down", "server down"), ("quarantine", "votes ignored by quorlock"), ("cut", "cut, replies lost"),
              ("slow", "slow, lossy"), ("part", "cut off from some"), ("refuse", "refuses writes"),
              ("clock", "clock moves"))
ROUND_SIGNS = [(box(0, 0, 26, 12, names), text) for names, text in NODE_SIGNS] + [
    (box(0, 2, 26, 10, "area"), "grants a second"),
    ('<path class="violation-flag" d="M9 2h8l-4 7z"/>', "two owners at once"),
    ('<circle class="mark staled" cx="13" cy="6" r="3.4"/>', "stale write accepted")]
MOMENT_SIGNS = [
    (box(0, 1, 26, 10, "hold k0"), "has the lock"), (box(0, 4, 26, 4, "waiting k0"), "waits for it"),
    (box(0.5, 1, 25, 10, "promise k0"), "promised to a killed process"),
    (f'{patterns("l")}<rect width="26" height="12" fill="url(#lhatch)"/>', "stopped"),
    (box(0.5, 0.5, 25, 11, "mdead"), "killed"), (box(0, 4, 26, 3, "part"), "cut off from some"),
    (box(0, 0, 26, 12, "violation"), "violation")]


def duration(ms):
    if ms is None:
        return "-"
    return f"{ms / 1000:,.2f} s" if ms >= 1000 else f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.1f} ms"


# ---- the figures of a round ----

def count_cell(value, note=""):
    """A number that should be 0."""
    small = f"<small>{escape(note)}</small>" if note else ""
    return f'<td class="n"><span class="{"hurt" if value else "safe"}">{value:,}</span>{small}</td>'


def who(client):
    program = client.get("program", "")
    version = escape(program) if program != client["title"] else ""
    return f'<td class="who"><b>{escape(client["title"])}</b><span>{version}</span></td>'


def score_row(client, run, most):
    if run is None or run["failed"]:
        why = run["failed"] if run else client["missing"]
        return f'<tr class="absent">{who(client)}<td colspan="7" class="edge">left out: {escape(why)}</td></tr>'
    figures = run["figures"]
    healing, handover, grants = figures["after_healing_ms"], figures["handover_ms"], figures["grants"]
    refused, notices = figures["stale_refused"], figures["told_lost"]
    cells = [
        count_cell(figures["overlaps"], duration(figures["overlap_ms"]) if figures["overlaps"] else ""),
        count_cell(figures["never_told"], f"notified: {notices:,}" if notices else ""),
        count_cell(figures["stale_writes"], f"refused: {refused:,}" if refused else ""),
        f'<td class="edge">{grants:,}<i class="rate" style="width:{100 * grants / most:.0f}%"></i></td>',
        f'<td class="n">{duration(handover["p50"])}</td><td class="n">{duration(handover["p99"])}</td>',
        f'<td class="n">{duration(healing) if healing is not None else "<span class=hurt>never</span>"}</td>']
    return f"<tr>{who(client)}{''.join(cells)}</tr>"


def score(index, kind):
    runs = [(client, client["runs"].get(kind)) for client in index["clients"]]
    most = max((run["figures"]["grants"] for _, run in runs if run and not run["failed"]), default=1) or 1
    rows = "".join(score_row(client, run, most) for client, run in runs)
    return ('<div class="card score"><table><tr><th class="group"></th><th class="group n" colspan="3">safety</th>'
            '<th class="group edge" colspan="4">what it gives</th></tr><tr><th></th><th class="n">overlaps</th>'
            '<th class="n">never notified</th><th class="n">stale writes accepted</th><th class="edge">grants</th>'
            '<th class="n">hand-over, median</th><th class="n">hand-over, p99</th><th class="n">after healing</th></tr>'
            f'{rows}</table></div>')


def strips(index, judged, kind):
    """One time axis for the plan and all clients."""
    drawn = [(client, *judged[client["name"], kind]) for client in index["clients"]
             if (client["name"], kind) in judged]
    if not drawn:
        return ""
    picture = Strips(index["seconds"])
    picture.plan(paint(*drawn[0][1:]))
    high = max(max(bins(verdict, index["seconds"])) for _, _, verdict in drawn)
    for client, _, verdict in drawn:
        picture.client(client["title"], verdict, high)
    return f'<div class="card">{picture.draw("s" + kind)}</div>{legend(ROUND_SIGNS)}'


def round_section(index, judged, kind):
    about = index["rounds"][kind]
    planned = escape("\n".join(about["plan"]))
    return (f'<section class="round"><h2>{escape(about["title"])}</h2><p class="soft">{escape(about["text"])}</p>'
            f'{score(index, kind)}{strips(index, judged, kind)}<details><summary>The plan: '
            f'{plural(len(about["plan"]), "fault")}, the same for every client</summary><pre>{planned}</pre></details>'
            "</section>")


# ---- violations ----

def faults_around(events, violation, start_us):
    """Table rows of the faults that were active before the violation, or had just ended."""
    found = [(first, last.t_us if last else violation.t_us + BEFORE_US) for first, last in faults_of(events)]
    near = [fault for fault in found if fault[0].t_us <= violation.t_us and fault[1] > violation.t_us - BEFORE_US]
    rows = "".join(fault_row(first, to_us, start_us) for first, to_us in sorted(near, key=lambda fault: fault[0].t_us))
    return f'<table class="faults">{rows}</table>' if rows else ""


def fault_row(first, to_us, start_us):
    kind = first.fields.get("kind", "?")
    text = plan.KINDS[kind].text if kind in plan.KINDS else ""
    when = f"{(first.t_us - start_us) / 1e6:.3f} to {(to_us - start_us) / 1e6:.3f} s"
    return (f'<tr><td>{when}</td><td>{escape(kind)}</td><td>{escape(targets(first))}</td>'
            f'<td class="soft">{escape(text)}</td></tr>')


def first_broken(verdict):
    """The violation to draw: the first overlap, else the first stale write, else None."""
    for kind in ("overlap", "stale-write"):
        for violation in verdict.violations:
            if violation.kind == kind:
                return violation
    return None


def others_broken(others, title):
    if not others:
        return ""
    listed = "".join(f"<li>{escape(KINDS[violation.kind])}: {escape(LINE.sub('', violation.text))}</li>"
                     for violation in others[:LISTED_MAX])
    more = f"<li class=soft>and {len(others) - LISTED_MAX:,} more</li>" if len(others) > LISTED_MAX else ""
    return f"<details><summary>{title}: {len(others):,}</summary><ul>{listed}{more}</ul></details>"


def broken(client, run, about, judgement, name):
    """The first overlap of a run, the faults around it, and how to see it again."""
    events, verdict = judgement
    first = first_broken(verdict)
    others = [violation for violation in verdict.violations if violation is not first and not violation.tolerated]
    title, round_title = escape(client["title"]), escape(about["title"].lower())
    parts = [f'<div class="card broke"><h3>{title} <span class="soft">{round_title}</span></h3>']
    if first:
        what = "two owners" if first.kind == "overlap" else "stale write"
        told = story_lines(events, verdict) or f"<p>{escape(LINE.sub('', first.text))}.</p>"
        parts += [told, Moment(paint(events, verdict), first).draw(name, what),
                  faults_around(events, first, verdict.start_us)]
    parts += [others_broken(others, "Other violations" if first else "Violations"),
              "<p class=soft>The same plan again, with a drawing of the whole run:</p>",
              f"<pre>{escape(run['replay'])} --report run.html</pre></div>"]
    return "".join(parts)


def all_broken(index, judged):
    found = []
    for kind, about in index["rounds"].items():
        for client in index["clients"]:
            judgement = judged.get((client["name"], kind))
            if judgement and not judgement[1].sound:
                found.append(broken(client, client["runs"][kind], about, judgement, f"m{len(found)}"))
    if not found:
        return ""
    return ('<section><h2>How they broke</h2><p class="soft">For each lock that broke: the first moment at which two '
            'owners had it, or else the first stale write that was accepted, with the faults around it. The same '
            'seed repeats the faults; which process a fault meets depends on the machine.</p>'
            f'{legend(MOMENT_SIGNS)}{"".join(found)}</section>')


# ---- the page ----

def how(client):
    command = f"<br><code>{escape(client['command'])}</code>" if client["command"] else ""
    program = f"<b>{escape(client['program'])}</b>. " if client.get("program") else ""
    absent = f"Left out: {escape(client['missing'])}. " if client["missing"] else ""
    return absent + program + escape(client["how"]) + command


def configured(index):
    items = "".join(f"<dt>{escape(client['title'])}</dt><dd>{how(client)}</dd>" for client in index["clients"])
    return ('<section><h2>How each is configured</h2><p class="soft">With the safest settings of its own documentation, '
            f'and its own package from its own registry.</p><dl>{items}</dl></section>')


def meanings():
    items = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in MEANINGS)
    return f"<section><h2>What the figures mean</h2><dl>{items}</dl></section>"


def title_of(judged):
    count = len({name for name, _ in judged})
    word = COUNT_WORDS[count] if count < len(COUNT_WORDS) else str(count)
    return f"One plan of faults, {word} lock{'' if count == 1 else 's'}"


def render(index, judged):
    """The page of the result of compare.load."""
    machine, title = index["machine"], title_of(judged)
    rounds = "".join(round_section(index, judged, kind) for kind in index["rounds"])
    meta = " · ".join(filter(None, (index["made"], machine["quorlock"], machine["server"],
                                    plural(machine["cores"], "core"), machine["processor"], machine["system"])))
    return document(title, f"""<main>
<p class="kicker">quorlock: cluster/chaos compare</p>
<h1>{escape(title)}</h1>
<p class="lead">Each lock is used by {index["processes"]} processes that contend for {plural(index["keys"], "key")} on
{plural(index["nodes"], "Redis server")}, for {index["seconds"]} s a round, while servers, network and processes fail.
Every lock meets the same faults at the same moments; they follow from seed {index["seed"]}. Afterwards one program judges
all histories, without knowing which lock wrote them.</p>
<p class="meta">{escape(meta)}</p>
{rounds}
{all_broken(index, judged)}
{configured(index)}
{meanings()}
<footer>Drawn by cluster/chaos compare from the histories that the clients wrote; cluster/check judges the same files,
and any program that follows quorlock-chaos(7) can take part.</footer>
</main>""", MORE_STYLE)
