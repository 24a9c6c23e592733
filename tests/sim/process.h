/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.h - a client's loop around its locks: what src/client.c and src/lock.c do around the core
 */
#ifndef QUORLOCK_SIM_PROCESS_H
#define QUORLOCK_SIM_PROCESS_H

#include "world.h"

/* process_new_lock - a lock in IDLE, in fresh memory. */
void process_new_lock(struct world *, uint32_t lock);
/* process_postponed - the client stands still: the happening is planned anew for when it goes on. */
bool process_postponed(struct world *, const struct happening *);
/* process_pause - stands still from now on for so long. */
void process_pause(struct world *, uint32_t client, uint64_t for_us);
void process_die(struct world *, uint32_t client);
void process_born(struct world *, uint32_t client);

/* What the user calls; results are core_status. */
int process_acquire(struct world *, uint32_t lock);
int process_extend(struct world *, uint32_t lock, uint64_t lease_us);
int process_release(struct world *, uint32_t lock);
int process_cancel(struct world *, uint32_t lock, int reason);

/* What the nodes say. */
void process_level(struct world *, uint32_t client, uint32_t node);
void process_reply(struct world *, uint32_t lock, uint32_t life, const struct core_reply *);

void process_timer(struct world *, const struct happening *);
void process_dispatch(struct world *, const struct happening *);

#endif
