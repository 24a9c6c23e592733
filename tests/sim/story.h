/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * story.h - the trace that a person reads, and its hash that a test compares
 */
#ifndef QUORLOCK_SIM_STORY_H
#define QUORLOCK_SIM_STORY_H

#include "world.h"

/* story_tell - one line of the trace: "[   1110.042] client 2 > granted by node 1". */
void story_tell(const struct world *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void story_step(const struct world *, uint32_t lock, const struct core_event *);
void story_command(const struct world *, uint32_t lock, const struct core_command *);
void story_tell_of(const struct world *, uint32_t lock, const struct core_completion *);
const char *story_status(int status);
const char *story_op(unsigned op);
const char *story_outcome(unsigned outcome);
const char *story_invariant(enum invariant);

#define STORY(world, ...)                                                                                      \
    do {                                                                                                       \
        if ((world)->trace) story_tell(world, __VA_ARGS__);                                                    \
    } while (0)

/* story_mix - what happened, into the hash. */
static inline void story_mix(struct world *world, uint64_t what)
{
    world->hash = (world->hash ^ what ^ (world->now_us << 16)) * 0x9e3779b97f4a7c15u;
    world->hash ^= world->hash >> 29;
}

#endif
