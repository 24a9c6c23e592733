#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""QUORLOCK_BUGGIFY: test_command_buggify.py PATH_TO_quorlock [TEST...]"""
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import Bootstrapped

SEEDS = 60


class Buggify(Bootstrapped):
    def run_with(self, seed, *words):
        return self.quorlock("run", "--wait", "10s", "--lease", "500ms", self.key, "--", *words,
                             env={"QUORLOCK_BUGGIFY": str(seed)})

    def test_some_seeds_end_with_noquorum_and_always_the_same(self):
        refused = {}
        for seed in range(1, SEEDS):
            status, _, err = self.run_with(seed, "true")
            self.assertIn(f"quorlock: buggify is on, with seed {seed}: ", err)
            if status == 69 and "NOQUORUM is made up" in err:
                refused[seed] = err
            if len(refused) == 2:
                break
        self.assertEqual(len(refused), 2)
        for seed in refused:
            status, _, err = self.run_with(seed, "true")
            self.assertEqual(status, 69, err)
            self.assertIn("NOQUORUM is made up", err)
        self.assert_free()


if __name__ == "__main__":
    command_case.main()
