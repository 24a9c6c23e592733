#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# BLPOP with a timeout of 0 or of more than a few seconds waits that long, and so do packages that build on it, such as
# python-redis-lock. redis-py 8 has a socket timeout of 5 s by default, where earlier versions had none, and it holds for
# commands that block, too: after 5 s they raise TimeoutError.
set -eu

python=${PYTHON:-python3}
folder=$(mktemp -d)
port=${PORT:-9759}
trap 'kill "$(cat "$folder/pid" 2>/dev/null)" 2>/dev/null || :; rm -rf "$folder"' EXIT INT TERM
redis-server --port "$port" --save '' --dir "$folder" --daemonize yes --pidfile "$folder/pid" >/dev/null

cat >"$folder/program.py" <<'PROGRAM'
import sys
import time

import redis

server = redis.Redis(port=int(sys.argv[1]))
while True:
    try:
        server.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.01)
try:
    print(server.blpop("list", 7))
except redis.TimeoutError:
    print("TimeoutError")
PROGRAM

redis-server --version
for version in 7.1.0 8.1.0; do
    "$python" -m pip install --quiet --disable-pip-version-check --target "$folder/$version" "redis==$version"
    seen=$(PYTHONPATH="$folder/$version" timeout 60 "$python" -W ignore "$folder/program.py" "$port")
    printf 'redis-py %s: expected None, seen %s\n' "$version" "$seen"
    [ "$version" = 7.1.0 ] || break
    [ "$seen" = None ]
done
[ "$seen" = TimeoutError ]
