#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_operations.py SOURCE BUILD - does what quorlock-operations(7) says: the commands of the page itself, in order, on
real servers at the addresses of the page, in a network of its own.

`ssh HOST systemctl VERB redis-server` reaches the server that has the name now. Before and after a part of the page the
test does what its reader brings: programs that hold locks, other persistence, certificates.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is
from sandbox import INSIDE, NAMESPACES, SKIPPED, can_isolate, cover  # noqa: E402

LIMIT_S = 280
# What the page has for real life; so short that the test need not wait.
SHORTER = {"max-lease = 30s": "max-lease = 3s", "sleep 1\n": "sleep 0.1\n"}
SSH = """#!/bin/bash -e
address=$(getent ahostsv4 "$1" | awk 'NR == 1 { print $1 }')
cd "$SERVERS/$address"
[ "$2 $4" = "systemctl redis-server" ]
if [ "$3" != start ]; then
    pid=$(cat pid)
    while kill "$pid" 2>/dev/null; do sleep 0.05; done # refused while it writes its first append-only file
fi
if [ "$3" != stop ]; then
    redis-server redis.conf >/dev/null
    until redis-cli -h "$address" PING >/dev/null 2>&1; do sleep 0.01; done
fi
"""
PRELUDE = """
persistence() {
    for host in redis1 redis2 redis3; do
        redis-cli -h $host CONFIG SET appendonly $1
        redis-cli -h $host CONFIG REWRITE
        while redis-cli -h $host INFO persistence | grep -E '^aof_rewrite_(in_progress|scheduled):1'; do sleep 0.01; done
    done
}
hold() {
    quorlock run --wait 1m --label "$1" "${@:2}" "$1" -- sleep 1000 >"$1.log" 2>&1 &
    echo $! >"$1.pid"
    until quorlock ls "$1" | grep -q ' 3 of 3'; do sleep 0.1; kill -0 $!; done
}
held() {
    kill -0 "$(cat "$1.pid")" && quorlock inspect "$1" && quorlock ls "$1" | grep -q " $1:.* of 3"
}
let_go() {
    kill "$(cat "$1.pid")"
    while kill -0 "$(cat "$1.pid")" 2>/dev/null; do sleep 0.05; done
}
not() {
    if "$@"; then return 1; fi
}
settled() {
    until quorlock doctor --json | jq -e 'all(.nodes[]; .reachable and .quarantine_ms == 0)'; do sleep 0.1; done
}
certificates() { # of CA number $1: the CA, and a certificate for each server
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=ca $1" -days 2 -keyout ca$1.key \\
        -out ca$1.pem
    mkdir -p /etc/redis
    for host in redis1 redis2 redis3; do
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$host -keyout $host.key -out request
        openssl x509 -req -in request -CA ca$1.pem -CAkey ca$1.key -CAcreateserial -days 2 -out $host.pem \\
            -extfile <(echo subjectAltName=DNS:$host)
        mv $host.key $host.pem /etc/redis
    done
}
"""
AFTER, BEFORE = {}, {}
AFTER["THE FIRST DAY"] = "hold job; hold strict --policy all; quorlock doctor | grep 'sound: 0 unsafe, 0 warnings'"
# While the servers are restarted new locks are taken; the first that is refused ends the part.
BEFORE["So that new locks go on"] = """
(while [ ! -e ends ]; do quorlock run --wait 2s --lease 2s new -- true || touch refused; done) &
"""
AFTER["So that new locks go on"] = "touch ends; wait $!; [ ! -e refused ]; held job; held strict"
# First without persistence, then with it. At last too fast, and a lock is lost: the pace matters.
BEFORE["So that held locks go on"] = "hold slow; let_go strict; persistence no"
AFTER["So that held locks go on"] = """
held job; held slow
persistence yes; sh -e restart-soon; held job; held slow
persistence no
for verb in stop start; do for host in redis1 redis2; do ssh $host systemctl $verb redis-server; done; done
status=0; wait "$(cat slow.pid)" || status=$?; [ $status = 75 ]
persistence yes; quorlock run --wait 1m new -- true; settled; hold job
"""
AFTER["REPLACING A DEAD SERVER"] = "held job; quorlock ls job | grep ' 3 of 3'; getent hosts redis3 | grep 10.0.0.9"
AFTER["NEW PASSWORDS"] = "held job; quorlock ls job | grep ' 3 of 3'"
BEFORE["NEW CERTIFICATES"] = """
certificates 1; mv ca1.pem /etc/quorlock/ca.pem
for host in redis1 redis2 redis3; do
    redis-cli -h $host CONFIG SET tls-auth-clients no tls-ca-cert-file /etc/quorlock/ca.pem \\
        tls-cert-file /etc/redis/$host.pem tls-key-file /etc/redis/$host.key tls-port 6380
done
sed -i 's/redis\\([123]\\):6379/rediss:\\/\\/redis\\1:6380/g; $ a tls-ca = /etc/quorlock/ca.pem' /etc/quorlock.conf
hold over-tls
certificates 2; mv ca2.pem new-ca.pem
"""
AFTER["NEW CERTIFICATES"] = """
held job; held over-tls
for host in redis1 redis2 redis3; do redis-cli -h $host CLIENT KILL USER app; quorlock run other -- true; done
until quorlock ls over-tls | grep ' 3 of 3'; do sleep 0.1; done
held over-tls; let_go over-tls; let_go job
sed -i 's/rediss:..redis\\([123]\\):6380/redis\\1:6379/g; /^tls-ca/d' /etc/quorlock.conf
"""
BEFORE["A QUARANTINE THAT MUST END"] = """
for host in redis1 redis2 redis3; do ssh $host systemctl restart redis-server; done
not quorlock run -n first -- true
not quorlock bootstrap
"""
AFTER["FROM THREE TO FIVE SERVERS"] = "quorlock doctor --json | jq -e '.quorum == 3'"
AFTER["TAKING QUORLOCK OUT"] = """
not grep app <(redis-cli -h redis1 ACL LIST)
[ "$(redis-cli -h redis1 EXISTS quorlock:guard)" = 0 ]
"""


