#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""cluster/chaos with clients of others: test_clients.py BUILD_BIN [TEST...]

The examples of cluster/examples must be judged sound under faults that no lock of theirs can fail at, and each way to
fail must be told for what it is. The runs mostly wait, so they go side by side.
"""
import concurrent.futures
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(0, str(ROOT / "cluster" / "chaos.d"))
import history  # noqa: E402
import judge  # noqa: E402
import recorder  # noqa: E402
from system import now_us  # noqa: E402

LIMIT_S = 200
SIDE_BY_SIDE = 4
# What our own client gets without them.
ALIKE = ("--lease-ms", "500-1000", "--hold-ms", "2-150", "--max-lease-ms", "2000")
CALM = ("--seconds", "4", "--seed", "7", "--clients", "3", "--keys", "1", "--faults", "kill-client,reset",
        *ALIKE)
BIN, FOLDER, RUNS = "", "", {}
POOL = concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE)

# What the bad clients of these tests begin with.
PRELUDE = """
import json, os, signal, socket, sys, time
KEY = os.environ["QUORLOCK_CHAOS_KEYS"].split(",")[0]
NODE = os.environ["QUORLOCK_CHAOS_NODES"].split(",")[0].split(":")
def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)
    return int((sys.stdin.readline() or sys.exit(1)).split()[-1])
