# SPDX-License-Identifier: BSD-3-Clause
"""Writes the history: checks, stamps and answers each client's lines. quorlock-chaos(7) has the rules.

A client is any program. It writes one JSON object a line to its standard output and reads the answer from its
standard input. So its lines are its own without a name in them, and all that it wrote before it was killed is read.
The protected register lives here, where no client can write to it but by asking.
"""
import json
import os
import threading

from aims import Aims
from history import VERSION, wrong_field
from system import now_us

LINE_MAX = 65536
FAR = 2 ** 62  # the largest number in a line
# The events that a client may write, and their required fields.
EVENTS = {"hello": ("version",), "invoke": ("key",), "granted": ("key", "deadline_us"), "renewed": ("key", "deadline_us"),
          "refused": ("key",), "lost": ("key",), "released": ("key",), "read": ("key",), "write": ("key", "value"),
          "breach": ("text",), "observed": ("key", "term")}
WITH_DEADLINE = ("granted", "renewed", "read", "write")


class Register:
    """The resource that a lock protects: a number, and the newest token that it has seen. Tokens of readers of a shared
    lock are not remembered: two of them may differ, though neither reader came after the other."""

    def __init__(self):
        self.value = self.seen = 0

    def access(self, fields):
        """Reads or writes; returns the event for the history. Without a token nothing is refused."""
        fence = fields.get("fence", 0)
        if 0 < fence < self.seen:
            return fields | {"event": fields["event"] + "_refused", "now": self.value, "seen": self.seen}
        if fields.get("mode") != "shared":
            self.seen = max(self.seen, fence)
        if fields["event"] == "write":
            self.value = fields["value"]
        return fields | {"value": self.value, "now": self.value, "seen": self.seen}


class Channel:
    """The two pipes of one process of a client."""

    def __init__(self, name, process):
        self.name, self.process = name, process
        self.lines = 0
        self.last_us = self.begun_us = now_us()
        self.greeted = self.ended = False
        self.stops_by_answer = self.stopping = False  # a program without signals; it must end now
        self.armed = False
        self.asked_us, self.outcomes = {}, []  # of each user; of each operation: when it was asked for, "granted" or why not
        self.holding, self.go = threading.Event(), threading.Event()
        self.thread = None

    def hold_next_write(self):
        """Holds the next write back until let_go, as if the client were stopped right before it."""
        self.holding.clear()
        self.go.clear()
        self.armed = True

    def let_go(self):
        self.armed = False
        self.go.set()

    def wait_where_held(self):
        if self.armed:
            self.armed = False
            self.holding.set()
            self.go.wait()


class Malformed(Exception):
    """A line is malformed; the text has the remedy."""


