# SPDX-License-Identifier: BSD-3-Clause
"""Acquires and releases that no thread waits for: their ends come in the thread of the client, and are handed on.

That thread never waits for another one here: what two threads decide together is decided by steps of the interpreter
that are atomic.
"""
import asyncio
import itertools
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, TypeVar

from ._errors import OK

Known = TypeVar("Known")


class Home:
    """The thread of a client, known from its first callback on."""

    def __init__(self) -> None:
        self._thread: Optional[int] = None

    def enter(self) -> None:
        self._thread = threading.get_ident()

    def is_here(self) -> bool:
        return self._thread == threading.get_ident()

    def find(self, known: "Dict[int, weakref.ref[Known]]", number: int) -> "Optional[Known]":
        """Whom a callback is for, in the thread of the client; by a number that comes once, for a freed handle may be
        another one's by now. None: nobody has it any more."""
        self.enter()
        reference = known.get(number)
        return reference() if reference is not None else None


# What has not ended, by its number. It keeps tasks that nobody else knows. A child of fork() never touches its parent's.
STARTED: Dict[int, Callable[[Any], object]] = {}
NUMBERS = itertools.count(1)


def start(call: Callable[[int], int], ended: Callable[[Any], object]) -> int:
    """Calls with a number, and returns the status; where that is 0, ended(result) is called in the thread of the client,
    once."""
    number = next(NUMBERS)
    STARTED[number] = ended
    status = call(number)
    if status != OK:
        del STARTED[number]
    return status


def tell_ends(home: Home) -> Callable[..., None]:
    def on_end(result: Any, number: int) -> None:
        home.enter()
        STARTED.pop(number)(type(result.contents).from_buffer_copy(result.contents))
    return on_end


def notify(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> bool:
    """False: the loop is closed, and nobody waits there."""
    try:
        loop.call_soon_threadsafe(call)
        return True
    except RuntimeError:
        return False


class Signal:
    """What a task waits for, and any thread sets."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._future: "asyncio.Future[None]" = loop.create_future()

    async def wait(self) -> None:
        await self._future

    def set(self) -> bool:
        """As notify()."""
        return notify(self._loop, self._set)

    def _set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)


class Acquire:
    """One acquire for a task. Where nobody takes its grant, that is given back.

    cancel() and release(told) do that to the lock; release calls told() when it is given back, or cannot be.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], object],
                 release: Callable[[Callable[[], object]], object]):
        self.ended, self.gone = Signal(loop), Signal(loop)
        self.result: Any = None
        self._cancel, self._release = cancel, release
        self._given_up = False
        self._turn: List[None] = [None]  # for the one who gives it back

    def end(self, result: Any) -> None:
        """In the thread of the client."""
        self.result = result
        if self._given_up or not self.ended.set():
            self._give_back()

    def give_up(self) -> None:
        """In any thread, and without a wait for the end; `gone` is set when nothing is held or asked for any more."""
        self._given_up = True
        if self.result is None:
            self._cancel()
        else:
            self._give_back()

    def _give_back(self) -> None:
        # end() and give_up() may both come here: each sets what is its own before it looks at the other's.
        try:
            self._turn.pop()
        except IndexError:
            return
        if self.result.status == OK:
            self._release(self.gone.set)
        else:
            self.gone.set()
