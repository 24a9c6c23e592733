# SPDX-License-Identifier: BSD-3-Clause
"""Draws a run as SVG: an overview, and every step in detail."""
from html import escape

from lanes import WORDS, merged
from verdict import OVERLAPS

LABEL = 64            # width of the names beside the lanes
OVERVIEW_WIDTH = 1180
NODE_HEIGHT, CLIENT_HEIGHT, GAP = 18, 18, 5
SMALL_HEIGHT, SMALL_GAP = 9, 3
DETAIL_PX_MAX = 60    # a second in detail; less in long runs
DETAIL_WIDTH_MAX = 24000
DETAIL_WIDTH_MIN = 1090
DETAIL_TICKS_MAX = 5000  # a limit for histories with one line from another year
HOLDS_MAX = 7000      # rectangles with a title of their own
VIOLATIONS_MAX = 300
BIN_PX = 2
KEY_COLOURS = 6

# The colours of all drawings, in light and dark mode.
COLOURS = """
:root { --paper: #fbfaf7; --card: #ffffff; --ink: #1c2430; --soft: #69727f; --hair: #e6e3dc; --good: #1d7a4f;
  --bad: #c8102e; --warn: #b86e00; --k0: #2f6db3; --k1: #17907f; --k2: #8457b5; --k3: #b0741c; --k4: #b0476d; --k5: #5b7a1f;
  --up: #a9d3b8; --down: #3b414b; --quar: #c3b0e4; --still: #9aa3af; --still-back: #e3e6ea; --cut: #f2a65a; --part: #d9663f;
  --slow: #f5d98b; --refuse: #e6b8a8; --clock: #7fb8d8; --wait: .34; --label: #2a2013; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --card: #1b2026; --ink: #e8e6e1; --soft: #98a2ae; --hair: #2c333b;
  --good: #57c08c; --bad: #ff5a70; --warn: #e2a54a; --k0: #6ea8e6; --k1: #4cc2b0; --k2: #b08be0; --k3: #dca550; --k4: #e07ea0;
  --k5: #9dbb5c; --up: #35614a; --down: #8b949f; --quar: #6e5a96; --still: #76808c; --still-back: #2a3037; --cut: #b5702b;
  --part: #d9663f; --slow: #8a7636; --refuse: #8a5c4c; --clock: #3f7896; --wait: .45; --label: #fbf3e6; } }
"""
SHAPES = """
text { font: 11px system-ui, "Segoe UI", Arial, sans-serif; fill: var(--soft) } text.name { font-size: 11.5px; fill: var(--ink) }
text.in { font-size: 10.5px; pointer-events: none } text.dark { fill: var(--label) } text.light { fill: var(--paper) }
.k0 { --k: var(--k0) } .k1 { --k: var(--k1) } .k2 { --k: var(--k2) } .k3 { --k: var(--k3) } .k4 { --k: var(--k4) } .k5 { --k: var(--k5) }
.line { fill: none; stroke: var(--k) } .line.wait { opacity: var(--wait) } .hold { fill: var(--k); rx: 1.5px } .hold:hover { stroke: var(--ink) }
.readers { fill: var(--k); opacity: .42 } .promise { fill: var(--k); fill-opacity: .16; stroke: var(--k); stroke-dasharray: 2 2; stroke-width: .8 }
.d1 { opacity: .3 } .d2 { opacity: .52 } .d3 { opacity: .76 } .thread { fill: var(--hair) }
.up { fill: var(--up) } .down { fill: var(--down) } .quarantine { fill: var(--quar) } .cut { fill: var(--cut) } .slow { fill: var(--slow) }
.part { fill: var(--part); opacity: .8 } .refuse { fill: var(--refuse) } .clock { fill: var(--clock) }
.hatch-back { fill: var(--still-back) } .hatch-line { stroke: var(--still); stroke-width: 3.2 }
#overview .paused, .ostopped { fill: url(#ohatch) } .paused, .dstopped { fill: url(#dhatch) } .dstopped { opacity: .72 }
.odead, .ddead { fill: var(--paper); stroke: var(--still); stroke-width: .6; stroke-dasharray: 2 2 }
.mark { stroke: var(--card); stroke-width: .7 } .lost { fill: var(--warn) } .stale { fill: var(--good) } .step { fill: var(--clock); stroke: var(--ink) }
.area { fill: var(--k0); opacity: .28 } .tick, .grid { stroke: var(--hair); fill: none } .healed { stroke: var(--good); stroke-dasharray: 3 3; fill: none }
.view { fill: var(--ink); fill-opacity: .05; stroke: var(--soft); stroke-width: .8; pointer-events: none }
.violation { fill: var(--bad); opacity: .2 } .violation-frame { fill: none; stroke: var(--bad); stroke-width: 2 } .violation-flag { fill: var(--bad) }
.violation-line { stroke: var(--bad); opacity: .55; fill: none } .tolerated { fill: var(--warn); opacity: .16 }
.bead { stroke: var(--card); stroke-width: .7 }
.violation-bead { fill: var(--bad) } .tolerated-bead { fill: var(--warn) } .tolerated-frame { fill: none; stroke: var(--warn); stroke-width: 1.6 } .tolerated-flag { fill: var(--warn) } .tolerated-line { stroke: var(--warn); opacity: .45; fill: none }
"""

