/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include <string.h>

#include "base/system.h"

#define PAGE_BYTES 4096

struct random_page {
    size_t left; /* how many bytes are left, at the end of `bytes` */
    unsigned char bytes[PAGE_BYTES - sizeof(size_t)];
};

_Static_assert(sizeof(struct random_page) == PAGE_BYTES, "the count is wiped with the bytes");

static struct random_page *page_of(struct random *random, struct system *system)
{
    if (random->page == NULL && !random->without) random->page = system->ops->wiped_new(system, PAGE_BYTES);
    random->without = random->page == NULL;
    return random->page;
}

int random_draw(struct random *random, struct system *system, void *ret, size_t size)
{
    struct random_page *page = page_of(random, system);
    unsigned char *from;

    if (page == NULL || size > sizeof(page->bytes)) return system->ops->random(system, ret, size, true);
    if (page->left < size) {
        if (system->ops->random(system, page->bytes, sizeof(page->bytes), true) != 0) return -1;
        page->left = sizeof(page->bytes);
    }
    from = page->bytes + sizeof(page->bytes) - page->left;
    memcpy(ret, from, size);
    explicit_bzero(from, size);
    page->left -= size;
    return 0;
}

void random_clear(struct random *random, struct system *system)
{
    if (random->page == NULL) return;
    explicit_bzero(random->page, PAGE_BYTES);
    system->ops->wiped_free(system, random->page, PAGE_BYTES);
    random->page = NULL;
}
