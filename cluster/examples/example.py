#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A client for cluster/chaos. What it says is in quorlock-chaos(7); its lock is a plain SET NX PX on a majority."""
import json
import os
import random
import secrets
import signal
import socket
import sys
import time

TOLD = {name[15:]: value for name, value in os.environ.items() if name.startswith("QUORLOCK_CHAOS_")}
NODES = [tuple(node.rsplit(":", 1)) for node in TOLD["NODES"].split(",")]
RELEASE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])"
STOP = []


def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def pick(name):
    low, _, high = TOLD[name].partition("-")
    return random.randint(int(low), int(high or low))


def say(event, **fields):
    """One line of the history; (accepted, the value of the register) once it is written down."""
    print(json.dumps({"event": event, **fields}), flush=True)
    answer = sys.stdin.readline().split() or sys.exit("the harness is gone")
    return answer[0] == "ok", int(answer[-1])


def ask(node, command):
    try:
        with socket.create_connection(node, timeout=0.1) as server:
            server.sendall(command.encode() + b"\r\n")
            return server.recv(100)
    except OSError:
        return b""


def acquire(key, owner, lease_ms):
    """When the lock ends; 0 where another has it."""
    end_us = now_us() + lease_ms * 990 - 2000  # less what clocks may differ by
    votes = [ask(node, f"SET {key} {owner} NX PX {lease_ms}") for node in NODES]
    if votes.count(b"+OK\r\n") > len(NODES) // 2 and now_us() < end_us:
        return end_us
    return release(key, owner)


def release(key, owner):
    return 0 * len([ask(node, f'EVAL "{RELEASE}" 1 {key} {owner}') for node in NODES])


def work(key, owner, deadline_us, until_us):
    value = say("read", key=key)[1]
    while now_us() < min(deadline_us, until_us) and not STOP:
        value += 1
        say("write", key=key, value=value)
        time.sleep(0.01)
    say("released" if now_us() < deadline_us else "lost", key=key)  # said first: nobody may have the lock before
    release(key, owner)


signal.signal(signal.SIGTERM, lambda *_: STOP.append(1))
random.seed(int(TOLD["SEED"]))
say("hello", version=1, program="example.py")
while not STOP:
    job, name, give_up_us = random.choice(TOLD["KEYS"].split(",")), secrets.token_hex(8), now_us() + pick("WAIT_MS") * 1000
    say("invoke", key=job)
    while not (valid_to_us := acquire(job, name, pick("LEASE_MS"))) and now_us() < give_up_us and not STOP:
        time.sleep(pick("THINK_MS") / 1000)
    if not valid_to_us:
        say("refused", key=job, status="HELD")
    elif say("granted", key=job, deadline_us=valid_to_us):
        work(job, name, valid_to_us, now_us() + pick("HOLD_MS") * 1000)
    time.sleep(pick("THINK_MS") / 1000)
