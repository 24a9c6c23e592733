/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/handle.h"

#include <assert.h>
#include <string.h>

#include "core/validity.h"
#include "lock/buggify.h"

#define MS 1000u

/* ---- its block ---- */

size_t handle_size(const struct runtime *runtime, bool fencing)
{
    const struct core_config config = {.n_nodes = runtime->n_nodes, .fencing = fencing};
    size_t size = offsetof(struct quorlock, pending) + core_rest_size(&config);

    size = size > sizeof(struct quorlock) ? size : sizeof(struct quorlock);
    size = (size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    return size + (runtime->clock.shown != NULL ? sizeof(struct expiry *) : 0);
}

/* Where the pointer stands to what other threads read: at the end of the block, of clients that have such threads. NULL
 * of others. */
static struct expiry **shown_in(struct quorlock *lock)
{
    const struct runtime *runtime = locks_of(lock)->runtime;
    size_t size;

    if (runtime->clock.shown == NULL) return NULL;
    size = handle_size(runtime, lock->terms->config.fencing);
    return (struct expiry **)(void *)((char *)lock + size - sizeof(struct expiry *));
}

/* Zeroed; NULL: out of memory. */
static struct quorlock *make_block(struct keylist *keylist, enum keylist_seat seat, const struct core_config *config)
{
    const struct runtime *runtime = keylist->all->runtime;
    bool nests = seat == KEYLIST_NO_SEAT;
    size_t front = nests ? sizeof(struct nest) : 0;
    struct quorlock *lock = keylist_take_seat(keylist, seat);
    char *block;

    if (lock != NULL) {
        lock->seated = true;
        return lock;
    }
    block = alloc_zero(&runtime->alloc, front + handle_size(runtime, config->fencing));
    if (block == NULL) return NULL;
    lock = (struct quorlock *)(void *)(block + front);
    lock->nests = nests;
    return lock;
}

struct quorlock *handle_make(struct locks *all, const struct core_config *config, const char *const *keys,
                             size_t n_keys, const char *owner)
{
    /* A nest would be in front of the seat. */
    enum keylist_seat seat = owner != NULL ? KEYLIST_NO_SEAT : config->fencing ? KEYLIST_FENCING_SEAT : KEYLIST_SEAT;
    struct keylist *keylist = keylist_join(&all->keylists, keys, n_keys, config->permits, seat);
    struct quorlock *lock = keylist != NULL ? make_block(keylist, seat, config) : NULL;

    if (lock == NULL) {
        if (keylist != NULL) keylist_leave(keylist);
        return NULL;
    }
    lock->keylist = keylist;
    lock->applicant.of_handle = true;
    if (owner == NULL) return lock;
    handle_nest(lock)->owner = named_owner_join(&all->claims.owners, &all->runtime->alloc, owner);
    if (handle_owner(lock) != NULL) return lock;
    handle_unmake(lock);
    return NULL;
}

void handle_unmake(struct quorlock *lock)
{
    struct locks *all = locks_of(lock);
    struct keylist *keylist = lock->keylist;
    const struct alloc *alloc = &all->runtime->alloc;

    named_owner_leave(&all->claims.owners, alloc, handle_owner(lock));
    if (lock->seated) {
        keylist_leave_seat(keylist);
    } else {
        alloc_free(alloc, lock->nests ? (void *)handle_nest(lock) : lock);
    }
    keylist_leave(keylist);
}

/* ---- what goes together ---- */

static void check_rest(const struct quorlock *lock)
{
    /* Its members are not there. */
    assert(!lock->nests && lock->operation == OPERATION_NONE);
    if (lock->state == HANDLE_RESTS) return;
    assert(!core_rest_holds(handle_rest(lock)) && list_has(&lock->in_completed));
}

#ifndef NDEBUG
static enum core_phase held_phase(const struct quorlock *lock)
{
    return core_phase_now(handle_held(lock)->core);
}
#endif

/* Who is freed has nothing, and waits for callbacks. */
static void check_freed(const struct quorlock *lock)
{
    (void)lock;
    assert(!handle_rests(lock) && lock->holds == 0 && lock->claim == NULL && lock->pending.pending_on == NULL);
}

static void check_members(const struct quorlock *lock)
{
    (void)lock; /* without assertions */
    assert((handle_held(lock) != NULL) == (lock->holds > 0));
    assert(lock->holds == 0 || handle_held(lock)->holds >= lock->holds);
    assert(lock->holds == 0 || held_phase(lock) == CORE_HELD || held_phase(lock) == CORE_LOST);
    assert(lock->nests || lock->holds <= 1);
    assert(lock->claim == NULL || (lock->claim->handle == lock && lock->claim->keylist == lock->keylist));
    assert(!handle_asks(lock) || lock->operation == OPERATION_ACQUIRE);
    assert(lock->operation != OPERATION_EXTEND || lock->freed || handle_held(lock)->extender == lock);
    assert(lock->pending.pending_on == NULL || (lock->nests && lock->operation == OPERATION_ACQUIRE));
    assert(lock->state == HANDLE_AWAKE || list_has(&lock->in_completed));
    assert(lock->state != HANDLE_COMPLETED || lock->operation == OPERATION_ACQUIRE);
    assert(lock->state != HANDLE_DROPPED || (lock->releases > 0 && lock->holds == 0 && lock->claim == NULL));
}

void handle_check(const struct quorlock *lock)
{
    assert(lock->keylist->users > 0 && lock->terms->users > 0);
    assert(list_has(&lock->in_all) && lock->releases <= locks_of(lock)->releases);
    assert(lock->nests == (handle_owner(lock) != NULL) && !(lock->nests && lock->seated));
    if (handle_rests(lock)) {
        check_rest(lock);
    } else {
        check_members(lock);
    }
    if (lock->freed) check_freed(lock);
}

/* ---- operations and holds ---- */

void handle_wake_up(struct quorlock *lock)
{
    assert(lock->state == HANDLE_RESTS);
    lock->state = HANDLE_AWAKE;
    memset(handle_record(lock), 0, sizeof(*lock) - offsetof(struct quorlock, pending));
}

int handle_begin(struct quorlock *lock, enum operation operation, const struct lock_callback *callback)
{
    assert(lock->operation == OPERATION_NONE && !handle_rests(lock));
    if (lock->state == HANDLE_DROPPED) return QUORLOCK_NOMEM;
    lock->pending = (struct pending){.ended = *callback};
    lock->operation = operation;
    return 0;
}

void handle_end(struct quorlock *lock)
{
    lock->operation = OPERATION_NONE;
}

void handle_share(struct quorlock *lock, struct claim *claim)
{
    assert(claim->keylist == lock->keylist && claim->named == handle_owner(lock));
    assert(lock->holds == 0 || handle_held(lock) == claim);
    lock->holds++;
    claim->holds++;
    if (lock->nests) {
        handle_nest(lock)->held = claim;
        list_add(&claim->sharers, &handle_nest(lock)->in_share);
    }
    handle_show(lock);
}

void handle_unshare(struct quorlock *lock, uint32_t holds)
{
    struct claim *claim = handle_held(lock);

    if (claim == NULL) return;
    assert(holds <= lock->holds && lock->holds <= claim->holds);
    lock->holds -= holds;
    claim->holds -= holds;
    if (lock->holds == 0 && lock->nests) list_remove(&claim->sharers, &handle_nest(lock)->in_share);
    handle_show(lock);
}

bool handle_asks(const struct quorlock *lock)
{
    return lock->claim != NULL && lock->claim->acquirer == lock;
}

/* A claim that is still busy with an earlier hold ends it alone, so that the handle need not wait. */
static void part_from_busy(struct quorlock *lock)
{
    struct claim *claim = lock->claim;

    if (claim == NULL || core_may_acquire(claim->core)) return;
    lock->claim = NULL;
    claim->handle = NULL;
    claim_let_go(claim);
    claim_reap(claim);
}

static int handle_begin_to_ask(struct quorlock *lock, bool behind, bool promised, uint32_t seen)
{
    const struct core_acquire acquire = {.begun_us = lock->pending.ended.begun_us, .behind = behind, .seen = seen};
    int status;

    if (lock->claim == NULL) {
        lock->claim = claim_new(&locks_of(lock)->claims, lock->keylist, lock, lock->terms, handle_owner(lock));
    }
    if (lock->claim == NULL) return QUORLOCK_NOMEM;
    assert(lock->claim->handle == lock && lock->claim->terms == lock->terms);
    status = claim_acquire(lock->claim, lock, &acquire, promised);
    if (status == 0) buggify_acquire(lock->claim);
    return status;
}

/* Any number of handles may wait, and a claim is many times as large. */
static void handle_wait_for_room(struct quorlock *lock, uint32_t seen)
{
    uint64_t wait_us = lock->terms->config.wait_us;

    assert(lock->operation == OPERATION_ACQUIRE && lock->claim == NULL);
    lock->seen = seen & 3u;
    admission_follow(&locks_of(lock)->claims.admission, &lock->applicant, CORE_WANTS_ATTEMPT, false);
    /* One that tries once makes its first attempt whenever its turn comes. */
    if (wait_us == 0) return;
    runtime_wake_at(locks_of(lock)->runtime, &lock->waker, validity_add(lock->pending.ended.begun_us, wait_us));
}

int handle_ask(struct quorlock *lock, bool behind, bool promised, uint32_t seen)
{
    bool asks_now = behind || lock->nests;

    assert(lock->operation == OPERATION_ACQUIRE && lock->holds == 0 && !handle_asks(lock));
    part_from_busy(lock);
    if (!asks_now && lock->claim == NULL &&
        !admission_has_room(&locks_of(lock)->claims.admission, CORE_WANTS_ATTEMPT)) {
        handle_wait_for_room(lock, seen);
        return 0;
    }
    return handle_begin_to_ask(lock, behind, promised, seen);
}

bool handle_waits_for_room(const struct quorlock *lock)
{
    return lock->operation == OPERATION_ACQUIRE && lock->applicant.waits == CORE_WANTS_ATTEMPT;
}

void handle_stop_waiting(struct quorlock *lock)
{
    admission_follow(&locks_of(lock)->claims.admission, &lock->applicant, CORE_WANTS_NOTHING, false);
    runtime_wake_at(locks_of(lock)->runtime, &lock->waker, UINT64_MAX);
}

bool handle_begin_admitted(struct quorlock *lock)
{
    assert(handle_waits_for_room(lock));
    handle_check(lock);
    if (handle_begin_to_ask(lock, false, true, lock->seen) != 0) return false;
    handle_stop_waiting(lock);
    /* Others may still wait: it does not queue again behind them. */
    return core_wants(lock->claim->core) != CORE_WANTS_ATTEMPT || claim_begin_admitted(&lock->claim->applicant);
}

void handle_show_in(struct quorlock *lock, struct expiry *shown)
{
    *shown_in(lock) = shown;
    handle_show(lock);
}

/* As handle_valid_ms() finds it, whatever the time. */
void handle_show(struct quorlock *lock)
{
    struct expiry **shown = shown_in(lock);
    const struct core_config *config = &lock->terms->config;
    const struct claim *held;

    if (shown == NULL || *shown == NULL) return;
    held = handle_held(lock);
    if (handle_rests(lock) && core_rest_holds(handle_rest(lock))) {
        expiry_set(*shown, core_rest_lost_at(handle_rest(lock), config),
                   core_rest_valid_until(handle_rest(lock), config));
    } else if (held != NULL && core_phase_now(held->core) == CORE_HELD) {
        expiry_set(*shown, core_lost_at(held->core), core_valid_until(held->core));
    } else {
        expiry_set(*shown, 0, 0);
    }
}

void handle_hide(struct quorlock *lock)
{
    struct expiry **shown = shown_in(lock);

    if (shown == NULL || *shown == NULL) return;
    expiry_set(*shown, 0, 0);
    *shown = NULL;
}

uint32_t handle_valid_ms(const struct quorlock *lock, uint64_t now_us)
{
    const struct claim *held = handle_held(lock);

    if (handle_rests(lock)) return (uint32_t)(core_rest_valid_us(handle_rest(lock), &lock->terms->config, now_us) / MS);
    return held == NULL ? 0 : (uint32_t)(core_valid_us(held->core, now_us) / MS);
}

static void handle_complete(struct quorlock *lock)
{
    assert(!handle_rests(lock));
    list_add(&locks_of(lock)->completed, &lock->in_completed);
    runtime_run_soon(locks_of(lock)->runtime);
}

void handle_complete_acquire(struct quorlock *lock, int status, const char *why)
{
    assert(lock->operation == OPERATION_ACQUIRE && lock->state == HANDLE_AWAKE);
    assert(status != QUORLOCK_OK || lock->holds > 0);
    lock->state = HANDLE_COMPLETED;
    lock->acquired_status = (int16_t)status;
    lock->pending.why = why;
    handle_complete(lock);
}

void handle_complete_release(struct quorlock *lock, const struct lock_callback *callback)
{
    struct given_back *given_back = FIRST_OF(&handle_nest(lock)->spare, struct given_back, link);

    /* Each hold has its spare: begin_acquire saw to it. */
    assert(given_back != NULL && lock->holds > 0);
    list_remove(&handle_nest(lock)->spare, &given_back->link);
    given_back->callback = *callback;
    given_back->expired = core_phase_now(handle_held(lock)->core) == CORE_LOST;
    list_add(&handle_nest(lock)->given_back, &given_back->link);
    lock->releases++;
    locks_of(lock)->releases++;
    handle_unshare(lock, 1);
    handle_complete(lock);
}

int handle_fail(struct quorlock *lock, int status, const char *why)
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

void handle_destroy(struct quorlock *lock)
{
    struct locks *all = locks_of(lock);
    const struct alloc *alloc = &all->runtime->alloc;

    list_remove(&all->handles, &lock->in_all);
    admission_follow(&all->claims.admission, &lock->applicant, CORE_WANTS_NOTHING, false);
    list_remove(lock->state == HANDLE_LOST_AT_REST ? &all->lost : &all->completed, &lock->in_completed);
    if (lock->nests) {
        free_given_back(alloc, &handle_nest(lock)->given_back);
        free_given_back(alloc, &handle_nest(lock)->spare);
    }
    runtime_stop_waker(&lock->waker);
    terms_leave(&all->claims.terms, alloc, lock->terms);
    handle_unmake(lock);
}

void handle_reap(struct quorlock *lock)
{
    bool owed = lock->operation != OPERATION_NONE || lock->releases > 0;

    handle_check(lock);
    /* While the client closes, handles stay good until its end. */
    if (lock->freed && !owed && lock->pins == 0 && !locks_of(lock)->runtime->closing) handle_destroy(lock);
}

/* ---- the public API: what a handle knows ---- */

void quorlock_on_lost(quorlock *lock, quorlock_lost_cb cb, void *arg)
{
    handle_check(lock);
    lock->lost = cb;
    lock->lost_arg = arg;
}

/* Never by the time of a batch. */
uint32_t quorlock_valid_ms(const quorlock *lock)
{
    handle_check(lock);
    return handle_valid_ms(lock, runtime_read_us(locks_of(lock)->runtime));
}

const char *quorlock_token(const quorlock *lock)
{
    const struct claim *held = handle_held(lock);
    struct locks *all = locks_of(lock);

    handle_check(lock);
    if (handle_rests(lock)) {
        if (!core_rest_holds(handle_rest(lock))) return NULL;
        (void)request_owner_text(all->runtime, lock->terms, &handle_rest(lock)->token, all->token);
        return all->token;
    }
    return held != NULL && core_notified_held(held->core) ? claim_owner(held, all->token) : NULL;
}

uint64_t quorlock_fence(const quorlock *lock)
{
    const struct claim *held = handle_held(lock);

    handle_check(lock);
    if (handle_rests(lock)) {
        return core_rest_holds(handle_rest(lock)) ? core_rest_fence(handle_rest(lock), &lock->terms->config) : 0;
    }
    return held != NULL && core_notified_held(held->core) ? core_fence(held->core) : 0;
}
