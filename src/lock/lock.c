/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c - the caller's handles: the public API of a lock
 */
#include "lock/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/validity.h"

#define MS 1000u

/* ---- shares of a claim ---- */

void lock_share(struct quorlock *lock, struct claim *claim)
{
    lock->held = claim;
    lock->holds++;
    claim->holds++;
    list_add(&claim->sharers, &lock->share);
}

void lock_unshare(struct quorlock *lock, uint32_t holds)
{
    struct claim *claim = lock->held;

    if (claim == NULL) return;
    lock->holds -= holds;
    claim->holds -= holds;
    if (lock->holds > 0) return;
    list_remove(&claim->sharers, &lock->share);
    lock->held = NULL;
}

/* ---- what the caller is told ---- */

static void run_callback(struct quorlock *lock, struct lock_callback *callback, struct quorlock_result *result)
{
    struct lock_callback now = *callback;

    *callback = (struct lock_callback){0};
    result->elapsed_ms = (uint32_t)(validity_sub(client_now_us(lock->client), now.begun_us) / MS);
    lock->pins++;
    if (now.call != NULL) now.call(lock, result, now.arg);
    lock->pins--;
    lock_reap(lock);
}

void lock_call_back(struct quorlock *lock, struct lock_callback *callback, struct claim *claim,
                    const struct core_completion *completion)
{
    struct message_votes votes;
    char text[LOCK_TEXT_SIZE];
    struct quorlock_result result = {.status = completion->status,
                                     .rounds = core_rounds(claim->core),
                                     .valid_ms = quorlock_valid_ms(lock),
                                     .expired = completion->expired,
                                     .text = text,
                                     .fence = core_fence(claim->core),
                                     .token = claim->owner[0] != '\0' ? claim->owner : NULL};

    if (completion->kind == CORE_NOTIFY_RELEASED) {
        message_release_votes(claim, &votes, &result);
        message_released(claim, completion, &result, text, sizeof(text));
    } else {
        message_votes(claim, &votes, &result);
        message_verdict(claim, completion->status, &result, text, sizeof(text));
    }
    run_callback(lock, callback, &result);
}

void lock_complete_acquire(struct quorlock *lock, int status, const char *why)
{
    lock->notify_acquired = true;
    lock->acquired_status = status;
    lock->why = why;
    list_add(&lock->client->completed, &lock->completed);
    client_run_soon(lock->client);
}

/* One more hold, or the end of a wait behind others: who asked the nodes knows the votes that tell why. */
static void notify_acquired(struct quorlock *lock)
{
    const struct claim *claim = lock->held != NULL ? lock->held : lock->keylist->asked;
    struct message_votes votes;
    char text[LOCK_TEXT_SIZE];
    struct quorlock_result result = {.status = lock->acquired_status,
                                     .valid_ms = quorlock_valid_ms(lock),
                                     .text = text,
                                     .fence = quorlock_fence(lock),
                                     .token = quorlock_token(lock)};

    lock->notify_acquired = false;
    if (claim != NULL) message_votes(claim, &votes, &result);
    if (result.status == QUORLOCK_OK && lock->held != NULL) {
        snprintf(text, sizeof(text), "\"%s\" is held by its owner already: %u holds now", lock->keylist->name,
                 lock->held->holds);
    } else if (lock->why != NULL) {
        snprintf(text, sizeof(text), "%s: \"%s\": %s", quorlock_status_text(result.status), lock->keylist->name,
                 lock->why);
    } else if (claim != NULL) {
        message_verdict(claim, result.status, &result, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "%s: \"%s\"", quorlock_status_text(result.status), lock->keylist->name);
    }
    run_callback(lock, &lock->acquired, &result);
}

