/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/lock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "lock/buggify.h"
#include "lock/compact.h"
#include "lock/message.h"
#include "lock/notify.h"
#include "lock/queue.h"
#include "lock/reentry.h"

#define MS 1000u

#define SAME_STATUS(name, status) _Static_assert((int)(name) == (int)(status), "the core's statuses are the library's")
SAME_STATUS(CORE_INVAL, QUORLOCK_ERR_INVAL);
SAME_STATUS(CORE_BUSY, QUORLOCK_ERR_BUSY);
SAME_STATUS(CORE_STATE, QUORLOCK_ERR_STATE);
SAME_STATUS(CORE_HELD_BY_OTHER, QUORLOCK_ERR_HELD);
SAME_STATUS(CORE_NOQUORUM, QUORLOCK_ERR_NOQUORUM);
SAME_STATUS(CORE_TIMEDOUT, QUORLOCK_ERR_TIMEDOUT);
SAME_STATUS(CORE_LOST_LOCK, QUORLOCK_ERR_LOST);
SAME_STATUS(CORE_CANCELED, QUORLOCK_ERR_CANCELED);
SAME_STATUS(CORE_CLOSED, QUORLOCK_ERR_CLOSED);
SAME_STATUS(CORE_NO_AUTH, QUORLOCK_ERR_AUTH);
SAME_STATUS(CORE_FOREIGN_KEY, QUORLOCK_ERR_FOREIGN);
SAME_STATUS(CORE_NO_PROTO, QUORLOCK_ERR_PROTO);
_Static_assert((int)CORE_LOSS_EXPIRED == (int)QUORLOCK_LOSS_EXPIRED, "reasons of loss");
_Static_assert((int)CORE_LOSS_GONE == (int)QUORLOCK_LOSS_GONE, "reasons of loss");
_Static_assert((int)CORE_LOSS_MAX_HOLD == (int)QUORLOCK_LOSS_MAX_HOLD, "reasons of loss");
_Static_assert((int)CORE_LOSS_NOT_RENEWED == (int)QUORLOCK_LOSS_NOT_RENEWED, "reasons of loss");
_Static_assert((int)CORE_LOSS_CLOCK == (int)QUORLOCK_LOSS_CLOCK, "reasons of loss");

/* ---- the end of an operation, or of all ---- */

/* End the acquire or extend in flight, wherever it is. */
static void end_operation(struct quorlock_lock *lock, int status)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .cancel = {.status = status}};
    struct claim *claim = handle_held(lock);

    if (lock->state == HANDLE_COMPLETED) {
        /* A hold whose callback has not run is undone; a refusal stays. */
        if (lock->acquired_status != QUORLOCK_OK) return;
        handle_unshare(lock, 1);
        lock->acquired_status = (int16_t)status;
        claim_let_go(claim);
    } else if (lock->operation == OPERATION_ACQUIRE && handle_asks(lock)) {
        if (queue_hand_off(lock, status)) return;
        (void)claim_step(lock->claim, &event);
        /* The next handle asks after the callback of this one. */
        bare_list_remove(&lock->keylist->waiting, &lock->pending.turn);
    } else if (lock->operation == OPERATION_ACQUIRE) {
        handle_stop_waiting(lock);
        reentry_leave(lock);
        /* This handle may have been the first in the queue, which waited for room at the nodes. */
        queue_leave(lock);
        handle_complete_acquire(lock, status, NULL);
    } else if (lock->operation == OPERATION_EXTEND) {
        (void)claim_step(claim, &event);
    }
}

