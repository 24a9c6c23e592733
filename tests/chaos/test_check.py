#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""cluster/check on hand-made histories: each kind of violation is caught, for its own reason and no other."""
import json
import re
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

CHECK = Path(__file__).resolve().parents[2] / "cluster" / "check"
sys.dont_write_bytecode = True
sys.path.insert(0, str(CHECK.parent / "chaos.d"))

from recorder import Register  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def line(t_ms, event, client="", key="job", **fields):
    made = {"t_us": t_ms * 1000, "event": event}
    if client:
        made |= {"client": client, "key": key}
    if "deadline_ms" in fields:
        fields["deadline_us"] = fields.pop("deadline_ms") * 1000
    return made | fields


def hold(client, start, end, fence=0, values=(), deadline=None, terminal="released", invoke=None, key="job"):
    """One whole operation: asked, granted, a write a value, ended."""
    deadline = deadline or end + 300
    lines = [line(start - 5 if invoke is None else invoke, "invoke", client, key),
             line(start, "granted", client, key, deadline_ms=deadline, fence=fence)]
    for i, value in enumerate(values):
        lines.append(line(start + 1 + i, "write", client, key, fence=fence, value=value))
    if terminal:
        lines.append(line(end, terminal, client, key))
    return lines


def moded(mode, lines, **granted):
    """The same lines of an operation in that mode; more fields of the grant, of which the slot is in each access."""
    slot = {"slot": granted["slot"]} if granted.get("slot") else {}
    return [made | {"mode": mode} | (granted if made["event"] == "granted" else slot) for made in lines]


def permit(client, start, end, slot, fence=0, values=(), permits=2, **more):
    return moded("permits", hold(client, start, end, fence, values, **more), slot=slot, permits=permits)


def reader(client, start, end, fence=0, **more):
    return moded("shared", hold(client, start, end, fence, **more))


def leader(client, start, end, term, **more):
    return moded("election", hold(client, start, end, **more), term=term)


def flat(*groups):
    """The lines of all groups in the order of their time."""
    found = []
    for group in groups:
        found += group if isinstance(group, list) else [group]
    return sorted(found, key=lambda made: made["t_us"])


def check(lines, *options):
    """Runs the command as its users do; (status, report or None, stderr)."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for made in lines:
            file.write(made if isinstance(made, str) else json.dumps(made))
            file.write("\n")
        file.flush()
        run = subprocess.run([sys.executable, str(CHECK), file.name, "--json", *options],
                             capture_output=True, text=True, timeout=60)
    return run.returncode, json.loads(run.stdout) if run.stdout else None, run.stderr


class Long(unittest.TestCase):
    def peak_kb(self, operations, by_pipe=False):
        """What the command needed at most for a history of so many operations, and the history's size."""
        with tempfile.NamedTemporaryFile("w+b", suffix=".jsonl") as file:
            for number in range(operations):
                lines = hold(f"c{number % 7}", 10 + 20 * number, 20 + 20 * number, number + 1, (number,), deadline=30 + 20 * number)
                file.write("".join(json.dumps(made) + "\n" for made in lines).encode())
            file.flush()
            size_kb = file.tell() / 1024
            file.seek(0)
            with subprocess.Popen(["cat"] if by_pipe else ["true"], stdin=file, stdout=subprocess.PIPE) as cat:
                run = subprocess.Popen([sys.executable, str(CHECK), "-" if by_pipe else file.name],
                                       stdin=cat.stdout, stdout=subprocess.PIPE)
                said = run.stdout.read()
                _, status, usage = os.wait4(run.pid, 0)
                run.returncode = os.waitstatus_to_exitcode(status)
                run.stdout.close()
        self.assertEqual(run.returncode, 0, said)
        self.assertIn(f"{operations} operations of".encode(), said)
        return usage.ru_maxrss, size_kb

    def test_a_long_history_is_not_held_in_memory(self):
        least_kb, _ = self.peak_kb(1)
        for by_pipe in (False, True):
            peak_kb, size_kb = self.peak_kb(20000, by_pipe)
            self.assertGreater(size_kb, 6000)
            self.assertLess(peak_kb - least_kb, 2 * size_kb)

    def test_lines_out_of_order(self):
        """Two clients' lines that were written a moment late, as in the order of time."""
        lines = flat(hold("a", 10, 50, 1, (1,)), hold("b", 52, 90, 2, (2,)))
        self.assertEqual(check(lines)[1], check(lines[::-1])[1])


