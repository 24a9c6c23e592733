#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A client for cluster/chaos with a careful lock, and with one known mistake in it: how many mistakes does a run find?

cluster/chaos --client 'python3 flawed.py [MISTAKE]'; without MISTAKE the lock must hold.
"""
import asyncio
import json
import os
import random
import secrets
import signal
import sys
import time

MISTAKES = {
    "no-renewal": "asks once, and works on to the end of its work; without tokens, which would hide that",
    "no-compare": "releases the key of whoever owns it",
    "no-validity-check": "counts its lease from the answers, however late they come",
    "answers-majority": "wants a majority of the nodes that answer",
    "no-guard": "believes a node that has just restarted, perhaps without its memory",
    "same-token": "gives out the newest token, not a newer one",
    "no-fencing": "has no fencing tokens",
    "renews-each": "renews node by node, and each yes extends the lock",
    "half-quorum": "is content with half of the nodes, rounded down",
}
SETTINGS = {name[15:]: value for name, value in os.environ.items() if name.startswith("QUORLOCK_CHAOS_")}
MISTAKE = sys.argv[1] if len(sys.argv) > 1 else ""
FENCED = MISTAKE not in ("no-renewal", "no-fencing")
TIMEOUT_S = 0.1
STOP = []

# Each script begins with it. A node that has restarted, or lost its memory, may have forgotten locks: until all of them have
# ended it does not vote. The run of the server is remembered on the node itself.
GUARD = """
local run, time = redis.call('info', 'server'):match('run_id:(%w+)'), redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known, since = (redis.call('get', KEYS[3]) or ''):match('(%w+) (%d+)')
if known ~= run then since = now; redis.call('set', KEYS[3], run .. ' ' .. now) end
if now - since < tonumber(ARGV[2]) then return redis.error_reply('QUARANTINED') end
local mine = redis.call('get', KEYS[1]) == ARGV[1]
"""
# A node without a counter begins with its clock, so that its tokens are newer than those that it may have forgotten.
TAKE = """
if not redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[3]) then return 0 end
return tonumber(redis.call('get', KEYS[2]) or now)"""
RAISE = """
if tonumber(redis.call('get', KEYS[2]) or 0) < tonumber(ARGV[3]) then redis.call('set', KEYS[2], ARGV[3]) end
return 1"""
EXTEND = "return mine and redis.call('pexpire', KEYS[1], ARGV[3])"
RELEASE = "return mine and redis.call('del', KEYS[1])"
DELETE = "return redis.call('del', KEYS[1])"


def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def pick_ms(name):
    return random.randint(*map(int, SETTINGS[name + "_MS"].split("-")))


def say(event, **fields):
    """Writes one line of the history; returns the value of the register, or None if it refuses the access."""
    print(json.dumps({"event": event, **fields}), flush=True)
    answer = sys.stdin.readline() or sys.exit("the harness is gone")
    return int(answer.split()[-1]) if answer.startswith("ok") else None


class Node:
    """A connection to one node, made again after each failure: the answers to what has timed out never come."""

    def __init__(self, address):
        self.host, self.port = address.rsplit(":", 1)
        self.reader = self.writer = None

    async def request(self, *words):
        words = [str(word).encode() for word in words]
        self.writer.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        answer = await self.reader.readuntil(b"\r\n")
        if answer.startswith(b":"):
            return int(answer[1:])
        return 0 if answer.startswith(b"$") else None

    async def ask(self, *words):
        """The answer; None: there is none that counts."""
        answered = False
        try:
            if not self.writer:
                self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
            answer = await self.request(*words)
            answered = True
            return answer
        except (OSError, EOFError):
            return None
        finally:
            if self.writer and not answered:
                self.writer.close()
                self.writer = None


def drop(task):
    task.cancel()


async def answers(asked):
    """What comes in time, or is there when this process runs again after a stop."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    await asyncio.wait(tasks, timeout=TIMEOUT_S)
    return [task.result() if task.done() else drop(task) for task in tasks]


NODES = [Node(address) for address in SETTINGS["NODES"].split(",")]


