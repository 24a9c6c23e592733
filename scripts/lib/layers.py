# SPDX-License-Identifier: BSD-3-Clause
"""Checks which folder of the sources uses which other one, and other rules that need more than one line to check.

Reads the files as text, without a build, and prints what is wrong as FILE:LINE:
what, and what to do. Exit status: 0 clean, 1 findings.

usage: layers.py FILE.c FILE.h ...    (all of the tree, from its root)
"""
import os
import re
import sys
from collections import namedtuple

# FOLDER: the folders, or single files, that its files may include and call besides their own folder. A file may have an
# entry of its own, which replaces its folder's.
LAYERS = {
    "include/quorlock": "",
    "include/quorlock/adapters": "include/quorlock",
    "src/base": "include/quorlock",
    "src/core": "src/base/protocol.h",
    "src/redis/wire": "src/base",
    "src/redis/dialect": "include/quorlock src/base src/redis/wire",
    "src/redis/link": "src/base src/redis/wire src/redis/dialect",
    "src/redis/link/loaded": "include/quorlock src/redis/link",
    "src/redis": "include/quorlock src/base src/redis/wire src/redis/dialect src/redis/link",
    "src/runtime": "include/quorlock src/base src/core src/redis src/redis/link",
    "src/lock": "include/quorlock src/base src/core src/redis src/runtime",
    "src/admin": "include/quorlock src/base src/redis src/redis/dialect src/runtime",
    "src/election": "include/quorlock src/base src/core src/runtime src/lock src/admin",
    "src/settings": "include/quorlock src/base",
    "src/api": "include/quorlock src/base src/runtime src/lock src/admin src/election src/settings",
    "src/base/system_os.c": "include/quorlock include/quorlock/adapters src/base",
    "src/api/sync.c": "include/quorlock src/base src/api/client.c src/api/client.h src/api/sync_loop.c "
                          "src/api/sync_loop.h src/api/sync_election.c src/api/sync_election.h "
                          "src/api/sync_events.c src/api/sync_events.h src/api/sync_report.c "
                          "src/api/sync_report.h",
    "src/api/sync_election.c": "include/quorlock src/base src/api/client.c src/api/client.h "
                                   "src/api/sync_loop.c src/api/sync_loop.h src/api/sync_election.h "
                                   "src/api/sync_events.c src/api/sync_events.h",
    "src/api/sync_loop.c": "include/quorlock src/base src/api/sync_loop.h src/api/sync_events.c "
                               "src/api/sync_events.h",
    "src/api/sync_loop.h": "include/quorlock src/base src/api/sync_events.h",
    "src/api/sync_report.c": "include/quorlock src/api/sync_report.h",
    "src/api/sync_report.h": "include/quorlock",
    "src/api/sync_events.c": "include/quorlock src/base src/api/sync_events.h",
    "src/api/sync_events.h": "include/quorlock src/base",
    "src/bench": "include/quorlock src/base src/redis/wire src/redis/link",
    "src/cli": "include/quorlock src/bench src/settings",
}
# These use the library as any program does: a function of quorlock.h belongs to the header for them, not to its file.
PROGRAMS = ("src/api/sync.c src/api/sync_loop.c src/api/sync_election.c src/api/sync_events.c "
            "src/api/sync_report.c src/bench src/cli").split()
# FOLDER: the system headers that it may include.
SYSTEM = {
    "src/core": "assert.h inttypes.h limits.h stdbool.h stddef.h stdint.h string.h",
    "include/quorlock": "inttypes.h limits.h stdarg.h stdbool.h stddef.h stdint.h",
}
# HEADERS: the only folders and files that may include them. Access to the system, and memory, go through src/base.
BASE = ("include/quorlock/adapters src/base src/api/sync.c src/api/sync_loop.c src/api/sync_loop.h "
        "src/api/sync_election.c src/api/sync_events.c src/api/sync_events.h src/api/sync_report.c src/settings src/bench src/cli "
        "src/redis/link/loaded/tls_load.c")
ONLY = {
    "hiredis/": "src/bench",
    "openssl/": "src/redis/link",
    "event2/ event.h evutil.h": BASE,
    "fcntl.h netdb.h poll.h pthread.h signal.h sys/random.h sys/time.h sys/timerfd.h time.h unistd.h": BASE,
}
# System functions under the same rule, which are in headers that all files need for their types.
CALLS = set("""abort accept bind calloc clock_gettime close connect exit free getaddrinfo getpeername getrandom getsockname
    getsockopt gettimeofday listen malloc nanosleep open poll printf puts rand random read realloc recv recvfrom recvmsg
    select send sendmsg sendto setsockopt shutdown sleep socket strdup strndup time usleep write""".split())
# FILE: the one that a program links in its place, with the same names.
IN_PLACE_OF = {"src/redis/link/loaded/tls_load.c": "src/redis/link/tls.c"}
# Folders with at least one assertion for every two functions.
ASSERTED = "src/core src/lock src/runtime".split()
# Generated headers, and the folders that own them.
GENERATED = {"scripts.h": "src/redis/dialect"}

