/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h - the wait queue of a key list: handles of this client that wait for the same keys
 *
 * Only the first in the queue asks the nodes, so any number of waiters costs the nodes what one waiter costs. It asks
 * while no claim of this process holds the keys, or while those that do leave room for one more (keylist_admits).
 * Of fair locks with k permits the first k ask, for several permits may be released at once: each of these locks has
 * its own place in the arbiter's queue.
 *
 * When a lock of this process releases the keys, the first in the queue asks in the same flush, right after the
 * release. So does a lock that is acquired again at once. Both are faster than other processes, which must receive the
 * notice first. So after HANDED_MAX times in a row this process lets the others go first.
 *
 * A handle that leaves the head of the queue without the lock hands its acquire off to the next handle. The nodes'
 * answers hold for both, so no node is asked again.
 */
#pragma once

#include "lock/handle.h"

/* The events of a key list's listener. */
extern const struct listener_events queue_listener;

/* queue_acquire - ask the nodes, or queue for the handle's turn. 0 or a status.
 * queue_leave - take the handle out.
 * queue_wait_expired - end the acquire of a handle whose wait bound passed while another handle asked. */
int queue_acquire(struct quorlock_lock *);
void queue_leave(struct quorlock_lock *);
void queue_wait_expired(struct quorlock_lock *);
/* queue_hand_off - end the acquire of the handle that asks with that status; its successor goes on. False: no other
 * handle can take its place. */
bool queue_hand_off(struct quorlock_lock *, int status);
/* queue_key_changed - a node reports that another client changed the key: its holder asks the nodes, and those who wait
 * for it ask again. */
void queue_key_changed(struct locks *, uint32_t node, const struct node_key *);
/* queue_due - the claim's deadline passed: hand off while the wait bound of the handle that asks has passed. Return the
 * time to continue with. */
uint64_t queue_due(struct claim *);
/* queue_keys_released - a claim of this process holds the keys no more; its releases are queued. */
void queue_keys_released(struct claim *);
