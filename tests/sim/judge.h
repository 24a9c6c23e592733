/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.h - what must hold in true time, seen from outside of the library */
#pragma once

#include "world.h"

void judge_violated(struct world *, enum invariant, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* judge_shown - check that another thread of the process reads the validity that its loop knows. */
void judge_shown(struct process *, const struct expiry *, const struct expiry_clock *, uint64_t known_ms);
/*
 * judge_granted    - the callback reports a grant: open a window
 * judge_given_back - the holder may not act on the lock any more: close the window. action: its name in the model, or
 *                    NULL
 */
void judge_granted(struct actor *, const struct quorlock_result *);
void judge_given_back(struct actor *, const char *action);
void judge_lost(struct actor *, const struct quorlock_loss *);
void judge_ended(const struct promise *, int status);
/* judge_called - a callback of the client begins that reports no loss: check that no loss is due. */
void judge_called(struct world *, uint32_t client);
void judge_turned(struct process *);
/* judge_stalls - the process is about to stall: update the windows of its holds. */
void judge_stalls(struct process *);
void judge_killed(struct process *);
void judge_peer(struct world *);
/* judge_look - check what must hold at any time: no callback is overdue, and each loss was reported. */
void judge_look(struct world *);
bool judge_is_open(struct actor *);
/* judge_quorum - check that a quorum of servers holds the keys for as long as the validity that the actor reads. */
void judge_quorum(struct actor *);
