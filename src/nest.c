/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nest.c - several holds of one owner
 *
 * The owner is a name that the caller gives, for an event loop has no threads to tell callers apart by. What
 * the nodes see is one plain lock with one token; how often it is held is counted here, for a count on the
 * nodes would differ from node to node, grow by every repeated request and go with a node's memory.
 */
#include <stdio.h>
#include <string.h>

#include "core/validity.h"
#include "lock.h"

/* Renewed first where less than this part of the lease is left. */
#define NEST_PART_LEFT 3u

static bool same_owner(const struct quorlock *lock, const char *owner_name)
{
    return lock->owner_name != NULL && owner_name != NULL && strcmp(lock->owner_name, owner_name) == 0;
}

/* Both are sorted. */
static const char *common_key(const struct line *a, const struct line *b)
{
    size_t k = 0;

    for (size_t i = 0; i < a->n_keys; i++) {
        while (k < b->n_keys && strcmp(b->keys[k].text, a->keys[i].text) < 0) k++;
        if (k < b->n_keys && strcmp(b->keys[k].text, a->keys[i].text) == 0) return a->keys[i].text;
    }
    return NULL;
}

static int fail_overlap(struct quorlock *lock, const struct grip *grip, const char *key)
{
    return client_fail(lock->client, QUORLOCK_INVAL,
                       "owner \"%.64s\" has \"%.100s\" in the list \"%.100s\" already and asks for the list "
                       "\"%.100s\": one owner nests the same list of keys only",
                       lock->owner_name, key, grip->line->name, lock->line->name);
}

int nest_check(struct quorlock *lock, struct grip **ret_grip)
{
    *ret_grip = NULL;
    for (struct link *at = lock->client->active.first; at != NULL; at = at->next) {
        struct grip *grip = LIST_ITEM(at, struct grip, active);
        bool wanted = grip->holds > 0 || grip->entrants.count > 0;
        const char *key;

        if (!same_owner(lock, grip->owner_name) || (!wanted && grip->acquirer == NULL)) continue;
        if (grip->line == lock->line) {
            if (wanted) *ret_grip = grip;
            continue;
        }
        key = common_key(lock->line, grip->line);
        if (key != NULL) return fail_overlap(lock, grip, key);
    }
    return 0;
}

/* ---- entering ---- */

/* Does what is held suit this handle, but for the time that is left? */
static int check_terms(const struct quorlock *lock, const struct grip *grip, const char **ret_why)
{
    if (core_phase_now(grip->core) == CORE_LOST || core_lost_untold(grip->core)) {
        *ret_why = "its owner has not released all that was lost";
        return QUORLOCK_LOST;
    }
    if (lock->config.fencing && !grip->config.fencing) {
        *ret_why = "its owner holds it without a fencing token: ask for one in the outermost acquire";
        return QUORLOCK_INVAL;
    }
    return 0;
}

static bool lasts(const struct quorlock *lock, const struct grip *grip, uint64_t least_us)
{
    uint64_t left_us = core_valid_us(grip->core, client_now_us(lock->client));

    return left_us > 0 && left_us >= least_us && left_us >= lock->config.min_valid_us &&
           lock->config.lease_us <= core_lease_us(grip->core);
}

/* For all entrants; one that is under way already serves as well, or is followed by another. */
static int renew(struct grip *grip)
{
    struct core_event event = {.type = CORE_EV_EXTEND, .lease_us = core_lease_us(grip->core)};
    int status;

    for (struct link *at = grip->entrants.first; at != NULL; at = at->next) {
        const struct quorlock *lock = LIST_ITEM(at, struct quorlock, turn);

        if (lock->config.lease_us > event.lease_us) event.lease_us = lock->config.lease_us;
    }
    status = grip_step(grip, &event);
    if (status == QUORLOCK_STATE && core_phase_now(grip->core) == CORE_LOST) return QUORLOCK_LOST;
    return status == QUORLOCK_BUSY ? 0 : status;
}

static void leave_entrants(struct quorlock *lock)
{
    client_wake_at(lock->client, &lock->waker, UINT64_MAX);
    list_remove(&lock->entering->entrants, &lock->turn);
    lock->entering = NULL;
}

