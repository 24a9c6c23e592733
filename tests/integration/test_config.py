#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock: configuration files, and quorlock config: test_config.py PATH_TO_quorlock [TEST...]"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, copies_in, nodes, wait_for

# Of digits and letters that no message has by chance.
SECRET = "Xq7geheimZ9w"
MANUAL = pathlib.Path(__file__).resolve().parents[2] / "src" / "man" / "quorlock.conf.5"
# Empty is as if it was not set.
NOWHERE = {"QUORLOCK_CONFIG": "", "QUORLOCK_NODES": "", "XDG_CONFIG_HOME": "", "HOME": "/nonexistent"}


class Files(Bootstrapped):
    def write(self, text, name="config", mode=0o600):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(text.encode())
        os.chmod(self.path(name), mode)
        return self.path(name)

    def values(self, *args, env=None):
        """What is in force: {key: (value, place)}."""
        status, out, err = self.quorlock("config", "--json", *args, env={**NOWHERE, **(env or {})})
        self.assertEqual((status, err), (0, ""))
        # As a person sees it.
        status, table, err = self.quorlock("config", *args, env={**NOWHERE, **(env or {})})
        self.assertEqual((status, err), (0, ""))
        found = {}
        for key, value in json.loads(out)["values"].items():
            place = f"{value['file']}:{value['line']}" if value["file"] else value["from"]
            found[key] = (value["value"], place)
            row = re.search(rf"(?m)^{key} .*$", table).group(0)
            self.assertIn(f" {value['value'] or '-'} ", row)
            if value["from"] in ("set", "file", "default"):
                self.assertTrue(row.endswith(" " + place), row)
        return found

    def refused(self, *args, env=None):
        status, out, err = self.quorlock(*args, env={**NOWHERE, **(env or {})})
        self.assertEqual((status, out), (64, ""), err)
        return err