# The colour of a fault on its node: one family for each effect that a client would notice.
FAMILY = {"kill": "down", "wipe": "down", "wipe-owned": "down", "pause": "paused", "cut": "cut", "mute": "cut", "lost-replies": "cut",
          "lost-requests": "cut", "lossy": "slow", "split": "part", "divide": "part", "slow": "slow",
          "half-open": "cut", "reset": "cut", "oom": "refuse", "readonly": "refuse", "no-replicas": "refuse",
          "blackout": "cut", "clock-forward": "clock", "clock-strobe": "clock", "fsync-stall": "slow", "disk-full": "refuse", "aof-cut": "down",
          "partitions": "part", "loss": "slow", "late": "slow", "reorder": "slow", "names": "refuse", "password": "part", "certificate": "part", "emfile": "refuse", "reconfigure": "part"}
STATES = ("down", "paused")  # which the node's state shows
AT_ALL = ("divide", "partitions", "reconfigure", "password", "certificate")  # drawn as a line above the node
STATE_CLASS = {"up": "up", "down": "down", "paused": "paused", "quarantined": "quarantine"}


def number(value):
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def box(x, y, width, height, names, title=""):
    inner = f"><title>{escape(title)}</title></rect>" if title else "/>"
    return (f'<rect class="{names}" x="{number(x)}" y="{number(y)}" width="{number(max(width, 0.8))}" '
            f'height="{number(height)}"{inner}')


def words(x, y, text, names, anchor="start"):
    return f'<text class="{names}" x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def tick_seconds(total, room):
    """A round step for about that many ticks."""
    for step in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600):
        if total / step <= room:
            return step
    step = 7200
    while total / step > room:
        step *= 2
    return step


def clock(second, total):
    return f"{second} s" if total < 120 else f"{second // 60}:{second % 60:02d}"


def fault_colour(kind):
    """The class of a fault on its node; None if the node's state shows it already, or nothing shows it."""
    family = FAMILY.get(kind)
    return None if family in STATES else family


def axis(total, room, y, x):
    """The time scale below a drawing; x: the place of a second. The last label stays inside."""
    return "".join(f'<path class="tick" d="M{number(x(second))} {y}v4"/>'
                   + words(x(second), y + 16, clock(second, total), "note", "end" if x(total) - x(second) < 14 else "middle")
                   for second in range(0, int(total) + 1, tick_seconds(total, room)))


