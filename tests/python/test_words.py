#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the Python package says, and by which exception: test_words.py PATH_TO_quorlock [TEST...]"""
import copy
import ctypes
import inspect
import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import socket
import tempfile
import threading
import types
import unittest.mock

import test_python
from test_python import LIMIT_S, LONG_MS, SERVERS, command_case, nodes, wait_for

import quorlock
from quorlock import _client, _election, _errors, _events, _library, _lock, _observer, _report

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include" / "quorlock"


def numbers_of_headers():
    """{the name behind QUORLOCK_: number} of all enumerators."""
    found = {}
    for header in INCLUDE.glob("*.h"):
        text = re.sub(r" */\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        for body in re.findall(r"enum \w+ \{(.*?)\}", text, re.S):
            number = -1
            for name, given in re.findall(r"^ *QUORLOCK_(\w+)(?: = (-?\d+))?,?$", body, re.M):
                number = found[name] = int(given) if given else number + 1
    return found


def filled(struct):
    """One of that kind, each of whose members has another value; it points to no others."""
    made = struct()
    for place, (name, kind) in enumerate(struct._fields_):
        if kind is ctypes.c_char_p:
            setattr(made, name, name.encode())
        elif name not in ("n_holders", "n_nodes") and issubclass(kind, ctypes._SimpleCData):
            setattr(made, name, 100 + place)
    return made


def serve(listener):
    """Something that is no Redis."""
    while True:
        try:
            with listener.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        except OSError:
            return


class Words(test_python.PythonCase):
    def caught(self, client, kind, key=None):
        """The text of the error that an acquire ends with, when the nodes have told what they have to."""
        found = []

        def come():
            try:
                client.lock(key or self.key, wait_ms=0).acquire()
            except quorlock.Error as problem:
                found.append(problem)
            return found and isinstance(found[-1], kind)
        wait_for(come)
        return str(found[-1])

    def test_a_key_of_another_dialect_names_the_option_of_python(self):
        for server in SERVERS:
            server.ask("HSET", self.key, "owner", "1")
        text = self.caught(self.client, quorlock.Foreign)
        self.assertIn("dialect='redisson'", text)
        self.assertNotIn("--", text)

    def test_a_key_is_inspected_and_broken(self):
        self.assertEqual(self.client.inspect(self.key)[:3], (2, 3, False))
        lock = self.client.lock(self.key)
        with self.assertRaises(quorlock.Lost), lock:
            wait_for(lambda: all(node.state == "held" for node in self.client.inspect(self.key).nodes))
            report = self.client.inspect(self.key)
            self.assertEqual((report.held, report.holder), (True, lock.token))
            self.assertEqual({node.holder for node in report.nodes}, {lock.token})
            self.assertGreater(report.valid_ms, 0)
            report = self.client.break_lock(self.key, "another")
            self.assertEqual([(node.state, node.holder) for node in report.nodes], [("held", lock.token)] * 3)
            self.assertEqual([node.state for node in self.client.break_lock(self.key, lock.token).nodes], ["broken"] * 3)
            wait_for(lambda: lock.lost)
        self.assertFalse(self.client.inspect(self.key).held)
        with self.client.lock(self.key, permits=2) as permit:
            holders = [one for node in self.client.inspect(self.key).nodes for one in node.holders]
            self.assertIn((permit.token, "slot", permit.slot), [(one.holder, one.kind, one.slot) for one in holders])
        with self.assertRaises(quorlock.Invalid):
            self.client.inspect("")
        client = self.open()
        client.close()
        with self.assertRaises(quorlock.Closed):
            client.inspect(self.key)

    def test_locks_are_listed(self):
        with self.client.lock(self.key) as lock, self.client.lock(self.key + ":p", permits=3) as permit:
            wait_for(lambda: all(one.nodes == 3 for one in self.client.list_locks(self.key + "*").locks))
            listing = self.client.list_locks(self.key + "*")
        self.assertEqual((listing.quorum, listing.answered), (2, 3))
        self.assertEqual(sorted(one[:4] + one[5:] for one in listing.locks),
                         [(self.key, lock.token, "exclusive", 3, 0, 0, None),
                          (self.key + ":p", permit.token, "permit", 3, 0, 3, permit.slot)])
        self.assertEqual([(node.state, node.error) for node in listing.nodes], [("listed", None)] * 3)
        for server in SERVERS:
            for number in range(300):
                server.ask("SET", f"many:{number}", "someone:" + "0" * 40, "PX", "60000")
        self.assertEqual({one.key for one in self.client.list_locks("many:*").locks}, {f"many:{i}" for i in range(300)})
        SERVERS[0].ask("SET", "many:other", "of another program", "PX", "60000")
        listing = self.client.list_locks("many:*")
        self.assertEqual((len(listing.locks), listing.others, listing.other_keys), (300, 1, ("many:other",)))
        with self.assertRaises(quorlock.Invalid):
            self.client.list_locks("")

    def test_a_user_that_is_refused(self):
        text = self.caught(self.open(user="nobody", password="geheim"), quorlock.Unauthorized)
        self.assertNotIn("geheim", text)

    def test_what_is_no_redis(self):
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        for listener in listeners:
            self.addCleanup(listener.close)
            threading.Thread(target=serve, args=(listener,), daemon=True).start()
        client = quorlock.Client([f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners], guard="off")
        self.addCleanup(client.close)
        self.caught(client, quorlock.Protocol)
        listing = client.list_locks()
        self.assertEqual((listing.answered, [node.state for node in listing.nodes]), (0, ["error"] * 3))

    def test_a_guard_names_the_option_of_python_and_the_command_as_it_is(self):
        status, _, err = self.connected("bootstrap", "--yes", "--max-lease", "1m", env={"QUORLOCK_NODES": nodes()})
        self.assertEqual(status, 0, err)
        client = quorlock.Client(nodes(), max_lease_ms=LONG_MS)
        self.addCleanup(client.close)
        text = self.caught(client, quorlock.Invalid)
        self.assertIn("max_lease_ms=60000", text)
        self.assertIn("'quorlock bootstrap --reconfigure --max-lease 2m'", text)

    def test_options_of_tls_are_named_as_python_has_them(self):
        with self.assertRaises(quorlock.Invalid) as caught:
            quorlock.Client("rediss://127.0.0.1:1", tls_ca="/no/such/ca.pem")
        self.assertIn("tls_ca", str(caught.exception))
        self.assertNotIn("--", str(caught.exception))

    def test_a_lock_shows_its_keys_and_its_state(self):
        lock = self.client.lock(self.key, b"other")
        self.assertEqual(repr(lock), f"<quorlock.Lock {self.key!r}, b'other': not held>")
        with lock:
            self.assertIn(": held>", repr(lock))
        client = quorlock.Client("redis://:geheim@127.0.0.1:1", guard="off")
        self.addCleanup(client.close)
        self.assertEqual(repr(client), "<quorlock.Client of 1 nodes>")

    def test_metrics(self):
        with self.lock():
            text = self.client.metrics()
        self.assertIn("\nquorlock_held 1\n", text)
        self.assertTrue(text.endswith("# EOF\n"), text[-50:])
        self.assertIn("\nquorlock_held 0\n", self.client.metrics())
        self.client.close()
        with self.assertRaises(quorlock.Closed):
            self.client.metrics()

    def test_an_observer_sees_a_leader_come_and_go(self):
        seen, key = [], self.key
        ended = os.path.join(tempfile.mkdtemp(), "ended")
        self.addCleanup(shutil.rmtree, os.path.dirname(ended))
        leads = threading.Thread(target=lambda: self.quorlock(
            "elect", "--guard", "off", "--advertise", "host1:80", key, "--",
            "sh", "-c", f"until [ -e {ended} ]; do sleep .05; done", env={"QUORLOCK_NODES": nodes()}))
        with self.client.observe(key, seen.append, poll_ms=100) as observer:
            wait_for(lambda: observer.leader.state == "none")
            leads.start()
            wait_for(lambda: observer.leader.state == "known")
            term = observer.leader.term
            self.assertEqual((observer.leader.text, term > 0), ("host1:80", True))
            self.assertTrue(observer.leader.owner)
            with open(ended, "w", encoding="utf-8"):
                leads.join()
            wait_for(lambda: observer.leader[:3] == ("none", term, None))
            self.client.close()
        self.assertIn(("known", "host1:80"), [(leader.state, leader.text) for leader in seen])
        observer.close()
        with self.assertRaises(quorlock.Closed):
            self.client.observe(key)
        with self.assertRaisesRegex(quorlock.Invalid, "poll_ms"):
            self.open().observe(key, poll_ms=1)

    def test_each_number_is_that_of_the_headers(self):
        numbers = numbers_of_headers()
        words = {"": {"ok": _errors.OK}, "ERR_": {"busy": _errors.BUSY, "state": _errors.STATE}, "POLICY_": _client.POLICIES,
                 "DIALECT_": _client.DIALECTS, "GUARD_": _client.GUARDS,
                 **{front: {word: number for number, word in table.items()}
                    for front, table in (("HOLDER_", _report.KINDS), ("MODE_", _report.MODES),
                                         ("INSPECT_", _report.INSPECT_STATES), ("BREAK_", _report.BREAK_STATES),
                                         ("LIST_", _report.LIST_STATES))},
                 "EVENT_": {name: getattr(_events, name) for name in vars(_events)
                            if isinstance(getattr(_events, name), int) and name not in ("OK",)},
                 "LEADER_": {word: number for number, word in enumerate(_observer.STATES)}}
        for front, numbered in words.items():
            for word, number in numbered.items():
                self.assertEqual(numbers[front + word.upper()], number, front + word)
        status_of = {"Unauthorized": "AUTH", "Protocol": "PROTO", "Invalid": "INVAL"}
        for number, kind in _errors.CLASSES.items():
            name = status_of.get(kind.__name__, kind.__name__.upper())
            self.assertEqual((numbers["ERR_" + name], quorlock._library.status_name(number)), (number, name))

    def test_each_member_of_a_report_is_the_library_s(self):
        for struct, read in ((_library.Holder, _report.read_holder), (_library.InspectNode, _report.read_inspect_node),
                             (_library.InspectReport, _report.read_inspect), (_library.BreakNode, _report.read_break_node),
                             (_library.BreakReport, _report.read_break), (_library.Listed, _report.read_listed),
                             (_library.ListNode, _report.read_list_node)):
            made = filled(struct)
            for name, value in read(made)._asdict().items():
                if name not in ("kind", "mode", "state") and not isinstance(value, tuple):
                    given = getattr(made, name)
                    self.assertEqual(value, given.decode() if isinstance(given, bytes) else type(value)(given), (struct, name))

    def test_each_option_reaches_the_library(self):
        def options_of(module, function, make):
            """The struct that the constructor gives to that function."""
            seen = []

            def take(*given):
                seen.extend(one._obj for one in given if isinstance(getattr(one, "_obj", None), ctypes.Structure))
                return _errors.INVAL
            fake = types.SimpleNamespace(**{function: take})
            with unittest.mock.patch.object(module, "library", fake), self.assertRaises(quorlock.Invalid):
                make()
            return seen[0]

        values, checked = {int: 7, bool: True, type(None): "text"}, 0
        for module, function, struct, kind, make in [
                (_lock, "quorlock_sync_lock_new", _lock.Options, quorlock.Lock, self.lock),
                (_client, "quorlock_sync_client_new", _client.Options, quorlock.Client,
                 lambda **more: quorlock.Client("a:1", **more)),
                (_election, "quorlock_sync_candidate_new", _election.Options, quorlock.Candidate,
                 lambda **more: self.client.candidate(self.key, **more))]:
            names = {name for name, _ in struct._fields_} - {"nodes", "shared", "credentials", "log", "policy", "dialect", "guard", "allow_eviction"}
            for name, parameter in inspect.signature(kind.__init__).parameters.items():
                value = 7 if name == "wait_ms" else values.get(type(parameter.default))
                if name not in names or value is None:
                    continue
                given = options_of(module, function, lambda name=name, value=value: make(**{name: value}))
                self.assertEqual(getattr(given, name), value.encode() if value == "text" else value, (kind, name))
                checked += 1
        self.assertGreater(checked, 25)

    def test_the_typed_options_are_those_of_the_constructors(self):
        for options, kind in ((quorlock.LockOptions, quorlock.Lock), (quorlock.ClientOptions, quorlock.Client),
                              (quorlock.CandidateOptions, quorlock.Candidate)):
            wanted = [name for name, parameter in inspect.signature(kind.__init__).parameters.items()
                      if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
            self.assertEqual(list(options.__annotations__), wanted)

    def test_each_public_class_is_copied_and_pickled_or_refuses_both(self):
        handles = [self.client, self.lock(), self.client.candidate(self.key), self.client.observe(self.key)]
        classes = {name: kind for name, kind in vars(quorlock).items() if inspect.isclass(kind) and name in quorlock.__all__}
        ways = [copy.copy, copy.deepcopy] + [lambda one, way=way: pickle.loads(pickle.dumps(one, way))
                                             for way in range(pickle.HIGHEST_PROTOCOL + 1)]
        checked = set()
        for name, kind in classes.items():
            if issubclass(kind, quorlock.Error):
                made = kind("the text", -6)
            elif issubclass(kind, tuple):
                made = kind(*range(len(kind._fields)))
            elif issubclass(kind, dict):  # keyword arguments, for type checkers
                made = {"wait_ms": 5}
            else:
                made = next(one for one in handles if isinstance(one, kind))
                for way in ways:
                    with self.subTest(kind=name), self.assertRaisesRegex(TypeError, "cannot be copied or pickled"):
                        way(made)
                checked.add(name)
                continue
            for way in ways:
                again = way(made)
                self.assertEqual((type(again), str(again), getattr(again, "status", 0), getattr(again, "name", 0)),
                                 (type(made), str(made), getattr(made, "status", 0), getattr(made, "name", 0)))
        self.assertEqual(checked, {"Client", "Lock", "Candidate", "Observer"})

    def test_an_error_comes_out_of_a_pool_of_processes(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool, self.assertRaises(quorlock.Held) as caught:
            pool.apply_async(raise_held).get(LIMIT_S)
        self.assertEqual((str(caught.exception), caught.exception.name), ("taken", "HELD"))


def raise_held():
    raise quorlock.Held("taken", -5)


if __name__ == "__main__":
    command_case.main()
