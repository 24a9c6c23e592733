# SPDX-License-Identifier: BSD-3-Clause
"""Users and passwords that may change while a client runs."""
import os
import stat
from typing import Any, Callable, Optional, Tuple

from ._arguments import Text, encode
from ._errors import INVAL, Invalid
from ._library import library

# The result of a caller's function: user and password, or None for none.
Login = Tuple[Optional[Text], Optional[Text]]
PASSWORD_MAX = 1000  # of a file; the command has the same limit


def read_file(path: str) -> Tuple[bytes, bool]:
    """Return the password in its first line, and whether it can be read again: it is a regular file, not a pipe."""
    try:
        again = stat.S_ISREG(os.stat(path).st_mode)
        with open(path, "rb") as file:
            line = file.read(PASSWORD_MAX + 2)
    except OSError as problem:
        raise Invalid(f"password file {path!r}: {problem.strerror}", INVAL) from None
    line = line.replace(b"\r", b"\n").split(b"\n", 1)[0]
    if not line or len(line) > PASSWORD_MAX or b"\0" in line:
        raise Invalid(f"password file {path!r}: its first line must be a password of 1 to {PASSWORD_MAX} bytes", INVAL)
    return line, again


def asks(home: Any, given: Callable[[str], Login]) -> Callable[..., int]:
    """Return the library's callback for a caller's function. If that raises, its text is the reason in the log."""
    def on_login(to: int, node: bytes, _arg: object) -> int:
        home.enter()
        try:
            user, password = (None if text is None else encode(text, name, secret=True)
                              for name, text in zip(("user", "password"), given(node.decode())))
            return int(library.quorlock_credentials_set(to, user, password))
        except Exception as problem:  # pylint: disable=broad-except
            why = (str(problem) or type(problem).__name__).encode(errors="replace")
            return int(library.quorlock_credentials_refuse(to, why))
    return on_login
