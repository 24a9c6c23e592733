/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/queue.h"

#include <assert.h>
#include <string.h>

#include "core/validity.h"
#include "lock/compact.h"
#include "lock/reentry.h"

#define HANDED_MAX 8u    /* times in a row in which no other process had a chance */
#define AT_ONCE_US 5000u /* within that after giving back, acquiring is at once */

static struct quorlock_lock *first_of(const struct keylist *keylist)
{
    return CONTAINER_OF(bare_list_first(&keylist->waiting), struct quorlock_lock, pending.turn);
}

/* Rule 9.9. Return how many of the queue may ask the nodes for this handle to be one of them. */
static uint32_t askers(const struct quorlock_lock *lock)
{
    const struct core_config *config = &lock->terms->config;

    return config->fair && config->permits > 1 ? config->permits : 1;
}

static struct quorlock_lock *behind(const struct quorlock_lock *lock)
{
    struct link *next = list_next(&lock->pending.turn);

    return next != NULL ? CONTAINER_OF(next, struct quorlock_lock, pending.turn) : NULL;
}

/* Return this handle, or the first behind it, that asks the nodes; NULL: none does. */
static struct quorlock_lock *asking_from(struct quorlock_lock *lock)
{
    for (uint32_t place = 0; lock != NULL && place < askers(lock); place++, lock = behind(lock)) {
        if (handle_asks(lock)) return lock;
    }
    return NULL;
}

static struct quorlock_lock *first_asking(const struct keylist *keylist)
{
    return asking_from(first_of(keylist));
}

/* Hand the event to all of the queue that ask the nodes. */
static void step_asking(const struct keylist *keylist, const struct core_event *event)
{
    for (struct quorlock_lock *next, *lock = first_asking(keylist); lock != NULL; lock = next) {
        struct core_event own = *event;

        next = asking_from(behind(lock));
        (void)claim_step_randomly(lock->claim, &own);
    }
}

/* Tell whether the handle is one of those that ask. */
static bool is_in_front(const struct quorlock_lock *lock)
{
    uint32_t place = 0;

    for (const struct quorlock_lock *at = first_of(lock->keylist); at != lock && place < askers(lock); at = behind(at))
        place++;
    return place < askers(lock);
}

/* holds_back - tell whether other processes go first (rule 6.13). */
static bool holds_back(struct keylist *keylist)
{
    keylist_check(keylist);
    if (!keylist_others_listen(keylist)) return false;
    if (keylist->contention->handed < HANDED_MAX) {
        keylist->contention->handed++;
        return false;
    }
    keylist->contention->handed = 0;
    return true;
}

/* A handle at the front of the queue begins to ask. */
static int queue_begin(struct quorlock_lock *lock, bool promised, uint32_t seen)
{
    struct keylist *keylist = lock->keylist;
    struct core_event event = {.type = CORE_EV_WAKE, .wake = {.yield = true}};
    struct contention *contention = keylist->contention;
    uint64_t gave_back_us = contention != NULL ? contention->gave_back_us : 0;
    uint64_t since_us = runtime_now_us(keylist->all->runtime) - gave_back_us;
    bool at_once = gave_back_us != 0 && since_us < AT_ONCE_US;
    bool fair = lock->terms->config.fair;
    bool full = !keylist_admits(keylist, &lock->terms->config);
    bool back = at_once && !full && !fair && keylist_others_listen(keylist);
    int status;

    assert(is_in_front(lock) && lock->operation == OPERATION_ACQUIRE);
    if (!at_once && contention != NULL) contention->handed = 0;
    /* A fair lock stands in the arbiter's queue also while a lock of this process holds the keys. */
    status = handle_ask(lock, (full && !fair) || back, promised, seen);
    if (status == 0 && back) (void)claim_step(lock->claim, &event);
    return status;
}

/* Rule 6.13. */
int queue_acquire(struct quorlock_lock *lock)
{
    struct keylist *keylist = lock->keylist;
    int status;

    assert(lock->operation == OPERATION_ACQUIRE && !list_has(&lock->pending.turn));
    /* A lock that tries once does not queue. */
    if (lock->terms->config.holder.wait_us == 0) return handle_ask(lock, false, false, 0);
    bare_list_add(&keylist->waiting, &lock->pending.turn);
    if (!is_in_front(lock)) {
        runtime_wake_at(locks_of(lock)->runtime, &lock->waker,
                        validity_add(lock->pending.ended.begun_us, lock->terms->config.holder.wait_us));
        return 0;
    }
    status = queue_begin(lock, false, 0);
    if (status != 0) bare_list_remove(&keylist->waiting, &lock->pending.turn);
    return status;
}

/* While the handle waited, its owner may have taken one of the keys in another list. */
static int ask_in_turn(struct quorlock_lock *lock, const char **ret_why)
{
    const struct claim *asked = lock->keylist->asked;
    struct claim *claim;
    int status = handle_owner(lock) != NULL ? reentry_find(lock, &claim) : 0;

    if (status != 0) {
        *ret_why = "its owner holds one of the keys in another list";
        return status;
    }
    /* What stood in the way of the claim before stands in the way of this one, too. */
    return queue_begin(lock, true,
                       asked != NULL && core_phase_now(asked->core) == CORE_IDLE ? core_seen(asked->core) : 0);
}

