/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - one lock's deterministic state machine
 *
 * The core decides. The caller passes events with the time. The core returns commands for the nodes, the next
 * deadline, and completions for the owner. It has no socket, clock, timer, random source or memory of its own, so the
 * same object code runs under libevent and under the simulator.
 *
 * The phases of a lock:
 *
 *   IDLE --acquire--> ASKING --Q yeses--> GRANTED --dispatch, still valid--> HELD --lost_at--> LOST
 *                      |  ^                  |                                |
 *               failed |  | retry_at         | too late                       | release
 *                      v  |                  v                                v
 *                     WAITING <--------------+                              IDLE
 *
 * src/protocol.md has the rules. With fencing, a quorum must agree on the token between the Qth yes and GRANTED. The
 * phase is still ASKING (fence.c).
 *
 * An acquire's first attempt asks all nodes. A later attempt mostly asks one node first, the arbiter, and the others
 * only with the arbiter's yes (wait.c, arbiter.c). Notices of releases only decide when to try; no vote depends on
 * them.
 *
 * A lock that is detached is IDLE, too, and its keys stay. An adoption is an acquire that asks the nodes to extend the
 * keys of a token that another client held, once (rule 11.2).
 *
 * An attempt that ends in any other way (failed, canceled, released, lost and released) leaves a debt at every node
 * that may have its key: a release that the node has not answered yet. The release is sent again on each new connection
 * until the node answers, or until the lease has certainly ended (debt.c). New attempts do not wait for debts: on one
 * connection the release is sent before the next acquire.
 */
#pragma once

#include "types.h"

struct core_lock;

/* core_size - return the bytes that a lock on n_nodes needs. The caller owns the memory, aligned as by malloc. */
size_t core_size(uint32_t n_nodes);
/* core_init - make a lock in IDLE, with all nodes DOWN. The config must live as long as the lock, or until
 * CORE_EV_HAND_OFF replaces it. first_arbiter: the place in config->arbiters where this lock begins. */
void core_init(struct core_lock *, const struct core_config *, uint32_t first_arbiter);
/*
 * core_step - take one event, and fill one update
 *
 * *update need not be initialized. Returns 0, or for ACQUIRE, EXTEND, RELEASE, DETACH, CANCEL and HAND_OFF a
 * core_status (BUSY, STATE, INVAL) if nothing was begun.
 */
int core_step(struct core_lock *, const struct core_event *, struct core_update *);

/* core_deadline - return when CORE_EV_TIMER is due, or CORE_NEVER. Changes with every step. */
uint64_t core_deadline(const struct core_lock *);
enum core_phase core_phase_now(const struct core_lock *);
/* core_may_acquire - tell whether CORE_EV_ACQUIRE would be accepted. */
bool core_may_acquire(const struct core_lock *);
/* core_may_release - return the status that CORE_EV_RELEASE would get now. */
int core_may_release(const struct core_lock *);
/* core_wants - return the work that waits for room at the nodes. Changes with every step. */
enum core_wants core_wants(const struct core_lock *);
/* core_listens - tell whether notices could bring the next attempt forward. */
bool core_listens(const struct core_lock *);
/* core_is_far - tell whether a channel of the lock's own at the first arbiter does, beside polls: others come first,
 * and a message there is to be taken as CORE_EV_LISTENING. */
bool core_is_far(const struct core_lock *);
/* core_wait_verdict - return the status that the acquire would get if its wait ended now. */
int core_wait_verdict(const struct core_lock *);
/* core_wait_until_us - return when the wait of the latest acquire ends, or CORE_NEVER. */
uint64_t core_wait_until_us(const struct core_lock *);
/* core_begun_us - return when the latest acquire began. */
uint64_t core_begun_us(const struct core_lock *);
/* core_seen - return what was in the way of the latest acquire, bits of enum core_seen. */
uint32_t core_seen(const struct core_lock *);
/* core_loss - return the reason of the present or latest loss. */
enum core_loss core_loss(const struct core_lock *);
/* core_notified_held - tell whether the owner has got its grant, and the lock was neither lost nor released since. */
bool core_notified_held(const struct core_lock *);
/* core_valid_us - return the validity that is left; 0 from lost_at on, and unless core_notified_held(). */
uint64_t core_valid_us(const struct core_lock *, uint64_t now_us);
/* core_loss_pending - tell whether a completion for a loss is pending. */
bool core_loss_pending(const struct core_lock *);
/* core_release_pending - tell whether the only pending completion is that of a release. */
bool core_release_pending(const struct core_lock *);
/* core_remaining_us - return the time until the validity of the present or lost grant ends; 0 if the validity may have
 * ended before the loss was noticed. */
uint64_t core_remaining_us(const struct core_lock *, uint64_t now_us);
/* core_valid_until - return when the validity of a grant or hold ends, or 0. */
uint64_t core_valid_until(const struct core_lock *);
/* core_lost_at - return when a grant or hold is lost unless it is renewed, or 0. */
uint64_t core_lost_at(const struct core_lock *);
/* core_granted_us - return when the present or latest grant came. */
uint64_t core_granted_us(const struct core_lock *);
/* core_is_whole - tell whether all nodes said yes in the latest renewal; true before the first renewal. */
bool core_is_whole(const struct core_lock *);
/* core_fence - return the fencing token of a grant or hold, or 0. */
uint64_t core_fence(const struct core_lock *);
/* core_lease_us - return the lease of the latest acquire or extend. */
uint64_t core_lease_us(const struct core_lock *);
/* core_slot - with permits, return the slot of a grant or hold, or the one that was last asked for. */
uint32_t core_slot(const struct core_lock *);
/* core_vote - return the node's answer in the present round. A node that this attempt has not asked shows its answer in
 * the attempt before. */
enum core_vote core_vote(const struct core_lock *, uint32_t node);
/* core_counted - return how many nodes count for the present validity. */
uint32_t core_counted(const struct core_lock *);
/* core_attempt - return the number of the latest attempt, counted from 1 over the lock's life. */
uint64_t core_attempt(const struct core_lock *);
/* core_rounds - return the number of attempts of the present acquire. */
uint32_t core_rounds(const struct core_lock *);
/* core_token_now - return the token of the latest attempt. */
const struct core_token *core_token_now(const struct core_lock *);
/* core_has_token - tell whether the lock acquires, holds or lost that token, or a node owes its release. */
bool core_has_token(const struct core_lock *, const struct core_token *);
/* core_waiter - return the intent's name (intent.h), or NULL for a lock that tries once and is not fair. */
const struct core_token *core_waiter(const struct core_lock *);
/* core_quiet - tell whether the lock is idle without completions and debts, so that its memory may be freed. */
bool core_quiet(const struct core_lock *);
/* core_debts_size - return the size of the block that each event lends to a lock, and that it keeps while it needs it.
 * core_debts_block - return the block that the lock has, or NULL: it has given the block back. */
size_t core_debts_size(uint32_t n_nodes);
struct debt *core_debts_block(const struct core_lock *);
/* core_debts - return how many releases the node has not answered yet. */
uint32_t core_debts(const struct core_lock *, uint32_t node);
