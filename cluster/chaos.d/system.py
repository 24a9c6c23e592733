# SPDX-License-Identifier: BSD-3-Clause
"""The system under test: real servers, links and clients, and the functions that faults use."""
import asyncio
import contextlib
import ctypes
import mmap
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from history import VERSION
from names import name_of
from ports import keep_port

START_SECONDS = 60  # long, because the machine may be busy
ADMIN_SECONDS = 10.0
END_SECONDS = 20  # the time for clients to end
HARNESS = "harness", "harness"  # our own user at the nodes, and its password
LAST_BYTES = 2000  # how much of the end of a log is shown
NO_HANDLER = ' (it must finish its operation and end with status 0; without signals, say "stop":"answer" in hello)'


def last_lines(path):
    """Up to three last lines of a log, which may be very long."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
        return file.read().decode(errors="replace").splitlines()[-3:]


def how_ended(status):
    """How a process ended, in words."""
    return f"ended by signal {-status} ({signal.strsignal(-status)})" if status < 0 else f"ended with status {status}"


class HarnessError(Exception):
    """The harness itself failed; this says nothing about the lock."""
    status = 70


class ClientError(HarnessError):
    """A client violates the protocol, or does not run; this says nothing about its lock."""
    status = 65


def now_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def die_with_parent():
    """Runs in the child before exec: it dies with the supervisor, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def launch(arguments, **more):
    return subprocess.Popen([str(a) for a in arguments], preexec_fn=die_with_parent, start_new_session=True, **more)


async def wait_until(reached, seconds):
    """Waits until the function returns something true, no longer than so many seconds; returns its last value."""
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        await asyncio.sleep(0.01)
    return reached()


async def wait_gone(process, seconds):
    """Returns whether the process ended within so many seconds."""
    return await wait_until(lambda: process.poll() is not None, seconds)


class Ports:
    """Free ports for servers and proxy, reserved until the end."""

    def __init__(self):
        self.kept = []

    def take(self):
        self.kept.append(keep_port())
        return self.kept[-1].getsockname()[1]


def _command(*words):
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


async def _read_reply(reader):
    line = (await reader.readline())[:-2].decode(errors="replace")
    if not line:
        raise ConnectionError("closed")
    if line[0] == "-":
        raise RuntimeError(line[1:])
    if line[0] == "$":
        length = int(line[1:])
        return None if length < 0 else (await reader.readexactly(length + 2))[:-2].decode(errors="replace")
    if line[0] == "*":
        return [await _read_reply(reader) for _ in range(int(line[1:]))]
    return int(line[1:]) if line[0] == ":" else line[1:]


