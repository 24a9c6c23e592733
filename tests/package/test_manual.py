#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_manual.py SOURCE BUILD - the manual pages against the headers: every function, option and constant is in a page
of section 3, with the prototype of the header; every name in these pages is one of the headers; and each page of the
manual is well formed (mandoc's lint and the warnings of man)."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
# Of the macros only these are for callers.
NO_CONSTANT = re.compile(r"QUORLOCK_(API|BUILDING|\w+_H)")


def fail(text):
    sys.exit(f"test_manual: FAILED: {text}")


def squeeze(text):
    """One blank between words, none beside what is no word."""
    return re.sub(r"\s*([^\w\s])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


class Headers:
    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        self.prototypes = {}
        for declared in re.findall(r"^QUORLOCK_API ([^;]+;)", text, flags=re.M):
            self.prototypes[re.search(r"(\w+)\s*\(", declared)[1]] = squeeze(declared)
        self.structs = {name: body for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, flags=re.M | re.S)}
        self.opaque = set(re.findall(r"^(?:typedef )?struct (\w+)\b[^{;]*;", text, flags=re.M))
        self.callbacks = set(re.findall(r"^typedef [^;{]*\(\*(\w+)\)\(", text, flags=re.M))
        self.constants = set()
        for body in re.findall(r"^enum \w+ \{(.*?)\};", text, flags=re.M | re.S):
            self.constants |= set(re.findall(r"^\s*(QUORLOCK_[A-Z_]+)\b(?!\()", re.sub(r"[,{]", "\n", body), flags=re.M))
        self.enumerators = set(self.constants)
        defined = re.findall(r"^# *define (QUORLOCK_\w+)", text, flags=re.M)
        self.constants |= {name for name in defined if not NO_CONSTANT.fullmatch(name)}

    def options(self):
        """Of each struct of options its fields."""
        for struct, body in self.structs.items():
            if not struct.endswith("options"):
                continue
            for declared in filter(str.strip, body.split(";")):
                pointer = re.search(r"\(\*(\w+)\)", declared)
                for name in [pointer[1]] if pointer else re.findall(r"(\w+)(?:\[\w+\])?\s*(?=,|$)", declared.strip()):
                    yield struct, name

    def known(self):
        return {*self.prototypes, *self.structs, *self.opaque, *self.callbacks}


def of_adapters(text):
    """As headers have them: what an adapter for an event loop is for, its table and what a comment names."""
    for prototype, name in re.findall(r"^static inline ([^{;]*?\b(\w+)\([^{;]*\))\n\{", text, flags=re.M):
        if name.startswith("quorlock_loop_") or f"/* {name} - " in text:
            yield f"QUORLOCK_API {prototype};\n"
    yield from (f"struct {name};\n" for name in re.findall(r"^struct (\w+) \{", text, flags=re.M))


def headers_text(source):
    """All public headers, as one."""
    folder = source / "include/quorlock"
    adapters = (path.read_text(encoding="utf-8") for path in sorted((folder / "adapters").glob("*.h")))
    return "\n".join([path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.h"))] +
                     [declared for text in adapters for declared in of_adapters(text)])


def rendered(page):
    done = subprocess.run(["mandoc", "-T", "ascii", "-O", "width=200", str(page)], capture_output=True, text=True, check=True)
    return re.sub(".\b", "", done.stdout)


def named_at_top(text):
    """What the page is for, from its NAME section."""
    return re.findall(r"\bquorlock_\w+", re.search(r"^NAME\n(.*?)\n[A-Z]", text, flags=re.M | re.S)[1])


def explained(sources, struct):
    """The fields that stand before an explanation in the parts about the struct."""
    parts = re.findall(rf"^\.SS struct {struct}\b[^\n]*\n(.*?)(?=^\.S[SH]|\Z)", sources, flags=re.M | re.S)
    return set(re.findall(r"\w+", " ".join(re.findall(r"^\.TP\n(.*)$", "\n".join(parts), flags=re.M))))


def differences(headers, pages, sources):
    """What pages (name to text as it is read, and all of them as written) and headers do not say alike."""
    whole = "\n".join(pages.values())
    tops = {name: page for page, text in pages.items() for name in named_at_top(text)}
    for name, prototype in headers.prototypes.items():
        if name not in tops:
            yield f"{name}: no page has it in its NAME section; write it into one of src/man/*.3"
        elif prototype not in squeeze(pages[tops[name]]):
            yield f"{tops[name]}: the prototype of {name} is not the header's: {prototype}"
    for name, page in tops.items():
        if name not in headers.prototypes:
            yield f"{page}: {name} is no function of the headers; take it out"
    for struct, field in headers.options():
        if field not in explained(sources, struct):
            yield f"struct {struct}: no page of src/man/*.3 says in a part of this name what {field} is"
    for name in headers.constants:
        if not re.search(rf"\b{name}\b", whole):
            yield f"{name}: no page of src/man/*.3 says what it is"
    for page, text in pages.items():
        for name in sorted(set(re.findall(r"\bquorlock_\w+|\bQUORLOCK_\w+", text))):
            if name not in headers.known() and name not in headers.constants and name.lower() not in tops:
                yield f"{page}: {name} is not in the headers; take it out"


def check_bites(text, pages, sources):
    """The same comparison finds what was changed on purpose."""
    changes = [
        (text + "\nQUORLOCK_API int quorlock_forgotten(void);\n", "quorlock_forgotten: no page"),
        (text.replace("uint32_t wait_ms;", "uint32_t wait_ms, lease;"), "what lease is"),
        (text.replace("QUORLOCK_POLICY_ALL = 1,", "QUORLOCK_POLICY_ALL = 1,\n    QUORLOCK_FORGOTTEN = 2,"), "QUORLOCK_FORGOTTEN: no page"),
        (text.replace("int quorlock_lock_cancel(quorlock_lock *lock)", "int quorlock_lock_cancel(quorlock_lock *lock, int how)"), "prototype of quorlock_lock_cancel"),
        (text.replace("quorlock_lock_fence(", "quorlock_fenced("), "quorlock_lock_fence is no function"),
        (text + "".join(of_adapters("static inline struct quorlock_loop quorlock_loop_forgotten(void)\n{\n")),
         "quorlock_loop_forgotten: no page"),
    ]
    for changed, said in changes:
        if not any(said in difference for difference in differences(Headers(changed), pages, sources)):
            fail(f"the comparison does not notice: {said}")


def lint(page):
    """mandoc's findings, and man's, as its readers would get them."""
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(page)], capture_output=True, text=True, check=False)
    yield from (done.stdout + done.stderr).splitlines()
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANROFFSEQ": ""}
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)], env=environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    yield from done.stderr.splitlines()


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    source = Path(sys.argv[1])
    for tool in ("mandoc", "man"):
        if shutil.which(tool) is None:
            print(f"SKIPPED test_manual: {tool} is not installed; run scripts/setup")
            return SKIPPED
    text = headers_text(source)
    paths = sorted((source / "src/man").glob("*.3"))
    pages = {path.name: rendered(path) for path in paths}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    headers = Headers(text)
    if len(headers.prototypes) < 30 or len(list(headers.options())) < 30 or len(headers.constants) < 50:
        fail(f"found only {len(headers.prototypes)} functions and {len(headers.constants)} constants in the headers")
    found = list(differences(headers, pages, sources))
    for page in sorted((source / "src/man").glob("*.[1-8]")):
        found += lint(page)
    if found:
        fail("\n" + "\n".join(found))
    check_bites(text, pages, sources)
    print(f"{len(headers.prototypes)} functions, {len(list(headers.options()))} options and {len(headers.constants)} "
          f"constants are in {len(pages)} pages, and nothing else")
    return 0


if __name__ == "__main__":
    sys.exit(main())
