#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run on a terminal, under an interactive shell: every state against every key, the terminal's end, the
shell's fg and bg, and signals from elsewhere.

test_supervision_terminal.py PATH_TO_quorlock [WORD...]     only the rows and columns with all these words

The columns behind bg are signals for quorlock.
"""
import os
import pty
import signal
import subprocess
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
from supervision import END, JOB, LEASE_S, PING, Disturbed, World, descendants, is_settled, main, number_of
from command_case import die_with_us, first_named

# QUORLOCK, besides the states of test_supervision.py:
#   halted           Ctrl-Z has stopped the command, and quorlock has the foreground; in a script it stops that too, so
#                    the shell has the foreground
#   stopped          another Ctrl-Z has stopped quorlock too, and the shell is at its prompt
#   stopped long the same, and then the lease ends
# COMMAND: plain, notes, left as there; reads: it reads a line from the terminal, or is stopped because it wants one in
#   the background.
# STARTED: alone at the prompt; between two others in a pipeline; in a script, which is in the foreground; behind, in
#   the background; under nohup; or without a shell, as the leader of the terminal's session.
# Words, besides those of test_supervision.py:
#   typed    the key's signal ended the command or the wait; the lock is released, and quorlock dies of that signal too
#   halts    the command is stopped; quorlock says so and has the foreground; SIGCONT for it continues the command
#   parks    the same, but the shell is at its prompt, for the script is stopped too; after fg all goes on
#   shell    quorlock is stopped and the shell is at its prompt; after fg all goes on in the foreground
#   reads    as shell, but the command has the next line, for it waited for it when it still had the foreground
#   front    the command goes on in the foreground
#   back     the command goes on in the background; after fg in the foreground
#   stays    all stays as it is; after fg, or SIGCONT, the command goes on in the foreground
#   later    the same, but then the command dies of the signal: 128+n
#   gone     the command's group died with the terminal, the lock is released, and no process is left
#   dies     quorlock is dead, the command's group with it at once, and the shell is at its prompt
#   -        not possible: fg and bg are for a shell that is at its prompt, and the terminal of a job that has ended
TABLE = """
QUORLOCK      COMMAND  STARTED   keys   ^Z     hangup  fg     bg     HUP    ends   TSTP    TTIN   CONT   STOP    KILL
waits, held   none     alone     typed  shell  gone    -      -      128+n  128+n  shell   on     on     shell   dies
waits, held   none     pipeline  typed  shell  gone    -      -      128+n  128+n  pauses  on     on     pauses  dies
waits, held   none     script    typed  shell  gone    -      -      128+n  128+n  pauses  on     on     pauses  dies
waits, held   none     leader    typed  on     gone    -      -      128+n  128+n  on      on     on     pauses  dies
holds         plain    alone     typed  halts  gone    -      -      128+n  128+n  halts   on     on     shell   dies
holds         plain    pipeline  typed  halts  gone    -      -      128+n  128+n  halts   on     on     pauses  dies
holds         plain    script    typed  parks  gone    -      -      128+n  128+n  halts   on     on     pauses  dies
holds         plain    leader    typed  halts  gone    -      -      128+n  128+n  halts   on     on     pauses  dies
holds         plain    behind    on     on     gone    front  on     128+n  128+n  halts   on     on     shell   dies
holds         plain    nohup     typed  halts  on      -      -      on     128+n  halts   on     on     shell   dies
holds         notes    alone     got    got    got     -      -      got    got    got     on     got    shell   dies
holds         notes    pipeline  got    got    got     -      -      got    got    got     on     got    pauses  dies
holds         notes    behind    on     on     got     front  on     got    got    got     on     got    shell   dies
holds         reads    alone     typed  halts  gone    -      -      128+n  128+n  halts   on     on     reads   dies
holds         reads    pipeline  typed  halts  gone    -      -      128+n  128+n  halts   on     on     pauses  dies
holds         reads    script    typed  halts  gone    -      -      128+n  128+n  halts   on     on     pauses  dies
holds         reads    behind    stays  stays  gone    front  stays  128+n  128+n  shell   stays  stays  shell   dies
halted        plain    alone     typed  shell  gone    -      -      128+n  128+n  shell   stays  front  shell   dies
halted        plain    pipeline  typed  shell  gone    -      -      128+n  128+n  shell   stays  front  shell   dies
halted        plain    script    stays  stays  gone    front  back   128+n  128+n  shell   stays  back   shell   dies
halted        plain    leader    typed  stays  gone    -      -      128+n  128+n  stays   stays  front  pauses  dies
stopped       plain    alone     stays  stays  gone    front  back   later  later  stays   stays  back   stays   dies
stopped       plain    pipeline  stays  stays  gone    front  back   later  later  stays   stays  back   stays   dies
stopped long  plain    alone     75     75     75      75     75     75     75     75      75     75     75      dies
loses         notes    alone     got75  got75  got75   -      -      got75  got75  got75   75     got75  75      dies
releases      left     alone     typed  on     on      -      -      on     on     on      on     on     shell   dies
releases      left     pipeline  typed  on     on      -      -      on     on     on      on     on     pauses  dies
"""
CLASSES = {"keys": "^C ^\\", "ends": "INT QUIT TERM"}
WORDS = {"128+n": "ends", "75": "lost", "got75": "lost"}
SLOW = {"loses": 3, "stopped long": 3}  # leases in seconds
KEYS = {"^C": (b"\x03", signal.SIGINT), "^\\": (b"\x1c", signal.SIGQUIT), "^Z": (b"\x1a", signal.SIGTSTP)}
SHELL = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
# Since bash 5.3, fg sends SIGCONT to a job that runs, too. Without that signal the command has the foreground when it reads.
FG_CONTINUES = subprocess.run(["bash", "-c", "((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 503))"],
                              check=False).returncode == 0
# What is typed. A script goes on until there is a file "go", so that somebody can see who has the foreground.
LINES = {
    "alone": "$RUN; echo $? >status",
    "pipeline": "$FEEDER | $RUN | $READER; echo ${PIPESTATUS[1]} >status",
    "script": "bash -c '$RUN; echo $? >status; until [ -e go ]; do sleep .02; done'",
    "behind": "$RUN &",
    "nohup": "nohup $RUN; echo $? >status",
}


class Cell(World):
    def __init__(self, cell, attempt):
        self.quorlock_is, self.how, self.started = cell.row
        self.event, self.word = cell.column, cell.word
        self.n = number_of("HUP") if self.event == "hangup" else KEYS.get(self.event, (None, None))[1]
        if self.n is None and self.event not in ("fg", "bg"):
            self.n = number_of(self.event)
        lease_s = SLOW[cell.row[0]] * 2 ** min(attempt // 2, 2) if cell.slow else LEASE_S
        super().__init__("-".join((*cell.row, cell.column)).replace(" ", "_").replace("\\", "backslash"), lease_s)
        self.over_s, self.shown, self.in_front = None, "status", None

    def said(self):
        if not os.path.exists(self.path("nohup.out")):
            return super().said()
        with open(self.path("nohup.out"), encoding="utf-8") as f:
            return f.read()

    def run(self):
        self.arrange()
        self.happen()
        getattr(self, WORDS.get(self.word, self.word))()

    # ---- the state ----

    def arrange(self):
        if self.quorlock_is == "releases":
            self.use_own_server()
        if self.quorlock_is == "loses":
            self.use_own_user()
        if self.quorlock_is.startswith("waits"):
            self.hold()
        self.start()
        if self.quorlock_is.startswith("waits"):
            self.wait("it waits", lambda: "waiting for" in self.said())
            self.pid["quorlock"] = self.find_quorlock()
        else:
            self.up("outer", "inner", "apart")
            self.pid["quorlock"] = self.wait("quorlock", self.find_quorlock)
        if self.started == "pipeline":
            self.up(*JOB)
        self.pid["job"] = os.getpgid(self.pid["quorlock"])
        if self.how == "reads":
            self.arrange_reading()
        {"halted": self.arrange_halt, "stopped": self.arrange_stop, "stopped long": self.outlast,
         "loses": self.arrange_loss, "releases": self.arrange_release}.get(self.quorlock_is, lambda: None)()

    def start(self):
        how = {"left": "leaves", "none": "plain"}.get(self.how, self.how)
        run = self.run_words(how, "family", *(["beats"] if self.quorlock_is in SLOW else []))
        beside = "notes" if how == "notes" else "plain"
        environment = dict(self.environment(), PS1="> ", HISTFILE="", RUN=" ".join(run),
                           FEEDER=" ".join(self.supervised("feeder", beside)),
                           READER=" ".join(self.supervised("reader", beside)))
        words = run if self.started == "leader" else SHELL
        pid, self.master = pty.fork()
        if pid == 0:
            try:
                die_with_us()
                self.execute(words, environment)
            finally:
                os._exit(98)
        self.pid["shell"] = pid
        if self.started != "leader":
            self.type(LINES[self.started])

    def find_quorlock(self):
        return first_named("quorlock", descendants(self.pid["shell"]) + [self.pid["shell"]])

    def arrange_reading(self):
        # Not before the shell has started the whole pipeline, for then it gives the job the foreground once more.
        self.wait("the shell waits", lambda: is_settled(self.pid["shell"]))
        self.kill("outer", PING)
        if self.started == "behind":
            self.wait("the command is stopped", lambda: self.is_stopped("outer"))
            self.wait("quorlock says so", lambda: "the command is stopped, because it needs the terminal" in self.said())
        else:
            self.wait("the command has the foreground", lambda: self.foreground() == self.pid["outer"])
            self.wait("the command reads", lambda: is_settled(self.pid["outer"]))

    def arrange_halt(self):
        self.wait_for_front()
        os.write(self.master, KEYS["^Z"][0])
        self.wait_for_halt()

    def wait_for_halt(self):
        self.wait("the command is stopped", lambda: self.is_stopped("outer") and self.is_stopped("inner"))
        try:
            self.wait("quorlock says so", lambda: "the command is stopped;" in self.said(), 3)
        except AssertionError:
            # It does not wait long while the shell writes to the same terminal.
            raise Disturbed("quorlock does not say that the command is stopped") from None
        self.settle()
        with_script = self.event == "^Z" or self.quorlock_is != "holds"
        shell = self.started == "behind" or (self.started == "script" and self.how != "reads" and with_script)
        self.wait("the foreground is as it was", lambda: self.foreground() == self.pid["shell" if shell else "job"])

    def arrange_stop(self):
        self.arrange_halt()
        os.write(self.master, KEYS["^Z"][0])
        self.wait("quorlock is stopped", lambda: self.is_stopped("quorlock"))
        self.wait_for_shell()

    def outlast(self):
        self.arrange_stop()
        self.over_s = self.lock_ends_s()
        self.wait("the command's group is gone", self.group_is_gone)
        self.wait("the lock has ended", self.is_free)

    def arrange_loss(self):
        self.over_s = self.lose()

    def arrange_release(self):
        self.release_unanswered()
        self.wait("quorlock has the foreground", lambda: self.foreground() == self.pid["job"])

    # ---- the terminal and the shell ----

    def foreground(self):
        return os.tcgetpgrp(self.master)

    def type(self, line):
        os.write(self.master, line.encode() + b"\n")

    def type_at_prompt(self, line):
        self.wait_for_shell()
        self.type(line)

    def wait_for_shell(self):
        shell = self.pid["shell"]
        self.wait("the shell is at its prompt", lambda: self.foreground() == shell and is_settled(shell))

    def wait_for_front(self):
        """The command has the foreground, or quorlock's job where it shares it."""
        shared = self.started in ("pipeline", "script") and self.how != "reads"
        name = "shell" if self.started == "behind" else "job" if shared else "outer"
        name = self.in_front or name
        self.wait(f"{name} has the foreground", lambda: self.foreground() == self.pid[name])

    def wait_for_file(self, name):
        def content():
            if not os.path.exists(self.path(name)):
                return ""
            with open(self.path(name), encoding="ascii") as f:
                return f.read().strip()
        return self.wait(f"the file {name}", content)

    def end_script(self):
        if self.started != "script":
            return
        status = self.path("status")
        self.wait("the script goes on or has ended", lambda: os.path.exists(status) or not self.runs("job"))
        if os.path.exists(status) and not os.path.exists(self.path("go")):
            if self.master >= 0 and self.word != "dies":
                self.check(self.foreground() == self.pid["job"], "the script has not got the foreground back")
            with open(self.path("go"), "w", encoding="ascii"):
                pass

    def end_job(self):
        """The other processes of a pipeline end; the shell knows its status then."""
        for name in JOB:
            if name in self.pid:
                self.kill(name, END)
                self.kill(name, signal.SIGCONT)

    def check_status(self, expected, other=None, behind=False):
        """That of quorlock, as the shell shows it."""
        if self.started == "leader" or self.master < 0:
            pid = self.pid["quorlock"]
            self.wait("quorlock ends", lambda: self.is_gone(pid))
            self.reap()
            if pid in self.status or self.started == "leader":
                self.check(self.status[pid] in (expected, other), f"status {self.status.get(pid)}, not {expected}")
            return
        if behind:
            self.type_at_prompt("wait $!; echo $? >status")
        self.end_job()
        if self.started == "pipeline" and self.shown == "resumed":
            return  # the shell shows that of the last one
        shown = self.wait_for_file(self.shown)
        wanted = expected if expected >= 0 else 128 - expected
        self.check(shown == str(wanted), f"the shell shows {shown}, not {wanted}")

    def type_fg(self):
        self.shown = "resumed" if self.started != "script" else "status"
        self.type_at_prompt("fg; echo $? >resumed")

    def resume(self):
        """fg: quorlock's job goes on in the foreground."""
        self.type_fg()
        self.wait("quorlock goes on", lambda: not self.is_stopped("quorlock"))

    # ---- what happens ----

    def happen(self):
        if self.quorlock_is == "loses" and self.is_gone(self.pid["inner"]):
            raise Disturbed("the grace was over before the signal")
        if self.event in KEYS:
            if self.quorlock_is == "holds" and self.how != "reads":
                self.wait_for_front()
            prompts = self.said().count("> ")
            os.write(self.master, KEYS[self.event][0])
            if self.event == "^C" and self.quorlock_is.startswith("stopped"):
                # A line that comes while the shell handles it may lose its beginning.
                self.wait("the shell has a new prompt", lambda: self.said().count("> ") > prompts)
        elif self.event == "hangup":
            os.close(self.master)
            self.master = -1
            if self.started != "leader":
                self.wait("the shell ends", lambda: self.is_gone(self.pid["shell"]))
        elif self.event == "fg":
            self.resume()
        elif self.event == "bg":
            self.type_at_prompt("bg")
        else:
            self.kill("quorlock", self.n)
            if self.event == "TTIN" and self.quorlock_is == "holds" and self.started in ("alone", "nohup", "leader"):
                self.in_front = "job"  # as if another process of the job wanted to read

    # ---- what must happen ----

    def check_got(self):
        self.wait_in_grace(self.n, "outer", "inner")

    def check_quiet(self):
        """Nobody got anything."""
        for name in ("outer", "inner", "apart"):
            seen = {n for n, times in self.seen.get(name, {}).items() if times} - {0, PING, signal.SIGCONT}
            wanted = {self.n} - {signal.SIGCONT} if self.word.startswith("got") and name != "apart" else set()
            if self.event == "hangup":
                seen -= {signal.SIGHUP}
                wanted -= {signal.SIGHUP}
            self.check(seen == wanted, f"{name} got {seen}")

    def finish(self, *survivors):
        """After quorlock: the rest of its job ends, and the shell is at its prompt."""
        self.check_quiet()
        self.wait("quorlock has ended", lambda: self.is_gone(self.pid["quorlock"]))
        self.end_script()
        self.end_job()
        if self.started != "leader" and self.master >= 0:
            self.wait_for_shell()
            self.type(": >prompt")
            self.wait("the shell reads", lambda: os.path.exists(self.path("prompt")))
            survivors = (*survivors, "shell")
        self.check_nothing_left(*survivors)

    def end(self, behind=False):
        """The command goes on and ends, and the lock is released."""
        if self.quorlock_is == "releases":
            self.settle()
            self.servers[0].thaw()
            if not (self.started == "pipeline" and self.event == "^Z"):
                self.check_status(3)
            self.finish("inner", "apart")
            return
        if self.quorlock_is.startswith("waits"):
            self.settle()
            self.check("outer" not in self.pid, "the command runs without a lock")
            self.let_in()
            self.up("outer", "inner", "apart")
        if behind:
            self.wait_for_shell()
        elif self.master >= 0:
            self.wait_for_front()
        if self.how == "reads":
            self.read_line()
        self.settle()
        self.ping()
        self.check(not self.is_stopped("outer") and not self.is_stopped("inner"), "the command is stopped")
        self.wait("the lock is held", self.is_held)
        self.kill("outer", END)
        self.check_status(6, behind=behind)
        self.finish("inner", "apart")

    def on(self):
        self.settle()
        self.end(behind=self.started == "behind" and self.event != "hangup")

    def got(self):
        self.check_got()
        self.on()

    def check_shell_saw(self):
        """A shell leaves a list of commands when one dies of SIGINT, and says so of other signals."""
        if self.started == "script" and self.n == signal.SIGQUIT:
            self.check_status(-self.n)  # bash ignores SIGQUIT
            self.end_script()
        self.type_at_prompt("echo $? >late")
        late = self.wait_for_file("late")
        if self.quorlock_is == "halted" and self.started == "pipeline":
            return  # it shows that the others are stopped
        if self.n == signal.SIGINT:
            self.check(late == "130", f"the shell shows {late}")
            # It may have made the file for the next command before it looked for interrupts.
            went_on = os.path.exists(self.path("status")) and os.path.getsize(self.path("status")) > 0
            self.check(not went_on, "the shell went on after SIGINT")
        else:
            self.wait("the shell says so", lambda: b"Quit" in self.written)

    def typed(self):
        if self.quorlock_is == "releases":
            self.settle()
            self.servers[0].thaw()
        self.wait("quorlock has ended", lambda: self.is_gone(self.pid["quorlock"]))
        self.check("outer" not in self.pid or self.is_gone(self.pid["outer"]), "the command goes on")
        if self.started == "leader":
            self.check_status(-self.n)
        else:
            self.check_shell_saw()
        if self.quorlock_is.startswith("waits"):
            self.check("outer" not in self.pid, "the command was started")
            self.check(self.values() == [b"another"] * 3, "the other client has lost its lock")
            self.let_in()
        self.finish("apart", *(["inner"] if self.quorlock_is == "releases" else []))

    def halts(self):
        self.wait_for_halt()
        self.check(self.is_held(), "the lock is not held")
        if self.started in ("pipeline", "script"):
            os.killpg(self.pid["job"], signal.SIGCONT)
        else:
            self.kill("quorlock", signal.SIGCONT)
        self.wait("the command goes on", lambda: not self.is_stopped("outer"))
        self.end(behind=self.started == "behind")

    def parks(self):
        self.wait_for_halt()
        self.check(self.is_held(), "the lock is not held")
        self.front_again()

    def shell(self):
        self.wait("quorlock is stopped", lambda: self.is_stopped("quorlock"))
        self.wait_for_shell()
        self.front()

    def reads(self):
        self.wait("quorlock is stopped", lambda: self.is_stopped("quorlock"))
        self.wait_for_shell()
        self.read_line()
        self.how = "plain"
        self.front()

    def read_line(self):
        self.type("line")
        self.wait("the command reads it", lambda: self.count("outer", 0))

    def front(self):
        """After fg, or SIGCONT."""
        if self.event == "fg" and self.how != "reads" and self.started == "behind" and not FG_CONTINUES:
            self.in_front = "job"
        resumed = self.event != "CONT"
        if resumed and self.event != "fg":
            self.resume()
        if self.quorlock_is in ("stopped", "halted"):
            self.wait("the command goes on", lambda: not self.is_stopped("outer"))
        started, self.started = self.started, "alone" if self.started == "behind" else self.started
        if not resumed and started in ("pipeline", "script"):
            os.killpg(self.pid["job"], signal.SIGCONT)
        self.end()

    def back(self):
        self.wait("the command goes on", lambda: not self.is_stopped("outer") and not self.is_stopped("quorlock"))
        if not FG_CONTINUES:
            self.in_front = "job"
        self.wait_for_shell()
        self.front_again()

    def front_again(self):
        self.resume()
        self.started = "alone" if self.started == "behind" else self.started
        self.end()

    def stays(self):
        if self.quorlock_is == "stopped":
            self.wait_for_shell()
        else:
            self.settle()
        self.wait("the command is stopped", lambda: self.is_stopped("outer"))
        self.check(self.is_held(), "the lock is not held")
        if self.quorlock_is == "halted" and self.started != "script":
            self.check(self.foreground() == self.pid["job"], "quorlock has lost the foreground")
            os.killpg(self.pid["job"], signal.SIGCONT)
            self.wait("the command goes on", lambda: not self.is_stopped("outer"))
            self.end()
        else:
            self.front_again()

    def later(self):
        self.check(self.is_stopped("quorlock") and self.is_stopped("outer"), "a stopped process was continued")
        self.type_fg()
        self.check_status(128 + self.n)
        self.finish("apart")

    def gone(self):
        # bash sends SIGTERM too to a job that is stopped.
        self.check_status(128 + self.n, 128 + signal.SIGTERM if self.quorlock_is != "holds" else None)
        self.wait("the command's group is gone", self.group_is_gone)
        if self.quorlock_is.startswith("waits"):
            self.let_in()
        self.finish("apart")

    def dies(self):
        self.wait("quorlock has ended", lambda: self.is_gone(self.pid["quorlock"]))
        if self.quorlock_is == "releases":
            self.servers[0].thaw()
            self.finish("inner", "apart")
            return
        self.wait("the command's group is gone", self.group_is_gone)
        if self.quorlock_is not in ("waits, held", "loses", "stopped long"):
            self.check(self.is_held(), "the lock does not end with its lease")
        self.let_in()
        self.finish("apart")

    def pauses(self):
        self.wait("quorlock is stopped", lambda: self.is_stopped("quorlock"))
        self.kill("quorlock", signal.SIGCONT)
        self.wait("quorlock goes on", lambda: not self.is_stopped("quorlock"))
        if self.quorlock_is == "halted":
            self.wait("the command goes on", lambda: not self.is_stopped("outer"))
        self.end()

    def ends(self):
        pid = self.pid["quorlock"]
        self.wait("quorlock ends", lambda: self.is_gone(pid))
        if not (self.quorlock_is == "halted" and self.started in ("pipeline", "script")):
            self.check_status(128 + self.n, behind=self.started == "behind")
        if self.quorlock_is.startswith("waits"):
            self.check("outer" not in self.pid, "the command was started")
            self.check(self.values() == [b"another"] * 3, "the other client has lost its lock")
            self.let_in()
        else:
            self.check(self.is_gone(self.pid["outer"]), "the command runs")
            self.wait("the command's group is gone", self.group_is_gone)
        self.finish("apart")

    def lost(self):
        if self.word.startswith("got"):
            self.check_got()
        if self.quorlock_is == "loses":
            self.wait("the command's group is gone", self.group_is_gone)
        if self.is_stopped("quorlock"):
            self.type_fg()
        if self.event in ("bg", "CONT") and self.quorlock_is == "stopped long":
            self.wait("quorlock has ended", lambda: self.is_gone(self.pid["quorlock"]))
        else:
            self.check_status(75)
        self.check_in_time(self.over_s)
        self.finish("apart")


if __name__ == "__main__":
    main(TABLE, CLASSES, Cell, SLOW)
