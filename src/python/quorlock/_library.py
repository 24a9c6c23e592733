# SPDX-License-Identifier: BSD-3-Clause
"""libquorlock by ctypes: the structs and functions of quorlock.h and sync.h that this package uses.

The library is the file in this package, or else the one that the dynamic linker finds. The variable QUORLOCK_LIBRARY
names another file.
"""
import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, byref, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, List, Optional

from ._version import VERSION

INTERFACE = ".".join(VERSION.split(".")[:2])
NAME = f"libquorlock.so.{INTERFACE}"
OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", NAME)

TRY_ONCE = 2**32 - 1
SLOT_NONE = 2**32 - 1
RENEW_NEVER = 2**32 - 1
TEXT_SIZE = 512
EVENT_TEXT_SIZE = 1400
TOKEN_SIZE = 128


class Error(ctypes.Structure):
    """struct quorlock_error"""
    _fields_ = [("status", c_int), ("text", c_char * TEXT_SIZE)]


CredentialsCallback = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)


class Result(ctypes.Structure):
    """struct quorlock_sync_result"""
    _fields_ = [("size", c_size_t), ("status", c_int), ("granted", c_uint32), ("refused", c_uint32),
                ("failed", c_uint32), ("rounds", c_uint32), ("elapsed_ms", c_uint32), ("valid_ms", c_uint32),
                ("fence", c_uint64), ("text", c_char * TEXT_SIZE), ("token", c_char * TOKEN_SIZE),
                ("slot", c_uint32)]


class Holder(ctypes.Structure):
    """struct quorlock_holder"""
    _fields_ = [("kind", c_int), ("holder", c_char_p), ("ttl_ms", c_int64), ("fence", c_uint64), ("slot", c_uint32),
                ("shared", c_int), ("place", c_uint32)]


class InspectNode(ctypes.Structure):
    """struct quorlock_inspect_node"""
    _fields_ = [("node", c_char_p), ("state", c_int), ("latency_us", c_uint32), ("holder", c_char_p), ("error", c_char_p),
                ("ttl_ms", c_int64), ("fence", c_uint64), ("type", c_char_p), ("count", c_uint32), ("permits", c_uint32),
                ("holders", POINTER(POINTER(Holder))), ("n_holders", c_size_t), ("waiters", c_int64),
                ("quarantine_ms", c_int64), ("quarantine", c_int), ("quarantine_why", c_char_p)]


class InspectReport(ctypes.Structure):
    """struct quorlock_inspect_report"""
    _fields_ = [("quorum", c_uint32), ("answered", c_uint32), ("held", c_int), ("holder", c_char_p), ("valid_ms", c_uint32),
                ("nodes", POINTER(POINTER(InspectNode))), ("n_nodes", c_size_t)]


class BreakNode(ctypes.Structure):
    """struct quorlock_break_node"""
    _fields_ = [("node", c_char_p), ("state", c_int), ("latency_us", c_uint32), ("holder", c_char_p), ("error", c_char_p),
                ("ttl_ms", c_int64), ("type", c_char_p), ("permits", c_uint32), ("holders", POINTER(POINTER(Holder))),
                ("n_holders", c_size_t)]


class BreakReport(ctypes.Structure):
    """struct quorlock_break_report"""
    _fields_ = [("quorum", c_uint32), ("held", c_int), ("holder", c_char_p), ("valid_ms", c_uint32),
                ("nodes", POINTER(POINTER(BreakNode))), ("n_nodes", c_size_t)]


class Event(ctypes.Structure):
    """struct quorlock_event"""
    _fields_ = [("size", c_size_t), ("type", c_int), ("status", c_int), ("handle", c_void_p), ("arg", c_void_p),
                ("fence", c_uint64), ("term", c_uint64), ("granted", c_uint32), ("refused", c_uint32), ("failed", c_uint32),
                ("rounds", c_uint32), ("elapsed_ms", c_uint32), ("valid_ms", c_uint32), ("slot", c_uint32),
                ("remaining_ms", c_uint32), ("reason", c_int), ("level", c_int), ("state", c_int),
                ("n_dropped", c_uint64), ("text", c_char * EVENT_TEXT_SIZE), ("token", c_char * TOKEN_SIZE)]


