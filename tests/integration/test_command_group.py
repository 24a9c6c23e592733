#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run: what becomes of the other processes of a command, and where it runs: test_command_group.py
PATH_TO_quorlock [TEST...]"""
import ctypes
import errno
import os
import pathlib
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from unittest import mock

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import LIBC, Bootstrapped, children, die_with_us, state, wait_for

# A process in the command's group. It goes on after SIGTERM, so that the test decides when it ends.
MEMBER = "sh -c 'trap \": > termed\" TERM; echo $$ > member; while [ ! -e let_go ]; do sleep 0.02; done' &"
COMMAND = MEMBER + " while [ ! -s member ]; do sleep 0.02; done; echo $$ > up; while [ ! -e exit ]; do sleep 0.02; done; exit 5"
# --group, how the command ends, and what then happens to the member of its group.
ENDS = """
auto   exit    goes-on
auto   killed  is-ended
wait   exit    is-awaited
wait   killed  is-awaited
end    exit    is-ended
end    killed  is-ended
leave  exit    goes-on
leave  killed  goes-on
"""
CLOSE_RANGE = 436  # on every architecture


def without_close_range(number):
    """In a child: the kernel answers close_range with that error, as old ones and some containers do."""
    def filtered():
        die_with_us()
        load, equal, answer = 0x20, 0x15, 0x06
        lines = [(load, 0, 0, 0), (equal, 0, 1, CLOSE_RANGE), (answer, 0, 0, 0x50000 | number), (answer, 0, 0, 0x7FFF0000)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code)))
        LIBC.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        if LIBC.prctl(22, 2, ctypes.byref(program)) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
            os._exit(99)
    return filtered


class Group(Bootstrapped):
    def touch(self, name):
        with open(self.path(name), "w", encoding="ascii"):
            pass

    def begin(self, *options):
        """(quorlock, the command, the other process of its group)"""
        process = self.shell(*options, script=COMMAND)
        return process, int(self.line_of("up")), int(self.line_of("member"))

    @staticmethod
    def words_of(pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()

    @staticmethod
    def ended(process):
        """Its status. What goes on in its group may keep its output open."""
        return process.wait(timeout=command_case.LIMIT_S)

    def end_command(self, command, how):
        if how == "killed":
            os.kill(command, signal.SIGKILL)
        else:
            self.touch("exit")

    def check_end(self, rule, how, then):
        process, command, member = self.begin("--group", rule)
        self.end_command(command, how)
        status = 137 if how == "killed" else 5
        if then == "goes-on":
            self.assertEqual(self.ended(process), status)
            self.assertNotIn(state(member), "ZX")
        else:
            self.assert_gone(command)
            if then == "is-ended":
                self.wait_file("termed")
            wait_for(lambda: not os.path.exists(f"/proc/{command}"))  # quorlock has seen its end
            self.assertIsNone(process.poll())
            self.assertGreaterEqual(sum(value is not None for value in self.values()), 2, "released too early")
            self.assertEqual(os.path.exists(self.path("termed")), then == "is-ended")
        self.touch("let_go")
        if then != "goes-on":
            self.assertEqual(self.end(process)[0], status)
        self.assert_gone(member)
        self.assert_free()
        self.clean()

    def clean(self):
        for name in ["up", "member", "let_go", "exit", "termed"]:
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))

    def test_ends_of_a_command(self):
        for row in ENDS.split("\n")[1:-1]:
            with self.subTest(row):
                self.check_end(*row.split())

    @staticmethod
    def kill(pid):
        if state(pid) not in "ZX":
            os.kill(pid, signal.SIGKILL)

    def check_hidden(self, *words, command_script=COMMAND):
        """quorlock, run by these words, does not see the processes of the group."""
        script, said = self.path("quorlock"), self.path("said")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nexec {shlex.join([*words, command_case.QUORLOCK])} \"$@\"\n")
        os.chmod(script, 0o755)
        for rule in ("wait", "end"):
            with open(said, "wb") as file, mock.patch.object(command_case, "QUORLOCK", script):
                process = self.shell("--group", rule, script=command_script, stdout=file, stderr=file)
            command, member = int(self.line_of("up")), int(self.line_of("member"))
            self.addCleanup(self.kill, member)
            self.end_command(command, "exit")
            wait_for(lambda: b" locked until " in pathlib.Path(said).read_bytes() or process.poll() is not None)
            self.assertIsNone(process.poll(), "the lock was given up")
            self.assertGreaterEqual(sum(value is not None for value in self.values()), 2)
            self.kill(member)
            self.assertEqual(self.end(process)[0], 5)
            self.assert_gone(command, member)
            self.clean()

    def test_a_group_that_proc_does_not_show_is_awaited(self):
        inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c",
                  # A search for leaks needs /proc and would end the process with 1: sanitizers read their options there.
                  "mount -t tmpfs none /proc && mkdir /proc/self && "
                  "printf 'ASAN_OPTIONS=detect_leaks=0\\0' >/proc/self/environ && exec \"$@\"", "sh"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
            self.skipTest("this machine permits no namespace of mounts")
        self.check_hidden(*inside)

    def test_a_group_of_another_user_that_proc_hides_is_awaited(self):
        """The member runs a copy of sh with the set-user-ID bit, which hidepid=2 hides from the user of quorlock."""
        inside = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 none /proc && exec "$@"', "sh",
                  "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        hidden = [*inside, "sh", "-c", f"test ! -e /proc/1 && {shlex.quote(command_case.QUORLOCK)} --version"]
        if os.geteuid() != 0 or subprocess.run(hidden, capture_output=True, check=False).returncode:
            self.skipTest("this user cannot hide processes of others from another user")
        os.chmod(command_case.FOLDER, 0o711)
        os.chmod(self.folder, 0o777)
        shutil.copy("/bin/sleep", self.path("sleep"))
        os.chmod(self.path("sleep"), 0o4755)
        script = "(trap '' TERM; exec ./sleep 1000) & echo $! > member; echo $$ > up; while [ ! -e exit ]; do sleep 0.02; done; exit 5"
        self.check_hidden(*inside, command_script=script)

    def test_a_member_that_ignores_sigterm_is_killed(self):
        process, command, member = self.begin()
        self.end_command(command, "killed")
        self.assert_gone(member)
        status, _, err = self.end(process)
        self.assertEqual(status, 137)
        self.assertIn("SIGTERM now, SIGKILL in 5000 ms", err)
        self.assert_free()

    ORPHANS = ("for i in 1 2 3 4 5 6 7 8; do sh -c 'sleep 0.01 & exit'; done; tries=0; "
               "while grep -q ') Z' /proc/[0-9]*/stat 2>/dev/null; do sleep 0.05; tries=$((tries + 1)); "
               "[ $tries -lt 400 ] || exit 9; done")

    def test_process_1_of_a_container_reaps_orphans(self):
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if os.geteuid() != 0:
            inside.append("--map-root-user")
        if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
            self.skipTest("this machine permits no namespace of processes")
        environment = os.environ | {"QUORLOCK_NODES": command_case.nodes(), "QUORLOCK_CONFIG": "/dev/null"}
        run = subprocess.run([*inside, command_case.QUORLOCK, "run", self.key, "--", "sh", "-c", self.ORPHANS],
                             env=environment, capture_output=True, text=True, timeout=command_case.LIMIT_S, check=False,
                             preexec_fn=die_with_us)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_subreaper_adopts_orphans(self):
        process = self.shell("--subreaper", script="sh -c '(> up; while [ ! -e let_go ]; do sleep 0.02; done) & exit'; "
                                                   "while [ ! -e exit ]; do sleep 0.02; done")
        orphan = wait_for(lambda: [pid for pid in children(process.pid) if b"let_go" in self.words_of(pid) and
                                   len(children(process.pid)) == 3])
        self.touch("let_go")
        wait_for(lambda: len(children(process.pid)) == 2)  # the command and the warden
        self.assertTrue(orphan)
        self.touch("exit")
        self.assertEqual(self.end(process)[0], 0)


    # It leaves the command's group, in which a child of it has ended.
    OUTSIDE = ("import os, time\n"
               "os.fork() or os._exit(0)\n"
               "os.setpgid(0, 0)\n"
               "os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)\n"
               "open('up', 'w').close()\n"
               "while not os.path.exists('let_go'): time.sleep(0.02)\n")

    def test_a_process_that_has_ended_is_not_awaited(self):
        process = self.shell("--group", "wait", script=f'{sys.executable} -c "{self.OUTSIDE}" & '
                                                       "while [ ! -e up ]; do sleep 0.02; done; exit 5")
        self.assertEqual(self.ended(process), 5)
        self.touch("let_go")


class OldKernel(Bootstrapped):
    def test_it_runs_without_close_range(self):
        for number in (errno.ENOSYS, errno.EPERM):
            status, _, err = self.connected("run", self.key, "--", "true", preexec=without_close_range(number))
            self.assertEqual((status, err), (0, ""))


if __name__ == "__main__":
    command_case.main()
