/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync_election.c - candidates and observers behind the loop's thread
 *
 * Callbacks of the loop's thread write the state of a candidate under the mutex, and wake waiting calls. If a handle is
 * freed while calls wait, the last of these calls frees its memory.
 */
#include "api/sync_election.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client.h"
#include "api/sync_loop.h"
#include "base/caller.h"

struct quorlock_sync_candidate {
    quorlock_sync_client *sync;
    struct expiry shown; /* for any thread */
    struct link link;    /* in sync->candidates */
    /* The loop's thread only. */
    quorlock_candidate *candidate;
    struct quorlock_candidate_options told;       /* the callbacks of the caller */
    struct sync_event *elected, *deposed, *ended; /* NULL: the client has no events */
    /* Under the mutex. */
    pthread_cond_t changed;
    uint64_t term;        /* 0: it does not lead */
    bool standing, freed; /* standing: it has a candidacy */
    bool shut_out;        /* the latest candidacy ended after a shutdown */
    unsigned n_ends;      /* how many candidacies ended: another may begin before a waiting call wakes */
    int status;           /* of the candidacy that ended last */
    unsigned n_using;     /* waiting calls, and a running callback of the caller */
};

struct quorlock_sync_observer {
    quorlock_sync_client *sync;
    struct link link; /* in sync->observers */
    quorlock_observer *observer;
    struct quorlock_observer_options told; /* the callback of the caller */
    struct sync_event *changed;            /* NULL: the client has no events */
};

/* run_job - run the job, and report its end; return the status. */
static int run_job(struct job *job, struct quorlock_error *error)
{
    int status = sync_call(job);

    return caller_report(error, status, job->result.text);
}

/* tells - return whether the caller has given callbacks with the candidate. */
static bool tells(const quorlock_sync_candidate *handle)
{
    return handle->told.elected != NULL || handle->told.deposed != NULL || handle->told.ended != NULL;
}

/* ---- events of a candidate, in the loop's thread ---- */

/* forget_events - free the events of the candidate: none comes any more. */
static void forget_event(const quorlock_sync_candidate *handle, struct sync_event **event)
{
    if (*event != NULL) sync_event_free(&handle->sync->events, *event, sync_here(handle->sync));
    *event = NULL;
}

static void forget_events(quorlock_sync_candidate *handle)
{
    forget_event(handle, &handle->elected);
    forget_event(handle, &handle->deposed);
    forget_event(handle, &handle->ended);
}

static void sync_election_destroy(quorlock_sync_candidate *handle)
{
    forget_events(handle);
    pthread_cond_destroy(&handle->changed);
    free(handle);
}

/* use - keep the memory of the handle. The caller holds the mutex. */
static void use(quorlock_sync_candidate *handle)
{
    handle->n_using++;
}

/* use_no_more - undo use(); it may free the handle. The caller holds the mutex. */
static void use_no_more(quorlock_sync_candidate *handle)
{
    if (--handle->n_using == 0 && handle->freed) sync_election_destroy(handle);
}

/* set_standing - note that the candidate has a candidacy, and does not lead. */
static void set_standing(quorlock_sync_candidate *handle)
{
    pthread_mutex_lock(&handle->sync->mutex);
    handle->term = 0;
    handle->standing = true;
    pthread_mutex_unlock(&handle->sync->mutex);
}

/* set_end - note that the candidacy has ended, and wake waiting calls. The caller holds the mutex. */
static void set_end(quorlock_sync_candidate *handle, int status)
{
    handle->term = 0;
    handle->standing = false;
    handle->status = status;
    handle->shut_out = handle->sync->shut;
    handle->n_ends++;
    pthread_cond_broadcast(&handle->changed);
}

/* begin_callback - keep the handle while a callback of the caller runs, which may free it. Waiting calls are woken
 * after the callback, so it has returned before they do. */
static void begin_callback(quorlock_sync_candidate *handle)
{
    pthread_mutex_lock(&handle->sync->mutex);
    use(handle);
    pthread_mutex_unlock(&handle->sync->mutex);
}

