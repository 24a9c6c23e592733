# SPDX-License-Identifier: BSD-3-Clause
"""The addresses of clients, by which faults that separate some clients from some nodes tell them apart."""
import contextlib
import os
import time
from pathlib import Path

from system import ClientError

EVERY_SECONDS = 2
ESTABLISHED = "01"


def address(text):
    """Parses an IPv4 address and port of /proc/net/tcp and tcp6."""
    host, port = text.split(":")
    return ".".join(str(byte) for byte in bytes.fromhex(host[-8:])[::-1]), int(port, 16)


def connections(fronts):
    """{inode: local address} of the sockets that are connected to a node."""
    found = {}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == ESTABLISHED and address(fields[2]) in fronts:
                    found[fields[9]] = address(fields[1])[0]
    return found


def processes(group):
    """The processes of a client: its program, which leads the group, and all that it started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(folder.name)) == group:
                yield int(folder.name)


def inodes(pid):
    """The inodes of the open sockets of a process."""
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    yield target[8:-1]


def check_sources(system):
    """Raises ClientError if a client does not connect from its own address, so that faults would not hit it."""
    if not system.filter or not system.source_shim or time.monotonic() < system.sources_due:
        return
    system.sources_due = time.monotonic() + EVERY_SECONDS
    found = connections({(node.front_host, node.front_port) for node in system.nodes})
    for client in system.clients:
        for inode in (inode for pid in processes(client.process.pid) for inode in inodes(pid)):
            local = found.get(inode, client.address)
            if local != client.address:
                raise ClientError(f"client {client.name} connects from {local}, not from its own address {client.address}, "
                                    "so that faults would pass it by: bind its sockets to QUORLOCK_CHAOS_SOURCE")
