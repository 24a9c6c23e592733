/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking_election.c - candidates and observers behind the loop's thread
 *
 * Callbacks of the loop's thread write the state of a candidate under the mutex, and wake waiting calls. If a handle is
 * freed while calls wait, the last of these calls frees its memory.
 */
#include "api/blocking_election.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/blocking_loop.h"
#include "api/client.h"
#include "base/caller.h"

struct quorlock_blocking_candidate {
    quorlock_blocking *blocking;
    struct expiry shown; /* for any thread */
    struct link link;    /* in blocking->candidates */
    /* The loop's thread only. */
    quorlock_candidate *candidate;
    struct quorlock_candidate_options told;           /* the callbacks of the caller */
    struct blocking_event *elected, *deposed, *ended; /* NULL: the client has no events */
    /* Under the mutex. */
    pthread_cond_t changed;
    uint64_t term;        /* 0: it does not lead */
    bool standing, freed; /* standing: it has a candidacy */
    bool shut_out;        /* the latest candidacy ended after a shutdown */
    unsigned n_ends;      /* how many candidacies ended: another may begin before a waiting call wakes */
    int status;           /* of the candidacy that ended last */
    unsigned n_using;     /* waiting calls, and a running callback of the caller */
};

struct quorlock_blocking_observer {
    quorlock_blocking *blocking;
    struct link link; /* in blocking->observers */
    quorlock_observer *observer;
    struct quorlock_observer_options told; /* the callback of the caller */
    struct blocking_event *changed;        /* NULL: the client has no events */
};

static void write_error(const struct job *job, char *error, size_t size)
{
    if (error != NULL && size > 0) snprintf(error, size, "%s", job->result.text);
}

/* run_job - run the job; if it fails, write the error and return the status. */
static int run_job(struct job *job, char *error, size_t size)
{
    int status = blocking_call(job);

    if (status != 0) write_error(job, error, size);
    return status;
}

/* ---- events of a candidate, in the loop's thread ---- */

/* forget_events - free the events of the candidate: none comes any more. */
static void forget_event(const quorlock_blocking_candidate *handle, struct blocking_event **event)
{
    if (*event != NULL) blocking_event_free(&handle->blocking->events, *event, blocking_here(handle->blocking));
    *event = NULL;
}

static void forget_events(quorlock_blocking_candidate *handle)
{
    forget_event(handle, &handle->elected);
    forget_event(handle, &handle->deposed);
    forget_event(handle, &handle->ended);
}

static void blocking_election_destroy(quorlock_blocking_candidate *handle)
{
    forget_events(handle);
    pthread_cond_destroy(&handle->changed);
    free(handle);
}

/* use - keep the memory of the handle. The caller holds the mutex. */
static void use(quorlock_blocking_candidate *handle)
{
    handle->n_using++;
}

/* use_no_more - undo use(); it may free the handle. The caller holds the mutex. */
static void use_no_more(quorlock_blocking_candidate *handle)
{
    if (--handle->n_using == 0 && handle->freed) blocking_election_destroy(handle);
}

/* set_standing - note that the candidate has a candidacy, and does not lead. */
static void set_standing(quorlock_blocking_candidate *handle)
{
    pthread_mutex_lock(&handle->blocking->mutex);
    handle->term = 0;
    handle->standing = true;
    pthread_mutex_unlock(&handle->blocking->mutex);
}

/* set_end - note that the candidacy has ended, and wake waiting calls. The caller holds the mutex. */
static void set_end(quorlock_blocking_candidate *handle, int status)
{
    handle->term = 0;
    handle->standing = false;
    handle->status = status;
    handle->shut_out = handle->blocking->shut;
    handle->n_ends++;
    pthread_cond_broadcast(&handle->changed);
}

/* begin_callback - keep the handle while a callback of the caller runs, which may free it. Waiting calls are woken
 * after the callback, so it has returned before they do. */
