# SPDX-License-Identifier: BSD-3-Clause
"""Reads a history of lock operations, line by line, and checks each line.

One JSON object a line. Every line has `t_us` (CLOCK_MONOTONIC, microseconds)
and `event`. A client's line about its own operation also has `client` and
`key`. A grant has `deadline_us`, the end of the validity that the library
reported; the grant of a permit also has its `slot` and the number of
`permits`, that of a leader its `term`. `mode` tells how the key is taken, and
`user` which of several users in one client takes it. Lines of the supervisor
(faults, states of nodes) are drawn, but not judged.
"""
import json
import shutil
import sys
import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from verdict import MODES

VERSION = 1  # of the protocol in quorlock-chaos(7)
# Events that a client reports of its operations, and accesses to the register.
CLIENT_EVENTS = {
    "invoke", "granted", "renewed", "refused", "lost", "released",
    "read", "read_refused", "write", "write_refused", "breach", "failed", "killed", "observed",
}
# Events that the supervisor reports; only healed and end are judged.
SYSTEM_EVENTS = {"healed", "end", "fault", "node", "client", "run"}
TEXTS = ("client", "key", "status", "text", "program", "mode", "leader")
NUMBERS = ("t_us", "deadline_us", "fence", "value", "until_us", "bound_us", "valid_ms", "wait_ms", "id", "version", "user",
           "slot", "permits", "term")
FAR = 1 << 63  # no time or token is so large


class Malformed(Exception):
    """The history cannot be judged; `problems` is a list of (line number, text)."""

    def __init__(self, problems):
        super().__init__(f"{len(problems)} malformed lines")
        self.problems = problems


@dataclass(slots=True)
class Event:
    t_us: int
    event: str
    client: str
    key: str
    line: int
    fields: dict

    def number(self, name, default=0):
        return self.fields.get(name, default)


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def wrong_field(name, value):
    """Returns what is wrong with the value of a field, or None."""
    if name in NUMBERS and not _is_count(value):
        return f"{name} is {value!r}, not a whole number"
    if name in NUMBERS and value >= FAR:
        return f"{name} is {value}, too large"
    if name not in TEXTS:
        return None
    if name == "mode" and value not in MODES:
        return f"mode is {value!r}, none of {', '.join(MODES)}"
    # JSON can escape half of a surrogate pair, which cannot be written to a file.
    return None if isinstance(value, str) and value.isprintable() else f"{name} is {value!r}, not a printable string"


def _problem(fields):
    """Returns why this object is not an event of a history, or None."""
    if not isinstance(fields, dict):
        return "not a JSON object"
    if not _is_count(fields.get("t_us")) or fields["t_us"] >= FAR:
        return "no t_us (microseconds, a whole number)"
    event = fields.get("event")
    # Other types may not be hashable.
    if not isinstance(event, str) or event not in CLIENT_EVENTS and event not in SYSTEM_EVENTS:
        return f"unknown event {event!r}"
    wrong = next(filter(None, (wrong_field(name, value) for name, value in fields.items())), None)
    if wrong:
        return wrong
    if event not in CLIENT_EVENTS:
        return None
    if not fields.get("client"):
        return f"{event} without a client"
    if event not in ("killed", "breach", "failed") and not fields.get("key"):
        return f"{event} without a key"
    if event == "granted" and "deadline_us" not in fields:
        return "granted without deadline_us, the end of its validity"
    if event == "observed" and "term" not in fields:
        return "observed without term, the newest one that the observer reported"
    return None


def _read(number, text, problems):
    """The event of that line. None: the line is empty, or was added to the problems."""
    if not text.strip():
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append((number, f"not JSON ({error})"))
        return None
    problem = _problem(fields)
    if problem:
        problems.append((number, problem))
        return None
    # There are only a few different names.
    client, key = sys.intern(fields.get("client", "")), sys.intern(fields.get("key", ""))
    return Event(fields["t_us"], sys.intern(fields["event"]), client, key, number, fields)


def parse(lines):
    """The events of a history, ordered by time; lines of the same time keep their order."""
    problems = []
    events = [event for number, text in enumerate(lines, 1) if (event := _read(number, text, problems))]
    if problems:
        raise Malformed(problems)
    events.sort(key=lambda event: event.t_us)
    return events


def load(path):
    """The events of the file at path. Raises Malformed, OSError, UnicodeDecodeError."""
    with open(path, encoding="utf-8") as file:
        return parse(file)


class Stream(Sequence):
    """The events of a file, each read again when it is needed, so that a long history needs little memory.

    The file is open for reading bytes and stays open; one that cannot be read twice is copied first. Raises as load does.
    """

    def __init__(self, file):
        if not file.seekable():
            copy = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            file = copy
        self.file, self.offsets, self.lines = file, array("q"), array("q")
        times, problems, offset = array("q"), [], 0
        for number, text in enumerate(file, 1):
            event = _read(number, text.decode(), problems)
            if event:
                times.append(event.t_us)
                self.offsets.append(offset)
                self.lines.append(number)
            offset += len(text)
        if problems:
            raise Malformed(problems)
        self.order = array("q", sorted(range(len(times)), key=times.__getitem__))

    def __len__(self):
        return len(self.order)

    def __getitem__(self, index):
        place = self.order[index]
        self.file.seek(self.offsets[place])
        return _read(self.lines[place], self.file.readline().decode(), [])
