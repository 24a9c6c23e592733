# SPDX-License-Identifier: BSD-3-Clause
"""cluster/chaos compare: several clients under the very same faults, and one page that shows how they did."""
import argparse
import contextlib
import datetime
import json
import os
import platform
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import contenders
import history
import judge
import output
import page
import usage
from measure import measure
from system import die_with_parent
from usage import Parser, number

EX_SOFTWARE = 70
FORMAT = 1
TRIES = 2
MAX_LEASE_MS = 2000
CHAOS = Path(__file__).resolve().parents[1] / "chaos"
BIN = CHAOS.parents[1] / "build" / "bin"
INDEX = "compare.json"
# Without reconfigure: it changes quorlock's guard, which the other locks do not have. Without names: how long a runtime
# remembers that a lookup failed does not depend on its lock.
ROUNDS = {
    "kept": ("Servers keep their memory", "all,-reconfigure,-names,-wipe,-aof-cut", (
        "Servers stop, restart, run out of memory and of disk, or cannot be reached; clients pause, die or run out of "
        "descriptors. Every server has its log on the disk before it answers (appendfsync always), so that no restart "
        "forgets anything. The Redlock specification expects all of that, but one thing: a client that is stopped "
        "between its last look at the lock and its write, against which only a fencing token helps. "
        "quorlock's guard cannot know that nothing was lost: it ignores the votes of a restarted server for one max lease.")),
    "lost": ("Servers may come back without their memory", "all,-reconfigure,-names", (
        "The same, and some restarts find the memory gone, or the end of the log cut off. The specification says that "
        "such a server must stay away until every lease has ended, and leaves that to the operator. quorlock's guard "
        "does it.")),
}
CHOSEN = "Chosen faults"
PROGRESS = re.compile(r"\s*\d+ s  \d+ grants")


class Failed(Exception):
    """One client's run could not be judged, or cannot be done at all."""

    def __init__(self, text, status=EX_SOFTWARE):
        super().__init__(text)
        self.status = status


def parser():
    made = Parser(prog="cluster/chaos compare", formatter_class=argparse.RawDescriptionHelpFormatter, description=(
        "Runs several clients, one after the other, each under the very same plan of faults, and\n"
        "compares how their locks did: quorlock with fencing tokens and without, what --client names\n"
        "and, in the source of quorlock, its peers (redsync, node-redlock, Redisson's RedLock and\n"
        "MultiLock), whose packages it brings from their registries where that was not done yet. A\n"
        "client whose runtime is missing is left out."),
        epilog="rounds:\n" + "\n".join(f"  {name:<6} {title}" for name, (title, _, _) in ROUNDS.items()) + "\n\n"
               "A lock that broke is a result, not an error. Exit status: 0 compared, 64 wrong usage, 70 no\n"
               "client could be compared, 74 something could not be written, 128+n ended by signal n.")
    add = made.add_argument
    add("--report", metavar="FILE.html", help="draw the comparison")
    add("--json", metavar="FILE", help="the figures as JSON")
    add("--client", action="append", default=[], metavar="[NAME=]CMD",
        help="one more client, a program that keeps to quorlock-chaos(7)")
    add("--only", metavar="NAME,...", help="no other clients than these")
    add("--seconds", type=number(3, 86400), default=120, metavar="S",
        help="faults for a client, in all rounds together (default 120)")
    add("--rounds", default=",".join(ROUNDS), metavar="NAME,...", help="which of the rounds (default both)")
    add("--faults", metavar="LIST", help="one round with these faults, as for cluster/chaos, in place of those")
    add("--seed", type=number(0, 2**63 - 1), help="of the plan (default: a new one, which is printed)")
    add("--nodes", type=number(1, 9), default=3, help="Redis servers (default 3)")
    add("--clients", type=number(1, 60), default=5, help="processes of each client (default 5)")
    add("--keys", type=number(1, 16), default=2, help="locks they contend for (default 2)")
    add("--lease-ms", default="500-1000", metavar="MIN-MAX", help="leases that they ask for (default 500-1000)")
    add("--hold-ms", default="20-600", metavar="MIN-MAX", help="how long they hold (default 20-600)")
    add("--keep", metavar="DIR", help="keep the histories, from which --from draws again")
    add("--from", dest="source", metavar="DIR", help="run nothing: compare the histories that --keep kept")
    add("--plain", action="store_true", help="plain processes, no namespace, even where one is permitted")
    add("--bin", type=Path, default=Path(os.environ.get("QUORLOCK_BIN", BIN)), metavar="DIR",
        help="where the programs are built (default build/bin)")
    return made


