#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_both_styles.py SOURCE BUILD - what programs with an event loop can do, programs without one can do, too, and the other way
round: each quorlock_NOUN_VERB of quorlock.h and election.h has its quorlock_sync_NOUN_VERB in sync.h, but for those below."""
import re
import sys
from pathlib import Path

from test_manual import Headers

# They use no client: one function is there for both.
FOR_BOTH = re.compile(r"quorlock_(version|(status|owner|credentials|settings)_\w+|\w+_options_init)")
ONLY_WITH_LOOP = {
    "client_new_on_loop": "a sync client has a loop of its own",
    "client_error": "the text belongs to one call, and other threads call meanwhile: it is in the result, or in `error`",
}
ONLY_SYNC = {
    "client_shutdown": "it ends the waits of other threads",
    "client_events": "a program with a loop has callbacks",
    "client_next_event": "likewise",
    "lock_with": "it waits",
    "lock_acquire_for": "likewise",
    "lock_start_acquire": "an acquire with a loop does not wait",
    "lock_start_release": "likewise",
}


def fail(text):
    sys.exit(f"test_both_styles: FAILED: {text}")


def functions(*paths):
    return set(Headers("\n".join(path.read_text(encoding="utf-8") for path in paths)).prototypes)


def differences(with_loop, sync):
    """What one style lacks; and reasons that are none."""
    with_loop = {name.removeprefix("quorlock_") for name in with_loop if not FOR_BOTH.fullmatch(name)}
    sync = {name.removeprefix("quorlock_sync_") for name in sync}
    for name in sorted(with_loop - sync - ONLY_WITH_LOOP.keys()):
        yield f"quorlock_{name} has no quorlock_sync_{name}"
    for name in sorted(sync - with_loop - ONLY_SYNC.keys()):
        yield f"quorlock_sync_{name} has no quorlock_{name}"
    for name in sorted(ONLY_WITH_LOOP.keys() - (with_loop - sync)):
        yield f"quorlock_{name} is said to be alone, and is not, or is gone"
    for name in sorted(ONLY_SYNC.keys() - (sync - with_loop)):
        yield f"quorlock_sync_{name} is said to be alone, and is not, or is gone"


def check_bites(with_loop, sync):
    """The same comparison misses each function that is taken away."""
    for name in sorted(with_loop):
        if not FOR_BOTH.fullmatch(name) and not list(differences(with_loop - {name}, sync)):
            fail(f"the comparison does not miss {name}")
    for name in sorted(sync):
        if not list(differences(with_loop, sync - {name})):
            fail(f"the comparison does not miss {name}")


def main():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    folder = Path(sys.argv[1]) / "include/quorlock"
    with_loop = functions(folder / "quorlock.h", folder / "election.h", folder / "loop.h")
    sync = functions(folder / "sync.h")
    if len(with_loop) < 30 or len(sync) < 30:
        fail(f"found only {len(with_loop)} and {len(sync)} functions in the headers")
    found = list(differences(with_loop, sync))
    if found:
        fail("\n" + "\n".join(found) + "\nAdd the function; or, if there is a reason, write it into this test")
    check_bites(with_loop, sync)
    print(f"{len(with_loop)} functions with an event loop and {len(sync)} without one do the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
