# SPDX-License-Identifier: BSD-3-Clause
"""Packets that the packet filter hands to us (NFQUEUE): each goes on later than it came. As a program: tries whether this
machine permits that; or, for cluster/hurt, with a number, milliseconds and a file: does it as long as the file is there."""
import asyncio
import errno
import os
import random
import socket
import struct
import sys

NETLINK_NETFILTER = 12
ERROR = 2                                          # NLMSG_ERROR
REQUEST, ACKNOWLEDGE = 1, 4                        # NLM_F_REQUEST, NLM_F_ACK
PACKET, VERDICT, CONFIG = 0x300, 0x301, 0x302      # of the subsystem NFNL_SUBSYS_QUEUE
HEADER, PAYLOAD, ANSWER = 1, 10, 2                 # NFQA_PACKET_HDR, NFQA_PAYLOAD, NFQA_VERDICT_HDR
COMMAND, PARAMETERS, LENGTH = 1, 2, 3              # NFQA_CFG_CMD, NFQA_CFG_PARAMS, NFQA_CFG_QUEUE_MAXLEN
BIND, COPY_PACKET, ACCEPT = 1, 2, 1
COPIED_BYTES = 24   # addresses and ports
HELD_MAX = 8192
BUFFER_BYTES = 65536


def attribute(kind, content):
    text = struct.pack("=HH", 4 + len(content), kind) + content
    return text + bytes(-len(text) % 4)


def attributes(text):
    """{kind: content}."""
    found = {}
    while len(text) >= 4:
        length, kind = struct.unpack_from("=HH", text)
        if length < 4:
            break
        found[kind & 0x7fff] = text[4:length]
        text = text[(length + 3) & ~3:]
    return found


class HeldPackets:
    """One queue of the packet filter, whose rules name its number. Each packet goes on after a time that is drawn from
    low to high milliseconds. With in_order the packets of a connection never overtake each other."""

    def __init__(self, number, low_ms, high_ms, in_order):
        self.number, self.low_ms, self.high_ms, self.in_order = number, low_ms, high_ms, in_order
        self.held = {}      # {id: (way, timer)}
        self.due = {}       # {way: when its last packet goes on}
        self.late = self.overtaken = 0
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        try:
            self.socket.bind((0, 0))
            self.configure(COMMAND, struct.pack(">BBH", BIND, 0, socket.AF_INET))
            self.configure(PARAMETERS, struct.pack(">IB", COPIED_BYTES, COPY_PACKET))
            self.configure(LENGTH, struct.pack(">I", HELD_MAX))
        except OSError:
            self.socket.close()
            raise
        self.socket.setblocking(False)

    @property
    def rule(self):
        """Packets pass freely while nobody listens to the queue."""
        return ["-j", "NFQUEUE", "--queue-num", self.number, "--queue-bypass"]

    def send(self, kind, flags, content):
        text = struct.pack(">BBH", socket.AF_UNSPEC, 0, self.number) + content
        self.socket.send(struct.pack("=IHHII", 16 + len(text), kind, REQUEST | flags, 0, 0) + text)

    def configure(self, kind, content):
        self.send(CONFIG, ACKNOWLEDGE, attribute(kind, content))
        answer = self.socket.recv(BUFFER_BYTES)
        kind, = struct.unpack_from("=H", answer, 4)
        code = -struct.unpack_from("=i", answer, 16)[0] if kind == ERROR else errno.EPROTO
        if code:
            raise OSError(code, os.strerror(code))

    def start(self):
        asyncio.get_running_loop().add_reader(self.socket, self.read)

    def read(self):
        try:
            text = self.socket.recv(BUFFER_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            if error.errno == errno.ENOBUFS:  # the kernel let packets go that we did not read in time
                return
            raise
        while len(text) >= 16:
            length, kind = struct.unpack_from("=IH", text)
            if kind == PACKET:
                found = attributes(text[20:length])
                self.take(struct.unpack_from(">I", found[HEADER])[0], found.get(PAYLOAD, b"")[12:24])
            text = text[max(16, (length + 3) & ~3):]

    def take(self, packet, way):
        """way: both addresses and ports of the packet."""
        loop = asyncio.get_running_loop()
        due = loop.time() + random.uniform(self.low_ms, self.high_ms) / 1000
        if self.in_order:
            due = self.due[way] = max(due, self.due.get(way, 0) + 1e-6)
        self.held[packet] = way, loop.call_at(due, self.let_go, packet)

    def let_go(self, packet):
        way, timer = self.held.pop(packet)
        timer.cancel()
        self.late += 1
        # Packets are numbered as they came.
        self.overtaken += any(earlier < packet and other == way for earlier, (other, _) in self.held.items())
        self.send(VERDICT, 0, attribute(ANSWER, struct.pack(">II", ACCEPT, packet)))

    def end(self):
        """Call this after the rules are gone: all packets that are left go on, in their order."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.socket)
        while True:
            before = len(self.held)
            self.read()
            if len(self.held) == before:
                break
        for packet in sorted(self.held):
            self.let_go(packet)
        self.socket.close()


async def hold_while(path, number, ms):
    held = HeldPackets(number, ms, ms, True)
    held.start()
    print("ready", flush=True)
    while os.path.exists(path):
        await asyncio.sleep(0.1)
    held.end()


if __name__ == "__main__":
    if sys.argv[1:]:
        asyncio.run(hold_while(sys.argv[3], int(sys.argv[1]), int(sys.argv[2])))
    else:
        HeldPackets(1, 0, 0, True)