class Lock:
    def __init__(self, key):
        self.key, self.owner, self.lease_ms = key, secrets.token_hex(8), pick_ms("LEASE")
        self.asked_us = self.deadline_us = self.token = 0

    def ask(self, script, *arguments):
        """Asks all nodes at once."""
        quarantine_ms = 0 if MISTAKE == "no-guard" else int(SETTINGS["MAX_LEASE_MS"]) * 1.01 + 10
        keys, guard = (3, self.key, f"{self.key}:token", "flawed:guard"), (self.owner, quarantine_ms)
        return [node.ask("EVAL", GUARD + script, *keys, *guard, *arguments) for node in NODES]

    def enough(self, answered):
        if MISTAKE == "half-quorum":
            needed = max(1, len(NODES) // 2)
        elif MISTAKE == "answers-majority":
            needed = sum(answer is not None for answer in answered) // 2 + 1
        else:
            needed = len(NODES) // 2 + 1
        return sum(bool(answer) for answer in answered) >= needed

    def end_us(self, from_us):
        return from_us + self.lease_ms * 990 - 2000  # less what clocks may differ by

    async def acquire(self):
        self.asked_us = now_us()
        taken = await answers(self.ask(TAKE, self.lease_ms))
        granted = self.enough(taken)
        if granted and FENCED:
            self.token = max(answer or 0 for answer in taken) + (MISTAKE != "same-token")
            granted = self.enough(await answers(self.ask(RAISE, self.token)))
        self.deadline_us = self.end_us(now_us() if MISTAKE == "no-validity-check" else self.asked_us)
        return granted and self.valid()

    def valid(self):
        return now_us() < self.deadline_us or (MISTAKE == "no-renewal" and self.deadline_us > 0)

    async def renew_in_time(self):
        if MISTAKE == "no-renewal" or now_us() < self.asked_us + self.lease_ms * 300:
            return
        self.asked_us = now_us()
        asked = self.ask(EXTEND, self.lease_ms)
        if MISTAKE == "renews-each":
            extended = any([(await answers([one]))[0] for one in asked])
        else:
            extended = self.enough(await answers(asked))
        if extended and self.valid():
            self.deadline_us = self.end_us(self.asked_us)
            say("renewed", key=self.key, deadline_us=self.deadline_us)

    async def release(self, script=RELEASE):
        await answers(self.ask(script))


async def work(lock, hold_ms):
    """Reads and writes while the lock is valid; returns whether it still is."""
    fence, until_us = {"fence": lock.token} if FENCED else {}, now_us() + hold_ms * 1000
    say("granted", key=lock.key, deadline_us=lock.deadline_us, **fence)
    value = say("read", key=lock.key, **fence) if lock.valid() else None
    while value is not None and now_us() < until_us and not STOP:
        await lock.renew_in_time()
        if not lock.valid():
            return False
        value = say("write", key=lock.key, value=value + 1, **fence)
        await asyncio.sleep(0.01)
    return value is not None and lock.valid()


async def operate(key):
    lock, hold_ms = Lock(key), pick_ms("HOLD")
    say("invoke", key=key)
    if not await lock.acquire():
        await lock.release()
        say("refused", key=key, status="HELD")
        return
    held = await work(lock, hold_ms)
    say("released" if held else "lost", key=key)  # before any node hears of it
    await lock.release(DELETE if MISTAKE == "no-compare" else RELEASE)


async def main():
    say("hello", version=1, program=f"flawed.py {MISTAKE or 'without a mistake'}")
    while not STOP:
        await operate(random.choice(SETTINGS["KEYS"].split(",")))
        await asyncio.sleep(pick_ms("THINK") / 1000)


if MISTAKE and MISTAKE not in MISTAKES:
    print(f"'{MISTAKE}' is none of {', '.join(MISTAKES)}", file=sys.stderr)
    sys.exit(64)
signal.signal(signal.SIGTERM, lambda *_: STOP.append(1))
random.seed(int(SETTINGS["SEED"]))
asyncio.run(main())
