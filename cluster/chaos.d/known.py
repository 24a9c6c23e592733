# SPDX-License-Identifier: BSD-3-Clause
"""Known bad locks, and how sure a run of --client is to find each: what a run without a violation is worth."""
from found import FOUND_S
from plan import GROUPS

STEPS_S = (10, 30, 60, 300)
ENOUGH = 95  # percent
# Each mistake of examples/flawed.py: the lock that has it, in words.
LOCKS = {
    "no-renewal": "a lock without renewal",
    "no-compare": "a lock that releases without comparing",
    "no-validity-check": "a lock that is granted however late",
    "answers-majority": "a lock by a majority of the answers",
    "no-guard": "a lock that believes restarted nodes",
    "same-token": "a lock that gives tokens twice",
    "no-fencing": "a lock without fencing tokens",
    "renews-each": "a lock that renews node by node",
    "half-quorum": "a lock by half of the nodes",
}
# The settings of runs with --client, unless others are given; and those of our own clients.
CLIENT_PRESET = {"faults": "aimed,all,-reconfigure,-names", "lease": "400-1000", "hold": "10-1500", "max_lease": 1000}
OUR_PRESET = {"faults": "all", "lease": "500-1000", "hold": "2-150", "max_lease": 2000}
# The shares were measured with CLIENT_PRESET and these.
MEASURED = CLIENT_PRESET | {"nodes": 3, "clients": 5, "keys": 2, "mode": "lock", "users": 1, "guard": "connection", "fence": True,
                            "profile": "inside", "tls": False, "password": False}


def share(times_s, seconds):
    """Percent of the runs that had found it by then."""
    return round(100 * sum(time_s is not None and time_s <= seconds for time_s in times_s) / len(times_s)) if times_s else 0


def shares(seconds):
    """{mistake: percent of the runs of so many seconds that find it}. A run that is longer than the measured ones finds no less."""
    return {mistake: share(FOUND_S.get(mistake, ()), seconds) for mistake in LOCKS}


def enough_seconds():
    """How long a run must be to find each; None: no run that was measured is long enough."""
    return next((seconds for seconds in STEPS_S if min(shares(seconds).values()) >= ENOUGH), None)


def power(options):
    """What the run says of itself: the shares, and the seconds that it should have. Empty: not measured with such options, or without
    the aimed faults."""
    if set(options.left_out) & set(GROUPS["aimed"]) or any(getattr(options, name) != value for name, value in MEASURED.items()):
        return {}
    return {"shares": shares(options.seconds), "enough_s": enough_seconds()}


def read(told):
    """What power() wrote, from a history; None: nothing of that kind."""
    shares_told = told.get("shares", {}) if isinstance(told, dict) else None
    numbers = isinstance(shares_told, dict) and [told.get("enough_s") or 0, *shares_told.values()]
    return told if numbers and all(isinstance(number, int) for number in numbers) and (shares_told or not told) else None


def doubt(told):
    """Why a run that says this of itself proves little; empty: it does prove something, or says nothing."""
    if told is None:
        return ""
    if not told:
        return "how many bad locks such a run finds was not measured"
    weakest, percent = min(told["shares"].items(), key=lambda item: item[1])
    if percent >= ENOUGH:
        return ""
    remedy = f": give --seconds {told['enough_s']}" if told.get("enough_s") else ""
    return f"{LOCKS.get(weakest, weakest)} would have been found with {percent} % only{remedy}"