class Good(unittest.TestCase):
    def assert_sound(self, lines, *options):
        status, report, error = check(lines, *options)
        self.assertEqual((status, error), (0, ""), report)
        self.assertEqual(report["violations"], {})
        self.assertEqual(report["verdict"], "sound")
        return report

    def test_one_after_another(self):
        report = self.assert_sound(flat(hold("a", 10, 50, 1, (1, 2)), hold("b", 52, 90, 2, (3,)),
                                        hold("a", 100, 120, 3, (4,))))
        self.assertEqual(report["counts"]["grants"], 3)
        self.assertEqual(report["counts"]["writes"], 4)

    def test_release_ends_the_window_before_the_deadline(self):
        self.assert_sound(flat(hold("a", 10, 50, deadline=5000), hold("b", 51, 60)))

    def test_loss_ends_the_window(self):
        report = self.assert_sound(flat(hold("a", 10, 200, deadline=210, terminal="lost"), hold("b", 201, 300)))
        self.assertEqual(report["counts"]["losses in time"], 1)

    def test_a_paused_owner_learns_late(self):
        report = self.assert_sound(flat(hold("a", 10, 900, deadline=210, terminal="lost"), hold("b", 400, 500)))
        self.assertEqual(report["counts"]["losses late"], 1)

    def test_keys_do_not_mix(self):
        self.assert_sound(flat(hold("a", 10, 50, 1), hold("b", 20, 60, 1, key="other")))

    def test_renewal_moves_the_deadline(self):
        lines = flat(hold("a", 10, 400, deadline=210), line(150, "renewed", "a", deadline_ms=450))
        report = self.assert_sound(lines + hold("b", 420, 500))
        self.assertEqual(report["counts"]["renewals"], 1)

    def test_stale_write_refused(self):
        lines = flat(hold("a", 10, 600, 1, (1,), deadline=210, terminal="lost"), hold("b", 300, 400, 2, (2,)),
                     line(500, "write_refused", "a", fence=1))
        self.assertEqual(self.assert_sound(lines)["counts"]["writes refused"], 1)

    def test_killed_client_owes_no_end(self):
        lines = flat(hold("a", 10, 0, deadline=210, terminal=None), line(50, "killed", "a"), hold("b", 230, 300),
                     hold("a", 310, 320))
        self.assert_sound(lines)

    def test_a_writer_without_tokens_beside_others(self):
        self.assert_sound(flat(hold("a", 10, 50, 7, (1,)), hold("b", 60, 90, 0, (2, 3)), hold("a", 100, 120, 8, (4,)),
                               hold("b", 130, 150, 0, (5,))))

    def test_refusals(self):
        lines = flat(hold("a", 10, 500, deadline=800), line(20, "invoke", "b"),
                     line(120, "refused", "b", status="HELD"))
        self.assertEqual(self.assert_sound(lines)["counts"]["refused HELD"], 1)

    def test_tokens_of_waiting_contenders_may_cross_in_time_of_asking(self):
        self.assert_sound(flat(hold("a", 10, 50, 1), hold("b", 100, 150, 3, invoke=20),
                               hold("c", 60, 90, 2, invoke=30)))

    def test_alive_after_healing(self):
        lines = flat(line(1000, "healed"), hold("a", 1500, 1600), line(4000, "end"))
        report = self.assert_sound(lines, "--live-within", "1")
        self.assertEqual(report["counts"]["first grant after healing us"], 500_000)

    def test_alive_at_the_last_moment(self):
        lines = flat(line(1000, "healed"), hold("a", 2000, 2100, invoke=1100), line(4000, "end"))
        self.assert_sound(lines, "--live-within", "1")

    def test_too_short_for_liveness_is_said(self):
        lines = flat(line(1000, "healed"), line(1100, "invoke", "a"), line(1200, "refused", "a"), line(1300, "end"))
        self.assertIn("too soon", self.assert_sound(lines)["notes"][0])

    def test_handover(self):
        lines = flat(hold("a", 10, 50), hold("b", 52, 90, invoke=20), hold("a", 94, 120, invoke=91),
                     hold("c", 129, 150, invoke=21), hold("a", 200, 220))
        self.assertEqual(self.assert_sound(lines)["handover_us"],
                         {"count": 2, "p50": 2000, "p99": 9000, "max": 9000})


