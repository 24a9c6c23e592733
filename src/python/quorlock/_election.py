# SPDX-License-Identifier: BSD-3-Clause
"""A candidate of an election, for `with`."""
import contextlib
import ctypes
import weakref
from ctypes import c_char_p, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Optional, Tuple, TypedDict

from . import _library
from ._arguments import Text, encode, options_of
from ._connection import Connection, look_for_fork
from ._errors import CANCELED, CLOSED, LOST, NOQUORUM, OK, Closed, Error, Lost, error
from ._events import DEPOSED, RESIGNED
from ._handle import Handle
from ._library import library
from ._waiting import CANCEL_AGAIN_S, Waiting, cooperatively, interruptible
from ._words import as_python

INHERITED = "the candidate belongs to the parent of this process: make another one here"


class Options(ctypes.Structure):
    """struct quorlock_candidate_options, whose fields Candidate sets from the arguments of the same names"""
    _fields_ = [("size", c_size_t), ("advertise", c_char_p), ("elected", c_void_p), ("deposed", c_void_p),
                ("ended", c_void_p), ("arg", c_void_p),
                ("lease_ms", c_uint32), ("renew_ms", c_uint32), ("lost_margin_ms", c_uint32),
                ("fence_ttl_ms", c_uint32)]


class CandidateOptions(TypedDict, total=False):
    """The keyword arguments of Candidate, for type checkers."""
    advertise: Optional[str]
    lease_ms: int
    renew_ms: int
    lost_margin_ms: int
    fence_ttl_ms: int
    on_deposed: "Optional[Callable[[Candidate, str], None]]"


