/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/terms.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

static struct terms *terms_find(struct hashtable *table, const struct alloc *alloc, const struct core_config *config,
                                uint32_t fence_ttl_ms, const char *label, struct terms *own)
{
    uint64_t hash = hash_bytes(hash_bytes(HASH_START, config, CORE_CONFIG_SIZE), &fence_ttl_ms, sizeof(fence_ttl_ms));
    size_t length = strlen(label);
    struct terms *terms;

    assert(config->quorum >= 1 && config->quorum <= config->n_nodes && config->lease_us > 0);
    hash = hash_bytes(hash, label, length);

    HASHTABLE_EACH_OF (struct terms, known, table, hash, entry) {
        if (memcmp(&known->config, config, CORE_CONFIG_SIZE) != 0 || known->fence_ttl_ms != fence_ttl_ms) continue;
        if (known->own != own || strcmp(known->label, label) != 0) continue;
        return terms_share(known);
    }
    if (hashtable_reserve(table, alloc) != 0) return NULL;
    terms = alloc_zero(alloc, sizeof(*terms) + length + 1);
    if (terms == NULL) return NULL;
    terms->config = *config;
    terms->fence_ttl_ms = fence_ttl_ms;
    terms->entry.hash = hash;
    terms->label_length = (uint32_t)length;
    memcpy(terms->label, label, length);
    terms->users = 1;
    if (own != NULL) terms->own = terms_share(own);
    hashtable_add(table, &terms->entry);
    return terms;
}

struct terms *terms_join(struct hashtable *table, const struct alloc *alloc, const struct core_config *config,
                         uint32_t fence_ttl_ms, const char *label)
{
    return terms_find(table, alloc, config, fence_ttl_ms, label, NULL);
}

struct terms *terms_adopt(struct hashtable *table, const struct alloc *alloc, struct terms *own, const char *label)
{
    assert(own->own == NULL);
    if (strcmp(own->label, label) == 0) return terms_share(own);
    return terms_find(table, alloc, &own->config, own->fence_ttl_ms, label, own);
}

struct terms *terms_share(struct terms *terms)
{
    assert(terms->users > 0);
    terms->users++;
    return terms;
}

void terms_leave(struct hashtable *table, const struct alloc *alloc, struct terms *terms)
{
    assert(terms == NULL || terms->users > 0);
    while (terms != NULL && --terms->users == 0) {
        struct terms *own = terms->own;

        hashtable_remove(table, &terms->entry);
        alloc_free(alloc, terms);
        terms = own;
    }
}