class Bad(unittest.TestCase):
    def assert_violated(self, kind, lines, *options, times=1, text=""):
        """This kind so many times, and nothing else."""
        status, report, _ = check(lines, *options)
        self.assertEqual(status, 1, report)
        self.assertEqual(report["violations"], {kind: times}, report["details"])
        self.assertIn(text, report["details"][0]["text"])
        return report

    def test_overlap(self):
        self.assert_violated("overlap", flat(hold("a", 10, 100), hold("b", 99, 150)), text="for 1.0 ms")

    def test_overlap_with_a_far_earlier_owner(self):
        lines = flat(hold("a", 10, 900), hold("b", 20, 30), hold("c", 500, 600))
        self.assert_violated("overlap", lines, times=2)

    def test_overlap_with_a_renewed_validity(self):
        lines = flat(hold("a", 10, 400, deadline=210), line(150, "renewed", "a", deadline_ms=450),
                     hold("b", 300, 350))
        self.assert_violated("overlap", lines)

    def test_overlap_with_the_promise_to_a_killed_client(self):
        lines = flat(hold("a", 10, 0, deadline=210, terminal=None), line(50, "killed", "a"), hold("b", 200, 300))
        self.assert_violated("overlap", lines)

    def test_token_twice(self):
        self.assert_violated("token-duplicate", flat(hold("a", 10, 50, 7), hold("b", 60, 90, 7)), text="token 7")

    def test_token_falls(self):
        self.assert_violated("token-order", flat(hold("a", 10, 50, 7), hold("b", 60, 90, 6)), text="had 7")

    def test_token_is_newer_than_the_first_and_older_than_the_latest(self):
        lines = flat(hold("a", 10, 50, 5), hold("b", 60, 90, 9), hold("c", 100, 150, 7))
        self.assert_violated("token-order", lines, text="after b had 9")

    def test_token_falls_among_waiting_contenders(self):
        lines = flat(hold("a", 10, 50, 7), hold("b", 60, 90, 6, invoke=5))
        self.assert_violated("token-order", lines, text="was granted after")

    def test_stale_write_after_a_newer_write(self):
        lines = flat(hold("a", 10, 600, 1, deadline=210, terminal="lost"), hold("b", 300, 400, 2),
                     line(310, "write", "b", fence=2), line(500, "write", "a", fence=1))
        self.assert_violated("stale-write", lines, text="though 2 was seen")

    def test_stale_write_between_the_first_and_the_latest_token(self):
        lines = flat(hold("c", 5, 8, 1, (1,)), hold("a", 10, 600, 2, deadline=210, terminal="lost"),
                     hold("b", 300, 400, 3, (2,)), line(500, "write", "a", fence=2))
        self.assert_violated("stale-write", lines, text="with token 2 though 3 was seen")

    def test_stale_write_after_a_newer_read(self):
        lines = flat(hold("a", 10, 600, 1, deadline=210, terminal="lost"), hold("b", 300, 400, 2),
                     line(310, "read", "b", fence=2), line(500, "write", "a", fence=1))
        self.assert_violated("stale-write", lines)

    def test_stale_write_without_tokens(self):
        lines = flat(hold("a", 10, 600, deadline=210, terminal="lost"), hold("b", 300, 400),
                     line(310, "read", "b"), line(500, "write", "a"))
        report = self.assert_violated("stale-write", lines, text="though b, granted later, had been there")
        self.assertEqual(report["counts"]["stale writes accepted"], 1)

    def test_a_stale_write_that_undoes_another_is_one_violation(self):
        lines = flat(hold("a", 10, 600, deadline=210, terminal="lost"), hold("b", 300, 400, values=(1,)),
                     line(500, "write", "a", value=1))
        self.assert_violated("stale-write", lines)

    def test_lost_update(self):
        lines = flat(hold("a", 10, 50, 1, (1, 2)), hold("b", 60, 90, 2, (2,)))
        self.assert_violated("lost-update", lines, text="writes 2 to job where a had written 2")

    def test_a_gap_between_two_values(self):
        lines = flat(hold("a", 10, 50, 1, (1,)), hold("b", 60, 90, 2, (3,)))
        self.assert_violated("lost-update", lines, text="writes 3 to job where a had written 1")

    def test_write_without_the_lock(self):
        lines = flat(hold("a", 10, 50), line(60, "write", "a", fence=0))
        self.assert_violated("no-grant-write", lines)

    def test_operation_without_an_end(self):
        self.assert_violated("terminal", flat(hold("a", 10, 50, terminal=None)), text="never ends")

    def test_operation_with_two_ends(self):
        self.assert_violated("terminal", flat(hold("a", 10, 50, deadline=90), line(60, "lost", "a")))

    def test_granted_twice(self):
        lines = flat(hold("a", 10, 50), line(20, "granted", "a", deadline_ms=300))
        self.assert_violated("terminal", lines, text="twice")

    def test_refused_after_the_grant(self):
        self.assert_violated("terminal", flat(hold("a", 10, 50, terminal="refused")), text="after it was granted")

    def test_granted_with_nothing_left(self):
        self.assert_violated("validity", flat(hold("a", 10, 50, deadline=9)))

    def test_granted_in_the_moment_in_which_validity_ends(self):
        self.assert_violated("validity", flat(hold("a", 10, 50, deadline=10)))

    def test_dead_after_healing(self):
        lines = flat(line(1000, "healed"), line(1100, "invoke", "a"), line(1900, "refused", "a"), line(4000, "end"))
        self.assert_violated("liveness", lines, "--live-within", "1", text="1 asked")

    def test_granted_too_late_after_healing(self):
        lines = flat(line(1000, "healed"), hold("a", 2001, 2100, invoke=1100), line(4000, "end"))
        self.assert_violated("liveness", lines, "--live-within", "1", text="1 asked")

    def test_a_wait_across_the_healing_that_never_ends(self):
        lines = flat(line(500, "invoke", "a"), line(1000, "healed"), line(3900, "refused", "a"), line(4000, "end"))
        self.assert_violated("liveness", lines, "--live-within", "1")

    def test_broken_word(self):
        lines = flat(hold("a", 10, 50), line(60, "breach", "a", text="the release callback came twice"))
        self.assert_violated("breach", lines, text="came twice")


