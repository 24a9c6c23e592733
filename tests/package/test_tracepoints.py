#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The static tracepoints are in what was built, as quorlock(7) has them: test_tracepoints.py SOURCE BUILD"""
import os
import re
import subprocess
import sys

SKIPPED = 77


def noted(path):
    """Name -> number of arguments, as the notes of that file have them."""
    notes = subprocess.run(["readelf", "--notes", "--wide", path], check=True, capture_output=True, text=True).stdout
    found = {}
    for provider, name, arguments in re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+.*?Arguments: ?([^\n]*)", notes, re.S):
        if provider == "quorlock":
            found[name] = len(arguments.split())
    return found


def described(path):
    """The same, as the manual has them."""
    with open(path, encoding="utf-8") as f:
        section = re.search(r"\n\.SH TRACEPOINTS\n(.*?)\n\.SH ", f.read(), re.S)[1]
    plain = re.sub(r'[" ]', "", "\n".join(re.findall(r"^\.BI (.*)", section, re.M)))
    return {name: len(arguments.split(",")) for name, arguments in re.findall(r"(\w+)\(([A-Z,]+)\)", plain)}


def main():
    source, build = sys.argv[1:3]
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as f:
        cache = f.read()
    expected = described(os.path.join(source, "src/man/quorlock.7"))
    with_header = re.search(r"^QUORLOCK_HAS_SDT:\w+=1$", cache, re.M) is not None
    wanted = re.search(r"^QUORLOCK_TRACEPOINTS:BOOL=(ON|1|TRUE|YES)$", cache, re.M) is not None
    if len(expected) < 7:
        sys.exit(f"the manual names few tracepoints: {expected}")
    if not (wanted and with_header):
        print("built without sys/sdt.h (systemtap-sdt-dev; scripts/setup installs it), or without QUORLOCK_TRACEPOINTS")
        expected = {}
    for name in ("lib/libquorlock.so", "bin/quorlock"):
        found = noted(os.path.join(build, name))
        if found != expected:
            sys.exit(f"{name} has the tracepoints {found}, not {expected}")
        print(f"ok: {name}: {', '.join(sorted(found)) or 'none'}")
    return SKIPPED if expected == {} else 0


if __name__ == "__main__":
    sys.exit(main())
