# SPDX-License-Identifier: BSD-3-Clause
"""cluster/chaos compare: several clients under the very same faults, and one page that shows how they did."""
import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import random
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import contenders
import history
import judge
import output
import page
import usage
from at_once import AtOnce
from measure import measure
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
    "kept": ("Servers keep their memory", "all,-reconfigure,-names,-wipe,-aof-cut,-flush", (
        "Servers stop, restart, run out of memory and of disk, or cannot be reached; clients pause, die or run out of "
        "descriptors. Every server has its log on the disk before it answers (appendfsync always), so that no restart "
        "forgets anything. The Redlock specification expects all of that, but one thing: a client that is stopped "
        "between its last look at the lock and its write, against which only a fencing token helps. "
        "quorlock's guard cannot know that nothing was lost: it ignores the votes of a restarted server for one max lease.")),
    "lost": ("Servers may come back without their memory", "all,-reconfigure,-names", (
        "The same, and some restarts find the memory gone, or the end of the log cut off, and some servers are emptied by "
        "FLUSHALL. The specification says that a server that lost its memory must stay away until every lease has ended, and "
        "leaves that to the operator. quorlock's guard does it.")),
}
CHOSEN = "Chosen faults"
PROGRESS = re.compile(r"\s*\d+ s  \d+ grants")


class Failed(Exception):
    """One client's run could not be judged, or cannot be done at all."""

    def __init__(self, text, status=EX_SOFTWARE):
        super().__init__(text)
        self.status = status


def peers_text():
    names = textwrap.fill(", ".join(contenders.PEERS), 88, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return f"peers:\n{names}\n\n" if contenders.PEERS else ""


def seeds(text):
    """What --seeds and --seed take: numbers with commas, each once."""
    found = [number(0, 2**63 - 1)(word) for word in text.split(",")]
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"'{text}' has a seed twice")
    return found


