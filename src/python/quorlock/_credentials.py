# SPDX-License-Identifier: BSD-3-Clause
"""Users and passwords that may change while a client runs."""
import contextlib
import os
import stat
import weakref
from typing import Any, Callable, Dict, Optional, Set, Tuple

from ._arguments import Text, encode
from ._errors import INVAL, Closed, Invalid
from ._native import start_new_thread

# The result of a caller's function: user and password, or None for none.
Login = Tuple[Optional[Text], Optional[Text]]
WARNING = 2  # enum quorlock_log_level
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


class Logins:
    """Asks the caller's function what to log in with, in a thread for each node that waits for it: it may take long."""

    def __init__(self, client: Any, given: Callable[[str], Login]):
        self._of, self._given = weakref.ref(client), given
        self._asked: Set[str] = set()  # nodes for which the function runs
        self._former: "Dict[str, Tuple[Optional[bytes], Optional[bytes]]]" = {}
        self._reason = ""  # why there was none, the last time

    def ask(self, node: str) -> None:
        """Begin to ask for the node, unless that goes on. The thread of the events calls this."""
        if node in self._asked:
            return
        self._asked.add(node)
        try:
            start_new_thread(self._run, (node,))
        except BaseException:
            self._asked.discard(node)
            raise

    def _run(self, node: str) -> None:
        reason = ""
        try:
            user, password = (None if text is None else encode(text, name, secret=True)
                              for name, text in zip(("user", "password"), self._given(node)))
            self._former[node] = user, password
        except Exception as problem:  # pylint: disable=broad-except
            reason = str(problem) or type(problem).__name__
        finally:
            self._asked.discard(node)  # before the answer: the next login may be refused, and wait, right after it
        self._answer(node, reason)

    def _answer(self, node: str, reason: str) -> None:
        client, login = self._of(), self._former.get(node)
        with contextlib.suppress(Closed):
            if client is None:
                return
            if reason and reason != self._reason:
                kept = "no credentials yet" if login is None else "no new credentials, those of before stay in use"
                client._say(WARNING, f"{node}: {kept}: {reason}")
            self._reason = reason
            if login is not None:
                client._log_in(node, *login)
