/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_guard.h - the restart guard on one node's connection: asked for, compared and asked for again
 *
 * guard.h has the commands and reads the replies. This file sends the commands: in one write with the handshake; by a
 * second question, if something must be written; when a quarantine should be over; and, as a comparison, when the
 * server tells of a change. It changes no state of the node: node.c does so after a call that returns what was read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/guard.h"
#include "redis/link/link.h"
#include "redis/outbox.h"

struct node_guard {
    struct guard key; /* the settings, and what was read of the guard key on this connection */
    struct redis_link *link;
    struct outbox *out;
    bool doubted;   /* the server told of a change, and the guard was not read since */
    bool comparing; /* the question whether it is as before is in flight */
};

/* node_guard_begin - the connection is new: forget what the last one read. If a guard is kept, append the question
 * behind the handshake. */
void node_guard_begin(struct node_guard *);
/* node_guard_meet - note the server process that the handshake saw. True: there is no guard to wait for. */
bool node_guard_meet(struct node_guard *);
/* node_guard_on_open - the link is open, and the node may have taken requests. */
void node_guard_on_open(struct node_guard *);
/* NONE: nothing was read: it was asked again, or the link was dropped. SAME: the same quarantine as before. */
enum node_guard_news { NODE_GUARD_NONE, NODE_GUARD_SAME, NODE_GUARD_READ };
/* node_guard_on_reply - take the reply to the guard's script.
 * node_guard_on_compared - take the reply to a comparison: drop the link if the guard is not as before. */
enum node_guard_news node_guard_on_reply(struct node_guard *, const struct reply *, uint64_t now_us);
void node_guard_on_compared(struct node_guard *, const struct reply *);
/* node_guard_on_push - if that push tells of a change of the guard, compare it, and return true. */
bool node_guard_on_push(struct node_guard *, const struct reply *push);
/* node_guard_doubts - return whether the reply is a vote that does not count, because the guard may have changed. */
bool node_guard_doubts(const struct node_guard *, const struct inflight_request *, const struct node_reply *);
/* node_guard_on_due - ask again, if it is time. node_guard_wake_us - return when that is; LINK_NEVER: not yet known. */
void node_guard_on_due(struct node_guard *, uint64_t now_us);
uint64_t node_guard_wake_us(const struct node_guard *);
/* node_guard_life - return a number for the server process and the guard that were read, see node_life. */
uint64_t node_guard_life(const struct node_guard *);