static void begin_callback(quorlock_blocking_candidate *handle)
{
    pthread_mutex_lock(&handle->blocking->mutex);
    use(handle);
    pthread_mutex_unlock(&handle->blocking->mutex);
}

static void on_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    quorlock_blocking_candidate *handle = arg;
    quorlock_blocking *blocking = handle->blocking;

    begin_callback(handle);
    if (handle->told.elected != NULL) {
        handle->told.elected(candidate, term, handle->told.arg);
    } else if (handle->elected != NULL) {
        blocking_event_put(&blocking->events, handle->elected, &(struct quorlock_event){.term = term});
    }
    pthread_mutex_lock(&blocking->mutex);
    if (!handle->freed) handle->term = term;
    pthread_cond_broadcast(&handle->changed);
    use_no_more(handle);
    pthread_mutex_unlock(&blocking->mutex);
}

static void on_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    quorlock_blocking_candidate *handle = arg;
    uint64_t term = handle->term; /* only this thread writes it */

    set_standing(handle);
    if (handle->blocking->shut) (void)quorlock_resign(candidate);
    if (handle->told.deposed != NULL) {
        handle->told.deposed(candidate, loss, handle->told.arg);
    } else if (handle->deposed != NULL) {
        blocking_events_put_loss(&handle->blocking->events, handle->deposed, term, loss);
    }
}

static void put_end(quorlock_blocking_candidate *handle, int status, const char *text)
{
    struct quorlock_event contents = {.status = status};

    snprintf(contents.text, sizeof(contents.text), "%s", text != NULL ? text : "");
    blocking_event_put(&handle->blocking->events, handle->ended, &contents);
}

static void blocking_election_on_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    quorlock_blocking_candidate *handle = arg;
    quorlock_blocking *blocking = handle->blocking;

    begin_callback(handle);
    if (handle->told.ended != NULL) {
        handle->told.ended(candidate, status, text, handle->told.arg);
    } else if (handle->ended != NULL) {
        put_end(handle, status, text);
    }
    pthread_mutex_lock(&blocking->mutex);
    if (!handle->freed) set_end(handle, status);
    use_no_more(handle);
    pthread_mutex_unlock(&blocking->mutex);
}

/* ---- jobs ---- */

/* blocking_election_make_events - make the events of the candidate, if the client has events. */
static int blocking_election_make_events(quorlock_blocking_candidate *handle)
{
    void *arg = handle->told.arg;

    if (!blocking_events_on(&handle->blocking->events)) return 0;
    handle->elected = blocking_event_new(QUORLOCK_EVENT_ELECTED, handle, arg);
    handle->deposed = blocking_event_new(QUORLOCK_EVENT_DEPOSED, handle, arg);
    handle->ended = blocking_event_new(QUORLOCK_EVENT_RESIGNED, handle, arg);
    return handle->elected != NULL && handle->deposed != NULL && handle->ended != NULL ? 0 : QUORLOCK_NOMEM;
}

struct candidate_job {
    struct job job;
    const char *name;
    const struct quorlock_candidate_options *options;
};

static void blocking_election_run_new(struct job *job)
{
    const struct candidate_job *call = CONTAINER_OF(job, struct candidate_job, job);
    quorlock_blocking *blocking = job->blocking;
    quorlock_blocking_candidate *handle = job->candidate;
    const struct quorlock_candidate_options *given = call->options;
    struct quorlock_candidate_options options = {.size = sizeof(options)};
    struct caller_error error;
    int status = blocking_refuse_new(job);

    if (status == 0 && given != NULL) {
        status = caller_copy(&options, sizeof(options), given, given->size, "quorlock_candidate_options", &error);
        if (status != 0) (void)blocking_refuse(job, status, error.text);
    }
    handle->told = options;
    if (status == 0 && blocking_election_make_events(handle) != 0)
        status = blocking_refuse(job, QUORLOCK_NOMEM, quorlock_status_text(QUORLOCK_NOMEM));
    if (status != 0) {
        blocking_done(job);
        return;
    }
    options.elected = on_elected;
    options.deposed = on_deposed;
    options.ended = blocking_election_on_ended;
    options.arg = handle;
    status = quorlock_candidate_new(&handle->candidate, blocking->client, call->name, &options);
    if (status != 0) {
        blocking_fail(job, status);
        return;
    }
    client_show_candidate(handle->candidate, &handle->shown);
    list_add(&blocking->candidates, &handle->link);
    blocking_join(blocking);
    blocking_done(job);
}

