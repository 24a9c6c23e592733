# SPDX-License-Identifier: BSD-3-Clause
"""A lock, for `with` and for `async with`."""
import asyncio
import ctypes
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence, Tuple, Union

from . import _library
from ._arguments import Text, encode, number, set_numbers, shared_bits
from ._errors import CANCELED, CLOSED, LOST, NOQUORUM, OK, Closed, Error, Lost, error
from ._library import library

if TYPE_CHECKING:
    from ._client import Client

# How long a wait that is given up goes on before it is canceled again: it may just have begun.
CANCEL_AGAIN_S = 0.01


class Lock:
    """A lock on keys of a client: made by Client.lock(), or by quorlock.lock().

        with client.lock("key") as lock:
            ...
            lock.check()          # raises Lost where the lock is not held any more
            ...                   # one step that must not be done twice

    Leaving the block gives the lock back, and raises Lost where it was lost meanwhile and nothing else was raised.
    `async with` does the same; there a loss also cancels what the block waits for, and comes out of it as Lost.
    Where the work does not wait, or has threads, ask check() before each step that must not be done twice.

    wait_ms: how long to wait for the lock, 0: try once; default: for ever. permits=K: the key is a name with K permits,
    and the lock is one of them, `slot`. shared=True: the keys are locked shared; shared=["key", ...]: those of them.
    The other options are those of struct quorlock_options in quorlock.h. `on_lost` is called with the lock and a text
    when the lock is lost, in the thread of the client: while it runs no lock is renewed, so it should be short. What
    waits for the nodes, such as release(), raises Error there. A lock can be used again and again; each of its holders
    in threads or tasks that exclude each other needs one of its own.
    """

    def __init__(self, client: "Client", keys: Sequence[Text], *, wait_ms: int = _library.WAIT_FOREVER,
                 lease_ms: int = 0, renew_ms: int = 0, min_valid_ms: int = 0, lost_margin_ms: int = 0,
                 max_hold_ms: int = 0, fencing: bool = False, fence_ttl_ms: int = 0,
                 owner: Optional[Text] = None, label: Optional[str] = None, permits: int = 0,
                 shared: Union[bool, Text, Sequence[Text]] = False,
                 on_lost: "Optional[Callable[[Lock, str], None]]" = None):
        self._handle: Optional[int] = None
        self._giving_back = 0  # threads that do it for nobody
        self._collected = False
        self._client = client
        self._on_lost = on_lost
        self._lost: Optional[str] = None
        self._fence, self._token, self._slot = 0, "", 0
        self._inside: Optional[Inside] = None
        self._canceled = False
        names = [encode(key, "the key") for key in keys]
        options = _library.Options(size=ctypes.sizeof(_library.Options), fencing=int(fencing),
                                   shared=shared_bits(shared, names))
        set_numbers(options, {"wait_ms": wait_ms, "lease_ms": lease_ms, "renew_ms": renew_ms,
                              "min_valid_ms": min_valid_ms, "lost_margin_ms": lost_margin_ms,
                              "max_hold_ms": max_hold_ms, "fence_ttl_ms": fence_ttl_ms, "permits": permits})
        if owner is not None:
            options.owner = encode(owner, "owner")
        if label is not None:
            options.label = encode(label, "label")
        text = ctypes.create_string_buffer(_library.TEXT_SIZE)
        handle = ctypes.c_void_p()
        with client._call() as of:
            status = library.quorlock_blocking_new(ctypes.byref(handle), of, _library.text_array(names), len(names),
                                                   ctypes.byref(options), text, _library.TEXT_SIZE)
            if status != OK:
                raise error(status, text.value.decode(errors="replace"))
            assert handle.value is not None
            self._handle = handle.value
            callback = _library.LostCallback(tell(client._home, weakref.ref(self)))
            client._callbacks[handle.value] = callback
            library.quorlock_blocking_on_lost(handle, callback, None)

    def __del__(self) -> None:
        # What is left of a loop that was closed may be collected together with its locks: then a thread gives this one
        # back, and frees it, for a second __del__ does not come.
        if getattr(self, "_handle", None) is None:
            return
        with self._client._changed:
            self._collected = True
            if self._giving_back > 0:
                return
        self._free()

    def _free(self) -> None:
        handle, self._handle = self._handle, None
        try:
            with self._client._call():
                library.quorlock_blocking_free(handle)
                del self._client._callbacks[handle]
        except Closed:
            pass  # freed by the close

    # ---- what is known ----

    @property
    def valid_ms(self) -> int:
        """Validity left; 0: not held, do not act."""
        try:
            with self._client._call():
                return int(library.quorlock_blocking_valid_ms(self._handle))
        except Closed:
            return 0

    @property
    def fence(self) -> int:
        """The fencing token of the last grant, with permits that of its slot; 0 without fencing."""
        return self._fence

    @property
    def slot(self) -> int:
        """With permits: which of them the last grant is, 0 to permits - 1; else 0."""
        return self._slot

    @property
    def token(self) -> str:
        """The owner token of the last grant, as it stands on the nodes."""
        return self._token

    @property
    def lost(self) -> bool:
        """Whether the last grant was lost."""
        return self._lost is not None

    def check(self) -> None:
        """Raises Lost where the lock is not held."""
        if self._lost is not None or self.valid_ms == 0:
            raise Lost(self._lost or "the lock is not held", LOST)

    # ---- what is done ----

    def acquire(self) -> None:
        """Waits for the lock. Raises Held, TimedOut, NoQuorum ... where there is none. Ctrl-C ends the wait."""
        if threading.current_thread() is not threading.main_thread():
            self._acquire()
            return
        # Signals are handled in this thread only, and not while it is in the library.
        wait = Waiting(self._acquire)
        try:
            wait.start()
            wait.done.wait()
        except BaseException:
            self._give_up(wait)
            raise
        wait.result()

    def release(self) -> bool:
        """Gives the lock back. False: a quorum has not answered; the nodes are released later, at the latest when the
        lease ends. Raises Lost where the lock had expired or was lost before."""
        result = self._do(library.quorlock_blocking_release, ok=(OK, NOQUORUM))
        lost, self._lost = self._lost, None
        if lost is not None or result.expired:
            raise Lost(lost or result.text.decode(errors="replace"), LOST)
        return bool(result.status == OK)

    def extend(self, lease_ms: int = 0) -> None:
        """Renews now, with a lease at least as long as the present one; later renewals use it too."""
        wanted_ms = number(lease_ms, "lease_ms")
        self._do(lambda handle, result: library.quorlock_blocking_extend(handle, wanted_ms, result))

    def cancel(self) -> None:
        """Ends an acquire or extend that another thread waits for: it raises Canceled there."""
        with self._client._call():
            library.quorlock_blocking_cancel(self._handle)

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            self.release()
        except Error:
            if kind is None:
                raise

    # ---- the same for asyncio ----

    async def acquire_async(self) -> None:
        """acquire() for asyncio. When the task is canceled, so is the wait."""
        wait, done = begin(self._acquire, self._give_up)
        try:
            await done.wait()
        except GeneratorExit:
            # Its loop ended before it did, and nobody can await in it any more.
            self._abandon(lambda: self._give_up(wait))
            raise
        except BaseException:
            _, gone = begin(lambda: self._give_up(wait), ends=True)
            await gone.wait()
            raise
        wait.result()

    async def release_async(self) -> bool:
        """release() for asyncio. It goes on where the task is canceled."""
        wait, done = begin(self.release, ends=True)
        await done.wait()
        return bool(wait.result())

    async def __aenter__(self) -> "Lock":
        task = asyncio.current_task()
        assert task is not None
        await self.acquire_async()
        self._canceled = False
        self._inside = Inside(asyncio.get_running_loop(), task, cancels_of(task))
        self._cancel_task()
        return self

    async def __aexit__(self, kind: Any, *_: object) -> None:
        inside, self._inside = self._inside, None
        alone = False
        if self._canceled and inside is not None:
            # Python 3.11 and later tell our cancellation from another one that came as well.
            getattr(inside.task, "uncancel", int)()
            alone = kind is asyncio.CancelledError and cancels_of(inside.task) <= inside.cancels
        if kind is GeneratorExit:  # as in acquire_async
            self._abandon(self.release)
            return
        try:
            await self.release_async()
        except Error:
            if kind is None or alone:
                raise

    # ---- inside ----

    def _abandon(self, call: Callable[[], Any]) -> None:
        """A call for whom nobody waits any more; where this was freed already there is nothing to do."""
        with self._client._changed:
            if self._handle is None or self._collected and self._giving_back == 0:
                return
            self._giving_back += 1
        Waiting(lambda: self._give_back(call)).start_or_run()

    def _give_back(self, call: Callable[[], Any]) -> None:
        try:
            call()
        finally:
            with self._client._changed:
                self._giving_back -= 1
                last = self._collected and self._giving_back == 0
            if last:
                self._free()

    def _do(self, call: Callable[..., int], ok: Tuple[int, ...] = (OK,)) -> Any:
        result = _library.new_result()
        with self._client._call(self._handle):
            status = call(self._handle, ctypes.byref(result))
        if status == CANCELED and self._client.closed:
            raise Closed("the client is closed", CLOSED)
        if status not in ok:
            raise error(status, result.text.decode(errors="replace"))
        return result

    def _acquire(self) -> None:
        # Cleared first: the new grant may be lost before this thread hears of it. Without a new grant the loss stays.
        lost, self._lost = self._lost, None
        try:
            result = self._do(library.quorlock_blocking_acquire)
        except BaseException:
            self._lost = self._lost or lost
            raise
        self._fence, self._token, self._slot = int(result.fence), result.token.decode(), int(result.slot)

    def _give_up(self, wait: "Waiting") -> None:
        """Of an acquire that nobody waits for any more nothing stays."""
        if not wait.abandon():
            return
        while not wait.done.wait(CANCEL_AGAIN_S):
            try:
                self.cancel()
            except Closed:
                pass
        if wait.problem is None:
            try:
                self.release()
            except Error:
                pass

    def _tell(self, text: str) -> None:
        """In the thread of the client."""
        self._lost = text
        inside = self._inside
        if inside is not None:
            notify(inside.loop, self._cancel_task)
        if self._on_lost is not None:
            self._on_lost(self, text)

    def _cancel_task(self) -> None:
        """In the task's loop; where its lock is lost, and once."""
        if self._inside is not None and self._lost is not None and not self._canceled:
            self._canceled = True
            self._inside.task.cancel()


