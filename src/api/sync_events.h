/* SPDX-License-Identifier: BSD-3-Clause */
/* sync_events.h - the queue of events of the sync API, for callers that want no callback */
#pragma once

#include <quorlock/sync.h>

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"

/* An event, in the queue or not. What may happen to a handle has its event from the beginning, so a loss is told also
 * when memory is out. */
struct sync_event {
    struct link link; /* in the queue */
    bool once;        /* who takes it from the queue frees it */
    struct quorlock_event event;
};

struct sync_events {
    pthread_mutex_t mutex; /* guards the rest */
    bool on;
    int fd;       /* readable while the queue has an event */
    bool unshown; /* an event came into an empty queue, and `fd` does not say so yet; the thread that leads only */
    struct list queue;
    size_t n_lines; /* lines of the log in the queue */
    uint64_t n_dropped;
    void *login_arg; /* what the caller gave for logins that wait for it */
    struct sync_event closed;
};

/* The members that each struct with a result has, as an initializer from the struct *from. */
#define BLOCKING_RESULT_OF(from)                                                                                       \
    .status = (from)->status, .granted = (from)->granted, .refused = (from)->refused, .failed = (from)->failed,        \
    .rounds = (from)->rounds, .elapsed_ms = (from)->elapsed_ms, .valid_ms = (from)->valid_ms, .fence = (from)->fence,  \
    .slot = (from)->slot

/*
 * sync_events_start - make the descriptor; errors: NOMEM
 * sync_events_on    - return whether that was done, and the last event was not read
 * sync_events_close - queue the last event, when nobody leads any more
 * sync_events_end   - free what is in the queue, and the mutex
 * sync_events_next  - take the oldest event: do quorlock_sync_client_next_event for a client of this process
 *
 * Any thread.
 */
int sync_events_start(struct sync_events *);
bool sync_events_on(struct sync_events *);
void sync_events_close(struct sync_events *);
void sync_events_end(struct sync_events *);
int sync_events_next(struct sync_events *, struct quorlock_event *ret);
/* sync_events_show - make the descriptor readable if events have come: once for all that a turn of the loop put into
 * the queue, so that their reader wakes once. By the thread that leads. */
void sync_events_show(struct sync_events *);
/* sync_events_options - return the options, or a copy with the hooks of the events: for the log, if the caller has
 * none, and for logins that the caller defers. */
const struct quorlock_client_options *sync_events_options(struct sync_events *,
                                                          const struct quorlock_client_options *given,
                                                          struct quorlock_client_options *copy);
/* sync_event_new - make an event of that type that is not in the queue; NULL: no memory. */
struct sync_event *sync_event_new(int type, const void *handle, void *arg);
/* sync_event_set_arg - change what the caller gave with the handle. */
void sync_event_set_arg(struct sync_events *, struct sync_event *, void *arg);
/*
 * sync_event_put         - put the event into the queue behind all others, with these contents instead of its own
 * sync_events_put_result - put a result into the queue; who takes it frees the event
 * sync_events_put_loss   - put a loss
 */
void sync_event_put(struct sync_events *, struct sync_event *, const struct quorlock_event *contents);
void sync_events_put_result(struct sync_events *, struct sync_event *, const struct quorlock_sync_result *);
void sync_events_put_loss(struct sync_events *, struct sync_event *, uint64_t term, const struct quorlock_loss *);
/* sync_event_free - take the event out of the queue, and free it; NULL is permitted. `here`: this process opened
 * the client. In a child of fork() an event in the queue stays. */
void sync_event_free(struct sync_events *, struct sync_event *, bool here);
