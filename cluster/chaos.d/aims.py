# SPDX-License-Identifier: BSD-3-Clause
"""Moments at which a fault does most harm: the harness sees them in the lines of the clients, and holds its answer back."""
import contextlib
import threading

from system import now_us, wait_until


class Moment:
    """A line of one client, as it comes. Until let_go() its client has no answer; a write is not in the register yet."""

    def __init__(self, event, fits):
        self.event, self.fits = event, fits
        self.channel, self.fields = None, None
        self.caught, self.go = threading.Event(), threading.Event()

    def let_go(self):
        self.go.set()


class Aims:
    """What the faults wait for, one at a time, and who holds what, by the lines so far."""

    def __init__(self):
        self.lock, self.moment = threading.Lock(), None
        self.held, self.visits = {}, {}  # {(key, client): deadline}; {key: the client that wrote last}

    def note(self, client, fields):
        """A line that is in the history now."""
        key, event = fields.get("key"), fields["event"]
        if event in ("granted", "renewed"):
            self.held[key, client] = fields["deadline_us"]
        elif event in ("released", "lost"):
            self.held.pop((key, client), None)
        elif event == "write":
            self.visits[key] = client

    def owners(self, key):
        return {client for (held, client), deadline_us in list(self.held.items()) if held == key and deadline_us > now_us()}

    def meet(self, channel, fields):
        """Holds this line back if a fault waits for it."""
        with self.lock:
            moment = self.moment
            if not moment or moment.event != fields["event"] or not moment.fits(channel, fields):
                return
            self.moment = None
            moment.channel, moment.fields = channel, fields
            moment.caught.set()
        moment.go.wait()

    @contextlib.asynccontextmanager
    async def at(self, event, fits, seconds):
        """The next such moment, held; None: there is none within so many seconds."""
        moment = self.moment = Moment(event, fits)
        try:
            yield moment if await wait_until(moment.caught.is_set, seconds) else None
        finally:
            with self.lock:
                self.moment = None
            moment.let_go()
