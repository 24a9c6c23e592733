#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_abi.py SOURCE BUILD [--update] - whether programs that were built against the last release run with this library:
what abidw finds in the library is compared with the description of that release in tests/package/abi, and the values of all
constants of the headers with those that are stored there. --update stores what is now: for a release, or for a break on purpose."""
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from test_manual import Headers

SKIPPED = 77
REMEDY = """Programs that were built against {baseline} would break with this library. If that was not meant: add fields at the end of
structs only, leave functions and constants as they are, add new ones. If it was: unless this version has never been
released, raise QUORLOCK_VERSION to the next minor version in include/quorlock/quorlock.h, which renames the library. Then
store the new ABI, and commit it:
    {program} {source} {build} --update"""
# What only tells the version or the text of something.
FREE_CONSTANTS = re.compile(r"QUORLOCK_VERSION\w*")
TOY = """
#include <stddef.h>
struct quorlock_toy { size_t size; int first; const char *last; int end; };
int quorlock_read(const struct quorlock_toy *toy) { return toy->first; }
int quorlock_write(struct quorlock_toy *toy, int first) { return toy->first = first; }
"""


def fail(text):
    sys.exit(f"test_abi: FAILED: {text}")


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def named(types, key):
    """The C type with that id, in one line; a typedef as what it stands for."""
    part = types[key]
    if part.tag == "pointer-type-def":
        target = types[part.get("type-id")]
        return signature(types, target, "(*)") if target.tag == "function-type" else named(types, part.get("type-id")) + " *"
    if part.tag == "qualified-type-def":
        return named(types, part.get("type-id")) + " const"
    if part.tag == "array-type-def":
        return named(types, part.get("type-id")) + f"[{part.find('subrange').get('length')}]"
    if part.tag == "typedef-decl":
        return named(types, part.get("type-id"))
    return {"type-decl": "", "class-decl": "struct ", "enum-decl": "enum ", "union-decl": "union "}[part.tag] + part.get("name")


def signature(types, function, name=""):
    parameters = ", ".join(named(types, one.get("type-id")) for one in function.findall("parameter"))
    return f"{named(types, function.find('return').get('type-id'))} {name}({parameters})"


def described(library, *more):
    """Its ABI as a dict: the version and type of each function, the size of each struct, the place and type of each field,
    in bits."""
    done = run("abidw", "--drop-private-types", "--exported-interfaces-only", "--no-show-locs", "--no-parameter-names",
               "--type-id-style", "hash", *more, library)
    if done.returncode or "<function-decl" not in done.stdout:
        fail(f"abidw says nothing of {library} (without debug information?): {done.stderr}")
    tree, abi = ElementTree.fromstring(done.stdout), {}
    types = {part.get("id"): part for part in tree.iter() if part.get("id")}
    for function in tree.iter("function-decl"):
        abi[function.get("elf-symbol-id")] = signature(types, function)
    for struct in tree.iter("class-decl"):
        if struct.get("size-in-bits"):
            abi["struct " + struct.get("name")] = struct.get("size-in-bits")
        for place in struct.findall("data-member"):
            field = place.find("var-decl")
            abi[f"struct {struct.get('name')}.{field.get('name')}"] = (
                f"{place.get('layout-offset-in-bits')} {named(types, field.get('type-id'))}")
    return abi


def broken(before, after):
    """What breaks programs that were built with `before`, a line each. A struct may grow behind its end; but callers of
    before may have left anything in its padding."""
    found = ""
    for name, value in before.items():
        if name.startswith("struct ") and "." not in name:
            if int(after.get(name, 0)) < int(value):
                found += f"{name} is gone, or smaller\n"
        elif after.get(name) != value:
            found += f"{name} was '{value}', and is '{after.get(name, 'gone')}'\n"
    for name in after.keys() - before.keys():
        size = before.get(name.split(".")[0])
        if "." in name and size and int(after[name].split(" ")[0]) < int(size):
            found += f"{name} is in the padding of the struct as it was\n"
    return found


def constants(source):
    """Name to value of every constant of the headers, as a program sees it."""
    paths = sorted((source / "include/quorlock").glob("*.h"))
    names = Headers("\n".join(path.read_text(encoding="utf-8") for path in paths)).constants
    names = sorted(name for name in names if not FREE_CONSTANTS.fullmatch(name))
    with tempfile.TemporaryDirectory() as work:
        program = Path(work) / "constants.c"
        program.write_text("#include <stdio.h>\n" + "".join(f"#include <quorlock/{path.name}>\n" for path in paths) +
                           "int main(void)\n{\n" + "".join(f'    printf("%s %lld\\n", "{name}", (long long)({name}));\n'
                                                           for name in names) + "    return 0;\n}\n", encoding="utf-8")
        done = run("cc", "-std=c11", "-I", source / "include", program, "-o", Path(work) / "constants")
        if done.returncode:
            fail(f"the constants of the headers do not compile: {done.stderr}")
        return run(Path(work) / "constants").stdout.splitlines()


def toy(source):
    with tempfile.TemporaryDirectory() as work:
        library = Path(work) / "libtoy.so"
        done = subprocess.run(["cc", "-g", "-shared", "-fPIC", "-xc", "-", "-o", library], input=source, text=True,
                              capture_output=True, check=False)
        if done.returncode:
            fail(f"does not compile: {source}{done.stderr}")
        return described(library)


def check_bites():
    """The same comparison lets through what is permitted, and nothing else."""
    before = toy(TOY)
    changes = [
        (False, TOY.replace("end; }", "end; void *added; }")),
        (True, TOY.replace("end; }", "end; int in_the_padding; }")),
        (False, TOY + "int quorlock_added(void) { return 0; }"),
        (True, TOY.replace("int first;", "int added; int first;")),
        (True, TOY.replace("int first; const char *last;", "int first; int padding; const char *last;")),
        (True, TOY.replace("int first; const char *last;", "const char *last; int first;")),
        (True, TOY.replace("int first;", "long first;")),
        (True, TOY.replace("const char *last;", "char **last;")),
        (True, TOY.replace("int first)", "long first)")),
        (True, TOY.replace("quorlock_write(", "quorlock_set(")),
    ]
    for breaks, change in changes:
        if (broken(before, toy(change)) != "") != breaks:
            fail(f"{'not noticed' if breaks else 'not permitted'}: {change}")


def update(source, folder, description, baseline):
    for old in folder.glob("*.abi"):
        old.unlink()
    baseline.write_text("".join(f"{name}: {value}\n" for name, value in sorted(description.items())), encoding="utf-8")
    (folder / "constants").write_text("# SPDX-License-Identifier: BSD-3-Clause\n" +
                                      "".join(line + "\n" for line in constants(source)), encoding="utf-8")
    print(f"{baseline} and {folder / 'constants'} say what is now")


def main():
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD [--update]")
    source, library = Path(sys.argv[1]), Path(sys.argv[2]) / "lib/libquorlock.so"
    if shutil.which("abidw") is None:
        print("SKIPPED test_abi: abidw is not installed; run scripts/setup")
        return SKIPPED
    folder = source / "tests/package/abi"
    soname = re.search(r"SONAME\s+libquorlock\.so\.(\S+)", run("objdump", "-p", library).stdout)[1]
    baseline = folder / f"quorlock-{soname}.abi"
    description = described(library, "--headers-dir", source / "include/quorlock")
    if sys.argv[3:] == ["--update"]:
        update(source, folder, description, baseline)
        return 0
    if not baseline.exists():
        fail(f"{baseline} is not there: the name of the library has changed. Store its ABI by --update, and commit it")
    stored = dict(line.split(": ", 1) for line in baseline.read_text(encoding="utf-8").splitlines())
    found = broken(stored, description)
    before = (folder / "constants").read_text(encoding="utf-8").splitlines()[1:]
    now = constants(source)
    found += "".join(f"constant {line} is gone, or has another value\n" for line in before if line not in now)
    if found:
        fail(f"\n{found}\n{REMEDY.format(baseline=baseline.name, program=sys.argv[0], source=source, build=sys.argv[2])}")
    check_bites()
    print(f"the library stands in for that of {baseline.name}, and {len(before)} constants are what they were")
    return 0


if __name__ == "__main__":
    sys.exit(main())
