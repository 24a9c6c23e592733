# SPDX-License-Identifier: BSD-3-Clause
"""The library's client of a set of nodes, as locks, candidates and observers use it."""
import contextlib
import itertools
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _library
from ._errors import CLOSED, Closed
from ._handle import Handle
from ._library import library
from ._started import Home, tell_ends
from ._waiting import CANCEL_AGAIN_S


class Connection(Handle):
    """The base of Client: its handle, the calls in it, and its life across fork().

    Client makes the callbacks. The library may call them until the client is closed, also for a lock, a candidate or an
    observer that does not exist any more.
    """
    _on_lost: Any
    _on_leader: Any
    _on_election: Any

    def __init__(self) -> None:
        self._handle: Optional[int] = None
        self._inherited = False  # the parent of this process opened the client, and this process has not used it yet
        self._life = 0  # the number of forks before this process
        self._numbers = itertools.count(1)  # of locks, candidates and observers: the argument of their callbacks
        self._begin()

    def _begin(self) -> None:
        """Make all that must not come from a parent."""
        self._changed = threading.Condition()
        # Calls in the library: the thread, and a function that ends its wait.
        self._calls: List[Tuple[int, Optional[Callable[[], object]]]] = []
        self._home = Home()
        self._locks: "Dict[int, weakref.ref[Any]]" = {}
        self._observers: "Dict[int, weakref.ref[Any]]" = {}
        self._candidates: "Dict[int, weakref.ref[Any]]" = {}
        self._on_end = _library.EndCallback(tell_ends(self._home))

    def _open(self) -> None:
        raise NotImplementedError

    def _leave_to_parent(self) -> None:
        """Begin anew in a child of fork(), where the parent's threads do not run, and their Python locks stay locked."""
        handle, self._handle = self._handle, None
        self._inherited = self._inherited or handle is not None
        self._life += 1
        self._begin()
        if handle is not None:
            library.quorlock_blocking_close(handle)  # here it only frees memory

    @property
    def closed(self) -> bool:
        return self._handle is None and not self._inherited

    @contextlib.contextmanager
    def _call(self, cancel: Optional[Callable[[], object]] = None) -> Iterator[int]:
        """Keep the client open for a call. close() ends the call by cancel(), from its own thread, maybe several times."""
        if self._home.is_here():
            # No close ends before this callback does, so the client stays open. To wait for the condition could be a
            # deadlock: its owner may wait for this thread, because the garbage collector or a signal may have run this
            # code anywhere.
            here = self._handle
            if here is None:
                raise Closed("the client is closed", CLOSED)
            yield here
            return
        with self._changed:
            if self._inherited:
                self._open()
            if self._handle is None:
                raise Closed("the client is closed", CLOSED)
            handle = self._handle
            call = (threading.get_ident(), cancel)
            self._calls.append(call)
        try:
            yield handle
        finally:
            with self._changed:
                self._calls.remove(call)
                self._changed.notify_all()

    def _still_calling(self) -> List[Optional[Callable[[], object]]]:
        """Return what cancels the calls of other threads that go on after a moment. Ctrl-C may have left one of ours."""
        me = threading.get_ident()
        with self._changed:
            if any(thread != me for thread, _ in self._calls):
                self._changed.wait(CANCEL_AGAIN_S)
            return [cancel for thread, cancel in self._calls if thread != me]
