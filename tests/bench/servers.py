# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks run on: real servers of their own, and links to them that are as slow as a network."""
import collections
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cluster", "chaos.d"))
from ports import keep_port  # of the harness

READY_S = 120
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
QUIET_USER = ("quiet", "quiet-password")  # may subscribe to nothing


def die_with_us():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def launch(words, **more):
    return subprocess.Popen([str(word) for word in words], preexec_fn=die_with_us, **more)


KEPT = []  # the sockets that keep ports ours until the end


def free_port():
    KEPT.append(keep_port())
    return KEPT[-1].getsockname()[1]


class Wire:
    """A connection to a server, as simple as it gets."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=READY_S)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        words = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        line = self.file.readline()
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)[:-2].decode()
        if line[:1] == b"-":
            raise RuntimeError(line.decode())
        return line[1:-2].decode()

    def close(self):
        self.file.close()
        self.socket.close()


def make_certificate(folder):
    """One for 127.0.0.1, signed by itself: (certificate, key)."""
    certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "365",
             "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return certificate, key


class Server:
    """One redis-server without persistence: its disk is not what is measured. With a certificate clients come over
    TLS; what is asked here does not."""

    def __init__(self, folder, number, certificate=None):
        self.port = free_port()
        self.name = f"127.0.0.1:{self.port}"
        path = os.path.join(folder, str(number))
        os.makedirs(path)
        more = []
        if certificate:
            tls_port = free_port()
            self.name = f"rediss://127.0.0.1:{tls_port}"
            more = ["--tls-port", tls_port, "--tls-auth-clients", "no", "--tls-cert-file", certificate[0],
                    "--tls-key-file", certificate[1], "--tls-ca-cert-file", certificate[0]]
        self.process = launch(
            [os.environ.get("REDIS_SERVER") or "redis-server", "--bind", "127.0.0.1", "--port", self.port,
             "--dir", path, "--save", "", "--appendonly", "no", "--maxclients", "20000",
             "--logfile", os.path.join(path, "log"), *more], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.await_answer()
        name, password = QUIET_USER
        self.ask("ACL", "SETUSER", name, "on", ">" + password, "~*", "+@all", "resetchannels")

    def __str__(self):
        return self.name

    def await_answer(self):
        end = time.monotonic() + READY_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                self.ask("PING")
                return
            except (OSError, ValueError):
                time.sleep(0.01)
        sys.exit(f"scripts/bench: no redis-server starts at port {self.port}: is it installed? scripts/setup does that")

    def ask(self, *words):
        wire = Wire(self.port)
        try:
            return wire.ask(*words)
        finally:
            wire.close()

    def version(self):
        return re.search(r"redis_version:(\S+)", self.ask("INFO", "server"))[1]

    def commands(self):
        """How often each command ran, by the server's own account."""
        found = re.findall(r"cmdstat_([^:]+):calls=(\d+)", self.ask("INFO", "commandstats"))
        return collections.Counter({name.replace("|", " "): int(calls) for name, calls in found})

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.kill()
        self.process.wait()


class Links:
    """Addresses in front of servers, by which every byte can be late: half a round trip each way."""

    def __init__(self, program, servers):
        self.nodes = {server: f"127.0.0.1:{free_port()}" for server in servers}
        self.process = launch([program, *(f"{node}={server}" for server, node in self.nodes.items())],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.expect("ready")

    def expect(self, word):
        line = self.process.stdout.readline()
        if line != word + "\n":
            sys.exit(f"scripts/bench: the proxy says '{line.strip()}' and not '{word}'")

    def delay_all(self, ms):
        """So many milliseconds each way."""
        for number in range(1, len(self.nodes) + 1):
            self.process.stdin.write(f"slow {number} {ms} {ms}\n")
            self.expect("ok")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Servers:
    """So many servers, and what stands in front of them; all end with `with`. tls: all have the same certificate."""

    def __init__(self, folder, n, tls=False):
        self.all, self.links, self.certificate = [], None, None
        if tls:
            os.makedirs(folder)
            self.certificate = make_certificate(folder)
        for number in range(n):
            self.all.append(Server(folder, number, self.certificate))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.links:
            self.links.end()
        for server in self.all:
            server.end()

    def link(self, program, servers):
        """Puts the proxy in front of some of them."""
        self.links = Links(program, servers)

    def nodes(self):
        linked = self.links.nodes if self.links else {}
        return [linked.get(server, str(server)) for server in self.all]
