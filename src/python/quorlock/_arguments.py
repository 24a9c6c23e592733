# SPDX-License-Identifier: BSD-3-Clause
"""Convert the arguments of callers to those of the library."""
import ctypes
import operator
from typing import Any, Dict, Iterable, List, Optional, Sequence, Type, TypeVar, Union

from ._errors import INVAL, Invalid

Text = Union[str, bytes, bytearray, memoryview]
TEXTS = (str, bytes, bytearray, memoryview)
NUMBER_MAX = 2**32 - 1
SHARED_ALL = 2**64 - 1

Struct = TypeVar("Struct", bound=ctypes.Structure)


def encode(text: Text, what: str, secret: bool = False) -> bytes:
    """Return the text as bytes. `secret`: it may have a password, so no message shows it."""
    if isinstance(text, (list, tuple)) and what == "the key":
        raise TypeError(f"the key is {text!r}: it must be str or bytes-like; give several keys one by one: lock('a', 'b')")
    if not isinstance(text, TEXTS):
        shown = f"of type {type(text).__name__}" if secret else repr(text)
        raise TypeError(f"{what} is {shown}: it must be str or bytes-like")
    found = text.encode() if isinstance(text, str) else bytes(text)
    if b"\0" in found:
        raise Invalid(f"{what} has a NUL byte" if secret else f"{what} {text!r} has a NUL byte", INVAL)
    return found


def choose(value: Optional[str], choices: Dict[str, int], what: str) -> Optional[int]:
    if value is None:
        return None
    if not isinstance(value, str) or value not in choices:
        raise Invalid(f"{what} is {value!r}: it must be {' or '.join(choices)}", INVAL)
    return choices[value]


def number(value: int, what: str, most: int = NUMBER_MAX) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(f"{what} is {value!r}: it must be an integer")
    if not 0 <= operator.index(value) <= most:
        raise Invalid(f"{what} is {value}: it must be 0 to {most}", INVAL)
    return operator.index(value)


def options_of(kind: Type[Struct], **given: Any) -> Struct:
    """Return a struct of that kind, with each of these arguments in the field of its name.

    0 stands for the default of a number, and None for that of a text."""
    struct = kind(size=ctypes.sizeof(kind))
    fill(struct, **given)
    return struct


def fill(struct: ctypes.Structure, **given: Any) -> None:
    """Set the field of the name of each of these arguments that is not None."""
    kinds = {field[0]: field[1] for field in struct._fields_}
    for name, value in given.items():
        if value is None:
            continue
        if kinds[name] is not ctypes.c_char_p:
            setattr(struct, name, number(value, name, 256**ctypes.sizeof(kinds[name]) - 1))
        else:
            setattr(struct, name, encode(value, name, secret=name == "password"))


def shared_bits(shared: Union[bool, Text, Sequence[Text]], names: List[bytes]) -> int:
    """Return a bit for each key that is locked shared, by its place."""
    if isinstance(shared, bool):
        return SHARED_ALL if shared else 0
    if not isinstance(shared, Iterable):
        raise TypeError(f"shared is {shared!r}: it must be True, False, a key or a list of keys")
    bits = 0
    for key in [shared] if isinstance(shared, TEXTS) else shared:
        name = encode(key, "the key")
        if name not in names[:64]:
            raise Invalid(f"shared has {key!r}, which is not one of the keys", INVAL)
        bits |= 1 << names.index(name)
    return bits
