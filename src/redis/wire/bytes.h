/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bytes.h - bytes on their way out: a bounded growing buffer, and commands written into it
 *
 * A failure sticks until bytes_cut(), so a command is written without a check after each part: note the length,
 * write, look at the fault once, and cut back to that length if there was one. Memory is wiped before it is
 * freed, because it may have held a password.
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
    enum bytes_fault fault;
};

void bytes_init(struct bytes *, const struct alloc *, size_t limit);
/* bytes_clear - wipes and frees; the buffer is empty and may be used again. */
void bytes_clear(struct bytes *);
/* bytes_wipe - overwrites all that the buffer ever held behind `used`. */
void bytes_wipe(struct bytes *);
void bytes_append(struct bytes *, const void *data, size_t length);
/* bytes_reserve - so many bytes can be appended without a failure. */
void bytes_reserve(struct bytes *, size_t length);
/* bytes_cut - back to that length, and the fault is forgotten. */
void bytes_cut(struct bytes *, size_t used);
/* bytes_shift - takes that many bytes off the front. */
void bytes_shift(struct bytes *, size_t length);

/*
 * A command that is written often takes its room at once: bytes_begin - that many bytes, of which bytes_end counts in
 * those before `end`; NULL: there is no room. Between the two, bytes_at_word and bytes_at_number write a word and
 * return what is behind it: it takes BYTES_WORD_FRAME more than its text, and a number BYTES_NUMBER_MAX in all.
 */
#define BYTES_WORD_FRAME 25 /* "$", 20 digits, twice CR LF */
#define BYTES_NUMBER_MAX (BYTES_WORD_FRAME + 20)
char *bytes_begin(struct bytes *, size_t most);
void bytes_end(struct bytes *, const char *end);
char *bytes_at_word(char *at, const void *word, size_t length);
char *bytes_at_number(char *at, uint64_t number);
#define BYTES_AT_LITERAL(at, literal) ((char *)memcpy((at), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

/* bytes_command - begins a command of n_args words; that many bytes_word calls must follow. */
void bytes_command(struct bytes *, size_t n_args);
void bytes_word(struct bytes *, const void *word, size_t length);
/* bytes_joined - one word of two parts. */
void bytes_joined(struct bytes *, const void *front, size_t front_length, const void *back, size_t back_length);
/* bytes_text - inline, for then the length of a literal costs nothing. */
static inline void bytes_text(struct bytes *bytes, const char *word)
{
    bytes_word(bytes, word, strlen(word));
}
void bytes_number(struct bytes *, uint64_t number);
/* bytes_texts - a whole command of strings; the array ends with NULL. */
void bytes_texts(struct bytes *, const char *const *words);
#define BYTES_TEXTS(bytes, ...) bytes_texts((bytes), (const char *const[]){__VA_ARGS__, NULL})

/* bytes_put - bytes between two strings, cut where ret is too small; how long they are now. */
size_t bytes_put(char *ret, size_t size, const char *front, const char *middle, size_t length, const char *back);
