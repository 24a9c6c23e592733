/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.h - owner tokens as people read them */
#pragma once

#include "text.h"

/* What the plain key holds while it is held shared. */
#define OWNER_READERS "quorlock:readers"

/*
 * owner_short - label and first 8 characters of the token
 *
 * Another program's value, which is not written as ours, counts as a token without label. Of a Redisson owner,
 * <uuid>:<number>, it is the first 8 characters of the uuid and the number. An escape \xNN is one character.
 */
void owner_short(struct text *text, const char *owner);
/*
 * owner_parent    - if that holder is the quorlock around this command (QUORLOCK_OWNER), return what to add to a
 * message; else "" owner_parent_in - do the same for a message that names the holder in short
 */
const char *owner_parent(const char *holder);
const char *owner_parent_in(const char *message);
/* owner_whole - the whole token, at most 128 characters. */
void owner_whole(struct text *text, const char *holder);
