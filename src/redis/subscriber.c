/* SPDX-License-Identifier: BSD-3-Clause */
#include "subscriber.h"

struct subscriber {
    struct alloc alloc;
    struct subscriber_config config;
    struct subscriber_events events;
    bool started;
};

struct subscriber *subscriber_new(struct event_base *base, const struct alloc *alloc,
                                  const struct subscriber_config *config,
                                  const struct subscriber_events *events)
{
    struct subscriber *subscriber = alloc_zero(alloc, sizeof *subscriber);
    (void)base;
    if (!subscriber) return NULL;
    subscriber->alloc = *alloc;
    subscriber->config = *config;
    subscriber->events = *events;
    return subscriber;
}

void subscriber_free(struct subscriber *subscriber)
{
    if (!subscriber) return;
    struct alloc alloc = subscriber->alloc;
    alloc_free(&alloc, subscriber);
}

void subscriber_start(struct subscriber *subscriber)
{
    subscriber->started = true;
}

void subscriber_stop(struct subscriber *subscriber)
{
    subscriber->started = false;
}

bool subscriber_is_open(const struct subscriber *subscriber)
{
    (void)subscriber;
    return false;
}

const char *subscriber_why(const struct subscriber *subscriber)
{
    return subscriber->started ? "connecting" : "stopped";
}

int subscriber_listen(struct subscriber *subscriber, const char *channel, size_t length)
{
    (void)subscriber;
    (void)channel;
    (void)length;
    return SUBSCRIBER_NOT_OPEN;
}

void subscriber_forget(struct subscriber *subscriber, const char *channel, size_t length)
{
    (void)subscriber;
    (void)channel;
    (void)length;
}
