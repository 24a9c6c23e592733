#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_testing.py SOURCE BUILD - the examples of quorlock-testing(7), each as the page has it, in order; and what else the
plugin of pytest promises: kinds of locks, owners elsewhere, tests side by side, and servers that end with the session."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

SKIPPED = 77
LIMIT_S = 300
PYTHONS = (sys.executable, "/usr/bin/python3")
FILES = ("report.py", "test_report.py", "test_report.c", None, "test_report.sh", None, None)  # None: commands

PROMISES = '''
import asyncio, os, subprocess, sys, threading, time
import pytest, quorlock

@pytest.mark.parametrize("options", [{}, {"permits": 2}, {"shared": True}, {"fair": True}, {"fencing": True}, {"owner": "me"}])
@pytest.mark.parametrize("by", [lambda lock: lock, lambda _: "a"])
def test_each_kind_of_lock_is_lost(quorlock_client, quorlock_servers, options, by):
    told = threading.Event()
    lock = quorlock.lock("a", on_lost=lambda *_: told.set(), **options)
    lock.acquire()
    quorlock_servers.lose(by(lock))
    assert lock.lost and lock.valid_ms == 0 and told.wait(60)

def test_a_list_of_keys_is_lost(quorlock_client, quorlock_servers):
    lock = quorlock_client.lock("a", "b")
    lock.acquire()
    quorlock_servers.lose("b")
    assert lock.lost

def test_others_keep_their_locks(quorlock_client, quorlock_servers):
    lock = quorlock.lock("a", permits=2)
    with quorlock.lock("a", permits=2) as another, quorlock.lock("b") as other:
        lock.acquire()
        quorlock_servers.lose(lock)
        assert lock.lost and other.valid_ms > 0 and another.valid_ms > 0
        with pytest.raises(quorlock.Lost):
            lock.release()

def test_a_task_is_canceled(quorlock_client, quorlock_servers):
    async def run():
        async with quorlock.lock("a"):
            quorlock_servers.lose("a")
            await asyncio.Event().wait()
    with pytest.raises(quorlock.Lost):
        asyncio.run(run())

def test_nobody_holds_it(quorlock_client, quorlock_servers):
    with pytest.raises(AssertionError, match="nobody holds 'a'"):
        quorlock_servers.lose("a")

def test_an_owner_elsewhere(quorlock_client, quorlock_servers):
    program = "import quorlock\\nwith quorlock.lock('a', lease_ms=3000) as lock:\\n print(flush=True)\\n while lock.valid_ms: pass"
    done = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**quorlock_servers.environment, "PYTHONPATH": os.environ["PYTHONPATH"]})
    assert done.stdout.readline()
    quorlock_servers.lose("a")
    assert "quorlock._errors.Lost" in done.communicate(timeout=60)[1]

leaked = []

def test_a_lock_is_left_behind(quorlock_client):
    quorlock.lock("a").acquire()
    leaked.append(quorlock.Client())
    leaked[0].lock("b").acquire()

def test_no_lock_is_left(quorlock_client):
    assert quorlock.lock("a").acquire(timeout=15) and quorlock.lock("b").acquire(timeout=15)

def test_servers_are_away(quorlock_client, quorlock_servers):
    with quorlock.lock("a") as lock:
        quorlock_servers.kill(0)
        quorlock_servers.kill(0)
        for _ in range(100):
            try:
                lock.extend()
                break
            except quorlock.NoQuorum:  # the machine is busy
                time.sleep(0.1)
        quorlock_servers.kill(1)
        with pytest.raises(quorlock.NoQuorum):
            lock.extend()
        # A thread that ends does not end the server that it has started.
        starter = threading.Thread(target=lambda: quorlock_servers.start(0))
        starter.start()
        starter.join()
        quorlock_servers.start(0)
        assert quorlock_servers._servers[0].ask("PING") == "+PONG"

def test_they_are_back(quorlock_client):
    assert quorlock.lock("a").acquire(timeout=15) and leaked[0].lock("c").acquire(timeout=15)

def test_the_settings_of_the_user_do_not_count(quorlock_client):
    assert "QUORLOCK_PREFIX" not in os.environ and os.environ["QUORLOCK_MAX_LEASE"] == "20s"
'''

ALONE = '''
import os, time

def test_alone(quorlock_servers):
    with open(os.environ["TOLD"], "w") as file:
        file.write(" ".join(str(server._process.pid) for server in quorlock_servers._servers))
    os.rename(os.environ["TOLD"], os.environ["TOLD"] + ".all")
    time.sleep(600)
'''

SKIP = '''
def test_skipped(quorlock_client): pass
'''


def fail(text):
    sys.exit(f"test_testing: FAILED: {text}")


def check(truth, text):
    if not truth:
        fail(text)


def has_module(python, name):
    return os.access(python, os.X_OK) and subprocess.run([python, "-c", f"import {name}"], capture_output=True,
                                                         check=False).returncode == 0


