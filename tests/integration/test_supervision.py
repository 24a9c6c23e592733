#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run without a terminal: every state of quorlock and of its command against every signal.

test_supervision.py PATH_TO_quorlock [WORD...]     only the rows and columns with all these words

The command has a child in its process group, and one in a session of its own, which must never notice anything. TO is
whom the signal is for: quorlock, the command alone, the command's group, the warden; or quorlock's job, which is then
a pipeline of another process, quorlock and a third one in one process group.
"""
import os
import signal
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
from supervision import CLASSES, END, JOB, LEASE_S, PING, UNSEEN, Disturbed, World, main, number_of
from command_case import (PTRACE_CONT, PTRACE_DETACH, PTRACE_O_TRACEFORK, PTRACE_SEIZE, SERVERS, STOOD_STILL_S, now_s,
                          trace, wait_for_fork)

# QUORLOCK: what it does when the signal comes.
#   waits, held      another client holds the lock
#   waits, no node   no node answers
#   starts           the command's process is there, and the warden's is just being made
#   holds            the command runs
#   holds, 2nd warden  the same, after the first one was killed
#   late             the same, but renewals fail, and succeed again after the signal
#   loses            renewal failed, and the command has its SIGTERM: it has a grace before SIGKILL
#   stopped          by SIGSTOP; continued after the signal, before the lease is over
#   stopped long     the same, but continued after the lease
#   releases         the command has ended, and the nodes do not answer to the release
# COMMAND: plain (a signal does what it does to any process), notes (it has a handler for every signal), ignores
#   (it ignores them), stopped (plain, and stopped by SIGSTOP); left: it has ended, and its child runs on in its group.
# Words:
#   on       nobody notices; the command goes on, ends with its own status, and the lock is released
#   got      those whom it is for got it once, nobody else did; then as "on"
#   stays    the command stays stopped, the lock stays held; SIGCONT for quorlock continues the command
#   later    the same, but then the command dies of the signal: 128+n
#   goes on  the stopped command is continued; then as "on"
#   halts    those whom it is for are stopped and quorlock says so; SIGCONT for quorlock continues them
#   pauses   quorlock is stopped and nobody else notices; SIGCONT continues it
#   128+n    quorlock's status, n the signal: the command ended, then the rest of its group, and the lock is released
#   75 71    quorlock's status; at 75 the group was dead before another client could get the lock
#   got75   the same, but before its end the group got the signal
#   outlives the command goes on without its lock until quorlock is continued: a case that the manual calls unprotected
#   dies     quorlock dies of the signal, and the command's group with it at once; the lock ends with its lease only
TABLE = """
QUORLOCK           COMMAND  TO        ends   calm   CONT     TSTP    tty    PIPE   CHLD   STOP      KILL      fatal
waits, held        none     quorlock  128+n  on     on       pauses  on     on     on     pauses    dies      dies
waits, held        none     job       128+n  on     on       pauses  on     on     on     pauses    dies      dies
waits, held        none     command   not possible: there is neither command nor warden yet
waits, no node     none     quorlock  128+n  on     on       pauses  on     on     on     pauses    dies      dies
starts             plain    quorlock  128+n  on     on       halts   on     on     on     pauses    dies      dies
starts             plain    command   128+n  on     on       halts   halts  on     on     halts     128+n     128+n
starts             plain    warden    on     on     on       on      on     on     on     on        71        71
starts             notes    quorlock  not possible: it is no command yet, and has no handlers
holds              notes    quorlock  got    got    got      got     on     on     on     pauses    dies      dies
holds              notes    command   got    got    got      got     got    got    got    halts     128+n     got
holds              notes    group     got    got    got      got     got    got    got    halts     128+n     got
holds              notes    job       got    got    got      got     on     on     on     pauses    dies      dies
holds              notes    warden    on     on     on       on      on     on     on     on        on        on
holds, 2nd warden  notes    quorlock  got    got    got      got     on     on     on     pauses    dies      dies
holds, 2nd warden  notes    warden    on     on     on       on      on     on     on     on        on        on
holds              plain    quorlock  128+n  on     on       halts   on     on     on     pauses    dies      dies
holds              plain    command   128+n  on     on       halts   halts  128+n  on     halts     128+n     128+n
holds              plain    group     128+n  on     on       halts   halts  128+n  on     halts     128+n     128+n
holds              plain    job       128+n  on     on       halts   on     on     on     pauses    dies      dies
holds              plain    warden    on     on     on       on      on     on     on     on        on        on
holds              ignores  quorlock  on     on     on       on      on     on     on     pauses    dies      dies
holds              ignores  command   on     on     on       on      on     on     on     halts     128+n     on
holds              ignores  group     on     on     on       on      on     on     on     halts     128+n     on
holds              ignores  job       on     on     on       on      on     on     on     pauses    dies      dies
holds              stopped  quorlock  128+n  stays  goes on  stays   stays  stays  stays  pauses    dies      dies
holds              stopped  command   later  stays  goes on  stays   stays  later  stays  stays     128+n     later
holds              stopped  group     later  stays  goes on  stays   stays  later  stays  stays     128+n     later
holds              stopped  job       128+n  stays  goes on  stays   stays  stays  stays  pauses    dies      dies
holds              stopped  warden    stays  stays  stays    stays   stays  stays  stays  stays     stays     stays
late               notes    quorlock  got    got    got      got     on      on      on      pauses  dies      dies
late               plain    quorlock  128+n  on     on       halts   on      on      on      pauses  dies      dies
late               stopped  quorlock  128+n  stays  goes on  stays   stays   stays   stays   pauses  dies      dies
late               notes    warden    on     on     on       on      on      on      on      on      on        on
loses              notes    quorlock  got75  got75  got75    got75   75     75     75     75        dies      dies
loses              notes    command   got75  got75  got75    got75   got75  got75  got75  75        75        got75
loses              notes    group     got75  got75  got75    got75   got75  got75  got75  75        75        got75
loses              notes    job       got75  got75  got75    got75   75     75     75     75        dies      dies
loses              notes    warden    75     75     75       75      75     75     75     75        75        75
loses              left     quorlock  got75  got75  got75    got75   75     75     75     75        dies      dies
loses              left     group     got75  got75  got75    got75   got75  got75  got75  75        75        got75
loses              left     warden    75     75     75       75      75     75     75     75        75        75
loses              left     command   not possible: it has ended
stopped            notes    quorlock  got    got    got      on      on     on     on     on        dies      dies
stopped            notes    group     got    got    got      got     got    got    got    on        128+n     got
stopped            plain    quorlock  128+n  on     on       on      on     on     on     on        dies      dies
stopped            plain    command   128+n  on     on       on      on     128+n  on     on        128+n     128+n
stopped            plain    job       128+n  on     on       on      on     on     on     on        dies      dies
stopped            plain    warden    on     on     on       on      on     on     on     on        on        on
stopped long       plain    quorlock  75     75     on       75      75     75     75     75        dies      dies
stopped long       plain    command   75     75     75       75      75     75     75     75        75        75
stopped long       plain    group     75     75     75       75      75     75     75     75        75        75
stopped long       plain    warden    75     75     75       75      75     75     75     outlives  outlives  75
stopped long       stopped  quorlock  75     75     goes on  75      75     75     75     75        dies      dies
stopped long       notes    quorlock  75     75     got      75      75     75     75     75        dies      dies
releases           left     quorlock  on     on     on       on      on     on     on     pauses    dies      dies
releases           left     group     got    got    got      got     got    got    got    on        on        got
releases           left     job       on     on     on       on      on     on     on     pauses    dies      dies
releases           left     warden    not possible: command and warden have ended
"""
WORDS = {"128+n": "ends", "75": "lost", "got75": "lost", "71": "no_warden", "goes on": "goes_on"}
SLOW = {"late": 9, "loses": 3, "stopped long": 3}  # leases in seconds


class Cell(World):
    def __init__(self, cell, attempt):
        self.quorlock_is, self.how, self.to = cell.row
        self.n, self.word, self.column = number_of(cell.column), cell.word, cell.column
        lasts = cell.slow and (self.n != signal.SIGCONT or self.quorlock_is != "stopped long" or self.to != "quorlock")
        lease_s = SLOW[cell.row[0]] * 2 ** min(attempt // 2, 2) if lasts else LEASE_S
        super().__init__("-".join((*cell.row, cell.column)).replace(" ", "_"), lease_s)
        self.extra, self.over_s, self.traced = set(), None, []

    def run(self):
        try:
            self.arrange()
        except AssertionError:
            self.excuse()
            raise
        self.target = {"command": "outer", "group": "outer"}.get(self.to, self.to)
        self.send()
        if self.quorlock_is == "stopped":
            self.go_on()
        at_once = self.target == "quorlock" and self.n in (signal.SIGKILL, signal.SIGCONT)
        if self.quorlock_is == "stopped long" and not at_once:
            self.outlast()
        getattr(self, WORDS.get(self.word, self.word))()

    # ---- the state ----

    def arrange(self):
        start = self.quorlock_is
        if start in ("releases", "waits, no node"):
            self.use_own_server()
        if start.startswith("waits") or start == "starts":
            self.arrange_wait()
            if start == "starts":
                self.arrange_start()
            return
        how = {"left": "leaves", "stopped": "plain"}.get(self.how, self.how)
        beats = ["beats"] if self.quorlock_is in SLOW else []
        self.start(how, "family", *beats)
        self.up("outer", "inner", "apart")
        if self.how == "stopped":
            os.killpg(self.pid["outer"], signal.SIGSTOP)
            self.wait("the command is stopped", lambda: self.is_stopped("outer") and self.is_stopped("inner"))
            self.wait("quorlock says so", lambda: "the command is stopped" in self.said())
        self.pid["warden"] = self.wait("a warden", self.warden)
        {"holds": lambda: None, "holds, 2nd warden": self.replace_warden, "late": self.arrange_failure,
         "loses": self.arrange_loss, "stopped": self.arrange_stop, "stopped long": self.arrange_stop,
         "releases": self.release_unanswered}[start]()

    def start(self, *how):
        """quorlock, alone or between two others in one process group."""
        words = self.run_words(*how)
        if self.quorlock_is in ("late", "loses"):
            self.use_own_user()
        if self.to != "job":
            self.pid["quorlock"] = self.spawn(words, 0)
            return
        a, b = os.pipe(), os.pipe()
        group = self.spawn(self.supervised("feeder", "notes"), 0, stdout=a[1])
        self.pid["quorlock"] = self.spawn(words, group, stdin=a[0], stdout=b[1])
        self.spawn(self.supervised("reader", "notes"), group, stdin=b[0])
        for fd in (*a, *b):
            os.close(fd)
        self.pid["job"] = group
        self.up(*JOB)

    def arrange_wait(self):
        if self.quorlock_is == "waits, no node":
            self.servers[0].freeze()
        else:
            self.hold()
        self.start(*(["plain", "family"] if self.quorlock_is != "starts" else ["plain"]))
        self.wait("it waits", lambda: "waiting for" in self.said())

    def arrange_start(self):
        """Holds quorlock and the new warden where the latter has just been made. All of it is undone by send()."""
        quorlock = self.pid["quorlock"]
        trace(PTRACE_SEIZE, quorlock, PTRACE_O_TRACEFORK)
        self.traced = [quorlock]
        self.let_in()
        for name in ("outer", "warden"):
            self.pid[name] = wait_for_fork(quorlock)
            if name == "outer":
                trace(PTRACE_DETACH, self.pid[name])
                trace(PTRACE_CONT, quorlock)
        self.traced.append(self.pid["warden"])

    def arrange_failure(self):
        self.refuse_renewals()
        self.wait("a renewal fails", lambda: "reached 0 of 3 nodes" in self.said())

    def arrange_loss(self):
        self.over_s = self.lose()
        if self.how == "left":
            self.wait("the command has ended", lambda: self.is_gone(self.pid["outer"]))
        self.extra.add(signal.SIGCONT)

    def arrange_stop(self):
        self.kill("quorlock", signal.SIGSTOP)
        self.wait("quorlock is stopped", lambda: self.is_stopped("quorlock"))
        self.over_s = self.lock_ends_s()

    def replace_warden(self):
        first = self.pid["warden"]
        os.kill(first, signal.SIGKILL)
        self.pid["warden"] = self.wait("another warden", lambda: self.warden() not in (None, first) and self.warden())
        self.wait("quorlock says so", lambda: "another one runs now" in self.said())

    # ---- the signal ----

    def send(self):
        if self.quorlock_is == "loses" and self.is_gone(self.pid["inner"]):
            raise Disturbed("the grace was over before the signal")
        pid = self.pid[self.target]
        if self.to in ("job", "group"):
            os.killpg(pid, self.n)
        else:
            os.kill(pid, self.n)
        for traced in reversed(self.traced):
            try:
                trace(PTRACE_DETACH, traced)
            except OSError:  # SIGKILL ended it
                pass
        self.traced = []
        if self.quorlock_is == "late":
            self.use_own_user()  # its renewals are accepted again

    def receivers(self):
        if self.to == "warden":
            return set()
        if self.how == "left":
            return {"inner"}
        return {"outer"} if self.to == "command" else {"outer", "inner"}

    def go_on(self):
        """Continues quorlock, or its job. Handlers run before: SIGCONT takes back a stop that is on its way."""
        if self.to == "job" or (self.word == "got" and self.target == "outer"):
            self.ping()
        self.extra.add(signal.SIGCONT)
        if self.to == "job" and self.n != signal.SIGKILL:
            os.killpg(self.pid["job"], signal.SIGCONT)
        else:
            self.kill("quorlock", signal.SIGCONT)

    def outlast(self):
        """The lease ends while quorlock is stopped; then quorlock is continued."""
        if self.word != "outlives":
            self.wait("the command's group is gone", self.group_is_gone)
        self.wait("the lock has ended", self.is_free)
        if self.word == "outlives":
            over_s = now_s()
            self.wait("the command goes on", lambda: self.beats_s()[-1] > over_s)
        self.check(self.is_stopped("quorlock"), "quorlock is not stopped any more")
        self.go_on()

    # ---- what must happen ----

    def check_seen(self, word):
        """Each process has got what was for it, once, and nothing else."""
        for name in ("outer", "inner", "apart", *JOB):
            wanted = {self.n} if word == "got" and name in self.receivers() else set()
            if name in JOB and self.to == "job" and self.n not in UNSEEN:
                wanted = {self.n}
            extra = self.extra | ({signal.SIGCHLD} if name == "outer" and self.n in UNSEEN else set())
            seen = {n: times for n, times in self.seen.get(name, {}).items() if n not in (PING, 0) and times}
            for n, times in seen.items():
                self.check(n in extra or (n in wanted and times == 1), f"{name} got signal {n} {times} times")
            self.check(wanted <= set(seen), f"{name} has not got the signal")

    def wait_for_end(self, status):
        pid = self.pid["quorlock"]
        self.wait("quorlock ends", lambda: pid in self.status)
        if self.status[pid] == 75 != status and self.quorlock_is in SLOW and self.stood_s >= STOOD_STILL_S:
            raise Disturbed("the short lease was lost while the machine stalled")
        self.check(self.status[pid] == status, f"status {self.status[pid]}, not {status}")

    def excuse(self):
        """The cell proves nothing where its short lease was lost before the state was there."""
        if self.quorlock_is in SLOW and 'lost "' in self.said() and self.stood_s >= STOOD_STILL_S:
            raise Disturbed("the short lease was lost while the machine stalled") from None

    def end(self, word="on"):
        """All is as if there had been no signal: the command goes on and ends, and the lock is released."""
        self.settle()
        survivors = ["inner", "apart"]
        if self.quorlock_is == "releases":
            self.ping()
            self.servers[0].thaw()
            self.wait_for_end(3)
            if self.to == "group" and self.n == signal.SIGKILL:
                survivors.remove("inner")
        else:
            if self.quorlock_is.startswith("waits"):
                self.check(set(self.pid) <= {"quorlock", "job", *JOB}, "the command runs without a lock")
                self.let_in()
                self.up("outer", "inner", "apart")
            elif self.quorlock_is == "starts":
                self.up("outer")
                survivors = []
            self.ping()
            self.wait("the lock is held", self.is_held)
            self.kill("outer", END)
            self.wait_for_end(6)
        self.check_seen(word)
        self.check_nothing_left(*survivors, *(JOB if self.to == "job" else ()))

    def on(self):
        self.end()

    def got(self):
        for name in self.receivers():
            self.wait(f"{name} gets the signal", lambda name=name: self.count(name, self.n))
        self.end("got")

    def stays(self):
        self.settle()
        if self.column == "KILL" and self.to == "warden":
            self.wait("another warden", self.warden)
        self.check(self.is_stopped("outer") and self.is_stopped("inner"), "the command was continued")
        self.check(self.is_held(), "the lock is not held")
        self.goes_on_after_cont()

    def goes_on_after_cont(self):
        self.go_on()
        self.goes_on()

    def goes_on(self):
        self.wait("the command is continued", lambda: not self.is_stopped("outer"))
        self.end()

    def later(self):
        self.settle()
        self.check(self.is_stopped("outer"), "the command was continued")
        self.check(self.is_held(), "the lock is not held")
        self.go_on()
        self.ends()

    def halts(self):
        names = [name for name in self.receivers() if name in self.pid]
        self.wait("the command is stopped", lambda: all(self.is_stopped(name) for name in names))
        self.wait("quorlock says so", lambda: "the command is stopped" in self.said())
        self.check(not self.is_stopped("quorlock"), "quorlock is stopped too")
        self.goes_on_after_cont()

    def pauses(self):
        self.wait("quorlock is stopped", lambda: self.is_stopped("quorlock"))
        if self.quorlock_is == "holds" and self.how != "stopped":
            self.check(not self.is_stopped("outer"), "the command is stopped too")
        self.go_on()
        self.wait("quorlock goes on", lambda: not self.is_stopped("quorlock"))
        self.end()

    def ends(self):
        self.wait_for_end(128 + self.n)
        survivors = []
        if self.quorlock_is.startswith("waits"):
            self.check(set(self.pid) <= {"quorlock", "job", *JOB}, "the command was started")
            if self.servers == SERVERS:
                self.check(self.values() == [b"another"] * 3, "the other client has lost its lock")
            self.let_in()
        elif self.quorlock_is != "starts":
            self.check(self.is_gone(self.pid["outer"]), "the command runs")
            survivors = ["apart"]
        self.check_nothing_left(*survivors, *(JOB if self.to == "job" else ()))

    def no_warden(self):
        self.wait_for_end(71)
        self.check_nothing_left()

    def lost(self):
        if self.word.startswith("got"):
            self.wait_in_grace(self.n, *self.receivers())
        if self.quorlock_is == "loses":
            self.wait("the command's group is gone", self.group_is_gone)
            self.kill("quorlock", signal.SIGCONT)
        self.wait_for_end(75)
        self.check_in_time(self.over_s)
        self.check_seen("got" if self.word.startswith("got") else "on")
        self.check_nothing_left("apart", *(JOB if self.to == "job" else ()))

    def outlives(self):
        self.wait_for_end(75)
        self.check_nothing_left("apart")

    def dies(self):
        self.wait_for_end(-self.n)
        survivors = ["apart"]
        if self.quorlock_is.startswith("waits"):
            survivors = []
            self.let_in()
        elif self.quorlock_is == "releases":
            survivors.append("inner")
            self.servers[0].thaw()
        else:
            group = [name for name in ("outer", "inner", "warden") if name in self.pid]
            self.wait("the command's group is gone", lambda: all(self.is_gone(self.pid[name]) for name in group))
            if self.quorlock_is == "starts":
                survivors = []
            if self.over_s is None:
                self.check(self.is_held(), "the lock does not end with its lease")
            elif self.quorlock_is in SLOW and self.n == signal.SIGKILL:
                self.check_in_time(self.over_s)
            self.let_in()
        self.check_nothing_left(*survivors, *(JOB if self.to == "job" and self.n != signal.SIGKILL else ()))


if __name__ == "__main__":
    main(TABLE, CLASSES, Cell, SLOW)
