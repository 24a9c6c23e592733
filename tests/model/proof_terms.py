# SPDX-License-Identifier: BSD-3-Clause
"""The language of proof.py: worlds of any size, and small ones for stories; states, and steps between them."""
import importlib.util
import itertools
import os
import sys
from typing import Any, Callable

if importlib.util.find_spec("z3") is None:
    # Debian's package is for Debian's Python, which need not be the first one in PATH.
    if sys.executable != "/usr/bin/python3" and os.path.isdir("/usr/lib/python3/dist-packages/z3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    print("SKIPPED proof: python3-z3 is not installed; run scripts/setup")
    sys.exit(77)

import z3  # type: ignore[import]

NUMBERS = 10  # in small worlds: fencing tokens below it

# pylint: disable=invalid-name
# As z3's; of plain values they give a plain value, for the evaluation of traces.


def And(*terms: Any) -> Any:
    parts = terms[0] if len(terms) == 1 and isinstance(terms[0], list) else terms
    return all(parts) if all(isinstance(part, bool) for part in parts) else z3.And(*parts)


def Or(*terms: Any) -> Any:
    parts = terms[0] if len(terms) == 1 and isinstance(terms[0], list) else terms
    return any(parts) if all(isinstance(part, bool) for part in parts) else z3.Or(*parts)


def Not(term: Any) -> Any:
    return not term if isinstance(term, bool) else z3.Not(term)


def Implies(a: Any, b: Any) -> Any:
    return not a or b if isinstance(a, bool) and isinstance(b, bool) else z3.Implies(a, b)


def If(which: Any, a: Any, b: Any) -> Any:
    return (a if which else b) if isinstance(which, bool) else z3.If(which, a, b)
# pylint: enable=invalid-name


class World:
    """The sorts. In a world of any size z3 gets quantifiers; in a small one each is written out over all members."""

    def __init__(self, sizes: dict[str, int] | None = None, off: str = "", form: str = "") -> None:
        self.sizes, self.off, self.form = sizes, off, form
        self.sorts: dict[str, Any] = {"Real": z3.RealSort(), "Bool": z3.BoolSort()}
        self.members: dict[str, list[Any]] = {"Real": [z3.RealVal(x) for x in range(NUMBERS)]}

    def sort(self, name: str) -> Any:
        if name not in self.sorts and self.sizes is None:
            self.sorts[name] = z3.DeclareSort(name)
        elif name not in self.sorts:
            World.made += 1  # a name is used once
            names = [f"{name}{World.made}_{i}" for i in range((self.sizes or {})[name])]
            self.sorts[name], self.members[name] = z3.EnumSort(f"{name}{World.made}", names)
        return self.sorts[name]

    made = 0

    def all_of(self, sort: str) -> list[Any]:
        self.sort(sort)
        return self.members[sort]

    def function(self, name: str, sorts: str) -> Callable[..., Any]:
        *given, result = map(self.sort, sorts.split())
        constant = z3.Const(name, result)
        return z3.Function(name, *given, result) if given else lambda: constant

    def every(self, sorts: str, body: Callable[..., Any]) -> Any:
        return self._quantified(z3.ForAll, And, sorts.split(), body)

    def some(self, sorts: str, body: Callable[..., Any]) -> Any:
        return self._quantified(z3.Exists, Or, sorts.split(), body)

    def _quantified(self, binder: Any, joined: Any, sorts: list[str], body: Callable[..., Any]) -> Any:
        if self.sizes is not None:
            return joined([body(*each) for each in itertools.product(*map(self.all_of, sorts))])
        names = [z3.Const(f"{sort[0].lower()}{i}", self.sort(sort)) for i, sort in enumerate(sorts)]
        return binder(names, body(*names))


class State:
    """Functions of the state by name, such as state.key(attempt, life)."""

    def __init__(self, parts: dict[str, Callable[..., Any]]) -> None:
        self.parts = parts

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self.parts[name]

    def but(self, changes: dict[str, Callable[..., Any]]) -> "State":
        return State({**self.parts, **changes})


class Put:
    """The function with another value at one place."""

    def __init__(self, function: Callable[..., Any], at: tuple[Any, ...], value: Any) -> None:
        self.function, self.at, self.value = function, at, value

    def __call__(self, *x: Any) -> Any:
        return If(And([a == b for a, b in zip(x, self.at)]), self.value, self.function(*x))


def put(function: Callable[..., Any], *at_and_value: Any) -> Callable[..., Any]:
    *at, value = at_and_value
    return Put(function, tuple(at), value)


def later(a: Any, b: Any) -> Any:
    return If(a > b, a, b)


def step(code: str, story: str, *, only: str = "", **params: str) -> Callable[..., Any]:
    """Marks a step: its rules and their places in the code, a sentence of a story, the form of the proof that has it, and the
    sorts of its parameters."""
    def mark(function: Any) -> Any:
        function.code, function.story = code, story
        function.only, function.params = only, params
        return function
    return mark


class Protocol:
    """What the proofs have in common. A rule that is out is named in world.off."""
    FIELDS: dict[str, str] = {}
    STEPS: list[Any] = []

    def __init__(self, world: World) -> None:
        self.world = world

    @classmethod
    def steps(cls, form: str) -> list[Any]:
        """The steps that this form of the proof has."""
        return [step for step in cls.STEPS if step.only in ("", form)]

    def axioms(self) -> list[Any]:
        raise NotImplementedError

    def first_state(self, s: State) -> Any:
        raise NotImplementedError

    def claims(self, s: State) -> dict[str, Any]:
        """The invariants of src/protocol.md."""
        raise NotImplementedError

    def invariants(self, s: State) -> dict[str, Any]:
        """These, and what else must hold for them to be inductive."""
        raise NotImplementedError

    def out(self, *names: str) -> bool:
        return any(name in names for name in self.world.off.split())

    def state(self, tag: str = "") -> State:
        return State({name: self.world.function(name + tag, sorts) for name, sorts in self.FIELDS.items()})


class Nodes(Protocol):
    """A node that loses its memory, restarts or is promoted begins a new *life*, with other ids (rule 4.1). All state of a
    node is that of a life; lives of one node are the *same*. A quorum is a set of answers, each from one life of its node.
    All that is assumed of two quorums: they have lives of the same node, for they are majorities, or all nodes."""
    # The life is the present one of its node; it began, when; its votes count.
    LIFE = {"present": "Life Bool", "used": "Life Bool", "born": "Life Real", "votes": "Life Bool"}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.same = world.function("same", "Life Life Bool")
        self.of = world.function("of", "Life Quorum Bool")
        self.longest = z3.Real("longest")  # the max lease, in true time at least
        self.first, self.second = (world.function(name, "Quorum Quorum Life") for name in ("first", "second"))

    def axioms(self) -> list[Any]:
        every, same = self.world.every, self.same
        return [every("Life Life", lambda a, b: And(same(a, a), same(a, b) == same(b, a))),
                every("Life Life Life", lambda a, b, c: Implies(And(same(a, b), same(b, c)), same(a, c)))]

    def meet(self, p: Any, q: Any) -> Any:
        """Two quorums share a node, of which these are lives."""
        return And(self.of(self.first(p, q), p), self.of(self.second(p, q), q),
                   self.same(self.first(p, q), self.second(p, q)))

    def before(self, s: State, a: Any, b: Any) -> Any:
        """Two lives of a node, in their order."""
        return And(self.same(a, b), s.used(a), s.used(b), s.born(a) < s.born(b))

    def first_lives(self, s: State) -> Any:
        """Each node was bootstrapped (rule 4.12), and is in its first life."""
        return And(self.world.every("Life", lambda a: And(
            s.used(a) == s.present(a), s.votes(a) == s.present(a), s.born(a) == 0)),
            self.world.every("Life Life", lambda a, b: Implies(And(s.present(a), s.present(b), self.same(a, b)), a == b)))

    def lives(self, s: State) -> dict[str, Any]:
        """Invariants of all lives."""
        every, same, before = self.world.every, self.same, self.before
        return {
            "the present life is the last": every("Life Life", lambda a, b: And(
                Implies(s.used(a), And(0 <= s.born(a), s.born(a) <= s.now())), Implies(s.present(a), s.used(a)),
                Implies(And(same(a, b), a != b, s.used(a), s.used(b)), And(
                    s.born(a) != s.born(b), Not(And(s.present(a), s.present(b))),
                    Implies(s.present(b), s.born(a) < s.born(b)))))),
            "a node that lost its memory votes after the longest lease": every("Life Life", lambda a, b: Implies(
                And(s.votes(b), before(s, a, b)), s.now() >= s.born(b) + self.longest))}

    def reborn(self, s: State, a: Any, b: Any, at: Any) -> tuple[Any, dict[str, Any]]:
        """The present life a ends, and b begins: when that may be, and what it changes."""
        return And(s.present(a), Not(s.used(b)), self.same(a, b), at > s.now()), {
            "now": lambda: at, "present": lambda c: And(c != a, Or(c == b, s.present(c))), "used": put(s.used, b, True),
            "born": put(s.born, b, at), "votes": put(s.votes, b, self.out("NO_GUARD"))}

    def trusted(self, s: State, a: Any) -> tuple[Any, dict[str, Any]]:
        """The quarantine is over (rule 4.2)."""
        over = Or(s.now() >= s.born(a) + self.longest, self.out("SHORT_QUARANTINE", "BOOTSTRAP_ANY"))
        return And(s.present(a), over), {"votes": put(s.votes, a, True)}
