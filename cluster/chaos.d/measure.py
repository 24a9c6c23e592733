# SPDX-License-Identifier: BSD-3-Clause
"""The figures of one client's history, for a comparison."""
import judge

MS_IN_US = 1000


def measure(events, verdict):
    """The figures as plain data; the judge has decided before what was sound."""
    counts, handovers = verdict.counts, verdict.handovers_us
    overlaps = [violation for violation in verdict.violations if violation.kind in judge.OVERLAPS]
    others = {kind: number for kind, number in verdict.kinds(False).items()
              if kind not in judge.OVERLAPS | {"stale-write", "lost-update", "liveness"}}
    return {
        "seconds": round((verdict.end_us - verdict.start_us) / 1e6, 3),
        "grants": counts.get("grants", 0),
        "with_token": counts.get("fenced grants", 0),
        "refused": counts.get("refusals", 0),
        "handovers": len(handovers),
        "handover_ms": {f"p{percent}": in_ms(judge.percentile(handovers, percent)) for percent in (50, 99)},
        "overlaps": len(overlaps),
        "overlap_ms": in_ms(sum(max(0, overlap.until_us - overlap.t_us) for overlap in overlaps)),
        "writes": counts.get("writes", 0),
        "stale_writes": counts.get("stale writes accepted", 0),
        "stale_refused": counts.get("writes refused", 0) + counts.get("reads refused", 0),
        "lost_updates": verdict.kinds(False).get("lost-update", 0),
        "told_lost": sum(is_notified(operation) for operation in verdict.operations),
        "never_told": len(not_notified(verdict)),
        "after_healing_ms": after_healing(events, verdict),
        "broken_otherwise": others,
    }


def in_ms(us):
    return None if us is None else round(us / MS_IN_US, 1)


def is_notified(operation):
    """Whether the lock notified its owner of the loss, so that the owner did not notice it by its own clock."""
    return operation.end == "lost" and operation.status != "EXPIRED"


def not_notified(verdict):
    """Operations whose lock ended, or belonged to another, while they held it, without a notice. A killed owner could not
    be notified."""
    return [operation for operation in verdict.operations
            if operation.granted_us is not None and operation.end in ("lost", "released") and not is_notified(operation)
            and (operation.end == "lost" or operation.end_us > operation.deadline_us or operation.overtaken)]


def after_healing(events, verdict):
    """How long some key was not granted after everything had healed; None: to the end of the run."""
    healed = [event for event in events if event.event == "healed"]
    if not healed or "liveness" in verdict.kinds(False):
        return None
    return in_ms(verdict.counts.get("first grant after healing us"))
