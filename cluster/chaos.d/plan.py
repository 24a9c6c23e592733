# SPDX-License-Identifier: BSD-3-Clause
"""The plan of faults (which, when, how long): a pure function of the seed and the options."""
import json
import random
from dataclasses import asdict, dataclass, field

SETTLE_MS = 1500  # no fault before this time
PACE_MS = 900     # the mean time from one fault to the next
BESIDE_MS = 2500  # the same, of those that come beside aimed ones
AIMED_MS = 1300   # an aimed fault comes no sooner after the one before; it also waits for its end
END_MS = 1000     # no fault begins in this time before the healing
STORMS = 0.12     # the part of the faults that may hit more than a minority
QUICK = 0.5       # the part of the restarts that take no time
MANY_OUTSIDE = 0.6
MANY = 0.25       # the part of the faults of nodes that hit several at once


@dataclass(frozen=True)
class Kind:
    """A kind of fault. `on`: node, client, split (clients and nodes), way (between them), set (all nodes at once).
    `needs`: what the machine must permit. `proof`: the counter that must grow, or the fault has hit nothing."""
    on: str
    text: str
    ms: tuple            # shortest and longest
    weight: int = 2      # how often, against the others
    # filter (packet filter), source (and addresses of clients), queue (late packets), names, link (proxy), shim (preloaded clock), disk (preloaded), guard,
    # tls, password
    needs: str = ""
    outside: bool = False
    forgets: bool = False  # the node loses its data: inside the claim only with the guard
    restarts: bool = False  # a guarded node is quarantined afterwards
    proof: str = ""
    aimed: bool = False  # it waits for a moment in the history, which names its client


DROPPED = "packets dropped"
LOGINS, RENEWED = "logins with a new password", "connections with a new certificate"
ASKED = "names asked for"
LATE, OVERTAKEN = "packets late", "packets that overtook others"