InspectCallback = CFUNCTYPE(None, c_int, POINTER(InspectReport), c_void_p)
BreakCallback = CFUNCTYPE(None, c_int, POINTER(BreakReport), c_void_p)

class Listed(ctypes.Structure):
    """struct quorlock_listed"""
    _fields_ = [("key", c_char_p), ("holder", c_char_p), ("mode", c_int), ("nodes", c_uint32), ("ttl_ms", c_int64),
                ("readers", c_uint32), ("permits", c_uint32), ("slot", c_uint32)]


class ListNode(ctypes.Structure):
    """struct quorlock_list_node"""
    _fields_ = [("node", c_char_p), ("state", c_int), ("error", c_char_p)]


class ListReport(ctypes.Structure):
    """struct quorlock_list_report"""
    _fields_ = [("more", c_int), ("quorum", c_uint32), ("answered", c_uint32), ("locks", POINTER(POINTER(Listed))),
                ("n_locks", c_size_t), ("nodes", POINTER(POINTER(ListNode))), ("n_nodes", c_size_t),
                ("other_keys", POINTER(c_char_p)), ("n_other_keys", c_size_t), ("others", c_uint64)]


ListCallback = CFUNCTYPE(None, c_int, POINTER(ListReport), c_void_p)
BootstrapCallback = CFUNCTYPE(None, c_int, c_void_p, c_void_p)

OPTIONS = c_void_p  # a struct of options; each stands in the module whose arguments set it

# The type of the result of each function, and those of its arguments.
FUNCTIONS = {
    "quorlock_version": (c_char_p,),
    "quorlock_status_name": (c_char_p, c_int),
    "quorlock_status_text": (c_char_p, c_int),
    "quorlock_credentials_read_file": (c_int, c_void_p, c_char_p, c_void_p),
    "quorlock_credentials_defer": (c_int, c_void_p, c_char_p, c_void_p),
    "quorlock_settings_load": (c_int, POINTER(c_void_p), c_char_p, c_char_p, POINTER(Error)),
    "quorlock_settings_options": (c_int, c_void_p, OPTIONS, POINTER(Error)),
    "quorlock_settings_free": (None, c_void_p),
    "quorlock_sync_client_new": (c_int, POINTER(c_void_p), OPTIONS, POINTER(Error)),
    "quorlock_sync_client_close": (c_int, c_void_p),
    "quorlock_sync_client_set_credentials": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, POINTER(Error)),
    "quorlock_sync_client_metrics": (c_int, c_void_p, c_void_p, c_char_p, c_size_t, POINTER(c_size_t)),
    "quorlock_sync_client_inspect": (c_int, c_void_p, c_char_p, InspectCallback, c_void_p),
    "quorlock_sync_client_list": (c_int, c_void_p, c_char_p, ListCallback, c_void_p),
    "quorlock_sync_client_break": (c_int, c_void_p, c_char_p, c_char_p, BreakCallback, c_void_p),
    "quorlock_sync_client_bootstrap": (c_int, c_void_p, OPTIONS, BootstrapCallback, c_void_p),
    "quorlock_sync_lock_new": (c_int, POINTER(c_void_p), c_void_p, POINTER(c_char_p), c_size_t, OPTIONS,
                              POINTER(Error)),
    "quorlock_sync_lock_acquire": (c_int, c_void_p, POINTER(Result)),
    "quorlock_sync_lock_acquire_for": (c_int, c_void_p, c_uint32, POINTER(Result)),
    "quorlock_sync_lock_extend": (c_int, c_void_p, c_uint32, POINTER(Result)),
    "quorlock_sync_lock_release": (c_int, c_void_p, POINTER(Result)),
    "quorlock_sync_lock_adopt": (c_int, c_void_p, c_char_p, POINTER(Result)),
    "quorlock_sync_lock_detach": (c_int, c_void_p, POINTER(Result)),
    "quorlock_sync_lock_start_acquire": (c_int, c_void_p, c_void_p, c_void_p),
    "quorlock_sync_lock_start_release": (c_int, c_void_p, c_void_p, c_void_p),
    "quorlock_sync_lock_set_wait_ms": (c_int, c_void_p, c_uint32, POINTER(Error)),
    "quorlock_sync_lock_cancel": (c_int, c_void_p),
    "quorlock_sync_lock_free": (None, c_void_p),
    "quorlock_sync_lock_set_on_lost": (None, c_void_p, c_void_p, c_void_p),
    "quorlock_sync_lock_valid_ms": (c_uint32, c_void_p),
    "quorlock_sync_candidate_new": (c_int, POINTER(c_void_p), c_void_p, c_char_p, OPTIONS, POINTER(Error)),
    "quorlock_sync_candidate_stand": (c_int, c_void_p, POINTER(c_uint64)),
    "quorlock_sync_candidate_resign": (c_int, c_void_p),
    "quorlock_sync_candidate_free": (None, c_void_p),
    "quorlock_sync_candidate_valid_ms": (c_uint32, c_void_p),
    "quorlock_sync_candidate_term": (c_uint64, c_void_p),
    "quorlock_sync_client_events": (c_int, c_void_p, POINTER(c_int)),
    "quorlock_sync_client_next_event": (c_int, c_void_p, POINTER(Event)),
    "quorlock_sync_observer_new": (c_int, POINTER(c_void_p), c_void_p, c_char_p, OPTIONS, POINTER(Error)),
    "quorlock_sync_observer_free": (None, c_void_p),
}

