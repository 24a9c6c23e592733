#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Proves rules of src/protocol.md for any number of nodes, attempts, quorums and steps, with the solver z3.

A state is a set of relations over attempts, nodes and quorums of any number. A step changes them as rules say. An invariant
is proved if it holds in the first state, and if each step leads from any state where it holds to a state where it holds.
For each step z3 is asked for a counterexample to that: "unsat" is the proof.

So that no proof is empty, a switch takes out one rule. Then z3 must find a story, from the first state of a small world,
at whose end the invariant is violated. Other stories must be possible with all rules: a grant, a loss, a takeover."""
import argparse
import os
import re
import resource
import sys
from pathlib import Path
from typing import Any, Callable, Type

from proof_terms import And, Not, Protocol, State, World, z3
from proof_debts import Debts
from proof_fence import Fence
from proof_lock import Lock

ROOT = Path(__file__).resolve().parents[2]
QUERY_S = 900  # one takes some seconds at most; the machine may be busy
NODES = 3      # of the worlds of stories

PROOFS: list[tuple[str, Type[Protocol], str]] = [
    ("I1, I12, I13", Lock, ""), ("I2, I3, I4 while counters are kept", Fence, "kept"),
    ("I2, I3, I4 after counters were lost", Fence, "lost"), ("I14", Debts, "")]

HELD = "acquire acquire grant"
LOST = f"{HELD} begin lose acquire acquire grant"
# The switch, the rule that it takes out, what is violated then, the proof, the world, and the steps of a story. Between
# two steps time may go on. A world has three nodes and their majorities, and two attempts; in "half" and "other" one node
# is a quorum, too; "one" has one node; "three" has three attempts.
SWITCHES = [
    ("SAME_TOKEN", "1.1", "I1", Lock, "", f"{HELD} release begin acquire acquire grant"),
    ("TIME_OF_ANSWER", "1.2", "I1", Lock, "", f"{HELD} expire begin acquire acquire grant"),
    ("NO_ALLOWANCE", "1.3", "I1", Lock, "", f"{HELD} expire begin acquire acquire grant"),
    ("HALF_QUORUM", "1.4", "I1", Lock, "half", "acquire grant acquire grant"),
    ("HALF_QUORUM", "1.4", "I2", Fence, "half", "acquire grant acquire grant"),
    ("NO_SECOND_CHECK", "1.5", "I1", Lock, "", f"{HELD} expire begin acquire acquire grant"),
    ("OLD_VOTES", "1.6", "I1", Lock, "one", "acquire give_up begin grant release begin acquire grant"),
    ("OLD_CONNECTIONS", "1.7", "I1", Lock, "", f"{HELD} lose acquire acquire grant"),
    ("NO_RELEASE", "2.1", "I14", Debts, "", "ask sets answer give_up"),
    ("DELETES_OTHERS", "2.2", "I1", Lock, "three", f"{HELD} give_up release acquire acquire grant"),
    ("NO_DEBTS", "2.4", "I14", Debts, "", "ask sets give_up send cut"),
    ("CLOSED_IN_ORDER", "2.5", "I14", Debts, "", "ask cut give_up send release paid comes"),
    ("FOUND_NOTHING_ENDS", "2.6", "I14", Debts, "", "ask cut give_up send release paid comes"),
    ("FOUND_ENDS", "2.7", "I14", Debts, "", "ask cut ask cut give_up send comes release paid comes"),
    ("EXTENDS_OTHERS", "3.1", "I1", Lock, "one", "acquire grant lose extend renew trust begin acquire grant"),
    ("ONE_YES_RENEWS", "3.2", "I1", Lock, "", f"{HELD} extend renew expire begin acquire acquire grant"),
    ("SHORTENS", "3.3", "I1", Lock, "", f"{HELD} extend expire acquire acquire grant"),
    ("NO_GUARD", "4.1", "I1", Lock, "", LOST),
    ("RUN_ID_ONLY", "4.1", "I1", Lock, "", LOST),
    ("SHORT_QUARANTINE", "4.2", "I1", Lock, "", f"{HELD} lose trust acquire acquire grant"),
    ("QUARANTINED_VOTES", "4.3", "I1", Lock, "", LOST),
    ("OTHER_N", "4.5", "I1", Lock, "other", "acquire acquire grant acquire grant"),
    ("LONG_LEASE", "4.6", "I1", Lock, "", f"{HELD} lose trust begin acquire acquire grant"),
    ("SERVER_TWICE", "4.8", "I1", Lock, "other", "acquire acquire grant acquire grant"),
    ("GUARD_AT_CONNECT", "4.10", "I1", Lock, "", LOST),
    ("BOOTSTRAP_ANY", "4.12", "I1", Lock, "", f"{HELD} lose trust acquire acquire grant"),
    ("NO_RAISE", "5.2", "I2", Fence, "kept", f"{HELD} expire acquire acquire grant"),
    ("RAISE_UNOWNED", "5.3", "I2", Fence, "kept", "acquire acquire expire acquire raises grant acquire grant"),
    ("RAISE_WRITES_ANY", "5.3", "I2", Fence, "kept", f"{HELD} expire acquire acquire raises grant"),
    ("NO_FLOOR", "5.4", "I3", Fence, "lost one", "acquire grant lose trust begin acquire grant"),
    ("COUNTED_PERMITS", "7.1", "I12", Lock, "permits", f"{HELD} {HELD} {HELD}"),
    ("READERS_UNSEEN", "8.1", "I13", Lock, "shared", f"{HELD} {HELD}"),
    # What is assumed: see quorlock(7).
    ("LATE_SET", "4.10", "I1", Lock, "", f"{HELD} begin acquire lose acquire extend renew expire acquire grant"),
    ("LONG_ATTEMPT", "1.3", "I1", Lock, "",
     f"{HELD} acquire lose extend extend ask_repair repair extend renew expire acquire grant"),
    ("WRONG_CLOCKS", "5.4", "I3", Fence, "lost one", "acquire grant lose trust begin acquire grant"),
]
# Switches of tests/model/run that this proof does not need.
OUTSIDE = {
    "LATE_RENEWAL": "I6; a renewal after the end with a quorum of keys is like an adoption, which keeps I1",
    "LOST_AFTER_RELEASE": "I6: what the owner is told is not in the proof",
    "BY_SECOND_ID": "what a server shows of its role is not in the proof: a new life is one that the guard notices"}
# Errors in a step, each of which must end its proof: the rule, and the proof.
ERRORS = [("REPAIR_OVERWRITES", "3.8", Lock, ""), ("REPAIR_WITHOUT_QUORUM", "3.8", Lock, ""),
          ("ADOPTS_RELEASED", "11.4", Lock, ""), ("OLD_FLOOR", "5.5", Fence, "lost")]


def both_known(lock: Any, s: State) -> Any:
    return lock.world.some("Token Token", lambda t, u: And(s.known(t), s.known(u), lock.conflict(t, u)))


def two_hold(lock: Any, s: State) -> Any:
    return lock.world.some("Token Token", lambda t, u: And(t != u, lock.holds(s, t), lock.holds(s, u)))


def one_holds(lock: Any, s: State) -> Any:
    return lock.world.some("Token", lambda t: lock.holds(s, t))


def two_granted(fence: Any, s: State) -> Any:
    return fence.world.some("Token Token", lambda t, u: And(s.earlier(t, u), s.granted(u)))


def all_paid(debts: Any, s: State) -> Any:
    return debts.world.every("Pair", lambda p: And(s.over(p), Not(s.key(p)), Not(s.owed(p))))


POSSIBLE: list[tuple[str, Type[Protocol], str, str, Callable[..., Any]]] = [
    ("takeover", Lock, "", f"{HELD} give_up release release begin acquire acquire grant", both_known),
    ("takeover after a loss", Lock, "", f"{HELD} lose trust begin acquire acquire grant", both_known),
    ("repair", Lock, "", f"{HELD} lose extend extend ask_repair repair extend renew", one_holds),
    ("adoption", Lock, "", f"{HELD} detach adopt extend extend grant", one_holds),
    ("permits", Lock, "permits", f"{HELD} {HELD}", two_hold),
    ("readers", Lock, "shared", f"{HELD} {HELD}", two_hold),
    ("raise", Fence, "kept", "acquire acquire raises grant expire expire begin acquire acquire grant", two_granted),
    ("loss of counters", Fence, "lost one", "acquire grant lose trust begin acquire grant", two_granted),
    ("late key", Debts, "", "ask cut give_up send release paid comes send release paid", all_paid)]


# ---- the proofs ----


def clocks() -> bool:
    """Proves worth <= life and worth <= longest of proof_lock.py, of clocks at constant rates against true time.

    The allowance says how far a node's clock and the client's drift apart in a lease, or in the max lease. Rule 1.3 counts
    a yes for the lease less the allowance by the client's clock. A quarantine lasts the max lease by the node's clock."""
    lease, most, share, fixed, client, node, other = z3.Reals("lease most share fixed client node other")
    facts = [0 < lease, lease <= most, 0 <= share, share < 1, fixed >= 0, client > 0, node > 0, other > 0]
    # While a node's clock goes on by x, the client's goes on by x * client / node, which is at least x less the allowance.
    facts += [x * client >= (x - share * x - fixed) * rate for x in (lease, most) for rate in (node, other)]
    worth = (lease - share * lease - fixed) / client
    proved = True
    for name, goal in (("worth <= life", worth <= lease / node), ("worth <= longest", worth <= most / other)):
        solver = made_solver(facts, Not(goal))
        proved &= tell_proof(f"clocks: {name}", "1.3 4.2 core/validity.c:validity_allowance_us",
                             [] if solver.check() == z3.unsat else [name])
    return proved


def made_solver(facts: list[Any], *more: Any) -> Any:
    solver = z3.Solver()
    solver.set("timeout", QUERY_S * 1000)
    solver.add(*facts, *more)
    return solver


def tell_proof(what: str, code: str, failed: list[str]) -> bool:
    print(f"{'FAILED' if failed else 'proved':8} {what}" + (f" ({code})" if code else ""), flush=True)
    for name in failed:
        print(f"         not inductive: {name}", flush=True)
    return not failed


def not_proved(model: Protocol, step: Any) -> list[str]:
    """The invariants that do not hold after the step, or in the first state, with z3's answer."""
    s = model.state()
    invariants = model.invariants(s)
    solver = made_solver(model.axioms())
    if step is None:
        solver.add(model.first_state(s))
    else:
        given = {name: z3.Const(f"the_{name}", model.world.sort(sort)) for name, sort in step.params.items()}
        guard, changes = step(model, s, **given)
        solver.add(guard, *invariants.values())
        invariants = model.invariants(s.but(changes))
    failed = []
    for name, holds in invariants.items():
        solver.push()
        solver.add(Not(holds))
        answer = solver.check()
        solver.pop()
        if answer != z3.unsat:
            failed.append(f"{name} ({answer})")
    return failed


