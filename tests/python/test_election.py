#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Candidates of elections: test_election.py PATH_TO_quorlock [TEST...]"""
import gc
import sys
import threading

import test_python
from test_python import LEASE_MS, LIMIT_S, command_case, wait_for
from test_threads_and_forks import FRONT

import quorlock
from quorlock import Canceled, Closed, Error, Foreign, Invalid, Lost
from quorlock._library import library

# The candidate of this process stands while another one leads, and is interrupted; a little later each time.
INTERRUPTED = """
leads = quorlock.Client(os.environ["QUORLOCK_NODES"], guard="off", max_lease_ms=120000).candidate(KEY)
mine = client.candidate(KEY)

def term_of(candidate):
    return quorlock._library.library.quorlock_sync_candidate_term(candidate._handle)

def interrupt(pause_s):
    wait_for(lambda: client._calls)
    time.sleep(pause_s)
    os.kill(os.getpid(), signal.SIGINT)

for i in range(8):
    leads.stand()
    thread = threading.Thread(target=interrupt, args=(i * 0.0003,), daemon=True)
    thread.start()
    try:
        mine.stand()
        sys.exit("elected")
    except KeyboardInterrupt:
        pass
    thread.join()
    leads.resign()
    if client._calls or term_of(mine) or mine.leading:
        sys.exit("it does not go on")
    # Were it a candidate still, one of both would have to wait.
    with leads:
        if term_of(mine):
            sys.exit("it was elected after it gave up")
with mine:
    mine.check()
"""

FORKED = """
mine = [client.candidate(KEY)]
waits = [client.candidate(KEY)]
term = mine[0].stand()
thread = threading.Thread(target=lambda: waits[0].stand(), daemon=True)
thread.start()
wait_for(lambda: client._calls)
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    try:
        assert not mine[0].leading and mine[0].valid_ms == 0
        for call in mine[0].stand, mine[0].resign, waits[0].stand:
            try:
                call()
            except quorlock.Closed as problem:
                assert "parent" in str(problem), problem
                continue
            raise AssertionError(call.__name__)
        mine.clear(), waits.clear()
        gc.collect()
        with client.candidate(KEY + ":child") as leader:
            leader.check()
    except BaseException as problem:
        print(repr(problem), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)
if os.waitpid(pid, 0)[1] != 0:
    sys.exit("the child failed")
mine[0].check()
mine[0].resign()
thread.join()
assert waits[0].term > term
"""


