#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# os.register_at_fork() is how a library learns of fork(): its function runs in each child, that of os.fork() and of
# multiprocessing alike, and a worker of gunicorn is one. One expects the same of uWSGI, which imports the application in its
# master and forks workers. It forks in C and tells Python nothing, unless --py-call-osafterfork is set, so sockets, threads and
# locks of the master seem to be the worker's own. Only os.getpid() tells.
set -eu

python=${PYTHON:-python3}
version=2.0.30.post1
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -9 $server $(cat "$folder"/children) 2>/dev/null || :; rm -rf "$folder"' EXIT INT TERM
"$python" -m pip install --quiet --disable-pip-version-check --target "$folder/site" "pyuwsgi==$version"

cat >"$folder/program.py" <<'PROGRAM'
import os

PARENT = os.getpid()
hooks = []
os.register_at_fork(after_in_child=lambda: hooks.append(os.getpid()))


def application(environ, start_response):
    text = "another process: %s, hooks run in it: %d" % (os.getpid() != PARENT, len(hooks))
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text.encode()]
PROGRAM

# What a worker says; the words are options of uWSGI.
ask() {
    port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    (cd "$folder" && PYTHONPATH="$folder/site:$folder" exec "$python" -c 'import pyuwsgi, sys; pyuwsgi.run(sys.argv[1:])' \
        --http-socket "127.0.0.1:$port" --master -p 1 --module program:application "$@") >"$folder/log" 2>&1 &
    server=$!
    "$python" - "$port" <<'ASK'
import sys
import time
import urllib.request

for _ in range(600):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:%s/" % sys.argv[1], timeout=60).read().decode())
        break
    except OSError:
        time.sleep(0.2)
ASK
    cat "/proc/$server/task/$server/children" >"$folder/children"
    kill -INT "$server"
    wait "$server" || :
    server=
}

bare=$(ask)
told=$(ask --py-call-osafterfork)
"$python" --version
printf 'pyuwsgi %s\nexpected of both:\nanother process: True, hooks run in it: 1\nseen:\n%s\nseen with --py-call-osafterfork:\n%s\n' \
    "$version" "$bare" "$told"
[ "$bare" = 'another process: True, hooks run in it: 0' ] && [ "$told" = 'another process: True, hooks run in it: 1' ]
