#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command over TLS, with real servers: test_tls.py PATH_TO_quorlock [TEST...]"""
import json
import os
import queue
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import BENCH_BUSY, SERVERS, Case, listen, nodes, wait_for
from tls_case import Certificate, TlsServer, openssl

CA_REMEDY = "give the CA that signed it by --tls-ca (tls_ca)"
SLOW = r"no answer to the handshake within 200 ms \(connect_timeout_ms, --connect-timeout\)"
CERTIFICATE_REMEDY = "give ours by --tls-cert and --tls-key (tls_cert, tls_key)"


class Silent:
    """A port that takes connections and never says a word; by `say`, or only this."""

    def __init__(self, say=b""):
        self.listener = listen()
        self.say, self.taken = say, []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            connection.sendall(self.say)
            self.taken.append(connection)

    def close(self):
        self.listener.close()

    def __str__(self):
        return f"rediss://127.0.0.1:{self.listener.getsockname()[1]}"


class Far:
    """A port in front of another: what comes on either side goes on so much later."""

    def __init__(self, port, delay_s):
        self.listener = listen()
        self.port, self.delay_s = port, delay_s
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.port))
            for source, target in [(near, far), (far, near)]:
                late = queue.SimpleQueue()
                threading.Thread(target=self.hear, args=(source, late), daemon=True).start()
                threading.Thread(target=self.say, args=(late, target), daemon=True).start()

    def hear(self, source, late):
        data = b"-"
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            late.put((time.monotonic() + self.delay_s, data))

    def say(self, late, target):
        data = b"-"
        while data:
            due, data = late.get()
            time.sleep(max(0, due - time.monotonic()))
            try:
                target.sendall(data) if data else target.close()
            except OSError:
                pass

    def close(self):
        self.listener.close()

    def __str__(self):
        return f"rediss://127.0.0.1:{self.listener.getsockname()[1]}"


class Names(Silent):
    """A port that greets by TLS, and keeps the names that clients ask for."""

    def __init__(self, certificate):
        self.names = []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate.path, certificate.key)
        self.context.sni_callback = lambda _connection, name, _context: self.names.append(name)
        super().__init__()

    def take(self):
        while True:
            try:
                self.context.wrap_socket(self.listener.accept()[0], server_side=True).close()
            except ssl.SSLError:
                pass
            except OSError:
                return


