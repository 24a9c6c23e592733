/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/reentry.h"

#include <assert.h>

#include "core/validity.h"

/* The claim is renewed first when less than this part of the lease is left. */
#define REENTRY_PART_LEFT 3u

static int fail_overlap(struct quorlock_lock *lock, const struct claim *claim, const char *key)
{
    return runtime_fail(
        locks_of(lock)->runtime, QUORLOCK_ERR_INVAL,
        "owner \"%.64s\" has \"%.100s\" in the list \"%.100s\" already and asks for \"%.100s\": an owner "
        "can nest only the identical list of keys; use another owner, or the same keys",
        handle_owner(lock)->name, key, keylist_name(claim->keylist), keylist_name(lock->keylist));
}

/* Rule 12.2. */
int reentry_find(struct quorlock_lock *lock, struct claim **ret_claim)
{
    handle_check(lock);
    assert(lock->reentrant != NULL);
    *ret_claim = NULL;
    LIST_EACH (struct claim, claim, &handle_owner(lock)->claims, in_owner) {
        bool wanted = claim->holds > 0 || claim->pending_holds.count > 0;
        const char *key;

        if (!wanted && claim->acquirer == NULL) continue;
        if (claim->keylist == lock->keylist) {
            if (wanted) *ret_claim = claim;
            continue;
        }
        key = keylist_common_key(lock->keylist, claim->keylist);
        if (key != NULL) return fail_overlap(lock, claim, key);
    }
    return 0;
}

/* ---- entering ---- */

/* Check whether the hold suits this handle, apart from the time that is left. */
static int check_terms(const struct quorlock_lock *lock, const struct claim *claim, const char **ret_why)
{
    if (core_phase_now(claim->core) == CORE_LOST || core_loss_pending(claim->core)) {
        *ret_why = "its owner has not released all that was lost";
        return QUORLOCK_ERR_LOST;
    }
    if ((claim->terms->config.shared & ~lock->terms->config.shared) != 0) {
        *ret_why = "its owner holds it shared, so alone it would wait for itself: give the shared lock back first";
        return QUORLOCK_ERR_STATE;
    }
    if (lock->terms->config.fencing && !claim->terms->config.fencing) {
        *ret_why = "its owner holds it without a fencing token: ask for one in the outermost acquire";
        return QUORLOCK_ERR_INVAL;
    }
    if (lock->terms->config.holder.keep_us > claim->terms->config.holder.keep_us) {
        *ret_why = "its owner holds it with a shorter keep_ms: ask for the longest one in the outermost acquire";
        return QUORLOCK_ERR_INVAL;
    }
    return 0;
}

static bool lasts(const struct quorlock_lock *lock, const struct claim *claim, uint64_t least_us)
{
    uint64_t left_us = core_valid_us(claim->core, runtime_now_us(locks_of(lock)->runtime));

    return left_us > 0 && left_us >= least_us && left_us >= lock->terms->config.holder.min_valid_us &&
           lock->terms->config.lease_us <= core_lease_us(claim->core);
}

/* Renew for all pending holds. A renewal that is under way may do; else reentry_renewed begins another. */
static int renew(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_EXTEND, .extend = {.lease_us = core_lease_us(claim->core)}};
    int status;

    assert(claim->named != NULL && claim->pending_holds.count > 0);
    LIST_EACH (struct quorlock_lock, lock, &claim->pending_holds, pending.turn) {
        uint64_t lease_us = lock->terms->config.lease_us;

        if (lease_us > event.extend.lease_us) event.extend.lease_us = lease_us;
    }
    status = claim_step(claim, &event);
    if (status == QUORLOCK_ERR_STATE && core_phase_now(claim->core) == CORE_LOST) return QUORLOCK_ERR_LOST;
    return status == QUORLOCK_ERR_BUSY ? 0 : status;
}

static void leave_pending(struct quorlock_lock *lock)
{
    assert(list_has(&lock->pending.turn) && lock->pending.pending_on != NULL);
    runtime_wake_at(locks_of(lock)->runtime, &lock->waker, UINT64_MAX);
    list_remove(&lock->pending.pending_on->pending_holds, &lock->pending.turn);
    lock->pending.pending_on = NULL;
}

/* Why an acquire failed inside a hold that had to be renewed first. */
static const char *why_not_renewed(int status)
{
    switch (status) {
    case QUORLOCK_ERR_NOQUORUM: return "its owner holds it, and renewing it first reached no quorum";
    case QUORLOCK_ERR_TIMEDOUT: return "its owner holds it, and less validity is left than is asked for";
    case QUORLOCK_ERR_LOST: return "its owner held it, and lost it meanwhile";
    case QUORLOCK_ERR_STATE: return "its owner holds it, and max_hold_ms has ended the renewal that it needs first";
    default: return NULL;
    }
}

