# SPDX-License-Identifier: BSD-3-Clause
"""I14 for proof.py: a key of an attempt that ended stays only while its release is owed."""
from typing import Any

from proof_terms import And, If, Implies, Not, Or, Protocol, State, put, step, z3


class Debts(Protocol):
    """One attempt at one node is a Pair; pairs do not touch each other. A connection keeps its order (TCP), so a release
    comes behind the requests before it. A request whose connection ended is executed at most once, within T_late, or
    never. A key stays for at most a lease after its request was executed."""
    FIELDS = {
        "now": "Real", "over": "Pair Bool", "key": "Pair Bool", "dies": "Pair Real",
        # A request that may set the key (an acquire, or a repair) waits on the connection; it has no answer yet.
        "queued": "Pair Bool", "open": "Pair Bool", "repaired": "Pair Bool",
        # An acquire, a repair, may come late, until then. The client knows that one may.
        "late": "Pair Bool", "late_repair": "Pair Bool", "until": "Pair Real", "unsure": "Pair Bool",
        # The release is owed; it waits on the connection; it was executed and its answer is under way; it found the key; it
        # was sent when nothing could be late any more.
        "owed": "Pair Bool", "sent": "Pair Bool", "done": "Pair Bool", "found": "Pair Bool", "last": "Pair Bool"}

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.lease, self.t_late = z3.Real("lease"), z3.Real("t_late")

    def axioms(self) -> list[Any]:
        return [self.lease > 0, self.t_late > 0]

    def first_state(self, s: State) -> Any:
        return And(s.now() == 0, self.world.every("Pair", lambda p: And(s.until(p) == 0, Not(Or(
            [s.parts[name](p) for name, sorts in self.FIELDS.items() if sorts == "Pair Bool"])))))

    def claims(self, s: State) -> dict[str, Any]:
        return {"I14: a key of an ended attempt stays only while its release is owed": self.world.every(
            "Pair", lambda p: Implies(And(s.over(p), s.key(p)), s.owed(p)))}

    def invariants(self, s: State) -> dict[str, Any]:
        every = self.world.every
        return {
            **self.claims(s),
            "so does a request that may set it": every("Pair", lambda p: Implies(And(s.over(p), Or(
                s.queued(p), s.open(p), And(s.now() <= s.until(p), Or(s.late(p), s.late_repair(p))))), s.owed(p))),
            "what waits has no answer": every("Pair", lambda p: Implies(s.queued(p), s.open(p))),
            "the client knows what may be late": every("Pair", lambda p: And(
                Implies(Or(s.late(p), s.late_repair(p)), s.unsure(p)), s.until(p) <= s.now() + self.t_late)),
            "and what it repaired": every("Pair", lambda p: Implies(s.late_repair(p), s.repaired(p))),
            "one acquire": every("Pair", lambda p: Or(s.repaired(p), And(
                Implies(s.late(p), Not(Or(s.key(p), s.found(p), s.open(p)))),
                Implies(s.queued(p), Not(Or(s.key(p), s.found(p), s.late(p))))))),
            "a release is behind what it releases": every("Pair", lambda p: And(
                Implies(Or(s.sent(p), s.done(p)), And(s.over(p), s.owed(p))),
                Implies(And(s.last(p), Or(s.sent(p), s.done(p))), s.now() > s.until(p)),
                Implies(And(s.last(p), s.done(p)), Not(s.key(p))),
                Implies(s.done(p), Not(Or(s.open(p), s.sent(p)))),
                Implies(And(s.done(p), s.key(p)), s.unsure(p)),
                Implies(And(s.done(p), s.found(p), s.key(p)), s.repaired(p)))),
            "a key ends with its lease": every("Pair", lambda p: Implies(s.key(p), s.dies(p) <= s.now() + self.lease)),
        }

    @step("1.2 3.8 core/vote.c:send_acquire core/hold.c:send_repair",
          "A request that sets the key of {p} is sent (a repair: {repairs}).", p="Pair", repairs="Bool")
    def ask(self, s: State, p: Any, repairs: Any) -> Any:
        """An acquire is sent once. A repair follows the answer that the key is missing, so no request waits before it."""
        fresh = Not(Or(s.open(p), s.key(p), s.late(p), s.unsure(p), s.found(p)))
        return And(Not(s.over(p)), Not(s.open(p)), Or(repairs, s.repaired(p), fresh)), {
            "queued": put(s.queued, p, True), "open": put(s.open, p, True),
            "repaired": put(s.repaired, p, Or(repairs, s.repaired(p)))}

    @step("5.1 scripts/modules/locks.lua:take", "It is executed for {p}: the key stands.", p="Pair")
    def sets(self, s: State, p: Any) -> Any:
        return s.queued(p), {"queued": put(s.queued, p, False), "key": put(s.key, p, True),
                             "dies": put(s.dies, p, s.now() + self.lease)}

    @step("2.6 core/debt.c:debt_on_set_answered", "Its answer for {p} is read.", p="Pair")
    def answer(self, s: State, p: Any) -> Any:
        return And(s.open(p), Not(s.queued(p))), {"open": put(s.open, p, False)}

    @step("2.1 2.4 core/debt.c:owe", "The attempt of {p} ends, and its release is owed.", p="Pair")
    def give_up(self, s: State, p: Any) -> Any:
        return Not(s.over(p)), {"over": put(s.over, p, True), "owed": put(s.owed, p, not self.out("NO_RELEASE"))}

    @step("2.3 2.4 core/debt.c:send_release core/debt.c:debt_pay lock/late.c:pay", "The release for {p} is sent.", p="Pair")
    def send(self, s: State, p: Any) -> Any:
        return And(s.over(p), s.owed(p), Not(s.sent(p)), Not(s.done(p))), {
            "sent": put(s.sent, p, True), "last": put(s.last, p, And(Not(s.open(p)), s.now() > s.until(p)))}

    @step("2.2 scripts/modules/locks.lua:give_back", "The release is executed for {p}.", p="Pair")
    def release(self, s: State, p: Any) -> Any:
        """Behind the requests that were sent before it; later ones are not sent."""
        return And(s.sent(p), Not(s.queued(p))), {
            "sent": put(s.sent, p, False), "done": put(s.done, p, True), "found": put(s.found, p, s.key(p)),
            "key": put(s.key, p, False), "open": put(s.open, p, False)}

    @step("2.6 2.7 core/debt.c:deleted core/debt.c:absent lock/late.c:late_on_reply",
          "The answer to the release for {p} is read.", p="Pair")
    def paid(self, s: State, p: Any) -> Any:
        stays = And(s.unsure(p), Not(s.last(p)), If(
            s.found(p), And(s.repaired(p), not self.out("FOUND_ENDS")), not self.out("FOUND_NOTHING_ENDS")))
        return s.done(p), {"done": put(s.done, p, False), "owed": put(s.owed, p, stays)}

    @step("2.5 2.6 core/debt.c:debt_on_connection_ended redis/link/link.c:link_hang_up",
          "The connection of {p} ends; its request is still under way: {left}.", p="Pair", left="Bool")
    def cut(self, s: State, p: Any, left: Any) -> Any:
        """A reset ends what the kernel has (rule 2.5); what has left already is executed within T_late."""
        left = And(left, s.queued(p))
        until = If(s.open(p), s.now() + self.t_late, s.until(p))
        lost = And(self.out("NO_DEBTS"), Or(s.sent(p), s.done(p)))
        return True, {
            "queued": put(s.queued, p, False), "open": put(s.open, p, False), "sent": put(s.sent, p, False),
            "done": put(s.done, p, False), "unsure": put(s.unsure, p, Or(s.open(p), s.unsure(p))),
            "until": put(s.until, p, until),
            "late": put(s.late, p, Or(s.late(p), And(left, Not(s.repaired(p))))),
            "late_repair": put(s.late_repair, p, Or(s.late_repair(p), And(left, s.repaired(p)))),
            "owed": put(s.owed, p, And(s.owed(p), Not(lost)))}

    @step("2.6 core/debt.c:debt_on_connection_ended", "A late request is executed for {p}: the key stands.", p="Pair")
    def comes(self, s: State, p: Any) -> Any:
        in_time = Or(s.now() <= s.until(p), self.out("CLOSED_IN_ORDER"))
        return And(in_time, Or(s.late(p), s.late_repair(p))), {
            "late": put(s.late, p, And(s.late(p), s.late_repair(p))), "key": put(s.key, p, True),
            "dies": put(s.dies, p, s.now() + self.lease)}

    @step("2.4 core/validity.c:validity_debt_until", "The key of {p} expires.", p="Pair")
    def expire(self, s: State, p: Any) -> Any:
        return s.key(p), {"key": put(s.key, p, False)}

    @step("2.4 2.6 core/debt.c:debt_ended", "Nothing of {p} can be left: its release is not owed any more.", p="Pair")
    def forget(self, s: State, p: Any) -> Any:
        """One lease after the last request that may have set the key."""
        gone = And(Not(s.open(p)), s.now() > s.until(p), Or(Not(s.key(p)), s.now() > s.dies(p)))
        return gone, {"owed": put(s.owed, p, False), "key": put(s.key, p, False), "sent": put(s.sent, p, False),
                      "done": put(s.done, p, False)}

    @step("", "Time goes on until {to}.", to="Real")
    def wait(self, s: State, to: Any) -> Any:
        return to >= s.now(), {"now": lambda: to}

    STEPS = [ask, sets, answer, give_up, send, release, paid, cut, comes, expire, forget, wait]
