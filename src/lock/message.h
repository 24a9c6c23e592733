/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message.h - results and log lines in words
 */
#ifndef QUORLOCK_LOCK_MESSAGE_H
#define QUORLOCK_LOCK_MESSAGE_H

#include "lock/claim.h"

#define MESSAGE_SIZE 1024

/* The votes of a result, and the pointers to them that it hands out. */
struct message_votes {
    struct quorlock_vote each[QUORLOCK_NODES_MAX];
    const struct quorlock_vote *at[QUORLOCK_NODES_MAX];
};

/* message_owner - an owner for people: label and first 8 characters of the token, in printable ASCII; of a
 * Redisson owner the first 8 of its uuid, and its number. */
const char *message_owner(char *ret, size_t size, const char *owner);
/* message_votes - the latest round as votes, counted into result, which points to them. message_release_votes:
 * the same of the latest release. */
void message_votes(const struct claim *, struct message_votes *, struct quorlock_result *result);
void message_release_votes(const struct claim *, struct message_votes *, struct quorlock_result *result);
/* message_released - what became of a hold that was given back; the votes are those of the release. */
void message_released(const struct claim *, const struct core_completion *, const struct quorlock_result *,
                      char *text, size_t size);
/* message_verdict - why the latest attempt failed, or that it did not. */
void message_verdict(const struct claim *, int status, const struct quorlock_result *, char *text, size_t size);
/* message_loss - why the lock was lost. */
const char *message_loss(enum core_loss);
/* message_log_loss - the log line of a loss that waits to be told. */
void message_log_loss(struct claim *);
/* message_log - log lines for what a step brought about: bits of enum core_log. */
void message_log(struct claim *, uint32_t log);

#endif
