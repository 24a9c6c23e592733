/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_listed.c - what a listed lock is, by what each node has at its key
 */
#include "admin/listed.h"
#include "test.h"

#define NODES 3

static char a[] = "web:a", b[] = "web:b";

TEST(the_holder_on_most_nodes_has_what_a_quorum_has)
{
    static const struct {
        struct listed_there there[NODES];
        uint32_t quorum;
        struct quorlock_listed wanted;
    } rows[] = {
        {{{0}, {0}, {0}}, 2, {.nodes = 0}},
        {{{a, 30, 0, LISTER_LOCK}, {a, 20, 0, LISTER_LOCK}, {a, 10, 0, LISTER_LOCK}},
         2,
         {.holder = a, .nodes = 3, .ttl_ms = 20, .mode = QUORLOCK_MODE_EXCLUSIVE}},
        {{{a, 10, 0, LISTER_LOCK}, {a, 20, 0, LISTER_LOCK}, {a, 30, 0, LISTER_LOCK}},
         3,
         {.holder = a, .nodes = 3, .ttl_ms = 10, .mode = QUORLOCK_MODE_EXCLUSIVE}},
        /* Fewer nodes than a quorum: what the longest one has. */
        {{{0}, {a, 20, 0, LISTER_LOCK}, {0}},
         2,
         {.holder = a, .nodes = 1, .ttl_ms = 20, .mode = QUORLOCK_MODE_EXCLUSIVE}},
        {{{a, 20, 0, LISTER_LOCK}, {0}, {a, 30, 0, LISTER_LOCK}},
         3,
         {.holder = a, .nodes = 2, .ttl_ms = 30, .mode = QUORLOCK_MODE_EXCLUSIVE}},
        {{{a, 90, 0, LISTER_LOCK}, {b, 20, 0, LISTER_LOCK}, {b, 30, 0, LISTER_LOCK}},
         2,
         {.holder = b, .nodes = 2, .ttl_ms = 20, .mode = QUORLOCK_MODE_EXCLUSIVE}},
        /* Of two that are on as many nodes, the first. */
        {{{a, 20, 0, LISTER_LOCK}, {0}, {b, 30, 0, LISTER_LOCK}},
         2,
         {.holder = a, .nodes = 1, .ttl_ms = 20, .mode = QUORLOCK_MODE_EXCLUSIVE}},
        /* -1 is no expiry, which is longer than any. */
        {{{a, -1, 0, LISTER_LOCK}, {a, 20, 0, LISTER_LOCK}, {a, -1, 0, LISTER_LOCK}},
         2,
         {.holder = a, .nodes = 3, .ttl_ms = -1, .mode = QUORLOCK_MODE_EXCLUSIVE}},
        {{{a, -1, 0, LISTER_LOCK}, {a, 20, 0, LISTER_LOCK}, {0}},
         2,
         {.holder = a, .nodes = 2, .ttl_ms = 20, .mode = QUORLOCK_MODE_EXCLUSIVE}},
        {{{a, 9, 3, LISTER_READERS}, {a, 9, 1, LISTER_READERS}, {a, 9, 2, LISTER_READERS}},
         2,
         {.holder = a, .nodes = 3, .ttl_ms = 9, .mode = QUORLOCK_MODE_SHARED, .readers = 2}},
        {{{a, 9, 5, LISTER_SLOT}, {a, 9, 4, LISTER_SLOT}, {0}},
         2,
         {.holder = a, .nodes = 2, .ttl_ms = 9, .mode = QUORLOCK_MODE_PERMIT, .permits = 4}},
        {{{a, 9, 0, LISTER_SLOT}, {a, 9, 0, LISTER_SLOT}, {a, 9, 0, LISTER_SLOT}},
         2,
         {.holder = a, .nodes = 3, .ttl_ms = 9, .mode = QUORLOCK_MODE_PERMIT}},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct quorlock_listed *wanted = &rows[i].wanted;
        struct quorlock_listed found;

        listed_judge(rows[i].there, NODES, rows[i].quorum, &found);
        assert_ptr_equal(found.holder, wanted->holder);
        assert_int_equal(found.nodes, wanted->nodes);
        assert_int_equal(found.ttl_ms, wanted->ttl_ms);
        assert_int_equal(found.mode, wanted->mode);
        assert_int_equal(found.readers, wanted->readers);
        assert_int_equal(found.permits, wanted->permits);
        assert_null(found.key);
    }
}

TEST(a_node_is_down_where_it_cannot_be_asked)
{
    for (int fault = FAULT_NONE; fault < FAULTS; fault++) {
        bool down = fault == FAULT_UNREACHABLE || fault == FAULT_TIMEOUT || fault == FAULT_LOGIN;

        assert_int_equal(listed_state((enum fault)fault), fault == FAULT_NONE ? QUORLOCK_LIST_LISTED
                                                          : down              ? QUORLOCK_LIST_DOWN
                                                                              : QUORLOCK_LIST_ERROR);
    }
}

TEST(patterns_are_those_of_redis)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } rows[] = {
        {"job", "job", true},    {"job", "jobs", false},   {"job", "jo", false},     {"", "", true},
        {"", "a", false},        {"*", "", true},          {"*", "any", true},       {"**", "any", true},
        {"j*b", "job", true},    {"j*b", "jb", true},      {"j*b", "jobs", false},   {"*b*b", "abab", true},
        {"a*bc", "abbc", true},  {"a*bc", "abcb", false},  {"j?b", "job", true},     {"j?b", "jb", false},
        {"?", "", false},        {"[a-c]x", "bx", true},   {"[a-c]x", "dx", false},  {"[c-a]x", "ax", true},
        {"[c-a]x", "cx", true},  {"[c-a]x", "dx", false},  {"[c-a]x", "Ax", false},  {"[a-cx]", "x", true},
        {"[a-cx]", "-", false},  {"[c-a]x", "bx", true},   {"[a-c]x", "cx", true},   {"[a-c]x", "ax", true},
        {"[^a-c]x", "dx", true}, {"[^a-c]x", "bx", false}, {"[abc]", "b", true},     {"[abc]", "d", false},
        {"[a\\-c]", "-", true},  {"[a\\-c]", "b", false},  {"[\\]]", "]", true},     {"[a", "a", true},
        {"[a", "b", false},      {"[a-", "-", true},       {"\\*", "*", true},       {"\\*", "a", false},
        {"a\\?", "a?", true},    {"a\\", "a\\", true},     {"*[0-9]", "job7", true}, {"*[0-9]", "jobs", false},
        {"*\\**", "a*b", true},  {"*\\**", "ab", false},   {"a*", "b", false},       {"a*?", "a", false},
        {"a*?", "ab", true},     {"[", "a", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        if (listed_fits(rows[i].pattern, rows[i].text) != rows[i].fits)
            fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].text);
    }
}
