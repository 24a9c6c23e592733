# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: one HTML file without other files."""
from html import escape

import plan
import story
from drawing import COLOURS, KEY_COLOURS, SHAPES, Detail, Overview, box
from judge import KINDS, MODES, milliseconds, percentile
from lanes import paint
from verdict import BESIDE, WRITES, plural

LISTED_MAX = 60

STYLE = COLOURS + """
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums }
main { max-width: 1260px; margin: 0 auto; padding: 40px 28px 64px }
header { display: flex; gap: 20px; align-items: flex-start; margin-bottom: 26px }
.seal { flex: none; width: 52px; height: 52px; border-radius: 50%; display: grid; place-items: center; color: #fff; font-size: 26px }
.good .seal { background: var(--good) } .bad .seal { background: var(--bad) } .mild .seal { background: var(--warn) }
h1 { font-size: 30px; line-height: 1.15; letter-spacing: -.015em; margin: 0 0 6px; font-weight: 650 }
h2 { font-size: 17px; margin: 38px 0 4px; font-weight: 650 }
p { margin: 0; max-width: 78ch } .soft { color: var(--soft) } h2 + p { margin-bottom: 12px }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(172px, 1fr)); gap: 1px; background: var(--hair);
  border: 1px solid var(--hair); border-radius: 10px; overflow: hidden }
.figure { background: var(--card); padding: 14px 18px 13px } .figure b { display: block; font-size: 27px; line-height: 1.2; font-weight: 620;
  letter-spacing: -.01em } .figure span { color: var(--soft); font-size: 13px; line-height: 1.35; display: block }
.figure.alarm b { color: var(--bad) } .figure.fine b { color: var(--good) }
.card { background: var(--card); border: 1px solid var(--hair); border-radius: 10px; padding: 14px 16px }
#overview { width: 100%; min-width: 620px; height: auto; display: block; cursor: pointer } .whole { overflow-x: auto }
.strip { display: flex; padding: 10px 16px 6px 0 } .strip > svg { flex: none } .scroll { overflow-x: auto; flex: 1; scrollbar-width: thin }
.scroll svg { display: block }
.legend { display: flex; flex-wrap: wrap; gap: 6px 20px; margin: 12px 2px 0; font-size: 13px; color: var(--soft) }
.legend span { display: inline-flex; align-items: center; gap: 7px; white-space: nowrap } .legend svg { flex: none }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr)); gap: 0 36px; align-items: start }
table { border-collapse: collapse; width: 100%; font-size: 14px } td, th { padding: 5px 12px 5px 0; text-align: left; border-bottom: 1px solid var(--hair);
  font-weight: 400; vertical-align: top } th { color: var(--soft); font-size: 12.5px } .n { text-align: right; white-space: nowrap } td.kind { white-space: nowrap } td.bar { width: 30% }
td.bar i { display: block; height: 8px; margin-top: 7px; border-radius: 2px; background: var(--cut); min-width: 2px }
details { border-left: 3px solid var(--bad); padding: 3px 0 3px 14px; margin-bottom: 8px } details.mild { border-color: var(--warn) }
summary { cursor: pointer } details ol { max-height: 190px; overflow-y: auto; margin: 4px 0 2px; padding: 0; list-style: none; font-size: 13.5px }
details li { padding: 1px 0 } details a { color: inherit; text-decoration-color: var(--hair) } details a:hover { text-decoration-color: var(--ink) }
.story { margin: 4px 0 0; padding: 0; list-style: none } .story li { display: flex; gap: 14px; padding: 2px 0 }
.story b { flex: none; width: 68px; text-align: right; font-weight: 600 }
pre { background: var(--card); border: 1px solid var(--hair); border-radius: 8px; padding: 10px 14px; margin: 8px 0 0;
  font: 12.5px/1.5 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
footer { margin-top: 40px; font-size: 13px; color: var(--soft) } code { font: 12.5px ui-monospace, Menlo, Consolas, monospace }
@media (max-width: 700px) { main { padding: 24px 16px 48px } header { gap: 14px } .seal { width: 40px; height: 40px; font-size: 20px }
  h1 { font-size: 25px } .columns td.bar, .columns th:empty { display: none } td.kind { white-space: normal } }
@media print { .scroll { overflow: hidden } }
""" + SHAPES

