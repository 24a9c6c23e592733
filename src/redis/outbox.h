/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outbox.h - one node's requests on their way out, and in flight
 *
 * A request goes into the connection's buffer at once, or waits in the batch for the end of the turn; in the ring it
 * is until it was answered. Room for the batch is kept in the buffer and in the ring, so that it always fits.
 *
 * The server knows a script from its first use on, which brings it whole. What comes behind it on the connection may
 * name it by its hash at once, for the server executes in order. A server that has forgotten scripts (SCRIPT FLUSH;
 * from Redis 7.4 on also many scripts of others) may do so again: for a while all go whole, so that whoever met this
 * gets through when it asks again.
 */
#pragma once

#include "redis/batch.h"
#include "redis/dialect/dialect.h"
#include "redis/link/link.h"
#include "redis/ring.h"

struct outbox {
    struct redis_link *link;
    const struct dialect *dialect;
    const struct guard *guard;
    uint64_t stall_us;       /* the connection is dropped when its oldest request is unanswered so long; 0: never */
    struct batch batch;      /* requests that wait for the end of the turn, and are not in the ring yet */
    bool alone;              /* on this connection each request goes alone */
    uint32_t whole_sent;     /* the scripts that this connection has sent whole, a bit each; */
    uint64_t whole_until_us; /* until then none of them counts; 0: the server forgot none lately */
    struct ring ring;
    size_t fresh; /* requests that have not left yet: the latest ones of the ring */
};

/* outbox_init - of that connection; what it is given lives as long. */
void outbox_init(struct outbox *, const struct alloc *, struct redis_link *, const struct dialect *,
                 const struct guard *, uint64_t stall_us);
void outbox_clear(struct outbox *);
/* outbox_begin - a connection that has sent nothing yet. What is held can be renewed and released on it without memory:
 * its buffer has room for the scripts of that and for some hundred requests from now on. Where there is no memory for
 * this now, the failure stays in the buffer. */
void outbox_begin(struct outbox *);
/* outbox_send, outbox_has_room, outbox_count - node_send, node_has_room, node_in_flight; see node.h. */
int outbox_send(struct outbox *, const struct node_request *);
bool outbox_has_room(const struct outbox *, enum node_room);
size_t outbox_count(const struct outbox *);
/* outbox_ask_guard - asks for the guard, behind what is in flight; no caller hears of the reply. False: no room. */
bool outbox_ask_guard(struct outbox *, uint64_t now_us);
/* outbox_flush - what waited for the end of the turn goes into the buffer. */
void outbox_flush(struct outbox *);
/* outbox_sent - what was in the buffer has left now. */
void outbox_sent(struct outbox *, uint64_t now_us);
/* outbox_may_harm_late - a request without an answer would do harm if it were executed behind those of the next
 * connection. A release would not: it deletes nothing but what is to go. */
bool outbox_may_harm_late(struct outbox *);
/* outbox_on_error - the server answered the oldest request by an error: it may not know the scripts that were sent. */
void outbox_on_error(struct outbox *, bool noscript);
/* outbox_close - the connection ended: what waited is in the ring, too, and nothing is fresh. */
void outbox_close(struct outbox *);
