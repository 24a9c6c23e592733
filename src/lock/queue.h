/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.h - the wait queue of a key list: handles of this client that wait for the same keys
 *
 * They wait in the order of coming, and only the first of them asks the nodes: however many wait in this
 * process, the nodes see one. When a lock of this process gives the keys back, the first in the queue asks in
 * the same flush, behind the release: the keys go on in one round trip. And a lock that is released and
 * acquired again at once is always sooner there than one that has to hear of the release first. So that other
 * processes get their turn, either is done only some times in a row; then this process holds back for as long
 * as the others need.
 *
 * A handle that leaves the head of the queue without the lock hands its acquire off to the next: the
 * nodes' answers hold for both, so no node is asked anew however many handles give up.
 */
#ifndef QUORLOCK_LOCK_QUEUE_H
#define QUORLOCK_LOCK_QUEUE_H

#include "lock/handle.h"

/* The events of a key list's listener. */
extern const struct listener_events queue_listener;

/* queue_acquire - the handle asks the nodes, or waits for its turn to. 0 or a status. */
int queue_acquire(struct quorlock *);
/* queue_leave - the handle waits no more, whatever it waited for. */
void queue_leave(struct quorlock *);
/* queue_hand_off - the handle that asks the nodes is told this, and its acquire goes on for its successor;
 * false where no other can take its place. */
bool queue_hand_off(struct quorlock *, int status);
/* queue_due - the claim's deadline passed: its acquire is handed off by all whose wait bounds have passed until
 * the time that it returns, and at which the claim goes on. */
uint64_t queue_due(struct claim *);
/* queue_keys_released - a claim of this process does not hold the keys any more; its releases were just queued.
 */
void queue_keys_released(struct claim *);
/* queue_wait_expired - the wait bound of a handle while another asks. */
void queue_wait_expired(struct waker *);

#endif
