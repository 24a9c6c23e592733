# SPDX-License-Identifier: BSD-3-Clause
"""What a run preloads into servers and clients, and its proxy: made by the C compiler where the source is not built, so
that a client of others can be tested without building quorlock."""
import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

# Where it was made; for the inner process.
FOLDER = "QUORLOCK_CHAOS_PARTS"
HERE = Path(__file__).resolve().parent
SHIM = ("-shared", "-fPIC")
# Each name with its source and options. The proxy needs the headers of libevent.
PARTS = {"lib/source_shim.so": ("source_shim.c", SHIM), "lib/clock_shim.so": ("clock_shim.c", SHIM),
         "lib/disk_shim.so": ("disk_shim.c", SHIM), "bin/chaos_proxy": ("proxy.c", ("-levent_core",))}


def make(folder):
    """Makes what can be made here. What cannot is missed by those who look for it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    for name in ("bin", "lib"):
        (folder / name).mkdir()
    if not compiler:
        return
    runs = [subprocess.Popen([compiler, "-O2", "-D_GNU_SOURCE", "-o", folder / name, HERE / source, *options],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for name, (source, options) in PARTS.items()]
    for run in runs:
        run.wait()


def folder():
    """The folder bin of what was made. The outer process makes it; each removes it at its end, if the other was killed."""
    atexit.register(drop)
    if FOLDER not in os.environ:
        made = Path(tempfile.mkdtemp(prefix="quorlock-parts-"))
        os.environ[FOLDER] = str(made)
        make(made)
    return Path(os.environ[FOLDER], "bin")


def drop():
    if FOLDER in os.environ:
        shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True)
