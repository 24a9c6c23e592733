#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A peer as a client of cluster/chaos: client.py PEER FOLDER, with PEER redsync, node-redlock, redisson-redlock or
redisson-multilock, and the FOLDER where prepare.py has put it

It becomes the peer's own program, which talks to the harness as quorlock-chaos(7) has it.
"""
import os
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import peers

EX_USAGE = 64


def main():
    if len(sys.argv) != 3:
        print("usage: client.py PEER FOLDER", file=sys.stderr)
        return EX_USAGE
    name, _, kind = sys.argv[1].partition("-") if sys.argv[1].startswith("redisson") else (sys.argv[1], "", "")
    peer = peers.peer_named(name, sys.argv[2])
    if not peer.prepared():
        print(f"{name} is not prepared: run prepare.py {name} {sys.argv[2]}", file=sys.stderr)
        return EX_USAGE
    words = peer.client(kind)
    os.execvp(words[0], words)


if __name__ == "__main__":
    sys.exit(main())