def area(counts, high, base, height, x):
    """A histogram; x: the place where step i begins."""
    points = [f"{number(x(0))},{base}"]
    for i, count in enumerate(counts):
        top = number(base - count / max(high, 1) * height)
        points += [f"{number(x(i))},{top}", f"{number(x(i + 1))},{top}"]
    return f'<polygon class="area" points="{" ".join(points)} {number(x(len(counts)))},{base}"/>'


def patterns(prefix):
    """Hatch patterns for stopped processes."""
    return (f'<defs><pattern id="{prefix}hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><rect width="5" height="5" class="hatch-back"/>'
            '<line x1="0" y1="0" x2="0" y2="5" class="hatch-line"/></pattern></defs>')


class Overview:
    """The whole run on one page width: density of holding, faults as blocks."""

    def __init__(self, picture, verdict):
        self.picture, self.verdict = picture, verdict
        self.total = picture.seconds(picture.end_us)
        self.scale = (OVERVIEW_WIDTH - LABEL) / self.total
        self.strip = 44
        self.parts = []

    def x(self, t_us):
        return LABEL + self.picture.seconds(t_us) * self.scale

    def draw(self):
        y = 6
        self.throughput(y)
        y += self.strip + 10
        top = y
        for lane in self.picture.nodes:
            self.node(lane, y)
            y += SMALL_HEIGHT + SMALL_GAP
        y += 5
        for lane in self.picture.clients:
            self.client(lane, y)
            y += SMALL_HEIGHT + SMALL_GAP
        self.violations(6, y)
        if self.picture.healed_us:
            x = self.x(self.picture.healed_us)
            self.parts.append(f'<line class="healed" x1="{number(x)}" x2="{number(x)}" y1="6" y2="{y}"/>'
                              + words(x - 4, 15, "all healed", "note", "end"))
        self.parts.append(axis(self.total, 12, y, lambda second: LABEL + second * self.scale))
        self.parts.append(f'<rect id="view" class="view" x="{LABEL}" y="{top - 3}" width="0" height="{y - top + 2}"/>')
        return (f'<svg id="overview" viewBox="0 0 {OVERVIEW_WIDTH} {y + 22}" role="img" '
                f'aria-label="The whole run">{patterns("o")}{"".join(self.parts)}</svg>')

    def throughput(self, y):
        """Grants a second as an area over time."""
        step = max(1.0, self.total / 200)
        bins = [0] * (int(self.total / step) + 1)
        for operation in self.verdict.operations:
            if operation.granted_us is not None:
                bins[int(self.picture.seconds(operation.granted_us) / step)] += 1
        high = max(max(bins), 1)
        base = y + self.strip
        self.parts.append(area(bins, high, base, self.strip - 10,
                               lambda i: min(LABEL + i * step * self.scale, OVERVIEW_WIDTH))
                          + words(LABEL - 8, base - 2, "grants/s", "name", "end")
                          + words(LABEL - 8, y + 14, f"{high / step:.0f}", "note", "end"))

    def node(self, lane, y):
        self.parts.append(words(LABEL - 8, y + SMALL_HEIGHT - 1, lane.name, "name", "end"))
        gap_us = 1e6 / self.scale
        for span in merged(lane.states, gap_us):
            x, width = self.x(span.from_us), (span.to_us - span.from_us) / 1e6 * self.scale
            thin = 2 if span.state == "up" else 0
            self.parts.append(box(x, y + thin, width, SMALL_HEIGHT - 2 * thin, STATE_CLASS.get(span.state, "up")))
        for span in lane.faults:
            colour = fault_colour(span.state)
            if colour:
                x, width = self.x(span.from_us), (span.to_us - span.from_us) / 1e6 * self.scale
                self.parts.append(box(x, y + 1, width, SMALL_HEIGHT - 2, colour, span.title))

    def client(self, lane, y):
        self.parts.append(words(LABEL - 8, y + SMALL_HEIGHT - 1, lane.name, "name", "end"))
        bins = int((OVERVIEW_WIDTH - LABEL) / BIN_PX) + 1
        held = [0.0] * bins
        owner = [0] * bins
        for span in lane.holds:
            self.spread(held, owner, span)
        runs, last = {}, None
        for i, share in enumerate(held):
            level = min(4, int(share * 4) + 1) if share > 0.01 else 0
            same = (level, owner[i])
            if level and last and last[0] == same and last[2] == i:
                last[2] = i + 1
            elif level:
                last = [same, i, i + 1]
                runs.setdefault(same, []).append(last)
        self.parts.append(box(LABEL, y + SMALL_HEIGHT / 2 - 0.5, OVERVIEW_WIDTH - LABEL, 1, "thread"))
        for (level, key), spans in sorted(runs.items()):
            path = "".join(f"M{LABEL + a * BIN_PX} {number(y + SMALL_HEIGHT / 2)}h{(b - a) * BIN_PX}" for _, a, b in spans)
            self.parts.append(f'<path class="line k{key % KEY_COLOURS} d{level}" stroke-width="{SMALL_HEIGHT}" d="{path}"/>')
        for span in lane.states:
            if span.state in ("stopped", "dead"):
                x, width = self.x(span.from_us), (span.to_us - span.from_us) / 1e6 * self.scale
                self.parts.append(box(x, y, width, SMALL_HEIGHT, "o" + span.state))

    def spread(self, held, owner, span):
        first = self.picture.seconds(span.from_us) * self.scale / BIN_PX
        last = self.picture.seconds(span.to_us) * self.scale / BIN_PX
        for i in range(int(first), min(int(last) + 1, len(held))):
            share = min(last, i + 1) - max(first, i)
            if share >= held[i]:
                owner[i] = span.key
            held[i] = min(1.0, held[i] + share)

    def violations(self, top, bottom):
        for violation in self.verdict.violations[:VIOLATIONS_MAX]:
            x = self.x(violation.t_us)
            names = "tolerated" if violation.tolerated else "violation"
            if violation.kind in OVERLAPS:
                self.parts.append(f'<path class="{names}-line" d="M{number(x)} {top}V{bottom}"/>')
            self.parts.append(f'<path class="{names}-flag" d="M{number(x - 4)} {top - 6}h8l-4 7z">'
                              f'<title>{escape(violation.text)}</title></path>')


