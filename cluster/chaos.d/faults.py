# SPDX-License-Identifier: BSD-3-Clause
"""Injects and ends each kind of fault."""
import asyncio
import contextlib
import signal
import subprocess

from descriptors import Descriptors
from held_packets import HeldPackets
from names import ADDRESS, PORT
from plan import ASKED, DROPPED, GROUPS, KINDS, LATE, LOGINS, OVERTAKEN, RENEWED
from system import HarnessError, launch, now_us, wait_gone, wait_until

STALL_SECONDS = 4      # how long to wait for the client's next write, at which it is stopped
HIT_SECONDS = 10       # how much longer a fault lasts if it has hit nothing yet
RECOVER_SECONDS = 60   # how long a server may take to write again after its disk has room
BOOTSTRAP_SECONDS = 60
ASK_SECONDS = 0.03     # the time for a client that has just said so to send its requests
AIM_SECONDS = 1        # how long a moment is waited for before the run is looked at again
OVERTAKEN_OWNERS = "times others came in meanwhile"

ROUTINES = {}


def routine(function):
    ROUTINES[function.__name__.replace("_", "-")] = function
    return function


async def hold(fault):
    await asyncio.sleep(fault.for_ms / 1000)


async def until_hit(fault, hits):
    """Waits as long as planned, and longer until the fault has hit something; returns hits()."""
    await hold(fault)
    return await wait_until(hits, HIT_SECONDS)


def total(counters):
    """A function that returns how much the counters have grown since now."""
    before = sum(counter() for counter in counters)
    return lambda: sum(counter() for counter in counters) - before


@routine
async def kill(system, fault, empty=False):
    nodes = [system.node(n) for n in fault.nodes]
    await asyncio.gather(*(node.kill() for node in nodes))
    await hold(fault)
    await asyncio.gather(*(node.start(empty=empty) for node in nodes))


@routine
async def wipe(system, fault):
    await kill(system, fault, empty=True)


@routine
async def pause(system, fault):
    node = system.node(fault.nodes[0])
    before = node.state
    node.signal(signal.SIGSTOP)
    node.set_state("paused")
    try:
        await hold(fault)
    finally:
        node.signal(signal.SIGCONT)
        node.set_state(before)


async def filtered(system, fault, rules):
    system.filter.add(rules)
    try:
        return {DROPPED: await until_hit(fault, lambda: system.filter.dropped(rules))}
    finally:
        system.filter.remove(rules)


def towards(node):
    return ["INPUT", "-p", "tcp", "-d", node.front_host, "--dport", node.front_port]


def from_node(node):
    return ["OUTPUT", "-p", "tcp", "-s", node.front_host, "--sport", node.front_port]


WITH_DATA = ["--tcp-flags", "SYN,PSH", "PSH"]
DROP = ["-j", "DROP"]


@routine
async def cut(system, fault):
    return await filtered(system, fault, [towards(system.node(n)) + DROP for n in fault.nodes])


@routine
async def blackout(system, fault):
    nodes = [system.node(n) for n in fault.nodes]
    return await filtered(system, fault, [way(node) + DROP for node in nodes for way in (towards, from_node)])


@routine
async def mute(system, fault):
    return await filtered(system, fault, [from_node(system.node(n)) + DROP for n in fault.nodes])


@routine
async def lost_replies(system, fault):
    return await filtered(system, fault, [from_node(system.node(n)) + WITH_DATA + DROP for n in fault.nodes])


@routine
async def lost_requests(system, fault):
    return await filtered(system, fault, [towards(system.node(n)) + WITH_DATA + DROP for n in fault.nodes])


@routine
async def lossy(system, fault):
    third = ["-m", "statistic", "--mode", "random", "--probability", "0.33"]
    return await filtered(system, fault, [towards(system.node(n)) + third + DROP for n in fault.nodes])


def both_ways(system, fault, rule):
    return [way(system.node(n)) + rule for n in fault.nodes for way in (towards, from_node)]