def check(made, options):
    """Checks what argparse cannot check, and sets defaults."""
    names = [name for name in options.rounds.split(",") if name]
    wrong = [name for name in names if name not in ROUNDS]
    if wrong or not names:
        made.error(f"--rounds: '{','.join(wrong)}' is not a round; choose from {', '.join(ROUNDS)}")
    options.rounds = {name: ROUNDS[name] for name in names}
    if options.faults:
        options.rounds = {"chosen": (CHOSEN, options.faults, f"--faults {options.faults}")}
    if options.seconds // len(options.rounds) < 3:
        made.error(f"--seconds: {options.seconds} is too short for {len(options.rounds)} rounds of at least 3 s")
    if options.source and not (Path(options.source) / INDEX).exists():
        made.error(f"--from: there is no {INDEX} in {options.source}; --keep {options.source} writes it")
    if options.source and options.keep:
        made.error("--keep: the histories are kept in that folder already; leave one of --keep and --from out")
    try:
        for name in ("report", "json"):
            if getattr(options, name):
                usage.output(f"--{name}", getattr(options, name))
        if options.keep:
            with contextlib.suppress(OSError):
                Path(options.keep).mkdir(parents=True, exist_ok=True)
            usage.output("--keep", options.keep, is_folder=True)
    except ValueError as error:
        made.error(str(error))
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1, 10**6)


def choose(made, options):
    """All clients, including those that cannot run here."""
    try:
        found = [contenders.OURS, contenders.WITHOUT_TOKENS]
        for text in options.client:
            found.append(contenders.named(text, {contender.name for contender in found} | set(contenders.PEERS)))
    except ValueError as error:
        made.error(str(error))
    known = [contender.name for contender in found] + list(contenders.PEERS)
    only = [name for name in (options.only or ",".join(known)).split(",") if name]
    for name in only:
        if name not in known:
            made.error(f"--only: '{name}' is not a client; choose from {', '.join(known)}")
    found[2:2] = contenders.peers(options.bin.resolve().parent, [name for name in contenders.PEERS if name in only])
    return [contender for contender in found if contender.name in only]


# ---- the runs ----

def arguments(options, contender, kind):
    """The options that repeat one run."""
    seconds = options.seconds // len(options.rounds)
    words = ["--seed", options.seed, "--seconds", seconds, "--nodes", options.nodes, "--clients", options.clients,
             "--keys", options.keys, "--max-lease-ms", MAX_LEASE_MS, "--lease-ms", options.lease_ms, "--hold-ms", options.hold_ms,
             "--faults", options.rounds[kind][1]]
    words += contender.options
    if options.plain:
        words.append("--plain")
    if contender.command:
        words += ["--client", shlex.join(map(str, contender.command))]
    return list(map(str, words))


def replay(options, contender, kind):
    """The command line that repeats this run, from the top of the tree."""
    bin_option = [] if options.bin.resolve() == BIN else ["--bin", str(options.bin.resolve())]
    words = shlex.join(["cluster/chaos", *bin_option, *arguments(options, contender, kind)])
    return words.replace(f"{CHAOS.parents[1]}/", "")


def run_one(options, contender, kind, path):
    """Runs one client under the plan and writes its history to path. Raises Failed."""
    command = [str(CHAOS), "--bin", str(options.bin), *arguments(options, contender, kind), "--history", str(path)]
    lines = []
    path.unlink(missing_ok=True)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, preexec_fn=die_with_parent) as process:
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                if PROGRESS.match(line):
                    output.say(f"  {line.rstrip()}")
        except BaseException:
            process.terminate()
            raise
    if process.returncode not in (0, 1) and not path.exists():
        raise Failed(next((line for line in reversed(lines) if line), "it says nothing"))


def run_some(options, contender, kind, path):
    """Tries again if the machine was too busy for the harness. Returns why there is no history, or an empty string."""
    for left in reversed(range(TRIES)):
        try:
            run_one(options, contender, kind, path)
            return ""
        except Failed as why:
            output.say(f"compare: {contender.title}, {kind}: {'once more' if left else 'left out'}: {why}")
            failed = str(why)
    return failed


def plan_of(options, kind):
    """Of any client: it is the same for all. Ours must be built."""
    built = not options.client or (options.bin / "chaos_client").exists()
    contender = contenders.OURS if built else contenders.named(options.client[0], set())
    done = subprocess.run([str(CHAOS), "--bin", str(options.bin), *arguments(options, contender, kind), "--plan"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise Failed(done.stderr.strip(), done.returncode)
    return done.stdout.splitlines()


def first_line(*words):
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter(done.stdout.splitlines()), "")


def machine(options):
    """The conditions of the comparison, other than the clients."""
    model = ""
    if Path("/proc/cpuinfo").exists():
        model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("model name")), "")
    server = first_line(shutil.which(os.environ.get("REDIS_SERVER", "redis-server")) or "redis-server", "--version")
    found = re.search(r"^(\S+) .*?v=(\S+)", server)
    return {"cores": os.cpu_count(), "processor": model, "system": f"{platform.system()} {platform.release()}",
            "server": " ".join(found.groups()) if found else server,
            "quorlock": first_line(str(options.bin / "quorlock"), "--version")}


