#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_docs.py SOURCE BUILD - makes the web pages of scripts/docs, and follows each of their links inside of them."""
import os
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

SKIPPED = 77
LIMIT_S = 120


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, _, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src"):
                self.links.append(value)


def faults_of(out):
    pages = {path: Page(path) for path in out.rglob("*.html")}
    reached = set()
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(("https://", "http://")):
                continue
            target, _, anchor = link.partition("#")
            there = Path(os.path.normpath(path.parent / target)) if target else path
            reached.add(there)
            if not there.is_file() or out not in there.parents:
                yield f"{path}: {link}: there is no such file"
            elif anchor and anchor not in pages[there].ids:
                yield f"{path}: {link}: there is no such heading"
    yield from (f"{path}: no page leads there" for path in pages if path not in reached)


def main():
    source = Path(sys.argv[1])
    for tool in "mandoc", "cmark-gfm":
        if shutil.which(tool) is None:
            print(f"SKIPPED {tool} is missing: scripts/setup --for more installs it")
            return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder).resolve() / "docs"
        subprocess.run([source / "scripts/docs", "--out", out], check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
        faults = list(faults_of(out))
        made = {str(path.relative_to(out)) for path in out.rglob("*")}
        wanted = {f"src/man/{page.name}.html" for page in (source / "src/man").iterdir()}
        faults += [f"{name} is missing" for name in wanted | {"README.html", "cluster/acquire.svg", "cluster/chaos.svg"}
                   if name not in made]
        if 'href="quorlock_lock_new.3.html"' not in (out / "src/man/quorlock.3.html").read_text(encoding="utf-8"):
            faults.append("a page of the manual does not link to another one")
    print("\n".join(faults))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