def prove(name: str, kind: Type[Protocol], form: str) -> bool:
    proved = tell_proof(f"{name}: the first state", "", not_proved(kind(World(form=form)), None))
    for step in kind.steps(form):
        proved &= tell_proof(f"{name}: {step.__name__}", step.code, not_proved(kind(World(form=form)), step))
    return proved


# ---- the stories ----


def small(kind: Type[Protocol], off: str, form: str) -> tuple[Any, list[Any]]:
    """A small world, in which each node may have two lives, and what is true in it."""
    words = form.split()
    nodes = 1 if "one" in words else NODES
    sets = [{a, b} for a in range(2 * nodes) for b in range(2 * nodes) if a % nodes < b % nodes]
    if nodes == 1 or "half" in words or "other" in words:
        sets += [{a} for a in range(2 * nodes)]
    attempts = 3 if {"one", "three", "permits"} & set(words) else 2
    world = World({"Life": 2 * nodes, "Token": attempts, "Quorum": len(sets), "Pair": 1}, off, words[0] if words else "")
    model: Any = kind(world)
    lives, tokens, quorums = (world.all_of(sort) for sort in ("Life", "Token", "Quorum"))
    facts = model.axioms()
    if kind is not Debts:
        facts += [model.same(a, b) == (i % nodes == j % nodes) for i, a in enumerate(lives) for j, b in enumerate(lives)]
        facts += [model.of(a, q) == (i in sets[j]) for i, a in enumerate(lives) for j, q in enumerate(quorums)]
    if kind is Lock:
        slot, reads = world.function("slot", "Token Bool"), world.function("reads", "Token Bool")
        apart = {"permits": lambda t, u: slot(t) != slot(u), "shared": lambda t, u: And(reads(t), reads(u))}.get(world.form)
        facts += [model.longest == 10, *(model.conflict(t, u) == And(t is not u, Not(apart(t, u)) if apart else True)
                                         for t in tokens for u in tokens)]
    return model, facts


