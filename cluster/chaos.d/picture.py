# SPDX-License-Identifier: BSD-3-Clause
"""The picture of a run: one small SVG for light and dark pages, without scripts or other files."""
import re
from html import escape

import report
from drawing import COLOURS, LABEL, SHAPES, Detail, number, words
from lanes import paint

WIDTH, MARGIN, TOP = 900, 14, 36
LETTER_PX = 6.1       # for each letter of the legend; a bit more than needed
LINE_PX = 19

STYLE = """
.ground { fill: var(--card); stroke: var(--hair) } text.head { font-size: 15px; font-weight: 650; fill: var(--ink) }
text.sum { font-size: 12.5px } text.sign { font-size: 12px }
"""


def summary(verdict, picture):
    counts = ((len(picture.clients), "process", "processes"), (len(picture.keys), "lock"), (len(picture.nodes), "Redis server"),
              (sum(picture.survived.values()), "fault"), (verdict.counts.get("grants", 0), "grant"),
              (sum(verdict.kinds(False).values()), "violation"))
    return ", ".join(report.plural(*count) for count in counts)


def legend(signs, drawn, y):
    """The legend of the signs in the drawing: (markup, its height)."""
    x, parts = MARGIN, []
    for sign, text in signs:
        if not set(re.findall(r'class="[^"]*"', sign)) & drawn:
            continue
        width = 33 + len(text) * LETTER_PX
        if x + width > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE_PX
        parts.append(f'<g transform="translate({number(x)},{y})">{sign}</g>' + words(x + 33, y + 10, text, "sign"))
        x += width + 14
    return "".join(parts), y + LINE_PX


def render(events, verdict):
    """events as history.parse gives them, verdict of the same events."""
    picture = paint(events, verdict)
    _, _, title, explanation = report.headline(verdict)
    detail = Detail(picture, verdict, WIDTH - LABEL - 2 * MARGIN)
    side, strip, _ = detail.draw()
    height = int(re.search(r'height="(\d+)"', strip)[1])
    signs, bottom = legend(report.signs_of(picture), set(re.findall(r'class="[^"]*"', strip)), TOP + height + 12)
    about = f"{explanation} {report.circumstances(picture.run, verdict, picture)}"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 4}" role="img">
<title>{escape(title)}</title><desc>{escape(about)}</desc><style>{COLOURS}{SHAPES}{STYLE}</style>
<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{bottom + 3}" rx="10"/>
{words(MARGIN, 27, title, "head")}{words(WIDTH - MARGIN, 27, summary(verdict, picture), "sum", "end")}
<g transform="translate({MARGIN},{TOP})">{side}</g><g transform="translate({MARGIN + LABEL},{TOP})">{strip}</g>
{signs}
</svg>
"""


def drawn(name, events, verdict):
    """The content for a file of this name: the picture alone, or the whole page."""
    return render(events, verdict) if name.endswith(".svg") else report.render(events, verdict)
