# SPDX-License-Identifier: BSD-3-Clause
"""Parses the options of the harness's programs, and reports wrong ones."""
import argparse
import os
import shlex
import shutil
import sys

EX_USAGE = 64


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"{self.prog}: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(EX_USAGE)


def number(low, high):
    """A number type for argparse."""
    def read(text):
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {low} to {high}")
        return value
    return read


def check_line_end(path):
    """Raises ValueError if the program names an interpreter that cannot be found, because of the end of that line."""
    try:
        with open(path, "rb") as file:
            first = file.readline(1000)
    except OSError:
        return  # a program need not be readable
    if first.startswith(b"#!") and first.endswith(b"\r\n"):
        raise ValueError(f"--client: the lines of {path} end as on Windows, so the interpreter in the first one is not "
                         f"found; remedy: sed -i 's/\\r$//' {shlex.quote(path)}")


def command(text):
    """Splits a client's command line, and completes the program's path. Raises ValueError with the remedy."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"--client: '{text}' cannot be read as a command line: {error}") from None
    path = shutil.which(words[0]) if words else None
    if not path:
        raise ValueError(f"--client: '{words[0] if words else ''}' is no program that can be run; give its path, or "
                         "install it")
    check_line_end(path)
    return [os.path.abspath(path), *words[1:]]


def output(option, path, is_folder=False):
    """The absolute path of an option's output. Raises ValueError if it cannot be written."""
    path = os.path.abspath(path)
    folder = path if is_folder else os.path.dirname(path)
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise ValueError(f"{option}: {folder} is no folder that can be written to")
    if not is_folder and os.path.isdir(path):
        raise ValueError(f"{option}: {path} is a folder, not a file")
    return path
