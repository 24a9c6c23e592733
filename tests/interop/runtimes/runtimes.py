# SPDX-License-Identifier: BSD-3-Clause
"""Runtimes of Python: what test_runtimes.py runs, and what src/python/README.md says of them.

Each row keeps all promises of PROMISES.
"""
import dataclasses

PROMISES = [
    "while one thread, greenlet, task or process waits for a lock, the others go on",
    "a lock is renewed while its owner computes and lets nothing else run, and while it does nothing",
    "`on_lost` is called in both cases, and the block of a lock that was lost raises `Lost`",
    "a child of fork(), or a worker that a parent forks, uses the client and the locks that the parent has made and used",
    "what is still held when a program, or a worker that is reloaded, ends in order is released",
]


@dataclasses.dataclass
class Runtime:
    name: str
    work: str  # the runtime of work.py
    packages: tuple = ()  # of PyPI
    unit: str = ""  # what waits
    words: tuple = ()  # that start it; else work.py itself
    reload: str = ""  # the signal that renews its workers
    end: str = ""  # the signal that ends it in order; else an order
    note: str = ""
    program: str = ""  # another interpreter, of Debian


GEVENT, EVENTLET = "gevent==26.9.0", "eventlet==0.41.3"
GUNICORN, CELERY = "gunicorn==27.0.1", "celery==5.7.0"
GUNICORN_WORDS = ("-m", "gunicorn", "--preload", "-b", "127.0.0.1:{port}")
CELERY_WORDS = ("-m", "celery", "-A", "work", "worker", "-c", "2", "--without-gossip", "--without-mingle", "--without-heartbeat",
                "-l", "warning")


CHILD = "A child that is killed, as by Pool.terminate(), holds its locks until the end of the lease."


def gunicorn(kind, unit, *words, packages=()):
    return Runtime(f"gunicorn, {kind}", "wsgi" if not packages else "gevent", (GUNICORN, *packages), unit, (*GUNICORN_WORDS, *words, "work:application"),
                   "HUP", "TERM", "With --preload, too.")


def celery(pool, packages=()):
    return Runtime(f"Celery, {pool}", "celery", (CELERY, "redis==8.1.0", *packages), "a task", (*CELERY_WORDS, "-P", pool),
                   end="TERM")


RUNTIMES = [
    Runtime("threads", "threads", unit="a thread"),
    Runtime("asyncio", "asyncio", unit="a task, by async with"),
    Runtime("uvloop", "uvloop", ("uvloop==0.23.0",), "a task, by async with"),
    Runtime("trio", "trio", ("trio==0.35.0",), "a task", note="Wait in a thread: trio.to_thread.run_sync(lock.acquire)."),
    Runtime("anyio", "anyio", ("anyio==4.16.0",), "a task", note="Wait in a thread: anyio.to_thread.run_sync(lock.acquire)."),
    Runtime("gevent", "gevent", (GEVENT,), "a greenlet"),
    Runtime("eventlet", "eventlet", (EVENTLET,), "a greenlet"),
    Runtime("multiprocessing, fork", "fork", unit="a process", note=CHILD),
    Runtime("multiprocessing, forkserver", "forkserver", unit="a process", note=CHILD),
    Runtime("multiprocessing, spawn", "spawn", unit="a process", note=CHILD),
    gunicorn("sync", "a process", "-w", "2"),
    gunicorn("gthread", "a thread", "--threads", "4"),
    gunicorn("gevent", "a greenlet", "-k", "gevent", packages=(GEVENT,)),
    Runtime("uWSGI", "wsgi", ("pyuwsgi==2.0.30.post1",), "a process",
            ("-c", "import pyuwsgi, sys; pyuwsgi.run(sys.argv[1:])", "--http-socket", "127.0.0.1:{port}", "--master", "-p", "2",
             "--enable-threads", "--lazy-apps", "--module", "work:application"), "HUP", "INT",
            "With --enable-threads, and --lazy-apps if the application takes a lock at its import: a worker hangs that is forked "
            "while another thread of the master runs Python. Its fork hooks are not needed."),
    celery("prefork"),
    celery("threads"),
    celery("gevent", (GEVENT,)),
    Runtime("PyPy", "threads", unit="a thread", program="pypy3", note="Debian 12's pypy3, 7.3.11."),
]


def packages():
    return sorted({package for runtime in RUNTIMES for package in runtime.packages})
