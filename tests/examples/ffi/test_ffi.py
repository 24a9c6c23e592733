#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_ffi.py LANGUAGE BUILD FOLDER - the program of that language holds a lock on real servers, is told that it is lost, takes
it again and releases it. What it needs besides is made in FOLDER."""
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SKIPPED = 77
LIMIT_S = 240
HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
KEY = "a key"
SETUP = "scripts/setup --for more"
JNA = "/usr/share/java/jna.jar"
# What must be in PATH, or there by its whole name, who installs it, and what is there before the program runs.
LANGUAGES = {
    "lua": (["luajit", "cc"], SETUP, "header", ["luajit", "lock.lua", "quorlock.i"]),
    "php": (["php", "cc"], SETUP, "header", ["php", "-d", "ffi.enable=1", "lock.php", "quorlock.i"]),
    "rb": (["ruby"], SETUP, None, ["ruby", "lock.rb"]),
    "js": (["node", "npm"], "scripts/setup --for interop", ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "koffi@3.3.4"],
           ["node", "lock.js"]),
    "go": (["go", "cc"], "scripts/setup --for interop", ["go", "build", "-o", "lock", "lock.go"], ["./lock"]),
    "java": (["java", JNA], "scripts/setup --for interop", None, ["java", "-cp", JNA, "lock.java"]),
    "rs": (["rustc"], "Debian's rustc", ["rustc", "lock.rs"], ["./lock"]),
}


def fail(text):
    sys.exit(f"test_ffi: FAILED: {text}")


def header(folder):
    """The public headers as one text without those of the system, of which such programs know the types."""
    (folder / "empty").mkdir(exist_ok=True)
    for name in ("stddef.h", "stdint.h"):
        (folder / "empty" / name).touch()
    text = subprocess.run(["cc", "-E", "-P", "-nostdinc", f"-I{folder}/empty", f"-I{SOURCE}/include", "-"], check=True, text=True,
                          input="#include <quorlock/sync.h>\n", capture_output=True).stdout
    (folder / "quorlock.i").write_text(text, encoding="utf-8")


def prepare(language, folder, environment):
    tools, where, first, _ = LANGUAGES[language]
    for tool in tools:
        if not shutil.which(tool) and not Path(tool).exists():
            print(f"SKIPPED {tool} is missing: {where} installs it")
            sys.exit(SKIPPED)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(HERE / f"lock.{language}", folder / f"lock.{language}")
    if first == "header":
        header(folder)
    elif first:
        done = subprocess.run(first, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode and tools[0] == "node":
            print(f"SKIPPED koffi cannot be had from npm: {done.stderr.strip()[-300:]}")
            sys.exit(SKIPPED)
        if done.returncode:
            fail(f"{' '.join(first)}: {done.stdout}{done.stderr}")


def line(process, begins):
    """The next line, which begins so."""
    said = process.stdout.readline()
    if not said.startswith(begins):
        process.kill()
        fail(f"'{said}' does not begin with '{begins}'; {process.communicate()[1]}")


def inside(language, folder):
    """With servers, which end with this."""
    program = subprocess.Popen([*LANGUAGES[language][3], KEY], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line(program, f'granted "{KEY}"')
        subprocess.run([os.environ["QUORLOCK"], "break", KEY], check=True, stdout=subprocess.DEVNULL)
        line(program, "the key is gone")
        line(program, f'granted "{KEY}"')
        line(program, f'released "{KEY}"')
        said, problem = program.communicate(timeout=LIMIT_S)
        if (program.returncode, said, problem) != (0, "", ""):
            fail(f"status {program.returncode}, and at last {said} {problem}")
    finally:
        program.kill()
        program.wait()


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in LANGUAGES:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(LANGUAGES)} BUILD FOLDER")
    language, build, folder = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
    if os.environ.get("QUORLOCK_FFI_INSIDE"):
        return inside(language, folder)
    library = str(build / "lib")
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "LIBRARY_PATH": library, "CGO_CFLAGS": f"-I{SOURCE}/include",
                   "CGO_LDFLAGS": f"-L{library}", "QUORLOCK": str(build / "bin/quorlock"), "QUORLOCK_FFI_INSIDE": "1"}
    prepare(language, folder, environment)
    begin = time.monotonic()
    done = subprocess.run([SOURCE / "cluster/with", "--", sys.executable, __file__, *sys.argv[1:]], env=environment, timeout=LIMIT_S,
                          check=False)
    if done.returncode == 0:
        print(f"ok: {language}, {time.monotonic() - begin:.1f} s")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
