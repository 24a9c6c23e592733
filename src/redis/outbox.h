/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outbox.h - one node's requests on their way out, and in flight
 *
 * A request goes into the connection's buffer at once, or waits in the batch for the end of the turn; in the ring it
 * is until it was answered. Room for the batch is kept in the buffer and in the ring, so that it always fits.
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
    uint64_t stall_us;  /* the connection is dropped when its oldest request is unanswered so long; 0: never */
    struct batch batch; /* requests that wait for the end of the turn, and are not in the ring yet */
    bool alone;         /* on this connection each request goes alone */
    bool forgotten;     /* the server lost the script of batches: the next one brings it */
    struct ring ring;
    size_t fresh; /* requests that have not left yet: the latest ones of the ring */
};

/* outbox_init - of that connection; what it is given lives as long. */
void outbox_init(struct outbox *, const struct alloc *, struct redis_link *, const struct dialect *,
                 const struct guard *, uint64_t stall_us);
void outbox_clear(struct outbox *);
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
/* outbox_close - the connection ended: what waited is in the ring, too, and nothing is fresh. */
void outbox_close(struct outbox *);
