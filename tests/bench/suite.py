#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the workloads on servers of its own, and writes a JSON file and a report as one HTML file.

Every figure stands beside a baseline that runs in turn with it: the same kind of requests by a plain client library
without a lock's logic; and where their runtimes are here, beside redsync, node-redlock and Redisson. Ratios say more
than figures; so do not measure on a machine that does other work. Nothing that it starts outlives it.
"""
import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import goals
import repeats
import sheet
from programs import TITLES, Failed, Programs
from workloads import WORKLOADS, Setting

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# What --quick has instead of the defaults: everything once, and too little of it to trust.
QUICK = {"seconds": 1, "rounds": 1, "phase": 2, "clients": [2, 10], "held": [1000, 10000], "hold": 2, "lease_ms": 3000,
         "flood": [10000], "crowd": [10, 40]}
FULL = {"seconds": 6, "rounds": 4, "phase": 4, "clients": [2, 3, 10, 30, 100], "held": [1000, 100000, 1000000],
        "hold": 40, "lease_ms": 30000, "flood": [100000],
        "crowd": [10, 100, 1000]}


def numbers(least, most):
    def read(text):
        try:
            found = [int(word) for word in text.split(",")]
        except ValueError:
            found = []
        if not found or not all(least <= n <= most for n in found):
            raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers from {least} to {most}, such as "
                                             f"{least},{least + 2}")
        return found
    return read


def amount(least, most):
    def read(text):
        try:
            value = float(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is no number from {least} to {most}")
        return value
    return read


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(64, f"scripts/bench: {message}; --help says more\n")


def read_options(words):
    listed = "\n".join(f"  {number}  {title}" for number, (title, _, _) in WORKLOADS.items())
    parser = Parser(prog="scripts/bench", description=__doc__, epilog=f"workloads:\n{listed}", allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=numbers(1, len(WORKLOADS)), default=list(WORKLOADS), metavar="N,N,...",
                        help="which ones (default: all)")
    parser.add_argument("--quick", action="store_true", help="all of it in a few minutes, to see that it works")
    parser.add_argument("--seconds", type=amount(0.5, 3600), help="for each measurement (default 6; quick 1)")
    parser.add_argument("--repeat", type=amount(1, 100), default=1, metavar="N",
                        help="all of it N times; the figures of README are medians of 5, and are printed with their range")
    parser.add_argument("--clients", type=numbers(2, 1000), metavar="N,N,...",
                        help="processes of the contention workload (default 2,3,10,30,100; quick 2,10)")
    parser.add_argument("--held", type=numbers(1, 10_000_000), metavar="N,N,...",
                        help="locks that are held (default 1000,100000,1000000: the last takes gigabytes; quick "
                             "1000,10000)")
    parser.add_argument("--hold", type=amount(1, 3600), help="seconds for which they are held (default 40; quick 2)")
    parser.add_argument("--flood", type=numbers(1, 100_000), metavar="N,N,...",
                        help="acquires at once (default 100000; quick 10000)")
    parser.add_argument("--crowd", type=numbers(1, 20_000), metavar="N,N,...",
                        help="clients that wait for one key (default 10,100,1000; quick 10,40). A server has two "
                             "connections of each, a process a quarter of five of each")
    parser.add_argument("--before", metavar="BUILD", help="the build folder of another version, whose plain locks "
                        "are compared with this one's in workload 12, its Python package in workload 15, its "
                        "waiting crowds in workload 16")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="without the locks of other projects")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "bench"),
                        help="folder of the results (default build/bench)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    options.hold, options.repeat = round(options.hold), round(options.repeat)
    options.versions, options.absent = {}, {}
    return options


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def describe(setting):
    with setting.servers(1) as servers:
        server = servers.all[0].version()
    quorlock = subprocess.run([setting.programs.path("quorlock"), "--version"], check=True, capture_output=True,
                              text=True)
    return {"made": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "command": "scripts/bench " + " ".join(sys.argv[1:]), "quorlock": quorlock.stdout.strip(),
            "machine": {"cores": os.cpu_count(), "processor": processor(), "server": server,
                        "system": f"{platform.system()} {platform.release()}"}, "workloads": {}}


def run_workload(setting, number):
    """Its rows; where a program fails, those before it."""
    name, text, rows_of = WORKLOADS[number]
    print(f"{number}. {name}", flush=True)
    result = {"title": name, "text": text, "rows": [], "failed": ""}
    try:
        for row in rows_of(setting):
            result["rows"].append(row)
    except Failed as error:
        result["failed"] = str(error)
        setting.say(f"FAILED: {error}")
    return result


def save(results, folder):
    for name, text in (("bench.json", json.dumps(results, indent=1) + "\n"), ("bench.html", sheet.render(results))):
        path = os.path.join(folder, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)


def finish(results, options):
    results.update(versions=options.versions, absent=options.absent, goals=goals.judge(results))
    save(results, options.out)


def measure(options, folder):
    wanted = TITLES if options.peers and {1, 4} & set(options.workloads) else ["sequential"]
    setting = Setting(Programs(options.build, wanted), folder, options)
    for name, why in setting.programs.missing.items():
        print(f"without {TITLES[name]}: {why}", flush=True)
        options.absent[name] = why
    results, runs = describe(setting), []
    for i in range(options.repeat):
        if options.repeat > 1:
            print(f"run {i + 1} of {options.repeat}", flush=True)
        for number in options.workloads:
            results["workloads"][str(number)] = run_workload(setting, number)
            # Also what is not finished can be looked at.
            finish(results, options)
        runs.append({"workloads": dict(results["workloads"])})
        results["figures"] = repeats.figures(runs)
    finish(results, options)
    return results, any(each["failed"] for run in runs for each in run["workloads"].values())


def tell_figures(found):
    for one in found:
        least, most = one["values"][0], one["values"][-1]
        print(f"{one['figure']}: {sheet.shown(one['median'])} ({sheet.shown(least)} to {sheet.shown(most)})")


def main():
    options = read_options(sys.argv[1:])
    os.makedirs(options.out, exist_ok=True)
    # Servers and programs end with this process, however that ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="quorlock-bench-")
    try:
        results, has_failed = measure(options, folder)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    tell_figures(results["figures"] if options.repeat > 1 else [])
    for goal in results["goals"]:
        if goal["met"] is not None:
            print(f"{'met    ' if goal['met'] else 'NOT MET'} {goal['goal']}: {sheet.shown(goal['measured'])}, wanted "
                  f"{'at least' if goal['at_least'] else 'at most'} {goal['limit']:g} {goal['unit']}".rstrip())
    print(f"{os.path.join(options.out, 'bench.json')}\n{os.path.join(options.out, 'bench.html')}")
    return 70 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
