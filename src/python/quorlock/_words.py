# SPDX-License-Identifier: BSD-3-Clause
"""Texts of the library name options of the command. Here they become options of Python; whole commands stay."""
import re
from typing import Match

UNIT_MS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000}
COMMAND = re.compile(r"('quorlock [^']*')")


def _max_lease(found: "Match[str]") -> str:
    return f"max_lease_ms={int(found[1]) * UNIT_MS[found[2]]}"


def as_python(text: str) -> str:
    parts = COMMAND.split(text)
    for i in range(0, len(parts), 2):
        part = re.sub(r"--max-lease (\d+)(ms|[smhd]) or QUORLOCK_MAX_LEASE=\w+", _max_lease, parts[i])
        part = re.sub(r"--dialect (\w+)(?: \(QUORLOCK_DIALECT_\w+\))?", r"dialect='\1'", part)
        part = re.sub(r"without --set-name", "without set_name", part)
        part = re.sub(r"--set-name ([^\s;)]+)", r"set_name='\1'", part)
        part = part.replace(", --connect-timeout)", ")")
        part = re.sub(r" \(tls_[^)]*\)", "", re.sub(r"--tls-(\w+|\.\.\.)", r"tls_\1", part))
        parts[i] = part
    return "".join(parts)
