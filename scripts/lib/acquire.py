# SPDX-License-Identifier: BSD-3-Clause
"""Draws cluster/acquire.svg, the picture of one acquire in README.md, to scale.

usage: acquire.py FILE.svg
"""
import sys
from math import ceil
from pathlib import Path

sys.dont_write_bytecode = True  # leave the tree unchanged
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cluster/chaos.d"))

from drawing import COLOURS, SHAPES, box, number, patterns, words  # noqa: E402
from picture import STYLE  # noqa: E402

# For each node: when it executed the request, and when the client read its yes; None: the node is frozen.
LEASE_MS = 1000
NODES = {"node 1": (20, 40), "node 2": (40, 80), "node 3": None}
DRIFT_PPM, DRIFT_FIXED_MS = 10000, 2
LOST_MARGIN_MS_MIN = 10
NTH = ("first", "second", "third", "fourth")

WIDTH, MARGIN, LEFT, PX_MS = 900, 14, 66, 0.74
CLIENT_Y, NODES_Y, BAR, STEP = 84, 138, 20, 28
OWN_STYLE = """
.arrow { fill: none; stroke: var(--ink); stroke-width: 1.2 } .head { fill: var(--ink) } .measure { stroke: var(--soft); fill: none }
.asks { fill: var(--k0); opacity: .34 } .margin { fill: var(--warn) } .drift { fill: var(--still) } text.in { fill: var(--label) }
text.on { fill: var(--card); font-size: 11.5px }
"""


class Acquire:
    """The times of one acquire, in ms since its requests were sent."""

    def __init__(self, lease_ms=LEASE_MS, nodes=None):
        self.lease_ms, self.nodes = lease_ms, nodes or NODES
        self.quorum = len(self.nodes) // 2 + 1
        # The answer that completes the quorum.
        self.granted_ms = sorted(times[1] for times in self.nodes.values() if times)[self.quorum - 1]
        self.drift_ms = ceil(lease_ms * DRIFT_PPM / 1e6) + DRIFT_FIXED_MS
        self.ends_ms = lease_ms - self.drift_ms
        self.valid_ms = self.ends_ms - self.granted_ms
        self.lost_ms = self.ends_ms - max(2 * self.drift_ms, LOST_MARGIN_MS_MIN)


def x(ms):
    return MARGIN + LEFT + ms * PX_MS


def arrow(from_ms, from_y, to_ms, to_y, up):
    tip = 5 if up else -5
    return (f'<path class="arrow" d="M{number(x(from_ms))} {from_y}L{number(x(to_ms))} {to_y + tip}"/>'
            f'<path class="head" d="M{number(x(to_ms))} {to_y}l-3 {tip * 1.4:.0f}h6z"/>')


def measure(from_ms, to_ms, text, anchor="middle"):
    """A span of time above the client's bar."""
    y = CLIENT_Y - 12
    place = {"middle": x((from_ms + to_ms) / 2), "start": x(from_ms), "end": x(to_ms)}[anchor]
    return (f'<path class="measure" d="M{number(x(from_ms))} {y - 4}v8m0 -4H{number(x(to_ms))}m0 -4v8"/>'
            + words(place, y - 9, text, "name", anchor))


def client(acquire):
    bars = ((0, acquire.granted_ms, "asks"), (acquire.granted_ms, acquire.lost_ms, "hold k0"),
            (acquire.lost_ms, acquire.ends_ms, "margin"), (acquire.ends_ms, acquire.lease_ms, "drift"))
    yield words(MARGIN, CLIENT_Y + 14, "client", "name")
    for start, end, names in bars:
        yield box(x(start), CLIENT_Y, (end - start) * PX_MS, BAR, names)
    yield words(x(acquire.granted_ms) + 8, CLIENT_Y + 14, "the lock is held", "on")
    yield words(x(acquire.granted_ms) + 8, CLIENT_Y + BAR + 15, f"the {NTH[acquire.quorum - 1]} yes makes the quorum: "
                f"{acquire.quorum} of {len(acquire.nodes)} nodes", "name")
    yield measure(0, acquire.granted_ms, f"elapsed {acquire.granted_ms} ms", "start")
    yield measure(acquire.granted_ms, acquire.ends_ms, f"valid for {acquire.valid_ms} ms, if it is not renewed")
    yield measure(acquire.ends_ms, acquire.lease_ms, f"drift {acquire.drift_ms} ms", "start")


def node(acquire, name, times, y):
    yield words(MARGIN, y + 14, name, "name")
    if times is None:
        yield box(x(0), y, acquire.lease_ms * PX_MS, BAR, "dstopped")
        yield words(x(acquire.granted_ms) + 8, y + 14, "frozen: it does not answer, and the client does not wait for it", "in")
        yield arrow(0, CLIENT_Y + BAR, acquire.granted_ms - 20, y, False)
        return
    came_ms, answered_ms = times
    yield box(x(came_ms), y, acquire.lease_ms * PX_MS, BAR, "up")
    yield words(x(acquire.granted_ms) + 8, y + 14, f"keeps the key for one lease, until {came_ms + acquire.lease_ms} ms", "in")
    yield arrow(0, CLIENT_Y + BAR, came_ms, y, False)
    yield arrow(came_ms, y, answered_ms, CLIENT_Y + BAR, True)


def explanation(acquire):
    return (f"valid = lease {acquire.lease_ms} ms - elapsed {acquire.granted_ms} ms - drift {acquire.drift_ms} ms. The drift allows for "
            f"clocks of different speed: {DRIFT_PPM // 10000} % of the lease and {DRIFT_FIXED_MS} ms.",
            f"The client renews the lock at every third of the lease, here after {acquire.lease_ms // 3} ms, and has the full time again.",
            f"If no renewal succeeds, the owner is notified of the loss at {acquire.lost_ms} ms (orange), before another client can get "
            "the lock.")


def render(acquire):
    parts, y = list(client(acquire)), NODES_Y
    for name, times in acquire.nodes.items():
        parts += node(acquire, name, times, y)
        y += STEP
    for ms in range(0, acquire.lease_ms + 1, acquire.lease_ms // 5):
        parts.append(f'<path class="tick" d="M{number(x(ms))} {y - 4}v4"/>' + words(x(ms), y + 11, f"{ms} ms", "note", "middle"))
    y += 36
    for line in explanation(acquire):
        parts.append(words(MARGIN, y, line, "sign"))
        y += 18
    title = f"One acquire on {len(acquire.nodes)} nodes"
    body = "\n".join(parts)
    return f"""<!-- SPDX-License-Identifier: BSD-3-Clause -->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img">
<title>{title}</title><desc>{" ".join(explanation(acquire))}</desc><style>{COLOURS}{SHAPES}{STYLE}{OWN_STYLE}</style>
<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{y - 1}" rx="10"/>
{words(MARGIN, 27, title, "head")}{words(WIDTH - MARGIN, 27, f"lease {acquire.lease_ms} ms", "sum", "end")}
{patterns("d")}{body}
</svg>
"""


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("usage: ")[1].strip())
    Path(sys.argv[1]).write_text(render(Acquire()), encoding="utf-8")
