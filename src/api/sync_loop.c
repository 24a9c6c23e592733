/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/sync_loop.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/caller.h"
#include "base/futex.h"
#include "base/guest.h"

#define MS 1000u
/* How often the own thread looks whether calls still come, or one call leads for long. */
#define MOMENT_US 2000u
#define NO_LIMIT  UINT32_MAX
#define MOST_MS   1000000u
#define IN_LOOP   "called in the loop's thread, which would wait for itself"

struct job sync_closed;

/* ---- life ---- */

bool sync_here(const quorlock_sync_client *sync)
{
    return atomic_load_explicit(&sync->shown->here, memory_order_relaxed) != 0 &&
           (sync->wiped || getpid() == sync->pid);
}

void sync_join(quorlock_sync_client *sync)
{
    atomic_fetch_add(&sync->n_users, 1);
}

bool sync_add_handle(quorlock_sync_client *sync)
{
    sync_join(sync);
    /* As long as there is a handle, nobody can ask for events. */
    return sync->keeps_log && !sync_events_on(&sync->events);
}

void sync_leave(quorlock_sync_client *sync)
{
    if (atomic_fetch_sub(&sync->n_users, 1) > 1) return;
    /* In a child of fork() a thread that does not run there may hold the mutex; to destroy it would wait for that
     * thread.
     */
    if (sync_here(sync)) {
        sync_events_end(&sync->events);
        pthread_mutex_destroy(&sync->mutex);
    }
    if (sync->wiped) {
        sync->system.ops->wiped_free(&sync->system, sync->shown, sizeof(*sync->shown));
    } else {
        free(sync->shown);
    }
    free(sync);
}

uint32_t sync_valid_ms(quorlock_sync_client *sync, const struct expiry *expiry)
{
    if (!sync_here(sync)) return 0;
    return (uint32_t)(expiry_left_us(expiry, &sync->shown->clock, &sync->system) / MS);
}

void sync_begin_call(quorlock_sync_client *sync)
{
    atomic_fetch_add(&sync->n_callers, 1);
}

void sync_end_call(quorlock_sync_client *sync)
{
    /* From here on the client may be gone. To wake a thread that does not wait there does no harm. */
    if (atomic_fetch_sub(&sync->n_callers, 1) == SYNC_CLOSING + 1) futex_wake(&sync->n_callers);
}

void sync_await_no_call(quorlock_sync_client *sync)
{
    unsigned n = atomic_fetch_or(&sync->n_callers, SYNC_CLOSING) | SYNC_CLOSING;

    while (n != SYNC_CLOSING) {
        futex_wait(&sync->n_callers, n);
        n = atomic_load(&sync->n_callers);
    }
}

void sync_tell_begin(quorlock_sync_client *sync)
{
    atomic_fetch_add(&sync->n_told, 1);
}

void sync_tell_end(quorlock_sync_client *sync)
{
    atomic_fetch_sub(&sync->n_told, 1);
}

/* ---- jobs ---- */

/* is_loop - return whether this is the loop's thread. After the close another thread may have its id. */
static bool is_loop(quorlock_sync_client *sync)
{
    return pthread_equal(pthread_self(), sync->thread) != 0 && atomic_load(&sync->posted) != &sync_closed;
}

