# SPDX-License-Identifier: BSD-3-Clause
"""One chaos run: start the system, inject faults, heal it, judge what its clients wrote down."""
import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import history
import judge
import plan
import report
from faults import inject
from output import EX_IOERR, Unwritten, say, write_whole
from place import MOUNT_POINTS
from system import Client, Filter, Links, Node, Trouble, free_ports, now_us, process_state, wait_gone

QUIET_SECONDS = 3      # of undisturbed work after healing
LIVE_MARGIN_MS = 5000  # beyond max_lease, until when a grant must come after healing
END_SECONDS = 20       # clients have so long to end
BACK_TO_NORMAL_SECONDS = 15
PROGRESS_SECONDS = 10


def read_lines(path):
    """Complete lines of a file that may not exist yet. A killed client's last line may be torn; it had no effect yet."""
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_text().splitlines(keepends=True) if text.endswith("\n")]


class System:
    """Everything that runs, and the history of the faults in it."""

    def __init__(self, options, folder, private):
        self.options, self.folder, self.private = options, folder, private
        self.seed, self.guard, self.fence, self.verbose = options.seed, options.guard, options.fence, options.verbose
        self.max_lease_ms, self.lease, self.hold = options.max_lease, options.lease, options.hold
        self.broken_rule = options.broken_rule
        self.keys = [f"job-{i}" for i in range(1, options.keys + 1)]
        self.registers = folder / "registers"
        self.bin, self.server, self.shim = options.bin, options.server, options.shim
        self.history, self.survived = [], {}
        self.nodes, self.clients = [], []
        self.links, self.filter = None, Filter() if private and options.filter else None
        self.begun = 0.0
        self.registers.mkdir()

    def program(self, name):
        return self.bin / name

    def tell(self, event, **fields):
        self.history.append({"t_us": now_us(), "event": event, **fields})

    def node(self, number):
        return self.nodes[number - 1]

    def client(self, number):
        return self.clients[number - 1]

    def addresses(self):
        return ",".join(f"{node.front_host}:{node.front_port}" for node in self.nodes)

    def lay_out(self):
        count, linked = self.options.nodes, self.options.linked
        if self.private:
            servers = [(f"127.0.1.{i}", 6379) for i in range(1, count + 1)]
            fronts = [(f"127.0.2.{i}", 6379) if i in linked else servers[i - 1] for i in range(1, count + 1)]
        else:
            ports = free_ports(2 * count)
            servers = [("127.0.0.1", port) for port in ports[:count]]
            fronts = [("127.0.0.1", ports[count + i]) if i + 1 in linked else servers[i] for i in range(count)]
        self.nodes = [Node(self, i + 1, servers[i], fronts[i]) for i in range(count)]
        self.clients = [Client(self, i + 1) for i in range(self.options.clients)]

    async def start(self):
        self.lay_out()
        await asyncio.gather(*(node.start() for node in self.nodes))
        behind = [node for node in self.nodes if node.behind_link]
        if behind:
            self.links = Links(self, behind)
        if self.guard != "off":
            self.bootstrap()
        for client in self.clients:
            client.start()

    def bootstrap(self):
        """No lock is held on servers just made: the guard need not wait a lease for that."""
        run = subprocess.run([self.program("quorlock"), "--nodes", self.addresses(), "bootstrap", "--max-lease",
                              f"{self.max_lease_ms}ms"], capture_output=True, text=True, timeout=30)
        if run.returncode:
            say(f"chaos: no bootstrap ({run.stderr.strip().splitlines()[-1:]}); the nodes are quarantined at first")

    def check_alive(self):
        """Nothing may end that was not ended by a fault."""
        for node in self.nodes:
            if node.process.poll() is not None and not node.lock.locked():
                raise Trouble(f"server {node.number} ended by itself: {node.last_words()}")
        for client in self.clients:
            status = client.process.poll()
            if status is None and not client.lock.locked() and process_state(client.process.pid) in "Tt":
                # It stopped itself at a write, too late for its fault.
                client.go_on()
            if status is None or client.expected_to_end:
                continue
            text = f"ended with status {status}: {client.last_words()}"
            if status in (1, 64):
                raise Trouble(f"client {client.name} {text}")
            self.tell("breach", client=client.name, text=text)
            self.tell("killed", client=client.name)
            client.start()
        if self.links and self.links.process.poll() is not None:
            raise Trouble(f"the proxy ended with status {self.links.process.returncode}")

    def grants(self):
        return sum(path.read_text().count('"granted"') for client in self.clients for path in client.files)

    async def heal(self):
        """All faults have undone themselves; this makes sure and waits until every node may vote."""
        if self.filter:
            self.filter.clear()
        loop = asyncio.get_running_loop()
        until = loop.time() + BACK_TO_NORMAL_SECONDS + self.max_lease_ms / 1000
        while any(node.state != "up" for node in self.nodes):
            if loop.time() > until:
                states = ", ".join(f"{node.number} {node.state}" for node in self.nodes)
                raise Trouble(f"nodes do not come back to normal: {states}")
            await asyncio.sleep(0.05)

    async def end_clients(self):
        for client in self.clients:
            client.expected_to_end = True
            client.process.send_signal(signal.SIGTERM)
            client.process.send_signal(signal.SIGCONT)
        for client in self.clients:
            if await wait_gone(client.process, END_SECONDS):
                status = client.process.returncode
                if status != 0:
                    self.tell("breach", client=client.name, text=f"ends with status {status}: {client.last_words()}")
            else:
                await client.kill()
                self.tell("breach", client=client.name, text=f"does not end within {END_SECONDS} s of SIGTERM")
            self.tell("client", client=client.name, state="ended")

    async def check_rest(self):
        """At rest no key of a lock outlives the largest lease."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (self.max_lease_ms + 1000) / 1000 - min(n.clock_offset_ms() for n in self.nodes) / 1000
        for node in self.nodes:
            left = self.keys
            while left:
                left = [key for key in self.keys if await node.ask("EXISTS", key)]
                if left and loop.time() > until:
                    for key in left:
                        ttl = await node.ask("PTTL", key)
                        self.tell("breach", client=f"node-{node.number}", key=key,
                                  text=f"{key} is still there after the largest lease ({ttl} ms left)")
                    break
                await asyncio.sleep(0.05)

    def history_lines(self):
        """The system's history, the clients' histories and the registers' journals, by time."""
        lines = list(self.history)
        paths = [path for client in self.clients for path in client.files] + sorted(self.registers.glob("*.jsonl"))
        for path in paths:
            lines += read_lines(path)
        lines.sort(key=lambda line: line["t_us"])
        return lines


