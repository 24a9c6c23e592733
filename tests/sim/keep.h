/* SPDX-License-Identifier: BSD-3-Clause */
/* keep.h - locks that are kept after their release */
#pragma once

#include "world.h"

/* keep_given_back - the owner gives its hold back, now. keep_answered: the release has ended. */
void keep_given_back(struct actor *);
void keep_answered(struct actor *, const struct quorlock_result *);
/* keep_check - what the actor was granted is kept for nobody else. */
void keep_check(struct actor *);
/* keep_may_stand - that token's keys may stand on servers although nobody holds them. */
bool keep_may_stand(const struct world *, uint64_t token_hash);
