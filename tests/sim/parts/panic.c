/* SPDX-License-Identifier: BSD-3-Clause */
#include "panic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void panic(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("sim: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}
