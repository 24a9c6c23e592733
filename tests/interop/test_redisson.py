#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock --dialect redisson beside Redisson: test_redisson.py PATH_TO_quorlock PATH_TO_ours FOLDER"""
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import peer_case
from peer_case import LONG_MS, SERVERS, SHORT_MS, Beside, wait_for


class Redisson(Beside):
    def take_renewed(self):
        """Without a lease of its own Redisson's watchdog renews it."""
        return self.theirs.take(self.key, 0)


class RedLock(Redisson):
    more = ("redlock",)


class MultiLock(Redisson):
    more = ("multilock",)
    policy = "all"


class RLockOnEach(Redisson):
    more = ("rlock",)
    policy = "all"


class Both(Redisson):
    """What only Redisson has, whatever the kind of its lock."""
    more = ("redlock",)

    def of_kind(self, kind):
        return peer_case.Contender(self.the_peer, kind)

    def channels(self):
        return [server.ask("PUBSUB", "NUMSUB", f"redisson_lock__channel:{{{self.key}}}") for server in SERVERS]


del Beside, Redisson
peer_case.main("redisson")
