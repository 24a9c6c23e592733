# SPDX-License-Identifier: BSD-3-Clause
"""For the tests of a program that takes locks: servers that a test may kill, and locks that it may take away.

This is a plugin of pytest, which finds it where pip has installed the package. With Debian's package, put
`pytest_plugins = ["quorlock.testing"]` into conftest.py. See quorlock-testing(7).

    def test_the_report_stops(quorlock_client, quorlock_servers):
        def later():
            quorlock_servers.lose("report")
        with pytest.raises(quorlock.Lost):
            write_report(after_a_page=later)
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest.mock
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, TypeVar, Union

from . import configure
from ._arguments import Text
from ._client import Client, ClientOptions
from ._connection import CLIENTS
from ._errors import Lost, NoQuorum
from ._lock import Lock
from ._report import bootstrap, break_lock

if TYPE_CHECKING:
    from typing import NoReturn
    Function = TypeVar("Function", bound=Callable[..., Any])

    # As this module uses them: a type checker needs no pytest.
    def fixture(*, scope: str) -> Callable[[Function], Function]: ...
    def skip(reason: str) -> NoReturn: ...
else:
    from pytest import fixture, skip

__all__ = ["Servers", "quorlock_client", "quorlock_servers"]

NODES = 3
PROGRAMS = ("redis-server", "valkey-server")
HOST = "127.0.0.1"
READY_S = 60
PATIENT: ClientOptions = {"guard": "off", "node_timeout_ms": 10000, "connect_timeout_ms": 10000}
KEPT = ("QUORLOCK_BUGGIFY", "QUORLOCK_LIBRARY", "QUORLOCK_MAX_LEASE")
DELETE_ALL = "for _, key in ipairs(redis.call('KEYS', '*')) do if key ~= 'quorlock:guard' then redis.call('DEL', key) end end"
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_thread() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One server, without persistence, on a port that is its own also while it does not run."""

    def __init__(self, program: str, folder: pathlib.Path, starter: ThreadPoolExecutor):
        self._folder, self._starter = folder, starter
        self._port = socket.socket()
        self._port.bind((HOST, 0))
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does, so that it gets the port
        self.address = f"{HOST}:{self._port.getsockname()[1]}"
        self._words = [program, "--bind", HOST, "--port", str(self._port.getsockname()[1]), "--dir", str(folder),
                       "--save", "", "--appendonly", "no", "--daemonize", "no"]
        self.start()

    def start(self) -> None:
        log = self._folder / "log"
        with open(log, "ab") as file:
            # It ends with the thread that starts it, which therefore lives as long as all of this.
            self._process = self._starter.submit(lambda: subprocess.Popen(
                self._words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, preexec_fn=die_with_thread)).result()
        end = time.monotonic() + READY_S
        while self.runs() and time.monotonic() < end:
            with contextlib.suppress(OSError):
                if self.ask("PING") == "+PONG":
                    return
            time.sleep(0.005)
        self.kill()
        raise RuntimeError(f"{self._words[0]} does not start on {self.address}: {log.read_text(errors='replace')[-2000:]}")

    def runs(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._port.close()

    def ask(self, *words: str) -> str:
        """Send a command, and return the first line of the answer."""
        text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        host, port = self._port.getsockname()
        with socket.create_connection((host, port), READY_S) as connection, connection.makefile("rb") as file:
            connection.sendall(text.encode())
            return file.readline().decode().rstrip()


class Servers:
    """Three servers of this session, which a test may kill: the fixture quorlock_servers.

    `nodes` are their addresses. A node is named by its place there: 0, 1 or 2."""

    def __init__(self, program: str, folder: pathlib.Path):
        self._starter = ThreadPoolExecutor(1)
        self._servers: List[Server] = []
        self._forgot = True  # a server has lost its memory, or all are new
        try:
            for number in range(NODES):
                place = folder / str(number)
                place.mkdir()
                self._servers.append(Server(program, place, self._starter))
            self._renew()
        except BaseException:
            self._close()
            raise

    @property
    def nodes(self) -> List[str]:
        return [server.address for server in self._servers]

    @property
    def environment(self) -> Dict[str, str]:
        """The environment for a program that is to use these servers and no others.

        Of the variables of quorlock, QUORLOCK_MAX_LEASE, QUORLOCK_BUGGIFY and QUORLOCK_LIBRARY stay as they are."""
        ours = {"QUORLOCK_NODES": ",".join(self.nodes), "QUORLOCK_CONFIG": os.devnull}
        return {**{name: value for name, value in os.environ.items() if not name.startswith("QUORLOCK_") or name in KEPT}, **ours}

    def kill(self, node: int) -> None:
        """End this server at once, by SIGKILL. What it knew is gone."""
        self._forgot = True
        self._servers[node].kill()

    def start(self, node: int) -> None:
        """Start this server again after kill(), empty.

        As in service, it has no vote for the longest lease: 30 s, or QUORLOCK_MAX_LEASE. The next test does not wait for that."""
        if not self._servers[node].runs():
            self._servers[node].start()

    def lose(self, lock: Union[Lock, Text]) -> None:
        """Take the lock away from its owner: a lock that is held, or the key of one, as the nodes have it.

        An owner in this process knows it when this returns: `lost` is true, `valid_ms` is 0, an `async with` is canceled, and
        `on_lost` is being called in the client's thread. An owner in another process is told within a few round trips if it has
        renewed the lock before, else at its next renewal. AssertionError: nobody holds it."""
        if isinstance(lock, Lock):
            lost = [lock] if lock.valid_ms > 0 else []
        else:
            with Client(self.nodes, **PATIENT) as client:
                nodes = break_lock(client, lock, None).nodes
            owners = {holder for node in nodes for holder in (node.holder, *(each.holder for each in node.holders))} - {None}
            if not owners:
                raise AssertionError(f"nobody holds {lock!r}")
            lost = [one for one in list_held() if one.token in owners]
        for one in lost:
            while one.valid_ms > 0:  # on a busy machine a node may miss the deadline of the lock's client
                for key in one._keys:
                    break_lock(one._client, key, one.token.encode())
                with contextlib.suppress(Lost, NoQuorum):
                    one.extend()  # it asks the nodes now

    def _renew(self) -> None:
        """Have all servers run, without any key. The guards stay, unless a server has lost its own."""
        for node, server in enumerate(self._servers):
            self.start(node)
            server.ask("FLUSHALL") if self._forgot else server.ask("EVAL", DELETE_ALL, "0")
        if self._forgot:
            with unittest.mock.patch.dict(os.environ, self.environment, clear=True), Client(**PATIENT) as client:
                bootstrap(client)
            self._forgot = False

    def _close(self) -> None:
        for server in self._servers:
            server.close()
        self._starter.shutdown()


def list_held() -> List[Lock]:
    """Return the locks that this process holds."""
    found = [reference() for client in list(CLIENTS) for reference in list(client._locks.values())]
    return [lock for lock in found if lock is not None and lock.valid_ms > 0]


@fixture(scope="session")
def quorlock_servers(tmp_path_factory: Any) -> Iterator[Servers]:
    """Three Redis or Valkey servers of this session, on free ports. A test may kill() and start() one, and lose() a lock.

    The test is skipped if no redis-server or valkey-server is in PATH. REDIS_SERVER names another program."""
    named = os.environ.get("REDIS_SERVER")
    found = [program for program in ([named] if named else PROGRAMS) if shutil.which(program)]
    if not found:
        skip(f"{named or ' or '.join(PROGRAMS)} is not in PATH")
    servers = Servers(found[0], tmp_path_factory.mktemp("quorlock"))
    try:
        yield servers
    finally:
        servers._close()


@fixture(scope="function")
def quorlock_client(quorlock_servers: Servers) -> Iterator[Client]:
    """A client of the servers, which have no keys and all run when the test begins. It is the client of quorlock.lock(), too.

    Clients that the test or a program of it makes without nodes use these servers: the environment says so meanwhile."""
    with unittest.mock.patch.dict(os.environ, quorlock_servers.environment, clear=True):
        quorlock_servers._renew()
        client = configure()
        try:
            yield client
        finally:
            client.close()
