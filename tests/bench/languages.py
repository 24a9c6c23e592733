# SPDX-License-Identifier: BSD-3-Clause
"""The rows of locks that Python takes, beside redis-py's own lock and the package of another build."""
import os
import re
import subprocess
import sys

from modes import compared
from programs import Failed, Peer

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "python_locks.py")
KINDS = (("threads", 1), ("threads", 8), ("tasks", 1), ("tasks", 32))


def package(build):
    """What a process needs in order to import the package of that build."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        source = re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.*)$", file.read(), re.MULTILINE)[1]
    return {"QUORLOCK_LIBRARY": os.path.join(build, "lib", "libquorlock.so"), "PYTHONPATH": os.path.join(source, "src", "python")}


def lacks_redis_py():
    return subprocess.run([sys.executable, "-c", "import redis"], check=False, capture_output=True).returncode != 0


def kinds(setting):
    """The clients that are here: their names in python_locks.py, and the environment of each."""
    found = {"now": ("quorlock", package(setting.programs.build))}
    if setting.options.before:
        found["before"] = ("quorlock", package(setting.options.before))
    if not setting.options.peers or lacks_redis_py():
        setting.options.absent["redis-py"] = "the Python that runs scripts/bench does not have it"
    else:
        found["redis-py"] = ("redis-py", {})
    return found


def piece(peer, in_flight, seconds):
    one = peer.run(in_flight, seconds)
    if not one["locks"]:
        raise Failed(f"{peer.name}: no lock")
    return {**one, "cpu_us": one["cpu_s"] * 1e6}


def measure(setting, peers, in_flight):
    """Pieces of each, in turn; the first ones warm up."""
    pieces = {name: [] for name in peers}
    for turn in range(-1, 2 * setting.options.rounds):
        for name in peers if turn % 2 else reversed(peers):
            one = piece(peers[name], in_flight, setting.seconds / 4)
            if turn >= 0:
                pieces[name].append(one)
    return pieces


def by_python(setting):
    found = kinds(setting)
    for style, in_flight in KINDS:
        with setting.servers() as servers:
            peers = {name: Peer(client, [sys.executable, "-B", PROGRAM, client, style, *servers.nodes()],
                                {**os.environ, **environment}) for name, (client, environment) in found.items()}
            try:
                pieces = measure(setting, peers, in_flight)
            finally:
                for peer in peers.values():
                    peer.end()
        for base in list(peers)[1:]:
            text = style if in_flight > 1 else style[:-1]
            row = compared(f"{in_flight} {text}, of {'redis-py on one server' if base == 'redis-py' else 'the build before'}",
                           pieces["now"], pieces[base])
            row.update(mode=base, style=style, in_flight=in_flight)
            setting.say(f"{row['name']}: {row['locks_per_s']['median']:,.0f} locks/s, client CPU "
                        f"{row['client_cpu_us_per_lock']['median']:,.0f} us; ratio: locks/s "
                        f"{row['locks_per_s_ratio']['median']:.2f}, client CPU "
                        f"{row['client_cpu_us_per_lock_ratio']['median']:.2f}")
            yield row
