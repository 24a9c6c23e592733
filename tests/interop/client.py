#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A peer as a client of cluster/chaos: client.py NAME FOLDER

NAME is one of the clients in peers.py; FOLDER is where prepare.py has put its peer.

It becomes that program, which talks to the harness as quorlock-chaos(7) has it.
"""
import os
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import peers

EX_USAGE = 64


def main():
    if len(sys.argv) != 3:
        print("usage: client.py NAME FOLDER", file=sys.stderr)
        return EX_USAGE
    peer = peers.peer_of_client(*sys.argv[1:])
    # Whether it is up to date takes a while to see, and clients are replaced often.
    if not os.path.exists(peer.stamp):
        print(f"{peer.name} is not prepared: run prepare.py {peer.name} {peer.out}", file=sys.stderr)
        return EX_USAGE
    words = peer.client(sys.argv[1])
    return os.execvp(words[0], words)


if __name__ == "__main__":
    sys.exit(main())
