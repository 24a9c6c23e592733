# SPDX-License-Identifier: BSD-3-Clause
"""Who holds a key, node by node."""
import ctypes
from ctypes import c_size_t, c_uint32
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from . import _library
from ._arguments import Text, encode
from ._connection import Connection
from ._errors import AUTH, NOQUORUM, OK, error
from ._library import library

KINDS = {1: "slot", 2: "reader", 3: "waits"}
INSPECT_STATES = {0: "down", 1: "error", 2: "free", 3: "held", 4: "foreign"}
BREAK_STATES = {**INSPECT_STATES, 5: "broken"}
LIST_STATES = {0: "down", 1: "error", 2: "listed"}
MODES = {1: "exclusive", 2: "shared", 3: "permit"}


class Holder(NamedTuple):
    """A holder or a waiting client, as struct quorlock_holder. kind: "slot", "reader" or "waits"."""
    kind: str
    holder: Optional[str]
    ttl_ms: int
    fence: int
    slot: Optional[int]
    shared: bool
    place: int


class InspectNode(NamedTuple):
    """What a node has, as struct quorlock_inspect_node. state: "free", "held", "foreign", "down" or "error"."""
    node: str
    state: str
    holder: Optional[str]
    error: Optional[str]
    ttl_ms: int
    fence: int
    quarantine_ms: int
    waiters: int
    permits: int
    holders: Tuple[Holder, ...]


class InspectReport(NamedTuple):
    """What all nodes have, as struct quorlock_inspect_report. If `answered` is below `quorum`, `held` means nothing."""
    quorum: int
    answered: int
    held: bool
    holder: Optional[str]
    valid_ms: int
    nodes: Tuple[InspectNode, ...]


class BreakNode(NamedTuple):
    """What became of a key on a node, as struct quorlock_break_node. state: "broken"; or, if it stays, "free", "held",
    "foreign", "down" or "error". The other members tell what was there before."""
    node: str
    state: str
    holder: Optional[str]
    error: Optional[str]
    ttl_ms: int
    permits: int
    holders: Tuple[Holder, ...]


class BreakReport(NamedTuple):
    """What all nodes had before, as struct quorlock_break_report."""
    quorum: int
    held: bool
    holder: Optional[str]
    valid_ms: int
    nodes: Tuple[BreakNode, ...]


class Listed(NamedTuple):
    """A lock that is held, as struct quorlock_listed. mode: "exclusive", "shared" or "permit"."""
    key: str
    holder: Optional[str]
    mode: str
    nodes: int
    ttl_ms: int
    readers: int
    permits: int
    slot: Optional[int]


class ListNode(NamedTuple):
    """How far the search of a node came, as struct quorlock_list_node. state: "listed", "down" or "error"."""
    node: str
    state: str
    error: Optional[str]


class ListReport(NamedTuple):
    """All locks that were found, as struct quorlock_list_report. If `answered` is below `quorum`, some may be missing.

    A lock on fewer nodes than `quorum` is not held. others: how many other strings that expire there are, which may be locks
    of other programs; other_keys has at most 1000 of them."""
    quorum: int
    answered: int
    locks: Tuple[Listed, ...]
    nodes: Tuple[ListNode, ...]
    others: int
    other_keys: Tuple[str, ...]


def text_of(text: Optional[bytes]) -> Optional[str]:
    return None if text is None else text.decode(errors="replace")


def read_holder(one: Any) -> Holder:
    return Holder(KINDS.get(one.kind, "unknown"), text_of(one.holder), one.ttl_ms, one.fence, _library.slot_of(one), bool(one.shared),
                  one.place)


def read_holders(node: Any) -> Tuple[Holder, ...]:
    return tuple(read_holder(node.holders[i].contents) for i in range(node.n_holders))


def read_inspect_node(one: Any) -> InspectNode:
    return InspectNode(text_of(one.node) or "", INSPECT_STATES.get(one.state, "unknown"), text_of(one.holder),
                       text_of(one.error), one.ttl_ms, one.fence, one.quarantine_ms, one.waiters, one.permits,
                       read_holders(one))


