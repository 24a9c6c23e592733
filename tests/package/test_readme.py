#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_readme.py SOURCE BUILD - does what README.md and the pages that it leads to say: every command of them as it
stands, in order, on a copy of the tree, in namespaces of its own: so it may install into /usr/local and use the ports
of the page. And README.md is short, and what these pages link to, or name by its path, is there. The examples of
quorlock(1) follow, all of them in one shell.

The README's commands need nothing that is not in the tree. What the reader brings is here: the jobs of the manual's
examples, and a program's own folder for the section "From C and C++", where each block of code is the file that its
fence names. Commands that run this very test are not run but must be there.
"""
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is

from sandbox import INSIDE, NAMESPACES, SKIPPED, can_isolate, copy_tree, cover, run  # noqa: E402

LIMIT_S = 580
PAGES = ("README.md", "cluster/README.md", "tests/README.md")
LINES_MAX = 200       # of README.md
SCREEN = 24           # lines: what is seen of it at first
FIRST = ("./scripts/demo", "./scripts/test")
# What these name is there, too, but their commands need a build with tests.
NAMING = (*PAGES, ".github/CONTRIBUTING.md", ".github/SECURITY.md")
FILE = re.compile(r"`((?!build/)[\w.-]+(?:/[\w.-]+)+)`")
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")
OWN_FOLDER = "From C"
# They take minutes, or would run this test again; what they do is what the other tests do.
NOT_RUN = re.compile(r"^(QUORLOCK_INTEROP_SECONDS=60 \./|\./)?scripts/(demo|test|lint|bench)\b")
JOBS = {
    "make-report": 'test -n "$QUORLOCK_OWNER"',
    "store": 'test "$QUORLOCK_FENCE" -gt 0',
    "train": 'test "$QUORLOCK_SLOT" -ge 0 && test "$QUORLOCK_SLOT" -le 3',
    "serve": 'test "$QUORLOCK_KEYS" = catalog',
    "rebuild": 'test "$QUORLOCK_KEYS" = catalog',
    "reprice": 'test "$QUORLOCK_KEYS" = "prices\ncatalog"',
    "schedule": 'test "$QUORLOCK_TERM" -gt 0',
    "transfer": 'case "$QUORLOCK_KEYS" in "account:3\naccount:7" | "account:17\naccount:4") ;; *) exit 1 ;; esac',
    "report": 'test "$QUORLOCK_KEYS" = nightly-report',
    "print": 'test "$QUORLOCK_KEYS" = printer',
    "deploy": 'test "$QUORLOCK_KEYS" = deploy',
    "prepare": 'test "$1" = accounts && redis-cli -p 6380 EXISTS accounts | grep -q 1',
    "commit": 'test "$1" = accounts && redis-cli -p 6380 EXISTS accounts | grep -q 1',
}
# What quorlock(1) has for the reader's own servers; README's are up with another max lease.
BEFORE_EXAMPLES = """cluster/down
cluster/up --max-lease 1m
mkdir -p /etc/quorlock
(umask 077 && echo secret >/etc/quorlock/password)
for port in 6379 6380 6381; do redis-cli -p $port ACL SETUSER app on '>secret' '~*' '&*' +@all; done
"""
# Of its examples, what would never end, or only later than it must.
SHORTER = {"watch --json": "watch --once --json", "--seconds 10": "--seconds 1"}


def fail(text):
    sys.exit(f"test_readme: FAILED: {text}")


def blocks(text):
    """(section, language, file name or '', body) of each fenced block."""
    section, found, inside = "", [], None
    for line in text.splitlines():
        if inside is None and line.startswith("## "):
            section = line[3:]
        if not line.startswith("```"):
            if inside is not None:
                inside.append(line)
        elif inside is None:
            inside, language, name = [], *(line[3:].split() + ["", ""])[:2]
        else:
            found.append((section, language, name, "\n".join(inside) + "\n"))
            inside = None
    return found


# ---- outside: a copy of the tree, and a place to do it in ----

def outside(source):
    if not can_isolate("test_readme"):
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="quorlock-readme-") as folder:
        copy_tree(source, Path(folder) / "quorlock")
        return subprocess.run([*NAMESPACES, sys.executable, os.path.abspath(__file__)], timeout=LIMIT_S,
                              env={**os.environ, INSIDE: folder}, check=False).returncode


# ---- inside ----

def environment(folder):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("QUORLOCK", "CMAKE", "PKG_CONFIG", "LD_", "LIBRARY_PATH", "CPATH", "XDG_"))}
    # A cluster of its own, whatever is in the folder that all share. The default build type is that of the tests' own
    # build: here it would only take longer.
    path = ["/usr/local/sbin", "/usr/local/bin", os.environ["PATH"], "/usr/sbin", "/sbin"]
    return {**kept, "XDG_RUNTIME_DIR": str(folder), "PATH": ":".join(path), "CMAKE_BUILD_TYPE": "Debug",
            "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count())}


def shell(script, folder):
    lines = []
    for line in script.splitlines():
        if NOT_RUN.match(line):
            program = folder / line.split("=60 ")[-1].split()[0]
            if not os.access(program, os.X_OK):
                fail(f"{program} is not there: {line}")
        else:
            lines.append(line)
    if not any(line.strip() for line in lines):
        return ""
    print("\n".join("$ " + line for line in lines if line.strip()), flush=True)
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", "\n".join(lines)], cwd=folder, env=environment(folder.parent),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        fail(f"status {done.returncode} of\n{script}\n{done.stdout[-3000:]}")
    return done.stdout


def statement(text):
    """One newer than the newest writes, an older one does not."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE report (id INTEGER PRIMARY KEY, body TEXT, fence INTEGER)")
    database.execute("INSERT INTO report VALUES (1, '', 5)")
    for fence, rows in ((6, 1), (6, 0), (4, 0)):
        if database.execute(text, {"body": "x", "fence": fence}).rowcount != rows:
            fail(f"token {fence} should change {rows} rows: {text}")


