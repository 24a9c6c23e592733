/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * owner.h - owners as the nodes know them: ours, and as Redisson writes them: <uuid of the client>:<number>
 *
 * Redisson's number is a thread's, and stays. Ours changes with every attempt, so that a late command of one
 * attempt cannot touch the lock of the next.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "core/core.h"

struct system;

/* Named as the owner while readers hold the key shared. */
#define OWNER_READERS "quorlock:readers"

#define OWNER_UUID_LENGTH   36
#define OWNER_UUID_SIZE     (OWNER_UUID_LENGTH + 1)
#define OWNER_NUMBER_DIGITS 19
#define OWNER_REDISSON_SIZE (OWNER_UUID_LENGTH + 1 + OWNER_NUMBER_DIGITS + 1)

/* owner_uuid - write a random uuid (version 4) as text. Returns 0, or -1 if the system has no random bytes; ret is
 * untouched then. */
int owner_uuid(char ret[OWNER_UUID_SIZE], struct system *);
/* owner_redisson - write the owner of one attempt, at most OWNER_REDISSON_SIZE bytes, and return its length. */
size_t owner_redisson(char *ret, const char *uuid, const struct core_token *);
/* owner_plain - the same in the plain dialect: the label, and the token's 20 bytes in hex: 16 random bytes, and
 * the mark of the lock (lock/keylist.h). */
size_t owner_plain(char *ret, const char *label, size_t label_length, const struct core_token *);
/* owner_read_plain - read such an owner: set the length of its label, with the colon, and the token. False: it is none.
 */
bool owner_read_plain(const char *owner, size_t *ret_label_length, struct core_token *ret);
/* owner_is_redisson - tell whether the owner has the form <uuid>:<number>. */
bool owner_is_redisson(const char *owner);
/* owner_id - return a hash of the owner's bytes, never 0. The core knows holders by it. */
uint64_t owner_id(const char *owner, size_t length);
/* owner_copy - return a holder's bytes as text for people and reports, or NULL out of memory. Control characters, and
 * bytes that are not UTF-8, become \xNN, so that different holders stay different texts. */
char *owner_copy(const struct alloc *, const char *bytes, size_t length);
/* owner_step - return the length of the text's first character: an escape of owner_copy, UTF-8, or one byte. */
size_t owner_step(const char *text);
/* owner_is_plain_text - tell whether the text is printable ASCII without spaces and without escapes of owner_copy. */
bool owner_is_plain_text(const char *text);
