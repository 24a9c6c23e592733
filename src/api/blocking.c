/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.c - the blocking API: a loop's thread behind a queue of jobs
 *
 * A call makes a job on its stack, puts it into the queue, wakes the loop through an eventfd, and waits until the
 * loop's thread has marked the job done. A function that only starts an operation allocates its job, which ends with
 * its callback. Only that thread uses the client and its locks, so libevent needs no locking (evthread_use_pthreads
 * would affect the whole process). The mutex guards the queue, the done marks and the count of callers.
 */
#include <quorlock/blocking.h>

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/blocking_election.h"
#include "api/blocking_loop.h"
#include "api/blocking_report.h"
#include "api/client.h"
#include "base/caller.h"
#include "base/own_base.h"
#include "base/system_os.h"

struct quorlock_blocking_lock {
    quorlock_blocking *blocking;
    struct expiry shown; /* for any thread */
    /* The loop's thread only. */
    quorlock *lock;
    struct link link; /* in blocking->locks */
    struct job *acquiring;
    bool stopped;
    quorlock_blocking_lost_cb lost;
    void *lost_arg;
    struct blocking_event *loss; /* NULL: the client has no events */
};

/* ---- jobs, in the loop's thread ---- */

/* take_result - copy the result to the job. */
static void take_result(struct job *job, const struct quorlock_result *result)
{
    job->result = (struct quorlock_blocking_result){BLOCKING_RESULT_OF(result)};
    snprintf(job->result.text, sizeof(job->result.text), "%s", result->text != NULL ? result->text : "");
    snprintf(job->result.token, sizeof(job->result.token), "%s", result->token != NULL ? result->token : "");
}

/* on_result - end an extend or a release. The handle may be freed. */
static void on_result(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct job *job = arg;

    (void)lock;
    take_result(job, result);
    blocking_done(job);
}

/* on_acquired - end an acquire or an adoption. job->lock is NULL if the handle was freed. */
static void on_acquired(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct job *job = arg;

    (void)lock;
    if (job->lock != NULL) job->lock->acquiring = NULL;
    take_result(job, result);
    if (job->lock != NULL && result->status == QUORLOCK_CANCELED) (void)blocking_refuse_new(job);
    blocking_done(job);
}

/* acquire_or_adopt - acquire the lock; adopt it, if there is a token. */
static void acquire_or_adopt(struct job *job, const char *token)
{
    int status = blocking_refuse_new(job);

    if (status == 0 && job->lock->stopped)
        status = blocking_refuse(job, QUORLOCK_CANCELED, "the lock was stopped: it cannot be acquired any more");
    if (status != 0) {
        blocking_done(job);
        return;
    }
    status = token != NULL ? quorlock_adopt(job->lock->lock, token, on_acquired, job)
                           : quorlock_acquire(job->lock->lock, on_acquired, job);
    if (status == 0) {
        job->lock->acquiring = job;
    } else {
        blocking_fail(job, status);
    }
}

static void run_acquire(struct job *job)
{
    acquire_or_adopt(job, NULL);
}

struct adopt_job {
    struct job job;
    const char *token;
};

static void run_adopt(struct job *job)
{
    acquire_or_adopt(job, CONTAINER_OF(job, struct adopt_job, job)->token);
}

struct extend_job {
    struct job job;
    uint32_t lease_ms;
};

static void run_extend(struct job *job)
{
    int status = quorlock_extend(job->lock->lock, CONTAINER_OF(job, struct extend_job, job)->lease_ms, on_result, job);

    if (status != 0) blocking_fail(job, status);
}

static void run_release(struct job *job)
{
    int status = quorlock_release(job->lock->lock, on_result, job);

    if (status != 0) blocking_fail(job, status);
}

static void run_detach(struct job *job)
{
    const char *token = NULL;
    int status = quorlock_detach(job->lock->lock, &token, &job->result.fence, &job->result.valid_ms);

    if (status != 0) {
        blocking_fail(job, status);
        return;
    }
    snprintf(job->result.token, sizeof(job->result.token), "%s", token);
    snprintf(job->result.text, sizeof(job->result.text), "detached, valid for another %u ms", job->result.valid_ms);
    blocking_done(job);
}

