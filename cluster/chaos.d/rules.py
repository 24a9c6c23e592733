# SPDX-License-Identifier: BSD-3-Clause
"""The rules for all grants of a key: who may hold it at the same time, and with which tokens; and the measurements."""
import bisect
import heapq

from verdict import seconds

PATIENT_US = 1_000_000  # a client that waited this long for a permit had time to find a free one


def judge_key(verdict, operations, forgotten):
    """Judges all operations on one key. forgotten: (begin, end) of each time when a node lost its data."""
    grants = sorted((o for o in operations if o.granted_us is not None), key=lambda o: o.granted_us)
    readers = [o for o in grants if o.mode == "shared"]
    writers = [o for o in grants if o.mode in ("lock", "election")]
    permits = [o for o in grants if o.mode == "permits"]
    _judge_exclusion(verdict, [o for o in grants if o.mode != "permits"])
    _judge_tokens(verdict, writers)
    _judge_reader_tokens(verdict, readers, writers, forgotten)
    for slot in sorted({o.slot for o in permits}):
        holders = [o for o in permits if o.slot == slot]
        _judge_exclusion(verdict, holders)
        _judge_tokens(verdict, holders)
        _measure_returns(verdict, holders)
    _judge_permits(verdict, permits)
    _count_readers(verdict, readers)
    _measure_handovers(verdict, operations, grants)
    _measure_returns(verdict, [o for o in grants if o.mode != "permits"])


def _kind_of(one, other):
    if (one.mode == "shared") != (other.mode == "shared"):
        return "shared-overlap"
    return {"permits": "slot-overlap", "election": "leaders"}.get(one.mode, "overlap")


def _judge_exclusion(verdict, grants):
    """Reports each grant that came while an earlier one that excludes it was valid. Readers do not exclude each other."""
    reaching = {"reader": None, "other": None}  # the grant whose window ends last
    for operation in grants:
        side = "reader" if operation.mode == "shared" else "other"
        for other in (reaching["other"], reaching["reader"] if side == "other" else None):
            if other and operation.granted_us < other.window_end_us:
                _add_overlap(verdict, other, operation)
        if reaching[side] is None or operation.window_end_us > reaching[side].window_end_us:
            reaching[side] = operation


def _add_overlap(verdict, first, second):
    kind = _kind_of(first, second)
    until_us = min(first.window_end_us, second.window_end_us)
    shared_ms = max(0, until_us - second.granted_us) / 1000
    first.overtaken = True
    names = [f"{o.who}{' (shared)' if kind == 'shared-overlap' and o.mode == 'shared' else ''}" for o in (first, second)]
    verdict.add(kind, second.granted_us,
                f"{seconds(verdict, second.granted_us)}: {names[1]} is granted {second.what} while {names[0]} is still "
                f"valid (granted {seconds(verdict, first.granted_us)}, valid to {seconds(verdict, first.window_end_us)}; "
                f"both for {shared_ms:.1f} ms)", key=second.key, clients=(first.client, second.client), until_us=until_us)


def _at_once(grants):
    """Yields (a grant, all grants that are valid at its moment, including it)."""
    inside = []
    for number, operation in enumerate(grants):
        while inside and inside[0][0] <= operation.granted_us:
            heapq.heappop(inside)
        heapq.heappush(inside, (operation.window_end_us, number, operation))
        yield operation, inside


def _judge_permits(verdict, grants):
    """Never more valid grants of a name than permits; all holders must give the same number of permits."""
    for operation, inside in _at_once(grants):
        figures, at = verdict.figures("permits"), seconds(verdict, operation.granted_us)
        figures.at_once = max(figures.at_once, len(inside))
        figures.permits = max(figures.permits, operation.permits)
        if operation.slot >= operation.permits:
            verdict.add("slot", operation.granted_us, f"{at}: {operation.who} is granted {operation.what} of "
                        f"{operation.permits} permits", key=operation.key, clients=(operation.client,))
        permits = min(o.permits for _, _, o in inside)
        others = [o for _, _, o in inside if o is not operation]
        if len(inside) > permits:
            verdict.add("permits", operation.granted_us, f"{at}: {operation.who} is granted {operation.what}, one of "
                        f"{permits} permits, while {len(others)} others are valid ({', '.join(o.who for o in others[:9])})",
                        key=operation.key, clients=(operation.client, *{o.client for o in others}), until_us=inside[0][0])
        elif any(o.permits != permits for o in others + [operation]):
            verdict.add("permits", operation.granted_us, f"{at}: {operation.who} is granted {operation.what} as one of "
                        f"{operation.permits} permits while {others[0].who} holds one of {others[0].permits}",
                        key=operation.key, clients=(operation.client, others[0].client), until_us=inside[0][0])


def _count_readers(verdict, readers):
    for _, inside in _at_once(readers):
        figures = verdict.figures("shared")
        figures.at_once = max(figures.at_once, len(inside))


def _judge_tokens(verdict, grants):
    fenced = [operation for operation in grants if operation.fence]
    owner = {}
    for operation in fenced:
        first = owner.setdefault(operation.fence, operation)
        if first is not operation:
            verdict.add("token-duplicate", operation.granted_us,
                        f"{seconds(verdict, operation.granted_us)}: {operation.who} is granted {operation.what} with "
                        f"{word(operation)} {operation.fence}, which {first.who} got at "
                        f"{seconds(verdict, first.granted_us)}",
                        key=operation.key, clients=(first.client, operation.client))
    _judge_order(verdict, fenced, "began", lambda a: a.granted_us, lambda b: b.invoke_us)
    if verdict.profile == "inside":
        _judge_order(verdict, fenced, "was granted", lambda a: a.window_end_us, lambda b: b.granted_us)


def word(operation):
    return "term" if operation.mode == "election" else "token"


