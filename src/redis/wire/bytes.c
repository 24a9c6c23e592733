/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/wire/bytes.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define BYTES_FIRST_CAPACITY 1024
#define BYTES_DECIMAL_SIZE   24

void bytes_init(struct bytes *bytes, const struct alloc *alloc, size_t limit)
{
    *bytes = (struct bytes){.alloc = alloc, .limit = limit};
}

void bytes_clear(struct bytes *bytes)
{
    bytes_cut(bytes, 0);
    bytes_wipe(bytes);
    alloc_free(bytes->alloc, bytes->data);
    bytes->data = NULL;
    bytes->capacity = 0;
}

void bytes_wipe(struct bytes *bytes)
{
    if (bytes->data != NULL) explicit_bzero(bytes->data + bytes->used, bytes->capacity - bytes->used);
}

/* Not by realloc, which may leave a readable copy behind. */
static bool grow(struct bytes *bytes, size_t needed)
{
    size_t capacity = bytes->capacity != 0 ? bytes->capacity : BYTES_FIRST_CAPACITY;
    char *data;

    while (capacity < needed) capacity *= 2;
    data = alloc_zero(bytes->alloc, capacity);
    if (data == NULL) {
        bytes->fault = BYTES_NOMEM;
        return false;
    }
    if (bytes->data != NULL) {
        memcpy(data, bytes->data, bytes->used);
        explicit_bzero(bytes->data, bytes->capacity);
        alloc_free(bytes->alloc, bytes->data);
    }
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

void bytes_append(struct bytes *bytes, const void *data, size_t length)
{
    if (bytes->fault != 0) return;
    if (length > bytes->limit - bytes->used) {
        bytes->fault = BYTES_FULL;
        return;
    }
    if (bytes->used + length > bytes->capacity && !grow(bytes, bytes->used + length)) return;
    if (length != 0) memcpy(bytes->data + bytes->used, data, length);
    bytes->used += length;
}

void bytes_cut(struct bytes *bytes, size_t used)
{
    assert(used <= bytes->used);
    bytes->used = used;
    bytes->fault = BYTES_FINE;
}

void bytes_shift(struct bytes *bytes, size_t length)
{
    assert(length <= bytes->used);
    bytes->used -= length;
    if (bytes->used != 0) memmove(bytes->data, bytes->data + length, bytes->used);
}

/* Digits of the number, ended by CR LF; returns where they begin in the buffer. */
static char *decimal(char buffer[BYTES_DECIMAL_SIZE], uint64_t number, size_t *ret_length)
{
    size_t at = BYTES_DECIMAL_SIZE;

    buffer[--at] = '\n';
    buffer[--at] = '\r';
    do {
        buffer[--at] = (char)('0' + (int)(number % 10));
        number /= 10;
    } while (number != 0);
    *ret_length = BYTES_DECIMAL_SIZE - at;
    return buffer + at;
}

static void header(struct bytes *bytes, char kind, size_t count)
{
    char buffer[1 + BYTES_DECIMAL_SIZE];
    size_t length;
    char *digits = decimal(buffer + 1, count, &length);

    digits[-1] = kind;
    bytes_append(bytes, digits - 1, length + 1);
}

void bytes_command(struct bytes *bytes, size_t n_args)
{
    header(bytes, '*', n_args);
}

void bytes_word(struct bytes *bytes, const void *word, size_t length)
{
    header(bytes, '$', length);
    bytes_append(bytes, word, length);
    bytes_append(bytes, "\r\n", 2);
}

void bytes_joined(struct bytes *bytes, const void *front, size_t front_length, const void *back, size_t back_length)
{
    header(bytes, '$', front_length + back_length);
    bytes_append(bytes, front, front_length);
    bytes_append(bytes, back, back_length);
    bytes_append(bytes, "\r\n", 2);
}

void bytes_text(struct bytes *bytes, const char *word)
{
    bytes_word(bytes, word, strlen(word));
}

void bytes_number(struct bytes *bytes, uint64_t number)
{
    char buffer[BYTES_DECIMAL_SIZE];
    size_t length;
    const char *digits = decimal(buffer, number, &length);

    bytes_word(bytes, digits, length - 2);
}

void bytes_texts(struct bytes *bytes, const char *const *words)
{
    size_t n = 0;

    while (words[n] != NULL) n++;
    bytes_command(bytes, n);
    for (size_t i = 0; i < n; i++) bytes_text(bytes, words[i]);
}

static size_t put_one(char *ret, size_t size, size_t used, const char *piece, size_t length)
{
    if (length > size - used) length = size - used;
    memcpy(ret + used, piece, length);
    return used + length;
}

size_t bytes_put(char *ret, size_t size, const char *front, const char *middle, size_t length, const char *back)
{
    size_t used = put_one(ret, size, 0, front, strlen(front));

    used = put_one(ret, size, used, middle, length);
    return put_one(ret, size, used, back, strlen(back));
}