# Why the less obvious kinds are inside what the lock claims to survive:
#
# fsync-stall  The server answers late. Validity counts from the time of sending, so a late yes cannot grant a lease
#     that has ended.
# disk-full    A server that must write its log before it answers ends if it cannot. Every yes that it sent is in the
#     log, so it comes back with its data. With a later sync it refuses all writes, but keeps its data.
# aof-cut      A part of the data is lost, and released locks may be back. The guard may be in the remaining part,
#     though later locks are not. It names the run of the server, which a restart changes, so the node's votes are
#     ignored for the longest lease. Without the guard this is outside, like an empty restart.
# clock-strobe The claim includes steps forward within the drift allowance of a lease, which is 1 % and 2 ms. All steps
#     stay between two values that are at most 1 % of the shortest lease apart. So no key and no quarantine ends earlier
#     than the allowance covers, however many steps there are. Farther apart it is outside, like clock-forward.
# names        Names are asked for only to connect; without an answer the node is as one that is down.
# emfile       The client cannot connect; it sees nodes that are down.
# blackout, partitions, loss, late, reorder   Lost and late packets, about which nothing is assumed.
# reconfigure  Before any new client gets a vote, all nodes have a guard that refuses every old client, and the old
#     connections are closed. No node votes before the longest lease of both settings is over. Old clients are refused
#     until they are replaced.
KINDS = {
    "kill": Kind("node", "server killed, restarted with its memory", (200, 2500), 4, restarts=True),
    "wipe": Kind("node", "server killed, restarted empty", (100, 2000), 4, restarts=True, forgets=True),
    "pause": Kind("node", "server stopped, then continued", (200, 3500), 3),
    "cut": Kind("node", "node unreachable", (300, 3500), 3, "filter", proof=DROPPED),
    "mute": Kind("node", "everything from the node is lost", (300, 3000), 2, "filter", proof=DROPPED),
    "lost-replies": Kind("node", "commands are executed, their replies lost", (200, 2500), 4, "filter", proof=DROPPED),
    "lost-requests": Kind("node", "connected, but commands are lost", (200, 2500), 2, "filter", proof=DROPPED),
    "lossy": Kind("node", "a third of the packets is lost", (500, 4000), 2, "filter", proof=DROPPED),
    "split": Kind("split", "some clients do not reach some nodes", (500, 4000), 4, "source", proof=DROPPED),
    "divide": Kind("way", "clients and nodes divided in two", (500, 3500), 3, "source", proof=DROPPED),
    "blackout": Kind("way", "no packet passes between clients and most nodes", (1500, 3200), 3, "filter", proof=DROPPED),
    "slow": Kind("node", "a slow link", (500, 4000), 3, "link"),
    "half-open": Kind("node", "the link keeps everything back", (300, 3000), 3, "link"),
    "reset": Kind("node", "connections are reset", (0, 800), 2, "link"),
    "oom": Kind("node", "out of memory", (300, 2500), 2),
    "readonly": Kind("node", "turned into a replica, then back", (200, 2000), 2, restarts=True),
    "no-replicas": Kind("node", "refuses writes for want of replicas", (300, 2500), 1),
    "clock-back": Kind("node", "wall clock stepped back", (0, 0), 2, "shim"),
    "fsync-stall": Kind("node", "every fsync of the server stalls", (500, 3500), 2, "disk", proof="fsyncs stalled"),
    "disk-full": Kind("node", "the server's disk is full", (300, 2500), 2, "disk", restarts=True,
                      proof="writes refused"),
    "aof-cut": Kind("node", "server killed, restarted without the end of its log", (100, 2000), 3, restarts=True,
                    forgets=True, proof="bytes cut off"),
    "clock-strobe": Kind("node", "wall clock steps forth and back, many times", (500, 4000), 2, "shim",
                         proof="steps read"),
    "emfile": Kind("client", "client disconnected, and has no descriptor left to connect", (300, 2500), 2,
                   proof="sockets missing"),
    "partitions": Kind("way", "partitions that overlap and heal in reverse order", (900, 4000), 2, "source",
                       proof=DROPPED),
    "loss": Kind("way", "some packets in a hundred are lost, both ways", (1000, 5000), 3, "filter", proof=DROPPED),
    "late": Kind("way", "every packet comes late, by times that vary", (1000, 5000), 2, "queue", proof=LATE),
    "reorder": Kind("way", "packets overtake each other", (1000, 5000), 2, "queue", proof=OVERTAKEN),
    "names": Kind("way", "the name server dies, hangs or answers late", (500, 4000), 3, "names", proof=ASKED),
    "password": Kind("set", "the password of the nodes changes under load", (300, 2500), 2, "password", proof=LOGINS),
    "certificate": Kind("set", "the certificate of the nodes changes under load", (300, 2500), 2, "tls", proof=RENEWED),
    "reconfigure": Kind("set", "the set of nodes or the max lease changes under load", (300, 1500), 1, "guard",
                        proof="asks of old clients refused"),
    "pause-client": Kind("client", "client stopped beyond its lease", (1100, 3000), 4),
    "pause-writer": Kind("client", "client stopped between its last check and its write", (1100, 2500), 4),
    "kill-client": Kind("client", "client killed, another takes its place", (50, 1200), 4),
    "clock-forward": Kind("node", "wall clock stepped forward, later back", (500, 4000), 4, "shim", outside=True),
    "flush": Kind("node", "FLUSHALL", (0, 0), 4, forgets=True),
    "stop-writer": Kind("aim", "whoever writes next stopped, until another has written", (1500, 2500), 1, aimed=True),
    "stop-asker": Kind("node", "a client stopped until its grants have ended, the nodes' answers on their way", (1500, 2500), 2,
                       aimed=True),
    "cut-owner": Kind("way", "an owner cut off from most nodes right after its grant", (1500, 2500), 2, "source", proof=DROPPED,
                      aimed=True),
    "wipe-owned": Kind("node", "an owner stopped right after its grant, most servers killed and restarted empty", (1000, 1500), 1,
                       restarts=True, forgets=True, aimed=True),
}
AT_ONCE = {"kill", "wipe", "cut", "mute", "lost-replies", "lost-requests", "lossy", "flush", "clock-forward", "aof-cut",
           "fsync-stall"}
MAY_BE_QUICK = {"kill", "wipe", "readonly", "aof-cut"}
STROBE_OUTSIDE_MS = (20, 400)
BACK_STEP_MS, BACK_TOTAL_MS = (20, 150), 600
FORWARD_STEP_MS = (200, 3000)


@dataclass
class Fault:
    id: int
    kind: str
    at_ms: int
    for_ms: int
    nodes: list = field(default_factory=list)    # numbers from 1
    clients: list = field(default_factory=list)  # numbers from 1
    detail: dict = field(default_factory=dict)

    def where(self):
        parts = []
        if self.clients:
            parts.append(", ".join(f"c{number}" for number in self.clients))
        if self.nodes:
            parts.append(("node " if len(self.nodes) == 1 else "nodes ") + ", ".join(map(str, self.nodes)))
        return " from ".join(parts)

    def line(self):
        detail = " ".join(f"{name}={json.dumps(value, separators=(',', ':')) if isinstance(value, list) else value}"
                          for name, value in self.detail.items())
        return (f"{self.at_ms / 1000:8.3f} s  {self.kind:<13} {self.where():<22} "
                f"{self.for_ms / 1000:6.3f} s  {detail}").rstrip()

    def fields(self):
        return asdict(self)


