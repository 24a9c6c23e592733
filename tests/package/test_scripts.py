#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_scripts.py SOURCE BUILD - what a newcomer types first, on a copy of the tree: mistakes are told before anything
is built, and building needs no library that only tests use."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is

from test_readme import copy_tree  # noqa: E402

LIMIT_S = 120
# Stands before pkg-config, and hides what only tests need.
PKG_CONFIG = """#!/bin/sh
case " $* " in *cmocka* | *lua5.1*) exit 1 ;; esac
exec pkg-config "$@"
"""


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


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    with tempfile.TemporaryDirectory(prefix="quorlock-scripts-") as name:
        folder = Path(name)
        copy_tree(sys.argv[1], folder / "quorlock")
        help_of_bench(folder / "quorlock")
        wrong_label(folder / "quorlock")
        without_test_libraries(folder / "quorlock", folder)
    print("scripts/test, scripts/bench and a build without the tests' libraries do as they should")


if __name__ == "__main__":
    main()
