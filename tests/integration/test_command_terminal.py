#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run under an interactive shell on a real terminal: which group has the foreground, what is stopped, and
what a typed signal ends: test_command_terminal.py PATH_TO_quorlock [TEST...]"""
import os
import pty
import resource
import signal
import sys
import threading

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import LIMIT_S, SERVERS, Bootstrapped, die_with_us, nodes, state, wait_for

CTRL_BACKSLASH, CTRL_Z = b"\x1c", b"\x1a"
SHELL = ["bash", "--norc", "--noprofile", "--noediting", "-i"]

# Writes its process id and its parent's to a file, then does what its arguments say, one after the other:
# line NAME   reads a line from the terminal into the file NAME
# wait NAME   until there is such a file
# make NAME   makes one
# copy        standard input to its end
ACT = """
import os, signal, sys, time
# Python's own handler only leaves a note, which nobody looks at when the signal comes right before a read.
signal.signal(signal.SIGINT, signal.SIG_DFL)
def put(name, text):
    with open(name + ".new", "w") as f: f.write(text)
    os.rename(name + ".new", name)
put("pid." + sys.argv[1], "%d %d" % (os.getpid(), os.getppid()))
words = sys.argv[2:]
while words:
    word = words.pop(0)
    if word == "line":
        with open("/dev/tty") as terminal: put(words.pop(0), terminal.readline())
    elif word == "wait":
        name = words.pop(0)
        while not os.path.exists(name): time.sleep(0.01)
    elif word == "make":
        put(words.pop(0), "")
    elif word == "copy":
        sys.stdin.read()
