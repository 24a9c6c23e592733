/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * candidate.c - a candidate of an election: a lock that is acquired again after each loss
 *
 * The candidate is WAITING for the lock, and LEADING while it holds the lock. After a loss it is PAUSING, and then
 * WAITING again. From these three states resigning leads to RESIGNING, and then to ENDING, whose callback runs from a
 * turn of its own.
 */
#include "election/candidate.h"

#include <stdio.h>
#include <string.h>

#include "election/elections.h"

#define MS            1000u
#define END_TEXT_SIZE 512

enum candidate_state {
    CANDIDATE_IDLE,
    CANDIDATE_WAITING,
    CANDIDATE_LEADING,
    CANDIDATE_PAUSING,
    CANDIDATE_RESIGNING,
    CANDIDATE_ENDING
};

struct quorlock_candidate {
    struct member member; /* its deadline ends the pause */
    struct quorlock_lock *lock;
    struct quorlock_candidate_options options;
    enum candidate_state state;
    uint32_t soon; /* how often in a row it was deposed soon (election_stand_us) */
    uint64_t elected_us, lease_us;
    uint32_t owed; /* callbacks of the lock that are still to run */
    bool freed;
    bool led;   /* it was leading when it resigned */
    int status; /* of its end */
    char text[END_TEXT_SIZE];
};

static struct runtime *candidate_runtime_of(const struct quorlock_candidate *candidate)
{
    return candidate->member.all->runtime;
}

static void candidate_end(struct quorlock_candidate *candidate, int status, const char *text)
{
    runtime_wake_at(candidate_runtime_of(candidate), &candidate->member.waker, UINT64_MAX);
    candidate->state = CANDIDATE_ENDING;
    candidate->status = status;
    (void)snprintf(candidate->text, sizeof(candidate->text), "%s", text);
    member_wants_turn(&candidate->member);
}

static void candidate_destroy(struct member *member)
{
    const struct alloc *alloc = &member->all->runtime->alloc;

    member_leave(member);
    alloc_free(alloc, CONTAINER_OF(member, struct quorlock_candidate, member));
}

static void reap(struct quorlock_candidate *candidate)
{
    /* While the client closes, handles stay valid until its end. */
    if (candidate->freed && candidate->owed == 0 && !candidate_runtime_of(candidate)->closing)
        candidate_destroy(&candidate->member);
}

/* ---- standing ---- */

/* Rule 13.1. */
static void pause_before(struct quorlock_candidate *candidate, uint64_t led_us, uint64_t least_us)
{
    uint64_t pause_us = election_stand_us(&candidate->member.jitter, &candidate->soon, led_us, candidate->lease_us);

    candidate->state = CANDIDATE_PAUSING;
    runtime_wake_at(candidate_runtime_of(candidate), &candidate->member.waker,
                    runtime_now_us(candidate_runtime_of(candidate)) + (pause_us > least_us ? pause_us : least_us));
}

static void give_back(struct quorlock_candidate *candidate);

/* Act on the end of the wait for the lock. */
static void wait_ended(struct quorlock_candidate *candidate, const struct quorlock_result *result)
{
    switch (result->status) {
    case QUORLOCK_OK:
        candidate->state = CANDIDATE_LEADING;
        candidate->elected_us = runtime_now_us(candidate_runtime_of(candidate));
        if (candidate->options.elected != NULL)
            candidate->options.elected(candidate, result->fence, candidate->options.arg);
        break;
    /* These pass: stand again after a pause. */
    case QUORLOCK_ERR_HELD:
    case QUORLOCK_ERR_NOQUORUM:
    case QUORLOCK_ERR_TIMEDOUT:
    case QUORLOCK_ERR_LOST:
    case QUORLOCK_ERR_NOMEM:
    case QUORLOCK_ERR_STATE: pause_before(candidate, 0, 0); break;
    default: candidate_end(candidate, result->status, result->text); break;
    }
}

static void candidate_on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct quorlock_candidate *candidate = arg;

    (void)lock;
    candidate->owed--;
    if (candidate->freed) {
        reap(candidate);
    } else if (candidate->state == CANDIDATE_WAITING) {
        wait_ended(candidate, result);
    } else if (candidate->state == CANDIDATE_RESIGNING) {
        if (result->status == QUORLOCK_OK) {
            give_back(candidate);
        } else {
            candidate_end(candidate, QUORLOCK_OK, "it has resigned");
        }
    }
}

