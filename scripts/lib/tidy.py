# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy over a compile_commands.json, two files at a time.

A file that was clean is not looked at again until anything it is made of has
changed: itself and all that it includes (comments too, they can carry NOLINT),
its compile command, the checks, or clang-tidy.

usage: tidy.py SOURCE_DIR BUILD_DIR [FILE...]
"""
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys


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
    """What the compiler sees, comments kept; None when it does not compile."""
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
    return subprocess.run(["clang-tidy", "--quiet", "-p", build, *more, path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)


def check(path, commands, build, salt, cache):
    digest = hashlib.sha256(salt)
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
    done, note = tidy(build, path), ""
    if "PLEASE submit a bug report" in done.stderr:
        # Its path-sensitive part crashes on some sound code; the rest can still look.
        note = f"tidy: clang-analyzer crashes on {os.path.relpath(path)}, looked at without it"
        done = tidy(build, path, "--checks=-clang-analyzer-*")
    if done.returncode == 0:
        if mark:
            open(mark, "w", encoding="utf-8").close()
        return True, note
    return False, done.stdout or done.stderr


def main():
    root, build = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    cache = os.path.join(build, "tidy-cache")
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(root, ".clang-tidy"), "rb") as f:
        salt = f.read()
    salt += subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    commands = commands_of(build, root)
    wanted = {os.path.realpath(name) for name in sys.argv[3:]} or set(commands)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        jobs = {pool.submit(check, p, commands[p], build, salt, cache): p for p in sorted(wanted) if p in commands}
        for job in concurrent.futures.as_completed(jobs):
            fine, text = job.result()
            bad += not fine
            if text:
                print(text.rstrip(), flush=True)
    print(f"tidy: {len(jobs)} files, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
