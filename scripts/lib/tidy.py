# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy, and the questions of conditions.query, over a compile_commands.json, two files at a time.

A clean file is not checked again until something has changed: the file or a
file that it includes (also in comments, which may have NOLINT), its compile
command, the checks, or clang-tidy.

The analyzer follows the paths through a function up to a limit, by default a
fourteenth of its own: most of its time would go into longer paths, which see
the same lines again. It skips the tests, which run under the sanitizers; the
other checks include them. QUORLOCK_LINT_DEEP=1 uses the analyzer's own limit,
and includes the tests.

usage: tidy.py SOURCE_DIR BUILD_DIR [FILE...]
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

DEEP = os.environ.get("QUORLOCK_LINT_DEEP") == "1"
BOUND = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=16000") if not DEEP]
NO_ANALYZER = "--checks=-clang-analyzer-*"
QUERY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "conditions.query")
SAID = {"pointer": "a pointer is no condition; compare it with NULL",
        "number": "a number is no condition; compare it with a number"}


def commands_of(build, root):
    """File -> its compile commands, for the project's own files."""
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for entry in json.load(f):
            path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
            if path.startswith(root + os.sep) and not path.startswith(os.path.realpath(build) + os.sep):
                words = entry.get("arguments") or shlex.split(entry["command"])
                found.setdefault(path, []).append((entry["directory"], words))
    return found


def preprocessed(directory, words):
    """The preprocessed source with its comments; None: it does not compile."""
    kept, skip = [], False
    for word in words:
        if skip or word in ("-c", "-MD", "-MMD"):
            skip = False
        elif word in ("-o", "-MF", "-MT", "-MQ"):
            skip = True
        else:
            kept.append(word)
    done = subprocess.run(kept + ["-E", "-C"], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def tidy(build, path, *more):
    return subprocess.run(["clang-tidy", "--quiet", "-p", build, *BOUND, *more, path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)


def clang_query():
    """The program beside clang-tidy: a distribution may put only clang-tidy itself on the path."""
    beside = os.path.dirname(os.path.realpath(shutil.which("clang-tidy")))
    return shutil.which("clang-query", path=beside) or shutil.which("clang-query")


def conditions(build, path):
    """The findings of conditions.query, one line each."""
    done = subprocess.run([clang_query(), "-p", build, "--extra-arg=-w", "-f", QUERY, path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        return f"{os.path.relpath(path)}:1: clang-query failed: {done.stderr or done.stdout}"
    found = re.findall(r'^(\S+):(\d+):\d+: note: "(\w+)" binds here$', done.stdout, re.M)
    return "\n".join(dict.fromkeys(f"{os.path.relpath(name)}:{line}: {SAID[what]}" for name, line, what in found))


def check(path, commands, build, salt, cache, *more):
    digest = hashlib.sha256(salt + "".join(more).encode())
    for directory, words in commands:
        text = preprocessed(directory, words)
        if text is None:
            digest = None
            break
        digest.update("\0".join(words).encode())
        digest.update(text)
    mark = os.path.join(cache, digest.hexdigest()) if digest else None
    if mark and os.path.exists(mark):
        return True, ""
    done, note = tidy(build, path, *more), ""
    if "PLEASE submit a bug report" in done.stderr:
        # Its path-sensitive part crashes on some sound code; the other checks still run.
        note = f"tidy: clang-analyzer crashes on {os.path.relpath(path)}, looked at without it"
        done = tidy(build, path, NO_ANALYZER)
    odd = conditions(build, path)
    if done.returncode == 0 and not odd:
        if mark:
            open(mark, "w", encoding="utf-8").close()
        return True, note
    return False, "\n".join(filter(None, [done.returncode and (done.stdout or done.stderr), odd]))


def main():
    root, build = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    cache = os.path.join(build, "tidy-cache")
    os.makedirs(cache, exist_ok=True)
    if not clang_query():
        sys.exit("tidy: there is no clang-query beside clang-tidy; run scripts/setup")
    salt = "".join(BOUND).encode()
    for name in (os.path.join(root, ".clang-tidy"), os.path.join(root, "src", ".clang-tidy"), QUERY):
        with open(name, "rb") as f:
            salt += f.read()
    salt += subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    commands, tests = commands_of(build, root), os.path.join(root, "tests") + os.sep
    wanted = {os.path.realpath(name) for name in sys.argv[3:]} or set(commands)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(check, p, commands[p], build, salt, cache, *([NO_ANALYZER] if p.startswith(tests) and not DEEP else []))
                for p in sorted(wanted) if p in commands]
        for job in concurrent.futures.as_completed(jobs):
            fine, text = job.result()
            bad += not fine
            if text:
                print(text.rstrip(), flush=True)
    print(f"tidy: {len(jobs)} files, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
