# SPDX-License-Identifier: BSD-3-Clause
"""Draws a comparison as SVG: the plan and each client's grants on one axis, and the moment of a violation."""
from html import escape

from drawing import KEY_COLOURS, STATE_CLASS, area, axis, box, fault_colour, number, patterns, words
from lanes import WORDS, merged
from verdict import OVERLAPS

WIDTH, LABEL = 1120, 118
LANE, STRIP, GAP = 13, 46, 6
BINS_MAX = 240
BEFORE_US, AFTER_US = 3_500_000, 1_500_000
MOMENT_LANE, MOMENT_GAP = 22, 6
MARKS_MAX = 400
PARTED = ("split", "divide", "partitions")


class Strips:
    """The plan's faults, and below them each client's grants and violations."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.scale = (WIDTH - LABEL) / seconds
        self.parts, self.y = [], 4

    def x(self, second):
        return LABEL + min(max(second, 0), self.seconds) * self.scale

    def plan(self, picture):
        """Lanes of the servers in one of the runs; time begins with the plan."""
        for lane in picture.nodes:
            self.parts.append(words(LABEL - 10, self.y + LANE - 3, lane.name, "name", "end"))
            self.parts.append(box(LABEL, self.y + LANE / 2 - 1, WIDTH - LABEL, 2, "up"))
            states = [span for span in lane.states if span.state in ("down", "paused", "quarantined")]
            for span in merged(states, 1e6 / self.scale):
                self.block(picture, span, STATE_CLASS[span.state])
            for span in lane.faults:
                if fault_colour(span.state) and span.state not in PARTED:
                    self.block(picture, span, fault_colour(span.state))
            self.y += LANE + 4
        self.y += 8

    def block(self, picture, span, names):
        x = self.x(picture.seconds(span.from_us))
        self.parts.append(box(x, self.y + 1, self.x(picture.seconds(span.to_us)) - x, LANE - 2, names, span.title))

    def client(self, title, verdict, high):
        """Grants a second as an area, overlaps and stale writes as marks."""
        base = self.y + STRIP
        self.parts.append(words(LABEL - 10, self.y + STRIP / 2 + 4, title, "name", "end"))
        counts = bins(verdict, self.seconds)
        step = self.seconds / len(counts)
        self.parts.append(area(counts, high, base, STRIP - 12, lambda i: self.x(i * step))
                          + f'<path class="tick" d="M{LABEL} {base}H{WIDTH}"/>')
        for violation in [v for v in verdict.violations if v.kind in OVERLAPS | {"stale-write"}][:MARKS_MAX]:
            x = self.x((violation.t_us - verdict.start_us) / 1e6)
            title = f"<title>{escape(violation.text)}</title>"
            if violation.kind in OVERLAPS:
                self.parts.append(f'<path class="violation-line" d="M{number(x)} {self.y + 7}V{base}"/>'
                                  f'<path class="violation-flag" d="M{number(x - 4)} {self.y}h8l-4 7z">{title}</path>')
            else:
                self.parts.append(f'<circle class="mark staled" cx="{number(x)}" cy="{base - 4}" r="3.2">{title}'
                                  "</circle>")
        self.y = base + GAP

    def draw(self, name):
        self.parts.append(axis(self.seconds, 14, self.y, self.x))
        return (f'<svg class="wide" viewBox="0 0 {WIDTH + 24} {self.y + 22}" role="img" aria-label="The plan, and the '
                f'grants of each client">{patterns(name)}{"".join(self.parts)}</svg>')


def bins(verdict, seconds):
    """The number of grants in each interval of at least half a second."""
    counts = [0] * min(BINS_MAX, 2 * seconds)
    for operation in verdict.operations:
        at = ((operation.granted_us or 0) - verdict.start_us) / 1e6 / seconds
        if 0 <= at < 1:
            counts[int(at * len(counts))] += 1
    return counts


class Moment:
    """The time around a violation: every server, and each client that used the key."""

    def __init__(self, picture, violation):
        self.picture, self.violation = picture, violation
        self.from_us = violation.t_us - BEFORE_US
        self.to_us = max(violation.until_us, violation.t_us) + AFTER_US
        self.scale = (WIDTH - LABEL) / (self.to_us - self.from_us)
        self.key = picture.keys.index(violation.key)
        self.parts, self.y = [], 22

    def x(self, t_us):
        return LABEL + (min(max(t_us, self.from_us), self.to_us) - self.from_us) * self.scale

    def seen(self, spans):
        return [span for span in spans if span.to_us > self.from_us and span.from_us < self.to_us]

    def bar(self, span, names, inset=0, label="", ink="dark"):
        x, width = self.x(span.from_us), self.x(span.to_us) - self.x(span.from_us)
        self.parts.append(box(x, self.y + inset, width, MOMENT_LANE - 2 * inset, names, span.title))
        if label and width > 6.4 * len(label) + 10:
            self.parts.append(words(x + 6, self.y + MOMENT_LANE / 2 + 4, label, f"in {ink}"))

    def name(self, text):
        self.parts.append(words(LABEL - 10, self.y + MOMENT_LANE / 2 + 4, text, "name", "end"))

    def edge(self, span):
        """A client that is cut off from some nodes: a line along the lane, which hides nothing."""
        x = self.x(span.from_us)
        self.parts.append(box(x, self.y + MOMENT_LANE - 3, self.x(span.to_us) - x, 3, "part", span.title))

    def node(self, lane):
        self.name(lane.name)
        states, faults = self.seen(lane.states), self.seen(lane.faults)
        for span in states:
            if span.state == "up":
                self.bar(span, "up", 8)
            elif span.state == "quarantined":
                self.bar(span, "quarantine", 1, "quarantined")
        for span in faults:
            if span.state in PARTED:
                self.edge(span)
            elif fault_colour(span.state):
                self.bar(span, fault_colour(span.state), 2, WORDS.get(span.state, span.state))
        for span in states:
            if span.state in ("down", "paused"):
                self.bar(span, span.state, 1, span.state, "light" if span.state == "down" else "dark")
        for t_us, _, title in lane.marks:
            if self.from_us < t_us < self.to_us:
                x, middle = self.x(t_us), self.y + MOMENT_LANE / 2
                self.parts.append(f'<path class="mark step" d="M{number(x)} {middle - 6}l6 6l-6 6l-6 -6z">'
                                  f"<title>{escape(title)}</title></path>")
        self.y += MOMENT_LANE + MOMENT_GAP

    def client(self, lane):
        self.name(lane.name)
        for span in self.seen([wait for wait in lane.waits if wait.key == self.key]):
            self.bar(span, f"waiting k{self.key % KEY_COLOURS}", 9)
        for span in self.seen([hold for hold in lane.holds if hold.key == self.key]):
            self.bar(span, f"{span.state} k{self.key % KEY_COLOURS}", 3)
        for span in self.seen(lane.states):
            if span.state in ("stopped", "dead"):
                self.bar(span, "m" + span.state, 0, {"stopped": "stopped", "dead": "killed"}[span.state])
        for span in self.seen(lane.faults):
            self.edge(span)
        self.y += MOMENT_LANE + MOMENT_GAP

    def draw(self, name, what):
        for lane in self.picture.nodes:
            self.node(lane)
        self.y += 6
        for lane in self.picture.clients:
            if lane.name in self.violation.clients or self.seen([hold for hold in lane.holds if hold.key == self.key]):
                self.client(lane)
        left, right = self.x(self.violation.t_us), self.x(max(self.violation.t_us, self.violation.until_us))
        seconds = self.picture.seconds(self.violation.t_us)
        frame = (f'<rect class="violation" x="{number(left)}" y="18" width="{number(max(right - left, 2))}" '
                 f'height="{self.y - 20}"/><path class="violation-line" d="M{number(left)} 16V{self.y}"/>'
                 + words(left, 11, f"{what} at {seconds:.3f} s", "alarm", "middle"))
        hatch = patterns(name).replace("url(#", f"url(#{name}")
        return (f'<svg class="wide moment" viewBox="0 0 {WIDTH + 24} {self.y + 20}" role="img" aria-label="What '
                f'happened around it" style="--hatch: url(#{name}hatch)">'
                f'{hatch}{frame}{"".join(self.parts)}{self.axis()}</svg>')

    def axis(self):
        first, last = int(self.picture.seconds(self.from_us)) + 1, int(self.picture.seconds(self.to_us))
        places = [(second, self.x(self.picture.start_us + second * 1e6)) for second in range(first, last + 1)]
        return "".join(f'<path class="tick" d="M{number(x)} {self.y}v4"/>'
                       + words(x, self.y + 16, f"{second} s", "note", "middle") for second, x in places)
