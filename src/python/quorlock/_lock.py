# SPDX-License-Identifier: BSD-3-Clause
"""A lock, for `with` and for `async with`."""
import asyncio
import contextlib
import ctypes
import functools
import inspect
import math
import threading
import weakref
from ctypes import c_char_p, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, TypedDict, TypeVar, Union, cast

from . import _library
from ._arguments import TEXTS, Text, encode, number, options_of, shared_bits
from ._connection import Connection, look_for_fork
from ._errors import CLOSED, HELD, INVAL, LOST, NOQUORUM, OK, TIMEDOUT, WAITS, Closed, Error, Held, Invalid, Lost, TimedOut, error
from ._handle import Handle
from ._library import library
from ._native import hub
from ._started import Acquire, notify, start, tell
from ._waiting import CANCEL_AGAIN_S, LOOK_AGAIN_S, Waiting, cooperatively, interruptible
from ._words import as_python

Function = TypeVar("Function", bound=Callable[..., Any])

WAIT_MS_MAX = _library.TRY_ONCE - 1
# A signal that comes right before the main thread begins to sleep does not wake it: look again.
LOOK_MS, CANCEL_AGAIN_MS = round(1000 * LOOK_AGAIN_S), round(1000 * CANCEL_AGAIN_S)
NO_LIMIT = 2**32 - 1
ENDS_OF_RELEASE = OK, NOQUORUM, LOST
INHERITED = "the parent of this process holds the lock: acquire it here first"


class Options(ctypes.Structure):
    """struct quorlock_lock_options, whose fields Lock sets from the arguments of the same names"""
    _fields_ = [("size", c_size_t), ("lease_ms", c_uint32), ("wait_ms", c_uint32), ("fencing", c_uint32),
                ("fair", c_uint32), ("permits", c_uint32), ("keep_ms", c_uint32), ("shared", c_uint64),
                ("owner", c_char_p), ("label", c_char_p), ("max_hold_ms", c_uint32), ("renew_ms", c_uint32),
                ("lost_margin_ms", c_uint32), ("min_valid_ms", c_uint32), ("fence_ttl_ms", c_uint32)]


class LockOptions(TypedDict, total=False):
    """The keyword arguments of Lock, for type checkers."""
    wait_ms: Optional[int]
    lease_ms: int
    renew_ms: int
    min_valid_ms: int
    lost_margin_ms: int
    max_hold_ms: int
    fencing: bool
    fence_ttl_ms: int
    owner: Optional[Text]
    label: Optional[str]
    permits: int
    keep_ms: int
    fair: bool
    shared: Union[bool, Text, Sequence[Text]]
    on_lost: "Optional[Callable[[Lock, str], None]]"


