/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/notify.h"

#include <assert.h>
#include <stdio.h>

#include "base/trace.h"
#include "core/validity.h"
#include "lock/message.h"
#include "lock/queue.h"
#include "lock/reentry.h"

#define MS 1000u

/* ---- the end of an operation ---- */

static void count_acquire(const struct quorlock_lock *lock, int status, uint64_t elapsed_us)
{
    struct counts *counts = &locks_of(lock)->claims.counts;

    assert(counts->waiting > 0 && -status >= 0 && -status < COUNTS_STATUSES);
    counts->waiting--;
    histogram_add(&counts->acquires[-status], elapsed_us);
    if (status == QUORLOCK_OK) {
        TRACE3(granted, lock, keylist_name(lock->keylist), elapsed_us);
    } else {
        TRACE4(refused, lock, keylist_name(lock->keylist), status, elapsed_us);
    }
}

/* The handle may be gone afterwards. */
static void run_callback(struct quorlock_lock *lock, struct lock_callback *callback, struct quorlock_result *result)
{
    struct lock_callback now = *callback;
    uint64_t elapsed_us = validity_sub(runtime_now_us(locks_of(lock)->runtime), now.begun_us);

    assert(result->status == QUORLOCK_OK || result->status < 0);
    if (lock->operation != OPERATION_NONE && callback == &lock->pending.ended) {
        if (lock->operation == OPERATION_ACQUIRE) count_acquire(lock, result->status, elapsed_us);
        handle_end(lock);
    } else {
        *callback = (struct lock_callback){0};
    }
    result->elapsed_ms = (uint32_t)(elapsed_us / MS);
    lock->pins++;
    runtime_batch(locks_of(lock)->runtime, false);
    handle_check(lock);
    if (now.call != NULL) now.call(lock, result, now.arg);
    handle_check(lock);
    lock->pins--;
    handle_reap(lock);
}

/* The slot of a permit that is held. */
static uint32_t held_slot(const struct claim *claim)
{
    return claim->keylist->permits != 0 && core_notified_held(claim->core) ? core_slot(claim->core)
                                                                           : QUORLOCK_SLOT_NONE;
}

static void call_back(struct quorlock_lock *lock, struct lock_callback *callback, const struct claim *claim,
                      const struct core_completion *completion)
{
    const struct alloc *alloc = &claim->all->runtime->alloc;
    struct message_votes votes;
    char text[MESSAGE_SIZE];
    char owner[REQUEST_OWNER_SIZE];
    struct quorlock_result result = {.status = completion->expired ? QUORLOCK_ERR_LOST : completion->status,
                                     .rounds = core_rounds(claim->core),
                                     .valid_ms = handle_valid_ms(lock, runtime_now_us(locks_of(lock)->runtime)),
                                     .text = text,
                                     .fence = core_fence(claim->core),
                                     .slot = held_slot(claim)};

    /* Nobody reads the result. */
    if (callback->call == NULL) {
        run_callback(lock, callback, &result);
        return;
    }
    result.token = claim_owner(claim, owner);
    message_votes(claim, completion->kind == CORE_NOTIFY_RELEASED, &votes, &result);
    if (completion->kind == CORE_NOTIFY_RELEASED) {
        message_released(claim, completion, &result, text, sizeof(text));
    } else {
        message_verdict(claim, completion->status, &result, text, sizeof(text));
    }
    message_keep_texts(claim, &votes);
    run_callback(lock, callback, &result);
    message_drop_texts(&votes, alloc);
}

/* ---- completions without a core ---- */

/* Report one more hold, or the end of a wait in the queue: the votes are those of the claim that asked the nodes. */
static void report_completed_acquire(struct quorlock_lock *lock)
{
    const struct alloc *alloc = &locks_of(lock)->runtime->alloc;
    const struct claim *held, *claim;
    struct message_votes votes = {.n_kept = 0};
    char text[MESSAGE_SIZE];
    char owner[REQUEST_OWNER_SIZE];
    struct quorlock_result result = {.text = text, .slot = QUORLOCK_SLOT_NONE};

    lock->state = HANDLE_EXPANDED;
    if (reentry_renews_again(lock)) return;
    held = handle_held(lock);
    claim = held != NULL ? held : lock->keylist->asked;
    result.status = lock->acquired_status;
    result.valid_ms = handle_valid_ms(lock, runtime_now_us(locks_of(lock)->runtime));
    result.fence = quorlock_lock_fence(lock);
    if (held != NULL && core_notified_held(held->core)) result.token = claim_owner(held, owner);
    if (held != NULL) result.slot = held_slot(held);
    if (claim != NULL) message_votes(claim, false, &votes, &result);
    if (result.status == QUORLOCK_OK && held != NULL) {
        snprintf(text, sizeof(text), "\"%s\" is held by its owner already: %u holds now", keylist_name(lock->keylist),
                 held->holds);
    } else if (lock->pending.why != NULL) {
        snprintf(text, sizeof(text), "%s: \"%s\": %s", quorlock_status_text(result.status), keylist_name(lock->keylist),
                 lock->pending.why);
    } else if (claim != NULL) {
        message_verdict(claim, result.status, &result, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "%s: \"%s\"", quorlock_status_text(result.status), keylist_name(lock->keylist));
    }
    if (claim != NULL) message_keep_texts(claim, &votes);
    run_callback(lock, &lock->pending.ended, &result);
    message_drop_texts(&votes, alloc);
}