GROUPS = {"all": [name for name, kind in KINDS.items() if not kind.aimed],
          "aimed": [name for name, kind in KINDS.items() if kind.aimed]}
MISSING = {"filter": "no packet filter here", "source": "clients have no addresses of their own here", "queue": "no NFQUEUE in the packet filter here",
           "names": "no name server of its own here", "link": "the proxy is not built", "shim": "the clock shim is not built",
           "disk": "the disk shim is not built", "guard": "there is no guard to write anew",
           "tls": "only with --tls", "password": "only with --password"}


def choose_kinds(asked, profile, guard, abilities):
    """(kinds to use, {kind: why it is left out}). Raises ValueError with the remedy for a wrong --faults."""
    asked = [word for word in asked.split(",") if word]
    for word in asked:
        if word.lstrip("-") not in KINDS and word not in GROUPS:
            raise ValueError(f"--faults: '{word}' is no fault; there are {', '.join(KINDS)}")
    without = {word[1:] for word in asked if word.startswith("-")}
    named = [word for word in asked if word in KINDS]
    groups = [word for word in asked if word in GROUPS] or ([] if named else ["all"])
    wanted = [*named, *(kind for group in groups for kind in GROUPS[group])]
    candidates = [kind for kind in dict.fromkeys(wanted) if kind not in without]
    chosen, left_out = [], {}
    for name in candidates:
        kind = KINDS[name]
        outside = kind.outside or (kind.forgets and guard == "off")
        if outside and profile == "inside":
            if name in named:
                raise ValueError(f"--faults: {name} with --guard {guard} is outside what the lock claims; "
                                 "add --profile outside")
            left_out[name] = "outside what the lock claims" + (" with the guard off" if not kind.outside else "")
        elif kind.needs in MISSING and kind.needs not in abilities:
            left_out[name] = MISSING[kind.needs]
        else:
            chosen.append(name)
    return chosen, left_out


