/* SPDX-License-Identifier: BSD-3-Clause */
/* test_texts.c - what results say of the nodes' answers, as a table */
#include "fixture.h"

#define PERMIT(n) LEASE(LONG_LEASE_MS, .permits = (n))

/* Times differ from run to run: numbers of four digits and more become "#". */
static void without_times(char ret[TEXT_SIZE], const char *text)
{
    size_t n = 0;

    while (*text != '\0' && n + 1 < TEXT_SIZE) {
        size_t digits = strspn(text, "0123456789");

        if (digits > 3) {
            ret[n++] = '#';
            text += digits;
        } else {
            ret[n++] = *text++;
        }
    }
    ret[n] = '\0';
}

static void expect_text(const char *text, const char *wanted)
{
    char shown[TEXT_SIZE];

    without_times(shown, text);
    assert_string_equal(shown, wanted);
}

struct stands {
    const char *owner; /* NULL: the key is free */
    int64_t ttl_ms;    /* 0: it has no expiry */
};

static void put(uint32_t node, const struct stands *stands)
{
    if (stands->owner == NULL)
        server_do(SERVER(node), "DEL key");
    else if (stands->ttl_ms == 0)
        server_do(SERVER(node), "SET key %s", stands->owner);
    else
        server_do(SERVER(node), "SET key %s PX %lld", stands->owner, (long long)stands->ttl_ms);
}

/* All nodes are needed, so all answers are there. */
SERVERS_TEST(what_stands_at_the_nodes_is_told)
{
    static const struct {
        struct stands at[3];
        const char *text;
    } rows[] = {
        {{{"a", 60000}, {"a", 60000}, {"a", 60000}}, "\"key\" is held by a on 3 of 3 nodes, # ms left"},
        {{{"a", 0}, {"a", 0}, {"a", 0}}, "\"key\" is held by a on 3 of 3 nodes, no expiry"},
        {{{"a", 0}, {"a", 60000}, {"a", 0}}, "\"key\" is held by a on 3 of 3 nodes, # ms left"},
        {{{NULL, 0}, {"a", 60000}, {"a", 60000}}, "\"key\" is held by a on 2 of 3 nodes, # ms left; 1 free"},
        {{{NULL, 0}, {"a", 60000}, {"a", 0}}, "\"key\" is held by a on 2 of 3 nodes, no expiry; 1 free"},
        {{{"a", 60000}, {"b", 60000}, {"a", 50000}},
         "\"key\" is taken on 3 of 3 nodes, by several owners; enough of their leases end in # ms"},
        {{{"a", 60000}, {"b", 60000}, {"c", 60000}},
         "\"key\" is taken on 3 of 3 nodes, by several owners; enough of their leases end in # ms"},
        {{{"a", 60000}, {"b", 0}, {"c", 60000}},
         "\"key\" is taken on 3 of 3 nodes, by several owners; too many have no expiry"},
        {{{"quorlock:kept:a", 60000}, {"quorlock:kept:a", 60000}, {"quorlock:kept:a", 60000}},
         "\"key\" is kept after its release by a on 3 of 3 nodes, # ms left"},
        {{{"web-1:0123456789abcdef", 60000}, {"web-1:0123456789abcdef", 60000}, {"web-1:0123456789abcdef", 60000}},
         "\"key\" is held by web-1:# on 3 of 3 nodes, # ms left"},
    };
    quorlock_lock *lock;
    struct seen seen;

    fixture.options.policy = QUORLOCK_POLICY_ALL;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    for (size_t i = 0; i < LENGTH(rows); i++) {
        for (uint32_t k = 0; k < 3; k++) put(k, &rows[i].at[k]);
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
        expect_text(seen.text, rows[i].text);
    }
}

CLIENT_TEST(a_lock_of_the_same_process_and_permits_are_told)
{
    quorlock_lock *first = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock *second = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock *permit = fixture_lock(fixture.client, "name", PERMIT(1));
    quorlock_lock *same = fixture_lock(fixture.client, "name", PERMIT(1));
    quorlock_lock *other = fixture_lock(fixture_new_client(3), "name", PERMIT(1));
    struct seen seen;

    assert_status(fixture_acquire(first, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(second, &seen), QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "\"key\" is held by another lock of this process");
    assert_status(fixture_acquire(permit, &seen), QUORLOCK_OK);
    assert_int_equal(strncmp(seen.text, "granted slot 0 of \"name\" by ", 28), 0);
    assert_status(fixture_acquire(same, &seen), QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "\"name\" is held by as many locks as it has permits, all of this process");
    assert_status(fixture_acquire(other, &seen), QUORLOCK_ERR_HELD);
    assert_int_equal(strncmp(seen.text, "all 1 permits are taken; slot 0 of \"name\" is held by ", 53), 0);
}

/* Nodes with the same error share one mention of it. */
SERVERS_TEST(nodes_that_do_not_vote_are_told_with_the_reason)
{
    quorlock_lock *lock;
    struct seen seen;

    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "LPUSH key x");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_FOREIGN);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(times_in(seen.text, SERVER(i)->address), 1);
    assert_int_equal(times_in(seen.text, "; "), 1);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(seen.votes[i].outcome, QUORLOCK_VOTE_FAILED);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "DEL key");
    server_kill(SERVER(1));
    server_kill(SERVER(2));
    server_do(SERVER(0), "SET key a PX 60000");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_NOQUORUM);
    assert_int_equal(strncmp(seen.text, "too few nodes can vote on \"key\": 1 of 3 did, 2 needed; ", 55), 0);
    assert_int_equal(times_in(seen.text, SERVER(0)->address), 0);
    assert_int_equal(seen.votes[0].outcome, QUORLOCK_VOTE_REFUSED);
    assert_string_equal(seen.votes[0].holder, "a");
    for (uint32_t i = 1; i < 3; i++) assert_true(seen.votes[i].error[0] != '\0');
}
