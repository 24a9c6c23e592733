/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/handle.h"

#include <assert.h>

#include "core/validity.h"
#include "lock/buggify.h"

#define MS 1000u

/* ---- its block ---- */

/* Make a zeroed handle with room for a record; NULL: out of memory. */
static struct quorlock_lock *make_block(const struct alloc *alloc, const struct core_config *config, bool named)
{
    size_t size = offsetof(struct quorlock_lock, pending) + core_compact_size(config);
    struct quorlock_lock *lock = alloc_zero(alloc, size > sizeof(*lock) ? size : sizeof(*lock));

    if (lock == NULL || !named) return lock;
    lock->reentrant = alloc_zero(alloc, sizeof(*lock->reentrant));
    if (lock->reentrant == NULL) {
        alloc_free(alloc, lock);
        return NULL;
    }
    lock->reentrant->lock = lock;
    return lock;
}

static void free_block(const struct alloc *alloc, struct quorlock_lock *lock)
{
    alloc_free(alloc, lock->reentrant);
    alloc_free(alloc, lock);
}

struct quorlock_lock *handle_make(struct locks *all, const struct core_config *config, const char *const *keys,
                                  size_t n_keys, const char *owner)
{
    const struct alloc *alloc = &all->runtime->alloc;
    /* The key list is made after the handle, for then it mostly lies behind the handle: see PREFETCH_LOCK. */
    struct quorlock_lock *lock = make_block(alloc, config, owner != NULL);

    if (lock == NULL) return NULL;
    lock->keylist = keylist_join(&all->keylists, keys, n_keys, config->permits);
    if (lock->keylist == NULL) {
        free_block(alloc, lock);
        return NULL;
    }
    if (config->fair) lock->keylist->fair = 1;
    lock->applicant.of_handle = true;
    if (owner == NULL) return lock;
    lock->reentrant->owner = named_owner_join(&all->claims.owners, alloc, owner);
    if (handle_owner(lock) != NULL) return lock;
    handle_unmake(lock);
    return NULL;
}

void handle_unmake(struct quorlock_lock *lock)
{
    struct locks *all = locks_of(lock);
    struct keylist *keylist = lock->keylist;
    const struct alloc *alloc = &all->runtime->alloc;

    assert(lock->holds == 0 || all->runtime->closing);
    if (keylist->holder == lock) keylist->holder = NULL;
    named_owner_leave(&all->claims.owners, alloc, handle_owner(lock));
    free_block(alloc, lock);
    keylist_leave(keylist);
}

/* ---- what goes together ---- */

static void check_rest(const struct quorlock_lock *lock)
{
    (void)lock; /* without assertions */
    assert(lock->reentrant == NULL && lock->operation == OPERATION_NONE);
    assert(lock->claim == NULL && lock->holds == 0);
    if (lock->state == HANDLE_COMPACT) return;
    assert(!core_compact_holds(handle_record(lock)) && list_has(&lock->in_due));
}

#ifndef NDEBUG
static enum core_phase held_phase(const struct quorlock_lock *lock)
{
    return core_phase_now(handle_held(lock)->core);
}
#endif

/* A freed handle holds nothing, and exists only for the callbacks that are due. */
static void check_freed(const struct quorlock_lock *lock)
{
    (void)lock;
    assert(!handle_is_compact(lock) && lock->holds == 0 && lock->claim == NULL && lock->pending.pending_on == NULL);
}

static void check_members(const struct quorlock_lock *lock)
{
    (void)lock; /* without assertions */
    assert((handle_held(lock) != NULL) == (lock->holds > 0));
    assert(lock->holds == 0 || handle_held(lock)->holds >= lock->holds);
    assert(lock->holds == 0 || held_phase(lock) == CORE_HELD || held_phase(lock) == CORE_LOST);
    assert(lock->reentrant != NULL || lock->holds <= 1);
    assert(lock->claim == NULL || (lock->claim->handle == lock && lock->claim->keylist == lock->keylist));
    assert(!handle_asks(lock) || lock->operation == OPERATION_ACQUIRE);
    assert(lock->operation != OPERATION_EXTEND || lock->freed || handle_held(lock)->extender == lock);
    assert(lock->pending.pending_on == NULL || (lock->reentrant != NULL && lock->operation == OPERATION_ACQUIRE));
    assert(lock->state == HANDLE_EXPANDED || list_has(&lock->in_due));
    assert(lock->state != HANDLE_COMPLETED || lock->operation == OPERATION_ACQUIRE);
    assert(lock->state != HANDLE_DROPPED || (lock->releases > 0 && lock->holds == 0 && lock->claim == NULL));
}