def parser():
    made = Parser(prog="cluster/chaos compare", formatter_class=argparse.RawDescriptionHelpFormatter, description=(
        "Runs several clients, each under the very same plan of faults, and\n"
        "compares how their locks did: quorlock with fencing tokens and without, what --client names\n"
        "and, in the source of quorlock, its peers, whose packages it brings from their registries\n"
        "where that was not done yet. A client whose runtime is missing is left out."),
        epilog=peers_text() + "rounds:\n" + "\n".join(f"  {name:<6} {title}" for name, (title, _, _) in ROUNDS.items()) + "\n\n"
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
    add("--seed", dest="seeds", type=seeds, metavar="N,...",
        help="of the plan (default: a new one, which is printed). With several, the figures are the median of their runs\n"
             "and, in brackets, the range; the page is that of the first")
    add("--at-once", type=number(1, 64), default=1, metavar="N", help="runs side by side (default 1)")
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
    if options.source and not kept_in(Path(options.source)):
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
    options.seeds = options.seeds or [random.SystemRandom().randrange(1, 10**6)]


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

def arguments(options, contender, kind, seed):
    """The options that repeat one run."""
    seconds = options.seconds // len(options.rounds)
    words = ["--seed", seed, "--seconds", seconds, "--nodes", options.nodes, "--clients", options.clients,
             "--keys", options.keys, "--max-lease-ms", MAX_LEASE_MS, "--lease-ms", options.lease_ms, "--hold-ms", options.hold_ms,
             "--faults", options.rounds[kind][1]]
    words += contender.options
    if options.plain:
        words.append("--plain")
    if contender.command:
        words += ["--client", shlex.join(map(str, contender.command))]
    return list(map(str, words))


def replay(options, contender, kind, seed):
    """The command line that repeats this run, from the top of the tree."""
    bin_option = [] if options.bin.resolve() == BIN else ["--bin", str(options.bin.resolve())]
    words = shlex.join(["cluster/chaos", *bin_option, *arguments(options, contender, kind, seed)])
    return words.replace(f"{CHAOS.parents[1]}/", "")


def run_one(options, runs, command, path):
    """Runs one client under the plan and writes its history to path. Raises Failed."""
    lines = []
    path.unlink(missing_ok=True)
    with runs.start([*command, "--history", str(path)]) as process:
        try:
            for line in process.stdout:
                lines.append(line.rstrip())
                if options.at_once == 1 and PROGRESS.match(line):
                    output.say(f"  {line.rstrip()}")
        except BaseException:
            process.terminate()
            raise
    if process.returncode not in (0, 1) and not path.exists():
        raise Failed(next((line for line in reversed(lines) if line), "it says nothing"))


def run_some(options, runs, contender, kind, seed, path):
    """Tries again if the machine was too busy for the harness. Returns why there is no history, or an empty string."""
    command = [str(CHAOS), "--bin", str(options.bin), *arguments(options, contender, kind, seed)]
    for left in reversed(range(TRIES)):
        try:
            run_one(options, runs, command, path)
            return ""
        except Failed as why:
            output.say(f"compare: {contender.title}, {kind}: {'once more' if left else 'left out'}: {why}")
            failed = str(why)
    return failed


def plan_of(options, kind, seed):
    """Of any client: it is the same for all. Ours must be built."""
    built = not options.client or (options.bin / "chaos_client").exists()
    contender = contenders.OURS if built else contenders.named(options.client[0], set())
    done = subprocess.run([str(CHAOS), "--bin", str(options.bin), *arguments(options, contender, kind, seed), "--plan"],
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


def new_index(options, chosen, plans, seed):
    """What the folder of one seed has besides the histories; the runs are still missing."""
    made = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    rounds = {kind: {"title": title, "text": text, "plan": plans[seed, kind]}
              for kind, (title, _, text) in options.rounds.items()}
    clients = [{"name": contender.name, "title": contender.title, "how": contender.how, "missing": contender.missing,
                "command": shlex.join(map(str, contender.command)), "runs": {}} for contender in chosen]
    return {"format": FORMAT, "made": made, "machine": machine(options), "seed": seed, "nodes": options.nodes,
            "processes": options.clients, "keys": options.keys, "seconds": options.seconds // len(options.rounds),
            "rounds": rounds, "clients": clients}


def folders_of(options, base):
    """{seed: the folder of its index and histories}."""
    folders = {seed: base / f"seed-{seed}" if len(options.seeds) > 1 else base for seed in options.seeds}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    return folders


def run_all(options, chosen, plans, folders):
    """Runs every client in every round with every seed, and updates the index of the folder after each."""
    runs, written = AtOnce(options.at_once), threading.Lock()
    indexes = {seed: new_index(options, chosen, plans, seed) for seed in folders}

    def write(seed):
        output.write_whole("--keep", str(folders[seed] / INDEX), json.dumps(indexes[seed], indent=1) + "\n")

    def run(seed, kind, contender, entry):
        output.say(f"compare: {contender.title}, {kind}, seed {seed}, {indexes[seed]['seconds']} s")
        path = folders[seed] / f"{kind}-{contender.name}.jsonl"
        failed = run_some(options, runs, contender, kind, seed, path)
        with written:
            entry["runs"][kind] = {"history": path.name, "failed": failed, "replay": replay(options, contender, kind, seed)}
            write(seed)

    for seed in folders:
        write(seed)
    runs.call((run, seed, kind, contender, entry) for seed in folders for kind in options.rounds
              for contender, entry in zip(chosen, indexes[seed]["clients"]) if not contender.missing)


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


COLUMNS = (("overlaps", "overlaps"), ("not notified", "never_told"), ("stale writes", "stale_writes"),
           ("grants", "grants"), ("p50", "p50"), ("p99", "p99"), ("healed after", "after_healing_ms"))
TIMES = ("p50", "p99", "after_healing_ms")


def shown(name, value):
    if name in TIMES:
        return ("never" if name == "after_healing_ms" else "-") if value == math.inf else f"{value:,.1f} ms"
    return f"{value:,}"


def cell(runs, name):
    """The figure of one run; of several the median and, in brackets, the range."""
    found = [figures["handover_ms"][name] if name in ("p50", "p99") else figures[name] for figures in runs]
    found = sorted(math.inf if value is None else value for value in found)
    middle = shown(name, statistics.median_low(found))
    return middle if len(found) == 1 else f"{middle} ({shown(name, found[0])} to {shown(name, found[-1])})"


def row(indexes, number, kind):
    """The cells of a client, or the reason why it has none."""
    clients = [index["clients"][number] for index in indexes]
    runs = [client["runs"][kind] for client in clients if kind in client["runs"]]
    done = [run["figures"] for run in runs if not run["failed"]]
    if not done:
        return [f"left out: {runs[0]['failed'] if runs else clients[0]['missing']}"]
    less = [f"  {len(done)} of {len(indexes)} runs"] if len(done) < len(indexes) else []
    return [cell(done, name) for _, name in COLUMNS] + less


def table(indexes):
    """The comparison as lines of text."""
    lines, first = [], indexes[0]
    width = max(len(client["title"]) for client in first["clients"])
    seed = f"seed{'s' * (len(indexes) > 1)} {', '.join(str(index['seed']) for index in indexes)}"
    for kind, about in first["rounds"].items():
        rows = [row(indexes, number, kind) for number in range(len(first["clients"]))]
        whole = [[title for title, _ in COLUMNS], *(cells for cells in rows if len(cells) > 1)]
        wide = [max(len(cells[at]) for cells in whole) + 2 for at in range(len(COLUMNS))] + [0]
        lines.append(f"{about['title']} ({first['seconds']} s a client, {seed})")
        for name, cells in zip(["", *(client["title"] for client in first["clients"])], [whole[0], *rows]):
            texts = f"  {cells[0]}" if len(cells) == 1 else "".join(f"{text:>{size}}" for text, size in zip(cells, wide))
            lines.append(f"{name:<{width}}{texts}")
        lines.append("")
    return lines[:-1]


def show(options, folders):
    loaded = [load(folder) for folder in folders]
    indexes, (first, judged) = [index for index, _ in loaded], loaded[0]
    if not any(judged for _, judged in loaded):
        print("compare: no client could be compared", file=sys.stderr)
        return EX_SOFTWARE
    if options.json:
        figures = first if len(indexes) == 1 else indexes
        output.write_whole("--json", options.json, json.dumps(figures, indent=1) + "\n")
    if options.report:
        output.write_whole("--report", options.report, page.render(first, judged))
    output.say("\n".join(table(indexes)))
    if options.report:
        output.say(f"report: {options.report}")
    return 0


def kept_in(base):
    """The folders that --keep made: base, or one for each seed."""
    return [base] if (base / INDEX).exists() else sorted(path.parent for path in base.glob(f"seed-*/{INDEX}"))


def main(words):
    made = parser()
    options = made.parse_args(words)
    check(made, options)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        if options.source:
            return show(options, kept_in(Path(options.source)))
        with tempfile.TemporaryDirectory(prefix="quorlock-compare-") as temporary:
            folders = folders_of(options, Path(options.keep or temporary))
            # Options that cluster/chaos refuses end this before any package is downloaded.
            plans = {(seed, kind): plan_of(options, kind, seed) for seed in options.seeds for kind in options.rounds}
            chosen = choose(made, options)
            output.say(f"compare: {', '.join(contender.title for contender in chosen)}; seed "
                       f"{', '.join(map(str, options.seeds))}, {options.seconds} s a client in {len(options.rounds)} rounds")
            run_all(options, chosen, plans, folders)
            return show(options, folders.values())
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
