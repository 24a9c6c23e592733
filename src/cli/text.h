/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text.h - a growing text, ways to write foreign bytes into it safely, and JSON documents, made by jansson
 *
 * Out of memory sets `failed` and drops what is added: only what prints the text has to check. It makes a JSON
 * value NULL, and what that is added to becomes NULL too: only document_write has to check.
 */
#pragma once

#include <jansson.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *bytes; /* no NUL at the end */
    size_t length, room;
    bool failed;
};

void text_clear(struct text *text);
void text_add(struct text *text, const char *bytes, size_t length);
void text_format_list(struct text *text, const char *format, va_list list) __attribute__((format(printf, 2, 0)));
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* text_add_safe - for a terminal: control characters, direction marks and what is no UTF-8 become \xNN. */
void text_add_safe(struct text *text, const char *bytes, size_t length);
/* text_add_known - the same for a string, or nothing for NULL. */
void text_add_known(struct text *text, const char *string);
/* text_add_utf8 - what is no UTF-8 becomes U+FFFD. */
void text_add_utf8(struct text *text, const char *bytes, size_t length);

/* text_pad - spaces until `width` columns after byte `start`; a character beyond ASCII counts as one column. */
void text_pad(struct text *text, size_t start, size_t width);
/* text_joined - the strings with `between` between them, for the caller to free; NULL: out of memory. */
char *text_joined(const char *const *strings, size_t n, const char *between);
/* text_columns - columns from byte `start` on. */
size_t text_columns(const struct text *text, size_t start);

enum { TEXT_COLUMNS_MAX = 16 };
/* text_cell - adds what stands in that cell; `rows` is what text_add_table was given. */
typedef void text_cell(struct text *cell, const void *rows, size_t row, size_t column);
/* text_add_table - heads, then the rows; each column as wide as its widest cell. One whose head is NULL is left
 * out. */
void text_add_table(struct text *text, const char *const *heads, size_t n_columns, text_cell *cell, const void *rows,
                    size_t n_rows);

/* document_text - null for NULL; what is no UTF-8 becomes U+FFFD. */
json_t *document_text(const char *string);
/* document_number - null for what is below `least`. */
json_t *document_number(int64_t number, int64_t least);
/* document_truth - null for what is below 0. */
json_t *document_truth(int truth);
/* document_add, document_append - a member to an object, an element to an array; they take the value. */
void document_add(json_t **object, const char *name, json_t *value);
void document_append(json_t **array, json_t *value);
/* document_write - adds it as one line that is safe for a terminal, and frees it. */
void document_write(struct text *text, json_t *document);
