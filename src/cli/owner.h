/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.h - owner tokens for people */
#pragma once

#include "settings/text.h"

struct settings;

/* The value of a plain key that is held shared. */
#define OWNER_READERS "quorlock:readers"
/* The value of a plain key that its owner has released, and that is kept: this, and the token. */
#define OWNER_KEPT "quorlock:kept:"

/*
 * owner_short - add the label and the first 8 characters of the token
 *
 * A value of another program counts as a token without label. Of a Redisson owner, <uuid>:<number>, add the first 8
 * characters of the uuid, and the number. An escape \xNN counts as one character.
 */
void owner_short(struct text *text, const char *owner);
/* owner_digits - return where the token behind the label begins; NULL: it is no owner of the plain dialect. */
const char *owner_digits(const char *owner);
/*
 * owner_parent    - if that holder is, or may be, the quorlock around this command (QUORLOCK_OWNER), return what to add
 * to a message; else "". Readers have no name here: the keys of both commands are compared.
 * owner_parent_in - do the same for a message that names the holder in short
 */
const char *owner_parent(const struct settings *settings, const char *holder);
const char *owner_parent_in(const struct settings *settings, const char *message);
/* owner_kept - return the token of the owner that has released a kept key; NULL: the key is not kept. */
const char *owner_kept(const char *holder);
/* owner_whole - add the whole token, at most 128 characters. */
void owner_whole(struct text *text, const char *holder);
