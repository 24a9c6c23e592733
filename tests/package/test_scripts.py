#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_scripts.py SOURCE BUILD - what a newcomer types first, on a copy of the tree: mistakes are told before anything
is built, building needs no library that only tests use, and no script depends on what another one configured."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is

from sandbox import copy_tree  # noqa: E402

LIMIT_S = 120
# Stands before pkg-config, and hides what only tests need.
PKG_CONFIG = """#!/bin/sh
case " $* " in *cmocka* | *lua5.1*) exit 1 ;; esac
exec pkg-config "$@"
"""
# Stands before cmake: configures, but of a build sees only whether the target is there. Then it ends the script.
CMAKE = """#!/bin/sh
[ "$1" = --build ] || exec {cmake} "$@"
folder=$2 target=all
while [ $# -gt 0 ]; do
    if [ "$1" = --target ]; then target=$2; fi
    shift
done
ninja -C "$folder" -t query "$target" >/dev/null 2>>{log}
echo "$folder, target $target: $?" >>{log}
exit 1
"""
# Has built everything already.
BUILT = """#!/bin/sh
[ "$1" = --build ] || exit 0
mkdir -p "$2/bin"
ln -sf {quorlock} "$2/bin/quorlock"
for step in 1 2 3 4; do echo "[$step/4] Linking"; done
"""
BUILDS = {"demo": [], "bench": ["--workloads", "1"], "test": ["--no-setup", "unit"]}
# Of a commit's message: what is wrong with it, or None. As git hands it to its hook.
LONGEST = "core: " + "ü" * 66  # 72 characters, and more bytes
MESSAGES = {
    "core: a late vote is not counted\n": None,
    "core, scripts/test: two areas\n\nThe body says why.\n": None,
    LONGEST + "\n": None,
    LONGEST + "x\n": "73 characters",
    "\n# A comment.\ncore: what stands behind it\n# Another one.\n": None,
    "core: what -v shows\n# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n": None,
    "core: no blank line\nThe body says why.\n": "the second line is 'The body says why.'",
    "a late vote is not counted\n": "has no area",
    "core:\n": "has no area",
    "Tests of votes: an area of several words\n": "has no area",
    "\n": "has no area",
}
# Each of them before and after each other one.
WALK = "demo bench test bench demo".split()


def check(true, text):
    if not true:
        sys.exit(f"test_scripts: FAILED: {text}")


def run(*words, env=None):
    """(status, stdout and stderr)"""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT_S, env={**os.environ, **(env or {})}, check=False)
    return done.returncode, done.stdout


def wrong_label(tree):
    status, said = run(str(tree / "scripts" / "test"), "--no-setup", "unit", "nosuchlabel")
    check(status != 0, said)
    check("no test has the label 'nosuchlabel'" in said and "redis" in said and "mutants" in said, said)
    check("label 'unit'" not in said, said)
    built = list((tree / "build").rglob("*.o"))
    check(not built, f"it built {len(built)} files before it complained")


def help_of_bench(tree):
    for option in ("--help", "-h"):
        status, said = run(str(tree / "scripts" / "bench"), option)
        check(status == 0 and said.startswith("usage: scripts/bench"), said)
    status, said = run(str(tree / "scripts" / "bench"), "--nosuchoption")
    check(status == 64 and "--nosuchoption" in said, said)
    check(not (tree / "build").exists(), "scripts/bench began to build")


def without_test_libraries(tree, folder):
    wrapper = folder / "pkg-config"
    wrapper.write_text(PKG_CONFIG, encoding="utf-8")
    wrapper.chmod(0o755)
    env = {"PKG_CONFIG": str(wrapper)}
    words = ["cmake", "-G", "Ninja", "-S", str(tree)]
    status, said = run(*words, "-B", str(folder / "plain"), env=env)
    check(status == 0 and "The tests are not built: they need cmocka" in said, said)
    status, said = run("ninja", "-C", str(folder / "plain"), "-t", "targets", "all")
    check(status == 0 and "bin/quorlock:" in said and "test_options" not in said, said)
    # Who asks for the tests is told what is missing.
    status, said = run(*words, "-B", str(folder / "tests"), "-DQUORLOCK_TESTS=ON", env=env)
    check(status != 0 and "cmocka" in said, said)


def package_without_debhelper(tree, folder):
    tools = folder / "tools"
    tools.mkdir()
    for name in ("bash", "env", "dirname", "sed", "head", "mkdir", "rm", "cat", "cp", "tar", "xz", "find",
                 "realpath"):
        (tools / name).symlink_to(shutil.which(name))
    (tools / "dpkg-buildpackage").symlink_to(shutil.which("false"))
    status, said = run(str(tree / "scripts" / "package"), "--out", str(folder / "packages"), env={"PATH": str(tools)})
    check(status == 1 and said == "scripts/package: dh is not installed; run scripts/setup --for package\n", said)


