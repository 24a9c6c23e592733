/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.h - check structs that callers fill in, which begin with their size, and report what is wrong with them */
#pragma once

#include <quorlock/quorlock.h>

/* caller_fail - write the status and the formatted message; return the status. */
int caller_fail(struct quorlock_error *, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* caller_check - return 0 if the struct has at least `least` bytes, and only zeros behind the `known` ones.
 * caller_copy - check, then copy the members that both sides know, and zero the others. */
int caller_check(size_t least, size_t known, const void *given, size_t size, const char *what, struct quorlock_error *);
int caller_copy(void *ret, size_t known, const void *given, size_t size, const char *what, struct quorlock_error *);
/* caller_report - write the end of a call to *ret, which may be NULL; return the status. "" for text: that of the
 * status. */
int caller_report(struct quorlock_error *ret, int status, const char *text);
