/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - what holds of a lock between two events, whatever happened before */
#pragma once

#include "state.h"

/* core_check - asserts it, where assertions are built in. */
void core_check(const struct core_lock *);