static int candidate_ask(struct quorlock_candidate *candidate)
{
    int status = quorlock_lock_acquire(candidate->lock, candidate_on_acquired, candidate);

    if (status == 0) {
        candidate->owed++;
        candidate->state = CANDIDATE_WAITING;
    }
    return status;
}

static void candidate_on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct quorlock_candidate *candidate = arg;
    uint64_t now_us = runtime_now_us(candidate_runtime_of(candidate));

    (void)lock;
    if (candidate->state != CANDIDATE_LEADING) return;
    /* The next acquire releases the keys that are left. Until another candidate can lead, this one may still act. */
    pause_before(candidate, now_us - candidate->elected_us, (uint64_t)loss->remaining_ms * MS);
    if (candidate->options.deposed != NULL) candidate->options.deposed(candidate, loss, candidate->options.arg);
}

/* The acquire follows from a turn, for deadlines are served inside a batch. */
static void candidate_on_pause_over(struct waker *waker)
{
    member_wants_turn(CONTAINER_OF(waker, struct member, waker));
}

static void candidate_take_turn(struct member *member)
{
    struct quorlock_candidate *candidate = CONTAINER_OF(member, struct quorlock_candidate, member);

    if (candidate->state == CANDIDATE_PAUSING) {
        if (candidate_ask(candidate) != 0) pause_before(candidate, 0, 0);
    } else if (candidate->state == CANDIDATE_ENDING) {
        char text[END_TEXT_SIZE];

        candidate->state = CANDIDATE_IDLE;
        /* The callback may free the candidate and still read the text. */
        memcpy(text, candidate->text, sizeof(text));
        if (candidate->options.ended != NULL)
            candidate->options.ended(candidate, candidate->status, text, candidate->options.arg);
    }
}

/* ---- resigning ---- */

static void candidate_on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct quorlock_candidate *candidate = arg;

    (void)lock;
    candidate->owed--;
    if (candidate->freed) {
        reap(candidate);
    } else if (candidate->state == CANDIDATE_RESIGNING) {
        /* Only the answers to the release show that the lock was lost before. */
        candidate_end(candidate, !candidate->led && result->status == QUORLOCK_ERR_LOST ? QUORLOCK_OK : result->status,
                      result->text);
    }
}

static void give_back(struct quorlock_candidate *candidate)
{
    candidate->state = CANDIDATE_RESIGNING;
    if (quorlock_lock_release(candidate->lock, candidate_on_released, candidate) == 0) {
        candidate->owed++;
    } else {
        /* Not after a loss: there is nothing to release. */
        candidate_end(candidate, QUORLOCK_OK, "it has resigned");
    }
}

int quorlock_candidate_resign(quorlock_candidate *candidate)
{
    struct runtime *runtime;

    if (candidate == NULL) return QUORLOCK_ERR_INVAL;
    runtime = candidate_runtime_of(candidate);
    if (runtime->closing || candidate->freed) return runtime_fail_plainly(runtime, QUORLOCK_ERR_CLOSED);
    switch (candidate->state) {
    case CANDIDATE_WAITING:
        candidate->led = false;
        candidate->state = CANDIDATE_RESIGNING;
        /* candidate_on_acquired() follows with CANCELED, or with a grant, which it releases. */
        (void)quorlock_lock_cancel(candidate->lock);
        return 0;
    case CANDIDATE_LEADING:
    case CANDIDATE_PAUSING:
        candidate->led = candidate->state == CANDIDATE_LEADING;
        runtime_wake_at(runtime, &candidate->member.waker, UINT64_MAX);
        list_remove(&candidate->member.all->due, &candidate->member.in_due);
        give_back(candidate);
        return 0;
    case CANDIDATE_IDLE:
    case CANDIDATE_RESIGNING:
    case CANDIDATE_ENDING: break;
    }
    return runtime_fail(runtime, QUORLOCK_ERR_STATE, "the candidate does not stand, or has resigned already");
}