"""


class Terminal(Bootstrapped):
    def setUp(self):
        super().setUp()
        with open(self.path("act.py"), "w", encoding="ascii") as f:
            f.write(ACT)
        self.written = b""

    def on_terminal(self, *words):
        """A process that leads the session of a new terminal; in a folder of its own."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("QUORLOCK_") and k != "ENV"}
        environment.update(QUORLOCK_NODES=nodes(), QUORLOCK_CONFIG="/dev/null", PS1="> ", HISTFILE="", Q=command_case.QUORLOCK,
                           ACT=f"{sys.executable} act.py")
        pid, self.master = pty.fork()
        self.leader = pid
        if pid == 0:
            die_with_us()
            os.chdir(self.folder)
            hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
            os.execvpe(words[0], list(words), environment)
        drain = threading.Thread(target=self.drain, args=(self.master,), daemon=True)
        drain.start()
        self.addCleanup(self.reap, pid, self.master, drain)
        return pid

    def drain(self, master):
        """Reads what is written to the terminal, for a full terminal blocks its writers."""
        try:
            while True:
                self.written += os.read(master, 4096)
        except OSError:
            pass

    @staticmethod
    def reap(pid, master, drain):
        """Ends all processes of the terminal's session: after a failure a loop may still run."""
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.getsid(int(name)) == pid:
                    os.kill(int(name), signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass
        # A descriptor that is closed under a reader is soon another file's, whose bytes the reader would take.
        drain.join(LIMIT_S)
        os.close(master)

    def shell_types(self, line):
        """An interactive shell, and a line typed there, where RUN stands for quorlock run with our key."""
        self.on_terminal(*SHELL)
        self.type(line)

    def type(self, line):
        line = line.replace("RUN", f"$Q run --lease 6s {self.key}")
        os.write(self.master, line.encode() + b"\n")

    def make(self, name):
        with open(self.path(name), "w", encoding="ascii"):
            pass

    def foreground(self):
        return os.tcgetpgrp(self.master)

    def pids(self, name):
        """The process id of act.py under that name, and its parent's; the parent of the command is quorlock."""
        self.wait_file("pid." + name)
        return [int(word) for word in self.read("pid." + name).split()]

    def wait_for_output(self, text):
        wait_for(lambda: text.encode() in self.written.replace(b"\r\n", b" ").replace(b"\n", b" "))

    def assert_line(self, typed, name):
        """A typed line reaches the process that reads the terminal."""
        os.write(self.master, typed.encode() + b"\n")
        wait_for(lambda: os.path.exists(self.path(name)))
        self.assertEqual(self.read(name), typed)

    def assert_renewed(self):
        """A supervisor that is stopped renews nothing."""
        before = [server.ask("PTTL", self.key) for server in SERVERS]
        self.assertGreaterEqual(sum(left_ms > 0 for left_ms in before), 2)

        def longer():
            after = [server.ask("PTTL", self.key) for server in SERVERS]
            renewed = sum(b > a > 0 for a, b in zip(before, after))
            before[:] = [min(a, b) for a, b in zip(before, after)]
            return renewed >= 2
        wait_for(longer)

    def assert_status(self, expected):
        """The last command of the typed line has written that to the file `status`."""
        self.assertEqual(self.line_of("status"), expected, self.written.decode(errors="replace"))

    def assert_prompt(self):
        """The shell is ready for the next command."""
        wait_for(lambda: self.foreground() == self.leader)
        self.type(": >prompt")
        self.wait_file("prompt")
        os.unlink(self.path("prompt"))

    def status(self, pid):
        result = []
        wait_for(lambda: result.append(os.waitpid(pid, os.WNOHANG)) or result[-1][0])
        return result[-1][1]


class Foreground(Terminal):
    def test_the_command_inherits_no_descriptor_of_quorlock(self):
        self.shell_types("ls /proc/self/fd >outside; RUN -- ls /proc/self/fd >inside; echo $? >status")
        self.assert_status("0")
        self.assertEqual(self.read("inside"), self.read("outside"))

    def test_a_pager_behind_the_command_can_read(self):
        self.shell_types("RUN -- $ACT cmd wait go | $ACT pager wait ask line typed copy; echo ${PIPESTATUS[*]} >status")
        pager, _ = self.pids("pager")
        _, supervisor = self.pids("cmd")
        self.assertEqual(os.getpgid(supervisor), os.getpgid(pager))
        self.assertEqual(self.foreground(), os.getpgid(pager))
        self.make("ask")
        self.assert_line("to the pager", "typed")
        self.assertEqual(self.foreground(), os.getpgid(pager))
        self.assert_renewed()
        self.assertNotIn("T", [state(supervisor), state(pager)])
        self.make("go")
        self.assert_status("0 0")
        self.assert_prompt()

    def test_a_pager_in_the_background_does_not_stop_quorlock(self):
        self.shell_types("RUN -- $ACT cmd wait go | $ACT pager wait ask line typed copy &")
        pager, _ = self.pids("pager")
        _, supervisor = self.pids("cmd")
        self.make("ask")  # not before: SIGTTIN for the group would also stop a quorlock that does not handle it yet
        wait_for(lambda: state(pager) == "T")
        self.assert_renewed()
        self.assertNotEqual(state(supervisor), "T")
        self.type("fg")
        self.assert_line("to the pager", "typed")
        self.make("go")
        self.assert_prompt()

    def test_a_command_fed_by_a_pipe_asks_on_the_terminal(self):
        self.shell_types("echo x | RUN -- $ACT cmd line typed copy; echo ${PIPESTATUS[*]} >status")
        self.pids("cmd")
        self.assert_line("password", "typed")
        self.assert_status("0 0")
        self.assert_prompt()

    def test_the_foreground_goes_to_the_process_that_reads(self):
        self.shell_types("RUN -v -- $ACT cmd line first wait again line third | $ACT pager wait first line second copy;"
                         " echo ${PIPESTATUS[*]} >status")
        command, _ = self.pids("cmd")
        pager, _ = self.pids("pager")
        wait_for(lambda: self.foreground() == command)
        self.assert_line("one", "first")
        self.wait_for_output("another process of quorlock's group gets the terminal")
        self.assertEqual(self.foreground(), os.getpgid(pager))
        self.assert_line("two", "second")
        self.make("again")
        wait_for(lambda: self.foreground() == command)
        self.assert_line("three", "third")
        self.assert_status("0 0")
        self.assert_prompt()

    def test_the_lock_of_a_stopped_command_is_renewed(self):
        self.shell_types("RUN -- $ACT cmd wait go; echo $? >status")
        _, supervisor = self.pids("cmd")
        os.write(self.master, CTRL_Z)
        self.wait_for_output("the command is stopped;")
        self.assert_renewed()
        os.kill(supervisor, signal.SIGCONT)
        self.make("go")
        self.assert_status("0")
        self.assert_prompt()


class Typed(Terminal):
    """A signal that is typed ends quorlock as it ends the command, so that the shell sees it."""

    def test_quit_leaves_no_second_core(self):
        pid = self.on_terminal(command_case.QUORLOCK, "run", self.key, "--", sys.executable, "act.py", "cmd", "wait",
                               "never")
        self.pids("cmd")
        os.write(self.master, CTRL_BACKSLASH)
        status = self.status(pid)
        self.assertEqual((os.WIFSIGNALED(status), status & 127), (True, signal.SIGQUIT))
        self.assertFalse(os.WCOREDUMP(status))
        self.assert_free()


if __name__ == "__main__":
    command_case.main()
