# SPDX-License-Identifier: BSD-3-Clause
"""Reserves free ports, even while no server listens on them."""
import socket


def keep_port(host="127.0.0.1"):
    """A socket that reserves a free port while it is open: no other process gets the port, nothing answers on it, and only
    a server of ours, which binds with SO_REUSEADDR, can use it."""
    kept = socket.socket()
    kept.bind((host, 0))
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return kept
