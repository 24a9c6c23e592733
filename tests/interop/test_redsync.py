#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock beside redsync: test_redsync.py PATH_TO_quorlock PATH_TO_ours FOLDER"""
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import peer_case


class Redsync(peer_case.Beside):
    renewed_at = 0

    def renew_theirs(self):
        """redsync renews on request."""
        if time.monotonic() - self.renewed_at >= peer_case.SHORT_MS / 4000:
            self.renewed_at = time.monotonic()
            self.assertEqual(self.theirs.ask("extend"), ["extended"])

    def test_theirs_that_is_not_renewed_ends(self):
        self.theirs.take(self.key, peer_case.SHORT_MS)
        self.ours.stand_in_line(self.key)
        self.ours.expect("acquired")
        self.assertEqual(self.theirs.ask("extend")[0], "failed")
        self.assertEqual(self.theirs.ask("release")[0], "failed")
        self.assertGreater(int(self.ours.ask("valid")[1]), 0)
        self.ours.give_back()


peer_case.main("redsync")
