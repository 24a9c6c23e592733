/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.h - check structs that callers fill in, which begin with their size, and report what is wrong with them */
#pragma once

#include <quorlock/quorlock.h>

#define CALLER_ERROR_SIZE 512

/* The message of the last failure. */
struct caller_error {
    char text[CALLER_ERROR_SIZE];
};

/* caller_fail - format the message and return the status. */
int caller_fail(struct caller_error *, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* caller_check - return 0 if the struct has at least `least` bytes, and only zeros behind the `known` ones.
 * caller_copy - check, then copy the members that both sides know, and zero the others. */
int caller_check(size_t least, size_t known, const void *given, size_t size, const char *what, struct caller_error *);
int caller_copy(void *ret, size_t known, const void *given, size_t size, const char *what, struct caller_error *);
/* caller_report - write the message to the caller's error buffer, if there is one; `given` may be NULL. */
void caller_report(const struct quorlock_client_options *given, const char *text);