void handle_check(const struct quorlock_lock *lock)
{
    assert(lock->keylist->users > 0 && lock->terms->users > 0);
    assert(list_has(&lock->in_all) && lock->releases <= locks_of(lock)->releases);
    assert(lock->reentrant == NULL || (lock->reentrant->lock == lock && lock->reentrant->owner->users > 0));
    assert((lock->applicant.waits != CORE_WANTS_NOTHING) == list_has(&lock->applicant.link));
    if (handle_is_compact(lock)) {
        check_rest(lock);
    } else {
        check_members(lock);
    }
    if (lock->freed) check_freed(lock);
}

/* ---- operations and holds ---- */

int handle_begin(struct quorlock_lock *lock, enum operation operation, const struct lock_callback *callback)
{
    assert(lock->operation == OPERATION_NONE && !handle_is_compact(lock));
    if (lock->state == HANDLE_DROPPED) return QUORLOCK_ERR_NOMEM;
    lock->pending = (struct pending){.ended = *callback};
    lock->operation = operation;
    return 0;
}

void handle_end(struct quorlock_lock *lock)
{
    lock->operation = OPERATION_NONE;
}

/* Rule 12.1. */
void handle_share(struct quorlock_lock *lock, struct claim *claim)
{
    assert(claim->keylist == lock->keylist && claim->named == handle_owner(lock));
    assert(lock->holds == 0 || handle_held(lock) == claim);
    lock->keylist->holder = lock;
    lock->holds++;
    claim->holds++;
    if (lock->reentrant != NULL) {
        lock->reentrant->held = claim;
        list_add(&claim->sharers, &lock->reentrant->in_share);
    }
    handle_show(lock);
}

void handle_unshare(struct quorlock_lock *lock, uint32_t holds)
{
    struct claim *claim = handle_held(lock);

    if (claim == NULL) return;
    assert(holds <= lock->holds && lock->holds <= claim->holds);
    lock->holds -= holds;
    claim->holds -= holds;
    if (lock->holds == 0 && lock->reentrant != NULL) {
        list_remove(&claim->sharers, &lock->reentrant->in_share);
        if (claim->sharers.count > 0)
            lock->keylist->holder = FIRST_OF(&claim->sharers, struct reentrant, in_share)->lock;
    }
    handle_show(lock);
}

bool handle_asks(const struct quorlock_lock *lock)
{
    return lock->claim != NULL && lock->claim->acquirer == lock;
}

/* Leave the claim, which ends alone what it has still to do. */
static void part(struct quorlock_lock *lock)
{
    struct claim *claim = lock->claim;

    assert(lock->holds == 0);
    lock->claim = NULL;
    claim->handle = NULL;
    claim_let_go(claim);
    claim_reap(claim);
}

/* Leave a claim that is still busy with an earlier hold: the handle need not wait. */
static void part_from_busy(struct quorlock_lock *lock)
{
    if (lock->claim != NULL && !core_may_acquire(lock->claim->core)) part(lock);
}

void handle_agree(struct quorlock_lock *lock, struct terms *terms)
{
    struct locks *all = locks_of(lock);
    struct terms *before = lock->terms;

    if (terms != before && lock->claim != NULL) part(lock);
    lock->terms = terms;
    terms_leave(&all->claims.terms, &all->runtime->alloc, before);
}

static int begin_to_ask(struct quorlock_lock *lock, const struct core_acquire *acquire, bool promised)
{
    int status;

    if (lock->claim == NULL) {
        lock->claim = claim_new(&locks_of(lock)->claims, lock->keylist, lock, lock->terms, handle_owner(lock));
    }
    if (lock->claim == NULL) return QUORLOCK_ERR_NOMEM;
    assert(lock->claim->handle == lock && lock->claim->terms == lock->terms);
    status = claim_acquire(lock->claim, lock, acquire, promised);
    if (status == 0) buggify_acquire(lock->claim);
    return status;
}

