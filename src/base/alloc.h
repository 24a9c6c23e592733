/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc.h - the memory of a client: malloc, or what a test or a benchmark has instead */
#pragma once

#include <stddef.h>

#include <quorlock/quorlock.h> /* the statuses */

/* They get `arg`, and obey the rules of malloc, realloc and free. Called in the client's thread, and, of a sync client,
 * in the thread that makes it. */
struct alloc_hooks {
    void *(*allocate)(void *arg, size_t size);
    void *(*reallocate)(void *arg, void *block, size_t size);
    void (*release)(void *arg, void *block);
    void *arg;
};

/* A copy of the hooks, or the C library's functions. */
struct alloc {
    struct alloc_hooks hooks;
};

/* alloc_init - copy the hooks. NULL means malloc, realloc and free. */
void alloc_init(struct alloc *, const struct alloc_hooks *hooks);
/* These four return NULL when memory is out.
 * alloc_zero - allocate zeroed bytes.
 * alloc_resize - resize a block, as realloc does.
 * alloc_text - copy `length` bytes and append a NUL.
 * alloc_joined - concatenate two strings, and return the length as well. */
void *alloc_zero(const struct alloc *, size_t size);
void *alloc_resize(const struct alloc *, void *block, size_t size);
char *alloc_text(const struct alloc *, const char *text, size_t length);
char *alloc_joined(const struct alloc *, const char *first, const char *second, size_t *ret_length);
void alloc_free(const struct alloc *, void *block);
