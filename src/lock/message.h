/* SPDX-License-Identifier: BSD-3-Clause */
/* message.h - results and log lines in words */
#pragma once

#include "lock/claim.h"

#define MESSAGE_SIZE 1024

/* The votes of a result, and the pointers to them that it hands out. */
struct message_votes {
    struct quorlock_vote each[QUORLOCK_NODES_MAX];
    const struct quorlock_vote *at[QUORLOCK_NODES_MAX];
    /* While a callback has them: the answers whose texts they point to. */
    struct answer_texts *kept[QUORLOCK_NODES_MAX];
    size_t n_kept;
};

/* message_owner - return an owner for people: label and first 8 characters of the token, in printable ASCII; of a
 * Redisson owner the first 8 of its uuid, and its number. */
const char *message_owner(char *ret, size_t size, const char *owner);
/* message_votes - write the latest round, or release, as votes; count them into result, which points to them. */
void message_votes(const struct claim *, bool release, struct message_votes *, struct quorlock_result *result);
/* message_keep_texts - keep the texts of these votes for a callback, whatever it does to the claim.
 * message_drop_texts - the callback has returned. */
void message_keep_texts(const struct claim *, struct message_votes *);
void message_drop_texts(struct message_votes *, const struct alloc *);
/* message_released - write the result of a release. message_verdict - write that of the latest attempt or renewal. */
void message_released(const struct claim *, const struct core_completion *, const struct quorlock_result *, char *text,
                      size_t size);
void message_verdict(const struct claim *, int status, const struct quorlock_result *, char *text, size_t size);
/* message_loss - return why the lock was lost. message_log_loss - log it. */
const char *message_loss(enum core_loss);
void message_log_loss(struct claim *);
/* message_log - log the results of a step: bits of enum core_log. */
void message_log(struct claim *, uint32_t log);
