# SPDX-License-Identifier: BSD-3-Clause
"""I1, I12 and I13 for proof.py: who may hold, and what nodes, clients and time may do to that."""
from typing import Any

from proof_terms import And, If, Implies, Nodes, Not, Or, State, World, later, put, step, z3

class Lock(Nodes):
    """Attempts that conflict never hold at once. What conflicts is left open: any two attempts (I1), two for one slot of
    a name with permits (I12: so there are no more holders than slots), or two of which one writes (I13).

    Time is true time. The owner counts a yes for at most worth(t) of it from its sending, and the node keeps the key for
    at least life(t) from its execution; that worth(t) <= life(t) is proved of the clocks below. No message is in order:
    a request is executed at any time after its sending, any number of times, or never; so is its answer read.

    Guard strict: what was sent to another life is refused (rule 4.10). quorlock(7) has all assumptions.
    """
    FIELDS = {
        "now": "Real",
        # Of an attempt: it began, when; it asks; it was granted once; it gave up, or was released; it holds, until when, on
        # which quorum.
        "begun": "Token Bool", "began": "Token Real", "asks": "Token Bool", "known": "Token Bool", "over": "Token Bool",
        "held": "Token Bool", "valid": "Token Real", "stands": "Token Quorum",
        # The life has the key, and certainly until then; there is a yes, which counts until then; a repair was sent there.
        "key": "Token Life Bool", "sure": "Token Life Real", "yes": "Token Life Bool", "ends": "Token Life Real",
        "repairs": "Token Life Bool",
        # Only for the invariants: the yes of the first attempt from before this life is worth nothing for a grant, while the
        # second is not over. For that one had this quorum when it asked to repair the life, with yeses from since then.
        "barred": "Token Token Life Bool", "bars": "Token Token Life Quorum", "since": "Token Token Life Real",
        "asked": "Token Token Life Real", **Nodes.LIFE}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.conflict = world.function("conflict", "Token Token Bool")
        self.worth, self.life = world.function("worth", "Token Real"), world.function("life", "Token Real")
        self.shortest = z3.Real("shortest")

    def axioms(self) -> list[Any]:
        w, conflict = self.world, self.conflict
        return super().axioms() + [
            w.every("Token Token", lambda t, u: And(Not(conflict(t, t)), conflict(t, u) == conflict(u, t))),
            self.shortest > 0,
            w.every("Token", lambda t: And(self.shortest <= self.worth(t),
                                           self.out("LONG_LEASE") or self.worth(t) <= self.longest,
                                           self.out("NO_ALLOWANCE") or self.worth(t) <= self.life(t)))]

    def counts(self, s: State, t: Any, a: Any) -> Any:
        return And(s.yes(t, a), s.now() < s.ends(t, a))

    def holds(self, s: State, t: Any) -> Any:
        return And(s.held(t), s.now() < s.valid(t))

    def fresh(self, s: State, t: Any, a: Any) -> Any:
        """Assumed of a grant: each yes was asked for within the shortest lease of any client. With equal leases it was."""
        return And(s.yes(t, a), s.now() < s.ends(t, a) - self.worth(t) + self.shortest)

    def first_state(self, s: State) -> Any:
        """Any number of attempts asks, and nobody has anything."""
        w = self.world
        return And(
            s.now() == 0,
            w.every("Token", lambda t: And(s.asks(t) == s.begun(t), s.began(t) == 0,
                                           Not(Or(s.known(t), s.over(t), s.held(t))))),
            w.every("Token Life", lambda t, a: Not(Or(s.key(t, a), s.yes(t, a), s.repairs(t, a)))),
            w.every("Token Token Life", lambda t, u, a: Not(s.barred(t, u, a))),
            self.first_lives(s))

    def claims(self, s: State) -> dict[str, Any]:
        return {"I1, I12, I13: two that conflict do not hold at once": self.world.every(
            "Token Token", lambda t, u: Not(And(self.holds(s, t), self.holds(s, u), self.conflict(t, u))))}

    def invariants(self, s: State) -> dict[str, Any]:
        every, same, conflict = self.world.every, self.same, self.conflict
        counts, holds, before = self.counts, self.holds, self.before

        def overtaken(t: Any, u: Any, a: Any, b: Any) -> Any:
            """u, whose yes of an earlier life of the node counts, is barred by t, which is in a later one."""
            return Implies(And(counts(s, u, a), before(s, a, b), conflict(t, u)),
                           Or(s.barred(u, t, b), s.over(t), s.over(u)))

        return {
            **self.claims(s),
            "an attempt has nothing before it begins": every(
                "Token Life", lambda t, a: Or(And(s.begun(t), s.began(t) <= s.now()), Not(Or(
                    s.begun(t), s.key(t, a), s.yes(t, a), s.repairs(t, a), s.asks(t), s.known(t), s.over(t))))),
            "it asks, holds, or is over": every("Token", lambda t: And(
                Implies(s.held(t), And(s.known(t), Not(s.asks(t)))), Implies(s.over(t), Not(Or(s.asks(t), s.held(t)))))),
            "a life has nothing before it begins": every("Token Life", lambda t, a: Or(
                s.used(a), Not(Or(s.present(a), s.key(t, a), s.yes(t, a), s.repairs(t, a))))),
            **self.lives(s),
            "keys at a node do not conflict": every("Token Token Life", lambda t, u, a: Not(And(
                s.present(a), s.key(t, a), s.key(u, a), conflict(t, u)))),
            "a yes counts from its sending": every("Token Life", lambda t, a: Implies(s.yes(t, a), And(
                s.ends(t, a) <= s.now() + self.worth(t), s.ends(t, a) >= s.began(t) + self.worth(t)))),
            "no life says yes after its end": every("Token Life Life", lambda t, a, b: Implies(
                And(s.yes(t, a), before(s, a, b)), s.ends(t, a) <= s.born(b) + self.worth(t))),
            "I5: while a yes counts the key stands, or the life ended": every("Token Life", lambda t, a: Implies(
                And(counts(s, t, a), s.present(a), Not(s.over(t))), And(s.key(t, a), s.sure(t, a) >= s.ends(t, a)))),
            "a life votes for one at a time": every("Token Token Life", lambda t, u, a: Implies(
                And(counts(s, t, a), counts(s, u, a), conflict(t, u)), Or(s.over(t), s.over(u)))),
            "a holder stands on a quorum": every("Token Life", lambda t, a: Implies(
                And(holds(s, t), self.of(a, s.stands(t))), And(s.yes(t, a), s.ends(t, a) >= s.valid(t)))),
            "a key bars those before the loss": every("Token Token Life Life", lambda t, u, a, b: Implies(
                And(s.present(b), s.key(t, b)), overtaken(t, u, a, b))),
            "so does a repair": every("Token Token Life Life", lambda t, u, a, b: Implies(
                s.repairs(t, b), overtaken(t, u, a, b))),
            "so does a yes": every("Token Token Life Life", lambda t, u, a, b: Implies(
                counts(s, t, b), overtaken(t, u, a, b))),
            "only who held repairs": every("Token Life", lambda t, a: Implies(s.repairs(t, a), And(
                s.known(t), Implies(s.asks(t), s.born(a) <= s.began(t))))),
            "who is barred began before": every("Token Token Life", lambda u, t, b: Implies(s.barred(u, t, b), And(
                s.begun(u), s.used(b), conflict(u, t), s.began(u) <= s.since(u, t, b),
                s.since(u, t, b) <= s.asked(u, t, b), s.asked(u, t, b) <= s.now()))),
            "who holds counts no yes that is barred": every("Token Token Life Life", lambda u, t, a, b: Implies(
                And(holds(s, u), counts(s, u, a), before(s, a, b), s.barred(u, t, b)), s.over(t))),
            "nor was granted in time": every("Token Token Life", lambda u, t, b: Implies(
                And(holds(s, u), s.barred(u, t, b), Not(s.over(t))), s.now() >= s.since(u, t, b) + self.shortest)),
            "what is barred is from before": every("Token Token Life Life", lambda u, t, a, b: Implies(
                And(s.barred(u, t, b), counts(s, u, a), before(s, a, b), Not(s.over(u))),
                s.ends(u, a) <= s.since(u, t, b) + self.worth(u))),
            "the quorum is one of answers": every("Token Token Life Life", lambda u, t, b, c: Implies(
                And(s.barred(u, t, b), self.of(c, s.bars(u, t, b))), s.used(c))),
            "nor gets a vote of that quorum in time": every("Token Token Life Life Life", lambda u, t, b, c, d: Implies(
                And(s.barred(u, t, b), Not(s.over(t)), Not(s.over(u)), s.now() < s.since(u, t, b) + self.shortest,
                    self.of(c, s.bars(u, t, b)), same(c, d)),
                And(Or(Not(And(counts(s, u, d), self.fresh(s, u, d))),
                       And(before(s, d, c), s.barred(u, t, c), s.asked(u, t, c) < s.asked(u, t, b))),
                    Implies(s.present(d), Or(
                        And(c == d, s.key(t, c), s.sure(t, c) >= s.since(u, t, b) + self.shortest),
                        And(before(s, c, d), Not(s.votes(d)), s.born(d) > s.since(u, t, b), Not(s.key(u, d)),
                            Not(s.repairs(u, d)))))))),
        }

    def free(self, s: State, t: Any, a: Any) -> Any:
        """The node's answer to SET NX (rule 8.1: a node with readers refuses a writer; rule 7.1: a permit is a slot)."""
        if self.out("COUNTED_PERMITS"):
            return z3.Sum([If(s.key(u, a), 1, 0) for u in self.world.members["Token"]]) < 2
        reads = self.world.function("reads", "Token Bool")
        return self.world.every("Token", lambda u: Not(And(
            s.key(u, a), self.conflict(u, t), Not(And(self.out("READERS_UNSEEN"), reads(u))))))

    def lifted(self, s: State, t: Any, a: Any) -> Any:
        """When the key certainly stands: an expiry is only moved to a later time (rule 3.3)."""
        until = z3.Real("shorter") if self.out("SHORTENS") else s.now() + self.life(t)
        return If(And(s.key(t, a), not self.out("SHORTENS")), later(s.sure(t, a), until), until)

    def voted(self, s: State, t: Any, a: Any, sent: Any, wanted: Any) -> dict[str, Any]:
        """A yes that counts from its sending (rule 1.3)."""
        until = sent + self.worth(t)
        until = If(s.yes(t, a), later(s.ends(t, a), until), until)
        return {"yes": put(s.yes, t, a, Or(wanted, s.yes(t, a))),
                "ends": put(s.ends, t, a, If(wanted, until, s.ends(t, a)))}

    @step("1.1 core/attempt.c:attempt_begin", "Attempt {t} begins.", t="Token")
    def begin(self, s: State, t: Any) -> Any:
        return Not(s.begun(t)), {"begun": put(s.begun, t, True), "asks": put(s.asks, t, True), "began": put(s.began, t, s.now())}

    @step("1.2 1.4 1.7 4.3 4.10 scripts/modules/locks.lua:take core/vote.c:vote_may_ask",
          "{a} executes the acquire of attempt {t}, sent at {sent}: yes.", t="Token", a="Life", sent="Real")
    def acquire(self, s: State, t: Any, a: Any, sent: Any) -> Any:
        old, fresh = And(s.born(a) > 0, sent < s.born(a)), sent >= s.born(a)
        asked_here = Or(s.votes(a), And(self.out("OLD_CONNECTIONS"), old),
                        And(self.out("QUARANTINED_VOTES", "GUARD_AT_CONNECT"), fresh))
        runs = Or(asked_here, self.out("LATE_SET"))
        guard = And(s.begun(t), s.present(a), runs, self.free(s, t, a), s.began(t) <= sent,
                    Or(sent <= s.now(), self.out("TIME_OF_ANSWER")))
        wanted = And(asked_here, Or(And(s.asks(t), Not(s.known(t))), s.held(t)))
        return guard, {"key": put(s.key, t, a, True), "sure": put(s.sure, t, a, self.lifted(s, t, a)),
                       **self.voted(s, t, a, sent, wanted)}

    @step("3.1 3.3 11.2 scripts/modules/locks.lua:prolong core/hold.c:hold_on_yes",
          "{a} extends the key of attempt {t}, asked at {sent}: yes.", t="Token", a="Life", sent="Real")
    def extend(self, s: State, t: Any, a: Any, sent: Any) -> Any:
        wanted = And(Or(And(s.asks(t), s.known(t)), s.held(t)), s.began(t) <= sent)
        guard = And(s.present(a), Or(s.key(t, a), self.out("EXTENDS_OTHERS")), sent <= s.now())
        return guard, {"sure": put(s.sure, t, a, self.lifted(s, t, a)), **self.voted(s, t, a, sent, wanted)}

    def quorum(self, s: State, t: Any, q: Any, until: Any) -> Any:
        """Each answer of the quorum counts until then (rule 1.3). Rule 1.6: it is one to this attempt."""
        def answered(a: Any) -> Any:
            good = And(s.yes(t, a), Or(s.ends(t, a) >= until, self.out("NO_SECOND_CHECK")))
            old = self.world.some("Token", lambda u: And(s.over(u), s.yes(u, a), s.ends(u, a) >= until)) \
                if self.out("OLD_VOTES") else False
            return Or(good, old)
        return And(s.now() < until, self.world.every("Life", lambda a: Implies(self.of(a, q), answered(a))))

    @step("1.4 1.5 11.2 core/attempt.c:attempt_judge core/core.c:still_good core/attempt.c:judge_adoption",
          "Attempt {t} has its quorum, and holds until {until}.", t="Token", q="Quorum", until="Real")
    def grant(self, s: State, t: Any, q: Any, until: Any) -> Any:
        w = self.world
        guard = [s.asks(t), self.quorum(s, t, q, until)]
        if not self.out("LONG_ATTEMPT"):
            guard.append(w.every("Life", lambda a: Implies(self.counts(s, t, a), self.fresh(s, t, a))))
        if w.sizes is None:
            def out_of_date(u: Any, a: Any, b: Any) -> Any:
                return And(self.counts(s, t, a), self.before(s, a, b), s.barred(t, u, b))
            # The axiom, of the quorums that matter here. And of finitely many barred lives one was barred first.
            one, other = w.function("one", "Token Life"), w.function("other", "Token Life")
            guard += [w.every("Token", lambda u: Implies(s.held(u), self.meet(q, s.stands(u)))),
                      w.every("Token Token Life", lambda u, v, b: Implies(s.barred(u, v, b), self.meet(q, s.bars(u, v, b)))),
                      w.every("Token Life Life", lambda u, a, b: Implies(out_of_date(u, a, b), And(
                          out_of_date(u, one(u), other(u)), s.asked(t, u, other(u)) <= s.asked(t, u, b))))]
        return And(guard), {"asks": put(s.asks, t, False), "held": put(s.held, t, True), "known": put(s.known, t, True),
                            "valid": put(s.valid, t, until), "stands": put(s.stands, t, q)}

    @step("3.2 3.4 core/hold.c:hold_judge core/hold.c:hold_check_lost",
          "Attempt {t} holds until {until}.", t="Token", q="Quorum", until="Real")
    def renew(self, s: State, t: Any, q: Any, until: Any) -> Any:
        enough = self.quorum(s, t, q, until)
        if self.out("ONE_YES_RENEWS"):
            enough = self.world.some("Life", lambda a: And(s.yes(t, a), s.ends(t, a) >= until))
        return And(self.holds(s, t), s.now() < until, enough), {"valid": put(s.valid, t, until), "stands": put(s.stands, t, q)}

    @step("3.8 3.10 4.1 core/hold.c:repair_missing",
          "Attempt {t} has a quorum of yeses from after the loss, and repairs {a}.", t="Token", a="Life", q="Quorum",
          at="Real")
    def ask_repair(self, s: State, t: Any, a: Any, q: Any, at: Any) -> Any:
        """The round of the yeses began after the guard of this life was read."""
        guard = And(self.holds(s, t), s.present(a), self.world.every("Life", lambda b: Implies(
            self.of(b, q), And(s.yes(t, b), s.ends(t, b) > s.born(a) + self.worth(t)))))
        if self.out("REPAIR_WITHOUT_QUORUM"):
            guard = And(self.holds(s, t), s.present(a))

        def bars(u: Any, v: Any, b: Any) -> Any:
            return And(v == t, b == a, self.conflict(u, t), s.begun(u), s.began(u) <= s.born(a), Not(s.barred(u, v, b)))

        return And(guard, at > s.now()), {
            "now": lambda: at, "repairs": put(s.repairs, t, a, True),
            "barred": lambda u, v, b: Or(s.barred(u, v, b), bars(u, v, b)),
            "bars": lambda u, v, b: If(bars(u, v, b), q, s.bars(u, v, b)),
            "since": lambda u, v, b: If(bars(u, v, b), s.born(a), s.since(u, v, b)),
            "asked": lambda u, v, b: If(bars(u, v, b), at, s.asked(u, v, b))}

    @step("3.8 3.9 scripts/modules/locks.lua:take", "{a} executes the repair of attempt {t}.", t="Token", a="Life")
    def repair(self, s: State, t: Any, a: Any) -> Any:
        free = Or(self.free(s, t, a), self.out("REPAIR_OVERWRITES"))

        def key(u: Any, b: Any) -> Any:
            taken = And(self.out("REPAIR_OVERWRITES"), b == a, self.conflict(u, t))
            return Or(And(u == t, b == a), And(s.key(u, b), Not(taken)))
        return And(s.repairs(t, a), s.present(a), free), {"key": key, "sure": put(s.sure, t, a, self.lifted(s, t, a))}

    @step("2.1 3.5 core/debt.c:debt_end_attempt", "Attempt {t} ends.", t="Token")
    def give_up(self, s: State, t: Any) -> Any:
        return s.begun(t), {"over": put(s.over, t, True), "asks": put(s.asks, t, False), "held": put(s.held, t, False)}

    @step("2.2 scripts/modules/locks.lua:give_back", "{a} executes a release by attempt {t}.", t="Token", a="Life")
    def release(self, s: State, t: Any, a: Any) -> Any:
        over = Or(s.over(t), And(self.out("SAME_TOKEN"), s.begun(t)))  # an earlier attempt with this token is over
        gone = put(s.key, t, a, False)
        if self.out("DELETES_OTHERS"):
            gone = lambda u, b: And(b != a, s.key(u, b))  # noqa: E731
        return And(over, s.present(a)), {"key": gone}

    @step("1.3 2.4 core/validity.c:validity_of_vote", "The key of attempt {t} expires at {a}.", t="Token", a="Life")
    def expire(self, s: State, t: Any, a: Any) -> Any:
        return And(s.key(t, a), s.now() >= s.sure(t, a)), {"key": put(s.key, t, a, False)}

    @step("11.1 core/core.c:detach", "Attempt {t} is detached.", t="Token")
    def detach(self, s: State, t: Any) -> Any:
        return s.held(t), {"held": put(s.held, t, False)}

    @step("11.2 11.4 core/vote.c:send_adoption core/core.c:core_has_token", "Attempt {t} is to be adopted.", t="Token")
    def adopt(self, s: State, t: Any) -> Any:
        """Answers to the owner before do not count for the new one. That one does not hold any more (assumed)."""
        free = And(s.known(t), Not(s.held(t)), Not(s.asks(t)), Or(Not(s.over(t)), self.out("ADOPTS_RELEASED")))
        return free, {"asks": put(s.asks, t, True), "began": put(s.began, t, s.now()), "over": put(s.over, t, False),
                      "yes": lambda u, a: And(u != t, s.yes(u, a)), "barred": lambda u, v, b: And(u != t, s.barred(u, v, b))}

    @step("4.1 4.2 scripts/guard.lua", "The node of {a} loses its memory at {at}, and is {b} then.",
          a="Life", b="Life", at="Real")
    def lose(self, s: State, a: Any, b: Any, at: Any) -> Any:
        """Or restarts, or is promoted: any of its keys may be left."""
        kept, out = self.world.function("kept", "Token Bool"), self.out("RUN_ID_ONLY")
        guard, changes = self.reborn(s, a, b, at)
        if out:
            b, changes = a, {}
        return guard, {
            **changes, "key": lambda t, c: If(c == b, And(kept(t), s.key(t, a)), s.key(t, c)),
            "sure": lambda t, c: If(c == b, s.sure(t, a), s.sure(t, c)),
            "barred": lambda u, t, c: If(c == b, And(kept(t), s.key(t, a), s.barred(u, t, a)), s.barred(u, t, c)),
            "bars": lambda u, t, c: If(c == b, s.bars(u, t, a), s.bars(u, t, c)),
            "since": lambda u, t, c: If(c == b, s.since(u, t, a), s.since(u, t, c)),
            "asked": lambda u, t, c: If(c == b, s.asked(u, t, a), s.asked(u, t, c))}

    @step("4.2 4.4 redis/node_guard.c:node_guard_on_due", "The quarantine of {a} is over.", a="Life")
    def trust(self, s: State, a: Any) -> Any:
        return self.trusted(s, a)

    @step("", "Time goes on until {to}.", to="Real")
    def wait(self, s: State, to: Any) -> Any:
        return to >= s.now(), {"now": lambda: to}

    STEPS = [begin, acquire, extend, grant, renew, ask_repair, repair, give_up, release, expire, detach, adopt, lose, trust,
             wait]
