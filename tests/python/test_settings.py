#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The package reads the environment and files as the command does: test_settings.py PATH_TO_quorlock [TEST...]"""
import ctypes
import json
import os
import re
import types
import unittest.mock

import test_python
from test_python import LONG_MS, SERVERS, Invalid, command_case, nodes, wait_for

import quorlock
from quorlock import _client, _library

FILE = """user = app
password = of the file
nodes = other:1
lease = 1s
fence = yes
[set production]
nodes = rediss://a:1, redis://u:p@b:2
tls-ca = /ca
tls-cert = /cert
tls-key = /key
tls-name = name
policy = all
dialect = redisson
guard = strict
max-lease = 1m
node-timeout = 200ms
connect-timeout = 4s
prefix = app:
set-name = two
label = web
allow-eviction = yes
"""
# Keys of a file, and the fields and numbers that stand for their values.
NUMBERS = {"policy": ("policy", {"majority": 0, "all": 1}), "dialect": ("dialect", {"plain": 0, "redisson": 1}),
           "guard": ("guard", {"connection": 2, "strict": 3, "off": 1}), "max-lease": ("max_lease_ms", {"1m": 60000, "1s": 1000}),
           "node-timeout": ("node_timeout_ms", {"200ms": 200}), "connect-timeout": ("connect_timeout_ms", {"4s": 4000}),
           "allow-eviction": ("allow_eviction", {"yes": 1, "no": 0})}
TEXTS = {"user": "user", "tls-ca": "tls_ca", "tls-cert": "tls_cert", "tls-key": "tls_key", "tls-name": "tls_name",
         "prefix": "key_prefix", "set-name": "set_name", "label": "owner_label"}