class Modes(unittest.TestCase):
    """Permits, readers and writers, elections: what each rule of them must refuse, and what it must not."""

    def judged(self, lines, *options):
        status, report, error = check(lines, *options)
        self.assertEqual(error, "")
        self.assertEqual(status, 1 if report["violations"] else 0)
        return report["violations"], report

    def assert_sound(self, lines, *options):
        violations, report = self.judged(lines, *options)
        self.assertEqual(violations, {}, report["details"])
        return report

    def assert_violated(self, kind, lines, *options, times=1, text=""):
        violations, report = self.judged(lines, *options)
        self.assertEqual(violations, {kind: times}, report["details"])
        self.assertIn(text, report["details"][0]["text"])

    def test_as_many_holders_as_permits(self):
        lines = flat(permit("a", 10, 100, 0, 7), permit("b", 20, 90, 1, 7), permit("c", 95, 150, 1, 8))
        report = self.assert_sound(lines)
        self.assertEqual(report["modes"]["permits"]["at_once"], 2)
        self.assertEqual(report["modes"]["permits"]["handover_us"]["count"], 1)

    def test_one_slot_twice(self):
        lines = flat(permit("a", 10, 100, 1, 7), permit("b", 99, 150, 1, 8))
        self.assert_violated("slot-overlap", lines, text="job slot 1 while a is still valid")

    def test_more_holders_than_permits(self):
        """Three of two: one of them has a slot that there is not."""
        lines = flat(permit("a", 10, 100, 0, 7), permit("b", 20, 100, 1, 7), permit("c", 50, 80, 2, 7))
        violations, report = self.judged(lines)
        self.assertEqual(violations, {"permits": 1, "slot": 1}, report["details"])

    def test_two_that_do_not_agree_on_how_many_there_are(self):
        lines = flat(permit("a", 10, 100, 0, 7), permit("b", 20, 100, 1, 7, permits=3))
        self.assert_violated("permits", lines, text="one of 3 permits while a holds one of 2")
        self.assert_sound(flat(permit("a", 10, 100, 0, 7), permit("b", 120, 150, 1, 7, permits=3)))

    def test_a_slot_that_there_is_not(self):
        self.assert_violated("slot", permit("a", 10, 100, 2, 7), text="job slot 2 of 2 permits")
        self.assert_violated("slot", permit("a", 10, 100, 0, 7, permits=0), text="one of no permits")

    def test_tokens_rise_in_each_slot_and_not_over_them(self):
        self.assert_sound(flat(permit("a", 10, 50, 0, 7), permit("b", 60, 90, 1, 3), permit("c", 100, 150, 1, 4)))
        lines = flat(permit("a", 10, 50, 0, 7), permit("b", 60, 90, 0, 6))
        self.assert_violated("token-order", lines, text="job slot 0 with token 6")
        self.assert_violated("token-duplicate", flat(permit("a", 10, 50, 1, 7), permit("b", 60, 90, 1, 7)))

    def test_a_slot_has_a_register_of_its_own(self):
        lines = flat(permit("a", 10, 90, 0, 9, (1, 2)), permit("b", 10, 90, 1, 3, (1, 2)), permit("c", 95, 99, 1, 4, (3,)))
        self.assert_sound(lines)
        lines = flat(permit("a", 10, 600, 1, 3, deadline=210, terminal="lost"), permit("b", 300, 400, 1, 4, (1,)),
                     line(500, "write", "a", fence=3, slot=1, value=2))
        self.assert_violated("stale-write", lines)

    def test_the_promise_to_a_killed_holder(self):
        dead = permit("a", 10, 0, 1, 7, deadline=210, terminal=None)
        lines = flat(dead, line(50, "killed", "a"), permit("b", 230, 300, 1, 8, invoke=60))
        self.assertEqual(self.assert_sound(lines)["modes"]["permits"]["return_us"]["max"], 20_000)
        self.assert_violated("slot-overlap", flat(dead, line(50, "killed", "a"), permit("b", 200, 300, 1, 8)))

    def test_a_slot_that_never_comes_back(self):
        waiter = [line(900, "invoke", "b", mode="permits"), line(3500, "refused", "b", mode="permits")]
        lines = flat(line(1000, "healed"), permit("a", 1500, 3900, 0, 7), waiter, line(4000, "end"))
        self.assert_violated("liveness", lines, "--live-within", "2", text="slot 1 of job was not used")
        lines = flat(line(1000, "healed"), permit("a", 1500, 3900, 0, 7), permit("c", 1600, 1700, 1, 7), waiter,
                     line(4000, "end"))
        self.assert_sound(lines, "--live-within", "2")

    def test_readers_are_many(self):
        report = self.assert_sound(flat(reader("a", 10, 100, 5), reader("b", 20, 150, 4), hold("w", 151, 160, 6)))
        self.assertEqual(report["modes"]["shared"]["at_once"], 2)

    def test_a_writer_beside_a_reader(self):
        lines = flat(reader("a", 10, 100), reader("b", 20, 30), hold("w", 99, 150))
        self.assert_violated("shared-overlap", lines, text="w is granted job while a (shared) is still valid")

    def test_a_reader_beside_a_writer(self):
        self.assert_violated("shared-overlap", flat(hold("w", 10, 100), reader("a", 99, 150)))

    def test_a_writer_beside_both(self):
        lines = flat(hold("v", 10, 100), reader("a", 50, 120), hold("w", 99, 150))
        violations, report = self.judged(lines)
        self.assertEqual(violations, {"shared-overlap": 2, "overlap": 1}, report["details"])

    def test_a_reader_has_seen_the_writer_before_it(self):
        self.assert_sound(flat(hold("w", 10, 50, 7), reader("a", 60, 90, 7), reader("b", 60, 90, 9), hold("v", 95, 99, 8)))
        lines = flat(hold("w", 10, 50, 7), reader("a", 60, 90, 6))
        self.assert_violated("reader-token", lines, text="with token 6 though w had released it with 7")
        self.assert_violated("reader-token", flat(hold("w", 10, 50, 7), reader("a", 60, 90, 0)), text="with token 0")
        self.assert_sound(flat(reader("a", 5, 9, 0), hold("w", 10, 50, 7)))
        # It asked while the writer held, and may have had its answers from before.
        self.assert_sound(flat(hold("w", 10, 50, 7), reader("a", 60, 90, 6, invoke=40)))

    def test_a_counter_that_a_node_lost(self):
        def fault(begin, end, kind):
            return [line(begin, "fault", id=1, kind=kind, phase="begin"), line(end, "fault", id=1, kind=kind, phase="end")]
        behind = flat(hold("w", 10, 50, 7), reader("a", 100, 120, 6))
        for kind in ("wipe", "aof-cut", "reconfigure", "flush"):
            report = self.assert_sound(flat(behind, fault(55, 80, kind)))
            self.assertEqual(report["counts"]["readers behind lost counters"], 1)
        self.assert_sound(flat(behind, fault(5, 80, "wipe")))
        for lost in (fault(55, 80, "kill"), fault(2, 8, "wipe"), fault(130, 140, "wipe")):
            self.assert_violated("reader-token", flat(behind, lost))

    def test_readers_and_writers_each_go_on_after_healing(self):
        lines = flat(line(1000, "healed"), hold("w", 1500, 1600), line(1400, "invoke", "a", mode="shared"),
                     line(2900, "refused", "a", mode="shared"), line(4000, "end"))
        self.assert_violated("liveness", lines, "--live-within", "1", text="no grant of job (shared)")

    def test_users_of_one_client(self):
        def of_user(user, lines):
            return [made | {"user": user} for made in lines]
        self.assert_sound(flat(of_user(1, permit("a", 10, 100, 0, 7)), of_user(2, permit("a", 20, 90, 1, 7))))
        lines = flat(of_user(1, hold("a", 10, 100)), of_user(2, hold("a", 50, 150)))
        self.assert_violated("overlap", lines, text="a.2 is granted job while a.1 is still valid")
        self.assert_violated("terminal", of_user(3, hold("a", 10, 50, terminal=None)), text="a.3 on job never ends")
        dead = flat(of_user(1, permit("a", 10, 0, 0, 7, terminal=None)), of_user(2, permit("a", 20, 0, 1, 7, terminal=None)),
                    line(50, "killed", "a"))
        self.assert_sound(dead)

    def test_one_leader_after_another(self):
        self.assert_sound(flat(leader("a", 10, 50, 7), leader("b", 60, 90, 8)))
        self.assert_violated("leaders", flat(leader("a", 10, 100, 7), leader("b", 99, 150, 8)))

    def test_terms_rise(self):
        self.assert_violated("token-order", flat(leader("a", 10, 50, 7), leader("b", 60, 90, 6)), text="with term 6")
        self.assert_violated("token-duplicate", flat(leader("a", 10, 50, 7), leader("b", 60, 90, 7)), text="with term 7")

    def test_an_observer_never_goes_back(self):
        def told(t_ms, term, owner="", client="o"):
            return line(t_ms, "observed", client, term=term, mode="election", **({"leader": owner} if owner else {}))
        led = flat(leader("a", 10, 50, 7), leader("b", 60, 90, 8))
        self.assert_sound(flat(led, told(20, 7, "a:1"), told(55, 7), told(70, 8, "b:2"), told(75, 8, "b:2"),
                               told(80, 7, "a:1", client="late")))
        self.assert_sound(flat(led, told(20, 6, "a:1"), told(21, 7, "a:1")))
        self.assert_violated("observer", flat(led, told(20, 8, "b:2"), told(70, 7, "a:1")), text="term 7 of job after 8")
        self.assert_violated("observer", flat(led, told(20, 8, "b:2"), told(70, 7)), text="term 7 of job after 8")
        self.assert_violated("observer", flat(led, told(20, 7, "a:1"), told(55, 7), told(70, 7, "b:2")),
                             text="reports that b:2 leads job by term 7, by which a:1 led")
        self.assert_violated("observer", flat(led, told(20, 7, "a:1"), told(70, 7, "b:2", client="p")), text="p reports")
        begins = line(40, "client", "o", state="running", version=1)
        self.assert_sound(flat(led, told(20, 8, "b:2"), begins, told(70, 7, "a:1")))
        stopped = line(40, "client", "o", state="running")
        self.assert_violated("observer", flat(led, told(20, 8, "b:2"), stopped, told(70, 7, "a:1")))

    def test_outside_the_claim_they_are_counted(self):
        for kind, lines in (("slot-overlap", flat(permit("a", 10, 100, 1, 7), permit("b", 99, 150, 1, 8))),
                            ("shared-overlap", flat(reader("a", 10, 100), hold("w", 99, 150))),
                            ("leaders", flat(leader("a", 10, 100, 7), leader("b", 99, 150, 8)))):
            status, report, _ = check(lines, "--profile", "outside")
            self.assertEqual((status, report["tolerated"]), (0, {kind: 1}))

    def test_without_invoke(self):
        lines = flat(permit("a", 10, 100, 1, 7), permit("b", 99, 150, 1, 8), reader("a", 10, 100, key="data"),
                     hold("w", 99, 150, key="data"))
        violations, _ = self.judged([made for made in lines if made["event"] != "invoke"])
        self.assertEqual(violations, {"slot-overlap": 1, "shared-overlap": 1})


