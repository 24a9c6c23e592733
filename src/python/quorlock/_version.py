# SPDX-License-Identifier: BSD-3-Clause
"""The version of the library that this package is for."""
VERSION = "0.3.0"
