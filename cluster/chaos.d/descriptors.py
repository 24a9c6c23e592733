# SPDX-License-Identifier: BSD-3-Clause
"""The descriptors of a client: of its program, and of all that this started."""
import contextlib
import resource

from sources import inodes, processes


class Descriptors:
    def __init__(self, client):
        self.group = client.process.pid
        self.limits = {}

    def sockets(self):
        """How many are open."""
        return sum(len(set(inodes(pid))) for pid in processes(self.group))

    def exhaust(self):
        """Nothing more can be opened; what is open stays open. A program that has not come as far as a socket could not
        even be loaded, and would be taken for one that fails."""
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
