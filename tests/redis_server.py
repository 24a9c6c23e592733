# SPDX-License-Identifier: BSD-3-Clause
"""A redis-server of a test's own. It ends with the test, also when SIGKILL ends that."""
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster", "chaos.d"))
from ports import keep_port  # of the harness

READY_S = 60
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_us():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def read_reply(file):
    """Bytes, a number, None or a list. RuntimeError: an error reply."""
    line = file.readline()
    if not line:
        raise OSError("closed")
    if line[:1] == b"-":
        raise RuntimeError(line.decode().rstrip())
    if line[:1] == b":":
        return int(line[1:])
    if line[:1] == b"*":
        return [read_reply(file) for _ in range(int(line[1:]))]
    if line[:1] != b"$":
        return line[1:-2]
    size = int(line[1:])
    return None if size < 0 else file.read(size + 2)[:-2]


def as_text(reply):
    """The same as text; None stays None."""
    if isinstance(reply, list):
        return [as_text(part) for part in reply]
    return reply.decode() if isinstance(reply, bytes) else reply if reply is None else str(reply)


class Wire:
    """A connection to a port of this machine."""

    def __init__(self, port, host="127.0.0.1"):
        self.socket = socket.create_connection((host, port), timeout=READY_S)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return read_reply(self.file)


class Server:
    """Listens on a free port of its own; remembers nothing unless an option says so. The later of two options counts."""

    host = "127.0.0.1"
    preexec = staticmethod(die_with_us)
    env = None

    def __init__(self, folder, number, *options):
        self.folder = os.path.join(folder, str(number))
        os.makedirs(self.folder)
        self.kept = keep_port()
        self.port = self.kept.getsockname()[1]
        self.options = options
        self.start()

    def __str__(self):
        return f"{self.host}:{self.port}"

    def command_line(self):
        return ["--bind", self.host, "--port", str(self.port), "--dir", self.folder, "--save", "", "--appendonly", "no",
                "--daemonize", "no", *(str(option) for option in self.options)]

    def start(self):
        with open(os.path.join(self.folder, "log"), "a+", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [os.environ.get("REDIS_SERVER") or "redis-server", *self.command_line()], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, preexec_fn=self.preexec, env={**os.environ, **(self.env or {})})
            if not self.answers():
                self.kill()
                log.seek(0)
                raise RuntimeError(f"redis-server does not start on {self}: {log.read()[-2000:]}")

    def answers(self):
        """Waits for it; False where it ended, or was too slow."""
        end = time.monotonic() + READY_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with Wire(self.port, self.host) as wire:
                    info = wire.ask("INFO")
                if f"process_id:{self.process.pid}\r".encode() in info and b"\nloading:0\r" in info:
                    return True
            except OSError:
                pass
            time.sleep(0.005)
        return False

    def ask(self, *words):
        with Wire(self.port) as wire:
            return wire.ask(*words)

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()
