/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync.c - the sync API: a loop, and the jobs that threads post for it
 *
 * A call makes a job on its stack and posts it. If nobody leads, which is to run the loop, this thread does until its
 * job has ended; else it wakes the loop through an eventfd if that sleeps, and sleeps until the job has ended. A
 * function that only starts an operation allocates its job, which ends with its callback. Only the thread that leads
 * uses the client and its locks, so libevent needs no locking (evthread_use_pthreads would affect the whole process).
 * It takes all posted jobs at once, sends their requests together, and then wakes the threads whose jobs have ended.
 * Threads that call share no mutex.
 *
 * The client's own thread leads while calls wait for each other, while callbacks of the program may run, which run in
 * no other thread, and when no call has come for a moment.
 */
#include <quorlock/sync.h>

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

#include "api/client.h"
#include "api/sync_election.h"
#include "api/sync_loop.h"
#include "base/caller.h"
#include "base/guest.h"
#include "base/own_base.h"
#include "base/system_os.h"

struct quorlock_sync_lock {
    quorlock_sync_client *sync;
    struct expiry shown; /* for any thread */
    /* Of quorlock_sync_lock_acquire_for: the result that its caller gave, and, for that caller, its acquire. */
    _Atomic(const void *) waiter;
    struct job *waiting;
    /* The loop's thread only. */
    quorlock_lock *lock;
    struct link link; /* in sync->locks */
    struct job *acquiring;
    quorlock_sync_lost_cb lost;
    void *lost_arg;
    struct sync_event *loss; /* NULL: the client has no events */
};

/* ---- jobs, in the loop's thread ---- */

/* take_result - copy the result to the job. */
static void take_result(struct job *job, const struct quorlock_result *result)
{
    job->result = (struct quorlock_sync_result){BLOCKING_RESULT_OF(result)};
    if (result->text != NULL) memccpy(job->result.text, result->text, '\0', sizeof(job->result.text) - 1);
    if (result->token != NULL) memccpy(job->result.token, result->token, '\0', sizeof(job->result.token) - 1);
}

/* on_result - end an extend or a release. The handle may be freed. */
static void on_result(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct job *job = arg;

    (void)lock;
    take_result(job, result);
    sync_done(job);
}

/* on_acquired - end an acquire or an adoption. job->lock is NULL if the handle was freed. */
static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct job *job = arg;

    (void)lock;
    if (job->lock != NULL) job->lock->acquiring = NULL;
    take_result(job, result);
    if (job->lock != NULL && result->status == QUORLOCK_ERR_CANCELED) (void)sync_refuse_new(job);
    sync_done(job);
}

/* end_with - end the job with what a call of the client returned. */
static void end_with(struct job *job, int status)
{
    if (status == 0) {
        sync_done(job);
    } else {
        sync_fail(job, status);
    }
}

/* acquire_or_adopt - acquire the lock; adopt it, if there is a token. */
static void acquire_or_adopt(struct job *job, const char *token)
{
    int status = sync_refuse_new(job);

    if (status != 0) {
        sync_done(job);
        return;
    }
    status = token != NULL ? quorlock_lock_adopt(job->lock->lock, token, on_acquired, job)
                           : quorlock_lock_acquire(job->lock->lock, on_acquired, job);
    if (status == 0) {
        job->lock->acquiring = job;
    } else {
        sync_fail(job, status);
    }
}

static void run_acquire(struct job *job)
{
    acquire_or_adopt(job, NULL);
}

static void run_busy(struct job *job)
{
    (void)sync_refuse(job, QUORLOCK_ERR_BUSY, "another acquire of this lock goes on, with another result");
    sync_done(job);
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
    int status =
        quorlock_lock_extend(job->lock->lock, CONTAINER_OF(job, struct extend_job, job)->lease_ms, on_result, job);

    if (status != 0) sync_fail(job, status);
}

struct wait_job {
    struct job job;
    uint32_t wait_ms;
};

static void run_set_wait(struct job *job)
{
    int status = quorlock_lock_set_wait_ms(job->lock->lock, CONTAINER_OF(job, struct wait_job, job)->wait_ms);

    end_with(job, status);
}

