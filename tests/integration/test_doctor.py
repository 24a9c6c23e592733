#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock doctor, every finding provoked on a real server: test_doctor.py PATH_TO_quorlock [TEST...]"""
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
import redis_server
from command_case import RUNNING, SERVERS, Case, die_with_us, listen, nodes, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = ["INFO", "TIME", "GET", "SET", "PTTL", "PEXPIRE", "DEL", "EVAL", "EVALSHA", "TYPE",
            "PUBLISH", "CLIENT SETNAME", "CLIENT TRACKING", "CLIENT CACHING", "EXISTS"]
MINOR = {"TYPE", "PUBLISH", "CLIENT SETNAME", "EXISTS"}
TELLING = {"CLIENT TRACKING", "CLIENT CACHING", "EXISTS"}
NEEDLESS = MINOR | TELLING  # a lock does without


def rule(command):
    return command.lower().replace(" ", "|")


class Other(redis_server.Server):
    """With options of its own, for one test."""

    def __init__(self, case, *options, host="127.0.0.1", port=None, folder=None, preexec=die_with_us, env=None):
        self.host, self.options, self.preexec, self.env = host, ("--protected-mode", "no", *options), preexec, env
        self.folder = folder or tempfile.mkdtemp(prefix="other-", dir=case.folder)
        self.kept = None if port else redis_server.keep_port(host)
        self.port = port or self.kept.getsockname()[1]
        self.start()

    def start(self):
        super().start()
        RUNNING.append(self.process)

    def answers(self):
        return wait_for(self.says_anything)

    def says_anything(self):
        """Where it lets nobody in, too."""
        if self.process.poll() is not None:
            raise AssertionError(f"redis-server ended: {self.options}")
        try:
            with redis_server.Wire(self.port, self.host) as wire:
                return wire.ask("PING")
        except RuntimeError:
            return True
        except OSError:
            return False


def low_port():
    """A free one whose companion of the cluster bus, 10000 above, is free too; both below those that clients get."""
    for port in range(20000 + os.getpid() % 2000, 22700):
        try:
            with listen(port), listen(port + 10000):
                return port
        except OSError:
            pass
    raise AssertionError("no free port")