class Outside(unittest.TestCase):
    def test_overlaps_are_counted(self):
        status, report, _ = check(flat(hold("a", 10, 100), hold("b", 50, 150)), "--profile", "outside")
        self.assertEqual((status, report["violations"], report["tolerated"]), (0, {}, {"overlap": 1}))

    def test_tokens_rise_only_in_the_order_of_asking(self):
        lines = flat(hold("a", 10, 50, 7), hold("b", 60, 90, 6, invoke=5))
        status, report, _ = check(lines, "--profile", "outside")
        self.assertEqual((status, report["violations"], report["tolerated"]), (0, {}, {}))

    def test_updates_lost_for_want_of_tokens_are_counted(self):
        lines = flat(hold("a", 10, 100, values=(1,)), hold("b", 50, 150, values=(1,)))
        status, report, _ = check(lines, "--profile", "outside")
        self.assertEqual((status, report["tolerated"]), (0, {"overlap": 1, "lost-update": 1}))

    def test_stale_writes_without_tokens_are_counted(self):
        lines = flat(hold("a", 10, 600, deadline=210, terminal="lost"), hold("b", 300, 400),
                     line(310, "read", "b"), line(500, "write", "a"))
        status, report, _ = check(lines, "--profile", "outside")
        self.assertEqual((status, report["tolerated"]), (0, {"stale-write": 1}))

    def test_stale_writes_still_fail(self):
        lines = flat(hold("a", 10, 600, 1, deadline=210, terminal="lost"), hold("b", 300, 400, 2),
                     line(310, "write", "b", fence=2), line(500, "write", "a", fence=1))
        status, report, _ = check(lines, "--profile", "outside")
        self.assertEqual((status, report["violations"]), (1, {"stale-write": 1}))

    def test_ends_and_liveness_still_fail(self):
        lines = flat(hold("a", 10, 50, terminal=None), line(1000, "healed"), line(1100, "invoke", "b"),
                     line(1900, "refused", "b"), line(4000, "end"))
        status, report, _ = check(lines, "--profile", "outside", "--live-within", "1")
        self.assertEqual((status, report["violations"]), (1, {"terminal": 1, "liveness": 1}))


