# SPDX-License-Identifier: BSD-3-Clause
"""naming.py FILE... - do the names of the public headers follow the rules by which they are frozen?

A function is quorlock_NOUN_VERB. No two enums have one prefix. Each type of a callback has a name, and gets its argument
last. A declaration has one array at most: the FFI of PHP 8.2 reads those of `char a[8], b[8];` wrongly. The table of an event
loop, loop.h, is the caller's, and has other rules.

Prints a finding a line, and exits with 1 if there is one.
"""
import re
import sys
from pathlib import Path

PUBLIC = Path("include/quorlock")
NOUNS = ("sync_client sync_lock sync_candidate sync_observer client lock candidate observer settings credentials status owner "
         "bootstrap metrics").split()
FUNCTION = re.compile(rf"quorlock_(({'|'.join(NOUNS)})_[a-z0-9_]+|version)")
# The one enumerator that is named as all libraries name it.
ALONE = "QUORLOCK_OK"


def prefix_of(names):
    """What all begin with, up to an underscore."""
    front = names[0]
    for name in names:
        while not name.startswith(front):
            front = front[:-1]
    return front[:front.rindex("_") + 1]


def check(path, prefixes):
    text = re.sub(r"/\*.*?\*/", lambda comment: re.sub(r"[^\n]", " ", comment[0]), path.read_text(encoding="utf-8"), flags=re.S)

    def found(at, what):
        return f"{path}:{text.count(chr(10), 0, at) + 1}: {what}"

    for call in re.finditer(r"^QUORLOCK_API [^;(]*?(\w+)\(", text, re.M):
        if not FUNCTION.fullmatch(call[1]):
            yield found(call.start(1), f"{call[1]} is not quorlock_NOUN_VERB with one of the nouns {', '.join(NOUNS)}")
    for enum in re.finditer(r"^enum (\w+) \{(.*?)\}", text, re.M | re.S):
        names = [name for name in re.findall(r"\bQUORLOCK_\w+", enum[2]) if name != ALONE]
        front = prefix_of(names)
        for other, of in prefixes.items():
            if front.startswith(other) or other.startswith(front):
                yield found(enum.start(), f"the names of enum {enum[1]} begin with {front}, as those of enum {of} do; rename them")
        prefixes[front] = enum[1]
    for pointer in re.finditer(r"^( *)(typedef )?[^;{}\n]*\(\*\s*(\w+)\)\(([^;]*?)\)[;,]", text, re.M):
        if not pointer[2]:
            yield found(pointer.start(3), f"the type of {pointer[3]} has no name; write a typedef ..._cb")
        elif not pointer[3].endswith("_cb") or not re.search(r"void \*arg$", pointer[4]):
            yield found(pointer.start(3), f"{pointer[3]} does not end with _cb, or does not get `void *arg` last")
    for many in re.finditer(r"^ +\w[^;(){}]*(?:\[[^;(){}]*,|,[^;(){}]*\[)[^;(){}]*;", text, re.M):
        yield found(many.start(), f"'{many[0].strip()}' declares an array and more; give each a declaration of its own")


def main():
    prefixes, count = {}, 0
    for path in map(Path, sys.argv[1:]):
        if path.parent != PUBLIC or path.suffix != ".h" or path.name == "loop.h":
            continue
        for finding in check(path, prefixes):
            print(finding)
            count += 1
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