class Settings(test_python.PythonCase):
    def setUp(self):
        super().setUp()
        self.config = self.path("config")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("QUORLOCK_") or name == "QUORLOCK_LIBRARY"}
        patch = unittest.mock.patch.dict(os.environ, environment, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, text, path=None):
        with open(path or self.config, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)  # else the command warns
            file.write(text)

    def options(self, *arguments, **given):
        """The options that reach the library, copied while their texts are there."""
        seen = []

        def look(_handle, options, _error):
            found = ctypes.cast(options, ctypes.POINTER(_client.Options))[0]
            seen.append({name: getattr(found, name) for name, _ in found._fields_} |
                        {"nodes": [found.nodes[i].decode() for i in range(found.n_nodes)],
                         "credentials": bool(found.credentials)})
            return -1
        functions = {name: getattr(_library.library, name) for name in _library.FUNCTIONS}
        fake = types.SimpleNamespace(**{**functions, "quorlock_sync_client_new": look})
        with unittest.mock.patch.object(_client, "library", fake), self.assertRaises(Invalid):
            quorlock.Client(*arguments, **given)
        return seen[0]

    def compare(self, *words, variables=None, **given):
        """What the command says is in force is what the library gets."""
        os.environ.update(variables or {})
        status, out, err = self.quorlock("config", "--json", *words, env={"QUORLOCK_NODES": "", **(variables or {})})
        self.assertEqual((status, err), (0, ""))
        values, found = json.loads(out)["values"], self.options(**given)
        self.assertEqual([re.sub("//.*@", "//***@", node) for node in found["nodes"]], values["nodes"]["value"].split(","))
        for key, field in TEXTS.items():
            wanted = values[key]["value"] if values[key]["from"] != "default" else None
            self.assertEqual(found[field], wanted and wanted.encode(), key)
        for key, (field, numbers) in NUMBERS.items():
            wanted = numbers[values[key]["value"]] if values[key]["from"] != "default" else 0
            self.assertEqual(found[field], wanted, key)
        for name in variables or {}:
            del os.environ[name]
        return found

    def test_they_are_those_of_the_command(self):
        # Without files that are not there, and without a dialect that takes no label.
        self.write(re.sub("tls-(ca|cert|key) = .*\n|dialect = .*\n|^lease = .*\n", "", FILE, flags=re.M))
        found = self.compare("--config", self.config, "--set", "production", config=self.config, set="production")
        self.assertEqual(found["nodes"], ["rediss://a:1", "redis://u:p@b:2"])
        self.assertEqual((found["password"], found["credentials"]), (b"of the file", False))
        self.compare("--config", self.config, config=self.config)
        self.compare(variables={"QUORLOCK_CONFIG": self.config, "QUORLOCK_SET": "production"})
        self.compare(variables={"QUORLOCK_CONFIG": self.config, "QUORLOCK_NODES": "c:1,d:2", "QUORLOCK_USER": "v",
                                "QUORLOCK_PREFIX": "p", "QUORLOCK_MAX_LEASE": "1s"})
        self.compare(variables={"QUORLOCK_CONFIG": "/dev/null"})

    def test_a_file_gives_every_option(self):
        self.write(FILE)
        found = self.options(set="production", config=self.config)
        self.assertEqual(found["nodes"], ["rediss://a:1", "redis://u:p@b:2"])
        for key, field in TEXTS.items():
            self.assertIn(f"{key} = {found[field].decode()}\n", FILE)
        for key, (field, numbers) in NUMBERS.items():
            self.assertEqual(found[field], numbers[FILE.split(f"\n{key} = ")[1].split("\n")[0]], key)

    def test_arguments_go_before_them(self):
        self.write(FILE)
        given = {"policy": "majority", "dialect": "plain", "guard": "off", "allow_eviction": False, "max_lease_ms": 5,
                 "key_prefix": "", "user": "other", "password": "given"}
        found = self.options("c:1 d:2", set="production", config=self.config, **given)
        self.assertEqual(found["nodes"], ["c:1", "d:2"])
        self.assertEqual([found[name] for name in given], [0, 0, 1, 0, 5, b"", b"other", b"given"])
        self.assertEqual(found["tls_ca"], b"/ca")
        # Nodes alone: no file is read.
        with unittest.mock.patch.dict(os.environ, {"QUORLOCK_CONFIG": "/no/such/file"}):
            self.assertEqual(self.options("c:1")["nodes"], ["c:1"])
            with self.assertRaises(Invalid):
                quorlock.configure()

    def test_a_password_of_the_caller_goes_before_a_password_file(self):
        self.write("secret\n", self.path("secret"))
        self.write(f"nodes = a:1\nuser = app\npassword-file = {self.path('secret')}\n")
        self.assertEqual(self.options(config=self.config)["password"], b"secret")
        self.assertTrue(self.options(config=self.config)["credentials"])
        found = self.options(config=self.config, password="given")
        self.assertEqual((found["user"], found["password"], found["credentials"]), (b"app", b"given", False))
        with self.assertRaises(Invalid) as caught:
            quorlock.Client(config=self.config, user="other")
        self.assertIn("give password_file, too", str(caught.exception))

    def refused(self, text, variables=None, words=(), **given):
        self.write(text)
        with unittest.mock.patch.dict(os.environ, variables or {}), self.assertRaises(Invalid) as caught:
            quorlock.Client(config=self.config, **given)
        _, _, err = self.quorlock("config", "--config", self.config, *words,
                                  env={"QUORLOCK_NODES": "", **(variables or {})})
        self.assertEqual(err.removeprefix("quorlock: ").removeprefix("--").rstrip("\n").split("\n", maxsplit=1)[0],
                         str(caught.exception))

    def test_errors_are_those_of_the_command(self):
        for text in ("nodes\n", "[x]\n", "leese = 1\n", "json = yes\n", "lease = 1\n", "lease = 1ms\n", "in-flight = 0\n",
                     "fence = maybe\n", "policy = some\n", "nodes = redis://u:p q@a:1\n", "nodes = a:1,,b:2\n", "lease = \"1s\"\n", "lease = 1s # short\n", "user =\n",
                     "user = a\nuser = b\n", "[set a]\nset = b\n", "set = c\n[set a]\n", "=\n", "tls-ca = \n"):
            with self.subTest(text):
                self.refused(text)
        self.refused("[set a]\n[set b]\n", words=("--set", "c"), set="c")
        self.refused("", words=("--set", "c"), set="c")
        self.refused("", variables={"QUORLOCK_SET": "c"})
        self.refused("", variables={"QUORLOCK_NODES": "a@b"})
        self.refused("", variables={"QUORLOCK_MAX_LEASE": "x\x1b"})
        self.refused("", variables={"QUORLOCK_PASSWORD": "x" * 1001})

    def test_commas_or_blanks_are_between_nodes(self):
        # Numbers: a thread that looks up a name reads the environment, which the test changes.
        a, b, c = "127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1"
        for text in f"{a} {b} {c}", f"{a},{b},{c}", f" {a}, {b} ,{c}, ", f"{a} {b},  {c}\n":
            for options in {"nodes": text}, {"config": self.config}:
                self.write("")
                with self.subTest(text=text, options=options), \
                        unittest.mock.patch.dict(os.environ, {} if "nodes" in options else {"QUORLOCK_NODES": text}):
                    client = quorlock.Client(guard="off", **options)
                    self.addCleanup(client.close)
                    self.assertEqual(repr(client), "<quorlock.Client of 3 nodes>")
        with self.assertRaisesRegex(Invalid, "node 2: address: it is empty"):
            quorlock.Client(f"{a},,{b}", guard="off")

    def test_a_password_file_is_read_before_each_login(self):
        lines = []
        for server in SERVERS:
            server.ask("ACL", "SETUSER", "app", "reset", "on", ">first", "~*", "&*", "+@all")
        self.write("first\n", self.path("secret"))
        self.write(f"nodes = {','.join(nodes().split())}\nuser = app\npassword-file = {self.path('secret')}\n")
        client = quorlock.Client(config=self.config, guard="off", max_lease_ms=LONG_MS,
                                 log=lambda _level, line: lines.append(line))
        self.addCleanup(client.close)
        with client.lock(self.key, lease_ms=LONG_MS):
            self.write("second\n", self.path("secret"))
            for server in SERVERS:
                server.ask("ACL", "SETUSER", "app", "resetpass", ">second")
                server.ask("CLIENT", "KILL", "USER", "app")
            wait_for(lambda: sum("new credentials" in line for line in lines) == len(SERVERS))
        with client.lock(self.key + ":2", wait_ms=LONG_MS):
            pass
        self.assertFalse(any("second" in line for line in lines), lines)


if __name__ == "__main__":
    command_case.main()
