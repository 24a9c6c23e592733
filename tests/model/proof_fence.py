# SPDX-License-Identifier: BSD-3-Clause
"""I2, I3 and I4 for proof.py: fencing tokens, with counters that are kept, or lost and lifted by the floor."""
from typing import Any

from proof_terms import And, If, Implies, Nodes, Not, Or, State, World, later, put, step, z3


class Fence(Nodes):
    """Tokens of grants. A key may end at any time, so no clock matters while counters are kept (form "kept").

    In form "lost" a node may lose its counters and its keys, and begins a new life as in proof_lock.py. Then wall clocks
    are right to within `wrong`, twice of which is less than the longest lease less a node timeout: by so much a floor may
    be older than the readiness of its node (rule 5.5). A node grants at most once a microsecond, so that no counter runs
    ahead of the clock. Times and counters are in microseconds.
    """
    FIELDS = {
        "now": "Real", "begun": "Token Bool", "granted": "Token Bool", "token": "Token Real", "stands": "Token Quorum",
        "key": "Token Life Bool", "counter": "Life Real",
        # The node showed the attempt this number, with its yes or when it was asked to raise its counter.
        "shows": "Token Life Real Bool",
        # Only for the invariants: the first was granted before the second began; it had the node before the second.
        "earlier": "Token Token Bool", "had": "Token Life Bool", "ahead": "Token Token Life Bool", **Nodes.LIFE}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.wrong, self.timeout = z3.Real("wrong"), z3.Real("timeout")
        self.loses = world.form == "lost"

    def axioms(self) -> list[Any]:
        return super().axioms() + [
            self.wrong >= 0, self.timeout >= 0,
            Or(2 * self.wrong < self.longest - self.timeout, self.out("WRONG_CLOCKS"))]

    def first_state(self, s: State) -> Any:
        w = self.world
        return And(
            s.now() == 0, w.every("Token", lambda t: Not(s.granted(t))),
            w.every("Token Life", lambda t, a: Not(Or(s.key(t, a), s.had(t, a)))),
            w.every("Token Life Real", lambda t, a, x: Not(s.shows(t, a, x))),
            w.every("Token Token", lambda t, u: Not(s.earlier(t, u))),
            w.every("Token Token Life", lambda t, u, a: Not(s.ahead(t, u, a))),
            w.every("Life", lambda a: And(s.counter(a) >= 0, s.counter(a) <= self.wrong)), self.first_lives(s))

    def claims(self, s: State) -> dict[str, Any]:
        every = self.world.every

        def both(t: Any, u: Any, a: Any) -> Any:
            return And(s.granted(t), s.granted(u), self.of(a, s.stands(t)), self.of(a, s.stands(u)))

        return {
            "I2: no two grants have one token": every("Token Token", lambda t, u: Implies(
                And(s.granted(t), s.granted(u), t != u), s.token(t) != s.token(u))),
            "I3: tokens rise in time": every("Token Token", lambda t, u: Implies(
                And(s.earlier(t, u), s.granted(u)), s.token(t) < s.token(u))),
            "I4: they rise in a node's order of grants": every("Token Token Life", lambda t, u, a: Implies(
                And(both(t, u, a), s.ahead(t, u, a), Not(s.ahead(u, t, a))), s.token(t) < s.token(u)))}

    def invariants(self, s: State) -> dict[str, Any]:
        every, before = self.world.every, self.before

        result = {
            **self.claims(s),
            **self.lives(s),
            "there is one life while nothing is lost": every("Life Life", lambda a, b: Or(self.loses, Not(before(s, a, b)))),
            "of two that had a node, one was ahead": every("Token Token Life", lambda t, u, a: And(
                Implies(And(s.had(t, a), s.had(u, a), t != u), Or(s.ahead(t, u, a), s.ahead(u, t, a))),
                Implies(s.ahead(t, u, a), And(s.had(t, a), s.had(u, a), t != u)))),
            "nothing before it begins": every("Token Token", lambda t, u: And(
                Or(s.begun(t), Not(s.granted(t))), Implies(s.earlier(t, u), And(s.granted(t), s.begun(u))))),
            "nothing shown before it begins": every("Token Life Real", lambda t, a, x: Implies(
                s.shows(t, a, x), And(s.begun(t), s.used(a), s.had(t, a)))),
            "no key before it begins": every("Token Life", lambda t, a: Implies(
                Or(s.key(t, a), s.had(t, a)), And(s.begun(t), s.used(a), Or(s.had(t, a), s.granted(t))))),
            "one key at a node": every("Token Token Life", lambda t, u, a: Implies(
                And(s.present(a), s.key(t, a), s.key(u, a)), t == u)),
            "a counter is no less than what it showed": every("Token Life Real", lambda t, a, x: Implies(
                s.shows(t, a, x), x <= s.counter(a))),
            "a node shows a number to one attempt": every("Token Token Life Real", lambda t, u, a, x: Implies(
                And(s.shows(t, a, x), s.shows(u, a, x)), t == u)),
            "who has the key was shown more than others": every("Token Token Life Real", lambda t, u, a, y: Implies(
                And(s.present(a), s.key(t, a), Not(s.granted(t)), s.shows(u, a, y), u != t), y < s.counter(a))),
            "a grant was shown its token by a quorum": every("Token Life", lambda t, a: Implies(
                And(s.granted(t), self.of(a, s.stands(t))), s.shows(t, a, s.token(t)))),
            "later attempts are shown more": every("Token Token Life Real", lambda t, u, a, y: Implies(
                And(s.earlier(t, u), s.shows(u, a, y), self.of(a, s.stands(t))), s.token(t) < y)),
            "so are those behind at a node": every("Token Token Life Real Real", lambda t, u, a, x, y: Implies(
                And(s.ahead(t, u, a), Not(s.ahead(u, t, a)), s.shows(t, a, x), s.shows(u, a, y)), x < y)),
            "who is behind has the key last": every("Token Token Life", lambda t, u, a: Implies(
                And(s.present(a), s.ahead(t, u, a)), Or(s.ahead(u, t, a), Not(s.key(t, a)), s.granted(t)))),
        }
        if self.loses:
            result |= {
                "no counter is ahead of all clocks": every("Life", lambda a: Implies(
                    s.used(a), s.counter(a) <= s.now() + self.wrong)),
                "nor is a token": every("Token", lambda t: Implies(s.granted(t), s.token(t) <= s.now() + self.wrong)),
                "no life shows anything after its end": every("Token Life Life Real", lambda t, a, b, x: Implies(
                    And(s.shows(t, a, x), before(s, a, b)), x <= s.born(b) + self.wrong)),
                "the next life shows more": every("Token Life Life Real", lambda t, a, b, x: Implies(
                    And(s.shows(t, b, x), before(s, a, b)), x > s.born(b) + self.wrong)),
                "its counter is as high": every("Token Life Life", lambda t, a, b: Implies(
                    And(s.present(b), s.key(t, b), Not(s.granted(t)), before(s, a, b)),
                    And(s.votes(b), s.counter(b) > s.born(b) + self.wrong))),
                "later attempts are shown nothing by a life before": every("Token Token Life Life Real Real",
                    lambda t, u, a, b, x, y: Implies(And(s.earlier(t, u), s.shows(u, a, y), s.shows(t, b, x)),
                                                     Not(before(s, a, b)))),
            }
        return result

    @step("1.1 core/attempt.c:attempt_begin core/fence.c:fence_begin", "Attempt {t} begins.", t="Token")
    def begin(self, s: State, t: Any) -> Any:
        return Not(s.begun(t)), {"begun": put(s.begun, t, True),
                                 "earlier": lambda u, v: Or(s.earlier(u, v), And(v == t, s.granted(u)))}

    @step("5.1 5.4 scripts/modules/fence.lua:fence_next scripts/modules/locks.lua:take",
          "{a} gives its key to attempt {t} and shows {number}.", t="Token", a="Life", number="Real", read="Real")
    def acquire(self, s: State, t: Any, a: Any, number: Any, read: Any) -> Any:
        """The floor was read at `read`, at most a node timeout before the node's votes counted."""
        w = self.world
        guard = And(s.begun(t), s.present(a), s.votes(a), number > s.counter(a),
                    w.every("Token", lambda u: Implies(s.key(u, a), u == t)))
        if self.loses:
            aged = Or(s.born(a) == 0, read >= s.born(a) + self.longest - self.timeout)
            guard = And(guard, read <= s.now(), Or(aged, self.out("OLD_FLOOR")),
                        Or(number >= read - self.wrong, self.out("NO_FLOOR")),
                        Or(number <= s.counter(a) + 1, number <= s.now() + self.wrong))
        else:
            guard = And(guard, read == 0)
        return guard, {"key": put(s.key, t, a, True), "counter": put(s.counter, a, number),
                       "shows": lambda u, b, x: Or(s.shows(u, b, x), And(u == t, b == a, x == number, Not(s.granted(t)))),
                       "had": put(s.had, t, a, True), "now": lambda: s.now() + 1,
                       "ahead": lambda u, v, b: Or(s.ahead(u, v, b), And(v == t, b == a, u != t, s.had(u, a)))}

    @step("5.3 core/fence.c:ask_to_raise scripts/modules/fence.lua:fence_raise",
          "{a} is asked by attempt {t} to raise its counter to {number}, which {b} showed.",
          t="Token", a="Life", b="Life", number="Real")
    def raises(self, s: State, t: Any, a: Any, b: Any, number: Any) -> Any:
        """The request may be late, and be executed again."""
        anyhow = self.out("RAISE_WRITES_ANY")
        has_key = Or(s.key(t, a), self.out("RAISE_UNOWNED"))
        shown = If(Or(anyhow, s.counter(a) <= number), number, s.counter(a))
        return And(s.begun(t), s.present(a), has_key, s.shows(t, b, number)), {
            "counter": put(s.counter, a, shown),
            "shows": lambda u, c, x: Or(s.shows(u, c, x), And(u == t, c == a, x == shown, Not(s.granted(t))))}

    @step("5.2 core/fence.c:fence_judge", "Attempt {t} is granted with token {number}.", t="Token", q="Quorum", number="Real")
    def grant(self, s: State, t: Any, q: Any, number: Any) -> Any:
        def shown(a: Any) -> Any:
            if self.out("NO_RAISE"):
                return self.world.some("Real", lambda x: And(s.shows(t, a, x), x <= number))
            return s.shows(t, a, number)
        guard = [s.begun(t), Not(s.granted(t)), self.world.every("Life", lambda a: Implies(self.of(a, q), shown(a)))]
        if self.world.sizes is None:
            guard += [self.meet(q, q), self.world.every("Token", lambda u: self.meet(q, s.stands(u)))]
        return And(guard), {"granted": put(s.granted, t, True), "token": put(s.token, t, number), "stands": put(s.stands, t, q)}

    @step("5.6 3.8 scripts/modules/fence.lua:fence_carry", "{a} gets the token of attempt {t}, and its key if {keeps}.",
          t="Token", a="Life", keeps="Bool")
    def carry(self, s: State, t: Any, a: Any, keeps: Any) -> Any:
        """A renewal or a release; or a repair, which sets the key and does not count up."""
        free = self.world.every("Token", lambda u: Implies(s.key(u, a), u == t))
        return And(s.granted(t), s.present(a), Implies(keeps, free)), {
            "counter": put(s.counter, a, later(s.counter(a), s.token(t))), "key": put(s.key, t, a, keeps)}

    @step("2.4 core/validity.c:validity_of_vote", "The key of attempt {t} is gone at {a}.", t="Token", a="Life")
    def expire(self, s: State, t: Any, a: Any) -> Any:
        return s.key(t, a), {"key": put(s.key, t, a, False)}

    @step("4.1 scripts/guard.lua", "The node of {a} loses its memory at {at}, and is {b} then.", only="lost",
          a="Life", b="Life", at="Real", rest="Real")
    def lose(self, s: State, a: Any, b: Any, at: Any, rest: Any) -> Any:
        """A replica that is promoted may have an older counter."""
        guard, changes = self.reborn(s, a, b, at)
        return And(guard, 0 <= rest, rest <= s.counter(a)), {**changes, "counter": put(s.counter, b, rest)}

    @step("4.2 4.4 redis/node_guard.c:node_guard_on_due", "The quarantine of {a} is over.", only="lost", a="Life")
    def trust(self, s: State, a: Any) -> Any:
        return self.trusted(s, a)

    @step("", "Time goes on until {to}.", to="Real")
    def wait(self, s: State, to: Any) -> Any:
        return to >= s.now(), {"now": lambda: to}

    STEPS = [begin, acquire, raises, grant, carry, expire, lose, trust, wait]
