# SPDX-License-Identifier: BSD-3-Clause
"""Refuses interpreters in which the package cannot work."""
REFUSED = ("quorlock does not work in a subinterpreter, where its threads cannot run and ctypes is not safe: import it in the main "
           "interpreter. With mod_wsgi set WSGIApplicationGroup %{GLOBAL}")

try:
    import ctypes
except ImportError as problem:
    raise ImportError(f"{REFUSED} ({problem})") from None


def is_main() -> bool:
    """Whether this is the main interpreter; an implementation that has no others has no such functions."""
    try:
        current, number = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_GetID
    except AttributeError:
        return True
    current.restype, number.restype, number.argtypes = ctypes.c_void_p, ctypes.c_int64, [ctypes.c_void_p]
    return bool(number(current()) == 0)


if not is_main():
    raise ImportError(REFUSED)
