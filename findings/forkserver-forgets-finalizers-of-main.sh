#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# A module that registers multiprocessing.util.Finalize when it is imported expects the call at the end of each child of
# multiprocessing that imports it: a child of fork and forkserver runs no atexit. With spawn it is called. A child of
# forkserver imports the main module anew, too, yet it forgets what that has registered: it clears the registry after the
# import, before it runs the target. Only what is registered by the target itself, or by a hook of
# multiprocessing.util.register_after_fork, is called.
set -eu

python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/program.py" <<'PROGRAM'
import atexit
import multiprocessing
import multiprocessing.util as util
import os
import sys


def tell(word):
    os.write(1, ("child: %s\n" % word).encode()) if os.getpid() != int(os.environ["MAIN"]) else None


class Hook:
    pass


os.environ.setdefault("MAIN", str(os.getpid()))
hook = Hook()
atexit.register(tell, "atexit")
util.Finalize(None, tell, args=("finalizer of the import",), exitpriority=10)
util.register_after_fork(hook, lambda _: util.Finalize(None, tell, args=("finalizer of the hook",), exitpriority=10))


def target():
    pass


if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=target)
    child.start()
    child.join()
PROGRAM

"$python" --version
spawn=$("$python" "$folder/program.py" spawn)
forkserver=$("$python" "$folder/program.py" forkserver)
printf 'spawn:\n%s\nforkserver, expected:\n%s\nforkserver, seen:\n%s\n' "$spawn" 'child: finalizer of the import' "$forkserver"
case $spawn in *'finalizer of the import'*) ;; *) exit 1 ;; esac
[ "$forkserver" = 'child: finalizer of the hook' ]
