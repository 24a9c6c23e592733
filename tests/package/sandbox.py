# SPDX-License-Identifier: BSD-3-Clause
"""A place of its own for a test: a copy of the tree, and namespaces, in which it may write anywhere and use any port."""
import os
import shutil
import subprocess
import sys

SKIPPED = 77
INSIDE = "QUORLOCK_SANDBOX"  # set in the namespaces: the folder of the test
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def copy_tree(source, copy):
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode:
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build*", ".git"))
        return
    for name in filter(None, listed.stdout.split("\0")):
        if not os.path.lexists(os.path.join(source, name)):
            continue
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.join(source, name), target, follow_symlinks=False)


def can_isolate(test):
    """Whether namespaces can be made here. If not, say that the test is skipped."""
    probe = [*NAMESPACES, "mount", "-t", "tmpfs", "none", "/mnt"]
    if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        return True
    print(f"SKIPPED {test}: no namespaces of its own here (it needs root)")
    return False


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(words)}: {done.stderr}")


def cover(folder, place):
    """What is written at that place from now on is gone with the namespace."""
    upper, work = folder / "upper", folder / "work"
    for made in (folder, upper, work):
        made.mkdir()
    run("mount", "-t", "tmpfs", "none", str(folder))
    for made in (upper, work):
        made.mkdir()
    layers = f"lowerdir={place},upperdir={upper},workdir={work}"
    if subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, place], capture_output=True, check=False).returncode:
        # No overlay on what lies there: a copy, of what is small.
        shutil.copytree(place, upper, symlinks=True, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        run("mount", "--bind", str(upper), place)
