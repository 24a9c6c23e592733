/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c - the caller's handles: the public API of a lock
 */
#include "lock.h"

#include <stdio.h>
#include <string.h>

#include "core/validity.h"

#define MS 1000u

/* ---- shares of a grip ---- */

void lock_share(struct quorlock *lock, struct grip *grip)
{
    lock->held = grip;
    lock->holds++;
    grip->holds++;
    list_add(&grip->sharers, &lock->share);
}

void lock_unshare(struct quorlock *lock, uint32_t holds)
{
    struct grip *grip = lock->held;

    if (grip == NULL) return;
    lock->holds -= holds;
    grip->holds -= holds;
    if (lock->holds > 0) return;
    list_remove(&grip->sharers, &lock->share);
    lock->held = NULL;
}

/* ---- what the caller is told ---- */

void lock_call_back(struct quorlock *lock, struct lock_callback *callback, struct grip *grip,
                    const struct core_tell *tell)
{
    struct quorlock_vote votes[QUORLOCK_NODES_MAX];
    struct lock_callback now = *callback;
    uint64_t now_us = client_now_us(lock->client);
    char text[LOCK_TEXT_SIZE];
    struct quorlock_result result = {.status = tell->status,
                                     .rounds = core_rounds(grip->core),
                                     .elapsed_ms = (uint32_t)(validity_sub(now_us, now.begun_us) / MS),
                                     .valid_ms = (uint32_t)(core_valid_us(grip->core, now_us) / MS),
                                     .expired = tell->expired,
                                     .text = text,
                                     .fence = core_fence(grip->core),
                                     .owner = grip->owner[0] != '\0' ? grip->owner : NULL};

    *callback = (struct lock_callback){0};
    if (tell->kind == CORE_TELL_RELEASED) {
        words_release_votes(grip, votes, &result);
        snprintf(text, sizeof(text), "released \"%s\" on %u of %zu nodes%s", lock->line->name,
                 result.granted + result.refused, result.n_votes,
                 tell->expired ? "; it had expired or was lost before" : "");
    } else {
        words_votes(grip, votes, &result);
        words_verdict(grip, tell->status, &result, text, sizeof(text));
    }
    lock->pins++;
    if (now.call != NULL) now.call(lock, &result, now.arg);
    lock->pins--;
    lock_reap(lock);
}

/* ---- the end ---- */

void lock_give_up(struct quorlock *lock, int status)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .reason = status};
    struct grip *grip = lock->grip;

    lock->freed = true;
    lock->lost = NULL;
    if (grip == NULL) return;
    if (lock->acquired.owed || lock->extended.owed) (void)grip_step(grip, &event);
    lock_unshare(lock, lock->holds);
    lock->grip = NULL;
    grip->handle = NULL;
    grip_let_go(grip);
    grip_reap(grip);
}

void lock_destroy(struct quorlock *lock)
{
    struct quorlock_client *client = lock->client;

    list_remove(&client->locks, &lock->all);
    line_leave(lock->line);
    alloc_free(&client->alloc, lock);
}

void lock_reap(struct quorlock *lock)
{
    bool owed = lock->acquired.owed || lock->extended.owed || lock->released.owed;

    /* While the client closes, handles stay good until its end. */
    if (lock->freed && !owed && lock->pins == 0 && !lock->client->closing) lock_destroy(lock);
}

/* ---- the public API ---- */