static void give_up(struct quorlock_lock *lock, int status)
{
    struct claim *claim;
    struct claim *held;

    if (lock->freed) return;
    if (handle_is_compact(lock) && compact_expand(lock) == NULL) compact_drop(lock);
    lock->freed = true;
    lock->lost = NULL;
    end_operation(lock, status);
    claim = lock->claim;
    held = handle_held(lock);
    handle_unshare(lock, lock->holds);
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

/* ---- the public API ---- */

struct wanted_key {
    const char *text;
    bool shared;
};

static int by_text(const void *a, const void *b)
{
    const struct wanted_key *one = a, *two = b;

    return strcmp(one->text, two->text);
}

/* Sort the keys, so that two lists in different order cannot each hold what the other waits for. Return the bits of
 * `shared` in the new order. */
static uint64_t sort_keys(const char **ret, const char *const *keys, size_t n_keys, uint64_t shared)
{
    struct wanted_key wanted[QUORLOCK_KEYS_MAX];
    uint64_t sorted = 0;

    for (size_t i = 0; i < n_keys; i++) {
        wanted[i] = (struct wanted_key){.text = keys[i], .shared = (shared >> i & 1) != 0};
    }
    /* cppcheck-suppress uninitvar; n_keys of them are set */
    qsort(wanted, n_keys, sizeof(wanted[0]), by_text);
    for (size_t i = 0; i < n_keys; i++) {
        ret[i] = wanted[i].text;
        sorted |= (uint64_t)wanted[i].shared << i;
    }
    return sorted;
}

static void lock_on_wake(struct waker *waker)
{
    struct quorlock_lock *lock = CONTAINER_OF(waker, struct quorlock_lock, waker);

    handle_check(lock);
    if (handle_is_compact(lock)) {
        compact_wake(lock);
    } else {
        queue_wait_expired(lock);
    }
    handle_check(lock);
}

int lock_new(struct quorlock_lock **ret, struct locks *all, const char *const *keys, size_t n_keys,
             const struct quorlock_lock_options *options)
{
    struct runtime *runtime = all->runtime;
    struct quorlock_lock_options checked;
    struct core_config config;
    char label[OPTIONS_LABEL_SIZE];
    const char *sorted[QUORLOCK_KEYS_MAX];
    struct terms *terms;
    struct quorlock_lock *lock = NULL;
    int status;

    if (runtime->closing) return runtime_fail_plainly(runtime, QUORLOCK_ERR_CLOSED);
    if (ret == NULL) return runtime_fail(runtime, QUORLOCK_ERR_INVAL, "ret is NULL: there is no place for the lock");
    status = options_lock(&config, &checked, &runtime->options, keys, n_keys, options, &runtime->error);
    if (status != 0) return status;
    config.shared = sort_keys(sorted, keys, n_keys, config.shared);
    memcpy(config.arbiters, runtime->order, sizeof(config.arbiters));
    (void)snprintf(label, sizeof(label), "%s%s", checked.label != NULL ? checked.label : runtime->owner_label,
                   checked.label != NULL ? ":" : "");
    terms = terms_join(&all->claims.terms, &runtime->alloc, &config, checked.fence_ttl_ms, label);
    if (terms != NULL) lock = handle_make(all, &config, sorted, n_keys, checked.owner);
    if (lock == NULL) {
        terms_leave(&all->claims.terms, &runtime->alloc, terms);
        return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    }
    runtime_start_waker(runtime, &lock->waker, lock_on_wake);
    lock->terms = terms;
    list_add(&all->handles, &lock->in_all);
    handle_check(lock);
    *ret = lock;
    return 0;
}

static int check_free(struct quorlock_lock *lock)
{
    handle_check(lock);
    if (locks_of(lock)->runtime->closing || lock->freed) {
        return runtime_fail_plainly(locks_of(lock)->runtime, QUORLOCK_ERR_CLOSED);
    }
    if (lock->operation != OPERATION_NONE) return handle_fail(lock, QUORLOCK_ERR_BUSY, "");
    return 0;
}

static int fail_held(struct quorlock_lock *lock)
{
    return handle_fail(lock, QUORLOCK_ERR_STATE, ": it is held already, or its loss was not reported yet");
}

/* A new acquire gives up a lost hold that was not released yet. */
static int give_up_lost(struct quorlock_lock *lock)
{
    struct claim *claim;

    if (handle_held(lock) == NULL && !handle_is_compact(lock)) return 0;
    assert(lock->reentrant == NULL && (lock->holds == 1 || handle_is_compact(lock)));
    if (handle_is_compact(lock)) {
        if (core_compact_holds(handle_record(lock)) || lock->state == HANDLE_COMPACT_LOST) return fail_held(lock);
        if (compact_expand(lock) == NULL) {
            compact_drop(lock);
            return 0;
        }
    }
    claim = handle_held(lock);
    if (core_phase_now(claim->core) != CORE_LOST || core_loss_pending(claim->core)) {
        return fail_held(lock);
    }
    handle_unshare(lock, lock->holds);
    claim_let_go(claim);
    return 0;
}

/* Reserve what a release needs, so that no release fails out of memory. */
static int prepare_release(struct quorlock_lock *lock)
{
    struct given_back *given_back;

    if (lock->reentrant->spare.count > lock->holds) return 0;
    given_back = alloc_zero(&locks_of(lock)->runtime->alloc, sizeof(*given_back));
    if (given_back == NULL) return QUORLOCK_ERR_NOMEM;
    list_add(&lock->reentrant->spare, &given_back->link);
    return 0;
}

/* Return the status, and set the text unless it is 0. */
static int lock_fail_to_ask(struct quorlock_lock *lock, int status)
{
    if (status == QUORLOCK_ERR_STATE) {
        return runtime_fail(locks_of(lock)->runtime, status, "getrandom failed: no owner token without it");
    }
    return status == 0 ? 0 : handle_fail(lock, status, "");
}

static int begin_acquire(struct quorlock_lock *lock, const struct lock_callback *callback)
{
    const char *why = NULL;
    struct claim *claim = NULL;
    bool named = lock->reentrant != NULL;
    int status = named ? 0 : give_up_lost(lock);

    if (status != 0) return status;
    if (lock->terms->own != NULL) handle_agree(lock, terms_share(lock->terms->own));
    if (named && prepare_release(lock) != 0) return handle_fail(lock, QUORLOCK_ERR_NOMEM, "");
    if (handle_begin(lock, OPERATION_ACQUIRE, callback) != 0) return handle_fail(lock, QUORLOCK_ERR_NOMEM, "");
    if (named) status = reentry_find(lock, &claim);
    if (status != 0) return status;
    if (claim != NULL) {
        status = reentry_enter(lock, claim, &why);
        if (status == 0 || why == NULL) return status == 0 ? 0 : handle_fail(lock, status, "");
        return runtime_fail(locks_of(lock)->runtime, status, "\"%s\": %s", keylist_name(lock->keylist), why);
    }
    return lock_fail_to_ask(lock, queue_acquire(lock));
}

/* own_terms - return what the caller asked of the lock, also while it is adopted with another label. */
static struct terms *own_terms(const struct quorlock_lock *lock)
{
    return lock->terms->own != NULL ? lock->terms->own : lock->terms;
}

int quorlock_lock_set_wait_ms(quorlock_lock *lock, uint32_t wait_ms)
{
    struct locks *all = locks_of(lock);
    int status = check_free(lock);
    struct core_config config;
    const struct terms *own;
    struct terms *terms;

    if (status == 0 && lock->reentrant == NULL) status = give_up_lost(lock);
    if (status == 0 && handle_held(lock) != NULL) status = fail_held(lock);
    if (status != 0) return status;
    own = own_terms(lock);
    config = own->config;
    config.holder.wait_us = options_wait_us(wait_ms);
    terms = terms_join(&all->claims.terms, &all->runtime->alloc, &config, own->fence_ttl_ms, own->label);
    if (terms == NULL) return handle_fail(lock, QUORLOCK_ERR_NOMEM, "");
    handle_agree(lock, terms);
    handle_check(lock);
    return 0;
}

/* An acquire or adoption began, unless status is not 0. */
static void lock_acquire_begun(struct quorlock_lock *lock, int status)
{
    if (status != 0) {
        handle_end(lock);
    } else {
        locks_of(lock)->claims.counts.waiting++;
        TRACE2(acquire_begin, lock, keylist_name(lock->keylist));
    }
    handle_check(lock);
}

int quorlock_lock_acquire(quorlock_lock *lock, quorlock_lock_cb cb, void *arg)
{
    struct runtime *runtime = locks_of(lock)->runtime;
    struct lock_callback callback = {.call = cb, .arg = arg};
    int status = check_free(lock);

    if (status != 0) return status;
    runtime_batch(runtime, true);
    callback.begun_us = runtime_now_us(runtime);
    status = begin_acquire(lock, &callback);
    runtime_batch(runtime, false);
    lock_acquire_begun(lock, status);
    return status;
}

/* ---- passing a lock on ---- */

static int refuse_passing(const struct quorlock_lock *lock)
{
    struct runtime *runtime = locks_of(lock)->runtime;
    const char *name = keylist_name(lock->keylist);

    if (runtime->options.dialect == QUORLOCK_DIALECT_REDISSON) {
        return runtime_fail(runtime, QUORLOCK_ERR_UNSUPPORTED,
                            "\"%s\": the dialect is redisson, and only locks of the plain dialect can be passed on: "
                            "use that dialect",
                            name);
    }
    if (lock->terms->config.permits != 0) {
        return runtime_fail(runtime, QUORLOCK_ERR_UNSUPPORTED,
                            "\"%s\": permits is %u, and a permit cannot be passed on: make the lock without permits",
                            name, lock->terms->config.permits);
    }
    if (lock->terms->config.shared != 0) {
        return runtime_fail(runtime, QUORLOCK_ERR_UNSUPPORTED,
                            "\"%s\": shared is set for some of its keys, and a shared lock cannot be passed on: lock "
                            "all keys exclusively",
                            name);
    }
    if (lock->reentrant != NULL) {
        return runtime_fail(runtime, QUORLOCK_ERR_UNSUPPORTED,
                            "\"%s\": owner is \"%.64s\", and a lock whose holds nest cannot be passed on: make the "
                            "lock without an owner",
                            name, handle_owner(lock)->name);
    }
    return 0;
}

/* A release of that token that is still to come would delete the keys of the adopted lock. */
static bool has_token(const struct locks *all, const struct core_token *token)
{
    LIST_EACH (struct claim, claim, &all->claims.all, in_all) {
        if (core_has_token(claim->core, token)) return true;
    }
    LIST_EACH (struct quorlock_lock, lock, &all->handles, in_all) {
        if (handle_is_compact(lock) && memcmp(&handle_record(lock)->token, token, sizeof(*token)) == 0) return true;
    }
    return lates_have_token(&all->claims.lates, token);
}

/* Rule 11.4. */
static int begin_adopt(struct quorlock_lock *lock, const char *text, const struct lock_callback *callback)
{
    struct locks *all = locks_of(lock);
    struct core_token token;
    char label[OPTIONS_LABEL_SIZE];
    const char *misfit;
    size_t label_length;
    struct terms *terms;
    int status;

    if (text == NULL || !owner_read_plain(text, &label_length, &token)) {
        return runtime_fail(all->runtime, QUORLOCK_ERR_INVAL,
                            "\"%s\": this is no owner token: pass the whole token as it was shown, LABEL:0123...",
                            keylist_name(lock->keylist));
    }
    status = give_up_lost(lock);
    if (status != 0) return status;
    if (has_token(all, &token)) {
        return handle_fail(lock, QUORLOCK_ERR_STATE, ": this client holds that token, or is releasing it");
    }
    misfit = keylist_misfit(lock->keylist, lock->terms->config.fencing, &token);
    if (misfit != NULL) return handle_fail(lock, QUORLOCK_ERR_INVAL, misfit);
    (void)snprintf(label, sizeof(label), "%.*s", (int)label_length, text);
    terms = terms_adopt(&all->claims.terms, &all->runtime->alloc, own_terms(lock), label);
    if (terms == NULL) return handle_fail(lock, QUORLOCK_ERR_NOMEM, "");
    handle_agree(lock, terms);
    if (handle_begin(lock, OPERATION_ACQUIRE, callback) != 0) return handle_fail(lock, QUORLOCK_ERR_NOMEM, "");
    return lock_fail_to_ask(lock, handle_adopt(lock, &token));
}

int quorlock_lock_adopt(quorlock_lock *lock, const char *token, quorlock_lock_cb cb, void *arg)
{
    struct runtime *runtime = locks_of(lock)->runtime;
    struct lock_callback callback = {.call = cb, .arg = arg};
    int status = check_free(lock);

    if (status == 0) status = refuse_passing(lock);
    if (status != 0) return status;
    runtime_batch(runtime, true);
    callback.begun_us = runtime_now_us(runtime);
    status = begin_adopt(lock, token, &callback);
    runtime_batch(runtime, false);
    lock_acquire_begun(lock, status);
    return status;
}

/* Stop holding the keys without releasing them. STATE: the lock was lost. */
static int let_keys_stay(struct quorlock_lock *lock)
{
    struct core_event event = {.type = CORE_EV_DETACH};
    struct claim *claim = handle_held(lock);

    if (handle_is_compact(lock)) {
        compact_drop(lock);
        return 0;
    }
    /* The keys are not free: a notice of their release is news. */
    claim->granted = false;
    if (claim_step(claim, &event) != 0) {
        claim->granted = true;
        return QUORLOCK_ERR_STATE;
    }
    handle_unshare(lock, 1);
    claim_reap(claim);
    return 0;
}

int quorlock_lock_detach(quorlock_lock *lock, const char **ret_token, uint64_t *ret_fence, uint32_t *ret_valid_ms)
{
    const char *token;
    uint32_t valid_ms;
    uint64_t fence;
    int status = check_free(lock);

    if (status == 0) status = refuse_passing(lock);
    if (status != 0) return status;
    if (ret_token == NULL) {
        return runtime_fail(locks_of(lock)->runtime, QUORLOCK_ERR_INVAL,
                            "ret_token is NULL: without its token nobody could hold the lock");
    }
    valid_ms = quorlock_lock_valid_ms(lock);
    token = quorlock_lock_token(lock);
    fence = quorlock_lock_fence(lock);
    /* The clock goes on: the lock may be lost only now. */
    if (valid_ms == 0 || token == NULL || let_keys_stay(lock) != 0) {
        return handle_fail(lock, QUORLOCK_ERR_STATE, ": it is not held");
    }
    *ret_token = token;
    if (ret_fence != NULL) *ret_fence = fence;
    if (ret_valid_ms != NULL) *ret_valid_ms = valid_ms;
    handle_check(lock);
    return 0;
}

static int refuse_extend(struct quorlock_lock *lock, struct claim *claim, int status, uint32_t lease_ms)
{
    const char *why =
        core_phase_now(claim->core) == CORE_HELD ? ": max_hold_ms has ended its renewal" : ": it is not held";
    unsigned long long present_ms = core_lease_us(claim->core) / MS;

    /* It becomes compact again. */
    claim_reap(claim);
    if (status == QUORLOCK_ERR_INVAL) {
        return runtime_fail(locks_of(lock)->runtime, status,
                            "lease_ms is %u: the lease is %llu, and is never shortened", lease_ms, present_ms);
    }
    return handle_fail(lock, status, status == QUORLOCK_ERR_BUSY ? "" : why);
}

int quorlock_lock_extend(quorlock_lock *lock, uint32_t lease_ms, quorlock_lock_cb cb, void *arg)
{
    struct core_event event = {.type = CORE_EV_EXTEND, .extend = {.lease_us = (uint64_t)lease_ms * MS}};
    struct claim *claim = handle_held(lock);
    uint32_t most_ms = locks_of(lock)->runtime->options.max_lease_ms;
    int status = check_free(lock);

    if (status != 0) return status;
    if (lease_ms > most_ms) {
        return runtime_fail(locks_of(lock)->runtime, QUORLOCK_ERR_INVAL, "lease_ms is %u: max_lease_ms is %u", lease_ms,
                            most_ms);
    }
    if (claim == NULL && handle_is_compact(lock)) {
        claim = compact_expand(lock);
        if (claim == NULL) return handle_fail(lock, QUORLOCK_ERR_NOMEM, "");
    }
    if (claim == NULL) return handle_fail(lock, QUORLOCK_ERR_STATE, ": it is not held");
    status = claim_step(claim, &event);
    if (status != 0) return refuse_extend(lock, claim, status, lease_ms);
    claim->extender = lock;
    /* It cannot fail: nothing is due to a handle that holds. */
    (void)handle_begin(lock, OPERATION_EXTEND, &(struct lock_callback){cb, arg, event.now_us});
    buggify_extend(claim);
    handle_check(lock);
    return 0;
}

static int lock_begin_release(struct quorlock_lock *lock, const struct lock_callback *callback, bool undo)
{
    struct claim *claim = handle_is_compact(lock) ? compact_expand(lock) : handle_held(lock);
    int status;

    assert(claim != NULL || handle_is_compact(lock));
    if (claim == NULL) {
        compact_release(lock, callback);
        return 0;
    }
    if (claim->holds > 1 || claim->pending_holds.count > 0) {
        /* The owner has other holds, so no node is asked. */
        handle_complete_release(lock, callback);
        return 0;
    }
    claim->undone = undo;
    status = claim_release(claim, lock, callback);
    if (status != 0) return handle_fail(lock, status, "");
    buggify_release(claim);
    lock->releases++;
    locks_of(lock)->releases++;
    handle_unshare(lock, 1);
    return 0;
}

static int lock_release(quorlock_lock *lock, quorlock_lock_cb cb, void *arg, bool undo)
{
    struct runtime *runtime = locks_of(lock)->runtime;
    struct lock_callback callback = {.call = cb, .arg = arg};
    int status = check_free(lock);

    if (status != 0) return status;
    if (handle_held(lock) == NULL && !handle_is_compact(lock)) {
        if (lock->releases > 0) return handle_fail(lock, QUORLOCK_ERR_BUSY, "");
        return handle_fail(lock, QUORLOCK_ERR_STATE, ": there is no grant to release");
    }
    runtime_batch(runtime, true);
    callback.begun_us = runtime_now_us(runtime);
    status = lock_begin_release(lock, &callback, undo);
    runtime_batch(runtime, false);
    handle_check(lock);
    return status;
}

int quorlock_lock_release(quorlock_lock *lock, quorlock_lock_cb cb, void *arg)
{
    return lock_release(lock, cb, arg, false);
}

int quorlock_lock_undo(quorlock_lock *lock, quorlock_lock_cb cb, void *arg)
{
    return lock_release(lock, cb, arg, true);
}

int quorlock_lock_cancel(quorlock_lock *lock)
{
    if (lock == NULL) return QUORLOCK_ERR_INVAL;
    handle_check(lock);
    /* Closing and freeing ended everything with their own status. */
    if (locks_of(lock)->runtime->closing || lock->freed) {
        return runtime_fail_plainly(locks_of(lock)->runtime, QUORLOCK_ERR_CLOSED);
    }
    if (lock->operation != OPERATION_NONE) {
        end_operation(lock, QUORLOCK_ERR_CANCELED);
        handle_check(lock);
        return 0;
    }
    return runtime_fail(locks_of(lock)->runtime, QUORLOCK_ERR_STATE, "\"%s\": no acquire or extend is in flight",
                        keylist_name(lock->keylist));
}

void quorlock_lock_free(quorlock_lock *lock)
{
    if (lock == NULL || lock->freed) return;
    handle_check(lock);
    runtime_batch(locks_of(lock)->runtime, true);
    give_up(lock, CORE_CANCELED);
    runtime_batch(locks_of(lock)->runtime, false);
    handle_check(lock);
    handle_reap(lock);
}

/* ---- what claims and nodes report ---- */

static void on_claim_destroyed(struct claim *claim)
{
    assert(claim->handle == NULL || claim->handle->claim == claim);
    if (claim->handle != NULL) claim->handle->claim = NULL;
}

static void on_claim_held(struct claim *claim)
{
    assert(claim->holds > 0);
    if (claim->named == NULL) handle_show(claim->handle);
    LIST_WALK (struct reentrant, sharer, &claim->sharers, in_share) handle_show(sharer->lock);
}

static const struct claim_events claim_events = {.held = on_claim_held,
                                                 .logs = message_log,
                                                 .lost = message_log_loss,
                                                 .keys_released = queue_keys_released,
                                                 .due = queue_due,
                                                 .quiet = compact_claim,
                                                 .destroyed = on_claim_destroyed};

static void lock_on_node_changed(struct node_observer *observer, uint32_t node)
{
    struct locks *all = CONTAINER_OF(observer, struct locks, observer);

    assert(node < all->runtime->n_nodes);
    LIST_WALK (struct claim, claim, &all->claims.active, in_active) claim_on_node_state(claim, node);
}

/* A lock with a claim saw the change by its core. */
static void on_node_revived(struct node_observer *observer, uint32_t node)
{
    struct locks *all = CONTAINER_OF(observer, struct locks, observer);

    (void)node;
    assert(node < all->runtime->n_nodes);
    LIST_WALK (struct quorlock_lock, lock, &all->handles, in_all) {
        if (handle_is_compact(lock)) compact_node_revived(lock);
    }
}

/* Rule 3.11. */
static void on_node_reconnected(struct node_observer *observer, uint32_t node)
{
    struct locks *all = CONTAINER_OF(observer, struct locks, observer);

    if (claims_are_few(&all->claims)) on_node_revived(observer, node);
}

static void on_clock_stepped(struct node_observer *observer, uint32_t node, uint64_t before_us)
{
    struct locks *all = CONTAINER_OF(observer, struct locks, observer);

    assert(node < all->runtime->n_nodes && before_us > 0);
    LIST_WALK (struct claim, claim, &all->claims.active, in_active) claim_clock_stepped(claim, node, before_us);
    LIST_WALK (struct quorlock_lock, lock, &all->handles, in_all) {
        if (handle_is_compact(lock)) compact_clock_stepped(lock, node, before_us);
    }
}

static void lock_on_told(struct node_observer *observer, uint32_t node, const struct node_key *key)
{
    queue_key_changed(CONTAINER_OF(observer, struct locks, observer), node, key);
}

static void on_has_room(struct node_observer *observer, uint32_t node)
{
    struct locks *all = CONTAINER_OF(observer, struct locks, observer);

    (void)node;
    if (admission_is_wanted(&all->claims.admission)) runtime_run_soon(all->runtime);
}

/* ---- the turn ---- */

static bool begin_admitted(struct applicant *applicant)
{
    struct quorlock_lock *lock = CONTAINER_OF(applicant, struct quorlock_lock, applicant);

    assert(applicant->waits != CORE_WANTS_NOTHING);
    if (!applicant->of_handle) return claim_begin_admitted(applicant);
    return handle_is_compact(lock) ? compact_begin_admitted(lock) : handle_begin_admitted(lock);
}

static void lock_begin_turn(struct turn *turn)
{
    struct locks *all = CONTAINER_OF(turn, struct locks, turn);

    admission_serve(&all->claims.admission);
    notify_budget(all);
}

static void lock_end_turn(struct turn *turn)
{
    admission_serve(&CONTAINER_OF(turn, struct locks, turn)->claims.admission);
}

static bool lock_waits(struct turn *turn, bool closing)
{
    const struct locks *all = CONTAINER_OF(turn, struct locks, turn);

    /* A release that a node refused for the moment has no request in flight, but its callback is still to come. */
    return notify_waits(all) || (closing && (all->releases > 0 || admission_owes(&all->claims.admission)));
}

/* ---- all locks of a client ---- */

int locks_start(struct locks *all, struct runtime *runtime)
{
    all->runtime = runtime;
    all->keylists.runtime = runtime;
    all->keylists.events = &queue_listener;
    all->claims.events = &claim_events;
    all->claims.admission.begin = begin_admitted;
    all->observer = (struct node_observer){.changed = lock_on_node_changed,
                                           .revived = on_node_revived,
                                           .reconnected = on_node_reconnected,
                                           .clock_stepped = on_clock_stepped,
                                           .told = lock_on_told,
                                           .has_room = on_has_room};
    all->turn = (struct turn){.begin = lock_begin_turn, .next = notify_next, .end = lock_end_turn, .waits = lock_waits};
    nodes_observe(runtime, &all->observer);
    runtime_add_turn(runtime, &all->turn);
    claims_start(&all->claims, runtime);
    buggify_start(&all->claims, runtime->buggify);
    return subscriptions_start(&all->keylists.subscriptions, runtime);
}

void locks_close(struct locks *all)
{
    runtime_batch(all->runtime, true);
    LIST_WALK (struct quorlock_lock, lock, &all->handles, in_all) give_up(lock, QUORLOCK_ERR_CLOSED);
    runtime_batch(all->runtime, false);
}

void locks_stop(struct locks *all)
{
    struct claim *claim;
    struct quorlock_lock *lock;

    while ((claim = FIRST_OF(&all->claims.all, struct claim, in_all)) != NULL) claim_destroy(claim);
    while ((lock = FIRST_OF(&all->handles, struct quorlock_lock, in_all)) != NULL) handle_destroy(lock);
    if (all->runtime == NULL) return;
    claims_stop(&all->claims);
    hashtable_free(&all->keylists.table, &all->runtime->alloc);
    subscriptions_stop(&all->keylists.subscriptions);
}
