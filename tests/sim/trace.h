/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - the story of a run */
#pragma once

#include "world.h"

void trace_line(const struct world *, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *trace_invariant(enum invariant);
const char *trace_promise(enum promise_kind);
#define TRACE(world, ...)                                                                                              \
    do {                                                                                                               \
        if ((world)->trace) trace_line(world, __VA_ARGS__);                                                            \
    } while (0)
