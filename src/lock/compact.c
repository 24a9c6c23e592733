/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/compact.h"

#include <assert.h>

#include "base/trace.h"
#include "lock/message.h"

static const struct core_config *config_of(const struct quorlock_lock *lock)
{
    return &lock->terms->config;
}

static uint64_t lost_at(const struct quorlock_lock *lock)
{
    return core_compact_lost_at(handle_record(lock), config_of(lock));
}

/* When the lock must be renewed, or its loss noticed. */
static uint64_t due_at(const struct quorlock_lock *lock)
{
    return core_compact_deadline(handle_record(lock), config_of(lock));
}

/* Wake the lock then, or earlier where it needs a repair. */
static void wake_at(struct quorlock_lock *lock, uint64_t at_us)
{
    struct runtime *runtime = locks_of(lock)->runtime;
    struct core_node_change nodes[CORE_NODES_MAX];
    uint64_t repair_us;

    assert(handle_is_compact(lock));
    for (uint32_t i = 0; i < runtime->n_nodes; i++) nodes[i] = claims_node_now(&locks_of(lock)->claims, i);
    repair_us = core_compact_repair_at(handle_record(lock), config_of(lock), nodes, runtime_now_us(runtime));
    runtime_wake_at(runtime, &lock->waker, repair_us < at_us ? repair_us : at_us);
}

/* ---- from the claim to the record ---- */

/* False: the lock cannot be compact now. */
static bool write_record(const struct claim *claim, struct quorlock_lock *lock)
{
    struct runtime *runtime = claim->all->runtime;
    struct core_compact *record = handle_record_room(lock);

    assert(!list_has(&lock->pending.turn) && lock->pending.pending_on == NULL);
    if (!core_compact(claim->core, runtime_now_us(runtime), record)) {
        lock->pending = (struct pending){0};
        return false;
    }
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        uint32_t latency_us = claim->results[i].latency_us;

        if (latency_us > CORE_COMPACT_LATENCY_MAX) latency_us = CORE_COMPACT_LATENCY_MAX;
        record->nodes[i].latency_us = latency_us & CORE_COMPACT_LATENCY_MAX;
    }
    return true;
}

/* Nothing is under way but what the core knows. */
static bool compact_is_quiet(const struct claim *claim)
{
    for (uint32_t i = 0; i < claim->all->runtime->n_nodes; i++) {
        if (claim->results[i].answer != NULL) return false;
    }
    if (claim->named != NULL || claim->all->faults != NULL || claim->put_off || claim->listens || claim->far != NULL)
        return false;
    return !list_has(&claim->in_due);
}

void compact_claim(struct claim *claim)
{
    struct quorlock_lock *lock = claim->handle;
    uint64_t deadline_us;

    if (lock == NULL || lock->operation != OPERATION_NONE || handle_held(lock) != claim || lock->pins > 0 ||
        !compact_is_quiet(claim))
        return;
    claim_check(claim);
    handle_check(lock);
    if (!write_record(claim, lock)) return;
    /* No answer may come to a claim that is gone. */
    assert(claim->in_flight == 0 && claim->pins == 0);
    deadline_us = core_deadline(claim->core);
    /* Not by handle_unshare: other threads would see a gap. */
    claim->holds--;
    claim->handle = NULL;
    lock->holds--;
    lock->claim = NULL;
    lock->state = HANDLE_COMPACT;
    handle_show(lock);
    claim_destroy(claim);
    keylist_forget_contention(lock->keylist);
    wake_at(lock, deadline_us);
    handle_check(lock);
}

/* ---- and back ---- */

/* Take the lock out of the lists of what waits and of what was lost. */
static void compact_leave(struct quorlock_lock *lock, enum handle_state state)
{
    assert(handle_is_compact(lock));
    handle_stop_waiting(lock);
    if (lock->state == HANDLE_COMPACT_LOST) list_remove(&locks_of(lock)->lost, &lock->in_due);
    lock->state = state;
    lock->pending = (struct pending){0};
    assert(lock->applicant.waits == CORE_WANTS_NOTHING);
}

struct claim *compact_expand(struct quorlock_lock *lock)
{
    struct claim *claim = claim_expand(&locks_of(lock)->claims, lock->keylist, lock, lock->terms, handle_record(lock));

    handle_check(lock);
    if (claim == NULL) return NULL;
    compact_leave(lock, HANDLE_EXPANDED);
    lock->claim = claim;
    handle_share(lock, claim);
    handle_check(lock);
    return claim;
}

/* ---- without memory ---- */

