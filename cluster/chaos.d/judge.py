# SPDX-License-Identifier: BSD-3-Clause
"""Judges a history: was the lock what it promises to be?

The window of a grant is what its owner was told: from the moment the grant
was reported to the first of release, loss and the last validity reported. A
client that was killed keeps its window to the end of its validity, for that
was promised to it.
"""
import bisect
from dataclasses import dataclass, field

KINDS = {
    "overlap": "two owners at once",
    "token-duplicate": "one fencing token given twice",
    "token-order": "a later grant with an older fencing token",
    "stale-write": "a write accepted though a newer owner had been there",
    "lost-update": "a write that undid or repeated another",
    "terminal": "an operation without exactly one end",
    "validity": "a grant reported without validity left",
    "no-grant-write": "a write by a client that held no lock",
    "liveness": "no grant after everything had healed",
    "breach": "the client saw the library break its word",
}
EXAMPLES = 10  # of each kind, in the words for a person
# Outside the assumptions these may happen: they are counted, and only then.
TOLERATED_OUTSIDE = {"overlap", "token-duplicate", "token-order"}


@dataclass(slots=True)
class Operation:
    client: str
    key: str
    invoke_us: int
    line: int
    granted_us: int = None
    deadline_us: int = None
    fence: int = 0
    end_us: int = None
    end: str = None  # refused, lost, released, killed
    status: str = ""
    writes: int = 0
    overtaken: bool = False  # another owner was granted the key in its window

    @property
    def window_end_us(self):
        """Until when the lock is valid for its owner."""
        if self.end in ("lost", "released"):
            return min(self.end_us, self.deadline_us)
        return self.deadline_us


@dataclass
class Violation:
    kind: str
    t_us: int
    text: str
    key: str = ""
    clients: tuple = ()
    until_us: int = 0
    tolerated: bool = False


@dataclass
class Verdict:
    profile: str
    start_us: int = 0
    end_us: int = 0
    operations: list = field(default_factory=list)
    violations: list = field(default_factory=list)
    counts: dict = field(default_factory=dict)
    handovers_us: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @property
    def sound(self):
        return all(violation.tolerated for violation in self.violations)

    def add(self, kind, t_us, text, tolerated=False, **more):
        tolerated = tolerated or (self.profile == "outside" and kind in TOLERATED_OUTSIDE)
        self.violations.append(Violation(kind, t_us, text, tolerated=tolerated, **more))

    def kinds(self, tolerated):
        found = {}
        for violation in self.violations:
            if violation.tolerated == tolerated:
                found[violation.kind] = found.get(violation.kind, 0) + 1
        return found


