#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock: user and password from options, environment and files: test_credentials.py PATH_TO_quorlock [TEST...]"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import SERVERS, Bootstrapped, copies_in, nodes, wait_for

# Of digits and letters that no message has by chance.
SECRET = "Xq7geheimZ9w"


class Credentials(Bootstrapped):
    def setUp(self):
        super().setUp()
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "app", "reset", "on", ">" + SECRET, "~*", "&*", "+@all")
        self.file = self.path("password")
        self.write(SECRET + "\n")

    def write(self, text):
        with open(self.file, "wb") as f:
            f.write(text.encode())

    def ways(self):
        """(options, environment): all lead to the same."""
        return [(("--user", "app", "--password-file", self.file), {}),
                ((), {"QUORLOCK_USER": "app", "QUORLOCK_PASSWORD": SECRET}),
                ((), {"QUORLOCK_USER": "app", "QUORLOCK_PASSWORD_FILE": self.file}),
                (("--user", "app"), {"QUORLOCK_USER": "other", "QUORLOCK_PASSWORD": SECRET}),
                (("--password-file", self.file), {"QUORLOCK_USER": "app", "QUORLOCK_PASSWORD": "wrong"}),
                ((), {"QUORLOCK_USER": "app", "QUORLOCK_PASSWORD": SECRET, "QUORLOCK_PASSWORD_FILE": "/nonexistent"}),
                # An address that has its own needs none.
                (("--user", "other", "--nodes", ",".join(f"redis://app:{SECRET}@{server}" for server in SERVERS)),
                 {"QUORLOCK_PASSWORD": "wrong"})]

    def users(self):
        """The users of the library's connections, on all servers."""
        lines = b"\n".join(server.ask("CLIENT", "LIST") for server in SERVERS).decode().splitlines()
        return [re.search(r" user=(\S+)", line).group(1) for line in lines if " name=quorlock" in line]

    def test_each_way(self):
        for options, env in self.ways():
            script = f"cd {self.folder}; >up; while [ ! -e go ]; do sleep .01; done"
            process = self.start("run", *options, self.key, "--", "sh", "-c", script, env=env)
            self.wait_file("up", process)
            wait_for(lambda: len(self.users()) == 3)
            self.assertEqual(self.users(), ["app"] * 3, (options, env))
            for place in ("cmdline", "comm"):
                self.assertNotIn(SECRET.encode(), pathlib.Path(f"/proc/{process.pid}/{place}").read_bytes())
            open(self.path("go"), "w").close()
            status, out, err = self.end(process)
            self.assertEqual((status, out, err), (0, "", ""))
            for name in ("up", "go"):
                os.remove(self.path(name))

    def rotate(self, old=SECRET, new=SECRET + "2"):
        """The servers know the new password only, and have ended the connections of the old one."""
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "app", "<" + old, ">" + new)
            server.ask("CLIENT", "KILL", "USER", "app")

    def replace(self, text):
        """As who mounts or writes secrets does: the file is there, old or new, at any time."""
        with open(self.file + "~", "w", encoding="ascii") as f:
            f.write(text)
        os.rename(self.file + "~", self.file)

    def test_a_holder_outlives_a_rotation(self):
        """The file before the server and after it, and one that is bad for a while. Nothing of the former password is left:
        it has a front that free() may write over."""
        words = [str(turn) * 32 + SECRET for turn in range(3)]
        self.rotate(SECRET, words[0])
        self.replace(words[0] + "\n")
        script = f"cd {self.folder}; >up; while [ ! -e go ]; do sleep .01; done"
        process = self.start("run", "-v", "--lease", "20s", *self.ways()[0][0], self.key, "--", "sh", "-c", script)
        self.wait_file("up", process)
        wait_for(lambda: len(self.users()) == 3)
        for turn in range(2):
            old, new = words[turn:turn + 2]
            if turn == 0:
                self.replace(new + "\n")
                self.rotate(old, new)
            else:
                self.write("")
                self.rotate(old, new)
                self.await_words(process, b"no new credentials, those of before stay in use: password file", b"WRONGPASS")
                self.replace(new + "\n")
            wait_for(lambda: len(self.users()) == 3)
            self.assertEqual(copies_in(process.pid, new), 3)
            self.assertEqual(copies_in(process.pid, SECRET), 3)
        open(self.path("go"), "w").close()
        status, _, err = self.end(process)
        self.assertEqual(status, 0, err)
        self.assertNotIn(SECRET, err)

    def test_waiters_outlive_a_rotation(self):
        self.hold("someone-else-entirely", count=3, ms=600000)
        for verb in ("run", "elect"):
            process = self.start(verb, *self.ways()[0][0], self.key, "--", "true")
            self.await_words(process, b"is held by")
            self.rotate()
            said = self.await_words(process, b"too few nodes can vote", b"WRONGPASS: wrong password for user")
            self.replace(SECRET + "2\n")
            wait_for(lambda: len(self.users()) >= 3)
            for server in SERVERS:
                server.ask("DEL", self.key)
            status, _, err = self.end(process)
            self.assertEqual(status, 0, said.decode() + err)
            self.rotate(SECRET + "2", SECRET)
            self.replace(SECRET + "\n")
            self.hold("someone-else-entirely", count=3, ms=600000)

    def test_a_pipe_is_read_once(self):
        """As of --password-file <(COMMAND): the next connections log in with the same."""
        read, write = os.pipe()
        os.write(write, SECRET.encode() + b"\n")
        os.close(write)
        script = f"cd {self.folder}; >up; while [ ! -e go ]; do sleep .01; done"
        process = self.start("run", "--user", "app", "--password-file", f"/dev/fd/{read}", self.key, "--", "sh", "-c", script,
                             pass_fds=[read])
        os.close(read)
        self.wait_file("up", process)
        for server in SERVERS:
            server.ask("CLIENT", "KILL", "USER", "app")
        wait_for(lambda: self.users() == ["app"] * 3)
        open(self.path("go"), "w").close()
        status, _, err = self.end(process)
        self.assertEqual(status, 0, err)
        self.assertNotIn("credentials", err)

    def test_a_waiter_listens_with_them(self):
        self.hold("someone-else-entirely", count=3)
        process = self.start("run", *self.ways()[0][0], self.key, "--", "true")
        wait_for(lambda: any(b" sub=1 " in line and b" user=app " in line for server in SERVERS
                             for line in server.ask("CLIENT", "LIST").splitlines()))
        for server in SERVERS:
            server.ask("DEL", self.key)
        self.assertEqual(self.end(process)[0], 0)

    def test_each_verb(self):
        given = self.ways()[0][0]
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "default", "-@all", "+acl", "+ping", "+info", "+flushall", "+client")
        try:
            for verb, expected in [(("run", self.key, "--", "true"), 0), (("inspect", self.key), 0),
                                   (("break", self.key), 0), (("bootstrap",), 1), (("doctor",), 1),
                                   (("bench", "--seconds", "1", "--guard", "off", "--in-flight", "2"), 0)]:
                status, out, err = self.connected(verb[0], *given, *verb[1:])
                self.assertEqual(status, expected, (verb, out, err))
                self.assertNotIn("NOPERM", out + err)
                self.assertNotIn("does not use", err)
                # Before the verb they are the same.
                if verb[0] == "inspect":
                    self.assertEqual(self.connected(*given, *verb)[0], 0)
                self.assertNotEqual(self.quorlock(*verb)[0], expected, verb)
        finally:
            for server in SERVERS:
                server.ask("ACL", "SETUSER", "default", "+@all")

    def test_wrong_ones(self):
        for options, env in [(("--user", "app"), {"QUORLOCK_PASSWORD": SECRET + "x"}),
                             (("--user", "nobody", "--password-file", self.file), {}), (("--user", "app"), {})]:
            for verb, expected in [(("run", "-vv", "-n", self.key, "--", "true"), 78), (("doctor",), 2)]:
                status, out, err = self.quorlock(verb[0], *options, *verb[1:], env=env)
                self.assertEqual(status, expected, err)
                self.assertIn("WRONGPASS", out + err)
                self.assertNotIn(SECRET[:6], out + err)

    def test_bad_files(self):
        for text, said in [("", "its first line is empty"), ("\n" + SECRET, "its first line is empty"),
                           (SECRET * 100, "its first line is longer"),
                           ((SECRET * 100)[:1001] + "\n", "its first line is longer"), (SECRET + "\0x", "it has a zero byte"),
                           (None, "No such file or directory")]:
            if text is None:
                os.remove(self.file)
            else:
                self.write(text)
            for args, env in [(("--password-file", self.file), {}), ((), {"QUORLOCK_PASSWORD_FILE": self.file})]:
                for verb in [("run", self.key, "--", "touch", self.path("ran")), ("doctor",), ("bootstrap", "--json")]:
                    status, out, err = self.quorlock(*args, *verb, env=env)
                    # A unit is started again after 78, and the file may just be written.
                    self.assertEqual((status, out), (78 if verb[0] == "run" else 64, ""), err)
                    self.assertIn(f'password file "{self.file}": {said}', err)
                    self.assertNotIn(SECRET[:6], err)
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "app", ">" + "x" * 1000)
        for text in (SECRET, SECRET + "\r\n", SECRET + "\nanother line\n", "x" * 1000, "x" * 1000 + "\r\n"):
            self.write(text)
            status, _, err = self.connected("inspect", *self.ways()[0][0], self.key)
            self.assertEqual(status, 0, err)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_file_of_another_user_names_the_remedy(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv")
        self.write(SECRET)
        os.chmod(self.file, 0o640)
        for folder in (self.folder, os.path.dirname(self.folder)):
            os.chmod(folder, 0o711)
        user = ["setpriv", "--reuid", "65534", "--regid", "65534"]
        words = [command_case.QUORLOCK, "--user", "app", "--password-file", self.file, "run", "-n", self.key, "--", "true"]
        env = {"PATH": os.environ["PATH"], "QUORLOCK_NODES": nodes(), "QUORLOCK_CONFIG": "/dev/null"}
        done = subprocess.run([*user, "--clear-groups", *words], env=env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("Permission denied: give this user a group that may read it; see SERVICES in", done.stderr)
        os.chown(self.file, 0, 65533)
        done = subprocess.run([*user, "--groups", "65533", *words], env=env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_was_read_is_wiped(self):
        """Only what the library needs to connect again is left: a copy for each node. What saves vector registers on the
        stack leaves one that depends on where the stack begins: hence so many times."""
        listed = ",".join(f"redis://app:{SECRET}@{server}" for server in SERVERS)
        for options in [self.ways()[0][0], ("--nodes", listed), *[("--nodes=" + listed,)] * 12]:
            process = self.start("run", *options, self.key, "--", "sh", "-c",
                                 f"cd {self.folder}; >up; while [ ! -e go ]; do sleep .01; done")
            self.wait_file("up", process)
            wait_for(lambda: len(self.users()) == 3)
            self.assertEqual(copies_in(process.pid, SECRET), 3, options)
            open(self.path("go"), "w").close()
            self.assertEqual(self.end(process)[0], 0)
            for name in ("up", "go"):
                os.remove(self.path(name))


if __name__ == "__main__":
    command_case.main()
