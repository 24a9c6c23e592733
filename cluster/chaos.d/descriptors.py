# SPDX-License-Identifier: BSD-3-Clause
"""The file descriptors of a client: of its program, and of all processes that it started."""
import contextlib
import resource

from sources import inodes, processes


class Descriptors:
    def __init__(self, client):
        self.group = client.process.pid
        self.limits = {}

    def sockets(self):
        """The number of open sockets."""
        return sum(len(set(inodes(pid))) for pid in processes(self.group))

    def exhaust(self):
        """Prevents new descriptors; open ones stay open. A process without a socket is left out: it may still be loading,
        and would fail before it runs."""
        for pid in processes(self.group):
            if not any(inodes(pid)):
                continue
            with contextlib.suppress(ProcessLookupError):
                self.limits[pid] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, self.limits[pid][1]))

    def restore(self):
        for pid, limits in self.limits.items():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
