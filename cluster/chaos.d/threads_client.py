# SPDX-License-Identifier: BSD-3-Clause
"""A client of chaos whose users are threads that share one client of the Python package; each takes locks.

It follows the protocol of quorlock-chaos(7), as threads.c does.
"""
import json
import os
import random
import signal
import sys
import threading
import time

import quorlock

SETTINGS = {name[15:]: value for name, value in os.environ.items() if name.startswith("QUORLOCK_CHAOS_")}
USERS = int(SETTINGS["USERS"])
STOP = threading.Event()
# For one line of the history at a time. The threads write it, and so does the callback, in the library's thread.
TELLING = threading.Lock()
JOIN_S = 0.05


def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def say(event, **fields):
    """Writes one line; returns whether the register accepts it, and its value."""
    os.write(1, json.dumps({"t_us": now_us(), "event": event, **fields}).encode() + b"\n")
    answer = sys.stdin.readline()
    if not answer:
        os._exit(1)  # the harness is gone
    words = answer.split()
    return words[0] == "ok", int(words[-1]) if words[-1].isdigit() else 0


class User(threading.Thread):
    def __init__(self, client, number):
        super().__init__()
        self.client, self.lock = client, None
        self.of_mine = {"user": number} if USERS > 1 else {}
        self.random = random.Random(f"{SETTINGS['SEED']} {number}")
        self.holding = self.lost = False  # protected by TELLING

    def pick_ms(self, name):
        return self.random.randint(*map(int, SETTINGS[name + "_MS"].split("-")))

    def deadline_us(self):
        """The end of validity as far as it is certain now; 0: there is none left."""
        before_us, valid_ms = now_us(), self.lock.valid_ms
        return before_us + valid_ms * 1000 if valid_ms else 0

    def on_lost(self, _lock, reason):
        with TELLING:
            if self.holding:
                say("lost", **self.of_mine, status=reason)
            self.holding, self.lost = False, True

    def step(self, until_us, writes, value, fence):
        """Reads the register first, and writes the next value later. Returns the value; None: the hold is over."""
        with TELLING:
            deadline_us = self.deadline_us() if self.holding and now_us() < until_us else 0
            if not deadline_us:
                return None
            fields = {**self.of_mine, "deadline_us": deadline_us, "fence": fence}
            ok, read = say("write", **fields, value=value) if writes else say("read", **fields)
        return (value if writes else read) if ok and not STOP.is_set() else None

    def hold(self, hold_ms):
        with TELLING:
            deadline_us = 0 if self.lost else self.deadline_us()
            self.holding = deadline_us > 0
            if not self.holding:
                say("refused", **self.of_mine, status="LATE")
                return
            fence, until_us = self.lock.fence, now_us() + hold_ms * 1000
            say("granted", **self.of_mine, deadline_us=deadline_us, fence=fence)
        value, writes = 0, False
        while (value := self.step(until_us, writes, value, fence)) is not None:
            value, writes = value + 1, True
            time.sleep(self.random.uniform(0.002, 0.03))
        with TELLING:  # the history ends the hold before the first node can learn of the release
            if self.holding:
                say("released", **self.of_mine)
            self.holding = False

    def operate(self):
        self.of_mine["key"] = self.random.choice(SETTINGS["KEYS"].split(","))
        lease_ms, hold_ms = self.pick_ms("LEASE"), self.pick_ms("HOLD")
        if self.random.random() < 0.1:  # longer than its lease, which needs renewal
            hold_ms += lease_ms + lease_ms // 2
        self.lost = False
        self.lock = self.client.lock(self.of_mine["key"], lease_ms=lease_ms, wait_ms=self.pick_ms("WAIT"),
                                     fencing=SETTINGS["FENCE"] == "1", on_lost=self.on_lost)
        with TELLING:
            say("invoke", **self.of_mine)
        try:
            self.lock.acquire()
        except quorlock.Error as error:
            with TELLING:
                say("refused", **self.of_mine, status=error.name)
            return
        self.hold(hold_ms)
        try:
            self.lock.release()
        except quorlock.Lost:
            pass

    def run(self):
        while not STOP.is_set():
            self.operate()
            time.sleep(self.pick_ms("THINK") / 1000)


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # in all threads
    threading.excepthook = lambda what: (sys.excepthook(what.exc_type, what.exc_value, what.exc_traceback), os._exit(1))
    client = quorlock.Client(SETTINGS["NODES"], guard=SETTINGS["GUARD"], max_lease_ms=int(SETTINGS["MAX_LEASE_MS"]),
                             owner_label=SETTINGS["CLIENT"], password_file=os.environ.get("QUORLOCK_PASSWORD_FILE"),
                             tls_ca=os.environ.get("QUORLOCK_TLS_CA"), tls_name=os.environ.get("QUORLOCK_TLS_NAME"))
    say("hello", version=1, program=f"quorlock {quorlock.__version__} for Python, threads")
    users = [User(client, number) for number in range(1, USERS + 1)]
    for user in users:
        user.start()
    signal.sigwait({signal.SIGTERM})
    STOP.set()
    for user in users:
        while user.is_alive():
            if user.lock:
                try:
                    user.lock.cancel()
                except quorlock.Error:
                    pass  # it does not wait
            user.join(JOIN_S)
    client.close()


main()