class Recorder:
    """Collects the lines of all clients and of the harness in one file; each client process has a thread."""

    def __init__(self, path, keys, max_lease_ms):
        self.path, self.keys, self.max_lease_ms = path, keys, max_lease_ms
        self.registers = {}  # one for each key, or each of its slots, which have tokens of their own
        self.grants, self.granted_us = 0, {}  # when each key, or slot, was last granted in its mode
        self.problem = None
        self.aims = Aims()
        self.lock = threading.Lock()
        self.file = open(path, "w", encoding="utf-8")  # pylint: disable=consider-using-with

    def listen(self, name, process):
        channel = Channel(name, process)
        channel.thread = threading.Thread(target=self._follow, args=(channel,), daemon=True)
        channel.thread.start()
        return channel

    def record(self, event, **fields):
        """A line of the harness itself; returns its time."""
        with self.lock:
            t_us = now_us()
            self._write({"t_us": t_us, "event": event, **fields})
        return t_us

    def lines(self):
        """The whole history, by time."""
        with self.lock:
            self.file.flush()
        with open(self.path, encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        found.sort(key=lambda line: line["t_us"])
        return found

    def _write(self, fields):
        self.file.write(json.dumps(fields, separators=(",", ":")) + "\n")

    def _follow(self, channel):
        try:
            # An incomplete line of a killed client had no effect.
            while (line := channel.process.stdout.readline(LINE_MAX)).endswith(b"\n") or len(line) == LINE_MAX:
                channel.lines += 1
                answer = self.take(channel, line)
                os.write(channel.process.stdin.fileno(), f"{answer}\n".encode())
        except Malformed as why:
            self.problem = self.problem or f"client {channel.name}, line {channel.lines}: {why}"
        except OSError:
            pass  # nobody reads: the client was killed, or ended
        finally:
            channel.ended = True

    def take(self, channel, line):
        """Handles one line; returns the answer. Raises Malformed."""
        fields = read_line(line, channel.greeted, self.keys)
        if fields["event"] == "write":
            channel.wait_where_held()
            self.aims.meet(channel, fields)
        with self.lock:
            answer = self._record(channel, fields)
        if fields["event"] != "write":
            self.aims.meet(channel, fields)
        return answer

    def _record(self, channel, fields):
        """Stamps one line, records it and returns the answer."""
        event = fields["event"]
        arrived_us = now_us()
        t_us = self._stamp(channel, fields, arrived_us)
        channel.last_us = t_us
        fields = {"t_us": t_us, "client": channel.name} | {k: v for k, v in fields.items() if k not in ("t_us", "client")}
        verdict = "ok"
        if event == "hello":
            channel.greeted, channel.stops_by_answer = True, fields.get("stop") == "answer"
            fields |= {"event": "client", "state": "running"}
        elif event == "invoke":
            channel.asked_us[fields.get("user", 0)] = t_us
        elif event == "refused":
            channel.outcomes.append((channel.asked_us.get(fields.get("user", 0), 0), fields.get("status", "")))
        elif event == "granted":
            channel.outcomes.append((channel.asked_us.get(fields.get("user", 0), 0), "granted"))
            self.grants += 1
            self.granted_us[fields["key"], fields.get("mode", "lock"), fields.get("slot", 0)] = t_us
        elif event in ("read", "write"):
            fields = self.registers.setdefault((fields["key"], fields.get("slot", 0)), Register()).access(fields)
            verdict = "ok" if fields["event"] == event else "refused"
        self._write(fields)
        self.aims.note(channel.name, fields)
        value = f" {fields['now']}" if event in ("read", "write") else ""
        return f"{verdict} {t_us}{value}{' stop' if channel.stopping else ''}"

    def _stamp(self, channel, fields, arrived_us):
        """The time of a line: the client's own reading, if it gives a plausible one."""
        event, deadline_us = fields["event"], fields.get("deadline_us", 0)
        if event in WITH_DEADLINE and "deadline_us" in fields:
            if deadline_us < channel.begun_us:
                raise Malformed(f"deadline_us {deadline_us} lies before this client began, at {channel.begun_us}: {CLOCK}")
            if deadline_us > arrived_us + self.max_lease_ms * 1000:
                raise Malformed(f"deadline_us {deadline_us} is more than QUORLOCK_CHAOS_MAX_LEASE_MS "
                                f"({self.max_lease_ms} ms) away from {arrived_us}, now: {CLOCK}, and no lease is longer")
        t_us = fields.get("t_us")
        if event in ("read", "write", "hello"):
            return arrived_us  # these accesses happen here
        if t_us is None:
            # The line was read after the end of the grant, so the reported window was open before that, if only briefly.
            return max(channel.last_us, deadline_us - 1) if event == "granted" and deadline_us <= arrived_us else arrived_us
        if t_us > arrived_us:
            raise Malformed(f"t_us {t_us} lies in the future, it is {arrived_us}: {CLOCK}")
        if t_us < channel.last_us:
            raise Malformed(f"t_us {t_us} lies before the answer to the line before, {channel.last_us}: {CLOCK}, and read "
                            "it after that answer")
        return t_us


CLOCK = "give microseconds of CLOCK_MONOTONIC"


def read_line(line, greeted, keys):
    """Parses a client's line. Raises Malformed."""
    if len(line) == LINE_MAX:
        raise Malformed(f"longer than {LINE_MAX} bytes")
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise Malformed(f"{line.rstrip()[:80].decode(errors='replace')!r} is no JSON object: standard output is for the "
                        f"history alone, write everything else{'' if greeted else ', such as a banner,'} to standard error")
    event = fields.get("event")
    if not isinstance(event, str) or event not in EVENTS:
        raise Malformed(f"{event!r} is no event that a client writes; there are {', '.join(EVENTS)}")
    if (event == "hello") == greeted:
        raise Malformed("a second hello" if greeted else f"{event} before hello: the first line is "
                        f'{{"event":"hello","version":{VERSION}}}')
    for name in EVENTS[event]:
        if name not in fields:
            raise Malformed(f"{event} without {name}")
    if event == "hello" and fields["version"] != VERSION:
        raise Malformed(f"version {fields['version']!r} of the protocol is not known here; this is version {VERSION}")
    if event == "hello" and fields.get("stop", "signal") not in ("signal", "answer"):
        raise Malformed(f"stop is {fields['stop']!r}, neither signal (SIGTERM, the default) nor answer")
    if "key" in EVENTS[event] and fields["key"] not in keys:
        raise Malformed(f"key {fields['key']!r} is none of QUORLOCK_CHAOS_KEYS ({', '.join(keys)})")
    for name, value in fields.items():
        wrong = wrong_field(name, value)
        if wrong or (isinstance(value, int) and value > FAR):
            raise Malformed(wrong or f"{name} is {value}, too large")
    return fields
