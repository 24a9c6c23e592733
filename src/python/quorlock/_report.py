# SPDX-License-Identifier: BSD-3-Clause
"""Who holds a key, node by node."""
import ctypes
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _library
from ._arguments import Text, encode
from ._connection import Connection
from ._errors import AUTH, NOQUORUM, OK, error
from ._library import library

KINDS = {1: "slot", 2: "reader", 3: "waits"}


class Holder(NamedTuple):
    """A holder or a waiting client, as struct quorlock_holder. kind: "slot", "reader" or "waits"."""
    kind: str
    holder: Optional[str]
    ttl_ms: int
    fence: int
    slot: int
    shared: bool


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


def text_of(text: Optional[bytes]) -> Optional[str]:
    return None if text is None else text.decode(errors="replace")


def read_holder(one: Any) -> Holder:
    return Holder(KINDS.get(one.kind, "unknown"), text_of(one.holder), one.ttl_ms, one.fence, one.slot, bool(one.shared))


def read_node(one: Any) -> NodeReport:
    holders = tuple(read_holder(one.holders[i].contents) for i in range(one.n_holders))
    return NodeReport(text_of(one.node) or "", text_of(one.state) or "", text_of(one.holder), text_of(one.error), one.ttl_ms,
                      bool(one.broken), one.fence, one.quarantine_ms, one.waiters, one.permits, holders)


def read(report: Any) -> Report:
    nodes = tuple(read_node(report.nodes[i].contents) for i in range(report.n_nodes))
    return Report(text_of(report.key) or "", report.quorum, report.answered, bool(report.held), text_of(report.holder),
                  report.valid_ms, nodes)


def ask(client: Connection, function: str, key: Text) -> Report:
    """Call that function of the library, and return a copy of its report, which is valid only during its callback."""
    found: Dict[str, Report] = {}
    problems: List[BaseException] = []

    def on_report(_status: int, report: Any, _arg: Any) -> None:
        try:
            if report:
                found["report"] = read(report.contents)
        except BaseException as problem:  # pylint: disable=broad-except
            problems.append(problem)

    name = encode(key, "the key")
    with client._call() as handle:
        status = getattr(library, function)(handle, name, _library.ReportCallback(on_report), None)
    if problems:
        raise problems[0]
    if status not in (OK, NOQUORUM, AUTH) or "report" not in found:
        raise error(status, library.quorlock_status_text(status).decode())
    return found["report"]
