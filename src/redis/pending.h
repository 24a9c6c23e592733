/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending.h - commands of a subscriber that the server has not answered yet, oldest first
 *
 * An error reply names no channel, so only the order says what was refused.
 */
#ifndef QUORLOCK_REDIS_PENDING_H
#define QUORLOCK_REDIS_PENDING_H

#include <stddef.h>

#include "redis/wire/bytes.h"

enum pending_kind {
    PENDING_LISTEN,
    PENDING_MUTED, /* a listen that was forgotten before its answer, which is not reported */
    PENDING_FORGET,
    PENDING_PING,
};

struct pending_entry {
    enum pending_kind kind;
    const char *channel; /* valid until the next pending_push */
    size_t length;
};

struct pending {
    struct bytes log; /* entries one after the other; those before `head` are answered */
    size_t head;
    size_t n, n_listens; /* unanswered ones; of these, PENDING_LISTEN */
};

void pending_init(struct pending *, const struct alloc *, size_t limit);
void pending_clear(struct pending *); /* frees; it is empty and may be used again */
void pending_forget_all(struct pending *);
/* pending_push - FULL or NOMEM: nothing was pushed. */
enum bytes_fault pending_push(struct pending *, enum pending_kind, const char *channel, size_t length);
/* pending_first - the oldest one; there must be one. */
struct pending_entry pending_first(const struct pending *);
void pending_pop(struct pending *);
/* pending_mute - makes every listen for that channel a muted one. */
void pending_mute(struct pending *, const char *channel, size_t length);

#endif
