# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions, one for each status that a program may want to distinguish."""
from typing import Any, Dict, Tuple, Type

from ._library import status_name
from ._words import as_python


class Error(Exception):
    """Any status except OK. `status` is its number in quorlock.h, and `name` its name, such as "NOQUORUM"."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> Tuple[Any, ...]:
        # Exceptions are made anew from `args`, which is the text alone.
        return type(self), (str(self), self.status), self.__dict__

    @property
    def name(self) -> str:
        return status_name(self.status)


class Invalid(Error, ValueError):
    """An argument is not valid."""


class Held(Error):
    """Somebody else holds the lock."""


class NoQuorum(Error):
    """Too few nodes can vote."""


class Unauthorized(Error):
    """The nodes refuse the user, the password or the certificate, or the user lacks a right."""


class Foreign(Error):
    """The key holds a value of another type or dialect."""


class Protocol(Error):
    """The nodes do not speak Redis as expected."""


class TimedOut(Error, TimeoutError):
    """The wait ended without a result."""


class Lost(Error):
    """The lock was lost while it was held. Somebody else may hold it now."""


class Canceled(Error):
    """cancel() ended the call."""


class Closed(Error):
    """The client is closed, or the parent of this process holds the lock."""


WAITS = 1
OK, INVAL, BUSY, STATE, HELD, NOQUORUM, TIMEDOUT, LOST, CANCELED, CLOSED, AUTH = 0, -1, -3, -4, -5, -6, -7, -8, -9, -10, -11
CLASSES: Dict[int, Type[Error]] = {INVAL: Invalid, HELD: Held, NOQUORUM: NoQuorum, TIMEDOUT: TimedOut, LOST: Lost,
                                   CANCELED: Canceled, CLOSED: Closed, AUTH: Unauthorized, -12: Foreign,
                                   -13: Protocol}


def error(status: int, text: str) -> Error:
    return CLASSES.get(status, Error)(as_python(text) or status_name(status), status)