static void run_release(struct job *job)
{
    int status = quorlock_lock_release(job->lock->lock, on_result, job);

    if (status != 0) sync_fail(job, status);
}

static void run_undo(struct job *job)
{
    int status = quorlock_lock_undo(job->lock->lock, on_result, job);

    if (status != 0) sync_fail(job, status);
}

static void run_detach(struct job *job)
{
    const char *token = NULL;
    int status = quorlock_lock_detach(job->lock->lock, &token, &job->result.fence, &job->result.valid_ms);

    if (status != 0) {
        sync_fail(job, status);
        return;
    }
    snprintf(job->result.token, sizeof(job->result.token), "%s", token);
    snprintf(job->result.text, sizeof(job->result.text), "detached, valid for another %u ms", job->result.valid_ms);
    sync_done(job);
}

struct token_job {
    struct job job;
    char *token;
    size_t size;
};

static void run_token(struct job *job)
{
    const struct token_job *call = CONTAINER_OF(job, struct token_job, job);
    const char *token = quorlock_lock_token(job->lock->lock);

    if (token == NULL) {
        job->result.status = QUORLOCK_ERR_STATE;
    } else if (strlen(token) >= call->size) {
        job->result.status = QUORLOCK_ERR_INVAL;
    } else {
        memcpy(call->token, token, strlen(token) + 1);
    }
    sync_done(job);
}

static void run_fence(struct job *job)
{
    job->result.fence = quorlock_lock_fence(job->lock->lock);
    sync_done(job);
}

static void run_shutdown(struct job *job)
{
    quorlock_sync_client *sync = job->sync;

    sync->shut = true;
    LIST_WALK (quorlock_sync_lock, handle, &sync->locks, link) {
        if (handle->acquiring != NULL) (void)quorlock_lock_cancel(handle->lock);
    }
    sync_election_shutdown(sync);
    sync_done(job);
}

static void run_cancel(struct job *job)
{
    bool any = sync_withdraw(job->sync, job->lock, false);

    job->result.status = quorlock_lock_cancel(job->lock->lock);
    if (any && job->result.status == QUORLOCK_ERR_STATE) job->result.status = QUORLOCK_OK;
    sync_done(job);
}

struct statistics_job {
    struct job job;
    quorlock_sync_statistics_cb cb;
    void *arg;
};

static void run_statistics(struct job *job)
{
    const struct statistics_job *call = CONTAINER_OF(job, struct statistics_job, job);
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    job->result.status = quorlock_client_statistics(job->sync->client, &statistics);
    if (job->result.status == 0) call->cb(&statistics, call->arg);
    sync_tell_end(job->sync);
    sync_done(job);
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
        quorlock_client_metrics(job->sync->client, call->options, call->buffer, call->size, call->ret_length);
    sync_done(job);
}

struct margin_job {
    struct job job;
    uint32_t lease_ms, renew_ms, most_ms;
};

static void run_lost_margin_max(struct job *job)
{
    struct margin_job *call = CONTAINER_OF(job, struct margin_job, job);

    call->most_ms = quorlock_client_lost_margin_max_ms(job->sync->client, call->lease_ms, call->renew_ms);
    sync_done(job);
}

struct credentials_job {
    struct job job;
    const char *node, *user, *password;
};

static void run_set_credentials(struct job *job)
{
    const struct credentials_job *call = CONTAINER_OF(job, struct credentials_job, job);

    end_with(job, quorlock_client_set_credentials(job->sync->client, call->node, call->user, call->password));
}

static void sync_on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    quorlock_sync_lock *handle = arg;

    (void)lock;
    if (handle->lost != NULL) {
        handle->lost(handle, loss, handle->lost_arg);
    } else if (handle->loss != NULL) {
        sync_events_put_loss(&handle->sync->events, handle->loss, 0, loss);
    }
}

struct on_lost_job {
    struct job job;
    quorlock_sync_lost_cb cb;
    void *arg;
};

static void run_on_lost(struct job *job)
{
    const struct on_lost_job *call = CONTAINER_OF(job, struct on_lost_job, job);

    if (job->lock->lost != NULL) sync_tell_end(job->sync);
    job->lock->lost = call->cb;
    job->lock->lost_arg = call->arg;
    if (job->lock->loss != NULL) sync_event_set_arg(&job->sync->events, job->lock->loss, call->arg);
    sync_done(job);
}

