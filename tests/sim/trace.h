/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - the trace that a person reads, and its hash that a test compares
 */
#ifndef QUORLOCK_SIM_TRACE_H
#define QUORLOCK_SIM_TRACE_H

#include "world.h"

/* trace_line - one line of the trace: "[   1110.042] client 2 > granted by node 1". */
void trace_line(const struct world *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trace_step(const struct world *, uint32_t lock, const struct core_event *);
void trace_command(const struct world *, uint32_t lock, const struct core_command *);
void trace_completion(const struct world *, uint32_t lock, const struct core_completion *);
const char *trace_status(int status);
const char *trace_op(unsigned op);
const char *trace_outcome(unsigned outcome);
const char *trace_invariant(enum invariant);

#define TRACE(world, ...)                                                                                      \
    do {                                                                                                       \
        if ((world)->trace) trace_line(world, __VA_ARGS__);                                                    \
    } while (0)

/* trace_mix - what happened, into the hash. */
static inline void trace_mix(struct world *world, uint64_t what)
{
    world->hash = (world->hash ^ what ^ (world->now_us << 16)) * 0x9e3779b97f4a7c15u;
    world->hash ^= world->hash >> 29;
}

#endif
