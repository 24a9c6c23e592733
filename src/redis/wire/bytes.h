/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bytes.h - a bounded, growing buffer of bytes to send, and Redis commands written into it
 *
 * A failure sticks until bytes_cut(), so a command can be written without a check after each part. Note the length,
 * write, look at the fault once, and cut back to that length if there was one. Memory is wiped before it is freed,
 * because it may have held a password.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

enum bytes_fault { BYTES_FINE = 0, BYTES_FULL, BYTES_NOMEM };

struct bytes {
    const struct alloc *alloc;
    char *data;
    size_t used, capacity, limit;
    size_t written; /* behind it none was ever written, but for what is used now */
    enum bytes_fault fault;
};

void bytes_init(struct bytes *, const struct alloc *, size_t limit);
/* bytes_clear - wipe and free the memory; the buffer is empty and may be used again. */
void bytes_clear(struct bytes *);
/* bytes_wipe - overwrite all that the buffer ever held behind `used`. */
void bytes_wipe(struct bytes *);
void bytes_append(struct bytes *, const void *data, size_t length);
/* bytes_reserve - make sure that so many bytes can be appended without a failure. */
void bytes_reserve(struct bytes *, size_t length);
/* bytes_cut - shorten the buffer to that length, and clear the fault. */
void bytes_cut(struct bytes *, size_t used);
/* bytes_shift - remove that many bytes from the front. */
void bytes_shift(struct bytes *, size_t length);

/*
 * For commands that are written often, one reservation for the whole command:
 * bytes_begin - reserve `most` bytes and return where they begin. NULL: no room.
 * bytes_at_word, bytes_at_number - write a word or a number at that place and return the place behind it. A word takes
 * BYTES_WORD_FRAME bytes more than its text, a number BYTES_NUMBER_MAX bytes at most.
 * bytes_end - append what was written before `end`.
 */
#define BYTES_WORD_FRAME 25 /* "$", 20 digits, twice CR LF */
#define BYTES_NUMBER_MAX (BYTES_WORD_FRAME + 20)
char *bytes_begin(struct bytes *, size_t most);
void bytes_end(struct bytes *, const char *end);
char *bytes_at_word(char *at, const void *word, size_t length);
char *bytes_at_number(char *at, uint64_t number);
#define BYTES_AT_LITERAL(at, literal) ((char *)memcpy((at), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

/* bytes_command - begin a command of n_args words; that many calls of bytes_word and the like must follow. */
void bytes_command(struct bytes *, size_t n_args);
void bytes_word(struct bytes *, const void *word, size_t length);
/* bytes_insert - append one word: `text` with `inserted` behind its first `at` bytes. */
void bytes_insert(struct bytes *, const char *text, size_t length, size_t at, const char *inserted, size_t more);
/* bytes_text - append a string as a word.
 * bytes_insert_text - as bytes_insert. Inline, because strlen of a literal then costs nothing. */
static inline void bytes_text(struct bytes *bytes, const char *word)
{
    bytes_word(bytes, word, strlen(word));
}
static inline void bytes_insert_text(struct bytes *bytes, const char *text, size_t length, size_t at,
                                     const char *inserted)
{
    bytes_insert(bytes, text, length, at, inserted, strlen(inserted));
}
void bytes_number(struct bytes *, uint64_t number);
/* bytes_texts - append a whole command of strings; the array ends with NULL. */
void bytes_texts(struct bytes *, const char *const *words);
#define BYTES_TEXTS(bytes, ...) bytes_texts((bytes), (const char *const[]){__VA_ARGS__, NULL})

/* bytes_put - write `length` bytes between two strings to ret, cut to `size` bytes; return the length after the cut. No
 * NUL is added. */
size_t bytes_put(char *ret, size_t size, const char *front, const char *middle, size_t length, const char *back);
