# SPDX-License-Identifier: BSD-3-Clause
"""Acquires and releases without a waiting thread: their ends are events, which are handed to the event loop.

Whoever takes the events must not wait for another thread. So threads agree by steps of the interpreter that are atomic.
"""
import asyncio
import itertools
from typing import Any, Callable, Dict, List, Optional

from ._errors import OK
from ._native import get_ident


class Home:
    """The library's thread. It runs Python only to ask for credentials, and is known from then on."""

    def __init__(self) -> None:
        self._thread: Optional[int] = None

    def enter(self) -> None:
        self._thread = get_ident()

    def is_here(self) -> bool:
        return bool(self._thread == get_ident())


# Operations in flight, by number. This keeps tasks alive to which nobody else has a reference. A child of fork() does not
# touch the entries of its parent.
STARTED: Dict[int, Callable[[Any], object]] = {}
NUMBERS = itertools.count(1)


def start(call: Callable[[int], int], ended: Callable[[Any], object]) -> int:
    """Call with a new number, and return the status. If it is 0, ended(result) is called once, in any thread."""
    number = next(NUMBERS)
    STARTED[number] = ended
    status = None
    try:
        status = call(number)
    finally:
        if status != OK:
            del STARTED[number]
    return status


def tell_end(event: Any) -> None:
    """Take the end of an operation, which the event has."""
    ended = STARTED.pop(event.arg, None)
    if ended is not None:  # else a signal interrupted the thread that took the event, right after this
        ended(event)


def notify(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> bool:
    """Have the loop call it. False: the loop is closed, so nobody waits there."""
    try:
        loop.call_soon_threadsafe(call)
        return True
    except RuntimeError:
        return False


def nothing() -> None:
    """Nobody is told."""


class Signal:
    """An event that a task waits for, and that any thread may set."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._future: "asyncio.Future[None]" = loop.create_future()

    async def wait(self) -> None:
        await self._future

    def set(self) -> bool:
        """Wake the task. False: the loop is closed."""
        if asyncio._get_running_loop() is self._loop:
            self._set()
            return True
        return notify(self._loop, self._set)

    def _set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)


class Acquire:
    """The acquire of a task. If the task does not take the grant, it is released.

    cancel() cancels the acquire. release(told) releases the lock, and calls told() at the end, also if it fails.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], object],
                 release: Callable[[Callable[[], object]], object]):
        self.ended = Signal(loop)
        self.status: Optional[int] = None
        self.text = b""
        self._loop, self._cancel, self._release = loop, cancel, release
        self._gone: Optional[Signal] = None
        self._given_up = False
        self._turn: List[None] = [None]  # taken by the thread that releases the grant

    def end(self, result: Any) -> None:
        """Take the result, in any thread."""
        if result.status != OK:
            self.text = result.text
        self.status = result.status
        if self._given_up or not self.ended.set():
            self._give_back()

    def give_up(self) -> "Signal":
        """Give up, without waiting. What is returned is set when nothing is held or asked for any more."""
        self._gone = gone = Signal(self._loop)
        self._given_up = True
        if self.status is None:
            self._cancel()
        else:
            self._give_back()
        return gone

    def _give_back(self) -> None:
        # end() and give_up() may both come here. Each of them sets its own flag before it reads the other's.
        try:
            self._turn.pop()
        except IndexError:
            return
        told: Callable[[], object] = self._gone.set if self._gone is not None else nothing
        if self.status == OK:
            self._release(told)
        else:
            told()
