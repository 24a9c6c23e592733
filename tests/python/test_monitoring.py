#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The alerts and the dashboard of src/packaging: test_monitoring.py PATH_TO_quorlock CLOCK_SHIM [TEST...]

A client's metrics are recorded while real servers are stopped, killed, emptied, moved in time, and refuse it. Promtool
evaluates the files on what was recorded. Each record counts as one minute, so that the test need not last for hours.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys

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


class Monitoring(PythonCase):
    def setUp(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is missing: scripts/setup --for more installs it")
        self.series, self.minutes, self.expected = {}, 0, []
        super().setUp()

    def open(self, **options):
        self.bootstrap("--max-lease", f"{MAX_LEASE_MS}ms")
        client = quorlock.Client(nodes(), max_lease_ms=MAX_LEASE_MS, reconnect_max_ms=100, node_timeout_ms=1000,
                                 connect_timeout_ms=1000)
        self.addCleanup(client.close)
        return client

    def record(self):
        for line in self.client.metrics().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values = self.series.setdefault(name, [])
                values += ["_"] * (self.minutes - len(values)) + [value]
        self.minutes += 1

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

    def judge(self):
        """Lets promtool evaluate the rules, and each expression of the dashboard as a rule of its own."""
        with open(os.path.join(PACKAGING, "quorlock-dashboard.json"), encoding="utf-8") as f:
            shown = [target["expr"].replace("$__rate_interval", "5m")
                     for panel in json.load(f)["panels"] for target in panel["targets"]]
        known = {re.match(r"\w+", name)[0] for name in self.series}
        with open(RULES, encoding="utf-8") as f:
            used = set(re.findall(r"\bquorlock_\w+", f.read() + " ".join(shown)))
        self.assertEqual(used - known, set())
        panels = {"groups": [{"name": "panels", "rules": [
            {"alert": f"panel{i}", "expr": f"count(({expr}) >= 0) > 0"} for i, expr in enumerate(shown)]}]}
        checks = [{"expr": ALERTS % length, "eval_time": f"{end}m",
                   "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in alerts]}
                  for end, length, alerts in self.expected]
        checks.append({"expr": PANELS, "eval_time": f"{self.minutes}m",
                       "exp_samples": [{"labels": "{}", "value": len(shown)}]})
        test = {"rule_files": [RULES, self.path("panels.yml")], "evaluation_interval": "1m",
                "tests": [{"interval": "1m", "promql_expr_test": checks, "input_series": [
                    {"series": name, "values": " ".join(values)} for name, values in self.series.items()]}]}
        for name, content in ("panels.yml", panels), ("test.yml", test):  # YAML includes JSON
            with open(self.path(name), "w", encoding="utf-8") as f:
                json.dump(content, f)
        for words in ("check", "rules", RULES), ("test", "rules", self.path("test.yml")):
            done = subprocess.run(["promtool", *words], check=False, capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(RULES, encoding="utf-8") as f:
            alerts = set(re.findall(r"alert: (\w+)", f.read()))
        self.assertEqual(alerts, set().union(*(names for *_, names in self.expected)))

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
        self.judge()


if __name__ == "__main__":
    command_case.main(Server)