struct new_job {
    struct job job;
    const char *const *keys;
    size_t n_keys;
    const struct quorlock_lock_options *options;
};

static void sync_run_new(struct job *job)
{
    const struct new_job *call = CONTAINER_OF(job, struct new_job, job);
    quorlock_sync_client *sync = job->sync;
    quorlock_sync_lock *handle = job->lock;
    int status;

    if (sync_refuse_new(job) != 0) {
        sync_done(job);
        return;
    }
    if (sync_events_on(&sync->events)) {
        handle->loss = sync_event_new(QUORLOCK_EVENT_LOST, handle, NULL);
        if (handle->loss == NULL) {
            (void)sync_refuse(job, QUORLOCK_ERR_NOMEM, quorlock_status_text(QUORLOCK_ERR_NOMEM));
            sync_done(job);
            return;
        }
    }
    status = quorlock_lock_new(&handle->lock, sync->client, call->keys, call->n_keys, call->options);
    if (status != 0) {
        sync_fail(job, status);
        return;
    }
    client_show_lock(handle->lock, &handle->shown);
    quorlock_lock_set_on_lost(handle->lock, sync_on_lost, handle);
    handle->sync = sync;
    if (sync_add_handle(sync)) client_log_from(sync->client, QUORLOCK_LOG_WARN);
    list_add(&sync->locks, &handle->link);
    sync_done(job);
}

static void sync_run_free(struct job *job)
{
    quorlock_sync_lock *handle = job->lock;

    (void)sync_withdraw(job->sync, handle, true);
    if (handle->lost != NULL) sync_tell_end(job->sync);
    list_remove(&job->sync->locks, &handle->link);
    /* Its result is CANCELED, and comes when the handle does not exist any more. */
    if (handle->acquiring != NULL) handle->acquiring->lock = NULL;
    quorlock_lock_free(handle->lock);
    sync_done(job);
}

/* sync_on_closed - end all jobs that are left. After it the loop's thread touches no handle. */
static void sync_on_closed(void *arg)
{
    struct job *close_job = arg;
    quorlock_sync_client *sync = close_job->sync;

    event_del(sync->wake);
    sync_loop_end(sync);
    sync_done(close_job);
}

static void run_events(struct job *job)
{
    quorlock_sync_client *sync = job->sync;

    if (!sync_events_on(&sync->events)) {
        /* Whoever reads the events uses the client until it has read the last one. */
        if (atomic_load(&sync->n_users) > 1) {
            job->result.status = QUORLOCK_ERR_STATE;
        } else {
            job->result.status = sync_events_start(&sync->events);
        }
        if (job->result.status == 0) {
            sync_join(sync);
            if (sync->keeps_log) client_log_from(sync->client, QUORLOCK_LOG_DEBUG);
        }
    }
    sync_done(job);
}

static void run_close(struct job *job)
{
    int status = quorlock_client_close(job->sync->client, sync_on_closed, job);

    /* Another thread is closing it. */
    if (status != 0) sync_fail(job, status);
}

/* ---- life ---- */

static void *loop(void *arg)
{
    sync_loop_own(arg);
    return NULL;
}

/* open_shown - make the memory that any thread reads. */
static int open_shown(quorlock_sync_client *sync)
{
    struct system system = system_libevent(sync->base, NULL);

    sync->system = system;
    sync->pid = getpid();
    sync->shown = system.ops->wiped_new(&system, sizeof(*sync->shown));
    sync->wiped = sync->shown != NULL;
    if (!sync->wiped) sync->shown = calloc(1, sizeof(*sync->shown));
    if (sync->shown == NULL) return QUORLOCK_ERR_NOMEM;
    atomic_store(&sync->shown->here, 1);
    return 0;
}

static int open_base(quorlock_sync_client *sync)
{
    sync->base = own_base_new();
    if (sync->base == NULL) return QUORLOCK_ERR_NOMEM;
    sync->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sync->wake_fd < 0) return QUORLOCK_ERR_NOMEM;
    sync->wake = event_new(sync->base, sync->wake_fd, EV_READ | EV_PERSIST, sync_on_wake, sync);
    if (sync->wake == NULL || event_add(sync->wake, NULL) != 0) return QUORLOCK_ERR_NOMEM;
    return 0;
}

