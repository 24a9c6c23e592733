/* SPDX-License-Identifier: BSD-3-Clause */
/* errors.h - classify error replies, and describe them for people */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/protocol.h"

struct error_class {
    enum fault fault; /* FAULT_OTHER: not in the table, so the request may have been executed */
    bool noscript;
    bool reconnect; /* the server changed its state: a new connection must examine it again */
};

struct error_class error_classify(const char *text, size_t length);
/* error_describe - write one line: the command, the reply, and what to do. If the server echoes the command, that part
 * is cut off: it may hold a token or a password. */
void error_describe(char *ret, size_t size, const char *what, const char *text, size_t length);
/* error_foreign - describe a key that holds a value of that type (NULL: unknown), in a dialect whose locks are strings,
 * or hashes. For the other dialect's type the text names the option. */
enum error_no { ERROR_NO_STRING, ERROR_NO_HASH };
void error_foreign(char *ret, size_t size, const char *type, size_t length, enum error_no);
/* error_printable - copy at most size - 1 bytes, with ? for control characters, and end them with NUL; return ret. */
char *error_printable(char *ret, size_t size, const char *text, size_t length);
/* error_foreign_key - the same for another key that the library made from the lock's name. */
void error_foreign_key(char *ret, size_t size, const char *type, size_t type_length, const char *key,
                       size_t key_length);
