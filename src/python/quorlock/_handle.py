# SPDX-License-Identifier: BSD-3-Clause
"""What all objects with a handle of the library have in common."""
from typing import Any, SupportsIndex


class Handle:
    """An object that belongs to one process and one client. A copy of it would free the same handle once more."""

    def __reduce_ex__(self, _protocol: SupportsIndex) -> Any:
        """Refuse copy.copy(), copy.deepcopy() and pickle, which all come here."""
        raise TypeError(f"{self!r} cannot be copied or pickled, because it belongs to this process: make another one "
                        f"where you need it, with the same arguments")
