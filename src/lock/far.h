/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far.h - a lock that is far behind in the queue of a fair lock listens to a channel of its own (rule 9.5)
 *
 * Each release is published to all that listen to the channel of the key, and that is most of what a release costs a
 * node if many wait. The arbiter publishes to this channel when the lock has come near the head of the queue.
 */
#pragma once

#include "lock/keylist.h"

struct far;

struct far_events {
    struct listener_events told;
    void (*woken)(void *owner); /* soon after far_wake() */
};

/* far_begin - listen at the first arbiter; waiter: the lock's name in the queue. NULL: out of memory. */
struct far *far_begin(struct keylist *, const struct far_events *, void *owner, const char *waiter);
/* far_end - stop that, and free it. `woken` may call it, what is told may not. */
void far_end(struct far *);
/* far_wake - call `woken` in the next turn, where the subscriber does not iterate over those that listen. */
void far_wake(struct listener *);
/* far_owner - return what was given to far_begin. */
void *far_owner(struct listener *);
/* far_confirmed - return the nodes that have confirmed the subscription, a bit each. */
uint32_t far_confirmed(const struct far *);
