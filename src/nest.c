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

int nest_enter(struct quorlock *lock, struct grip *grip)
{
    uint64_t lease_us = core_lease_us(grip->core);
    uint64_t left_us = core_valid_us(grip->core, client_now_us(lock->client));
    struct core_event event = {.type = CORE_EV_EXTEND, .lease_us = lease_us};
    int status;

    if (core_phase_now(grip->core) == CORE_LOST || core_lost_untold(grip->core)) {
        return lock_fail(lock, QUORLOCK_LOST, ": its owner has not released all that was lost");
    }
    if (left_us >= lease_us / NEST_PART_LEFT && left_us >= lock->config.min_valid_us &&
        lock->config.lease_us <= lease_us) {
        lock_share(lock, grip);
        lock_tell_acquired(lock, QUORLOCK_OK);
        return 0;
    }
    if (lock->config.lease_us > lease_us) event.lease_us = lock->config.lease_us;
    status = grip_step(grip, &event);
    /* A renewal that is under way already serves as well. */
    if (status != 0 && status != QUORLOCK_BUSY) return lock_fail(lock, status, "");
    list_add(&grip->entrants, &lock->turn);
    return 0;
}

void nest_renewed(struct grip *grip, int status)
{
    struct quorlock *lock;

    while ((lock = LIST_ITEM(grip->entrants.first, struct quorlock, turn)) != NULL) {
        list_remove(&grip->entrants, &lock->turn);
        if (status == QUORLOCK_OK) lock_share(lock, grip);
        lock_tell_acquired(lock, status);
    }
}

void nest_step_out(struct quorlock *lock)
{
    struct grip *grip;

    /* Whose grip it waits for is found by its owner, as it was then. */
    if (lock->owner_name == NULL || nest_check(lock, &grip) != 0 || grip == NULL) return;
    for (struct link *at = grip->entrants.first; at != NULL; at = at->next) {
        if (at != &lock->turn) continue;
        list_remove(&grip->entrants, at);
        grip_let_go(grip);
        return;
    }
}

void nest_admit(struct grip *grip)
{
    struct link *next;

    if (grip->owner_name == NULL) return;
    for (struct link *at = grip->line->waiting.first; at != NULL; at = next) {
        struct quorlock *lock = LIST_ITEM(at, struct quorlock, turn);

        next = at->next;
        if (!same_owner(lock, grip->owner_name) || lock->held == grip) continue;
        if (lock->grip != NULL && lock->grip->acquirer == lock) grip_abandon(lock->grip);
        client_wake_at(lock->client, &lock->waker, UINT64_MAX);
        list_remove(&grip->line->waiting, &lock->turn);
        lock_share(lock, grip);
        lock_tell_acquired(lock, QUORLOCK_OK);
    }
}
