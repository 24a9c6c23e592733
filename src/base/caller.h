/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.h - structs that callers make, which begin with their size, and the text of what is wrong with them */
#pragma once

#include <quorlock/quorlock.h>

#define CALLER_ERROR_SIZE 512

/* The text of the last failure. */
struct caller_error {
    char text[CALLER_ERROR_SIZE];
};

/* caller_fail - writes the text and returns the status. */
int caller_fail(struct caller_error *, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* caller_check - 0 where the struct has at least these bytes, and only zeros in what this library does not
 * know. caller_copy: checks, and copies what both sides know. */
int caller_check(size_t least, size_t known, const void *given, size_t size, const char *what, struct caller_error *);
int caller_copy(void *ret, size_t known, const void *given, size_t size, const char *what, struct caller_error *);
/* caller_report - writes the text to the caller's error buffer, if there is one; given may be NULL. */
void caller_report(const struct quorlock_client_options *given, const char *text);
