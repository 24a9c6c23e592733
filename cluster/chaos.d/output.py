# SPDX-License-Identifier: BSD-3-Clause
"""Standard output and files that cannot be written: an error with a status of its own."""
import os
import sys

EX_IOERR = 74


class Unwritten(Exception):
    """What could not be written, and why."""


def say(text):
    try:
        print(text, flush=True)
    except OSError as error:
        # The rest of it is not tried again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Unwritten(f"standard output: {error.strerror}") from None


def write_whole(option, path, text):
    """The file appears complete or not at all."""
    partial = f"{path}.{os.getpid()}.part"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except OSError as error:
        raise Unwritten(f"{option}: {path}: {error.strerror}") from None
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