static void on_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    quorlock_sync_candidate *handle = arg;
    quorlock_sync_client *sync = handle->sync;

    begin_callback(handle);
    if (handle->told.elected != NULL) {
        handle->told.elected(candidate, term, handle->told.arg);
    } else if (handle->elected != NULL) {
        sync_event_put(&sync->events, handle->elected, &(struct quorlock_event){.term = term});
    }
    pthread_mutex_lock(&sync->mutex);
    if (!handle->freed) handle->term = term;
    pthread_cond_broadcast(&handle->changed);
    use_no_more(handle);
    pthread_mutex_unlock(&sync->mutex);
}

static void on_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    quorlock_sync_candidate *handle = arg;
    uint64_t term = handle->term; /* only this thread writes it */

    set_standing(handle);
    if (handle->sync->shut) (void)quorlock_candidate_resign(candidate);
    if (handle->told.deposed != NULL) {
        handle->told.deposed(candidate, loss, handle->told.arg);
    } else if (handle->deposed != NULL) {
        sync_events_put_loss(&handle->sync->events, handle->deposed, term, loss);
    }
}

static void put_end(quorlock_sync_candidate *handle, int status, const char *text)
{
    struct quorlock_event contents = {.status = status};

    snprintf(contents.text, sizeof(contents.text), "%s", text != NULL ? text : "");
    sync_event_put(&handle->sync->events, handle->ended, &contents);
}

static void sync_election_on_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    quorlock_sync_candidate *handle = arg;
    quorlock_sync_client *sync = handle->sync;

    begin_callback(handle);
    if (handle->told.ended != NULL) {
        handle->told.ended(candidate, status, text, handle->told.arg);
    } else if (handle->ended != NULL) {
        put_end(handle, status, text);
    }
    pthread_mutex_lock(&sync->mutex);
    if (!handle->freed) set_end(handle, status);
    use_no_more(handle);
    pthread_mutex_unlock(&sync->mutex);
}

/* ---- jobs ---- */

/* sync_election_make_events - make the events of the candidate, if the client has events. */
static int sync_election_make_events(quorlock_sync_candidate *handle)
{
    void *arg = handle->told.arg;

    if (!sync_events_on(&handle->sync->events)) return 0;
    handle->elected = sync_event_new(QUORLOCK_EVENT_ELECTED, handle, arg);
    handle->deposed = sync_event_new(QUORLOCK_EVENT_DEPOSED, handle, arg);
    handle->ended = sync_event_new(QUORLOCK_EVENT_RESIGNED, handle, arg);
    return handle->elected != NULL && handle->deposed != NULL && handle->ended != NULL ? 0 : QUORLOCK_ERR_NOMEM;
}

struct candidate_job {
    struct job job;
    const char *name;
    const struct quorlock_candidate_options *options;
};

static void sync_election_make(struct job *job)
{
    const struct candidate_job *call = CONTAINER_OF(job, struct candidate_job, job);
    quorlock_sync_client *sync = job->sync;
    quorlock_sync_candidate *handle = job->candidate;
    const struct quorlock_candidate_options *given = call->options;
    struct quorlock_candidate_options options = {.size = sizeof(options)};
    struct quorlock_error error;
    int status = sync_refuse_new(job);

    if (status == 0 && given != NULL) {
        status = caller_copy(&options, sizeof(options), given, given->size, "quorlock_candidate_options", &error);
        if (status != 0) (void)sync_refuse(job, status, error.text);
    }
    handle->told = options;
    if (status == 0 && sync_election_make_events(handle) != 0)
        status = sync_refuse(job, QUORLOCK_ERR_NOMEM, quorlock_status_text(QUORLOCK_ERR_NOMEM));
    if (status != 0) {
        sync_done(job);
        return;
    }
    options.elected = on_elected;
    options.deposed = on_deposed;
    options.ended = sync_election_on_ended;
    options.arg = handle;
    status = quorlock_candidate_new(&handle->candidate, sync->client, call->name, &options);
    if (status != 0) {
        sync_fail(job, status);
        return;
    }
    client_show_candidate(handle->candidate, &handle->shown);
    list_add(&sync->candidates, &handle->link);
    if (sync_add_handle(sync)) client_log_from(sync->client, QUORLOCK_LOG_WARN);
    sync_done(job);
}

