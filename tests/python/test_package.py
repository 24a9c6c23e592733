#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Python package: built without a network its wheel needs no library of the system but OpenSSL, and its structs are
those of the headers.

test_package.py SOURCE_FOLDER LIBRARY
"""
import ctypes
import filecmp
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

SKIPPED = 77
LIMIT_S = 240
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


def listed(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


def make_tree(source, folder):
    """A copy, in which nothing may be left behind."""
    for name in ("src", "include"):
        shutil.copytree(os.path.join(source, name), os.path.join(folder, "tree", name),
                        ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    shutil.copyfile(os.path.join(source, "CMakeLists.txt"), os.path.join(folder, "tree", "CMakeLists.txt"))
    return os.path.join(folder, "tree", "src", "python")


def pip(python, *words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    # As it is built does not matter here, and so it is quicker.
    environment.update(CMAKE_BUILD_TYPE="None", CFLAGS="-O0")
    found = run(python, "-m", "pip", "--disable-pip-version-check", *words, "--no-index", "--no-deps", env=environment)
    check(found.returncode == 0 and "Deprecat" not in found.stdout + found.stderr, found.stdout + found.stderr)


def build(python, source, folder):
    """A source archive from the tree, and from that a wheel, with the library, what it needs, and the license."""
    copy = make_tree(source, folder)
    before = listed(copy)
    found = run(python, "-c", "from setuptools import build_meta; build_meta.build_sdist('../../../sdist')", cwd=copy)
    check(found.returncode == 0, found.stdout + found.stderr)
    check(listed(copy) == before, f"a build leaves {sorted(set(listed(copy)) - set(before))} in the tree")
    with tarfile.open(glob.glob(os.path.join(folder, "sdist", "*.tar.gz"))[0]) as archive:
        held = [name.split("/", 1)[-1] for name in archive.getnames()]
        archive.extractall(os.path.join(folder, "unpacked"))
    wanted = [os.path.relpath(name, copy) for name in before]
    check(set(wanted) <= set(held), f"{sorted(set(wanted) - set(held))} is not in the source archive")
    shutil.rmtree(os.path.join(folder, "tree"))
    unpacked = glob.glob(os.path.join(folder, "unpacked", "*"))[0]
    before = listed(unpacked)
    pip(python, "wheel", "--verbose", "--no-build-isolation", "-w", os.path.join(folder, "wheel"), unpacked)
    check(listed(unpacked) == before, f"a build leaves {sorted(set(listed(unpacked)) - set(before))} in the archive")
    wheel = glob.glob(os.path.join(folder, "wheel", "*"))
    here = f"-py3-none-linux_{os.uname().machine}.whl"
    check(len(wheel) == 1 and wheel[0].endswith(here), f"{wheel} is not one {here}")
    pip(python, "install", "--target", os.path.join(folder, "installed"), wheel[0])
    names = os.listdir(os.path.join(folder, "installed", "quorlock"))
    check("py.typed" in names and "__init__.py" in names, f"installed is {names}")
    licenses = [name for name in listed(os.path.join(folder, "installed")) if os.path.basename(name) == "LICENSE"]
    check(len(licenses) == 1 and filecmp.cmp(licenses[0], os.path.join(source, "LICENSE"), shallow=False),
          f"{licenses or 'nothing'} is not the license")
    with open(glob.glob(os.path.join(folder, "installed", "*.dist-info", "METADATA"))[0], encoding="utf-8") as metadata:
        check(re.search(r"^License(-Expression)?: BSD-3-Clause$", metadata.read(), re.M), "the license is not named")
    with open(glob.glob(os.path.join(folder, "installed", "*.dist-info", "entry_points.txt"))[0], encoding="utf-8") as points:
        check(points.read().strip() == "[pytest11]\nquorlock.testing = quorlock_pytest", "pytest does not find its plugin")


TESTS = """
def test_without_a_lock(): pass
def test_with_a_lock(quorlock_client): pass
"""


def check_plugin(library, folder):
    """pytest finds the plugin, and starts also where the library does not load; a test that needs it hears why."""
    python = next((python for python in PYTHONS if os.access(python, os.X_OK) and run(python, "-c", "import pytest").returncode == 0),
                  None)
    if python is None:
        print("SKIPPED: no pytest here, so its plugin is not loaded; scripts/setup installs it")
        return
    pathlib.Path(folder, "test_program.py").write_text(TESTS, encoding="utf-8")
    missing = os.path.join(folder, "libmissing.so")
    # Without redis-server the second test is skipped.
    for name, wanted in ((library, "2 passed|1 passed, 1 skipped"), (missing, "1 passed, 1 error"),
                         (missing, f"quorlock cannot be imported: {missing}")):
        environment = {**os.environ, "QUORLOCK_LIBRARY": name, "PYTHONPATH": os.path.join(folder, "installed")}
        found = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_program.py", env=environment, cwd=folder)
        check(re.search(wanted, found.stdout), found.stdout + found.stderr)
    print("ok: the plugin of pytest, with and without the library")


PROGRAM = """
import ctypes, importlib.metadata, re, sys
for name in sys.argv[1:]:
    try: ctypes.CDLL(name), sys.exit(name + " is not hidden")
    except OSError: pass