class Lock(Handle):
    """A lock on one or more keys. Client.lock() or quorlock.lock() makes it.

        with client.lock("key") as lock:
            ...
            lock.check()          # raises Lost if the lock is not held any more
            ...                   # one step that must not be done twice

    The end of the block releases the lock. It raises Lost if the lock was lost meanwhile and nothing else was raised.
    `async with` does the same. There a loss also cancels the await in the block, and the block raises Lost. Work that does
    not await, or that runs in threads, calls check() before each step that must not be done twice.

    wait_ms: how long to wait for the lock; 0: try once; None: no limit. permits=K: the key has K permits, and the lock
    takes one of them, `slot`. keep_ms: nobody can have the lock earlier than that after its grant, also if it is released
    before. fair=True: locks that wait get the keys in the order in which they came. shared=True locks all keys shared,
    shared=["key", ...] these keys. The other options are those of struct quorlock_lock_options: see quorlock_lock_new(3).

    `on_lost` is called with the lock and a text when the lock is lost, in a thread of the client. Renewals do not wait for
    it.

    A lock can be acquired again after its release. Threads or tasks that exclude each other need a lock each.
    """

    def __init__(self, client: Connection, keys: Sequence[Text], *, wait_ms: Optional[int] = None,
                 lease_ms: int = 0, renew_ms: int = 0, min_valid_ms: int = 0, lost_margin_ms: int = 0,
                 max_hold_ms: int = 0, fencing: bool = False, fence_ttl_ms: int = 0,
                 owner: Optional[Text] = None, label: Optional[str] = None, permits: int = 0, keep_ms: int = 0,
                 fair: bool = False, shared: Union[bool, Text, Sequence[Text]] = False,
                 on_lost: "Optional[Callable[[Lock, str], None]]" = None):
        if isinstance(keys, TEXTS):
            raise TypeError(f"keys is {keys!r}: it must be a list of keys")
        names = [encode(key, "the key") for key in keys]
        self._begin(client, keys, on_lost, _library.text_array(names), options_of(
            Options, wait_ms=0 if wait_ms is None else number(wait_ms, "wait_ms", WAIT_MS_MAX) or _library.TRY_ONCE,
            lease_ms=lease_ms, renew_ms=renew_ms, min_valid_ms=min_valid_ms,
            lost_margin_ms=lost_margin_ms, max_hold_ms=max_hold_ms, fencing=fencing, fence_ttl_ms=fence_ttl_ms,
            owner=owner, label=label, permits=permits, keep_ms=keep_ms, fair=fair, shared=shared_bits(shared, names)))

    def _begin(self, client: Connection, keys: Sequence[Text], on_lost: "Optional[Callable[[Lock, str], None]]", names: Any,
               options: Options) -> None:
        self._handle: Optional[int] = None
        self._client, self._keys, self._on_lost, self._names, self._options = client, keys, on_lost, names, options
        self._lost: Optional[str] = None
        self._may_be_lost = False  # there was a grant, and no release since
        self._fence, self._token, self._slot = 0, b"", _library.SLOT_NONE  # of the last grant
        self._inside: Optional[Inside] = None
        self._canceled = False
        self._detached = False
        self._make()

    def _make(self) -> None:
        client = self._client
        found, handle = _library.Error(), c_void_p()
        with client._call() as of:
            status = library.quorlock_sync_lock_new(ctypes.byref(handle), of, self._names, len(self._names),
                                                    ctypes.byref(self._options), ctypes.byref(found))
            if status != OK:
                raise error(status, found.text.decode(errors="replace"))
            self._handle, self._life, self._number = handle.value, client._life, next(client._numbers)
            self._wait_ms = self._usual_wait_ms = int(self._options.wait_ms)
            client._locks[self._number] = weakref.ref(self)
            library.quorlock_sync_lock_set_on_lost(handle, None, self._number)

    def _is_inherited(self) -> bool:
        """Whether the handle was made before fork(), so that its hold is the parent's."""
        look_for_fork()
        return self._life != self._client._life

    def _make_in_child(self) -> None:
        if not self._is_inherited():
            return
        with self._client._changed:
            if not self._is_inherited():
                return
            self._lost, self._inside = None, None
            self._may_be_lost = False
            self._free()
            self._make()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self._free()

    def _free(self) -> None:
        """Free the handle, also if the client is closed or is the parent's."""
        handle, self._handle = self._handle, None
        self._client._locks.pop(self._number, None)
        library.quorlock_sync_lock_free(handle)

    # ---- what is known ----

    @property
    def valid_ms(self) -> int:
        """How long the lock is still valid; 0: it is not held, do not act."""
        return int(library.quorlock_sync_lock_valid_ms(self._handle))

    @property
    def fence(self) -> int:
        """The fencing token of the last grant (with permits: of its slot); 0 without fencing."""
        return self._fence

    @property
    def slot(self) -> Optional[int]:
        """The permit of the last grant, 0 to permits - 1; None without permits, and before a grant."""
        return None if self._slot == _library.SLOT_NONE else self._slot

    @property
    def token(self) -> str:
        """The owner token of the last grant, as on the nodes."""
        return self._token.decode()

    @property
    def lost(self) -> bool:
        """Whether the last grant was lost."""
        self._client._catch_up()
        return self._lost is not None

    def locked(self) -> bool:
        """Whether this lock is held by this object. Whether others hold it: client.inspect(key)."""
        return self.valid_ms > 0

    def __repr__(self) -> str:
        state = "held" if self.valid_ms > 0 else "lost" if self.lost else "not held"
        return f"<quorlock.Lock {', '.join(map(repr, self._keys))}: {state}>"

    def check(self) -> None:
        """Raise Lost if the lock is not held."""
        if self.lost or self.valid_ms == 0:
            raise Lost(self._lost or "the lock is not held", LOST)

    # ---- what is done ----

    def acquire(self, blocking: bool = True, timeout: Optional[float] = None) -> bool:
        """Wait for the lock, as long as its wait_ms says. Raises Held, TimedOut, NoQuorum ... if it fails.

        timeout: wait so many seconds instead; -1: no limit. blocking=False: try once. With one of these it returns False where
        it would raise Held or TimedOut, as the locks of the module threading. Ctrl-C ends the wait."""
        wait_ms = wait_of(blocking, timeout)
        try:
            if hub() is None:
                self._acquire(wait_ms)
            else:
                interruptible(lambda: self._acquire(wait_ms), lambda wait: self._give_up(wait, self.release))
        except (Held, TimedOut):
            if wait_ms is None:
                raise
            return False
        return True

    def release(self) -> bool:
        """Release the lock. Raises Lost if the lock had expired or was lost before.

        False: no quorum has answered. The other nodes are released later, or the key ends there with the lease."""
        return self._release() if hub() is None else bool(cooperatively(self._release))

    def _release(self) -> bool:
        return self._released(*self._do(library.quorlock_sync_lock_release, ENDS_OF_RELEASE))

    def _released(self, status: int, text: bytes) -> bool:
        if status == LOST:
            self._client._catch_up()
        lost, self._lost = self._lost, None
        self._may_be_lost = False
        if lost is not None or status == LOST:
            raise Lost(lost or as_python(text.decode(errors="replace")), LOST)
        return status == OK

    def extend(self, lease_ms: int = 0) -> None:
        """Renew now, with a lease at least as long as the present one; 0: as long. Later renewals use it too."""
        wanted_ms = number(lease_ms, "lease_ms")

        def ask(handle: Any, result: Any) -> int:
            return int(library.quorlock_sync_lock_extend(handle, wanted_ms, result))

        cooperatively(lambda: self._do(ask))

    def detach(self) -> "Detached":
        """Stop holding the lock without releasing it, and return what another process needs to adopt it.

        The end of the block of a `with` releases nothing then. Raises Error if the lock is not held."""
        detached: Detached = cooperatively(self._detach)
        self._detached = True
        return detached

    def _detach(self) -> "Detached":
        result = _library.new_result()
        self._check(library.quorlock_sync_lock_detach(self._own_handle(), result), result.text)
        return Detached(result.token.decode(), int(result.fence), int(result.valid_ms))

    def adopt(self, token: str) -> None:
        """Hold the lock by the token of a process that has detached it or has ended: see quorlock_lock_adopt(3).

        Raises Lost if no quorum has the token any more. After NoQuorum it may be adopted again. At most one process may
        hold a token: that is up to the callers. Ctrl-C ends the wait. With asyncio call it by asyncio.to_thread()."""
        text = encode(token, "token")
        interruptible(lambda: self._adopt(text), lambda wait: self._give_up(wait, self.detach))

    def _adopt(self, token: bytes) -> None:
        self._make_in_child()
        lost, result = self._forget_loss(), _library.new_result()
        self._granted_or(lost, library.quorlock_sync_lock_adopt(self._handle, token, result), result)

    def cancel(self) -> None:
        """End an acquire or extend that another thread waits for: it raises Canceled there."""
        if not self._is_inherited() and library.quorlock_sync_lock_cancel(self._handle) == CLOSED:
            raise error(CLOSED, _library.status_text(CLOSED))

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __call__(self, function: Function) -> Function:
        """Decorate a function or a coroutine function: each call holds a lock of its own, with these keys and options.

        A call raises what the block of a `with` would raise, such as Lost. TypeError: the function is a generator, whose body
        would run after the call, without the lock."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{function!r} is a generator: its body runs after the call; use `with` inside of it")

        @functools.wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            with self._another():
                return function(*args, **named)

        @functools.wraps(function)
        async def run_async(*args: Any, **named: Any) -> Any:
            async with self._another():
                return await function(*args, **named)
        return cast(Function, run_async if inspect.iscoroutinefunction(function) else run)

    def _another(self) -> "Lock":
        another = Lock.__new__(Lock)
        another._begin(self._client, self._keys, self._on_lost, self._names, self._options)
        return another

    def __exit__(self, kind: Any, *_: object) -> None:
        if self._detached:
            return
        try:
            self.release()
        except Error:
            if kind is None:
                raise

    # ---- the same for asyncio ----

    async def acquire_async(self, blocking: bool = True, timeout: Optional[float] = None) -> bool:
        """Do as acquire(), for asyncio. If the task is canceled, so is the wait."""
        wait_ms = wait_of(blocking, timeout)
        loop = asyncio.get_running_loop()
        self._make_in_child()
        self._set_wait(wait_ms)
        acquire = Acquire(self, loop, self._forget_loss())
        try:
            self._start(library.quorlock_sync_lock_start_acquire, acquire.end, loop)
            await acquire.ended
        except Error:
            self._lost = self._lost or acquire.lost
            raise
        except asyncio.CancelledError:
            await acquire.give_up()
            raise
        except BaseException:
            # Ctrl-C, or the loop has ended: nothing can be awaited any more.
            acquire.give_up()
            raise
        assert acquire.status is not None  # it has ended
        if wait_ms is not None and acquire.status in (HELD, TIMEDOUT):
            return False
        self._check(acquire.status, acquire.text)
        return True

    async def release_async(self) -> bool:
        """Do as release(), for asyncio. It goes on if the task is canceled."""
        loop = asyncio.get_running_loop()
        released: "asyncio.Future[Tuple[int, bytes]]" = loop.create_future()

        def ended(result: Any) -> None:
            status = result.status
            tell(released, (status, b"" if status == OK else result.text))

        self._start(library.quorlock_sync_lock_start_release, ended, loop)
        return self._released(*self._check(*await released, ENDS_OF_RELEASE))

    async def __aenter__(self) -> "Lock":
        task = asyncio.current_task()
        assert task is not None
        await self.acquire_async()
        self._canceled = False
        self._inside = Inside(asyncio.get_running_loop(), task, cancels_of(task))
        if self._lost is not None:
            # The block must not begin: if it awaits nothing, it would never notice the loss.
            self._inside = None
            await self.release_async()
        return self

    async def __aexit__(self, kind: Any, *_: object) -> None:
        inside, self._inside = self._inside, None
        alone = False
        if self._canceled and inside is not None:
            # Python 3.11 and later count cancellations, so ours can be distinguished from another one.
            getattr(inside.task, "uncancel", int)()
            alone = kind is asyncio.CancelledError and cancels_of(inside.task) <= inside.cancels
        if kind is GeneratorExit:  # the loop has ended, as in acquire_async
            self._release_quietly(lambda: None)
            return
        if self._detached:
            return
        try:
            await self.release_async()
        except Error:
            if kind is None or alone:
                raise

    # ---- inside ----

    def _own_handle(self) -> Any:
        if self._is_inherited():
            raise Closed(INHERITED, CLOSED)
        return self._handle

    def _start(self, call: Callable[..., int], ended: Callable[[Any], object],
               loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
        """Start an operation without waiting; ended(result) is called once, in any thread, best in that of the loop."""
        handle, events = self._own_handle(), self._client._events
        if loop is not None and events is not None:
            events.read_in(loop)
        status = start(call, handle, ended)
        if status != OK:
            raise error(status, _library.status_text(status))

    def _cancel_quietly(self) -> None:
        """Cancel if there is anything to cancel: the lock is not freed, and the client neither closed nor the parent's."""
        with contextlib.suppress(Error):
            if self._handle is not None and not self._is_inherited():
                self.cancel()

    def _release_quietly(self, told: Callable[[], object]) -> None:
        """Release, and call told() at the end. A lock that was freed is released already."""
        try:
            if self._handle is not None:
                self._start(library.quorlock_sync_lock_start_release, lambda _: told())
                return
        except Error:
            pass
        told()

    def _do(self, call: Callable[..., int], ok: Tuple[int, ...] = (OK,)) -> Tuple[int, bytes]:
        handle, result = self._own_handle(), _library.take_result()
        status = call(handle, result)
        found = self._check(status, b"" if status == OK else result.text, ok)
        _library.RESULTS.append(result)
        return found

    def _check(self, status: int, text: bytes, ok: Tuple[int, ...] = (OK,)) -> Tuple[int, bytes]:
        """Return both, or raise what the status means."""
        if status in ok:
            return status, text
        raise error(status, text.decode(errors="replace"))

    def _set_wait(self, wait_ms: Optional[int]) -> None:
        """Set how long the handle waits; None: as its options say."""
        wanted_ms = self._usual_wait_ms if wait_ms is None else wait_ms
        if wanted_ms != self._wait_ms:
            found = _library.Error()
            self._check(library.quorlock_sync_lock_set_wait_ms(self._handle, wanted_ms, found), found.text)
            self._wait_ms = wanted_ms

    def _forget_loss(self) -> Optional[str]:
        """Forget and return the loss of the grant before: a new one may be lost before this thread knows of it.

        If there is no new grant, the old loss must be set again."""
        if self._may_be_lost:
            self._client._catch_up()  # with all losses of earlier grants
        lost, self._lost = self._lost, None
        return lost

    def _acquire(self, wait_ms: Optional[int]) -> None:
        self._make_in_child()
        self._set_wait(wait_ms)
        lost, result = self._forget_loss(), _library.take_result()
        ends: List[Waiting] = []
        result.status = WAITS
        try:
            # Python handles signals in the main thread only, and not while that thread is in the library.
            look_ms = LOOK_MS if threading.current_thread() is threading.main_thread() else NO_LIMIT
            while (status := library.quorlock_sync_lock_acquire_for(self._handle, look_ms, result)) == WAITS:
                pass
            self._granted_or(lost, status, result)
        except Error:
            raise
        except BaseException:
            # Another signal may come at any step. The thread that gives up goes on without this one.
            try:
                self._end_in_thread(ends, result)
            finally:
                self._end_in_thread(ends, result)
            self._lost = self._lost or lost
            raise
        _library.RESULTS.append(result)

    def _end_in_thread(self, ends: List[Waiting], result: Any) -> None:
        """End an acquire that nobody waits for any more, and its grant, once."""
        if not ends:
            ends.append(Waiting(lambda: self._end_acquire(result)))
        ends[0].start_at_once()
        ends[0].done.wait()

    def _end_acquire(self, result: Any) -> None:
        status = result.status
        while status == WAITS:
            library.quorlock_sync_lock_cancel(self._handle)
            status = library.quorlock_sync_lock_acquire_for(self._handle, CANCEL_AGAIN_MS, result)
        if status == OK:
            with contextlib.suppress(Error):
                self.release()

    def _granted_or(self, lost: Optional[str], status: int, result: Any) -> None:
        """Take a grant, or raise why there is none."""
        if status != OK:
            self._lost = self._lost or lost
            self._check(status, result.text)
        self._grant(result)

    def _grant(self, result: Any) -> None:
        self._detached, self._may_be_lost = False, True
        self._fence, self._token, self._slot = result.fence, result.token, result.slot

    def _give_up(self, wait: Waiting, end: Callable[[], object]) -> None:
        """Cancel an acquire that nobody waits for any more, and end its grant."""
        if not wait.abandon():
            return
        while not wait.done.wait(CANCEL_AGAIN_S):
            try:
                self.cancel()
            except Closed:
                pass
        if wait.problem is None:
            try:
                end()
            except Error:
                pass

    def _tell(self, event: Any, call: Callable[[Callable[[], object]], None]) -> None:
        """Take the event of a loss."""
        text = as_python(event.text.decode(errors="replace"))
        self._lost = text
        inside = self._inside
        if inside is not None:
            notify(inside.loop, self._cancel_task)
        if self._on_lost is not None:
            call(lambda: self._call_lost(text))

    def _call_lost(self, text: str) -> None:
        if self._on_lost is not None:
            self._on_lost(self, text)

    def _cancel_task(self) -> None:
        """Cancel the task of the block once, if its lock is lost. Runs in the task's loop."""
        if self._inside is not None and self._lost is not None and not self._canceled:
            self._canceled = True
            self._inside.task.cancel()


