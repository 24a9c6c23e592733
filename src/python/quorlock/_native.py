# SPDX-License-Identifier: BSD-3-Clause
"""Threads and descriptors of the system, also in a program whose modules gevent or eventlet has patched.

The thread that reads the events of a client must not be a greenlet: it waits in C.
"""
import _thread
import ctypes
import sys
from typing import Any, Callable, Optional

EFD_CLOEXEC, EFD_NONBLOCK, POLLIN = 0o2000000, 0o4000, 1
LIBC = ctypes.CDLL(None, use_errno=True)


class Poll(ctypes.Structure):
    """struct pollfd"""
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


def _original(name: str) -> Any:
    """Return what the module _thread has under that name, before it was patched."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent is not None and gevent.is_module_patched("threading"):
        return gevent.get_original("_thread", name)
    if eventlet is not None and eventlet.is_monkey_patched("thread"):
        return getattr(eventlet.original("_thread"), name)
    return getattr(_thread, name)


start_new_thread, allocate_lock = _original("start_new_thread"), _original("allocate_lock")
get_ident, RLock = _original("get_ident"), _original("RLock")


def pause(seconds: float) -> None:
    """Stop this thread, and not only this greenlet."""
    lock = allocate_lock()
    lock.acquire()
    lock.acquire(True, seconds)


class Wake:
    """A descriptor that is readable from the first set() on, until clear()."""

    def __init__(self) -> None:
        self.fd = LIBC.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "eventfd: no descriptor is left")

    def set(self) -> None:
        LIBC.write(self.fd, ctypes.byref(ctypes.c_uint64(1)), ctypes.c_size_t(8))

    def clear(self) -> None:
        LIBC.read(self.fd, ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(8))

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            LIBC.close(fd)


def wait_readable(*fds: int, most_ms: int = -1) -> None:
    """Wait, in this thread, until one of the descriptors is readable; -1: without limit."""
    waits = (Poll * len(fds))(*[Poll(fd, POLLIN, 0) for fd in fds])
    LIBC.poll(waits, ctypes.c_ulong(len(fds)), most_ms)


def hub() -> Optional[Callable[[int], object]]:
    """Return the function that waits for a descriptor while other greenlets of this thread run; None: it has no hub."""
    modules = sys.modules
    if "gevent._hub_local" not in modules and "eventlet.hubs" not in modules:
        return None
    local = modules.get("gevent._hub_local")
    found = local.get_hub_if_exists() if local is not None else None
    if found is not None and modules["greenlet"].getcurrent() is not found:
        from gevent.socket import wait_read  # type: ignore # pylint: disable=import-outside-toplevel,import-error
        return lambda fd: wait_read(fd)  # pylint: disable=unnecessary-lambda
    hubs: Any = modules.get("eventlet.hubs")
    found = getattr(getattr(hubs, "_threadlocal", None), "hub", None)
    if hubs is not None and found is not None and modules["greenlet"].getcurrent() is not found.greenlet:
        return lambda fd: hubs.trampoline(fd, read=True)
    return None