def percentile(values, percent):
    """The value that percent of all do not exceed; None of an empty list."""
    if not values:
        return None
    values = sorted(values)
    return values[min(len(values) - 1, max(0, -(-len(values) * percent // 100) - 1))]


def seconds(verdict, t_us):
    return f"{(t_us - verdict.start_us) / 1e6:.3f} s"


class _Register:
    """The protected resource as its own log shows it, one for each key."""

    def __init__(self):
        self.newest = 0
        self.value = None
        self.writer = ""
        self.fence = 0
        self.visitor = None  # the latest granted operation of those that were here


class _Reader:
    """Walks through the events once and builds the operations."""

    def __init__(self, verdict, invoked):
        self.verdict = verdict
        self.invoked = invoked  # the history tells where operations begin, so they must, and must end
        self.open = {}
        self.registers = {}
        self.healed = None
        self.counts = verdict.counts

    def count(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1

    def bad(self, kind, event, text, **more):
        at = f"{seconds(self.verdict, event.t_us)}, line {event.line}: {event.client}"
        self.verdict.add(kind, event.t_us, f"{at} {text}", key=event.key, clients=(event.client,), **more)

    def take(self, event):
        handler = getattr(self, "on_" + event.event, None)
        if handler:
            handler(event)

    def on_healed(self, event):
        self.healed = event

    def on_invoke(self, event):
        before = self.open.get(event.client)
        if before:
            self.bad("terminal", event, f"begins an operation while that of line {before.line} has not ended")
        operation = Operation(event.client, event.key, event.t_us, event.line)
        self.open[self.name(event)] = operation
        self.verdict.operations.append(operation)

    def name(self, event):
        """Whose operations are one after the other: a client's, or where we cannot know that, its own of one key."""
        return event.client if self.invoked else (event.client, event.key)

    def begin_unasked(self, event):
        """A grant or a refusal of a history that has no invoke."""
        if not self.invoked:
            self.open[self.name(event)] = Operation(event.client, event.key, event.t_us, event.line)
            self.verdict.operations.append(self.open[self.name(event)])

    def current(self, event, granted):
        """The client's open operation on this key, or None, with a violation recorded."""
        operation = self.open.get(self.name(event))
        if operation is None or operation.key != event.key:
            self.bad("terminal", event, f"reports {event.event} of {event.key} with no such operation open")
            return None
        if granted and operation.granted_us is None:
            self.bad("terminal", event, f"reports {event.event} of {event.key}, which was never granted")
            return None
        return operation

    def on_granted(self, event):
        self.begin_unasked(event)
        operation = self.current(event, False)
        if operation is None:
            return
        if operation.granted_us is not None:
            self.bad("terminal", event, f"is granted {event.key} twice by one operation (line {operation.line})")
            return
        operation.granted_us = event.t_us
        operation.deadline_us = event.number("deadline_us")
        operation.fence = event.number("fence")
        self.count("grants")
        if operation.deadline_us <= event.t_us:
            self.bad("validity", event, f"is granted {event.key} with no validity left")

    def extend(self, operation, event):
        deadline_us = event.number("deadline_us")
        if deadline_us > operation.deadline_us:
            operation.deadline_us = deadline_us

    def on_renewed(self, event):
        operation = self.current(event, True)
        if operation:
            self.extend(operation, event)
            self.count("renewals")

    def finish(self, event, granted):
        operation = self.current(event, granted)
        if operation is None:
            return None
        if not granted and operation.granted_us is not None:
            self.bad("terminal", event, f"is refused {event.key} after it was granted (line {operation.line})")
        operation.end_us, operation.end = event.t_us, event.event
        operation.status = event.fields.get("status", "")
        del self.open[self.name(event)]
        return operation

    def on_refused(self, event):
        operation = self.open.get(self.name(event))
        if operation is None or operation.granted_us is not None:
            self.begin_unasked(event)
        operation = self.finish(event, False)
        if operation:
            self.count("refusals")
            self.count("refused " + (operation.status or "?"))

    def on_released(self, event):
        if self.finish(event, True):
            self.count("releases")

    def on_lost(self, event):
        operation = self.finish(event, True)
        if operation:
            self.count("losses")
            # The loss comes before another client may own the lock, as far as the owner ran at all.
            self.count("losses in time" if event.t_us <= operation.deadline_us else "losses late")

    def on_killed(self, event):
        self.count("clients killed")
        for name in [name for name, operation in self.open.items() if operation.client == event.client]:
            operation = self.open.pop(name)
            operation.end_us, operation.end = event.t_us, "killed"

    def on_breach(self, event):
        self.bad("breach", event, event.fields.get("text", "saw a promise broken"))

    def register(self, event):
        return self.registers.setdefault(event.key, _Register())

    def on_read(self, event):
        self.visit(event, self.register(event))

    def visit(self, event, register):
        """An access that was accepted. True where a newer owner had been there: by its token, else by its grant."""
        fence, operation = event.number("fence"), self.open.get(self.name(event))
        owner = operation if operation and operation.key == event.key and operation.granted_us is not None else None
        overtaken = owner is not None and register.visitor is not None and owner.granted_us < register.visitor.granted_us
        stale = fence < register.newest if fence else overtaken
        register.newest = max(register.newest, fence)
        if owner and not overtaken:
            register.visitor = owner
        return stale

    def on_read_refused(self, event):
        self.count("reads refused")

    def on_write_refused(self, event):
        self.count("writes refused")

    def on_write(self, event):
        self.count("writes")
        operation = self.open.get(self.name(event))
        if operation is None or operation.key != event.key or operation.granted_us is None:
            self.bad("no-grant-write", event, f"writes {event.key} without holding it")
        else:
            if event.t_us > max(operation.deadline_us, event.number("deadline_us")):
                self.count("writes after validity")
            self.extend(operation, event)
            operation.writes += 1
        register, fence = self.register(event), event.number("fence")
        if self.visit(event, register):
            self.count("stale writes accepted")
            why = f"with token {fence} though {register.newest} was seen" if fence else \
                f"without a token though {register.visitor.client}, granted later, had been there"
            self.bad("stale-write", event, f"writes {event.key} {why}",
                     tolerated=self.verdict.profile == "outside" and fence == 0)
        if "value" in event.fields:
            self.judge_value(event, register, fence)

    def judge_value(self, event, register, fence):
        value = event.number("value")
        if register.value is not None and value != register.value + 1:
            # Without distinct tokens nothing could have refused the write: what let it in was an overlap.
            blameless = self.verdict.profile == "outside" and (fence == 0 or fence == register.fence)
            self.bad("lost-update", event, f"writes {value} to {event.key} where {register.writer} had written "
                     f"{register.value}", tolerated=blameless)
        register.value, register.writer, register.fence = value, event.client, fence


def _judge_overlaps(verdict, key, grants):
    """Counts each grant that came while an earlier one of its key was still valid."""
    reaching = None
    for operation in grants:
        if reaching and operation.granted_us < reaching.window_end_us:
            until_us = min(reaching.window_end_us, operation.window_end_us)
            shared_ms = max(0, until_us - operation.granted_us) / 1000
            reaching.overtaken = True
            verdict.add("overlap", operation.granted_us,
                        f"{seconds(verdict, operation.granted_us)}: {operation.client} is granted {key} while "
                        f"{reaching.client} is still valid (granted {seconds(verdict, reaching.granted_us)}, "
                        f"valid to {seconds(verdict, reaching.window_end_us)}; both for {shared_ms:.1f} ms)",
                        key=key, clients=(reaching.client, operation.client), until_us=until_us)
        if reaching is None or operation.window_end_us > reaching.window_end_us:
            reaching = operation


def _judge_tokens(verdict, key, grants):
    fenced = [operation for operation in grants if operation.fence]
    owner = {}
    for operation in fenced:
        first = owner.setdefault(operation.fence, operation)
        if first is not operation:
            verdict.add("token-duplicate", operation.granted_us,
                        f"{seconds(verdict, operation.granted_us)}: {operation.client} is granted {key} with token "
                        f"{operation.fence}, which {first.client} got at {seconds(verdict, first.granted_us)}",
                        key=key, clients=(first.client, operation.client))
    _judge_order(verdict, key, fenced, "began", lambda a: a.granted_us, lambda b: b.invoke_us)
    if verdict.profile == "inside":
        _judge_order(verdict, key, fenced, "was granted", lambda a: a.window_end_us, lambda b: b.granted_us)


def _judge_order(verdict, key, fenced, verb, done_us, begun_us):
    """A grant after another one has the newer token. Equal tokens are duplicates, recorded already."""
    done = sorted(fenced, key=done_us)
    newest, next_done = None, 0
    for operation in sorted(fenced, key=begun_us):
        while next_done < len(done) and done_us(done[next_done]) < begun_us(operation):
            if newest is None or done[next_done].fence > newest.fence:
                newest = done[next_done]
            next_done += 1
        if newest and newest is not operation and operation.fence < newest.fence:
            known = any(v.kind == "token-order" and v.t_us == operation.granted_us for v in verdict.violations[-50:])
            if not known:
                verdict.add("token-order", operation.granted_us,
                            f"{seconds(verdict, operation.granted_us)}: {operation.client} is granted {key} with "
                            f"token {operation.fence} though it {verb} after {newest.client} had {newest.fence} "
                            f"({seconds(verdict, newest.granted_us)})",
                            key=key, clients=(newest.client, operation.client))


def _handovers(operations, grants):
    """From a release to the next grant of the key, where the next owner was already waiting."""
    times = [operation.granted_us for operation in grants]
    found = []
    for operation in operations:
        if operation.end != "released":
            continue
        after = bisect.bisect_left(times, operation.end_us)
        if after < len(times) and grants[after].invoke_us <= operation.end_us:
            found.append(times[after] - operation.end_us)
    return found


def _judge_liveness(verdict, healed, by_key, bound_us):
    if healed is None:
        verdict.notes.append("no healed mark: liveness not judged")
        return
    from_us = healed.t_us
    bound_us = healed.number("bound_us", bound_us)
    judged_to_us = min(from_us + bound_us, verdict.end_us)
    for key, operations in sorted(by_key.items()):
        # Only an open acquire can be granted, also one that is open at the mark.
        asked = [o for o in operations if (o.end_us or verdict.end_us) > from_us and o.invoke_us < judged_to_us
                 and (o.granted_us is None or o.granted_us > from_us)]
        if not asked:
            continue
        granted = [o.granted_us for o in asked if o.granted_us is not None and o.granted_us <= from_us + bound_us]
        if granted:
            first_us = min(granted) - from_us
            verdict.counts["first grant after healing us"] = max(
                first_us, verdict.counts.get("first grant after healing us", 0))
        elif judged_to_us < from_us + bound_us:
            verdict.notes.append(f"the history ends too soon after healing to judge liveness of {key}")
        else:
            verdict.add("liveness", judged_to_us,
                        f"{seconds(verdict, judged_to_us)}: no grant of {key} within {bound_us / 1e6:.1f} s "
                        f"after all had healed ({seconds(verdict, from_us)}), though {len(asked)} asked", key=key)


def judge(events, profile="inside", bound_us=10_000_000, start_us=None):
    """Verdict over events as history.parse or history.Stream gives them. bound_us: liveness, where the healed mark names
    none. start_us: from when its texts count the time, else from the first event."""
    verdict = Verdict(profile)
    if events:
        verdict.start_us, verdict.end_us = start_us or events[0].t_us, events[-1].t_us
    reader = _Reader(verdict, any(event.event == "invoke" for event in events))
    for event in events:
        reader.take(event)
    if not reader.invoked:
        verdict.notes.append("no invoke: judged by the grants alone, not whether operations end")
    for operation in reader.open.values() if reader.invoked else ():
        verdict.add("terminal", operation.invoke_us,
                    f"{seconds(verdict, operation.invoke_us)}, line {operation.line}: the operation of "
                    f"{operation.client} on {operation.key} never ends", key=operation.key, clients=(operation.client,))
    by_key = {}
    for operation in verdict.operations:
        by_key.setdefault(operation.key, []).append(operation)
    for key, operations in sorted(by_key.items()):
        grants = sorted((o for o in operations if o.granted_us is not None), key=lambda o: o.granted_us)
        _judge_overlaps(verdict, key, grants)
        _judge_tokens(verdict, key, grants)
        verdict.handovers_us += _handovers(operations, grants)
    _judge_liveness(verdict, reader.healed, by_key, bound_us)
    verdict.violations.sort(key=lambda violation: violation.t_us)
    counts = verdict.counts
    counts["operations"] = len(verdict.operations)
    counts["keys"] = len(by_key)
    counts["clients"] = len({operation.client for operation in verdict.operations})
    counts["fenced grants"] = sum(1 for o in verdict.operations if o.fence)
    return verdict


def summary(verdict):
    """What --json prints: figures and verdict as plain data."""
    handovers = verdict.handovers_us
    return {
        "verdict": "sound" if verdict.sound else "violated",
        "profile": verdict.profile,
        "seconds": round((verdict.end_us - verdict.start_us) / 1e6, 3),
        "counts": dict(sorted(verdict.counts.items())),
        "handover_us": {"count": len(handovers), "p50": percentile(handovers, 50), "p99": percentile(handovers, 99),
                        "max": max(handovers, default=None)},
        "violations": verdict.kinds(False),
        "tolerated": verdict.kinds(True),
        "details": [{"kind": v.kind, "t_us": v.t_us, "key": v.key, "clients": list(v.clients), "text": v.text,
                     "tolerated": v.tolerated} for v in verdict.violations],
        "notes": verdict.notes,
    }


def milliseconds(us):
    return "-" if us is None else f"{us / 1000:.1f} ms"


def describe(verdict):
    """The verdict as lines a person reads."""
    counts = verdict.counts

    def n(name):
        return counts.get(name, 0)

    refused = ", ".join(f"{value} {name[8:]}" for name, value in sorted(counts.items()) if name.startswith("refused "))
    lines = [
        f"{n('operations')} operations of {n('clients')} clients on {n('keys')} keys in "
        f"{(verdict.end_us - verdict.start_us) / 1e6:.1f} s",
        f"  granted   {n('grants')}" + (f" ({n('fenced grants')} with a fencing token)" if n("fenced grants") else ""),
        f"  refused   {n('refusals')}" + (f" ({refused})" if refused else ""),
        f"  released  {n('releases')}",
        f"  lost      {n('losses')} ({n('losses in time')} in time, {n('losses late')} after a pause)",
        f"  writes    {n('writes')} accepted, {n('writes refused')} refused as stale"
        + (f", and {n('reads refused')} reads" if n("reads refused") else "")
        + (f", {n('stale writes accepted')} stale ones accepted" if n("stale writes accepted") else "")
        + (f", {n('writes after validity')} accepted after the validity (no newer token seen)"
           if n("writes after validity") else ""),
    ]
    handovers = verdict.handovers_us
    if handovers:
        lines.append(f"  hand-over {milliseconds(percentile(handovers, 50))} median, "
                     f"{milliseconds(percentile(handovers, 99))} p99, {milliseconds(max(handovers))} longest "
                     f"({len(handovers)} releases with a waiter)")
    if "first grant after healing us" in counts:
        lines.append(f"  healed    first grant after {milliseconds(counts['first grant after healing us'])}")
    lines += [f"  note      {note}" for note in verdict.notes]
    for tolerated, title in ((True, "outside the assumptions"), (False, "VIOLATION")):
        for kind, count in sorted(verdict.kinds(tolerated).items()):
            lines.append(f"{title}: {count} x {kind}: {KINDS[kind]}")
            shown = [v for v in verdict.violations if v.kind == kind and v.tolerated == tolerated]
            lines += [f"    {violation.text}" for violation in shown[:EXAMPLES]]
            if count > EXAMPLES:
                lines.append(f"    and {count - EXAMPLES} more")
    failed = sum(verdict.kinds(False).values())
    if failed:
        lines.append(f"verdict: VIOLATED, {failed} times")
    else:
        told = sum(verdict.kinds(True).values())
        lines.append("verdict: sound" + (f", with {told} events that are outside what is claimed" if told else ""))
    return lines
