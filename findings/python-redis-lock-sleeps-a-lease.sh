#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# A waiter of python-redis-lock 4.0.1 waits in BLPOP of a list for which a release of the same package pushes. One expects
# that it asks again soon after the key is gone for another reason: another program deleted it, or the lease ended. It does
# not look: it sleeps for as long as the lease that it wants for itself (without a lease: for ever).
set -eu

python=${PYTHON:-python3}
folder=$(mktemp -d)
port=${PORT:-9758}
trap 'kill "$(cat "$folder/pid" 2>/dev/null)" 2>/dev/null || :; rm -rf "$folder"' EXIT INT TERM
"$python" -m pip install --quiet --disable-pip-version-check --target "$folder/site" python-redis-lock==4.0.1 redis==8.1.0
redis-server --port "$port" --save '' --dir "$folder" --daemonize yes --pidfile "$folder/pid" >/dev/null

cat >"$folder/program.py" <<'PROGRAM'
import sys
import threading
import time

import redis
import redis_lock

LEASE_S = 4
server = redis.Redis(port=int(sys.argv[1]))
while True:
    try:
        server.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.01)
server.set("lock:job", "another", px=60000)
waiter = redis_lock.Lock(server, "job", expire=LEASE_S)
thread = threading.Thread(target=waiter.acquire)
thread.start()
while not int(server.info("clients")["blocked_clients"]):
    time.sleep(0.01)
server.delete("lock:job")
since = time.monotonic()
thread.join()
print("late" if time.monotonic() - since > LEASE_S / 2 else "soon")
PROGRAM

redis-server --version
seen=$(PYTHONPATH="$folder/site" timeout 60 "$python" -W ignore "$folder/program.py" "$port")
printf 'python-redis-lock 4.0.1\nexpected: soon\nseen: %s\n' "$seen"
[ "$seen" = late ]
