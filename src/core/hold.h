/* SPDX-License-Identifier: BSD-3-Clause */
/* hold.h - renewal, repair, loss */
#pragma once

#include "state.h"

/* hold_grant - enter GRANTED: the Qth yes came. */
void hold_grant(struct core_lock *, uint64_t now_us);
/* hold_begin - enter HELD: the owner gets the grant now. */
void hold_begin(struct core_lock *, uint64_t now_us);
/* hold_lost_at - return when the lock is lost unless it is renewed. */
uint64_t hold_lost_at(const struct core_lock *);
/* hold_margin_us - return how long before the end of its validity a lock is lost. */
uint64_t hold_margin_us(const struct core_config *, uint64_t lease_us);
/* hold_loss_reason - return why a lock is lost at its lost_at. */
enum core_loss hold_loss_reason(const struct core_config *, uint64_t granted_us, uint64_t now_us);
/* hold_check_lost - enter LOST from lost_at on. Each step calls this first. */
void hold_check_lost(struct core_lock *, uint64_t now_us);
/* hold_begin_round - begin a round. If the nodes have no room, the round waits for hold_on_room. */
void hold_begin_round(struct core_lock *, struct step *);
/* hold_on_room - begin the round that waits for room, if any. */
void hold_on_room(struct core_lock *, struct step *);
/* hold_on_timer - begin the round that is due, if any. */
void hold_on_timer(struct core_lock *, struct step *);
/* hold_on_node_state - stop waiting for a node that went away, or begin a round soon for a node that came back. */
void hold_on_node_state(struct core_lock *, struct step *, const struct core_node_change *);
/* hold_look - begin a round, for our key may be gone from that node. */
void hold_look(struct core_lock *, uint64_t now_us, uint32_t index, bool by_server);
/* hold_repair_span_us - return the time over which the repairs of many locks are spread. */
uint64_t hold_repair_span_us(uint64_t lease_us);
/* hold_is_untold - return whether this node does not tell of changes to a key that was last asked for at asked_us: only
 * the connection that renewed the lock is told. */
bool hold_is_untold(const struct core_config *, bool renewed, const struct core_node_change *, uint64_t asked_us);
/* hold_on_reply - take the reply to an extend or a repair of the present hold. */
void hold_on_reply(struct core_lock *, struct step *, const struct core_reply *);
/* hold_on_step - drop the node's yes if it was asked for before before_us: the node's clock stepped forward. */
void hold_on_step(struct core_lock *, struct step *, uint32_t node, uint64_t before_us);
/* hold_lose - lose the lock as if only the margin were left. */
void hold_lose(struct core_lock *, uint64_t now_us);
/* hold_late_vote - count a vote of the acquire that came after the grant. */
void hold_late_vote(struct core_lock *, struct step *);
/* hold_deadline - return when hold_on_timer or hold_check_lost is due, or CORE_NEVER. */
uint64_t hold_deadline(const struct core_lock *);
