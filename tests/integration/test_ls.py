#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock ls: the locks on the nodes: test_ls.py PATH_TO_quorlock [TEST...]"""
import contextlib
import json
import socket
import sys
import threading

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, wait_for
from redis_server import as_text

DIGITS = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "someone:" + DIGITS
THREAD = "12345678-1234-1234-1234-123456789abc:7"


class Ls(Bootstrapped):
    def everywhere(self, *words, servers=None):
        for server in servers or SERVERS:
            server.ask(*words)

    def holds(self, key, token=TOKEN, ms=60000, servers=None):
        self.everywhere("SET", key, token, "PX", ms, servers=servers)

    def run_under(self, *options):
        """Starts a command under a lock that is on all nodes, and returns its token."""
        before = sum(server.ask("DBSIZE") for server in SERVERS)
        process = self.start("run", *options, "--", "sh", "-c", "echo $QUORLOCK_OWNER; sleep 100")
        token = process.stdout.readline().decode().strip()
        wait_for(lambda: sum(server.ask("DBSIZE") for server in SERVERS) >= before + len(SERVERS))
        return token

    def listed(self, *words, expected=0):
        """The lines of --json: (locks, the last line, stderr)."""
        status, out, err = self.connected("ls", "--json", *words)
        self.assertEqual(status, expected, err)
        lines = [json.loads(line) for line in out.splitlines()]
        for lock in lines[:-1]:
            self.assertTrue(-1 <= lock.pop("ttl_ms") <= 60000)
        self.assertEqual(lines[-1]["locks"], len(lines) - 1)
        return lines[:-1], lines[-1], err

    def keys(self, *words):
        return [lock["key"] for lock in self.listed(*words)[0]]

    def test_locks_of_each_mode(self):
        exclusive = self.run_under("--label", "host:1", "--fence", "job:a")
        self.run_under("--shared", "job:b")
        process = self.start("run", "--shared", "job:b", "--", "sh", "-c", "echo up; sleep 100")
        process.stdout.readline()
        wait_for(lambda: all(server.ask("ZCARD", "quorlock:readers:job:b") == 2 for server in SERVERS))
        slot = self.run_under("--permits", "5", "job:c")
        self.holds("job:d", servers=SERVERS[:1])
        locks, last, _ = self.listed()
        number = locks[2].pop("slot")
        self.assertEqual(locks, [
            {"key": "job:a", "mode": "exclusive", "holder": exclusive, "nodes": 3, "held": True},
            {"key": "job:b", "mode": "shared", "holder": "quorlock:readers", "nodes": 3, "held": True, "readers": 2},
            {"key": "job:c", "mode": "permit", "holder": slot, "nodes": 3, "held": True, "permits": 5},
            {"key": "job:d", "mode": "exclusive", "holder": TOKEN, "nodes": 1, "held": False}])
        self.assertEqual((last["quorum"], last["answered"]), (2, 3))
        self.assertEqual({node["state"] for node in last["nodes"]}, {"listed"})
        status, out, err = self.connected("ls")
        self.assertEqual(status, 0, err)
        self.assertNotIn(DIGITS, out, "messages do not show the whole token")
        for line in (r"key +mode +holder +left +nodes", rf"job:a +exclusive +{exclusive[:15]} +\d+ ms +3 of 3",
                     r"job:b +2 readers +\d+ ms +3 of 3", rf"job:c +slot {number} of 5 +\S+ +\d+ ms +3 of 3",
                     r"job:d +exclusive +someone:01234567 +\d+ ms +1 of 3, no quorum: not held"):
            self.assertRegex(out, rf"(?m)^{line}$")

    def test_servers_that_are_none_list_nothing(self):
        def serve(listener):
            with contextlib.suppress(OSError):
                while True:
                    peer = listener.accept()[0]
                    threading.Thread(target=answer, args=(peer,), daemon=True).start()

        def answer(peer):
            with peer, contextlib.suppress(OSError):
                while words := peer.recv(10000):
                    peer.sendall(b"-ERR section (server) is not supported\r\n" if b"INFO" in words else
                                 b"*2\r\n$1\r\n0\r\n$0\r\n\r\n")
        with contextlib.ExitStack() as stack:
            listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
            for listener in listeners:
                threading.Thread(target=serve, args=(listener,), daemon=True).start()
            nodes = ",".join("127.0.0.1:%d" % listener.getsockname()[1] for listener in listeners)
            status, out, err = self.quorlock("ls", "--nodes", nodes)
        self.assertEqual((status, out), (69, ""))
        self.assertIn("section (server) is not supported", err)

    def test_other_strings_that_expire_are_counted_and_listed_on_demand(self):
        self.holds("job:lock")
        self.holds("job:theirs", "a-token-of-theirs")
        self.holds("job:one", "a-token-of-theirs", servers=SERVERS[:1])
        self.holds("else", "a-token-of-theirs")
        self.everywhere("SET", "job:forever", "a-token-of-theirs")
        self.holds("quorlock:slot:1:job:slot", "a-token-of-theirs")
        self.everywhere("HSET", "job:hash", "field", "value")
        status, out, err = self.connected("ls", "job:*")
        self.assertEqual(status, 0)
        self.assertRegex(err, r"2 other strings with an expiry were skipped \(job:(theirs|one)\): .*inspect KEY.*ls --all")
        self.assertNotIn("job:theirs", out)
        status, out, err = self.connected("ls", "--all", "job:*")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([line.split()[:2] for line in out.splitlines()[1:]],
                         [["job:lock", "exclusive"], ["job:one", "other"], ["job:theirs", "other"]])
        lines = [json.loads(line) for line in self.connected("ls", "--all", "--json", "job:*")[1].splitlines()]
        self.assertEqual(lines[1:3], [{"key": "job:one", "mode": "other"}, {"key": "job:theirs", "mode": "other"}])
        self.assertEqual((lines[3]["locks"], lines[3]["others"]), (1, 2))

    def test_strings_that_stay_in_the_way_of_locks_are_listed(self):
        for prefix in ("", "app:"):
            self.everywhere("SET", prefix + "job:forever", "a-token-of-theirs")
            self.everywhere("SET", prefix + "job:blocked", "a-token-of-theirs")
            self.everywhere("SET", prefix + "job:digits", DIGITS)
            self.everywhere("SET", prefix + "quorlock:slot:1:job:slot", "a-token-of-theirs")
            for name in ("blocked", "digits"):
                self.everywhere("SET", f"{prefix}quorlock:fence:job:{name}", 7, "PX", 60000)
            locks, last, err = self.listed("--prefix", prefix, "job:*")
            self.assertEqual([(lock["key"], lock["mode"], lock["holder"], lock["nodes"], lock["held"]) for lock in locks],
                             [("job:blocked", "exclusive", "a-token-of-theirs", 3, True), ("job:digits", "exclusive", DIGITS, 3, True),
                              ("job:slot", "permit", "a-token-of-theirs", 3, True)])
            self.assertEqual((last["others"], err), (0, ""))
            self.assertRegex(self.connected("ls", "--prefix", prefix, "job:b*")[1], r"(?m)^job:blocked +exclusive +a-token- +no expiry +3 of 3$")

    def test_of_many_other_strings_a_thousand_are_listed(self):
        SERVERS[0].ask("EVAL", "for i = 1, 1500 do redis.call('SET', 'other:' .. i, 'x', 'PX', 60000) end", 0)
        status, out, err = self.connected("ls", "--all")
        self.assertEqual((status, out.count("other:")), (0, 1000))
        self.assertRegex(err, r"1000 of 1[5-9]\d\d other strings are listed: give a narrower pattern")

    def test_the_holder_on_most_nodes_and_the_lease_of_a_quorum(self):
        for server, token, ms in zip(SERVERS, (TOKEN, "other:" + DIGITS, TOKEN), (50000, 60000, 20000)):
            server.ask("SET", "k", token, "PX", ms)
        for server, ms in zip(SERVERS, (10000, 60000, 40000)):
            server.ask("SET", "whole", TOKEN, "PX", ms)
        self.everywhere("SET", "forever", TOKEN)
        _, out, _ = self.connected("ls")
        self.assertRegex(out, r"(?m)^k +exclusive +someone:01234567 +1\d{4} ms +2 of 3$")
        self.assertRegex(out, r"(?m)^whole +exclusive +someone:01234567 +3\d{4} ms +3 of 3$")
        self.assertRegex(out, r"(?m)^forever +exclusive +someone:01234567 +no expiry +3 of 3$")

    def test_as_many_readers_as_a_quorum_has(self):
        for server, readers in zip(SERVERS, (1, 3, 2)):
            server.ask("SET", "r", "quorlock:readers", "PX", 60000)
            for number in range(readers):
                server.ask("ZADD", "quorlock:readers:r", "99999999999999", f"r{number}:" + DIGITS)
        self.assertEqual([lock["readers"] for lock in self.listed()[0]], [2])

    def test_other_keys_are_skipped(self):
        values = ["", "x", DIGITS, ":" + DIGITS, TOKEN + "0", TOKEN[:-1], "a b:" + DIGITS, TOKEN.upper(), "x" * 1000000,
                  "l" * 65 + ":" + DIGITS, TOKEN + "\n", "1" * 32]
        for number, value in enumerate(values):
            self.everywhere("SET", f"value:{number}", value)
        self.everywhere("RPUSH", "list", TOKEN)
        self.everywhere("HSET", "hash", THREAD, "1")
        self.everywhere("ZADD", "set", "1", TOKEN)
        for key in ("guard", "fence:k", "permits:k", "slot:64:k", "slot:x:k", "slot:3:"):
            self.holds("quorlock:" + key)
        self.holds("nul\0byte")
        self.everywhere("SET", "reserved", "quorlock:readers", "PX", "60000")
        self.assertEqual(self.listed()[0], [])
        self.assertEqual(self.connected("ls")[:2], (0, "no locks were found\n"))
        self.holds("l" * 1024, "l" * 64 + ":" + DIGITS)
        self.holds("no label", DIGITS)
        self.assertEqual(self.keys(), ["l" * 1024, "no label"])

    def test_patterns_are_those_of_scan(self):
        names = ["a", "ab", "abc", "a:b", "x:a:b", "a*", "a-", "b]", "a\\", "c^"]
        for name in names:
            self.holds(name)
            self.holds(f"quorlock:slot:12:{name}")
        for pattern in ("a", "a*", "*b", "?", "a?", "[ab]*", "[^ab]*", "[a-b]b", "a\\*", "a[*-]", "*:*", "a:*", "**", "*a*b*", "[",
                        "a[", "[]b]", "b\\]", "a\\\\", "[b-a]", "[\\^c]^", "x:?:b", "nothing"):
            expected = sorted(key.decode() for key in SERVERS[0].ask("KEYS", pattern) if not key.startswith(b"quorlock:"))
            self.assertEqual(self.keys(pattern), [key for key in expected for _ in range(2)], pattern)
        for words, said in [(("a", "b"), "ls takes one pattern, not 2"), (("",), "the pattern has 0 bytes"),
                            (("x" * 1025,), "the pattern has 1025 bytes: give 1 to 1024")]:
            status, out, err = self.quorlock("ls", *words)
            self.assertEqual((status, out), (64, ""))
            self.assertIn(said, err)

    def test_a_prefix_is_kept_and_not_shown(self):
        for prefix in ("", "app:", "x[a]*:"):
            self.holds(prefix + "k")
            self.holds(f"{prefix}quorlock:slot:3:p")
            for name in ("fence:k", "permits:k", "clock", "slot:64:k", "slot:x:k"):
                self.holds(f"{prefix}quorlock:{name}")
        self.holds("xa:k")
        self.holds("quorlock:slot:3:app:other")
        self.assertEqual(self.keys("--prefix", "app:"), ["k", "p"])
        self.assertEqual(self.keys("--prefix", "x[a]*:", "?"), ["k", "p"])

    def test_readers_and_permits_under_a_prefix(self):
        self.run_under("--prefix", "app:", "--shared", "job:b")
        slot = self.run_under("--prefix", "app:", "--permits", "5", "--fence", "job:c")
        locks, _, _ = self.listed("--prefix", "app:")
        locks[1].pop("slot")
        self.assertEqual(locks, [
            {"key": "job:b", "mode": "shared", "holder": "quorlock:readers", "nodes": 3, "held": True, "readers": 1},
            {"key": "job:c", "mode": "permit", "holder": slot, "nodes": 3, "held": True, "permits": 5}])
        for key, part in (("job:b", r"\nreader "), ("job:c", r"\nslot \d .* \d{16}\n")):
            self.assertRegex(self.quorlock("inspect", "--prefix", "app:", key)[1], part)
        self.assertEqual(self.connected("break", "--prefix", "app:", "job:c")[0], 0)
        self.assertEqual(self.keys("--prefix", "app:"), ["job:b"])

    def test_locks_of_redisson(self):
        self.everywhere("HSET", "plain", THREAD, "2")
        self.everywhere("PEXPIRE", "plain", "60000")
        self.everywhere("HSET", "rw", "mode", "read", THREAD, "1")
        self.everywhere("HSET", "user", "name", "x")
        self.everywhere("HSET", "users", "name", "x", "mode", "fast")
        self.holds("string")
        locks, _, _ = self.listed("--dialect", "redisson")
        self.assertEqual([(lock["key"], lock["mode"], lock["holder"]) for lock in locks],
                         [("plain", "exclusive", THREAD), ("rw", "shared", "RReadWriteLock:read")])

    def test_many_keys_in_bounded_steps(self):
        script = "for i = 1, 20000 do redis.call('SET', (i % 2 == 0 and 'lock:' or 'other:') .. i, ARGV[1], 'PX', 600000) end"
        self.everywhere("EVAL", script, "0", TOKEN)
        for server in SERVERS:
            server.ask("CONFIG", "RESETSTAT")
        status, out, err = self.connected("ls", "lock:*")
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(line.split()[0] for line in out.splitlines()[1:]),
                         sorted(f"lock:{i}" for i in range(2, 20001, 2)))
        for server in SERVERS:
            calls = {line.split(":")[0]: int(line.split("calls=")[1].split(",")[0])
                     for line in server.ask("INFO", "commandstats").decode().splitlines() if "calls=" in line}
            self.assertGreaterEqual(calls["cmdstat_scan"], 20000 / 500)
            self.assertLessEqual(calls["cmdstat_scan"], calls["cmdstat_eval"], "one a script")

    def test_long_keys_do_not_make_a_reply_too_long(self):
        script = "for i = 1, 3000 do redis.call('SET', i .. string.rep('k', 1000), ARGV[1], 'PX', 600000) end"
        self.everywhere("EVAL", script, "0", TOKEN)
        self.assertEqual(len(self.keys_of_all()), 3000)

    def keys_of_all(self):
        status, out, err = self.connected("ls")
        self.assertEqual(status, 0, err)
        return {line.split()[0] for line in out.splitlines()[1:]}

    def test_frozen_nodes_and_nodes_that_are_down(self):
        self.holds("k")
        limits = ("--node-timeout", "2s", "--connect-timeout", "2s")
        SERVERS[2].freeze()
        locks, last, err = self.listed(*limits)
        self.assertEqual([(lock["key"], lock["nodes"], lock["held"]) for lock in locks], [("k", 2, True)])
        self.assertEqual([node["state"] for node in last["nodes"]], ["listed", "listed", "down"])
        self.assertIn(f"{SERVERS[2]} down: ", err)
        SERVERS[1].kill()
        locks, last, _ = self.listed(*limits, expected=69)
        self.assertEqual([(lock["key"], lock["nodes"], lock["held"]) for lock in locks], [("k", 1, False)])
        self.assertEqual([node["state"] for node in last["nodes"]], ["listed", "down", "down"])
        SERVERS[0].freeze()
        self.assertEqual(self.quorlock("ls", *limits)[:2], (69, ""))

    # ---- rights ----

    def as_user(self, *words, verb="ls"):
        listed = ",".join(f"redis://app:geheim@{server}" for server in SERVERS)
        return self.connected(verb, *words, env={"QUORLOCK_NODES": listed})

    def user(self, *rules):
        self.everywhere("ACL", "SETUSER", "app", "reset", "on", ">geheim", *rules)
        self.addCleanup(self.everywhere, "ACL", "DELUSER", "app")
        self.everywhere("ACL", "LOG", "RESET")

    def denials(self):
        return [entry for server in SERVERS for entry in as_text(server.ask("ACL", "LOG"))]

    def test_one_node_that_refuses_us_is_not_too_many(self):
        """Of the nodes that are lacking the others are down: that may pass."""
        self.user("~*", "-@all")
        SERVERS[1].ask("ACL", "SETUSER", "app", "+@all")
        SERVERS[2].ask("ACL", "SETUSER", "app", "+@all")
        def statuses():
            return {self.as_user("k", verb=verb)[0] for verb in ("ls", "inspect")}
        self.assertEqual(statuses(), {0})
        SERVERS[2].kill()
        self.addCleanup(SERVERS[2].start)
        self.assertEqual(statuses(), {69})
        SERVERS[1].ask("ACL", "SETUSER", "app", "-@all")
        self.assertEqual(statuses(), {78})

    def test_a_password_that_too_many_nodes_refuse_is_no_outage(self):
        for wrong, expected in [(SERVERS[:1], 0), (SERVERS[:2], 78)]:
            self.user("~*", "+@all")
            self.everywhere("ACL", "SETUSER", "app", "<geheim", ">another", servers=wrong)
            for verb in ("ls", "inspect"):
                status, out, err = self.as_user("k", verb=verb)
                self.assertEqual(status, expected, (verb, err))
                for server in wrong:
                    self.assertRegex(out + err, rf'{server} +down.*: wrong password for user "app"', verb)

    def test_the_rights_of_doctor_suffice(self):
        for dialect in ("plain", "redisson"):
            status, out, err = self.quorlock("doctor", "--dialect", dialect, "--acl", "app", "--ls", "job:*")
            self.assertEqual(status, 0, err)
            self.assertNotIn("+scan", self.quorlock("doctor", "--dialect", dialect, "--acl", "app")[1])
            self.user(*out.split()[3:])
            self.everywhere("ACL", "SETUSER", "app", ">geheim")
            self.holds("job:a")
            self.holds("quorlock:slot:1:job:p")
            self.everywhere("SET", "quorlock:permits:job:p", "3")
            self.everywhere("SET", "job:r", "quorlock:readers")
            self.everywhere("ZADD", "quorlock:readers:job:r", "99999999999999", TOKEN)
            self.everywhere("HSET", "job:h", THREAD, "1")
            self.everywhere("HSET", "job:w", "mode", "write", THREAD, "1")
            status, out, err = self.as_user("--dialect", dialect, "job:*")
            self.assertEqual((status, err), (0, ""))
            for name in ("job:a", "1 reader", "slot 1 of 3") if dialect == "plain" else ("job:h", "job:w"):
                self.assertIn(name, out)
            self.assertEqual(self.denials(), [])

    def test_the_rights_of_a_user_who_only_lists(self):
        self.holds("k")
        self.holds("quorlock:slot:1:k")
        self.everywhere("SET", "r", "quorlock:readers")
        self.everywhere("ZADD", "quorlock:readers:r", "99999999999999", TOKEN)
        self.everywhere("HSET", "h", THREAD, "1")
        for dialect, keys, rights in [("plain", ["k", "k", "r"], "+info +eval +scan +getrange +get +pttl +zcount +time"),
                                      ("redisson", ["h"], "+info +eval +scan +hlen +hkeys +hget +pttl")]:
            self.user("~*", "-@all", *rights.split())
            status, out, err = self.as_user("--dialect", dialect)
            self.assertEqual((status, [line.split()[0] for line in out.splitlines()[1:]], err), (0, keys, ""))

    def test_a_missing_right_is_named(self):
        self.holds("k")
        for right in ("eval", "scan", "getrange", "pttl"):
            self.user("~*", "+@all", "-" + right)
            status, out, err = self.as_user()
            self.assertEqual((status, out), (78, ""), err)
            self.assertEqual(err.count("the user needs the rights +info +eval +scan +getrange +get +pttl +zcount +time"), 3, err)
            self.assertIn("quorlock doctor --acl USER --ls", err)

    def test_keys_that_may_not_be_read_are_counted(self):
        self.holds("job:a")
        self.holds("job:b")
        self.holds("ajob:c")
        self.user("~job:a", "+@all")
        status, out, err = self.as_user("job:*")
        self.assertEqual((status, [line.split()[0] for line in out.splitlines()]), (0, ["key", "job:a"]))
        self.assertEqual(err.count("listed: keys that the user may not read, and that may be locks: 1 ("), 3, err)


if __name__ == "__main__":
    command_case.main()
