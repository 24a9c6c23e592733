/* SPDX-License-Identifier: BSD-3-Clause */
/* intent.h - the intent of a waiting lock at the nodes, so that it is not passed over for ever */
#pragma once

#include "state.h"

/* intent_begin - name the intent after the token of the acquire's first attempt. */
void intent_begin(struct core_lock *);
/* intent_leave - send or renew the intent after a failed attempt, where rules 8.4 and 8.6 say so. Errors are ignored:
 * the next failed attempt sends it again. */
void intent_leave(struct core_lock *, struct step *);
/* intent_on_reply - take a node's answer to the intent. */
void intent_on_reply(struct core_lock *, const struct core_reply *);
/* intent_withdraw - drop the intent at all nodes. */
void intent_withdraw(struct core_lock *, struct step *);
/* intent_waited_us - return for how long the lock has waited. */
uint64_t intent_waited_us(const struct core_lock *, uint64_t now_us);
