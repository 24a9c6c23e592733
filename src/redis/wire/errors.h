/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errors.h - what an error reply means
 */
#ifndef QUORLOCK_REDIS_ERRORS_H
#define QUORLOCK_REDIS_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "redis/wire/outcome.h"

struct error_class {
    enum node_fault fault; /* NODE_FAULT_OTHER: not listed, so nobody knows what was executed */
    bool noscript;
    bool reconnect; /* the server changed under us: make the connection anew and look at it again */
};

struct error_class error_classify(const char *text, size_t length);
/*
 * error_describe - one line for people: what was asked, the reply, the remedy
 *
 * Words of the command that a server echoes are cut off: they may hold a token or a password.
 */
void error_describe(char *ret, size_t size, const char *what, const char *text, size_t length);
/* error_foreign - that the key holds a value of that type (NULL: not known) and no lock of the dialect whose
 * locks are strings, or hashes; a lock of the other dialect's type is told with the option for it. */
enum error_no { ERROR_NO_STRING, ERROR_NO_HASH };
void error_foreign(char *ret, size_t size, const char *type, size_t length, enum error_no);
/* error_printable - a copy of at most that many bytes with control characters made visible; returns ret. */
char *error_printable(char *ret, size_t size, const char *text, size_t length);

#endif