static void report_given_back(struct quorlock_lock *lock)
{
    struct given_back *given_back = FIRST_OF(&lock->reentrant->given_back, struct given_back, link);
    struct lock_callback callback = given_back->callback;
    char text[MESSAGE_SIZE];
    struct quorlock_result result = {
        .status = given_back->expired ? QUORLOCK_ERR_LOST : QUORLOCK_OK, .text = text, .slot = QUORLOCK_SLOT_NONE};

    assert(lock->reentrant != NULL && lock->releases > 0);
    list_remove(&lock->reentrant->given_back, &given_back->link);
    alloc_free(&locks_of(lock)->runtime->alloc, given_back);
    lock->releases--;
    locks_of(lock)->releases--;
    snprintf(text, sizeof(text), "one hold of \"%s\" given back; its owner has others", keylist_name(lock->keylist));
    run_callback(lock, &callback, &result);
}

/* Report a release for which there was no memory. */
static void report_dropped(struct quorlock_lock *lock)
{
    struct lock_callback callback = lock->pending.ended;
    char text[MESSAGE_SIZE];
    struct quorlock_result result = {.status = lock->acquired_status, .text = text, .slot = QUORLOCK_SLOT_NONE};

    assert(lock->state == HANDLE_DROPPED && lock->releases > 0);
    lock->state = HANDLE_EXPANDED;
    lock->releases--;
    locks_of(lock)->releases--;
    snprintf(text, sizeof(text), "out of memory: the nodes were not asked to release \"%s\", which ends with its lease",
             keylist_name(lock->keylist));
    run_callback(lock, &callback, &result);
}

static void report_completed(struct quorlock_lock *lock)
{
    size_t given_back = lock->reentrant != NULL ? lock->reentrant->given_back.count : 0;
    size_t left = given_back + (lock->state == HANDLE_COMPLETED || lock->state == HANDLE_DROPPED);

    handle_check(lock);
    assert(left > 0);
    list_remove(&locks_of(lock)->completed, &lock->in_due);
    if (left > 1) list_add(&locks_of(lock)->completed, &lock->in_due);
    if (given_back > 0) {
        report_given_back(lock);
    } else if (lock->state == HANDLE_COMPLETED) {
        report_completed_acquire(lock);
    } else if (lock->state == HANDLE_DROPPED) {
        report_dropped(lock);
    }
}

/* ---- completions of a core ---- */

static void report_handle_of_loss(struct quorlock_lock *lock, const struct quorlock_loss *loss)
{
    /* A grant whose callback has not run yet becomes a failed acquire. */
    if (lock->state == HANDLE_COMPLETED && lock->acquired_status == QUORLOCK_OK) {
        lock->acquired_status = QUORLOCK_ERR_LOST;
        handle_unshare(lock, 1);
        if (handle_held(lock) == NULL) return;
    }
    lock->pins++;
    runtime_batch(locks_of(lock)->runtime, false);
    handle_check(lock);
    if (lock->lost != NULL) lock->lost(lock, loss, lock->lost_arg);
    handle_check(lock);
    lock->pins--;
    handle_reap(lock);
}

/* Report to all handles that held it, each once. A callback may free any of them. */
static void report_lost(struct claim *claim, const struct core_completion *completion)
{
    struct message_votes votes;
    struct quorlock_result result = {0};
    struct quorlock_loss loss = {.reason = (int)completion->loss, .text = message_loss(completion->loss)};

    claim_check(claim);
    assert(core_phase_now(claim->core) == CORE_LOST && completion->loss != CORE_LOSS_NONE);
    message_votes(claim, false, &votes, &result);
    loss.votes = result.votes;
    loss.n_votes = result.n_votes;
    loss.remaining_ms = claim_remaining_ms(claim);
    message_keep_texts(claim, &votes);
    if (claim->named == NULL && claim->holds > 0) report_handle_of_loss(claim->handle, &loss);
    LIST_WALK (struct reentrant, sharer, &claim->sharers, in_share) report_handle_of_loss(sharer->lock, &loss);
    message_drop_texts(&votes, &claim->all->runtime->alloc);
}