static void end_acquire(quorlock_blocking_lock *handle)
{
    if (handle->acquiring != NULL) (void)quorlock_cancel(handle->lock);
}

static void run_stop(struct job *job)
{
    job->lock->stopped = true;
    end_acquire(job->lock);
    blocking_done(job);
}

static void run_shutdown(struct job *job)
{
    quorlock_blocking *blocking = job->blocking;

    blocking->shut = true;
    LIST_WALK (quorlock_blocking_lock, handle, &blocking->locks, link) end_acquire(handle);
    blocking_election_shutdown(blocking);
    blocking_done(job);
}

static void run_cancel(struct job *job)
{
    bool any = blocking_withdraw(job->blocking, job->lock, false);

    job->result.status = quorlock_cancel(job->lock->lock);
    if (any && job->result.status == QUORLOCK_STATE) job->result.status = QUORLOCK_OK;
    blocking_done(job);
}

struct statistics_job {
    struct job job;
    quorlock_blocking_statistics_cb cb;
    void *arg;
};

static void run_statistics(struct job *job)
{
    const struct statistics_job *call = CONTAINER_OF(job, struct statistics_job, job);
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    job->result.status = quorlock_client_statistics(job->blocking->client, &statistics);
    if (job->result.status == 0) call->cb(&statistics, call->arg);
    blocking_done(job);
}

/* A question to all nodes, whose report goes to the thread that asked. */
struct report_job {
    struct job job;
    int (*ask)(quorlock_client *, struct report_job *);
    const char *key;   /* or the pattern of a list */
    const char *owner; /* of a break; NULL: any */
    struct blocking_reports reports;
};

static void blocking_on_report(int status, const struct quorlock_report *report, void *arg)
{
    struct report_job *asked = arg;

    asked->job.result.status = status;
    blocking_reports_keep(&asked->reports, status, report);
    blocking_done(&asked->job);
}

static void blocking_on_listing(int status, const struct quorlock_listing *listing, void *arg)
{
    struct report_job *asked = arg;

    asked->job.result.status = status;
    blocking_reports_keep_listing(&asked->reports, status, listing);
    if (listing->more == 0) blocking_done(&asked->job);
}

/* The three questions. */

static int ask_inspect(quorlock_client *client, struct report_job *asked)
{
    return quorlock_inspect(client, asked->key, blocking_on_report, asked);
}

static int ask_break(quorlock_client *client, struct report_job *asked)
{
    return quorlock_break_owner(client, asked->key, asked->owner, blocking_on_report, asked);
}

static int ask_list(quorlock_client *client, struct report_job *asked)
{
    return quorlock_list(client, asked->key, blocking_on_listing, asked);
}

static void run_ask(struct job *job)
{
    struct report_job *asked = CONTAINER_OF(job, struct report_job, job);
    int status = blocking_refuse_new(job);

    if (status != 0) {
        blocking_done(job);
        return;
    }
    status = asked->ask(job->blocking->client, asked);
    if (status != 0) blocking_fail(job, status);
}

struct metrics_job {
    struct job job;
    const struct quorlock_metrics_options *options;
    char *buffer;
    size_t size, *ret_length;
};

static void run_metrics(struct job *job)
{
    const struct metrics_job *call = CONTAINER_OF(job, struct metrics_job, job);

    job->result.status =
        quorlock_client_metrics(job->blocking->client, call->options, call->buffer, call->size, call->ret_length);
    blocking_done(job);
}

struct credentials_job {
    struct job job;
    const char *user, *password;
};

static void run_set_credentials(struct job *job)
{
    const struct credentials_job *call = CONTAINER_OF(job, struct credentials_job, job);

    job->result.status = quorlock_client_set_credentials(job->blocking->client, call->user, call->password);
    blocking_done(job);
}

static void blocking_on_lost(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    quorlock_blocking_lock *handle = arg;

    (void)lock;
    if (handle->lost != NULL) {
        handle->lost(handle, loss, handle->lost_arg);
    } else if (handle->loss != NULL) {
        blocking_events_put_loss(&handle->blocking->events, handle->loss, 0, loss);
    }
}

