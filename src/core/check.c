/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include "debt.h"

static void check_acquire(const struct core_lock *lock)
{
    (void)lock; /* without assertions */
    assert(lock->acquire.attempts <= lock->id.number);
    assert(lock->acquire.attempts > 0 || (lock->phase != CORE_ASKING && lock->phase != CORE_GRANTED));
    assert((lock->acquire.seen & ~(uint32_t)(CORE_SEEN_HELD | CORE_SEEN_NOQUORUM)) == 0);
    assert(lock->config->fencing || lock->id.fence == 0);
    assert(lock->config->permits == 0 || lock->id.slot < lock->config->permits);
    assert(lock->config->quorum >= 1 && lock->config->quorum <= lock->config->n_nodes);
    assert(lock->awaits_room == WAIT_STAY || lock->phase == CORE_WAITING);
    /* The owner learns the end of an acquire before the next acquire begins. */
    assert(!core_is_acquiring(lock) || !core_is_pending(lock, CORE_NOTIFY_ACQUIRED));
    /* The step of a node's clock may undo a grant; then the owner does not get it. */
    assert(lock->phase != CORE_GRANTED || core_count_yeses(lock) >= lock->config->quorum ||
           lock->hold.validity_us == 0);
}

static void check_hold(const struct core_lock *lock)
{
    const struct hold *hold = &lock->hold;

    (void)hold;
    assert(lock->lease_us > 0);
    assert(lock->lease_us >= lock->config->lease_us);
    assert(lock->phase != CORE_HELD || hold->loss == CORE_LOSS_NONE);
    assert(lock->phase != CORE_LOST || hold->loss != CORE_LOSS_NONE);
    assert(hold->repair_at_us == CORE_NEVER || lock->config->holder.renew_us != CORE_NEVER);
    /* 0: clocks of nodes stepped while the lock was compact; the step that begins loses it. */
    assert(lock->phase != CORE_HELD || hold->granted_us < hold->validity_us || hold->validity_us == 0);
    assert(hold->extend_lease_us == 0 || lock->phase == CORE_HELD);
    assert(hold->extend_lease_us == 0 || hold->extend_lease_us >= lock->lease_us);
    assert(lock->phase == CORE_HELD || (!hold->round_waits && !hold->repair_waits));
    /* The completion of a loss goes away with the loss. */
    assert(!core_is_pending(lock, CORE_NOTIFY_LOST) || lock->phase == CORE_LOST);
    assert(lock->release.attempt == 0 || !core_is_pending(lock, CORE_NOTIFY_RELEASED));
    assert(lock->release.absent <= lock->config->n_nodes);
}

static void check_node(const struct core_lock *lock, const struct core_node *node)
{
    (void)lock;
    (void)node;
    assert(core_can_talk(node) == (node->generation != 0));
    assert(node->vote != CORE_VOTE_FAILED || node->fault != FAULT_CLASS_NONE);
    /* Only nodes that said yes raise their counters. */
    assert(lock->phase != CORE_ASKING || node->asked.follow_up != FOLLOW_UP_RAISE || node->vote == CORE_VOTE_YES);
    /* The debts of all other nodes are never looked at. */
    assert((lock->owing & 1u << (node - lock->nodes)) != 0 || debt_count(node) == 0);
    /* A token that is released is not held: the release could delete the key of the hold. */
    assert((lock->phase != CORE_GRANTED && lock->phase != CORE_HELD) || !debt_has_token(node, &lock->id.token));
    assert(node->key.until_us == 0 || node->key.valid_until_us <= node->key.until_us);
    assert(!node->gone || node->key.valid_until_us == 0);
    assert(node->key.until_us == 0 || node->key.yes_round <= lock->hold.round);
    assert(node->key.until_us == 0 || node->key.repair_round <= lock->hold.round);
    assert(node->key.until_us == 0 || node->key.again_round <= lock->hold.round);
}

static void check_completions(const struct core_lock *lock)
{
    (void)lock;
    assert(!core_is_pending(lock, CORE_NOTIFY_NOTHING) && lock->pending.kinds < 1u << (CORE_NOTIFY_RELEASED + 1));
    assert(!core_is_pending(lock, CORE_NOTIFY_ACQUIRED) || lock->pending.status[CORE_NOTIFY_ACQUIRED] != CORE_OK);
    assert(!core_is_pending(lock, CORE_NOTIFY_LOST) || lock->pending.status[CORE_NOTIFY_LOST] == CORE_LOST_LOCK);
    assert((lock->owing >> lock->config->n_nodes) == 0);
}

/* Rule 15.1. */
void core_check(const struct core_lock *lock)
{
    check_acquire(lock);
    check_hold(lock);
    check_completions(lock);
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock); node++) check_node(lock, node);
}
