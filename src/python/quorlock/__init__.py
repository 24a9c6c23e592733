# SPDX-License-Identifier: BSD-3-Clause
"""One lock on N independent Redis masters.

    import quorlock

    quorlock.configure("10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379")
    with quorlock.lock("key") as lock:
        ...

    async with quorlock.lock("key"):
        ...

Without configure() the nodes are those of QUORLOCK_NODES, with the user and password of QUORLOCK_USER and
QUORLOCK_PASSWORD, and for rediss:// QUORLOCK_TLS_CA, _CERT, _KEY and _NAME. quorlock.Client is for more than one set of nodes. The thread that renews the locks is the
library's own: neither the interpreter nor an event loop that is busy keeps it from that.
"""
import os
import threading
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from ._client import Client
from ._errors import Canceled, Closed, Error, Held, Invalid, Lost, NoQuorum, TimedOut
from ._library import RENEW_NEVER, WAIT_FOREVER
from ._lock import Lock
from ._version import VERSION as __version__

__all__ = ["RENEW_NEVER", "WAIT_FOREVER", "Canceled", "Client", "Closed", "Error", "Held", "Invalid", "Lock", "Lost",
           "NoQuorum", "TimedOut", "__version__", "configure", "lock"]

_guard = threading.Lock()
_default: Optional[Client] = None
_configured: Optional[Tuple[Union[str, List[str]], Dict[str, Any]]] = None


def configure(nodes: Union[str, Iterable[str]], **options: Any) -> Client:
    """Makes the client of quorlock.lock(), with the arguments of Client. One that was there before is closed.
    A child of fork() makes its own with the same."""
    global _default, _configured  # pylint: disable=global-statement
    given = nodes if isinstance(nodes, str) else list(nodes)
    client = Client(given, **options)
    with _guard:
        before, _default = _default, client
        _configured = given, options
    if before is not None:
        before.close()
    return client


def _default_client() -> Client:
    global _default, _configured  # pylint: disable=global-statement
    with _guard:
        if _default is not None and _configured is not None and _default._pid != os.getpid():
            _default = Client(_configured[0], **_configured[1])
        if _default is None or _default.closed:
            nodes = os.environ.get("QUORLOCK_NODES")
            if not nodes:
                raise Invalid("no nodes: call quorlock.configure(), or set QUORLOCK_NODES", -1)
            names = ["user", "password"] + (["tls_ca", "tls_cert", "tls_key", "tls_name"] if "rediss://" in nodes else [])
            given: Dict[str, Any] = {name: os.environ.get(f"QUORLOCK_{name.upper()}") for name in names}
            _default, _configured = Client(nodes, **given), None
        return _default


def lock(*keys: Union[str, bytes], **options: Any) -> Lock:
    """A lock on these keys, on the nodes of configure() or QUORLOCK_NODES. The options are those of Lock."""
    return _default_client().lock(*keys, **options)