static int sync_start_thread(quorlock_sync_client *sync)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&sync->thread, NULL, loop, sync);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed != 0 ? QUORLOCK_ERR_NOMEM : 0;
}

static void close_base(quorlock_sync_client *sync)
{
    if (sync->wake != NULL) event_free(sync->wake);
    if (sync->wake_fd >= 0) close(sync->wake_fd);
    if (sync->base != NULL) event_base_free(sync->base);
}

/* undo_client - close the client. No thread runs its loop yet, so this one does. */
static void undo_client(quorlock_sync_client *sync)
{
    event_del(sync->wake);
    quorlock_client_close(sync->client, NULL, NULL);
    event_base_dispatch(sync->base);
}

static int fail_open(struct quorlock_error *error)
{
    return caller_report(error, QUORLOCK_ERR_NOMEM, "cannot start the loop: out of memory, descriptors or threads");
}

/* Make a client without a loop; NULL: out of memory. */
static quorlock_sync_client *sync_make(void)
{
    quorlock_sync_client *sync = calloc(1, sizeof(*sync));

    if (sync == NULL) return NULL;
    *sync = (quorlock_sync_client){.n_users = 1,
                                   .wake_fd = -1,
                                   .leader = LEADER_OWN,
                                   .level = guest_level(),
                                   .mutex = PTHREAD_MUTEX_INITIALIZER,
                                   .events = {.mutex = PTHREAD_MUTEX_INITIALIZER}};
    if (open_shown(sync) == 0) return sync;
    free(sync);
    return NULL;
}

int quorlock_sync_client_new(quorlock_sync_client **ret, const struct quorlock_client_options *options,
                             struct quorlock_error *error)
{
    struct quorlock_client_options copy;
    quorlock_sync_client *sync;
    int status;

    if (ret == NULL) return sync_no_place("client", error);
    sync = sync_make();
    if (sync == NULL) return fail_open(error);
    status = open_base(sync);
    if (status != 0) {
        status = fail_open(error);
        goto failed;
    }
    options = sync_events_options(&sync->events, options, &copy);
    status = client_new_shown(&sync->client, sync->base, options, &sync->shown->clock, error);
    if (status != 0) goto failed;
    sync->keeps_log = options == &copy && copy.log_arg == &sync->events;
    if (options == &copy && ((copy.log != NULL && !sync->keeps_log) ||
                             (copy.credentials_arg != &sync->events && client_asks_program(&copy))))
        sync_tell_begin(sync);
    status = sync_start_thread(sync);
    if (status != 0) {
        status = fail_open(error);
        undo_client(sync);
        goto failed;
    }
    *ret = sync;
    return 0;
failed:
    close_base(sync);
    sync_leave(sync);
    return status;
}

int quorlock_sync_client_shutdown(quorlock_sync_client *sync)
{
    if (sync == NULL) return 0;
    return sync_do_anywhere(&(struct job){.run = run_shutdown, .sync = sync});
}

int quorlock_sync_client_close(quorlock_sync_client *sync)
{
    struct job job = {.run = run_close, .sync = sync};

    if (sync == NULL) return 0;
    if (!sync_here(sync)) {
        /* In a child of fork() nobody reads the events. */
        if (sync->events.on) sync_leave(sync);
        sync_leave(sync);
        return 0;
    }
    if (sync_call(&job) != 0) return job.result.status;
    pthread_join(sync->thread, NULL);
    /* Calls that ended with CLOSED may not have returned yet. */
    sync_await_no_call(sync);
    close_base(sync);
    if (sync_events_on(&sync->events)) sync_events_close(&sync->events);
    sync_leave(sync);
    return 0;
}

int quorlock_sync_client_events(quorlock_sync_client *sync, int *ret_fd)
{
    int status;

    if (ret_fd == NULL) return QUORLOCK_ERR_INVAL;
    status = sync_call(&(struct job){.run = run_events, .sync = sync});
    if (status == 0) *ret_fd = sync->events.fd;
    return status;
}

