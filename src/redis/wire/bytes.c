/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/wire/bytes.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define BYTES_FIRST_CAPACITY 1024

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

/* Call it before `used` shrinks. */
static void note_written(struct bytes *bytes)
{
    if (bytes->used > bytes->written) bytes->written = bytes->used;
}

/* Memory that was never touched stays so: it costs a page fault for every 4 KiB. */
void bytes_wipe(struct bytes *bytes)
{
    if (bytes->written > bytes->used) explicit_bzero(bytes->data + bytes->used, bytes->written - bytes->used);
    bytes->written = bytes->used;
}

/* realloc could leave a readable copy behind, so it is not used. */
static bool grow(struct bytes *bytes, size_t needed)
{
    size_t capacity = bytes->capacity != 0 ? bytes->capacity : BYTES_FIRST_CAPACITY;
    char *data;

    while (capacity < needed) capacity *= 2;
    data = alloc_resize(bytes->alloc, NULL, capacity);
    if (data == NULL) {
        bytes->fault = BYTES_NOMEM;
        return false;
    }
    if (bytes->data != NULL) {
        memcpy(data, bytes->data, bytes->used);
        note_written(bytes);
        explicit_bzero(bytes->data, bytes->written);
        alloc_free(bytes->alloc, bytes->data);
    }
    bytes->written = 0;
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

/* The slow path of bytes_take: more memory is needed, or the limit is reached. */
static bool make_room(struct bytes *bytes, size_t length)
{
    if (bytes->fault != BYTES_FINE) return false;
    if (length > bytes->limit - bytes->used) {
        bytes->fault = BYTES_FULL;
        return false;
    }
    return grow(bytes, bytes->used + length);
}

/* Reserve so many bytes and count them as used; NULL: no room. The capacity may be larger than the limit. */
static inline char *bytes_take(struct bytes *bytes, size_t length)
{
    size_t most = bytes->capacity < bytes->limit ? bytes->capacity : bytes->limit;
    char *at;

    if ((bytes->fault != BYTES_FINE || length > most - bytes->used) && !make_room(bytes, length)) return NULL;
    at = bytes->data + bytes->used;
    bytes->used += length;
    return at;
}

void bytes_append(struct bytes *bytes, const void *data, size_t length)
{
    char *at = bytes_take(bytes, length);

    if (at != NULL && length != 0) memcpy(at, data, length);
}

void bytes_reserve(struct bytes *bytes, size_t length)
{
    (void)bytes_begin(bytes, length);
}

void bytes_cut(struct bytes *bytes, size_t used)
{
    assert(used <= bytes->used);
    note_written(bytes);
    bytes->used = used;
    bytes->fault = BYTES_FINE;
}

void bytes_shift(struct bytes *bytes, size_t length)
{
    assert(length <= bytes->used);
    note_written(bytes);
    bytes->used -= length;
    if (bytes->used != 0) memmove(bytes->data, bytes->data + length, bytes->used);
}

static size_t digits_of(uint64_t number)
{
    size_t n = 1;

    for (; number >= 100; number /= 100) n += 2;
    return n + (number >= 10);
}

/* Write the number, which has so many digits, and CR LF; return the place behind them. Most numbers are lengths of
 * words with one digit, and need no division. */
static char *put_line(char *at, uint64_t number, size_t digits)
{
    char *end = at + digits;

    end[0] = '\r';
    end[1] = '\n';
    for (char *digit = end; number >= 10; number /= 10) *--digit = (char)('0' + (int)(number % 10));
    *at = (char)('0' + (int)number);
    return end + 2;
}

/* Write the frame of a word of that length; return where its text goes. */
static char *put_frame(char *at, size_t length, size_t digits)
{
    *at = '$';
    at = put_line(at + 1, length, digits);
    at[length] = '\r';
    at[length + 1] = '\n';
    return at;
}

/* One reservation for a whole word: most of the cost of a request is that of its words. */
static char *take_word(struct bytes *bytes, size_t length)
{
    size_t digits = digits_of(length);
    char *at = bytes_take(bytes, 1 + digits + 2 + length + 2);

    return at != NULL ? put_frame(at, length, digits) : NULL;
}

char *bytes_begin(struct bytes *bytes, size_t most)
{
    char *at = bytes_take(bytes, most);

    if (at != NULL) bytes->used -= most;
    return at;
}

void bytes_end(struct bytes *bytes, const char *end)
{
    bytes->used = (size_t)(end - bytes->data);
}

char *bytes_at_word(char *at, const void *word, size_t length)
{
    at = put_frame(at, length, digits_of(length));
    memcpy(at, word, length);
    return at + length + 2;
}

char *bytes_at_number(char *at, uint64_t number)
{
    size_t digits = digits_of(number);

    /* put_line writes the same CR LF again that the frame has. */
    return put_line(put_frame(at, digits, digits_of(digits)), number, digits);
}

void bytes_command(struct bytes *bytes, size_t n_args)
{
    size_t digits = digits_of(n_args);
    char *at = bytes_take(bytes, 1 + digits + 2);

    if (at == NULL) return;
    *at = '*';
    put_line(at + 1, n_args, digits);
}

void bytes_word(struct bytes *bytes, const void *word, size_t length)
{
    char *at = take_word(bytes, length);

    if (at != NULL && length != 0) memcpy(at, word, length);
}

void bytes_insert(struct bytes *bytes, const char *text, size_t length, size_t at, const char *inserted, size_t more)
{
    char *to = take_word(bytes, length + more);

    assert(at <= length);
    if (to == NULL) return;
    /* Most clients have no prefix. */
    if (at != 0) memcpy(to, text, at);
    memcpy(to + at, inserted, more);
    memcpy(to + at + more, text + at, length - at);
}

void bytes_number(struct bytes *bytes, uint64_t number)
{
    size_t digits = digits_of(number);
    char *at = take_word(bytes, digits);

    /* put_line writes the same CR LF again that the frame has. */
    if (at != NULL) put_line(at, number, digits);
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
