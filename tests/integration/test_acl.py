#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock doctor --acl: the rights suffice, and each of them is needed: test_acl.py PATH_TO_quorlock [TEST...]

A user with the rights of the printed line does all that clients do, and the servers deny it nothing. Then each right is
taken away in turn: something fails, or a server logs a denial.
"""
import os
import signal
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, wait_for
from redis_server import as_text

UUID = "12345678-1234-1234-1234-123456789abc"
# Without the rights to notices a client tries all the same, and does without.
DENIED_WITHOUT_NOTICES = {"publish", "subscribe", "pubsub|numsub", "pubsub|numpat", "pubsub", "unsubscribe", "ping",
                          "lrange"}


def denied():
    """What the servers have denied since the log was emptied."""
    found = set()
    for server in SERVERS:
        found |= {entry[entry.index("object") + 1] for entry in as_text(server.ask("ACL", "LOG"))}
    return found


class Acl(Bootstrapped):
    prefix = ""

    def name(self, key, kind=None):
        """A key as the servers know it; or what stands beside it there."""
        return self.prefix + (f"quorlock:{kind}:" if kind else "") + key

    def line(self, *options):
        """The words of the printed line."""
        status, out, err = self.quorlock("doctor", "--acl", "app", *options)
        self.assertEqual((status, out.count("\n")), (0, 1), err)
        self.assertIn("ACL SETUSER app >PASSWORD", err)
        return out.split()

    def everywhere(self, *words):
        for server in SERVERS:
            server.ask(*words)

    def run_as(self, *args, database=""):
        listed = ",".join(f"redis://app:geheim@{server}{database}" for server in SERVERS)
        return self.start("run", *self.options, *args, env={"QUORLOCK_NODES": listed})

    def lock(self, hold, database):
        """One that is free, with a waiter of Redisson's fair lock."""
        self.everywhere("RPUSH", f"redisson_lock_queue:{{{self.name('job:x')}}}", UUID + ":7")
        script = 'echo "ran ${QUORLOCK_FENCE:+fenced}"'
        return self.end(self.run_as(*hold, "-n", "job:x", "--", "sh", "-c", script, database=database))[:2]

    def messages(self):
        """What stands in the way is named: another type, and the mode of a read-write lock of Redisson."""
        self.everywhere("RPUSH", self.name("job:list"), "x")
        self.everywhere("HSET", self.name("job:rw"), "mode", "read", UUID + ":7", "1")
        found = []
        for key, process in [(key, self.run_as("-n", key, "--", "true")) for key in ("job:list", "job:rw")]:
            status, _, err = self.end(process)
            found.append((status, "list" in err.replace(key, ""), "RReadWriteLock:read" in err))
        return found

    def wait(self, channel):
        """A waiter that is notified; (status, whether it has subscribed)."""
        for server in SERVERS:
            if "redisson" in self.options:
                server.ask("HSET", self.name("job:w"), UUID + ":7", "1")
            else:
                server.ask("SET", self.name("job:w"), "someone-else-entirely")
            server.ask("PEXPIRE", self.name("job:w"), 30000)

        def listeners():
            script = "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]"
            return sum(server.ask("EVAL", script, 0, channel) for server in SERVERS)
        up, go = self.path("up"), self.path("go")
        script = f">{up}; while [ ! -e {go} ]; do sleep .01; done"
        process = self.run_as("--wait", "20s", "job:w", "--", "sh", "-c", script)
        wait_for(lambda: listeners() or denied() or process.poll() is not None)
        subscribed = listeners() > 0
        self.everywhere("DEL", self.name("job:w"))
        self.everywhere("PUBLISH", channel, "0")
        wait_for(lambda: os.path.exists(up) or process.poll() is not None)
        # When it has the lock it listens no longer.
        wait_for(lambda: not listeners() or "unsubscribe" in denied())
        open(go, "w").close()
        result = self.end(process)[0], subscribed
        for name in (up, go):
            if os.path.exists(name):
                os.remove(name)
        return result

    def refused(self, notices):
        """What is denied of the rights that the line should have."""
        refused = denied()
        if not notices:
            refused -= DENIED_WITHOUT_NOTICES
            refused -= {name for name in refused if "channel" in name or ":released:" in name or "lock_queue" in name}
        return refused

    def several(self, notices, *commands):
        """Commands, each with what is true when the next one may begin; then they end in that order. Their ends; or None, as
        soon as something is denied."""
        started = []
        for number, (words, truth) in enumerate(commands):
            go = self.path(f"go{number}")
            if os.path.exists(go):
                os.remove(go)
            script = f"while [ ! -e {go} ]; do sleep .01; done; echo $QUORLOCK_SLOT"
            started.append((self.run_as("--wait", "20s", *words, "--", "sh", "-c", script), go))
            wait_for(lambda t=truth, p=started[-1][0]: t() or p.poll() is not None or self.refused(notices))
        for process, go in started:
            open(go, "w").close()
            wait_for(lambda p=process: p.poll() is not None or self.refused(notices))
        if self.refused(notices):
            for process, _ in started:
                process.kill()
            return None
        return [self.end(process)[0] for process, _ in started]

    def share(self, notices):
        """A reader, a writer that waits for it, a reader that waits for that one."""
        def counts(command, kind):
            return lambda: all(server.ask(command, self.name("job:s", kind)) for server in SERVERS)

        return self.several(notices, (("--shared", "job:s"), counts("ZCARD", "readers")),
                            (("job:s",), counts("ZCARD", "intents")), (("--shared", "job:s"), lambda: True))

    def take_permits(self, notices):
        """All of a name, one after the other, and one more waits."""
        def taken(count):
            return lambda: sum(server.ask("EXISTS", self.name("job:p", f"slot:{slot}"))
                               for server in SERVERS for slot in (0, 1)) >= 2 * count
        words = ("--permits", "2", "--fence", "job:p")
        return self.several(notices, (words, taken(1)), (words, taken(2)), (words, lambda: True))

    def test_a_denied_key_is_named_with_the_remedy(self):
        """Servers do not say which key it was."""
        self.everywhere("ACL", "SETUSER", "app", "reset", "on", ">geheim", "~job:x", "~quorlock:guard", "&*", "+@all")
        self.addCleanup(self.everywhere, "ACL", "DELUSER", "app")
        self.options = []
        for options, keys in [(("--fence",), "job:x quorlock:fence:job:x"),
                              (("--shared",), "job:x quorlock:readers:job:x quorlock:intents:job:x"),
                              (("--fair",), "job:x quorlock:queue:job:x"),
                              (("--fair", "--permits", "2"), r"quorlock:permits:job:x quorlock:queue:job:x quorlock:slot:\d:job:x"),
                              (("--permits", "2"), r"quorlock:permits:job:x quorlock:slot:\d:job:x")]:
            status, _, err = self.end(self.run_as("-n", *options, "job:x", "--", "true"))
            self.assertEqual(status, 78, err)
            self.assertRegex(err, rf"[kK]ey.*'quorlock doctor --acl USER'.*; it asked for {keys} quorlock:guard\n")

    def guard(self, database):
        """Whether a client writes the guards of new nodes: they have no vote then, so the old ones are put back."""
        if database:
            return False
        before = [server.ask("GET", "quorlock:guard") for server in SERVERS]
        self.everywhere("DEL", "quorlock:guard")
        self.end(self.run_as("-n", "--policy", "all", "job:x", "--", "true"))
        written = all(server.ask("GET", "quorlock:guard") for server in SERVERS)
        for server, guard in zip(SERVERS, before):
            server.ask("SET", "quorlock:guard", guard)
        return written

    def seen(self, rules, notices, database=""):
        """All that a client sees with these rights, and what is denied to it."""
        redisson = "redisson" in self.options
        self.everywhere("ACL", "DELUSER", "app")
        self.everywhere("ACL", "SETUSER", "app", "on", ">geheim", *rules)
        self.everywhere("DEL", f"redisson_lock_queue:{{{self.name('job:x')}}}",
                        *(self.name(key) for key in ("job:x", "job:w", "job:list", "job:rw", "job:s")),
                        *(self.name("job:s", kind) for kind in ("readers", "intents")),
                        *(self.name("job:p", kind) for kind in ("slot:0", "slot:1", "permits")))
        self.everywhere("ACL", "LOG", "RESET")
        result = [self.guard(database), self.lock(("--guard", "connection"), database)]
        if result[1][0] == 0:
            result.append(self.lock(("--fence", "--guard", "strict"), database))
        if result[1][0] == 0 and not database:
            result.append(self.messages())
            result.append(self.wait(f"redisson_lock__channel:{{{self.name('job:w')}}}" if redisson
                                    else self.name("job:w", "released")))
        if len(result) == 5 and not redisson and not self.refused(notices):
            result.append(self.share(notices))
            result.append(self.take_permits(notices))
            result.append(self.lock(("--fair", "--guard", "off"), database))
        return result, self.refused(notices)

    def check(self, dialect, notices, *more, patterns=("job:*",)):
        self.options = ("--dialect", dialect, *more)
        words = self.line(*self.options, *([] if notices else ["--no-notices"]), *patterns)
        self.assertEqual(words[:6], ["ACL", "SETUSER", "app", "on", "resetkeys", "resetchannels"])
        rules = words[6:]
        self.assertEqual(rules[0], "-@all")
        foreign = [(78, True, False), (1, False, True) if dialect == "redisson" else (78, False, False)]
        whole = [True, (0, "ran \n"), (0, "ran fenced\n"), foreign, (0, notices)], set()
        if dialect == "plain":
            whole[0].extend([[0, 0, 0], [0, 0, 0], (0, "ran \n")])
        self.assertEqual(self.seen(rules, notices), whole)
        return rules, whole

    def check_each(self, dialect):
        rules, whole = self.check(dialect, True)
        # What fails now fails quickly.
        self.options += ("--node-timeout", "200ms")
        for place in range(1, len(rules)):
            if rules[place] in ("+unsubscribe", "+mget", "+pubsub|numpat", "+exists") or ":turn:" in rules[place]:
                continue  # test_acl_locks.c and test_fair.c miss them
            left = rules[:place] + rules[place + 1:]
            self.assertNotEqual(self.seen(left, True), whole, f"nobody misses {rules[place]}")
        # Without notices it is a part of these.
        self.assertLess(set(self.line("--dialect", dialect, "--no-notices", "job:*")[6:]), set(rules))

    def test_plain(self):
        self.check_each("plain")

    def test_plain_without_notices(self):
        self.check("plain", False)

    def test_redisson(self):
        self.check_each("redisson")

    def under_a_prefix(self, dialect, names):
        """These few names are enough, and each of them is needed."""
        self.prefix = "app:"
        rules, whole = self.check(dialect, True, "--prefix", "app:", patterns=())
        self.assertEqual([rule for rule in rules if rule[0] in "~&"], ["~quorlock:guard", *names])
        for server in SERVERS:
            self.assertEqual(server.ask("KEYS", "quorlock:*"), [b"quorlock:guard"])
        self.options += ("--node-timeout", "200ms")
        for name in ("~quorlock:guard", *names):
            left = [rule for rule in rules if rule != name]
            self.assertNotEqual(self.seen(left, True), whole, f"nobody misses {name}")

    def test_plain_under_a_prefix(self):
        self.under_a_prefix("plain", ["~app:*", "&app:*"])

    def test_redisson_under_a_prefix(self):
        self.under_a_prefix("redisson", ["~app:*", "~redisson_lock_queue:{app:*}", "&redisson_lock__channel:{app:*}",
                                         "&redisson_lock__channel:{app:*}:*"])

    def test_elections_and_operators_under_a_prefix(self):
        """A leader, a candidate that is notified of its end, an observer that is told, and the lists and reports."""
        env = {"QUORLOCK_NODES": ",".join(f"redis://app:geheim@{server}" for server in SERVERS), "QUORLOCK_PREFIX": "app:"}
        self.everywhere("ACL", "DELUSER", "app")
        self.addCleanup(self.everywhere, "ACL", "DELUSER", "app")
        self.everywhere(*self.line("--prefix", "app:", "--ls"), ">geheim")
        self.everywhere("ACL", "LOG", "RESET")
        leaders = []
        for number in range(2):
            leaders.append(self.start("elect", "job:e", "--", "sh", "-c", f">{self.path(f'up{number}')}; sleep 1000", env=env))
            if number == 0:
                self.wait_file("up0", leaders[0])
        follower = self.start("leader", "--follow", "job:e", env=env)
        channel = "app:quorlock:released:job:e"
        wait_for(lambda: all(server.ask("PUBSUB", "NUMSUB", channel)[1] > 0 for server in SERVERS))
        self.assertIn("job:e", self.quorlock("ls", env=env)[1])
        self.assertRegex(self.quorlock("inspect", "job:e", env=env)[1], r" fence +waiting (?s:.*) \d{16} +2 ")
        self.quorlock("bootstrap", "--yes", env=env)
        self.assertEqual(denied(), set())
        leaders[0].terminate()
        self.wait_file("up1", leaders[1])
        for process in (*leaders, follower):
            process.terminate()
            self.end(process)
        self.assertEqual(denied(), set())
        self.assertEqual({key for server in SERVERS for key in server.ask("KEYS", "*") if not key.startswith(b"app:")},
                         {b"quorlock:guard"})
        status, out, err = self.quorlock("doctor", env=env)
        self.assertNotRegex(out + err, "may not use")
        self.assertEqual(self.quorlock("break", "job:e", env=env)[0], 0)
        self.everywhere("ACL", "SETUSER", "app", "resetkeys", "~quorlock:guard", "~app:job:*")
        self.assertIn("may not use every key app:quorlock:fence:KEY", self.quorlock("doctor", env=env)[1])

    def test_redisson_without_notices(self):
        self.check("redisson", False)

    def test_a_database(self):
        self.options = ()
        listed = ",".join(f"redis://{server}/3" for server in SERVERS)
        self.bootstrap("--nodes", listed)
        words = self.line("--nodes", listed, "--no-notices", "job:*")
        self.assertIn("+select", words)
        self.assertNotIn("+select", self.line("job:*"))
        self.assertNotIn("+select", self.line("--nodes", "redis://a:b@host:1/0,unix:///run/3?db=0,h/"))
        self.assertIn("+select", self.line("--nodes", "host,unix:///run/redis.sock?db=12"))
        whole = [False, (0, "ran \n"), (0, "ran fenced\n")], set()
        self.assertEqual(self.seen(words[6:], False, "/3"), whole)
        words.remove("+select")
        self.options = ("--node-timeout", "200ms")
        self.assertNotEqual(self.seen(words[6:], False, "/3"), whole)

    def test_what_operators_need_beside(self):
        def status(*args):
            listed = ",".join(f"redis://app:geheim@{server}" for server in SERVERS)
            return self.connected(*args, env={"QUORLOCK_NODES": listed})[0]
        for dialect, more in [("plain", ()), ("redisson", ("+del",))]:
            self.everywhere("ACL", "DELUSER", "app")
            self.everywhere(*self.line("--dialect", dialect, "job:*"), ">geheim")
            self.assertEqual(status("inspect", "--dialect", dialect, "job:x"), 0)
            if more:
                self.everywhere("HSET", "job:x", UUID + ":7", "1")
                status("break", "--dialect", dialect, "job:x")
                self.assertEqual([server.ask("EXISTS", "job:x") for server in SERVERS], [1, 1, 1])
                self.everywhere("ACL", "SETUSER", "app", *more)
            self.assertEqual(status("break", "--dialect", dialect, "job:x"), 0)
            self.assertEqual([server.ask("EXISTS", "job:x") for server in SERVERS], [0, 0, 0])
            for right in ("+multi", "+exec", "+client|kill"):
                self.assertNotEqual(status("bootstrap", "--reconfigure", "--yes", "--max-lease", "30s"), 0)
                self.everywhere("ACL", "SETUSER", "app", right)
            self.assertEqual(status("bootstrap", "--reconfigure", "--yes", "--max-lease", "30s"), 0)

    def test_patterns(self):
        self.options = ()
        for patterns in [(), ("*",), ("a*", "*"), ("job:*", "other:{x}*")]:
            for dialect in ("plain", "redisson"):
                words = self.line("--dialect", dialect, *patterns)
                self.everywhere(*words)  # the server takes it
                self.assertEqual("~*" in words, "job:*" not in patterns)
        self.assertIn("&redisson_lock__channel:other:{x}*", words)
        self.assertIn("&redisson_lock__channel:{job:*}", words)

    def test_keys_with_a_prefix(self):
        self.options = ("--prefix", "app:", "--fence")
        self.everywhere("ACL", "DELUSER", "app")
        self.everywhere(*self.line("--prefix", "app:", "job:*"), ">geheim")
        holder = self.run_as("-n", "job:x", "--", "sleep", "1000")
        wait_for(lambda: sum(server.ask("EXISTS", "app:job:x") for server in SERVERS) >= 2)
        self.assertEqual([server.ask("EXISTS", "job:x") for server in SERVERS], [0, 0, 0])
        self.assertEqual(self.quorlock("inspect", "--quiet", "--prefix", "app:", "job:x")[0], 0)
        self.assertEqual(self.quorlock("inspect", "--quiet", "job:x", env={"QUORLOCK_PREFIX": "app:"})[0], 0)
        self.assertEqual(self.quorlock("inspect", "--quiet", "job:x")[0], 1)
        holder.terminate()
        self.assertEqual(self.end(holder)[0], 128 + signal.SIGTERM)
        self.options = ()
        self.assertEqual(self.end(self.run_as("-n", "job:x", "--", "true"))[0], 78)
        self.assertEqual(self.line("--prefix", "", "job:*"), self.line("job:*"))

    def test_usage(self):
        for args, said in [(("--acl", ""), "--acl"), (("--acl", "a b"), '"a b": write it without blanks'),
                           (("--acl", "app", "a b"), '"a b": write it without blanks'),
                           (("--acl", "app", "--prefix", "a b"), '"a b": write it without blanks'),
                           (("--acl", "app", "--prefix", "a*"), "choose a prefix without them"),
                           (("--fence",), "does not belong"), (("--no-notices",), "only with --acl USER"),
                           (("--dialect", "redisson"), "only with --acl USER"), (("job:*",), "takes no key"),
                           (("--acl",), "--acl needs a value")]:
            status, out, err = self.quorlock("doctor", *args)
            self.assertEqual((status, out), (64, ""), (args, err))
            self.assertIn(said, err)


if __name__ == "__main__":
    command_case.main()