struct on_lost_job {
    struct job job;
    quorlock_blocking_lost_cb cb;
    void *arg;
};

static void run_on_lost(struct job *job)
{
    const struct on_lost_job *call = CONTAINER_OF(job, struct on_lost_job, job);

    job->lock->lost = call->cb;
    job->lock->lost_arg = call->arg;
    if (job->lock->loss != NULL) blocking_event_set_arg(&job->blocking->events, job->lock->loss, call->arg);
    blocking_done(job);
}

struct new_job {
    struct job job;
    const char *const *keys;
    size_t n_keys;
    const struct quorlock_options *options;
};

static void blocking_run_new(struct job *job)
{
    const struct new_job *call = CONTAINER_OF(job, struct new_job, job);
    quorlock_blocking *blocking = job->blocking;
    quorlock_blocking_lock *handle = job->lock;
    int status;

    if (blocking_refuse_new(job) != 0) {
        blocking_done(job);
        return;
    }
    if (blocking_events_on(&blocking->events)) {
        handle->loss = blocking_event_new(QUORLOCK_EVENT_LOST, handle, NULL);
        if (handle->loss == NULL) {
            (void)blocking_refuse(job, QUORLOCK_NOMEM, quorlock_status_text(QUORLOCK_NOMEM));
            blocking_done(job);
            return;
        }
    }
    status = quorlock_new(&handle->lock, blocking->client, call->keys, call->n_keys, call->options);
    if (status != 0) {
        blocking_fail(job, status);
        return;
    }
    client_show_lock(handle->lock, &handle->shown);
    quorlock_on_lost(handle->lock, blocking_on_lost, handle);
    handle->blocking = blocking;
    blocking_join(blocking);
    list_add(&blocking->locks, &handle->link);
    blocking_done(job);
}

static void blocking_run_free(struct job *job)
{
    quorlock_blocking_lock *handle = job->lock;

    (void)blocking_withdraw(job->blocking, handle, true);
    list_remove(&job->blocking->locks, &handle->link);
    /* Its result is CANCELED, and comes when the handle does not exist any more. */
    if (handle->acquiring != NULL) handle->acquiring->lock = NULL;
    quorlock_free(handle->lock);
    blocking_done(job);
}

/* blocking_on_closed - end all jobs that are left. After it the loop's thread touches no handle. Without the wake event
 * the base has no event, so the loop ends by itself. */
static void blocking_on_closed(void *arg)
{
    struct job *close_job = arg, *job;
    quorlock_blocking *blocking = close_job->blocking;

    event_del(blocking->wake);
    pthread_mutex_lock(&blocking->mutex);
    blocking->closed = true;
    pthread_mutex_unlock(&blocking->mutex);
    blocking_take_jobs(blocking);
    while ((job = blocking_next_job(blocking)) != NULL) {
        (void)blocking_refuse(job, QUORLOCK_CLOSED, quorlock_status_text(QUORLOCK_CLOSED));
        blocking_done(job);
    }
    blocking_done(close_job);
}

static void run_events(struct job *job)
{
    quorlock_blocking *blocking = job->blocking;

    if (!blocking_events_on(&blocking->events)) {
        /* Whoever reads the events uses the client until it has read the last one. */
        if (atomic_load(&blocking->n_users) > 1) {
            job->result.status = QUORLOCK_STATE;
        } else {
            job->result.status = blocking_events_start(&blocking->events);
        }
        if (job->result.status == 0) {
            blocking_join(blocking);
            client_log_from(blocking->client, QUORLOCK_LOG_DEBUG);
        }
    }
    blocking_done(job);
}

static void run_close(struct job *job)
{
    int status = quorlock_client_close(job->blocking->client, blocking_on_closed, job);

    /* Another thread is closing it. */
    if (status != 0) blocking_fail(job, status);
}

/* ---- life ---- */

static void *loop(void *arg)
{
    const quorlock_blocking *blocking = arg;

    event_base_dispatch(blocking->base);
    return NULL;
}

