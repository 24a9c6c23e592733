#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Python package: it installs from the tree without a network, and its structs are those of the headers.

test_package.py SOURCE_FOLDER LIBRARY
"""
import ctypes
import glob
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
LIMIT_S = 120
PYTHONS = (sys.executable, "/usr/bin/python3")


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          **more)


def check(truth, text):
    if not truth:
        sys.exit(f"test_package: FAILED: {text}")
    return truth


def find_python():
    """One that has what installing needs, for pip may not load it. setuptools wants to be there first."""
    for python in PYTHONS:
        if os.access(python, os.X_OK) and run(python, "-c", "import setuptools, wheel, pip").returncode == 0:
            return python
    print("SKIPPED test_package: no python3 here has pip, setuptools and wheel; scripts/setup installs them")
    sys.exit(SKIPPED)


def install(python, source, folder):
    """From a copy, for what pip builds must not stay in the tree."""
    shutil.copytree(os.path.join(source, "src", "python"), os.path.join(folder, "python"),
                    ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    found = run(python, "-m", "pip", "--disable-pip-version-check", "install", "--no-build-isolation", "--no-index",
                "--no-deps", "--target", os.path.join(folder, "installed"), os.path.join(folder, "python"),
                env=environment)
    check(found.returncode == 0, found.stdout + found.stderr)
    names = os.listdir(os.path.join(folder, "installed", "quorlock"))
    check("py.typed" in names and "__init__.py" in names, f"installed is {names}")


def use(python, source, library, folder):
    """Typed, as new as the library, and with a version that pip knows."""
    environment = {**os.environ, "PYTHONPATH": os.path.join(folder, "installed"), "QUORLOCK_LIBRARY": library}
    found = run(python, "-c", "import importlib.metadata, quorlock\n"
                              "print(quorlock.__version__, importlib.metadata.version('quorlock'), quorlock.__file__)\n"
                              "try: quorlock.Client([])\n"
                              "except quorlock.Invalid as problem: print(problem.name)\n", env=environment, cwd=folder)
    with open(os.path.join(source, "include", "quorlock", "quorlock.h"), encoding="utf-8") as header:
        version = next(line.split('"')[1] for line in header if line.startswith("#define QUORLOCK_VERSION "))
    words = found.stdout.split()
    check(words[:2] == [version, version] and words[-1] == "INVAL" and words[2].startswith(folder),
          f"{version} is not what was installed: {found.stdout}{found.stderr}")
    print(f"ok: installed by pip, quorlock {version}")


def check_structs(source, library, folder):
    os.environ["QUORLOCK_LIBRARY"] = library
    sys.path.insert(0, os.path.join(source, "src", "python"))
    from quorlock import _library  # pylint: disable=import-outside-toplevel
    pairs = [(_library.ClientOptions, "quorlock_client_options"), (_library.Options, "quorlock_options"),
             (_library.Result, "quorlock_blocking_result"), (_library.Loss, "quorlock_loss")]
    wanted, lines = {}, []
    for struct, name in pairs:
        if struct is not _library.Loss:
            # A field that the header has got is wanted here, too.
            wanted[f"sizeof_{name}"] = str(ctypes.sizeof(struct))
            lines.append(f'printf("sizeof_{name} %zu\\n", sizeof(struct {name}));')
        for field, kind in struct._fields_:
            at = f"{name}.{field}"
            wanted[at] = f"{getattr(struct, field).offset} {ctypes.sizeof(kind)}"
            lines.append(f'printf("{at} %zu %zu\\n", offsetof(struct {name}, {field}), '
                         f'sizeof(((struct {name} *)0)->{field}));')
    for name in ("WAIT_FOREVER", "RENEW_NEVER"):
        wanted[name] = str(getattr(_library, name))
        lines.append(f'printf("{name} %u\\n", (unsigned)QUORLOCK_{name});')
    program = os.path.join(folder, "structs.c")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#include <quorlock/blocking.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n"
                   + "\n".join(lines) + "\n}\n")
    built = run(os.environ.get("CC") or "cc", "-I", os.path.join(source, "include"), program, "-o", program[:-2])
    check(built.returncode == 0, built.stderr)
    found = dict(line.split(" ", 1) for line in run(program[:-2]).stdout.splitlines())
    check(found == wanted, "not as the headers: "
          + ", ".join(f"{name} is {wanted[name]} and should be {found.get(name)}" for name in wanted
                      if wanted[name] != found.get(name)))
    print(f"ok: {len(wanted)} fields and numbers are those of the headers")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: test_package.py SOURCE_FOLDER LIBRARY")
    source, library = map(os.path.abspath, sys.argv[1:])
    sys.dont_write_bytecode = True
    folder = tempfile.mkdtemp(prefix="quorlock-python-")
    try:
        check_structs(source, library, folder)
        python = find_python()
        install(python, source, folder)
        use(python, source, library, folder)
        check(not glob.glob(os.path.join(source, "src", "python", "*.egg-info")), "something is left in the tree")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
