#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quorlock bench: what it prints, and what it leaves behind, which is nothing: test_bench.py PATH_TO_quorlock [TEST...]

How fast anything is, is not judged here.
"""
import contextlib
import json
import select
import signal
import socket
import statistics
import sys
import threading

sys.dont_write_bytecode = True  # the tree stays as it is
import command_case
from command_case import BENCH_BUSY, SERVERS, Bootstrapped, listen, wait_for

KEYS = "quorlock-bench:*"
BASELINE = "quorlock-bench:*:r*"  # the first lock is granted and released before the baseline begins
CHUNK = 65536
RATIOS = {"throughput": "locks_per_s", "latency_p50": "p50_us", "latency_p99": "p99_us",
          "client_cpu": "client_cpu_us_per_lock", "server_cpu": "server_cpu_us_per_lock"}


def names(server, pattern="*"):
    """The keys of a server."""
    script = "return table.concat(redis.call('KEYS', ARGV[1]), '\\n')"
    return set(server.ask("EVAL", script, 0, pattern).decode().split("\n")) - {""}


class Talkative:
    """In front of a server: on connections that are not quorlock's own it says more than it is asked."""

    def __init__(self, server):
        self.server = server
        self.listener = listen()
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def __str__(self):
        return f"127.0.0.1:{self.port}"

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.pass_on, args=self.listener.accept()[:1], daemon=True).start()

    def pass_on(self, client):
        with client, socket.create_connection(("127.0.0.1", self.server.port)) as server, \
                contextlib.suppress(OSError):
            first = client.recv(CHUNK)
            server.sendall(first)
            if b"SETNAME" not in first:
                client.sendall(server.recv(CHUNK) + b":1\r\n")
            while True:
                for end in select.select([client, server], [], [])[0]:
                    chunk = end.recv(CHUNK)
                    if not chunk:
                        return
                    (server if end is client else client).sendall(chunk)


