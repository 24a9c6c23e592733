/* SPDX-License-Identifier: BSD-3-Clause */
/* lock_client.h - users that take a lock: exclusive, shared, or one of several permits */
#pragma once

#include "user_client.h"

extern const struct user_kind lock_kind;