async def progress(system, faults, every=PROGRESS_SECONDS):
    loop = asyncio.get_running_loop()
    last = loop.time()
    while True:
        await asyncio.sleep(0.2)
        system.check_alive()
        if loop.time() - last >= every:
            last = loop.time()
            states = [f"node {n.number} {n.state}" for n in system.nodes if n.state != "up"]
            say(f"{last - system.begun:6.0f} s  {system.grants()} grants, {sum(system.survived.values())} of "
                  f"{len(faults)} faults survived{'; ' if states else ''}{', '.join(states)}")


async def whole_run(system, faults):
    """The whole run. Raises Trouble where the harness fails."""
    loop = asyncio.get_running_loop()
    system.tell("run", **system.options.shown)
    await system.start()
    watchers = [asyncio.create_task(node.watch()) for node in system.nodes]
    system.begun = loop.time()
    watchers.append(asyncio.create_task(progress(system, faults)))
    work = asyncio.gather(*(inject(system, fault) for fault in faults), asyncio.sleep(system.options.seconds))
    try:
        # Whichever fails first ends the run.
        await asyncio.wait([work, *watchers], return_when=asyncio.FIRST_COMPLETED)
        look(work, *watchers)
        await system.heal()
        bound_us = (system.max_lease_ms + LIVE_MARGIN_MS) * 1000
        system.tell("healed", bound_us=bound_us)
        healed_us = system.history[-1]["t_us"]
        while not quiet_enough(system, healed_us) and now_us() < healed_us + bound_us + 500_000:
            await asyncio.sleep(0.2)
            look(*watchers)
    finally:
        for task in (work, *watchers):
            task.cancel()
        await asyncio.gather(work, *watchers, return_exceptions=True)
    await system.end_clients()
    await system.check_rest()
    system.tell("end")


def look(*tasks):
    """Raises what ended one of them."""
    for task in tasks:
        if task.done():
            task.result()


def quiet_enough(system, healed_us):
    """Some seconds have passed since healing, and every key was granted again."""
    if now_us() - healed_us < QUIET_SECONDS * 1_000_000:
        return False
    granted = {line["key"] for client in system.clients for line in read_lines(client.files[-1])
               if line["event"] == "granted" and line["t_us"] > healed_us}
    return granted == set(system.keys)


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
        say(f"  {count:4d} x {kind:<14} {plan.KINDS[kind].text}")
    for kind, why in sorted(system.options.left_out.items()):
        say(f"  left out: {kind} ({why})")


def finish(system, faults):
    """Judges, writes what was asked for, prints; returns the exit status."""
    text, events, verdict = judge_run(system, system.history_lines())
    if system.options.history:
        write_whole("--history", system.options.history, "\n".join(text) + "\n")
    if system.options.report:
        write_whole("--report", system.options.report, report.render(events, verdict))
        say(f"report: {system.options.report}")
    tell_faults(system, faults)
    say("\n".join(judge.describe(verdict)))
    return 0 if verdict.sound else 1


def stop_everything(system):
    processes = [node.process for node in system.nodes] + [client.process for client in system.clients]
    processes += [system.links.process] if system.links else []
    for process in processes:
        if process and process.poll() is None:
            process.kill()
    for process in processes:
        if process:
            process.wait(timeout=10)
    if system.options.keep_words:
        for client in system.clients:
            if client.words_file.exists():
                shutil.copy(client.words_file, system.options.keep_words)


def work(options, folder, private):
    """The inner process: runs it in its folder; returns the exit status."""
    system = System(options, Path(folder), private)
    faults = options.faults_planned
    status = 70

    async def interruptible():
        task = asyncio.ensure_future(whole_run(system, faults))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
        # The life line to the parent: this process ends with it.
        loop.add_reader(sys.stdin.fileno(), lambda: (loop.remove_reader(sys.stdin.fileno()), task.cancel()))
        await task

    try:
        asyncio.run(interruptible())
        stop_everything(system)
        status = finish(system, faults)
    except (asyncio.CancelledError, KeyboardInterrupt):
        print("chaos: interrupted; nothing is judged", file=sys.stderr)
        status = 130
    except Trouble as trouble:
        print(f"chaos: {trouble}", file=sys.stderr)
    except Unwritten as what:
        print(f"chaos: {what}", file=sys.stderr)
        status = EX_IOERR
    finally:
        stop_everything(system)
        # Who started us removes the folder too, unless it was killed.
        if folder not in MOUNT_POINTS:
            shutil.rmtree(folder, ignore_errors=True)
    return status
