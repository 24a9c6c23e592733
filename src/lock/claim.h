/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim.h - one owner's claim to the keys: ties one core to the nodes and the clock
 *
 * A handle gets a claim when it begins to ask the nodes, so a handle in the queue costs little. It keeps the
 * claim while it has anything to do. The claim of a freed handle lives on until every release was answered.
 * Handles of one owner share one claim. While the keys are held and nothing is under way, a small record stands for
 * the claim (compact.h), and the claim's memory serves others.
 */
#pragma once

#include "lock/claim_step.h"

/* claims_start - start a struct that has its events and admission.begin, and is zeroed else. claims_stop - no claim may
 * be left. */
void claims_start(struct claims *, struct runtime *);
void claims_stop(struct claims *);
/* claim_new - make a claim for that handle; NULL: out of memory. claim_expand - make the claim again from its record;
 * out of memory it may take the last blocks that are kept. */
struct claim *claim_new(struct claims *, struct keylist *, struct quorlock_lock *, struct terms *,
                        struct named_owner *);
struct claim *claim_expand(struct claims *, struct keylist *, struct quorlock_lock *, struct terms *,
                           const struct core_compact *);
/* claim_agree - go on by the terms of the handle to which the acquire was handed off. */
void claim_agree(struct claim *, struct terms *);
/* claim_release - begin to release the keys, for the last handle that held them. 0 or a status.
 * claim_let_go - release the keys if no handle holds them any more. */
int claim_release(struct claim *, struct quorlock_lock *, const struct lock_callback *);
void claim_let_go(struct claim *);
/* claim_wake - the claim's deadline has come.
 * claim_on_node_state - a node's state changed.
 * claim_clock_stepped - a node's clock stepped forward: its votes that were asked for before then do not count. */
void claim_wake(struct claim *);
void claim_on_node_state(struct claim *, uint32_t node);
void claim_clock_stepped(struct claim *, uint32_t node, uint64_t before_us);
/* claim_reap - free a claim without a handle once nothing is owed. claim_destroy - free it, whatever is owed. */
void claim_reap(struct claim *);
void claim_destroy(struct claim *);
