# SPDX-License-Identifier: BSD-3-Clause
"""Judges a history: did the lock keep its promises?

This reads the events and builds the operations; rules.py has the rules for all grants of a key, verdict.py the words.
"""
import known
import rules
from plan import KINDS as FAULTS
from verdict import KINDS, MODES, OVERLAPS, Operation, Verdict, milliseconds, percentile, plural, seconds

__all__ = ["KINDS", "MODES", "OVERLAPS", "describe", "judge", "milliseconds", "percentile", "seconds", "summary"]

EXAMPLES = 10  # of each kind, in the text for people
# Faults after which a node may have no counters: reconfigure may bring a new node.
FORGETTING = {name for name, fault in FAULTS.items() if fault.forgets} | {"reconfigure"}


class _Register:
    """The protected resource of one key, as its log shows it."""

    def __init__(self):
        self.newest = 0
        self.value = None
        self.writer = ""
        self.fence = 0
        self.visitor = None  # of the operations that accessed it, the one that was granted last


class _Reader:
    """Walks through the events once and builds the operations."""

    def __init__(self, verdict, invoked):
        self.verdict = verdict
        self.invoked = invoked  # the history has invoke, so each operation must have a begin and an end
        self.open = {}
        self.registers = {}
        self.seen = {}       # {(client, key): newest term that its observer reported}
        self.led = {}        # {(key, term): the leader that an observer reported}
        self.forgotten = {}  # {id of a fault: [begin, end] of the time when a node lost its data}
        self.healed = None
        self.counts = verdict.counts

    def count(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1

    def bad(self, kind, event, text, **more):
        user = event.number("user")
        at = f"{seconds(self.verdict, event.t_us)}, line {event.line}: {event.client}{f'.{user}' if user else ''}"
        self.verdict.add(kind, event.t_us, f"{at} {text}", key=event.key, clients=(event.client,), **more)

    def take(self, event):
        handler = getattr(self, "on_" + event.event, None)
        if handler:
            handler(event)

    def on_run(self, event):
        self.verdict.power = known.read(event.fields.get("power"))

    def on_healed(self, event):
        self.healed = event

    def on_invoke(self, event):
        before = self.open.get(self.name(event))
        if before:
            self.bad("terminal", event, f"begins an operation while that of line {before.line} has not ended")
        self.begin(event)

    def begin(self, event):
        operation = Operation(event.client, event.key, event.t_us, event.line, event.number("user"),
                              event.fields.get("mode", "lock"))
        self.open[self.name(event)] = operation
        self.verdict.operations.append(operation)

    def name(self, event):
        """The owner of a sequence of operations: a user of a client; without invoke, a user of a client on one key."""
        return (event.client, event.number("user"), "" if self.invoked else event.key)

    def begin_unasked(self, event):
        """Begins an operation at its grant or refusal, if the history has no invoke."""
        if not self.invoked:
            self.begin(event)

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
        operation.fence = event.number("term") or event.number("fence")
        operation.fenced = "term" in event.fields or "fence" in event.fields
        operation.slot, operation.permits = event.number("slot"), event.number("permits")
        if operation.mode == "permits" and operation.permits == 0:
            self.bad("slot", event, f"is granted {event.key} as one of no permits")
            operation.permits = operation.slot + 1
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
            # The loss must be reported before another client can own the lock, unless the owner was stopped.
            self.count("losses in time" if event.t_us <= operation.deadline_us else "losses late")

    def on_killed(self, event):
        self.count("clients killed")
        for name in [name for name, operation in self.open.items() if operation.client == event.client]:
            operation = self.open.pop(name)
            operation.end_us, operation.end = event.t_us, "killed"

    def on_client(self, event):
        # A new process under this name: its observers have reported nothing yet.
        if "version" in event.fields:
            for name in [name for name in self.seen if name[0] == event.client]:
                del self.seen[name]

    def on_observed(self, event):
        """An observer of an election reported a leader. It may report the same leader again with a higher term, if the term
        was in doubt."""
        self.count("observations")
        name, term, owner = (event.client, event.key), event.number("term"), event.fields.get("leader", "")
        newest = self.seen.get(name, 0)
        if term < newest:
            self.bad("observer", event, f"reports term {term} of {event.key} after {newest}")
        elif owner and self.led.setdefault((event.key, term), owner) != owner:
            self.bad("observer", event, f"reports that {owner} leads {event.key} by term {term}, by which "
                     f"{self.led[event.key, term]} led", tolerated=self.verdict.profile == "outside")
        self.seen[name] = max(term, newest)

    def on_fault(self, event):
        if event.fields.get("kind") in FORGETTING:
            times = self.forgotten.setdefault(event.number("id"), [event.t_us, self.verdict.end_us])
            if event.fields.get("phase") == "end":
                times[1] = event.t_us

    def on_breach(self, event):
        self.bad("breach", event, event.fields.get("text", "saw a promise broken"))

    def on_failed(self, event):
        self.bad("client", event, event.fields.get("text", "ended badly"))

    def register(self, event):
        """The register of a key or of a slot: each slot has tokens of its own."""
        return self.registers.setdefault((event.key, event.number("slot")), _Register())

    def on_read(self, event):
        self.visit(event, self.register(event))

    def visit(self, event, register):
        """Notes an access that was accepted. Returns whether a newer owner had been there, by its token or else its grant."""
        fence, operation = event.number("fence"), self.open.get(self.name(event))
        owner = operation if operation and operation.key == event.key and operation.granted_us is not None else None
        if owner and owner.mode == "shared":
            return False  # readers may be many, and none of them is newer than another
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
        stale = self.visit(event, register)
        if stale:
            self.count("stale writes accepted")
            why = f"with token {fence} though {register.newest} was seen" if fence else \
                f"without a token though {register.visitor.client}, granted later, had been there"
            self.bad("stale-write", event, f"writes {event.key} {why}",
                     tolerated=self.verdict.profile == "outside" and fence == 0)
        if "value" in event.fields:
            self.judge_value(event, register, fence, stale)

    def judge_value(self, event, register, fence, stale):
        """Checks that the value follows the one before. A stale write that also undid another is counted once, as stale."""
        value = event.number("value")
        if register.value is not None and value != register.value + 1 and not stale:
            # Without distinct tokens nothing could have refused the write; the overlap let it in.
            blameless = self.verdict.profile == "outside" and (fence == 0 or fence == register.fence)
            self.bad("lost-update", event, f"writes {value} to {event.key} where {register.writer} had written "
                     f"{register.value}", tolerated=blameless)
        register.value, register.writer, register.fence = value, event.client, fence


def judge(events, profile="inside", bound_us=10_000_000, start_us=None):
    """The verdict over events of history.parse or history.Stream. bound_us: the bound for liveness, if the healed event
    has none. start_us: the time 0 of the texts; default: the first event."""
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
                    f"{operation.who} on {operation.key} never ends", key=operation.key, clients=(operation.client,))
    by_key, by_mode = {}, {}
    for operation in verdict.operations:
        by_key.setdefault(operation.key, []).append(operation)
        by_mode.setdefault((operation.key, operation.mode), []).append(operation)
        _count(verdict.figures(operation.mode), operation)
    for _, operations in sorted(by_key.items()):
        rules.judge_key(verdict, operations, reader.forgotten.values())
    rules.judge_liveness(verdict, reader.healed, by_mode, bound_us)
    verdict.violations.sort(key=lambda violation: violation.t_us)
    counts = verdict.counts
    counts["operations"] = len(verdict.operations)
    counts["keys"] = len(by_key)
    counts["clients"] = len({operation.client for operation in verdict.operations})
    counts["fenced grants"] = sum(1 for o in verdict.operations if o.fence)
    return verdict


