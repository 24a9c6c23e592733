/* SPDX-License-Identifier: BSD-3-Clause */
/* candidate_client.h - users that are candidates of an election, and the observers of elections */
#pragma once

#include "user_client.h"

extern const struct user_kind candidate_kind;

/* observers_begin - make an observer for each election. Returns 0, or -1 after a line on stderr. */
int observers_begin(struct chaos *chaos);
void observers_end(void);
