# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong, as exceptions: one for each status that a program may want to tell apart."""
from typing import Dict, Type

from ._library import status_name
from ._words import as_python


class Error(Exception):
    """Any status but OK. `status` is its number in quorlock.h and `name` its name, such as "NOQUORUM"."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status

    @property
    def name(self) -> str:
        return status_name(self.status)


class Invalid(Error, ValueError):
    """An argument that cannot be right."""


class Held(Error):
    """Somebody else holds the lock, and there was no time to wait."""


class NoQuorum(Error):
    """Too few nodes can vote."""


class Unauthorized(Error):
    """The nodes refuse our user, password or certificate, or do not give this user the rights."""


class Foreign(Error):
    """The key holds a value of another type or dialect."""


class Protocol(Error):
    """The nodes do not speak Redis as expected."""


class TimedOut(Error, TimeoutError):
    """wait_ms came before a verdict."""


class Lost(Error):
    """The lock was lost while it was held: what it protects may be somebody else's already."""


class Canceled(Error):
    """cancel() ended it."""


class Closed(Error):
    """The client is closed, or the hold is that of the process that this one was forked from."""


OK, INVAL, BUSY, STATE, NOQUORUM, LOST, CANCELED, CLOSED = 0, -1, -3, -4, -6, -8, -9, -10
CLASSES: Dict[int, Type[Error]] = {INVAL: Invalid, -5: Held, NOQUORUM: NoQuorum, -7: TimedOut, LOST: Lost,
                                   CANCELED: Canceled, CLOSED: Closed, -11: Unauthorized, -12: Foreign,
                                   -13: Protocol}


def error(status: int, text: str) -> Error:
    return CLASSES.get(status, Error)(as_python(text) or status_name(status), status)