static void notify_given_back(struct quorlock *lock)
{
    struct given_back *given_back = LIST_ITEM(lock->given_back.first, struct given_back, link);
    struct lock_callback callback = given_back->callback;
    char text[LOCK_TEXT_SIZE];
    struct quorlock_result result = {.expired = given_back->expired, .text = text};

    list_remove(&lock->given_back, &given_back->link);
    alloc_free(&lock->client->alloc, given_back);
    lock->releases--;
    snprintf(text, sizeof(text), "one hold of \"%s\" given back; its owner has others", lock->keylist->name);
    run_callback(lock, &callback, &result);
}

void lock_notify(struct quorlock *lock)
{
    size_t left = lock->given_back.count + lock->notify_acquired;

    list_remove(&lock->client->completed, &lock->completed);
    if (left > 1) list_add(&lock->client->completed, &lock->completed);
    if (lock->given_back.count > 0) {
        notify_given_back(lock);
    } else if (lock->notify_acquired) {
        notify_acquired(lock);
    }
}

void lock_lost(struct quorlock *lock, const struct quorlock_loss *loss)
{
    /* A hold that was not told yet was none. */
    if (lock->notify_acquired && lock->acquired_status == QUORLOCK_OK) {
        lock->acquired_status = QUORLOCK_LOST;
        lock_unshare(lock, 1);
        if (lock->held == NULL) return;
    }
    lock->pins++;
    if (lock->lost != NULL) lock->lost(lock, loss, lock->lost_arg);
    lock->pins--;
    lock_reap(lock);
}

/* ---- the end ---- */

/* Ends the acquire or extend in flight, wherever it is. */
static void end_operation(struct quorlock *lock, int status)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .reason = status};
    struct claim *claim = lock->held;

    if (lock->notify_acquired) {
        /* Granted by a hold that the owner had, and not told yet; or refused, and that stands. */
        if (lock->acquired_status != QUORLOCK_OK) return;
        lock_unshare(lock, 1);
        lock->acquired_status = status;
        claim_let_go(claim);
    } else if (lock->acquired.owed && lock->claim != NULL && lock->claim->acquirer == lock) {
        if (queue_hand_off(lock, status)) return;
        (void)claim_step(lock->claim, &event);
        /* The next asks when this end is told. */
        list_remove(&lock->keylist->waiting, &lock->turn);
    } else if (lock->acquired.owed) {
        client_wake_at(lock->client, &lock->waker, UINT64_MAX);
        reentry_leave(lock);
        list_remove(&lock->keylist->waiting, &lock->turn);
        lock_complete_acquire(lock, status, NULL);
    } else if (lock->extended.owed) {
        (void)claim_step(claim, &event);
    }
}

void lock_give_up(struct quorlock *lock, int status)
{
    struct claim *claim;
    struct claim *held;

    if (lock->freed) return;
    lock->freed = true;
    lock->lost = NULL;
    end_operation(lock, status);
    claim = lock->claim;
    held = lock->held;
    lock_unshare(lock, lock->holds);
    lock->claim = NULL;
    if (claim != NULL) claim->handle = NULL;
    if (held != NULL && held != claim) {
        claim_let_go(held);
        claim_reap(held);
    }
    if (claim == NULL) return;
    claim_let_go(claim);
    claim_reap(claim);
}

static void free_given_back(struct quorlock_client *client, struct list *list)
{
    struct given_back *given_back;

    while ((given_back = LIST_ITEM(list->first, struct given_back, link)) != NULL) {
        list_remove(list, &given_back->link);
        alloc_free(&client->alloc, given_back);
    }
}

void lock_destroy(struct quorlock *lock)
{
    struct quorlock_client *client = lock->client;

    list_remove(&client->locks, &lock->all);
    list_remove(&client->completed, &lock->completed);
    free_given_back(client, &lock->given_back);
    free_given_back(client, &lock->spare);
    client_return_waker(client, &lock->waker);
    keylist_leave(lock->keylist);
    alloc_free(&client->alloc, lock->owner_name);
    alloc_free(&client->alloc, lock);
}

void lock_reap(struct quorlock *lock)
{
    bool owed = lock->acquired.owed || lock->extended.owed || lock->releases > 0;

    /* While the client closes, handles stay good until its end. */
    if (lock->freed && !owed && lock->pins == 0 && !lock->client->closing) lock_destroy(lock);
}

