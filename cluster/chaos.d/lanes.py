# SPDX-License-Identifier: BSD-3-Clause
"""Turns events into lanes: the states of each client and node over time."""
from dataclasses import dataclass, field


@dataclass
class Span:
    from_us: int
    to_us: int
    state: str
    title: str = ""
    key: int = 0       # number of the key, for its colour
    count: int = 1     # how many are drawn as one


@dataclass
class Lane:
    name: str
    states: list = field(default_factory=list)  # as the supervisor saw them: up, down, paused...; running, stopped, dead
    faults: list = field(default_factory=list)
    waits: list = field(default_factory=list)
    holds: list = field(default_factory=list)
    marks: list = field(default_factory=list)   # (t_us, class, title)


@dataclass
class Picture:
    start_us: int
    end_us: int
    keys: list
    nodes: list
    clients: list
    run: dict
    survived: dict
    programs: list      # the clients' names for themselves
    places: list = field(default_factory=list)  # the holders of each slot, shared key and election
    healed_us: int = 0
    hits: dict = field(default_factory=dict)  # {kind: {what: how often}}

    @property
    def keys_read(self):
        """The numbers of the keys that were held shared."""
        return sorted({span.key for lane in self.places for span in lane.holds if span.state == "readers"})

    def seconds(self, t_us):
        return (t_us - self.start_us) / 1e6


WORDS = {"kill": "killed", "wipe": "killed, emptied", "pause": "stopped", "cut": "cut off", "mute": "mute",
         "lost-replies": "replies lost", "lost-requests": "requests lost", "lossy": "lossy", "split": "split",
         "divide": "divided", "blackout": "blackout", "slow": "slow", "half-open": "half-open", "reset": "reset", "oom": "no memory",
         "readonly": "read-only", "no-replicas": "refuses", "clock-back": "clock back", "clock-forward": "clock ahead",
         "flush": "FLUSHALL", "fsync-stall": "fsync stalls", "disk-full": "disk full", "aof-cut": "log cut off",
         "clock-strobe": "clock strobes", "emfile": "no descriptor", "partitions": "partitions", "loss": "some packets lost",
         "late": "packets late", "reorder": "packets out of order", "names": "no names", "password": "new password",
         "certificate": "new certificate", "reconfigure": "set up anew",
         "pause-client": "stopped", "pause-writer": "stopped at a write", "kill-client": "killed",
         "stop-writer": "stopped at a write", "stop-asker": "answers held back", "cut-owner": "owner cut off",
         "wipe-owned": "killed, emptied"}
INSTANT = {"clock-back", "flush"}


def _order(names):
    return sorted(names, key=lambda name: (len(name), name))


def _states(events, kind, name, end_us):
    """The spans of the states that the supervisor reported for one node or client."""
    spans, since, state = [], None, None
    for event in events:
        if event.event != kind or event.fields.get("node" if kind == "node" else "client") != name:
            continue
        if state:
            spans.append(Span(since, event.t_us, state))
        since, state = event.t_us, event.fields.get("state", "?")
    if state:
        spans.append(Span(since, end_us, state))
    return spans


def faults_of(events):
    """(begin, end) of each fault; end: None if it never ended."""
    begun = {}
    for event in events:
        if event.event != "fault":
            continue
        if event.fields.get("phase") == "begin":
            begun[event.number("id")] = event
        elif event.number("id") in begun:
            yield begun.pop(event.number("id")), event
    yield from ((first, None) for first in begun.values())


def targets(fault):
    """The nodes and clients that the begin of a fault names."""
    fields = fault.fields
    return ", ".join([f"c{n}" for n in fields.get("clients", [])] + [f"node {n}" for n in fields.get("nodes", [])])


def _faults(picture, events):
    for first, last in faults_of(events):
        _place_fault(picture, first, last.t_us if last else picture.end_us)
        if last:
            kind = first.fields["kind"]
            picture.survived[kind] = picture.survived.get(kind, 0) + 1
            _add_hits(picture, kind, last.fields.get("hits", {}))


def _add_hits(picture, kind, hits):
    """The hits that the supervisor counted; a history from elsewhere may have anything there."""
    counted = picture.hits.setdefault(kind, {})
    for what, number in hits.items() if isinstance(hits, dict) else ():
        if isinstance(number, int):
            counted[what] = counted.get(what, 0) + number


def _place_fault(picture, first, to_us):
    fields = first.fields
    kind = fields.get("kind", "?")
    known = {"t_us", "event", "phase", "id", "kind", "nodes", "clients", "at_ms"}
    detail = "".join(f", {name.replace('_', ' ')} {value}" for name, value in fields.items() if name not in known)
    title = (f"{WORDS.get(kind, kind)} ({kind}): {targets(first)}{detail}; "
             f"{picture.seconds(first.t_us):.2f} to {picture.seconds(to_us):.2f} s")
    lanes = {lane.name: lane for lane in picture.nodes + picture.clients}
    for number in fields.get("nodes", []):
        lane = lanes.get(f"node {number}")
        if lane and kind in INSTANT:
            lane.marks.append((first.t_us, "step", title))
        elif lane:
            lane.faults.append(Span(first.t_us, to_us, kind, title))
    for number in fields.get("clients", []):
        lane = lanes.get(f"c{number}")
        if lane and kind in ("split", "divide", "partitions", "emfile"):
            lane.faults.append(Span(first.t_us, to_us, kind, title))


