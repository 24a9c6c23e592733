# SPDX-License-Identifier: BSD-3-Clause
"""One chaos run: starts the system, injects faults, heals it, and judges the history."""
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import history
import judge
import modes
import names
import picture
import plan
from faults import inject
from output import EX_IOERR, Unwritten, say, write_whole
from place import MOUNT_POINTS
from recorder import Recorder
from sources import check_sources
from system import Client, ClientError, Filter, HarnessError, Links, Node, Ports, how_ended, launch, now_us, wait_until

QUIET_SECONDS = 3      # of undisturbed work after healing
LIVE_MARGIN_MS = 5000  # a grant must come this long after the expiry of keys that nobody holds
GREETING_SECONDS = 60  # the time for clients to begin
MUTE_LIVES = 5         # how often in a row a client may end before its first line, during faults
BACK_TO_NORMAL_SECONDS = 60
PROGRESS_SECONDS = 10
LOOK_SECONDS = 1       # of --until-broken, from one look at the history to the next
GIVEN_BACK_MS = 20000  # after healing a key of a failed attempt is released within this time


TLS_NAME = "node.chaos"


class NothingHit(HarnessError):
    """The run had no fault that hit."""
    status = 64


class System:
    """All processes of the run, and its history."""

    def __init__(self, options, folder, private):
        self.options, self.folder, self.private = options, folder, private
        self.seed, self.guard, self.fence, self.verbose = options.seed, options.guard, options.fence, options.verbose
        self.max_lease_ms, self.lease, self.hold = options.max_lease, options.lease, options.hold
        self.commands = options.commands
        self.scheme = "rediss://" if options.tls else ""
        self.places = options.places
        self.keys = [place.key for place in options.places]
        self.bin, self.server = options.bin, options.server
        self.shims = {name: self.preloadable(path) for name, path in options.shims.items()}
        self.source_shim = self.preloadable(options.source_shim) if options.source_shim else None
        self.recorder = Recorder(folder / "history.jsonl", self.keys, options.max_lease)
        self.survived, self.hits = {}, {}
        self.clients_killed = 0
        self.passwords = []    # that the nodes accept; none: they want none
        self.certificate = ""  # name of its files, without the ending
        self.setup = 0  # how often the settings of the nodes were changed
        self.nodes, self.clients, self.ports = [], [], Ports()
        self.copiers = []  # of what nodes execute; each ends with its server
        self.links, self.filter = None, Filter() if private and options.filter else None
        self.names = None  # the name server
        self.aiming, self.over = asyncio.Lock(), False
        self.begun = self.sources_due = 0.0

    def preloadable(self, path):
        """A link to the file, with a name without blanks and colons, which separate names in LD_PRELOAD."""
        link = self.folder / path.name
        link.symlink_to(path)
        return link

    def program(self, name):
        return self.bin / name

    def record(self, event, **fields):
        return self.recorder.record(event, **fields)

    def node(self, number):
        return self.nodes[number - 1]

    def client(self, number):
        return self.clients[number - 1]

    def addresses(self):
        return ",".join(f"{self.scheme}{node.front}" for node in self.nodes)

    def lay_out(self):
        count, linked = self.options.nodes, self.options.linked
        if self.private:
            servers = [(f"127.0.1.{i}", 6379) for i in range(1, count + 1)]
            fronts = [(f"127.0.2.{i}", 6379) if i in linked else servers[i - 1] for i in range(1, count + 1)]
        else:
            servers = [("127.0.0.1", self.ports.take()) for _ in range(count)]
            fronts = [("127.0.0.1", self.ports.take()) if i + 1 in linked else servers[i] for i in range(count)]
        self.nodes = [Node(self, i + 1, servers[i], fronts[i]) for i in range(count)]
        self.clients = [Client(self, i + 1) for i in range(self.options.clients)]

    def write(self, name, text):
        """Writes a file that clients read, in one step."""
        (self.folder / f"{name}.new").write_text(text, encoding="ascii")
        os.replace(self.folder / f"{name}.new", self.folder / name)

    def make_certificate(self):
        """Makes one more certificate for all servers, for a name, because their addresses change. Returns its text."""
        self.certificate = f"cert-{len(list(self.folder.glob('cert-*.pem')))}"
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                 "365", "-subj", "/CN=chaos", "-addext", f"subjectAltName=DNS:{TLS_NAME}", "-keyout", self.folder / f"{self.certificate}.key",
                 "-out", self.folder / f"{self.certificate}.pem"]
        run = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if run.returncode:
            raise HarnessError(f"openssl cannot make a certificate: {run.stderr.strip()}")
        return (self.folder / f"{self.certificate}.pem").read_text(encoding="ascii")

    def make_secrets(self):
        """Clients and command find them in the environment."""
        if self.scheme:
            self.write("ca.pem", self.make_certificate())
            os.environ |= {"QUORLOCK_TLS_CA": str(self.folder / "ca.pem"), "QUORLOCK_TLS_NAME": TLS_NAME}
        if self.options.password:
            self.passwords = ["password-0"]
            self.write("password", self.passwords[0] + "\n")
            os.environ["QUORLOCK_PASSWORD_FILE"] = str(self.folder / "password")

    async def start(self):
        self.make_secrets()
        if self.options.names:
            names.use(self.folder)
            self.names = names.NameServer(launch)
        self.lay_out()
        await asyncio.gather(*(node.start() for node in self.nodes))
        behind = [node for node in self.nodes if node.behind_link]
        if behind:
            self.links = Links(self, behind)
        if self.guard != "off":
            self.bootstrap()
        for client in self.clients:
            client.start()
        await self.greet()

    async def greet(self):
        """Waits until every client runs, before any fault: runtimes need different times to start."""
        until = asyncio.get_running_loop().time() + GREETING_SECONDS
        while silent := [client for client in self.clients if not client.channel.greeted]:
            self.check_clients()
            if asyncio.get_running_loop().time() > until:
                raise ClientError(f"client {silent[0].name} did not send hello within {GREETING_SECONDS} s: a line ends "
                                    f"with a newline and is flushed at once ({silent[0].last_words()})")
            await asyncio.sleep(0.02)

    def bootstrap_command(self, *more, max_lease_ms=None):
        return [self.program("quorlock"), "--nodes", self.addresses(), "bootstrap", "--max-lease",
                f"{max_lease_ms or self.max_lease_ms}ms", *more]

    def free_address(self):
        """A free address for one more server."""
        if not self.private:
            return "127.0.0.1", self.ports.take()
        return f"127.0.{10 + self.setup // 250}.{self.setup % 250 + 1}", 6379

    def bootstrap(self):
        """Bootstraps the new servers: no lock is held on them, so no quarantine is needed."""
        if not self.program("quorlock").exists():
            return  # only clients of ours have a guard
        run = subprocess.run(self.bootstrap_command(), capture_output=True, text=True, timeout=30)
        if run.returncode:
            say(f"chaos: no bootstrap ({run.stderr.strip().splitlines()[-1:]}); the nodes are quarantined at first")

    def check_alive(self):
        """Watches that nothing ends except by a fault."""
        for node in self.nodes:
            if node.process.poll() is not None and not node.lock.locked():
                raise HarnessError(f"server {node.number} ended by itself: {node.last_words()}")
        self.check_clients()
        if self.links and self.links.process.poll() is not None:
            raise HarnessError(f"the proxy ended with status {self.links.process.returncode}")

    def check_clients(self):
        if self.recorder.problem:
            raise ClientError(self.recorder.problem)
        for client in self.clients:
            if client.process.poll() is not None and not client.expected_to_end:
                self.replace(client)

    def replace(self, client):
        """A client that ended by itself has failed. It is replaced, unless clients keep ending before their first line."""
        client.signal(signal.SIGKILL)
        if not client.channel.ended:
            return
        status, greeted = client.process.returncode, client.channel.greeted
        client.mute_lives = 0 if greeted else client.mute_lives + 1
        text = f"{how_ended(status)}: {client.last_words()}"
        if status == 64 or (not greeted and (client.lives == 1 or client.mute_lives == MUTE_LIVES)):
            raise ClientError(f"client {client.name} {text}")
        self.record("failed", client=client.name, text=text)
        self.record("killed", client=client.name)
        self.clients_killed += 1
        client.start()

    def mean_lease_ms(self):
        bounds = [int(bound) for bound in self.lease.split("-")]
        return (bounds[0] + bounds[-1]) / 2

    def has_hit(self, kind):
        proof = plan.KINDS[kind].proof
        return not proof or self.hits.get(kind, {}).get(proof, 0) > 0

    async def heal(self):
        """All faults end by themselves; this makes sure, and waits until every node may vote."""
        if self.filter:
            self.filter.clear()
        limit = BACK_TO_NORMAL_SECONDS + self.max_lease_ms / 1000
        if not await wait_until(lambda: all(node.state == "up" for node in self.nodes), limit):
            states = ", ".join(f"{node.number} {node.state}" for node in self.nodes)
            raise HarnessError(f"nodes do not come back to normal: {states}")

    async def end_clients(self):
        await self.greet()
        for client in self.clients:
            client.expected_to_end = True
            client.ask_to_end()
        for client in self.clients:
            await client.ended()
        if self.recorder.problem:
            raise ClientError(self.recorder.problem)

    def leftover_ms(self):
        """How long a key without a holder may exist: a killed client leaves it for its lease, a living one releases it."""
        longest_ms = max(self.max_lease_ms, self.options.max_lease)
        return longest_ms if self.clients_killed else min(longest_ms, GIVEN_BACK_MS)

    async def check_rest(self):
        """Waits until no key without a holder is left."""
        loop = asyncio.get_running_loop()
        leftover_ms = self.leftover_ms()
        until = loop.time() + (leftover_ms + 1000) / 1000 - min(n.clock_offset_ms() for n in self.nodes) / 1000
        for node in self.nodes:
            left = kept = [name for place in self.places for name in modes.kept(place, self.options.permits)]
            while left:
                left = [key for key in kept if await node.ask("EXISTS", key)]
                if left and loop.time() > until:
                    for key in left:
                        ttl = await node.ask("PTTL", key)
                        self.record("breach", client=f"node-{node.number}", key=key,
                                  text=f"{key} is still there {leftover_ms} ms after all clients ended ({ttl} ms left)")
                    break
                await asyncio.sleep(0.05)


