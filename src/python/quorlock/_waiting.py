# SPDX-License-Identifier: BSD-3-Clause
"""Calls that wait, and that Ctrl-C can end."""
import _thread
import threading
from typing import Any, Callable, Optional

# Pause before a wait is canceled again: the call that waits may just have begun, and would not notice the first time.
CANCEL_AGAIN_S = 0.01


class Waiting:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], Any]):
        self.done = threading.Event()
        self.problem: Optional[BaseException] = None
        self._value: Any = None
        self._call = call
        self._guard = threading.Lock()
        self._began = self._abandoned = False

    def start(self) -> None:
        threading.Thread(target=self._run, name="quorlock", daemon=True).start()

    def start_at_once(self) -> None:
        """Start by one call, which no signal interrupts. Later calls do nothing."""
        try:
            _thread.start_new_thread(self._run, ())
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
    if threading.current_thread() is not threading.main_thread():
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
