#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# billiard is Celery's copy of multiprocessing. A process of it runs billiard.util.Finalize at its end, so one expects that
# a worker of its pool, which is such a process, does so when the pool is closed in order. It calls neither finalizers nor
# atexit: it ends by os._exit(). What is called is the pool's on_process_exit, which Celery turns into its signal
# worker_process_shutdown.
set -eu

python=${PYTHON:-python3}
version=4.2.1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
"$python" -m pip install --quiet --disable-pip-version-check --target "$folder/site" "billiard==$version"

cat >"$folder/program.py" <<'PROGRAM'
import atexit
import os

import billiard
import billiard.pool
from billiard import util


def tell(word):
    os.write(1, ("%s\n" % word).encode())


def handlers(kind):
    util.Finalize(None, tell, args=("%s: finalizer" % kind,), exitpriority=10)
    atexit.register(tell, "%s: atexit" % kind)


def work():
    handlers("process")


def shut_down(pid, code):
    tell("worker: on_process_exit")


if __name__ == "__main__":
    child = billiard.Process(target=work)
    child.start()
    child.join()
    pool = billiard.pool.Pool(1, initializer=handlers, initargs=("worker",), on_process_exit=shut_down)
    pool.apply(int)
    pool.close()
    pool.join()
PROGRAM

expected='process: finalizer
worker: finalizer'
seen=$(PYTHONPATH="$folder/site" timeout 60 "$python" -W ignore "$folder/program.py")
"$python" --version
printf 'billiard %s\nexpected:\n%s\nseen:\n%s\n' "$version" "$expected" "$seen"
[ "$seen" = 'process: finalizer
worker: on_process_exit' ]