SCRIPT = """
(function () {
  var scroll = document.querySelector('.scroll'), view = document.getElementById('view'), over = document.getElementById('overview');
  var perSecond = +scroll.dataset.scale, label = +scroll.dataset.label, total = +scroll.dataset.total, wide = over.viewBox.baseVal.width - label;
  function show() {
    var from = scroll.scrollLeft / perSecond, span = scroll.clientWidth / perSecond;
    view.setAttribute('x', label + from / total * wide);
    view.setAttribute('width', Math.max(3, Math.min(span, total - from) / total * wide));
  }
  function go(second) { scroll.scrollLeft = second * perSecond - scroll.clientWidth / 2; }
  function at(event) {
    var place = over.getBoundingClientRect();
    go(((event.clientX - place.left) / place.width * (wide + label) - label) / wide * total);
  }
  over.addEventListener('pointerdown', function (event) { at(event); over.onpointermove = at; over.setPointerCapture(event.pointerId); });
  over.addEventListener('pointerup', function () { over.onpointermove = null; });
  scroll.addEventListener('scroll', show);
  window.addEventListener('resize', show);
  document.addEventListener('click', function (event) {
    var link = event.target.closest('[data-second]');
    if (link) { event.preventDefault(); go(+link.dataset.second); document.getElementById('detail').scrollIntoView({block: 'center'}); }
  });
  var first = document.querySelector('[data-second]');
  if (first) go(+first.dataset.second);
  show();
})();
"""


# Texts for each promise: broken, tolerated outside the claim, kept, and what it means.
THINGS = {
    "lock": ("The lock was", "Beyond its assumptions, the lock overlapped", "The lock held", "No two owners at once"),
    "permits": ("The permits were", "Beyond their assumptions, the permits overlapped", "The permits held",
                "Never more holders than permits, never two of one slot"),
    "shared": ("The shared lock was", "Beyond its assumptions, the shared lock overlapped", "The shared lock held",
               "No writer beside a reader or another writer"),
    "election": ("The elections were", "Beyond their assumptions, there were two leaders", "The elections held",
                 "No two leaders at once, terms rose"),
    "mixed": ("The locks were", "Beyond their assumptions, the locks overlapped", "The locks held",
              "No two that exclude each other held at once"),
}


def thing(verdict):
    modes = set(verdict.modes) - {"lock"}
    if not modes:
        return "lock"
    # A writer of a shared key has the mode lock.
    return next(iter(modes)) if modes == {"shared"} or set(verdict.modes) == modes and len(modes) == 1 else "mixed"


def headline(verdict):
    """(class, sign, sentence, explanation)"""
    failed, tolerated = verdict.kinds(False), verdict.kinds(True)
    if verdict.counts.get("refusals") and not verdict.counts.get("grants"):
        return "mild", "!", "No client was ever granted the lock", "So nothing was tested; the clients were refused " + \
            f"{plural(verdict.counts['refusals'], 'time')}. Does the client's lock work on servers of cluster/up, without any fault?"
    if failed:
        broke, beside = verdict.failed()
        times = sum(count for kind, count in failed.items() if kind not in BESIDE)
        title = f"{THINGS[thing(verdict)][0]} broken {plural(times, 'time')}" if broke else \
            f"{THINGS[thing(verdict)][3]}, but {' and '.join(beside)}"
        return "bad", "✕", title, f"{', '.join(broke + beside)}."
    if tolerated:
        return "mild", "!", THINGS[thing(verdict)][1], \
            (f"{plural(sum(tolerated.values()), 'event')} outside the claim, as these faults allow. "
             f"{'' if WRITES & set(tolerated) else 'No stale write was accepted. '}Every operation ended once, and the work went on after healing.")
    _, _, title, rule = THINGS[thing(verdict)]
    if verdict.doubt:
        return "mild", "?", f"{title} so far", f"{rule}, but this run proves little: {verdict.doubt}."
    return "good", "✓", title, \
        f"{rule}, no stale or lost write, every operation ended exactly once, and the work went on after healing."


def contended(run):
    """The keys that the clients contend for."""
    keys, users, mode = run.get("keys", 0), run.get("users", 1), run.get("modes", "lock")
    text = {"permits": plural(keys, f"name of {run.get('permits')} permits", f"names of {run.get('permits')} permits each"),
            "shared": plural(keys, "key that is locked shared and exclusive", "keys that are locked shared and exclusive"),
            "election": plural(keys, "election"),
            "mixed": f"{plural(keys, 'key')} of all modes, with {run.get('permits')} permits a name"}.get(mode, plural(keys, "lock"))
    return text + (f", {users} users in each client" if users > 1 else "")