/* ---- life ---- */

int quorlock_candidate_stand(quorlock_candidate *candidate)
{
    struct runtime *runtime = candidate_runtime_of(candidate);

    if (runtime->closing || candidate->freed) return runtime_fail_plainly(runtime, QUORLOCK_ERR_CLOSED);
    if (candidate->state != CANDIDATE_IDLE)
        return runtime_fail(runtime, QUORLOCK_ERR_STATE,
                            "the candidate stands already, or its callback ended has not run yet");
    candidate->soon = 0;
    return candidate_ask(candidate);
}

/* Make the candidate's lock, and read the lease that the library has chosen. */
static int make_lock(struct quorlock_candidate *candidate, const char *name)
{
    const struct quorlock_candidate_options *given = &candidate->options;
    const struct quorlock_lock_options options = {.size = sizeof(options),
                                                  .lease_ms = given->lease_ms,
                                                  .renew_ms = given->renew_ms,
                                                  .lost_margin_ms = given->lost_margin_ms,
                                                  .fence_ttl_ms = given->fence_ttl_ms,
                                                  .label = given->advertise,
                                                  .fencing = 1};
    int status = lock_new(&candidate->lock, candidate->member.all->locks, &name, 1, &options);

    if (status != 0) return status;
    candidate->lease_us = candidate->lock->terms->config.lease_us;
    candidate->options.advertise = NULL;
    quorlock_lock_set_on_lost(candidate->lock, candidate_on_lost, candidate);
    return 0;
}

static void close_candidate(struct member *member)
{
    struct quorlock_candidate *candidate = CONTAINER_OF(member, struct quorlock_candidate, member);

    if (candidate->freed || candidate->state == CANDIDATE_IDLE || candidate->state == CANDIDATE_ENDING) return;
    list_remove(&member->all->due, &member->in_due);
    candidate_end(candidate, QUORLOCK_ERR_CLOSED, quorlock_status_text(QUORLOCK_ERR_CLOSED));
}

int candidate_new(quorlock_candidate **ret, struct elections *all, const char *name,
                  const struct quorlock_candidate_options *given)
{
    struct runtime *runtime = all->runtime;
    struct quorlock_candidate_options options = {.size = sizeof(options)};
    struct quorlock_candidate *candidate;
    int status = elections_check(all, ret, "candidate");

    if (status == 0 && given != NULL)
        status =
            caller_copy(&options, sizeof(options), given, given->size, "quorlock_candidate_options", &runtime->error);
    /* Checked here, for the lock would call this text a label. */
    if (status == 0) status = options_advertise(options.advertise, &runtime->error);
    if (status != 0) return status;
    candidate = alloc_zero(&runtime->alloc, sizeof(*candidate));
    if (candidate == NULL) return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    candidate->options = options;
    candidate->member.take_turn = candidate_take_turn;
    candidate->member.close = close_candidate;
    candidate->member.destroy = candidate_destroy;
    member_join(&candidate->member, all, candidate_on_pause_over);
    status = make_lock(candidate, name);
    if (status != 0) {
        candidate_destroy(&candidate->member);
        return status;
    }
    *ret = candidate;
    return 0;
}

void quorlock_candidate_free(quorlock_candidate *candidate)
{
    if (candidate == NULL || candidate->freed) return;
    candidate->freed = true;
    runtime_wake_at(candidate_runtime_of(candidate), &candidate->member.waker, UINT64_MAX);
    list_remove(&candidate->member.all->due, &candidate->member.in_due);
    quorlock_lock_free(candidate->lock);
    reap(candidate);
}

void candidate_show_in(quorlock_candidate *candidate, struct expiry *shown)
{
    handle_show_in(candidate->lock, shown);
}

/* Rule 13.1. */
uint32_t quorlock_candidate_valid_ms(const quorlock_candidate *candidate)
{
    return candidate->state == CANDIDATE_LEADING && !candidate->freed ? quorlock_lock_valid_ms(candidate->lock) : 0;
}

uint64_t quorlock_candidate_term(const quorlock_candidate *candidate)
{
    return quorlock_candidate_valid_ms(candidate) > 0 ? quorlock_lock_fence(candidate->lock) : 0;
}
