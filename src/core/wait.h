/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.h - when the next attempt begins, and which nodes it asks first */
#pragma once

#include "state.h"

/* wait_begin - an attempt failed; held: a quorum voted. */
void wait_begin(struct core_lock *, const struct step *, bool held);
/* wait_split_us - the pause after contenders split the votes, another one each time. */
uint64_t wait_split_us(struct core_lock *);
/* wait_behind - a lock of this process holds the keys, or comes first. */
void wait_behind(struct core_lock *, uint64_t now_us);
void wait_on_node_state(struct core_lock *, const struct step *, uint32_t node);
enum wait_verdict wait_on_notice(struct core_lock *, struct step *, uint32_t node, uint32_t key, uint64_t holder_id);
void wait_on_listening(struct core_lock *, uint64_t now_us, uint32_t node, bool before_acquire);
enum wait_verdict wait_on_wake(struct core_lock *, uint64_t now_us, bool yield);
