/* SPDX-License-Identifier: BSD-3-Clause */
/* keep.h - locks that are kept after their release */
#pragma once

#include "world.h"

/* keep_given_back - record the lock as kept when its owner calls release.
 * keep_answered - check, when the release has ended, that the servers keep the keys for their time. */
void keep_given_back(struct actor *);
void keep_answered(struct actor *, const struct quorlock_result *);
/* keep_check - check that the actor was granted no key that is kept after another's release. */
void keep_check(struct actor *);
/* keep_may_stand - return whether servers may have the token's keys although nobody holds them. */
bool keep_may_stand(const struct world *, uint64_t token_hash);