def tell(model: Any, facts: list[Any], steps: str, goal: Callable[..., Any]) -> list[str]:
    """The steps as a story at whose end the goal is reached; empty if z3 finds none."""
    s, told = model.state("_0"), []
    facts = [*facts, model.first_state(s)]
    for number, name in enumerate(steps.split(), 1):
        step = next(each for each in model.STEPS if each.__name__ == name)
        now = z3.Real(f"time_{number}")
        given = {key: z3.Const(f"{key}_{number}", model.world.sort(sort)) for key, sort in step.params.items()}
        facts.append(now >= s.now())
        s = s.but({"now": lambda now=now: now})
        guard, changes = step(model, s, **given)
        after = {field: model.world.function(f"{field}_{number}", model.FIELDS[field]) for field in changes}
        facts.append(guard)
        for field, value in changes.items():
            sorts = " ".join(model.FIELDS[field].split()[:-1])
            facts += [model.world.every(sorts, lambda *x, f=after[field], v=value: f(*x) == v(*x))] if sorts \
                else [after[field]() == value()]
        s = s.but(after)
        told.append((step.story, now, given))
    solver = made_solver(facts, s.now() <= 100, goal(model, s))  # small numbers are easier to read
    if solver.check() != z3.sat:
        return []
    found = solver.model()
    return [f"{spoken(found, now):>5}: " + story.format(**{key: spoken(found, term) for key, term in given.items()})
            for story, now, given in told]


