# SPDX-License-Identifier: BSD-3-Clause
"""From what callers give to what the library takes."""
import ctypes
import operator
from typing import Dict, List, Sequence, Union

from ._errors import INVAL, Invalid

Text = Union[str, bytes]
NUMBER_MAX = 2**32 - 1
SEED_MAX = 2**64 - 1
SHARED_ALL = 2**64 - 1


def encode(text: Text, what: str, secret: bool = False) -> bytes:
    """secret: there may be a password in it, which no message shows."""
    found = text.encode() if isinstance(text, str) else bytes(text)
    if b"\0" in found:
        raise Invalid(f"{what} has a NUL in it" if secret else f"{what} {text!r} has a NUL in it", INVAL)
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
    """What is not given stays 0, which is the default of all of them."""
    for name, value in numbers.items():
        setattr(struct, name, number(value, name))


def shared_bits(shared: Union[bool, Text, Sequence[Text]], names: List[bytes]) -> int:
    """A bit for each of the keys that is locked shared, by its place."""
    if isinstance(shared, bool):
        return SHARED_ALL if shared else 0
    bits = 0
    for key in [shared] if isinstance(shared, (str, bytes)) else shared:
        name = encode(key, "the key")
        if name not in names[:64]:
            raise Invalid(f"shared has {key!r}, which is none of the keys", INVAL)
        bits |= 1 << names.index(name)
    return bits