static int handle_begin_to_ask(struct quorlock_lock *lock, bool behind, bool promised, uint32_t seen)
{
    const struct core_acquire acquire = {.begun_us = lock->pending.ended.begun_us, .behind = behind, .seen = seen};

    return begin_to_ask(lock, &acquire, promised);
}

/* Without a wait for room before there is a claim, which stores the token. */
int handle_adopt(struct quorlock_lock *lock, const struct core_token *token)
{
    const struct core_acquire acquire = {.begun_us = lock->pending.ended.begun_us, .adopts = token};

    part_from_busy(lock);
    return begin_to_ask(lock, &acquire, false);
}

/* Wait without a claim: any number of handles may wait, and a claim is many times as large. */
static void handle_wait_for_room(struct quorlock_lock *lock, uint32_t seen)
{
    uint64_t wait_us = lock->terms->config.holder.wait_us;

    assert(lock->operation == OPERATION_ACQUIRE && lock->claim == NULL);
    lock->seen = seen & 3u;
    admission_follow(&locks_of(lock)->claims.admission, &lock->applicant, CORE_WANTS_ATTEMPT, false);
    /* A lock that tries once makes its attempt whenever its turn comes. */
    if (wait_us == 0) return;
    runtime_wake_at(locks_of(lock)->runtime, &lock->waker, validity_add(lock->pending.ended.begun_us, wait_us));
}

int handle_ask(struct quorlock_lock *lock, bool behind, bool promised, uint32_t seen)
{
    bool asks_now = behind || lock->reentrant != NULL;

    assert(lock->operation == OPERATION_ACQUIRE && lock->holds == 0 && !handle_asks(lock));
    part_from_busy(lock);
    if (!asks_now && lock->claim == NULL &&
        !admission_has_room(&locks_of(lock)->claims.admission, CORE_WANTS_ATTEMPT)) {
        handle_wait_for_room(lock, seen);
        return 0;
    }
    return handle_begin_to_ask(lock, behind, promised, seen);
}

bool handle_waits_for_room(const struct quorlock_lock *lock)
{
    return lock->operation == OPERATION_ACQUIRE && lock->applicant.waits == CORE_WANTS_ATTEMPT;
}

void handle_stop_waiting(struct quorlock_lock *lock)
{
    admission_follow(&locks_of(lock)->claims.admission, &lock->applicant, CORE_WANTS_NOTHING, false);
    runtime_wake_at(locks_of(lock)->runtime, &lock->waker, UINT64_MAX);
}

bool handle_begin_admitted(struct quorlock_lock *lock)
{
    assert(handle_waits_for_room(lock));
    handle_check(lock);
    if (handle_begin_to_ask(lock, false, true, lock->seen) != 0) return false;
    handle_stop_waiting(lock);
    /* Other handles may wait: this one does not queue again behind them. */
    return core_wants(lock->claim->core) != CORE_WANTS_ATTEMPT || claim_begin_admitted(&lock->claim->applicant);
}

void handle_show_in(struct quorlock_lock *lock, struct expiry *shown)
{
    lock->shown = shown;
    handle_show(lock);
}

/* The same as handle_valid_ms() would return, at any time. */
void handle_show(struct quorlock_lock *lock)
{
    const struct core_config *config = &lock->terms->config;
    const struct claim *held;

    if (lock->shown == NULL) return;
    held = handle_held(lock);
    if (handle_is_compact(lock) && core_compact_holds(handle_record(lock))) {
        expiry_set(lock->shown, core_compact_lost_at(handle_record(lock), config),
                   core_compact_valid_until(handle_record(lock), config));
    } else if (held != NULL && core_phase_now(held->core) == CORE_HELD) {
        expiry_set(lock->shown, core_lost_at(held->core), core_valid_until(held->core));
    } else {
        expiry_set(lock->shown, 0, 0);
    }
}

uint32_t handle_valid_ms(const struct quorlock_lock *lock, uint64_t now_us)
{
    const struct claim *held = handle_held(lock);

    if (handle_is_compact(lock))
        return (uint32_t)(core_compact_valid_us(handle_record(lock), &lock->terms->config, now_us) / MS);
    return held == NULL ? 0 : (uint32_t)(core_valid_us(held->core, now_us) / MS);
}

static void handle_complete(struct quorlock_lock *lock)
{
    assert(!handle_is_compact(lock));
    list_add(&locks_of(lock)->completed, &lock->in_due);
    runtime_run_soon(locks_of(lock)->runtime);
}