class Inside(NamedTuple):
    """The task that is in the block, and how often it had been canceled before."""
    loop: asyncio.AbstractEventLoop
    task: "asyncio.Task[Any]"
    cancels: int


def cancels_of(task: "asyncio.Task[Any]") -> int:
    return int(getattr(task, "cancelling", int)())


class Home:
    """The thread of a client, known from its first callback on."""

    def __init__(self) -> None:
        self._thread: Optional[int] = None

    def enter(self) -> None:
        self._thread = threading.get_ident()

    def is_here(self) -> bool:
        return self._thread == threading.get_ident()


def tell(home: Home, reference: "weakref.ref[Lock]") -> Callable[..., None]:
    def on_lost(_handle: object, loss: Any, _arg: object) -> None:
        home.enter()
        lock = reference()
        if lock is not None:
            lock._tell(loss.contents.text.decode(errors="replace"))
    return on_lost


def notify(loop: asyncio.AbstractEventLoop, call: Callable[[], Any]) -> bool:
    """False: the loop is closed, and nobody waits there."""
    try:
        loop.call_soon_threadsafe(call)
        return True
    except RuntimeError:
        return False


class Waiting:
    """A call in a thread of its own; `told` is called there when it has ended."""

    def __init__(self, call: Callable[[], Any], told: Callable[[], Any] = lambda: None):
        self.done = threading.Event()
        self.problem: Optional[BaseException] = None
        self._value: Any = None
        self._call, self._told = call, told
        self._guard = threading.Lock()
        self._began = self._abandoned = False

    def start(self) -> None:
        threading.Thread(target=self._run, name="quorlock", daemon=True).start()

    def start_or_run(self) -> None:
        """For what ends soon: where the system has no more threads it is done here, for else a lock would stay held."""
        try:
            self.start()
        except RuntimeError:
            self._run()

    def abandon(self) -> bool:
        """Whether it has begun, and this is the first time; where it has not, it does not begin any more."""
        with self._guard:
            before, self._abandoned = self._abandoned, True
            return self._began and not before

    def result(self) -> Any:
        if self.problem is not None:
            raise self.problem
        return self._value

    def _run(self) -> None:
        with self._guard:
            if self._abandoned:
                return
            self._began = True
        try:
            self._value = self._call()
        except BaseException as problem:  # pylint: disable=broad-exception-caught
            self.problem = problem
        self.done.set()
        self._told()


def begin(call: Callable[[], Any], unwanted: "Callable[[Waiting], Any]" = lambda _: None,
          ends: bool = False) -> Tuple[Waiting, asyncio.Event]:
    """A call in a thread of its own, and what is set in this loop when it has ended; unwanted() runs in that thread
    where the loop was closed meanwhile. ends: as Waiting.start_or_run."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    wait = Waiting(call, lambda: notify(loop, done.set) or unwanted(wait))
    if ends:
        wait.start_or_run()
    else:
        wait.start()
    return wait, done
