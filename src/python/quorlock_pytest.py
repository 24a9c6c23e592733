# SPDX-License-Identifier: BSD-3-Clause
"""What pytest loads at each start, for the tests of any program: the fixtures of quorlock.testing.

Where the package cannot be imported, as without libquorlock, pytest must start all the same: then the fixtures say why.
"""
from pytest import fail, fixture

try:
    from quorlock.testing import quorlock_client, quorlock_servers
except ImportError as problem:
    WHY = str(problem)

    @fixture(scope="session")
    def quorlock_servers():
        fail(f"quorlock cannot be imported: {WHY}", pytrace=False)

    @fixture
    def quorlock_client(quorlock_servers):  # pylint: disable=redefined-outer-name
        return quorlock_servers

__all__ = ["quorlock_client", "quorlock_servers"]
