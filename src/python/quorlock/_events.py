# SPDX-License-Identifier: BSD-3-Clause
"""The thread that reads the events of a client. The library's own thread never waits for the interpreter."""
import collections
import ctypes
import sys
import types
from typing import Any, Callable, Deque

from . import _library
from ._errors import OK
from ._library import library
from ._native import RLock, Wake, get_ident, start_new_thread, wait_readable

NONE, CLOSED, LOG, LOST, ACQUIRE_ENDED, RELEASE_ENDED, ELECTED, DEPOSED, RESIGNED, LEADER_CHANGED = range(10)


class Events:
    """Takes events from the library, and hands each to apply(event).

    Any thread may do that, by catch_up(), so that what it reads is up to date. What the program gave to be called runs in
    the thread of the events alone, in order: apply() puts it there by call().
    """

    def __init__(self, handle: int, fd: int, apply: Callable[[Any], None]):
        self._handle, self._fd, self._apply = handle, fd, apply
        self._guard = RLock()
        self._over = False
        self._calls: "Deque[Callable[[], object]]" = collections.deque()
        self._wake = Wake()
        self._thread = 0

    def start(self) -> None:
        start_new_thread(self._run, ())

    def is_here(self) -> bool:
        """Whether this is the thread that calls what the program gave."""
        return bool(self._thread == get_ident())

    def call(self, function: Callable[[], object]) -> None:
        self._calls.append(function)

    def catch_up(self) -> None:
        """Apply all events that wait."""
        with self._guard:
            while not self._over:
                event = _library.Event(size=ctypes.sizeof(_library.Event))
                if library.quorlock_sync_client_next_event(self._handle, ctypes.byref(event)) != OK or event.type == NONE:
                    break
                self._over = event.type == CLOSED
                self._apply(event)
            if (self._calls or self._over) and not self.is_here():
                self._wake.set()

    def leave(self) -> None:
        """Forget the parent's descriptor in a child of fork()."""
        self._wake.close()

    def _run(self) -> None:
        self._thread = get_ident()
        while not self._over:
            wait_readable(self._fd, self._wake.fd)
            self._wake.clear()
            self.catch_up()
            self._call_all()
        with self._guard:
            self._wake.close()
        self._call_all()

    def _call_all(self) -> None:
        while self._calls:
            try:
                self._calls.popleft()()
            except BaseException as problem:  # pylint: disable=broad-except
                sys.unraisablehook(types.SimpleNamespace(
                    exc_type=type(problem), exc_value=problem, exc_traceback=problem.__traceback__, object=self,
                    err_msg="Exception ignored in what a client of quorlock called"))  # type: ignore[arg-type]