static void advance(struct keylist *keylist)
{
    uint32_t place = 0;

    for (struct quorlock_lock *next, *lock = first_of(keylist); lock != NULL; lock = next) {
        const char *why = NULL;
        int status;

        if (keylist->all->runtime->closing || place >= askers(lock)) return;
        next = behind(lock);
        place++;
        /* A handle that was freed while it asked leaves the queue at its callback. */
        if (handle_asks(lock) || handle_waits_for_room(lock) || lock->freed) continue;
        runtime_wake_at(keylist->all->runtime, &lock->waker, UINT64_MAX);
        status = ask_in_turn(lock, &why);
        if (status == 0) continue;
        place--;
        bare_list_remove(&keylist->waiting, &lock->pending.turn);
        handle_complete_acquire(lock, status, why);
    }
}

void queue_leave(struct quorlock_lock *lock)
{
    runtime_wake_at(locks_of(lock)->runtime, &lock->waker, UINT64_MAX);
    bare_list_remove(&lock->keylist->waiting, &lock->pending.turn);
    assert(!list_has(&lock->pending.turn));
    advance(lock->keylist);
    keylist_check(lock->keylist);
}

/* The nodes would be asked the same for both handles. */
static bool same_wishes(const struct quorlock_lock *a, const struct quorlock_lock *b)
{
    const struct terms *one = a->terms, *two = b->terms;

    assert(a->keylist == b->keylist && one->config.permits == two->config.permits);
    if (a->reentrant != NULL || b->reentrant != NULL || one->fence_ttl_ms != two->fence_ttl_ms) return false;
    return strcmp(one->label, two->label) == 0 && core_asks_same(&one->config, &two->config);
}

bool queue_hand_off(struct quorlock_lock *lock, int status)
{
    struct link *turn = &lock->pending.turn;
    struct quorlock_lock *successor =
        list_has(turn) ? CONTAINER_OF(list_next(turn), struct quorlock_lock, pending.turn) : NULL;
    struct core_event event = {.type = CORE_EV_HAND_OFF};
    struct claim *claim = lock->claim;

    if (successor == NULL || successor->claim != NULL || first_of(lock->keylist) != lock ||
        !same_wishes(lock, successor)) {
        return false;
    }
    /* Rule 9.9. Its place in the arbiter's queue may come before those of clients that came before the successor. */
    if (lock->terms->config.fair) return false;
    assert(claim->acquirer == lock && successor->operation == OPERATION_ACQUIRE);
    event.hand_off.begun_us = successor->pending.ended.begun_us;
    event.hand_off.config = &successor->terms->config;
    if (claim_step(claim, &event) != 0) return false;
    claim_agree(claim, successor->terms);
    runtime_wake_at(locks_of(successor)->runtime, &successor->waker, UINT64_MAX);
    bare_list_remove(&lock->keylist->waiting, &lock->pending.turn);
    lock->claim = NULL;
    successor->claim = claim;
    claim->handle = claim->acquirer = successor;
    handle_complete_acquire(lock, status, NULL);
    handle_check(successor);
    claim_check(claim);
    return true;
}

uint64_t queue_due(struct claim *claim)
{
    struct quorlock_lock *lock;

    while ((lock = claim->acquirer) != NULL && core_phase_now(claim->core) != CORE_GRANTED) {
        uint64_t until_us = validity_add(lock->pending.ended.begun_us, lock->terms->config.holder.wait_us);
        uint64_t now_us = runtime_now_us(claim->all->runtime);

        if (now_us < until_us) return now_us;
        if (!queue_hand_off(lock, core_wait_verdict(claim->core))) break;
    }
    return runtime_now_us(claim->all->runtime);
}

/* Rule 6.13. */
void queue_keys_released(struct claim *claim)
{
    struct keylist *keylist = claim->keylist;
    struct contention *contention = keylist_contention(keylist);
    struct quorlock_lock *lock = first_asking(keylist);
    struct core_event event = {.type = CORE_EV_WAKE};
    char text[REQUEST_OWNER_SIZE];
    const char *owner;

    assert(!claim->counted && core_phase_now(claim->core) != CORE_HELD);
    if (contention != NULL) {
        contention->gave_back_us = runtime_now_us(keylist->all->runtime);
        /* Without a listener no notice of this release comes. */
        owner = contention->listener.subscriptions != NULL ? claim_owner(claim, text) : NULL;
        contention->gave_back_id = owner != NULL ? owner_id(owner, strlen(owner)) : owner_id("", 0);
    }
    if (lock == NULL || !keylist_admits(keylist, &lock->terms->config)) return;
    event.wake.yield = !lock->terms->config.fair && holds_back(keylist);
    step_asking(keylist, &event);
}