class Detached(NamedTuple):
    """What Lock.detach() returns."""
    token: str     # for adopt(), in another process
    fence: int     # 0 without fencing
    valid_ms: int  # the lock expires then, unless it is adopted before


class Inside(NamedTuple):
    """The task in the block, and how often it had been canceled before."""
    loop: asyncio.AbstractEventLoop
    task: "asyncio.Task[Any]"
    cancels: int


def wait_of(blocking: bool, timeout: Optional[float]) -> Optional[int]:
    """Return these arguments of acquire() as wait_ms of the library; None: neither is given."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise TypeError(f"timeout is {timeout!r}: it must be a number of seconds, or None")
    if not blocking:
        if timeout not in (None, -1):
            raise Invalid(f"timeout is {timeout!r}: with blocking=False nothing waits, so leave one of them away", INVAL)
        return _library.TRY_ONCE
    if timeout is None:
        return None
    if timeout == -1:
        return 0
    if not 0 <= timeout <= WAIT_MS_MAX / 1000:
        raise Invalid(f"timeout is {timeout!r}: it must be 0 to {WAIT_MS_MAX // 1000} seconds, or -1 for no limit", INVAL)
    return math.ceil(timeout * 1000) or _library.TRY_ONCE


def cancels_of(task: "asyncio.Task[Any]") -> int:
    return int(getattr(task, "cancelling", int)())
