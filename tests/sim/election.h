/* SPDX-License-Identifier: BSD-3-Clause */
/* election.h - candidates and observers of one election */
#pragma once

#include "world.h"

void election_build(struct world *);
/* election_begin - the client is open. election_forget: it closes, or its process has ended. */
void election_begin(struct user_client *);
void election_forget(struct user_client *);
void election_killed(struct process *);
/* election_is_settled - somebody leads, and observers know it. election_hurry: all act soon. */
bool election_is_settled(struct world *);
void election_hurry(struct world *);