"""


def client(name, body):
    """The command line of a client with this body after the greeting."""
    path = os.path.join(FOLDER, f"{name}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PRELUDE + textwrap.dedent(body))
    return f"{sys.executable} {path}"


def chaos(*words, path=os.environ["PATH"]):
    return subprocess.run([str(ROOT / "cluster" / "chaos"), "--bin", BIN, *words], stdin=subprocess.DEVNULL,
                          env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def run(name, *words, **more):
    """One run with a history: (status, output, verdict or None, the programs that said hello)."""
    path = os.path.join(FOLDER, f"{name}.jsonl")
    done = chaos(*CALM, "--history", path, *words, **more)
    verdict, programs = None, set()
    if os.path.exists(path):
        check = subprocess.run([str(ROOT / "cluster" / "check"), "--json", path], capture_output=True, text=True,
                               timeout=LIMIT_S, check=False)
        verdict = json.loads(check.stdout) if check.stdout else None
        with open(path, encoding="utf-8") as file:
            programs = {line["program"] for line in map(json.loads, file) if "program" in line}
    return done.returncode, done.stdout + done.stderr, verdict, programs


def missing(tool):
    """Skips the test without the tool; in CI, where all tools are, it fails."""
    if shutil.which(tool):
        return None
    if os.environ.get("CI", "") not in ("", "0", "false"):
        raise AssertionError(f"no {tool} here; scripts/setup --for interop installs it")
    return f"no {tool} here"


def examples():
    """{name: (command line or None, why it cannot run)}"""
    folder = ROOT / "cluster" / "examples"
    found = {"example.c": (os.path.join(BIN, "examples", "chaos_example"), None),
             "example.py": (f"{sys.executable} {folder}/example.py", None),
             "example.js": (f"node {folder}/example.js", missing("node")),
             "Example.java": (f"java -XX:-UsePerfData {folder}/Example.java", missing("java")),
             "example.sh": (f"bash {folder}/example.sh", missing("redis-cli")),
             "example.go": (f"{FOLDER}/example_go", missing("go")),
             "example.cpp": (f"{FOLDER}/example_cpp", missing("c++")),
             # scripts/setup installs no Rust.
             "example.rs": (f"{FOLDER}/example_rs", None if shutil.which("rustc") else "no rustc here")}
    compilers = {"go": ("go", "build"), "cpp": ("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror"), "rs": ("rustc", "-Dwarnings")}
    for ending, words in compilers.items():
        if not found[f"example.{ending}"][1]:
            subprocess.run([*words, "-o", f"{FOLDER}/example_{ending}", f"{folder}/example.{ending}"], check=True, timeout=LIMIT_S)
    return {name: (command, why) for name, (command, why) in found.items()}


def copy_of_programs():
    """In a folder whose name has a blank."""
    folder = Path(FOLDER, "a b")
    for name in ("bin/chaos_client", "bin/chaos_proxy", "bin/quorlock", "lib/source_shim.so", "lib/clock_shim.so"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.join(os.path.dirname(BIN), name), folder / name)
    return str(folder / "bin")


def path_without_compilers():
    """A PATH with all programs of this one but the compilers."""
    folder = Path(FOLDER, "programs")
    folder.mkdir()
    for place in os.environ["PATH"].split(":"):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name not in ("cc", "gcc", "clang") and not (folder / name).is_symlink():
                (folder / name).symlink_to(os.path.join(place, name))
    return str(folder)


def begin_runs():
    """All runs of this file, so that they go side by side."""
    def begin(name, *words, **more):
        RUNS[name] = POOL.submit(run, name, *words, **more)

    # It waits longest: first.
    begin("hangs", "--clients", "1", "--client", client("hangs", """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("hello", version=1)
        while True:
            say("invoke", key=KEY)
            say("granted", key=KEY, deadline_us=now_us() + 400000)
            say("released", key=KEY)
            time.sleep(0.05)
        """))
    for name, (command, why) in examples().items():
        RUNS[name] = POOL.submit(run, name, "--client", command) if not why else why
    begin("mixed", "--clients", "4", "--client", os.path.join(BIN, "chaos_client"), "--client",
          f"{sys.executable} {ROOT}/cluster/examples/example.py")
    begin("threads", "--threads", "3")
    begin("plain", "--plain", "--client", f"{sys.executable} {ROOT}/cluster/examples/example.py")
    begin("session", "--plain", "--client", client("session", f"""
        import subprocess
        lingers = subprocess.Popen(["sleep", "300"], start_new_session=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open({FOLDER + "/lingers"!r}, "a", encoding="utf-8") as file:
            print(lingers.pid, file=file)
        os.execv(sys.executable, [sys.executable, {str(ROOT / "cluster/examples/example.py")!r}])
        """))
    begin("not built", "--bin", f"{FOLDER}/nothing", "--faults", "kill-client,split,clock-strobe", "--client",
          f"{sys.executable} {ROOT}/cluster/examples/example.py")
    begin("no compiler", "--bin", f"{FOLDER}/nothing", "--faults", "kill-client,split,clock-strobe,reset", "--client",
          f"{sys.executable} {ROOT}/cluster/examples/example.py", path=path_without_compilers())
    begin("blank", "--bin", copy_of_programs(), "--faults", "clock-strobe")
    begin("never", "--max-lease-ms", "1000", "--client", client("never", """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        say("hello", version=1)
        while True:
            say("invoke", key=KEY)
            time.sleep(0.1)
            say("refused", key=KEY, status="NEVER")
        """))
    begin("takes", "--client", client("takes", """
        stop = []
        signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
        say("hello", version=1)
        while not stop:
            say("invoke", key=KEY)
            say("granted", key=KEY, deadline_us=now_us() + 300000)
            value = say("read", key=KEY)
            time.sleep(0.15)  # others read the same meanwhile
            say("write", key=KEY, value=value + 1)
            say("released", key=KEY)
        """))
    begin("ends", "--clients", "2", "--client", client("ends", """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        say("hello", version=1)
        for _ in range(40):
            say("invoke", key=KEY)
            say("refused", key=KEY)
            time.sleep(0.05)
        sys.exit("out of\\tbreath")
        """))
    crashes = """
        def go(*_):
            os.kill(os.getpid(), signal.SIGSEGV)
        signal.signal(signal.SIGTERM, go)
        say("hello", version=1)
        while True:
            say("invoke", key=KEY)
            say("granted", key=KEY, deadline_us=now_us() + 400000)
            say("released", key=KEY)
            time.sleep(0.05)
        """
    begin("crashes", "--clients", "1", "--faults", "reset", "--client", client("crashes", crashes))
    begin("no handler", "--clients", "1", "--faults", "reset", "--client",
          client("no_handler", crashes.replace("signal.SIGTERM, go", "signal.SIGTERM, signal.SIG_DFL")))
    begin("windows", "--client", f"""sh -c 'trap "" TERM; {sys.executable} {ROOT}/cluster/examples/example.py | sed -u "s/$/\\r/"'""")
    begin("banner", "--client", client("banner", """
        print("Welcome to Lock 3")
        say("hello", version=1)
        """))
    # A log that no memory can hold; it takes no room.
    begin("talks", "--clients", "1", "--client", client("talks", """
        say("hello", version=1)
        os.ftruncate(2, 1 << 40)
        time.sleep(0.2)
        sys.exit("at long last")
        """))
    begin("late", "--client", client("late", """
        say("hello", version=1)
        say("invoke", key=KEY)
        say("granted", key=KEY, deadline_us=time.time_ns() // 1000)
        """))
    elsewhere = client("source", """
        say("hello", version=1)
        server = socket.create_connection(NODE, source_address=("127.0.0.1", 0))
        time.sleep(60)
        """)
    begin("source", "--client", elsewhere)
    begin("source of a child", "--client", f"sh -c '{elsewhere}; exit 1'")


class Examples(unittest.TestCase):
    def assert_sound(self, name):
        if isinstance(RUNS[name], str):
            self.skipTest(RUNS[name])
        status, output, verdict, programs = RUNS[name].result()
        self.assertEqual(status, 0, output)
        self.assertGreaterEqual(verdict["counts"]["grants"], 5, output)
        self.assertGreaterEqual(verdict["counts"]["writes"], 5, output)
        self.assertRegex(output, "verdict: (sound|held; )")
        return verdict, programs

    def test_c(self):
        verdict, programs = self.assert_sound("example.c")
        self.assertEqual(programs, {"example.c"})
        self.assertEqual(verdict["counts"]["fenced grants"], verdict["counts"]["grants"])

    def test_python(self):
        self.assertEqual(self.assert_sound("example.py")[1], {"example.py"})

    def test_javascript(self):
        self.assertEqual(self.assert_sound("example.js")[1], {"example.js"})

    def test_java(self):
        self.assertEqual(self.assert_sound("Example.java")[1], {"Example.java"})

    def test_go(self):
        self.assertEqual(self.assert_sound("example.go")[1], {"example.go"})

    def test_cpp(self):
        self.assertEqual(self.assert_sound("example.cpp")[1], {"example.cpp"})

    def test_rust(self):
        self.assertEqual(self.assert_sound("example.rs")[1], {"example.rs"})

    def test_shell(self):
        self.assertEqual(self.assert_sound("example.sh")[1], {"example.sh"})

    def test_line_ends_of_windows(self):
        self.assertEqual(self.assert_sound("windows")[1], {"example.py"})

    def test_several_programs(self):
        programs = self.assert_sound("mixed")[1]
        self.assertEqual({program.split()[0] for program in programs}, {"quorlock", "example.py"})

    def test_threads(self):
        """Each thread of both programs asks for the lock."""
        programs = self.assert_sound("threads")[1]
        self.assertEqual({"Python" in program for program in programs}, {True, False})
        with open(os.path.join(FOLDER, "threads.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual({(line["client"], line["user"]) for line in lines if line["event"] == "invoke"},
                         {(client, user) for client in ("c1", "c2", "c3") for user in (1, 2, 3)})
        self.assertEqual(chaos("--threads", "2", "--users", "2", "--plan").returncode, 64)

    def test_a_folder_with_a_blank(self):
        """What is preloaded must be found there: else no clock moves, and clients are taken for unbound ones."""
        self.assert_sound("blank")

    def test_without_a_build(self):
        self.assert_sound("not built")
        output = RUNS["not built"].result()[1]
        self.assertIn("quorlock is not built, and not needed: the C compiler made what is preloaded", output)
        self.assertNotIn("is not built)", output)
        self.assert_sound("no compiler")
        output = RUNS["no compiler"].result()[1]
        for text in ("there is no C compiler: nothing is preloaded", "left out: clock-strobe (the clock shim is not built)",
                     "left out: split (clients have no addresses of their own here)", "left out: reset (the proxy is not built)"):
            self.assertIn(text, output)

    def test_plain_processes(self):
        self.assert_sound("plain")

    def test_what_a_client_started_in_a_session_of_its_own_ends_with_the_run(self):
        self.assert_sound("session")
        with open(os.path.join(FOLDER, "lingers"), encoding="utf-8") as file:
            pids = file.read().split()
        self.assertGreaterEqual(len(pids), 1)
        self.assertEqual([pid for pid in pids if os.path.exists(f"/proc/{pid}")], [])


class Bad(unittest.TestCase):
    def ended(self, name):
        return RUNS[name].result()

    def test_a_client_that_takes_what_it_did_not_get(self):
        status, output, verdict, _ = self.ended("takes")
        for seed in range(8, 13):
            # On a busy machine each may have written before the next began.
            if verdict["violations"].get("lost-update", 0) > 0:
                break
            status, output, verdict, _ = run("takes", "--seed", str(seed), "--client",
                                             f"{sys.executable} {os.path.join(FOLDER, 'takes.py')}")
        self.assertEqual(status, 1, output)
        self.assertGreaterEqual(verdict["violations"].get("overlap", 0), 3, output)
        self.assertGreaterEqual(verdict["violations"].get("lost-update", 0), 1, output)
        self.assertGreaterEqual(verdict["counts"]["stale writes accepted"], 1)

    def test_a_client_that_never_gets_the_lock(self):
        status, output, _, _ = self.ended("never")
        self.assertEqual(status, 1, output)
        self.assertIn("there was no grant at all", output)

    def test_a_client_that_does_not_end(self):
        status, output, verdict, _ = self.ended("hangs")
        self.assertEqual(status, 1, output)
        self.assertIn("c1 does not end within 20 s of SIGTERM", output)
        self.assertEqual(verdict["violations"], {"client": 1}, output)
        self.assertIn("1 x client: a client ended by itself, or did not end well when asked to", output)

    def test_a_client_that_ends_by_itself_is_replaced(self):
        status, output, verdict, _ = self.ended("ends")
        self.assertEqual(status, 1, output)
        self.assertIn("ended with status 1: out of breath", output)  # the tab is none any more
        self.assertGreaterEqual(verdict["violations"]["client"], 2, output)
        self.assertNotIn("library", output)
        self.assertGreaterEqual(verdict["counts"]["operations"], 81, output)

    def test_a_client_that_ends_badly(self):
        status, output, verdict, _ = self.ended("crashes")
        self.assertEqual((status, verdict["violations"]), (1, {"client": 1}), output)
        self.assertIn("c1 ended by signal 11 (Segmentation fault) when it was asked to end: it says nothing", output)
        self.assertIn("verdict: VIOLATED, 1 time: 1 client ended badly", output)

    def test_a_client_that_handles_no_signal(self):
        status, output, verdict, _ = self.ended("no handler")
        self.assertEqual((status, verdict["violations"]), (1, {"client": 1}), output)
        self.assertIn('c1 ended by signal 15 (Terminated) when it was asked to end (it must finish its operation and end with '
                      'status 0; without signals, say "stop":"answer" in hello)', output)

    def test_a_client_that_begins_with_a_banner(self):
        status, output, _, _ = self.ended("banner")
        self.assertEqual(status, 65, output)
        self.assertRegex(output, r"chaos: client c\d, line 1: 'Welcome to Lock 3' is no JSON object: standard output is for the "
                                 "history alone, write everything else, such as a banner, to standard error")

    def test_a_client_that_never_stops_talking(self):
        status, output, _, _ = self.ended("talks")
        self.assertEqual(status, 1, output)
        self.assertIn("at long last", output)
        self.assertNotIn("Traceback", output)

    def test_a_fault_of_the_harness_says_nothing_about_the_lock(self):
        # Inside, without what the process outside passes on.
        done = subprocess.run([str(ROOT / "cluster" / "chaos"), "--bin", BIN, "--seed", "7"], stdin=subprocess.DEVNULL,
                              env={**os.environ, "QUORLOCK_CHAOS_INNER": f"plain:{FOLDER}"}, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertIn("KeyError", done.stderr)

    def test_a_deadline_by_another_clock(self):
        status, output, _, _ = self.ended("late")
        self.assertEqual(status, 65, output)
        self.assertRegex(output, r"chaos: client c\d, line 3: deadline_us \d+ is more than QUORLOCK_CHAOS_MAX_LEASE_MS "
                                 r"\(2000 ms\) away from \d+, now: give microseconds of CLOCK_MONOTONIC")

    def test_a_client_that_faults_would_pass_by(self):
        for name in ("source", "source of a child"):
            status, output, _, _ = self.ended(name)
            if "no packet filter here" in output or "no namespace" in output:
                self.skipTest("faults do not part clients here")
            self.assertEqual(status, 65, output)
            self.assertIn("connects from 127.0.0.1, not from its own address 127.0.3.", output)
            self.assertIn("bind its sockets to QUORLOCK_CHAOS_SOURCE", output)

    def test_a_client_that_does_not_begin(self):
        done = chaos(*CALM, "--client", client("dead", "sys.exit('no such lock server')"))
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertRegex(done.stderr, r"chaos: client c\d ended with status 1: no such lock server\n")

    def test_no_program(self):
        for words, text in (("/nonexistent/lock --fast", "'/nonexistent/lock' is no program that can be run"),
                            ("", "'' is no program"), ("lock 'half", "cannot be read as a command line: No closing")):
            done = chaos("--client", words)
            self.assertEqual((done.returncode, done.stdout), (64, ""))
            self.assertIn(text, done.stderr)

    def test_a_script_with_the_line_ends_of_windows(self):
        path = Path(FOLDER, "lines of windows.sh")
        path.write_bytes(b"#!/bin/sh\r\nexit 0\r\n")
        path.chmod(0o755)
        done = chaos("--client", f"'{path}'")
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertIn(f"the lines of {path} end as on Windows, so the interpreter in the first one is not found; remedy: "
                      f"sed -i 's/\\r$//' '{path}'", done.stderr)

    def test_the_plan_is_the_same_for_all(self):
        ours, theirs = (chaos("--plan", "--seed", "5", "--seconds", "30", "--faults", "all", *ALIKE, *more) for more in ((), ("--client", "true")))
        self.assertEqual((ours.returncode, theirs.returncode), (0, 0))
        self.assertTrue(ours.stdout)
        self.assertEqual(ours.stdout, theirs.stdout)


class Source(unittest.TestCase):
    """The preloaded connect() alone."""
    CONNECT = """
import socket, sys
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
family, bound, host = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET, sys.argv[1], sys.argv[2]
port = 0
if sys.argv[3:]:
    with socket.socket() as free:
        free.bind(("127.0.3.1", 0))
        port = free.getsockname()[1]
with socket.socket(family) as client:
    if bound:
        client.bind((bound, port))
    client.connect((host, server.getsockname()[1]))
    print(client.getsockname()[0])
    assert port in (0, client.getsockname()[1])
"""

    def source_of(self, bound, host, *port):
        shim = os.path.join(os.path.dirname(BIN), "lib", "source_shim.so")
        done = subprocess.run([sys.executable, "-c", self.CONNECT, bound, host, *port], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False,
                              env=os.environ | {"LD_PRELOAD": shim, "QUORLOCK_CHAOS_SOURCE": "127.0.3.1"})
        self.assertEqual(done.stderr, "")
        return done.stdout.strip()

    def test_ipv4(self):
        self.assertEqual(self.source_of("", "127.0.0.1"), "127.0.3.1")
        self.assertEqual(self.source_of("127.0.3.2", "127.0.0.1"), "127.0.3.2")

    def test_any_address(self):
        """Some runtimes bind every socket."""
        self.assertEqual(self.source_of("0.0.0.0", "127.0.0.1"), "127.0.3.1")
        self.assertEqual(self.source_of("0.0.0.0", "127.0.0.1", "a port"), "127.0.3.1")

    def test_an_ipv6_socket_for_ipv4(self):
        try:
            socket.socket(socket.AF_INET6).close()
        except OSError:
            self.skipTest("no IPv6 here")
        self.assertEqual(self.source_of("", "::ffff:127.0.0.1"), "::ffff:127.0.3.1")
        self.assertEqual(self.source_of("::", "::ffff:127.0.0.1"), "::ffff:127.0.3.1")
        self.assertEqual(self.source_of("::", "::ffff:127.0.0.1", "a port"), "::ffff:127.0.3.1")
        self.assertEqual(self.source_of("::ffff:127.0.3.2", "::ffff:127.0.0.1"), "::ffff:127.0.3.2")


class Lines(unittest.TestCase):
    """The recorder alone, with one client."""
    HELLO = {"event": "hello", "version": 1}
    INVOKE = {"event": "invoke", "key": "job"}

    def record_program(self, *words):
        """(what it wrote to standard error, what was wrong or None, the history)"""
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            recording = recorder.Recorder(os.path.join(folder, "history.jsonl"), ["job"], 2000)
            with recording.file, subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                  stderr=subprocess.PIPE) as process:
                channel = recording.listen("c9", process)
                channel.thread.join(60)
                process.stdin.close()
                said = process.stderr.read().decode()
                return said.splitlines(), recording.problem, recording.lines()

    def record(self, *lines):
        """Of a client that writes these lines and reads their answers: (answers, what was wrong or None, the history)"""
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        loop = 'while IFS= read -r line; do printf "%s\\n" "$line"; IFS= read -r answer <&3 || exit; echo "$answer" >&2; done'
        return self.record_program("sh", "-c", f'exec 3<&0; printf "%s" "$1" | {{ {loop}; }}', "sh", text)

    def assert_refused(self, text, *lines):
        _, problem, _ = self.record(*lines)
        self.assertIsNotNone(problem, lines)
        self.assertIn(f"client c9, line {len(lines)}: ", problem)
        self.assertIn(text, problem)

    def granted(self, **fields):
        return {"event": "granted", "key": "job", "deadline_us": now_us() + 1000000} | fields

    def test_a_whole_operation(self):
        answers, problem, lines = self.record(
            self.HELLO | {"program": "my lock"}, self.INVOKE, self.granted(fence=7), {"event": "read", "key": "job", "fence": 7},
            {"event": "write", "key": "job", "fence": 7, "value": 5}, {"event": "write", "key": "job", "fence": 6, "value": 9},
            {"event": "read", "key": "job"}, {"event": "released", "key": "job", "note": "kept"})
        self.assertIsNone(problem)
        self.assertEqual([answer.split()[0] for answer in answers], ["ok"] * 5 + ["refused", "ok", "ok"])
        self.assertEqual([answer.split()[2:] for answer in answers[3:7]], [["0"], ["5"], ["5"], ["5"]])
        self.assertEqual([line["event"] for line in lines], ["client", "invoke", "granted", "read", "write",
                                                             "write_refused", "read", "released"])
        self.assertTrue(all(line["client"] == "c9" for line in lines))
        self.assertEqual((lines[0]["program"], lines[-1]["note"]), ("my lock", "kept"))
        self.assertEqual([int(answer.split()[1]) for answer in answers], [line["t_us"] for line in lines])

    def test_without_tokens_the_last_writer_wins(self):
        answers, _, _ = self.record(self.HELLO, {"event": "write", "key": "job", "fence": 9, "value": 5},
                                    {"event": "write", "key": "job", "value": 3}, {"event": "read", "key": "job"})
        self.assertEqual([answer.split()[0::2] for answer in answers[1:]], [["ok", "5"], ["ok", "3"], ["ok", "3"]])

    def test_each_slot_has_a_register(self):
        def write(value, fence, **more):
            return {"event": "write", "key": "job", "mode": "permits", "fence": fence, "value": value} | more
        answers, problem, _ = self.record(self.HELLO, write(5, 9), write(1, 3, slot=1), write(2, 4, slot=1), write(3, 3, slot=1))
        self.assertIsNone(problem)
        self.assertEqual([answer.split()[0::2] for answer in answers[1:]], [["ok", "5"], ["ok", "1"], ["ok", "2"], ["refused", "2"]])

    def test_what_a_reader_shows_is_not_remembered(self):
        def read(fence):
            return {"event": "read", "key": "job", "mode": "shared", "fence": fence}
        answers, problem, _ = self.record(self.HELLO, {"event": "write", "key": "job", "fence": 5, "value": 1}, read(9), read(6),
                                          {"event": "write", "key": "job", "fence": 7, "value": 2}, read(6), read(7))
        self.assertIsNone(problem)
        self.assertEqual([answer.split()[0] for answer in answers[1:]], ["ok", "ok", "ok", "ok", "refused", "ok"])

    def test_users_ask_side_by_side(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            recording = recorder.Recorder(os.path.join(folder, "history.jsonl"), ["job"], 2000)
            channel = recorder.Channel("c9", None)
            with recording.file:
                for made in ({"event": "hello", "version": 1}, {"event": "invoke", "key": "job", "user": 1},
                             {"event": "invoke", "key": "job", "user": 2},
                             {"event": "refused", "key": "job", "user": 1, "status": "HELD"},
                             {"event": "granted", "key": "job", "user": 2, "mode": "permits", "slot": 3,
                              "deadline_us": now_us() + 1000000}):
                    recording.take(channel, json.dumps(made).encode() + b"\n")
                lines = recording.lines()
        self.assertEqual(channel.outcomes, [(lines[1]["t_us"], "HELD"), (lines[2]["t_us"], "granted")])
        self.assertEqual(recording.granted_us, {("job", "permits", 3): lines[4]["t_us"]})

    def test_a_grant_that_arrives_after_its_deadline_has_an_empty_window(self):
        command = client("slow", """
            say("hello", version=1)
            say("invoke", key="job")
            deadline_us = now_us() + 1000
            time.sleep(0.1)
            say("granted", key="job", deadline_us=deadline_us)
            say("released", key="job")
            """).split()
        said, problem, lines = self.record_program("env", "QUORLOCK_CHAOS_KEYS=job", "QUORLOCK_CHAOS_NODES=none", *command)
        self.assertEqual((said, problem), ([], None))
        self.assertEqual(lines[2]["t_us"], lines[2]["deadline_us"] - 1)
        verdict = judge.judge(history.parse(map(json.dumps, lines)))
        self.assertTrue(verdict.sound, verdict.violations)
        self.assertEqual(verdict.counts["grants"], 1)

    def test_the_time_of_a_client_is_taken_where_it_can_be(self):
        command = client("stamps", """
            say("hello", version=1)
            say("invoke", key="job", t_us=now_us())
            read_us = now_us()
            time.sleep(0.1)
            say("granted", key="job", t_us=read_us, deadline_us=read_us + 5)
            say("released", key="job")
            print(read_us, file=sys.stderr)
            """).split()
        said, problem, lines = self.record_program("env", "QUORLOCK_CHAOS_KEYS=job", "QUORLOCK_CHAOS_NODES=none", *command)
        self.assertIsNone(problem)
        self.assertEqual([str(lines[2]["t_us"])], said)

    def test_lines_that_are_not_of_the_protocol(self):
        self.assert_refused("'Connected to 3 servers' is no JSON object: standard output is for the history alone, write "
                            "everything else to standard error", self.HELLO, "Connected to 3 servers")
        self.assert_refused("no JSON object", "[1]")
        self.assert_refused("no JSON object", "[" * 5000)
        self.assert_refused("longer than 65536 bytes", self.HELLO, "x" * 70000)
        self.assert_refused('invoke before hello: the first line is {"event":"hello","version":1}', self.INVOKE)
        self.assert_refused("stop is 'never', neither signal (SIGTERM, the default) nor answer", self.HELLO | {"stop": "never"})
        self.assert_refused("a second hello", self.HELLO, self.HELLO)
        self.assert_refused("version 2 of the protocol is not known here; this is version 1", self.HELLO | {"version": 2})
        self.assert_refused("hello without version", {"event": "hello"})
        self.assert_refused("'acquired' is no event that a client writes; there are hello, invoke,", self.HELLO,
                            {"event": "acquired", "key": "job"})
        self.assert_refused("None is no event", self.HELLO, {"key": "job"})
        self.assert_refused("'killed' is no event", self.HELLO, {"event": "killed"})
        self.assert_refused("key 'jobs' is none of QUORLOCK_CHAOS_KEYS (job)", self.HELLO, self.INVOKE | {"key": "jobs"})
        self.assert_refused("invoke without key", self.HELLO, {"event": "invoke"})
        self.assert_refused("granted without deadline_us", self.HELLO, {"event": "granted", "key": "job"})
        self.assert_refused("write without value", self.HELLO, {"event": "write", "key": "job"})
        self.assert_refused("fence is 'a', not a whole number", self.HELLO, {"event": "read", "key": "job", "fence": "a"})
        self.assert_refused("value is 1.5, not a whole number", self.HELLO, {"event": "write", "key": "job", "value": 1.5})
        self.assert_refused("too large", self.HELLO, {"event": "write", "key": "job", "value": 2**63})
        self.assert_refused("status is 4, not a printable string", self.HELLO,
                            {"event": "refused", "key": "job", "status": 4})
        self.assert_refused("text is '\\ud800', not a printable string", self.HELLO, {"event": "breach", "text": "\ud800"})
        self.assert_refused("not a printable string", self.HELLO, {"event": "breach", "text": "\nverdict: sound"})
        self.assert_refused("slot is -1, not a whole number", self.HELLO, self.granted(slot=-1))
        self.assert_refused("mode is 'reader', none of lock, permits, shared, election", self.HELLO, self.INVOKE | {"mode": "reader"})
        self.assert_refused("observed without term", self.HELLO, {"event": "observed", "key": "job"})
        self.assert_refused("lies before this client began", self.HELLO, self.granted(deadline_us=800))

    def test_times_that_cannot_be(self):
        self.assert_refused("lies in the future", self.HELLO, self.INVOKE | {"t_us": now_us() + 60000000})
        self.assert_refused("lies before the answer to the line before", self.HELLO, self.INVOKE | {"t_us": 17})
        self.assert_refused("t_us is -1, not a whole number", self.HELLO, self.INVOKE | {"t_us": -1})
        self.assert_refused("more than QUORLOCK_CHAOS_MAX_LEASE_MS (2000 ms) away", self.HELLO,
                            self.granted(deadline_us=now_us() + 30000000))


def main():
    global BIN, FOLDER
    if len(sys.argv) < 2 or not os.access(os.path.join(sys.argv[1], "chaos_client"), os.X_OK):
        print("usage: test_clients.py BUILD_BIN [TEST...], the folder of chaos_client", file=sys.stderr)
        return 64
    BIN = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="quorlock-clients-") as FOLDER:
        if not any(name.startswith(("Lines", "Source")) for name in sys.argv[2:]):
            begin_runs()
        return not unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2, exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
