/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text.h - a growing text, and the two ways to write foreign bytes into it safely
 *
 * Out of memory sets `failed` and drops what is added; whoever prints the text checks that once.
 */
#ifndef QUORLOCK_CLI_TEXT_H
#define QUORLOCK_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *bytes; /* no NUL at the end */
    size_t length, room;
    bool failed;
};

void text_clear(struct text *text);
void text_add(struct text *text, const char *bytes, size_t length);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* text_add_safe - for a terminal: control characters, direction marks and what is no UTF-8 become \xNN. */
void text_add_safe(struct text *text, const char *bytes, size_t length);
/* text_add_json - a JSON string with its quotes, or null for NULL; what is no UTF-8 becomes U+FFFD. */
void text_add_json(struct text *text, const char *string);

/* text_pad - spaces until `width` columns after byte `start`; a character beyond ASCII counts as one column. */
void text_pad(struct text *text, size_t start, size_t width);
/* text_joined - the strings with that between them, for the caller to free; NULL: out of memory. */
char *text_joined(const char *const *strings, size_t n, const char *between);
/* text_columns - columns from byte `start` on. */
size_t text_columns(const struct text *text, size_t start);

#endif
