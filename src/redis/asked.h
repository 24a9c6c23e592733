/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * asked.h - what a subscriber's server has not answered yet, oldest first
 *
 * An error reply names no channel, so only its place tells what was refused.
 */
#ifndef QUORLOCK_REDIS_ASKED_H
#define QUORLOCK_REDIS_ASKED_H

#include <stddef.h>

#include "bytes.h"

enum asked_kind {
    ASKED_LISTEN,
    ASKED_MUTED, /* a listen that was forgotten before its answer: nobody is told of it */
    ASKED_FORGET,
    ASKED_PING,
};

struct asked_entry {
    enum asked_kind kind;
    const char *channel; /* valid until the next asked_push */
    size_t length;
};

struct asked {
    struct bytes log; /* entries one after the other; those before `head` are answered */
    size_t head;
    size_t n, n_listens; /* unanswered ones; of these, ASKED_LISTEN */
};

void asked_init(struct asked *, const struct alloc *, size_t limit);
void asked_clear(struct asked *); /* frees; empty and of use again */
void asked_forget_all(struct asked *);
/* asked_push - FULL or NOMEM: nothing was pushed. */
enum bytes_fault asked_push(struct asked *, enum asked_kind, const char *channel, size_t length);
/* asked_first - the oldest one; there must be one. */
struct asked_entry asked_first(const struct asked *);
void asked_pop(struct asked *);
/* asked_mute - makes every listen for that channel a muted one. */
void asked_mute(struct asked *, const char *channel, size_t length);

#endif
