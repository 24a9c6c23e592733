# SPDX-License-Identifier: BSD-3-Clause
"""Writes standard output and files; failures have an exit status of their own."""
import os
import sys

EX_IOERR = 74


class Unwritten(Exception):
    """Something could not be written; the text tells what and why."""


def say(text):
    try:
        print(text, flush=True)
    except OSError as error:
        # Otherwise the interpreter would try to write the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Unwritten(f"standard output: {error.strerror}") from None


def write_whole(option, path, text):
    """Writes the file completely or not at all."""
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