/* A call that waits for a candidacy. */
struct wait_job {
    struct job job;
    unsigned n_ends; /* when the call began to wait */
};

/* will_wait - keep the handle until await(), because another thread may free it before. */
static void will_wait(struct job *job)
{
    quorlock_blocking_candidate *handle = job->candidate;

    pthread_mutex_lock(&handle->blocking->mutex);
    CONTAINER_OF(job, struct wait_job, job)->n_ends = handle->n_ends;
    use(handle);
    handle->blocking->n_callers++;
    pthread_mutex_unlock(&handle->blocking->mutex);
}

static void run_stand(struct job *job)
{
    quorlock_blocking_candidate *handle = job->candidate;
    int status = blocking_refuse_new(job);

    if (status != 0) {
        blocking_done(job);
        return;
    }
    status = quorlock_stand(handle->candidate);
    /* If it has a candidacy already, this call waits for the same one. */
    if (status != 0 && !(status == QUORLOCK_STATE && handle->standing)) {
        blocking_fail(job, status);
        return;
    }
    if (status == 0) set_standing(handle);
    will_wait(job);
    blocking_done(job);
}

static void run_resign(struct job *job)
{
    quorlock_blocking_candidate *handle = job->candidate;
    int status = quorlock_resign(handle->candidate);

    if (status != 0) {
        blocking_fail(job, status);
        return;
    }
    set_standing(handle);
    will_wait(job);
    blocking_done(job);
}

/* let_go - end the candidacy for waiting calls, and free the handle with the last of them. */
static void let_go(quorlock_blocking_candidate *handle)
{
    pthread_mutex_t *mutex = &handle->blocking->mutex;

    pthread_mutex_lock(mutex);
    set_end(handle, QUORLOCK_CANCELED);
    use(handle);
    handle->freed = true;
    use_no_more(handle);
    pthread_mutex_unlock(mutex);
}

static void blocking_election_run_free(struct job *job)
{
    quorlock_blocking_candidate *handle = job->candidate;

    (void)blocking_withdraw(job->blocking, handle, true);
    list_remove(&job->blocking->candidates, &handle->link);
    quorlock_candidate_free(handle->candidate);
    forget_events(handle);
    let_go(handle);
    blocking_done(job);
}

void blocking_election_shutdown(quorlock_blocking *blocking)
{
    LIST_WALK (quorlock_blocking_candidate, handle, &blocking->candidates, link) {
        if (quorlock_candidate_valid_ms(handle->candidate) == 0) (void)quorlock_resign(handle->candidate);
    }
}

/* ---- candidates ---- */

int quorlock_blocking_candidate_new(quorlock_blocking_candidate **ret, quorlock_blocking *blocking, const char *name,
                                    const struct quorlock_candidate_options *options, char *error, size_t error_size)
{
    quorlock_blocking_candidate *handle = ret != NULL ? calloc(1, sizeof(*handle)) : NULL;
    struct candidate_job call = {.job = {.run = blocking_election_run_new, .blocking = blocking, .candidate = handle},
                                 .name = name,
                                 .options = options};

    if (ret == NULL) return blocking_no_place("candidate", error, error_size);
    if (handle == NULL || pthread_cond_init(&handle->changed, NULL) != 0) {
        free(handle);
        (void)blocking_refuse(&call.job, QUORLOCK_NOMEM, quorlock_status_text(QUORLOCK_NOMEM));
        write_error(&call.job, error, error_size);
        return QUORLOCK_NOMEM;
    }
    handle->blocking = blocking;
    if (run_job(&call.job, error, error_size) != 0) {
        blocking_election_destroy(handle);
        return call.job.result.status;
    }
    *ret = handle;
    return 0;
}

