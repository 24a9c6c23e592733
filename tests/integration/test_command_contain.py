#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run --contain: what left the command's group ends, too: test_command_contain.py PATH_TO_quorlock [TEST...]

Each scenario is a row: who dies or is stopped. Without --contain, what left the group goes on: that is the control."""
import ctypes
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import LIBC, SERVERS, Bootstrapped, children, die_with_us, first_named, state, wait_for, warden_of

UNSHARE = {"x86_64": 272, "aarch64": 97, "riscv64": 97}
LEFT_S = 0.3  # what would have been killed by the same event has long been killed then
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

# For each way, a process leaves the group of the command, and goes on with its child until the test says so.
LEAVER = """
import os, signal, sys, time
def term(*_):
    open("termed." + way, "w").close()
    if sys.argv[1] == "ends": os._exit(0)
for way in sys.argv[2:]:
    if os.fork(): continue
    if way == "group": os.setpgid(0, 0)
    else: os.setsid()
    if way == "daemon":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if os.fork(): os._exit(0)
    signal.signal(signal.SIGTERM, term)
    os.fork()
    open("left.%s.%d" % (way, os.getpid()), "w").close()
    while not os.path.exists("let_go"): time.sleep(0.02)
    os._exit(0)
"""
WAYS = ("setsid", "group", "daemon")
COMMAND = ("{python} {leaver} {on_term} " + " ".join(WAYS) + "; "
           "while [ $(ls left.* 2>/dev/null | wc -l) -lt 6 ]; do sleep 0.02; done; > up; "
           "while [ ! -e exit ]; do sleep 0.02; done; exit 5")


def own_cgroup():
    """The folder of this process's cgroup of version 2, or None."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = [line.split("::", 1)[1].strip() for line in file if line.startswith("0::")]
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split() for line in file if " - cgroup2 " in line]
    return mounts[0][4] + own[0].removeprefix(mounts[0][3].rstrip("/")) if own and mounts else None


def permits(kind, *before):
    """Whether this machine permits that to us, by other means than ours."""
    if kind == "pid":
        for more in ([], ["--user", "--map-current-user"]):
            if subprocess.run([*before, "unshare", *more, "--pid", "--fork", "--mount-proc", "true"], capture_output=True,
                              check=False).returncode == 0:
                return True
        return False
    folder = None
    try:
        folder = tempfile.mkdtemp(prefix="permits-", dir=own_cgroup() or "/nonexistent")
        process = subprocess.Popen(["sleep", "1000"])
        try:
            with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(process.pid))
            return os.path.exists(os.path.join(folder, "cgroup.kill"))
        finally:
            process.kill()
            process.wait()
    except OSError:
        return False
    finally:
        if folder:
            os.rmdir(folder)


def without_unshare():
    """In a child: the kernel answers unshare with EPERM, as in many containers."""
    die_with_us()
    load, equal, answer = 0x20, 0x15, 0x06
    lines = [(load, 0, 0, 0), (equal, 0, 1, UNSHARE[platform.machine()]), (answer, 0, 0, 0x50001), (answer, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code)))
    LIBC.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if LIBC.prctl(22, 2, ctypes.byref(program)) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        os._exit(99)


