/* SPDX-License-Identifier: BSD-3-Clause */
/* history_client.h - the lines of a chaos client and their answers; quorlock-chaos(7) describes them */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* history_begin - write the first line: the version of the protocol, and the program. */
void history_begin(const char *program);

/* history_now_us - return CLOCK_MONOTONIC; no two readings are the same. */
uint64_t history_now_us(void);

/* The subject of a line. */
struct history_subject {
    const char *key;
    const char *mode; /* NULL: a lock */
    uint32_t user;    /* the number of the user from 1 on, if the process has several; else 0 */
    uint32_t slot;
};

/*
 * history_say - write one line, with its time and more fields as text like ",\"fence\":%u"; wait for the answer
 *
 * If the supervisor is gone, this ends the process.
 */
__attribute__((format(printf, 4, 5))) void history_say(uint64_t t_us, const char *event,
                                                       const struct history_subject *subject, const char *more, ...);

struct history_access {
    const struct history_subject *subject;
    uint64_t fence;       /* 0: the client has no token */
    uint64_t deadline_us; /* the end of the client's validity */
    uint64_t value;       /* the value to write, or the value that was read */
};

/* history_read - read the protected register. False: it has seen a newer token. */
bool history_read(struct history_access *access);

/* history_write - write to the register. False: it has seen a newer token, and did not store the value. */
bool history_write(const struct history_access *access);
