/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdbool.h>
#include <stdlib.h>

static bool refuses(struct memory *memory)
{
    bool fails = memory->fail_once_in != 0 && draw_once_in(&memory->draw, memory->fail_once_in);

    memory->failed += fails;
    return fails;
}

static void *on_allocate(void *arg, size_t size)
{
    struct memory *memory = arg;
    void *block = refuses(memory) ? NULL : malloc(size);

    memory->blocks += block != NULL;
    return block;
}

static void *on_reallocate(void *arg, void *block, size_t size)
{
    struct memory *memory = arg;
    void *grown = refuses(memory) ? NULL : realloc(block, size);

    memory->blocks += block == NULL && grown != NULL;
    return grown;
}

static void on_release(void *arg, void *block)
{
    struct memory *memory = arg;

    memory->blocks -= block != NULL;
    free(block);
}

struct quorlock_allocator memory_hooks(struct memory *memory)
{
    return (struct quorlock_allocator){.size = sizeof(struct quorlock_allocator),
                                       .allocate = on_allocate,
                                       .reallocate = on_reallocate,
                                       .release = on_release,
                                       .arg = memory};
}
