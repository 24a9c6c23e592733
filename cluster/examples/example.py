#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A client for cluster/chaos. quorlock-chaos(7) describes its lines. Its lock is a plain SET NX PX on a majority.

cluster/chaos --client 'python3 example.py'
"""
import json
import os
import random
import secrets
import signal
import socket
import sys
import time

SETTINGS = {name[15:]: value for name, value in os.environ.items() if name.startswith("QUORLOCK_CHAOS_")}
NODES = [node.rsplit(":", 1) for node in SETTINGS["NODES"].split(",")]
RELEASE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])"
STOP = []


def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def pick_ms(name):
    return random.randint(*map(int, SETTINGS[name + "_MS"].split("-")))


def say(event, **fields):
    """Writes one line of the history; returns the last word of the answer, the value of the register."""
    print(json.dumps({"event": event, **fields}), flush=True)
    answer = sys.stdin.readline() or sys.exit("the harness is gone")
    return int(answer.split()[-1])


def everywhere(command):
    """The number of nodes that say yes."""
    replies = []
    for host, port in NODES:
        try:
            with socket.create_connection((host, port), timeout=0.1) as node:
                node.sendall(command.encode() + b"\r\n")
                replies.append(node.recv(100))
        except OSError:
            continue
    return replies.count(b"+OK\r\n")


def operate(key, owner, lease_ms, hold_ms):
    say("invoke", key=key)
    end_us = now_us() + lease_ms * 990 - 2000  # less what clocks may differ by
    if everywhere(f"SET {key} {owner} NX PX {lease_ms}") > len(NODES) // 2 and now_us() < end_us:
        say("granted", key=key, deadline_us=end_us)
        value, until_us = say("read", key=key), now_us() + hold_ms * 1000
        while now_us() < min(end_us, until_us) and not STOP:
            value += 1
            say("write", key=key, value=value)
            time.sleep(0.01)
        say("released" if now_us() < end_us else "lost", key=key)  # before any node hears of it
    else:
        say("refused", key=key, status="HELD")
    everywhere(f'EVAL "{RELEASE}" 1 {key} {owner}')


signal.signal(signal.SIGTERM, lambda *_: STOP.append(1))
random.seed(int(SETTINGS["SEED"]))
say("hello", version=1, program="example.py")
while not STOP:
    operate(random.choice(SETTINGS["KEYS"].split(",")), secrets.token_hex(8), pick_ms("LEASE"), pick_ms("HOLD"))
    time.sleep(pick_ms("THINK") / 1000)