async def progress(system, faults):
    loop = asyncio.get_running_loop()
    last = looked = loop.time()
    while True:
        await asyncio.sleep(0.2)
        system.check_alive()
        check_sources(system)
        if system.options.until_broken and not system.over and loop.time() - looked >= LOOK_SECONDS:
            system.over = is_broken(system)
            looked = loop.time()
        if loop.time() - last >= PROGRESS_SECONDS:
            last = loop.time()
            states = [f"node {n.number} {n.state}" for n in system.nodes if n.state != "up"]
            say(f"{last - system.begun:6.0f} s  {system.recorder.grants} grants, {sum(system.survived.values())} of "
                  f"{len(faults)} faults survived{'; ' if states else ''}{', '.join(states)}")


async def until_over(system):
    """Waits until the time of the faults is over, or one has broken the lock and nobody wants to know more."""
    await wait_until(lambda: system.over, system.options.seconds)
    system.over = True


async def whole_run(system, faults):
    """The whole run. Raises HarnessError if the harness fails."""
    loop = asyncio.get_running_loop()
    system.record("run", **system.options.shown)
    await system.start()
    watchers = [asyncio.create_task(node.watch()) for node in system.nodes]
    system.begun = loop.time()
    watchers.append(asyncio.create_task(progress(system, faults)))
    work = asyncio.gather(*(inject(system, fault) for fault in faults), until_over(system))
    try:
        # The first failure ends the run.
        await asyncio.wait([work, *watchers], return_when=asyncio.FIRST_COMPLETED)
        look(work, *watchers)
        await system.heal()
        if loop.time() < system.begun + system.options.seconds:
            return await finish_early(system)
        bound_us = (system.leftover_ms() + LIVE_MARGIN_MS) * 1000
        healed_us = system.record("healed", bound_us=bound_us)
        while not quiet_enough(system, healed_us) and now_us() < healed_us + bound_us + 500_000:
            await asyncio.sleep(0.2)
            look(*watchers)
    finally:
        for task in (work, *watchers):
            task.cancel()
        await asyncio.gather(work, *watchers, return_exceptions=True)
    await system.end_clients()
    await system.check_rest()
    system.record("end")