import quorlock
print(quorlock.__version__, importlib.metadata.version('quorlock'), quorlock.__file__)
try: quorlock.Client([])
except quorlock.Invalid as problem: print(problem.name)
client = quorlock.Client("127.0.0.1:1")
try: client.lock("a", wait_ms=0).acquire()
except quorlock.NoQuorum as problem: print(problem.name)
with open("/proc/self/maps") as maps: print(*{re.sub(".* ", "", line.strip()) for line in maps if "/lib" in line})
"""


def use(python, source, folder):
    """As new as the library, with a version that pip knows, and by no library of the system but OpenSSL: also where the
    system has none of the others."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("QUORLOCK_LIBRARY", "LD_LIBRARY_PATH")}
    environment["PYTHONPATH"] = os.path.join(folder, "installed")
    with open(os.path.join(source, "include", "quorlock", "quorlock.h"), encoding="utf-8") as header:
        version = next(line.split('"')[1] for line in header if line.startswith("#define QUORLOCK_VERSION "))
    hidden = [name for folders in ("/usr/lib", "/usr/lib/*", "/usr/lib64", "/usr/local/lib", "/usr/local/lib/*")
              for name in glob.glob(f"{folders}/lib*.so*")
              if re.match(r"lib(quorlock|event)", os.path.basename(name)) and not os.path.islink(name)]
    hide = "".join(f"mount --bind /dev/null {name} && " for name in hidden)
    program = [python, "-c", PROGRAM]
    ways = [program, ["unshare", "-rm", "sh", "-c", hide + 'exec "$@"', "sh", *program, *hidden]]
    if not shutil.which("unshare") or run("unshare", "-rm", "mount", "--bind", os.devnull, __file__).returncode != 0:
        print("SKIPPED: no mount namespace here, so libraries of the system are not hidden")
        ways.pop()
    for way in ways:
        found = run(*way, env=environment, cwd=folder)
        words = found.stdout.split()
        check(words[:2] == [version, version] and words[3:5] == ["INVAL", "NOQUORUM"] and words[2].startswith(folder),
              f"{version} is not what was installed: {found.stdout}{found.stderr}")
        ours = [word for word in words[5:] if re.search(r"/lib(quorlock|event)", word)]
        check(len(ours) >= 2 and all(word.startswith(folder) for word in ours), f"it uses {ours}")
    print(f"ok: built from the source archive, and alone, {len(ways)} ways, quorlock {version}")


