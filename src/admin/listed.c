/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/listed.h"

#include <assert.h>

/* ---- patterns ---- */

/* class_has - read a class of characters, [a-z^...], behind its bracket as Redis does. */
static bool class_has(const char **at, unsigned char c)
{
    const char *p = *at;
    bool negated = *p == '^', found = false;

    for (p += negated; *p != '\0' && *p != ']'; p++) {
        bool escaped = *p == '\\' && p[1] != '\0';
        unsigned char low, high;

        p += escaped;
        low = high = (unsigned char)*p;
        if (!escaped && p[1] == '-' && p[2] != '\0') {
            high = (unsigned char)p[2];
            p += 2;
        }
        found |= low <= high ? low <= c && c <= high : high <= c && c <= low;
    }
    *at = *p == ']' ? p + 1 : p;
    return found != negated;
}

bool listed_fits(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL; /* the last *, and where its text begins that is tried next */

    while (*text != '\0') {
        const char *next = pattern + 1;
        bool fits = *pattern != '\0';

        if (*pattern == '*') {
            star = ++pattern;
            from = text;
            continue;
        }
        if (*pattern == '[') {
            fits = class_has(&next, (unsigned char)*text);
        } else if (*pattern == '\\' && pattern[1] != '\0') {
            fits = pattern[1] == *text;
            next++;
        } else if (*pattern != '?') {
            fits = *pattern == *text;
        }
        if (!fits && star == NULL) return false;
        pattern = fits ? next : star;
        text = fits ? text + 1 : ++from;
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

/* ---- holders ---- */

/* listed_judge_holder - describe the holder of that node. */
static void listed_judge_holder(const struct listed_there *all, uint32_t n_nodes, uint32_t quorum,
                                const struct listed_there *one, struct quorlock_listed *ret)
{
    uint32_t numbers[QUORLOCK_NODES_MAX];
    uint64_t left[QUORLOCK_NODES_MAX];
    uint32_t n = 0, at;

    for (const struct listed_there *there = all; there < all + n_nodes; there++) {
        if (there->holder == NULL || quorlock_owner_equals(there->holder, one->holder) == 0) continue;
        for (at = n; at > 0 && left[at - 1] < (uint64_t)there->ttl_ms; at--) left[at] = left[at - 1];
        left[at] = (uint64_t)there->ttl_ms; /* -1, which is no expiry, is the longest */
        for (at = n++; at > 0 && numbers[at - 1] < there->number; at--) numbers[at] = numbers[at - 1];
        numbers[at] = there->number;
    }
    at = n >= quorum ? quorum - 1 : 0;
    assert(n > 0 && at < n);
    *ret = (struct quorlock_listed){.holder = one->holder,
                                    .nodes = n,
                                    .ttl_ms = (int64_t)left[at],
                                    .mode = one->kind == LISTER_READERS ? QUORLOCK_MODE_SHARED
                                            : one->kind == LISTER_SLOT  ? QUORLOCK_MODE_PERMIT
                                                                        : QUORLOCK_MODE_EXCLUSIVE,
                                    .readers = one->kind == LISTER_READERS ? numbers[at] : 0,
                                    .permits = one->kind == LISTER_SLOT ? numbers[at] : 0};
}

void listed_judge(const struct listed_there *all, uint32_t n_nodes, uint32_t quorum, struct quorlock_listed *ret)
{
    struct quorlock_listed one;

    *ret = (struct quorlock_listed){0};
    for (uint32_t i = 0; i < n_nodes; i++) {
        if (all[i].holder == NULL) continue;
        listed_judge_holder(all, n_nodes, quorum, &all[i], &one);
        if (one.nodes > ret->nodes) *ret = one;
    }
}

int listed_state(enum fault fault)
{
    if (fault == FAULT_NONE) return QUORLOCK_LIST_LISTED;
    return fault == FAULT_UNREACHABLE || fault == FAULT_TIMEOUT || fault == FAULT_LOGIN ? QUORLOCK_LIST_DOWN
                                                                                        : QUORLOCK_LIST_ERROR;
}
