/* SPDX-License-Identifier: BSD-3-Clause */
/* hold.h - renewal, repair, loss */
#pragma once

#include "state.h"

/* hold_grant - the Qth yes came. */
void hold_grant(struct core_lock *, uint64_t now_us);
/* hold_begin - the owner is notified of the grant. */
void hold_begin(struct core_lock *, uint64_t now_us);
uint64_t hold_lost_at(const struct core_lock *);
/* hold_margin_us - so long before its validity ends a lock is lost. hold_loss_reason: why one is whose time is over. */
uint64_t hold_margin_us(const struct core_config *, uint64_t lease_us);
enum core_loss hold_loss_reason(const struct core_config *, uint64_t granted_us, uint64_t now_us);
/* hold_check_lost - to be called before anything else in a step. */
void hold_check_lost(struct core_lock *, uint64_t now_us);
/* hold_begin_round - or, where the nodes have no room for it, waits for hold_on_room. */
void hold_begin_round(struct core_lock *, struct step *);
void hold_on_room(struct core_lock *, struct step *);
void hold_on_timer(struct core_lock *, struct step *);
void hold_on_node_state(struct core_lock *, struct step *, const struct core_node_change *);
/* hold_look - our key may be gone from a node: a round is due soon. */
void hold_look(struct core_lock *, uint64_t now_us);
/* hold_repair_span_us - repairs of many locks are due within so long. */
uint64_t hold_repair_span_us(uint64_t lease_us);
void hold_on_reply(struct core_lock *, struct step *, const struct core_reply *);
/* hold_on_step - the node's clock stepped forward: its votes that were asked for before do not count. */
void hold_on_step(struct core_lock *, struct step *, uint32_t node, uint64_t before_us);
/* hold_lose - loses it as if nothing but the margin were left. */
void hold_lose(struct core_lock *, uint64_t now_us);
/* hold_late_vote - a vote of the acquire came after the verdict. */
void hold_late_vote(struct core_lock *, struct step *);
uint64_t hold_deadline(const struct core_lock *);
