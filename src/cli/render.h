/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * render.h - votes and reports as people read them
 */
#ifndef QUORLOCK_CLI_RENDER_H
#define QUORLOCK_CLI_RENDER_H

#include <quorlock/quorlock.h>

#include "text.h"

enum { RENDER_OWNER_SIZE = 112 };

/* render_owner - label and first 8 characters of the token, in `buffer` of RENDER_OWNER_SIZE, or a text
 * that stays. A peer's value that is not written as ours counts as a token without label; of a Redisson owner,
 * <uuid>:<number>, the first 8 characters of the uuid and the number. An escape \xNN counts as one character.
 */
const char *render_owner(char *buffer, const char *owner);

/* render_quorum - how many of n nodes make one. */
size_t render_quorum(int policy, size_t n);

/* render_votes - says, a line a node, how each voted and why. */
void render_votes(const struct quorlock_vote *const *votes, size_t n_votes);

/* render_held - says who stands in the way, on how many nodes, for how long. */
void render_held(const char *key, const struct quorlock_result *result, size_t quorum);

/* render_gone - on how many nodes our key is certainly not, after a release: deleted, gone before, or never
 * asked for there. */
size_t render_gone(const struct quorlock_result *result);

/* render_summary - the line that tells whether and by whom the key is held, as far as locks of that dialect go.
 */
void render_summary(struct text *text, const char *key, const struct quorlock_report *report, int dialect);

/* What a table of the nodes is about. */
enum render_table { RENDER_INSPECT, RENDER_BREAK, RENDER_BOOTSTRAP };
/* render_table - a line a node; which columns there are depends on what it is about and what there is to tell.
 */
void render_table(struct text *text, const struct quorlock_report *report, enum render_table about);

#endif
