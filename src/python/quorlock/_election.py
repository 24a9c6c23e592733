# SPDX-License-Identifier: BSD-3-Clause
"""A candidate of an election, for `with`."""
import contextlib
import ctypes
import weakref
from ctypes import c_char_p, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, Optional, Tuple, TypedDict

from . import _library
from ._arguments import Text, encode, options_of
from ._connection import Connection
from ._errors import CANCELED, CLOSED, LOST, NOQUORUM, OK, STATE, Closed, Error, Lost, error
from ._handle import Handle
from ._library import library
from ._started import Home
from ._waiting import CANCEL_AGAIN_S, Waiting, interruptible
from ._words import as_python

INHERITED = "the candidate belongs to the parent of this process: make another one here"


class Options(ctypes.Structure):
    """struct quorlock_candidate_options, whose fields Candidate sets from the arguments of the same names"""
    _fields_ = [("size", c_size_t), ("advertise", c_char_p), ("elected", _library.ElectedCallback),
                ("deposed", _library.LostCallback), ("ended", _library.EndedCallback), ("arg", c_void_p),
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

    `on_deposed` is called with the candidate and a text when it is deposed, lost_margin_ms before another one can lead, in
    the client's thread. No lease is renewed while it runs, so it should be short. Methods that wait for the nodes, such as
    resign(), raise Error in it.

    After a deposition the candidacy goes on until resign(). The next stand() waits for the next term. Until it returns the
    candidate does not count as the leader here. A child of fork() must make a candidate of its own.
    """

    def __init__(self, client: Connection, name: Text, *, advertise: Optional[str] = None, lease_ms: int = 0,
                 renew_ms: int = 0, lost_margin_ms: int = 0, fence_ttl_ms: int = 0,
                 on_deposed: "Optional[Callable[[Candidate, str], None]]" = None):
        self._handle: Optional[int] = None
        self._client, self._name, self._on_deposed = client, name, on_deposed
        self._term = 0  # of the last stand() that returned
        # The client's thread sets these. Terms rise, so each term up to _over is over.
        self._elected = self._over = self._lost = 0
        self._why: Optional[str] = None  # of the last deposition
        self._end: Tuple[int, str] = (OK, "")
        options = options_of(Options, advertise=advertise, lease_ms=lease_ms, renew_ms=renew_ms,
                             lost_margin_ms=lost_margin_ms, fence_ttl_ms=fence_ttl_ms)
        text, handle, key = ctypes.create_string_buffer(_library.TEXT_SIZE), c_void_p(), encode(name, "the name")
        with client._call() as of:
            self._life, self._number = client._life, next(client._numbers)
            options.elected, options.deposed, options.ended = client._on_election
            options.arg = self._number
            status = library.quorlock_blocking_candidate_new(ctypes.byref(handle), of, key, ctypes.byref(options), text,
                                                             _library.TEXT_SIZE)
            if status != OK:
                raise error(status, text.value.decode(errors="replace"))
            # The candidacy has not begun, so no callback comes before this.
            client._candidates[self._number] = weakref.ref(self)
            self._handle = handle.value

    def __del__(self) -> None:
        """Free the handle, also if the client is closed or is the parent's."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            self._client._candidates.pop(self._number, None)
            library.quorlock_blocking_candidate_free(handle)

    # ---- what is known ----

    @property
    def term(self) -> int:
        """The fencing token of the last stand(), to pass along with each write; 0 after resign()."""
        return self._term

    @property
    def valid_ms(self) -> int:
        """How long the candidate still leads at least, in that term; 0: it does not lead, do not act."""
        left_ms = int(library.quorlock_blocking_candidate_valid_ms(self._handle))
        # Compare after the call: validity of a later term begins only when this term is over.
        return left_ms if self._term > self._over else 0

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
        status = self._resign()
        why = self._deposed(term)
        if status == STATE and self._client._home.is_here():
            raise error(STATE, "resign() would wait for the client's thread, which calls it: call it in another thread")
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
        return self._life != self._client._life

    def _deposed(self, term: int) -> Optional[str]:
        return self._why if 0 < term <= self._lost else None

    def _error(self, status: int) -> Error:
        if status == CANCELED and self._client.closed:
            return Closed("the client is closed", CLOSED)
        of, text = self._end
        return error(status, text if of == status else _library.status_text(status))

    def _stand(self) -> int:
        term = c_uint64()
        with self._client._call(lambda: library.quorlock_blocking_resign(self._handle)):
            status = library.quorlock_blocking_stand(self._handle, ctypes.byref(term))
        if status != OK:
            raise self._error(status)
        self._term = term.value
        return term.value

    def _resign(self) -> int:
        if self._is_inherited():
            raise Closed(INHERITED, CLOSED)
        with self._client._call():
            return int(library.quorlock_blocking_resign(self._handle))

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

    def _tell_elected(self, term: int) -> None:
        """Note the term. This and the next two run in the client's thread."""
        self._elected = term

    def _tell_deposed(self, text: str) -> None:
        self._why, self._lost, self._over = text, self._elected, self._elected
        if self._on_deposed is not None:
            self._on_deposed(self, text)

    def _tell_ended(self, status: int, text: str) -> None:
        self._end, self._over = (status, text), self._elected


def tell_elections(home: Home, candidates: "Dict[int, weakref.ref[Candidate]]") -> Tuple[Any, Any, Any]:
    """Return the library's three callbacks. It may call them until the client is closed, also for a freed candidate."""
    def on_elected(_handle: object, term: int, number: int) -> None:
        candidate = home.find(candidates, number)
        if candidate is not None:
            candidate._tell_elected(term)

    def on_deposed(_handle: object, loss: Any, number: int) -> None:
        candidate = home.find(candidates, number)
        if candidate is not None:
            candidate._tell_deposed(as_python(loss.contents.text.decode(errors="replace")))

    def on_ended(_handle: object, status: int, text: Optional[bytes], number: int) -> None:
        candidate = home.find(candidates, number)
        if candidate is not None:
            candidate._tell_ended(status, (text or b"").decode(errors="replace"))

    return _library.ElectedCallback(on_elected), _library.LostCallback(on_deposed), _library.EndedCallback(on_ended)
