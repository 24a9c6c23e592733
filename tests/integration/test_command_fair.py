#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run --fair: processes get the lock in the order in which they came: test_command_fair.py PATH_TO_quorlock
[TEST...]"""
import json
import re
import signal
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, wait_for


class Fair(Bootstrapped):
    def queued(self):
        """How many processes wait."""
        return max(server.ask("ZCOUNT", f"quorlock:queue:{self.key}", 10**14, "+inf") for server in SERVERS)

    def await_queued(self, count):
        wait_for(lambda: self.queued() == count)

    def hold(self, *options):
        """A process that has the lock until all are to end."""
        holder = self.shell("--fair", *options, script=f">up; while [ ! -e {self.path('go')} ]; do sleep .01; done")
        self.wait_file("up", holder)
        return holder

    def hold_and_queue(self, count):
        """One process that has the lock, and others that wait for it; each writes its number when it has it."""
        holder = self.hold()
        waiters = []
        for number in range(count):
            waiters.append(self.shell("--fair", script=f"echo {number} >>{self.path('order')}"))
            self.await_queued(number + 1)
        return holder, waiters

    def end_all(self, *processes):
        open(self.path("go"), "w").close()
        for process in processes:
            status, _, err = self.end(process)
            self.assertEqual(status, 0, err)

    def test_processes_get_the_lock_in_the_order_in_which_they_came(self):
        holder, waiters = self.hold_and_queue(8)
        self.end_all(holder, *waiters)
        self.assertEqual(self.read("order").split(), [str(number) for number in range(8)])
        self.assertEqual(self.queued(), 0)

    def test_a_killed_process_is_forgotten(self):
        holder, waiters = self.hold_and_queue(4)
        waiters[0].send_signal(signal.SIGKILL)
        waiters[2].send_signal(signal.SIGKILL)
        self.end_all(holder, waiters[1], waiters[3])
        self.assertEqual(self.read("order").split(), ["1", "3"])

    def test_a_process_that_a_signal_ends_leaves_the_queue(self):
        holder, waiters = self.hold_and_queue(3)
        waiters[1].send_signal(signal.SIGTERM)
        self.assertEqual(self.end(waiters[1])[0], 143)
        self.await_queued(2)
        self.end_all(holder, waiters[0], waiters[2])
        self.assertEqual(self.read("order").split(), ["0", "2"])

    def test_a_process_that_waits_for_a_permit_stands_in_the_queue(self):
        holder = self.hold("--permits", "1")
        waiter = self.shell("--fair", "--permits", "1", script="true")
        self.await_queued(1)
        self.end_all(holder, waiter)

    def places(self):
        """The clients that wait, as inspect shows them: whether shared, and the place in the queue."""
        status, out, err = self.quorlock("inspect", "--json", self.key)
        self.assertEqual(status, 0, err)
        return [(one["shared"], one["place"]) for one in json.loads(out)["holders"] if one["kind"] == "waits"]

    def test_inspect_shows_the_queue(self):
        holder = self.hold()
        modes = ([], ["--shared"], [], ["--shared"])
        waiters = []
        for number, mode in enumerate(modes):
            waiters.append(self.start("run", "--fair", "--label", f"{number}:", *mode, self.key, "--", "true"))
            self.await_queued(number + 1)
        self.assertEqual(self.places(), [(bool(mode), place) for place, mode in enumerate(modes, 1)])
        table = self.quorlock("inspect", self.key)[1]
        rows = re.findall(r"^(writer|reader) waits, place (\d+) +(\d+):", table, re.MULTILINE)
        self.assertEqual(rows, [("reader" if mode else "writer", str(number + 1), str(number))
                                for number, mode in enumerate(modes)])
        self.end_all(holder, *waiters)

    def test_where_there_is_no_queue_it_is_refused(self):
        status, _, err = self.quorlock("run", "--fair", "--dialect", "redisson", self.key, "--", "true")
        self.assertEqual(status, 64, err)
        self.assertIn("--fair: the redisson dialect has no such locks", err)


if __name__ == "__main__":
    command_case.main()
