/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notices.h - release notices for those who wait
 *
 * A line whose first handle waits listens on some nodes to the channels of its keys. The connections for that
 * exist only while somebody listens, and a little longer.
 */
#ifndef QUORLOCK_NOTICES_H
#define QUORLOCK_NOTICES_H

#include "base/heap.h"
#include "base/list.h"

struct claim;
struct keylist;
struct quorlock_client;
struct channel;

/* One key's channel, as one line listens to it. */
struct subscription {
    struct link link; /* in the channel */
    struct keylist *keylist;
    struct channel *channel;
};

/* The notices of one client. */
struct notices {
    struct channel **buckets; /* channels by the hash of their channels */
    size_t n_buckets, n_channels;
    struct list quiet; /* lines that listen, though nobody of theirs waits any more */
};

/* notices_init - the nodes' subscribers, stopped. 0, or -1 out of memory; notices_clear is fine all the same.
 */
int notices_init(struct quorlock_client *);
void notices_clear(struct quorlock_client *);
/* notices_open - the line listens, as far as memory and nodes allow. notices_close: nobody of it waits any
 * more. */
void notices_open(struct keylist *);
void notices_close(struct keylist *);
/* notices_drop - the line goes. */
void notices_drop(struct keylist *);
/* notices_confirmed - on which nodes the line's notices come: a bit each. */
uint32_t notices_confirmed(const struct keylist *);

#endif