/* blocking_election_client_of - return the client of the candidate, or NULL without a candidate. */
static quorlock_blocking *blocking_election_client_of(const quorlock_blocking_candidate *candidate)
{
    return candidate != NULL ? candidate->blocking : NULL;
}

/* await - wait until the candidacy of will_wait() has ended or, with until_elected, the candidate leads. */
static int await(const struct wait_job *call, bool until_elected, uint64_t *ret_term)
{
    quorlock_blocking_candidate *handle = call->job.candidate;
    quorlock_blocking *blocking = handle->blocking;
    bool has_ended;
    int status;

    pthread_mutex_lock(&blocking->mutex);
    while (handle->n_ends == call->n_ends && !(until_elected && handle->term != 0))
        pthread_cond_wait(&handle->changed, &blocking->mutex);
    has_ended = handle->n_ends != call->n_ends;
    *ret_term = has_ended ? 0 : handle->term;
    status = has_ended ? handle->status : 0;
    if (until_elected && has_ended && status == 0) status = handle->shut_out ? QUORLOCK_CLOSED : QUORLOCK_CANCELED;
    use_no_more(handle);
    if (--blocking->n_callers == 0) pthread_cond_signal(&blocking->no_callers);
    pthread_mutex_unlock(&blocking->mutex);
    return status;
}

int quorlock_blocking_stand(quorlock_blocking_candidate *candidate, uint64_t *ret_term)
{
    struct wait_job call = {
        .job = {.run = run_stand, .blocking = blocking_election_client_of(candidate), .candidate = candidate}};
    uint64_t term = 0;
    int status = run_job(&call.job, NULL, 0);

    if (status != 0) return status;
    status = await(&call, true, &term);
    if (status == 0 && ret_term != NULL) *ret_term = term;
    return status;
}

int quorlock_blocking_resign(quorlock_blocking_candidate *candidate)
{
    struct wait_job call = {
        .job = {.run = run_resign, .blocking = blocking_election_client_of(candidate), .candidate = candidate}};
    uint64_t term = 0;
    int status = run_job(&call.job, NULL, 0);

    return status != 0 ? status : await(&call, false, &term);
}

void quorlock_blocking_candidate_free(quorlock_blocking_candidate *candidate)
{
    quorlock_blocking *blocking = blocking_election_client_of(candidate);
    struct job job = {.run = blocking_election_run_free, .blocking = blocking, .candidate = candidate};

    if (candidate == NULL) return;
    if (!blocking_here(blocking)) {
        /* In a child of fork() no call waits for it. */
        forget_events(candidate);
        free(candidate);
    } else if (blocking_do_anywhere(&job) != 0) {
        let_go(candidate);
    }
    blocking_leave(blocking);
}

uint32_t quorlock_blocking_candidate_valid_ms(quorlock_blocking_candidate *candidate)
{
    return candidate != NULL ? blocking_valid_ms(candidate->blocking, &candidate->shown) : 0;
}

uint64_t quorlock_blocking_candidate_term(quorlock_blocking_candidate *candidate)
{
    uint64_t term;

    if (candidate == NULL || !blocking_here(candidate->blocking)) return 0;
    pthread_mutex_lock(&candidate->blocking->mutex);
    term = candidate->term;
    pthread_mutex_unlock(&candidate->blocking->mutex);
    return term;
}

/* ---- observers ---- */

static void put_leader(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    quorlock_blocking_observer *handle = arg;
    struct quorlock_event contents = {.state = leader->state, .term = leader->term, .valid_ms = leader->valid_ms};

    (void)observer;
    snprintf(contents.text, sizeof(contents.text), "%s", leader->text != NULL ? leader->text : "");
    snprintf(contents.token, sizeof(contents.token), "%s", leader->owner != NULL ? leader->owner : "");
    blocking_event_put(&handle->blocking->events, handle->changed, &contents);
}