int quorlock_new(quorlock **ret, quorlock_client *client, const char *const *keys, size_t n_keys,
                 const struct quorlock_options *options)
{
    struct core_config config;
    struct quorlock *lock;
    int status;

    if (client->closing) {
        return client_fail(client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    status = options_lock(&config, &client->options, keys, n_keys, options, &client->error);
    if (status != 0) return status;
    lock = alloc_zero(&client->alloc, sizeof(*lock));
    if (lock == NULL) goto nomem;
    lock->client = client;
    lock->config = config;
    lock->fence_ttl_ms = options_fence_ttl_ms(options);
    lock->line = line_join(client, keys, n_keys);
    if (lock->line == NULL) goto nomem;
    list_add(&client->locks, &lock->all);
    *ret = lock;
    return 0;
nomem:
    alloc_free(&client->alloc, lock);
    return client_fail(client, QUORLOCK_NOMEM, "%s", quorlock_status_text(QUORLOCK_NOMEM));
}

static int fail(struct quorlock *lock, int status, const char *why)
{
    return client_fail(lock->client, status, "\"%s\": %s%s", lock->line->name, quorlock_status_text(status),
                       why);
}

/* What every operation asks first. */
static int check_free(struct quorlock *lock)
{
    if (lock->client->closing || lock->freed) {
        return client_fail(lock->client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    if (lock->acquired.owed || lock->extended.owed) return fail(lock, QUORLOCK_BUSY, "");
    return 0;
}

int quorlock_acquire(quorlock *lock, quorlock_cb cb, void *arg)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {
        .type = CORE_EV_ACQUIRE, .random = random, .wall_us = grip_fence_floor(lock->client, &lock->config)};
    int status = check_free(lock);

    if (status != 0) return status;
    if (grip_draw(random) != 0) {
        return client_fail(lock->client, QUORLOCK_STATE, "getrandom failed: no owner token without it");
    }
    if (lock->grip == NULL) lock->grip = grip_new(lock);
    if (lock->grip == NULL) return fail(lock, QUORLOCK_NOMEM, "");
    grip_catch_up(lock->grip);
    status = grip_step(lock->grip, &event);
    if (status != 0) return fail(lock, status, ": it is held already, or its loss was not told yet");
    /* What was lost, and not released, is given up with this. */
    lock_unshare(lock, lock->holds);
    lock->grip->told_wait_reason = 0;
    lock->grip->told_wait_us = 0;
    lock->grip->acquirer = lock;
    lock->acquired = (struct lock_callback){cb, arg, event.now_us, true};
    return 0;
}

/* As far as options and guards say; a node that was not reached yet may say less, and is DOWN to us then. */
static uint32_t lease_most_ms(const struct quorlock *lock)
{
    uint32_t most_ms = options_lease_most_ms(&lock->client->options);

    for (uint32_t i = 0; i < lock->client->n_nodes; i++) {
        uint32_t guard_ms = node_max_lease_ms(lock->client->nodes[i].node);

        if (guard_ms != 0 && guard_ms < most_ms) most_ms = guard_ms;
    }
    return most_ms;
}

int quorlock_extend(quorlock *lock, uint32_t lease_ms, quorlock_cb cb, void *arg)
{
    struct core_event event = {.type = CORE_EV_EXTEND, .lease_us = (uint64_t)lease_ms * MS};
    struct grip *grip = lock->held;
    uint32_t most_ms = lease_most_ms(lock);
    int status = check_free(lock);

    if (status != 0) return status;
    if (lease_ms > most_ms) {
        return client_fail(lock->client, QUORLOCK_INVAL, "lease_ms is %u: max_lease_ms is %u", lease_ms,
                           most_ms);
    }
    if (grip == NULL) return fail(lock, QUORLOCK_STATE, ": it is not held");
    for (uint32_t i = 0; i < lock->client->n_nodes; i++) {
        if (!grip_lease_refused(grip, i, event.lease_us)) continue;
        return client_fail(lock->client, QUORLOCK_INVAL, "lease_ms is %u: the guard of %s says at most %u",
                           lease_ms, node_name(lock->client->nodes[i].node),
                           node_max_lease_ms(lock->client->nodes[i].node));
    }
    status = grip_step(grip, &event);
    if (status == QUORLOCK_INVAL) {
        return client_fail(lock->client, status, "lease_ms is %u: the lease is %llu, and is never shortened",
                           lease_ms, (unsigned long long)(core_lease_us(grip->core) / MS));
    }
    if (status != 0) return fail(lock, status, status == QUORLOCK_BUSY ? "" : ": it is not held");
    grip->extender = lock;
    lock->extended = (struct lock_callback){cb, arg, event.now_us, true};
    return 0;
}

/* The answers of a release are counted from its beginning. */
static int step_release(struct grip *grip, struct core_event *event)
{
    uint32_t n_nodes = grip->client->n_nodes;
    int before[QUORLOCK_NODES_MAX] = {0};
    int status;

    for (uint32_t i = 0; i < n_nodes; i++) {
        before[i] = grip->notes[i].released;
        grip->notes[i].released = QUORLOCK_VOTE_NONE;
    }
    status = grip_step(grip, event);
    for (uint32_t i = 0; i < n_nodes; i++) {
        struct lock_note *note = &grip->notes[i];

        /* The release in flight, if there is one, still waits for its answers. */
        if (status != 0) note->released = before[i];
        if (status == 0 && note->released == QUORLOCK_VOTE_NONE && core_debts(grip->core, i) > 0) {
            note->released = QUORLOCK_VOTE_FAILED;
        }
    }
    return status;
}

int quorlock_release(quorlock *lock, quorlock_cb cb, void *arg)
{
    struct core_event event = {.type = CORE_EV_RELEASE};
    struct grip *grip = lock->held;
    int status = check_free(lock);

    if (status != 0) return status;
    if (lock->released.owed) return fail(lock, QUORLOCK_BUSY, "");
    if (grip == NULL) return fail(lock, QUORLOCK_STATE, ": there is no grant to release");
    status = step_release(grip, &event);
    if (status != 0) {
        return fail(lock, status, status == QUORLOCK_BUSY ? "" : ": there is no grant to release");
    }
    lock_unshare(lock, lock->holds);
    grip->releaser = lock;
    lock->released = (struct lock_callback){cb, arg, event.now_us, true};
    return 0;
}

int quorlock_cancel(quorlock *lock)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .reason = CORE_CANCELED};
    struct grip *grip = lock->acquired.owed ? lock->grip : lock->held;
    int status = QUORLOCK_STATE;

    if (lock->acquired.owed || lock->extended.owed) status = grip_step(grip, &event);
    if (status == 0) return 0;
    return client_fail(lock->client, status, "\"%s\": no acquire or extend is in flight", lock->line->name);
}

void quorlock_free(quorlock *lock)
{
    if (lock == NULL || lock->freed) return;
    lock_give_up(lock, CORE_CANCELED);
    lock_reap(lock);
}

void quorlock_on_lost(quorlock *lock, quorlock_lost_cb cb, void *arg)
{
    lock->lost = cb;
    lock->lost_arg = arg;
}

uint32_t quorlock_valid_ms(const quorlock *lock)
{
    if (lock->held == NULL) return 0;
    return (uint32_t)(core_valid_us(lock->held->core, client_now_us(lock->client)) / MS);
}

const char *quorlock_owner(const quorlock *lock)
{
    return lock->held != NULL && core_told_held(lock->held->core) ? lock->held->owner : NULL;
}

uint64_t quorlock_fence(const quorlock *lock)
{
    return lock->held != NULL && core_told_held(lock->held->core) ? core_fence(lock->held->core) : 0;
}
