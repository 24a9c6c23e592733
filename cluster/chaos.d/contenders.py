# SPDX-License-Identifier: BSD-3-Clause
"""The clients of a comparison: ours, the peers of tests/interop, and those that the user names."""
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import usage

ROOT = Path(__file__).resolve().parents[2]
INTEROP = ROOT / "tests" / "interop"
PREPARE_SECONDS = 600
NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.*)", re.DOTALL)


@dataclass
class Contender:
    name: str
    title: str
    how: str                                     # how it is configured, for the page
    command: list = field(default_factory=list)  # empty: ours
    options: tuple = ()                          # of cluster/chaos
    missing: str = ""                            # why it cannot run here


OURS = Contender("quorlock", "quorlock", (
    "The program of this tree with its defaults: restart guard on each connection, fencing tokens, renewal at a third "
    "of the lease, the same max lease for all."))
WITHOUT_TOKENS = Contender("quorlock-without-tokens", "quorlock without tokens", (
    "The same without fencing tokens, which a caller has to ask for, and the protected resource to check."),
    options=("--no-fence",))

# {name: (title, folder, how it is used)}. Only the source tree has them; an installation does not.
PEERS = {} if not INTEROP.is_dir() else {
    "redsync": ("redsync", "redsync", (
        "NewMutex with its own drift and timeout factors. Until, which its documentation recommends instead of Valid, is "
        "checked before each access; Extend at half of the lease, without WithSetNXOnExtend, because a lock that is "
        "gone may belong to another. The pools have timeouts, without which one frozen server would stop everything.")),
    "node-redlock": ("node-redlock", "node-redlock", (
        "acquire and extend with its own drift factor; the lock's expiration is checked before each access, and it "
        "is extended at half of the lease. Not using(), whose signal is aborted only after the validity has ended. "
        "One try for each acquire, with its own pauses between them: it counts the validity of all tries from the "
        "first one.")),
    "sesamecare-redlock": ("@sesamecare-oss/redlock", "node-redlock", "As node-redlock, from which it is derived."),
    "redlock-universal": ("redlock-universal", "node-redlock", (
        "createRedlock, with acquire and extend as for node-redlock. Its handle has no validity: the lease counts from "
        "before the call, less 1 % and 2 ms. It waits for every node, so its adapters have timeouts.")),
    "redisson-redlock": ("Redisson RedLock", "redisson", (
        "One Redisson instance for each server; tryLock with a lease time, after which the lock is released by "
        "itself, so that its owner may look at the clock before each access. It reports no validity: the lease counts "
        "from the return of tryLock, less 1 % and 2 ms. Without a lease time its watchdog renews, but notifies nobody "
        "when it cannot. So it gets no jobs that are longer than the lease, as one in ten of the others' is.")),
    "redisson-multilock": ("Redisson MultiLock", "redisson", (
        "As RedLock, but every server must say yes.")),
    "redis-plus-plus": ("redis-plus-plus", "redis-plus-plus", (
        "RedLock over RedLockMutex, with a RedLock for each try; its ttl is checked before each access, and it is extended at "
        "half of the lease. Not RedMutex, which renews by itself but does not show the validity. A call raises an exception "
        "where a node does not answer: a try has failed then, and an extension did not happen. An extension that was refused "
        "is a loss, for it takes the lock back. The connections have timeouts.")),
    "pottery": ("pottery", "pottery", (
        "Redlock, with as many extensions as are needed; locked(), which asks the nodes, is checked before each access; "
        "extend at half of the lease. redis-py has timeouts, and no retries. Its keys begin with redlock:.")),
    "rslock": ("rslock", "rslock", (
        "lock and extend with one try a call, because a second try of extend comes after it has taken the lock back; an "
        "extension that failed is a loss. The lease counts from before the call, less 1 % and 2 ms. It waits for every "
        "node, up to 500 ms, which cannot be changed.")),
    "bsm-redislock": ("bsm/redislock (one server only)", "redsync", (
        "On the first server alone. TTL, which asks the server, is checked before each access; Refresh at half of the lease. "
        "The lease counts from before the call, less 1 % and 2 ms. go-redis has timeouts, and no retries.")),
}


def peers(build, names):
    """The named peers of tests/interop, each prepared in the folder of its tests."""
    if not names:
        return []
    sys.path.insert(0, str(INTEROP))
    import peers as known  # pylint: disable=import-outside-toplevel
    found = []
    for name in names:
        title, package, how = PEERS[name]
        folder = build / "tests" / "interop" / package
        contender = Contender(name, title, how, [str(INTEROP / "client.py"), name, str(folder)])
        contender.missing = prepare(known.peer_named(package, folder), package, folder)
        found.append(contender)
    return found


def prepare(peer, package, folder):
    """Why the peer cannot run here, or an empty string."""
    why = peer.missing()
    if why or peer.prepared():
        return why or ""
    try:
        done = subprocess.run([INTEROP / "prepare.py", package, folder], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PREPARE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be prepared: {error}"
    output_lines = (done.stdout + done.stderr).strip().splitlines()
    return "" if done.returncode == 0 else f"it could not be prepared: {output_lines[-1] if output_lines else 'without a message'}"


def named(text, taken):
    """The contender that --client [NAME=]CMD describes. Raises ValueError with the remedy."""
    match = NAMED.fullmatch(text)
    name, command = match.groups() if match else ("", text)
    words = usage.command(command)
    name = base = name or re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(words[min(1, len(words) - 1)]))
    number = 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return Contender(name, name, "As its command line says.", words)