class Places(Files):
    def test_the_manual_has_every_key(self):
        manual = MANUAL.read_text(encoding="utf-8").replace("\\-", "-")
        keys = manual[manual.index(".SH KEYS"):manual.index(".SH PASSWORDS")]
        heads = re.findall(r"(?m)^\.TP\n\.BR? (.*)", keys)
        self.assertEqual(sorted(re.findall(r"[a-z-]+", " ".join(heads))), sorted(self.values()))

    def test_a_file_may_have_every_option_of_config(self):
        """But those that are about config itself; a password has no option."""
        status, out, err = self.quorlock("config", "--help")
        self.assertEqual((status, err), (0, ""))
        options = {*re.findall(r"(?m)^  (?:-\w, )?--([a-z-]+)", out)} - {"config", "json", "verbose", "help"}
        self.assertEqual(options | {"password"}, {*self.values()})

    def test_help_names_the_defaults_that_config_shows(self):
        _, out, _ = self.quorlock("config", "--help")
        values, checked = self.values(), 0
        for option in re.split(r"(?m)^  (?=-)", out.split("Options:\n")[1]):
            name, text = option.split(" ", 1)[0].removeprefix("--"), " ".join(option.split())
            said = re.search(r"\(default:? (.*?)\)", text) or re.search(r"else (\S*\d\S*)$", text)
            checked += said is not None
            if said is not None:
                self.assertTrue(values[name][0].startswith(said[1]), (name, said[1], values[name]))
        self.assertGreaterEqual(checked, 12)

    def test_each_key_is_read_from_each_place(self):
        """From an option, from the variable that the help names, and from a file."""
        password, listed = self.write("secret\n", "secret"), "rediss://a,b"
        values = {"nodes": listed, "password-file": password, "DURATION": "7s", "DURATION|0|forever": "7s", "N": "3"}
        left_out = {"config", "set", "tls-ca", "tls-cert", "tls-key"}  # these must be there, and a test of TLS has them
        checked = set()
        for name, kind, more in re.findall(r"(?m)^  --([a-z-]+)(?: |\[=)(\S+?)\]?\s((?s:.*?))(?=^  -|\Z)",
                                           self.quorlock("config", "--help")[1]):
            if name in left_out:
                continue
            value = values.get(name) or values.get(kind) or kind.split("|")[-1].lower()
            nodes_given = () if name == "nodes" else (f"--nodes={listed}",)
            file, variable = self.write(f"\n{name} = {value}\n"), re.search(r"else\s+(QUORLOCK_\w+)", more)
            self.assertEqual(self.values(*nodes_given, f"--{name}={value}")[name], (value, "option"))
            self.assertEqual(self.values(*nodes_given, "--config", file)[name], (value, f"{file}:2"))
            if variable and name != "password-file":
                self.assertEqual(self.values(*nodes_given, env={variable[1]: value})[name], (value, "environment"))
            checked.add(name)
        self.assertEqual(checked, {*self.values()} - left_out - {"password"})

    def test_what_goes_before_what(self):
        """Command line, environment, set, file, default: each is in force where nothing before it is."""
        file = self.write("max-lease = 1m\nlease = 1s\nuser = general\n[set other]\nmax-lease = 4m\n"
                          "[set one]\nmax-lease = 2m\nnode-timeout=100ms\n")
        one = ("--config", file, "--set", "one")
        environment = {"QUORLOCK_MAX_LEASE": "3m"}
        self.assertEqual(self.values()["max-lease"], ("30s", "default"))
        self.assertEqual(self.values("--config", file)["max-lease"], ("1m", f"{file}:1"))
        self.assertEqual(self.values(*one)["max-lease"], ("2m", f"{file}:7"))
        self.assertEqual(self.values(*one, env=environment)["max-lease"], ("3m", "environment"))
        self.assertEqual(self.values(*one, "--max-lease=5m", env=environment)["max-lease"], ("5m", "option"))
        found = self.values(*one)
        self.assertEqual(found["lease"], ("1s", f"{file}:2"))
        self.assertEqual(found["node-timeout"], ("100ms", f"{file}:8"))
        self.assertEqual(found["user"], ("general", f"{file}:3"))
        self.assertEqual(found["set"], ("one", "option"))
        self.assertEqual(found["wait"], ("forever", "default"))
        self.assertEqual(self.values(*one, "-n")["wait"], ("0", "option"))

    def test_the_files_of_user_and_system(self):
        home, base = self.path("home"), self.path("base")
        named = self.write("lease = 1s\n", "named")
        of_home = self.write("lease = 2s\n", "home/.config/quorlock/config")
        of_base = self.write("lease = 3s\n", "base/quorlock/config")
        for env, place in [({"HOME": home}, of_home), ({"HOME": home, "XDG_CONFIG_HOME": base}, of_base),
                           ({"HOME": home, "XDG_CONFIG_HOME": "relative"}, of_home),
                           ({"HOME": home, "XDG_CONFIG_HOME": base, "QUORLOCK_CONFIG": named}, named)]:
            self.assertEqual(self.values(env=env)["lease"][1], f"{place}:1")
        self.assertEqual(self.values("--config", named, env={"HOME": home})["lease"], ("1s", f"{named}:1"))
        self.assertIn("configuration file /nonexistent: No such file",
                      self.refused("inspect", "k", "--config=/nonexistent"))
        self.assertIn("No such file", self.refused("inspect", "k", env={"QUORLOCK_CONFIG": "/nonexistent"}))
        self.assertIn("Is a directory", self.refused("inspect", "k", "--config", self.folder))

    def test_the_system_file(self):
        """In a name space of mounts, where /etc is ours."""
        user = self.write("lease = 1s\n[set one]\nfence = yes\n", "home/.config/quorlock/config")
        system = self.write("lease = 2s\nmax-lease = 1m\n[set one]\nlease = 3s\n[set two]\n", "system")
        script = f'mount -t tmpfs none /etc && cp {system} /etc/quorlock.conf && exec "$@"'
        found = {}
        for options in [(), ("--set", "one")]:
            words = ["sh", "-c", script, "sh", command_case.QUORLOCK, "config", "--json", *options]
            done = subprocess.run(["unshare", "-rm", *words], env={**os.environ, **NOWHERE, "HOME": self.path("home")},
                                  check=False, capture_output=True, timeout=command_case.LIMIT_S)
            if b"unshare" in done.stderr or b"mount" in done.stderr:
                self.skipTest("no name space of mounts here")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            values = json.loads(done.stdout)
            self.assertEqual(values["files"], [user, "/etc/quorlock.conf"])
            self.assertEqual(values["sets"], ["one", "two"])
            found[options] = values["values"]
        # The user's goes before the system's, but the set before what stands in front of sets.
        self.assertEqual(found[()]["lease"]["file"], user)
        self.assertEqual(found[()]["max-lease"]["file"], "/etc/quorlock.conf")
        self.assertEqual(found[("--set", "one")]["lease"]["value"], "3s")
        self.assertEqual(found[("--set", "one")]["fence"]["file"], user)

    def test_sets(self):
        file = self.write("set = one\n[set one]\nlease = 1s\n[set two]\nlease = 2s\n[set one]\nfence = yes\n")
        env = {"QUORLOCK_CONFIG": file}
        self.assertEqual(self.values(env=env)["lease"], ("1s", f"{file}:3"))
        self.assertEqual(self.values(env=env)["fence"], ("yes", f"{file}:7"))
        self.assertEqual(self.values(env={**env, "QUORLOCK_SET": "two"})["lease"], ("2s", f"{file}:5"))
        self.assertEqual(self.values("--set", "one", env={**env, "QUORLOCK_SET": "two"})["lease"][0], "1s")
        _, out, _ = self.quorlock("config", env={**NOWHERE, **env})
        self.assertIn(f"\nfile: {file}\nsets: one, two\n", out)
        self.assertIn('--set: "x" is no set of the configuration files, which have one, two', self.refused(
            "inspect", "k", "--set=x", env=env))
        self.assertIn('QUORLOCK_SET: "x" is no set', self.refused("inspect", "k", env={**env, "QUORLOCK_SET": "x"}))
        self.assertIn("there is no [set NAME] in /nonexistent/.config/quorlock/config, nor in /etc/quorlock.conf",
                      self.refused("inspect", "k", "--set=x"))
        file = self.write("\nset = three\n")
        self.assertIn(f'{file}:2: set: "three" is no set', self.refused("config", env=env))

    def test_nobody_gets_other_nodes_than_those_of_the_set(self):
        file = self.write("[set one]\nnodes = 127.0.0.1:1\n[set two]\nlease = 1s\n")
        for args, env in [(("--set", "one"), {}), ((), {"QUORLOCK_SET": "one"})]:
            err = self.refused("inspect", "k", "--config", file, *args, env={**env, "QUORLOCK_NODES": "127.0.0.1:2"})
            self.assertIn('both the set "one" and QUORLOCK_NODES give nodes', err)
            found = self.values("--nodes", "a", "--config", file, *args, env={**env, "QUORLOCK_NODES": "b"})
            self.assertEqual(found["nodes"], ("a", "option"))
        found = self.values("--set", "two", "--config", file, env={"QUORLOCK_NODES": "b"})
        self.assertEqual(found["nodes"], ("b", "environment"))
        # A set that nobody asked for is a default.
        file = self.write("set = one\n[set one]\nnodes = 127.0.0.1:1\n")
        self.assertEqual(self.values("--config", file, env={"QUORLOCK_NODES": "b"})["nodes"][1], "environment")