async def finish_early(system):
    await system.end_clients()
    system.record("end")


def is_broken(system):
    """Whether the lock is broken so far; operations may still end."""
    events = history.parse(json.dumps(line) for line in system.recorder.lines())
    verdict = judge.judge(events, system.options.profile)
    return any(violation.kind != "terminal" and not violation.tolerated for violation in verdict.violations)


def look(*tasks):
    """Waits for the tasks; raises the exception of the first one that fails."""
    for task in tasks:
        if task.done():
            task.result()


def quiet_enough(system, healed_us):
    """Waits until some seconds have passed since healing and every key was granted again in each of its modes."""
    expected = modes.expected(system.places, system.options.permits, system.options.clients * system.options.users)
    return now_us() - healed_us >= QUIET_SECONDS * 1_000_000 and \
        all(system.recorder.granted_us.get(name, 0) > healed_us for name in expected)


def judge_run(system, lines):
    text = [json.dumps(line, separators=(",", ":")) for line in lines]
    events = history.parse(text)
    verdict = judge.judge(events, system.options.profile)
    if verdict.counts.get("grants", 0) == 0:
        verdict.add("liveness", verdict.end_us, "there was no grant at all: this run proves nothing")
    return text, events, verdict


def tell_faults(system, faults):
    say(f"faults survived: {sum(system.survived.values())} of {len(faults)}")
    for kind, count in sorted(system.survived.items(), key=lambda item: (-item[1], item[0])):
        hits = ", ".join(f"{number} {what}" for what, number in system.hits.get(kind, {}).items())
        say(f"  {count:4d} x {kind:<14} {plan.KINDS[kind].text}{f' ({hits})' if hits else ''}")
    waited = len(faults) - sum(system.survived.values())
    if waited:
        say(f"  {waited} aimed ones did not begin: the time was over before their moment came")
    for kind, why in sorted(system.options.left_out.items()):
        say(f"  left out: {kind} ({why})")