def check_types(source, folder):
    """What a type checker says: nothing of the package, nor of right options, and all of wrong ones."""
    checker = find_mypy()
    if checker is None:
        print("SKIPPED: no mypy here, so types are not checked; scripts/setup installs it")
        return
    lines = ["import quorlock", 'quorlock.lock("a", wait_ms=5, lease_ms=3000, shared=["a"])', 'quorlock.configure("a:1", user="b")',
             'quorlock.lock("a", wait=5)', 'quorlock.configure("a:1").lock("a", lese_ms=3)',
             'quorlock.configure("a:1", polcy="all")', 'quorlock.lock("a", lease_ms="3")',
             'quorlock.configure("a:1").candidate("a", lese_ms=3)',
             'quorlock.configure("a:1").candidate("a", advertise="b", on_deposed=lambda leader, text: leader.check())']
    program = os.path.join(folder, "program.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    package = os.path.join(source, "src", "python")
    found = run(*checker, os.path.join(package, "quorlock"))
    check(found.returncode == 0, f"mypy --strict: {found.stdout}{found.stderr}")
    found = run(*checker, program, env={**os.environ, "MYPYPATH": package})
    wrong = {int(line.split(":")[1]) for line in found.stdout.splitlines() if ": error:" in line}
    check(wrong == {4, 5, 6, 7, 8}, f"mypy should refuse lines 4 to 8 alone: {found.stdout}{found.stderr}")
    print("ok: mypy --strict finds nothing in the package, and what is wrong in a program")


def find_mypy():
    """Before 1.7 it knows the TypedDict of **options only where it is asked to."""
    for checker in (*([python, "-m", "mypy"] for python in PYTHONS), [shutil.which("mypy") or ""]):
        version = os.access(checker[0], os.X_OK) and re.match(r"mypy (\d+)\.(\d+)", run(*checker, "--version").stdout)
        if version:
            old = (int(version[1]), int(version[2])) < (1, 7)
            return [*checker, "--strict", "--cache-dir", os.devnull] + ["--enable-incomplete-feature=Unpack"] * old
    return None


def fields_of(headers, name):
    """The names of the fields of that struct: of `type *a, b[N];` a and b, of `type (*call)(...);` call."""
    body = re.search(rf"^struct {name} \{{\n(.*?)^\}};", re.sub(r"/\*.*?\*/", "", headers, flags=re.S), re.S | re.M)[1]
    return [found for line in re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body).split(";")
            for found in re.findall(r"(\w+)\s*(?:\[\w+\])?\s*(?:,|$)", line.strip())]


def check_structs(source, library, folder):
    os.environ["QUORLOCK_LIBRARY"] = library
    sys.path.insert(0, os.path.join(source, "src", "python"))
    from quorlock import _client, _election, _library, _lock, _observer, _report  # pylint: disable=import-outside-toplevel
    pairs = [(_client.Options, "quorlock_client_options"), (_lock.Options, "quorlock_lock_options"),
             (_library.Result, "quorlock_sync_result"), (_library.Event, "quorlock_event"),
             (_observer.Options, "quorlock_observer_options"),
             (_election.Options, "quorlock_candidate_options"), (_library.Holder, "quorlock_holder"),
             (_library.InspectNode, "quorlock_inspect_node"), (_library.InspectReport, "quorlock_inspect_report"),
             (_library.BreakNode, "quorlock_break_node"), (_library.BreakReport, "quorlock_break_report"),
             (_library.Listed, "quorlock_listed"), (_library.ListNode, "quorlock_list_node"),
             (_library.ListReport, "quorlock_list_report"), (_report.BootstrapOptions, "quorlock_bootstrap_options")]
    paths = pathlib.Path(source, "include", "quorlock").glob("*.h")
    headers = "".join(path.read_text(encoding="utf-8") for path in paths)
    wanted, lines = {}, []
    for struct, name in pairs:
        # A field that the header has got is wanted here, too, also if it fits into padding.
        fields, known = fields_of(headers, name), [field for field, _ in struct._fields_]
        check(fields == known, f"struct {name} in the header and in Python: only one has {set(fields) ^ set(known)}")
        wanted[f"sizeof_{name}"] = str(ctypes.sizeof(struct))
        lines.append(f'printf("sizeof_{name} %zu\\n", sizeof(struct {name}));')
        for field, kind in struct._fields_:
            at = f"{name}.{field}"
            wanted[at] = f"{getattr(struct, field).offset} {ctypes.sizeof(kind)}"
            lines.append(f'printf("{at} %zu %zu\\n", offsetof(struct {name}, {field}), '
                         f'sizeof(((struct {name} *)0)->{field}));')
    for name in ("TRY_ONCE", "RENEW_NEVER"):
        wanted[name] = str(getattr(_library, name))
        lines.append(f'printf("{name} %u\\n", (unsigned)QUORLOCK_{name});')
    program = os.path.join(folder, "structs.c")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#include <quorlock/sync.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n"
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
        check_types(source, folder)
        python = find_python()
        build(python, source, folder)
        use(python, source, folder)
        check_plugin(library, folder)
        check(not glob.glob(os.path.join(source, "src", "python", "*.egg-info")), "something is left in the tree")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
