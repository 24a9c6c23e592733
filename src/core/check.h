/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - the invariants of a lock between two events */
#pragma once

#include "state.h"

/* core_check - assert the invariants. Does nothing where assertions are not built in. */
void core_check(const struct core_lock *);