class Contain(Bootstrapped):
    KINDS = ("pid", "cgroup")

    def setUp(self):
        super().setUp()
        self.leaver = self.path("leaver.py")
        with open(self.leaver, "w", encoding="ascii") as file:
            file.write(LEAVER)
        self.addCleanup(self.touch, "let_go")

    def touch(self, name):
        with open(self.path(name), "w", encoding="ascii"):
            pass

    def each(self, kinds=KINDS):
        """A scenario for each kind that this machine permits."""
        refused = [kind for kind in kinds if kind != "no" and not permits(kind)]
        for kind in kinds:
            if kind not in refused:
                with self.subTest(kind):
                    yield kind
                self.touch("let_go")
                wait_for(lambda: not self.left())
                for name in os.listdir(self.folder):
                    if name != "leaver.py":
                        os.unlink(self.path(name))
        if refused:
            self.skipTest("this machine permits no --contain " + ", ".join(refused))

    def left(self):
        """What left the group, by its numbers here."""
        found = []
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
                continue
            if name.isdigit() and self.leaver.encode() in words and state(name) not in "ZX":
                found.append(int(name))
        return found

    def begin(self, kind, *options, on_term="stays", **more):
        """(quorlock, the command); with the cgroup in self.cgroup."""
        script = COMMAND.format(python=sys.executable, leaver=self.leaver, on_term=on_term)
        process = self.shell("--contain", kind, *options, script=script, **more)
        ours = (first_named(name, children(process.pid)) for name in ("quorlock-warden", "quorlock-init"))
        command = (set(children(process.pid)) - set(ours)).pop()
        self.assertEqual(len(self.left()), 6)
        with open(f"/proc/{self.left()[0]}/cgroup", encoding="utf-8") as file:
            path = [line.split("::", 1)[1].strip() for line in file if line.startswith("0::")]
        self.cgroup = os.path.join(own_cgroup() or "/", os.path.basename(path[0])) if kind == "cgroup" else None
        return process, command

    def assert_ended(self, kind):
        if kind == "no":
            time.sleep(LEFT_S)
            self.assertEqual(len(self.left()), 6, "the control: what left the group goes on")
        else:
            wait_for(lambda: not self.left())
            if self.cgroup:
                wait_for(lambda: not os.path.exists(self.cgroup))

    @staticmethod
    def ended(process):
        """Its status. What goes on without --contain keeps its output open."""
        return process.wait(timeout=command_case.LIMIT_S)

    def test_a_loss_ends_all(self):
        for kind in self.each(("no", *self.KINDS)):
            process, _ = self.begin(kind, "--lease", "2s")
            for server in SERVERS:
                server.ask("SET", self.key, "somebody else")
            self.assertEqual(self.ended(process), 75)
            self.assert_ended(kind)
            self.bootstrap_again()

    def bootstrap_again(self):
        for server in SERVERS:
            server.ask("DEL", self.key)

    def test_no_renewal_asks_all_to_end(self):
        for kind in self.each():
            process, _ = self.begin(kind, "--lease", "4s", on_term="ends")
            for server in SERVERS:
                server.ask("ACL", "SETUSER", "default", "-@scripting", "-pexpire")
            try:
                self.assertEqual(self.ended(process), 75)
            finally:
                for server in SERVERS:
                    server.ask("ACL", "SETUSER", "default", "+@all")
            self.assert_ended(kind)
            for way in WAYS:
                self.wait_file(f"termed.{way}")
            self.bootstrap_again()

    def test_quorlock_is_killed(self):
        for kind in self.each(("no", *self.KINDS)):
            process, command = self.begin(kind)
            process.kill()
            self.ended(process)
            self.assert_gone(command)
            self.assert_ended(kind)
            self.bootstrap_again()

    def test_quorlock_is_stopped_until_the_end(self):
        for kind in self.each(("no", *self.KINDS)):
            process, command = self.begin(kind, "--lease", "2s")
            process.send_signal(signal.SIGSTOP)
            self.assert_gone(command)
            self.assert_ended(kind)
            process.send_signal(signal.SIGCONT)
            self.assertEqual(self.ended(process), 75)

    def test_the_warden_and_quorlock_are_killed(self):
        """The namespace ends without both; a cgroup does not, as the manual says."""
        for kind in self.each(("pid",)):
            process, command = self.begin(kind)
            warden = warden_of(process.pid)
            for pid in (process.pid, warden):
                os.kill(pid, signal.SIGSTOP)
            for pid in (warden, process.pid):
                os.kill(pid, signal.SIGKILL)
            self.assert_gone(command)
            self.assert_ended(kind)

    def test_another_warden_knows_it(self):
        for kind in self.each():
            process, command = self.begin(kind)
            first = warden_of(process.pid)
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: warden_of(process.pid) not in (None, first))
            process.kill()
            self.assert_gone(command)
            self.assert_ended(kind)
            self.bootstrap_again()

    def test_the_init_is_killed(self):
        for kind in self.each(("pid",)):
            process, _ = self.begin(kind)
            os.kill(first_named("quorlock-init", children(process.pid)), signal.SIGKILL)
            self.assertEqual(self.ended(process), 137)
            self.assert_ended(kind)
            self.assert_free()

    def test_the_command_ends(self):
        """What is left is asked to end, and is killed 5 s later; the lock stays until then."""
        for on_term in ("ends", "stays"):
            for kind in self.each():
                process, _ = self.begin(kind, on_term=on_term)
                self.touch("exit")
                for way in WAYS:
                    self.wait_file(f"termed.{way}")
                if on_term == "stays":
                    self.assertGreaterEqual(sum(value is not None for value in self.values()), 2, "released too early")
                status, _, err = self.end(process)
                self.assertEqual(status, 5, err)
                self.assertIn("processes that it started run: SIGTERM now, SIGKILL in 5000 ms", err)
                self.assert_ended(kind)
                self.assert_free()

    def test_all_are_awaited(self):
        for kind in self.each():
            process, command = self.begin(kind, "--group", "wait")
            self.touch("exit")
            self.assert_gone(command)
            wait_for(lambda: not os.path.exists(f"/proc/{command}"))  # quorlock has seen its end
            time.sleep(LEFT_S)
            self.assertIsNone(process.poll())
            self.assertEqual(len(self.left()), 6)
            self.touch("let_go")
            self.assertEqual(self.end(process)[0], 5)
            self.assertFalse(any(os.path.exists(self.path(f"termed.{way}")) for way in WAYS))
            self.assert_ended(kind)

    def test_signals_stops_and_statuses(self):
        """Process 1 of a namespace ignores what it has no handler for: the command is another one."""
        for kind in self.each():
            process, command = self.begin(kind, on_term="ends")
            process.send_signal(signal.SIGTSTP)
            wait_for(lambda: state(command) == "T")
            process.send_signal(signal.SIGCONT)
            wait_for(lambda: state(command) != "T")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(self.ended(process), 143)
            self.assert_ended(kind)
            status, _, err = self.connected("run", "--contain", kind, self.key, "--", "/nonexistent")
            self.assertEqual(status, 127, err)
            status, _, err = self.connected("run", "--contain", kind, self.key, "--", "sh", "-c", "exit 7")
            self.assert_seven(status, err)

    def assert_seven(self, status, err):
        """On a busy machine the first process of the namespace, or a warden in it, may outlive the command for a moment."""
        self.assertEqual(status, 7, err)
        self.assertRegex(err, r"^(quorlock: the command has ended, but processes that it started run: [^\n]*\n)*$")

    def test_a_candidate_starts_it_anew(self):
        for kind in self.each():
            script = f"cd {self.folder}; echo x >> ran; {sys.executable} {self.leaver} ends setsid; [ $(wc -l <ran) -lt 3 ] || > up; exit 3"
            process = self.start("elect", "--restart", "--contain", kind, self.key, "--", "sh", "-c", script)
            self.wait_file("up", process)
            process.send_signal(signal.SIGTERM)
            self.ended(process)
            wait_for(lambda: not self.left())

    def test_one_in_another(self):
        for kind in self.each():
            inner = [command_case.QUORLOCK, "run", "--contain", kind, self.key + "-inner", "--"]
            status, _, err = self.connected("run", "--contain", kind, self.key, "--", *inner, "sh", "-c", "echo $$; exit 7")
            self.assert_seven(status, err)

    def test_proc_shows_the_namespace(self):
        for _ in self.each(("pid",)):
            script = "echo $$ $(sed 's/ .*//' /proc/self/stat /proc/$$/stat | tail -1) $(ls /proc | grep -c '^[0-9]*$')"
            status, out, err = self.connected("run", "--contain", "pid", self.key, "--", "sh", "-c", script)
            self.assertEqual((status, err), (0, ""))
            number, by_proc, count = out.split()
            self.assertEqual((number, by_proc), ("2", "2"))
            self.assertLess(int(count), 10)

    def test_orphans_are_reaped(self):
        for _ in self.each(("pid",)):
            script = ("for i in 1 2 3 4; do sh -c 'sleep 0.01 & exit'; done; tries=0; "
                      "while grep -q ') Z' /proc/[0-9]*/stat 2>/dev/null; do sleep 0.05; tries=$((tries + 1)); "
                      "[ $tries -lt 400 ] || exit 9; done; [ $(ls /proc | grep -c '^[0-9]*$') -lt 10 ]")
            status, _, err = self.connected("run", "--contain", "pid", self.key, "--", "sh", "-c", script)
            self.assertEqual(status, 0, err)

    def test_a_user_without_rights(self):
        """In a namespace of users, in which the user and the group stay the same."""
        if os.geteuid() != 0 or not permits("pid", *NOBODY):
            self.skipTest("this machine permits no namespaces to a user without rights, or we are not root")
        os.chmod(command_case.FOLDER, 0o711)
        os.chmod(self.folder, 0o777)
        script = self.path("quorlock")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nexec {' '.join(NOBODY)} {command_case.QUORLOCK} \"$@\"\n")
        os.chmod(script, 0o755)
        before, command_case.QUORLOCK = command_case.QUORLOCK, script
        try:
            status, out, err = self.connected("run", "--contain", "pid", self.key, "--", "sh", "-c", "id -u; id -g; exit 7")
            self.assertEqual((status, out, err), (7, "65534\n65534\n", ""))
            # Our Python may be where that user may not read.
            process = self.shell("--contain", "pid", script="setsid sh -c '> up; while [ ! -e let_go ]; do sleep 0.02; done' "
                                                            f"{self.leaver} & wait")
        finally:
            command_case.QUORLOCK = before
        self.assertTrue(self.left())
        process.kill()
        wait_for(lambda: not self.left())


