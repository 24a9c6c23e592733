/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outbox.h - the requests of one node, on their way out and in flight
 *
 * A request is written to the connection's buffer at once, or waits in the batch for the end of the turn. It is in
 * flight until it was answered. Buffer and table of requests in flight always keep room for the batch.
 *
 * The first use of a script on a connection sends its text (EVAL). Later ones send its hash (EVALSHA), even before the
 * first is answered, because the server executes in order. A server that lost its scripts (SCRIPT FLUSH; from Redis 7.4
 * on also many scripts of other clients) may lose them again soon. So for a while all scripts are sent as text, and a
 * request that failed for this reason succeeds when it is repeated.
 */
#pragma once

#include "redis/batch.h"
#include "redis/dialect/dialect.h"
#include "redis/inflight.h"
#include "redis/link/link.h"
#include "redis/tracking.h"

struct outbox {
    struct redis_link *link;
    const struct dialect *dialect;
    const struct guard *guard;
    uint64_t stall_us;        /* see node_config.stall_ms; 0: never */
    uint32_t timeout_ms;      /* of the latest request that had one; 0: none yet */
    struct batch batch;       /* requests that wait for the end of the turn, and are not in flight yet */
    bool alone;               /* no batches on this connection */
    bool untracked;           /* the user may not read keys that way */
    struct tracking tracking; /* the reads in flight of keys that the server is to watch */
    uint32_t whole_sent;      /* the scripts that this connection has sent as text, one bit each */
    uint64_t whole_until_us;  /* until then all scripts are sent as text; 0: the server lost none lately */
    struct inflight inflight;
    size_t unsent; /* how many of the requests in flight have not left the buffer yet: the latest ones */
};

/* outbox_init - initialize for that connection; all arguments must live as long. */
void outbox_init(struct outbox *, const struct alloc *, struct redis_link *, const struct dialect *,
                 const struct guard *, uint64_t stall_us);
void outbox_clear(struct outbox *);
/* outbox_begin - start with a new connection. Reserves buffer space for the scripts of renewals and releases and for
 * some hundred requests, so that held locks can be renewed and released without further memory. If there is none now,
 * the failure stays in the buffer. */
void outbox_begin(struct outbox *);
/* outbox_send, outbox_has_room, outbox_count - see node_send, node_has_room, node_in_flight in node.h. */
int outbox_send(struct outbox *, const struct node_request *);
bool outbox_has_room(const struct outbox *, enum node_room);
size_t outbox_count(const struct outbox *);
/* outbox_ask_guard - ask for the guard by its script, or only compare it with what was read, behind the requests in
 * flight. The reply is for the node itself. False: no
 * room. */
bool outbox_ask_guard(struct outbox *, bool compares, uint64_t now_us);
/* outbox_flush - write the batch to the buffer. */
void outbox_flush(struct outbox *);
/* outbox_sent - note that the buffer was sent now. */
void outbox_sent(struct outbox *, uint64_t now_us);
/* outbox_may_harm_late - return whether an unanswered request would do harm if it were executed after those of the next
 * connection. A release would not: it only deletes what is to be deleted. */
bool outbox_may_harm_late(struct outbox *);
/* outbox_on_error - note that the oldest request was answered by an error, so that the server may not have kept the
 * scripts that were sent. */
void outbox_on_error(struct outbox *, bool noscript);
/* outbox_close - note that the connection ended: move the batch to the requests in flight; nothing waits to be sent any
 * more. */
void outbox_close(struct outbox *);
