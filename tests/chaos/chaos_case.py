# SPDX-License-Identifier: BSD-3-Clause
"""What the tests share that run cluster/chaos with real servers and clients."""
import concurrent.futures
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAOS = ROOT / "cluster" / "chaos"
BIN = None  # the folder of the programs; see main()


def chaos(*words, limit_s, verb=(), env=None):
    return subprocess.run([str(CHAOS), *verb, "--bin", str(BIN), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=limit_s, check=False, env=env)


class Runs(unittest.TestCase):
    """Has a folder for what runs write, and a pool of threads in which some of them go on side by side."""
    at_once = 1

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.pool = concurrent.futures.ThreadPoolExecutor(cls.at_once)
        cls.addClassCleanup(cls.pool.shutdown)


def main(**more):
    global BIN  # pylint: disable=global-statement
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / "chaos_client").exists():
        print(f"usage: {sys.argv[0]} BUILD_BIN [TEST...], the folder of chaos_client", file=sys.stderr)
        sys.exit(64)
    BIN = Path(sys.argv[1]).resolve()
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[2:]], **more)
