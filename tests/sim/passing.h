/* SPDX-License-Identifier: BSD-3-Clause */
/* passing.h - locks that pass from one actor to another */
#pragma once

#include "world.h"

/* passing_hand_on - detach the lock now and then, if the plan has that. False: release it. */
bool passing_hand_on(struct actor *);
/* passing_take - return a token that the actor is to adopt, or NULL. */
const char *passing_take(struct actor *);
/* passing_refused - the adoption has failed: offer the token again, unless it is lost.
 * passing_adopted - the actor has adopted its token. */
void passing_refused(struct actor *, int status);
void passing_adopted(struct actor *);
/* passing_may_stand - return whether servers may have the token's keys although nobody holds them. */
bool passing_may_stand(const struct world *, uint64_t token_hash);
