# SPDX-License-Identifier: BSD-3-Clause
"""What the report is drawn with: dots on an axis, tables, figures as text."""
import math
import os
import sys
from html import escape

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "cluster", "chaos.d"))
from drawing import box, number, words  # of the harness, as the style is
from programs import TITLES
from report import legend

WIDTH, LABEL, RIGHT = 1180, 300, 70
LINE, GAP, TOP, FOOT = 15, 9, 14, 26


def shown(value, digits=3):
    """A figure with so many digits that count."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def title(name):
    return TITLES.get(name, name)


class Dots:
    """Rows of dots on one logarithmic axis; a line through a dot spans the quartiles."""

    def __init__(self, unit, reference=None):
        self.unit, self.reference, self.rows, self.goals = unit, reference, [], {}

    def row(self, label, points, goal=None):
        """points: (series, class, value or spread) each."""
        points = [(name, colour, value if isinstance(value, dict) else {"median": value, "low": value, "high": value})
                  for name, colour, value in points if value]
        points = [point for point in points if point[2]["low"] > 0]
        if points:
            self.rows.append((label, points))
            if goal:
                self.goals[len(self.rows) - 1] = goal

    def range(self):
        ends = [value for _, points in self.rows for _, _, point in points for value in (point["low"], point["high"])]
        ends += list(self.goals.values()) + ([self.reference] if self.reference else [])
        low, high = min(ends), max(ends)
        return low / 1.3, high * 1.3

    def x(self, value):
        low, high = self.ends
        return LABEL + math.log(value / low) / math.log(high / low) * (WIDTH - LABEL - RIGHT)

    def ticks(self):
        low, high = self.ends
        steps = (1, 2, 5) if high / low < 2000 else (1,)
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
            for step in steps:
                if low <= step * 10 ** power <= high:
                    yield step * 10 ** power

    def draw(self):
        if not self.rows:
            return ""
        self.ends = self.range()
        parts, y = [], TOP
        for i, (label, points) in enumerate(self.rows):
            height = LINE * len(points)
            parts.append(words(LABEL - 14, y + height / 2 + 4, label, "name", "end"))
            if i in self.goals:
                x = self.x(self.goals[i])
                parts.append(f'<path class="goal" d="M{number(x)} {y - 2}v{height + 3}"><title>the goal</title></path>')
            for name, colour, value in points:
                parts.append(self.point(y + LINE / 2, name, colour, value))
                y += LINE
            y += GAP
        return (f'<svg class="wide" viewBox="0 0 {WIDTH} {y + FOOT}" role="img" aria-label="{escape(self.unit)}">'
                f'{self.axis(y)}{"".join(parts)}</svg>')

    def point(self, y, name, colour, value):
        x, low, high = (self.x(value[name]) for name in ("median", "low", "high"))
        text = shown(value["median"])
        line = f'<path class="whisker" d="M{number(low)} {number(y)}H{number(high)}"/>' if high > low else ""
        return (f'<g class="{colour}">{line}<circle class="dot" cx="{number(x)}" cy="{number(y)}" r="4.4">'
                f'<title>{escape(title(name))}: {text}</title></circle></g>' + words(high + 9, y + 4, text, "note"))

    def axis(self, bottom):
        parts = [f'<path class="grid" d="M{number(self.x(tick))} {TOP - 8}V{bottom}"/>'
                 + words(self.x(tick), bottom + 15, shown(tick, 1), "note", "middle") for tick in self.ticks()]
        if self.reference:
            parts.append(f'<path class="one" d="M{number(self.x(self.reference))} {TOP - 8}V{bottom}"/>')
        parts.append(words(LABEL - 14, bottom + 15, self.unit, "note", "end"))
        return "".join(parts)


def plot(heading, dots, names=()):
    drawn = dots.draw()
    if not drawn:
        return ""
    key = legend((box(4, 2, 9, 9, f"swatch {colour}"), title(name)) for name, colour in names) if names else ""
    return f'<h3>{escape(heading)}</h3><div class="card">{drawn}{key}</div>'


def table(heads, rows):
    """The first column is a name; cells are text."""
    def line(kind, cells):
        marked = (f'<{kind}{" class=n" if i else ""}>{escape(cell)}</{kind}>' for i, cell in enumerate(cells))
        return f'<tr>{"".join(marked)}</tr>'
    body = "".join(line("td", row) for row in rows)
    return f'<div class="card"><table>{line("th", heads)}{body}</table></div>'


def spread_text(value):
    if not value:
        return "-"
    if value["low"] == value["high"]:
        return f'{value["median"]:.2f}'
    return f'{value["median"]:.2f} ({value["low"]:.2f} to {value["high"]:.2f})'