/* Rule 6.14. */
void queue_wait_expired(struct quorlock_lock *lock)
{
    const struct claim *asked = lock->keylist->asked;
    int status = QUORLOCK_ERR_TIMEDOUT;
    const char *why = NULL;

    assert(lock->operation == OPERATION_ACQUIRE && !handle_asks(lock));
    if (lock->pending.pending_on != NULL) {
        why = "its owner holds it, and renewing it first took too long";
    } else if (!keylist_admits(lock->keylist, &lock->terms->config)) {
        status = QUORLOCK_ERR_HELD;
    } else if (handle_waits_for_room(lock)) {
        if (lock->seen == CORE_SEEN_HELD) status = QUORLOCK_ERR_HELD;
        if (lock->seen == CORE_SEEN_NOQUORUM) status = QUORLOCK_ERR_NOQUORUM;
    } else if (asked != NULL) {
        /* The first in the queue knows why the keys are not free. */
        status = core_wait_verdict(asked->core);
    }
    handle_stop_waiting(lock);
    reentry_leave(lock);
    /* This handle may have been the first in the queue, which waited for room at the nodes. */
    queue_leave(lock);
    handle_complete_acquire(lock, status, why);
}

/* ---- notices ---- */

static struct quorlock_lock *asking(struct listener *listener)
{
    return first_asking(CONTAINER_OF(listener, struct contention, listener)->keylist);
}

static void queue_on_confirmed(struct listener *listener)
{
    for (struct quorlock_lock *next, *lock = asking(listener); lock != NULL; lock = next) {
        next = asking_from(behind(lock));
        claim_notify_subscribed(lock->claim, false);
    }
}

static void queue_on_unsubscribed(struct listener *listener, uint32_t node)
{
    assert(node < CORE_NODES_MAX);
    /* The next confirmation is news for the core. */
    for (struct quorlock_lock *lock = asking(listener); lock != NULL; lock = asking_from(behind(lock)))
        if (lock->claim->far == NULL) lock->claim->known_subscribed &= ~(1u << node);
}

static bool is_holder(const struct quorlock_lock *lock, uint64_t holder_id)
{
    const struct claim *held = handle_held(lock);
    const struct core_token *token = held != NULL ? core_token_now(held->core) : NULL;
    char text[REQUEST_OWNER_SIZE];
    size_t length;

    if (handle_is_compact(lock)) token = &handle_record(lock)->token;
    if (token == NULL) return false;
    length = request_owner_text(locks_of(lock)->runtime, lock->terms, token, text);
    return owner_id(text, length) == holder_id;
}

/* Another client changed a key of the lock at that node: let the lock look after its keys. */
static void look_after(struct quorlock_lock *lock, uint32_t node, bool by_server)
{
    struct core_event event = {.type = CORE_EV_LOOK, .look = {.node = node, .by_server = by_server}};
    struct claim *claim;

    if (handle_is_compact(lock) && !core_compact_holds(handle_record(lock))) return;
    claim = handle_is_compact(lock) ? compact_expand(lock) : handle_held(lock);
    if (claim == NULL) return;
    (void)claim_step(claim, &event);
    claim_reap(claim);
}

/* A lock of this process holds the keys, and another client deleted one at a node: let the lock look after its keys.
 * False: no lock of this process has that owner. */
static bool look_after_holder(struct keylist *keylist, uint64_t holder_id, uint32_t node)
{
    struct locks *all = CONTAINER_OF(keylist->all, struct locks, keylists);

    LIST_EACH (struct quorlock_lock, lock, &all->handles, in_all) {
        if (lock->keylist != keylist || !is_holder(lock, holder_id)) continue;
        look_after(lock, node, false);
        return true;
    }
    return false;
}

void queue_key_changed(struct locks *all, uint32_t node, const struct node_key *key)
{
    const struct keylist *keylist = keylist_of_key(&all->keylists, key);
    const struct core_event event = {.type = CORE_EV_HINT, .hint = {.node = node}};

    if (keylist == NULL) return;
    if (keylist->held > 0 && keylist->holder != NULL) look_after(keylist->holder, node, true);
    step_asking(keylist, &event);
}

static void queue_on_notice(struct listener *listener, uint32_t node, uint32_t key, uint64_t holder_id)
{
    struct contention *contention = CONTAINER_OF(listener, struct contention, listener);
    struct keylist *keylist = contention->keylist;
    struct quorlock_lock *lock = asking(listener);
    struct core_event event = {.type = CORE_EV_NOTICE, .notice = {.node = node, .key = key, .holder_id = holder_id}};

    assert(key < keylist->n_keys);
    keylist_check(keylist);
    if (lock == NULL) return;
    /* Our own release has already woken the first in the queue. */
    if (holder_id != 0 && holder_id == contention->gave_back_id) return;
    if (holder_id != 0 && keylist->held > 0 && holder_id != contention->foreign_id) {
        if (!look_after_holder(keylist, holder_id, node)) contention->foreign_id = holder_id;
    }
    step_asking(keylist, &event);
}

const struct listener_events queue_listener = {
    .confirmed = queue_on_confirmed, .unsubscribed = queue_on_unsubscribed, .notice = queue_on_notice};
