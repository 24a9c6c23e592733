# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of quorlock watch share."""
import os
import re

EPOLLOUT = 4


def waits_to_write(pid, target):
    """Whether that process has tried to write to the file, a path or a descriptor of ours, and waits until it takes more."""
    wanted = os.stat(target)
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
            for watched, events in re.findall(r"^tfd: +(\d+) events: +([0-9a-f]+) ", f.read(), re.M):
                found = os.stat(f"/proc/{pid}/fd/{watched}")
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino) and int(events, 16) & EPOLLOUT:
                    return True
    return False