def _count(figures, operation):
    figures.grants += operation.granted_us is not None
    figures.refusals += operation.end == "refused"
    figures.losses += operation.end == "lost"


def summary(verdict):
    """The figures and the verdict as plain data, for --json."""
    def spread(times_us):
        return {"count": len(times_us), "p50": percentile(times_us, 50), "p99": percentile(times_us, 99),
                "max": max(times_us, default=None)}

    return {
        "verdict": ("held" if verdict.doubt else "sound") if verdict.sound else "violated",
        "doubt": verdict.doubt,
        "profile": verdict.profile,
        "seconds": round((verdict.end_us - verdict.start_us) / 1e6, 3),
        "counts": dict(sorted(verdict.counts.items())),
        "handover_us": spread(verdict.handovers_us),
        "modes": {mode: {"grants": figures.grants, "refusals": figures.refusals, "losses": figures.losses,
                         "permits": figures.permits, "at_once": figures.at_once,
                         "handover_us": spread(figures.handovers_us), "return_us": spread(figures.returns_us)}
                  for mode, figures in sorted(verdict.modes.items())},
        "violations": verdict.kinds(False),
        "tolerated": verdict.kinds(True),
        "details": [{"kind": v.kind, "t_us": v.t_us, "key": v.key, "clients": list(v.clients), "text": v.text,
                     "tolerated": v.tolerated} for v in verdict.violations],
        "notes": verdict.notes,
    }