def finish(system, faults):
    """Judges the history, writes the requested files, prints the verdict; returns the exit status."""
    text, events, verdict = judge_run(system, system.recorder.lines())
    if system.options.history:
        write_whole("--history", system.options.history, "\n".join(text) + "\n")
    if system.options.report:
        write_whole("--report", system.options.report, picture.drawn(system.options.report, events, verdict))
        say(f"report: {system.options.report}")
    tell_faults(system, faults)
    say("\n".join(judge.describe(verdict)))
    if verdict.sound and not any(map(system.has_hit, system.survived)):
        raise NothingHit("no fault has hit anything, so this run proves nothing; give it more --seconds, or other --faults")
    missed = ", ".join(kind for kind in system.survived if not system.has_hit(kind))
    if missed and system.options.client:
        # For example, a program that connects for each request has no connection to lose.
        say(f"note: {missed} came but never hit anything, so this run proves nothing about it")
    elif missed and verdict.sound:
        raise HarnessError(f"{missed} came but never hit anything, so this run proves nothing about it")
    return 0 if verdict.sound else 1


def stop_everything(system):
    for client in system.clients:
        if client.process and client.process.poll() is None:
            client.signal(signal.SIGKILL)
    processes = [node.process for node in system.nodes] + [client.process for client in system.clients]
    processes += [one.process for one in (system.links, system.names) if one]
    for process in processes:
        if process and process.poll() is None:
            process.kill()
    for process in [*processes, *system.copiers]:
        if process:
            process.wait(timeout=10)
    if system.options.keep_words:
        for client in system.clients:
            if client.words_file.exists():
                shutil.copy(client.words_file, system.options.keep_words)


def work(options, folder, private):
    """Runs in the inner process and its folder; returns the exit status."""
    system = System(options, Path(folder), private)
    faults = options.faults_planned
    status = 70

    async def interruptible():
        task = asyncio.ensure_future(whole_run(system, faults))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
        # A pipe to the parent: this process ends with it.
        loop.add_reader(sys.stdin.fileno(), lambda: (loop.remove_reader(sys.stdin.fileno()), task.cancel()))
        await task

    try:
        asyncio.run(interruptible())
        stop_everything(system)
        status = finish(system, faults)
    except (asyncio.CancelledError, KeyboardInterrupt):
        print("chaos: interrupted; nothing is judged", file=sys.stderr)
        status = 130
    except HarnessError as error:
        print(f"chaos: {error}", file=sys.stderr)
        status = error.status
    except Unwritten as what:
        print(f"chaos: {what}", file=sys.stderr)
        status = EX_IOERR
    finally:
        stop_everything(system)
        # The process that started us removes the folder, too, unless it was killed.
        if folder not in MOUNT_POINTS:
            shutil.rmtree(folder, ignore_errors=True)
    return status
