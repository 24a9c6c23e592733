/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *libc_allocate(void *arg, size_t size)
{
    (void)arg;
    return malloc(size);
}

static void *libc_reallocate(void *arg, void *block, size_t size)
{
    (void)arg;
    return realloc(block, size);
}

static void libc_release(void *arg, void *block)
{
    (void)arg;
    free(block);
}

void alloc_init(struct alloc *alloc, const struct alloc_hooks *hooks)
{
    static const struct alloc_hooks libc = {
        .allocate = libc_allocate, .reallocate = libc_reallocate, .release = libc_release};

    alloc->hooks = hooks != NULL ? *hooks : libc;
}

void *alloc_zero(const struct alloc *alloc, size_t size)
{
    /* A hook may return NULL for zero bytes, which would look like a failure. */
    size_t least = size != 0 ? size : 1;
    void *block = alloc->hooks.allocate(alloc->hooks.arg, least);

    if (block != NULL) memset(block, 0, least);
    return block;
}

void *alloc_resize(const struct alloc *alloc, void *block, size_t size)
{
    return alloc->hooks.reallocate(alloc->hooks.arg, block, size != 0 ? size : 1);
}

char *alloc_text(const struct alloc *alloc, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? alloc->hooks.allocate(alloc->hooks.arg, length + 1) : NULL;

    if (copy == NULL) return NULL;
    if (length > 0) memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *alloc_joined(const struct alloc *alloc, const char *first, const char *second, size_t *ret_length)
{
    size_t n_first = strlen(first);
    size_t n_second = strlen(second);
    char *joined = alloc_resize(alloc, NULL, n_first + n_second + 1);

    if (joined == NULL) return NULL;
    snprintf(joined, n_first + n_second + 1, "%s%s", first, second);
    *ret_length = n_first + n_second;
    return joined;
}

void alloc_free(const struct alloc *alloc, void *block)
{
    if (block != NULL) alloc->hooks.release(alloc->hooks.arg, block);
}
