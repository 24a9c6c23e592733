# SPDX-License-Identifier: BSD-3-Clause
"""Convert the arguments of callers to those of the library."""
import ctypes
import operator
from typing import Dict, List, Sequence, Union

from ._errors import INVAL, Invalid

Text = Union[str, bytes]
NUMBER_MAX = 2**32 - 1
SEED_MAX = 2**64 - 1
SHARED_ALL = 2**64 - 1


def encode(text: Text, what: str, secret: bool = False) -> bytes:
    """Return the text as bytes. `secret`: it may have a password, so no message shows it."""
    found = text.encode() if isinstance(text, str) else bytes(text)
    if b"\0" in found:
        raise Invalid(f"{what} has a NUL byte" if secret else f"{what} {text!r} has a NUL byte", INVAL)
    return found


def choose(value: str, choices: Dict[str, int], what: str) -> int:
    if value not in choices:
        raise Invalid(f"{what} is {value!r}: it must be {' or '.join(choices)}", INVAL)
    return choices[value]


def number(value: int, what: str, most: int = NUMBER_MAX) -> int:
    if not 0 <= operator.index(value) <= most:
        raise Invalid(f"{what} is {value}: it must be 0 to {most}", INVAL)
    return operator.index(value)


def set_numbers(struct: ctypes.Structure, numbers: Dict[str, int]) -> None:
    """Set the fields. 0 stands for the default of each."""
    for name, value in numbers.items():
        setattr(struct, name, number(value, name))


def shared_bits(shared: Union[bool, Text, Sequence[Text]], names: List[bytes]) -> int:
    """Return a bit for each key that is locked shared, by its place."""
    if isinstance(shared, bool):
        return SHARED_ALL if shared else 0
    bits = 0
    for key in [shared] if isinstance(shared, (str, bytes)) else shared:
        name = encode(key, "the key")
        if name not in names[:64]:
            raise Invalid(f"shared has {key!r}, which is not one of the keys", INVAL)
        bits |= 1 << names.index(name)
    return bits
