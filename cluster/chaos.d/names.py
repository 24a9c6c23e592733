# SPDX-License-Identifier: BSD-3-Clause
"""The names of the nodes, and their name server, which faults kill, stop and slow down.

As a program it is the server."""
import asyncio
import os
import re
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

ADDRESS, PORT = "127.0.4.1", 53
ZONE = "chaos"
HEADER_BYTES = 12
ANSWER, NO_SUCH_NAME, TYPE_A, CLASS_IN = 0x8180, 0x8183, 1, 1
POINTER_TO_QUESTION = 0xc00c
QUESTION_BYTES_MAX = 512
FILES = {
    # Without these options a lookup without an answer takes ten seconds.
    "/etc/resolv.conf": f"nameserver {ADDRESS}\noptions timeout:1 attempts:2\n",
    # No other service that knows of no such name, and would be asked first.
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def name_of(address):
    return f"node-{address.replace('.', '-')}.{ZONE}"


def address_of(name):
    found = re.fullmatch(rf"node-(\d+)-(\d+)-(\d+)-(\d+)\.{ZONE}", name.lower())
    return ".".join(found.groups()) if found else None


def use(folder):
    """Makes the programs of this mount namespace ask our server."""
    for path, text in FILES.items():
        ours = Path(folder) / Path(path).name
        ours.write_text(text, encoding="ascii")
        if Path(path).exists():
            subprocess.run(["mount", "--bind", str(ours), path], check=True, capture_output=True, timeout=20)


# ---- the server ----

def answer(question):
    """The answer to one datagram; None: it is no question of one name."""
    if len(question) < HEADER_BYTES + 5 or struct.unpack_from(">H", question, 4)[0] != 1:
        return None
    labels, at = [], HEADER_BYTES
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode(errors="replace"))
        at += 1 + question[at]
    kind, = struct.unpack_from(">H", question, at + 1)
    end = at + 5
    address = address_of(".".join(labels))
    flags = ANSWER if address else NO_SUCH_NAME
    records = 1 if address and kind == TYPE_A else 0
    text = question[:2] + struct.pack(">HHHHH", flags, 1, records, 0, 0) + question[HEADER_BYTES:end]
    if records:
        text += struct.pack(">HHHIH", POINTER_TO_QUESTION, TYPE_A, CLASS_IN, 0, 4) + socket.inet_aton(address)
    return text


def serve():
    """Answers until standard input ends. Each line there is the delay of all later answers, in milliseconds."""
    loop = asyncio.new_event_loop()
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((ADDRESS, PORT))
    server.setblocking(False)
    delay_s = 0.0

    def read_order():
        nonlocal delay_s
        line = os.read(0, 64).split()
        if not line:
            loop.stop()
            return
        delay_s = int(line[-1]) / 1000

    def read_question():
        question, asker = server.recvfrom(QUESTION_BYTES_MAX)
        try:
            text = answer(question)
        except (IndexError, struct.error):
            return
        if text:
            loop.call_later(delay_s, server.sendto, text, asker)

    loop.add_reader(0, read_order)
    loop.add_reader(server, read_question)
    print("ready", flush=True)
    loop.run_forever()


class NameServer:
    """The process of the server."""

    def __init__(self, launch):
        self.launch, self.process = launch, None
        self.start()

    def start(self):
        self.process = self.launch([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            raise OSError("the name server does not start")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def delay(self, delay_ms):
        self.process.stdin.write(b"%d\n" % delay_ms)
        self.process.stdin.flush()


if __name__ == "__main__":
    serve()