class Resource(unittest.TestCase):
    def test_it_refuses_who_comes_with_an_older_token(self):
        """Of each access: what it is, its token, and the event, the value and the newest token after it."""
        register = Register()
        for number, (event, fence, mode, wanted) in enumerate([
                ("write", 5, "lock", ("write", 0, 5)), ("write", 5, "lock", ("write", 1, 5)),
                ("write", 4, "lock", ("write_refused", 1, 5)), ("read", 4, "lock", ("read_refused", 1, 5)),
                ("read", 0, "lock", ("read", 1, 5)), ("read", 9, "shared", ("read", 1, 5)),
                ("read", 4, "shared", ("read_refused", 1, 5)), ("read", 6, "lock", ("read", 1, 6)),
                ("write", 5, "lock", ("write_refused", 1, 6)), ("write", 0, "lock", ("write", 9, 6))]):
            found = register.access({"event": event, "fence": fence, "mode": mode, "value": number})
            self.assertEqual((found["event"], found["now"], found["seen"]), wanted, number)


class WithoutInvoke(unittest.TestCase):
    """Who writes down grants only is judged by them."""

    def check(self, lines, *options):
        return check([made for made in lines if made["event"] != "invoke"], *options)

    def test_one_after_another(self):
        status, report, error = self.check(flat(hold("a", 10, 50, 1, (1,)), hold("b", 52, 90, 2, (2,)),
                                                hold("a", 20, 60, key="other"), line(70, "refused", "c"),
                                                hold("c", 100, 120, terminal=None), line(600, "refused", "c")))
        self.assertEqual((status, error, report["violations"]), (0, "", {}))
        self.assertEqual((report["counts"]["grants"], report["counts"]["refusals"]), (4, 2))
        self.assertIn("no invoke", report["notes"][0])

    def test_two_at_once(self):
        for lines in [flat(hold("a", 10, 100), hold("b", 50, 150)),
                      flat(hold("a", 10, 100, terminal=None), hold("b", 50, 150, terminal=None)),
                      [line(1, "granted", "a", deadline_ms=9), line(8, "granted", "b", deadline_ms=20)]]:
            status, report, _ = self.check(lines)
            self.assertEqual((status, report["violations"]), (1, {"overlap": 1}), lines)

    def test_tokens_and_writes(self):
        status, report, _ = self.check(flat(hold("a", 10, 50, 7), hold("b", 60, 90, 7), hold("c", 95, 99, 6, (1,))))
        self.assertEqual((status, report["violations"]), (1, {"token-duplicate": 1, "token-order": 1}))
        status, report, _ = self.check(flat(hold("a", 10, 50), line(60, "write", "b")))
        self.assertEqual((status, report["violations"]), (1, {"no-grant-write": 1}))

    def test_an_end_needs_a_grant(self):
        status, report, _ = self.check(flat(hold("a", 10, 50), line(60, "released", "b"), line(70, "lost", "a")))
        self.assertEqual((status, report["violations"]), (1, {"terminal": 2}))

    def test_one_invoke_makes_all_necessary(self):
        status, report, _ = check([*hold("a", 10, 50), line(60, "granted", "b", deadline_ms=90)])
        self.assertEqual((status, report["violations"]), (1, {"terminal": 1}))


