/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.h - when the next attempt begins, and which nodes it asks first */
#pragma once

#include "state.h"

/* What a failed attempt shows. */
enum awaited {
    AWAIT_HOLDER, /* a quorum voted, or the arbiter refused: others have the keys */
    AWAIT_NODES,  /* too few nodes voted */
};

/* wait_begin - wait after a failed attempt. */
void wait_begin(struct core_lock *, struct step *, enum awaited);
/* wait_split_us - draw the pause after split votes; it grows with each call. */
uint64_t wait_split_us(struct core_lock *);
/* wait_behind - wait without an attempt: a lock of this process holds the keys, or comes first. */
void wait_behind(struct core_lock *, uint64_t now_us);
/* wait_on_node_state - try sooner if the node ends an outage. */
void wait_on_node_state(struct core_lock *, const struct step *, uint32_t node);
/* wait_on_notice - take a notice of a release, and return whether an attempt begins now (rule 6.7). */
enum wait_verdict wait_on_notice(struct core_lock *, const struct step *, const struct core_notice *);
/* wait_on_hint - poll soon: the server tells that the key changed (rule 6.10). */
void wait_on_hint(struct core_lock *, uint64_t now_us, uint32_t node);
/* wait_on_peek - take the answer of a node that looked at the key, and was to report changes from then on. */
void wait_on_peek(struct core_lock *, uint64_t now_us, const struct core_reply *);
/* wait_watches - return whether the nodes that are asked now should report changes of the key (rule 6.10). */
bool wait_watches(const struct core_lock *);
/* wait_on_listening - take the confirmation of a subscription (rule 6.11). */
void wait_on_listening(struct core_lock *, uint64_t now_us, uint32_t node, bool before_acquire);
/* wait_on_wake - take a release by a lock of this process, and return whether an attempt begins now (rule 6.13). */
enum wait_verdict wait_on_wake(struct core_lock *, uint64_t now_us, bool yield);
