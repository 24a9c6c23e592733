#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Brings a peer's package from its registry and builds the peer: prepare.py PEER FOLDER

Once: what is there and up to date is left alone, so that the tests need no network after it. Settings of the
registries come from the environment and the user's files, as these tools read them.
"""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import peers

TRIES = 3  # a registry may be out of reach for a moment
PAUSE_S = 5


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: prepare.py PEER FOLDER")
    peer = peers.peer_named(sys.argv[1], sys.argv[2])
    peers.leave_without(peer)
    if peer.prepared():
        print(f"{peer.name} is prepared")
        return
    os.makedirs(peer.out, exist_ok=True)
    for left in reversed(range(TRIES)):
        try:
            peer.prepare()
            break
        except subprocess.CalledProcessError as error:
            print(f"{' '.join(error.cmd)}: status {error.returncode}", flush=True)
            if not left:
                sys.exit(f"{peer.name} could not be prepared")
            time.sleep(PAUSE_S)
    with open(peer.stamp, "w", encoding="ascii") as f:
        f.write(peer.state())


main()
