#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The alerts and the dashboard of src/packaging: test_monitoring.py PATH_TO_quorlock CLOCK_SHIM [TEST...]

A client's metrics are recorded while real servers are stopped, killed, emptied, moved in time, and refuse it. Then the
files of jobs are recorded, which succeed, fail, and are killed night after night. Promtool evaluates the files on what was
recorded. Each record of a client counts as one minute, and of a job's file as four, so that the test need not last for
hours.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

import test_python
from test_python import LIMIT_S, SERVERS, PythonCase, command_case, nodes, wait_for

import quorlock
import redis_server

PACKAGING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "packaging")
RULES = os.path.join(PACKAGING, "quorlock.rules.yml")
SHIM = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 else ""
MAX_LEASE_MS = 60000
FORGET = 15  # records until an increase is too old for each alert
ALERTS = 'group by (alertname) (last_over_time(ALERTS{alertname!~"panel.*",alertstate="firing"}[%dm]))'
VARIABLES = 'job=~"$job",instance=~"$instance",set=~"$set"'
PANELS = 'count(group by (alertname) (last_over_time(ALERTS{alertname=~"panel.*",alertstate="firing"}[1d])))'


class Server(command_case.Server):
    @property
    def env(self):
        self.set_clock(0)
        return {"LD_PRELOAD": SHIM, "QUORLOCK_CHAOS_CLOCK": os.path.join(self.folder, "clock")}

    def set_clock(self, ahead_us):
        clock = os.open(os.path.join(self.folder, "clock"), os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(clock, struct.pack("q", ahead_us))
        os.close(clock)


class Judged(PythonCase):
    """Records series, which promtool judges at the end."""
    step_m = 1  # minutes from one record to the next

    def setUp(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is missing: scripts/setup --for more installs it")
        self.series, self.minutes, self.expected = {}, 0, []
        super().setUp()

    def record_text(self, text):
        """Text of metrics, as the next record."""
        for line in text.splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values = self.series.setdefault(name, [])
                values += ["_"] * (self.minutes - len(values)) + [value]
        self.minutes += 1

    def judge(self, jobs):
        """Lets promtool evaluate the rules, and each expression of the dashboard as a rule of its own: those for jobs, or the
        others."""
        with open(os.path.join(PACKAGING, "quorlock-dashboard.json"), encoding="utf-8") as f:
            dashboard = json.load(f)
        self.assertEqual([one["name"] for one in dashboard["templating"]["list"]], ["datasource", "job", "instance", "set"])
        shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        for expr in shown:  # each name of a metric has the variables
            self.assertEqual(len(re.findall(r"\bquorlock_\w+", expr)), expr.count(VARIABLES), expr)
        shown = [re.sub(r"\$(job|instance|set)", ".*", expr.replace("$__rate_interval", "5m"))
                 for expr in shown if ("quorlock_run_" in expr) == jobs]
        known = {re.match(r"\w+", name)[0] for name in self.series}
        with open(RULES, encoding="utf-8") as f:
            rules = f.read()
        used = {name for name in re.findall(r"\bquorlock_\w+", rules + " ".join(shown))
                if name.startswith("quorlock_run_") == jobs}
        self.assertEqual(used - known, set())
        panels = {"groups": [{"name": "panels", "rules": [
            {"alert": f"panel{i}", "expr": f"count(({expr}) >= 0) > 0"} for i, expr in enumerate(shown)]}]}
        checks = [{"expr": ALERTS % (length * self.step_m), "eval_time": f"{end * self.step_m}m",
                   "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in alerts]}
                  for end, length, alerts in self.expected]
        checks.append({"expr": PANELS, "eval_time": f"{self.minutes * self.step_m}m",
                       "exp_samples": [{"labels": "{}", "value": len(shown)}]})
        test = {"rule_files": [RULES, self.path("panels.yml")], "evaluation_interval": f"{self.step_m}m",
                "tests": [{"interval": f"{self.step_m}m", "promql_expr_test": checks, "input_series": [
                    {"series": name, "values": " ".join(values)} for name, values in self.series.items()
                    if re.match(r"\w+", name)[0] in rules + " ".join(shown)]}]}
        for name, content in ("panels.yml", panels), ("test.yml", test):  # YAML includes JSON
            with open(self.path(name), "w", encoding="utf-8") as f:
                json.dump(content, f)
        for words in ("check", "rules", RULES), ("test", "rules", self.path("test.yml")):
            done = subprocess.run(["promtool", *words], check=False, capture_output=True, text=True,
                                  timeout=10 * LIMIT_S)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        alerts = {name for name in re.findall(r"alert: (\w+)", rules) if name.startswith("QuorlockJob") == jobs}
        self.assertEqual(alerts, set().union(*(names for *_, names in self.expected)) & alerts)


class Monitoring(Judged):

    def open(self, **options):
        self.bootstrap("--max-lease", f"{MAX_LEASE_MS}ms")
        client = quorlock.Client(nodes(), max_lease_ms=MAX_LEASE_MS, reconnect_max_ms=100, node_timeout_ms=1000,
                                 connect_timeout_ms=1000)
        self.addCleanup(client.close)
        return client

    def record(self):
        self.record_text(self.client.metrics())

    def number(self, name):
        """The sum of these samples now; the text is the beginning of a regular expression."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.client.metrics().splitlines() if re.match(name, line))

    def record_while(self, grows, times):
        """Records that many times, each when the number has grown since the record before."""
        for _ in range(times):
            before = self.number(grows)
            wait_for(lambda before=before: self.number(grows) > before)
            self.record()

    def phase(self, *alerts, since):
        """Since that record these alerts have fired, and no other. Then all is well for as long as they look back."""
        self.expected.append((self.minutes - 1, self.minutes - since, sorted(alerts)))
        wait_for(lambda: self.number("quorlock_node_up") == 3)
        for _ in range(FORGET):
            self.record()
        return self.minutes

    def hold(self, renew_ms=100, lease_ms=20000):
        lock = self.client.lock(self.key, lease_ms=lease_ms, renew_ms=renew_ms, fencing=True, wait_ms=LIMIT_S * 1000)
        lock.acquire()
        self.record_while(r"quorlock_renewals_total{result=.ok", 2)
        return lock

    def loses(self, lock):
        wait_for(lambda: lock.lost)
        self.record()
        with self.assertRaises(quorlock.Lost):
            lock.release()

    def test_each_fault_has_its_alert_and_health_has_none(self):
        errors, login = "quorlock_node_errors_total", "quorlock_node_errors_total.*class=.login"
        lock = self.hold()
        for _ in range(FORGET):
            self.record()
        lock.release()
        since = self.phase(since=0)

        lock = self.hold()
        self.take_away()
        self.loses(lock)
        since = self.phase("QuorlockLockLost", since=since)

        lock = self.hold()
        SERVERS[1].set_clock(3000000)
        SERVERS[2].set_clock(3000000)
        self.loses(lock)
        since = self.phase("QuorlockClockJumped", since=since)

        lock = self.hold()
        SERVERS[0].freeze()
        wait_for(lambda: self.number("quorlock_node_up") == 2)
        self.record_while(errors, 8)
        SERVERS[0].thaw()
        lock.release()
        since = self.phase("QuorlockNodeDown", "QuorlockDegraded", since=since)

        lock = self.hold(lease_ms=3000)
        SERVERS[0].freeze()
        SERVERS[1].freeze()
        self.loses(lock)
        with self.assertRaises(quorlock.Error):
            self.client.lock("other", wait_ms=300).acquire()
        wait_for(lambda: self.number("quorlock_node_up") == 1)
        self.record_while(errors, 4)
        SERVERS[0].thaw()
        SERVERS[1].thaw()
        since = self.phase("QuorlockLockLost", "QuorlockRenewalFails", "QuorlockNoQuorum", "QuorlockRefused",
                           since=since)

        SERVERS[2].ask("CONFIG", "SET", "requirepass", "other")
        with redis_server.Wire(SERVERS[2].port) as wire:
            wire.ask("AUTH", "other")
            wire.ask("CLIENT", "KILL", "TYPE", "normal")
            self.record_while(login, 2)
            wire.ask("CONFIG", "SET", "requirepass", "")
        since = self.phase("QuorlockNodeRefuses", since=since)

        SERVERS[2].kill()
        SERVERS[2].start()
        wait_for(lambda: self.number("quorlock_node_quarantine_seconds") > 0)
        for _ in range(17):
            left = self.number("quorlock_node_quarantine_seconds")
            wait_for(lambda left=left: self.number("quorlock_node_quarantine_seconds") < left)
            self.record()
        self.phase("QuorlockQuarantineStays", since=since)
        self.judge(jobs=False)


class Jobs(Judged):
    """Of one job that runs every night: the file is there all day, and each run writes it anew."""
    step_m = 4  # Prometheus forgets a sample after five minutes

    def open(self, **options):
        self.bootstrap()
        client = quorlock.Client(nodes())
        self.addCleanup(client.close)
        self.file, self.times = self.path("job.prom"), {}
        return client

    def run_once(self, *words, options=(), env=None):
        """Not in the second in which another one ended: it is what tells them apart."""
        wait_for(lambda: str(int(time.time())) not in self.times)
        return self.quorlock("run", "--metrics-file", self.file, *options, self.key, "--", *words, env=env)[0]

    def night(self, *alerts, goes_on=False):
        """Records a day of the file. Until the next run these alerts fire, and no other. A time in the file is the beginning of
        the night in which it appeared first; goes_on: or now, of a run that goes on."""
        since = self.minutes
        with open(self.file, encoding="utf-8") as f:
            text = "".join(line for line in f if "_bucket{" not in line)
        for _ in range(24 * 60 // self.step_m):
            now_s = self.minutes * self.step_m * 60
            self.record_text(re.sub(
                r"(?m)^(quorlock_run_(\w+)_timestamp_seconds.*) (\d+)$",
                lambda m: f"{m[1]} {now_s if goes_on and m[2] == 'active' else self.times.setdefault(m[3], now_s)}", text))
        for name in self.series:
            if not re.search(r"(?m)^" + re.escape(name) + " ", text):
                self.series[name] += ["stale"] * (self.minutes - len(self.series[name]))
        self.expected.append((self.minutes - 1, self.minutes - since - 1, sorted(alerts)))

    def test_a_job_that_fails_night_after_night_is_noticed_each_time(self):
        fails, overdue = "QuorlockJobFails", "QuorlockJobOverdue"
        wrong = {"QUORLOCK_USER": "app", "QUORLOCK_PASSWORD": "wrong"}
        self.assertEqual(self.run_once("true"), 0)
        self.night()
        for _ in range(2):
            self.assertEqual(self.run_once("sh", "-c", "exit 3"), 3)
            self.night(fails, overdue)
        self.assertEqual(self.run_once("true"), 0)
        self.night()
        self.assertEqual(self.run_once("true", env=wrong), 78)
        self.night(fails, overdue, "QuorlockRefused", "QuorlockNodeRefuses")
        self.assertEqual(self.run_once("true", env=wrong), 78)
        self.night(fails, overdue)  # the counters are what they were

        # It is being done elsewhere, but nobody ever succeeds.
        self.assertEqual(self.run_once("true"), 0)
        self.night()
        with self.client.lock(self.key):
            self.assertEqual(self.run_once("true", options=("-n", "-E", "0")), 0)
        self.night(overdue)

        self.assertEqual(self.run_once("true"), 0)
        self.night()
        process = self.shell("--metrics-file", self.file, "--lease", "6s", script=">up; exec sleep 60")
        self.take_away()
        self.assertEqual(self.end(process)[0], 75)
        self.night(fails, overdue, "QuorlockJobLostLock", "QuorlockLockLost")

        # As a service that was started again after that.
        os.remove(self.path("up"))
        process = self.shell("--metrics-file", self.file, script=">up; exec sleep 600")
        wait_for(lambda: "quorlock_held{" in self.read("job.prom") and re.search(r"(?m)^quorlock_held.* 1$", self.read("job.prom")))
        self.night(goes_on=True)
        process.kill()
        self.end(process)
        self.night(fails, overdue, "QuorlockJobKilled")
        self.judge(jobs=True)


if __name__ == "__main__":
    command_case.main(Server)