class Election(test_python.PythonCase):
    def candidate(self, **options):
        return self.client.candidate(self.key, **options)

    def in_thread(self, call):
        """Calls it there; the list gets what it returns or raises."""
        ends = []

        def run():
            try:
                ends.append(call())
            except Error as problem:
                ends.append(problem)

        before = len(self.client._calls)
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        wait_for(lambda: ends or len(self.client._calls) > before)
        return thread, ends

    def run_text(self, text):
        child = self.python(FRONT + text)
        out, err = child.communicate(timeout=LIMIT_S)
        self.assertEqual((child.returncode, out, err), (0, "", ""))

    def test_the_block_leads_and_terms_rise(self):
        first = self.candidate(advertise="here:1")
        self.assertIn(f"{self.key!r}: does not lead", repr(first))
        with self.assertRaises(Lost):
            first.check()
        told = []
        with first as leader, self.client.observe(self.key, told.append):
            leader.check()
            self.assertTrue(leader.leading)
            self.assertIn(f"leads by term {leader.term}", repr(leader))
            self.assertEqual(leader.stand(), leader.term)  # of a leader at once
            wait_for(lambda: ("known", leader.term, "here:1") in [seen[:3] for seen in told])
            thread, ends = self.in_thread(self.candidate().stand)
            before = leader.term
        thread.join(LIMIT_S)
        self.assertGreater(ends[0], before)
        self.assertEqual((first.leading, first.term, first.deposed), (False, 0, False))

    def test_an_observer_is_told_however_soon_the_first_event_comes(self):
        """Also where the thread of the events reads it before the call that made the observer has ended."""
        told = set()
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-6)
        with self.candidate():
            observers = [self.client.observe(self.key, lambda _leader, number=number: told.add(number))
                         for number in range(300)]
            wait_for(lambda: len(told) == len(observers))
            for observer in observers:
                observer.close()

    def test_a_leader_that_is_deposed_is_told_and_its_block_raises_lost(self):
        told = []

        def on_deposed(leader, text):
            told.append((leader.leading, text))

        leader = self.candidate(lease_ms=LEASE_MS, on_deposed=on_deposed)
        with self.assertRaises(Lost) as caught:
            with leader:
                term = leader.term
                self.take_away()
                # It is elected again by itself, but not for this block.
                wait_for(lambda: library.quorlock_sync_candidate_term(leader._handle) > term)
                self.assertFalse(leader.leading)
                self.assertTrue(leader.deposed)
                self.assertIn("deposed", repr(leader))
                with self.assertRaises(Lost):
                    leader.check()
        self.assertEqual(told, [(False, str(caught.exception))])
        self.assert_free()
        with self.assertRaises(ZeroDivisionError):
            with leader:
                self.assertGreater(leader.term, term)
                self.assertTrue(leader.leading)
                self.take_away()
                wait_for(lambda: leader.deposed)
                raise ZeroDivisionError

    def test_the_next_stand_of_one_that_was_deposed_is_its_next_term(self):
        leader = self.candidate(lease_ms=LEASE_MS)
        term = leader.stand()
        self.take_away()
        wait_for(lambda: leader.deposed)
        self.assertGreater(leader.stand(), term)
        leader.check()
        self.assertTrue(leader.resign())

    def test_what_ends_a_stand(self):
        with self.open().candidate(self.key):
            waits = self.candidate()
            thread, ends = self.in_thread(waits.stand)
            # In a thread that is about to stand it may not stand yet.
            wait_for(lambda: self.resigns(waits))
            thread.join(LIMIT_S)
            self.assertIsInstance(ends[0], Canceled)
            for _ in range(5):
                client = self.client = self.open()
                candidate = self.candidate()
                waiting = [self.in_thread(stands.stand) for stands in (candidate, candidate, self.candidate())]
                client.close()
                for thread, ends in waiting:
                    thread.join(LIMIT_S)
                    self.assertIsInstance(ends[0], Closed)
                for call in candidate.stand, candidate.resign:
                    with self.assertRaises(Closed):
                        call()
        for server in command_case.SERVERS:
            server.ask("RPUSH", self.key, "1")
        self.client = self.open()
        with self.assertRaises(Foreign) as caught:
            self.candidate().stand()
        self.assertNotEqual(str(caught.exception), "FOREIGN")

    def resigns(self, candidate):
        try:
            return candidate.resign()
        except Error as problem:
            self.assertEqual(problem.name, "STATE")
            return False

    def test_what_cannot_be_right(self):
        for options in {"advertise": "a b"}, {"lease_ms": -1}, {"advertise": "a\0"}, {"renew_ms": 9000, "lease_ms": 900}:
            with self.assertRaises(Invalid):
                self.candidate(**options)
        with self.assertRaises(Invalid):
            self.client.candidate("")

    def test_one_that_is_dropped_leads_no_more(self):
        told = []
        for _ in range(20):
            leader = self.candidate(on_deposed=lambda *_: told.append(True))
            leader.stand()
            del leader
            gc.collect()
        self.assertEqual(self.client._candidates, {})
        self.assert_free()
        self.client.close()
        self.assertEqual(told, [])

    def test_a_client_and_its_leader_that_go_together_leave_nothing(self):
        client = quorlock.Client(test_python.nodes(), guard="off")
        leader = client.candidate(self.key, on_deposed=lambda *_: leader.check())  # the cycle that goes by gc alone
        client.leader = leader
        leader.stand()
        del client, leader
        gc.collect()
        self.assert_free()

    def test_an_interrupt_leaves_no_candidate(self):
        self.run_text(INTERRUPTED)

    def test_a_child_has_none_of_its_parent(self):
        self.run_text(FORKED)


if __name__ == "__main__":
    command_case.main()