/* open_shown - make the memory that any thread reads. */
static int open_shown(quorlock_blocking *blocking)
{
    struct system system = system_libevent(blocking->base, NULL);

    blocking->system = system;
    blocking->pid = getpid();
    blocking->shown = system.ops->wiped_new(&system, sizeof(*blocking->shown));
    blocking->wiped = blocking->shown != NULL;
    if (!blocking->wiped) blocking->shown = calloc(1, sizeof(*blocking->shown));
    if (blocking->shown == NULL) return QUORLOCK_NOMEM;
    atomic_store(&blocking->shown->here, 1);
    return 0;
}

static int open_base(quorlock_blocking *blocking)
{
    blocking->base = own_base_new();
    if (blocking->base == NULL) return QUORLOCK_NOMEM;
    blocking->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (blocking->wake_fd < 0) return QUORLOCK_NOMEM;
    blocking->wake = event_new(blocking->base, blocking->wake_fd, EV_READ | EV_PERSIST, blocking_on_wake, blocking);
    if (blocking->wake == NULL || event_add(blocking->wake, NULL) != 0) return QUORLOCK_NOMEM;
    return 0;
}

static int blocking_start_thread(quorlock_blocking *blocking)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&blocking->thread, NULL, loop, blocking);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed != 0 ? QUORLOCK_NOMEM : 0;
}

static void close_base(quorlock_blocking *blocking)
{
    if (blocking->wake != NULL) event_free(blocking->wake);
    if (blocking->wake_fd >= 0) close(blocking->wake_fd);
    if (blocking->base != NULL) event_base_free(blocking->base);
}

/* undo_client - close the client. No thread runs its loop yet, so this one does. */
static void undo_client(quorlock_blocking *blocking)
{
    event_del(blocking->wake);
    quorlock_client_close(blocking->client, NULL, NULL);
    event_base_dispatch(blocking->base);
}

static int fail_open(const struct quorlock_client_options *options)
{
    caller_report(options, "cannot start the loop: out of memory, descriptors or threads");
    return QUORLOCK_NOMEM;
}

/* Make a client without a loop; NULL: out of memory. */
static quorlock_blocking *blocking_make(void)
{
    quorlock_blocking *blocking = calloc(1, sizeof(*blocking));

    if (blocking == NULL) return NULL;
    *blocking = (quorlock_blocking){.n_users = 1,
                                    .wake_fd = -1,
                                    .mutex = PTHREAD_MUTEX_INITIALIZER,
                                    .no_callers = PTHREAD_COND_INITIALIZER,
                                    .events = {.mutex = PTHREAD_MUTEX_INITIALIZER}};
    if (open_shown(blocking) == 0) return blocking;
    free(blocking);
    return NULL;
}

int quorlock_blocking_open(quorlock_blocking **ret, const struct quorlock_client_options *options)
{
    struct quorlock_client_options copy;
    quorlock_blocking *blocking;
    int status;

    if (ret == NULL) {
        caller_report(options, "ret is NULL: there is no place for the client");
        return QUORLOCK_INVAL;
    }
    blocking = blocking_make();
    if (blocking == NULL) return fail_open(options);
    status = open_base(blocking);
    if (status != 0) {
        status = fail_open(options);
        goto failed;
    }
    options = blocking_events_options(&blocking->events, options, &copy);
    status = client_new_shown(&blocking->client, blocking->base, options, &blocking->shown->clock);
    if (status != 0) goto failed;
    /* Until somebody wants events, warnings are kept for them, and the rest is not even written. */
    if (options == &copy && copy.log_arg == &blocking->events) client_log_from(blocking->client, QUORLOCK_LOG_WARN);
    status = blocking_start_thread(blocking);
    if (status != 0) {
        status = fail_open(options);
        undo_client(blocking);
        goto failed;
    }
    *ret = blocking;
    return 0;
failed:
    close_base(blocking);
    blocking_leave(blocking);
    return status;
}

int quorlock_blocking_shutdown(quorlock_blocking *blocking)
{
    if (blocking == NULL) return 0;
    return blocking_do_anywhere(&(struct job){.run = run_shutdown, .blocking = blocking});
}