def run_all(options, chosen, plans, folder):
    """Runs every client in every round, and updates the index of the folder after each."""
    made = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    index = {"format": FORMAT, "made": made, "machine": machine(options), "seed": options.seed, "nodes": options.nodes,
             "processes": options.clients, "keys": options.keys, "seconds": options.seconds // len(options.rounds),
             "rounds": {}, "clients": []}
    for contender in chosen:
        index["clients"].append({"name": contender.name, "title": contender.title, "how": contender.how,
                                 "missing": contender.missing, "command": shlex.join(map(str, contender.command)),
                                 "runs": {}})
    for kind, (title, _, text) in options.rounds.items():
        index["rounds"][kind] = {"title": title, "text": text, "plan": plans[kind]}
        for contender, entry in zip(chosen, index["clients"]):
            if contender.missing:
                continue
            output.say(f"compare: {contender.title}, {kind}, {index['seconds']} s")
            run = entry["runs"][kind] = {"history": f"{kind}-{contender.name}.jsonl", "failed": "",
                                         "replay": replay(options, contender, kind)}
            run["failed"] = run_some(options, contender, kind, folder / run["history"])
            output.write_whole("--keep", str(folder / INDEX), json.dumps(index, indent=1) + "\n")
    output.write_whole("--keep", str(folder / INDEX), json.dumps(index, indent=1) + "\n")


# ---- results ----

def begin_us(events):
    """The time at which the plan began, computed from the times at which its faults were due."""
    dues = [event.t_us - event.number("at_ms") * 1000 for event in events
            if event.event == "fault" and event.fields.get("phase") == "begin" and "at_ms" in event.fields]
    return min(dues, default=events[0].t_us)


def load(folder):
    """The index, with the figures of each history, and {(client, round): (events, verdict)}."""
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    if index.get("format") != FORMAT:
        raise ValueError(f"{folder / INDEX} is of format {index.get('format')}, this program knows {FORMAT}")
    judged = {}
    for client in index["clients"]:
        for kind, run in client["runs"].items():
            if run["failed"]:
                continue
            events = history.load(folder / run["history"])
            verdict = judge.judge(events, start_us=begin_us(events))
            judged[client["name"], kind] = events, verdict
            run["figures"] = measure(events, verdict)
            client["program"] = next((event.fields["program"] for event in events
                                      if event.event == "client" and event.fields.get("program")), "")
    return index, judged


COLUMNS = (("overlaps", "overlaps"), ("stale writes", "stale_writes"), ("not notified", "never_told"),
           ("grants", "grants"), ("p50", "p50"), ("p99", "p99"), ("healed after", "after_healing_ms"))


def cell(figures, name):
    value = figures["handover_ms"][name] if name in ("p50", "p99") else figures[name]
    if name in ("p50", "p99", "after_healing_ms"):
        return ("never" if name == "after_healing_ms" else "-") if value is None else f"{value:,.1f} ms"
    return f"{value:,}"


def table(index):
    """The comparison as lines of text."""
    lines = []
    width = max(len(client["title"]) for client in index["clients"])
    for kind, about in index["rounds"].items():
        lines += [f"{about['title']} ({index['seconds']} s a client, seed {index['seed']})",
                  " " * width + "".join(f"{title:>14}" for title, _ in COLUMNS)]
        for client in index["clients"]:
            run = client["runs"].get(kind)
            if run is None or run["failed"]:
                lines.append(f"{client['title']:<{width}}  left out: {run['failed'] if run else client['missing']}")
                continue
            cells = "".join(f"{cell(run['figures'], name):>14}" for _, name in COLUMNS)
            lines.append(f"{client['title']:<{width}}{cells}")
        lines.append("")
    return lines[:-1]


def show(options, folder):
    index, judged = load(folder)
    if not judged:
        print("compare: no client could be compared", file=sys.stderr)
        return EX_SOFTWARE
    if options.json:
        output.write_whole("--json", options.json, json.dumps(index, indent=1) + "\n")
    if options.report:
        output.write_whole("--report", options.report, page.render(index, judged))
    output.say("\n".join(table(index)))
    if options.report:
        output.say(f"report: {options.report}")
    return 0


def main(words):
    made = parser()
    options = made.parse_args(words)
    check(made, options)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        if options.source:
            return show(options, Path(options.source))
        with tempfile.TemporaryDirectory(prefix="quorlock-compare-") as temporary:
            folder = Path(options.keep or temporary)
            # Options that cluster/chaos refuses end this before any package is downloaded.
            plans = {kind: plan_of(options, kind) for kind in options.rounds}
            chosen = choose(made, options)
            output.say(f"compare: {', '.join(contender.title for contender in chosen)}; seed {options.seed}, "
                       f"{options.seconds} s a client in {len(options.rounds)} rounds")
            run_all(options, chosen, plans, folder)
            return show(options, folder)
    except KeyboardInterrupt:
        print("compare: interrupted", file=sys.stderr)
        return 130
    except Failed as why:
        print(f"compare: {why}", file=sys.stderr)
        return why.status
    except (history.Malformed, ValueError, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return EX_SOFTWARE
    except output.Unwritten as what:
        print(f"compare: {what}", file=sys.stderr)
        return output.EX_IOERR