class Used(Files):
    def test_a_lock_on_the_nodes_of_a_set(self):
        listed = " , ".join(str(server) for server in SERVERS)
        file = self.write(f"# nothing answers there\nnodes = 127.0.0.1:1\r\n[set real]\r\n  nodes={listed},\t\r\n"
                          "label = from-file\nfence = yes\nwait = 0\n")
        env = {**NOWHERE, "QUORLOCK_CONFIG": file}
        status, out, err = self.connected("run", "--set", "real", self.key, "--", "sh", "-c",
                                          'echo "$QUORLOCK_OWNER $QUORLOCK_FENCE"', env=env)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^from-file:[0-9a-f]{40} \d+\n$")
        # Before the verb, too; and what a file turns on the command line turns off.
        status, out, err = self.connected("--set", "real", "run", "--fence=no", "--label", "x", self.key, "--", "sh",
                                          "-c", 'echo "$QUORLOCK_OWNER ${QUORLOCK_FENCE-none}"', env=env)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^x:[0-9a-f]{40} none\n$")
        self.hold("someone-else-entirely")
        self.assertEqual(self.quorlock("run", "--set=real", self.key, "--", "true", env=env)[0], 1)
        self.assertEqual(self.connected("inspect", "--set=real", self.key, env=env)[0], 0)
        self.assertEqual(self.quorlock("inspect", self.key, env=env)[0], 69)

    def test_verbs_leave_what_is_not_theirs(self):
        file = self.write(f"nodes = {nodes()}\ndialect = redisson\nguard = strict\nlease = 5s\nwait = 1s\nlabel = x\n"
                          "in-flight = 2\nseconds = 1\nfence = yes\nset-name = other\nallow-eviction = yes\n")
        env = {**NOWHERE, "QUORLOCK_CONFIG": file}
        for server in SERVERS:
            server.ask("DEL", "quorlock:guard")
        for verb, expected in [(("inspect", "k"), 0), (("break", "k"), 0), (("bootstrap",), 0),
                               (("doctor",), 1), (("bench",), 0), (("run", "k", "--", "true"), 0)]:
            status, out, err = self.connected(*verb, env=env)
            self.assertEqual(status, expected, (verb, out, err))
        _, out, _ = self.quorlock("doctor", "--acl", "app", env=env)
        self.assertIn("+hset", out)

    def test_bad_files(self):
        table = [("lease = 30", ':1: lease: "30" has no unit'), ("\n\nlease 30s", ':3: no "=": write KEY = VALUE'),
                 ("lease = 30s # long", ':1: lease: "30s # long" is no duration'),
                 ("leese = 30s", ":1: leese is no key"), ("json = yes", ":1: json is no key of a file; quorlock config lists the keys"),
                 ("lease = 1s\nlease = 2s", ":2: lease is in line 1 already"),
                 ("lease =", ":1: lease has no value"), ("= 1s", ":1: no key"), ("Lease = 1s", ":1: no key"),
                 ("[production]", ":1: a line that begins with [ must be [set NAME]"), ("[set ]", ":1: a line that begins with ["),
                 ("[set a b]", ":1: a line that begins with ["), ("[set a", ":1: a line that begins with ["),
                 ("[", ":1: a line that begins with ["), ("[set a]\nset = a", ":2: set must be before all sets"),
                 ("[set a]\nfoo = 1", ":2: foo is no key"), ("x\0y = 1", ":1: a zero byte"),
                 ("fence = on", ':1: fence: "on" is unknown: give yes or no'),
                 ("policy = some", ':1: policy: "some" is unknown: give majority or all'),
                 ("nodes = a,,b", ":1: nodes: address 2 of 3 is empty"), ("lease = 25h", ':1: lease: "25h" is out of'),
                 ("seconds = 0", ':1: seconds: "0" is no number'), ("#" * 65537, "longer than 65536 bytes")]
        for text, said in table:
            for end in ("", "\n", "\r\n"):
                file = self.write(text + end)
                err = self.refused("config", "--config", file)
                self.assertIn(file, err)
                self.assertIn(said, err)
        # What the library refuses.
        file = self.write("label = a b\n")
        err = self.refused("run", "k", "--config", file, "--", "true", env={"QUORLOCK_NODES": nodes()})
        self.assertRegex(err, rf'"a b"(?s:.*)values from files: label \({file}:1\)\n')
        file = self.write("nodes = ftp://a\n")
        self.assertIn(f"values from files: nodes ({file}:1)\n", self.refused("inspect", "k", "--config", file))

    def test_a_bad_value_that_is_not_used_is_found_by_config_only(self):
        file = self.write(f"nodes = {nodes()}\n[set other]\nlease = 1\n")
        env = {**NOWHERE, "QUORLOCK_CONFIG": file}
        self.assertEqual(self.connected("inspect", self.key, env=env)[0], 0)
        self.assertIn(f'{file}:3: lease: "1" has no unit', self.refused("config", env=env))

    def test_config_finds_what_only_the_library_refuses_and_asks_no_node(self):
        table = [("label = a b", 'label: the owner label "a b" has the byte 0x20'),
                 ("label = " + 65 * "x", "label: the owner label has 65 characters"),
                 ("set-name = a|b", 'set-name: the set\'s name is "a|b"'), ("nodes = ftp://a", "nodes: node 1: "),
                 ("nodes = a:1,a:1", "nodes: "), ("nodes = a:65536", "nodes: node 1: "),
                 ("password = " + 1001 * "x", "password: the password is longer than 1000 bytes")]
        with command_case.listen() as listener:
            listener.setblocking(False)
            good = f"nodes = 127.0.0.1:{listener.getsockname()[1]}\nlabel = x\nset-name = x\nuser = x\n"
            for text, said in table:
                file = self.write(f"{good}[set other]\n{text}\n")
                err = self.refused("config", "--config", file)
                self.assertTrue(err.startswith(f"quorlock: {file}:6: {said}"), err)
                self.assertEqual(err.count("\n"), 1, err)
            self.values("--config", self.write(good + "password = " + 1000 * "x" + "\n"))
            # What is wrong elsewhere is not said of the file.
            self.values("--config", self.write(good), env={"QUORLOCK_BUGGIFY": "x"})
            self.assertRaises(BlockingIOError, listener.accept)

    def test_config_reads_the_files_that_are_in_force(self):
        """One that cannot be used is an error, as for every other verb; the table would say that all is well."""
        for text, said in [("password-file = /nonexistent\n", 'password file "/nonexistent": No such file'),
                           (f"password-file = {self.folder}\n", f'password file "{self.folder}": Is a directory')]:
            file = self.write(text)
            for other in [(), ("--json",)]:
                err = self.refused("config", "--config", file, *other)
                self.assertIn(said, err)
                self.assertTrue(err.endswith(f"\nquorlock: values from files: password-file ({file}:1)\n"), err)
        self.assertIn('"/nonexistent": No such file', self.refused("config", "--password-file", "/nonexistent"))

    def test_config_warns_of_files_that_are_not_in_force(self):
        there = self.write("there\n", name="there")
        file = self.write(f"tls-ca = /nonexistent\n[set a]\npassword-file = /nonexistent/p\nlabel = /nonexistent\n"
                          f"tls-key = {there}\n")
        status, out, err = self.quorlock("config", "--config", file, env=NOWHERE)
        self.assertEqual((status, out[:3]), (0, "KEY"), err)
        self.assertEqual(err, "".join(
            f'quorlock: {file}:{line}: {key}, which is not used now: "{path}": No such file or directory\n'
            for line, key, path in [(1, "tls-ca", "/nonexistent"), (3, "password-file", "/nonexistent/p")]))

    def test_config_compares_leases(self):
        file = self.write("lease = 1m\nmax-lease = 1m\n[set short]\nmax-lease = 59s\n[set long]\nlease = 60001ms\n"
                          "[set equal]\nlease = 60s\n")
        status, out, err = self.quorlock("config", "--config", file, env=NOWHERE)
        self.assertEqual((status, out[:3]), (0, "KEY"), err)
        self.assertEqual(re.findall(r'(?m)^quorlock: (.*) it is longer than the max lease, (\w+): shorten', err), [
            (f'{file}:1: lease: in the set "short"', "59s"), (f'{file}:6: lease: in the set "long"', "1m")])
        for options in [("--set", "short"), ("--lease=2m",), ("--max-lease=30s",)]:
            err = self.refused("config", "--config", file, *options)
            self.assertIn("is longer than --max-lease", err)
            self.assertIn("values from files: ", err)
        # The max lease has a default.
        self.assertIn("the lease in ms is 60000: it must be 10 to 30000",
                      self.refused("config", "--config", self.write("lease = 1m\n")))