int quorlock_blocking_close(quorlock_blocking *blocking)
{
    struct job job = {.run = run_close, .blocking = blocking};

    if (blocking == NULL) return 0;
    if (!blocking_here(blocking)) {
        /* In a child of fork() nobody reads the events. */
        if (blocking->events.on) blocking_leave(blocking);
        blocking_leave(blocking);
        return 0;
    }
    if (blocking_call(&job) != 0) return job.result.status;
    pthread_join(blocking->thread, NULL);
    /* Callers whose calls ended with CLOSED may not have left the mutex yet. */
    pthread_mutex_lock(&blocking->mutex);
    while (blocking->n_callers > 0) pthread_cond_wait(&blocking->no_callers, &blocking->mutex);
    pthread_mutex_unlock(&blocking->mutex);
    close_base(blocking);
    if (blocking_events_on(&blocking->events)) blocking_events_close(&blocking->events);
    blocking_leave(blocking);
    return 0;
}

int quorlock_blocking_events(quorlock_blocking *blocking, int *ret_fd)
{
    int status;

    if (ret_fd == NULL) return QUORLOCK_INVAL;
    status = blocking_call(&(struct job){.run = run_events, .blocking = blocking});
    if (status == 0) *ret_fd = blocking->events.fd;
    return status;
}

int quorlock_blocking_next_event(quorlock_blocking *blocking, struct quorlock_event *event)
{
    int status;

    if (blocking == NULL) return QUORLOCK_INVAL;
    if (!blocking_here(blocking)) return QUORLOCK_CLOSED;
    status = blocking_events_next(&blocking->events, event);
    if (status == 0 && event->type == QUORLOCK_EVENT_CLOSED) blocking_leave(blocking);
    return status;
}

/* ---- calls ---- */

/* blocking_give - copy the result to the caller's struct, which may be shorter or longer than ours. */
static void blocking_give(struct quorlock_blocking_result *ret, const struct quorlock_blocking_result *result)
{
    size_t size = ret->size;

    memcpy(ret, result, size < sizeof(*ret) ? size : sizeof(*ret));
    ret->size = size;
}

/* check_result - check the size of the caller's result, which may be NULL. */
static int check_result(const struct quorlock_blocking_result *given)
{
    /* The size of the struct in the first release. It never changes, even when members are added. */
    size_t least = offsetof(struct quorlock_blocking_result, token) + QUORLOCK_BLOCKING_TOKEN_SIZE;
    struct caller_error error;

    if (given == NULL) return 0;
    return caller_check(least, sizeof(*given), given, given->size, "quorlock_blocking_result", &error);
}

/* blocking_client_of - return the client of the lock, or NULL without a lock. */
static quorlock_blocking *blocking_client_of(const quorlock_blocking_lock *lock)
{
    return lock != NULL ? lock->blocking : NULL;
}

/* call - run the job, and copy its result to the caller. */
static int call(struct job *job, struct quorlock_blocking_result *result)
{
    job->blocking = blocking_client_of(job->lock);
    if (check_result(result) != 0) return QUORLOCK_INVAL;
    (void)blocking_call(job);
    if (result != NULL) blocking_give(result, &job->result);
    return job->result.status;
}

int quorlock_blocking_new(quorlock_blocking_lock **ret, quorlock_blocking *blocking, const char *const *keys,
                          size_t n_keys, const struct quorlock_options *options, char *error, size_t error_size)
{
    quorlock_blocking_lock *handle = ret != NULL ? calloc(1, sizeof(*handle)) : NULL;
    struct new_job call = {.job = {.run = blocking_run_new, .blocking = blocking, .lock = handle},
                           .keys = keys,
                           .n_keys = n_keys,
                           .options = options};
    const struct quorlock_blocking_result *result = &call.job.result;

    if (ret == NULL) return blocking_no_place("lock", error, error_size);
    if (handle == NULL) {
        (void)blocking_refuse(&call.job, QUORLOCK_NOMEM, quorlock_status_text(QUORLOCK_NOMEM));
        goto failed;
    }
    if (blocking_call(&call.job) != 0) goto failed;
    *ret = handle;
    return 0;
failed:
    if (handle != NULL) free(handle->loss);
    free(handle);
    if (error != NULL && error_size > 0) snprintf(error, error_size, "%s", result->text);
    return result->status;
}

