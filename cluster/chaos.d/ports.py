# SPDX-License-Identifier: BSD-3-Clause
"""Free ports that stay ours, also while no server listens there."""
import socket


def keep_port(host="127.0.0.1"):
    """A socket that keeps a free port ours while it lives: no other process is given it, nothing answers there, and only
    a server of ours, which binds with SO_REUSEADDR, may take it."""
    kept = socket.socket()
    kept.bind((host, 0))
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return kept
