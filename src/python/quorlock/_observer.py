# SPDX-License-Identifier: BSD-3-Clause
"""Observers of an election."""
import ctypes
import weakref
from ctypes import c_size_t, c_uint32, c_void_p
from typing import Any, Callable, List, NamedTuple, Optional

from . import _library
from ._arguments import Text, encode, options_of
from ._connection import Connection
from ._errors import OK, error
from ._handle import Handle
from ._library import library

STATES = ("unknown", "none", "known")
KNOWN = 2


class Leader(NamedTuple):
    """Who led when the nodes were asked, as struct quorlock_leader: see quorlock_observer_new(3).

    state: "known", "none" (nobody leads) or "unknown" (too few nodes answer). text: what the leader advertises."""
    state: str
    term: int
    text: Optional[str]
    owner: Optional[str]
    valid_ms: int


class Options(ctypes.Structure):
    """struct quorlock_observer_options"""
    _fields_ = [("size", c_size_t), ("changed", c_void_p), ("arg", c_void_p), ("poll_ms", c_uint32)]


class Observer(Handle):
    """Observes who leads an election. Client.observe() makes it.

    `on_change` is called with each new Leader, in a thread of the client. `leader` is the latest one. close() or the end of
    a `with` block ends the observer; then on_change does not run any more, unless close() was called inside it. A child of
    fork() must make an observer of its own.
    """

    def __init__(self, client: Connection, name: Text, on_change: Optional[Callable[[Leader], None]] = None, *,
                 poll_ms: int = 0):
        self._handles: List[c_void_p] = []
        self._client, self._on_change = client, on_change
        self.leader = Leader("unknown", 0, None, None, 0)
        found, handle = _library.Error(), c_void_p()
        key, options = encode(name, "the name"), options_of(Options, poll_ms=poll_ms)
        with client._call() as of:
            self._number = next(client._numbers)
            client._observers[self._number] = weakref.ref(self)
            options.arg = self._number
            status = library.quorlock_sync_observer_new(ctypes.byref(handle), of, key, ctypes.byref(options),
                                                        ctypes.byref(found))
            if status != OK:
                del client._observers[self._number]
                raise error(status, found.text.decode(errors="replace"))
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
        library.quorlock_sync_observer_free(handle)

    def _tell(self, event: Any, call: Callable[[Callable[[], object]], None]) -> None:
        """Take the event of a change."""
        text, owner = (word.decode(errors="replace") if event.state == KNOWN else None for word in (event.text, event.token))
        leader = Leader(STATES[event.state], int(event.term), text, owner, int(event.valid_ms))
        self.leader = leader
        call(lambda: self._call_changed(leader))

    def _call_changed(self, leader: Leader) -> None:
        if self._on_change is not None and self._number in self._client._observers:
            self._on_change(leader)
