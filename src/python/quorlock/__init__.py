# SPDX-License-Identifier: BSD-3-Clause
"""One lock on N independent Redis masters.

    import quorlock

    quorlock.configure("10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379")
    with quorlock.lock("key") as lock:
        ...

    async with quorlock.lock("key"):
        ...

Without nodes, configure() and Client() read the variables and configuration files that the command quorlock reads, such as
QUORLOCK_NODES: see quorlock.conf(5). Without configure() the first lock() does so. For more than one set of nodes use
quorlock.Client.
The library renews locks in a thread of its own, which does not need the interpreter, so a busy interpreter or event loop
does not delay renewals. The logger `quorlock` of the module logging says what goes wrong.
"""
from typing import TYPE_CHECKING, Iterable, Optional, Union

from . import _interpreter  # first, because it refuses what the others cannot do
from ._arguments import Text
from ._client import Client, ClientOptions
from ._connection import LEFT, look_for_fork
from ._election import Candidate, CandidateOptions
from ._errors import (Canceled, Closed, Error, Foreign, Held, Invalid, Lost, NoQuorum, Protocol, TimedOut,
                      Unauthorized)
from ._library import RENEW_NEVER
from ._lock import Detached, Lock, LockOptions
from ._native import RLock
from ._observer import Leader, Observer
from ._report import BreakNode, BreakReport, Holder, InspectNode, InspectReport, Listed, ListNode, ListReport
from ._version import VERSION as __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["RENEW_NEVER", "BreakNode", "BreakReport", "Canceled", "Candidate", "CandidateOptions", "Client",
           "ClientOptions", "Closed", "Detached", "Error", "Foreign", "Held", "Holder", "InspectNode", "InspectReport",
           "Invalid", "Leader", "ListNode", "ListReport", "Listed", "Lock", "LockOptions", "Lost", "NoQuorum", "Observer",
           "Protocol", "TimedOut", "Unauthorized", "__version__", "configure", "lock"]

_guard = RLock()
_default: Optional[Client] = None


def _forget_threads() -> None:
    """Make a new guard in a child of fork(): a thread that does not run here may have held the old one."""
    global _guard  # pylint: disable=global-statement
    _guard = RLock()


LEFT.append(_forget_threads)


def configure(nodes: Union[str, Iterable[str], None] = None, **options: "Unpack[ClientOptions]") -> Client:
    """Make the client of quorlock.lock(), with the arguments of Client, and close the one before it.

    In a child of fork() the client begins anew."""
    global _default  # pylint: disable=global-statement
    client = Client(nodes, **options)
    with _guard:
        before, _default = _default, client
    if before is not None:
        before.close()
    return client


def _default_client() -> Client:
    global _default  # pylint: disable=global-statement
    look_for_fork()
    with _guard:
        if _default is None or _default.closed:
            _default = Client()
        return _default


def lock(*keys: Text, **options: "Unpack[LockOptions]") -> Lock:
    """Make a lock on these keys, on the nodes of configure(), or of environment and files. The options are those of Lock."""
    return _default_client().lock(*keys, **options)