static void count_end(struct quorlock_lock *lock)
{
    struct claims *claims = &locks_of(lock)->claims;
    const struct claim_hold hold = {
        .config = config_of(lock), .granted_us = handle_record(lock)->granted_us, .slot = handle_record(lock)->slot};

    assert(lock->keylist->held > 0);
    claims_count_hold(claims, lock->keylist, &hold, false, runtime_now_us(claims->runtime));
    if (!handle_record(lock)->whole) claims->counts.degraded--;
}

void compact_drop(struct quorlock_lock *lock)
{
    if (core_compact_holds(handle_record(lock))) count_end(lock);
    compact_leave(lock, HANDLE_EXPANDED);
    handle_show(lock);
    handle_check(lock);
}

void compact_release(struct quorlock_lock *lock, const struct lock_callback *callback)
{
    struct locks *all = locks_of(lock);
    int16_t status = core_compact_holds(handle_record(lock)) ? QUORLOCK_ERR_NOQUORUM : QUORLOCK_ERR_LOST;

    compact_drop(lock);
    lock->acquired_status = status;
    lock->state = HANDLE_DROPPED;
    lock->pending = (struct pending){.ended = *callback};
    lock->releases++;
    all->releases++;
    list_add(&all->completed, &lock->in_due);
    runtime_run_soon(all->runtime);
    handle_check(lock);
}

static void compact_lose(struct quorlock_lock *lock)
{
    struct runtime *runtime = locks_of(lock)->runtime;
    enum core_loss loss = core_compact_lose(handle_record_room(lock), config_of(lock), runtime_now_us(runtime));

    handle_show(lock);
    handle_stop_waiting(lock);
    count_end(lock);
    locks_of(lock)->claims.counts.losses[loss]++;
    TRACE2(loss, keylist_name(lock->keylist), (int)loss);
    runtime_log(runtime, QUORLOCK_LOG_ERROR, "lost \"%s\": %s; out of memory", keylist_name(lock->keylist),
                message_loss(loss));
    lock->state = HANDLE_COMPACT_LOST;
    list_add(&locks_of(lock)->lost, &lock->in_due);
    runtime_run_soon(runtime);
    handle_check(lock);
}

/* ---- what comes meanwhile ---- */

/* A repair waits until the renewal is due; then the renewal waits in its place. */
static void compact_wait_for_room(struct quorlock_lock *lock, enum core_wants wants)
{
    assert(wants == CORE_WANTS_ROUND || wants == CORE_WANTS_REPAIR);
    admission_follow(&locks_of(lock)->claims.admission, &lock->applicant, wants, false);
    runtime_wake_at(locks_of(lock)->runtime, &lock->waker, wants == CORE_WANTS_ROUND ? lost_at(lock) : due_at(lock));
}

void compact_wake(struct quorlock_lock *lock)
{
    struct locks *all = locks_of(lock);
    enum core_wants wants = due_at(lock) <= runtime_now_us(all->runtime) ? CORE_WANTS_ROUND : CORE_WANTS_REPAIR;
    bool room = admission_has_room(&all->claims.admission, wants);
    bool over = !room && lost_at(lock) <= runtime_now_us(all->runtime);
    struct claim *claim = room || over ? compact_expand(lock) : NULL;

    if (claim != NULL) {
        claim_wake(claim);
    } else if (lost_at(lock) <= runtime_now_us(all->runtime)) {
        compact_lose(lock);
    } else {
        compact_wait_for_room(lock, wants);
    }
}

bool compact_begin_admitted(struct quorlock_lock *lock)
{
    struct claim *claim = compact_expand(lock);

    if (claim == NULL) return false;
    assert(core_phase_now(claim->core) == CORE_HELD);
    claim->pins++;
    claim_wake(claim);
    claim->pins--;
    /* Other locks may wait: this one does not queue again behind them. */
    if (core_wants(claim->core) != CORE_WANTS_NOTHING) (void)claim_begin_admitted(&claim->applicant);
    claim_reap(claim);
    return true;
}

void compact_node_revived(struct quorlock_lock *lock)
{
    handle_check(lock);
    if (core_compact_holds(handle_record(lock)) && lock->applicant.waits == CORE_WANTS_NOTHING)
        wake_at(lock, due_at(lock));
}

void compact_clock_stepped(struct quorlock_lock *lock, uint32_t node, uint64_t before_us)
{
    struct claim *claim = core_compact_holds(handle_record(lock)) ? compact_expand(lock) : NULL;

    if (claim != NULL) {
        claim_clock_stepped(claim, node, before_us);
    } else if (core_compact_drop_yes(handle_record_room(lock), node, before_us)) {
        handle_show(lock);
        runtime_wake_at(locks_of(lock)->runtime, &lock->waker, due_at(lock));
    }
}
