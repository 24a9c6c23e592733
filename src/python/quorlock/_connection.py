# SPDX-License-Identifier: BSD-3-Clause
"""The library's client of a set of nodes, as locks, candidates and observers use it."""
import contextlib
import ctypes
import functools
import itertools
import os
import sys
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ._errors import CLOSED, OK, Closed, error
from ._events import (ACQUIRE_ENDED, DEPOSED, ELECTED, LEADER_CHANGED, LOG, LOGIN, LOST, RELEASE_ENDED, RESIGNED, Events)
from ._handle import Handle
from ._library import library
from ._native import RLock, get_ident, pause
from ._started import tell_end
from ._waiting import CANCEL_AGAIN_S


class Connection(Handle):
    """The base of Client: its handle, the calls in it, its events, and its life across fork()."""

    def __init__(self) -> None:
        self._handle: Optional[int] = None
        self._inherited = False  # the parent of this process opened the client, and this process has not used it yet
        self._life = 0  # the number of forks before this process
        self._numbers = itertools.count(1)  # of locks, candidates and observers: the argument of their events
        self._begin()

    def _begin(self) -> None:
        """Make all that must not come from a parent."""
        self._changed = RLock()
        # Calls in the library: the thread, and a function that ends its wait.
        self._calls: List[Tuple[int, Optional[Callable[[], object]]]] = []
        self._events: Optional[Events] = None
        self._locks: "Dict[int, weakref.ref[Any]]" = {}
        self._observers: "Dict[int, weakref.ref[Any]]" = {}
        self._candidates: "Dict[int, weakref.ref[Any]]" = {}

    def _open(self) -> None:
        raise NotImplementedError

    def _leave_to_parent(self) -> None:
        """Begin anew in a child of fork(), where the parent's threads do not run, and their Python locks stay locked."""
        handle, self._handle = self._handle, None
        self._inherited = self._inherited or handle is not None
        self._life += 1
        if self._events is not None:
            self._events.leave()
        self._begin()
        if handle is not None:
            library.quorlock_sync_client_close(handle)  # here it only frees memory

    @property
    def closed(self) -> bool:
        look_for_fork()
        return self._handle is None and not self._inherited

    def _catch_up(self) -> None:
        """Know all that the library has told so far."""
        events = self._events
        if events is not None:
            events.catch_up()

    @contextlib.contextmanager
    def _call(self, cancel: Optional[Callable[[], object]] = None) -> Iterator[int]:
        """Keep the client open for a call. close() ends the call by cancel(), from its own thread, maybe several times."""
        look_for_fork()
        with self._changed:
            if self._inherited:
                self._open()
            if self._handle is None:
                raise Closed("the client is closed", CLOSED)
            handle = self._handle
            call = (get_ident(), cancel)
            self._calls.append(call)
        try:
            yield handle
        finally:
            with self._changed:
                self._calls.remove(call)

    def _still_calling(self) -> List[Optional[Callable[[], object]]]:
        """Return what cancels the calls of other threads that go on after a moment. Ctrl-C may have left one of ours."""
        me = get_ident()
        if any(thread != me for thread, _ in list(self._calls)):
            pause(CANCEL_AGAIN_S)
        with self._changed:
            return [cancel for thread, cancel in self._calls if thread != me]


# ---- events ----

def applier(client: Connection, log: Callable[[int, str], object],
            login: Optional[Callable[[str], object]]) -> Callable[[int, Any], None]:
    """Return what an event of this client does. It does not keep the client alive."""
    locks, candidates, observers, of = client._locks, client._candidates, client._observers, weakref.ref(client)

    def call(function: Callable[[], object]) -> None:
        found = of()
        if found is not None and found._events is not None:
            found._events.call(function)

    known = {LOST: locks, ELECTED: candidates, DEPOSED: candidates, RESIGNED: candidates, LEADER_CHANGED: observers}

    def apply(kind: int, event: Any) -> None:
        if kind in (ACQUIRE_ENDED, RELEASE_ENDED):
            tell_end(event)
        elif kind == LOG:
            level, text = event.level, event.text.decode(errors="replace")
            call(lambda: log(level, text))
        elif kind == LOGIN:
            if login is not None:
                call(functools.partial(login, event.text.decode()))
        else:
            # Numbers are used once; the address of a handle may be used again.
            found = known.get(kind, {}).get(event.arg)
            made = found() if found is not None else None
            if made is not None:
                made._tell(event, call)
    return apply


def begin_events(client: Connection, handle: int, log: Callable[[int, str], object],
                 login: Optional[Callable[[str], object]]) -> Events:
    """Switch the events of a client on that has just been opened."""
    fd = ctypes.c_int()
    status = library.quorlock_sync_client_events(handle, ctypes.byref(fd))
    if status != OK:
        raise error(status, "no descriptor is left for the events of the client")
    return Events(handle, fd.value, applier(client, log, login))


# ---- fork() ----

CLIENTS: "weakref.WeakSet[Connection]" = weakref.WeakSet()
LEFT: List[Callable[[], object]] = []  # what else begins anew in a child
PID = [os.getpid()]
CLOSE: List[Callable[[], object]] = []  # what releases all locks when a child ends


def leave_all_to_parent() -> None:
    PID[0] = os.getpid()
    for leave in LEFT:
        leave()
    for client in list(CLIENTS):
        client._leave_to_parent()


def look_for_fork() -> None:
    """Find a fork() of which Python was not told: uWSGI forks so, and runs no function of register_at_fork()."""
    if os.getpid() != PID[0]:
        leave_all_to_parent()


os.register_at_fork(after_in_child=leave_all_to_parent)


class Ends:
    """Has all locks released at the end of a child that runs no atexit: one of multiprocessing, or a worker of Celery."""

    def __init__(self) -> None:
        self._process = 0  # that has asked for it
        self._known: List[str] = []  # modules that tell this of new children

    def ask(self) -> None:
        """Ask for it in this process."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        for name in ("multiprocessing.util", "billiard.util"):
            util = sys.modules.get(name)
            if util is None:
                continue
            util.Finalize(None, close_all, exitpriority=100)
            if name not in self._known:
                # A child forgets what was asked for before it runs this.
                self._known.append(name)
                util.register_after_fork(self, lambda ends, util=util: util.Finalize(None, close_all, exitpriority=100))
        celery = sys.modules.get("celery.signals")
        if celery is not None:
            celery.worker_process_shutdown.connect(close_all, weak=False, dispatch_uid="quorlock")


def close_all(*_: object, **_more: object) -> None:
    for close in CLOSE:
        close()


ENDS = Ends()