/* A compact lock has no votes. */
static void report_compact_lost(struct quorlock_lock *lock)
{
    struct message_votes votes;
    enum core_loss reason = (enum core_loss)handle_record(lock)->loss;
    uint64_t now_us = runtime_now_us(locks_of(lock)->runtime);
    uint64_t until_us = core_compact_valid_until(handle_record(lock), &lock->terms->config);
    struct quorlock_loss loss = {.reason = (int)reason,
                                 .text = message_loss(reason),
                                 .votes = votes.at,
                                 .remaining_ms = (uint32_t)(validity_sub(until_us, now_us) / MS)};

    handle_check(lock);
    assert(lock->state == HANDLE_COMPACT_LOST && reason != CORE_LOSS_NONE);
    lock->state = HANDLE_COMPACT;
    list_remove(&locks_of(lock)->lost, &lock->in_due);
    report_handle_of_loss(lock, &loss);
}

static void report_acquired(struct claim *claim, const struct core_completion *completion)
{
    struct quorlock_lock *handle = claim->acquirer;
    bool granted = completion->status == CORE_OK;

    assert(!granted || core_phase_now(claim->core) == CORE_HELD);
    assert(claim->holds == 0);
    claim->acquirer = NULL;
    claim_keep_owner(claim, granted);
    if (handle == NULL) return;
    if (granted) {
        handle_share(handle, claim);
        reentry_admit(claim);
        /* A grant of another key may have a lower token, and a grant without fencing has none. */
        if (core_fence(claim->core) > claim->all->last_fence) claim->all->last_fence = core_fence(claim->core);
    }
    queue_leave(handle);
    call_back(handle, &handle->pending.ended, claim, completion);
}

static void report_extended(struct claim *claim, const struct core_completion *completion)
{
    struct quorlock_lock *handle = claim->extender;

    assert(handle == NULL || handle->operation == OPERATION_EXTEND);
    claim->extender = NULL;
    reentry_renewed(claim, completion->status);
    if (handle != NULL) call_back(handle, &handle->pending.ended, claim, completion);
}

static void notify_report_released(struct claim *claim, const struct core_completion *completion)
{
    struct quorlock_lock *handle = claim->releaser;

    assert(handle == NULL || handle->releases > 0);
    /* This ends the release of an earlier hold, whose callback has run already. */
    if (claim->put_off) return;
    claim->releaser = NULL;
    if (handle == NULL) return;
    handle->releases--;
    locks_of(handle)->releases--;
    call_back(handle, &claim->released, claim, completion);
}

/* The claim may be gone afterwards. */
static void report_claim(struct claim *claim)
{
    struct core_completion completion;

    claim->pins++;
    completion = claim_dispatch(claim);
    switch (completion.kind) {
    case CORE_NOTIFY_NOTHING: break;
    case CORE_NOTIFY_LOST: report_lost(claim, &completion); break;
    case CORE_NOTIFY_ACQUIRED: report_acquired(claim, &completion); break;
    case CORE_NOTIFY_EXTENDED: report_extended(claim, &completion); break;
    case CORE_NOTIFY_RELEASED: notify_report_released(claim, &completion); break;
    }
    claim->pins--;
    claim_check(claim);
    claim_let_go(claim);
    claim_reap(claim);
}

/* ---- the order ---- */

void notify_budget(struct locks *all)
{
    all->ready_budget = all->claims.ready.count;
    all->completed_budget = all->completed.count;
}

bool notify_waits(const struct locks *all)
{
    return all->claims.ready.count > 0 || all->completed.count > 0 || all->claims.lost.count > 0 || all->lost.count > 0;
}

static bool grant_waits(const struct locks *all)
{
    const struct claim *first = FIRST_OF(&all->claims.ready, struct claim, in_due);

    return first != NULL && core_phase_now(first->core) == CORE_GRANTED;
}

/* Rule 3.5. */
bool notify_next(struct turn *turn)
{
    struct locks *all = CONTAINER_OF(turn, struct locks, turn);
    struct list *ready = &all->claims.ready;

    if (all->claims.lost.count > 0) {
        report_claim(FIRST_OF(&all->claims.lost, struct claim, in_due));
    } else if (all->lost.count > 0) {
        report_compact_lost(FIRST_OF(&all->lost, struct quorlock_lock, in_due));
    } else if (all->completed_budget > 0 && (all->ready_budget == 0 || !grant_waits(all))) {
        all->completed_budget--;
        if (all->completed.count > 0) report_completed(FIRST_OF(&all->completed, struct quorlock_lock, in_due));
    } else if (all->ready_budget > 0) {
        all->ready_budget--;
        if (ready->count > 0) report_claim(FIRST_OF(ready, struct claim, in_due));
    } else {
        return false;
    }
    return true;
}
