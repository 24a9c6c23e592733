/* SPDX-License-Identifier: BSD-3-Clause */
/* errors.h - what an error reply means */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/protocol.h"

struct error_class {
    enum fault fault; /* FAULT_OTHER: not listed, so it may have been executed */
    bool noscript;
    bool reconnect; /* the server changed: a new connection must look at it again */
};

struct error_class error_classify(const char *text, size_t length);
/* error_describe - what was asked, the reply and the remedy, in one line. Where a server echoes the command it
 * is cut off: it may hold a token or a password. */
void error_describe(char *ret, size_t size, const char *what, const char *text, size_t length);
/* error_foreign - the text for a key with a value of that type (NULL: not known), where the dialect's locks are
 * strings, or hashes. For the type of the other dialect it names the option. */
enum error_no { ERROR_NO_STRING, ERROR_NO_HASH };
void error_foreign(char *ret, size_t size, const char *type, size_t length, enum error_no);
/* error_printable - a copy of at most that many bytes with control characters made visible; returns ret. */
char *error_printable(char *ret, size_t size, const char *text, size_t length);
/* error_foreign_key - the same for a key beside the lock that the library made from its name. */
void error_foreign_key(char *ret, size_t size, const char *type, size_t type_length, const char *key,
                       size_t key_length);
