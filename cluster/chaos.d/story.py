# SPDX-License-Identifier: BSD-3-Clause
"""The first violation told as a story: who was granted what, which fault came in between, and what followed."""
import plan
from lanes import faults_of, targets
from strips import BEFORE_US
from verdict import OVERLAPS

LINES_MAX = 5
ENDS = {"released": "releases it", "lost": "reports that it was lost", "killed": "is killed; its validity counts to its end"}


def first_of(verdict):
    """The violation to tell: the first overlap, else the first stale write; else None."""
    broken = [violation for violation in verdict.violations if not violation.tolerated and violation.key]
    return next((v for v in broken if v.kind in OVERLAPS), next((v for v in broken if v.kind == "stale-write"), None))


def owners(verdict, violation):
    """The operations of the owner who was there first and of the one who came later; None where there is none."""
    at = [o for o in verdict.operations if o.key == violation.key and o.granted_us is not None and o.granted_us <= violation.t_us]
    if violation.kind in OVERLAPS:
        newer = next((o for o in at if o.granted_us == violation.t_us), None)
        older = [o for o in at if o is not newer and o.client in violation.clients and o.window_end_us > violation.t_us]
    else:
        own = [o for o in at if o.client == violation.clients[0]]
        older = own[-1:]
        newer = next((o for o in reversed(at) if older and o.granted_us > older[0].granted_us), None)
    return max(older, key=lambda o: o.granted_us, default=None), newer


def hits_any(fault, clients):
    """Whether it hits one of these clients; a fault that names no clients hits all."""
    return not fault.fields.get("clients") or any(f"c{number}" in clients for number in fault.fields["clients"])


def forgets(fault):
    kind = plan.KINDS.get(fault.fields.get("kind"))
    return kind is not None and kind.forgets


def of_faults(events, verdict, older, newer):
    """Lines of the faults that came before the newer grant; what most likely let it pass is last: faults at the older owner,
    then lost memory, then the latest."""
    near = [(first, last.t_us if last else verdict.end_us) for first, last in faults_of(events)]
    near = [(first, to_us) for first, to_us in near
            if first.t_us < newer.granted_us and to_us > min(older.granted_us, newer.granted_us - BEFORE_US)]
    near = [(first, to_us) for first, to_us in near if forgets(first) or hits_any(first, (older.client, newer.client))]
    near.sort(key=lambda pair: (bool(pair[0].fields.get("clients")) and hits_any(pair[0], (older.client,)), forgets(pair[0]),
                                pair[0].t_us))
    for first, to_us in near:
        kind = first.fields.get("kind", "?")
        text = plan.KINDS[kind].text if kind in plan.KINDS else kind
        until = f", until {(to_us - verdict.start_us) / 1e6:.3f} s" if to_us - first.t_us > 1000 else ""
        yield first.t_us, f"{targets(first)}: {text}{until}."


def tell(events, verdict):
    """Up to five lines (time, text) about the first violation, by time; none if there is nothing to tell."""
    violation = first_of(verdict)
    older, newer = owners(verdict, violation) if violation else (None, None)
    if not older or not newer:
        return []

    def at(t_us):
        return f"{(t_us - verdict.start_us) / 1e6:.3f} s"

    lines = [(older.granted_us, f"{older.who} is granted {older.what}, valid to {at(older.deadline_us)}.")]
    if violation.kind in OVERLAPS:
        both_us = min(older.window_end_us, newer.window_end_us)
        lines.append((newer.granted_us, f"{newer.who} is granted {newer.what}, too, while {older.who} has reason to trust its own."))
        ended = older if older.window_end_us == both_us else newer
        how = ENDS.get(ended.end, "never ends its operation") if ended.end_us == both_us else "has no validity left"
        lines.append((both_us, f"{ended.who} {how}: for {(both_us - newer.granted_us) / 1000:.1f} ms there were two owners."))
    else:
        if older.deadline_us < newer.granted_us:
            lines.append((older.deadline_us, f"The validity of {older.who} is over."))
        lines.append((newer.granted_us, f"{newer.who} is granted {newer.what}."))
        lines.append((violation.t_us, f"{older.who} writes, and nothing refuses it, though {newer.who} has been there."))
    lines += list(of_faults(events, verdict, older, newer))[len(lines) - LINES_MAX:]
    return sorted(lines, key=lambda line: line[0])