/* Rules 12.1 and 12.2. */
int reentry_enter(struct quorlock_lock *lock, struct claim *claim, const char **ret_why)
{
    int status = check_terms(lock, claim, ret_why);

    assert(claim->named == handle_owner(lock) && claim->keylist == lock->keylist);
    assert(lock->pending.pending_on == NULL && !list_has(&lock->pending.turn));
    if (status != 0) return status;
    if (lasts(lock, claim, core_lease_us(claim->core) / REENTRY_PART_LEFT)) {
        handle_share(lock, claim);
        handle_complete_acquire(lock, QUORLOCK_OK, NULL);
        return 0;
    }
    list_add(&claim->pending_holds, &lock->pending.turn);
    lock->pending.pending_on = claim;
    status = renew(claim);
    if (status != 0) {
        leave_pending(lock);
        *ret_why = why_not_renewed(status);
    } else if (lock->terms->config.holder.wait_us != 0) {
        runtime_wake_at(locks_of(lock)->runtime, &lock->waker,
                        validity_add(lock->pending.ended.begun_us, lock->terms->config.holder.wait_us));
    }
    return status;
}

bool reentry_renews_again(struct quorlock_lock *lock)
{
    struct claim *claim = handle_held(lock);

    if (lock->acquired_status != QUORLOCK_OK || lasts(lock, claim, 0)) return false;
    handle_unshare(lock, 1);
    lock->acquired_status = (int16_t)reentry_enter(lock, claim, &lock->pending.why);
    if (lock->acquired_status == 0) return true;
    claim_let_go(claim);
    return false;
}

static void end_pending(struct quorlock_lock *lock, struct claim *claim, int status)
{
    assert(lock->pending.pending_on == claim && lock->operation == OPERATION_ACQUIRE);
    leave_pending(lock);
    if (status == QUORLOCK_OK) handle_share(lock, claim);
    handle_complete_acquire(lock, status, why_not_renewed(status));
    handle_check(lock);
}

void reentry_renewed(struct claim *claim, int status)
{
    LIST_WALK (struct quorlock_lock, lock, &claim->pending_holds, pending.turn) {
        bool as_asked = lock->terms->config.lease_us <= core_lease_us(claim->core);

        if (status == QUORLOCK_OK && lasts(lock, claim, 0)) {
            end_pending(lock, claim, QUORLOCK_OK);
        } else if (status == QUORLOCK_OK && as_asked) {
            /* The claim was renewed just now, and less is left than this handle wants. */
            end_pending(lock, claim, QUORLOCK_ERR_TIMEDOUT);
        } else if (status != QUORLOCK_OK && status != QUORLOCK_ERR_CANCELED) {
            end_pending(lock, claim, status);
        }
    }
    if (claim->pending_holds.count == 0) return;
    /* The renewal was of another handle: for a shorter lease, or canceled. */
    status = renew(claim);
    while (status != 0 && claim->pending_holds.count > 0) {
        end_pending(FIRST_OF(&claim->pending_holds, struct quorlock_lock, pending.turn), claim, status);
    }
    claim_check(claim);
}

void reentry_leave(struct quorlock_lock *lock)
{
    struct claim *claim = lock->pending.pending_on;

    if (claim == NULL) return;
    leave_pending(lock);
    claim_let_go(claim);
}

static void admit(struct quorlock_lock *lock, struct claim *claim)
{
    const char *why = NULL;
    int status;

    assert(claim->named != NULL && claim->holds > 0);
    if (lock->freed || handle_held(lock) == claim || handle_owner(lock) != claim->named) return;
    if (handle_asks(lock)) {
        /* Its acquire has ended and waits for its callback. */
        if (core_phase_now(lock->claim->core) == CORE_IDLE) return;
        claim_abandon(lock->claim);
    }
    runtime_wake_at(locks_of(lock)->runtime, &lock->waker, UINT64_MAX);
    bare_list_remove(&claim->keylist->waiting, &lock->pending.turn);
    status = reentry_enter(lock, claim, &why);
    if (status != 0) handle_complete_acquire(lock, status, why);
}

void reentry_admit(struct claim *claim)
{
    if (claim->named == NULL) return;
    /* admit() takes no handle from the queue but the one that it admits. */
    for (struct link *next, *link = bare_list_first(&claim->keylist->waiting); link != NULL; link = next) {
        next = list_next(link);
        admit(CONTAINER_OF(link, struct quorlock_lock, pending.turn), claim);
    }
    /* Locks that try once are not in the queue. */
    LIST_WALK (struct claim, other, &claim->named->claims, in_owner) {
        if (other->acquirer != NULL && other->keylist == claim->keylist) admit(other->acquirer, claim);
    }
}
