#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# In C `char a[512], b[128];` declares two arrays of bytes. PHP's FFI takes the length of the first for a part of the type: b
# becomes 128 arrays of 512 bytes. The struct is 66,048 bytes, not 640, and every member behind it is read from a wrong place,
# without a word.
set -eu

php=${PHP:-php}
seen=$("$php" -d ffi.enable=1 -r '
    echo FFI::sizeof(FFI::cdef("struct two { char a[512], b[128]; };")->type("struct two"));')
"$php" -r 'echo "PHP ", PHP_VERSION, "\n";'
printf 'expected 640, seen %s\n' "$seen"
[ "$seen" = 66048 ]
