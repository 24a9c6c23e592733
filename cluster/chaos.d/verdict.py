# SPDX-License-Identifier: BSD-3-Clause
"""The terms of the judge: operations with their windows, violations, the verdict and its figures.

The window of a grant is the time for which its owner could trust it: from the
report of the grant to its release, its loss or the end of the validity that was
last reported, whichever is first. The window of a killed client lasts to the
end of its validity, because that was promised.
"""
from dataclasses import dataclass, field

import known

KINDS = {
    "overlap": "two owners at once",
    "shared-overlap": "a reader and a writer at once",
    "slot-overlap": "two holders of one slot at once",
    "permits": "more holders at once than there are permits",
    "slot": "a slot that is none of the name's",
    "leaders": "two leaders at once",
    "token-duplicate": "one fencing token granted twice",
    "token-order": "a later grant with an older fencing token",
    "reader-token": "a reader with an older token than a writer that was there before",
    "observer": "an observer that reported an older term, or two leaders of one term",
    "stale-write": "a write accepted though a newer owner had been there",
    "lost-update": "a write that undid or repeated another",
    "terminal": "an operation without exactly one end",
    "validity": "a grant reported without validity left",
    "no-grant-write": "a write by a client that held no lock",
    "liveness": "no grant after everything had healed",
    "breach": "the client saw the library break its word",
    "client": "a client ended by itself, or did not end well when asked to",
}
# Two holders at once that exclude each other.
OVERLAPS = {"overlap", "shared-overlap", "slot-overlap", "permits", "leaders"}
# Wrong writes, which a lock can admit without a second owner.
WRITES = {"stale-write", "lost-update"}
# Violations that do not tell that the lock itself broke.
BESIDE = WRITES | {"client"}
# With --profile outside these are counted instead of failing the run.
TOLERATED_OUTSIDE = OVERLAPS | {"token-duplicate", "token-order", "reader-token"}
# The modes of keys. A lock is exclusive; a writer of a shared key has this mode, too.
MODES = ("lock", "permits", "shared", "election")


@dataclass(slots=True)
class Operation:
    client: str
    key: str
    invoke_us: int
    line: int
    user: int = 0
    mode: str = "lock"
    granted_us: int = None
    deadline_us: int = None
    fence: int = 0  # the term, in an election
    fenced: bool = False  # the grant has a token, which may be 0: before any writer a reader has none to see
    slot: int = 0
    permits: int = 0
    end_us: int = None
    end: str = None  # refused, lost, released, killed
    status: str = ""
    writes: int = 0
    overtaken: bool = False  # another owner was granted the key during its window

    @property
    def window_end_us(self):
        """The end of the lock's validity for its owner."""
        if self.end in ("lost", "released"):
            return min(self.end_us, self.deadline_us)
        return self.deadline_us

    @property
    def who(self):
        return f"{self.client}.{self.user}" if self.user else self.client

    @property
    def what(self):
        """What one holder has for itself, in words."""
        return f"{self.key} slot {self.slot}" if self.mode == "permits" else self.key


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
class Figures:
    """The figures of all operations of one mode."""
    grants: int = 0
    refusals: int = 0
    losses: int = 0
    permits: int = 0
    at_once: int = 0  # how many held one key at the same time, at most
    handovers_us: list = field(default_factory=list)
    returns_us: list = field(default_factory=list)  # from the end of a killed owner's validity to the next grant


@dataclass
class Verdict:
    profile: str
    start_us: int = 0
    end_us: int = 0
    operations: list = field(default_factory=list)
    violations: list = field(default_factory=list)
    counts: dict = field(default_factory=dict)
    handovers_us: list = field(default_factory=list)
    modes: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    power: dict = None  # of the run, by known.py; None: it tells nothing about that

    @property
    def sound(self):
        return all(violation.tolerated for violation in self.violations)

    @property
    def doubt(self):
        """Why a run without a violation proves little; empty: it does prove something."""
        return known.doubt(self.power) if self.sound else ""

    def add(self, kind, t_us, text, tolerated=False, **more):
        tolerated = tolerated or (self.profile == "outside" and kind in TOLERATED_OUTSIDE)
        self.violations.append(Violation(kind, t_us, text, tolerated=tolerated, **more))

    def kinds(self, tolerated):
        found = {}
        for violation in self.violations:
            if violation.tolerated == tolerated:
                found[violation.kind] = found.get(violation.kind, 0) + 1
        return found

    @property
    def tokens(self):
        """Whether any grant had a fencing token. Without tokens, nothing could have refused a stale write."""
        return bool(self.counts.get("fenced grants"))

    def failed(self):
        """(violations of the lock, those beside it): texts with their numbers. Each write is counted in one of the two."""
        kinds = self.kinds(False)
        overlaps = sum(count for kind, count in kinds.items() if kind in OVERLAPS)
        broke = [plural(overlaps, "overlap")] if overlaps else []
        broke += [f"{count:,} x {kind}" for kind, count in sorted(kinds.items()) if kind not in OVERLAPS | BESIDE]
        beside = []
        if "stale-write" in kinds:
            beside.append(plural(kinds["stale-write"], "stale write") + ("" if self.tokens else " (no fencing token in use)"))
        if "lost-update" in kinds:
            beside.append(plural(kinds["lost-update"], "lost update"))
        if "client" in kinds:
            beside.append(plural(kinds["client"], "client ended badly", "clients ended badly"))
        return broke, beside

    def figures(self, mode):
        return self.modes.setdefault(mode, Figures())


def plural(count, one, many=None):
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def percentile(values, percent):
    """The value that `percent` of all do not exceed; None for an empty list."""
    if not values:
        return None
    values = sorted(values)
    return values[min(len(values) - 1, max(0, -(-len(values) * percent // 100) - 1))]


def seconds(verdict, t_us):
    return f"{(t_us - verdict.start_us) / 1e6:.3f} s"


def milliseconds(us):
    return "-" if us is None else f"{us / 1000:.1f} ms"