/* ---- the public API ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, so that two lists in different order cannot each hold what the other waits for. */
static struct keylist *join_keylist(struct quorlock_client *client, const char *const *keys, size_t n_keys)
{
    const char *sorted[QUORLOCK_KEYS_MAX];

    memcpy(sorted, keys, n_keys * sizeof(sorted[0]));
    qsort(sorted, n_keys, sizeof(sorted[0]), by_text);
    return keylist_join(client, sorted, n_keys);
}

static int build(struct quorlock *lock, const char *const *keys, size_t n_keys, const char *owner_name)
{
    struct quorlock_client *client = lock->client;

    if (owner_name != NULL) {
        lock->owner_name = alloc_text(&client->alloc, owner_name, strlen(owner_name));
        if (lock->owner_name == NULL) return -1;
    }
    lock->keylist = join_keylist(client, keys, n_keys);
    if (lock->keylist == NULL) return -1;
    keylist_arbiters(lock->keylist, &lock->config);
    if (client_reserve_waker(client, &lock->waker, queue_wait_expired) == 0) return 0;
    keylist_leave(lock->keylist);
    return -1;
}

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
    if (build(lock, keys, n_keys, options_owner(options)) != 0) goto nomem;
    list_add(&client->locks, &lock->all);
    *ret = lock;
    return 0;
nomem:
    if (lock != NULL) alloc_free(&client->alloc, lock->owner_name);
    alloc_free(&client->alloc, lock);
    return client_fail(client, QUORLOCK_NOMEM, "%s", quorlock_status_text(QUORLOCK_NOMEM));
}

int lock_fail(struct quorlock *lock, int status, const char *why)
{
    return client_fail(lock->client, status, "\"%s\": %s%s", lock->keylist->name, quorlock_status_text(status),
                       why);
}