def circumstances(run, verdict, picture):
    if not run:
        return f"A history of {plural(verdict.counts['clients'], 'client')}, {picture.seconds(picture.end_us):.0f} s, profile {verdict.profile}."
    fence = "fencing tokens" if verdict.tokens else "no fencing tokens"
    guard = "" if run.get("programs") else f"guard {run.get('guard')}, "  # others need not have one
    if run.get("fence") and not verdict.tokens and not run.get("programs"):
        fence = "no grant had a fencing token, although tokens were requested"
    text = (f"{plural(run.get('nodes', 0), 'Redis server')}, {plural(run.get('clients', 0), 'client')}, "
            f"{contended(run)}; faults for {run.get('seconds')} s by seed {run.get('seed')}, faults "
            f"{run.get('profile')} the claim; {guard}{fence}{', TLS' if run.get('tls') else ''}{', a password' if run.get('password') else ''}; leases of {run.get('lease', '').replace('-', ' to ')} ms; "
            f"in {run.get('place')}.")
    if picture.programs:
        text += f" The clients: {', '.join(picture.programs)}."
    if run.get("broken_rule"):
        text += f" Negative control: the clients break a rule on purpose ({run['broken_rule']})."
    return text


def figures(verdict, picture):
    counts, handovers = verdict.counts, verdict.handovers_us
    survived = sum(picture.survived.values())
    failed = sum(verdict.kinds(False).values())
    tolerated = sum(verdict.kinds(True).values())
    fenced = counts.get("fenced grants", 0)
    lost, in_time = counts.get("losses", 0), counts.get("losses in time", 0)
    late = f"; {lost - in_time:,} after it had ended" if lost > in_time else ""
    noticed = (f"{in_time:,} of {lost:,}", f"losses noticed before validity ended{late}") if lost else \
        ("0", "losses: every owner released its lock in time")
    stale = counts.get("writes refused", 0) + counts.get("reads refused", 0)
    tiles = [
        ("alarm" if failed else "fine", f"{failed:,}", "violations" + (f"; {tolerated:,} outside the claim" if tolerated else "")),
        ("", f"{counts.get('grants', 0):,}", "grants" + (", each with a token" if fenced == counts.get("grants") else "")
         + f", by {plural(counts.get('clients', 0), 'client')}"),
        ("", f"{survived:,}", f"faults of {plural(len(picture.survived), 'kind')}{' survived' if not failed else ''}"),
        ("", milliseconds(percentile(handovers, 50)), f"hand-over to a waiter, median; p99 {milliseconds(percentile(handovers, 99))}"),
        ("", *noticed),
        ("", f"{counts.get('writes', 0):,}", f"writes accepted; {plural(stale, 'stale access', 'stale accesses')} refused"),
    ]
    return '<section class="figures">' + "".join(
        f'<div class="figure {name}"><b>{escape(value)}</b><span>{escape(text)}</span></div>' for name, value, text in tiles) + "</section>"