class Bench(Bootstrapped):
    def measure(self, *args):
        """Runs it to its end: its report."""
        status, out, err = self.connected("bench", "--json", "--seconds", "1", *args, busy=BENCH_BUSY)
        self.assertEqual((status, err), (0, ""))
        return json.loads(out)

    def assert_clean(self, *others):
        for server in SERVERS:
            self.assertEqual(names(server), {"quorlock:guard", *others})

    def test_the_report_has_figures_of_both_and_their_ratios(self):
        report = self.measure("--in-flight", "8", "--guard", "off")
        self.assertEqual(report["nodes"], [str(server) for server in SERVERS])
        self.assertEqual((report["in_flight"], report["failed"], report["raw"]["failed"], report["raw"]["nodes"]),
                         (8, 0, 0, 3))
        for kind, figures in (("quorlock", report), ("raw", report["raw"])):
            slices = [each for each in report["slices"] if each["of"] == kind]
            self.assertEqual(len(slices), 2)
            self.assertEqual(sum(each["locks"] for each in slices), figures["locks"])
            self.assertGreaterEqual(figures["locks"], 2 * 8)
            seconds = sum(each["ended_us"] - each["begun_us"] for each in slices) / 1e6
            self.assertAlmostEqual(figures["locks_per_s"] * seconds / figures["locks"], 1, delta=0.01)
            latency = figures["latency_us"]
            self.assertLess(0, latency["p50"])
            self.assertLessEqual(latency["p50"], latency["p99"])
            self.assertLessEqual(latency["p99"], latency["p999"])
            self.assertLess(0, figures["client_cpu_us_per_lock"])
        # SET and EVALSHA with what that calls, GET and DEL, on each node.
        self.assertAlmostEqual(report["raw"]["server_commands_per_lock"], 12, delta=0.5)
        self.assertGreater(report["raw"]["server_bytes_per_lock"], 3 * (len("SET NX PX EVALSHA") + 2 * 40))
        self.assert_clean()

    def test_ratios_are_of_slices_side_by_side(self):
        report = self.measure()
        kinds = [each["of"] for each in report["slices"]]
        self.assertEqual(kinds, ["quorlock", "raw", "raw", "quorlock"])
        pairs = [report["slices"][:2], report["slices"][2:]]
        for name, field in RATIOS.items():
            ratios = [next(each[field] for each in pair if each["of"] == "quorlock") /
                      next(each[field] for each in pair if each["of"] == "raw") for pair in pairs
                      if all(each[field] > 0 for each in pair)]
            if ratios:
                middle = statistics.median(ratios)
                self.assertAlmostEqual(report["ratio_to_raw"][name] / middle, 1, delta=0.02, msg=name)
                low, high = report["ratio_to_raw_quartiles"][name]
                self.assertTrue(low <= report["ratio_to_raw"][name] <= high)

    def test_every_kind_of_lock_leaves_only_what_others_had(self):
        for server in SERVERS:
            server.ask("SET", "quorlock-bench:of-another", "x")
        for args in [("--fence",), ("--guard", "strict"), ("--dialect", "redisson", "--fence"), ("--policy", "all"),
                     ("--lease", "20s", "--in-flight", "300", "--fence")]:
            with self.subTest(args):
                self.assertEqual(self.measure(*args)["failed"], 0)
                self.assert_clean("quorlock-bench:of-another")

    def test_text_for_people(self):
        status, out, err = self.connected("bench", "--seconds", "1", "--in-flight", "1", busy=BENCH_BUSY)
        self.assertEqual((status, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(lines[0], "1 in flight, 3 nodes, 2 pairs of slices")
        self.assertRegex(lines[1], "^ +locks/s +p50 us")
        self.assertRegex(lines[2], r"^quorlock +\d+ +\d+\.\d ")
        self.assertRegex(lines[3], r"^raw +\d+ +\d+\.\d ")
        self.assertRegex(out, r"\n  locks/s +\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)\n")

    def test_a_signal_ends_it_without_a_trace(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                bench = self.start("bench", "--seconds", "600", "--in-flight", "200", "--fence")
                wait_for(lambda: all(names(server, KEYS) for server in SERVERS))
                wait_for(lambda: all(names(server, "quorlock:fence:" + KEYS) for server in SERVERS))
                bench.send_signal(number)
                status, out, err = self.end(bench)
                self.assertEqual((status, out), (128 + number, ""), err)
                self.assert_clean()

    def test_a_signal_before_the_baseline_is_there_leaves_no_trace(self):
        for server in SERVERS[1:]:
            server.ask("CLIENT", "PAUSE", 60000, "WRITE")
        bench = self.start("bench", "--seconds", "600", "--fence")
        wait_for(lambda: names(SERVERS[0], "quorlock:fence:" + KEYS))
        bench.send_signal(signal.SIGTERM)
        for server in SERVERS[1:]:
            server.ask("CLIENT", "UNPAUSE")
        status, out, err = self.end(bench)
        self.assertEqual((status, out), (128 + signal.SIGTERM, ""), err)
        self.assert_clean()

    def test_a_node_that_freezes_meanwhile(self):
        bench = self.start("bench", "--json", "--seconds", "2", "--guard", "off")
        wait_for(lambda: names(SERVERS[2], BASELINE))
        SERVERS[2].freeze()
        status, out, _ = self.end(bench)
        SERVERS[2].thaw()
        self.assertEqual(status, 0)
        self.assertGreater(json.loads(out)["locks"], 0)
        for server in SERVERS[:2]:
            self.assertEqual(names(server), {"quorlock:guard"})

    def test_a_node_that_is_down_is_named_and_done_without(self):
        SERVERS[1].kill()
        status, out, err = self.quorlock("bench", "--json", "--seconds", "1")
        self.assertEqual(status, 0, err)
        self.assertIn(f"the baseline does not use {SERVERS[1]}: Connection refused", err)
        report = json.loads(out)
        self.assertEqual((report["raw"]["nodes"], report["failed"]), (2, 0))

    def test_a_node_that_answers_unasked_is_named_and_done_without(self):
        with Talkative(SERVERS[1]) as talkative:
            addresses = f"{SERVERS[0]},{talkative},{SERVERS[2]}"
            status, out, err = self.quorlock("--nodes", addresses, "bench", "--json", "--seconds", "1", "--guard", "off")
        self.assertEqual(status, 0, err)
        self.assertIn(f"the baseline does not use {talkative}: it sent an answer that nobody asked for", err)
        report = json.loads(out)
        self.assertEqual((report["raw"]["nodes"], report["failed"]), (2, 0))

    def test_too_few_nodes_are_an_error(self):
        SERVERS[0].kill()
        SERVERS[1].kill()
        status, out, err = self.quorlock("bench", "--seconds", "1")
        self.assertEqual((status, out), (69, ""))
        self.assertIn("too few nodes can vote", err)
        self.assertEqual(names(SERVERS[2]), {"quorlock:guard"})

    def test_nodes_that_go_meanwhile_are_said_once_a_slice(self):
        bench = self.start("bench", "--json", "--seconds", "8", "--guard", "off", "--in-flight", "64")
        wait_for(lambda: names(SERVERS[2], BASELINE))
        for server in SERVERS[:2]:
            server.kill()
        said = self.await_words(bench, b"waiting for")
        for server in SERVERS[:2]:
            server.start()
        status, out, err = self.end(bench)
        self.assertEqual(status, 0, err)
        slices = [each for each in json.loads(out)["slices"] if each["of"] == "quorlock"]
        self.assertLessEqual((said.decode() + err).count("waiting for"), len(slices))

    def test_where_no_lock_is_granted_any_more_it_ends_without_figures(self):
        bench = self.start("bench", "--seconds", "60")
        wait_for(lambda: names(SERVERS[2], BASELINE))
        for server in SERVERS[:2]:
            server.ask("SET", "quorlock:guard", server.ask("GET", "quorlock:guard").replace(b"30000", b"40000"))
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        status, out, err = self.end(bench)
        self.assertEqual((status, out), (69, ""), err)
        self.assertIn("no lock is granted any more, so there is nothing to measure; the last result: ", err)
        self.assertEqual(names(SERVERS[2]), {"quorlock:guard"})

    def test_passwords_are_used_and_not_told(self):
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "bench", "on", ">se%cret", "~*", "&*", "+@all")
        try:
            addresses = ",".join(f"redis://bench:se%25cret@{server}/3" for server in SERVERS)
            status, out, err = self.connected("bench", "--json", "--seconds", "1", "--guard", "off", busy=BENCH_BUSY,
                                              env={"QUORLOCK_NODES": addresses})
            self.assertEqual((status, err), (0, ""))
            self.assertNotIn("cret", out)
            self.assertGreater(json.loads(out)["raw"]["locks"], 0)
            for server in SERVERS:
                self.assertNotIn("db3", server.ask("INFO", "keyspace").decode())
        finally:
            for server in SERVERS:
                server.ask("ACL", "DELUSER", "bench")

    def test_a_closed_output_is_an_error(self):
        with open("/dev/full", "wb") as full:
            status, _, err = self.end(self.start("bench", "--seconds", "1", stdout=full))
        self.assertEqual(status, 74)
        self.assertIn("cannot write", err)
        self.assert_clean()


if __name__ == "__main__":
    command_case.main()