class Output(unittest.TestCase):
    def run_check(self, *options, **more):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("".join(json.dumps(made) + "\n" for made in hold("a", 10, 50)))
            file.flush()
            return subprocess.run([sys.executable, str(CHECK), file.name, *options], stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False, **more)

    def test_a_report_that_cannot_be_written(self):
        for place in ("/nonexistent/report.html", "/dev/full", "/"):
            done = self.run_check("--report", place, stdout=subprocess.PIPE)
            self.assertEqual(done.returncode, 74, place)
            self.assertTrue(done.stdout.endswith("verdict: sound\n"), done.stdout)
            self.assertRegex(done.stderr, f"^cluster/check: --report: {place} cannot be written: .+\n$")

    def test_stale_writes_are_no_second_owner(self):
        lines = flat(hold("a", 10, 600, deadline=210, terminal="lost"), hold("b", 300, 400, values=(1,)),
                     line(500, "write", "a", value=1), line(550, "write", "a", value=2))
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder) / "run.svg"
            self.assertEqual(check(lines, "--report", str(picture))[0], 1)
            self.assertIn("<title>No two owners at once, but 2 stale writes (no fencing token in use)</title>",
                          picture.read_text(encoding="utf-8"))

    def page_of(self, *lines):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "run.html"
            check(flat(*lines), "--report", str(page))
            return page.read_text(encoding="utf-8")

    def test_a_page_tells_the_first_violation(self):
        run = line(0, "run", nodes=3, clients=2, keys=1, guard="connection", fence=1, programs=["./mine"], again="chaos --seed 7 <")
        fault = {"id": 4, "kind": "wipe-owned", "nodes": [3], "clients": [9]}  # the owner of another key, too
        page = self.page_of([run], hold("a", 10, 600, deadline=700), [line(90, "fault", phase="begin", **fault)],
                            [line(95, "fault", phase="end", **fault)], hold("b", 300, 400, deadline=900),
                            hold("c", 1000, 1100), hold("d", 1050, 1150))
        story = re.findall(r"<li><b>([^<]*)</b>([^<]*)</li>", page)
        self.assertEqual(story, [
            ("0.010 s", "a is granted job, valid to 0.700 s."),
            ("0.090 s", "c9, node 3: an owner stopped right after its grant, most servers killed and restarted empty, until 0.095 s."),
            ("0.300 s", "b is granted job, too, while a has reason to trust its own."),
            ("0.400 s", "b releases it: for 100.0 ms there were two owners.")])
        self.assertIn("<pre>chaos --seed 7 &lt;</pre>", page)
        for wrong in ("survived", "guard connection", "although tokens were requested"):
            self.assertNotIn(wrong, page)
        self.assertNotIn("How it broke first", self.page_of(hold("a", 10, 50)))

    def test_a_page_tells_a_stale_write(self):
        page = self.page_of(hold("a", 10, 600, deadline=210, terminal="lost"), hold("b", 300, 400, values=(1,)),
                            [line(500, "write", "a", value=2)])
        self.assertEqual(re.findall(r"<li><b>([^<]*)</b>([^<]*)</li>", page), [
            ("0.005 s", "a is granted job, valid to 0.205 s."), ("0.205 s", "The validity of a is over."),
            ("0.295 s", "b is granted job."),
            ("0.495 s", "a writes, and nothing refuses it, though b has been there.")])
        self.assertIn("0 of 1</b><span>losses noticed before validity ended; 1 after it had ended", page)

    def test_a_page_of_clients_that_got_nothing(self):
        page = self.page_of([line(0, "invoke", "a"), line(10, "refused", "a"), line(20, "healed"), line(30000, "end")])
        self.assertIn("<h1>No client was ever granted the lock</h1><p>So nothing was tested; the clients were refused 1 time.", page)
        self.assertIn("losses: every owner released its lock in time", page)

    def test_a_picture(self):
        """An SVG on its own: well formed, nothing in it is fetched or run, and it shows whether the lock held."""
        for lines, status, title in ((flat(hold("a", 10, 500, 1), hold("b", 510, 900, 2)), 0, "The lock held"),
                                     (flat(hold("a", 10, 500), hold("b", 300, 900)), 1, "The lock was broken 1 time")):
            with tempfile.TemporaryDirectory() as folder:
                picture = Path(folder) / "run.svg"
                self.assertEqual(check(lines, "--report", str(picture))[0], status)
                text = picture.read_text(encoding="utf-8")
            root = ElementTree.fromstring(text)
            self.assertEqual((root.tag, root[0].text), (SVG + "svg", title))
            names = [found.text for found in root.iter(SVG + "text")]
            self.assertTrue({"a", "b", "holds job", title} <= set(names), names)
            self.assertEqual("violation" in names, status == 1, names)
            self.assertEqual(len([found for found in root.iter(SVG + "rect") if "hold" in found.get("class", "").split()]),
                             3, "two holds, and the sign that explains them")
            self.assertNotRegex(text, "<script|href|<image|@import|url\\((?!#)")

    def test_lines_that_lie_far_apart(self):
        """Also of a history with a time of nowhere: the page has no tick for each of its years."""
        for last_ms in (10**9, 2**63 // 1000 - 1000):
            with tempfile.TemporaryDirectory() as folder:
                page = Path(folder) / "run.html"
                self.assertEqual(check(hold("a", 10, 50) + hold("b", last_ms, last_ms + 40), "--report", str(page))[0], 0)
                self.assertLess(page.stat().st_size, 4000000)

    def test_nobody_reads(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = self.run_check(stdout=writer)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, ""))
        with open("/dev/full", "wb") as full:
            done = self.run_check(stdout=full)
        self.assertEqual((done.returncode, done.stderr),
                         (74, "cluster/check: the verdict cannot be written: No space left on device\n"))