static void sync_election_run_new(struct job *job)
{
    const quorlock_sync_candidate *handle = job->candidate;

    sync_election_make(job);
    if (handle->candidate == NULL || !tells(handle)) sync_tell_end(job->sync);
}

/* A call that waits for a candidacy. */
struct wait_job {
    struct job job;
    unsigned n_ends; /* when the call began to wait */
};

/* will_wait - keep the handle until await(), because another thread may free it before. Meanwhile the own thread leads:
 * there is no job whose end the loop would be run for. */
static void will_wait(struct job *job)
{
    quorlock_sync_candidate *handle = job->candidate;

    pthread_mutex_lock(&handle->sync->mutex);
    CONTAINER_OF(job, struct wait_job, job)->n_ends = handle->n_ends;
    use(handle);
    sync_begin_call(handle->sync);
    sync_tell_begin(handle->sync);
    pthread_mutex_unlock(&handle->sync->mutex);
}

static void run_stand(struct job *job)
{
    quorlock_sync_candidate *handle = job->candidate;
    int status = sync_refuse_new(job);

    if (status != 0) {
        sync_done(job);
        return;
    }
    status = quorlock_candidate_stand(handle->candidate);
    /* If it has a candidacy already, this call waits for the same one. */
    if (status != 0 && !(status == QUORLOCK_ERR_STATE && handle->standing)) {
        sync_fail(job, status);
        return;
    }
    if (status == 0) set_standing(handle);
    will_wait(job);
    sync_done(job);
}

static void run_resign(struct job *job)
{
    quorlock_sync_candidate *handle = job->candidate;
    int status = quorlock_candidate_resign(handle->candidate);

    if (status != 0) {
        sync_fail(job, status);
        return;
    }
    set_standing(handle);
    will_wait(job);
    sync_done(job);
}

/* let_go - end the candidacy for waiting calls, and free the handle with the last of them. */
static void let_go(quorlock_sync_candidate *handle)
{
    pthread_mutex_t *mutex = &handle->sync->mutex;

    pthread_mutex_lock(mutex);
    set_end(handle, QUORLOCK_ERR_CANCELED);
    use(handle);
    handle->freed = true;
    use_no_more(handle);
    pthread_mutex_unlock(mutex);
}

static void sync_election_run_free(struct job *job)
{
    quorlock_sync_candidate *handle = job->candidate;

    (void)sync_withdraw(job->sync, handle, true);
    if (tells(handle)) sync_tell_end(job->sync);
    list_remove(&job->sync->candidates, &handle->link);
    quorlock_candidate_free(handle->candidate);
    forget_events(handle);
    let_go(handle);
    sync_done(job);
}

void sync_election_shutdown(quorlock_sync_client *sync)
{
    LIST_WALK (quorlock_sync_candidate, handle, &sync->candidates, link) {
        if (quorlock_candidate_valid_ms(handle->candidate) == 0) (void)quorlock_candidate_resign(handle->candidate);
    }
}

/* ---- candidates ---- */

int quorlock_sync_candidate_new(quorlock_sync_candidate **ret, quorlock_sync_client *sync, const char *name,
                                const struct quorlock_candidate_options *options, struct quorlock_error *error)
{
    quorlock_sync_candidate *handle = ret != NULL ? calloc(1, sizeof(*handle)) : NULL;
    struct candidate_job call = {
        .job = {.run = sync_election_run_new, .sync = sync, .candidate = handle, .tells = true},
        .name = name,
        .options = options};

    if (ret == NULL) return sync_no_place("candidate", error);
    if (handle == NULL || pthread_cond_init(&handle->changed, NULL) != 0) {
        free(handle);
        return caller_report(error, QUORLOCK_ERR_NOMEM, "");
    }
    handle->sync = sync;
    if (run_job(&call.job, error) != 0) {
        sync_election_destroy(handle);
        return call.job.result.status;
    }
    *ret = handle;
    return 0;
}

