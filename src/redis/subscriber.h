/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subscriber.h - one connection to one Redis server for release notices
 *
 * The first waiter starts it, and the last one stops it; in between it connects again and again, whether the
 * server is a master, is loading or is quarantined. Nothing is subscribed on a new connection: the owner knows
 * its channels and asks for them at each `open`. A silent server is sent a PING, at most once a second; without
 * an answer the connection is dropped.
 *
 * Callbacks come from the loop, never from inside a call, and may call anything here, subscriber_free() too.
 * Channels and payloads may be any bytes. What a callback is handed is valid during the callback only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/link/config.h"

struct subscriber;
struct system;

#define SUBSCRIBER_CHANNEL_MAX ((size_t)1 << 16) /* bytes of a channel's name */

struct subscriber_events {
    /* Connected, or connected again: nothing is subscribed yet. */
    void (*open)(void *arg, uint32_t index);
    /* It was open. No pending command is answered any more, and notices may have been missed. */
    void (*closed)(void *arg, uint32_t index, const char *why);
    /* The server confirmed a listen, which was not forgotten meanwhile: from now on no notice is missed. */
    void (*listening)(void *arg, uint32_t index, const char *channel, size_t length);
    /* The server refused a listen, by its ACL for instance, which was not forgotten meanwhile. */
    void (*refused)(void *arg, uint32_t index, const char *channel, size_t length, const char *why);
    /* A notice; possibly for a channel that was forgotten a moment ago. */
    void (*message)(void *arg, uint32_t index, const char *channel, size_t length, const char *payload,
                    size_t payload_length);
    /* All that was asked was answered: a listen that was FULL, or NOMEM, may be asked for again. */
    void (*room)(void *arg, uint32_t index);
    void *arg;
};

/* subscriber_new - a subscriber that is stopped; system and alloc live as long. The timeout of the config is
 * also that of an answer; without a client_name it is "quorlock-notices". NULL: out of memory. */
struct subscriber *subscriber_new(struct system *, const struct alloc *, uint32_t index, const struct link_config *,
                                  const struct subscriber_events *);
/* subscriber_free - closes and frees; no callback comes after or from it. NULL is fine. May be called from
 * inside a callback of this subscriber. */
void subscriber_free(struct subscriber *);

/* subscriber_start - connects when the loop runs, after the pause that an earlier failure began. */
void subscriber_start(struct subscriber *);
/* subscriber_stop - closes at once; no callback comes after or from it, until it is started again. */
void subscriber_stop(struct subscriber *);
bool subscriber_is_open(const struct subscriber *);

enum subscriber_result {
    SUBSCRIBER_ASKED = 0,
    SUBSCRIBER_NOT_OPEN = -1, /* ask again when `open` is told */
    SUBSCRIBER_FULL = -2,     /* too much is unanswered: ask again when `room` is told; or the name is too long */
    SUBSCRIBER_NOMEM = -3,    /* ask again when `room` is told */
};
/*
 * subscriber_listen - asks for a channel's notices
 *
 * ASKED promises one of listening, refused, closed, unless the owner forgets or stops before. Asking twice for
 * one channel is answered twice and listens once. The channel is copied.
 */
int subscriber_listen(struct subscriber *, const char *channel, size_t length);
/* subscriber_forget - no more notices of that channel, where it is open. Without room for the command they go
 * on until the connection ends. */
void subscriber_forget(struct subscriber *, const char *channel, size_t length);