def spoken(found: Any, term: Any) -> str:
    """A value of the story in words."""
    value = found.eval(term, model_completion=True)
    if z3.is_rational_value(value):
        return f"{value.numerator_as_long() / value.denominator_as_long():.4g}"
    kind, _, number = str(value).partition("_")
    if kind.startswith("Life"):
        lives = value.sort().num_constructors()
        return f"node {int(number) % (lives // 2)}" + (" (second life)" if int(number) >= lives // 2 else "")
    return number or {"True": "yes", "False": "no"}.get(kind, kind)


def violated(invariant: str) -> Callable[..., Any]:
    def goal(model: Any, s: State) -> Any:
        return Not(And([holds for name, holds in model.claims(s).items() if invariant in name.split(":")[0].split(", ")]))
    return goal


def check_story(good: str, what: str, told: list[str], always: bool) -> bool:
    print(f"{good if told else 'MISSED':8} {what}", flush=True)
    for line in told if always else []:
        print(f"         {line}", flush=True)
    return bool(told)


def check_error(name: str, rule: str, kind: Type[Protocol], form: str) -> bool:
    """A step with this error must not be provable."""
    failed = {step.__name__: not_proved(kind(World(off=name, form=form)), step) for step in kind.steps(form)}
    first = [f"{step}: {text}" for step, texts in failed.items() for text in texts if "(sat)" in text][:3]
    return check_story("caught", f"{name} (rule {rule}), not inductive:", first, True)


def forgotten() -> list[str]:
    """Switches of the model that are named nowhere here."""
    run = (ROOT / "tests/model/run").read_text(encoding="utf-8")
    known = {name for name, *_ in SWITCHES} | set(OUTSIDE)
    return [name for name in re.findall(r'^    \("([A-Z_]+)", "[\d.]+", ', run, re.M) if name not in known]


def places() -> list[str]:
    """What the steps name in the code and is not there, and steps that name nothing."""
    sys.path.insert(0, str(ROOT / "scripts/lib"))
    os.chdir(ROOT)
    import rules  # type: ignore[import]  # pylint: disable=import-outside-toplevel
    steps = {step for _, kind, form in PROOFS for step in kind.steps(form)}
    cited = {word for step in steps for word in step.code.split() if "/" in word}
    idle = [step.__qualname__ for step in steps if "/" not in step.code and step.__name__ != "wait"]
    return sorted(word for word in cited if not rules.has_code(word)) + sorted(idle)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", nargs="*", metavar="SWITCH", help="only the stories of these switches, in full")
    options = parser.parse_args()
    failed = 0
    for name in places() + forgotten():
        print(f"FAILED   {name}: there is no such function or switch, or the step cites no code")
        failed += 1
    if options.stories is None:
        failed += not clocks()
        failed += sum(not prove(*row) for row in PROOFS)
        failed += sum(not check_error(*row) for row in ERRORS)
        for name, kind, form, steps, goal in POSSIBLE:
            failed += not check_story("possible", name, tell(*small(kind, "", form), steps, goal), False)
    for name, rule, invariant, kind, form, steps in SWITCHES:
        if not options.stories or name in options.stories:
            told = tell(*small(kind, name, form), steps, violated(invariant))
            failed += not check_story("caught", f"{name} (rule {rule}): {invariant}", told, options.stories is not None)
    for name, reason in OUTSIDE.items():
        print(f"outside  {name}: {reason}")
    print(f"proof: {failed} failed, {resource.getrusage(resource.RUSAGE_SELF).ru_utime:.0f} s of one core")
    return 1 if failed > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
