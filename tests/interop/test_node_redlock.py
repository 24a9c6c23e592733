#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock beside node-redlock: test_node_redlock.py PATH_TO_quorlock PATH_TO_ours FOLDER"""
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import peer_case


class NodeRedlock(peer_case.Beside):
    def take_renewed(self):
        """Under `using` it renews by itself."""
        self.theirs.order("using", self.key, peer_case.SHORT_MS)
        self.theirs.expect("acquired")

    def test_theirs_is_extended(self):
        self.theirs.take(self.key, peer_case.SHORT_MS)
        for _ in self.for_leases(2):
            self.assert_held(self.ours.attempt(self.key))
            self.assertEqual(self.theirs.ask("extend", peer_case.SHORT_MS), ["extended"])
        self.theirs.give_back()
        self.ours.take(self.key)
        self.ours.give_back()

    def test_theirs_is_told_when_we_broke_its_lock(self):
        self.take_renewed()
        self.assertEqual(self.command("break", self.key)[0], 0)
        self.ours.take(self.key)
        # Its renewal finds that the lock is ours; it gives up when its own lease ends.
        self.theirs.expect("aborted")
        self.theirs.order("release")
        self.theirs.expect("failed")
        self.assertGreater(int(self.ours.ask("valid")[1]), 0)
        self.ours.give_back()


peer_case.main("node-redlock")
