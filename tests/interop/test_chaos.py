#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A peer as a client of cluster/chaos: test_chaos.py BUILD_BIN PEER FOLDER

Few faults, and little time: that it keeps to the protocol and gets on. How its locks fare is for longer runs.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is
import peers

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 220
CALM = ("--seed", "7", "--clients", "3", "--keys", "1", "--faults", "kill-client,reset",
        "--lease-ms", "500-1000", "--hold-ms", "2-150", "--max-lease-ms", "2000")
# On a busy machine the start of three peers may take most of a run; then it gets a longer one.
RUNS_S = (5, 20, 60)
GETS_ON = 5
# What a lock may do wrong, and its client not.
OF_THE_LOCK = {"overlap", "stale-write", "lost-update"}


def run(binaries, name, folder, seconds):
    with tempfile.TemporaryDirectory(prefix="quorlock-chaos-peer-") as work:
        command = f"{sys.executable} {ROOT}/tests/interop/client.py {name} {folder}"
        history = os.path.join(work, "history.jsonl")
        done = subprocess.run([str(ROOT / "cluster" / "chaos"), "--bin", binaries, "--seconds", str(seconds), *CALM, "--client",
                               command, "--history", history], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=LIMIT_S, check=False)
        print(done.stdout, flush=True)
        if done.returncode not in (0, 1):
            sys.exit(f"FAILED: {name}: status {done.returncode}")
        check = subprocess.run([str(ROOT / "cluster" / "check"), "--json", history], stdout=subprocess.PIPE,
                               timeout=LIMIT_S, check=False)
        with open(history, encoding="utf-8") as file:
            programs = {line["program"] for line in map(json.loads, file) if "program" in line}
        return json.loads(check.stdout), programs


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: test_chaos.py BUILD_BIN PEER FOLDER")
    peer = peers.peer_named(sys.argv[2], sys.argv[3])
    peers.leave_without(peer)
    for name in peer.clients:
        for seconds in RUNS_S:
            verdict, programs = run(sys.argv[1], name, sys.argv[3], seconds)
            counts = verdict["counts"]
            if set(verdict["violations"]) - OF_THE_LOCK:
                sys.exit(f"FAILED: {name}: {verdict['violations']}")
            if min(counts.get("grants", 0), counts.get("writes", 0)) >= GETS_ON:
                break
        else:
            sys.exit(f"FAILED: {name} does not get on in {seconds} s: {counts}")
        if len(programs) != 1 or not programs.pop().lower().startswith((name, peer.name)):
            sys.exit(f"FAILED: {name} is shown as another program")


main()