@routine
async def loss(system, fault):
    some = ["-m", "statistic", "--mode", "random", "--probability", fault.detail["percent"] / 100]
    return await filtered(system, fault, both_ways(system, fault, some + DROP))


@routine
async def late(system, fault, in_order=True):
    held = HeldPackets(fault.id, fault.detail["low_ms"], fault.detail["high_ms"], in_order)
    held.start()
    rules = both_ways(system, fault, held.rule)
    try:
        system.filter.add(rules)
        await until_hit(fault, lambda: held.late if in_order else held.overtaken)
    finally:
        system.filter.remove(rules)
        held.end()
    return {LATE: held.late} if in_order else {OVERTAKEN: held.overtaken}


@routine
async def reorder(system, fault):
    return await late(system, fault, in_order=False)


@routine
async def split(system, fault):
    return await filtered(system, fault, [towards(system.node(n)) + ["-s", system.client(c).address] + DROP
                                         for n in fault.nodes for c in fault.clients])


@routine
async def divide(system, fault):
    """Each client reaches only the nodes on its own side."""
    rules = [towards(node) + ["-s", client.address] + DROP for node in system.nodes for client in system.clients
             if (node.number in fault.nodes) != (client.number in fault.clients)]
    return await filtered(system, fault, rules)


def one_way(system, cut):
    """The filter rules of one cut between clients and nodes, for the requests or for the replies."""
    pairs = [(system.node(n), system.client(c)) for n in cut["nodes"] for c in cut["clients"]]
    if cut["lost"] == "requests":
        return [towards(node) + ["-s", client.address] + DROP for node, client in pairs]
    return [from_node(node) + ["-d", client.address] + DROP for node, client in pairs]


@routine
async def partitions(system, fault):
    """The cuts begin one after the other, and end in reverse order."""
    cuts = [one_way(system, cut) for cut in fault.detail["cuts"]]
    pause = fault.for_ms / 1000 / (2 * len(cuts) - 1)
    dropped = 0
    done = []
    try:
        for rules in cuts:
            system.filter.add(rules)
            done.append(rules)
            await asyncio.sleep(pause)
        await wait_until(lambda: system.filter.dropped([rule for rules in cuts for rule in rules]), HIT_SECONDS)
    finally:
        while done:
            dropped += system.filter.dropped(done[-1])
            system.filter.remove(done.pop())
            if done:
                await asyncio.sleep(pause)
    return {DROPPED: dropped}


@routine
async def slow(system, fault):
    node = system.node(fault.nodes[0])
    system.links.order(node, "slow", fault.detail["to_server_ms"], fault.detail["to_client_ms"])
    try:
        await hold(fault)
    finally:
        system.links.order(node, "slow", 0, 0)


@routine
async def half_open(system, fault):
    node = system.node(fault.nodes[0])
    system.links.order(node, "hold", fault.detail["requests"], 1)
    try:
        await hold(fault)
        if fault.detail["then"] == "cut":
            system.links.order(node, "cut")
    finally:
        system.links.order(node, "hold", 0, 0)