class Malformed(unittest.TestCase):
    def assert_refused(self, lines, text, *options):
        status, report, error = check(lines, *options)
        self.assertEqual((status, report), (64, None))
        self.assertIn(text, error)

    def test_line_number_and_reason(self):
        good = hold("a", 10, 50)
        self.assert_refused(good + ["{"], "line 4: not JSON")
        self.assert_refused(good + ["[1]"], "line 4: not a JSON object")
        self.assert_refused(good + ["[" * 100000], "line 4: not JSON")
        self.assert_refused([good[0], {"event": "granted"}], "line 2: no t_us")
        self.assert_refused([line(1, "taken", "a")], "line 1: unknown event 'taken'")
        self.assert_refused([line(1, ["granted"], "a")], "line 1: unknown event ['granted']")
        self.assert_refused([line(1, {}, "a")], "line 1: unknown event {}")
        self.assert_refused([line(1, "granted", "a")], "granted without deadline_us")
        self.assert_refused([{"t_us": 1, "event": "invoke", "key": "k"}], "invoke without a client")
        self.assert_refused([{"t_us": 1, "event": "invoke", "client": "a"}], "invoke without a key")
        self.assert_refused([line(1, "invoke", "a", fence=-1)], "fence is -1")
        self.assert_refused([line(1, "invoke", "a", fence=True)], "fence is True")
        self.assert_refused([{"t_us": 1.5, "event": "invoke"}], "no t_us")
        self.assert_refused(hold("a", 10, 50, deadline=10**400), "line 2: deadline_us is 1000")
        self.assert_refused(flat(hold("a", 10, 50, fence=2**63)), f"line 2: fence is {2**63}, too large")
        self.assert_refused([line(1, "invoke", "a", mode="write")], "mode is 'write', none of lock, permits, shared, election")
        self.assert_refused([line(1, "invoke", "a", slot="1")], "slot is '1'")
        self.assert_refused([line(1, "observed", "a")], "observed without term")

    def test_nothing_to_judge(self):
        self.assert_refused([], "holds no operation")
        self.assert_refused([line(1, "healed")], "holds no operation")

    def test_usage(self):
        for arguments in (["/nonexistent/history"], [], ["x", "--profile", "sideways"], ["/dev/null", "--live-within", "0"]):
            run = subprocess.run([sys.executable, str(CHECK), *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(run.returncode, 64, arguments)
            self.assertTrue(run.stderr.startswith("cluster/check: "), run.stderr)

    def test_not_text(self):
        with tempfile.NamedTemporaryFile("wb", suffix=".jsonl") as file:
            file.write(b"\xff\xfe{}\n")
            file.flush()
            run = subprocess.run([sys.executable, str(CHECK), file.name], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 64)
        self.assertIn("cannot be read", run.stderr)


class Text(unittest.TestCase):
    def test_a_person_reads_the_verdict(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for made in flat(hold("a", 10, 100), hold("b", 50, 150)):
                file.write(json.dumps(made) + "\n")
            file.flush()
            run = subprocess.run([sys.executable, str(CHECK), file.name], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn("VIOLATION: 1 x overlap: two owners at once", run.stdout)
        self.assertTrue(run.stdout.endswith("verdict: VIOLATED, 1 time: 1 overlap\n"), run.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