int quorlock_sync_client_next_event(quorlock_sync_client *sync, struct quorlock_event *event)
{
    int status;

    if (sync == NULL) return QUORLOCK_ERR_INVAL;
    if (!sync_here(sync)) return QUORLOCK_ERR_CLOSED;
    status = sync_events_next(&sync->events, event);
    if (status == 0 && event->type == QUORLOCK_EVENT_CLOSED) sync_leave(sync);
    return status;
}

/* ---- calls ---- */

/* sync_give - copy the result to the caller's struct, which may be shorter or longer than ours. */
static void sync_give(struct quorlock_sync_result *ret, const struct quorlock_sync_result *result)
{
    size_t size = ret->size;

    memcpy(ret, result, size < sizeof(*ret) ? size : sizeof(*ret));
    ret->size = size;
}

/* check_result - check the size of the caller's result, which may be NULL. */
static int check_result(const struct quorlock_sync_result *given)
{
    /* The size of the struct in the first release. It never changes, even when members are added. */
    size_t least = offsetof(struct quorlock_sync_result, token) + QUORLOCK_SYNC_TOKEN_SIZE;
    struct quorlock_error error;

    if (given == NULL) return 0;
    return caller_check(least, sizeof(*given), given, given->size, "quorlock_sync_result", &error);
}

/* sync_client_of - return the client of the lock, or NULL without a lock. */
static quorlock_sync_client *sync_client_of(const quorlock_sync_lock *lock)
{
    return lock != NULL ? lock->sync : NULL;
}

/* call - run the job, and copy its result to the caller. */
static int call(struct job *job, struct quorlock_sync_result *result)
{
    job->sync = sync_client_of(job->lock);
    job->result.slot = QUORLOCK_SLOT_NONE;
    if (check_result(result) != 0) return QUORLOCK_ERR_INVAL;
    (void)sync_call(job);
    if (result != NULL) sync_give(result, &job->result);
    return job->result.status;
}

int quorlock_sync_lock_new(quorlock_sync_lock **ret, quorlock_sync_client *sync, const char *const *keys, size_t n_keys,
                           const struct quorlock_lock_options *options, struct quorlock_error *error)
{
    quorlock_sync_lock *handle = ret != NULL ? calloc(1, sizeof(*handle)) : NULL;
    struct new_job call = {
        .job = {.run = sync_run_new, .sync = sync, .lock = handle}, .keys = keys, .n_keys = n_keys, .options = options};

    if (ret == NULL) return sync_no_place("lock", error);
    if (handle == NULL) {
        (void)sync_refuse(&call.job, QUORLOCK_ERR_NOMEM, quorlock_status_text(QUORLOCK_ERR_NOMEM));
        goto failed;
    }
    if (sync_call(&call.job) != 0) goto failed;
    *ret = handle;
    return caller_report(error, 0, "");
failed:
    if (handle != NULL) free(handle->loss);
    free(handle);
    return caller_report(error, call.job.result.status, call.job.result.text);
}

int quorlock_sync_lock_acquire(quorlock_sync_lock *lock, struct quorlock_sync_result *result)
{
    return call(&(struct job){.run = run_acquire, .lock = lock, .cancelable = true}, result);
}

/* new_acquire - return an acquire that lives until it has ended, or NULL. */
static struct job *new_acquire(quorlock_sync_lock *lock)
{
    struct job *job = malloc(sizeof(*job));

    if (job == NULL) return NULL;
    *job = (struct job){.run = run_acquire, .sync = lock->sync, .lock = lock, .cancelable = true};
    job->result.slot = QUORLOCK_SLOT_NONE;
    return job;
}

int quorlock_sync_lock_acquire_for(quorlock_sync_lock *lock, uint32_t most_ms, struct quorlock_sync_result *result)
{
    const void *waiter = NULL;

    if (lock == NULL || result == NULL || check_result(result) != 0) return QUORLOCK_ERR_INVAL;
    if (!atomic_compare_exchange_strong(&lock->waiter, &waiter, result) && waiter != result)
        return call(&(struct job){.run = run_busy, .lock = lock}, result);
    if (lock->waiting == NULL) lock->waiting = new_acquire(lock);
    if (lock->waiting != NULL) {
        if (!sync_call_for(lock->waiting, most_ms)) return QUORLOCK_SYNC_WAITS;
        sync_give(result, &lock->waiting->result);
    } else {
        result->status = QUORLOCK_ERR_NOMEM;
    }
    free(lock->waiting);
    lock->waiting = NULL;
    atomic_store(&lock->waiter, NULL);
    return result->status;
}

