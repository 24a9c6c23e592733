# SPDX-License-Identifier: BSD-3-Clause
"""Programs that start others, under quorlock run: what test_programs.py runs, and what quorlock(1) says of them.

--subreaper and --group end change nothing of a row; with --contain pid and --contain cgroup all of them end.
"""
import dataclasses

ENDS, GOES_ON, KILLED, VARIES = "ends", "goes on", "is killed", "varies"


@dataclasses.dataclass
class Program:
    name: str
    words: tuple  # {work} is the path of a script
    loss: str = ENDS  # what the script does when the lock is lost
    term: str = ENDS  # and when quorlock gets TERM and passes it on; KILLED: it does not get it
    needs: str = ""  # its program; else the first word


def bwrap(*options, **more):
    return Program(" ".join(("bwrap", *options)), ("bwrap", "--dev-bind", "/", "/", *options, "{work}"), **more)


def in_script(name, text, **more):
    return Program(name, ("sh", "-c", f"{text}; exit"), **more)


LEFT = {"loss": GOES_ON, "term": GOES_ON}
PROGRAMS = [
    Program("sh, with & and wait", ("sh", "-c", "{work} & wait")),
    Program("bash, the same with set -m", ("bash", "-c", "set -m; {work} & wait"), **LEFT),
    Program("nohup", ("nohup", "{work}")),
    Program("flock", ("flock", "lock", "{work}")),
    Program("timeout", ("timeout", "1h", "{work}")),
    in_script("timeout, in a script", "timeout 1h {work}", needs="timeout", **LEFT),
    in_script("timeout --foreground, in a script", "timeout --foreground 1h {work}", needs="timeout"),
    Program("setsid -w", ("setsid", "-w", "{work}"), **LEFT),
    in_script("xargs -P", "echo {work} | xargs -P 2 -n 1 sh -c", needs="xargs"),
    in_script("make -j", "printf 'all:\\n\\t{work}\\n' >m; make -s -j2 -f m", needs="make"),
    in_script("ninja", "printf 'rule r\\n command = {work}\\nbuild all: r\\n' >build.ninja; ninja --quiet", needs="ninja", loss=GOES_ON),
    # It sends signals to its job one after the other, and may be gone before the job has got one.
    Program("GNU parallel", ("parallel", "{work}", ":::", ""), loss=GOES_ON, term=VARIES),
    bwrap(),
    bwrap("--unshare-pid"),
    bwrap("--new-session", **LEFT),
    bwrap("--unshare-pid", "--new-session", **LEFT),
    bwrap("--die-with-parent", "--new-session", term=KILLED),
    in_script("tmux, a server of its own", "tmux -S t -f /dev/null new -d '{work}; tmux -S t wait -S w'; tmux -S t wait w", needs="tmux", **LEFT),
    Program("script -c", ("script", "-qefc", "{work}", "/dev/null")),
    Program("sudo -u, by root", ("sudo", "-n", "-u", "nobody", "{work}")),
    Program("su -c", ("su", "-s", "/bin/sh", "-c", "{work}", "nobody"), **LEFT),
    Program("su --session-command", ("su", "-s", "/bin/sh", "--session-command", "{work}", "nobody")),
    Program("runuser -u", ("runuser", "-u", "nobody", "{work}")),
    in_script("start-stop-daemon --background", "start-stop-daemon --start --background --name none --startas {work}; "
              "while [ ! -e let_go ]; do sleep 0.02; done", needs="start-stop-daemon", **LEFT),
    Program("Python's start_new_session=True", ("python3", "-c", "import subprocess; subprocess.run('{work}', start_new_session=True)"), **LEFT),
    Program("faketime", ("faketime", "-f", "-1d", "{work}")),
]
