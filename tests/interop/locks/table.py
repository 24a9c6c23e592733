# SPDX-License-Identifier: BSD-3-Clause
"""Locks of other programs beside quorlock: what the tests run, and what quorlock-interop(7) says of it.

Each row of LOCKS is run by test_locks.py. The rows of PEERS are run at more length by the tests they name.
"""
import dataclasses

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@dataclasses.dataclass
class Lock:
    name: str
    package: str  # of the registry of `runtime`, with the version
    runtime: str  # python, node, java
    servers: str  # one, or quorum
    key: str  # for the name job
    value: str  # as a regular expression
    value_in_words: str
    waits: str  # how a waiter of theirs finds out; the periods are its defaults
    options: tuple = ()  # what quorlock needs
    asleep: tuple = ()  # what a server is asked, and a part of its answer, once a waiter of theirs sleeps
    wake: tuple = ()  # the commands that then wake it


LOCKS = [
    Lock("redis-py", "redis 8.1.0", "python", "one", "job", "[0-9a-f]{32}", "32 hex digits", "asks every 0.1 s"),
    Lock("python-redis-lock", "python-redis-lock 4.0.1", "python", "one", "lock:job", "[A-Za-z0-9+/]{24}", "24 letters",
         "sleeps in BLPOP lock-signal:job until a lease of its own length would have ended, since our release does not push there; redis-py 8 ends that with TimeoutError after 5 s, unless socket_timeout is longer", ("--prefix", "lock:"), asleep=(("INFO", "clients"), "blocked_clients:1"),
         wake=("LPUSH lock-signal:job 1", "PEXPIRE lock-signal:job 1000")),
    Lock("sherlock", "sherlock 0.4.1", "python", "one", "job", UUID, "a UUID", "asks every 0.1 s"),
    Lock("pottery", "pottery 3.0.1", "python", "quorum", "redlock:job", UUID, "a UUID", "asks after 0 to 0.2 s",
         ("--prefix", "redlock:")),
    Lock("redlock-py", "redlock-py 1.0.8", "python", "quorum", "job", "[A-Za-z0-9]{22}", "22 letters", "asks every 0.2 s"),
    Lock("redis-semaphore Mutex", "redis-semaphore 5.8.0", "node", "one", "mutex:job", UUID, "a UUID", "asks every 10 ms",
         ("--prefix", "mutex:")),
    Lock("redis-semaphore RedlockMutex", "redis-semaphore 5.8.0", "node", "quorum", "mutex:job", UUID, "a UUID",
         "asks every 10 ms", ("--prefix", "mutex:")),
    Lock("ioredis-lock", "@microfleet/ioredis-lock 6.0.1", "node", "one", "job", UUID, "a UUID",
         "asks every 50 ms, if retries are set"),
    Lock("redlock-universal createLock", "redlock-universal 0.8.5", "node", "one", "job", "[0-9a-f]{32}", "32 hex digits",
         "asks every 0.1 s"),
    Lock("Spring RedisLockRegistry, PUB_SUB", "org.springframework.integration:spring-integration-redis 6.5.5", "java", "one",
         "registry:job", UUID, "a UUID", "is told by PUBLISH, which our release does not send, and asks itself only every few seconds "
         "(0.8 to 10.8 s late were seen); registry stands for the registry key", ("--prefix", "registry:"),
         asleep=(("PUBSUB", "NUMPAT"), "1"), wake=("PUBLISH registry-channel:registry:job registry:job",)),
    Lock("redlock-universal createRedlock", "redlock-universal 0.8.5", "node", "quorum", "job", "[0-9a-f]{32}",
         "32 hex digits", "asks every 0.2 s"),
]


@dataclasses.dataclass
class Peer:
    name: str
    package: str
    file: str  # which pins it
    pinned: str
    waits: str
    options: tuple = ()


PEERS = [
    Peer("redsync", "Go github.com/go-redsync/redsync/v4 4.18.1", "redsync/newer.mod", "redsync/v4 v4.18.1",
         "asks after 50 to 250 ms"),
    Peer("node-redlock", "npm redlock 5.0.0-beta.2", "node-redlock/package.json", '"redlock": "5.0.0-beta.2"',
         "asks every 0.2 s, with a jitter"),
    Peer("Redisson: RLock on each server, RedissonRedLock, RedissonMultiLock", "Maven org.redisson:redisson 4.7.0", "redisson/pom.xml",
         "<version>4.7.0</version>", "is told by our release", ("--dialect", "redisson")),
]


def pip_packages():
    return [lock.package.replace(" ", "==") for lock in LOCKS if lock.runtime == "python"]
