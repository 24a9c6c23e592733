# SPDX-License-Identifier: BSD-3-Clause
"""Locks of Python packages by orders on stdin: locks.py CLIENT NODE..., with the packages in PYTHONPATH.

take NAME LEASE_MS   one try: yes or no
wait NAME LEASE_MS   waits as this client does: yes
give                 back what was taken: given
"""
import os
import sys

FOREVER_S = 60


def server(number=0):
    import redis
    # Longer than a BLPOP of python-redis-lock: by default a read ends after 5 s.
    return redis.Redis.from_url("redis://" + sys.argv[2 + number], socket_timeout=FOREVER_S)


def servers():
    return [server(number) for number in range(len(sys.argv) - 2)]


def redis_py(name, lease_s, wait):
    lock = server().lock(name, timeout=lease_s)
    return lock.acquire(blocking=wait) and lock.release


def python_redis_lock(name, lease_s, wait):
    import redis_lock
    lock = redis_lock.Lock(server(), name, expire=round(lease_s))
    return lock.acquire(blocking=wait) and lock.release


def sherlock(name, lease_s, wait):
    import sherlock
    lock = sherlock.RedisLock(name, client=server(), expire=round(lease_s), timeout=FOREVER_S)
    return lock.acquire(blocking=wait) and lock.release


def pottery(name, lease_s, wait):
    import pottery
    lock = pottery.Redlock(key=name, masters=set(servers()), auto_release_time=lease_s)
    return lock.acquire(blocking=wait) and lock.release


def redlock_py(name, lease_s, wait):
    import redlock
    nodes = [dict(zip(("host", "port"), node.split(":"))) for node in sys.argv[2:]]
    locks = redlock.Redlock(nodes, retry_count=FOREVER_S * 5 if wait else 1)
    lock = locks.lock(name, round(1000 * lease_s))
    return lock and (lambda: locks.unlock(lock))



CLIENTS = {"redis-py": redis_py, "python-redis-lock": python_redis_lock, "sherlock": sherlock, "pottery": pottery,
           "redlock-py": redlock_py}


def say(word):
    os.write(1, (word + "\n").encode())


def main():
    take, give = CLIENTS[sys.argv[1]], None
    say("ready")
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "give":
            give()
            say("given")
            continue
        give = take(words[0], int(words[1]) / 1000, verb == "wait")
        say("yes" if give else "no")


main()
