# SPDX-License-Identifier: BSD-3-Clause
"""A client: its nodes, its thread, and the locks on it."""
import atexit
import contextlib
import ctypes
import os
import re
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _library
from ._arguments import SEED_MAX, Text, choose, encode, number, set_numbers
from ._errors import BUSY, CLOSED, OK, STATE, Closed, error
from ._library import library
from ._lock import Home, Lock, Waiting

POLICIES = {"majority": 0, "all": 1}
DIALECTS = {"plain": 0, "redisson": 1}
GUARDS = {"off": 1, "connection": 2, "strict": 3}
# How long close() waits before it cancels again what began meanwhile.
CANCEL_AGAIN_S = 0.01
CLOSE_LIMIT_S = 60

class Client:
    """A set of nodes, with a thread of its own that keeps locks on them.

    `nodes` are addresses, host:port, redis://[user[:password]@]host[:port][/db], rediss:// for TLS, or unix:///path, as
    a list or as one text with blanks or commas between them. The other arguments are those of struct
    quorlock_client_options in quorlock.h; what is not given has the default. All methods may be called from any thread,
    but what waits, close() too, raises Error in the thread of the client itself, which calls `log` and `on_lost`.

    `log` is called with a level (0 debug to 3 error) and a line, in the thread of the client: while it runs no lock is
    renewed, so it should be short.
    """

    def __init__(self, nodes: Union[str, Iterable[str]], *, policy: str = "majority", dialect: str = "plain",
                 guard: str = "connection", node_timeout_ms: int = 0, max_lease_ms: int = 0, drift_ppm: int = 0,
                 drift_fixed_ms: int = 0, reconnect_min_ms: int = 0, reconnect_max_ms: int = 0,
                 key_prefix: Optional[str] = None, owner_label: Optional[str] = None, set_name: Optional[str] = None,
                 allow_eviction: bool = False, user: Optional[str] = None, password: Optional[str] = None,
                 tls_ca: Optional[str] = None, tls_cert: Optional[str] = None, tls_key: Optional[str] = None,
                 tls_name: Optional[str] = None, buggify: int = 0,
                 log: Optional[Callable[[int, str], None]] = None):
        self._handle: Optional[int] = None
        self._pid = os.getpid()
        self._changed = threading.Condition()
        # Calls in the library: the thread, and the handle of the lock that waits.
        self._calls: List[Tuple[int, Optional[int]]] = []
        self._callbacks: Dict[int, Any] = {}  # of each handle, for as long as the library may call it
        self._home = Home()
        self._log = _library.LogCallback(tell_line(self._home, log))
        words = re.split(r"[\s,]+", nodes.strip(" \t\r\n,")) if isinstance(nodes, str) else list(nodes)
        addresses = [encode(word, "the address of a node", secret=True) for word in words if word]
        self._error = ctypes.create_string_buffer(_library.TEXT_SIZE)
        options = _library.ClientOptions(
            size=ctypes.sizeof(_library.ClientOptions), nodes=_library.text_array(addresses), n_nodes=len(addresses),
            policy=choose(policy, POLICIES, "policy"), dialect=choose(dialect, DIALECTS, "dialect"),
            guard=choose(guard, GUARDS, "guard"), allow_eviction=int(allow_eviction),
            error=ctypes.cast(self._error, ctypes.c_char_p), error_size=_library.TEXT_SIZE)
        set_numbers(options, {"node_timeout_ms": node_timeout_ms, "max_lease_ms": max_lease_ms,
                              "drift_ppm": drift_ppm, "drift_fixed_ms": drift_fixed_ms,
                              "reconnect_min_ms": reconnect_min_ms, "reconnect_max_ms": reconnect_max_ms})
        options.buggify = number(buggify, "buggify", SEED_MAX)
        for name, text in {"key_prefix": key_prefix, "owner_label": owner_label, "set_name": set_name, "user": user,
                           "password": password, "tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key,
                           "tls_name": tls_name}.items():
            if text is not None:
                setattr(options, name, encode(text, name, secret=name == "password"))
        if log is not None:
            options.log = self._log
        handle = ctypes.c_void_p()
        status = library.quorlock_blocking_open(ctypes.byref(handle), ctypes.byref(options))
        if status != OK:
            raise error(status, self._error.value.decode(errors="replace"))
        self._handle = handle.value
        CLIENTS.add(self)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # AttributeError: __init__ failed. RuntimeError: no thread begins any more, the interpreter ends.
        with contextlib.suppress(AttributeError, RuntimeError):
            if self._home.is_here():
                Waiting(self.close).start()
            else:
                self.close()

    def lock(self, *keys: Text, **options: Any) -> Lock:
        """A lock on these keys. The options are those of Lock."""
        return Lock(self, keys, **options)

    def close(self) -> None:
        """Releases all locks. Calls that wait in other threads end with Closed. A second close does nothing."""
        if os.getpid() != self._pid:
            return
        if self._handle is not None and self._home.is_here():
            raise error(STATE, "close() in the thread of the client, which it would wait for: call it in another one")
        with self._changed:
            handle, self._handle = self._handle, None
        if handle is None:
            return
        until = time.monotonic() + CLOSE_LIMIT_S
        while (waiting := self._still_calling()) and time.monotonic() < until:
            for lock in waiting:
                if lock is not None:
                    library.quorlock_blocking_cancel(lock)
        status = library.quorlock_blocking_close(handle) if not waiting else BUSY
        if status != OK:
            self._handle = handle
            raise error(status, "calls of other threads do not end")

    def _still_calling(self) -> List[Optional[int]]:
        """What is left of other threads' calls after a moment. Ctrl-C may have left one of this thread there."""
        me = threading.get_ident()
        with self._changed:
            if any(thread != me for thread, _ in self._calls):
                self._changed.wait(CANCEL_AGAIN_S)
            return [lock for thread, lock in self._calls if thread != me]

    @property
    def closed(self) -> bool:
        return self._handle is None or os.getpid() != self._pid

    @contextlib.contextmanager
    def _call(self, lock: Optional[int] = None) -> Iterator[int]:
        """The client stays open until this ends."""
        if os.getpid() != self._pid:
            raise Closed("the client belongs to the process that this one was forked from", CLOSED)
        if self._home.is_here():
            # No close ends before this callback does. Waiting could be for a thread that waits for this one: what the
            # garbage collector or a signal runs calls the library wherever that thread is.
            here = self._handle
            if here is None:
                raise Closed("the client is closed", CLOSED)
            yield here
            return
        with self._changed:
            if self._handle is None:
                raise Closed("the client is closed", CLOSED)
            handle = self._handle
            call = (threading.get_ident(), lock)
            self._calls.append(call)
        try:
            yield handle
        finally:
            with self._changed:
                self._calls.remove(call)
                self._changed.notify_all()


def tell_line(home: Home, log: Optional[Callable[[int, str], None]]) -> Callable[..., None]:
    def on_line(_arg: object, level: int, text: bytes) -> None:
        home.enter()
        if log is not None:
            log(level, text.decode(errors="replace"))
    return on_line


CLIENTS: "weakref.WeakSet[Client]" = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    for client in list(CLIENTS):
        client.close()

