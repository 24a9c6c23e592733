#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run: the command, the loss of its lock: test_command_run.py PATH_TO_quorlock [TEST...]"""
import os
import re
import signal
import socket
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import LIMIT_S, SERVERS, Bootstrapped, fill, wait_for


class Run(Bootstrapped):
    def test_status_is_that_of_the_command(self):
        for script, expected in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137),
                                 ("kill -TERM $$", 143)]:
            status, out, err = self.quorlock("run", self.key, "--", "sh", "-c", script)
            self.assertEqual((status, out), (expected, ""), err)
        status, _, err = self.quorlock("run", self.key, "--", "/dev/null/command")
        self.assertEqual(status, 127, err)
        status, _, err = self.quorlock("run", self.key, "--", "no-such-command-here")
        self.assertEqual(status, 127)
        self.assertIn("quorlock: cannot execute no-such-command-here: No such file or directory\n", err)
        status, _, err = self.quorlock("run", self.key, "--", self.folder)
        self.assertEqual(status, 126, err)
        self.assertIn("cannot execute", err)
        self.assert_free()

    def test_a_script_without_its_interpreter(self):
        """The kernel's ENOENT is not about the script."""
        os.mkdir(self.path("bin"))
        path = f"{self.path('bin')}:{os.environ['PATH']}"
        for first, said in [("#!/no/such/python -u\n", 'its interpreter "/no/such/python" does not exist\n'),
                            ("#! /bin/sh\r\n", 'its interpreter "/bin/sh\\x0d" does not exist: the script has the line ends '
                                               "of Windows, \\r\\n\n")]:
            with open(self.path("bin/report-here"), "w", encoding="utf-8", newline="") as script:
                os.fchmod(script.fileno(), 0o755)
                script.write(first)
            for command in (self.path("bin/report-here"), "report-here"):
                status, out, err = self.quorlock("run", self.key, "--", command, env={"PATH": path})
                self.assertEqual((status, out), (127, ""), err)
                self.assertIn(f"quorlock: cannot execute {command}: {said}", err)
        self.assert_free()

    def test_holds_the_lock_and_passes_its_name_on(self):
        probe = ("import os, sys; print(os.environ['QUORLOCK_KEY'], os.environ['QUORLOCK_OWNER'],"
                 " 'QUORLOCK_FENCE' in os.environ, os.getpgid(0) == os.getpid(),"
                 " sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4], sys.stdin.read())")
        status, out, err = self.quorlock("run", "-v", "--label", "me:", self.key, "--", sys.executable, "-c", probe,
                                         stdin=subprocess.PIPE, env={"QUORLOCK_FENCE": "stale"})
        self.assertEqual(status, 0, err)
        self.assertRegex(out, rf"^{self.key} me:[0-9a-f]{{40}} False True \[0, 1, 2, 3\] \n$")
        token = out.split()[1][:len("me:") + 8]
        self.assertRegex(err, rf'quorlock: granted "{self.key}" by [23] of 3 nodes in [\d.]+ ms, '
                              rf'valid \d+ ms, owner {token}\n')
        self.assertRegex(err, rf'quorlock: released "{self.key}" on (3 of 3 nodes|2 of 3 nodes; on its way to 1 more)\n')
        self.assertNotIn(out.split()[1], err, "messages do not show the whole token")
        self.assert_free()

    def test_the_key_is_on_the_nodes_while_the_command_runs(self):
        process = self.shell("--lease", "10s", script="printf %s $QUORLOCK_OWNER >owner; >up; "
                                                      "while [ ! -e go ]; do sleep .01; done")
        owner = self.read("owner").encode()
        wait_for(lambda: self.values() == [owner] * 3)
        self.assertTrue(all(0 < server.ask("PTTL", self.key) <= 10000 for server in SERVERS))
        self.assertRegex(owner.decode(), rf"^{re.escape(socket.gethostname()[:40])}:{process.pid}:[0-9a-f]{{40}}$")
        open(self.path("go"), "w").close()
        self.assertEqual(self.end(process)[:2], (0, ""))
        self.assert_free()

    def test_the_command_inherits_no_descriptor_and_no_disposition(self):
        def clean():
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        probe = ["sh", "-c", "grep -E '^(Sig|Shd)(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd | wc -l"]
        plain = subprocess.run(probe, capture_output=True, preexec_fn=clean, check=True).stdout.decode()
        self.assertEqual(len(plain.splitlines()), 4)
        self.assertEqual(self.quorlock("run", self.key, "--", *probe, preexec=clean)[:2], (0, plain))

class Loss(Bootstrapped):
    def test_broken_by_another(self):
        process = self.shell("--lease", "3s", script="sleep 100 & echo $! >inner; echo $$ >outer; trap '' TERM; "
                                                     ">up; wait; sleep 100")
        status, out, _ = self.quorlock("break", self.key)
        self.assertEqual(status, 0)
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)
        self.assertIn(f'lost "{self.key}"', err)
        self.assert_gone(self.read("inner"), self.read("outer"))
        self.assert_free()

    def test_max_hold_ends_the_command(self):
        process = self.shell("--lease", "3s", "--max-hold", "4s",
                             script="echo $$ >outer; trap 'exit 3' TERM; >up; while :; do >beat; sleep .01; done")
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)
        self.assertIn(f'--max-hold of 4000 ms is over: "{self.key}" is not renewed any more\n', err)
        self.assertIn("the lock was lost while the command ran; its own exit status would have been", err)
        ran_s = os.stat(self.path("beat")).st_mtime - os.stat(self.path("outer")).st_mtime
        self.assertGreater(ran_s, 3, "it ran longer than its first lease")
        self.assert_gone(self.read("outer"))
        self.assert_free()

    def end_after(self, change):
        """The keys change before the first renewal, and the command ends by itself."""
        process = self.shell("--lease", "30s", script=">up; until [ -e go ]; do sleep .01; done; exit 7")
        # Not only on a quorum: a server that is late would take the key after the change.
        wait_for(lambda: None not in self.values())
        for server in SERVERS:
            change(server)
        open(self.path("go"), "w").close()
        status, _, err = self.end(process)
        self.assertEqual(status, 75, err)
        self.assertIn("its own exit status would have been 7", err)
        return err

    def test_deleted_before_the_command_ends(self):
        err = self.end_after(lambda server: server.ask("DEL", self.key))
        self.assertIn(f'released "{self.key}" on 0 of 3 nodes; not there any more on', err)
        self.assert_free()

    def test_taken_over_before_the_command_ends(self):
        err = self.end_after(lambda server: server.ask("SET", self.key, "a-peer"))
        self.assertRegex(err, "on 0 of 3 nodes; held by a-peer on [23]")
        self.assertEqual(self.values(), [b"a-peer"] * 3)

    def test_a_stderr_without_a_reader_does_not_stop_us(self):
        reader, writer = os.pipe()
        fill(writer)
        process = self.shell("-v", "-v", "--lease", "1s", stderr=writer,
                             script="exec 2>/dev/null; echo $$ >outer; >up; while :; do sleep .01; done")
        for server in SERVERS[1:]:
            server.freeze()
        process.wait(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 75)
        self.assert_gone(self.read("outer"))
        os.close(reader)
        os.close(writer)


if __name__ == "__main__":
    command_case.main()
