/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.h - a client's loop around its locks: what src/api/client.c and src/lock/lock.c do around the core
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
/* process_blind - the same, and its clock stands still with it. */
void process_blind(struct world *, uint32_t client, uint64_t for_us);
/* process_clock - what the client reads from its clock now. */
uint64_t process_clock(struct world *, uint32_t client);
void process_die(struct world *, uint32_t client);
void process_born(struct world *, uint32_t client);

/* What the user calls; results are core_status. */
int process_acquire(struct world *, uint32_t lock);
int process_extend(struct world *, uint32_t lock, uint64_t lease_us);
int process_release(struct world *, uint32_t lock);
int process_cancel(struct world *, uint32_t lock, int reason);

/* What the nodes say. */
void process_level(struct world *, uint32_t client, uint32_t node);
/* process_room - the client's queues, which were full, take requests again. */
void process_room(struct world *, uint32_t client);
void process_reply(struct world *, uint32_t lock, uint32_t life, const struct core_reply *);

/* process_node_clock - a reading of a node's clock, 0 for none, by a request of then. */
void process_node_clock(struct world *, uint32_t client, uint32_t node, uint64_t sent_us, uint64_t received_us,
                        uint64_t node_us);

/* What comes on a subscriber connection. */
void process_listening(struct world *, uint32_t lock, uint32_t node);
void process_notice(struct world *, uint32_t lock, uint32_t node, uint64_t holder_id);

void process_timer(struct world *, const struct happening *);
void process_dispatch(struct world *, const struct happening *);

#endif