/* sync_election_client_of - return the client of the candidate, or NULL without a candidate. */
static quorlock_sync_client *sync_election_client_of(const quorlock_sync_candidate *candidate)
{
    return candidate != NULL ? candidate->sync : NULL;
}

/* await - wait until the candidacy of will_wait() has ended or, with until_elected, the candidate leads. */
static int await(const struct wait_job *call, bool until_elected, uint64_t *ret_term)
{
    quorlock_sync_candidate *handle = call->job.candidate;
    quorlock_sync_client *sync = handle->sync;
    bool has_ended;
    int status;

    pthread_mutex_lock(&sync->mutex);
    while (handle->n_ends == call->n_ends && !(until_elected && handle->term != 0))
        pthread_cond_wait(&handle->changed, &sync->mutex);
    has_ended = handle->n_ends != call->n_ends;
    *ret_term = has_ended ? 0 : handle->term;
    status = has_ended ? handle->status : 0;
    if (until_elected && has_ended && status == 0)
        status = handle->shut_out ? QUORLOCK_ERR_CLOSED : QUORLOCK_ERR_CANCELED;
    use_no_more(handle);
    pthread_mutex_unlock(&sync->mutex);
    sync_tell_end(sync);
    sync_end_call(sync);
    return status;
}

int quorlock_sync_candidate_stand(quorlock_sync_candidate *candidate, uint64_t *ret_term)
{
    struct wait_job call = {
        .job = {.run = run_stand, .sync = sync_election_client_of(candidate), .candidate = candidate}};
    uint64_t term = 0;
    int status = sync_call(&call.job);

    if (status != 0) return status;
    status = await(&call, true, &term);
    if (status == 0 && ret_term != NULL) *ret_term = term;
    return status;
}

int quorlock_sync_candidate_resign(quorlock_sync_candidate *candidate)
{
    struct wait_job call = {
        .job = {.run = run_resign, .sync = sync_election_client_of(candidate), .candidate = candidate}};
    uint64_t term = 0;
    int status = sync_call(&call.job);

    return status != 0 ? status : await(&call, false, &term);
}

void quorlock_sync_candidate_free(quorlock_sync_candidate *candidate)
{
    quorlock_sync_client *sync = sync_election_client_of(candidate);
    struct job job = {.run = sync_election_run_free, .sync = sync, .candidate = candidate};

    if (candidate == NULL) return;
    if (!sync_here(sync)) {
        /* In a child of fork() no call waits for it. */
        forget_events(candidate);
        free(candidate);
    } else if (sync_do_anywhere(&job) != 0) {
        let_go(candidate);
    }
    sync_leave(sync);
}

uint32_t quorlock_sync_candidate_valid_ms(const quorlock_sync_candidate *candidate)
{
    return candidate != NULL ? sync_valid_ms(candidate->sync, &candidate->shown) : 0;
}

uint64_t quorlock_sync_candidate_term(const quorlock_sync_candidate *candidate)
{
    uint64_t term;

    if (candidate == NULL || !sync_here(candidate->sync)) return 0;
    pthread_mutex_lock(&candidate->sync->mutex);
    term = candidate->term;
    pthread_mutex_unlock(&candidate->sync->mutex);
    return term;
}

/* ---- observers ---- */

static void put_leader(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    quorlock_sync_observer *handle = arg;
    struct quorlock_event contents = {.state = leader->state, .term = leader->term, .valid_ms = leader->valid_ms};

    (void)observer;
    snprintf(contents.text, sizeof(contents.text), "%s", leader->text != NULL ? leader->text : "");
    snprintf(contents.token, sizeof(contents.token), "%s", leader->owner != NULL ? leader->owner : "");
    sync_event_put(&handle->sync->events, handle->changed, &contents);
}

