/* SPDX-License-Identifier: BSD-3-Clause */
/* crowd.h - a client that wants thousands of locks at once */
#pragma once

#include "world.h"

void crowd_begin(struct user_client *);
void crowd_forget(struct user_client *);
bool crowd_is_done(const struct user_client *);
void crowd_free(struct user_client *);
