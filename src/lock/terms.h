/* SPDX-License-Identifier: BSD-3-Clause */
/* terms.h - what a caller asks of a lock, but for its keys and owner: one struct for all locks with the same options */
#pragma once

#include "base/hashtable.h"
#include "core/core.h"

struct terms {
    struct hashtable_entry entry;
    uint32_t users; /* handles and claims */
    uint32_t fence_ttl_ms;
    struct core_config config;
    struct terms *own; /* of a lock that was adopted with another label: the terms of its handle; else NULL */
    uint32_t label_length;
    char label[]; /* readable front of owner tokens; "": none */
};

/* terms_join - return the struct of these terms, made where there is none; NULL: out of memory.
 * terms_adopt - do so for the same terms with the label of an adopted token.
 * terms_share - one user more. terms_leave - one user less; NULL is fine. */
struct terms *terms_join(struct hashtable *, const struct alloc *, const struct core_config *, uint32_t fence_ttl_ms,
                         const char *label);
struct terms *terms_adopt(struct hashtable *, const struct alloc *, struct terms *own, const char *label);
struct terms *terms_share(struct terms *);
void terms_leave(struct hashtable *, const struct alloc *, struct terms *);
