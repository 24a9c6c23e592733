# SPDX-License-Identifier: BSD-3-Clause
"""The thread that reads the events of a client. The library's own thread never waits for the interpreter."""
import asyncio
import collections
import ctypes
import os
import sys
import types
import weakref
from typing import Any, Callable, Deque

from . import _library
from ._errors import OK
from ._library import library
from ._native import RLock, Wake, get_ident, start_new_thread, wait_readable

NONE, CLOSED, LOG, LOST, ACQUIRE_ENDED, RELEASE_ENDED, ELECTED, DEPOSED, RESIGNED, LEADER_CHANGED, LOGIN = range(11)


class Reader:
    """Has an event loop read the events. Its descriptor is its own, because that of the library ends with the client."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, read: Callable[[], None]):
        self._fd = os.dup(fd)
        loop.add_reader(self._fd, read)

    def end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leave the loop, in any thread."""
        try:
            loop.call_soon_threadsafe(loop.remove_reader, self._fd)
            loop.call_soon_threadsafe(self.close)
        except RuntimeError:  # it is closed
            self.close()

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class Events:
    """Takes events from the library, and hands each to apply(type, event).

    Any thread may do that, by catch_up(), so that what it reads is up to date. What the program gave to be called runs in
    the thread of the events alone, in order: apply() puts it there by call().

    Event loops of asyncio that use the client read the events first; the thread reads what they leave for so long.
    """
    LOOPS_FIRST_MS = 5

    def __init__(self, handle: int, fd: int, apply: Callable[[int, Any], None]):
        self._handle, self._fd, self._apply = handle, fd, apply
        self._guard = RLock()
        self._over = False
        self._event = _library.Event(size=ctypes.sizeof(_library.Event))  # that is being applied
        self._calls: "Deque[Callable[[], object]]" = collections.deque()
        self._wake = Wake()
        self._thread = 0
        self._readers: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Reader]" = weakref.WeakKeyDictionary()
        self._last_loop: Callable[[], Any] = lambda: None

    def start(self) -> None:
        start_new_thread(self._run, ())

    def is_here(self) -> bool:
        """Whether this is the thread that calls what the program gave."""
        return bool(self._thread == get_ident())

    def call(self, function: Callable[[], object]) -> None:
        self._calls.append(function)

    def read_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the loop that runs in this thread read the events, too."""
        if self._last_loop() is loop:
            return
        with self._guard:
            if loop not in self._readers and not self._over:
                try:
                    self._readers[loop] = Reader(loop, self._fd, self.catch_up)
                except NotImplementedError:
                    return
        self._last_loop = weakref.ref(loop)

    def catch_up(self) -> None:
        """Apply all events that wait."""
        event = self._event
        with self._guard:
            try:
                while not self._over:
                    # One of which a signal interrupted the thread that took it is applied again.
                    kind = event.type
                    if kind == NONE:
                        if library.quorlock_sync_client_next_event(self._handle, event) != OK:
                            break
                        kind = event.type
                        if kind == NONE:
                            break
                    self._over = kind == CLOSED
                    self._apply(kind, event)
                    event.type = NONE
            finally:
                if (self._calls or self._over or event.type != NONE) and not self.is_here():
                    self._wake.set()

    def leave(self) -> None:
        """Forget the parent's descriptors in a child of fork()."""
        self._over = True
        self._wake.close()

    def _run(self) -> None:
        self._thread = get_ident()
        while not self._over:
            wait_readable(self._fd, self._wake.fd)
            if len(self._readers) > 0:
                wait_readable(self._wake.fd, most_ms=self.LOOPS_FIRST_MS)
            self._wake.clear()
            self.catch_up()
            self._call_all()
        with self._guard:
            self._wake.close()
            for loop, reader in list(self._readers.items()):
                reader.end(loop)
        self._call_all()

    def _call_all(self) -> None:
        while self._calls:
            try:
                self._calls.popleft()()
            except BaseException as problem:  # pylint: disable=broad-except
                sys.unraisablehook(types.SimpleNamespace(
                    exc_type=type(problem), exc_value=problem, exc_traceback=problem.__traceback__, object=self,
                    err_msg="Exception ignored in what a client of quorlock called"))  # type: ignore[arg-type]
