#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""page.py SOURCE BUILD [--update]: the generated parts of quorlock(1), quorlock-interop(7), quorlock-servers(7) and the README of
the Python package are what the tables say that the tests run.

With --update it writes them.
"""
import pathlib
import re
import sys
import textwrap

sys.dont_write_bytecode = True  # the tree stays as it is
HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE / name) for name in ("locks", "servers", "runtimes", "programs", "../integration")]

import programs
import runtimes
import servers
import steps
import table as locks
import test_replication as replication

REGISTRIES = {"python": "PyPI", "node": "npm", "java": "Maven"}
UPDATE = "tests/interop/page.py . build --update"


def roff(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False).replace("\\", "\\e").replace("-", "\\-")


def entry(name, text):
    return f".TP\n.B {roff(name)}\n{roff(text)}\n"


def given(options):
    return f"Give quorlock {' '.join(options)}." if options else "quorlock needs no option."


def lock_entry(lock):
    return entry(lock.name, f"{REGISTRIES[lock.runtime]} {lock.package}. The key of job is {lock.key}; its value is "
                 f"{lock.value_in_words}. A waiter {lock.waits}. {given(lock.options)}")


def peer_entry(peer):
    return entry(peer.name, f"{peer.package}. A waiter {peer.waits}. {given(peer.options)}")


def one_server():
    return "".join(lock_entry(lock) for lock in locks.LOCKS if lock.servers == "one")


def quorum():
    return "".join(map(peer_entry, locks.PEERS)) + "".join(lock_entry(lock) for lock in locks.LOCKS if lock.servers == "quorum")


def waking():
    """What to write in a shell, for each lock whose waiters sleep."""
    made = ""
    for lock in filter(lambda lock: lock.wake, locks.LOCKS):
        commands = "\n".join(f"redis-cli -h HOST {command}" for command in lock.wake)
        text = f"quorlock run {' '.join(lock.options)} job -- CMD; status=$?\n{commands}\nexit $status\n".replace("-", "\\-")
        made += f".TP\n.B {roff(lock.name)}\n.nf\n{text}.fi\n"
    return made


def all_steps():
    return roff("; ".join(steps.STEPS) + ".") + "\n"


def server_entry(server):
    refused = " quorlock bootstrap refuses it, and nothing works." if server.refused else ""
    return entry(server.name, f"{server.source}.{refused} {server.note}".rstrip())


def listed(table):
    return lambda: "".join(map(server_entry, table))


def miniredis():
    """What the test's own program does."""
    text = (HERE / "servers/miniredis/main.go").read_text(encoding="utf-8")
    setup = textwrap.dedent("\t\tm.ClockTTL" + text.split("\t\tm.ClockTTL")[1].split("\n\t}\n")[0] + "\n")
    return setup.replace("\t", "    ").replace("\\", "\\e").replace("-", "\\-")


def columns(heads, rows):
    """Lines in columns, for .nf."""
    rows = [heads, *rows]
    widths = [max(len(row[column]) for row in rows) + 3 for column in range(len(heads))]
    lines = ("".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
    return ".nf\n" + "".join(line.replace("\\", "\\e").replace("-", "\\-") + "\n" for line in lines) + ".fi\n"


def of_programs():
    return columns(("", "lock lost", "TERM"), [(program.name, program.loss, program.term) for program in programs.PROGRAMS])


def of_replication():
    heads = ("", *(field.removeprefix("master_") for field in replication.FIELDS[:3]), "taken")
    return columns(heads, [(function.__doc__, *shown) for function, shown in replication.CASES])


def of_python():
    """In Markdown."""
    rows = [("runtime", "tried with", "what waits", ""), ("---",) * 4]
    for runtime in runtimes.RUNTIMES:
        found = " and ".join(package.replace("==", " ") for package in runtime.packages)
        rows.append((runtime.name, found, runtime.unit, runtime.note))
    return "- " + ";\n- ".join(runtimes.PROMISES) + ".\n\n" + "".join(" ".join(["|", *(f"{cell} |" for cell in row)]).replace("|  |", "| |") + "\n" for row in rows)


PAGES = {
    "src/man/quorlock.1": {"programs": of_programs},
    "src/python/README.md": {"runtimes": of_python},
    "src/man/quorlock-interop.7": {"one server": one_server, "quorum": quorum, "waking": waking},
    "src/man/quorlock-servers.7": {"steps": all_steps, "servers": listed(servers.SERVERS), "doubles": listed(servers.DOUBLES),
                                   "miniredis": miniredis, "proxies": listed(servers.PROXIES),
                                   "replication": of_replication},
}


def renewed(text, parts, markdown):
    begins, ends = ("<!-- ", " -->\n") if markdown else ('.\\" ', "\n")
    for name, made in parts.items():
        begin, end = f"{begins}made by tests/interop/page.py: {name}{ends}", f"{begins}end of what is made{ends}"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
        if not pattern.search(text):
            sys.exit(f"page.py: FAILED: there is no part '{name}'")
        text = pattern.sub(lambda _, part=begin + made() + end: part, text)
    return text


def main():
    source = pathlib.Path(sys.argv[1])
    for peer in locks.PEERS:
        if peer.pinned not in (HERE / peer.file).read_text(encoding="utf-8"):
            sys.exit(f"page.py: FAILED: {peer.file} has no {peer.pinned}; mend tests/interop/locks/table.py")
    pinned = (HERE / "locks/package.json").read_text(encoding="utf-8")
    for lock in locks.LOCKS:
        name, version = lock.package.split()
        if lock.runtime == "node" and f'"{name}": "{version}"' not in pinned:
            sys.exit(f"page.py: FAILED: locks/package.json has no {lock.package}; mend tests/interop/locks/table.py")
    for name, parts in PAGES.items():
        page = source / name
        text = page.read_text(encoding="utf-8")
        wanted = renewed(text, parts, name.endswith(".md"))
        if "--update" in sys.argv:
            page.write_text(wanted, encoding="utf-8")
        elif text != wanted:
            sys.exit(f"page.py: FAILED: {name} is not what its tables say; run {UPDATE}")
    print(f"{', '.join(PAGES)}: as the tables say")


main()
