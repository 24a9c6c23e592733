# SPDX-License-Identifier: BSD-3-Clause
"""A client: its nodes, its thread, and the locks on it."""
import atexit
import contextlib
import ctypes
import logging
import os
import re
import time
import weakref
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Callable, Dict, Iterable, List, Optional, Tuple, TypedDict, Union

from . import _library
from . import _report
from ._arguments import Text, choose, encode, fill
from ._connection import CLIENTS, CLOSE, ENDS, Connection, begin_events, look_for_fork
from ._credentials import Login, Logins, read_file
from ._election import Candidate, CandidateOptions
from ._errors import BUSY, INVAL, OK, STATE, Invalid, error
from ._library import library
from ._lock import Lock, LockOptions
from ._observer import Leader, Observer
from ._report import BreakReport, InspectReport, ListReport
from ._waiting import cooperatively
from ._words import as_python

if TYPE_CHECKING:
    from typing_extensions import Unpack

POLICIES = {"majority": 0, "all": 1}
DIALECTS = {"plain": 0, "redisson": 1}
GUARDS = {"off": 1, "connection": 2, "strict": 3}
SET_REFUSED = "the client has a password_file or credentials, which give user and password"
CLOSE_LIMIT_S = 60  # then close() gives up, if calls in other threads do not end
METRICS_SIZE = 4096


class Options(ctypes.Structure):
    """struct quorlock_client_options, whose fields Client sets from the arguments of the same names"""
    _fields_ = [("size", c_size_t), ("nodes", POINTER(c_char_p)), ("n_nodes", c_size_t), ("policy", c_int),
                ("guard", c_int), ("max_lease_ms", c_uint32), ("dialect", c_int), ("user", c_char_p),
                ("password", c_char_p), ("credentials", _library.CredentialsCallback), ("credentials_arg", c_void_p),
                ("tls_ca", c_char_p), ("tls_cert", c_char_p), ("tls_key", c_char_p), ("tls_name", c_char_p),
                ("key_prefix", c_char_p), ("owner_label", c_char_p), ("set_name", c_char_p),
                ("node_timeout_ms", c_uint32), ("connect_timeout_ms", c_uint32), ("reconnect_min_ms", c_uint32),
                ("reconnect_max_ms", c_uint32), ("drift_ppm", c_uint32), ("drift_fixed_ms", c_uint32),
                ("allow_eviction", c_uint32), ("log", c_void_p), ("log_arg", c_void_p)]


def split_addresses(text: str) -> List[str]:
    """Split a text with blanks or commas between addresses, as the command does: a comma at the end is ignored."""
    words = re.split(r"\s*,\s*|\s+", text.strip())
    return words if words[-1] else words[:-1]


class ClientOptions(TypedDict, total=False):
    """The keyword arguments of Client, for type checkers."""
    set: Optional[str]
    config: Optional[str]
    policy: Optional[str]
    dialect: Optional[str]
    guard: Optional[str]
    node_timeout_ms: int
    max_lease_ms: int
    drift_ppm: int
    drift_fixed_ms: int
    reconnect_min_ms: int
    reconnect_max_ms: int
    key_prefix: Optional[str]
    owner_label: Optional[str]
    set_name: Optional[str]
    allow_eviction: Optional[bool]
    user: Optional[str]
    password: Optional[str]
    password_file: Optional[str]
    credentials: Optional[Callable[[str], Login]]
    tls_ca: Optional[str]
    tls_cert: Optional[str]
    tls_key: Optional[str]
    tls_name: Optional[str]
    connect_timeout_ms: int
    log: Optional[Callable[[int, str], None]]


