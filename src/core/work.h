/* SPDX-License-Identifier: BSD-3-Clause */
/* work.h - the block that a lock needs only while it asks for votes: see struct core_work */
#pragma once

#include "state.h"

/* work_begin - the lock has it now; false: it has none, and the step brought none. */
bool work_begin(struct core_lock *, const struct step *);
/* work_is_needed - it has more to do than to rest, to renew, and to release its latest attempt. */
bool work_is_needed(const struct core_lock *);
/* work_end - takes it from the lock; NULL: there is none. */
void *work_end(struct core_lock *);
