#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock watch on a terminal: what its table shows, how it follows the terminal's size, and that the terminal is as it
was when it ends, however it ends: test_watch_terminal.py PATH_TO_quorlock [TEST...]"""
import fcntl
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import threading

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import LIMIT_S, SERVERS, Bootstrapped, die_with_us, nodes, state, wait_for
from terminal_picture import Picture
from watch_case import waits_to_write

CTRL_C, CTRL_S, CTRL_Z = b"\x03", b"\x13", b"\x1a"
SHELL = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
FULL, EMPTY = "\u2588", "\u2591"


class Terminal:
    """A new terminal, the process that leads its session, and a thread that reads what is written there."""

    def __init__(self, words, folder, environment, rows, columns):
        self.picture, self.wrong = Picture(rows, columns), None
        self.lock = threading.RLock()
        ready, go = os.pipe()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.close(go)
            os.read(ready, 1)  # the terminal has its size
            die_with_us()
            os.chdir(folder)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.execvpe(words[0], list(words), environment)
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.master)
        os.close(ready)
        os.close(go)
        self.stop, stopped = os.pipe()
        self.thread = threading.Thread(target=self.look, args=(stopped,), daemon=True)
        self.thread.start()

    def look(self, stopped):
        try:
            while stopped not in (select.select([self.master, stopped], [], [])[0]):
                data = os.read(self.master, 65536)
                with self.lock:
                    self.picture.write(data)
        except OSError:  # all have closed it
            pass
        except AssertionError as error:
            self.wrong = error
        os.close(stopped)

    def hang_up(self):
        if self.master >= 0:
            os.close(self.stop)
            self.thread.join(LIMIT_S)
            os.close(self.master)
            self.master = -1

    def close(self):
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.getsid(int(name)) == self.pid:
                    os.kill(int(name), signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass
        self.hang_up()
        if self.wrong:
            raise self.wrong

    def resize(self, rows, columns):
        with self.lock:
            self.picture.resize(rows, columns)
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class OnTerminal(Bootstrapped):
    def on_terminal(self, *words, rows=24, columns=100, **env):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("QUORLOCK_") and k not in ("ENV", "NO_COLOR")}
        environment.update(QUORLOCK_NODES=nodes(), PS1="> ", HISTFILE="", Q=command_case.QUORLOCK, KEY=self.key,
                           TERM="xterm-256color", LC_ALL="C.UTF-8", ASAN_OPTIONS="handle_segv=0")
        environment.update(env)
        self.terminal = Terminal(words, self.folder, environment, rows, columns)
        self.addCleanup(self.terminal.close)

    def watch(self, *args, **more):
        self.on_terminal(command_case.QUORLOCK, "watch", "--interval", "250ms", *args, self.key, **more)

    @property
    def picture(self):
        return self.terminal.picture

    def text(self):
        if self.terminal.wrong:
            raise self.terminal.wrong
        with self.terminal.lock:
            return self.picture.text()

    def shows(self, pattern):
        """Waits until the picture has that."""
        try:
            return wait_for(lambda: re.search(pattern, self.text(), re.M))
        except AssertionError:
            raise AssertionError(f"{pattern!r} is not in\n{self.text()}") from None

    def type(self, keys):
        os.write(self.terminal.master, keys)

    def modes(self):
        return termios.tcgetattr(self.terminal.master)

    def status(self):
        result = []
        wait_for(lambda: result.append(os.waitpid(self.terminal.pid, os.WNOHANG)) or result[-1][0])
        return os.waitstatus_to_exitcode(result[-1][1])

    def assert_restored(self):
        """The terminal is as it was before."""
        wait_for(lambda: not self.picture.alternate and self.picture.cursor and self.picture.wraps)
        self.assertEqual(self.modes(), self.terminal.modes)


class Table(OnTerminal):
    def test_a_lock_from_its_beginning_to_its_end(self):
        self.watch()
        self.shows(f'^"{self.key}" is free$')
        for server in SERVERS:
            self.shows(f"^  {server}  free$")
        self.assertTrue(self.picture.alternate and not self.picture.cursor)
        run = self.start("run", "--lease", "3s", "--label", "a-label:", self.key, "--", "cat", stdin=subprocess.PIPE)
        self.shows(rf'^"{self.key}" is held by a-label:[0-9a-f]{{8}} on [23] of 3 nodes, [0-2]\.\d s left$')
        self.shows(rf"^  {SERVERS[0]}  {FULL}+{EMPTY}*  [0-3]\.\d s")
        waiter = self.start("run", self.key, "--", "true", stderr=subprocess.DEVNULL)
        self.shows(r"^  1 client waits, for \d+\.\d s$")
        waiter.kill()
        run.communicate(timeout=LIMIT_S)
        self.shows(f'^"{self.key}" is free$')
        # Below, what happened, in its order.
        self.shows(r"(?s)^[-0-9]+ [:0-9]+  .* is held by .*^[-0-9]+ [:0-9]+  .* is free$")
        self.assertTrue(self.picture.colors)

    def test_nodes_that_are_down_or_disagree(self):
        self.hold("somebody", count=2)
        SERVERS[1].ask("SET", self.key, "another", "PX", 30000)
        SERVERS[2].kill()
        self.watch()
        self.shows("is taken by .* on 1 of 3 nodes, which is no quorum$")
        self.shows(rf"^  {SERVERS[2]}  down: .+$")
        self.shows(rf"^  {SERVERS[1]}  [{FULL}{EMPTY}]+  \d+\.\d s  another$|^  {SERVERS[0]}  .*  somebody$")
        SERVERS[2].start()
        self.shows(rf"^  {SERVERS[2]}  free$")

    def test_the_bar_shrinks(self):
        self.hold("somebody", count=3, ms=30000)
        self.watch()
        before = self.shows(rf"^  {SERVERS[0]}  ({FULL}+)").group(1)
        for server in SERVERS:
            server.ask("PEXPIRE", self.key, 12000)

        def shorter():
            now = re.search(rf"^  {SERVERS[0]}  ({FULL}+){EMPTY}+", self.text(), re.M)
            return now and len(now.group(1)) < len(before) * 2 // 3
        wait_for(shorter)

    def test_it_follows_the_size_of_the_terminal(self):
        self.hold("somebody", count=3, ms=600000)
        self.watch()
        self.shows(rf"^  {SERVERS[2]}  {FULL}")
        for rows, columns in ((24, 60), (8, 40), (4, 24), (2, 12), (1, 5), (1, 1), (50, 200)):
            before = self.picture.frames
            self.terminal.resize(rows, columns)
            # Of the pictures that come from now on the second was begun after the signal.
            wait_for(lambda: self.picture.frames > before + 2)
            self.assertTrue(all(len(line) <= columns for line in self.text().split("\n")))
        self.shows(rf"^  {SERVERS[2]}  {FULL}{{38,40}}")

    def test_keys_that_do_not_fit_have_a_line_each(self):
        self.hold("somebody", count=2, ms=600000)
        SERVERS[1].ask("SET", self.key, "another", "PX", 600000)
        SERVERS[0].ask("SET", "k0", "somebody", "PX", 600000)
        SERVERS[2].kill()
        self.watch(*[f"k{n}" for n in range(7)], rows=12)
        self.shows(rf'^{FULL}{{4}} free down  "k0" is taken by somebody on 1 of 3 nodes')
        self.shows(rf'^(?:{FULL}{{4}} held|held {FULL}{{4}}) down  "{self.key}" is taken by')
        self.shows('^free free down  "k6" is free$')
        self.terminal.resize(5, 100)
        self.shows("  8 keys: more than there is room for$")
        self.terminal.resize(60, 100)
        self.shows(f"^  {SERVERS[2]}  down: ")

    def test_an_odd_key_is_shown_and_not_obeyed(self):
        self.key = "a\x1b[31m\x9b2J\x07\r\n\t\u202e\u00e9\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")
        SERVERS[0].ask("SET", self.key, "own\u202e\x1b]0;x\x07er-of-it".encode(), "PX", 30000)
        self.watch(columns=160)
        self.shows(r'^"a\\x1b\[31m\\xc2\\x9b2J\\x07\\x0d\\x0a\\x09\\xe2\\x80\\xae\u00e9\U0001f600" is taken by '
                   r'own\\xe2\\x80\\xae\\x1b\]0; ')

    def test_no_color_dumb_and_once(self):
        self.watch(NO_COLOR="1")
        self.shows("is free$")
        self.type(b"q")
        self.assertEqual(self.status(), 0)
        self.assertFalse(self.picture.colors)
        self.watch(TERM="dumb")
        self.shows(rf'^[-0-9]+ [:0-9]+  "{self.key}" is free$')
        self.assertNotIn(b"\x1b", self.picture.bytes)
        self.type(CTRL_C)
        self.assertEqual(self.status(), -signal.SIGINT)
        self.watch("--once")
        self.assertEqual(self.status(), 0)
        self.shows(f'^"{self.key}" is free\n  {SERVERS[0]}  free\n')
        self.assertNotIn(b"\x1b[?", self.picture.bytes)

    def test_another_locale(self):
        self.hold("somebody", count=3)
        self.watch(LC_ALL="C")
        self.shows(rf"^  {SERVERS[2]}  ##+\.*  ")


class Restored(OnTerminal):
    def test_keys_and_signals(self):
        for end, status in ((b"q", 0), (CTRL_C, -signal.SIGINT), (b"\x1c", -signal.SIGQUIT),
                            (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGUSR1, 128 + signal.SIGUSR1),
                            (signal.SIGSEGV, -signal.SIGSEGV), (signal.SIGABRT, -signal.SIGABRT),
                            (signal.SIGXCPU, -signal.SIGXCPU)):
            with self.subTest(end):
                self.watch()
                self.shows("is free$")
                self.assertNotEqual(self.modes(), self.terminal.modes)
                if isinstance(end, bytes):
                    self.type(end)
                else:
                    os.kill(self.terminal.pid, end)
                self.assertEqual(self.status(), status)
                self.assert_restored()
                # The last picture stays where it is seen.
                if status >= 0 or end in (CTRL_C, b"\x1c"):
                    self.shows(f'^"{self.key}" is free$')

    def test_nothing_typed_is_shown(self):
        self.watch()
        self.shows("is free$")
        self.type(b"zzzz\r\n")
        SERVERS[2].kill()
        self.shows("down: ")
        self.assertNotIn("zz", self.text())

    def test_stopped_and_continued(self):
        self.on_terminal(*SHELL)
        self.type(b"$Q watch --interval 250ms $KEY\n")
        self.shows(f'^"{self.key}" is free$')
        self.type(CTRL_Z)
        self.shows("Stopped")
        self.assertFalse(self.picture.alternate or not self.picture.cursor)
        self.type(b"stty -a >modes; mv modes all-modes\n")
        self.wait_file("all-modes")
        self.assertIn(" echo ", self.read("all-modes"))
        self.assertIn(" icanon ", self.read("all-modes"))
        SERVERS[2].kill()
        self.type(b"fg\n")
        self.shows(f"^  {SERVERS[2]}  down: ")
        self.assertTrue(self.picture.alternate)
        self.type(b"q")
        self.type(b"echo $? >status\n")
        self.assertEqual(self.line_of("status"), "0")
        wait_for(lambda: not self.picture.alternate)

    def test_in_the_background_it_draws_nothing(self):
        self.on_terminal(*SHELL)
        self.type(b"$Q watch --interval 250ms $KEY & echo $! >pid; mv pid job\n")
        self.wait_file("job")
        job = int(self.read("job"))
        wait_for(lambda: self.is_asking(job))
        self.assertEqual(state(job) in "SR", True)
        self.assertFalse(self.picture.alternate)
        self.type(b"fg\n")
        self.shows(f'^"{self.key}" is free$')
        wait_for(lambda: self.picture.alternate)
        # And after a stop, continued in the background.
        self.type(CTRL_Z)
        self.shows("Stopped")
        self.type(b"bg; echo in the background\n")
        self.shows("^in the background$")
        self.assertFalse(self.picture.alternate)
        self.type(b"fg\n")
        wait_for(lambda: self.picture.alternate)

    def is_asking(self, pid):
        """It has connections to the nodes, and has asked on them."""
        clients = SERVERS[0].ask("CLIENT", "LIST").decode()
        return state(pid) in "SR" and re.search(r"name=quorlock-unguarded .*cmd=evalsha", clients)

    def test_a_closed_terminal_ends_it(self):
        self.watch()
        self.shows("is free$")
        self.terminal.hang_up()
        self.assertEqual(self.status(), 128 + signal.SIGHUP)

    def test_a_closed_terminal_ends_it_where_hangups_are_ignored(self):
        self.on_terminal("sh", "-c", 'trap "" HUP; exec "$Q" watch --interval 250ms "$KEY"')
        self.shows("is free$")
        self.terminal.hang_up()
        self.assertEqual(self.status(), 128 + signal.SIGHUP)

    def test_a_terminal_that_takes_nothing_holds_up_nothing(self):
        for end, status in ((CTRL_C, -signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)):
            self.watch()
            self.shows("is free$")
            self.type(CTRL_S)
            wait_for(lambda: waits_to_write(self.terminal.pid, f"/proc/{self.terminal.pid}/fd/0"))
            if isinstance(end, bytes):
                self.type(end)  # which lets the terminal go on
            else:
                os.kill(self.terminal.pid, end)
            self.assertEqual(self.status(), status)
            if isinstance(end, bytes):
                self.assert_restored()


if __name__ == "__main__":
    command_case.main()
