#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rules.py FILE... - does each cited rule exist in src/protocol.md, and does tests/rules.md say where each rule is?

Prints a finding a line, and exits with 1 if there is one. Without src/protocol.md there is nothing to check.
"""
import functools
import re
import sys
from pathlib import Path

PROTOCOL = Path("src/protocol.md")
TABLE = Path("tests/rules.md")
SWITCHES = [Path("tests/model/run"), Path("tests/model/fair")]
README = Path("tests/README.md")
CONTROLS = Path("tests/sim/controls.c")
INVARIANTS = Path("tests/sim/world.h")
FAULTS = Path("tests/promises/list")
LINES_MAX = 300
COLUMNS = ["rule", "code", "model", "invariant", "control", "tests"]
# Below these folders of src a cell of the column "code" may begin.
CODE_FOLDERS = ["src", "src/redis/dialect", "."]
# Files that cite rules, and must not number them in another way.
CITING = re.compile(r"(src|include)/.*\.(c|h|hpp|lua)$|tests/(model|sim|unit)/")
# Lua files that decide nothing: they show what is there, do what a person asks for, or know nothing of locks.
NO_RULE = set("break list peek redisson_break redisson_list redisson_peek rights errors listing server".split())
NUMBER = r"\d+\.\d+"
CITED = re.compile(rf"\b[Rr]ules? ({NUMBER}(?:(?:, and |, | and | to | or ){NUMBER})*)")
INVARIANT = re.compile(r"\bI(\d+)(?=_[A-Z]|\b)")
# "rule 3" without a chapter, "(hold.c, 6)", and a section of a page that is not in the tree.
HOMEMADE = re.compile(rf"\b[Rr]ules? \d+\b(?!\.\d)|\b\w+\.[ch], \d+\b|protocol\.md, \d|\bsection {NUMBER}")


class Findings:
    """Prints findings, and counts them."""

    def __init__(self):
        self.count = 0

    def add(self, path, line, what):
        print(f"{path}:{line}: {what}")
        self.count += 1


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def read_protocol(findings):
    """Returns the rules and the invariants, in their order."""
    rules, invariants, lines = [], set(), read(PROTOCOL).splitlines()
    last = (0, 0)
    for number, line in enumerate(lines, 1):
        invariants |= {int(found) for found in re.findall(r"\*\*I(\d+)\*\*", line)}
        found = re.match(rf"- \*\*({NUMBER})\*\*", line)
        if not found:
            continue
        chapter, place = map(int, found.group(1).split("."))
        if (chapter, place) not in ((last[0], last[1] + 1), (last[0] + 1, 1)):
            findings.add(PROTOCOL, number, f"rule {found.group(1)} does not follow {last[0]}.{last[1]}; number the rules in order")
        last = (chapter, place)
        rules.append(found.group(1))
    if len(lines) > LINES_MAX:
        findings.add(PROTOCOL, len(lines), f"longer than {LINES_MAX} lines; shorten it")
    return rules, invariants


def check_citations(findings, files, rules, invariants):
    for name in files:
        path = Path(name)
        if not CITING.match(name) or not path.is_file() or path.suffix == ".md":
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            for cited in CITED.findall(line):
                for rule in re.findall(NUMBER, cited):
                    if rule not in rules:
                        findings.add(path, number, f"{PROTOCOL} has no rule {rule}")
            homemade = HOMEMADE.search(line)
            if homemade:
                findings.add(path, number, f"'{homemade.group()}' is no rule of {PROTOCOL}; cite one as 'rule 1.7'")
            if not name.startswith(("tests/model/", "tests/sim/")):
                continue
            for invariant in INVARIANT.findall(line):
                if int(invariant) not in invariants:
                    findings.add(path, number, f"{PROTOCOL} has no invariant I{invariant}")


def read_names(findings, rules):
    """Returns what the columns may name: (name, rule) of switches and controls, and names of invariants and faults."""
    switches, controls = set(), set()
    for path in filter(Path.is_file, SWITCHES):
        for number, line in enumerate(read(path).splitlines(), 1):
            found = re.match(rf'    \("([A-Z_]+)", "([^"]*)", ', line)
            if found:
                switches.add(found.groups())
                if found.group(2) not in rules:
                    findings.add(path, number, f"{PROTOCOL} has no rule {found.group(2)}")
    for number, line in enumerate(read(README).splitlines() if README.is_file() else [], 1):
        found = re.match(rf"\| `([A-Z_]+)` \| ({NUMBER}): ", line)
        if found and found.groups() not in switches:
            findings.add(README, number, f"{SWITCHES[0].parent} does not say that {found.group(1)} takes out rule {found.group(2)}")
    text = read(CONTROLS)
    for found in re.finditer(r'^    \{"([a-z0-9-]+)",\s+"([^"]*)",\s+\{', text, re.M):
        controls.add(found.groups())
        if found.group(2) not in rules + ["-"]:
            findings.add(CONTROLS, text.count("\n", 0, found.start()) + 1, f"{PROTOCOL} has no rule {found.group(2)}")
    enum = re.search(r"enum invariant \{(.*?)\};", read(INVARIANTS), re.S)
    invariants = set(re.findall(r"^    (\w+),", enum.group(1), re.M)) if enum else set()
    invariants |= {name.split("_")[0] for name in invariants if re.match(r"I\d+_", name)}
    faults = {found for path in FAULTS.iterdir() for found in re.findall(r"^\[([^]/]+)\]", read(path), re.M)}
    return switches, controls, invariants, faults


def code_path(place):
    """Returns the file of a cell of the column "code", or None."""
    paths = [Path(folder) / place.partition(":")[0] for folder in CODE_FOLDERS]
    return next((path for path in paths if path.is_file()), None)


def has_code(place):
    path, function = code_path(place), re.escape(place.partition(":")[2])
    if path is None:
        return False
    shape = rf"function {function}\b|^(local )?{function} = function" if path.suffix == ".lua" else rf"^\w[^;\n]*\b{function}\("
    return function == "" or re.search(shape, read(path), re.M) is not None


@functools.cache
def cited_in(path):
    """Returns the rules that the file cites."""
    return {rule for cited in CITED.findall(re.sub(r"\n \* |\n-- ", " ", read(path))) for rule in re.findall(NUMBER, cited)}


def check_scripts(findings, files):
    for path in map(Path, files):
        if path.suffix == ".lua" and path.parts[0] == "src" and path.stem not in NO_RULE and path.is_file() and not cited_in(path):
            findings.add(path, 1, f"cite the rule of {PROTOCOL} that this carries out, in a comment where it decides")


def has_test(place, programs):
    name, _, test = place.partition(":")
    path = programs.get(name)
    return path is not None and (test == "" or re.search(rf"TEST(_WITH)?\(([\w ]+, )?{test}\b", read(path)) is not None)


class Table:
    """The rows of tests/rules.md."""

    def __init__(self, findings, files, rules):
        self.findings, self.rules = findings, rules
        self.programs = {Path(name).stem: Path(name) for name in files if re.match(r"tests/.*/test_\w+\.(c|py|sh)$", name)}
        self.switches, self.controls, self.invariants, self.faults = read_names(findings, rules)
        self.reasons, self.used, self.named = {}, set(), {}

    def exists(self, column, name):
        if column == "code":
            return has_code(name)
        if column == "model":
            return name in {switch for switch, _ in self.switches}
        if column == "invariant":
            return name in self.invariants
        if column == "control":
            return name[len("fault "):] in self.faults if name.startswith("fault ") else name in dict(self.controls)
        return has_test(name, self.programs)

    def check_cell(self, number, rule, column, cell):
        reason = re.fullmatch(r"\((.+)\)", cell)
        if reason:
            self.used.add(reason.group(1))
            if reason.group(1) not in self.reasons:
                self.findings.add(TABLE, number, f"({reason.group(1)}) is no reason of the list above the table")
            return
        if cell == "":
            self.findings.add(TABLE, number, f"rule {rule} has an empty cell under {column}; name something, or give a reason")
            return
        for name in re.split(r",? +" if column == "invariant" else ", ", cell):
            name = name.replace("`", "")
            self.named.setdefault((column, rule), set()).add(name)
            if not self.exists(column, name):
                self.findings.add(TABLE, number, f"rule {rule}: there is no {column.rstrip('s')} '{name}'")
            elif column == "code" and rule not in cited_in(code_path(name)):
                self.findings.add(TABLE, number, f"{code_path(name)} does not cite rule {rule}; do so in a comment where it decides")

    def check(self):
        seen = []
        for number, line in enumerate(read(TABLE).splitlines(), 1):
            reason = re.match(r"- \*\*\((.+?)\)\*\*", line)
            if reason:
                self.reasons[reason.group(1)] = number
            if not re.match(rf"\| {NUMBER} \|", line):
                continue
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            rule = cells[0]
            seen.append(rule)
            if rule not in self.rules:
                self.findings.add(TABLE, number, f"{PROTOCOL} has no rule {rule}")
            if len(cells) != len(COLUMNS):
                self.findings.add(TABLE, number, f"the row of rule {rule} has {len(cells)} cells, not {len(COLUMNS)}")
                continue
            for column, cell in zip(COLUMNS[1:], cells[1:]):
                self.check_cell(number, rule, column, cell)
        for rule in self.rules:
            if seen.count(rule) != 1:
                self.findings.add(TABLE, 1, f"there are {seen.count(rule)} rows for rule {rule}, not 1")
        for reason, number in self.reasons.items():
            if reason not in self.used:
                self.findings.add(TABLE, number, f"no cell has the reason ({reason}); take it out")
        for column, pairs in (("model", self.switches), ("control", self.controls)):
            for name, rule in sorted(pairs):
                if rule in self.rules and name not in self.named.get((column, rule), ()):
                    self.findings.add(TABLE, 1, f"the row of rule {rule} does not name '{name}', which takes that rule out")


def main():
    findings, files = Findings(), sys.argv[1:]
    if not PROTOCOL.is_file():
        return 0
    rules, invariants = read_protocol(findings)
    check_citations(findings, files, rules, invariants)
    check_scripts(findings, files)
    Table(findings, files, rules).check()
    return 1 if findings.count > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