int quorlock_blocking_acquire(quorlock_blocking_lock *lock, struct quorlock_blocking_result *result)
{
    return call(&(struct job){.run = run_acquire, .lock = lock, .cancelable = true}, result);
}

int quorlock_blocking_extend(quorlock_blocking_lock *lock, uint32_t lease_ms, struct quorlock_blocking_result *result)
{
    struct extend_job extend = {.job = {.run = run_extend, .lock = lock, .cancelable = true}, .lease_ms = lease_ms};

    return call(&extend.job, result);
}

int quorlock_blocking_release(quorlock_blocking_lock *lock, struct quorlock_blocking_result *result)
{
    return call(&(struct job){.run = run_release, .lock = lock}, result);
}

int quorlock_blocking_adopt(quorlock_blocking_lock *lock, const char *token, struct quorlock_blocking_result *result)
{
    struct adopt_job adopt = {.job = {.run = run_adopt, .lock = lock, .cancelable = true}, .token = token};

    if (token == NULL) return QUORLOCK_INVAL;
    return call(&adopt.job, result);
}

int quorlock_blocking_detach(quorlock_blocking_lock *lock, struct quorlock_blocking_result *result)
{
    if (result == NULL) return QUORLOCK_INVAL;
    return call(&(struct job){.run = run_detach, .lock = lock}, result);
}

int quorlock_with(quorlock_blocking *blocking, const char *key, const struct quorlock_options *options,
                  quorlock_with_cb fn, void *arg, struct quorlock_blocking_result *result)
{
    const struct quorlock_options defaults = {.size = sizeof(defaults)};
    struct quorlock_blocking_result last = {.size = sizeof(last)};
    quorlock_blocking_lock *lock = NULL;
    int status;

    if (fn == NULL || check_result(result) != 0) return QUORLOCK_INVAL;
    status = quorlock_blocking_new(&lock, blocking, &key, 1, options != NULL ? options : &defaults, last.text,
                                   sizeof(last.text));
    if (status == 0) {
        status = quorlock_blocking_acquire(lock, &last);
    } else {
        last.status = status;
    }
    if (status == 0) {
        bool kept;

        status = fn(lock, &last, arg);
        kept = quorlock_blocking_valid_ms(lock) > 0;
        /* The nodes may know of a loss that we do not know of yet. */
        (void)quorlock_blocking_release(lock, &last);
        if (!kept || last.expired != 0) status = last.status = QUORLOCK_LOST;
    }
    quorlock_blocking_free(lock);
    if (result != NULL) blocking_give(result, &last);
    return status;
}

/* blocking_start_operation - start an acquire or a release; `type` is that of the event which comes without a cb. */
static int blocking_start_operation(quorlock_blocking_lock *lock, void (*run)(struct job *), int type,
                                    quorlock_blocking_cb cb, void *arg)
{
    struct job job = {.run = run,
                      .blocking = blocking_client_of(lock),
                      .lock = lock,
                      .cancelable = type == QUORLOCK_EVENT_ACQUIRE_ENDED,
                      .cb = cb,
                      .cb_arg = arg};
    int status;

    if (cb == NULL && (lock == NULL || lock->loss == NULL)) return QUORLOCK_INVAL;
    if (cb == NULL) {
        job.event = blocking_event_new(type, lock, arg);
        if (job.event == NULL) return QUORLOCK_NOMEM;
    }
    status = blocking_start(&job);
    if (status != 0) free(job.event);
    return status;
}

int quorlock_blocking_start_acquire(quorlock_blocking_lock *lock, quorlock_blocking_cb cb, void *arg)
{
    return blocking_start_operation(lock, run_acquire, QUORLOCK_EVENT_ACQUIRE_ENDED, cb, arg);
}

int quorlock_blocking_start_release(quorlock_blocking_lock *lock, quorlock_blocking_cb cb, void *arg)
{
    return blocking_start_operation(lock, run_release, QUORLOCK_EVENT_RELEASE_ENDED, cb, arg);
}