class Candidate(Handle):
    """A candidate of an election. Client.candidate() makes it.

        with client.candidate("scheduler", advertise="10.0.0.9:80") as leader:
            ...                             # it leads, and leader.term is the fencing token
            leader.check()                  # raises Lost if it does not lead any more
            write(part, leader.term)

    The block begins when the candidate leads. The end of the block resigns. It raises Lost if the candidate was deposed
    meanwhile and nothing else was raised.

    The options are those of struct quorlock_candidate_options: see quorlock_candidate_new(3). Observers read `advertise`.

    `on_deposed` is called with the candidate and a text when it is deposed, lost_margin_ms before another one can lead, in a
    thread of the client.

    After a deposition the candidacy goes on until resign(). The next stand() waits for the next term. Until it returns the
    candidate does not count as the leader here. A child of fork() must make a candidate of its own.
    """

    def __init__(self, client: Connection, name: Text, *, advertise: Optional[str] = None, lease_ms: int = 0,
                 renew_ms: int = 0, lost_margin_ms: int = 0, fence_ttl_ms: int = 0,
                 on_deposed: "Optional[Callable[[Candidate, str], None]]" = None):
        self._handle: Optional[int] = None
        self._client, self._name, self._on_deposed = client, name, on_deposed
        self._term = 0  # of the last stand() that returned
        self._lost = 0  # the last term that ended by a deposition
        self._why: Optional[str] = None  # of the last deposition
        self._end: Tuple[int, str] = (OK, "")
        options = options_of(Options, advertise=advertise, lease_ms=lease_ms, renew_ms=renew_ms,
                             lost_margin_ms=lost_margin_ms, fence_ttl_ms=fence_ttl_ms)
        found, handle, key = _library.Error(), c_void_p(), encode(name, "the name")
        with client._call() as of:
            self._life, self._number = client._life, next(client._numbers)
            options.arg = self._number
            status = library.quorlock_sync_candidate_new(ctypes.byref(handle), of, key, ctypes.byref(options),
                                                         ctypes.byref(found))
            if status != OK:
                raise error(status, found.text.decode(errors="replace"))
            # The candidacy has not begun, so no callback comes before this.
            client._candidates[self._number] = weakref.ref(self)
            self._handle = handle.value

    def __del__(self) -> None:
        """Free the handle, also if the client is closed or is the parent's."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            self._client._candidates.pop(self._number, None)
            library.quorlock_sync_candidate_free(handle)

    # ---- what is known ----

    @property
    def term(self) -> int:
        """The fencing token of the last stand(), to pass along with each write; 0 after resign()."""
        return self._term

    @property
    def valid_ms(self) -> int:
        """How long the candidate still leads at least, in that term; 0: it does not lead, do not act."""
        left_ms = int(library.quorlock_sync_candidate_valid_ms(self._handle))
        # Compare after the call: validity of a later term begins only when this term is over.
        term = int(library.quorlock_sync_candidate_term(self._handle))
        return left_ms if term == self._term > 0 else 0

    @property
    def leading(self) -> bool:
        return self.valid_ms > 0

    @property
    def deposed(self) -> bool:
        """Whether the candidate was deposed since the last stand()."""
        return self._deposed(self._term) is not None

    def __repr__(self) -> str:
        state = f"leads by term {self._term}" if self.leading else "deposed" if self.deposed else "does not lead"
        return f"<quorlock.Candidate {self._name!r}: {state}>"

    def check(self) -> None:
        """Raise Lost if the candidate does not lead in the term of the last stand()."""
        if self.valid_ms == 0:
            raise Lost(self._deposed(self._term) or "the candidate does not lead", LOST)

    # ---- what is done ----

    def stand(self) -> int:
        """Wait until the candidate leads, and return the term. A leader returns at once.

        Raises Canceled if another thread resigns, and Unauthorized, Foreign ... if it cannot lead. Ctrl-C ends the wait, and
        resigns."""
        if self._is_inherited():
            raise Closed(INHERITED, CLOSED)
        return int(interruptible(self._stand, self._give_up))

    def resign(self) -> bool:
        """End the candidacy, in any thread; a waiting stand() raises Canceled. Raises Lost after a deposition.

        False: no quorum has answered, so others may have to wait for the end of the lease."""
        term = self._term
        status: int = cooperatively(self._resign)
        why = self._deposed(term)
        if self._term == term:
            self._term = 0
        if why is not None:
            raise Lost(why, LOST)
        if status not in (OK, NOQUORUM):
            raise self._error(status)
        return status == OK

    def __enter__(self) -> "Candidate":
        self.stand()
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            self.resign()
        except Error:
            if kind is None:
                raise

    # ---- inside ----

    def _is_inherited(self) -> bool:
        look_for_fork()
        return self._life != self._client._life

    def _deposed(self, term: int) -> Optional[str]:
        self._client._catch_up()
        return self._why if 0 < term <= self._lost else None

    def _error(self, status: int) -> Error:
        if status == CANCELED and self._client.closed:
            return Closed("the client is closed", CLOSED)
        self._client._catch_up()
        of, text = self._end
        return error(status, text if of == status else _library.status_text(status))

    def _stand(self) -> int:
        term = c_uint64()
        with self._client._call(lambda: library.quorlock_sync_candidate_resign(self._handle)):
            status = library.quorlock_sync_candidate_stand(self._handle, ctypes.byref(term))
        if status != OK:
            raise self._error(status)
        self._term = term.value
        return term.value

    def _resign(self) -> int:
        if self._is_inherited():
            raise Closed(INHERITED, CLOSED)
        with self._client._call():
            return int(library.quorlock_sync_candidate_resign(self._handle))

    def _give_up(self, wait: Waiting) -> None:
        """Resign for a stand() that nobody waits for any more."""
        if not wait.abandon():
            return
        while not wait.done.wait(CANCEL_AGAIN_S):
            with contextlib.suppress(Closed):
                self._resign()
        if wait.problem is None:
            with contextlib.suppress(Error):
                self.resign()

    def _tell(self, event: Any, call: Callable[[Callable[[], object]], None]) -> None:
        """Take an event of the candidacy."""
        text = event.text.decode(errors="replace")
        if event.type == RESIGNED:
            self._end = event.status, text
        elif event.type == DEPOSED:
            self._why, self._lost = as_python(text), int(event.term)
            call(self._call_deposed)

    def _call_deposed(self) -> None:
        if self._on_deposed is not None:
            self._on_deposed(self, self._why or "")
