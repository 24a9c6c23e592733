#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock: what a newcomer stumbles over: test_command_newcomer.py PATH_TO_quorlock [TEST...]"""
import re
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Case


class Addresses(Case):
    def test_addresses_that_are_written_differently(self):
        """The reason is given once, without the hashes that the guards compare."""
        short = ("--max-lease", "300ms")
        names = ",".join(f"localhost:{server.port}" for server in SERVERS)
        self.bootstrap(*short)
        status, out, err = self.connected("run", "-n", *short, "--nodes", names, self.key, "--", "echo", "ran")
        self.assertEqual((status, out), (69, ""), err)
        self.assertEqual(err.count("the addresses are written differently (such as localhost and 127.0.0.1)"), 1, err)
        self.assertEqual(err.count("--set-name NAME at all clients"), 1, err)
        self.assertNotRegex(err, r"\b[0-9a-f]{16}\b")
        for server in SERVERS:
            self.assertRegex(err, rf"(?m)^quorlock:   localhost:{server.port}  no vote: see above$")
        # What it says helps.
        command = re.search(r"by 'quorlock (bootstrap --reconfigure .*) --set-name NAME' once", err).group(1).split()
        self.assertEqual(self.quorlock(*command, "--set-name", "blue")[0], 0)
        for addresses in (names, command_case.nodes()):
            self.assertEqual(self.quorlock("run", *short, "--nodes", addresses, "--set-name", "blue", self.key, "--", "echo",
                                           "ran")[:2], (0, "ran\n"))


if __name__ == "__main__":
    command_case.main()
