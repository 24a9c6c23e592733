# SPDX-License-Identifier: BSD-3-Clause
"""Acquires and releases without a waiting thread: their ends are events, which are handed to the event loop.

Whoever takes the events must not wait for another thread. So threads agree by steps of the interpreter that are atomic.
"""
import asyncio
import functools
import itertools
from typing import Any, Callable, Dict, List, Optional

from ._errors import OK


# Operations in flight, by number. This keeps tasks alive to which nobody else has a reference. A child of fork() does not
# touch the entries of its parent.
STARTED: Dict[int, Callable[[Any], object]] = {}
NUMBERS = itertools.count(1)


def start(call: Callable[..., int], handle: Any, ended: Callable[[Any], object]) -> int:
    """Start an operation of that handle, and return the status. If it is 0, ended(result) is called once, in any thread."""
    number = next(NUMBERS)
    STARTED[number] = ended
    status = None
    try:
        status = call(handle, None, number)
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


def settle(future: "asyncio.Future[Any]", value: Any) -> None:
    if not future.done():
        future.set_result(value)


def tell(future: "asyncio.Future[Any]", value: Any = None) -> bool:
    """Wake the task that awaits the future, from any thread. False: its loop is closed."""
    loop = future.get_loop()
    if asyncio._get_running_loop() is loop:
        settle(future, value)
        return True
    return notify(loop, lambda: settle(future, value))


class Acquire:
    """The acquire of a task. If the task does not take the grant, it is released."""

    def __init__(self, lock: Any, loop: asyncio.AbstractEventLoop, lost: Optional[str]):
        self.ended: "asyncio.Future[None]" = loop.create_future()
        self.status: Optional[int] = None
        self.text = b""
        self.lost = lost  # of the grant before
        self._lock, self._loop = lock, loop
        self._gone: "Optional[asyncio.Future[None]]" = None
        self._given_up = False
        self._turn: List[None] = [None]  # taken by the thread that releases the grant

    def end(self, result: Any) -> None:
        """Take the result, in any thread."""
        status = result.status
        if status == OK:
            self._lock._grant(result)
        else:
            self.text = result.text
            self._lock._lost = self._lock._lost or self.lost
        self.status = status
        if self._given_up or not tell(self.ended):
            self._give_back()

    def give_up(self) -> "asyncio.Future[None]":
        """Give up, without waiting. What is returned is done when nothing is held or asked for any more."""
        self._gone = gone = self._loop.create_future()
        self._given_up = True
        if self.status is None:
            self._lock._cancel_quietly()
        else:
            self._give_back()
        return gone

    def _give_back(self) -> None:
        # end() and give_up() may both come here. Each of them sets its own flag before it reads the other's.
        try:
            self._turn.pop()
        except IndexError:
            return
        gone = self._gone
        told: Callable[[], object] = nothing
        if gone is not None:
            told = functools.partial(tell, gone)
        if self.status == OK:
            self._lock._release_quietly(told)
        else:
            told()
