/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text.h - a growing text, functions to add foreign bytes safely, and JSON documents by jansson
 *
 * Out of memory, a text sets `failed` and drops what is added, so only the printing function has to check. A JSON value
 * becomes NULL, and so does every value that it is added to, so only document_write has to check.
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

/* text_add_safe - add bytes for a terminal: control characters, direction marks and bytes that are not UTF-8 become
 * \xNN. */
void text_add_safe(struct text *text, const char *bytes, size_t length);
/* text_add_known - do the same for a string; NULL adds nothing. */
void text_add_known(struct text *text, const char *string);
/* text_add_utf8 - add bytes; those that are not UTF-8 become U+FFFD. */
void text_add_utf8(struct text *text, const char *bytes, size_t length);

/* text_pad - add spaces up to `width` columns after byte `start`; each character counts as one column. */
void text_pad(struct text *text, size_t start, size_t width);
/* text_joined - join the strings with `between`; the caller frees the result. NULL: out of memory. */
char *text_joined(const char *const *strings, size_t n, const char *between);
/* text_columns - return the number of columns from byte `start` on. */
size_t text_columns(const struct text *text, size_t start);

enum { TEXT_COLUMNS_MAX = 16 };
/* text_cell - add the content of a cell; `rows` is that of text_add_table. */
typedef void text_cell(struct text *cell, const void *rows, size_t row, size_t column);
/* text_add_table - add a line of heads, and a line for each row. Columns are as wide as their widest cell; a column
 * whose head is NULL is left out. */
void text_add_table(struct text *text, const char *const *heads, size_t n_columns, text_cell *cell, const void *rows,
                    size_t n_rows);

/* document_text - return a string, or null for NULL; bytes that are not UTF-8 become U+FFFD. */
json_t *document_text(const char *string);
/* document_number - return a number, or null if it is below `least`. */
json_t *document_number(int64_t number, int64_t least);
/* document_truth - return a boolean, or null if `truth` is below 0. */
json_t *document_truth(int truth);
/* document_add, document_append - add a member to an object, an element to an array. They own the value then. */
void document_add(json_t **object, const char *name, json_t *value);
void document_append(json_t **array, json_t *value);
/* document_write - add the document as one line that is safe for a terminal, and free it. */
void document_write(struct text *text, json_t *document);