# The text of a file without comments and strings; `body` also without declarations. `defined` are the functions
# and objects that other files can use, `statics` its own, `declared` what a header declares: name -> line.
# `functions` are all functions of the file: name -> text between the braces.
Source = namedtuple("Source", "path code raw body defined statics declared functions")
# One use of another file: `text` says how, target is the file, or the folder of a header that the build makes.
Use = namedtuple("Use", "path line target text")

findings = []


def finding(path, line, text):
    findings.append(f"{path}:{line}: {text}")


# ---- reading the sources

NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
ASSIGN = re.compile(r"(?<![=!<>])=(?!=)")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)", re.S)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(\S[^\n]*)", re.M)
WORD = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")


def blank(hit):
    """Replaces all but line breaks by blanks; a string keeps its quotes."""
    text = hit[0]
    front = '""' if text[0] == '"' else ""
    return front + re.sub(r"[^\n]", " ", text[len(front):])


def keep_macro(hit):
    return hit[0] if re.match(r"[ \t]*#[ \t]*define", hit[0]) else blank(hit)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def is_function(head):
    """Returns the end of a definition: a function ends at its brace, a struct or initializer at the semicolon behind it."""
    return "(" in head and not ASSIGN.search(head)


def top_level(plain):
    """Yields (start, end of the head, end) of each declaration and definition outside of all braces."""
    start = depth = 0
    head_end = None
    for mark in re.finditer(r"[{};]", plain):
        at = mark.start()
        if mark[0] == "{":
            if depth == 0 and re.search(r'extern\s*""\s*$', plain[start:at]):
                start = at + 1
                continue
            if depth == 0 and head_end is None:
                head_end = at
            depth += 1
        elif mark[0] == "}" and depth > 0:
            depth -= 1
        if depth == 0 and (mark[0] == ";" or head_end is not None and is_function(plain[start:head_end])):
            yield start, at if head_end is None else head_end, at + 1
            start, head_end = at + 1, None


