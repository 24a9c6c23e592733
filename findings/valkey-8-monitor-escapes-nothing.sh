#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# MONITOR of Redis shows each argument in double quotes, with a backslash before quotes and backslashes in it, so that a
# tool can read the commands again. One expects the same of Valkey 8.1, which speaks the same protocol. Its MONITOR writes
# control characters as \n or \x01, but leaves quotes and backslashes as they are: what it shows can neither be split into
# arguments nor be turned back, for a newline looks like a backslash and an n.
#
# It takes Valkey from Debian 13, with all libraries that it needs, and the Redis of the same release to compare with.
set -eu

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
valkey=8.1.1 redis=8.0.2
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || :; rm -rf "$folder"' EXIT INT TERM

mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial" "$folder/root"
: >"$folder/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$folder/list"
apt() {
    apt-get -qq -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" \
        -o Dir::Etc::sourcelist="$folder/list" -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root "$@"
}
apt update
apt install -y --download-only --no-install-recommends valkey-server redis-server >/dev/null
for package in "$folder"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder/root"; done

libraries=$folder/root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
loader=$(find "$folder/root/usr" -name 'ld-linux*' | head -n 1)
port=$((20000 + $$ % 20000))

# shown NAME VERSION: what MONITOR of that server says of ECHO with a quote, a backslash, an n and a newline.
shown() {
    said=$("$loader" --library-path "$libraries" "$folder/root/usr/bin/$1-server" --version)
    case $said in *"v=$2 "*) ;; *)
        echo "another version than $2: $said"
        exit 1
        ;;
    esac
    "$loader" --library-path "$libraries" "$folder/root/usr/bin/$1-server" --port "$port" --save '' >"$folder/log" 2>&1 &
    server=$!
    python3 - "$port" <<'PROGRAM'
import socket
import sys
import time

for _ in range(100):
    try:
        monitor = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.1)
lines = monitor.makefile("rb")
monitor.sendall(b"MONITOR\r\n")
lines.readline()
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as client:
    client.sendall(b'*2\r\n$4\r\nECHO\r\n$4\r\n"\\n\n\r\n')
    client.recv(100)
print(lines.readline().decode().rstrip().partition("] ")[2])
PROGRAM
    kill "$server"
    wait "$server" || :
    server=
}

of_redis=$(shown redis "$redis")
of_valkey=$(shown valkey "$valkey")
printf "Redis %s:  %s\n" "$redis" "$of_redis"
printf "Valkey %s: %s\n" "$valkey" "$of_valkey"
[ "$of_redis" = '"ECHO" "\"\\n\n"' ] && [ "$of_valkey" = '"ECHO" ""\n\n"' ]