# They wait for nothing, so that other threads of Python need not run meanwhile.
QUICK = ("quorlock_sync_lock_start_acquire", "quorlock_sync_lock_start_release", "quorlock_sync_lock_valid_ms",
         "quorlock_sync_candidate_valid_ms", "quorlock_sync_candidate_term", "quorlock_sync_client_next_event")


def load() -> Any:
    name = os.environ.get("QUORLOCK_LIBRARY") or (OWN if os.path.exists(OWN) else NAME)
    try:
        found, quick = ctypes.CDLL(name), getattr(ctypes, "PyDLL", ctypes.CDLL)(name)
        for function in QUICK:
            setattr(found, function, getattr(quick, function))
        for function, (result, *arguments) in FUNCTIONS.items():
            getattr(found, function).restype = result
            getattr(found, function).argtypes = arguments
    except (OSError, AttributeError) as problem:
        raise ImportError(f"{name}: {problem}. Install libquorlock {INTERFACE}, or set QUORLOCK_LIBRARY to its "
                          f"file") from None
    version = found.quorlock_version().decode()
    if not version.startswith(INTERFACE + "."):
        raise ImportError(f"{name} is quorlock {version}, and this package needs {INTERFACE}: install versions that "
                          f"match")
    return found


library = load()


def text_array(texts: "list[bytes]") -> Any:
    return (c_char_p * len(texts))(*texts)


def new_result() -> Result:
    return Result(size=ctypes.sizeof(Result))


RESULTS: "List[Result]" = []  # to be used again


def take_result() -> Result:
    try:
        return RESULTS.pop()
    except IndexError:
        return new_result()


def slot_of(one: Any) -> Optional[int]:
    """The slot in a struct of the library."""
    return None if one.slot == SLOT_NONE else int(one.slot)


def status_name(status: int) -> str:
    return str(library.quorlock_status_name(status).decode())


def status_text(status: int) -> str:
    return str(library.quorlock_status_text(status).decode())

