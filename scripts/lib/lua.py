#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lua.py FOLDER: findings in the Lua scripts of this folder and in its modules/.

Each file, and each script as bundle.cmake makes it, must compile: with luac5.1,
and with luac5.4 where it is installed, because some servers have it. The
globals of a file are Redis' and what it imports; those of a bundled script are
Redis' alone. Nothing is imported that is not used. A module has functions only,
which get KEYS and ARGV by parameters, but for the prefix of the client, which
names.lua reads in each script that uses it; a script names its arguments where
it begins, by unpack(ARGV). Some forms are refused, because another Lua or another
server gets them wrong.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REDIS = set("KEYS ARGV redis string table math tonumber tostring type ipairs pairs pcall unpack".split())
IMPORT = re.compile(r"^( *)--@ from ([a-z_]+): ([a-z0-9_, ]+)$", re.MULTILINE)
TOKEN = re.compile(r"""--[^\n]*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_]*|[0-9][0-9A-Za-z.]*|[=~<>]=|\.\.\.?|\S""")
OPENS, CLOSES = set("( [ {".split()), set(") ] }".split())
ENDS = set("local if for while repeat return break end else elseif until do then function ;".split())


def compile_errors(path, shown):
    for luac in ("luac5.1", "luac5.4"):
        if shutil.which(luac):
            done = subprocess.run([luac, "-p", path], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                line = re.search(r":(\d+): (.*)", done.stderr)
                yield f"{shown}:{line[1] if line else 1}: {luac}: {line[2] if line else done.stderr.strip()}"


def globals_of(path):
    """Each global that is read or set: (line, verb, name)."""
    listed = subprocess.run(["luac5.1", "-l", "-p", path], capture_output=True, text=True, check=False).stdout
    for line, verb, name in re.findall(r"\[(\d+)\]\s+(GET|SET)GLOBAL\s.*; (\S+)", listed):
        yield int(line), verb, name


def tokens_of(text):
    """(line, token) without comments."""
    for match in TOKEN.finditer(text):
        if not match[0].startswith("--"):
            yield text.count("\n", 0, match.start()) + 1, match[0]


def assigned(tokens, at):
    """Of each expression from this place on, whether `and` is what it does last, outside of parentheses."""
    depth, last, begins, found = 0, None, True, []
    while at < len(tokens):
        token = tokens[at][1]
        if depth == 0 and (token in ENDS or token in CLOSES or
                           not begins and re.match(r"[A-Za-z_]", token) and token not in ("and", "or")):
            break
        if depth == 0 and token == ",":
            found.append(last == "and")
            last = None
        if depth == 0 and token in ("and", "or"):
            last = token if last != "or" else last
        depth += (token in OPENS) - (token in CLOSES)
        begins = token in ("and", "or", "not") or not re.match(r"[\w'\"\])}]", token)
        at += 1
    return [*found, last == "and"]


def forms(path, text):
    tokens = list(tokens_of(text))
    for at, (line, token) in enumerate(tokens):
        before = tokens[at - 1][1] if at > 0 else ""
        if token == "=" and re.fullmatch(r"[A-Za-z_]\w*", before):
            names, start = [before], at - 1
            while start >= 2 and tokens[start - 1][1] == "," and re.fullmatch(r"[A-Za-z_]\w*", tokens[start - 2][1]):
                start -= 2
                names.insert(0, tokens[start][1])
            if tokens[start - 1][1] not in ("local", "for", ".", "{", ",") or start == 0:
                for name, alone in zip(names, assigned(tokens, at + 1)):
                    if alone:
                        yield (f"{path}:{line}: '{name} = x and y' leaves {name} as it is in one Lua where x is a call or "
                               f"an index; write 'if', or a new local")
        if token == "ok" and before in ("{", ",") and tokens[at + 1][1] == "=":
            yield f"{path}:{line}: a script need not reply a status; return a number or a text"


def check_file(path):
    text, is_module = path.read_text(encoding="utf-8"), path.parent.name == "modules"
    imports = [(text.count("\n", 0, match.start()) + 1, name) for match in IMPORT.finditer(text)
               for name in match[3].split(", ") if not is_module or match[2] != path.stem]
    yield from compile_errors(path, path)
    yield from forms(path, text)
    known = (REDIS - {"KEYS", "ARGV"} if is_module else REDIS) | {name for _, name in imports}
    if path.stem == "names":
        known.add("prefix")
    used = set()
    for line, verb, name in globals_of(path):
        used.add(name)
        if verb == "SET":
            yield f"{path}:{line}: sets the global '{name}'; write local"
        elif name not in known and is_module and name in REDIS:
            yield f"{path}:{line}: a module gets {name} by a parameter"
        elif name not in known:
            yield f"{path}:{line}: '{name}' is neither Redis' nor imported"
    for line, name in imports:
        if name not in used:
            yield f"{path}:{line}: '{name}' is imported, but not used"
    code = [line for line in text.splitlines() if not re.fullmatch(r" *(--.*)?", line)]
    begins = next((at for at, line in enumerate(code) if "unpack(ARGV" not in line), len(code))
    for line in code[begins:]:
        if re.search(r"\bARGV\b", line.split("--")[0]):
            yield f"{path}:{text[:text.index(line)].count(chr(10)) + 1}: name the arguments in the first line, by unpack(ARGV)"


def check_bundled(folder, scripts):
    with tempfile.TemporaryDirectory() as made:
        header = Path(made) / "scripts.h"
        done = subprocess.run(["cmake", f"-DSCRIPTS={';'.join(map(str, scripts))}", f"-DOUTPUT={header}", "-P",
                               folder / "bundle.cmake"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            yield f"{folder}/bundle.cmake:1: {' '.join(done.stderr.split())}"
            return
        for name, body in re.findall(r"static const char script_(\w+)\[\] = \{(.*),0\};", header.read_text("ascii")):
            path = Path(made) / f"{name}.lua"
            path.write_bytes(bytes(int(byte, 16) for byte in body.split(",")))
            shown = folder / path.name
            yield from compile_errors(path, f"{shown} (bundled)")
            for line, _, unknown in globals_of(path):
                if unknown not in REDIS:
                    yield f"{shown}:1: '{unknown}' is not there where line {line} of the bundled script uses it"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    scripts = sorted(folder.glob("*.lua"))
    findings = [finding for path in [*scripts, *sorted(folder.glob("modules/*.lua"))] for finding in check_file(path)]
    findings += check_bundled(folder, scripts)
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
