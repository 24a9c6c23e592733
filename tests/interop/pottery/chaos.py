#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A chaos client with locks of pottery, started by cluster/chaos --client; quorlock-chaos(7) has the lines.

As careful as pottery lets its user be: acquire, and locked() before each access, which asks the nodes how long the lock
lasts; extend at half of the lease, as often as it takes. redis-py gets time limits and no retries, without which one frozen
server would stop everything. Its keys begin with "redlock:".
"""
import importlib.metadata
import json
import logging
import os
import random
import signal
import sys
import time

from pottery import Redlock
from pottery.exceptions import PrimitiveError
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

ANSWER_LIMIT_S = 0.1
SETTINGS = {name[15:]: value for name, value in os.environ.items() if name.startswith("QUORLOCK_CHAOS_")}
NODES = [Redis(host=host, port=int(port), socket_timeout=ANSWER_LIMIT_S, socket_connect_timeout=ANSWER_LIMIT_S,
               retry=Retry(NoBackoff(), 0)) for host, port in (node.split(":") for node in SETTINGS["NODES"].split(","))]
STOP = []


def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def pick_ms(name):
    return random.randint(*map(int, SETTINGS[name + "_MS"].split("-")))


def say(event, **fields):
    """Writes one line of the history; returns the last word of the answer, the value of the register."""
    print(json.dumps({"event": event, "t_us": now_us(), **fields}), flush=True)
    answer = sys.stdin.readline() or os._exit(1)  # the harness is gone
    return int(answer.split()[-1])


def hold(lock, key, deadline_us, length_ms):
    """Reads first, writes what follows from it later, while pottery says that the lock is held. The status of a loss."""
    until_us, value = now_us() + length_ms * 1000, None
    while now_us() < until_us and not STOP:
        left_s = lock.locked()
        if left_s and left_s < lock.auto_release_time / 2:
            try:
                lock.extend()
                left_s = lock.locked()
                deadline_us = now_us() + int(left_s * 1e6)
                say("renewed", key=key, deadline_us=deadline_us)
            except PrimitiveError:
                pass  # held as long as before
        if now_us() >= deadline_us:
            return "EXPIRED"
        if not left_s:
            return "GONE"
        value = say("read", key=key) + 1 if value is None else say("write", key=key, value=value) + 1
        time.sleep(random.randint(2, 31) / 1000)
    return "" if now_us() < deadline_us else "EXPIRED"


def operate(key):
    lease_ms, blocking = pick_ms("LEASE"), random.randrange(6) > 0
    length_ms = pick_ms("HOLD") + (lease_ms * 3 // 2 if random.randrange(10) == 0 else 0)  # which lives by extend
    lock = Redlock(key=key, masters=set(NODES), auto_release_time=lease_ms / 1000, num_extensions=1000)
    say("invoke", key=key)
    if not lock.acquire(blocking=blocking, timeout=pick_ms("WAIT") / 1000 if blocking else -1):
        say("refused", key=key, status="HELD")
        return
    left_s = lock.locked()
    deadline_us = now_us() + int(left_s * 1e6)
    if not left_s:
        say("refused", key=key, status="LATE")
    else:
        say("granted", key=key, deadline_us=deadline_us)
        why = hold(lock, key, deadline_us, length_ms)
        say("lost", key=key, status=why) if why else say("released", key=key)
    try:
        lock.release()
    except PrimitiveError:
        pass  # it was gone, or too few nodes answered


logging.disable()  # each error of each node
signal.signal(signal.SIGTERM, lambda *_: STOP.append(1))
random.seed(int(SETTINGS["SEED"]))
say("hello", version=1, program=f"pottery {importlib.metadata.version('pottery')}")
while not STOP:
    operate(random.choice(SETTINGS["KEYS"].split(",")))
    time.sleep(pick_ms("THINK") / 1000)
os._exit(0)  # threads may still wait for a node