int quorlock_sync_lock_extend(quorlock_sync_lock *lock, uint32_t lease_ms, struct quorlock_sync_result *result)
{
    struct extend_job extend = {.job = {.run = run_extend, .lock = lock, .cancelable = true}, .lease_ms = lease_ms};

    return call(&extend.job, result);
}

int quorlock_sync_lock_set_wait_ms(quorlock_sync_lock *lock, uint32_t wait_ms, struct quorlock_error *error)
{
    struct wait_job wait = {.job = {.run = run_set_wait, .lock = lock}, .wait_ms = wait_ms};

    return caller_report(error, call(&wait.job, NULL), wait.job.result.text);
}

int quorlock_sync_lock_release(quorlock_sync_lock *lock, struct quorlock_sync_result *result)
{
    return call(&(struct job){.run = run_release, .lock = lock}, result);
}

int quorlock_sync_lock_undo(quorlock_sync_lock *lock, struct quorlock_sync_result *result)
{
    return call(&(struct job){.run = run_undo, .lock = lock}, result);
}

int quorlock_sync_lock_adopt(quorlock_sync_lock *lock, const char *token, struct quorlock_sync_result *result)
{
    struct adopt_job adopt = {.job = {.run = run_adopt, .lock = lock, .cancelable = true}, .token = token};

    if (token == NULL) return QUORLOCK_ERR_INVAL;
    return call(&adopt.job, result);
}

int quorlock_sync_lock_detach(quorlock_sync_lock *lock, struct quorlock_sync_result *result)
{
    if (result == NULL) return QUORLOCK_ERR_INVAL;
    return call(&(struct job){.run = run_detach, .lock = lock}, result);
}

int quorlock_sync_lock_with(quorlock_sync_client *sync, const char *key, const struct quorlock_lock_options *options,
                            quorlock_sync_with_cb fn, void *arg, int *ret, struct quorlock_sync_result *result)
{
    const struct quorlock_lock_options defaults = {.size = sizeof(defaults)};
    struct quorlock_sync_result last = {.size = sizeof(last), .slot = QUORLOCK_SLOT_NONE};
    quorlock_sync_lock *lock = NULL;
    struct quorlock_error error;
    int status;

    if (fn == NULL || check_result(result) != 0) return QUORLOCK_ERR_INVAL;
    status = quorlock_sync_lock_new(&lock, sync, &key, 1, options != NULL ? options : &defaults, &error);
    if (status == 0) {
        status = quorlock_sync_lock_acquire(lock, &last);
    } else {
        last.status = status;
        snprintf(last.text, sizeof(last.text), "%s", error.text);
    }
    if (status == 0) {
        int returned = fn(lock, &last, arg);
        bool kept;

        if (ret != NULL) *ret = returned;
        kept = quorlock_sync_lock_valid_ms(lock) > 0;
        /* The nodes may know of a loss that we do not know of yet. */
        if (quorlock_sync_lock_release(lock, &last) == QUORLOCK_ERR_LOST || !kept)
            status = last.status = QUORLOCK_ERR_LOST;
    }
    quorlock_sync_lock_free(lock);
    if (result != NULL) sync_give(result, &last);
    return status;
}

/* sync_start_operation - start an acquire or a release; `type` is that of the event which comes without a cb. */
static int sync_start_operation(quorlock_sync_lock *lock, void (*run)(struct job *), int type,
                                quorlock_sync_result_cb cb, void *arg)
{
    struct job job = {.run = run,
                      .sync = sync_client_of(lock),
                      .lock = lock,
                      .cancelable = type == QUORLOCK_EVENT_ACQUIRE_ENDED,
                      .tells = cb != NULL,
                      .cb = cb,
                      .cb_arg = arg,
                      .result = {.slot = QUORLOCK_SLOT_NONE}};
    int status;

    if (cb == NULL && (lock == NULL || lock->loss == NULL)) return QUORLOCK_ERR_INVAL;
    if (cb == NULL) {
        job.event = sync_event_new(type, lock, arg);
        if (job.event == NULL) return QUORLOCK_ERR_NOMEM;
    }
    status = sync_start(&job);
    if (status != 0) free(job.event);
    return status;
}

