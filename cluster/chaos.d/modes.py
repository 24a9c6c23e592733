# SPDX-License-Identifier: BSD-3-Clause
"""The modes of keys: their names, the keys that they leave on a node, and what must be granted again."""
from dataclasses import dataclass

from verdict import MODES

CHOICES = (*MODES, "mixed")
PLACES_MAX = 31  # CHAOS_LIST_MAX of options_client.h
NAMES = {"lock": "job", "permits": "pool", "shared": "data", "election": "lead"}


@dataclass(frozen=True)
class Place:
    """One key that clients contend for."""
    key: str
    mode: str


def places(mode, count):
    """That many keys of the mode; of each mode, if it is mixed."""
    chosen = MODES if mode == "mixed" else (mode,)
    return [Place(f"{NAMES[one]}-{i}", one) for one in chosen for i in range(1, count + 1)]


def words(all_places, permits):
    """The keys in words."""
    found = []
    for mode, text in (("lock", "key{}"), ("permits", f"name{{}} of {permits} permits"), ("shared", "shared key{}"),
                       ("election", "election{}")):
        count = sum(place.mode == mode for place in all_places)
        if count:
            found.append(f"{count} {text.format('s' if count > 1 else '')}")
    return ", ".join(found)


def kept(place, permits):
    """The keys on a node that expire with the leases. Those of waiting clients (quorlock:intents:KEY) may stay longer:
    no lock depends on them."""
    if place.mode == "permits":
        return [f"quorlock:slot:{slot}:{place.key}" for slot in range(permits)] + [f"quorlock:permits:{place.key}"]
    if place.mode == "shared":
        return [place.key, f"quorlock:readers:{place.key}"]
    return [place.key]


def expected(all_places, permits, askers):
    """(key, mode, slot) of each grant that must come after healing. Few clients need not use every slot."""
    for place in all_places:
        if place.mode == "permits" and askers > 2 * permits * len(all_places):
            yield from ((place.key, place.mode, slot) for slot in range(permits))
        elif place.mode == "shared":
            yield from ((place.key, mode, 0) for mode in ("lock", "shared"))
        elif place.mode != "permits":
            yield (place.key, place.mode, 0)
