#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What INFO shows when replicas come and go, and when a role changes, on a real server: test_replication.py PATH_TO_quorlock [TEST...]

The table in quorlock-servers(7) is made of the docstrings and of what the cases here must show. Rule 4.15 rests on it."""
import os
import re
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import wait_for

FIELDS = ("run_id", "master_replid", "master_replid2", "total_net_repl_input_bytes")
ZEROS = "0" * 40
CASES = []


def case(run_id, replid, replid2, taken):
    """What the fields show behind it, in words of the page."""
    def put(function):
        CASES.append((function, (run_id, replid, replid2, taken)))
        return function
    return put


class World:
    """A server that was never a replica, and others for it."""

    def __init__(self, folder, end):
        self.folder, self.end, self.count = folder, end, 0
        self.looks_at(self.server())

    def server(self, *options):
        self.count += 1
        made = command_case.Server(self.folder, f"{self.count}", "--repl-diskless-sync-delay", 0, *options)
        self.end(made.kill)
        return made

    def info(self):
        text = (self.one.ask("INFO", "server") + self.one.ask("INFO", "replication") + self.one.ask("INFO", "stats")).decode()
        found = {name: re.search(rf"^{name}:(\w+)", text, re.M) for name in FIELDS}
        return {name: match and match[1] for name, match in found.items()}

    def looks_at(self, server):
        """What comes now changes it, or does not."""
        self.one, self.before = server, None
        self.before = self.info()

    def shows(self):
        now = self.info()
        second = now["master_replid2"]
        return ("same" if now["run_id"] == self.before["run_id"] else "new",
                "same" if now["master_replid"] == self.before["master_replid"] else "new",
                "zeros" if second == ZEROS else "an id", {None: None, "0": "none"}.get(now["total_net_repl_input_bytes"], "some"))

    def replica(self):
        made = self.server("--replicaof", self.one.host, self.one.port)
        self.await_link(made)
        return made

    @staticmethod
    def await_link(server):
        wait_for(lambda: b"master_link_status:up" in server.ask("INFO", "replication"))

    def await_new_id(self):
        before = self.info()["master_replid"]
        wait_for(lambda: self.info()["master_replid"] != before)

    def leaves(self, replica):
        replica.kill()
        wait_for(lambda: b"connected_slaves:0" in self.one.ask("INFO", "replication"))

    def flips(self):
        other = self.server()
        self.one.ask("REPLICAOF", other.host, other.port)
        self.await_link(self.one)
        self.one.ask("REPLICAOF", "NO", "ONE")


@case("same", "new", "zeros", "none")
def first(world):
    """the first replica comes"""
    world.replica()


@case("same", "same", "zeros", "none")
def second(world):
    """a second one; or one is back in time"""
    replica = world.replica()
    world.looks_at(world.one)
    world.leaves(replica)
    replica.start()
    world.replica()
    world.await_link(replica)


@case("same", "new", "zeros", "none")
def away(world):
    """all were away for repl-backlog-ttl"""
    replica = world.replica()
    world.looks_at(world.one)
    world.one.ask("CONFIG", "SET", "repl-backlog-ttl", 1)
    world.leaves(replica)
    world.await_new_id()


@case("same", "new", "zeros", "none")
def back(world):
    """one comes back after that"""
    away(world)
    world.looks_at(world.one)
    world.replica()


@case("same", "new", "an id", "some")
def flip(world):
    """REPLICAOF another, and NO ONE"""
    world.flips()


@case("same", "new", "zeros", "some")
def flip_and_away(world):
    """that, and none for repl-backlog-ttl"""
    world.one.ask("CONFIG", "SET", "repl-backlog-ttl", 1)
    world.flips()
    world.await_new_id()


@case("same", "new", "an id", "none")
def flip_and_reset(world):
    """that, and CONFIG RESETSTAT"""
    world.flips()
    world.one.ask("CONFIG", "RESETSTAT")


@case("same", "new", "an id", "some")
def promotion(world):
    """a replica is promoted"""
    replica = world.replica()
    world.looks_at(replica)
    replica.ask("REPLICAOF", "NO", "ONE")


@case("new", "new", "zeros", "none")
def restart(world):
    """a restart with its memory"""
    world.one.restart(False)


@case("new", "new", "zeros", "none")
def restart_empty(world):
    """a restart without it"""
    world.one.restart(True)


@case("new", "new", "an id", "none")
def restart_with_history(world):
    """with it, where a replica had been"""
    world.leaves(world.replica())
    wait_for(lambda: b"rdb_bgsave_in_progress:0" in world.one.ask("INFO", "persistence"))
    world.one.ask("SET", "key", "")
    world.one.restart(False)


class Replication(command_case.Case):
    def test_each_shows_what_the_page_says(self):
        for number, (function, wanted) in enumerate(CASES):
            with self.subTest(function.__doc__):
                folder = self.path(f"{number}")
                os.mkdir(folder)
                world = World(folder, self.addCleanup)
                function(world)
                shown = world.shows()
                # Before Redis 7 nothing counts what a server takes from a master.
                self.assertEqual(shown, (*wanted[:3], shown[3] and wanted[3]))


if __name__ == "__main__":
    command_case.main()