class Sentinel(Other):
    def command_line(self):
        config = os.path.join(self.folder, "sentinel.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"port {self.port}\nbind {self.host}\ndir {self.folder}\n")
        return [config, "--sentinel"]


AOF = ("--appendonly", "yes", "--appendfsync", "always")


class Doctor(Case):
    def setUp(self):
        super().setUp()
        for server in SERVERS:
            for name, value in [("appendonly", "yes"), ("appendfsync", "always"), ("maxmemory", 0),
                                ("maxmemory-policy", "noeviction"), ("maxclients", 1000)]:
                server.ask("CONFIG", "SET", name, value)

    def tearDown(self):
        for server in SERVERS:
            if server.process.poll() is None:
                server.thaw()
                server.ask("REPLICAOF", "NO", "ONE")
                server.ask("ACL", "DELUSER", "app")
        super().tearDown()

    def bootstrap(self, *options, addresses=None):
        status, out, err = self.quorlock("bootstrap", "--yes", *options, env={"QUORLOCK_NODES": addresses or nodes()})
        self.assertEqual(status, 0, out + err)

    def examine(self, *options, addresses=None):
        """(exit status, the report); the table has the same."""
        env = {"QUORLOCK_NODES": addresses or nodes()}
        status, out, err = self.quorlock("doctor", "--json", *options, env=env)
        self.assertEqual(err, "", out)
        report = json.loads(out)
        self.assertEqual(status, {"sound": 0, "warnings": 1, "unsafe": 2, "outage": 2}[report["verdict"]])
        for finding in report["findings"]:
            self.assertEqual(sorted(finding), ["code", "node", "remedy", "severity", "text"])
            self.assertGreater(len(finding["text"]), 10, finding)
            self.assertGreater(len(finding["remedy"]), 10, finding)
        down = {finding["node"]: finding["text"] for finding in report["findings"] if finding["code"] == "unreachable"}
        for node in report["nodes"]:
            self.assertIs(node["reachable"], node["node"] not in down, node)
            self.assertIn(node["error"] or "", down.get(node["node"], ""), node)
            self.assertEqual(node["error"] is None, node["reachable"], node)
        self.assertEqual(report["reachable"], len(report["nodes"]) - len(down))
        worst = [finding["severity"] for finding in report["findings"]]
        self.assertEqual(worst, sorted(worst, key=["outage", "unsafe", "warning", "note"].index), "the worst come first")
        return status, report

    def codes(self, *options, addresses=None, severity=None):
        """The exit status and a sorted list of (code, node's number; None: no node)."""
        addresses = addresses or nodes()
        status, report = self.examine(*options, addresses=addresses)
        places = [node["node"] for node in report["nodes"]]
        found = [(f["code"], places.index(f["node"]) if f["node"] else None) for f in report["findings"]
                 if not severity or f["severity"] == severity]
        return status, sorted(found, key=str)

    def text(self, code, *options, addresses=None):
        """The one text with that code."""
        _, report = self.examine(*options, addresses=addresses)
        texts = [f["text"] for f in report["findings"] if f["code"] == code]
        self.assertEqual(len(texts), 1, report["findings"])
        return texts[0]

    def guard(self, server, place=None, value=None):
        """A server's guard: N, set, max_lease, run_id, replid, until; changed at `place`."""
        parts = server.ask("GET", "quorlock:guard").decode().split("|")
        if place is not None:
            parts[place] = str(value)
            server.ask("SET", "quorlock:guard", "|".join(parts))
        return parts


class Report(Doctor):
    def test_a_sound_set_and_nothing_is_written(self):
        def changes():
            return [server.ask("INFO", "persistence").decode().split("rdb_changes_since_last_save:")[1].split()[0]
                    for server in SERVERS]
        before = changes()
        self.assertEqual(self.codes(), (2, [("guard-missing", 0), ("guard-missing", 1), ("guard-missing", 2),
                                            ("no-quorum", None)]))
        self.assertEqual([server.ask("DBSIZE") for server in SERVERS], [0, 0, 0])
        self.assertEqual(changes(), before)
        self.bootstrap()
        before = changes()
        guards = [self.guard(server) for server in SERVERS]
        status, report = self.examine()
        self.assertEqual((status, report["findings"]), (0, []))
        self.assertEqual((report["quorum"], report["reachable"]), (2, 3))
        self.assertEqual([self.guard(server) for server in SERVERS], guards)
        self.assertEqual([server.ask("DBSIZE") for server in SERVERS], [1, 1, 1])
        self.assertEqual(changes(), before)
        for node, server, guard in zip(report["nodes"], SERVERS, guards):
            self.assertEqual(node["node"], str(server))
            self.assertEqual((node["role"], node["mode"], node["error"]), ("master", "standalone", None))
            self.assertEqual(node["run_id"].encode(), server.ask("INFO", "server").split(b"run_id:")[1].split()[0])
            self.assertRegex(node["version"], r"^(Redis|Valkey) \d+\.\d+")
            self.assertEqual((node["appendonly"], node["appendfsync"]), (True, "always"))
            self.assertEqual((node["guard_nodes"], node["guard_set"]), (3, guard[2]))
            self.assertEqual((node["guard_max_lease_ms"], node["quarantine_ms"]), (30000, 0))
            self.assertEqual((node["clients_max"], node["maxmemory"], node["refused"]), (1000, 0, None))
            self.assertTrue(0 < node["clients"] < 500)
            self.assertGreater(node["latency_us"], 0)
            self.assertGreater(node["used_memory"], 0)
            self.assertLess(abs(node["clock_offset_us"]), 1000000 + node["clock_error_us"])

    def test_the_table(self):
        SERVERS[1].ask("CONFIG", "SET", "appendfsync", "everysec")
        SERVERS[2].kill()
        status, out, err = self.quorlock("doctor")
        self.assertEqual((status, err), (2, ""))
        lines = out.splitlines()
        self.assertEqual(lines[0].split(), ["node", "version", "role", "latency", "clock", "memory", "persistence", "guard",
                                            "clients", "features"])
        self.assertRegex(lines[1], rf"^{SERVERS[0]} +\w+ [\d.]+ +master .* aof always +none .* tracking(, MSETEX)?$")
        self.assertRegex(lines[2], rf"^{SERVERS[1]} .* aof everysec ")
        self.assertRegex(lines[3], rf"^{SERVERS[2]} +unreachable$")
        self.assertIn(f"warning  {SERVERS[2]}: connect: Connection refused [unreachable]", lines)
        self.assertIn("         -> quorlock bootstrap, if no lock is held on any of the nodes; else wait", lines)
        self.assertEqual(sum(line.startswith(("outage", "warning")) for line in lines[:-1]),
                         sum(line.startswith("         -> ") for line in lines))
        self.assertRegex(lines[-1], r"^outage: 0 unsafe, 4 warnings, 0 notes; 2 of 3 nodes answered, 2 make")

    def test_usage(self):
        for args, said in [(("doctor", "key"), "takes no key"), (("doctor", "--", "x"), "takes no key"),
                           (("doctor", "--fence"), "does not belong"),
                           (("--nodes", "ftp://x", "doctor"), "unknown scheme")]:
            status, out, err = self.quorlock(*args)
            self.assertEqual((status, out), (64, ""))
            self.assertIn(said, err)
        with open("/dev/full", "wb") as full:
            status, _, err = self.end(self.start("doctor", stdout=full))
        self.assertEqual(status, 74)
        self.assertIn("standard output", err)

    def test_policy_all_needs_every_node(self):
        self.bootstrap()
        SERVERS[2].kill()
        self.assertEqual(self.codes()[0], 1)
        self.assertEqual(self.codes("--policy", "all"), (2, [("no-quorum", None), ("unreachable", 2)]))


class Kind(Doctor):
    def test_replica_and_promotion(self):
        self.bootstrap()
        SERVERS[2].ask("REPLICAOF", "127.0.0.1", SERVERS[0].port)
        wait_for(lambda: b"connected_slaves:1" in SERVERS[0].ask("INFO", "replication"))
        wait_for(lambda: b"master_link_status:up" in SERVERS[2].ask("INFO", "replication"))
        # Its first replica gives a master a new replication id, and that it took no memory from others can be told.
        self.assertEqual(self.codes(), (2, [("replica", 2), ("replicas", 0)]))
        SERVERS[0].ask("CONFIG", "RESETSTAT")
        self.assertEqual(self.codes(), (2, [("no-quorum", None), ("quarantine", 0), ("replica", 2), ("replicas", 0)]))
        self.assertIn("its replication id changed", self.text("quarantine"))
        self.assertEqual(self.codes(severity="note")[1], [("replicas", 0)])
        self.assertEqual([node["replicas"] for node in self.examine()[1]["nodes"]], [1, 0, 0])
        SERVERS[0].ask("SET", "quorlock:guard", self.lives(SERVERS[0], SERVERS[1]))
        wait_for(lambda: SERVERS[2].ask("GET", "quorlock:guard"))
        # A promoted replica has its master's guard, written by another process.
        SERVERS[2].ask("REPLICAOF", "NO", "ONE")
        wait_for(lambda: b"connected_slaves:0" in SERVERS[0].ask("INFO", "replication"))
        self.assertEqual(self.codes(), (1, [("quarantine", 2)]))
        self.assertIn("its votes will be ignored for 30.0 s", self.text("quarantine"))

    def lives(self, server, like):
        """The guard of `like` as `server` would have it written now."""
        parts = self.guard(like)
        for place, section, field in [(4, "server", "run_id:"), (5, "replication", "master_replid:")]:
            parts[place] = server.ask("INFO", section).decode().split(field)[1].split()[0]
        return "|".join(parts)

    def test_cluster_and_sentinel(self):
        self.bootstrap()
        cluster = Other(self, "--cluster-enabled", "yes", port=low_port())
        sentinel = Sentinel(self)
        addresses = f"{SERVERS[0]},{cluster},{sentinel}"
        status, found = self.codes(addresses=addresses, severity="unsafe")
        self.assertEqual(status, 2)
        self.assertEqual([place for place in found if not place[0].startswith("guard")], [("cluster", 1), ("sentinel", 2)])
        # The outage does not hide that they are unsafe.
        _, report = self.examine(addresses=addresses)
        self.assertEqual((report["verdict"], report["findings"][0]["code"]), ("unsafe", "no-quorum"))

    def test_one_server_twice(self):
        self.bootstrap()
        port = SERVERS[0].port
        for twice in [f"localhost:{port}", f"redis://localhost:{port}/3"]:
            status, found = self.codes(addresses=f"{SERVERS[0]},{SERVERS[1]},{twice}", severity="unsafe")
            self.assertEqual(status, 2)
            self.assertIn(("same-server", 2), found)
        # The same address: the library takes no such list, the doctor says why, and examines the rest.
        three = f"{SERVERS[0]},redis://{SERVERS[0]}/2,{SERVERS[1]},{SERVERS[0]},{SERVERS[2]}"
        status, report = self.examine(addresses=three)
        self.assertEqual((status, [node["node"] for node in report["nodes"]]), (2, [str(s) for s in SERVERS]))
        self.assertEqual([f["code"] for f in report["findings"]], ["same-server", "same-server"])
        self.assertTrue(all(str(SERVERS[0]) in f["node"] for f in report["findings"]))


class Memory(Doctor):
    def test_eviction(self):
        self.bootstrap()
        SERVERS[1].ask("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
        self.assertEqual(self.codes(), (0, []), "without maxmemory nothing is evicted")
        SERVERS[1].ask("CONFIG", "SET", "maxmemory", "1gb")
        self.assertEqual(self.codes(), (2, [("eviction", 1)]))
        self.assertIn("volatile-lru", self.text("eviction"))
        node = self.examine()[1]["nodes"][1]
        self.assertEqual((node["maxmemory"], node["maxmemory_policy"]), (1 << 30, "volatile-lru"))
        self.assertEqual(self.codes("--allow-eviction"), (1, [("eviction", 1)]))
        SERVERS[1].ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        self.assertEqual(self.codes(), (0, []))

    def test_headroom(self):
        self.bootstrap()
        used = int(SERVERS[2].ask("INFO", "memory").split(b"used_memory:")[1].split()[0])
        SERVERS[2].ask("CONFIG", "SET", "maxmemory", used // 2)  # it is over that already
        self.assertEqual(self.codes(), (1, [("memory", 2), ("writes", 2)]))
        SERVERS[2].ask("CONFIG", "SET", "maxmemory", used * 3)
        self.assertEqual(self.codes(), (0, []))

    def test_persistence(self):
        self.bootstrap()
        SERVERS[0].ask("CONFIG", "SET", "appendonly", "no")
        SERVERS[1].ask("CONFIG", "SET", "appendfsync", "everysec")
        self.assertEqual(self.codes(), (1, [("persistence", 0), ("persistence", 1)]))
        _, report = self.examine()
        self.assertEqual([node["appendonly"] for node in report["nodes"]], [False, True, True])

    def test_an_append_only_file_that_cannot_be_written(self):
        def small_files():
            die_with_us()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        # With "always" it would end itself.
        other = Other(self, "--appendonly", "yes", "--appendfsync", "everysec", preexec=small_files)
        self.bootstrap(addresses=str(other))

        def broken():
            try:
                other.ask("SET", "filler", "x" * 30000)
            except RuntimeError:
                pass
            return b"aof_last_write_status:err" in other.ask("INFO", "persistence")
        wait_for(broken)
        _, report = self.examine(addresses=str(other))
        self.assertTrue(any("could not be written" in f["text"] for f in report["findings"]), report)

    def test_a_node_that_refuses_to_write_has_no_vote(self):
        self.bootstrap()
        for server in SERVERS[:2]:
            server.ask("CONFIG", "SET", "min-replicas-to-write", 1)
        try:
            status, report = self.examine()
        finally:
            for server in SERVERS[:2]:
                server.ask("CONFIG", "SET", "min-replicas-to-write", 0)
        self.assertEqual(status, 2)
        texts = {finding["node"]: finding["text"] for finding in report["findings"] if finding["code"] == "writes"}
        self.assertEqual(set(texts), {str(server) for server in SERVERS[:2]})
        for text in texts.values():
            self.assertIn("it refuses to write, so it cannot vote: SET: NOREPLICAS", text)
        self.assertIn("no-quorum", [finding["code"] for finding in report["findings"]])
        self.assertEqual(self.examine()[0], 0)

    def test_a_restart_with_memory(self):
        other = Other(self, *AOF)
        self.bootstrap("--max-lease", "5s", addresses=str(other))
        self.assertEqual(self.codes(addresses=str(other)), (0, []))
        other.kill()
        other.start()
        self.assertEqual(self.codes(addresses=str(other)), (2, [("no-quorum", None), ("quarantine", 0)]))
        text = self.text("quarantine", addresses=str(other))
        self.assertIn("restarted", text)
        self.assertIn("5.0 s", text)


class Guard(Doctor):
    def test_another_number_of_nodes(self):
        self.bootstrap("--set-name", "blue")
        two = f"{SERVERS[0]},{SERVERS[1]}"
        self.assertEqual(self.codes("--set-name", "blue", addresses=two),
                         (2, [("guard-nodes", 0), ("guard-nodes", 1)]))

    def test_another_set(self):
        self.bootstrap()
        four = f"{SERVERS[0]},{SERVERS[1]},127.0.0.1:{Other(self, *AOF).port}"
        status, found = self.codes(addresses=four, severity="unsafe")
        self.assertEqual((status, found), (2, [("guard-set", 0), ("guard-set", 1)]))
        self.guard(SERVERS[2], 2, "0123456789abcdef")
        self.assertEqual(self.codes(), (2, [("guard-set", 2)]))
        self.assertIn("writes the addresses in another way, or lists another server", self.text("guard-set"))

    def test_a_named_set(self):
        self.bootstrap("--set-name", "blue")
        self.assertEqual(self.codes("--set-name", "blue"), (0, []))
        self.assertEqual(self.codes(), (0, [("guard-set", 0), ("guard-set", 1), ("guard-set", 2)]))
        self.assertEqual(self.codes("--set-name", "red")[0], 2)
        self.guard(SERVERS[1], 2, "red")
        self.assertEqual(self.codes(severity="unsafe"), (2, [("guard-set", 1)]))

    def test_another_max_lease(self):
        self.bootstrap("--max-lease", "7s")
        self.assertEqual(self.codes(), (0, []))
        self.assertEqual(self.codes("--max-lease", "7s"), (0, []))
        self.assertEqual(self.codes("--max-lease", "8s"),
                         (2, [("guard-lease", 0), ("guard-lease", 1), ("guard-lease", 2)]))
        self.guard(SERVERS[2], 3, 9000)
        self.assertEqual(self.codes(), (2, [("guard-lease", 2)]))
        text = self.text("guard-lease")
        self.assertIn("9000 ms", text)
        self.assertIn("7000 ms", text)

    def test_a_quarantine(self):
        self.bootstrap()
        now_ms = int(SERVERS[1].ask("EVAL", "local t = redis.call('TIME') return t[1] .. '000'", 0))
        self.guard(SERVERS[1], 6, now_ms + 20000)
        status, report = self.examine()
        self.assertEqual((status, [f["code"] for f in report["findings"]]), (1, ["quarantine"]))
        self.assertGreater(report["nodes"][1]["quarantine_ms"], 10000)
        self.assertLessEqual(report["nodes"][1]["quarantine_ms"], 20000)
        # Two of three: run finds no quorum, and that is what the status says.
        self.guard(SERVERS[2], 6, now_ms + 25000)
        self.assertEqual(self.codes(), (2, [("no-quorum", None), ("quarantine", 1), ("quarantine", 2)]))
        self.assertRegex(self.text("no-quorum"), r"only 1 of 3 nodes can vote now, 2 are needed: no lock can be taken "
                         r"for \d+\.\d s$")
        status, _, err = self.quorlock("run", "-n", "x", "--", "true")
        self.assertEqual(status, 69, err)
        self.guard(SERVERS[2], 6, 0)
        # Further away than any lease: a clock was set back; clients cut it short.
        self.guard(SERVERS[1], 6, now_ms + 900000)
        self.assertEqual(self.examine()[1]["nodes"][1]["quarantine_ms"], 30001)

    def test_no_guard_of_ours(self):
        self.bootstrap()
        SERVERS[0].ask("SET", "quorlock:guard", "2|3|4")
        SERVERS[1].ask("DEL", "quorlock:guard")
        SERVERS[1].ask("LPUSH", "quorlock:guard", "x")
        self.assertEqual(self.codes(), (2, [("guard-format", 0), ("guard-unread", 1), ("no-quorum", None)]))
        self.assertIn("WRONGTYPE", self.text("guard-unread"))
        self.assertEqual([node["guard"] for node in self.examine()[1]["nodes"]], [True, None, True])


class Clocks(Doctor):
    def shifted(self, *seconds):
        shim = pathlib.Path(command_case.QUORLOCK).parents[1] / "lib" / "clock_shim.so"
        if not shim.exists():
            shim = pathlib.Path(self.path("shim.so"))
            subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", shim,
                            ROOT / "cluster/chaos.d/clock_shim.c"], check=True)
        servers = []
        for number, offset in enumerate(seconds):
            clock = self.path(f"clock-{number}")
            with open(clock, "wb") as f:
                f.write(struct.pack("=q", int(offset * 1000000)))
            servers.append(Other(self, *AOF, env={"LD_PRELOAD": str(shim), "QUORLOCK_CHAOS_CLOCK": clock}))
        addresses = ",".join(map(str, servers))
        self.bootstrap(addresses=addresses)
        return addresses

    def test_one_node_is_ahead(self):
        addresses = self.shifted(0, 0, 5)
        self.assertEqual(self.codes(addresses=addresses), (1, [("clock", 2), ("clocks", None)]))
        self.assertRegex(self.text("clock", addresses=addresses), r"its clock is (4\.9|5\.0) s ahead of this")
        offset_us = self.examine(addresses=addresses)[1]["nodes"][2]["clock_offset_us"]
        self.assertLess(abs(offset_us - 5000000), 1000000)
        self.assertRegex(self.quorlock("doctor", env={"QUORLOCK_NODES": addresses})[1], r" \+(4\.9|5(\.0)?) s ")

class Rights(Doctor):
    def user(self, server, *rules):
        server.ask("ACL", "SETUSER", "app", "reset", "on", ">geheim", *rules)
        return f"redis://app:geheim@{server}"

    def newer(self):
        """Commands that only newer servers have."""
        return ["MSETEX"] if SERVERS[0].ask("COMMAND", "INFO", "MSETEX")[0] else []

    def test_each_command_that_is_refused_is_named(self):
        self.bootstrap()
        newer = self.newer()
        for command in COMMANDS + newer:
            address = self.user(SERVERS[0], "~*", "&*", "+@all", "-" + rule(command))
            status, report = self.examine(addresses=f"{address},{SERVERS[1]},{SERVERS[2]}")
            self.assertEqual(report["nodes"][0]["refused"], command)
            offers = [(node["tracking"], node["msetex"]) for node in report["nodes"]]
            self.assertEqual(offers[0], (command not in TELLING, bool(newer) and command not in ["MSETEX", "INFO"]))
            self.assertEqual(offers[1:], [(True, bool(newer))] * 2)
            finding = next(f for f in report["findings"] if f["code"] == "rights")
            self.assertEqual(finding["severity"], "note" if command in MINOR or command in newer else "warning")
            self.assertIn(f'user "app" may not run {command}:', finding["text"])
            self.assertEqual(finding["remedy"], f"ACL SETUSER app +{rule(command)}")
            self.assertEqual(status, 0 if finding["severity"] == "note" else 1, report["findings"])

    def refused(self, dialect, command):
        """Nobody locks where a command is refused that is needed later: to renew, or to release."""
        addresses = ",".join(self.user(server, "~*", "&*", "+@all", "-" + rule(command)) for server in SERVERS)
        status, out, err = self.quorlock("run", "-n", "--dialect", dialect, "job:x", "--", "echo", "ran",
                                         env={"QUORLOCK_NODES": addresses})
        self.assertEqual((status, out), (78, ""), (dialect, command, err))
        self.assertIn(command.split()[0], err.upper())
        self.assertIn("ACL SETUSER", err)
        self.assertEqual([server.ask("EXISTS", "job:x") for server in SERVERS], [0] * 3, (dialect, command))
        return addresses

    def test_nothing_is_locked_that_could_not_be_renewed(self):
        self.bootstrap()
        for command in COMMANDS:
            if command not in NEEDLESS:
                addresses = self.refused("plain", command)
                status, have = self.codes(addresses=addresses, severity="outage")
                self.assertEqual((status, have), (2, [("no-quorum", None)]), command)
        for command in ["HEXISTS", "HSCAN", "HSET", "HDEL", "PTTL", "PEXPIRE", "TIME", "EVALSHA"]:
            self.refused("redisson", command)
        # The text names the user, the command and the remedy.
        status, _, err = self.quorlock("run", "-n", "job:x", "--", "true",
                                       env={"QUORLOCK_NODES": self.refused("plain", "PEXPIRE")})
        self.assertEqual(status, 78)
        self.assertIn('user "app" may not run PEXPIRE, so locks could not be renewed or released '
                      '(ACL SETUSER app +pexpire; or undo its rename-command)', err)
        # Who only looks needs only the rights to look.
        look = ["-@all", "~*", "+info", "+get", "+pttl", "+evalsha", "+eval", "+time"]
        addresses = ",".join(self.user(server, *look) for server in SERVERS)
        status, out, err = self.quorlock("inspect", "job:x", env={"QUORLOCK_NODES": addresses})
        self.assertEqual(status, 0, out + err)

    def test_least_rights_suffice_for_redisson(self):
        self.bootstrap()
        least = ["-@all", "~job:*", "~quorlock:guard", "~quorlock:fence:job:*", "~redisson_lock_queue:{job:*}",
                 "&redisson_lock__channel:{job:*}"]
        least += ["+" + rule(command) for command in COMMANDS]
        least += ["+hexists", "+hscan", "+hset", "+hdel", "+lrange"]
        addresses = ",".join(self.user(server, *least) for server in SERVERS)
        for server in SERVERS:
            server.ask("ACL", "LOG", "RESET")
        status, out, err = self.quorlock("run", "-n", "--fence", "--dialect", "redisson", "job:x", "--", "true",
                                         env={"QUORLOCK_NODES": addresses})
        self.assertEqual(status, 0, out + err)
        for server in SERVERS:
            self.assertEqual(server.ask("ACL", "LOG"), [], "asking for rights must not show as a denial")

    def test_least_rights_suffice_for_doctor_and_run(self):
        self.bootstrap()
        least = ["-@all", "~job:*", "~quorlock:guard", "~quorlock:fence:job:*", "&quorlock:released:*"]
        least += ["+" + rule(command) for command in COMMANDS]
        addresses = ",".join(self.user(server, *least) for server in SERVERS)
        status, report = self.examine(addresses=addresses)
        self.assertEqual(status, 0, report["findings"])
        self.assertEqual({f["code"] for f in report["findings"]},
                         {"names", "persistence"} | ({"rights"} if self.newer() else set()))
        self.assertTrue(all(f["severity"] == "note" for f in report["findings"]))
        for server in SERVERS:
            server.ask("ACL", "LOG", "RESET")
        for guard in ["connection", "strict"]:
            status, out, err = self.quorlock("run", "-n", "--fence", "--guard", guard, "job:x", "--", "sh", "-c",
                                             'test "$QUORLOCK_FENCE" -gt 0', env={"QUORLOCK_NODES": addresses})
            self.assertEqual(status, 0, out + err)
        for server in SERVERS:
            self.assertEqual(server.ask("ACL", "LOG"), [], "asking for rights must not show as a denial")

    def test_names(self):
        self.bootstrap()
        for rules, found in [(("~*", "resetchannels"), [("names", 0)]),
                             (("~job:*", "&*"), [("names", 0)] * 3),
                             (("~job:*", "~quorlock:*", "&*"), [("names", 0)]),
                             (("~job:*", "~quorlock:guard", "&*"), [("names", 0)] * 2)]:
            address = self.user(SERVERS[0], *rules, "+@all")
            _, have = self.codes(addresses=f"{address},{SERVERS[1]},{SERVERS[2]}")
            self.assertEqual([place for place in have if place[0] != "guard-set"], found, rules)
        # Too few nodes let us keep the guard: nothing can be locked.
        addresses = ",".join(self.user(server, "~job:*", "&*", "+@all") for server in SERVERS)
        status, have = self.codes(addresses=addresses, severity="outage")
        self.assertEqual((status, have), (2, [("no-quorum", None)]))

    def test_a_command_that_was_renamed(self):
        other = Other(self, *AOF, "--rename-command", "PEXPIRE", "")
        addresses = f"{other},{SERVERS[1]},{SERVERS[2]}"
        self.bootstrap(addresses=addresses)
        status, report = self.examine(addresses=addresses)
        self.assertEqual((status, report["nodes"][0]["refused"]), (1, "PEXPIRE"))
        # Nor has it a vote then.
        status, out, err = self.quorlock("run", "-n", "--policy", "all", "x", "--", "true",
                                         env={"QUORLOCK_NODES": addresses})
        self.assertEqual((status, out), (78, ""), err)
        self.assertIn("may not run PEXPIRE", err)

    def test_a_server_whose_lua_was_unloaded(self):
        if b"name=LUA,module=lua" not in SERVERS[0].ask("INFO", "scriptingengines"):
            self.skipTest("Lua is no module of this server: it is one of Valkey 9.1 on")
        other = Other(self, *AOF, "--enable-module-command", "local")
        self.bootstrap(addresses=str(other))
        other.ask("MODULE", "UNLOAD", "lua")
        status, report = self.examine(addresses=str(other))
        self.assertEqual((status, [f["code"] for f in report["findings"]]), (2, ["no-quorum", "scripts"]))
        self.assertIn("it runs no scripts, so it cannot vote: EVAL: ERR Could not find scripting engine 'lua'",
                      self.text("scripts", addresses=str(other)))
        status, _, err = self.quorlock("run", "-n", "x", "--", "true", env={"QUORLOCK_NODES": str(other)})
        self.assertEqual(status, 69)
        self.assertIn("(its module lua is not loaded: restart the server", err)

    def test_a_database_that_the_user_may_not_use(self):
        self.bootstrap()
        try:
            address = self.user(SERVERS[0], "~*", "&*", "+@all", "db=1")
        except RuntimeError:
            self.skipTest("this server has no rights to databases: Valkey 9.1 has")
        status, report = self.examine(addresses=f"{address},{SERVERS[1]},{SERVERS[2]}")
        self.assertEqual(status, 1)
        self.assertEqual([(f["code"], f["text"], f["remedy"]) for f in report["findings"]],
                         [("rights", 'user "app" may not use this database: it cannot vote for us', "ACL SETUSER app alldbs")])
        remedy = "(let this user use it: ACL SETUSER USER alldbs)"
        for database in ("", "/2"):
            status, _, err = self.quorlock("run", "-n", "x", "--", "true", env={"QUORLOCK_NODES": address + database})
            self.assertEqual(status, 78)
            self.assertIn(remedy, err)
        SERVERS[0].ask("ACL", "SETUSER", "app", "alldbs")
        self.assertEqual(self.codes(addresses=f"{address},{SERVERS[1]},{SERVERS[2]}"), (0, []))

    def test_commands_that_were_renamed_are_no_matter_of_rights(self):
        other = Other(self, "--rename-command", "HELLO", "", "--rename-command", "CONFIG", "")
        self.bootstrap(addresses=str(other))
        status, report = self.examine(addresses=str(other))
        node = report["nodes"][0]
        self.assertEqual((status, node["refused"], node["tracking"]), (1, "HELLO", False))
        texts = {finding["code"]: (finding["text"], finding["remedy"]) for finding in report["findings"]}
        self.assertEqual(sorted(texts), ["persistence", "rights"])
        self.assertIn("it has no command HELLO: it cannot tell clients", texts["rights"][0])
        self.assertIn("undo its rename-command", texts["rights"][1])
        self.assertEqual(texts["persistence"][1], "set appendonly yes and appendfsync always in its configuration file, "
                                                  "and restart it (it has no command CONFIG)")

    def test_bootstrap_says_what_a_node_answered_where_a_command_was_renamed(self):
        for command, answer in [("EVAL", "unknown command 'EVAL'"), ("TIME", "Unknown (Redis )?command")]:
            other = Other(self, *AOF, "--rename-command", command, "")
            status, out, _ = self.quorlock("bootstrap", env={"QUORLOCK_NODES": str(other)})
            self.assertEqual(status, 78)
            self.assertIn("nothing was written", out)
            self.assertRegex(out, rf"{other}  error .*{answer}.*renamed or removed\? 'quorlock doctor' names what")


class Reach(Doctor):
    def test_passwords(self):
        self.bootstrap()
        SERVERS[1].ask("ACL", "SETUSER", "app", "reset", "on", ">richtig", "~*", "&*", "+@all")
        other = Other(self, *AOF, "--requirepass", "anders")
        for wrong, said in [(f"redis://app:geheim@{SERVERS[1]}", "WRONGPASS"),
                            (f"redis://:geheim@{other}", "WRONGPASS"), (str(other), "NOAUTH"),
                            (f"redis://:geheim@{SERVERS[1]}", "AUTH")]:
            addresses = f"{SERVERS[0]},{wrong},{SERVERS[2]}"
            status, out, err = self.quorlock("doctor", env={"QUORLOCK_NODES": addresses})
            self.assertNotIn("geheim", out + err)
            self.assertIn(said, self.text("unreachable", addresses=addresses))
            _, out, err = self.quorlock("doctor", "--json", "-v", "-v", env={"QUORLOCK_NODES": addresses})
            self.assertNotIn("geheim", out + err)

    def test_what_is_no_redis_server(self):
        def serve(listener, words):
            try:
                while True:
                    with listener.accept()[0] as peer:
                        peer.settimeout(5)
                        if words is not None:
                            peer.sendall(words)
                        peer.recv(10000)
            except OSError:
                pass
        ended = "connection lost|the server closed the connection"
        for words, said in [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a Redis server"), (None, ended),
                            (b"+OK\r\n" * 35, "not a Redis server: INFO has no redis_version"), (b"+OK\r\n" * 60, "not a Redis server"),
                            (b"+OK\r\n" * 2, ended),
                            (b"*1\r\n*1\r\n*1\r\n", "not a Redis server"), (b"$999999999\r\n", "not a Redis server")]:
            with listen() as listener:
                threading.Thread(target=serve, args=(listener, words), daemon=True).start()
                odd = "127.0.0.1:%d" % listener.getsockname()[1]
                addresses = f"{SERVERS[0]},{SERVERS[1]},{odd}"
                self.assertRegex(self.text("unreachable", addresses=addresses), said)

    def test_a_server_that_ends_quiet_connections(self):
        other = Other(self, *AOF, "--timeout", "300")
        self.bootstrap(addresses=str(other))
        self.assertEqual(self.codes(addresses=str(other)), (0, [("idle-limit", 0)]))

    def test_a_server_that_is_paused(self):
        other = Other(self, *AOF)
        self.bootstrap(addresses=str(other))
        other.ask("ACL", "SETUSER", "app", "on", ">geheim", "~*", "&*", "+@all")
        for what, said, let_in in [("WRITE", "INFO, but no write", "INFO, but no write"), ("ALL", "errors, but no command", "no answer to the handshake")]:
            other.ask("CLIENT", "PAUSE", 600000, what)
            for address, words in [(str(other), said), (f"redis://app:geheim@{other}", let_in)]:
                text = self.text("unreachable", addresses=address)
                self.assertIn(words, text)
                self.assertIn("paused by CLIENT PAUSE", text)

    def test_clients(self):
        other = Other(self, *AOF, "--maxclients", "10")
        addresses = str(other)
        self.bootstrap(addresses=addresses)
        wait_for(lambda: b"connected_clients:1\r" in other.ask("INFO", "clients"))
        self.assertEqual(self.codes(addresses=addresses), (0, []))
        crowd = [socket.create_connection(("127.0.0.1", other.port)) for _ in range(8)]
        wait_for(lambda: b"connected_clients:9\r" in other.ask("INFO", "clients"))
        self.assertIn(("clients", 0), self.codes(addresses=addresses)[1])
        crowd += [socket.create_connection(("127.0.0.1", other.port)) for _ in range(2)]

        def full():
            try:
                other.ask("PING")
            except RuntimeError as e:
                return "max number of clients" in str(e)
            except OSError:
                return False
            return False
        wait_for(full)
        self.assertIn("max number of clients", self.text("unreachable", addresses=addresses))
        for one in crowd:
            one.close()

    def test_a_connection_that_can_be_overheard(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect(("192.0.2.1", 9))  # sends nothing: it shows which address would be used
                host = s.getsockname()[0]
            except OSError:
                host = "127.0.0.1"
        if host.startswith("127."):
            self.skipTest("this machine has no address but the loopback's")
        other = Other(self, *AOF, host=host)
        self.bootstrap(addresses=str(other))
        self.assertEqual(self.codes(addresses=str(other)), (0, [("plain-text", 0)]))


if __name__ == "__main__":
    command_case.main()