int quorlock_sync_lock_start_acquire(quorlock_sync_lock *lock, quorlock_sync_result_cb cb, void *arg)
{
    return sync_start_operation(lock, run_acquire, QUORLOCK_EVENT_ACQUIRE_ENDED, cb, arg);
}

int quorlock_sync_lock_start_release(quorlock_sync_lock *lock, quorlock_sync_result_cb cb, void *arg)
{
    return sync_start_operation(lock, run_release, QUORLOCK_EVENT_RELEASE_ENDED, cb, arg);
}

int quorlock_sync_lock_cancel(quorlock_sync_lock *lock)
{
    return sync_do_anywhere(&(struct job){.run = run_cancel, .sync = sync_client_of(lock), .lock = lock});
}

void quorlock_sync_lock_free(quorlock_sync_lock *lock)
{
    quorlock_sync_client *sync = sync_client_of(lock);

    if (lock == NULL) return;
    (void)sync_do_anywhere(&(struct job){.run = sync_run_free, .sync = sync, .lock = lock});
    if (lock->waiting != NULL) sync_abandon(lock->waiting);
    sync_event_free(&sync->events, lock->loss, sync_here(sync));
    free(lock);
    sync_leave(sync);
}

void quorlock_sync_lock_set_on_lost(quorlock_sync_lock *lock, quorlock_sync_lost_cb cb, void *arg)
{
    struct on_lost_job call = {
        .job = {.run = run_on_lost, .sync = sync_client_of(lock), .lock = lock, .tells = cb != NULL},
        .cb = cb,
        .arg = arg};

    (void)sync_do_anywhere(&call.job);
}

uint32_t quorlock_sync_lock_valid_ms(const quorlock_sync_lock *lock)
{
    return lock != NULL ? sync_valid_ms(lock->sync, &lock->shown) : 0;
}

int quorlock_sync_lock_token(quorlock_sync_lock *lock, char *token, size_t size)
{
    struct token_job call = {
        .job = {.run = run_token, .sync = sync_client_of(lock), .lock = lock}, .token = token, .size = size};

    if (token == NULL) return QUORLOCK_ERR_INVAL;
    return sync_do_anywhere(&call.job);
}

uint64_t quorlock_sync_lock_fence(quorlock_sync_lock *lock)
{
    struct job job = {.run = run_fence, .sync = sync_client_of(lock), .lock = lock};

    return sync_do_anywhere(&job) == 0 ? job.result.fence : 0;
}

uint32_t quorlock_sync_client_lost_margin_max_ms(quorlock_sync_client *sync, uint32_t lease_ms, uint32_t renew_ms)
{
    struct margin_job call = {
        .job = {.run = run_lost_margin_max, .sync = sync}, .lease_ms = lease_ms, .renew_ms = renew_ms};

    (void)sync_do_anywhere(&call.job);
    return call.most_ms;
}

int quorlock_sync_client_set_credentials(quorlock_sync_client *sync, const char *node, const char *user,
                                         const char *password, struct quorlock_error *error)
{
    struct credentials_job call = {
        .job = {.run = run_set_credentials, .sync = sync}, .node = node, .user = user, .password = password};

    return caller_report(error, sync_do_anywhere(&call.job), call.job.result.text);
}

int quorlock_sync_client_statistics(quorlock_sync_client *sync, quorlock_sync_statistics_cb cb, void *arg)
{
    struct statistics_job call = {.job = {.run = run_statistics, .sync = sync, .tells = true}, .cb = cb, .arg = arg};

    if (cb == NULL) return QUORLOCK_ERR_INVAL;
    return sync_do_anywhere(&call.job);
}

int quorlock_sync_client_metrics(quorlock_sync_client *sync, const struct quorlock_metrics_options *options,
                                 char *buffer, size_t size, size_t *ret_length)
{
    struct metrics_job call = {.job = {.run = run_metrics, .sync = sync},
                               .options = options,
                               .buffer = buffer,
                               .size = size,
                               .ret_length = ret_length};

    return sync_do_anywhere(&call.job);
}