class Detail:
    """Every step, on a strip that scrolls, or fitted into a width."""

    def __init__(self, picture, verdict, width=None):
        self.picture, self.verdict = picture, verdict
        self.total = picture.seconds(picture.end_us)
        self.scale = max(12, min(DETAIL_PX_MAX, DETAIL_WIDTH_MAX / self.total), DETAIL_WIDTH_MIN / self.total)
        if width:
            self.scale = width / self.total
        self.width = width or self.total * self.scale + 30
        grants = sum(len(lane.holds) for lane in picture.clients)
        # Holds closer than a pixel are drawn as one; with many of them, the distance grows.
        self.gap_us = (1 if grants < HOLDS_MAX else 4 * grants / HOLDS_MAX) * 1e6 / self.scale
        self.parts = []
        self.lane_y = {}

    def x(self, t_us):
        return self.picture.seconds(t_us) * self.scale

    def draw(self):
        """(names, strip, pixels a second): two SVGs of one height; the names stay while the strip scrolls."""
        y, names = 26, []
        for lane in self.picture.nodes + [None] + self.picture.clients:
            if lane is None:
                y += 10
                continue
            self.lane_y[lane.name] = y
            height = NODE_HEIGHT if lane in self.picture.nodes else CLIENT_HEIGHT
            names.append(words(LABEL - 10, y + height - 5, lane.name, "name", "end"))
            y += height + GAP
        if self.picture.places:
            y += 10
        for lane in self.picture.places:
            self.lane_y[lane.name] = y
            names.append(words(LABEL - 10, y + SMALL_HEIGHT, lane.name, "name", "end"))
            y += SMALL_HEIGHT + GAP
        bottom = y
        self.grid(bottom)
        for lane in self.picture.nodes:
            self.node(lane)
        for lane in self.picture.clients:
            self.client(lane)
        for lane in self.picture.places:
            self.place(lane)
        self.violations(bottom)
        if self.picture.healed_us:
            x = self.x(self.picture.healed_us)
            self.parts.append(f'<path class="healed" d="M{number(x)} 20V{bottom}"/>' + words(x + 5, 24, "all healed", "note"))
        side = f'<svg width="{LABEL}" height="{bottom + 6}">{"".join(names)}</svg>'
        strip = (f'<svg width="{number(self.width)}" height="{bottom + 6}" role="img" aria-label="Every step">'
                 f'{patterns("d")}{"".join(self.parts)}</svg>')
        return side, strip, self.scale

    def grid(self, bottom):
        step = tick_seconds(self.total, min(self.width / 90, DETAIL_TICKS_MAX))
        for second in range(0, int(self.total) + 1, step):
            x = second * self.scale
            self.parts.append(f'<path class="grid" d="M{number(x)} 18V{bottom}"/>' + words(x + 3, 13, clock(second, self.total), "note"))

    def node(self, lane):
        y = self.lane_y[lane.name]
        for span in lane.states:
            x, width = self.x(span.from_us), (span.to_us - span.from_us) / 1e6 * self.scale
            if span.state == "up":
                self.parts.append(box(x, y + 7, width, NODE_HEIGHT - 14, "up"))
                continue
            title = f"{lane.name} {span.state}: {self.picture.seconds(span.from_us):.2f} to {self.picture.seconds(span.to_us):.2f} s"
            self.parts.append(box(x, y, width, NODE_HEIGHT, STATE_CLASS.get(span.state, "up"), title))
            if width > 70 and span.state == "quarantined":
                self.parts.append(words(x + 5, y + NODE_HEIGHT - 5, "quarantined", "in dark"))
        for span in lane.faults:
            self.fault(span, y)
        self.labels([span for span in lane.faults if span.state not in AT_ALL], y)
        self.marks(lane, y, NODE_HEIGHT)

    def fault(self, span, y):
        x, width = self.x(span.from_us), (span.to_us - span.from_us) / 1e6 * self.scale
        family = FAMILY.get(span.state, "cut")
        if span.state in AT_ALL:
            self.parts.append(box(x, y - 3, width, 3, "part", span.title))
        elif family not in STATES:
            self.parts.append(box(x, y + 1, width, NODE_HEIGHT - 2, family, span.title))

    def labels(self, spans, y):
        """Each where its fault can be seen, if there is room: later faults are drawn over earlier ones, and all over the
        states of the server."""
        spans = sorted(spans, key=lambda span: span.from_us)
        for i, span in enumerate(spans):
            family, label = FAMILY.get(span.state, "cut"), WORDS.get(span.state, span.state)
            over = spans[:i] + spans[i + 1:] if family in STATES else spans[i + 1:]
            over = [other for other in over if FAMILY.get(other.state, "cut") not in STATES]
            begin_us = max([other.to_us for other in over if other.from_us <= span.from_us] + [span.from_us])
            end_us = min([other.from_us for other in over if other.from_us > begin_us] + [span.to_us])
            if (end_us - begin_us) / 1e6 * self.scale > 6.2 * len(label) + 8:
                self.parts.append(words(self.x(begin_us) + 5, y + NODE_HEIGHT - 5, label,
                                        "in light" if family == "down" else "in dark"))

    def client(self, lane):
        y = self.lane_y[lane.name]
        middle = y + CLIENT_HEIGHT / 2
        for i, _ in enumerate(self.picture.keys):
            path = "".join(f"M{number(self.x(s.from_us))} {number(middle)}H{number(max(self.x(s.to_us), self.x(s.from_us) + 0.5))}"
                           for s in merged([w for w in lane.waits if w.key == i], self.gap_us))
            if path:
                self.parts.append(f'<path class="line wait k{i % KEY_COLOURS}" stroke-width="3" d="{path}"/>')
        for span in merged(lane.holds, self.gap_us):
            title = span.title if span.count == 1 else (
                f"{lane.name} held {self.picture.keys[span.key]} {span.count} times, "
                f"{self.picture.seconds(span.from_us):.2f} to {self.picture.seconds(span.to_us):.2f} s")
            self.parts.append(box(self.x(span.from_us), y + 2, (span.to_us - span.from_us) / 1e6 * self.scale,
                                  CLIENT_HEIGHT - 4, f"{span.state} k{span.key % KEY_COLOURS}", title))
        for span in lane.states:
            if span.state in ("stopped", "dead"):
                word = "stopped (SIGSTOP)" if span.state == "stopped" else "killed, not yet replaced"
                title = f"{lane.name} {word}: {self.picture.seconds(span.from_us):.2f} to {self.picture.seconds(span.to_us):.2f} s"
                self.parts.append(box(self.x(span.from_us), y, (span.to_us - span.from_us) / 1e6 * self.scale,
                                      CLIENT_HEIGHT, "d" + span.state, title))
        for span in lane.faults:
            self.parts.append(box(self.x(span.from_us), y - 2, (span.to_us - span.from_us) / 1e6 * self.scale, 2,
                                  "part", span.title))
        self.marks(lane, y, CLIENT_HEIGHT)

    def place(self, lane):
        """The lane of a slot, a shared key or an election: when it was held."""
        y = self.lane_y[lane.name]
        for span in merged(lane.holds, self.gap_us):
            title = span.title if span.count == 1 else (
                f"{lane.name} was held {span.count} times, "
                f"{self.picture.seconds(span.from_us):.2f} to {self.picture.seconds(span.to_us):.2f} s")
            names = f"{span.state} k{span.key % KEY_COLOURS}"
            self.parts.append(box(self.x(span.from_us), y, (span.to_us - span.from_us) / 1e6 * self.scale, SMALL_HEIGHT + 2,
                                  names, title))

    def marks(self, lane, y, height):
        for t_us, kind, title in lane.marks:
            x = self.x(t_us)
            shape = {"lost": f"M{number(x - 4)} {y + height}h8l-4 -8z", "stale": f"M{number(x - 4)} {y}h8l-4 8z",
                     "step": f"M{number(x)} {y}l5 {height / 2}l-5 {height / 2}l-5 -{height / 2}z"}[kind]
            self.parts.append(f'<path class="mark {kind}" d="{shape}"><title>{escape(title)}</title></path>')

    def violations(self, bottom):
        for violation in self.verdict.violations[:VIOLATIONS_MAX]:
            names = "tolerated" if violation.tolerated else "violation"
            x = self.x(violation.t_us)
            if violation.kind not in OVERLAPS:
                self.bead(violation, x, names)
                continue
            width = max(2.0, (violation.until_us - violation.t_us) / 1e6 * self.scale) if violation.until_us else 2
            self.parts.append(box(x, 18, width, bottom - 18, names, violation.text))
            for client in violation.clients:
                y = self.lane_y.get(client)
                if y is not None:
                    self.parts.append(box(x - 2, y, width + 4, CLIENT_HEIGHT, names + "-frame", violation.text))

    def bead(self, violation, x, names):
        """A mark on the client's lane, or on the time scale if it belongs to no client."""
        y = self.lane_y.get(violation.clients[-1] if violation.clients else "", 18 - CLIENT_HEIGHT / 2)
        self.parts.append(f'<circle class="bead {names}-bead" cx="{number(x)}" cy="{number(y + CLIENT_HEIGHT / 2)}" r="3.2">'
                          f'<title>{escape(violation.text)}</title></circle>')
