# SPDX-License-Identifier: BSD-3-Clause
"""What the pieces of one run say together."""
import statistics


def spread(values):
    """The median and the quartiles, or None."""
    values = sorted(value for value in values if value is not None)
    if not values:
        return None
    if len(values) == 1:
        return {"median": values[0], "low": values[0], "high": values[0]}
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": median, "low": low, "high": high}


def ratio(above, below):
    return above / below if below else None
