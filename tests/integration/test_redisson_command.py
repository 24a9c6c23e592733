#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock --dialect redisson beside locks as Redisson writes them: test_redisson_command.py PATH_TO_quorlock"""
import json
import os
import re
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Case, wait_for

PEER = "9d1c0b7a-0000-4000-8000-0123456789ab:41"
OURS = ("--dialect", "redisson", "--guard", "off")


class Redisson(Case):
    def peer(self, count, times=1, ms=30000):
        for server in SERVERS[:count]:
            server.ask("HINCRBY", self.key, PEER, times)
            server.ask("PEXPIRE", self.key, ms)

    def test_a_lock_of_redisson_is_honoured_and_shown(self):
        self.peer(2, times=3)
        status, out, err = self.quorlock("run", "-n", *OURS, self.key, "--", "touch", self.path("ran"))
        self.assertEqual((status, out), (1, ""), err)
        self.assertRegex(err, rf'"{self.key}" is held by 9d1c0b7a:41 on 2 of 3 nodes, 2\d{{4}} ms left')
        self.assertFalse(os.path.exists(self.path("ran")))
        wait_for(lambda: [server.ask("HLEN", self.key) for server in SERVERS] == [1, 1, 0])
        status, out, _ = self.quorlock("inspect", "--dialect", "redisson", self.key)
        self.assertEqual(status, 0)
        self.assertEqual(len(re.findall(rf"held +{re.escape(PEER)} \(3 times\)", out)), 2, out)
        status, out, _ = self.quorlock("inspect", "--dialect", "redisson", "--json", self.key)
        report = json.loads(out)
        self.assertEqual((status, report["held"], report["holder"]), (0, True, PEER))
        self.assertEqual([node.get("count") for node in report["nodes"]], [3, 3, None])

    def test_the_other_dialect_is_foreign(self):
        self.peer(3)
        for dialect, reason in [("plain", "not a string"), ("redisson", "not a hash")]:
            if dialect == "redisson":
                for server in SERVERS:
                    server.ask("SET", self.key, "value")
            status, out, err = self.quorlock("run", "-n", "--dialect", dialect, "--guard", "off", self.key, "--",
                                             "touch", self.path("ran"))
            self.assertNotIn(status, (0, 1))
            self.assertIn(reason, out + err)
            status, out, _ = self.quorlock("inspect", "--dialect", dialect, "--json", self.key)
            self.assertEqual([node["state"] for node in json.loads(out)["nodes"]], ["foreign"] * 3)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertEqual(self.values(), [b"value"] * 3)


if __name__ == "__main__":
    command_case.main()