class Client(Connection):
    """A set of nodes, with a thread of its own that keeps locks on them.

    `nodes` are addresses, as a list or as one text with blanks or commas between them: host:port,
    redis://[user[:password]@]host[:port][/db], rediss:// for TLS, valkey:// and valkeys:// with the same two meanings, or
    unix:///path. Without nodes, the client reads the variables and configuration files that the command reads: see
    quorlock.conf(5). `set` chooses a set of nodes there, and `config` is the only file to read. With one of these and with
    nodes, the rest comes from there. Other arguments go before the values from there.

    The other arguments are those of struct quorlock_client_options: see quorlock_client_new(3). All methods
    may be called from any thread, also in `log`, `on_lost` and `credentials`, which run in threads of the client: renewals
    do not wait for them.

    Give at most one of password, password_file and credentials. Without the last two, set_credentials() changes user and
    password. The library reads `password_file` before each login. `credentials` is called before each login to a node whose address
    has neither user nor password, with the address of the node. It returns (user, password), each of which may be None. If
    it raises, the former ones stay in use, and the log has the reason. Each node is asked for in a thread of its own, so
    the function may wait for others, such as a vault, and is called for several nodes at once, but not twice at once for
    one. If it takes longer than connect_timeout_ms, the next try of the node to connect uses what it returns.

    What the client has to say goes to the logger `quorlock` of the module logging: warnings and errors are shown unless the
    program decides otherwise, and so is why a lock waits. With `log`, that function is called instead, with a level of
    logging and a line: `log=logger.log` is one. It runs in the client's thread, as all that the client calls.

    In a child of fork() the client and its locks begin anew when they are used: with the child's own connections, and
    without the locks that the parent holds.
    """

    def __init__(self, nodes: Union[str, Iterable[str], None] = None, *, set: Optional[str] = None,
                 config: Optional[str] = None, policy: Optional[str] = None, dialect: Optional[str] = None,
                 guard: Optional[str] = None, node_timeout_ms: int = 0, max_lease_ms: int = 0, drift_ppm: int = 0,
                 drift_fixed_ms: int = 0, reconnect_min_ms: int = 0, reconnect_max_ms: int = 0,
                 key_prefix: Optional[str] = None, owner_label: Optional[str] = None, set_name: Optional[str] = None,
                 allow_eviction: Optional[bool] = None, user: Optional[str] = None, password: Optional[str] = None,
                 password_file: Optional[str] = None, credentials: Optional[Callable[[str], Login]] = None,
                 tls_ca: Optional[str] = None, tls_cert: Optional[str] = None, tls_key: Optional[str] = None,
                 tls_name: Optional[str] = None, connect_timeout_ms: int = 0,
                 log: Optional[Callable[[int, str], None]] = None):
        secret: Optional[Text] = password
        again = False
        if sum(way is not None for way in (password, password_file, credentials)) > 1:
            raise Invalid("give one of password, password_file and credentials", INVAL)
        self._settings, self._options = c_void_p(), Options(size=ctypes.sizeof(Options))
        with contextlib.ExitStack() as failed:
            failed.callback(self._forget_settings)
            if nodes is None or set is not None or config is not None:
                self._load(config, set)
            if password_file is not None:
                secret, again = read_file(password_file)
            if secret is not None or credentials is not None:
                self._options.password, self._options.credentials = None, _library.CredentialsCallback(0)
            elif user is not None and self._options.credentials:
                raise Invalid("user is given, and the password-file is that of the settings: give password_file, too", INVAL)
            self._log, self._credentials = line_to(log), credentials
            super().__init__()
            fill(self._options, policy=choose(policy, POLICIES, "policy"),
                 dialect=choose(dialect, DIALECTS, "dialect"), guard=choose(guard, GUARDS, "guard"),
                 node_timeout_ms=node_timeout_ms or None, max_lease_ms=max_lease_ms or None, drift_ppm=drift_ppm,
                 drift_fixed_ms=drift_fixed_ms, reconnect_min_ms=reconnect_min_ms, reconnect_max_ms=reconnect_max_ms,
                 key_prefix=key_prefix, owner_label=owner_label, set_name=set_name, allow_eviction=allow_eviction, user=user,
                 password=secret, tls_ca=tls_ca, tls_cert=tls_cert, tls_key=tls_key, tls_name=tls_name,
                 connect_timeout_ms=connect_timeout_ms or None)
            if password_file is not None and again:
                self._password_path = c_char_p(os.fsencode(password_file))  # the options refer to it
                self._options.credentials = ctypes.cast(library.quorlock_credentials_read_file, _library.CredentialsCallback)
                self._options.credentials_arg = ctypes.cast(self._password_path, c_void_p)
            if nodes is not None:
                if not isinstance(nodes, Iterable):
                    raise TypeError(f"nodes is {nodes!r}: it must be str or a list of addresses")
                words = split_addresses(nodes) if isinstance(nodes, str) else list(nodes)
                addresses = [encode(word, "the address of a node", secret=True) for word in words]
                self._options.nodes, self._options.n_nodes = _library.text_array(addresses), len(addresses)
            self._open()
            failed.pop_all()
        CLIENTS.add(self)

    def _load(self, config: Optional[str], name: Optional[str]) -> None:
        """Fill the options from environment and files."""
        found = _library.Error()
        status = library.quorlock_settings_load(
            ctypes.byref(self._settings), None if config is None else encode(os.fspath(config), "config"),
            None if name is None else encode(name, "set"), ctypes.byref(found))
        if status == OK:
            status = library.quorlock_settings_options(self._settings, ctypes.byref(self._options), ctypes.byref(found))
        if status != OK:
            raise error(status, found.text.decode(errors="replace"))

    def _forget_settings(self) -> None:
        settings, self._settings = self._settings, c_void_p()
        if settings:
            library.quorlock_settings_free(settings)

    def _begin(self) -> None:
        super()._begin()
        self._logins = None if self._credentials is None else Logins(self, self._credentials)

    def _open(self) -> None:
        found, handle = _library.Error(), c_void_p()
        if self._logins is not None:
            self._options.credentials = ctypes.cast(library.quorlock_credentials_defer, _library.CredentialsCallback)
        status = library.quorlock_sync_client_new(ctypes.byref(handle), ctypes.byref(self._options), ctypes.byref(found))
        if status != OK:
            raise error(status, found.text.decode(errors="replace"))
        assert handle.value is not None
        try:
            self._events = begin_events(self, handle.value, self._log, None if self._logins is None else self._logins.ask)
            self._events.start()
        except BaseException:
            library.quorlock_sync_client_close(handle)
            raise
        self._handle, self._inherited = handle.value, False
        ENDS.ask()

    def __repr__(self) -> str:
        # Addresses are left out, because they may have passwords.
        return f"<quorlock.Client of {self._options.n_nodes} nodes{': closed' if self.closed else ''}>"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # AttributeError: __init__ failed. RuntimeError: the interpreter ends, and starts no thread any more.
        with contextlib.suppress(AttributeError, RuntimeError):
            look_for_fork()
            self.close()

    def set_credentials(self, user: Optional[str] = None, password: Optional[str] = None) -> None:
        """Set user and password for later logins at nodes whose address has neither. Open connections stay open."""
        given = {name: None if text is None else encode(text, name, secret=True)
                 for name, text in (("user", user), ("password", password))}
        self._log_in(None, given["user"], given["password"])
        self._options.user, self._options.password = given["user"], given["password"]  # for a child of fork()

    def _log_in(self, node: Optional[str], user: Optional[bytes], password: Optional[bytes]) -> None:
        """Answer the logins that wait at the node, or set what all nodes log in with."""
        found, to = _library.Error(), None if node is None else node.encode()
        with self._call() as handle:
            status = library.quorlock_sync_client_set_credentials(handle, to, user, password, found)
        if status != OK:
            raise error(status, SET_REFUSED if status == STATE else found.text.decode(errors="replace"))

    def _say(self, level: int, text: str) -> None:
        """Add a line to the log."""
        if self._events is not None:
            self._events.call(lambda: self._log(level, text))
            self._events.catch_up()

    def lock(self, *keys: Text, **options: "Unpack[LockOptions]") -> Lock:
        """Make a lock on these keys. The options are those of Lock."""
        return Lock(self, keys, **options)

    def candidate(self, name: Text, **options: "Unpack[CandidateOptions]") -> Candidate:
        """Make a candidate of the election `name`. The options are those of Candidate."""
        return Candidate(self, name, **options)

    def observe(self, name: Text, on_change: Optional[Callable[[Leader], None]] = None, *, poll_ms: int = 0) -> Observer:
        """Observe who leads the election `name`, now and at every change."""
        return Observer(self, name, on_change, poll_ms=poll_ms)

    def inspect(self, key: Text) -> InspectReport:
        """Ask every node who holds the key. Nothing is written."""
        found: InspectReport = cooperatively(lambda: _report.inspect(self, key))
        return found

    def list_locks(self, pattern: Text = "*") -> ListReport:
        """Find the locks whose keys match the pattern, a glob as of SCAN MATCH. Nothing is written."""
        found: ListReport = cooperatively(lambda: _report.ask_for_all(self, pattern))
        return found

    def break_lock(self, key: Text, owner: Optional[Text] = None) -> BreakReport:
        """Delete the key on all nodes, whoever holds it; the holder notices at its next renewal at the latest.

        With `owner`, the whole token of a holder as inspect() shows it, delete only what that one holds. In the report
        the nodes where a key was deleted have the state "broken"."""
        whose = None if owner is None else encode(owner, "the owner")
        found: BreakReport = cooperatively(lambda: _report.break_lock(self, key, whose))
        return found

    def metrics(self) -> str:
        """Return the counters as text in the format OpenMetrics; quorlock(7) lists them. It may be called anywhere."""
        size = METRICS_SIZE
        while True:
            text, length = ctypes.create_string_buffer(size), c_size_t()
            with self._call() as handle:
                status = library.quorlock_sync_client_metrics(handle, None, text, size, ctypes.byref(length))
            if status != OK:
                raise error(status, "")
            if length.value < size:
                return text.value.decode()
            size = length.value + METRICS_SIZE  # the text may grow before the next call

    def close(self) -> None:
        """Release all locks. Waiting calls in other threads end with Closed. A second close does nothing."""
        look_for_fork()
        cooperatively(self._close)

    def _close(self) -> None:
        with self._changed:
            handle, self._handle = self._handle, None
            self._inherited = False
        if handle is None:
            return
        until = time.monotonic() + CLOSE_LIMIT_S
        while (waiting := self._still_calling()) and time.monotonic() < until:
            for cancel in waiting:
                if cancel is not None:
                    cancel()
        status = library.quorlock_sync_client_close(handle) if not waiting else BUSY
        if status != OK:
            self._handle = handle
            raise error(status, "calls in other threads do not end")
        self._catch_up()
        self._forget_settings()


LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
LOGGER = logging.getLogger("quorlock")


WAIT = re.compile(r'waiting for "(.*?)": ')
LONG_WAIT_S, NEXT_WAIT_S = 1, 60  # while a wait goes on, the library says so every 10 s at least
WAITS_MAX = 10000


class Waits:
    """How long locks have been waited for, by their keys."""

    def __init__(self) -> None:
        self._told: "Dict[str, Tuple[float, float]]" = {}  # when first and last

    def is_long(self, key: str) -> bool:
        """Note a line about a wait for the key, and return whether the wait is long."""
        now = time.monotonic()
        if len(self._told) > WAITS_MAX:
            self._told.clear()
        first, last = self._told.get(key, (now, now))
        if now - last > NEXT_WAIT_S:
            first = now
        self._told[key] = first, now
        return now - first >= LONG_WAIT_S


def line_to(log: Optional[Callable[[int, str], object]]) -> Callable[[int, str], object]:
    """Return what a line of the library's log goes to."""
    waits = Waits()

    def tell(number: int, text: str) -> None:
        level, wait = LEVELS[number], WAIT.match(text)
        if wait and waits.is_long(wait[1]):
            level = max(level, logging.WARNING)  # who waits for ever wants to know why
        if log is not None:
            log(level, as_python(text))
        elif LOGGER.isEnabledFor(level):
            LOGGER.log(level, "%s", as_python(text))
    return tell


@atexit.register
def close_all() -> None:
    for client in list(CLIENTS):
        if isinstance(client, Client):
            client.close()


CLOSE.append(close_all)