def fail(text):
    sys.exit(f"test_operations: FAILED: {text}")


def parts(page):
    """(title, commands) of each part that has commands."""
    for part in re.split(r"^\.S[HS] ", page, flags=re.M)[1:]:
        title, body = part.split("\n", 1)
        commands = "".join(re.findall(r"^\.nf\n(.*?)^\.fi$", body, flags=re.M | re.S))
        if commands:
            yield title, commands.replace("\\-", "-").replace("\\e", "\\")


def start(folder):
    """A server at each address of the page; those of the first five have names in /etc/hosts."""
    with open("/etc/hosts", "a", encoding="ascii") as hosts:
        for number in (1, 2, 3, 4, 5, 9):
            address, place = f"10.0.0.{number}", folder / f"servers/10.0.0.{number}"
            place.mkdir(parents=True)
            if number <= 5:
                hosts.write(f"{address} redis{number}\n")
            (place / "redis.conf").write_text(
                f"bind {address}\nport 6379\ndir {place}\npidfile {place}/pid\ndaemonize yes\nrequirepass admin\n"
                'save ""\nappendonly yes\nappendfsync always\n', encoding="ascii")
            subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
            subprocess.run(["redis-server", str(place / "redis.conf")], stdout=subprocess.DEVNULL, check=True)


def inside(folder, source, build):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    cover(folder / "etc", "/etc")
    mine = folder / "mine"
    mine.mkdir()
    (mine / "ssh").write_text(SSH, encoding="ascii")
    (mine / "ssh").chmod(0o755)
    # There is no systemd here, and one user: the units of the page run in tests/package/units.sh.
    for name in ("systemctl", "groupadd", "useradd", "chgrp"):
        (mine / name).write_text("#!/bin/sh\n", encoding="ascii")
        (mine / name).chmod(0o755)
    start(folder)
    page = (source / "src/man/quorlock-operations.7").read_text(encoding="utf-8")
    found = dict(parts(page))
    script = PRELUDE
    for title, commands in found.items():
        script += f"\n: '==== {title}'\n{BEFORE.pop(title, '')}\n{commands}\n{AFTER.pop(title, '')}\n"
    for long, short in SHORTER.items():
        if long not in script:
            fail(f"no '{long}' in the page")
        script = script.replace(long, short)
    if BEFORE or AFTER:
        fail(f"the page has no commands in {[*BEFORE, *AFTER]}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUORLOCK")}
    environment |= {"PATH": f"{mine}:{build / 'bin'}:{os.environ['PATH']}", "SERVERS": str(folder / "servers"),
                    "REDISCLI_AUTH": "admin", "HOME": str(mine), "XDG_CONFIG_HOME": str(mine)}
    # What it leaves running ends with the namespace.
    with open(mine / "commands.log", "w", encoding="utf-8") as log:
        ended = subprocess.run(["timeout", str(LIMIT_S), "bash", "-ex", "-c", script], cwd=mine, env=environment,
                               stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
    if ended:
        fail(f"status {ended}" + "".join(f"\n{log.name}:\n{log.read_text(encoding='utf-8')[-4000:]}"
                                         for log in sorted(mine.glob("*.log"), reverse=True)))
    metrics = (mine / "quorlock.prom").read_text(encoding="utf-8")
    for name in set(re.findall(r"\bquorlock_[a-z_]+(?= |\"|,)", page)) - {"quorlock_client_new"}:
        if f"\n{name}{{" not in metrics:
            fail(f"the page names {name}, which no metric has")
    print(f"{sum(commands.count(chr(10)) for commands in found.values())} lines of commands of quorlock-operations(7) hold")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    if INSIDE in os.environ:
        sys.exit(inside(Path(os.environ.pop(INSIDE)), Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
    if missing := [tool for tool in ("jq", "openssl", "redis-server") if shutil.which(tool) is None]:
        print(f"SKIPPED test_operations: {', '.join(missing)} is not installed; run scripts/setup")
        sys.exit(SKIPPED)
    if not can_isolate("test_operations"):
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="quorlock-operations-") as made:
        # A shell is the first process there: it collects servers that have ended.
        words = [*NAMESPACES, "bash", "-c", '"$@"; exit $?', "bash", sys.executable, *sys.argv]
        sys.exit(subprocess.run(words, timeout=LIMIT_S + 10, env={**os.environ, INSIDE: made}, check=False).returncode)
