#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock run --metrics-file: test_metrics_file.py PATH_TO_quorlock [TEST...]

The file is read by Prometheus' own library, and by promtool where PATH has one.
"""
import os
import shutil
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
import read_metrics
from command_case import LIMIT_S, SERVERS, Bootstrapped, wait_for


class MetricsFile(Bootstrapped):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("textfiles"))
        self.file = self.path("textfiles/nightly backup.prom")

    def samples(self):
        """(name, labels) -> number."""
        with open(self.file, encoding="utf-8") as f:
            text = f.read()
        try:
            families = read_metrics.families(text, "prometheus")
        except ImportError:
            self.skipTest("python3-prometheus-client is missing: scripts/setup installs it")
        self.assertEqual([family.name for family in families if family.type == "unknown"], [])
        return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                for family in families for sample in family.samples}

    def number(self, name, **labels):
        return self.samples()[name, tuple(sorted({"file": "nightly backup", **labels}.items()))]

    def test_the_file_tells_the_whole_run_at_the_end(self):
        process = self.shell("--metrics-file", self.file, script=">up; while [ ! -e go ]; do sleep .01; done")
        # A quorum is enough to begin with.
        wait_for(lambda: all(self.number("quorlock_node_up", node=str(server)) == 1 for server in SERVERS))
        open(self.path("go"), "w", encoding="utf-8").close()
        self.assertEqual(self.end(process)[:2], (0, ""))
        self.assertEqual(self.number("quorlock_acquire_duration_seconds_count", result="ok"), 1)
        self.assertEqual(self.number("quorlock_hold_duration_seconds_count"), 1)
        self.assertEqual(self.number("quorlock_held"), 0)
        self.assertEqual(self.number("quorlock_losses_total", reason="gone"), 0)
        for server in SERVERS:
            self.assertEqual(self.number("quorlock_node_up", node=str(server)), 1)
            self.assertGreaterEqual(self.number("quorlock_node_requests_total", node=str(server)), 1)
        with open(self.file, encoding="utf-8") as f:
            self.assertNotIn(self.key, f.read())
        self.assertEqual(os.listdir(self.path("textfiles")), ["nightly backup.prom"])

    def test_promtool_finds_nothing_to_mend(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool in PATH: it is in Debian's package prometheus")
        self.quorlock("run", "--metrics-file", self.file, self.key, "--", "true")
        with open(self.file, "rb") as f:
            done = subprocess.run([promtool, "check", "metrics"], check=False, stdin=f, capture_output=True, text=True,
                                  timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_the_file_is_made_anew_while_the_command_runs(self):
        process = self.shell("--metrics-file", self.file, script=">up; while [ ! -e go ]; do sleep .01; done")
        first = os.stat(self.file).st_ino
        wait_for(lambda: os.stat(self.file).st_ino != first)
        self.assertEqual(self.number("quorlock_held"), 1)
        self.assertEqual(self.number("quorlock_hold_duration_seconds_count"), 0)
        open(self.path("go"), "w", encoding="utf-8").close()
        self.assertEqual(self.end(process)[:2], (0, ""))
        self.assertEqual(self.number("quorlock_held"), 0)

    def test_a_reader_never_sees_half_a_file(self):
        """One reader reads all the time, while run after run writes."""
        ended, halves = threading.Event(), []

        def read():
            while not ended.is_set():
                try:
                    with open(self.file, encoding="utf-8") as f:
                        text = f.read()
                except FileNotFoundError:
                    continue
                if "class=\"guard\"" not in text or not text.endswith("\n"):
                    halves.append(text)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(10):
                self.quorlock("run", "--metrics-file", self.file, self.key, "--", "true")
        finally:
            ended.set()
            reader.join()
        self.assertTrue(os.path.exists(self.file))
        self.assertEqual(halves, [])

    def test_others_may_read_it_as_the_umask_says(self):
        for mask, mode in [(0o022, 0o644), (0o077, 0o600)]:
            before = os.umask(mask)
            try:
                self.quorlock("run", "--metrics-file", self.file, self.key, "--", "true")
            finally:
                os.umask(before)
            self.assertEqual(os.stat(self.file).st_mode & 0o777, mode)

    def test_a_loss_is_in_it(self):
        process = self.shell("--metrics-file", self.file, "--lease", "6s", script=">up; exec sleep 60")
        for server in SERVERS:
            server.ask("DEL", self.key)
        self.assertEqual(self.end(process)[0], 75)
        self.assertEqual(self.number("quorlock_losses_total", reason="gone"), 1)

    def last(self):
        """(result, status, success, whether a run goes on) of the gauges that outlive a run."""
        samples = self.samples()
        status, = ((dict(labels)["result"], value) for (name, labels), value in samples.items() if name == "quorlock_run_status")
        ended = self.number("quorlock_run_end_timestamp_seconds")
        self.assertLess(abs(ended - time.time()), LIMIT_S)
        success = samples.get(("quorlock_run_success_timestamp_seconds", (("file", "nightly backup"),)))
        active = ("quorlock_run_active_timestamp_seconds", (("file", "nightly backup"),)) in samples
        return (*status, success, active)

    def run_once(self, *words, options=(), env=None):
        return self.quorlock("run", "--metrics-file", self.file, *options, self.key, "--", *words, env=env)[0]

    def test_how_the_latest_run_ended_outlives_it(self):
        self.assertEqual(self.run_once("sh", "-c", "exit 3"), 3)
        self.assertEqual(self.last(), ("failed", 3, None, False))
        self.assertEqual(self.run_once("true"), 0)
        success = self.number("quorlock_run_end_timestamp_seconds")
        self.assertEqual(self.last(), ("ok", 0, success, False))
        # The last success survives whatever comes then.
        self.assertEqual(self.run_once("sh", "-c", "exit 75"), 75)
        self.assertEqual(self.last(), ("failed", 75, success, False))
        self.assertEqual(self.run_once("true", env={"QUORLOCK_USER": "app", "QUORLOCK_PASSWORD": "wrong"}), 78)
        self.assertEqual(self.last(), ("auth", 78, success, False))
        self.hold("somebody")
        self.assertEqual(self.run_once("true", options=("-n", "-E", "0")), 0)
        self.assertEqual(self.last(), ("held", 0, success, False))
        self.assertEqual(self.run_once("true", options=("-n",), env={"QUORLOCK_NODES": "127.0.0.1:1"}), 69)
        self.assertEqual(self.last(), ("noquorum", 69, success, False))

    def test_a_loss_and_a_signal_outlive_the_run(self):
        self.assertEqual(self.run_once("true"), 0)
        success = self.last()[2]
        process = self.shell("--metrics-file", self.file, "--lease", "6s", script=">up; exec sleep 60")
        self.assertEqual(self.last(), ("ok", 0, success, True))
        for server in SERVERS:
            server.ask("DEL", self.key)
        self.assertEqual(self.end(process)[0], 75)
        self.assertEqual(self.last(), ("lost", 75, success, False))
        os.remove(self.path("up"))
        process = self.shell("--metrics-file", self.file, script=">up; exec sleep 60")
        self.assertEqual(self.last(), ("lost", 75, success, True))
        process.terminate()
        self.assertEqual(self.end(process)[0], 143)
        self.assertEqual(self.last(), ("canceled", 143, success, False))

    def test_a_file_that_is_damaged_or_of_others_gives_nothing_away(self):
        lines = ['quorlock_run_status{file="x",result="b\\"} 1', 'quorlock_run_status{file="x"} 1', "quorlock_run_status{",
                 'quorlock_run_status{file="x",result="toolongforaresult"} 7', "quorlock_run_success_timestamp_seconds 5", "}",
                 'quorlock_run_success_timestamp_seconds{file="x"} x', "\xff\0" * 3000]
        with open(self.file, "w", encoding="latin-1") as f:
            f.write("\n".join(lines))
        process = self.shell("--metrics-file", self.file, script=">up; while [ ! -e go ]; do sleep .01; done")
        self.assertEqual([name for name, _ in self.samples() if name.startswith("quorlock_run_")],
                         ["quorlock_run_active_timestamp_seconds"])
        open(self.path("go"), "w", encoding="utf-8").close()
        self.assertEqual(self.end(process)[:2], (0, ""))
        self.assertEqual(self.last()[:2], ("ok", 0))

    def test_a_held_lock_is_a_result(self):
        self.hold("somebody")
        status, _, err = self.quorlock("run", "-n", "--metrics-file", self.file, self.key, "--", "true")
        self.assertEqual(status, 1, err)
        self.assertEqual(self.number("quorlock_acquire_duration_seconds_count", result="held"), 1)
        self.assertEqual(self.number("quorlock_acquire_duration_seconds_count", result="ok"), 0)

    def test_what_cannot_be_written_ends_the_command_before_it_begins(self):
        link, there, pipe = self.path("link"), self.path("there"), self.path("pipe")
        open(there, "w", encoding="utf-8").close()
        os.symlink(there, link)
        os.mkfifo(pipe)
        for path, why in [(self.path("no/such/folder.prom"), "No such file or directory"),
                          (self.folder, "Is a directory"),
                          (pipe, ": it is not a regular file: give the file itself"),
                          (link, ": it is not a regular file: give the file itself")]:
            status, _, err = self.quorlock("run", "--metrics-file", path, self.key, "--", "touch", self.path("ran"))
            self.assertEqual(status, 74, err)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(f'quorlock: --metrics-file: "{path}" cannot be written: ', err)
            self.assertIn(why, err)
            self.assertFalse(os.path.exists(self.path("ran")))
        self.assertTrue(os.path.islink(link))
        self.assert_free()

    def test_what_cannot_be_written_any_more_is_said_once(self):
        why = "cannot be written: No such file or directory"
        with open(self.path("said"), "w", encoding="utf-8") as said:
            process = self.shell("--metrics-file", self.file, script=">up; while [ ! -e go ]; do sleep .01; done",
                                 stderr=said)
        shutil.rmtree(self.path("textfiles"))
        wait_for(lambda: why in self.read("said"))
        open(self.path("go"), "w", encoding="utf-8").close()
        self.assertEqual(self.end(process)[0], 0)
        self.assertEqual(self.read("said").count(why), 1)


if __name__ == "__main__":
    command_case.main()
