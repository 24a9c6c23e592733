/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text.h - a growing text, and functions to add foreign bytes safely
 *
 * Out of memory, a text sets `failed` and drops what is added, so only the printing function has to check.
 */
#pragma once

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

/* text_has_mark - return whether a file's bytes begin with a byte order mark, as editors of Windows write it. */
bool text_has_mark(const char *bytes);
#define TEXT_MARK_WRONG "it begins with a byte order mark (BOM): save it as UTF-8 without one"

/* text_add_safe - add bytes for a terminal: control characters, direction marks and bytes that are not UTF-8 become
 * \xNN. */
void text_add_safe(struct text *text, const char *bytes, size_t length);
/* text_add_known - do the same for a string; NULL adds nothing. */
void text_add_known(struct text *text, const char *string);
/* text_add_utf8 - add bytes; those that are not UTF-8 become U+FFFD. */
void text_add_utf8(struct text *text, const char *bytes, size_t length);
/* text_add_json - add a part of a JSON document. Bytes that are not safe for a terminal are in strings only, where they
 * become \uNNNN. */
void text_add_json(struct text *text, const char *bytes, size_t length);

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
