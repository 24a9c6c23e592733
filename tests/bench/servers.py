# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks run on: real servers of their own, and links to them that are as slow as a network."""
import collections
import os
import re
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import redis_server
from redis_server import as_text, die_with_us, keep_port

QUIET_USER = ("quiet", "quiet-password")  # may subscribe to nothing


def launch(words, **more):
    return subprocess.Popen([str(word) for word in words], preexec_fn=die_with_us, **more)


KEPT = []  # the sockets that keep ports ours until the end


def free_port():
    KEPT.append(keep_port())
    return KEPT[-1].getsockname()[1]


class Wire(redis_server.Wire):
    def ask(self, *words):
        return as_text(super().ask(*words))

    def close(self):
        self.__exit__()


def make_certificate(folder):
    """One for 127.0.0.1, signed by itself: (certificate, key)."""
    certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "365",
             "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return certificate, key


class Server(redis_server.Server):
    """Without persistence: its disk is not what is measured. With a certificate clients come over TLS; what is asked here
    does not."""

    tls_port = None

    def __init__(self, folder, number, certificate=None):
        more = []
        if certificate:
            self.tls_port = free_port()
            more = ["--tls-port", self.tls_port, "--tls-auth-clients", "no", "--tls-cert-file", certificate[0],
                    "--tls-key-file", certificate[1], "--tls-ca-cert-file", certificate[0]]
        try:
            super().__init__(folder, number, "--maxclients", 20000, *more)
        except (OSError, RuntimeError) as error:
            sys.exit(f"scripts/bench: {error}; is it installed? scripts/setup does that")
        name, password = QUIET_USER
        self.ask("ACL", "SETUSER", name, "on", ">" + password, "~*", "+@all", "resetchannels")

    def __str__(self):
        return f"rediss://127.0.0.1:{self.tls_port}" if self.tls_port else super().__str__()

    def ask(self, *words):
        return as_text(super().ask(*words))

    def version(self):
        return re.search(r"redis_version:(\S+)", self.ask("INFO", "server"))[1]

    def commands(self):
        """How often each command ran, by the server's own account."""
        found = re.findall(r"cmdstat_([^:]+):calls=(\d+)", self.ask("INFO", "commandstats"))
        return collections.Counter({name.replace("|", " "): int(calls) for name, calls in found})

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        self.kill()


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