int quorlock_blocking_cancel(quorlock_blocking_lock *lock)
{
    return blocking_do_anywhere(&(struct job){.run = run_cancel, .blocking = blocking_client_of(lock), .lock = lock});
}

int quorlock_blocking_stop(quorlock_blocking_lock *lock)
{
    return blocking_do_anywhere(&(struct job){.run = run_stop, .blocking = blocking_client_of(lock), .lock = lock});
}

void quorlock_blocking_free(quorlock_blocking_lock *lock)
{
    quorlock_blocking *blocking = blocking_client_of(lock);

    if (lock == NULL) return;
    (void)blocking_do_anywhere(&(struct job){.run = blocking_run_free, .blocking = blocking, .lock = lock});
    blocking_event_free(&blocking->events, lock->loss, blocking_here(blocking));
    free(lock);
    blocking_leave(blocking);
}

void quorlock_blocking_on_lost(quorlock_blocking_lock *lock, quorlock_blocking_lost_cb cb, void *arg)
{
    struct on_lost_job call = {
        .job = {.run = run_on_lost, .blocking = blocking_client_of(lock), .lock = lock}, .cb = cb, .arg = arg};

    (void)blocking_do_anywhere(&call.job);
}

uint32_t quorlock_blocking_valid_ms(const quorlock_blocking_lock *lock)
{
    return lock != NULL ? blocking_valid_ms(lock->blocking, &lock->shown) : 0;
}

int quorlock_blocking_set_credentials(quorlock_blocking *blocking, const char *user, const char *password)
{
    struct credentials_job call = {
        .job = {.run = run_set_credentials, .blocking = blocking}, .user = user, .password = password};

    return blocking_do_anywhere(&call.job);
}

int quorlock_blocking_statistics(quorlock_blocking *blocking, quorlock_blocking_statistics_cb cb, void *arg)
{
    struct statistics_job call = {.job = {.run = run_statistics, .blocking = blocking}, .cb = cb, .arg = arg};

    if (cb == NULL) return QUORLOCK_INVAL;
    return blocking_do_anywhere(&call.job);
}

int quorlock_blocking_metrics(quorlock_blocking *blocking, const struct quorlock_metrics_options *options, char *buffer,
                              size_t size, size_t *ret_length)
{
    struct metrics_job call = {.job = {.run = run_metrics, .blocking = blocking},
                               .options = options,
                               .buffer = buffer,
                               .size = size,
                               .ret_length = ret_length};

    return blocking_do_anywhere(&call.job);
}

/* blocking_ask - ask, and call back in this thread: renewals do not wait for that. */
static int blocking_ask(quorlock_blocking *blocking, struct report_job *asked, quorlock_report_cb report,
                        quorlock_list_cb list, void *arg)
{
    int status;

    if (report == NULL && list == NULL) return QUORLOCK_INVAL;
    asked->job.run = run_ask;
    asked->job.blocking = blocking;
    status = blocking_call(&asked->job);
    return blocking_reports_tell(&asked->reports, status, report, list, arg);
}

int quorlock_blocking_inspect(quorlock_blocking *blocking, const char *key, quorlock_report_cb cb, void *arg)
{
    return blocking_ask(blocking, &(struct report_job){.ask = ask_inspect, .key = key}, cb, NULL, arg);
}

int quorlock_blocking_break(quorlock_blocking *blocking, const char *key, quorlock_report_cb cb, void *arg)
{
    return quorlock_blocking_break_owner(blocking, key, NULL, cb, arg);
}

int quorlock_blocking_break_owner(quorlock_blocking *blocking, const char *key, const char *owner,
                                  quorlock_report_cb cb, void *arg)
{
    return blocking_ask(blocking, &(struct report_job){.ask = ask_break, .key = key, .owner = owner}, cb, NULL, arg);
}

int quorlock_blocking_list(quorlock_blocking *blocking, const char *pattern, quorlock_list_cb cb, void *arg)
{
    return blocking_ask(blocking, &(struct report_job){.ask = ask_list, .key = pattern}, NULL, cb, arg);
}
