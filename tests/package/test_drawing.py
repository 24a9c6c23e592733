#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_drawing.py SOURCE BUILD - the drawing of one acquire in README.md: the committed file is what its program draws,
its times are those of the library's defaults, and it is an image that needs and runs nothing else."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

sys.dont_write_bytecode = True  # the tree stays as it is
TEXT = "{http://www.w3.org/2000/svg}text"


def check(true, text):
    if not true:
        sys.exit(f"test_drawing: FAILED: {text}")


def times(source):
    """The rule once more, by other numbers than those of the drawing, and the defaults as the library has them."""
    sys.path.insert(0, str(source / "scripts/lib"))
    import acquire  # pylint: disable=import-outside-toplevel
    options = (source / "src/runtime/options.c").read_text(encoding="utf-8")
    for name in ("DRIFT_PPM", "DRIFT_FIXED_MS"):
        default = int(re.search(rf"#define DEFAULT_{name} +(\d+)u", options)[1])
        check(getattr(acquire, name) == default, f"{name} is {getattr(acquire, name)} in the drawing, {default} in the library")
    for lease_ms, answers, wanted in ((10000, (9, 5, None), (9, 102, 9889, 9694)),
                                      (250, (90, None, 20, 10, 30), (30, 5, 215, 235))):
        nodes = {f"node {i}": at and (at // 2, at) for i, at in enumerate(answers)}
        found = acquire.Acquire(lease_ms, nodes)
        found = (found.granted_ms, found.drift_ms, found.valid_ms, found.lost_ms)
        check(found == wanted, f"lease {lease_ms}, answers at {answers}: {found}, not {wanted}")
    return acquire.Acquire()


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    source = Path(sys.argv[1]).resolve()
    program, committed = source / "scripts/lib/acquire.py", source / "cluster/acquire.svg"
    text = committed.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="quorlock-drawing-") as folder:
        drawn = Path(folder, "acquire.svg")
        done = subprocess.run([sys.executable, str(program), str(drawn)], capture_output=True, text=True, check=False)
        check(done.returncode == 0, done.stderr)
        check(drawn.read_text(encoding="utf-8") == text,
              "cluster/acquire.svg is not what its program draws: python3 scripts/lib/acquire.py cluster/acquire.svg")
    shown = times(source)
    said = " ".join(found.text for found in ElementTree.fromstring(text).iter(TEXT))
    for part in (f"elapsed {shown.granted_ms} ms", f"valid for {shown.valid_ms} ms", f"drift {shown.drift_ms} ms",
                 f"notified of the loss at {shown.lost_ms} ms"):
        check(part in said, f"'{part}' is not in the drawing")
    check(re.search("<script|href|<image|@import|url\\((?!#)", text) is None, "the drawing needs, or runs, something else")
    print(f"the drawing of an acquire is up to date: valid for {shown.valid_ms} ms")


if __name__ == "__main__":
    main()