def anchors(page):
    """Of its headings, as hosts of code make them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def check_names(tree, name):
    """What the page links to is there, and each file that it names by its path."""
    page, text = tree / name, (tree / name).read_text(encoding="utf-8")
    for path, anchor in LINK.findall(text):
        if path.startswith(("https://", "http://")):
            continue
        target = page.parent / path if path else page
        if not target.exists() or anchor and anchor not in anchors(target):
            fail(f"{name} links to {path}#{anchor}, which is not there")
    for path in FILE.findall(text):
        if not (tree / path).exists():
            fail(f"{name} names {path}, which is not there")


def check_pages(tree):
    for name in NAMING:
        check_names(tree, name)
    lines = (tree / "README.md").read_text(encoding="utf-8").splitlines()
    if len(lines) > LINES_MAX:
        fail(f"README.md has {len(lines)} lines, more than {LINES_MAX}: move what is not for everybody into src/man")
    for command in FIRST:
        if not any(line.startswith(command) for line in lines[:SCREEN]):
            fail(f"README.md does not have {command} in its first {SCREEN} lines")


def python(program, tree):
    """With the package that pip would install, and the library that is installed."""
    given = {**environment(tree.parent), "PYTHONPATH": str(tree / "src/python")}
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"status {done.returncode} of\n{program}\n{done.stderr[-3000:]}")


def follow(page, tree, mine):
    """Does what the page says; what its commands said, and how many blocks it has."""
    said, done = [], 0
    for section, language, name, body in blocks(page.read_text(encoding="utf-8")):
        place = mine if section.startswith(OWN_FOLDER) else tree
        if name:
            (place / name).write_text(body, encoding="utf-8")
        elif language == "sh":
            said.append(shell(body, place))
        elif language == "sql":
            statement(body)
        elif language == "python":
            python(body, tree)
        elif language:
            fail(f"nobody knows what to do with a block of {language} in {section}")
        done += 1
    return "".join(said), done


def examples(page, tree):
    """Does the examples of quorlock(1), in order, with the jobs that they name; what they said."""
    for name, body in JOBS.items():
        (tree / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tree / name).chmod(0o755)
    text = page.read_text(encoding="utf-8").split(".SH EXAMPLES\n")[1].split("\n.SH ")[0]
    script = "".join(re.findall(r"^\.nf\n(.*?)^\.fi$", text, flags=re.M | re.S)).replace("\\-", "-")
    for long, short in SHORTER.items():
        if long not in script:
            fail(f"no '{long}' in the examples of quorlock(1)")
        script = script.replace(long, short)
    if not shutil.which("jq"):
        script = "jq() { cat; }\n" + script
    return shell(BEFORE_EXAMPLES + script + "cluster/down\n", tree)


def inside(folder):
    tree, mine = folder / "quorlock", folder / "mine"
    mine.mkdir()
    run("ip", "link", "set", "lo", "up")
    for place in ("/usr/local", "/etc"):
        cover(folder / place.replace("/", "-"), place)
    check_pages(tree)
    told, done = "", 0
    for page in PAGES:
        said, count = follow(tree / page, tree, mine)
        told, done = told + said, done + count
    told += examples(tree / "src/man/quorlock.1", tree)
    for part in ("broken on ", "valid for ", "released", "nobody leads", "verdict: sound"):
        if part not in told:
            fail(f"'{part}' was never said: {told[-3000:]}")
    if done < 12:
        fail(f"only {done} blocks in {', '.join(PAGES)}")
    print(f"{done} blocks of {', '.join(PAGES)}, and the examples of quorlock(1), hold")
    return 0


if __name__ == "__main__":
    if INSIDE in os.environ:
        sys.exit(inside(Path(os.environ.pop(INSIDE))))
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    sys.exit(outside(sys.argv[1]))
