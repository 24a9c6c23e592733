/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc.h - memory through the client's hooks */
#pragma once

#include <stddef.h>

#include <quorlock/quorlock.h>

/* A copy of the caller's hooks, or of the C library's. */
struct alloc {
    struct quorlock_allocator hooks;
};

/* alloc_init - takes the hooks, which were checked, or malloc and friends where hooks is NULL. */
void alloc_init(struct alloc *, const struct quorlock_allocator *hooks);
/* These return NULL where memory is out. alloc_zero: zeroed. alloc_resize: as realloc. alloc_text: a copy with
 * a NUL behind it. alloc_joined: one string of two, and its length. */
void *alloc_zero(const struct alloc *, size_t size);
void *alloc_resize(const struct alloc *, void *block, size_t size);
char *alloc_text(const struct alloc *, const char *text, size_t length);
char *alloc_joined(const struct alloc *, const char *first, const char *second, size_t *ret_length);
void alloc_free(const struct alloc *, void *block);
