/* SPDX-License-Identifier: BSD-3-Clause */
/* election.h - candidates and observers of one election */
#pragma once

#include "world.h"

void election_build(struct world *);
/*
 * election_begin  - the client is open: make its candidate or observer
 * election_forget - the client closes, or its process has ended: forget what it has
 * election_killed - the process dies: keep the window of a candidate that led
 */
void election_begin(struct user_client *);
void election_forget(struct user_client *);
void election_killed(struct process *);
/* election_is_settled - return whether there is a leader, and all observers know it.
 * election_hurry - let all candidates act soon. */
bool election_is_settled(struct world *);
void election_hurry(struct world *);
