/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * render.h - owners and votes as people read them
 */
#ifndef QUORLOCK_CLI_RENDER_H
#define QUORLOCK_CLI_RENDER_H

#include <quorlock/quorlock.h>

#include "text.h"

enum { RENDER_OWNER_SIZE = 112 };

/*
 * render_owner - label and first 8 characters of the token, in `buffer` of RENDER_OWNER_SIZE, or a constant
 * text
 *
 * Another program's value, which is not written as ours, counts as a token without label. Of a Redisson owner,
 * <uuid>:<number>, it is the first 8 characters of the uuid and the number. An escape \xNN is one character.
 */
const char *render_owner(char *buffer, const char *owner);
/* render_holder - a holder whole; of a value that is no token the beginning. */
void render_holder(struct text *text, const char *holder);

/* render_votes - says, in a line for each node, how it voted and why. */
void render_votes(const struct quorlock_vote *const *votes, size_t n_votes);

/* render_held - says which owner is in the way, on how many nodes, for how long. */
void render_held(const char *key, const struct quorlock_result *result, size_t quorum);

/* render_gone - after a release: on how many nodes our key is certainly not. */
size_t render_gone(const struct quorlock_result *result);

#endif