/* What every operation asks first. */
static int check_free(struct quorlock *lock)
{
    if (lock->client->closing || lock->freed) {
        return client_fail(lock->client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    if (lock->acquired.owed || lock->extended.owed) return lock_fail(lock, QUORLOCK_BUSY, "");
    return 0;
}

/* What was lost, and not released, is given up with a new acquire: others may come before it. */
static int give_up_lost(struct quorlock *lock)
{
    struct claim *claim = lock->held;

    if (core_phase_now(claim->core) != CORE_LOST || core_loss_pending(claim->core)) {
        return lock_fail(lock, QUORLOCK_STATE, ": it is held already, or its loss was not told yet");
    }
    lock_unshare(lock, lock->holds);
    claim_let_go(claim);
    return 0;
}

/* Where its owner has other holds, what a release needs must not fail for want of memory. */
static int prepare_release(struct quorlock *lock)
{
    struct given_back *given_back;

    if (lock->spare.count > lock->holds) return 0;
    given_back = alloc_zero(&lock->client->alloc, sizeof(*given_back));
    if (given_back == NULL) return QUORLOCK_NOMEM;
    list_add(&lock->spare, &given_back->link);
    return 0;
}

static int begin_acquire(struct quorlock *lock)
{
    const char *why = NULL;
    struct claim *claim = NULL;
    int status = 0;

    if (lock->owner_name != NULL) {
        if (prepare_release(lock) != 0) return lock_fail(lock, QUORLOCK_NOMEM, "");
        status = reentry_check(lock, &claim);
    } else if (lock->held != NULL) {
        status = give_up_lost(lock);
    }
    if (status != 0) return status;
    if (claim != NULL) {
        status = reentry_enter(lock, claim, &why);
        if (status == 0 || why == NULL) return status == 0 ? 0 : lock_fail(lock, status, "");
        return client_fail(lock->client, status, "\"%s\": %s", lock->keylist->name, why);
    }
    status = queue_acquire(lock);
    if (status == QUORLOCK_STATE) {
        return client_fail(lock->client, status, "getrandom failed: no owner token without it");
    }
    return status == 0 ? 0 : lock_fail(lock, status, "");
}

int quorlock_acquire(quorlock *lock, quorlock_cb cb, void *arg)
{
    int status = check_free(lock);

    if (status != 0) return status;
    lock->acquired = (struct lock_callback){cb, arg, client_now_us(lock->client), true};
    status = begin_acquire(lock);
    if (status != 0) lock->acquired.owed = false;
    return status;
}

int quorlock_extend(quorlock *lock, uint32_t lease_ms, quorlock_cb cb, void *arg)
{
    struct core_event event = {.type = CORE_EV_EXTEND, .lease_us = (uint64_t)lease_ms * MS};
    struct claim *claim = lock->held;
    uint32_t most_ms = lock->client->options.max_lease_ms;
    int status = check_free(lock);

    if (status != 0) return status;
    if (lease_ms > most_ms) {
        return client_fail(lock->client, QUORLOCK_INVAL, "lease_ms is %u: max_lease_ms is %u", lease_ms,
                           most_ms);
    }
    if (claim == NULL) return lock_fail(lock, QUORLOCK_STATE, ": it is not held");
    status = claim_step(claim, &event);
    if (status == QUORLOCK_INVAL) {
        return client_fail(lock->client, status, "lease_ms is %u: the lease is %llu, and is never shortened",
                           lease_ms, (unsigned long long)(core_lease_us(claim->core) / MS));
    }
    if (status != 0) return lock_fail(lock, status, status == QUORLOCK_BUSY ? "" : ": it is not held");
    claim->extender = lock;
    lock->extended = (struct lock_callback){cb, arg, event.now_us, true};
    return 0;
}

/* The owner has other holds, or is about to have one: nothing happens on the nodes. */
static void release_one(struct quorlock *lock, const struct lock_callback *callback)
{
    struct given_back *given_back = LIST_ITEM(lock->spare.first, struct given_back, link);

    list_remove(&lock->spare, &given_back->link);
    given_back->callback = *callback;
    given_back->expired = core_phase_now(lock->held->core) == CORE_LOST;
    list_add(&lock->given_back, &given_back->link);
    lock->releases++;
    lock_unshare(lock, 1);
    list_add(&lock->client->completed, &lock->completed);
    client_run_soon(lock->client);
}

int quorlock_release(quorlock *lock, quorlock_cb cb, void *arg)
{
    struct claim *claim = lock->held;
    struct lock_callback callback = {cb, arg, client_now_us(lock->client), true};
    int status = check_free(lock);

    if (status != 0) return status;
    if (claim == NULL && lock->releases > 0) return lock_fail(lock, QUORLOCK_BUSY, "");
    if (claim == NULL) return lock_fail(lock, QUORLOCK_STATE, ": there is no grant to release");
    if (claim->holds > 1 || claim->pending_holds.count > 0) {
        release_one(lock, &callback);
    } else {
        status = claim_release(lock, claim, &callback);
        if (status == 0) lock_unshare(lock, 1);
    }
    return status == 0 ? 0 : lock_fail(lock, status, "");
}

int quorlock_cancel(quorlock *lock)
{
    /* Closing and freeing have ended everything with a status of their own. */
    if (lock->client->closing || lock->freed) {
        return client_fail(lock->client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    if (lock->acquired.owed || lock->extended.owed) {
        end_operation(lock, QUORLOCK_CANCELED);
        return 0;
    }
    return client_fail(lock->client, QUORLOCK_STATE, "\"%s\": no acquire or extend is in flight",
                       lock->keylist->name);
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

const char *quorlock_token(const quorlock *lock)
{
    return lock->held != NULL && core_notified_held(lock->held->core) ? lock->held->owner : NULL;
}

uint64_t quorlock_fence(const quorlock *lock)
{
    return lock->held != NULL && core_notified_held(lock->held->core) ? core_fence(lock->held->core) : 0;
}