class Node:
    """One Redis server. Clients reach it at `front`; the harness uses its unix socket, which faults do not affect."""

    def __init__(self, system, number, server_address, front):
        self.system, self.number = system, number
        self.server_host, self.server_port = server_address
        self.front_host, self.front_port = front
        self.folder = system.folder / f"node-{number}"
        self.process = None
        self.lock = asyncio.Lock()
        self.state = ""
        self.folder.mkdir()
        self.clock, self.disk = self.shared("clock", 2), self.shared("disk", 4)
        self.set_disk()
        self.our_logins = self.lives = 0
        self.aof_kept = {}  # how much of each log is never cut off

    def shared(self, name, count):
        """Numbers that are shared with a preloaded shim of the server, which may read them at any instant.

        An item of a memoryview is stored at once. struct.pack_into() first sets what it writes to zero, and a server
        that read just then had no room on its disk.
        """
        with open(self.folder / name, "w+b") as file:
            file.truncate(8 * count)
            return memoryview(mmap.mmap(file.fileno(), 8 * count)).cast("q")

    @property
    def behind_link(self):
        return (self.server_host, self.server_port) != (self.front_host, self.front_port)

    @property
    def front(self):
        """The address for clients; with a name if there is a name server."""
        return f"{name_of(self.front_host) if self.system.names else self.front_host}:{self.front_port}"

    def set_state(self, state):
        if state != self.state:
            self.state = state
            self.system.record("node", node=self.number, state=state)

    def configure(self):
        (self.folder / "data").mkdir(exist_ok=True)
        port = [f"port {0 if self.system.options.executed else self.server_port}"]
        if self.system.scheme:
            port = ["port 0", f"tls-port {self.server_port}", "tls-auth-clients no",
                    f'tls-cert-file "{self.system.folder}/{self.system.certificate}.pem"',
                    f'tls-key-file "{self.system.folder}/{self.system.certificate}.key"',
                    f'tls-ca-cert-file "{self.system.folder}/{self.system.certificate}.pem"']
        if self.system.passwords:
            everything = "~* &* +@all"
            port += [f"user default on resetpass {' '.join('>' + word for word in self.system.passwords)} {everything}",
                     f"user {HARNESS[0]} on >{HARNESS[1]} {everything}"]
        (self.folder / "redis.conf").write_text("\n".join([
            f"bind {self.server_host}", *port, f'unixsocket "{self.folder}/socket"',
            f"protected-mode {'no' if self.system.private else 'yes'}", f'dir "{self.folder}/data"',
            f'logfile "{self.folder}/redis.log"', 'save ""', "appendonly yes", "appendfsync always",
            "auto-aof-rewrite-min-size 16mb", "daemonize no", "set-proc-title no", ""]))

    async def start(self, empty=False):
        if empty:
            shutil.rmtree(self.folder / "data", ignore_errors=True)
            self.aof_kept = {}
        self.configure()
        self.our_logins = 0
        shims = {f"QUORLOCK_CHAOS_{name.upper()}": str(self.folder / name) for name in self.system.shims}
        preload = {"LD_PRELOAD": ":".join(map(str, self.system.shims.values()))} if shims else {}
        self.process = launch([self.system.server, self.folder / "redis.conf"], env=os.environ | shims | preload,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                await self.ask("PING")
                break
            except (OSError, RuntimeError, TimeoutError, asyncio.IncompleteReadError):
                if self.process.poll() is not None or time.monotonic() > until:
                    raise HarnessError(f"server {self.number} does not start: {self.last_words()}") from None
                await asyncio.sleep(0.01)
        if self.system.options.executed:
            await self.keep_executed()
        self.set_state("up")

    async def keep_executed(self):
        """Copies what this process executes; its port opens when that has begun, so that nothing is missing."""
        self.lives += 1
        with socket.socket(socket.AF_UNIX) as monitor, \
                open(f"{self.system.options.executed}/node-{self.number}.{self.lives}", "wb") as file:
            monitor.connect(str(self.folder / "socket"))
            monitor.sendall(b"MONITOR\r\n")
            if monitor.recv(5) != b"+OK\r\n":
                raise HarnessError(f"server {self.number} does not show what it executes")
            self.system.copiers.append(launch(["cat"], stdin=monitor, stdout=file))
        await self.ask("CONFIG", "SET", "port", self.server_port)

    def last_words(self):
        try:
            lines = last_lines(self.folder / "redis.log")
        except OSError:
            lines = []
        return " / ".join(lines) or "it says nothing"

    async def kill(self):
        self.process.kill()
        if not await wait_gone(self.process, 5):
            raise HarnessError(f"server {self.number} survives SIGKILL")
        self.set_state("down")

    def signal(self, number):
        self.process.send_signal(number)

    def step_clock(self, step_ms):
        self.clock[0] += step_ms * 1000

    def clock_offset_ms(self):
        return self.clock[0] // 1000

    def steps_read(self):
        return self.clock[1]

    def set_disk(self, stall_ms=0, room_bytes=-1):
        """Sets how long each fsync takes, and how much can still be written; see disk_shim.c."""
        self.disk[0], self.disk[1] = stall_ms, room_bytes

    def fsyncs_stalled(self):
        return self.disk[2]

    def writes_refused(self):
        return self.disk[3]

    def log_file(self):
        """The append-only file: the newest of several, or the only one before Redis 7."""
        several = list((self.folder / "data").glob("*/*.incr.aof"))
        only = self.folder / "data" / "appendonly.aof"
        return max(several, key=lambda path: int(path.name.split(".")[-3]), default=only)

    def keep_log(self):
        """Marks the present content of the log as never to be cut off."""
        self.aof_kept = {self.log_file(): self.log_file().stat().st_size}

    def cut_log(self, permille):
        """Cuts off that part of the stopped server's log, at least one byte if there is one; returns how many bytes."""
        path = self.log_file()
        size = path.stat().st_size
        loose = max(0, size - self.aof_kept.get(path, 0))
        bytes_cut = min(loose, max(1, loose * permille // 1000))
        os.truncate(path, size - bytes_cut)
        return bytes_cut

    async def ask(self, *words, timeout=ADMIN_SECONDS):
        """Sends one command on a new connection. Raises RuntimeError for an error reply, OSError, TimeoutError."""
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_unix_connection(str(self.folder / "socket"))
            try:
                if self.system.passwords:
                    self.our_logins += 1
                    writer.write(_command("AUTH", *HARNESS))
                    await _read_reply(reader)
                writer.write(_command(*words))
                return await _read_reply(reader)
            finally:
                writer.close()

    async def disconnect_clients(self):
        """Closes the connections of all clients, which use the server's address; ours use the socket."""
        await self.ask("CLIENT", "KILL", "LADDR", f"{self.server_host}:{self.server_port}", timeout=1.0)

    async def logins(self):
        """How many logins of clients succeeded since the server started."""
        stats = await self.ask("INFO", "commandstats")
        count = 0
        for line in re.findall(r"cmdstat_(?:auth|hello):(.*)", stats):
            fields = dict(field.split("=") for field in line.strip().split(","))
            count += int(fields["calls"]) - int(fields.get("failed_calls", 0))
        return count - self.our_logins

    async def connections(self):
        """How many clients are connected, and have sent a command."""
        lines = (await self.ask("CLIENT", "LIST")).splitlines()
        return sum(f"laddr={self.server_host}:{self.server_port} " in line and "cmd=NULL" not in line for line in lines)

    def move(self, host, port):
        """Gives the node another address, for a new server in place of this one."""
        self.server_host, self.server_port = self.front_host, self.front_port = host, port

    async def watch(self):
        """Records the quarantine in the node's guard key, for the report."""
        while True:
            await asyncio.sleep(0.1)
            if self.state not in ("up", "quarantined"):
                continue
            try:
                guard = await self.ask("GET", "quorlock:guard", timeout=0.5)
                seconds, us = await self.ask("TIME", timeout=0.5)
            except (OSError, RuntimeError, TimeoutError, asyncio.IncompleteReadError, ValueError):
                continue
            parts = (guard or "").split("|")  # see modules/guard.lua
            until_ms = max([int(parts[i]) for i in (6, 12) if i < len(parts) and parts[i].isdigit()], default=0)
            now_ms = int(seconds) * 1000 + int(us) // 1000
            if self.state in ("up", "quarantined"):
                self.set_state("quarantined" if until_ms > now_ms else "up")


class Links:
    """The proxy process, one link for each node behind it."""

    def __init__(self, system, nodes):
        self.numbers = {node.number: i for i, node in enumerate(nodes, 1)}
        arguments = [f"{n.front_host}:{n.front_port}={n.server_host}:{n.server_port}" for n in nodes]
        self.process = launch([system.program("chaos_proxy"), *arguments], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        if self.process.stdout.readline() != "ready\n":
            raise HarnessError(f"the proxy does not start: {self.process.stderr.read().strip()}")

    def order(self, node, verb, *values):
        words = " ".join(map(str, (verb, self.numbers[node.number], *values)))
        self.process.stdin.write(words + "\n")
        if self.process.stdout.readline() != "ok\n":
            raise HarnessError(f"the proxy does not obey '{words}'")


class Client:
    """One client process after another under one name: a program that follows quorlock-chaos(7)."""

    def __init__(self, system, number):
        self.system, self.number, self.name = system, number, f"c{number}"
        self.command = system.commands[(number - 1) % len(system.commands)]
        self.address = f"127.0.3.{number}" if system.private and system.source_shim else ""
        self.process, self.channel, self.lives, self.mute_lives = None, None, 0, 0
        self.setup = 0  # with which settings of the nodes it was started
        self.expected_to_end = False
        self.lock = asyncio.Lock()

    def environment(self):
        """The environment of the program."""
        system = self.system
        settings = {"VERSION": VERSION, "CLIENT": self.name, "NODES": system.addresses(),
                "KEYS": ",".join(system.keys), "MODES": ",".join(place.mode for place in system.places),
                "PERMITS": system.options.permits, "USERS": system.options.users, "LEASE_MS": system.lease, "HOLD_MS": system.hold, "THINK_MS": "1-60",
                "WAIT_MS": "0-3000", "MAX_LEASE_MS": system.max_lease_ms, "GUARD": system.guard,
                "FENCE": int(system.fence), "SOURCE": self.address, "VERBOSE": int(system.verbose),
                "SEED": (system.seed * 1000003 + self.number * 1009 + self.lives) % 2 ** 53}
        environment = dict(os.environ) | {f"QUORLOCK_CHAOS_{name}": str(value) for name, value in settings.items()}
        if self.address:
            environment["LD_PRELOAD"] = f"{system.source_shim} {environment.get('LD_PRELOAD', '')}".strip()
        return environment

    def start(self):
        self.lives, self.setup = self.lives + 1, self.system.setup
        with open(self.words_file, "a", encoding="utf-8") as words:
            self.process = launch(self.command, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=words)
        self.channel = self.system.recorder.listen(self.name, self.process)
        self.system.record("client", client=self.name, state="running")

    @property
    def words_file(self):
        return self.system.folder / f"{self.name}.err"

    def last_words(self):
        words = " / ".join(last_lines(self.words_file)) or "it says nothing on standard error"
        return "".join(letter if letter.isprintable() else " " for letter in words)

    def signal(self, number):
        """Sends a signal to the program and all processes that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    async def end(self):
        """Ends the program, and records whether it ended well."""
        await wait_until(lambda: self.channel.greeted or self.channel.ended, END_SECONDS)
        self.ask_to_end()
        await self.ended()

    def ask_to_end(self):
        if self.channel.stops_by_answer:
            self.channel.stopping = True
        else:
            self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)

    async def ended(self):
        if await wait_gone(self.process, END_SECONDS):
            status = self.process.returncode
            self.signal(signal.SIGKILL)
            if status != 0:
                self.system.record("failed", client=self.name, text=f"{how_ended(status)} when it was asked to end"
                                   f"{NO_HANDLER if status == -signal.SIGTERM else ''}: {self.last_words()}")
        else:
            await self.kill()
            asked = '"stop" in an answer' if self.channel.stops_by_answer else "SIGTERM"
            self.system.record("failed", client=self.name, text=f"does not end within {END_SECONDS} s of {asked}")
        self.system.record("client", client=self.name, state="ended")

    async def kill(self):
        self.signal(signal.SIGKILL)
        if not await wait_gone(self.process, 5):
            raise HarnessError(f"client {self.name} survives SIGKILL")
        await self.record_death()

    async def record_death(self):
        """Called after its last line was read."""
        if not await wait_until(lambda: self.channel.ended, 5):
            raise HarnessError(f"client {self.name} is gone, but a process that it started keeps its standard output open")
        self.system.record("killed", client=self.name)
        self.system.clients_killed += 1
        self.system.record("client", client=self.name, state="dead")

    def stop(self):
        self.signal(signal.SIGSTOP)
        self.system.record("client", client=self.name, state="stopped")

    def go_on(self):
        self.signal(signal.SIGCONT)
        self.system.record("client", client=self.name, state="running")


class Filter:
    """Packet filter rules of our own namespace."""

    def __init__(self):
        self.rules = []

    @staticmethod
    def run(*words):
        run = subprocess.run(["iptables", "-w", "5", *map(str, words)], capture_output=True, text=True, timeout=20)
        if run.returncode:
            raise HarnessError(f"iptables {' '.join(map(str, words))}: {run.stderr.strip()}")
        return run.stdout

    def add(self, rules):
        for rule in rules:
            self.run("-A", *rule)
            self.rules.append(rule)

    def remove(self, rules):
        for rule in rules:
            self.run("-D", *rule)
            self.rules.remove(rule)

    def dropped(self, rules):
        """How many packets these rules dropped so far. The rules are listed in the order in which they were added."""
        packets = 0
        for chain in ("INPUT", "OUTPUT"):
            lines = self.run("-L", chain, "-v", "-x", "-n").splitlines()[2:]
            ours = [rule for rule in self.rules if rule[0] == chain]
            packets += sum(int(line.split()[0]) for line, rule in zip(lines, ours, strict=True) if rule in rules)
        return packets

    def clear(self):
        self.remove(list(self.rules))
