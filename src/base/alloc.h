/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc.h - memory through the allocator hooks of a client */
#pragma once

#include <stddef.h>

#include <quorlock/quorlock.h>

/* A copy of the caller's hooks, or of the C library's functions. */
struct alloc {
    struct quorlock_allocator hooks;
};

/* alloc_init - copy the hooks, which the caller has checked. NULL means malloc, realloc and free. */
void alloc_init(struct alloc *, const struct quorlock_allocator *hooks);
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