def _hold_title(picture, operation):
    word = "term" if operation.mode == "election" else "token"
    token = f", {word} {operation.fence}" if operation.fence else ""
    ends = {"released": "released", "lost": "lost", "killed": "killed while holding", None: "never ended"}
    waited_ms = (operation.granted_us - operation.invoke_us) / 1000
    verb = {"shared": "read", "election": "led"}.get(operation.mode, "held")
    return (f"{operation.who} {verb} {operation.what}{token}: {picture.seconds(operation.granted_us):.3f} to "
            f"{picture.seconds(operation.window_end_us):.3f} s, {operation.writes} writes, waited {waited_ms:.0f} ms, "
            f"{ends.get(operation.end, operation.end)}")


def _operations(picture, verdict):
    lanes = {lane.name: lane for lane in picture.clients}
    for operation in verdict.operations:
        lane = lanes[operation.client]
        key = picture.keys.index(operation.key)
        until_us = operation.granted_us or operation.end_us or picture.end_us
        lane.waits.append(Span(operation.invoke_us, until_us, "wait", key=key))
        if operation.granted_us is None:
            continue
        end_us = operation.window_end_us
        if operation.end == "killed" and operation.end_us < end_us:
            lane.holds.append(Span(operation.granted_us, operation.end_us, "hold", _hold_title(picture, operation), key))
            lane.holds.append(Span(operation.end_us, end_us, "promise", f"promised to {operation.client}, which was "
                                   f"killed: {operation.key} is no other owner's before {picture.seconds(end_us):.3f} s", key))
        else:
            lane.holds.append(Span(operation.granted_us, end_us, "hold", _hold_title(picture, operation), key))
        if operation.end == "lost":
            late = operation.end_us > operation.deadline_us
            when = "on waking, after its validity" if late else "before its validity ended"
            lane.marks.append((operation.end_us, "lost", f"{operation.client} was notified at "
                               f"{picture.seconds(operation.end_us):.3f} s of the loss of {operation.key}, {when}"))


def _places(picture, verdict):
    """A lane for each slot, shared key and election. Readers that hold a key at the same time are one span."""
    by_place = {}
    shared = {operation.key for operation in verdict.operations if operation.mode == "shared"}
    for operation in verdict.operations:
        if operation.granted_us is not None and (operation.mode != "lock" or operation.key in shared):
            name = f"{operation.key}/{operation.slot}" if operation.mode == "permits" else operation.key
            by_place.setdefault(name, []).append(operation)
    for name in _order(by_place):
        lane, readers, key = Lane(name), None, picture.keys.index(by_place[name][0].key)
        for operation in sorted(by_place[name], key=lambda one: one.granted_us):
            from_us, to_us = operation.granted_us, operation.window_end_us
            if operation.mode != "shared":
                lane.holds.append(Span(from_us, to_us, "hold", _hold_title(picture, operation), key))
            elif readers and from_us <= readers.to_us:
                readers.to_us, readers.count = max(readers.to_us, to_us), readers.count + 1
            else:
                readers = Span(from_us, to_us, "readers", key=key)
                lane.holds.append(readers)
        for span in lane.holds:
            if span.state == "readers":
                count = f"{span.count} readers, one after the other or together" if span.count > 1 else "one reader"
                span.title = f"{name}: {count}, {picture.seconds(span.from_us):.3f} to {picture.seconds(span.to_us):.3f} s"
                span.count = 1
        picture.places.append(lane)


def paint(events, verdict):
    """The picture of a history and its verdict."""
    run = next((event.fields for event in events if event.event == "run"), {})
    numbers = {event.fields["node"] for event in events if event.event == "node" and "node" in event.fields}
    names = {operation.client for operation in verdict.operations}
    names |= {event.client for event in events if event.event == "client"}
    picture = Picture(verdict.start_us, max(verdict.end_us, verdict.start_us + 1),
                      _order({operation.key for operation in verdict.operations}),
                      [Lane(f"node {number}") for number in sorted(numbers)], [Lane(name) for name in _order(names)],
                      run, {}, sorted({event.fields["program"] for event in events if "program" in event.fields}))
    for number, lane in zip(sorted(numbers), picture.nodes):
        lane.states = _states(events, "node", number, picture.end_us)
    for lane in picture.clients:
        lane.states = _states(events, "client", lane.name, picture.end_us)
    picture.healed_us = next((event.t_us for event in reversed(events) if event.event == "healed"), 0)
    _faults(picture, events)
    _operations(picture, verdict)
    _places(picture, verdict)
    # An access that was refused as stale gets a mark: it shows what the token is for.
    lanes = {lane.name: lane for lane in picture.clients}
    for event in events:
        if event.event in ("write_refused", "read_refused") and event.client in lanes:
            verb = "write to" if event.event == "write_refused" else "read of"
            lanes[event.client].marks.append((event.t_us, "stale", f"{event.client}: a stale {verb} {event.key} with "
                                              f"token {event.number('fence')} was refused at "
                                              f"{picture.seconds(event.t_us):.3f} s"))
    return picture


def merged(spans, gap_us):
    """Spans in order; neighbours of one state and key are merged if less than gap_us lies between them."""
    found = []
    for span in sorted(spans, key=lambda span: span.from_us):
        last = found[-1] if found else None
        if last and last.state == span.state and last.key == span.key and span.from_us - last.to_us < gap_us \
                and (span.to_us - span.from_us < gap_us or last.count > 1) and span.to_us >= last.to_us:
            last.to_us, last.count = span.to_us, last.count + 1
        else:
            found.append(Span(span.from_us, span.to_us, span.state, span.title, span.key))
    return found