/* with_event - return the options; with an event instead of a callback that is missing, if the client has events. NULL:
 * no memory. */
static const struct quorlock_observer_options *with_event(quorlock_blocking_observer *handle,
                                                          const struct quorlock_observer_options *given)
{
    struct caller_error error;

    /* What is wrong with the options is reported by who uses them. */
    if (!blocking_events_on(&handle->blocking->events) || given == NULL ||
        caller_copy(&handle->told, sizeof(handle->told), given, given->size, "quorlock_observer_options", &error) !=
            0 ||
        handle->told.changed != NULL)
        return given;
    handle->changed = blocking_event_new(QUORLOCK_EVENT_LEADER_CHANGED, handle, handle->told.arg);
    handle->told.size = sizeof(handle->told);
    handle->told.changed = put_leader;
    handle->told.arg = handle;
    return handle->changed != NULL ? &handle->told : NULL;
}

struct observer_job {
    struct job job;
    quorlock_blocking_observer *observer;
    const char *name; /* this and the options: of a new one */
    const struct quorlock_observer_options *options;
};

static void run_observe(struct job *job)
{
    const struct observer_job *call = CONTAINER_OF(job, struct observer_job, job);
    quorlock_blocking_observer *handle = call->observer;
    const struct quorlock_observer_options *options = call->options;
    int status = blocking_refuse_new(job);

    if (status == 0 && options != NULL) {
        options = with_event(handle, options);
        if (options == NULL) status = blocking_refuse(job, QUORLOCK_NOMEM, quorlock_status_text(QUORLOCK_NOMEM));
    }
    if (status != 0) {
        blocking_done(job);
        return;
    }
    status = quorlock_observe(&handle->observer, job->blocking->client, call->name, options);
    if (status != 0) {
        blocking_fail(job, status);
        return;
    }
    list_add(&job->blocking->observers, &handle->link);
    blocking_join(job->blocking);
    blocking_done(job);
}

int quorlock_blocking_observe(quorlock_blocking_observer **ret, quorlock_blocking *blocking, const char *name,
                              const struct quorlock_observer_options *options, char *error, size_t error_size)
{
    quorlock_blocking_observer *handle = ret != NULL ? calloc(1, sizeof(*handle)) : NULL;
    struct observer_job call = {
        .job = {.run = run_observe, .blocking = blocking}, .observer = handle, .name = name, .options = options};

    if (ret == NULL) return blocking_no_place("observer", error, error_size);
    if (handle == NULL) {
        (void)blocking_refuse(&call.job, QUORLOCK_NOMEM, quorlock_status_text(QUORLOCK_NOMEM));
        write_error(&call.job, error, error_size);
        return QUORLOCK_NOMEM;
    }
    handle->blocking = blocking;
    if (run_job(&call.job, error, error_size) != 0) {
        free(handle->changed);
        free(handle);
        return call.job.result.status;
    }
    *ret = handle;
    return 0;
}

static void run_forget(struct job *job)
{
    quorlock_blocking_observer *handle = CONTAINER_OF(job, struct observer_job, job)->observer;

    list_remove(&job->blocking->observers, &handle->link);
    quorlock_observer_free(handle->observer);
    blocking_done(job);
}

void quorlock_blocking_observer_free(quorlock_blocking_observer *observer)
{
    quorlock_blocking *blocking = observer != NULL ? observer->blocking : NULL;
    struct observer_job call = {.job = {.run = run_forget, .blocking = blocking}, .observer = observer};

    if (observer == NULL) return;
    (void)blocking_do_anywhere(&call.job);
    blocking_event_free(&blocking->events, observer->changed, blocking_here(blocking));
    free(observer);
    blocking_leave(blocking);
}