@routine
async def reset(system, fault):
    node = system.node(fault.nodes[0])
    for _ in range(1 + fault.for_ms // 200):
        system.links.order(node, "cut")
        await asyncio.sleep(0.2)


async def configured(node, fault, setting, value, normal):
    await node.ask("CONFIG", "SET", setting, value)
    try:
        await hold(fault)
    finally:
        await node.ask("CONFIG", "SET", setting, normal)


@routine
async def oom(system, fault):
    await configured(system.node(fault.nodes[0]), fault, "maxmemory", "1mb", "0")


@routine
async def no_replicas(system, fault):
    await configured(system.node(fault.nodes[0]), fault, "min-replicas-to-write", "1", "0")


@routine
async def readonly(system, fault):
    node = system.node(fault.nodes[0])
    # Nobody listens on that port: the node stays a replica that never saw its master.
    await node.ask("REPLICAOF", node.server_host, "1")
    try:
        await hold(fault)
    finally:
        await node.ask("REPLICAOF", "NO", "ONE")


@routine
async def clock_back(system, fault):
    # The clock is not stepped forward again: that would be another fault, outside the claim.
    system.node(fault.nodes[0]).step_clock(fault.detail["step_ms"])


@routine
async def clock_forward(system, fault):
    nodes = [system.node(n) for n in fault.nodes]
    for node in nodes:
        node.step_clock(fault.detail["step_ms"])
    try:
        await hold(fault)
    finally:
        for node in nodes:
            node.step_clock(-fault.detail["step_ms"])


@routine
async def flush(system, fault):
    await asyncio.gather(*(system.node(n).ask("FLUSHALL") for n in fault.nodes))


@routine
async def clock_strobe(system, fault):
    """The clock steps forth and back between two values; at the end it is where it was."""
    node = system.node(fault.nodes[0])
    hits = total([node.steps_read])
    loop = asyncio.get_running_loop()
    end, ahead = loop.time() + fault.for_ms / 1000, 0
    try:
        while loop.time() < end or (hits() == 0 and loop.time() < end + HIT_SECONDS):
            step_ms = -ahead if ahead else fault.detail["spread_ms"]
            node.step_clock(step_ms)
            ahead += step_ms
            await asyncio.sleep(fault.detail["every_ms"] / 1000)
    finally:
        node.step_clock(-ahead)
    return {"steps read": hits()}


@routine
async def fsync_stall(system, fault):
    nodes = [system.node(n) for n in fault.nodes]
    hits = total([node.fsyncs_stalled for node in nodes])
    for node in nodes:
        node.set_disk(stall_ms=fault.detail["stall_ms"])
    try:
        await until_hit(fault, hits)
    finally:
        for node in nodes:
            node.set_disk()
    return {"fsyncs stalled": hits()}


@routine
async def disk_full(system, fault):
    """A server that must sync its writes before it answers (appendfsync always) ends; with everysec it refuses writes."""
    node = system.node(fault.nodes[0])
    hits, room = total([node.writes_refused]), fault.detail["room_bytes"]
    if fault.detail["then"] == "end":
        ended = await disk_full_until_end(node, fault, room)
        return {"writes refused": hits(), "servers ended": int(ended)}
    await node.ask("CONFIG", "SET", "appendfsync", "everysec")
    node.set_disk(room_bytes=room)
    try:
        await until_hit(fault, hits)
    finally:
        node.set_disk()
    loop = asyncio.get_running_loop()
    end = loop.time() + RECOVER_SECONDS
    while "aof_last_write_status:ok" not in await node.ask("INFO", "persistence"):
        if loop.time() > end:
            raise HarnessError(f"server {node.number} does not write again: {node.last_words()}")
        await asyncio.sleep(0.05)
    await node.ask("CONFIG", "SET", "appendfsync", "always")
    return {"writes refused": hits()}


async def disk_full_until_end(node, fault, room):
    """Returns whether the server ended by itself."""
    node.set_disk(room_bytes=room)
    try:
        ended = await wait_gone(node.process, fault.for_ms / 1000 + HIT_SECONDS)
        if ended:
            node.set_state("down")
            await hold(fault)
        else:
            await node.kill()
    finally:
        node.set_disk()
    await node.start()
    return ended


@routine
async def aof_cut(system, fault):
    nodes = [system.node(n) for n in fault.nodes]
    await asyncio.gather(*(node.kill() for node in nodes))
    bytes_cut = sum(node.cut_log(fault.detail["permille"]) for node in nodes)
    await hold(fault)
    await asyncio.gather(*(node.start() for node in nodes))
    return {"bytes cut off": bytes_cut}


async def disconnect(system, numbers):
    for node in map(system.node, numbers):
        # A node that has a fault of its own may not answer.
        with contextlib.suppress(OSError, RuntimeError, TimeoutError, asyncio.IncompleteReadError):
            await node.disconnect_clients()


@routine
async def names(system, fault):
    """The clients are disconnected, because only who connects asks for a name."""
    server, how = system.names, fault.detail["how"]
    question = [["INPUT", "-p", "udp", "-d", ADDRESS, "--dport", PORT]]  # it only counts
    begin, end = {"dies": (server.kill, server.start), "hangs": (server.stop, server.go_on),
                  "late": (lambda: server.delay(fault.detail["late_ms"]), lambda: server.delay(0))}[how]
    system.filter.add(question)
    begin()
    try:
        await disconnect(system, fault.nodes)
        return {ASKED: await until_hit(fault, lambda: system.filter.dropped(question))}
    finally:
        end()
        system.filter.remove(question)


@routine
async def emfile(system, fault):
    """The client is disconnected, too: with its old connections it would need no new descriptor."""
    descriptors = Descriptors(system.client(fault.clients[0]))
    await wait_until(descriptors.sockets, HIT_SECONDS)
    before = descriptors.sockets()
    descriptors.exhaust()
    try:
        await disconnect(system, fault.detail["disconnected"])
        missing = await until_hit(fault, lambda: max(0, before - descriptors.sockets()))
    finally:
        descriptors.restore()
    return {"sockets missing": missing}


@routine
async def reconfigure(system, fault):
    """Does what an operator does: stops the server that leaves, repeats bootstrap until it succeeds, and restarts one
    client after the other. Until then the clients run on with the old settings."""
    new_ms = fault.detail.get("max_lease_ms", system.max_lease_ms)
    if "replaced" in fault.detail:
        node = system.node(fault.detail["replaced"])
        await node.kill()
        node.move(*system.free_address())
        await node.start(empty=True)
    await bootstrap_anew(system, new_ms, fault.detail["killed_ms"])
    done_us = now_us()
    system.max_lease_ms, system.setup = new_ms, system.setup + 1
    for node in system.nodes:
        node.keep_log()
    old = [client.channel for client in system.clients if client.setup < system.setup]
    guarded = not system.options.client  # another program need not have our guard, and may go on with the old settings
    await until_hit(fault, lambda: refused_since(old, done_us) or not guarded)
    moved = [await move_client(system, client) for client in system.clients]
    for channel in old:
        if guarded and any(outcome == "granted" and asked_us > done_us for asked_us, outcome in channel.outcomes):
            system.record("breach", client=channel.name, text="was granted a lock by nodes that were set up for others")
    return {"asks of old clients refused": refused_since(old, done_us), "clients moved": sum(moved)}


def refused_since(channels, from_us):
    """How often the clients got no quorum, because the nodes refused them (INVAL) or did not answer. A candidate goes on
    after that; only its user ends it (RESIGNED)."""
    return sum(outcome in ("INVAL", "NOQUORUM", "RESIGNED") and asked_us > from_us for channel in channels
               for asked_us, outcome in channel.outcomes)


async def bootstrap_anew(system, max_lease_ms, killed_ms):
    command = system.bootstrap_command("--reconfigure", "--yes", max_lease_ms=max_lease_ms)
    if killed_ms:
        first = launch(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await asyncio.sleep(killed_ms / 1000)
        first.kill()
        await wait_gone(first, 5)
    loop = asyncio.get_running_loop()
    end = loop.time() + BOOTSTRAP_SECONDS
    while True:
        run = await asyncio.create_subprocess_exec(*map(str, command), stdin=subprocess.DEVNULL,
                                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        words = (await run.communicate())[1].decode(errors="replace").strip()
        if run.returncode == 0:
            return
        if loop.time() > end:
            raise HarnessError(f"bootstrap --reconfigure ends with {run.returncode}: {words}")
        await asyncio.sleep(0.1)


async def move_client(system, client):
    """Restarts the client with the new settings. Returns whether it ran with the old ones."""
    async with client.lock:
        if client.setup == system.setup:
            return False
        client.expected_to_end = True
        await client.end()
        client.start()
        client.expected_to_end = False
    return True


async def rotate(system, fault, accept, change_file, refuse, count):
    """Does what an operator does, in the right order or in the wrong one. Clients are disconnected, because a connection
    that is there needs no login. count: of one node. Returns how much it has grown since then."""
    steps = [accept, change_file, refuse] if fault.detail["file"] == "before" else [accept, refuse, change_file]
    before = {}
    for step in steps:
        await step()
        if step == refuse:
            await disconnect(system, fault.nodes)
            before = {node: await count(node) for node in system.nodes}
        if step != accept:
            await asyncio.sleep(fault.for_ms / 2000)
    loop = asyncio.get_running_loop()
    end = loop.time() + HIT_SECONDS
    while True:
        hits = sum([max(0, await count(node) - before[node]) for node in system.nodes])
        if hits or loop.time() > end:
            return hits
        await asyncio.sleep(0.05)


@routine
async def password(system, fault):
    old, new = system.passwords[-1], f"password-{fault.id}"

    async def set_everywhere(rule):
        await asyncio.gather(*(node.ask("ACL", "SETUSER", "default", rule) for node in system.nodes))

    async def accept():
        system.passwords = [old, new]
        await set_everywhere(f">{new}")

    async def change_file():
        system.write("password", f"{new}\n")

    async def refuse():
        system.passwords = [new]
        await set_everywhere(f"<{old}")

    return {LOGINS: await rotate(system, fault, accept, change_file, refuse, lambda node: node.logins())}


@routine
async def certificate(system, fault):
    """In the right order the clients trust both certificates before the nodes show the new one."""
    old = (system.folder / f"{system.certificate}.pem").read_text(encoding="ascii")
    new = ""

    async def make():
        nonlocal new
        new = system.make_certificate()

    async def change_file():
        system.write("ca.pem", old + new)

    async def show():
        place = f"{system.folder}/{system.certificate}"
        await asyncio.gather(*(node.ask("CONFIG", "SET", "tls-cert-file", f"{place}.pem", "tls-key-file", f"{place}.key")
                               for node in system.nodes))

    hits = await rotate(system, fault, make, change_file, show, lambda node: node.connections())
    system.write("ca.pem", new)
    return {RENEWED: hits}


@routine
async def pause_client(system, fault):
    client = system.client(fault.clients[0])
    client.stop()
    try:
        await hold(fault)
    finally:
        client.go_on()


@routine
async def pause_writer(system, fault):
    """Stops the client where that does most harm: its next write reaches the register after it has been continued. If
    it does not write in time, it is stopped anyway."""
    channel = system.client(fault.clients[0]).channel
    channel.hold_next_write()
    try:
        await wait_until(channel.holding.is_set, STALL_SECONDS)
        await pause_client(system, fault)
    finally:
        channel.let_go()


@routine
async def kill_client(system, fault):
    client = system.client(fault.clients[0])
    client.expected_to_end = True
    await client.kill()
    await hold(fault)
    client.start()
    client.expected_to_end = False


def others(system, fault):
    """The other clients that own the key of the moment now."""
    return system.recorder.aims.owners(fault.moment.fields["key"]) - {fault.moment.channel.name}


async def until_overtaken(fault, reached):
    """Waits no longer than planned until others have done what does harm now; returns what was counted."""
    return {OVERTAKEN_OWNERS: int(bool(await wait_until(reached, fault.for_ms / 1000)))}


@routine
async def stop_writer(system, fault):
    visits, key, client = system.recorder.aims.visits, fault.moment.fields["key"], system.client(fault.clients[0])
    visits.pop(key, None)
    client.stop()
    try:
        return await until_overtaken(fault, lambda: visits.get(key, client.name) != client.name)
    finally:
        client.go_on()


@routine
async def stop_asker(system, fault):
    """The nodes execute what it asks while it is stopped, so their answers wait for it."""
    nodes, client = [system.node(n) for n in fault.nodes], system.client(fault.clients[0])
    for node in nodes:
        node.signal(signal.SIGSTOP)
    try:
        fault.moment.let_go()
        await asyncio.sleep(ASK_SECONDS)
        client.stop()
    finally:
        for node in nodes:
            node.signal(signal.SIGCONT)
    try:
        return await until_overtaken(fault, lambda: others(system, fault))
    finally:
        client.go_on()


@routine
async def cut_owner(system, fault):
    address = system.client(fault.clients[0]).address
    rules = [way(system.node(n)) + [side, address] + DROP for n in fault.nodes
             for way, side in ((towards, "-s"), (from_node, "-d"))]
    system.filter.add(rules)
    try:
        fault.moment.let_go()
        overtaken = await until_overtaken(fault, lambda: others(system, fault))
        return {DROPPED: system.filter.dropped(rules)} | overtaken
    finally:
        system.filter.remove(rules)


@routine
async def wipe_owned(system, fault):
    """The owner is stopped meanwhile, because it could notice at its next renewal."""
    client = system.client(fault.clients[0])
    client.stop()
    try:
        nodes = [system.node(n) for n in fault.nodes]
        await asyncio.gather(*(node.kill() for node in nodes))
        await asyncio.gather(*(node.start(empty=True) for node in nodes))
        return await until_overtaken(fault, lambda: others(system, fault))
    finally:
        client.go_on()


# The event that each aimed kind waits for, and whether it is the right one of its kind.
AIMS = {
    "stop-writer": ("write", lambda system, fields: True),
    "stop-asker": ("invoke", lambda system, fields: not system.recorder.aims.owners(fields["key"])),
    "cut-owner": ("granted", lambda system, fields: True),
    # Servers take a while to start again.
    "wipe-owned": ("granted", lambda system, fields: fields["deadline_us"] - now_us() > system.mean_lease_ms() * 1000),
}
assert set(AIMS) == set(GROUPS["aimed"])


async def inject(system, fault):
    """Runs one fault from beginning to end; faults that share a target wait for each other."""
    await wait_until(lambda: system.over, system.begun + fault.at_ms / 1000 - asyncio.get_running_loop().time())
    kind = KINDS[fault.kind]
    # During faults of the network, nodes and clients may be stopped or killed; during a split only its clients may.
    targets = [system.node(n) for n in fault.nodes if kind.on != "way"] + [system.client(c) for c in fault.clients if kind.on == "client"]
    async with contextlib.AsyncExitStack() as locks:
        for lock in [system.aiming] * kind.aimed + [target.lock for target in targets]:
            await locks.enter_async_context(lock)
        if not system.over:
            await (aim if kind.aimed else strike)(system, fault)


async def aim(system, fault):
    """Waits for a moment of that kind, and strikes there. There may be none before the end of the run."""
    event, fits = AIMS[fault.kind]
    clients = {client.name: client for client in system.clients}

    def is_right(channel, fields):
        return not clients[channel.name].lock.locked() and fits(system, fields)

    while not system.over and not fault.clients:
        async with system.recorder.aims.at(event, is_right, AIM_SECONDS) as fault.moment:
            client = clients[fault.moment.channel.name] if fault.moment else None
            # Another fault may have come first.
            if client and not client.lock.locked():
                async with client.lock:
                    fault.clients = [client.number]
                    await strike(system, fault)


async def strike(system, fault):
    fields = {"id": fault.id, "kind": fault.kind, "nodes": fault.nodes, "clients": fault.clients}
    system.record("fault", phase="begin", at_ms=fault.at_ms, **fields, **fault.detail)
    try:
        hits = await ROUTINES[fault.kind](system, fault) or {}
    except (OSError, RuntimeError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise HarnessError(f"fault {fault.id}, {fault.kind} of {fault.where()}: {error!r}") from error
    system.record("fault", phase="end", **fields, **({"hits": hits} if hits else {}))
    counted = system.hits.setdefault(fault.kind, {})
    for what, number in hits.items():
        counted[what] = counted.get(what, 0) + number
    system.survived[fault.kind] = system.survived.get(fault.kind, 0) + 1


assert set(ROUTINES) == set(KINDS)