def package_without_findings(tree, folder):
    (tree / "findings").mkdir(exist_ok=True)
    (tree / "findings" / "odd.sh").write_text("exit 0\n", encoding="utf-8")
    status, said = run(str(tree / "scripts" / "package"), "--source", "--out", str(folder / "sources"))
    check(status == 0, said)
    unpacked, = (path for path in (folder / "sources").glob("quorlock-*") if path.is_dir())
    check((unpacked / "LICENSE").exists() and not (unpacked / "findings").exists(), sorted(unpacked.iterdir()))


def commit_messages(tree, folder):
    """scripts/lib/commit-msg refuses what has another form, also as the hook of a repository."""
    hook, message = tree / "scripts/lib/commit-msg", folder / "message"
    for text, wrong in MESSAGES.items():
        message.write_text(text, encoding="utf-8")
        status, said = run(str(hook), str(message))
        check((status, said) == (0, "") if wrong is None else status == 1 and wrong in said, f"{text!r}: {status} {said}")
    if shutil.which("git") is None:
        print("git: not installed, left out")
        return
    repository = folder / "repository"
    env = {name: "x" for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")}
    env["GIT_DIR"] = str(repository / ".git")  # a hook that runs this test has set another one
    git = ["git", "-C", str(repository)]
    status, said = run("git", "init", "-q", str(repository), env=env)
    check(status == 0, said)
    (repository / ".git/hooks/commit-msg").unlink(missing_ok=True)
    (repository / ".git/hooks/commit-msg").symlink_to(hook)
    for text, wrong in MESSAGES.items():
        status, said = run(*git, "commit", "--allow-empty", "-q", "-m", text, env=env)
        check((status == 0) == (wrong is None), f"git commit -m {text!r}: {status} {said}")


def one_after_another(tree, folder):
    """Every pair of scripts that build, in both orders, in a tree that its reader configured without all they need."""
    log, shim = folder / "builds", folder / "shim" / "cmake"
    shim.parent.mkdir()
    shim.write_text(CMAKE.format(cmake=shutil.which("cmake"), log=log), encoding="utf-8")
    shim.chmod(0o755)
    env = {"PATH": f"{shim.parent}:{os.environ['PATH']}", "QUORLOCK_SETUP": "skip", "TMPDIR": str(folder)}
    status, said = run("cmake", "-G", "Ninja", "-S", str(tree), "-B", str(tree / "build"), "-DQUORLOCK_COMMAND=OFF",
                       "-DQUORLOCK_TESTS=OFF")
    check(status == 0, said)
    for before, name in zip(["cmake", *WALK], WALK):
        log.write_text("", encoding="utf-8")
        _, said = run(str(tree / "scripts" / name), *BUILDS[name], env=env)
        tried = log.read_text(encoding="utf-8")
        check(tried.endswith(": 0\n"), f"scripts/{name} after {before} cannot build: {said}{tried}")


def story_of_demo(tree, folder, quorlock):
    """It shows how far the build is. At the end of its story a loss is told before the next owner has the lock."""
    shim = folder / "built" / "cmake"
    shim.parent.mkdir()
    shim.write_text(BUILT.format(quorlock=quorlock), encoding="utf-8")
    shim.chmod(0o755)
    status, said = run(str(tree / "scripts" / "demo"), env={"PATH": f"{shim.parent}:{os.environ['PATH']}", "TMPDIR": str(folder),
                                                           "QUORLOCK_SETUP": "skip"})
    check(status == 0, said)
    check("building quorlock: step 2 of 4\nbuilding quorlock: step 3 of 4\n" in said, said)
    told, later = re.search(r"the owner is told at ([\d.]+) s", said), re.search(r"command starts at ([\d.]+) s", said)
    check(told and later and float(told[1]) < float(later[1]), said)


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    with tempfile.TemporaryDirectory(prefix="quorlock-scripts-") as name:
        folder = Path(name)
        copy_tree(sys.argv[1], folder / "quorlock")
        help_of_bench(folder / "quorlock")
        wrong_label(folder / "quorlock")
        commit_messages(folder / "quorlock", folder)
        package_without_debhelper(folder / "quorlock", folder)
        package_without_findings(folder / "quorlock", folder)
        story_of_demo(folder / "quorlock", folder, Path(sys.argv[2]).resolve() / "bin" / "quorlock")
        one_after_another(folder / "quorlock", folder)
        without_test_libraries(folder / "quorlock", folder)
    print("scripts, one after another, and a build without the tests' libraries do as they should")


if __name__ == "__main__":
    main()