def examples(page):
    """The blocks of the page, as files and commands."""
    found = re.findall(r"^\.nf\n(.*?)^\.fi$", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    check(len(found) == len(FILES), f"{page} has {len(found)} examples, and this test knows {len(FILES)}")
    return [(name, body.replace("\\-", "-").replace("\\e", "\\")) for name, body in zip(FILES, found)]


class Place:
    """A folder with what the examples need: the harness and the command as they are called where they are installed."""

    def __init__(self, source, build, folder, python):
        self.source, self.folder, self.python = source, folder, python
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("QUORLOCK_")}
        self.environment.update(
            QUORLOCK_LIBRARY=str(build / "lib/libquorlock.so"), PYTHONPATH=str(source / "src/python"),
            PYTHONDONTWRITEBYTECODE="1", LD_LIBRARY_PATH=str(build / "lib"), QUORLOCK=str(build / "bin/quorlock"),
            PATH=f"{folder}/bin:{build}/bin:{os.environ['PATH']}", TMPDIR=str(folder))
        (folder / "bin").mkdir()
        self.program("quorlock-chaos", f'verb=$1\nshift\nexec "{source}/cluster/$verb" "$@"')
        # The installed library needs no folders.
        self.program("pkg-config", f'echo "-I{source}/include -L{build}/lib -lquorlock"')

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, *words, **more):
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env={**self.environment, **more})

    def pytest(self, *words, **more):
        return self.run(self.python, "-m", "pytest", "-q", "-p", "quorlock.testing", "-p", "no:cacheprovider", *words, **more)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")


def check_examples(place):
    for name, body in examples(place.source / "src/man/quorlock-testing.7"):
        if name:
            place.write(name, body)
        else:
            # The last one has no servers of its own on the page.
            words = body if "with" in body else f"quorlock-chaos with sh -ec '{body}'"
            done = place.run("sh", "-ec", words)
            check(done.returncode == 0, f"status {done.returncode} of\n{body}{done.stdout}{done.stderr}")
    print("ok: the examples in C and for a shell")
    if not place.python:
        return
    done = place.pytest("test_report.py")
    check(done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr)
    # A test that cannot fail shows nothing.
    report = place.folder / "report.py"
    report.write_text(report.read_text(encoding="utf-8").replace("lock.check()", "pass"), encoding="utf-8")
    done = place.pytest("test_report.py")
    check("1 failed, 1 passed" in done.stdout, f"a program that does not look passes: {done.stdout}{done.stderr}")
    print("ok: the example for pytest")


def side_by_side(place, words):
    """Two sessions at a time, each with its servers."""
    every = [subprocess.Popen([place.python, "-m", "pytest", "-q", "-p", "quorlock.testing", "-p", "no:cacheprovider", *words],
                              cwd=place.folder, env={**place.environment, "QUORLOCK_PREFIX": "app:", "QUORLOCK_MAX_LEASE": "20s"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
    for one in every:
        said = one.communicate(timeout=LIMIT_S)[0]
        check(one.returncode == 0, said)


def check_promises(place):
    place.write("test_promises.py", PROMISES)
    side_by_side(place, ["test_promises.py"])
    print("ok: two sessions side by side")
    if has_module(place.python, "xdist"):
        side_by_side(place, ["-n", "2", "--dist", "loadscope", "test_promises.py"])
        print("ok: pytest-xdist")
    else:
        print("SKIPPED: pytest-xdist is missing: scripts/setup installs it")
    place.write("test_skip.py", SKIP)
    done = place.pytest("-rs", "test_skip.py", REDIS_SERVER="no-such-server")
    check(done.returncode == 0 and "no-such-server is not in PATH" in done.stdout, done.stdout)
    print("ok: without a server tests are skipped")


def has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_for(what):
    end = time.monotonic() + LIMIT_S
    while not what():
        check(time.monotonic() < end, "did not happen in time")
        time.sleep(0.01)


def check_end(place):
    """However a session ends, its servers do."""
    place.write("test_alone.py", ALONE)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
        told = place.folder / f"told-{number}"
        session = subprocess.Popen([place.python, "-m", "pytest", "-q", "-p", "quorlock.testing", "test_alone.py"], cwd=place.folder,
                                   env={**place.environment, "TOLD": str(told)}, stdout=subprocess.DEVNULL)
        try:
            wait_for(Path(f"{told}.all").exists)
            pids = Path(f"{told}.all").read_text(encoding="ascii").split()
            check(len(pids) == 3 and not any(map(has_ended, pids)), f"{pids} do not all run")
            session.send_signal(number)
            wait_for(lambda these=pids: all(map(has_ended, these)))
        finally:
            session.kill()
            session.wait()
    print("ok: servers end with a session that is ended")


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    source, build = (Path(word).resolve() for word in sys.argv[1:])
    # Best one that has xdist, too.
    python = next((python for module in ("xdist", "pytest") for python in PYTHONS if has_module(python, module)), None)
    if not shutil.which(os.environ.get("REDIS_SERVER") or "redis-server"):
        print("SKIPPED test_testing: redis-server is missing: scripts/setup installs it")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="quorlock-testing-") as folder:
        place = Place(source, build, Path(folder), python)
        check_examples(place)
        if not python:
            print("SKIPPED test_testing: pytest is missing: scripts/setup installs it")
            return SKIPPED
        check_promises(place)
        check_end(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
