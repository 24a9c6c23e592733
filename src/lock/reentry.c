/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reentry.c - several holds of one owner
 *
 * The owner is a name that the caller gives, for an event loop has no threads to tell callers apart by. What
 * the nodes see is one plain lock with one token; how often it is held is counted here, for a count on the
 * nodes would differ from node to node, grow by every repeated request and go with a node's memory.
 */
#include <stdio.h>
#include <string.h>

#include "core/validity.h"
#include "lock/lock.h"

/* Renewed first where less than this part of the lease is left. */
#define REENTRY_PART_LEFT 3u

static bool same_owner(const struct quorlock *lock, const char *owner_name)
{
    return lock->owner_name != NULL && owner_name != NULL && strcmp(lock->owner_name, owner_name) == 0;
}

/* Both are sorted. */
static const char *common_key(const struct keylist *a, const struct keylist *b)
{
    size_t k = 0;

    for (size_t i = 0; i < a->n_keys; i++) {
        while (k < b->n_keys && strcmp(b->keys[k].text, a->keys[i].text) < 0) k++;
        if (k < b->n_keys && strcmp(b->keys[k].text, a->keys[i].text) == 0) return a->keys[i].text;
    }
    return NULL;
}

static int fail_overlap(struct quorlock *lock, const struct claim *claim, const char *key)
{
    return client_fail(lock->client, QUORLOCK_INVAL,
                       "owner \"%.64s\" has \"%.100s\" in the list \"%.100s\" already and asks for the list "
                       "\"%.100s\": one owner nests the same list of keys only",
                       lock->owner_name, key, claim->keylist->name, lock->keylist->name);
}

int reentry_check(struct quorlock *lock, struct claim **ret_claim)
{
    *ret_claim = NULL;
    for (struct link *at = lock->client->active.first; at != NULL; at = at->next) {
        struct claim *claim = LIST_ITEM(at, struct claim, active);
        bool wanted = claim->holds > 0 || claim->pending_holds.count > 0;
        const char *key;

        if (!same_owner(lock, claim->owner_name) || (!wanted && claim->acquirer == NULL)) continue;
        if (claim->keylist == lock->keylist) {
            if (wanted) *ret_claim = claim;
            continue;
        }
        key = common_key(lock->keylist, claim->keylist);
        if (key != NULL) return fail_overlap(lock, claim, key);
    }
    return 0;
}

/* ---- pending_on ---- */

/* Does what is held suit this handle, but for the time that is left? */
static int check_terms(const struct quorlock *lock, const struct claim *claim, const char **ret_why)
{
    if (core_phase_now(claim->core) == CORE_LOST || core_loss_pending(claim->core)) {
        *ret_why = "its owner has not released all that was lost";
        return QUORLOCK_LOST;
    }
    if (lock->config.fencing && !claim->config.fencing) {
        *ret_why = "its owner holds it without a fencing token: ask for one in the outermost acquire";
        return QUORLOCK_INVAL;
    }
    return 0;
}

static bool lasts(const struct quorlock *lock, const struct claim *claim, uint64_t least_us)
{
    uint64_t left_us = core_valid_us(claim->core, client_now_us(lock->client));

    return left_us > 0 && left_us >= least_us && left_us >= lock->config.min_valid_us &&
           lock->config.lease_us <= core_lease_us(claim->core);
}

/* For all pending_holds; one that is under way already serves as well, or is followed by another. */
static int renew(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_EXTEND, .lease_us = core_lease_us(claim->core)};
    int status;

    for (struct link *at = claim->pending_holds.first; at != NULL; at = at->next) {
        const struct quorlock *lock = LIST_ITEM(at, struct quorlock, turn);

        if (lock->config.lease_us > event.lease_us) event.lease_us = lock->config.lease_us;
    }
    status = claim_step(claim, &event);
    if (status == QUORLOCK_STATE && core_phase_now(claim->core) == CORE_LOST) return QUORLOCK_LOST;
    return status == QUORLOCK_BUSY ? 0 : status;
}

static void leave_pending(struct quorlock *lock)
{
    client_wake_at(lock->client, &lock->waker, UINT64_MAX);
    list_remove(&lock->pending_on->pending_holds, &lock->turn);
    lock->pending_on = NULL;
}