void handle_complete_acquire(struct quorlock_lock *lock, int status, const char *why)
{
    assert(lock->operation == OPERATION_ACQUIRE && lock->state == HANDLE_EXPANDED);
    assert(status != QUORLOCK_OK || lock->holds > 0);
    lock->state = HANDLE_COMPLETED;
    lock->acquired_status = (int16_t)status;
    lock->pending.why = why;
    handle_complete(lock);
}

void handle_complete_release(struct quorlock_lock *lock, const struct lock_callback *callback)
{
    struct given_back *given_back = FIRST_OF(&lock->reentrant->spare, struct given_back, link);

    /* Each hold has its spare: prepare_release made it. */
    assert(given_back != NULL && lock->holds > 0);
    list_remove(&lock->reentrant->spare, &given_back->link);
    given_back->callback = *callback;
    given_back->expired = core_phase_now(handle_held(lock)->core) == CORE_LOST;
    list_add(&lock->reentrant->given_back, &given_back->link);
    lock->releases++;
    locks_of(lock)->releases++;
    handle_unshare(lock, 1);
    handle_complete(lock);
}

int handle_fail(struct quorlock_lock *lock, int status, const char *why)
{
    assert(status < 0);
    return runtime_fail(locks_of(lock)->runtime, status, "\"%s\": %s%s", keylist_name(lock->keylist),
                        quorlock_status_text(status), why);
}

/* ---- the end ---- */

static void free_given_back(const struct alloc *alloc, struct list *list)
{
    struct given_back *given_back;

    while ((given_back = FIRST_OF(list, struct given_back, link)) != NULL) {
        list_remove(list, &given_back->link);
        alloc_free(alloc, given_back);
    }
}

void handle_destroy(struct quorlock_lock *lock)
{
    struct locks *all = locks_of(lock);
    const struct alloc *alloc = &all->runtime->alloc;

    list_remove(&all->handles, &lock->in_all);
    admission_follow(&all->claims.admission, &lock->applicant, CORE_WANTS_NOTHING, false);
    list_remove(lock->state == HANDLE_COMPACT_LOST ? &all->lost : &all->completed, &lock->in_due);
    if (lock->reentrant != NULL) {
        free_given_back(alloc, &lock->reentrant->given_back);
        free_given_back(alloc, &lock->reentrant->spare);
    }
    runtime_stop_waker(&lock->waker);
    terms_leave(&all->claims.terms, alloc, lock->terms);
    handle_unmake(lock);
}

void handle_reap(struct quorlock_lock *lock)
{
    bool owed = lock->operation != OPERATION_NONE || lock->releases > 0;

    handle_check(lock);
    /* While the client closes, handles stay valid until its end. */
    if (lock->freed && !owed && lock->pins == 0 && !locks_of(lock)->runtime->closing) handle_destroy(lock);
}

/* ---- the public API: what a handle knows ---- */

void quorlock_lock_set_on_lost(quorlock_lock *lock, quorlock_lost_cb cb, void *arg)
{
    handle_check(lock);
    lock->lost = cb;
    lock->lost_arg = arg;
}

/* By the clock itself, not by the time of the batch. */
uint32_t quorlock_lock_valid_ms(const quorlock_lock *lock)
{
    handle_check(lock);
    return handle_valid_ms(lock, runtime_read_us(locks_of(lock)->runtime));
}

const char *quorlock_lock_token(const quorlock_lock *lock)
{
    const struct claim *held = handle_held(lock);
    struct locks *all = locks_of(lock);

    handle_check(lock);
    if (handle_is_compact(lock)) {
        if (!core_compact_holds(handle_record(lock))) return NULL;
        (void)request_owner_text(all->runtime, lock->terms, &handle_record(lock)->token, all->token);
        return all->token;
    }
    return held != NULL && core_notified_held(held->core) ? claim_owner(held, all->token) : NULL;
}

uint64_t quorlock_lock_fence(const quorlock_lock *lock)
{
    const struct claim *held = handle_held(lock);

    handle_check(lock);
    if (handle_is_compact(lock)) {
        return core_compact_holds(handle_record(lock)) ? core_compact_fence(handle_record(lock), &lock->terms->config)
                                                       : 0;
    }
    return held != NULL && core_notified_held(held->core) ? core_fence(held->core) : 0;
}