def read_inspect(report: Any) -> InspectReport:
    nodes = tuple(read_inspect_node(report.nodes[i].contents) for i in range(report.n_nodes))
    return InspectReport(report.quorum, report.answered, bool(report.held), text_of(report.holder), report.valid_ms, nodes)


def read_break_node(one: Any) -> BreakNode:
    return BreakNode(text_of(one.node) or "", BREAK_STATES.get(one.state, "unknown"), text_of(one.holder), text_of(one.error),
                     one.ttl_ms, one.permits, read_holders(one))


def read_break(report: Any) -> BreakReport:
    nodes = tuple(read_break_node(report.nodes[i].contents) for i in range(report.n_nodes))
    return BreakReport(report.quorum, bool(report.held), text_of(report.holder), report.valid_ms, nodes)


def read_list_node(one: Any) -> ListNode:
    return ListNode(text_of(one.node) or "", LIST_STATES.get(one.state, "unknown"), text_of(one.error))


def read_listed(one: Any) -> Listed:
    return Listed(text_of(one.key) or "", text_of(one.holder), MODES.get(one.mode, "unknown"), one.nodes, one.ttl_ms,
                  one.readers, one.permits, _library.slot_of(one))


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


def ask(client: Connection, function: str, key: Text, read: Callable[[Any], Any], callback: Any, *more: Optional[bytes]) -> Any:
    """Return a copy of the report of that function, which is valid only during its callback."""
    found: List[Any] = []
    status = call(client, function, encode(key, "the key"), lambda report: found.append(read(report)), callback, *more)
    if status not in (OK, NOQUORUM, AUTH) or not found:
        raise error(status, library.quorlock_status_text(status).decode())
    return found[0]


def inspect(client: Connection, key: Text) -> InspectReport:
    found: InspectReport = ask(client, "quorlock_sync_client_inspect", key, read_inspect, _library.InspectCallback)
    return found


def break_lock(client: Connection, key: Text, owner: Optional[bytes]) -> BreakReport:
    found: BreakReport = ask(client, "quorlock_sync_client_break", key, read_break, _library.BreakCallback, owner)
    return found


class BootstrapOptions(ctypes.Structure):
    """struct quorlock_bootstrap_options"""
    _fields_ = [("size", c_size_t), ("reconfigure", c_uint32), ("if_needed", c_uint32), ("despite_clients", c_uint32)]


def bootstrap(client: Connection) -> None:
    """Declare that no lock is held on the nodes, although clients may be connected. The client has guard="off"."""
    options = BootstrapOptions(size=ctypes.sizeof(BootstrapOptions), despite_clients=1)
    with client._call() as handle:
        status = library.quorlock_sync_client_bootstrap(handle, ctypes.byref(options),
                                                        _library.BootstrapCallback(lambda *_: None), None)
    if status != OK:
        raise error(status, library.quorlock_status_text(status).decode())


def ask_for_all(client: Connection, pattern: Text) -> ListReport:
    """Return a copy of all parts of a list."""
    locks: List[Listed] = []
    last: List[ListReport] = []

    def take(part: Any) -> None:
        locks.extend(read_listed(part.locks[i].contents) for i in range(part.n_locks))
        if not part.more:
            nodes = tuple(read_list_node(part.nodes[i].contents) for i in range(part.n_nodes))
            keys = tuple(part.other_keys[i].decode(errors="replace") for i in range(part.n_other_keys))
            last.append(ListReport(part.quorum, part.answered, tuple(locks), nodes, part.others, keys))

    status = call(client, "quorlock_sync_client_list", encode(pattern, "the pattern"), take, _library.ListCallback)
    if status not in (OK, NOQUORUM, AUTH) or not last:
        raise error(status, library.quorlock_status_text(status).decode())
    return last[0]