static void sync_loop_wake(const quorlock_sync_client *sync)
{
    const uint64_t one = 1;
    ssize_t n;

    /* EAGAIN means that the counter is full; then the loop wakes anyway. */
    do {
        n = write(sync->wake_fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
}

/* sync_loop_tell - call cb, which may free the lock or start another operation; or put the event into the queue. */
static void sync_loop_tell(struct job *job)
{
    if (job->cb != NULL) {
        quorlock_sync_client *sync = job->sync;

        job->result.size = sizeof(job->result);
        job->cb(&job->result, job->cb_arg);
        sync_tell_end(sync);
    } else {
        sync_events_put_result(&job->sync->events, job->event, &job->result);
    }
    free(job);
}

void sync_done(struct job *job)
{
    quorlock_sync_client *sync = job->sync;

    if (job->posted) sync->n_taken--;
    if (job->cb != NULL || job->event != NULL) {
        sync_loop_tell(job);
        return;
    }
    if (!job->posted) return;
    sync->served = true;
    job->next = sync->ended;
    sync->ended = job;
}

/* sync_loop_let_go - wake the threads whose jobs have ended. Return whether one slept. */
static bool sync_loop_let_go(quorlock_sync_client *sync)
{
    struct job *job = sync->ended;
    bool woke = false;

    sync->ended = NULL;
    while (job != NULL) {
        struct job *one = job;
        int state;

        job = job->next;
        state = atomic_exchange(&one->state, JOB_ENDED);
        /* From here on the job may be gone: it is on the stack of the thread that waits. */
        if (state == JOB_AWAITED) {
            futex_wake(&one->state);
            woke = true;
        }
        if (state == JOB_ABANDONED) free(one);
    }
    return woke;
}

/* post - give the job to whoever leads. Return false if the loop takes none. A call has begun. */
static bool post(quorlock_sync_client *sync, struct job *job)
{
    struct job *last = atomic_load(&sync->posted);

    job->posted = true;
    if (job->tells) sync_tell_begin(sync);
    do {
        if (last == &sync_closed) {
            if (job->tells) sync_tell_end(sync);
            return false;
        }
        job->next = last;
    } while (!atomic_compare_exchange_weak(&sync->posted, &last, job));
    if (atomic_load(&sync->sleeps) && atomic_exchange(&sync->sleeps, false)) sync_loop_wake(sync);
    return true;
}

/* ---- turns ---- */

/* sync_loop_take - move the jobs that were posted to the end of `taken`, in their order, and leave `rest` there. */
static void sync_loop_take(quorlock_sync_client *sync, struct job *rest)
{
    struct job *job = atomic_exchange(&sync->posted, rest), *in_order = NULL;
    struct job **end = &sync->taken;

    while (job != NULL) {
        struct job *before = job->next;

        job->next = in_order;
        in_order = job;
        job = before;
        sync->n_taken++;
    }
    while (*end != NULL) end = &(*end)->next;
    *end = in_order;
}

static struct job *next_job(quorlock_sync_client *sync)
{
    struct job *job = sync->taken;

    if (job != NULL) sync->taken = job->next;
    return job;
}

/* end_unrun - end a job that was taken and will not run. */
static void end_unrun(struct job *job, int status, const char *text)
{
    (void)sync_refuse(job, status, text);
    /* A job with a callback calls it all the same. */
    if (job->tells && job->cb == NULL) sync_tell_end(job->sync);
    sync_done(job);
}

/* may_run - return whether this thread may run the jobs that were taken. From one of them on a callback of the caller
 * may run, which is only called by the own thread; that one is about to lead then. */
static bool may_run(quorlock_sync_client *sync)
{
    return atomic_load(&sync->leader) == LEADER_OWN || atomic_load(&sync->n_told) == 0;
}

static void run_jobs(quorlock_sync_client *sync)
{
    struct job *job;

    sync_loop_take(sync, NULL);
    while (may_run(sync) && (job = next_job(sync)) != NULL) {
        if (job->withdrawn) {
            end_unrun(job, QUORLOCK_ERR_CANCELED, "canceled before it began");
        } else {
            job->run(job);
        }
    }
}

void sync_on_wake(int fd, short what, void *arg)
{
    uint64_t count;

    (void)what;
    (void)(read(fd, &count, sizeof(count)) == 0);
    run_jobs(arg);
}

/* sync_loop_turn - run all jobs, then what the base has to do; wait for that. Return whether threads were woken. */
static bool sync_loop_turn(quorlock_sync_client *sync)
{
    int flags = EVLOOP_ONCE;

    sync->served = false;
    run_jobs(sync);
    /* Whoever posts a job after this look finds that the loop sleeps. */
    atomic_store(&sync->sleeps, true);
    if (sync->ended != NULL || sync->taken != NULL || atomic_load(&sync->wanted) || atomic_load(&sync->posted) != NULL)
        flags |= EVLOOP_NONBLOCK;
    event_base_loop(sync->base, flags);
    atomic_store(&sync->sleeps, false);
    /* What these threads do next must not keep the requests of this turn from leaving. */
    sync_events_show(&sync->events);
    return sync_loop_let_go(sync);
}

/* ---- who leads ---- */

static void call_own(quorlock_sync_client *sync)
{
    atomic_fetch_add(&sync->n_own_calls, 1);
    futex_wake(&sync->n_own_calls);
}

/* sync_loop_become - lead if nobody does. */
static bool sync_loop_become(quorlock_sync_client *sync, int leader)
{
    int none = LEADER_NONE;

    return atomic_compare_exchange_strong(&sync->leader, &none, leader);
}

/* have_led - have the own thread lead if nobody does. */
static void have_led(quorlock_sync_client *sync)
{
    if (sync_loop_become(sync, LEADER_OWN)) call_own(sync);
}

/* is_quiet - return whether nothing is under way that somebody waits for. The loop may be left alone for a moment. */
static bool is_quiet(quorlock_sync_client *sync)
{
    return sync->n_taken == 0 && !sync->over && atomic_load(&sync->n_told) == 0;
}

/* leave_alone - lead no longer: nobody does. */
static void leave_alone(quorlock_sync_client *sync)
{
    atomic_store(&sync->leader, LEADER_NONE);
    /* Whoever posts a job after this look finds that nobody leads. */
    if (atomic_load(&sync->posted) != NULL) have_led(sync);
}

/* sync_loop_lead - run the loop in this thread until the job has ended. */
static void sync_loop_lead(quorlock_sync_client *sync, struct job *job)
{
    struct guest guest;

    guest_begin(&guest);
    atomic_fetch_add(&sync->n_leads, 1);
    do (void)sync_loop_turn(sync);
    while (atomic_load(&job->state) != JOB_ENDED && !atomic_load(&sync->wanted) && atomic_load(&sync->n_told) == 0);
    if (is_quiet(sync) && !atomic_load(&sync->wanted)) {
        leave_alone(sync);
    } else {
        atomic_store(&sync->leader, LEADER_OWN);
        call_own(sync);
    }
    guest_end(&guest);
}

void sync_loop_own(quorlock_sync_client *sync)
{
    unsigned n_leads = 0;

    for (;;) {
        unsigned n_own_calls = atomic_load(&sync->n_own_calls);

        if (atomic_load(&sync->leader) == LEADER_OWN) {
            bool woke = false;

            atomic_store(&sync->wanted, false);
            do {
                if (sync->over) return;
                /* Then what they call next comes together, and needs neither a wake-up nor a send for each. */
                if (woke) futex_yield();
                woke = sync_loop_turn(sync);
            } while (!sync->served || !is_quiet(sync));
            n_leads = atomic_load(&sync->n_leads);
            leave_alone(sync);
            continue;
        }
        futex_wait_for(&sync->n_own_calls, n_own_calls, MOMENT_US);
        if (atomic_load(&sync->leader) == LEADER_OWN) continue;
        if (atomic_load(&sync->n_leads) != n_leads) {
            n_leads = atomic_load(&sync->n_leads);
            continue;
        }
        if (sync_loop_become(sync, LEADER_OWN)) continue;
        /* One call has led for so long. */
        atomic_store(&sync->wanted, true);
        if (atomic_exchange(&sync->sleeps, false)) sync_loop_wake(sync);
    }
}

/* ---- calls ---- */

/* await_end - wait until the job has ended; meanwhile lead, if nobody does. Return false if that took more than so
 * long, or a signal handler ran in this thread; NO_LIMIT: wait on. */
static bool await_end(quorlock_sync_client *sync, struct job *job, uint32_t most_ms)
{
    bool may_lead = guest_level() <= sync->level && guest_has_room();
    bool waited = false;
    int state;

    while (atomic_load(&job->state) != JOB_ENDED) {
        if (waited && most_ms != NO_LIMIT) return false;
        if (!may_lead || atomic_load(&sync->n_told) > 0) {
            have_led(sync);
        } else if (sync_loop_become(sync, LEADER_CALLER)) {
            sync_loop_lead(sync, job);
            continue;
        }
        state = JOB_UNDER_WAY;
        (void)atomic_compare_exchange_strong(&job->state, &state, JOB_AWAITED);
        if (most_ms == NO_LIMIT) {
            futex_wait(&job->state, JOB_AWAITED);
        } else {
            futex_wait_for(&job->state, JOB_AWAITED, (most_ms < MOST_MS ? most_ms : MOST_MS) * MS);
        }
        waited = true;
    }
    return true;
}

/* hand_over - have the loop run the job, and wait for its end. Return whether it has ended. */
static bool hand_over(struct job *job, uint32_t most_ms)
{
    quorlock_sync_client *sync = job->sync;
    bool ended = true;

    sync_begin_call(sync);
    if (job->posted || post(sync, job)) {
        ended = await_end(sync, job, most_ms);
    } else {
        (void)sync_refuse(job, QUORLOCK_ERR_CLOSED, quorlock_status_text(QUORLOCK_ERR_CLOSED));
    }
    sync_end_call(sync);
    return ended;
}

static int hand_over_and_wait(struct job *job)
{
    (void)hand_over(job, NO_LIMIT);
    return job->result.status;
}

int sync_refuse(struct job *job, int status, const char *text)
{
    job->result = (struct quorlock_sync_result){.status = status, .slot = QUORLOCK_SLOT_NONE};
    snprintf(job->result.text, sizeof(job->result.text), "%s", text);
    return status;
}

int sync_refuse_new(struct job *job)
{
    return job->sync->shut ? sync_refuse(job, QUORLOCK_ERR_CLOSED, "the client was shut down: nothing new begins") : 0;
}

/* sync_loop_refuse - check the client without the mutex: in a child of fork() its owner may not run. */
static int sync_loop_refuse(struct job *job)
{
    if (job->sync == NULL) return sync_refuse(job, QUORLOCK_ERR_INVAL, "NULL was given for a client or a handle");
    if (sync_here(job->sync)) return 0;
    return sync_refuse(job, QUORLOCK_ERR_CLOSED,
                       "the parent of this process opened the client: this process must open one of its own");
}

int sync_call(struct job *job)
{
    if (sync_loop_refuse(job) != 0) return job->result.status;
    if (!is_loop(job->sync)) return hand_over_and_wait(job);
    return sync_refuse(job, QUORLOCK_ERR_STATE, IN_LOOP);
}

bool sync_call_for(struct job *job, uint32_t most_ms)
{
    if (sync_loop_refuse(job) != 0) return true;
    if (!is_loop(job->sync)) return hand_over(job, most_ms);
    if (job->posted) return false;
    (void)sync_refuse(job, QUORLOCK_ERR_STATE, IN_LOOP);
    return true;
}

void sync_abandon(struct job *job)
{
    /* In a child of fork() nobody ends it. */
    if (!sync_here(job->sync) || atomic_exchange(&job->state, JOB_ABANDONED) == JOB_ENDED) free(job);
}

int sync_do_anywhere(struct job *job)
{
    if (sync_loop_refuse(job) != 0) return job->result.status;
    if (!is_loop(job->sync)) return hand_over_and_wait(job);
    if (job->tells) sync_tell_begin(job->sync);
    job->run(job);
    return job->result.status;
}

int sync_start(const struct job *given)
{
    struct job *job = malloc(sizeof(*job));
    quorlock_sync_client *sync = given->sync;
    int status;

    if (job == NULL) return QUORLOCK_ERR_NOMEM;
    *job = *given;
    status = sync_loop_refuse(job);
    if (status == 0) {
        sync_begin_call(sync);
        if (post(sync, job)) {
            have_led(sync);
        } else {
            status = QUORLOCK_ERR_CLOSED;
        }
        sync_end_call(sync);
    }
    if (status != 0) free(job);
    return status;
}

bool sync_withdraw(quorlock_sync_client *sync, const void *handle, bool all)
{
    bool any = false;

    /* All jobs are in `taken` then, in their order. */
    sync_loop_take(sync, NULL);
    for (struct job *job = sync->taken; job != NULL; job = job->next) {
        if ((job->lock != handle && job->candidate != handle) || !(all || job->cancelable)) continue;
        job->withdrawn = any = true;
    }
    return any;
}

void sync_loop_end(quorlock_sync_client *sync)
{
    struct job *job;

    sync_loop_take(sync, &sync_closed);
    while ((job = next_job(sync)) != NULL) {
        end_unrun(job, QUORLOCK_ERR_CLOSED, quorlock_status_text(QUORLOCK_ERR_CLOSED));
    }
    sync->over = true;
}

void sync_fail(struct job *job, int status)
{
    job->result.status = status;
    snprintf(job->result.text, sizeof(job->result.text), "%s", quorlock_client_error(job->sync->client));
    sync_done(job);
}

int sync_no_place(const char *what, struct quorlock_error *ret_error)
{
    struct quorlock_error error;
    int status = caller_fail(&error, QUORLOCK_ERR_INVAL, "ret is NULL: there is no place for the %s", what);

    return caller_report(ret_error, status, error.text);
}
