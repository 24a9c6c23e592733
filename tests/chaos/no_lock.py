#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A client of cluster/chaos that is granted every lock at once and asks nobody: what a judge must find."""
import json
import os
import random
import signal
import sys
import time

TOLD = {name[15:]: value for name, value in os.environ.items() if name.startswith("QUORLOCK_CHAOS_")}
STOP = []


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)
    return int((sys.stdin.readline() or sys.exit("the harness is gone")).split()[-1])


def operate(key):
    asked_us = say("invoke", key=key)
    say("granted", key=key, deadline_us=asked_us + int(TOLD["LEASE_MS"].split("-")[0]) * 1000)
    value = say("read", key=key)
    time.sleep(0.1)
    say("write", key=key, value=value + 1)
    say("released", key=key)


signal.signal(signal.SIGTERM, lambda *_: STOP.append(1))
say("hello", version=1, program="no lock 1")
while not STOP:
    operate(random.choice(TOLD["KEYS"].split(",")))
    time.sleep(0.02)