class Passwords(Files):
    def setUp(self):
        super().setUp()
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "app", "reset", "on", ">" + SECRET, "~*", "&*", "+@all")
        self.given = f"nodes = {nodes()}\nuser = app\n"

    def logged_in(self, file, *options, env=None, count_copies=False):
        """The users of a command that holds a lock."""
        script = f"cd {self.folder}; >up; while [ ! -e go ]; do sleep .01; done"
        process = self.start("run", "--config", file, *options, self.key, "--", "sh", "-c", script,
                             env={**NOWHERE, **(env or {})})
        self.wait_file("up", process)

        def users():
            lines = b"\n".join(server.ask("CLIENT", "LIST") for server in SERVERS).decode().splitlines()
            found = [re.search(r" user=(\S+)", line).group(1) for line in lines if " name=quorlock" in line]
            return found if len(found) == 3 else None
        found = set(wait_for(users))
        if count_copies:
            # Only what the library needs to connect again is left: a copy for each node.
            self.assertEqual(copies_in(process.pid, SECRET), 3)
        open(self.path("go"), "w").close()
        status, _, err = self.end(process)
        self.assertEqual((status, err), (0, ""))
        for name in ("up", "go"):
            os.remove(self.path(name))
        return found

    def test_each_way(self):
        with open(self.path("password"), "w", encoding="ascii") as f:
            f.write(SECRET + "\n")
        beside = f"password-file = {self.path('password')}\n"
        for text, options, env in [
                (self.given + f"password = {SECRET}\n", (), {}), (self.given + beside, (), {}),
                # Of password and file the one goes before the other whose place does.
                (self.given + "password = wrong\n[set a]\n" + beside, ("--set", "a"), {}),
                (self.given + "password-file = /nonexistent\n[set a]\n" + f"password = {SECRET}\n", ("--set", "a"), {}),
                (self.given + "password = wrong\n", ("--password-file", self.path("password")), {}),
                (self.given + "password = wrong\n", (), {"QUORLOCK_PASSWORD_FILE": self.path("password")}),
                (self.given + "password-file = /nonexistent\n", (), {"QUORLOCK_PASSWORD": SECRET}),
                (self.given + f"password = {SECRET}\npassword-file = /nonexistent\n", (), {}),
                (f"nodes = {','.join(f'redis://app:{SECRET}@{server}' for server in SERVERS)}\n", (), {})]:
            self.assertEqual(self.logged_in(self.write(text), *options, env=env), {"app"}, (text, options, env))

    def test_what_was_read_is_wiped(self):
        listed = " , ".join(f"redis://app:{SECRET}@{server}" for server in SERVERS)
        other = f"[set other]\npassword = {SECRET}\nnodes = redis://app:{SECRET}@a\n"
        for text in (self.given + f"password = {SECRET}\n", f"nodes = {listed}\n"):
            self.assertEqual(self.logged_in(self.write(text + other), count_copies=True), {"app"})

    def test_it_is_never_shown(self):
        texts = [self.given + f"password = {SECRET}\n", f"nodes = redis://app:{SECRET}@a,b\n",
                 f"[set a]\npassword = {SECRET}\n[set b]\nnodes = redis://:{SECRET}@h\n"]
        for text in texts:
            file = self.write(text)
            for args in [("config",), ("config", "--json"), ("inspect", "-vv", "k"),
                         ("run", "-vv", "-n", "k", "--", "true")]:
                for options in [(), ("--set=a",), ("--set=b",)]:
                    _, out, err = self.quorlock(*args[:1], "--config", file, *options, *args[1:], env=NOWHERE)
                    self.assertNotIn(SECRET, out + err)
        values = self.values("--config", self.write(texts[0]))
        self.assertEqual(values["password"][0], "***")
        # Nor where the file is wrong.
        for text in [f"nodes = redis://app:{SECRET}@a,,b", f"nodes redis://app:{SECRET}=@a", f"[{SECRET}]",
                     f"nodes = ftp://a:{SECRET}@h", f"nodes redis://app:{SECRET}@h", f"passwort = {SECRET}",
                     f"password: {SECRET}",
                     f"password = {SECRET}\npassword = {SECRET}", f"[set a]\npassword = {SECRET * 100}"]:
            file = self.write(text)
            for args in [("config",), ("inspect", "k"), ("inspect", "k", "--set=a")]:
                status, out, err = self.quorlock(*args, "--config", file, env=NOWHERE)
                self.assertNotIn(SECRET[:6], out + err)
            self.assertTrue(status == 64 or "[set a]" in text, err)
        self.assertIn("the password is longer than 1000 bytes", err)

    def test_a_file_that_every_user_may_read(self):
        beside = self.write("a password\n", name="beside", mode=0o644)
        for text, line in [(self.given + f"password = {SECRET}\n", 3), (f"nodes = redis://app:{SECRET}@a,b\n", 1),
                           (self.given + f"password-file = {beside}\n", None)]:
            for mode in (0o644, 0o604, 0o640, 0o600):
                file = self.write(text, mode=mode)
                status, _, err = self.quorlock("config", "--config", file, env=NOWHERE)
                self.assertEqual(status, 0)
                said = f"quorlock: {file}:{line}: a password in a file that every user may read: chmod o= {file}\n"
                self.assertEqual(err, said if line and mode & 4 else "")

    def test_no_option_takes_one(self):
        err = self.refused("inspect", "k", "--password", "x")
        self.assertIn("a password cannot be an option", err)
        self.assertNotIn("--password PASSWORD", self.quorlock("config", "--help")[1])


if __name__ == "__main__":
    command_case.main()