class Refused(Bootstrapped):
    """In words, and before the lock is asked for."""

    def check(self, text, *words, **more):
        status, out, err = self.quorlock("run", "--contain", *words, self.key, "--", "touch", self.path("ran"),
                                         env={"QUORLOCK_NODES": "127.0.0.1:1"}, **more)
        self.assertEqual((status, out), (64, ""), err)
        self.assertIn(text, err)
        self.assertNotIn("waiting", err)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_what_excludes_each_other(self):
        for kind in Contain.KINDS:
            self.check(f"--contain {kind} and --group leave exclude each other", kind, "--group", "leave")
        self.check('--contain: "jail" is unknown: give no, pid or cgroup', "jail")

    def test_no_namespaces(self):
        if platform.machine() not in UNSHARE:
            self.skipTest("the number of unshare is not known here")
        self.check("--contain pid: no PID namespace with a /proc of its own can be made here: Operation not permitted",
                   "pid", preexec=without_unshare)

    def test_no_cgroups(self):
        inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c",
                  'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
        if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
            self.skipTest("this machine permits no namespace of mounts")
        script = self.path("quorlock")
        with open(script, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexec unshare --mount " + ("" if os.geteuid() == 0 else "--map-root-user ") +
                       f"sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"' sh {command_case.QUORLOCK} \"$@\"\n")
        os.chmod(script, 0o755)
        before, command_case.QUORLOCK = command_case.QUORLOCK, script
        try:
            self.check("--contain cgroup: no cgroup can be made here below that of quorlock", "cgroup")
        finally:
            command_case.QUORLOCK = before


if __name__ == "__main__":
    command_case.main()
