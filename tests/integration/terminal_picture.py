# SPDX-License-Identifier: BSD-3-Clause
"""What a terminal shows after the bytes that were written to it: the few control sequences that quorlock watch uses, on
two screens. Any other one is an error, for a terminal would obey it."""
import re

ESCAPE = re.compile(rb"\x1b(?:\[(\??)([0-9;]*)([A-Za-z])|.?)", re.S)
COLORS = {"0", "1", "2", "31", "32", "33"}


class Picture:
    def __init__(self, rows, columns):
        self.bytes = b""  # all of them
        self.unread = b""
        self.alternate, self.cursor, self.wraps = False, True, True
        self.colors = set()  # that were used
        self.frames = 0  # how often it was drawn from the top
        self.fits_from = 0  # the first frame that knows the size
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.screens = {False: self.empty(), True: self.empty()}
        self.row = self.column = 0
        # Of those that come from now on the second was begun behind the signal.
        self.fits_from = self.frames + 2 if self.frames else 0

    def empty(self):
        return [[" "] * self.columns for _ in range(self.rows)]

    def lines(self):
        return ["".join(line).rstrip() for line in self.screens[self.alternate]]

    def text(self):
        return "\n".join(self.lines()).rstrip("\n")

    def write(self, data):
        self.bytes += data
        self.unread += data
        while self.unread:
            if self.unread[:1] == b"\x1b":
                found = re.match(rb"\x1b\[\??[0-9;]*[A-Za-z]|\x1b[^\[]", self.unread)
                if not found:
                    return  # the rest of it is still to come
                self.obey(found.group())
                self.unread = self.unread[found.end():]
            else:
                size = 1 if self.unread[0] < 0x80 else 2 if self.unread[0] < 0xe0 else 3 if self.unread[0] < 0xf0 else 4
                if len(self.unread) < size:
                    return
                self.put(self.unread[:size].decode())
                self.unread = self.unread[size:]

    def obey(self, sequence):
        mark, number, letter = ESCAPE.match(sequence).groups()
        what = ((mark or b"") + (number or b"") + (letter or b"?")).decode()
        screen = self.screens[self.alternate]
        if letter == b"m" and number.decode() in COLORS:
            self.colors |= {number.decode()} - {"0"}
        elif what == "H":
            self.row = self.column = 0
            self.frames += 1
        elif what in ("K", "J"):
            screen[self.row][self.column:] = [" "] * (self.columns - self.column)
            for row in range(self.row + 1, self.rows if what == "J" else 0):
                screen[row] = [" "] * self.columns
        elif what in ("?1049h", "?1049l"):
            self.alternate = what[-1] == "h"
            if self.alternate:
                self.screens[True] = self.empty()
        elif what in ("?25h", "?25l"):
            self.cursor = what[-1] == "h"
        elif what in ("?7h", "?7l"):
            self.wraps = what[-1] == "h"
        else:
            raise AssertionError(f"the terminal was told {sequence!r}")

    def put(self, letter):
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.row += 1
            if self.row == self.rows:
                assert not self.alternate or self.frames < self.fits_from, "the picture is higher than the terminal"
                self.row -= 1
                if self.alternate:
                    return
                self.screens[False] = self.screens[False][1:] + [[" "] * self.columns]
        elif letter.isprintable():
            if self.column == self.columns and self.alternate and self.frames >= self.fits_from:
                raise AssertionError("the picture is wider than the terminal")
            if self.column < self.columns:
                self.screens[self.alternate][self.row][self.column] = letter
                self.column += 1
        else:
            assert letter in "\a\b\t", f"the terminal was told {letter!r}"
