# SPDX-License-Identifier: BSD-3-Clause
"""cluster/chaos power: how soon runs of --client find known bad locks, and that they find nothing in a good one."""
import argparse
import os
import shlex
import signal
import sys
import tempfile
import threading
from pathlib import Path

import history
import judge
import output
import usage
from at_once import AtOnce
from found import FOUND_S, __file__ as KEPT
from known import LOCKS, STEPS_S, share
from usage import Parser, number

EX_SOFTWARE = 70
CHAOS = Path(__file__).resolve().parents[1] / "chaos"
FLAWED = CHAOS.parents[1] / "cluster/examples" / "flawed.py"
BIN = CHAOS.parents[1] / "build" / "bin"
TRIES = 2    # the machine may be too busy for the harness
GOOD = ""


def parser():
    made = Parser(prog="cluster/chaos power", formatter_class=argparse.RawDescriptionHelpFormatter, description=(
        "Runs cluster/chaos --client with each mistake of cluster/examples/flawed.py, and without one,\n"
        "and prints the share of the seeds that found it by so many seconds. A run ends soon after its\n"
        "first violation."),
        epilog="Exit status: 0 measured, 1 the lock without a mistake was broken, 64 wrong usage, 70 a run failed, 74\n"
               "something could not be written, 128+n ended by signal n.")
    add = made.add_argument
    add("--seeds", type=number(1, 1000), default=20, metavar="N", help="runs of each lock, with the seeds 1 to N (default 20)")
    add("--seconds", type=number(3, 86400), default=60, metavar="S", help="of each run, at most (default 60)")
    add("--only", metavar="MISTAKE,...", help="no others than these; good is the lock without a mistake")
    add("--at-once", type=number(1, 64), default=max(1, os.cpu_count() or 1), metavar="N",
        help="runs side by side (default: as many as processors)")
    add("--save", action="store_true", help="keep the times in chaos.d/found.py, from which runs tell their power")
    add("--bin", type=Path, default=Path(os.environ.get("QUORLOCK_BIN", BIN)), metavar="DIR",
        help="where the programs are built (default build/bin)")
    return made


def first_violation_s(path):
    """How long the clients had been at work when the first promise was broken; None: none was."""
    events = history.load(path)
    begun_us = next((event.t_us for event in events if event.event == "invoke"), 0)
    broken = [violation.t_us for violation in judge.judge(events).violations if violation.kind != "terminal"]
    return round((min(broken) - begun_us) / 1e6, 1) if broken else None


def run(options, mistake, seed, runs):
    """The time in which this run found the mistake, or None. Raises RuntimeError if it could not be judged."""
    with tempfile.TemporaryDirectory(prefix="quorlock-power-") as folder:
        path = Path(folder) / "history"
        client = shlex.join([sys.executable, str(FLAWED), *([mistake] if mistake else [])])
        command = [str(CHAOS), "--bin", str(options.bin), "--client", client, "--seconds", str(options.seconds), "--seed", str(seed), "--until-broken", "--history", str(path)]
        for _ in range(TRIES):
            with runs.start(command) as process:
                said = process.communicate()[0]
            if path.exists():
                return first_violation_s(path)
    raise RuntimeError((said.strip().splitlines() or ["it says nothing"])[-1])


def row(name, times_s, columns):
    found = sorted(time_s for time_s in times_s if time_s is not None)
    median = f"{found[len(found) // 2]:.1f} s" if len(found) * 2 > len(times_s) else "-"
    return f"| {name} | {' | '.join(f'{share(times_s, seconds)} %' for seconds in columns)} | {median} |"


def table(found, seconds):
    columns = [column for column in STEPS_S if column <= seconds] or [seconds]
    lines = ["| | " + " | ".join(f"{column} s" for column in columns) + " | median |", "| --- " * (len(columns) + 2) + "|"]
    lines += [row(LOCKS[mistake], times_s, columns) for mistake, times_s in found.items() if mistake != GOOD]
    if GOOD in found:
        held = sum(time_s is None for time_s in found[GOOD])
        lines.append(f"\nWithout a mistake it held in {held} of {len(found[GOOD])} runs of {seconds} s.")
    return "\n".join(lines)


def save(options, found):
    kept = FOUND_S | {mistake: times_s for mistake, times_s in found.items() if mistake != GOOD}
    lines = [f"    {mistake!r}: {kept[mistake]},".replace("'", '"') for mistake in LOCKS if mistake in kept]
    path = Path(KEPT)
    head = path.read_text(encoding="utf-8").partition("FOUND_S")[0]
    output.write_whole("--save", str(path), "\n".join([head + "FOUND_S = {", *lines, "}", ""]))


def main(words):
    """Runs the program; returns its exit status."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        return measure_all(words)
    except (RuntimeError, history.Malformed, OSError) as error:
        print(f"power: {error}", file=sys.stderr)
        return EX_SOFTWARE
    except output.Unwritten as what:
        print(f"power: {what}", file=sys.stderr)
        return output.EX_IOERR
    except KeyboardInterrupt:
        return 130


def measure_all(words):
    made = parser()
    options = made.parse_args(words)
    names = [GOOD if name == "good" else name for name in (options.only or ",".join([*LOCKS, "good"])).split(",") if name]
    wrong = [name for name in names if name not in (*LOCKS, GOOD)]
    if wrong or not names:
        made.error(f"--only: '{','.join(wrong)}' is no mistake; choose from {', '.join(LOCKS)}, good")
    if options.save:
        try:
            usage.output("--save", KEPT)
        except ValueError as error:
            made.error(str(error))
    found, runs, told = {name: [None] * options.seeds for name in names}, AtOnce(options.at_once), threading.Lock()

    def measure(name, seed):
        time_s = found[name][seed - 1] = run(options, name, seed, runs)
        with told:
            output.say(f"{name or 'good':<18} seed {seed:<4} {'held' if time_s is None else f'{time_s:.1f} s'}")

    runs.call((measure, name, seed) for seed in range(1, options.seeds + 1) for name in names)
    output.say(table(found, options.seconds))
    if options.save:
        save(options, found)
    return int(any(time_s is not None for time_s in found.get(GOOD, ())))
