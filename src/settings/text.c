/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_clear(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

bool text_has_mark(const char *bytes)
{
    return strncmp(bytes, "\xef\xbb\xbf", 3) == 0;
}

static bool text_reserve(struct text *text, size_t more)
{
    size_t room = text->room > 0 ? text->room : 256;
    char *bytes;

    if (text->failed) return false;
    if (text->room - text->length >= more) return true;
    while (room - text->length < more && room < SIZE_MAX / 4) room *= 2;
    bytes = room - text->length < more ? NULL : realloc(text->bytes, room);
    text->failed = bytes == NULL;
    if (text->failed) return false;
    text->bytes = bytes;
    text->room = room;
    return true;
}

void text_add(struct text *text, const char *bytes, size_t length)
{
    if (length == 0 || !text_reserve(text, length)) return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

void text_format_list(struct text *text, const char *format, va_list list)
{
    char *more = NULL;
    int length = vasprintf(&more, format, list);

    if (length < 0) {
        text->failed = true;
        return;
    }
    text_add(text, more, (size_t)length);
    free(more);
}

void text_format(struct text *text, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    text_format_list(text, format, list);
    va_end(list);
}

/* utf8_read - return the size of the valid character at `s`, at most `n` bytes, or 0; *ret_code is its code point. */
static size_t utf8_read(const unsigned char *s, size_t n, uint32_t *ret_code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
    uint32_t code = s[0] & (0x7fu >> length);

    if (s[0] < 0x80) {
        *ret_code = s[0];
        return 1;
    }
    if (length == 0 || length > n) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
    *ret_code = code;
    return length;
}

/*
 * code_is_harmful - return whether a terminal obeys the character, does not show it, or shows others in another order
 *
 * These are controls, invisible format characters, line and paragraph separators, and fillers.
 */
static bool code_is_harmful(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},
        {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f}, {0x2028, 0x202e},
        {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
        {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code <= ranges[i].last) return code >= ranges[i].first;
    return false;
}

enum style { FOR_TERMINAL, FOR_UTF8, FOR_JSON };

static void text_add_foreign(struct text *text, const char *bytes, size_t length, enum style style)
{
    const unsigned char *s = (const unsigned char *)bytes;

    for (size_t i = 0; i < length;) {
        uint32_t code = 0;
        size_t step = utf8_read(s + i, length - i, &code);
        bool valid = step > 0;

        if (!valid) step = 1;
        if (valid && (style == FOR_UTF8 || !code_is_harmful(code))) {
            text_add(text, bytes + i, step);
        } else if (style == FOR_TERMINAL) {
            for (size_t j = 0; j < step; j++) text_format(text, "\\x%02x", s[i + j]);
        } else if (!valid) {
            text_format(text, "\ufffd");
        } else if (code >= 0x10000) {
            text_format(text, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
        } else {
            text_format(text, "\\u%04x", code);
        }
        i += step;
    }
}

void text_add_safe(struct text *text, const char *bytes, size_t length)
{
    text_add_foreign(text, bytes, length, FOR_TERMINAL);
}

void text_add_known(struct text *text, const char *string)
{
    if (string != NULL) text_add_foreign(text, string, strlen(string), FOR_TERMINAL);
}

void text_add_utf8(struct text *text, const char *bytes, size_t length)
{
    text_add_foreign(text, bytes, length, FOR_UTF8);
}

void text_add_json(struct text *text, const char *bytes, size_t length)
{
    text_add_foreign(text, bytes, length, FOR_JSON);
}

size_t text_columns(const struct text *text, size_t start)
{
    size_t columns = 0;

    for (size_t i = start; i < text->length; i++)
        if (((unsigned char)text->bytes[i] & 0xc0) != 0x80) columns++;
    return columns;
}

void text_pad(struct text *text, size_t start, size_t width)
{
    for (size_t columns = text_columns(text, start); columns < width; columns++) text_add(text, " ", 1);
}

char *text_joined(const char *const *strings, size_t n, const char *between)
{
    struct text text = {0};

    for (size_t i = 0; i < n; i++) {
        if (i > 0) text_add(&text, between, strlen(between));
        text_add(&text, strings[i], strlen(strings[i]));
    }
    text_add(&text, "", 1);
    if (text.failed) text_clear(&text);
    return text.bytes;
}

static size_t cell_width(text_cell *cell, const void *rows, size_t row, size_t column)
{
    struct text text = {0};
    size_t width;

    cell(&text, rows, row, column);
    width = text_columns(&text, 0);
    text_clear(&text);
    return width;
}

void text_add_table(struct text *text, const char *const *heads, size_t n_columns, text_cell *cell, const void *rows,
                    size_t n_rows)
{
    size_t widths[TEXT_COLUMNS_MAX];

    for (size_t column = 0; column < n_columns; column++) {
        widths[column] = heads[column] != NULL ? strlen(heads[column]) : 0;
        for (size_t row = 0; row < n_rows; row++) {
            size_t width = cell_width(cell, rows, row, column);

            if (width > widths[column]) widths[column] = width;
        }
    }
    for (size_t line = 0; line <= n_rows; line++) {
        size_t begin = text->length;

        for (size_t column = 0; column < n_columns; column++) {
            size_t start = text->length;

            if (heads[column] == NULL) continue;
            if (line == 0) text_format(text, "%s", heads[column]);
            if (line > 0) cell(text, rows, line - 1, column);
            text_pad(text, start, widths[column] + 2);
        }
        while (text->length > begin && text->bytes[text->length - 1] == ' ') text->length--;
        text_add(text, "\n", 1);
    }
}
