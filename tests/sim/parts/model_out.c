/* SPDX-License-Identifier: BSD-3-Clause */
/* model_out.c - words in, replies out, and the end of a test that asks for too much */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model_own.h"

void model_panic(const char *what, const char *name, size_t length)
{
    fprintf(stderr, "the model of a Redis server does not know %s: %.*s\n", what, (int)length, name);
    abort();
}

void *model_resized(void *block, size_t size)
{
    void *grown = realloc(block, size);

    if (grown == NULL) abort();
    return grown;
}

static char *reserve(struct out *out, size_t size)
{
    if (out->room - out->used < size) {
        out->room = 2 * (out->used + size) + 256;
        out->bytes = model_resized(out->bytes, out->room);
    }
    return out->bytes + out->used;
}

void out_bytes(struct out *out, const void *bytes, size_t size)
{
    if (size != 0) memcpy(reserve(out, size), bytes, size);
    out->used += size;
}

void out_text(struct out *out, const char *text)
{
    out_bytes(out, text, strlen(text));
}

void out_status(struct out *out, const char *text)
{
    out_bytes(out, "+", 1);
    out_text(out, text);
    out_bytes(out, "\r\n", 2);
}

/* Line ends in it become blanks. */
static void one_line(struct out *out, char kind, const char *text, size_t length)
{
    char *at;

    out_bytes(out, &kind, 1);
    out_bytes(out, text, length);
    at = out->bytes + out->used - length;
    for (size_t i = 0; i < length; i++) {
        if (at[i] == '\r' || at[i] == '\n') at[i] = ' ';
    }
    out_bytes(out, "\r\n", 2);
}

void out_status_line(struct out *out, const char *text)
{
    one_line(out, '+', text, strlen(text));
}

void out_error(struct out *out, const char *format, ...)
{
    char text[1024];
    va_list args;
    size_t length;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    length = strlen(text);
    while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == '\n')) length--;
    one_line(out, '-', text, length);
}

size_t write_decimal(char *ret, int64_t number)
{
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char digits[20];
    size_t n = 0, used = 0;

    do digits[n++] = (char)('0' + left % 10);
    while ((left /= 10) != 0);
    if (number < 0) ret[used++] = '-';
    while (n > 0) ret[used++] = digits[--n];
    return used;
}

/* A first byte, a number and the end of the line. */
static void line(struct out *out, char kind, int64_t number)
{
    char *at = reserve(out, 24);
    size_t used = 1 + write_decimal(at + 1, number);

    at[0] = kind;
    at[used++] = '\r';
    at[used++] = '\n';
    out->used += used;
}

void out_number(struct out *out, int64_t number)
{
    line(out, ':', number);
}

void out_bulk(struct out *out, const char *bytes, size_t length)
{
    line(out, '$', (int64_t)length);
    out_bytes(out, bytes, length);
    out_bytes(out, "\r\n", 2);
}

void out_bulk_number(struct out *out, int64_t number)
{
    char text[24];

    out_bulk(out, text, write_decimal(text, number));
}

void out_decimal(struct out *out, int64_t number)
{
    char text[24];

    out_bytes(out, text, write_decimal(text, number));
}

void out_free(struct out *out)
{
    free(out->bytes);
    *out = (struct out){0};
}

void out_bulk_text(struct out *out, const char *text)
{
    out_bulk(out, text, strlen(text));
}

void out_nil(struct out *out)
{
    out_text(out, out->resp3 ? "_\r\n" : "$-1\r\n");
}

void out_array(struct out *out, size_t n)
{
    line(out, '*', (int64_t)n);
}

void out_push(struct out *out, size_t n)
{
    line(out, out->resp3 ? '>' : '*', (int64_t)n);
}

void out_map(struct out *out, size_t n)
{
    line(out, out->resp3 ? '%' : '*', (int64_t)(out->resp3 ? n : 2 * n));
}

void out_verbatim(struct out *out, const char *bytes, size_t length)
{
    if (!out->resp3) {
        out_bulk(out, bytes, length);
        return;
    }
    line(out, '=', (int64_t)length + 4);
    out_text(out, "txt:");
    out_bytes(out, bytes, length);
    out_bytes(out, "\r\n", 2);
}

bool word_is(const struct word *word, const char *lower)
{
    return word->length == strlen(lower) && strncasecmp(word->text, lower, word->length) == 0;
}

bool word_number(const struct word *word, int64_t *ret)
{
    bool negative = word->length > 0 && word->text[0] == '-';
    uint64_t most = (uint64_t)INT64_MAX + (negative ? 1 : 0), number = 0;
    size_t first = negative ? 1 : 0;

    if (word->length == first || word->length > 20) return false;
    /* No zeros in front, no "-0". */
    if (word->text[first] == '0' && (negative || word->length > 1)) return false;
    for (size_t i = first; i < word->length; i++) {
        unsigned digit = (unsigned)(word->text[i] - '0');

        if (digit > 9 || number > (most - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *ret = negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

bool call_number(struct call *call, size_t index, int64_t *ret)
{
    if (word_number(&call->words[index], ret)) return true;
    out_error(call->out, ERROR_NUMBER);
    return false;
}
