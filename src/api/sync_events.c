/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync_events.c - the queue of events
 *
 * The loop's thread puts events into the queue and waits for nobody. Each event of a handle has its own place: if the
 * latest one was not read yet, the new one replaces it, behind all others. Lines of the log need memory, and only so
 * many are kept.
 */
#include "api/sync_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/caller.h"

#define LINES_MAX 256

struct sync_event *sync_event_new(int type, const void *handle, void *arg)
{
    struct sync_event *made = calloc(1, sizeof(*made));

    if (made == NULL) return NULL;
    made->event.type = type;
    made->event.handle = handle;
    made->event.arg = arg;
    made->event.slot = QUORLOCK_SLOT_NONE;
    return made;
}

void sync_event_set_arg(struct sync_events *events, struct sync_event *one, void *arg)
{
    pthread_mutex_lock(&events->mutex);
    one->event.arg = arg;
    pthread_mutex_unlock(&events->mutex);
}

/* The caller of these three holds the mutex. */

static void sync_events_raise(const struct sync_events *events)
{
    const uint64_t count = 1;

    (void)(write(events->fd, &count, sizeof(count)) == 0);
}

static void sync_events_add(struct sync_events *events, struct sync_event *one)
{
    if (one->link.back != NULL) list_remove(&events->queue, &one->link);
    list_add(&events->queue, &one->link);
    if (events->on && events->queue.count == 1) events->unshown = true;
}

static void sync_events_take(struct sync_events *events, struct sync_event *one)
{
    uint64_t count;

    list_remove(&events->queue, &one->link);
    if (one->event.type == QUORLOCK_EVENT_LOG) events->n_lines--;
    if (events->on && events->queue.count == 0) (void)(read(events->fd, &count, sizeof(count)) == 0);
}

void sync_events_show(struct sync_events *events)
{
    if (!events->unshown) return;
    pthread_mutex_lock(&events->mutex);
    events->unshown = false;
    if (events->queue.count > 0) sync_events_raise(events);
    pthread_mutex_unlock(&events->mutex);
}

void sync_event_put(struct sync_events *events, struct sync_event *one, const struct quorlock_event *contents)
{
    struct quorlock_event *event = &one->event;
    struct quorlock_event before;

    pthread_mutex_lock(&events->mutex);
    before = *event;
    *event = *contents;
    event->type = before.type;
    event->handle = before.handle;
    event->arg = before.arg;
    if (!one->once) event->slot = QUORLOCK_SLOT_NONE; /* all but results */
    sync_events_add(events, one);
    pthread_mutex_unlock(&events->mutex);
}

void sync_events_put_result(struct sync_events *events, struct sync_event *one,
                            const struct quorlock_sync_result *result)
{
    struct quorlock_event contents = {BLOCKING_RESULT_OF(result)};

    snprintf(contents.text, sizeof(contents.text), "%s", result->text);
    snprintf(contents.token, sizeof(contents.token), "%s", result->token);
    one->once = true;
    sync_event_put(events, one, &contents);
}

void sync_events_put_loss(struct sync_events *events, struct sync_event *one, uint64_t term,
                          const struct quorlock_loss *loss)
{
    struct quorlock_event contents = {.term = term, .reason = loss->reason, .remaining_ms = loss->remaining_ms};

    snprintf(contents.text, sizeof(contents.text), "%s", loss->text);
    sync_event_put(events, one, &contents);
}

void sync_event_free(struct sync_events *events, struct sync_event *one, bool here)
{
    if (one == NULL) return;
    if (here) {
        pthread_mutex_lock(&events->mutex);
        if (one->link.back != NULL) sync_events_take(events, one);
        pthread_mutex_unlock(&events->mutex);
    } else if (one->link.back != NULL) {
        /* A thread that does not run in this child may have stopped amid a change of the queue. */
        return;
    }
    free(one);
}

/* ---- the log, and logins ---- */

/* sync_events_on_line - keep a line of the log, or count it. */
static void sync_events_on_line(int level, const char *text, void *arg)
{
    struct sync_events *events = arg;
    struct sync_event *line = sync_event_new(QUORLOCK_EVENT_LOG, NULL, NULL);

    if (line != NULL) {
        line->once = true;
        line->event.level = level;
        snprintf(line->event.text, sizeof(line->event.text), "%s", text);
    }
    pthread_mutex_lock(&events->mutex);
    if (line != NULL && events->n_lines < LINES_MAX) {
        line->event.n_dropped = events->n_dropped;
        events->n_dropped = 0;
        events->n_lines++;
        sync_events_add(events, line);
        line = NULL;
    } else {
        events->n_dropped++;
    }
    pthread_mutex_unlock(&events->mutex);
    free(line);
}

