/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subscriber.h - one connection to one Redis server for release notices
 *
 * The first waiter starts it and the last one stops it. In between it reconnects as often as needed, even to a server
 * that is a replica, loads its data or is quarantined. A new connection has no subscriptions: the owner knows its
 * channels and subscribes to them in each `open` callback. A silent server is sent a PING, at most once a
 * minute; if it does not answer, the connection is dropped.
 *
 * Callbacks run from the loop, never from inside a call, and may call any function here, subscriber_free() included.
 * Channels and payloads may be any bytes. The arguments of a callback are valid during the callback only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/link/config.h"

struct subscriber;
struct system;

#define SUBSCRIBER_CHANNEL_MAX ((size_t)1 << 16) /* the longest channel name, in bytes */

struct subscriber_events {
    /* Connected, perhaps again: nothing is subscribed yet. */
    void (*open)(void *arg, uint32_t index);
    /* An open connection ended. Pending commands are not answered any more, and notices may have been missed. */
    void (*closed)(void *arg, uint32_t index, const char *why);
    /* The server confirmed a subscription that was not forgotten meanwhile. From now on no notice is missed. */
    void (*listening)(void *arg, uint32_t index, const char *channel, size_t length);
    /* The server refused a subscription that was not forgotten meanwhile, for example by its ACL. */
    void (*refused)(void *arg, uint32_t index, const char *channel, size_t length, const char *why);
    /* A notice; its channel may have been forgotten a moment ago. */
    void (*message)(void *arg, uint32_t index, const char *channel, size_t length, const char *payload,
                    size_t payload_length);
    /* All commands are answered: a subscription that was refused with FULL or NOMEM may be tried again. */
    void (*room)(void *arg, uint32_t index);
    void *arg;
};

/* subscriber_new - make a subscriber, which is stopped. system and alloc must live as long. The config's timeout is
 * also that of an answer; without a client_name it is "quorlock-notices". NULL: out of memory. */
struct subscriber *subscriber_new(struct system *, const struct alloc *, uint32_t index, const struct link_config *,
                                  const struct subscriber_events *);
/* subscriber_free - close and free; no callback runs during or after it. NULL is fine. May be called from inside a
 * callback of this subscriber. */
void subscriber_free(struct subscriber *);

/* subscriber_start - connect when the loop runs, after the pause that an earlier failure began. */
void subscriber_start(struct subscriber *);
/* subscriber_stop - close at once; no callback runs during or after it, until the next start. */
void subscriber_stop(struct subscriber *);
bool subscriber_is_open(const struct subscriber *);

enum subscriber_result {
    SUBSCRIBER_ASKED = 0,
    SUBSCRIBER_NOT_OPEN = -1, /* try again in `open` */
    SUBSCRIBER_FULL = -2,     /* too much is unanswered: try again in `room`; or the name is too long */
    SUBSCRIBER_NOMEM = -3,    /* try again in `room` */
};
/*
 * subscriber_listen - subscribe to a channel
 *
 * SUBSCRIBER_ASKED promises one of the callbacks listening, refused and closed, unless the owner forgets the channel or
 * stops first. Subscribing twice to one channel gets two answers and one subscription. The name is copied.
 */
int subscriber_listen(struct subscriber *, const char *channel, size_t length);
/* subscriber_forget - unsubscribe from a channel, if the connection is open. Without room for the command, notices of
 * the channel go on until the connection ends. */
void subscriber_forget(struct subscriber *, const char *channel, size_t length);
