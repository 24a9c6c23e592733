# SPDX-License-Identifier: BSD-3-Clause
"""Calls that wait: Ctrl-C can end them, and other greenlets of gevent and eventlet run meanwhile."""
import threading
from typing import Any, Callable, Optional

from ._native import Wake, allocate_lock, hub, start_new_thread

# Pause before a wait is canceled again: the call that waits may just have begun, and would not notice the first time.
CANCEL_AGAIN_S = 0.01
LOOK_AGAIN_S = 0.5


class Done:
    """Something that a thread waits for, or a greenlet whose thread must go on."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()
        self._green = hub()
        self._wake = Wake() if self._green is not None else None
        self._set = False

    def set(self) -> None:
        self._set = True
        if self._wake is not None:
            self._wake.set()
        self._lock.release()

    def wait(self, timeout_s: float = -1) -> bool:
        """Wait in the thread that made this, or for a time in another one."""
        if self._green is not None and self._wake is not None and timeout_s < 0:
            while not self._set:
                self._green(self._wake.fd)
            return True
        # A signal that comes right before this thread begins to wait does not end the wait: look again. One that comes
        # right after it may leave the lock acquired.
        while not self._set:
            if self._lock.acquire(True, timeout_s if timeout_s >= 0 else LOOK_AGAIN_S):
                self._lock.release()
            elif timeout_s >= 0:
                return self._set
        return True

    def __del__(self) -> None:
        if self._wake is not None:
            self._wake.close()


class Waiting:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], Any]):
        self.done = Done()
        self.problem: Optional[BaseException] = None
        self._value: Any = None
        self._call = call
        self._guard = allocate_lock()
        self._began = self._abandoned = False

    def start(self) -> None:
        start_new_thread(self._run, ())

    def start_at_once(self) -> None:
        """Start by one call, which no signal interrupts. Later calls do nothing."""
        try:
            start_new_thread(self._run, ())
        except RuntimeError:
            self._run()

    def abandon(self) -> bool:
        """Keep it from beginning, and return True if it has begun already; only the first caller gets True."""
        with self._guard:
            before, self._abandoned = self._abandoned, True
            return self._began and not before

    def result(self) -> Any:
        if self.problem is not None:
            raise self.problem
        return self._value

    def _run(self) -> None:
        with self._guard:
            if self._abandoned or self._began:
                return
            self._began = True
        try:
            self._value = self._call()
        except BaseException as problem:  # pylint: disable=broad-exception-caught
            self.problem = problem
        self.done.set()


def interruptible(call: Callable[[], Any], give_up: "Callable[[Waiting], None]") -> Any:
    """Call it, and return its result. If a signal ends the wait, give_up(wait) must undo the call."""
    if hub() is None and threading.current_thread() is not threading.main_thread():
        return call()
    # Python handles signals in the main thread only, and not while that thread is in the library.
    wait = Waiting(call)
    gives_up = Waiting(lambda: give_up(wait))
    try:
        wait.start()
        wait.done.wait()
    except BaseException:
        # Another signal may come at any step. The thread that gives up goes on without this one.
        try:
            gives_up.start_at_once()
        finally:
            gives_up.start_at_once()
            gives_up.done.wait()
        raise
    return wait.result()


def cooperatively(call: Callable[[], Any]) -> Any:
    """Call it, and return its result. Where greenlets run, it waits in a thread of its own, and the others go on."""
    if hub() is None:
        return call()
    wait = Waiting(call)
    wait.start()
    wait.done.wait()
    return wait.result()
