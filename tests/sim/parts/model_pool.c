/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_pool.c - memory of Lua: small blocks of few sizes, which are used again
 *
 * A script makes hundreds of small objects, so this is a good part of a run's time. Lua says how large a block was, so
 * that none needs a header.
 */
#include <stdlib.h>
#include <string.h>

#include "model_lua.h"

#define STEP      16
#define SIZES     16 /* up to 256 bytes */
#define SLAB_SIZE 65536

struct spare {
    struct spare *next;
};

struct slab {
    struct slab *next;
    size_t used;
    _Alignas(STEP) unsigned char bytes[SLAB_SIZE];
};

static struct {
    struct spare *spares[SIZES];
    struct slab *slabs;
} pool;

static void *take(size_t size)
{
    size_t i = (size - 1) / STEP, rounded = (i + 1) * STEP;
    struct spare *spare = pool.spares[i];

    if (spare != NULL) {
        pool.spares[i] = spare->next;
        return spare;
    }
    if (pool.slabs == NULL || pool.slabs->used + rounded > SLAB_SIZE) {
        struct slab *slab = malloc(sizeof(*slab));

        if (slab == NULL) abort();
        slab->next = pool.slabs;
        slab->used = 0;
        pool.slabs = slab;
    }
    pool.slabs->used += rounded;
    return pool.slabs->bytes + (pool.slabs->used - rounded);
}

static void put_back(void *block, size_t size)
{
    struct spare *spare = block;

    spare->next = pool.spares[(size - 1) / STEP];
    pool.spares[(size - 1) / STEP] = spare;
}

static bool is_small(size_t size)
{
    return size > 0 && size <= (size_t)SIZES * STEP;
}

void *model_pool(void *arg, void *block, size_t size, size_t wanted)
{
    void *moved;

    (void)arg;
    if (wanted == 0 && is_small(size)) {
        put_back(block, size);
        return NULL;
    }
    if (size == 0 && is_small(wanted)) return take(wanted);
    if (!is_small(size) && !is_small(wanted)) {
        if (wanted > 0) return realloc(block, wanted);
        free(block);
        return NULL;
    }
    if (is_small(size) && is_small(wanted) && (size - 1) / STEP == (wanted - 1) / STEP) return block;
    moved = is_small(wanted) ? take(wanted) : malloc(wanted);
    if (moved != NULL && size > 0) memcpy(moved, block, size < wanted ? size : wanted);
    if (is_small(size))
        put_back(block, size);
    else
        free(block);
    return moved;
}

void model_pool_free(void)
{
    while (pool.slabs != NULL) {
        struct slab *slab = pool.slabs;

        pool.slabs = slab->next;
        free(slab);
    }
    memset(pool.spares, 0, sizeof(pool.spares));
}
