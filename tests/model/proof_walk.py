# SPDX-License-Identifier: BSD-3-Clause
"""Leads the steps of the proof through traces of the library, so that the proof and the code cannot drift apart.

The steps of proof_lock.py and proof_fence.py get what the actions of a trace say (see traces), and are evaluated, not
solved: a guard that is false rejects the trace. Where a trace says less than a step asks, the step
gets what permits most, so that no run is rejected wrongly:
- A request counts as sent when it is executed, a repair as asked for as soon as the proof permits it.
- A yes is worth the whole lease, and a key stands for the lease less the drift.
- Assumptions are not checked: a node that lost its memory may execute an acquire (LATE_SET), but its yes does not count.
"""
import collections
from typing import Any, Callable

from proof_fence import Fence
from proof_lock import Lock
from proof_terms import Nodes, Put, State

# Fields that no guard reads: they are for the invariants only.
GHOSTS = {"barred", "bars", "since", "asked", "earlier", "had", "ahead"}
NEVER = -1.0


class Wrong(Exception):
    """The proof has no such step here."""


class Life:
    """A node's life: its server, and when it began."""

    def __init__(self, server: int, number: int) -> None:
        self.server, self.number = server, number


class Seen:
    """The world of a trace: those tokens and lives that still matter."""
    sizes: dict[str, int] = {}
    form, off = "", "LATE_SET LONG_ATTEMPT"

    def __init__(self) -> None:
        self.members: dict[str, list[Any]] = {"Token": [], "Life": [], "Real": []}
        self.given: dict[str, Callable[..., Any]] = {}

    def function(self, name: str, _sorts: str) -> Callable[..., Any]:
        return lambda *x: self.given[name](*x)

    def every(self, sorts: str, body: Callable[..., Any]) -> bool:
        if " " not in sorts:
            return all(body(x) for x in self.members[sorts])
        first, rest = sorts.split(" ", 1)
        return all(self.every(rest, lambda *y, x=x: body(x, *y)) for x in self.members[first])


class Field(dict):  # type: ignore[type-arg]
    """A function of the state, by its values."""

    def __init__(self, default: Any) -> None:
        super().__init__()
        self.default = default

    def __call__(self, *x: Any) -> Any:
        return self.get(x, self.default)


class Run:
    """One of the proof's protocols, with its state."""

    def __init__(self, kind: type[Nodes], world: Seen) -> None:
        self.model, self.world = kind(world), world  # type: ignore[arg-type]
        default = {"Bool": False, "Real": 0, "Quorum": None}
        self.fields = {name: Field(default[sorts.split()[-1]]) for name, sorts in kind.FIELDS.items()}
        self.state = State(self.fields)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return self.fields[name]

    def may(self, name: str, **given: Any) -> bool:
        return bool(getattr(type(self.model), name)(self.model, self.state, **given)[0])

    def do(self, name: str, *numbers: Any, **given: Any) -> None:
        """The step must be possible. It changes what its parameters, and these numbers, name."""
        step = getattr(type(self.model), name)
        guard, changes = step(self.model, self.state, **given)
        if not guard:
            raise Wrong(f"{name}: the proof has no such step ({step.code})")
        new = [(self.fields[field], x, value(*x)) for field, value in changes.items() if field not in GHOSTS
               for x in self.touched(step, field, value, numbers, given)]
        for field, x, value in new:
            field[x] = value

    def touched(self, step: Any, field: str, value: Any, numbers: Any, given: Any) -> Any:
        if isinstance(value, Put):
            return [value.at]
        found: list[tuple[Any, ...]] = [()]
        for sort in self.model.FIELDS[field].split()[:-1]:
            named = [given[name] for name, its in step.params.items() if its == sort]
            if sort == "Real":
                named = list(numbers)
            found = [(*x, y) for x in found for y in named or self.world.members[sort]]
        return found