def describe_mode(mode, modes):
    """One line for each mode, if there are others than the lock, and one for owners that were killed."""
    figures = modes[mode]
    if set(modes) != {"lock"}:
        inside = {"permits": f", {figures.at_once} of {figures.permits} at once at most",
                  "shared": f", {figures.at_once} at once at most"}.get(mode, "")
        yield (f"{mode:<9} {figures.grants} granted{inside}, {figures.refusals} refused, {figures.losses} lost"
               + (f"; hand-over {milliseconds(percentile(figures.handovers_us, 50))} median, "
                  f"{milliseconds(percentile(figures.handovers_us, 99))} p99" if figures.handovers_us else ""))
    if figures.returns_us:
        yield (f"          {len(figures.returns_us)} killed owners had a successor "
               f"{milliseconds(percentile(figures.returns_us, 50))} (median; longest {milliseconds(max(figures.returns_us))}) "
               "after their validity ended")


def describe(verdict):
    """The verdict as lines for people."""
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
        f"  lost      {n('losses')} ({n('losses in time')} in time, {n('losses late')} after validity had ended)",
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
    lines += [f"  {line}" for mode in MODES if mode in verdict.modes for line in describe_mode(mode, verdict.modes)]
    if "first grant after healing us" in counts:
        lines.append(f"  healed    first grant after {milliseconds(counts['first grant after healing us'])}")
    lines += [f"  note      {note}" for note in verdict.notes]
    for tolerated, title in ((True, "outside the claim"), (False, "VIOLATION")):
        for kind, count in sorted(verdict.kinds(tolerated).items()):
            lines.append(f"{title}: {count} x {kind}: {KINDS[kind]}")
            shown = [v for v in verdict.violations if v.kind == kind and v.tolerated == tolerated]
            lines += [f"    {violation.text}" for violation in shown[:EXAMPLES]]
            if count > EXAMPLES:
                lines.append(f"    and {count - EXAMPLES} more")
    failed = sum(verdict.kinds(False).values())
    if failed:
        broke, beside = verdict.failed()
        lines.append(f"verdict: VIOLATED, {plural(failed, 'time')}: {', '.join(broke + beside)}")
    else:
        tolerated = sum(verdict.kinds(True).values())
        lines.append(f"verdict: held; {verdict.doubt}" if verdict.doubt else "verdict: sound" + (f", with {tolerated} events outside the claim" if tolerated else ""))
    return lines