/* with_event - return the options; with an event instead of a callback that is missing, if the client has events. NULL:
 * no memory. */
static const struct quorlock_observer_options *with_event(quorlock_sync_observer *handle,
                                                          const struct quorlock_observer_options *given)
{
    struct quorlock_error error;

    /* What is wrong with the options is reported by who uses them. */
    if (!sync_events_on(&handle->sync->events) || given == NULL ||
        caller_copy(&handle->told, sizeof(handle->told), given, given->size, "quorlock_observer_options", &error) !=
            0 ||
        handle->told.changed != NULL)
        return given;
    handle->changed = sync_event_new(QUORLOCK_EVENT_LEADER_CHANGED, handle, handle->told.arg);
    handle->told.size = sizeof(handle->told);
    handle->told.changed = put_leader;
    handle->told.arg = handle;
    return handle->changed != NULL ? &handle->told : NULL;
}

struct observer_job {
    struct job job;
    quorlock_sync_observer *observer;
    const char *name; /* this and the options: of a new one */
    const struct quorlock_observer_options *options;
};

static void make_observer(struct job *job)
{
    const struct observer_job *call = CONTAINER_OF(job, struct observer_job, job);
    quorlock_sync_observer *handle = call->observer;
    const struct quorlock_observer_options *options = call->options;
    int status = sync_refuse_new(job);

    if (status == 0 && options != NULL) {
        options = with_event(handle, options);
        if (options == NULL) status = sync_refuse(job, QUORLOCK_ERR_NOMEM, quorlock_status_text(QUORLOCK_ERR_NOMEM));
    }
    if (status != 0) {
        sync_done(job);
        return;
    }
    status = quorlock_observer_new(&handle->observer, job->sync->client, call->name, options);
    if (status != 0) {
        sync_fail(job, status);
        return;
    }
    list_add(&job->sync->observers, &handle->link);
    if (sync_add_handle(job->sync)) client_log_from(job->sync->client, QUORLOCK_LOG_WARN);
    sync_done(job);
}

static void run_observe(struct job *job)
{
    const quorlock_sync_observer *handle = CONTAINER_OF(job, struct observer_job, job)->observer;

    make_observer(job);
    if (handle->observer == NULL || handle->changed != NULL) sync_tell_end(job->sync);
}

int quorlock_sync_observer_new(quorlock_sync_observer **ret, quorlock_sync_client *sync, const char *name,
                               const struct quorlock_observer_options *options, struct quorlock_error *error)
{
    quorlock_sync_observer *handle = ret != NULL ? calloc(1, sizeof(*handle)) : NULL;
    struct observer_job call = {
        .job = {.run = run_observe, .sync = sync, .tells = true}, .observer = handle, .name = name, .options = options};

    if (ret == NULL) return sync_no_place("observer", error);
    if (handle == NULL) {
        return caller_report(error, QUORLOCK_ERR_NOMEM, "");
    }
    handle->sync = sync;
    if (run_job(&call.job, error) != 0) {
        free(handle->changed);
        free(handle);
        return call.job.result.status;
    }
    *ret = handle;
    return 0;
}

static void run_forget(struct job *job)
{
    quorlock_sync_observer *handle = CONTAINER_OF(job, struct observer_job, job)->observer;

    list_remove(&job->sync->observers, &handle->link);
    if (handle->changed == NULL) sync_tell_end(job->sync);
    quorlock_observer_free(handle->observer);
    sync_done(job);
}

void quorlock_sync_observer_free(quorlock_sync_observer *observer)
{
    quorlock_sync_client *sync = observer != NULL ? observer->sync : NULL;
    struct observer_job call = {.job = {.run = run_forget, .sync = sync}, .observer = observer};

    if (observer == NULL) return;
    (void)sync_do_anywhere(&call.job);
    sync_event_free(&sync->events, observer->changed, sync_here(sync));
    free(observer);
    sync_leave(sync);
}
