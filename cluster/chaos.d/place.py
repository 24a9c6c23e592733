# SPDX-License-Identifier: BSD-3-Clause
"""The place of a chaos run: a namespace of its own if the machine permits it, else plain processes.

As a program, in a namespace of its own, it tries whether names are looked up there by our server."""
import contextlib
import ctypes
import fcntl
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import names
from system import HarnessError, die_with_parent

# Set for the inner process: "private" or "plain", a colon, and the folder to work in.
INNER = "QUORLOCK_CHAOS_INNER"
GRACE_SECONDS = 20
PROBE_SECONDS = 20
MOUNT_POINTS = ("/media", "/srv", "/mnt", "/opt", "/home")


def unshare_command():
    command = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return command if os.geteuid() == 0 else [*command, "--map-root-user"]


def loopback_up():
    """Does the same as `ip link set lo up`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(any_socket.fileno(), 0x8914, request)  # SIOCSIFFLAGS


def _works(command):
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return run.returncode == 0


def try_names():
    """Returns whether names are looked up by our server."""
    loopback_up()
    with tempfile.TemporaryDirectory() as folder:
        names.use(folder)
        server = names.NameServer(subprocess.Popen)
        try:
            return socket.gethostbyname(names.name_of("127.0.1.9")) == "127.0.1.9"
        finally:
            server.kill()


def probe():
    """Returns what this machine permits: private (a namespace), and in it filter (packets), queue (packets come late),
    names (a name server)."""
    if not _works([*unshare_command(), "true"]):
        return set()
    here = Path(__file__)
    rules = {"filter": "iptables -w 5 -A INPUT -p tcp -d 127.0.1.1 --dport 6379 --tcp-flags SYN,PSH PSH -j DROP && "
                       "iptables -w 5 -A INPUT -p tcp -m statistic --mode random --probability 0.33 -j DROP",
             "queue": f"iptables -w 5 -A INPUT -p tcp -j NFQUEUE --queue-num 1 --queue-bypass && "
                      f"{shlex.join([sys.executable, str(here.with_name('held_packets.py'))])}",
             "names": shlex.join([sys.executable, str(here)])}
    found = {name for name, rule in rules.items() if _works([*unshare_command(), "sh", "-c", rule])}
    return {"private"} | (found if "filter" in found else set())


def mount_point(needed):
    """A folder that the run does not need, as the mount point of its file system in memory; None: there is none."""
    for candidate in MOUNT_POINTS:
        inside = any(path == Path(candidate) or Path(candidate) in path.parents for path in needed)
        if os.path.isdir(candidate) and not inside:
            return candidate
    return None


def enter():
    """Called in the inner process: sets up the network and the file system; returns (private, folder)."""
    mode, _, folder = os.environ.pop(INNER).partition(":")
    if mode == "private":
        loopback_up()
        if folder in MOUNT_POINTS:
            run = subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "quorlock-chaos", folder],
                                 capture_output=True, text=True, timeout=PROBE_SECONDS)
            if run.returncode:
                raise HarnessError(f"no memory file system on {folder}: {run.stderr.strip()}")
    return mode == "private", folder


def adopt_orphans():
    """Makes orphans of a client's session children of this process."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def parent_of(pid):
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return None


def end_orphans():
    """Ends all remaining children, and the orphans that come to us when they end."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
                if parent_of(pid) == os.getpid():
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def run_inner(private, needed, limit_seconds):
    """Runs this same command inside and returns its exit status; ends it if this process must end."""
    temporary = None
    folder = mount_point(needed) if private else None
    if folder is None:
        folder = temporary = tempfile.mkdtemp(prefix="quorlock-chaos-")
    environment = dict(os.environ) | {INNER: f"{'private' if private else 'plain'}:{folder}"}
    command = [*(unshare_command() if private else []), sys.executable, *sys.argv]
    signals = []

    def end(number, _frame):
        signals.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    inner = None
    if not private:  # the end of a namespace ends all its processes
        adopt_orphans()
    try:
        inner = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True,
                                 preexec_fn=die_with_parent if private else None)
        return _attend(inner, signals, limit_seconds)
    finally:
        if inner and inner.poll() is None:
            inner.kill()
            inner.wait()
        if not private:
            end_orphans()
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def _attend(inner, signals, limit_seconds):
    limit = time.monotonic() + limit_seconds
    while inner.poll() is None and not signals and time.monotonic() < limit:
        try:
            inner.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue
    if inner.poll() is None:
        if not signals:
            print(f"chaos: not done after {limit_seconds:.0f} s; giving up", file=sys.stderr)
        inner.stdin.close()
        try:
            inner.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            inner.kill()
            inner.wait()
        return 128 + signals[0] if signals else 70
    return inner.returncode if inner.returncode >= 0 else 70


if __name__ == "__main__":
    sys.exit(not try_names())
