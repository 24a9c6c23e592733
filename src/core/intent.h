/* SPDX-License-Identifier: BSD-3-Clause */
/* intent.h - what a waiting lock leaves at the nodes, so that it is not passed over for ever */
#pragma once

#include "state.h"

/* intent_begin - an attempt has its token. intent_leave: it failed, and another will follow. intent_withdraw: the lock
 * waits no more. Neither waits for its answers: where they are errors, the next attempt leaves it again. */
void intent_begin(struct core_lock *);
void intent_leave(struct core_lock *, struct step *);
void intent_withdraw(struct core_lock *, struct step *);
/* intent_waited_us - for how long the lock has waited. */
uint64_t intent_waited_us(const struct core_lock *, uint64_t now_us);