class Tls(Case):
    @classmethod
    def setUpClass(cls):
        cls.ca = TlsServer.ca

    def setUp(self):
        super().setUp()
        for server in SERVERS:
            server.ask("CONFIG", "SET", "tls-auth-clients", "no", "tls-protocols", "")
            server.show(TlsServer.good)
        self.bootstrap("--set-name", "tls")

    def start(self, *args, env=None, **more):
        return super().start(*args, env={"QUORLOCK_TLS_CA": self.ca.path, **(env or {})}, **more)

    def take(self, *options, addresses=None, env=None):
        """Tries once: (status, stderr). A machine that is too busy to connect in time tries again."""
        env = {"QUORLOCK_NODES": addresses or nodes(), **(env or {})}
        status, _, err = self.connected("run", "-n", "-v", "--set-name", "tls", *options, self.key, "--", "true",
                                        env=env)
        return status, err

    def assert_taken(self, *options, **more):
        status, err = self.take(*options, **more)
        self.assertEqual(status, 0, err)
        self.assertIn("granted", err)

    def assert_refused(self, *said, options=(), of=None, status=78, **more):
        """No lock; the summary has each of the servers once, in a line that says this."""
        found, err = self.take(*options, **more)
        self.assertEqual(found, status, err)
        lines = err.splitlines()
        reasons = [line for line in lines if all(text in line for text in said)]
        self.assertNotEqual(reasons, [], err)
        for server in of or SERVERS:
            own = [line for line in lines if re.search(rf"{server}(, \S+)*  no vote: ", line)]
            self.assertEqual(len(own), 1, err)
            self.assertIn(own[0], reasons, err)

    def show(self, *args, **more):
        """A new certificate of the CA, shown by all servers."""
        certificate = Certificate(self.folder, *args, **more)
        for server in SERVERS:
            server.show(certificate)
        return certificate

    # ---- what works

    def test_every_verb(self):
        process = self.shell("--set-name", "tls", script="touch up; exec sleep 60")
        wait_for(lambda: all(self.values()))
        status, out, _ = self.connected("inspect", "--json", self.key)
        report = json.loads(out)
        self.assertEqual((status, [node["state"] for node in report["nodes"]]), (0, ["held"] * 3), out)
        self.assertEqual([node["node"] for node in report["nodes"]], [str(server) for server in SERVERS])
        report = json.loads(self.connected("doctor", "--json")[1])
        self.assertEqual([node["tls"] for node in report["nodes"]], [True] * 3)
        self.assertEqual(self.connected("break", self.key)[0], 0)
        self.assertEqual(self.values(), [None] * 3)
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)

    def test_a_waiter_listens_over_tls_too(self):
        holder = self.shell("--set-name", "tls", "--lease", "20s",
                            script="touch up; while [ ! -e go ]; do sleep 0.02; done")
        waiter = self.start("run", "--set-name", "tls", self.key, "--", "true")
        wait_for(lambda: sum(b"flags=P" in server.ask("CLIENT", "LIST", "TYPE", "pubsub") for server in SERVERS) == 2)
        open(self.path("go"), "w", encoding="ascii").close()
        self.assertEqual(self.end(holder)[0], 0)
        self.assertEqual(self.end(waiter)[0], 0)

    def test_nodes_with_and_without_tls_go_together(self):
        self.assert_taken(addresses=f"{SERVERS[0]},127.0.0.1:{SERVERS[1].port},{SERVERS[2]}")

    def test_openssl_is_loaded_only_where_a_node_asks_for_tls(self):
        plain = ",".join(f"127.0.0.1:{server.port}" for server in SERVERS)
        for addresses, expected in [(plain, False), (nodes(), True)]:
            process = self.shell("--set-name", "tls", script="touch up; exec sleep 60", env={"QUORLOCK_NODES": addresses})
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
                self.assertEqual("libcrypto" in maps.read(), expected)
            process.terminate()
            self.end(process)
            os.unlink(self.path("up"))

    def test_a_command_without_its_module(self):
        alone = shutil.copy(command_case.QUORLOCK, self.folder)
        result = subprocess.run([alone, "run", "-n", self.key, "--", "true"], capture_output=True, text=True, check=False,
                                env={"QUORLOCK_NODES": nodes(), "QUORLOCK_CONFIG": "/dev/null"})
        self.assertEqual(result.returncode, 64, result.stderr)
        self.assertRegex(result.stderr, "TLS needs a file that is installed with quorlock .*/lib/quorlock/tls.so: ")

    # ---- options

    def test_options_and_environment(self):
        env = {"QUORLOCK_TLS_CA": ""}
        self.assert_refused(CA_REMEDY, env=env)
        for words in [("--tls-ca", self.ca.path, "run"), ("run", "--tls-ca", self.ca.path)]:
            status, _, err = self.connected(*words, "--set-name", "tls", "-n", self.key, "--", "true", env=env)
            self.assertEqual(status, 0, err)
        self.assert_taken("--tls-ca", self.ca.path, env={"QUORLOCK_TLS_CA": "/nowhere"})
        plain = ",".join(f"127.0.0.1:{server.port}" for server in SERVERS)
        env = {"QUORLOCK_NODES": plain, "QUORLOCK_TLS_CA": "/nowhere"}
        status, _, err = self.connected("inspect", self.key, env=env)
        self.assertEqual(status, 0, "the environment may be for other nodes: " + err)
        status, _, err = self.quorlock("inspect", "--tls-ca", self.ca.path, self.key, env={"QUORLOCK_NODES": plain})
        self.assertEqual((status, "write rediss:// instead of redis://" in err), (64, True), err)

    def test_bad_files_are_refused_with_their_name(self):
        other = Certificate(self.folder, self.ca)
        empty, locked = self.path("empty"), self.path("locked.pem")
        open(empty, "w", encoding="ascii").close()
        openssl("ec", "-in", other.key, "-aes128", "-passout", "pass:sesame", "-out", locked)
        good = TlsServer.good
        for options, said in [
                (["--tls-ca", "/nowhere"], '--tls-ca (tls_ca): "/nowhere": No such file or directory'),
                (["--tls-ca", empty], f'"{empty}": no certificate there'),
                (["--tls-cert", "/nowhere"], '--tls-cert (tls_cert): "/nowhere": No such file or directory'),
                (["--tls-cert", empty, "--tls-key", good.key], f'"{empty}": no start line'),
                (["--tls-cert", good.path], f'--tls-key (tls_key): "{good.path}": '),
                (["--tls-cert", good.path, "--tls-key", other.key], f'"{other.key}": key values mismatch'),
                (["--tls-cert", good.path, "--tls-key", locked], f'"{locked}": it needs a passphrase: give'),
                (["--tls-key", good.key], "tls_key is given and tls_cert is not"),
                (["--tls-name", ""], "tls_name is empty")]:
            for words in [("inspect", self.key), ("config",)]:
                status, out, err = self.quorlock(*words, *options)
                self.assertEqual((status, out), (64, ""), err)
                self.assertIn(said, err)
                self.assertEqual(err.count("\n"), 1, err)

    def test_the_systems_cas_are_the_default(self):
        env = {"QUORLOCK_TLS_CA": "", "SSL_CERT_FILE": self.ca.path}
        self.assert_taken(env=env)
        self.assert_refused(CA_REMEDY, env={**env, "SSL_CERT_FILE": Certificate(self.folder, is_ca=True).path})

    def test_a_folder_of_cas(self):
        folder = self.path("cas")
        os.mkdir(folder)
        shutil.copy(self.ca.path, folder)
        status, err = self.take("--tls-ca", folder)
        self.assertEqual((status, f'"{folder}": no certificate there' in err), (64, True), err)
        openssl("rehash", folder)
        self.assert_taken("--tls-ca", folder)

    # ---- configuration files

    def test_a_configuration_file(self):
        """Its certificates are for nodes that ask for TLS only; a key goes with its own certificate."""
        ours, file = Certificate(self.folder, self.ca), self.path("config")
        plain = ",".join(f"127.0.0.1:{server.port}" for server in SERVERS)
        with open(file, "w", encoding="utf-8") as f:
            f.write(f"nodes = {nodes()}\ntls-ca = {self.ca.path}\ntls-cert = {ours.path}\ntls-key = {ours.key}\n"
                    f"tls-name = 127.0.0.1\n[set plain]\nnodes = {plain}\n"
                    f"[set valkeys]\nnodes = {nodes().replace('rediss:', 'valkeys:')}\n")
        nothing = {"QUORLOCK_NODES": "", "QUORLOCK_TLS_CA": ""}
        ca, key, both = self.path("ca"), self.path("key"), self.path("both")
        shutil.copy(self.ca.path, ca)
        shutil.copy(ours.key, key)
        with open(both, "w", encoding="ascii") as f, open(ours.key, encoding="ascii") as private:
            f.write(ours.text() + private.read())

        def in_force(*args, **env):
            status, out, err = self.quorlock("config", "--json", "--config", file, *args, env={**nothing, **env})
            self.assertEqual(status, 0, err)
            values = json.loads(out)["values"]
            return [values[key]["value"] for key in ("tls-ca", "tls-cert", "tls-key", "tls-name")]

        for options in [(), ("--set", "valkeys")]:
            self.assertEqual(in_force(*options), [self.ca.path, ours.path, ours.key, "127.0.0.1"])
        self.assertEqual(in_force("--tls-cert", both, QUORLOCK_TLS_CA=ca), [ca, both, None, "127.0.0.1"])
        self.assertEqual(in_force(QUORLOCK_TLS_KEY=key), [self.ca.path, ours.path, key, "127.0.0.1"])
        for certificates in [{}, {"QUORLOCK_TLS_CA": "ca", "QUORLOCK_TLS_KEY": "key"}]:
            self.assertEqual(in_force("--set", "plain", **certificates),
                             ["those of the system", None, None, "the host of each address"])
        for server in SERVERS:
            server.ask("CONFIG", "SET", "tls-auth-clients", "yes")
        self.assert_taken("--config", file, env=nothing)
        self.assertEqual(self.connected("inspect", "--config", file, "--set", "plain", self.key, env=nothing)[0], 0)

    # ---- the benchmark: quorlock and its baseline

    def assert_measured(self, status, out, err, nodes_of_raw=3):
        self.assertEqual(status, 0, err)
        report = json.loads(out)
        raw = report["raw"]
        self.assertEqual((report["failed"], raw["failed"], raw["nodes"], raw["tls"]), (0, 0, nodes_of_raw, 3), err)
        self.assertGreater(min(report["locks"], raw["locks"]), 0)
        self.assert_no_bench_keys(SERVERS)
        return report

    def assert_no_bench_keys(self, servers):
        for server in servers:
            script = "return #redis.call('KEYS', 'quorlock-bench:*')"
            self.assertEqual([server.ask("EVAL", f"redis.call('SELECT', {db}) {script}", 0) for db in (0, 3)], [0, 0])

    def test_bench_measures(self):
        words = "bench", "--json", "--seconds", "1", "--guard", "off", "--in-flight", "300"
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "bench", "on", ">se%cret", "~*", "&*", "+@all")
        try:
            for front, host, back in [("", "127.0.0.1", ""), ("bench:se%25cret@", "localhost", "/3")]:
                addresses = ",".join(f"rediss://{front}{host}:{server.tls_port}{back}" for server in SERVERS)
                result = self.connected(*words, busy=BENCH_BUSY, env={"QUORLOCK_NODES": addresses})
                # Alone, an acquire is 1 of a node's commands, and a release 4; releases go together over TLS too.
                self.assertLess(self.assert_measured(*result)["server_commands_per_lock"], 10)
                self.assertEqual((result[2], "cret" in result[1]), ("", False))
        finally:
            for server in SERVERS:
                server.ask("ACL", "DELUSER", "bench")
        out = self.connected("bench", "--seconds", "1", "--guard", "off", busy=BENCH_BUSY)[1]
        self.assertRegex(out, r"^16 in flight, 3 nodes, 2 pairs of slices\n3 nodes over TLS, where raw uses ")

    def test_bench_does_without_a_node_that_is_not_verified(self):
        SERVERS[1].show(Certificate(self.folder, self.ca, "DNS:redis.example"))
        result = self.quorlock("bench", "--json", "--seconds", "1", "--guard", "off")
        self.assertIn(f"the baseline does not use {SERVERS[1]}: connect: TLS: the server's certificate is refused: "
                      "IP address mismatch", result[2])
        self.assert_measured(*result, nodes_of_raw=2)

    def test_bench_does_without_a_node_that_freezes_meanwhile(self):
        bench = self.start("bench", "--json", "--seconds", "2", "--guard", "off")
        wait_for(lambda: SERVERS[2].ask("EVAL", "return #redis.call('KEYS', 'quorlock-bench:*')", 0))
        SERVERS[2].freeze()
        status, out, err = self.end(bench)
        SERVERS[2].thaw()
        self.assertEqual(status, 0, err)
        self.assertGreater(json.loads(out)["locks"], 0)
        self.assert_no_bench_keys(SERVERS[:2])

    # ---- the server's certificate

    def test_another_ca(self):
        other = Certificate(self.folder, is_ca=True)
        self.assert_refused("TLS: the server's certificate", "is refused", CA_REMEDY, options=["--tls-ca", other.path])
        self.show(names="IP:127.0.0.1")
        self.assert_refused("self-signed certificate", CA_REMEDY)

    def test_another_name(self):
        self.show(self.ca, "DNS:redis.example, IP:10.0.0.1")
        self.assert_refused("IP address mismatch: it is for redis.example, 10.0.0.1, not for 127.0.0.1", "--tls-name")
        named = nodes().replace("127.0.0.1", "localhost")
        self.assert_refused("hostname mismatch: it is for redis.example, 10.0.0.1, not for localhost", "--tls-name",
                            addresses=named, of=named.split(","))
        self.assert_taken("--tls-name", "redis.example")
        self.assert_taken("--tls-name", "10.0.0.1", addresses=named)
        self.assert_taken(env={"QUORLOCK_TLS_NAME": "redis.example"})

    def test_an_address_is_no_name(self):
        self.show(self.ca, "DNS:localhost, DNS:127.0.0.1")
        self.assert_refused("IP address mismatch: it is for localhost, 127.0.0.1, not for 127.0.0.1")
        self.assert_taken(addresses=nodes().replace("127.0.0.1", "localhost"))

    def test_servers_are_told_names_and_no_addresses(self):
        server = Names(TlsServer.good)
        try:
            named = str(server).replace("127.0.0.1", "localhost")
            for address, expected in [(str(server), None), (named, "localhost")]:
                server.names.clear()
                self.assertEqual(self.quorlock("inspect", self.key, env={"QUORLOCK_NODES": address})[0], 69)
                wait_for(lambda: server.names)
                self.assertEqual(set(server.names), {expected})
        finally:
            server.close()

    def test_expired(self):
        self.show(self.ca, "IP:127.0.0.1", begins_s=-7200, ends_s=-3600)
        self.assert_refused("certificate is refused: certificate has expired (20", " UTC): give the server a new one")

    def test_a_chain_in_any_order(self):
        between = Certificate(self.folder, self.ca, is_ca=True)
        leaf = self.show(between, "IP:127.0.0.1")
        self.assert_refused("unable to get local issuer certificate", "the server must send the certificates in between")
        for others in [(between,), (between, self.ca), (self.ca, between), (TlsServer.good, between)]:
            for server in SERVERS:
                server.show(leaf, leaf.with_others(*others))
            self.assert_taken()
        self.assert_refused("unable to get issuer certificate", CA_REMEDY, options=["--tls-ca", between.path])

    # ---- our certificate

    def test_a_server_that_asks_for_our_certificate(self):
        ours = Certificate(self.folder, self.ca)
        foreign = Certificate(self.folder, Certificate(self.folder, is_ca=True))
        both = self.path("both.pem")
        with open(both, "w", encoding="ascii") as f, open(ours.key, encoding="ascii") as key:
            f.write(ours.text() + key.read())
        for version in ["TLSv1.2", "TLSv1.3"]:
            for server in SERVERS:
                server.ask("CONFIG", "SET", "tls-auth-clients", "yes", "tls-protocols", version)
            self.assert_refused("TLS: ", CERTIFICATE_REMEDY)
            self.assert_refused("TLS: ", "it does not accept our certificate",
                                options=["--tls-cert", foreign.path, "--tls-key", foreign.key])
            self.assert_taken("--tls-cert", ours.path, "--tls-key", ours.key)
            self.assert_taken("--tls-cert", both)
            self.assert_taken(env={"QUORLOCK_TLS_CERT": ours.path, "QUORLOCK_TLS_KEY": ours.key})
            self.assert_taken("--tls-cert", both, env={"QUORLOCK_TLS_KEY": foreign.key})

    def test_a_certificate_may_be_a_user(self):
        """From Redis 8.6 and Valkey 9.1 on. What lacks a right is that user, not the default one."""
        ours = Certificate(self.folder, self.ca, name="jobs")
        options = ["--tls-cert", ours.path, "--tls-key", ours.key]
        if SERVERS[0].ask("CONFIG", "GET", "tls-auth-clients-user") in ([], {}):
            self.skipTest("this server takes no user from a certificate")
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "jobs", "on", "nopass", "~*", "&*", "+@all", "-pexpire")
            server.ask("CONFIG", "SET", "tls-auth-clients", "yes", "tls-auth-clients-user", "CN")
        try:
            self.assert_refused('user "jobs" may not run PEXPIRE', "ACL SETUSER jobs +pexpire", options=options)
            out = self.connected("doctor", *options)[1]
            self.assertIn('user "jobs" may not run PEXPIRE', out)
            self.assertIn("ACL SETUSER jobs +pexpire", out)
        finally:
            for server in SERVERS:
                server.ask("CONFIG", "SET", "tls-auth-clients-user", "off")
                server.ask("ACL", "DELUSER", "jobs")

    # ---- far away

    def test_a_try_has_time_to_connect(self):
        """The time to answer is 1 s and 100 ms; to connect takes one round trip more than here, where TCP is near."""
        for round_trip_s, lease in [(0.6, "30s"), (0.04, "1s")]:
            nodes_there = [Far(server.tls_port, round_trip_s / 2) for server in SERVERS]
            try:
                self.assert_taken("--lease", lease, addresses=",".join(map(str, nodes_there)))
            finally:
                for node in nodes_there:
                    node.close()

    # ---- what is no TLS

    def assert_down(self, pattern, addresses, server):
        """The log says so of the server; the command waits as long as that takes."""
        process = self.start("run", "-v", "--set-name", "tls", "--policy", "all", "--connect-timeout", "200ms", self.key,
                             "--", "true", env={"QUORLOCK_NODES": addresses})
        line = re.compile(f"^quorlock: {re.escape(str(server))}: down: connect: TLS: {pattern}")
        for text in process.stderr:
            if line.match(text.decode()):
                break
        else:
            self.fail(f"it never says {pattern}")
        process.terminate()
        process.communicate(timeout=command_case.LIMIT_S)

    def test_a_server_that_says_nothing(self):
        for silent in [Silent(), Silent(b"\x16\x03\x03")]:
            try:
                addresses = f"{SERVERS[0]},{SERVERS[1]},{silent}"
                self.assert_taken(addresses=addresses)
                self.assert_down(SLOW + ": frozen, or no TLS on this port: then write redis://", addresses, silent)
            finally:
                silent.close()

    def test_a_plain_server(self):
        """It may answer to what it takes for commands, or not at all, as the random bytes of the client have it."""
        plain = f"rediss://127.0.0.1:{SERVERS[0].port}"
        self.assert_down(f"({SLOW}|wrong version number): .*write redis://", plain, plain)
        spoken = Silent(b"-ERR unknown command\r\n")
        try:
            self.assert_refused("TLS: wrong version number: the server does not speak TLS on this port: write redis://",
                                addresses=str(spoken), of=[spoken])
        finally:
            spoken.close()

    def test_a_tls_server_that_is_taken_for_a_plain_one(self):
        plain = nodes().replace("rediss://", "redis://")
        self.assert_refused("; if that is its tls-port, write rediss://", addresses=plain, status=69,
                            of=plain.replace("redis://", "").split(","))

    # ---- certificates that change under a held lock

    def hold(self, *options, **more):  # another one than the base class has: by the command itself
        with open(self.path("log"), "w", encoding="utf-8") as log:
            process = self.shell("--set-name", "tls", "-v", "--lease", "5s", "--node-timeout", "300ms", *options,
                                 script="touch up; exec sleep 100", stderr=log, **more)
        self.token = wait_for(lambda: all(self.values()) and self.values()[0])
        return process

    def log(self):
        return self.read("log")

    def renewed(self, server):
        """Waits until that server has a younger lease than now."""
        left = [server.ask("PTTL", self.key)]

        def is_longer():
            left.append(server.ask("PTTL", self.key))
            return left[-1] > max(left[-2], 0)
        wait_for(is_longer)

    def assert_held(self, process, servers):
        for server in servers:
            self.renewed(server)
            self.assertEqual(server.ask("GET", self.key), self.token)
        self.assertIsNone(process.poll(), self.log())
        self.assertNotRegex(self.log(), "(?m)^quorlock: lost ")

    def let_go(self, process):
        process.terminate()
        process.wait(timeout=command_case.LIMIT_S)
        self.assert_free()

    def test_certificates_rotate(self):
        """A new CA signs everything anew, step by step; the lock is held all the time."""
        mine = self.path("mine.pem")
        ours, cas = Certificate(self.folder, self.ca), self.path("cas.pem")
        shutil.copy(self.ca.path, cas)
        shutil.copy(ours.path, mine)
        for server in SERVERS:
            server.ask("CONFIG", "SET", "tls-auth-clients", "yes")
        process = self.hold("--tls-ca", cas, "--tls-cert", mine, "--tls-key", ours.key)
        other = Certificate(self.folder, is_ca=True)
        theirs = Certificate(self.folder, other, "IP:127.0.0.1")
        with open(cas + ".new", "w", encoding="ascii") as f:
            f.write(self.ca.text() + other.text())
        os.rename(cas + ".new", cas)
        for server in SERVERS:
            server.show(theirs)
            server.drop_clients()
            self.assert_held(process, [server])
        self.assertIn("the TLS certificates changed: new connections use them", self.log())
        self.let_go(process)

    def test_bad_new_certificates_are_logged_and_the_former_stay(self):
        ours = Certificate(self.folder, self.ca)
        mine, key = self.path("mine.pem"), self.path("mine.key")
        shutil.copy(ours.path, mine)
        shutil.copy(ours.key, key)
        for server in SERVERS:
            server.ask("CONFIG", "SET", "tls-auth-clients", "yes")
        process = self.hold("--tls-cert", mine, "--tls-key", key)
        new = Certificate(self.folder, self.ca)
        shutil.copy(new.path, mine)  # and the key not yet
        for server in SERVERS:
            server.drop_clients()
            self.assert_held(process, [server])
        bad = f'the new TLS certificates are bad, the old ones stay in use: --tls-key (tls_key): "{key}": key values mismatch'
        self.assertEqual(self.log().count(bad), 1, self.log())
        shutil.copy(new.key, key)
        SERVERS[0].drop_clients()
        self.assert_held(process, SERVERS)
        wait_for(lambda: "the TLS certificates changed" in self.log())
        self.let_go(process)

    def test_one_servers_certificate_expires_under_a_held_lock(self):
        process = self.hold()
        SERVERS[2].show(Certificate(self.folder, self.ca, "IP:127.0.0.1", begins_s=-7200, ends_s=-1))
        self.assert_held(process, SERVERS)  # what is connected stays so
        SERVERS[2].drop_clients()
        expired = f"{SERVERS[2]}: down: connect: TLS: the server's certificate is refused: certificate has expired"
        wait_for(lambda: expired in self.log())
        wait_for(lambda: SERVERS[2].ask("GET", self.key) is None)
        self.assert_held(process, SERVERS[:2])
        SERVERS[2].show(TlsServer.good)
        wait_for(lambda: SERVERS[2].ask("GET", self.key) == self.token)
        self.assert_held(process, SERVERS)
        self.let_go(process)


if __name__ == "__main__":
    command_case.main(TlsServer)
