#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads metrics as Prometheus does, by its own library: read_metrics.py openmetrics|prometheus <TEXT

Prints each sample as FAMILY TYPE NAME{label="value",...} NUMBER. Exit status: 0 read, 1 refused with the reason on
stderr, 77 the library is not there.
"""
import sys

# Debian's package, also for a Python that is not Debian's.
sys.path.append("/usr/lib/python3/dist-packages")
MISSING = 77


def families(text, form):
    """The families of a text. ImportError: python3-prometheus-client is missing. ValueError: the text is wrong."""
    if form == "openmetrics":
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    else:
        from prometheus_client.parser import text_string_to_metric_families
    return list(text_string_to_metric_families(text))


def main():
    try:
        read = families(sys.stdin.buffer.read().decode(), sys.argv[1])
    except ImportError:
        print("python3-prometheus-client is missing: scripts/setup installs it", file=sys.stderr)
        return MISSING
    except ValueError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    for family in read:
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            print(family.name, family.type, f"{sample.name}{{{labels}}}", f"{sample.value:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