def read(path):
    """Reads the file as a Source. Declarations and members of structs do not count as mentions."""
    with open(path, encoding="utf-8", errors="replace") as file:
        raw = file.read()
    code = NOISE.sub(blank, raw)
    plain = DIRECTIVE.sub(blank, code)
    body, defined, statics, declared, functions = code, {}, {}, {}, {}
    for start, head_end, end in top_level(plain):
        head, opens = ATTRIBUTE.sub(blank, plain[start:head_end]), plain[head_end] == "{"
        gets = ASSIGN.search(head)
        name = re.search(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*=" if gets else r"\b(\w+)\s*\(", head)
        if name and not re.search(r"\btypedef\b|_Static_assert", head):
            kind = declared if not opens and not gets else statics if re.search(r"\bstatic\b", head) else defined
            kind[name[1]] = line_of(plain, start + name.start(1))
            if opens and not gets:
                functions[name[1]] = plain[head_end:end]
        if not gets and not (opens and name):
            # Macros between declarations are kept.
            gone = re.sub(DIRECTIVE.pattern + "|[^\\n]", keep_macro, body[start:end], 0, re.M)
            body = body[:start] + gone + body[end:]
    return Source(path, code, raw, body, defined, statics, declared, functions)


# ---- who uses whom

def folder_of(path):
    return os.path.dirname(path) if path.endswith((".c", ".h")) else path


def module_of(path):
    """NAME.c and NAME.h of one folder are one module."""
    return os.path.splitext(path)[0] if path.endswith((".c", ".h")) else path


def includes(sources):
    """Yields (path, line, name, the file that is meant or None) of every #include; name is "" for a macro."""
    paths = {source.path for source in sources}
    for source in sources:
        for hit in INCLUDE.finditer(source.code):
            line = line_of(source.code, hit.start())
            name = re.match(r'[<"]([^>"]*)', source.raw[hit.start(1):])
            name = name[1] if name else ""
            places = (os.path.normpath(os.path.join(base, name)) for base in (folder_of(source.path), "src", "include"))
            yield source.path, line, name, next((p for p in places if p in paths), GENERATED.get(name))


def uses_by_include(sources):
    return [Use(path, line, target, f'includes "{name}"') for path, line, name, target in includes(sources) if target]


def uses_by_call(sources):
    """Yields each mention of a definition of another file, with or without its header: a call, or an address."""
    owner = {name: source.path for source in sources for name in source.defined}
    public = {name: s.path for s in sources if folder_of(s.path) == "include/quorlock" for name in s.declared}
    uses = []
    for source in sources:
        seen = set(source.statics)
        for hit in WORD.finditer(source.body):
            name = hit[0]
            if name in seen or name not in owner:
                continue
            if re.search(r"\b(struct|union|enum)\s+$", source.body[max(0, hit.start() - 12):hit.start()]):
                continue
            seen.add(name)
            target = public.get(name, owner[name]) if row_of(source.path) in PROGRAMS else owner[name]
            uses.append(Use(source.path, line_of(source.body, hit.start()), target, f"uses {name}"))
    return [use for use in uses if module_of(use.path) != module_of(use.target)]


def row_of(path):
    return path if path in LAYERS else folder_of(path)


# ---- the rules

def rule_layers(sources, uses):
    """A file may include and call only what its entry in the table names."""
    for source in sources:
        if row_of(source.path) not in LAYERS:
            finding(source.path, 1, f"{folder_of(source.path)} has no row in the table of scripts/lib/layers.py")
    for path, line, target, text in uses:
        row, folder = row_of(path), folder_of(target)
        if row not in LAYERS:
            continue
        if folder != row and not {folder, target} & set(LAYERS[row].split()):
            finding(path, line, f"{text}: {row} may not know {folder}; let the upper layer register a callback, or "
                                f"move what both need below them")


def rule_headers(sources):
    """Headers of the system and of other libraries may be included only where the table allows them."""
    for path, line, name, target in includes(sources):
        if target:
            continue
        folder = folder_of(path)
        if not name:
            finding(path, line, "includes by a macro, which hides what; write the name")
        elif folder in SYSTEM and name not in SYSTEM[folder].split():
            finding(path, line, f"{folder} may include only {SYSTEM[folder]}; pass in what <{name}> would give")
        for headers, allowed in ONLY.items():
            if name.startswith(tuple(headers.split())) and not {path, folder} & set(allowed.split()):
                finding(path, line, f"only {' and '.join(allowed.split())} may include <{name}>; go through them")


def rule_names(sources):
    """No two files define the same name, static or not, so that a name in a profile or backtrace identifies its file."""
    first = {}
    for source in sources:
        for name, line in {**source.defined, **source.statics}.items():
            path = IN_PLACE_OF.get(source.path, source.path)
            if first.setdefault(name, path) != path:
                finding(source.path, line, f"{name} is defined in {first[name]} too; begin it with the name of its file")


def rule_calls(sources):
    """Only src/base and the programs may ask the system for time, random bytes, sockets or memory."""
    for source in sources:
        if {source.path, folder_of(source.path)} & set(BASE.split()):
            continue
        for hit in WORD.finditer(source.body):
            name = hit[0]
            if name in CALLS and name not in source.statics and source.body[hit.end():hit.end() + 1] == "(":
                finding(source.path, line_of(source.body, hit.start()), f"calls {name}(); ask src/base for it")


def circles(arrows):
    """The strongly connected components of more than one node (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(arrows.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def rule_circles(uses, node_of, what):
    """No circles of files or folders; one finding for each group."""
    arrows = {}
    for use in uses:
        a, b = node_of(use.path), node_of(use.target)
        if a != b:
            arrows.setdefault(a, {}).setdefault(b, use)
    for group in circles(arrows):
        inner = [(a, b, arrows[a][b]) for a in group for b in sorted(arrows[a]) if b in group]
        lines = "".join(f"\n    {a} -> {b}: {use.path}:{use.line}: {use.text}" for a, b, use in inner)
        finding(inner[0][2].path, inner[0][2].line, f"a circle of {len(group)} {what}; let each arrow go one way, and "
                                                    f"answers come back by a callback or a result:{lines}")


def rule_assertions(sources):
    """One for every two functions, over each folder of ASSERTED: an assert(), or a call of a function NAME_check() that
    asserts."""
    checks = {name for source in sources for name, body in source.functions.items()
              if name.endswith("_check") and "assert" in WORD.findall(body)}
    for folder in ASSERTED:
        inside = [source for source in sources if folder_of(source.path) == folder]
        bodies = [body for source in inside for body in source.functions.values()]
        asserted = sum(word == "assert" or word in checks for body in bodies for word in WORD.findall(body))
        if 2 * asserted < len(bodies):
            finding(inside[0].path, 1, f"{folder} has {asserted} assertions in {len(bodies)} functions, and one for "
                                       f"every two is the least; assert what holds when a function begins and ends")


def rule_sizeof(sources):
    """sizeof must have parentheses."""
    for source in sources:
        for hit in re.finditer(r"\bsizeof\s*(?=[^\s(])", source.code):
            finding(source.path, line_of(source.code, hit.start()), "sizeof without parentheses; write sizeof(x)")


def main():
    sources = [read(path) for path in sorted(sys.argv[1:])]
    product = [source for source in sources if source.path.startswith(("include/", "src/"))]
    by_include, by_call = uses_by_include(product), uses_by_call(product)
    rule_layers(product, by_include + by_call)
    rule_headers(product)
    rule_names(product)
    rule_calls(product)
    rule_circles(by_include + by_call, module_of, "files")
    rule_circles(by_include + by_call, folder_of, "folders")
    rule_assertions(product)
    rule_sizeof(sources)
    print("".join(text + "\n" for text in findings), end="")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