class _Planner:
    def __init__(self, rng, n_nodes, n_clients, linked, max_lease_ms, guarded, outside, lease_ms):
        self.rng, self.outside, self.lease_ms, self.first_lease_ms = rng, outside, lease_ms, max_lease_ms
        self.nodes, self.clients, self.linked = range(1, n_nodes + 1), range(1, n_clients + 1), linked
        self.max_lease_ms, self.guarded = max_lease_ms, guarded
        self.node_busy = dict.fromkeys(self.nodes, 0)      # until when, ms
        self.client_busy = dict.fromkeys(self.clients, 0)
        self.way_busy = self.set_busy = 0
        self.back_ms = dict.fromkeys(self.nodes, 0)

    def free_nodes(self, at_ms, linked):
        return [n for n in self.nodes if self.node_busy[n] <= at_ms and (not linked or n in self.linked)]

    def room(self, at_ms):
        """How many more nodes may be hit now: a minority, and sometimes more."""
        busy = sum(1 for until in self.node_busy.values() if until > at_ms)
        limit = max(1, (len(self.nodes) - 1) // 2)
        if self.outside or self.rng.random() < STORMS:
            limit = len(self.nodes)
        return limit - busy

    def client_targets(self, at_ms):
        free = [c for c in self.clients if self.client_busy[c] <= at_ms]
        # At least one client must go on contending.
        if len(self.clients) - len(free) >= max(1, len(self.clients) // 2) or not free:
            return None
        return [self.rng.choice(free)]

    def step(self, name, node):
        if name == "clock-back":
            step_ms = self.rng.randint(*BACK_STEP_MS)
            if self.back_ms[node] + step_ms > BACK_TOTAL_MS:
                return None
            self.back_ms[node] += step_ms
            return {"step_ms": -step_ms}
        return {"step_ms": self.rng.randint(*FORWARD_STEP_MS)}

    def detail(self, name, node):
        rng = self.rng
        if name in ("clock-back", "clock-forward"):
            return self.step(name, node)
        if name == "slow":
            return {"to_server_ms": rng.choice((0, 20, 60, 150, 400)), "to_client_ms": rng.choice((10, 40, 120, 500))}
        if name == "half-open":
            return {"requests": rng.choice((0, 1, 1)), "then": rng.choice(("deliver", "cut"))}
        if name == "fsync-stall":
            return {"stall_ms": rng.choice((20, 100, 400, 1200))}
        if name == "disk-full":
            return {"room_bytes": rng.choice((0, rng.randint(1, 400))), "then": rng.choice(("refuse", "end"))}
        if name == "aof-cut":
            return {"permille": rng.choice((0, 20, 100, 400, 1000))}
        if name == "clock-strobe":
            spread_ms = rng.randint(*STROBE_OUTSIDE_MS) if self.outside else max(1, self.lease_ms // 100)
            return {"spread_ms": spread_ms, "every_ms": rng.choice((5, 20, 60))}
        return {}

    def divide(self, fault):
        """Separates half of the nodes and half of the clients from the others; other faults may hit meanwhile."""
        if self.way_busy > fault.at_ms:
            return None
        self.way_busy = fault.at_ms + fault.for_ms + 300
        fault.nodes = sorted(self.rng.sample(self.nodes, len(self.nodes) // 2))
        fault.clients = sorted(self.rng.sample(self.clients, max(1, len(self.clients) // 2)))
        return fault

    def blackout(self, fault):
        """No client reaches most of the nodes, for so long that connections are given up with requests in flight."""
        if self.way_busy > fault.at_ms:
            return None
        self.way_busy = fault.at_ms + fault.for_ms + 300
        most = len(self.nodes) // 2 + 1
        fault.nodes = sorted(self.rng.sample(self.nodes, self.rng.randint(most, len(self.nodes))))
        return fault

    def weather(self, fault):
        """Any number of the nodes behind a bad network."""
        if self.way_busy > fault.at_ms:
            return None
        self.way_busy = fault.at_ms + fault.for_ms + 300
        fault.nodes = sorted(self.rng.sample(self.nodes, self.rng.randint(1, len(self.nodes))))
        if fault.kind == "loss":
            fault.detail = {"percent": self.rng.choice((2, 5, 10, 20))}
        elif fault.kind == "names":
            fault.detail = {"how": self.rng.choice(("dies", "hangs", "late"))}
            if fault.detail["how"] == "late":
                fault.detail["late_ms"] = self.rng.choice((200, 900, 2500))
        else:
            low_ms, high_ms = self.rng.choice(((0, 10), (5, 40), (20, 80), (50, 400)))
            fault.detail = {"low_ms": low_ms, "high_ms": high_ms}
        return fault

    def partitions(self, fault):
        """Two or three cuts between clients and nodes; each shares a node with the one before."""
        if self.way_busy > fault.at_ms:
            return None
        self.way_busy = fault.at_ms + fault.for_ms + 300
        cuts, shared = [], self.rng.choice(self.nodes)
        for _ in range(self.rng.randint(2, 3)):
            others = self.rng.sample(self.nodes, self.rng.randint(1, (len(self.nodes) + 1) // 2))
            clients = self.rng.sample(self.clients, self.rng.randint(1, max(1, len(self.clients) // 2)))
            cuts.append({"clients": sorted(clients), "nodes": sorted({shared, *others}),
                         "lost": self.rng.choice(("requests", "replies"))})
            shared = self.rng.choice(cuts[-1]["nodes"])
        fault.nodes = sorted({node for cut in cuts for node in cut["nodes"]})
        fault.clients = sorted({client for cut in cuts for client in cut["clients"]})
        fault.detail = {"cuts": cuts}
        return fault

    def rotate(self, fault):
        """The clients' file changes before the nodes refuse the old password or show the new certificate, or only after."""
        if self.set_busy > fault.at_ms:
            return None
        self.set_busy = fault.at_ms + fault.for_ms + 300
        fault.nodes = list(self.nodes)
        fault.detail = {"file": self.rng.choice(("before", "before", "after"))}
        for node in self.nodes:
            self.node_busy[node] = max(self.node_busy[node], self.set_busy)
        return fault

    def reconfigure(self, fault):
        """Changes the max lease, or replaces one node by a new one at another address; some are first killed half-way."""
        if any(until > fault.at_ms for until in self.node_busy.values()):
            return None
        fault.nodes, before_ms = list(self.nodes), self.max_lease_ms
        replaceable = [n for n in self.nodes if n not in self.linked]
        if replaceable and self.rng.random() < 0.5:
            fault.detail = {"replaced": self.rng.choice(replaceable)}
        else:
            longer_ms = self.first_lease_ms * 3 // 2
            self.max_lease_ms = longer_ms if before_ms == self.first_lease_ms else self.first_lease_ms
            fault.detail = {"max_lease_ms": self.max_lease_ms}
        fault.detail["killed_ms"] = self.rng.choice((0, self.rng.randint(1, 12)))
        busy_ms = fault.for_ms + 1000 + 2 * max(before_ms, self.max_lease_ms)
        self.node_busy = dict.fromkeys(self.nodes, fault.at_ms + busy_ms)
        return fault

    def draw(self, fault_id, name, at_ms):
        """A fault of this kind that may begin now, or None."""
        kind = KINDS[name]
        for_ms = self.rng.randint(*kind.ms)
        fault = Fault(fault_id, name, at_ms, for_ms)
        if kind.on == "client":
            fault.clients = self.client_targets(at_ms)
            if not fault.clients:
                return None
            self.client_busy[fault.clients[0]] = at_ms + for_ms + 400
            if name == "emfile":
                count = self.rng.randint(1, len(self.nodes))
                fault.detail = {"disconnected": sorted(self.rng.sample(self.nodes, count))}
            return fault
        special = {"divide": self.divide, "blackout": self.blackout, "partitions": self.partitions,
                   "reconfigure": self.reconfigure, "loss": self.weather, "late": self.weather,
                   "reorder": self.weather, "names": self.weather,
                   "password": self.rotate, "certificate": self.rotate}.get(name)
        if special:
            return special(fault)
        if name in MAY_BE_QUICK and self.rng.random() < QUICK:
            for_ms = fault.for_ms = self.rng.randint(0, 80)
        free, room = self.free_nodes(at_ms, kind.needs == "link"), self.room(at_ms)
        if not free or room < 1:
            return None
        many = 1
        if kind.on == "split" or (name in AT_ONCE and self.rng.random() < (MANY_OUTSIDE if self.outside else MANY)):
            many = self.rng.randint(1, max(1, min(room, len(free))))
        fault.nodes = sorted(self.rng.sample(free, many))
        if kind.on == "split":
            fault.clients = sorted(self.rng.sample(self.clients, self.rng.randint(1, max(1, len(self.clients) // 2))))
        fault.detail = self.detail(name, fault.nodes[0])
        if fault.detail is None:
            return None
        recover_ms = 300 + (self.max_lease_ms if kind.restarts and self.guarded else 0)
        for node in fault.nodes:
            self.node_busy[node] = at_ms + for_ms + recover_ms
        return fault


def make(seed, seconds, n_nodes, n_clients, kinds, linked, max_lease_ms, guarded, outside=False, lease_ms=500):
    """The plan: faults ordered by time. `linked`: numbers of the nodes behind the proxy. `outside`: faults may hit a
    majority. `lease_ms`: the shortest lease that clients ask for."""
    aimed, kinds = [kind for kind in kinds if KINDS[kind].aimed], [kind for kind in kinds if not KINDS[kind].aimed]
    rng = random.Random(f"{seed} {seconds} {n_nodes} {n_clients} {' '.join(kinds)} {linked} {max_lease_ms} {guarded} "
                        f"{outside}")
    planner = _Planner(rng, n_nodes, n_clients, linked, max_lease_ms, guarded, outside, lease_ms)
    faults, bag = [], []
    at_ms, end_ms = SETTLE_MS, int(seconds * 1000) - END_MS
    while kinds and at_ms < end_ms:
        if not bag:
            # Every kind comes once before any comes again.
            bag = [name for name in kinds for _ in range(KINDS[name].weight)]
            rng.shuffle(bag)
        for i, name in enumerate(bag[:6]):
            fault = planner.draw(len(faults) + 1, name, at_ms)
            if fault:
                faults.append(fault)
                del bag[i]
                break
        at_ms += max(60, int(rng.expovariate(1 / (BESIDE_MS if aimed else PACE_MS))))
    faults += aimed_faults(rng, aimed, end_ms, planner.nodes)
    faults.sort(key=lambda fault: fault.at_ms)
    for number, fault in enumerate(faults, 1):
        fault.id = number
    return faults


def aimed_faults(rng, kinds, end_ms, nodes):
    """One after the other. Their clients are those whom the moment shows."""
    faults, bag, at_ms = [], [], SETTLE_MS
    while kinds and at_ms < end_ms:
        if not bag:
            bag = [name for name in kinds for _ in range(KINDS[name].weight)]
            rng.shuffle(bag)
        name = bag.pop()
        most = rng.sample(nodes, len(nodes) // 2 + 1)
        targets = {"stop-writer": [], "stop-asker": nodes}.get(name, most)
        faults.append(Fault(0, name, at_ms, rng.randint(*KINDS[name].ms), sorted(targets)))
        at_ms += AIMED_MS + rng.randint(0, 400)
    return faults
