# SPDX-License-Identifier: BSD-3-Clause
"""Observers of an election."""
import ctypes
import weakref
from ctypes import c_size_t, c_uint32, c_void_p
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from . import _library
from ._arguments import Text, encode, options_of
from ._connection import Connection
from ._errors import OK, error
from ._handle import Handle
from ._library import library
from ._started import Home

STATES = ("unknown", "none", "known")


class Leader(NamedTuple):
    """Who led when the nodes were asked, as struct quorlock_leader: see quorlock_observe(3).

    state: "known", "none" (nobody leads) or "unknown" (too few nodes answer). text: what the leader advertises."""
    state: str
    term: int
    text: Optional[str]
    owner: Optional[str]
    valid_ms: int


class Options(ctypes.Structure):
    """struct quorlock_observer_options"""
    _fields_ = [("size", c_size_t), ("changed", _library.LeaderCallback), ("arg", c_void_p), ("poll_ms", c_uint32)]


class Observer(Handle):
    """Observes who leads an election. Client.observe() makes it.

    `on_change` is called with each new Leader, in the client's thread. No lock is renewed while it runs, so it should be
    short. `leader` is the latest one. close() or the end of a `with` block ends the observer; then on_change does not run
    any more, unless close() was called inside it. A child of fork() must make an observer of its own.
    """

    def __init__(self, client: Connection, name: Text, on_change: Optional[Callable[[Leader], None]] = None, *,
                 poll_ms: int = 0):
        self._handles: List[c_void_p] = []
        self._client, self._on_change = client, on_change
        self.leader = Leader("unknown", 0, None, None, 0)
        text, handle = ctypes.create_string_buffer(_library.TEXT_SIZE), c_void_p()
        key, options = encode(name, "the name"), options_of(Options, poll_ms=poll_ms)
        with client._call() as of:
            self._number = next(client._numbers)
            client._observers[self._number] = weakref.ref(self)
            options.changed, options.arg = client._on_leader, self._number
            status = library.quorlock_blocking_observe(ctypes.byref(handle), of, key, ctypes.byref(options), text,
                                                       _library.TEXT_SIZE)
            if status != OK:
                del client._observers[self._number]
                raise error(status, text.value.decode(errors="replace"))
            self._handles.append(handle)

    def __enter__(self) -> "Observer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the observer. It may be called anywhere, and more than once."""
        try:
            handle = self._handles.pop()
        except (AttributeError, IndexError):
            return
        self._client._observers.pop(self._number, None)
        library.quorlock_blocking_observer_free(handle)

    def _tell(self, leader: Leader) -> None:
        """Runs in the client's thread."""
        self.leader = leader
        if self._on_change is not None:
            self._on_change(leader)


def tell_leaders(home: Home, observers: "Dict[int, weakref.ref[Observer]]") -> Callable[..., None]:
    def on_leader(_handle: object, leader: Any, number_: int) -> None:
        observer = home.find(observers, number_)
        if observer is not None:
            found = leader.contents
            text, owner = (word and word.decode(errors="replace") for word in (found.text, found.owner))
            observer._tell(Leader(STATES[found.state], int(found.term), text, owner, int(found.valid_ms)))
    return on_leader