int nest_enter(struct quorlock *lock, struct grip *grip, const char **ret_why)
{
    int status = check_terms(lock, grip, ret_why);

    if (status != 0) return status;
    if (lasts(lock, grip, core_lease_us(grip->core) / NEST_PART_LEFT)) {
        lock_share(lock, grip);
        lock_tell_acquired(lock, QUORLOCK_OK, NULL);
        return 0;
    }
    list_add(&grip->entrants, &lock->turn);
    lock->entering = grip;
    status = renew(grip);
    if (status != 0) {
        leave_entrants(lock);
    } else if (lock->config.wait_us != 0) {
        client_wake_at(lock->client, &lock->waker, validity_add(lock->acquired.begun_us, lock->config.wait_us));
    }
    return status;
}

static void end_entering(struct quorlock *lock, struct grip *grip, int status)
{
    const char *why = NULL;

    leave_entrants(lock);
    if (status == QUORLOCK_OK) lock_share(lock, grip);
    if (status == QUORLOCK_NOQUORUM) why = "its owner holds it, and renewing it first reached no quorum";
    if (status == QUORLOCK_TIMEDOUT) why = "its owner holds it, and less validity is left than is asked for";
    if (status == QUORLOCK_LOST) why = "its owner held it, and lost it meanwhile";
    lock_tell_acquired(lock, status, why);
}

void nest_renewed(struct grip *grip, int status)
{
    struct list_walk walk;
    struct link *at;

    list_walk_begin(&walk, &grip->entrants);
    while ((at = list_walk_next(&walk)) != NULL) {
        struct quorlock *lock = LIST_ITEM(at, struct quorlock, turn);
        bool as_asked = lock->config.lease_us <= core_lease_us(grip->core);

        if (status == QUORLOCK_OK && lasts(lock, grip, 0)) {
            end_entering(lock, grip, QUORLOCK_OK);
        } else if (status == QUORLOCK_OK && as_asked) {
            /* Renewed just now, and yet less is left than it wants. */
            end_entering(lock, grip, QUORLOCK_TIMEDOUT);
        } else if (status != QUORLOCK_OK && status != QUORLOCK_CANCELED) {
            end_entering(lock, grip, status);
        }
    }
    if (grip->entrants.count == 0) return;
    /* It was another handle's renewal: for a shorter lease, or canceled by it. */
    status = renew(grip);
    while (status != 0 && grip->entrants.count > 0) {
        end_entering(LIST_ITEM(grip->entrants.first, struct quorlock, turn), grip, status);
    }
}

void nest_step_out(struct quorlock *lock)
{
    struct grip *grip = lock->entering;

    if (grip == NULL) return;
    leave_entrants(lock);
    grip_let_go(grip);
}

static void admit(struct quorlock *lock, struct grip *grip)
{
    const char *why = NULL;
    int status;

    if (lock->freed || lock->held == grip || !same_owner(lock, grip->owner_name)) return;
    if (lock->grip != NULL && lock->grip->acquirer == lock) {
        /* Its end is certain, and waits to be told. */
        if (core_phase_now(lock->grip->core) == CORE_IDLE) return;
        grip_abandon(lock->grip);
    }
    client_wake_at(lock->client, &lock->waker, UINT64_MAX);
    list_remove(&grip->line->waiting, &lock->turn);
    status = nest_enter(lock, grip, &why);
    if (status != 0) lock_tell_acquired(lock, status, why);
}

void nest_admit(struct grip *grip)
{
    struct list_walk walk;
    struct link *at;

    if (grip->owner_name == NULL) return;
    list_walk_begin(&walk, &grip->line->waiting);
    while ((at = list_walk_next(&walk)) != NULL) admit(LIST_ITEM(at, struct quorlock, turn), grip);
    /* Those who try once do not stand in line. */
    list_walk_begin(&walk, &grip->client->active);
    while ((at = list_walk_next(&walk)) != NULL) {
        struct quorlock *lock = LIST_ITEM(at, struct grip, active)->acquirer;

        if (lock != NULL && lock->line == grip->line) admit(lock, grip);
    }
}