def document(title, body, more_style=""):
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} - quorlock chaos</title><style>{STYLE}{more_style}</style></head>
<body>{body}</body></html>
"""


def legend(signs):
    items = "".join(f'<span><svg width="26" height="12">{sign}</svg>{escape(text)}</span>' for sign, text in signs)
    return f'<div class="legend">{items}</div>'


def signs_of(picture):
    keys = [(box(0, 0, 26, 12, f"hold k{i % KEY_COLOURS}"), f"holds {key}") for i, key in enumerate(picture.keys[:KEY_COLOURS])]
    return keys + [
        ('<path class="line wait k0" stroke-width="3" d="M0 6h26"/>', "waits"),
        (box(0.5, 0.5, 25, 11, "promise k0"), "promised to a killed client"),
        ('<path class="mark lost" d="M9 12h8l-4 -9z"/>', "loss of the lock"),
        ('<path class="mark stale" d="M9 1h8l-4 9z"/>', "stale access refused"),
        *((box(0, 0, 26, 12, f"readers k{key % KEY_COLOURS}"), f"readers of {picture.keys[key]}")
          for key in picture.keys_read[:KEY_COLOURS]),
        (box(0, 0, 26, 12, "dstopped"), "stopped"),
        (box(0.5, 0.5, 25, 11, "ddead"), "client gone"),
        (box(0, 4, 26, 4, "up"), "node up"),
        (box(0, 0, 26, 12, "down"), "server down"),
        (box(0, 0, 26, 12, "quarantine"), "quarantined"),
        (box(0, 0, 26, 12, "cut"), "cut, replies lost"),
        (box(0, 0, 26, 12, "slow"), "slow, lossy"),
        (box(0, 0, 26, 12, "part"), "cut off from some"),
        (box(0, 0, 26, 12, "refuse"), "refuses writes"),
        ('<path class="mark step" d="M13 0l5 6l-5 6l-5 -6z"/>', "clock stepped back, or FLUSHALL"),
        (box(0, 0, 26, 12, "clock"), "clock ahead"),
        (box(0, 0, 26, 12, "violation") + box(1, 1, 24, 10, "violation-frame"), "violation"),
    ]


def violations_of(verdict, picture):
    """The violations by kind, each with a link to its moment."""
    sections = []
    for tolerated in (False, True):
        for kind in KINDS:
            found = [v for v in verdict.violations if v.kind == kind and v.tolerated == tolerated]
            if not found:
                continue
            items = "".join(f'<li><a href="#detail" data-second="{picture.seconds(v.t_us):.3f}">{escape(v.text)}</a></li>'
                            for v in found[:LISTED_MAX])
            more = len(found) - LISTED_MAX
            items += f'<li class="soft">and {more:,} more; <code>cluster/check</code> lists them</li>' if more > 0 else ""
            outside = ", outside the claim" if tolerated else ""
            sections.append(f'<details class="{"mild" if tolerated else "bad"}"{"" if sections else " open"}><summary><b>'
                            f'{len(found):,} × {escape(KINDS[kind])}</b>{outside}</summary><ol>{items}</ol></details>')
    title = "Outside what is claimed" if verdict.sound else "What was broken"
    return f'<h2>{title}</h2>{"".join(sections)}' if sections else ""


def story_lines(events, verdict):
    """The first violation in a few lines; an empty string: there is nothing to tell."""
    lines = "".join(f"<li><b>{(t_us - verdict.start_us) / 1e6:.3f} s</b>{escape(text)}</li>" for t_us, text in story.tell(events, verdict))
    return f'<ol class="story">{lines}</ol>' if lines else ""


def story_of(events, verdict, run):
    """With the command that repeats the plan."""
    lines = story_lines(events, verdict)
    if not lines:
        return ""
    again = f'<p class="soft">The same seed repeats the faults; which process they meet depends on the machine:</p><pre>{escape(run["again"])}</pre>' \
        if run.get("again") else ""
    return f'<h2>How it broke first</h2>{lines}{again}'


def fault_table(picture, sound):
    most = max(picture.survived.values(), default=1)
    def happened(kind):
        hits = "; ".join(f"{number:,} {what}" for what, number in picture.hits.get(kind, {}).items())
        return (plan.KINDS[kind].text if kind in plan.KINDS else kind) + (f" ({hits})" if hits else "")

    rows = "".join(
        f'<tr><td class="kind">{escape(kind)}</td><td class="soft">{escape(happened(kind))}</td>'
        f'<td class="n">{count}</td><td class="bar"><i style="width:{100 * count / most:.0f}%"></i></td></tr>'
        for kind, count in sorted(picture.survived.items(), key=lambda item: -item[1]))
    left = picture.run.get("left_out", {})
    note = "".join(f"{escape(kind)} ({escape(why)}); " for kind, why in left.items()).rstrip("; ")
    return (f'<section><h2>Faults{" survived" if sound else ""}</h2><table><tr><th>fault</th><th>what happened</th><th class="n">times</th><th></th></tr>{rows}</table>'
            + (f'<p class="soft" style="margin-top:10px">Left out: {note}.</p>' if note else "") + "</section>")


def client_table(verdict, picture):
    rows = []
    for lane in picture.clients:
        own = [o for o in verdict.operations if o.client == lane.name]
        granted = [o for o in own if o.granted_us is not None]
        waits = [o.granted_us - o.invoke_us for o in granted]
        rows.append(f'<tr><td>{escape(lane.name)}</td><td class="n">{len(granted)}</td>'
                    f'<td class="n">{sum(1 for o in own if o.end == "refused")}</td><td class="n">{sum(1 for o in own if o.end == "lost")}</td>'
                    f'<td class="n">{sum(1 for o in own if o.end == "killed")}</td><td class="n">{milliseconds(percentile(waits, 50))}</td>'
                    f'<td class="n">{milliseconds(max(waits, default=None))}</td></tr>')
    head = "".join(f'<th{"" if i == 0 else " class=n"}>{name}</th>' for i, name in enumerate(
        ("client", "granted", "refused", "lost", "killed", "median wait", "longest")))
    return f"<section><h2>Everybody’s turn</h2><table><tr>{head}</tr>{''.join(rows)}</table></section>"


def mode_table(verdict):
    """A table row for each mode, if there are others than the lock."""
    if set(verdict.modes) <= {"lock"}:
        return ""
    rows = []
    for mode in MODES:
        own = verdict.modes.get(mode)
        if own is None:
            continue
        most = f"{own.at_once} of {own.permits}" if mode == "permits" else own.at_once if mode == "shared" else ""
        times = [milliseconds(value) for value in (percentile(own.handovers_us, 50), percentile(own.handovers_us, 99),
                                                   percentile(own.returns_us, 50), max(own.returns_us, default=None))]
        rows.append(f'<tr><td class="kind">{mode}</td>' + "".join(
            f'<td class="n">{value}</td>' for value in (f"{own.grants:,}", f"{own.refusals:,}", own.losses, most, *times)) + "</tr>")
    head = "".join(f'<th{"" if i == 0 else " class=n"}>{name}</th>' for i, name in enumerate(
        ("mode", "granted", "refused", "lost", "at once", "hand-over", "p99", "after a kill", "longest")))
    return ('<h2>Modes</h2><p class="soft">How a key is taken; how many had one at once at most; from a release to the next '
            "grant; and from the end of what a killed owner was promised to the next grant.</p>"
            f'<div class="card"><table><tr>{head}</tr>{"".join(rows)}</table></div>')


def handover_chart(verdict):
    """A histogram with doubling steps: how long a released lock was free although a client waited."""
    handovers = verdict.handovers_us
    if not handovers:
        return ""
    edges = [1000 * 2 ** i for i in range(13)]
    bins = [0] * (len(edges) + 1)
    for value in handovers:
        bins[next((i for i, edge in enumerate(edges) if value < edge), len(edges))] += 1
    while not bins[-1]:
        bins.pop()
    high, width, height = max(bins), 34, 96
    parts = []
    for i, count in enumerate(bins):
        top = height - count / high * (height - 18)
        low = edges[i - 1] // 1000 if i else 0
        name = f"{low} to {edges[i] // 1000} ms" if i < len(edges) else f"above {low} ms"
        parts.append(box(i * width + 2, top, width - 4, height - top + 0.01, "hold k0", f"{name}: {count}"))
        parts.append(f'<text x="{i * width + width / 2}" y="{top - 4:.0f}" text-anchor="middle">{count or ""}</text>')
        if i < len(edges):
            parts.append(f'<text x="{(i + 1) * width}" y="{height + 14}" text-anchor="middle">{edges[i] // 1000}</text>')
    return (f'<section><h2>Hand-over</h2><p class="soft">From a release to the next grant, where a client was already waiting, in milliseconds.</p>'
            f'<svg viewBox="0 0 {len(bins) * width + 20} {height + 20}" style="width:100%;max-width:{len(bins) * width + 20}px">{"".join(parts)}</svg></section>')


def render(events, verdict):
    """The page. events as history.parse gives them, verdict of the same events."""
    picture = paint(events, verdict)
    mood, sign, title, explanation = headline(verdict)
    side, strip, scale = Detail(picture, verdict).draw()
    notes = "".join(f"<p class=soft>{escape(note)}</p>" for note in verdict.notes)
    below = " Below the clients: each slot, shared key and election, while somebody has it." if picture.places else ""
    return document(title, f"""<main>
<header class="{mood}"><div class="seal">{sign}</div><div><h1>{escape(title)}</h1><p>{escape(explanation)}</p>
<p class="soft">{escape(circumstances(picture.run, verdict, picture))}</p>{notes}</div></header>
{figures(verdict, picture)}
{mode_table(verdict)}
{story_of(events, verdict, picture.run)}
{violations_of(verdict, picture)}
<h2>The whole run</h2><p class="soft">The fuller a lane, the more of that moment its client held a lock. Click to see a moment below.</p>
<div class="card whole">{Overview(picture, verdict).draw()}</div>
<h2 id="detail">Every step</h2><p class="soft">Scroll sideways; hover for what happened.{below}</p>
<div class="card strip">{side}<div class="scroll" data-scale="{scale:.3f}" data-label="64" data-total="{picture.seconds(picture.end_us):.3f}">{strip}</div></div>
{legend(signs_of(picture))}
<div class="columns">{fault_table(picture, verdict.sound)}<div>{handover_chart(verdict)}{client_table(verdict, picture)}</div></div>
<footer>Drawn by cluster/chaos of quorlock from the history that the clients wrote; <code>cluster/check</code> judges the same history.</footer>
</main><script>{SCRIPT}</script>""")
