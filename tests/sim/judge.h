/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.h - what must hold in true time, seen from outside of the library */
#pragma once

#include "world.h"

void judge_violated(struct world *, enum invariant, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* judge_shown - what another thread of that process reads now, beside what its loop knows: never more. */
void judge_shown(struct process *, const struct expiry *, const struct expiry_clock *, uint64_t known_ms);
/* judge_granted - the callback says so. judge_given_back: the holder may not act on it any more; action: what the model
 * calls it, or NULL. */
void judge_granted(struct actor *, const struct quorlock_result *);
void judge_given_back(struct actor *, const char *action);
void judge_lost(struct actor *, const struct quorlock_loss *);
void judge_ended(const struct promise *, int status);
/* judge_called - a callback of that client begins, of whatever but a loss. */
void judge_called(struct world *, uint32_t client);
void judge_turned(struct process *);
/* judge_stalls - the process is about to stand still: what it holds by now is seen before. */
void judge_stalls(struct process *);
void judge_killed(struct process *);
void judge_peer(struct world *);
/* judge_look - what can be seen at any time: what is overdue, and what was not told. */
void judge_look(struct world *);
bool judge_is_open(struct actor *);
/* judge_quorum - by what servers hold now a quorum must stand behind what the actor was told. */
void judge_quorum(struct actor *);