class Walk:
    """Leads both protocols through one trace."""

    def __init__(self, trace: Any) -> None:
        run = trace.run
        self.trace, self.world = trace, Seen()
        self.least = 1 / (1 + run["drift_ppm"] / 1000000)  # so much of a time by a node's clock passes at least
        self.lease_us: dict[str, int] = {}
        self.tried: set[tuple[str, int]] = set()  # the token, and the server that was asked for its vote
        self.now, self.kept = 0, lambda token: True
        self.world.given = {
            "same": lambda a, b: a.server == b.server, "of": lambda a, q: a in q, "conflict": lambda t, u: t != u,
            "worth": lambda t: self.lease_us[t], "life": lambda t: self.lease_us[t] * self.least - 2000,
            "kept": lambda t: self.kept(t), "reads": lambda t: False, "first": None, "second": None}
        self.lock, self.fence = Run(Lock, self.world), Run(Fence, self.world)
        self.runs = [self.lock, self.fence]
        self.lives = [Life(server, 0) for server in range(run["servers"])]
        self.world.members["Life"] = list(self.lives)
        for each in self.runs:
            each.model.longest = each.model.timeout = 0
            each.model.longest = run["max_lease_ms"] * 1000 * self.least - 2000
            for life in self.lives:
                each.present[life,] = each.used[life,] = True
                each.votes[life,] = run["warm"] or not run["guards"]
        self.lock.model.shortest = 0
        self.fenced: set[str] = set()
        self.rounds: set[str] = set()  # their owners have asked to extend them
        self.alive: list[str] = []
        self.orphans: set[str] = set()  # their owner has died
        self.first, self.last = trace.lives()

    def check(self) -> str | None:
        """What the proof cannot do; None: nothing."""
        for number, (at, what, words) in enumerate(self.trace.actions):
            self.now = at
            self.lock.now[()] = at
            if number % 16 == 0:
                self.forget_some(at)
            try:
                getattr(self, what)(*words)
            except Wrong as wrong:
                return f"at {at} us, {what} {' '.join(words)}: {wrong}"
        return None

    def forget_some(self, at: int) -> None:
        """Only who has a key comes into a guard about others."""
        self.alive = [token for token in self.alive if self.last[token] >= at]
        self.world.members["Token"] = [token for token in self.alive
                                       if any(self.lock.key(token, life) for life in self.lives)]

    def here(self, server: str) -> Life:
        return self.lives[int(server)]

    def begun(self, token: str, lease_ms: str = "0") -> None:
        if int(lease_ms) > 0:
            self.lease_us[token] = int(lease_ms) * 1000
        if not self.lock.begun(token):
            self.alive.append(token)
            self.lock.do("begin", t=token)
            self.fence.do("begin", t=token)

    def gone(self, token: str, life: Life) -> None:
        """The key is not there (any more)."""
        if self.lock.key(token, life):
            self.lock.do("expire", t=token, a=life)
        if self.fence.key(token, life):
            self.fence.do("expire", t=token, a=life)

    # ---- requests ----

    def sets(self, server: str, _key: str, token: str, answer: str, late: str, lease_ms: str, _asked: str, shown: str) -> None:
        life, number = self.here(server), int(shown)
        self.begun(token, lease_ms)
        is_first, _ = (token, life.server) not in self.tried, self.tried.add((token, life.server))
        if answer != "yes":
            return
        for other in self.world.members["Token"]:
            if other != token and self.lock.key(other, life):
                self.gone(other, life)
        if token not in self.world.members["Token"]:
            self.world.members["Token"].append(token)
        is_vote = self.lock.asks(token) or is_first or self.lock.over(token) or token not in self.rounds
        if is_vote or (late == "late" and not self.lock.repairs(token, life)):
            self.lock.do("acquire", t=token, a=life, sent=self.now)
        else:
            self.lock.do("repair", t=token, a=life)
        if number > 0 and self.fence.granted(token):
            self.fence.do("carry", t=token, a=life, keeps=True)
        elif number > 0:
            self.fenced.add(token)
            self.fence.do("acquire", number, t=token, a=life, number=number, read=0)

    def extends(self, server: str, _key: str, token: str, answer: str, _late: str, lease_ms: str, *_: str) -> None:
        life = self.here(server)
        self.begun(token, lease_ms)
        self.tried.add((token, life.server))
        self.rounds.add(token)
        if token in self.orphans:
            self.orphans.remove(token)
            self.detached(_key, token)
        if answer != "yes":
            self.gone(token, life)
            return
        self.lock.do("extend", t=token, a=life, sent=self.now)
        if self.fence.granted(token):
            self.fence.do("carry", t=token, a=life, keeps=True)
        if self.lock.model.holds(self.lock.state, token):
            self.may_repair(token)

    def may_repair(self, token: str) -> None:
        """The owner asks to repair as soon as it may."""
        quorum = self.quorum(token, self.need(token), lambda life: self.lock.ends(token, life))
        for life in self.lives if quorum is not None else []:
            given = {"t": token, "a": life, "q": quorum, "at": self.now + 1}
            if not self.lock.repairs(token, life) and self.lock.may("ask_repair", **given):
                self.lock.do("ask_repair", **given)
                self.lock.now[()] = self.now

    def releases(self, server: str, _key: str, token: str, answer: str, *_: str) -> None:
        life = self.here(server)
        self.begun(token)
        if self.lock.asks(token):
            self.lock.do("give_up", t=token)
        if answer != "yes":
            self.gone(token, life)
            return
        if not self.lock.key(token, life):
            raise Wrong("release: the key cannot stand there (2.2)")
        self.lock.do("release", t=token, a=life)
        self.fence.key[token, life] = False

    def raises(self, server: str, _key: str, token: str, answer: str, _late: str, _lease: str, asked: str, shown: str) -> None:
        life = self.here(server)
        if answer != "yes":
            self.gone(token, life)
            return
        if self.fence.granted(token):
            return  # who adopts the token reads the counters (not covered)
        source = next((a for a in self.world.members["Life"] if self.fence.shows(token, a, int(asked))), life)
        self.fence.do("raises", int(asked), int(shown), t=token, a=life, b=source, number=int(asked))
        if not self.fence.shows(token, life, int(shown)):
            raise Wrong(f"raises: the node would show another number than {shown} (5.3)")

    # ---- what owners are told ----

    def need(self, token: str) -> int:
        return self.quorums.get(token, len(self.lives) // 2 + 1)

    quorums: dict[str, int] = {}

    def quorum(self, token: str, size: int, ends: Callable[[Life], Any]) -> frozenset[Life] | None:
        """Lives of so many nodes whose yeses last longest; None: there are not so many yeses."""
        best: dict[int, Life] = {}
        for life in self.world.members["Life"]:
            if self.lock.yes(token, life) and (life.server not in best or ends(life) > ends(best[life.server])):
                best[life.server] = life
        found = sorted(best.values(), key=ends, reverse=True)[:size]
        return frozenset(found) if len(found) == size else None

    def stands(self, name: str, token: str, until: str, quorum: str, stalled: str) -> bool:
        """The grant, or the renewal, has a quorum of yeses until then."""
        size = int(quorum)
        if 2 * size <= len(self.lives):
            raise Wrong(f"{name}: two quorums of {size} need not meet (1.4)")
        if stalled == "yes" and int(until) <= self.now:
            return False
        found = self.quorum(token, size, lambda life: self.lock.ends(token, life))
        if found is None:
            raise Wrong(f"{name}: no quorum said yes (1.4)")
        self.lock.do(name, t=token, q=found, until=int(until))
        return True

    def granted(self, _key: str, token: str, until: str, number: str, quorum: str, stalled: str) -> None:
        self.begun(token)
        self.quorums = {**self.quorums, token: int(quorum)}
        if not self.stands("grant", token, until, quorum, stalled):
            self.lock.known[token,] = self.lock.held[token,] = True
            self.lock.asks[token,] = False
        if int(number) > 0 and token in self.fenced and not self.fence.granted(token):
            showing = {a.server: a for a in self.world.members["Life"] if self.fence.shows(token, a, int(number))}
            if len(showing) < int(quorum):
                raise Wrong(f"grant: no quorum shows {number} (5.2)")
            self.fence.do("grant", t=token, q=frozenset(showing.values()), number=int(number))

    def renewed(self, _key: str, token: str, until: str, _number: str, quorum: str, stalled: str) -> None:
        self.stands("renew", token, until, quorum, stalled)

    def detached(self, _key: str, token: str, *_: str) -> None:
        """Another client may adopt the token: it counts what is extended from now on."""
        if self.lock.held(token):
            self.lock.do("detach", t=token)
            self.lock.do("adopt", t=token)

    lost = detached

    def crashed(self, _key: str, token: str, *_: str) -> None:
        """What its owner saw at this very moment may follow."""
        self.orphans.add(token)

    def adopted(self, _key: str, token: str, until: str, _number: str, quorum: str, stalled: str) -> None:
        self.quorums = {**self.quorums, token: int(quorum)}
        self.stands("grant", token, until, quorum, stalled)

    def released(self, _key: str, token: str, *_: str) -> None:
        self.lock.do("give_up", t=token)

    def ended(self, *_: str) -> None:
        """Nothing: its time is over."""

    # ---- servers ----

    def guards(self, server: str, rest_ms: str) -> None:
        life = self.here(server)
        if int(rest_ms) == 0 and not self.lock.votes(life):
            for run in self.runs:
                run.now[()] = self.now
                run.do("trust", a=life)

    def declares(self, server: str) -> None:
        """Bootstrap: no lock is held (assumed)."""
        for run in self.runs:
            run.votes[self.here(server),] = True

    def reborn(self, server: str, kept: Callable[[str], bool], rest: bool) -> None:
        old = self.here(server)
        new = Life(old.server, old.number + 1)
        self.kept = kept
        self.world.members["Life"].append(new)
        for run in self.runs:
            run.now[()] = self.now - 1
        self.lock.do("lose", a=old, b=new, at=self.now)
        self.fence.do("lose", a=old, b=new, at=self.now, rest=self.fence.counter(old) if rest else 0)
        self.lives[old.server] = new

    def restarts(self, server: str) -> None:
        old = self.here(server)
        self.reborn(server, lambda token: True, True)
        for token in self.world.members["Token"]:
            self.fence.key[token, self.here(server)] = self.fence.key(token, old)

    def forgets(self, server: str) -> None:
        self.reborn(server, lambda token: False, False)

    def ages(self, server: str) -> None:
        """Any key of before may be back, and may end at any time."""
        self.reborn(server, lambda token: True, False)
        self.world.members["Token"] = list(self.alive)
        for token in self.alive:
            self.lock.key[token, self.here(server)] = True
            self.lock.sure[token, self.here(server)] = NEVER


def uncovered(trace: Any) -> str | None:
    """Why the proof does not cover the trace; None: it does."""
    leases: dict[str, set[str]] = collections.defaultdict(set)
    for _, what, words in trace.actions:
        if what in ("sets", "extends"):
            leases[words[2]].add(words[5])
    if not trace.run["guards"] and any(what in ("restarts", "forgets", "ages") for _, what, _ in trace.actions):
        return "a restart without guards"
    return "a lease that changes" if any(len(each) > 1 for each in leases.values()) else None
