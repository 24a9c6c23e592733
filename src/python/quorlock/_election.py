# SPDX-License-Identifier: BSD-3-Clause
"""A candidate of an election, for `with`."""
import contextlib
import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple, TypedDict

from . import _library
from ._arguments import Text, encode, set_numbers
from ._errors import CANCELED, CLOSED, LOST, NOQUORUM, OK, STATE, Closed, Error, Lost, error
from ._library import library
from ._lock import CANCEL_AGAIN_S, Waiting, interruptible
from ._started import Home
from ._words import as_python

if TYPE_CHECKING:
    from ._client import Client

INHERITED = "the candidate is the parent's: this process was forked from it, and makes one of its own"


class CandidateOptions(TypedDict, total=False):
    """For type checkers: what __init__ of Candidate takes by name."""
    advertise: Optional[str]
    lease_ms: int
    renew_ms: int
    lost_margin_ms: int
    fence_ttl_ms: int
    on_deposed: "Optional[Callable[[Candidate, str], None]]"


class Candidate:
    """A candidate of the election of that name: made by Client.candidate().

        with client.candidate("scheduler", advertise="10.0.0.9:80") as leader:
            ...                             # it leads, and leader.term is the fencing token
            leader.check()                  # raises Lost where it leads no more
            write(part, leader.term)

    The block begins when it leads. Leaving the block resigns, and raises Lost where it was deposed meanwhile and nothing
    else was raised.

    The options are those of struct quorlock_candidate_options in election.h; observers read `advertise`. `on_deposed` is
    called with the candidate and a text when it is deposed, in the thread of the client, lost_margin_ms before another
    one can lead: while it runs no lease is renewed, so it should be short. What waits for the nodes, such as resign(),
    raises Error there. A candidate that was deposed stands again by itself until it resigns: the next stand() waits for
    its next term, and until then it does not lead here, whatever becomes of it. A child of fork() makes one of its own.
    """

    def __init__(self, client: "Client", name: Text, *, advertise: Optional[str] = None, lease_ms: int = 0,
                 renew_ms: int = 0, lost_margin_ms: int = 0, fence_ttl_ms: int = 0,
                 on_deposed: "Optional[Callable[[Candidate, str], None]]" = None):
        self._handle: Optional[int] = None
        self._client, self._name, self._on_deposed = client, name, on_deposed
        self._term = 0  # that of the last stand() which returned
        # By the thread of the client. Terms rise: one that is not above _over is over, and so is each before it.
        self._elected = self._over = self._lost = 0
        self._why: Optional[str] = None  # of the last deposition
        self._end: Tuple[int, str] = (OK, "")
        options = _library.CandidateOptions(size=ctypes.sizeof(_library.CandidateOptions))
        set_numbers(options, {"lease_ms": lease_ms, "renew_ms": renew_ms, "lost_margin_ms": lost_margin_ms,
                              "fence_ttl_ms": fence_ttl_ms})
        if advertise is not None:
            options.advertise = encode(advertise, "advertise")
        text, handle, key = ctypes.create_string_buffer(_library.TEXT_SIZE), ctypes.c_void_p(), encode(name, "the name")
        with client._call() as of:
            self._life, self._number = client._life, next(client._numbers)
            options.elected, options.deposed, options.ended = client._on_election
            options.arg = self._number
            status = library.quorlock_blocking_candidate_new(ctypes.byref(handle), of, key, ctypes.byref(options), text,
                                                             _library.TEXT_SIZE)
            if status != OK:
                raise error(status, text.value.decode(errors="replace"))
            # It does not stand yet: no callback comes before this.
            client._candidates[self._number] = weakref.ref(self)
            self._handle = handle.value

    def __del__(self) -> None:
        """Also where the client is closed, or is the parent's."""
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            self._client._candidates.pop(self._number, None)
            library.quorlock_blocking_candidate_free(handle)

    # ---- what is known ----

    @property
    def term(self) -> int:
        """The fencing token of the last stand(), to be given along with all that the leader writes; 0 after resign()."""
        return self._term

    @property
    def valid_ms(self) -> int:
        """For how long it still leads at least, by that term; 0: it does not, do not act."""
        left_ms = int(library.quorlock_blocking_candidate_valid_ms(self._handle))
        # Asked afterwards: validity of a later term comes after this one is over.
        return left_ms if self._term > self._over else 0

    @property
    def leading(self) -> bool:
        return self.valid_ms > 0

    @property
    def deposed(self) -> bool:
        """Whether it was deposed since the last stand()."""
        return self._deposed(self._term) is not None

    def __repr__(self) -> str:
        state = f"leads by term {self._term}" if self.leading else "deposed" if self.deposed else "does not lead"
        return f"<quorlock.Candidate {self._name!r}: {state}>"

    def check(self) -> None:
        """Raises Lost where it does not lead by the term of the last stand()."""
        if self.valid_ms == 0:
            raise Lost(self._deposed(self._term) or "the candidate does not lead", LOST)

    # ---- what is done ----

    def stand(self) -> int:
        """Waits until it leads, and returns the term; that of a leader at once. Raises Canceled where another thread
        resigns, or Unauthorized, Foreign ... where it cannot stand. Ctrl-C ends the wait, and resigns."""
        if self._is_inherited():
            raise Closed(INHERITED, CLOSED)
        return int(interruptible(self._stand, self._give_up))

    def resign(self) -> bool:
        """Stands no more, in any thread; a stand() that waits raises Canceled. False: a quorum has not answered, and
        others may have to wait for the end of the lease. Raises Lost where it had been deposed before."""
        term = self._term
        status = self._resign()
        why = self._deposed(term)
        if status == STATE and self._client._home.is_here():
            raise error(STATE, "resign() in the thread of the client, which it would wait for: call it in another one")
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
        term = ctypes.c_uint64()
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
        """Of a stand that nobody waits for any more nothing stays."""
        if not wait.abandon():
            return
        while not wait.done.wait(CANCEL_AGAIN_S):
            with contextlib.suppress(Closed):
                self._resign()
        if wait.problem is None:
            with contextlib.suppress(Error):
                self.resign()

    def _tell_elected(self, term: int) -> None:
        """This and the others in the thread of the client."""
        self._elected = term

    def _tell_deposed(self, text: str) -> None:
        self._why, self._lost, self._over = text, self._elected, self._elected
        if self._on_deposed is not None:
            self._on_deposed(self, text)

    def _tell_ended(self, status: int, text: str) -> None:
        self._end, self._over = (status, text), self._elected


def tell_elections(home: Home, candidates: "Dict[int, weakref.ref[Candidate]]") -> Tuple[Any, Any, Any]:
    """What the library may call until the client is closed, whatever has become of a candidate."""
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