int reentry_enter(struct quorlock *lock, struct claim *claim, const char **ret_why)
{
    int status = check_terms(lock, claim, ret_why);

    if (status != 0) return status;
    if (lasts(lock, claim, core_lease_us(claim->core) / REENTRY_PART_LEFT)) {
        lock_share(lock, claim);
        lock_complete_acquire(lock, QUORLOCK_OK, NULL);
        return 0;
    }
    list_add(&claim->pending_holds, &lock->turn);
    lock->pending_on = claim;
    status = renew(claim);
    if (status != 0) {
        leave_pending(lock);
    } else if (lock->config.wait_us != 0) {
        client_wake_at(lock->client, &lock->waker, validity_add(lock->acquired.begun_us, lock->config.wait_us));
    }
    return status;
}

static void end_pending(struct quorlock *lock, struct claim *claim, int status)
{
    const char *why = NULL;

    leave_pending(lock);
    if (status == QUORLOCK_OK) lock_share(lock, claim);
    if (status == QUORLOCK_NOQUORUM) why = "its owner holds it, and renewing it first reached no quorum";
    if (status == QUORLOCK_TIMEDOUT) why = "its owner holds it, and less validity is left than is asked for";
    if (status == QUORLOCK_LOST) why = "its owner held it, and lost it meanwhile";
    lock_complete_acquire(lock, status, why);
}

void reentry_renewed(struct claim *claim, int status)
{
    struct list_walk walk;
    struct link *at;

    list_walk_begin(&walk, &claim->pending_holds);
    while ((at = list_walk_next(&walk)) != NULL) {
        struct quorlock *lock = LIST_ITEM(at, struct quorlock, turn);
        bool as_asked = lock->config.lease_us <= core_lease_us(claim->core);

        if (status == QUORLOCK_OK && lasts(lock, claim, 0)) {
            end_pending(lock, claim, QUORLOCK_OK);
        } else if (status == QUORLOCK_OK && as_asked) {
            /* Renewed just now, and yet less is left than it wants. */
            end_pending(lock, claim, QUORLOCK_TIMEDOUT);
        } else if (status != QUORLOCK_OK && status != QUORLOCK_CANCELED) {
            end_pending(lock, claim, status);
        }
    }
    if (claim->pending_holds.count == 0) return;
    /* It was another handle's renewal: for a shorter lease, or canceled by it. */
    status = renew(claim);
    while (status != 0 && claim->pending_holds.count > 0) {
        end_pending(LIST_ITEM(claim->pending_holds.first, struct quorlock, turn), claim, status);
    }
}

void reentry_leave(struct quorlock *lock)
{
    struct claim *claim = lock->pending_on;

    if (claim == NULL) return;
    leave_pending(lock);
    claim_let_go(claim);
}

static void admit(struct quorlock *lock, struct claim *claim)
{
    const char *why = NULL;
    int status;

    if (lock->freed || lock->held == claim || !same_owner(lock, claim->owner_name)) return;
    if (lock->claim != NULL && lock->claim->acquirer == lock) {
        /* Its end is certain, and waits to be told. */
        if (core_phase_now(lock->claim->core) == CORE_IDLE) return;
        claim_abandon(lock->claim);
    }
    client_wake_at(lock->client, &lock->waker, UINT64_MAX);
    list_remove(&claim->keylist->waiting, &lock->turn);
    status = reentry_enter(lock, claim, &why);
    if (status != 0) lock_complete_acquire(lock, status, why);
}

void reentry_admit(struct claim *claim)
{
    struct list_walk walk;
    struct link *at;

    if (claim->owner_name == NULL) return;
    list_walk_begin(&walk, &claim->keylist->waiting);
    while ((at = list_walk_next(&walk)) != NULL) admit(LIST_ITEM(at, struct quorlock, turn), claim);
    /* Those who try once do not stand in line. */
    list_walk_begin(&walk, &claim->client->active);
    while ((at = list_walk_next(&walk)) != NULL) {
        struct quorlock *lock = LIST_ITEM(at, struct claim, active)->acquirer;

        if (lock != NULL && lock->keylist == claim->keylist) admit(lock, claim);
    }
}
