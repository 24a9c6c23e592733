# SPDX-License-Identifier: BSD-3-Clause
"""Who holds a key, node by node."""
import ctypes
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from . import _library
from ._arguments import Text, encode
from ._connection import Connection
from ._errors import AUTH, NOQUORUM, OK, error
from ._library import library

KINDS = {1: "slot", 2: "reader", 3: "waits"}
MODES = {1: "exclusive", 2: "shared", 3: "permit"}


class Holder(NamedTuple):
    """A holder or a waiting client, as struct quorlock_holder. kind: "slot", "reader" or "waits"."""
    kind: str
    holder: Optional[str]
    ttl_ms: int
    fence: int
    slot: int
    shared: bool
    place: int


class NodeReport(NamedTuple):
    """The answer of a node, as struct quorlock_node_report. state: "free", "held", "foreign", "down" or "error"."""
    node: str
    state: str
    holder: Optional[str]
    error: Optional[str]
    ttl_ms: int
    broken: bool
    fence: int
    quarantine_ms: int
    waiters: int
    permits: int
    holders: Tuple[Holder, ...]


class Report(NamedTuple):
    """The answers of all nodes, as struct quorlock_report. If `answered` is below `quorum`, `held` means nothing."""
    key: str
    quorum: int
    answered: int
    held: bool
    holder: Optional[str]
    valid_ms: int
    nodes: Tuple[NodeReport, ...]


class Listed(NamedTuple):
    """A lock that is held, as struct quorlock_listed. mode: "exclusive", "shared" or "permit"."""
    key: str
    holder: Optional[str]
    mode: str
    nodes: int
    ttl_ms: int
    readers: int
    permits: int
    slot: int


class Listing(NamedTuple):
    """All locks that were found, as struct quorlock_listing. If `answered` is below `quorum`, some may be missing.

    A lock on fewer nodes than `quorum` is not held. The state of a node is "listed", "down" or "error"."""
    quorum: int
    answered: int
    locks: Tuple[Listed, ...]
    nodes: Tuple[NodeReport, ...]


def text_of(text: Optional[bytes]) -> Optional[str]:
    return None if text is None else text.decode(errors="replace")


def read_holder(one: Any) -> Holder:
    return Holder(KINDS.get(one.kind, "unknown"), text_of(one.holder), one.ttl_ms, one.fence, one.slot, bool(one.shared),
                  one.place)


def read_node(one: Any) -> NodeReport:
    holders = tuple(read_holder(one.holders[i].contents) for i in range(one.n_holders))
    return NodeReport(text_of(one.node) or "", text_of(one.state) or "", text_of(one.holder), text_of(one.error), one.ttl_ms,
                      bool(one.broken), one.fence, one.quarantine_ms, one.waiters, one.permits, holders)


def read(report: Any) -> Report:
    nodes = tuple(read_node(report.nodes[i].contents) for i in range(report.n_nodes))
    return Report(text_of(report.key) or "", report.quorum, report.answered, bool(report.held), text_of(report.holder),
                  report.valid_ms, nodes)


def read_listed(one: Any) -> Listed:
    return Listed(text_of(one.key) or "", text_of(one.holder), MODES.get(one.mode, "unknown"), one.nodes, one.ttl_ms,
                  one.readers, one.permits, one.slot)


def call(client: Connection, function: str, text: bytes, take: Callable[[Any], None], callback: Any,
         *more: Optional[bytes]) -> int:
    """Call that function of the library, with a callback that takes each report: return the status."""
    problems: List[BaseException] = []

    def on_report(_status: int, report: Any, _arg: Any) -> None:
        try:
            if report:
                take(report.contents)
        except BaseException as problem:  # pylint: disable=broad-except
            problems.append(problem)

    with client._call() as handle:
        status: int = getattr(library, function)(handle, text, *more, callback(on_report), None)
    if problems:
        raise problems[0]
    return status


def ask(client: Connection, function: str, key: Text, *more: Optional[bytes]) -> Report:
    """Return a copy of the report of that function, which is valid only during its callback."""
    found: List[Report] = []
    status = call(client, function, encode(key, "the key"), lambda report: found.append(read(report)),
                  _library.ReportCallback, *more)
    if status not in (OK, NOQUORUM, AUTH) or not found:
        raise error(status, library.quorlock_status_text(status).decode())
    return found[0]


def ask_for_all(client: Connection, pattern: Text) -> Listing:
    """Return a copy of all parts of a list."""
    locks: List[Listed] = []
    last: List[Listing] = []

    def take(part: Any) -> None:
        locks.extend(read_listed(part.locks[i].contents) for i in range(part.n_locks))
        if not part.more:
            nodes = tuple(read_node(part.nodes[i].contents) for i in range(part.n_nodes))
            last.append(Listing(part.quorum, part.answered, tuple(locks), nodes))

    status = call(client, "quorlock_sync_client_list", encode(pattern, "the pattern"), take, _library.ListCallback)
    if status not in (OK, NOQUORUM, AUTH) or not last:
        raise error(status, library.quorlock_status_text(status).decode())
    return last[0]
