# SPDX-License-Identifier: BSD-3-Clause
"""How each kind of fault is done to the system, and undone."""
import asyncio
import signal

from plan import KINDS
from system import Trouble

STALL_SECONDS = 4  # how long a client may take until its next write, to be stopped there

ROUTINES = {}


def routine(function):
    ROUTINES[function.__name__.replace("_", "-")] = function
    return function


async def hold(fault):
    await asyncio.sleep(fault.for_ms / 1000)


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
    node.turn("paused")
    try:
        await hold(fault)
    finally:
        node.signal(signal.SIGCONT)
        node.turn(before)


async def filtered(system, fault, rules):
    system.filter.add(rules)
    try:
        await hold(fault)
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
    await filtered(system, fault, [towards(system.node(n)) + DROP for n in fault.nodes])


@routine
async def mute(system, fault):
    await filtered(system, fault, [from_node(system.node(n)) + DROP for n in fault.nodes])


@routine
async def lost_replies(system, fault):
    await filtered(system, fault, [from_node(system.node(n)) + WITH_DATA + DROP for n in fault.nodes])


@routine
async def lost_requests(system, fault):
    await filtered(system, fault, [towards(system.node(n)) + WITH_DATA + DROP for n in fault.nodes])


@routine
async def lossy(system, fault):
    third = ["-m", "statistic", "--mode", "random", "--probability", "0.33"]
    await filtered(system, fault, [towards(system.node(n)) + third + DROP for n in fault.nodes])


@routine
async def split(system, fault):
    await filtered(system, fault, [towards(system.node(n)) + ["-s", system.client(c).address] + DROP
                                  for n in fault.nodes for c in fault.clients])


@routine
async def divide(system, fault):
    """Every client reaches the nodes on its own side only."""
    rules = [towards(node) + ["-s", client.address] + DROP for node in system.nodes for client in system.clients
             if (node.number in fault.nodes) != (client.number in fault.clients)]
    await filtered(system, fault, rules)


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
    # Nobody listens there: it stays a replica that never saw its master.
    await node.ask("REPLICAOF", node.server_host, "1")
    try:
        await hold(fault)
    finally:
        await node.ask("REPLICAOF", "NO", "ONE")


@routine
async def clock_back(system, fault):
    # Never stepped forward again: that would be another fault, outside the claim.
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
async def pause_client(system, fault):
    client = system.client(fault.clients[0])
    client.stop()
    try:
        await hold(fault)
    finally:
        client.go_on()


@routine
async def pause_writer(system, fault):
    """The client is stopped where it does most harm: its next write reaches the register when it goes on. A client
    without a write in that time is stopped anywhere."""
    channel = system.client(fault.clients[0]).channel
    channel.hold_next_write()
    loop = asyncio.get_running_loop()
    until = loop.time() + STALL_SECONDS
    try:
        while not channel.holding.is_set() and loop.time() < until:
            await asyncio.sleep(0.005)
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


async def inject(system, fault):
    """One fault from beginning to end; faults that share a target wait for each other."""
    await asyncio.sleep(max(0.0, system.begun + fault.at_ms / 1000 - asyncio.get_running_loop().time()))
    kind = KINDS[fault.kind]
    # A division is a fault of the network: nodes and clients may be stopped or killed meanwhile. So may a split's clients.
    targets = [system.node(n) for n in fault.nodes if kind.on != "way"] + [system.client(c) for c in fault.clients if kind.on == "client"]
    for target in targets:
        await target.lock.acquire()
    try:
        fields = {"id": fault.id, "kind": fault.kind, "nodes": fault.nodes, "clients": fault.clients}
        system.tell("fault", phase="begin", **fields, **fault.detail)
        try:
            await ROUTINES[fault.kind](system, fault)
        except (OSError, RuntimeError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise Trouble(f"fault {fault.id}, {fault.kind} of {fault.where()}: {error!r}") from error
        system.tell("fault", phase="end", **fields)
        system.survived[fault.kind] = system.survived.get(fault.kind, 0) + 1
    finally:
        for target in targets:
            target.lock.release()


assert set(ROUTINES) == set(KINDS)
