# SPDX-License-Identifier: BSD-3-Clause
"""Runs of cluster/chaos side by side, which end together."""
import concurrent.futures
import subprocess
import threading

from system import die_with_parent


class Ended(Exception):
    """The runs were ended, so no other begins."""


class AtOnce:
    def __init__(self, limit):
        self.limit, self.ended, self.processes, self.guard = limit, False, [], threading.Lock()

    def start(self, command):
        with self.guard:
            if self.ended:
                raise Ended
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True, preexec_fn=die_with_parent)
            self.processes.append(process)
            return process

    def end(self):
        with self.guard:
            self.ended = True
            for process in self.processes:
                process.terminate()

    def call(self, jobs):
        """Calls each of (function, arguments...), so many side by side. If one raises, or this is interrupted, all end."""
        with concurrent.futures.ThreadPoolExecutor(self.limit) as pool:
            calls = [pool.submit(*job) for job in jobs]
            try:
                for one in concurrent.futures.as_completed(calls):
                    one.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.end()
                raise
