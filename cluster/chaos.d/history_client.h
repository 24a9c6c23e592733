/* SPDX-License-Identifier: BSD-3-Clause */
/* history_client.h - what a chaos client says, and the answers; quorlock-chaos(7) describes it */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* history_begin - the first line: the version of the protocol, and the program. */
void history_begin(const char *program);

/* history_now_us - CLOCK_MONOTONIC; no two readings are the same. */
uint64_t history_now_us(void);

/* What a line is about. */
struct history_subject {
    const char *key;
    const char *mode; /* NULL: a lock */
    uint32_t user;    /* of several in this process, from 1 on; 0: there is one */
    uint32_t slot;
};

/*
 * history_say - one line, with its time and more fields as text like ",\"fence\":%u"; waits for the answer
 *
 * A process whose supervisor is gone ends here.
 */
__attribute__((format(printf, 4, 5))) void history_say(uint64_t t_us, const char *event,
                                                       const struct history_subject *subject, const char *more, ...);

struct history_access {
    const struct history_subject *subject;
    uint64_t fence;       /* 0: the client has no token */
    uint64_t deadline_us; /* of the client's validity */
    uint64_t value;       /* what a write stores; what a read found */
};

/* history_read - the value of the protected register. False: it has seen a newer token. */
bool history_read(struct history_access *access);

/* history_write - stores a value there. False: it has seen a newer token, and the value is not stored. */
bool history_write(const struct history_access *access);
