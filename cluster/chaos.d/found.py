# SPDX-License-Identifier: BSD-3-Clause
"""When each run of `cluster/chaos power --save` found each mistake of cluster/examples/flawed.py, in seconds."""
FOUND_S = {
}