/* sync_events_on_login - queue the question, unless an older one for that node waits there, and have the login wait. */
static int sync_events_on_login(quorlock_credentials *to, const char *node, void *arg)
{
    struct sync_events *events = arg;
    struct sync_event *made = sync_event_new(QUORLOCK_EVENT_LOGIN, NULL, events->login_arg);
    bool asked = false;

    if (made == NULL) return quorlock_credentials_refuse(to, "out of memory");
    made->once = true;
    snprintf(made->event.text, sizeof(made->event.text), "%s", node);
    pthread_mutex_lock(&events->mutex);
    LIST_EACH (struct sync_event, one, &events->queue, link)
        asked = asked || (one->event.type == QUORLOCK_EVENT_LOGIN && strcmp(one->event.text, made->event.text) == 0);
    if (!asked) sync_events_add(events, made);
    pthread_mutex_unlock(&events->mutex);
    if (asked) free(made);
    return quorlock_credentials_defer(to, node, NULL);
}

const struct quorlock_client_options *sync_events_options(struct sync_events *events,
                                                          const struct quorlock_client_options *given,
                                                          struct quorlock_client_options *copy)
{
    struct quorlock_error error;

    /* What is wrong with the options is reported by who uses them. */
    if (given == NULL || caller_copy(copy, sizeof(*copy), given, given->size, "quorlock_client_options", &error) != 0)
        return given;
    if (copy->log == NULL) {
        copy->log = sync_events_on_line;
        copy->log_arg = events;
    }
    if (copy->credentials == quorlock_credentials_defer) {
        events->login_arg = copy->credentials_arg;
        copy->credentials = sync_events_on_login;
        copy->credentials_arg = events;
    }
    copy->size = sizeof(*copy);
    return copy;
}

/* ---- life ---- */

bool sync_events_on(struct sync_events *events)
{
    bool on;

    pthread_mutex_lock(&events->mutex);
    on = events->on;
    pthread_mutex_unlock(&events->mutex);
    return on;
}

int sync_events_start(struct sync_events *events)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0) return QUORLOCK_ERR_NOMEM;
    pthread_mutex_lock(&events->mutex);
    events->fd = fd;
    events->on = true;
    /* Lines of the log may wait already. */
    if (events->queue.count > 0) sync_events_raise(events);
    pthread_mutex_unlock(&events->mutex);
    return 0;
}

void sync_events_close(struct sync_events *events)
{
    events->closed.event.type = QUORLOCK_EVENT_CLOSED;
    sync_event_put(events, &events->closed, &(struct quorlock_event){0});
    sync_events_show(events);
}

void sync_events_end(struct sync_events *events)
{
    LIST_WALK (struct sync_event, one, &events->queue, link) {
        list_remove(&events->queue, &one->link);
        if (one->once) free(one);
    }
    pthread_mutex_destroy(&events->mutex);
}

/* ---- reading ---- */

static int check_event(const struct quorlock_event *given)
{
    /* The size of the struct in the first release. It never changes, even when members are added. */
    size_t least = offsetof(struct quorlock_event, token) + QUORLOCK_SYNC_TOKEN_SIZE;
    struct quorlock_error error;

    if (given == NULL) return QUORLOCK_ERR_INVAL;
    return caller_check(least, sizeof(*given), given, given->size, "quorlock_event", &error);
}

/* sync_events_give - copy the event to the caller's struct, which may be shorter or longer than ours. */
static void sync_events_give(struct quorlock_event *ret, const struct quorlock_event *event)
{
    size_t size = ret->size;

    memcpy(ret, event, size < sizeof(*ret) ? size : sizeof(*ret));
    ret->size = size;
}

int sync_events_next(struct sync_events *events, struct quorlock_event *ret)
{
    struct sync_event *one;
    bool once;

    if (check_event(ret) != 0) return QUORLOCK_ERR_INVAL;
    pthread_mutex_lock(&events->mutex);
    if (!events->on) {
        pthread_mutex_unlock(&events->mutex);
        return QUORLOCK_ERR_STATE;
    }
    one = FIRST_OF(&events->queue, struct sync_event, link);
    sync_events_give(ret, one != NULL ? &one->event : &(struct quorlock_event){.slot = QUORLOCK_SLOT_NONE});
    once = one != NULL && one->once;
    if (one != NULL) sync_events_take(events, one);
    if (ret->type == QUORLOCK_EVENT_CLOSED) {
        events->on = false;
        close(events->fd);
    }
    pthread_mutex_unlock(&events->mutex);
    /* The event of a handle may be gone already. */
    if (once) free(one);
    return 0;
}
