/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.h - the invariants, checked from outside of the core over the true history
 */
#ifndef QUORLOCK_SIM_JUDGE_H
#define QUORLOCK_SIM_JUDGE_H

#include "world.h"

/* judge_violated - ends the run, where this invariant is judged; counts it, where nothing is promised. */
void judge_violated(struct world *, enum invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void judge_before(struct world *, uint32_t lock, const struct core_event *);
/* judge_after - after every step of a core; status is what core_step returned. */
void judge_after(struct world *, uint32_t lock, const struct core_event *, const struct core_update *,
                 int status);
/* judge_key_gone - a node has just lost a key, in whatever way. */
void judge_key_gone(struct world *, uint32_t node, uint32_t key, uint32_t lock, uint32_t life);
/* judge_key_forgotten - before that, where a fault is to blame. */
void judge_key_forgotten(struct world *, uint32_t server, uint32_t lock, const struct core_token *,
                         uint64_t expires_ms);
/* judge_asked - a command leaves the core. */
void judge_asked(struct world *, uint32_t lock, const struct core_command *);
/* judge_stepped - a client found that a node's clock has stepped forward. */
void judge_stepped(struct world *, uint32_t client, uint32_t node);
void judge_death(struct world *, uint32_t lock);
/* judge_in_time - is anything overdue? Asked now and then. */
void judge_in_time(struct world *, uint32_t lock);
/* judge_silent - the end: nothing of ours is left anywhere. */
void judge_silent(struct world *);

#endif