def _judge_order(verdict, fenced, verb, done_us, begun_us):
    """A later grant must have a newer token. Equal tokens are duplicates, which are reported elsewhere."""
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
                            f"{seconds(verdict, operation.granted_us)}: {operation.who} is granted {operation.what} with "
                            f"{word(operation)} {operation.fence} though it {verb} after {newest.who} had {newest.fence} "
                            f"({seconds(verdict, newest.granted_us)})",
                            key=operation.key, clients=(newest.client, operation.client))


def _judge_reader_tokens(verdict, readers, writers, forgotten):
    """A reader's token must not be below that of a writer that had released the key before the reader asked. This is not
    judged if a node lost its data in between, perhaps the counter that the reader had to see."""
    done = sorted((o for o in writers if o.fence and o.end == "released"), key=lambda o: o.end_us)
    latest, next_done = None, 0
    for reader in sorted((o for o in readers if o.fenced), key=lambda o: o.invoke_us):
        while next_done < len(done) and done[next_done].end_us < reader.invoke_us:
            if latest is None or done[next_done].fence > latest.fence:
                latest = done[next_done]
            next_done += 1
        if latest is None or reader.fence >= latest.fence:
            continue
        if any(begun_us <= reader.granted_us and ended_us >= latest.granted_us for begun_us, ended_us in forgotten):
            verdict.counts["readers behind lost counters"] = verdict.counts.get("readers behind lost counters", 0) + 1
            continue
        verdict.add("reader-token", reader.granted_us,
                    f"{seconds(verdict, reader.granted_us)}: {reader.who} reads {reader.key} with token {reader.fence} "
                    f"though {latest.who} had released it with {latest.fence} ({seconds(verdict, latest.end_us)}) before it "
                    "asked", key=reader.key, clients=(latest.client, reader.client))


def _measure_handovers(verdict, operations, grants):
    """The time from a release that frees the key to the next grant, if the next owner was waiting already."""
    times = [operation.granted_us for operation in grants]
    ends = sorted(operation.window_end_us for operation in grants)
    for operation in operations:
        if operation.end != "released":
            continue
        end_us = operation.end_us
        held = bisect.bisect_right(times, end_us) - bisect.bisect_right(ends, end_us)
        after = bisect.bisect_left(times, end_us)
        # While other readers hold the key, the release frees it for nobody.
        if (operation.mode == "permits" or held <= 0) and after < len(times) and grants[after].invoke_us <= end_us:
            verdict.figures(operation.mode).handovers_us.append(times[after] - end_us)
            verdict.handovers_us.append(times[after] - end_us)


def _measure_returns(verdict, grants):
    """The time from the end of a killed owner's validity to the next grant, if a client waited at that moment."""
    times = [operation.granted_us for operation in grants]
    for operation in grants:
        if operation.end != "killed" or operation.mode == "shared":
            continue
        after = bisect.bisect_left(times, operation.deadline_us)
        if after < len(times) and grants[after].invoke_us <= operation.deadline_us:
            verdict.figures(operation.mode).returns_us.append(times[after] - operation.deadline_us)


def judge_liveness(verdict, healed, by_mode, bound_us):
    """by_mode: {(key, mode): its operations}"""
    if healed is None:
        verdict.notes.append("no healed mark: liveness not judged")
        return
    bound_us = healed.number("bound_us", bound_us)
    for (key, mode), operations in sorted(by_mode.items()):
        _judge_first_grant(verdict, healed.t_us, key if mode == "lock" else f"{key} ({mode})", operations, bound_us)
        if mode == "permits":
            _judge_free_permits(verdict, healed.t_us, key, operations, bound_us)


def _judge_first_grant(verdict, from_us, name, operations, bound_us):
    judged_to_us = min(from_us + bound_us, verdict.end_us)
    # Only an open acquire can be granted; one that began before the healing counts, too.
    asked = [o for o in operations if (o.end_us or verdict.end_us) > from_us and o.invoke_us < judged_to_us
             and (o.granted_us is None or o.granted_us > from_us)]
    if not asked:
        return
    granted = [o.granted_us for o in asked if o.granted_us is not None and o.granted_us <= from_us + bound_us]
    if granted:
        first_us = min(granted) - from_us
        verdict.counts["first grant after healing us"] = max(
            first_us, verdict.counts.get("first grant after healing us", 0))
    elif judged_to_us < from_us + bound_us:
        verdict.notes.append(f"the history ends too soon after healing to judge liveness of {name}")
    else:
        verdict.add("liveness", judged_to_us,
                    f"{seconds(verdict, judged_to_us)}: no grant of {name} within {bound_us / 1e6:.1f} s "
                    f"after all had healed ({seconds(verdict, from_us)}), though {len(asked)} asked", key=asked[0].key)


def _judge_free_permits(verdict, from_us, key, operations, bound_us):
    """Every slot must be used again, if so many clients ask that some wait."""
    to_us = from_us + bound_us
    grants = [o for o in operations if o.granted_us is not None]
    if verdict.end_us < to_us or not grants:
        return
    waited = [o for o in operations if min(o.granted_us or o.end_us or to_us, to_us) - max(o.invoke_us, from_us) >= PATIENT_US
              and (o.granted_us or o.end_us or to_us) > to_us - PATIENT_US]
    used = {o.slot for o in grants if o.granted_us <= to_us and o.window_end_us > from_us}
    for slot in sorted(set(range(max(o.permits for o in grants))) - used) if waited else ():
        verdict.add("liveness", to_us, f"{seconds(verdict, to_us)}: slot {slot} of {key} was not used within "
                    f"{bound_us / 1e6:.1f} s after all had healed ({seconds(verdict, from_us)}), though {waited[0].who} and "
                    f"{len(waited) - 1} others waited", key=key)
