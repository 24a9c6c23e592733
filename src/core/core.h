/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - one lock's deterministic state machine
 *
 * The core decides. It is fed events with the time, and answers with commands for the nodes, the next time at
 * which it wants to be called, and the completions for the owner. It has no socket, clock, timer, random source
 * or memory of its own, so the same object code runs under libevent and under the simulator.
 *
 * The phases of a lock:
 *
 *   IDLE --acquire--> ASKING --Q yeses--> GRANTED --dispatch, still valid--> HELD --lost_at--> LOST
 *                      |  ^                  |                                |
 *               failed |  | retry_at         | too late                       | release
 *                      v  |                  v                                v
 *                     WAITING <--------------+                              IDLE
 *
 * With fencing the token must be agreed between the Qth yes and GRANTED; this is still ASKING (fence.c).
 *
 * After the first attempt of an acquire one node is asked first, the arbiter, and the others only with its yes
 * (wait.c, arbiter.c). Notices of releases only decide when to try; no vote depends on them.
 *
 * An attempt that ends in any way (failed, canceled, released, lost and released) leaves a release debt on
 * every node that may hold its key: a release that the node has not answered yet. It is sent again on each new
 * connection until the node answers, or until the lease has certainly ended (debt.c). New attempts do not wait
 * for debts: on one connection the release goes out before the next acquire.
 */
#pragma once

#include "types.h"

struct core_lock;

/* core_size - bytes that a lock on n_nodes needs; memory is the caller's, aligned as by malloc. */
size_t core_size(uint32_t n_nodes);
/* core_init - a lock in IDLE; all nodes DOWN until events say otherwise. The config lives as long as the lock, or until
 * another takes its place (CORE_EV_HAND_OFF). first_arbiter: which of config->arbiters is the first of this lock. */
void core_init(struct core_lock *, const struct core_config *, uint32_t first_arbiter);
/*
 * core_step - one event in, one update out
 *
 * *update is written whole up to n_commands; it need not be initialized. Returns 0, or for ACQUIRE, EXTEND,
 * RELEASE, CANCEL and HAND_OFF a core_status (BUSY, STATE, INVAL); then nothing was begun.
 */
int core_step(struct core_lock *, const struct core_event *, struct core_update *);

/* core_deadline - when CORE_EV_TIMER is wanted, CORE_NEVER when not. Changes with every step. */
uint64_t core_deadline(const struct core_lock *);
enum core_phase core_phase_now(const struct core_lock *);
/* core_may_acquire - CORE_EV_ACQUIRE would not be refused. */
bool core_may_acquire(const struct core_lock *);
/* core_may_release - the status that CORE_EV_RELEASE would return now. */
int core_may_release(const struct core_lock *);
/* core_wants - what waits for room at the nodes. Changes with every step. */
enum core_wants core_wants(const struct core_lock *);
/* core_listens - notices would help. */
bool core_listens(const struct core_lock *);
/* core_wait_verdict - the status if the wait bound passed now, enum core_status. */
int core_wait_verdict(const struct core_lock *);
/* core_wait_until_us - when the wait bound of the latest acquire passes; CORE_NEVER: there is none. */
uint64_t core_wait_until_us(const struct core_lock *);
/* core_begun_us - when the latest acquire began. */
uint64_t core_begun_us(const struct core_lock *);
/* core_seen - what stood in the way of the latest acquire, bits of enum core_seen. */
uint32_t core_seen(const struct core_lock *);
/* core_loss - the reason of the present or last loss. */
enum core_loss core_loss(const struct core_lock *);
/* core_notified_held - the owner was notified of its hold, and the lock was neither lost nor released since. */
bool core_notified_held(const struct core_lock *);
/* core_valid_us - validity left; 0 from lost_at on, and where core_notified_held() is false. */
uint64_t core_valid_us(const struct core_lock *, uint64_t now_us);
/* core_loss_pending - the owner is still to be notified of a loss. */
bool core_loss_pending(const struct core_lock *);
/* core_release_pending - the end of a release is all that the owner is still to be notified of. */
bool core_release_pending(const struct core_lock *);
/* core_remaining_us - until the validity of the present or lost grant ends; 0 where it may have ended before
 * the loss was noticed. */
uint64_t core_remaining_us(const struct core_lock *, uint64_t now_us);
/* core_valid_until - end of validity of a grant or hold, 0 where there is none. */
uint64_t core_valid_until(const struct core_lock *);
uint64_t core_lost_at(const struct core_lock *);
/* core_granted_us - when the present or the last grant came. core_is_whole: no renewal has found since that not all
 * nodes hold it, or the latest one found that all do. */
uint64_t core_granted_us(const struct core_lock *);
bool core_is_whole(const struct core_lock *);
/* core_fence - fencing token of a grant or hold, 0 where there is none. */
uint64_t core_fence(const struct core_lock *);
uint64_t core_lease_us(const struct core_lock *);
/* core_slot - with permits: the slot of a grant or hold, or that was asked for last. */
uint32_t core_slot(const struct core_lock *);
/* core_vote - this node's latest answer in the present round, or its last one before where only the arbiter was
 * asked. */
enum core_vote core_vote(const struct core_lock *, uint32_t node);
/* core_counted - nodes whose key counts for the present validity. */
uint32_t core_counted(const struct core_lock *);
uint64_t core_attempt(const struct core_lock *); /* number of the latest attempt, from 1 over the lock's life */
uint32_t core_rounds(const struct core_lock *);  /* attempts of the present acquire */
const struct core_token *core_token_now(const struct core_lock *);
/* core_waiter - the name under which the acquire in flight waits; NULL: it does not wait. */
const struct core_token *core_waiter(const struct core_lock *);
/* core_quiet - idle, no completion, no debt: the memory may be freed. */
bool core_quiet(const struct core_lock *);
/* core_debts - releases that a node still owes us. */
uint32_t core_debts(const struct core_lock *, uint32_t node);
