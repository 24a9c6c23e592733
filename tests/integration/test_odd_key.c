/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_odd_key.c - odd keys, which no lock of a quorum left: an odd key on one node blocks no lock
 *
 * The holder is a client of its own in the same loop, so that the waiter has to find each release.
 */
#include "wait_fixture.h"

/* A wait for a lock that stays taken costs some polls, and no storm of requests. */
#define WAIT_MS 2000u

static void leave_odd_key(const struct server *server, uint32_t kind)
{
    switch (kind) {
    case 0: server_do(server, "SET key odd"); break;
    case 1: server_do(server, "SET key odd PX 3600000"); break;
    case 2: server_do(server, "HSET key uuid:1 1"); break;
    default: server_do(server, "SADD key odd"); break;
    }
}

/* Whichever node is asked first, and in whatever way the key there is odd. */
SERVERS_TEST(an_odd_key_on_one_node_starves_no_waiter)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        for (uint32_t node = 0; node < 3; node++) {
            open_both();
            leave_odd_key(SERVER(node), kind);
            assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
            fixture_start_acquire(waiter, &waited);
            run_ms(300);
            assert_int_equal(waited.calls, 0);
            release_holder();
            await_status(&waited, QUORLOCK_OK, "the waiter's grant");
            assert_int_equal(waited.result.granted, 2);
            close_both();
            drop_by_hand("key");
        }
    }
}

/* Two of three nodes are taken for good: then the lock is, and that is the result. */
CLIENT_TEST(two_odd_keys_are_a_lock_that_is_held)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(60000, .wait_ms = WAIT_MS));

    server_do(SERVER(0), "SET key odd");
    server_do(SERVER(1), "SET key even");
    assert_status(fixture_acquire(lock, &waited), QUORLOCK_ERR_HELD);
    /* That wait may have ended amid an attempt. One that tries once has the answers of two nodes when it ends. */
    lock = fixture_lock(fixture.client, "key", LEASE(60000));
    assert_status(fixture_acquire(lock, &waited), QUORLOCK_ERR_HELD);
    assert_int_equal(waited.result.refused, 2);
}

/* No third node can still decide between the two. */
CLIENT_TEST(keys_of_two_owners_are_held_by_no_one_owner)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(60000));

    server_do(SERVER(0), "SET key odd");
    server_do(SERVER(1), "SET key even");
    server_kill(SERVER(2));
    assert_status(fixture_acquire(lock, &waited), QUORLOCK_ERR_HELD);
    assert_contains(waited.text, "\"key\" is taken on 2 of 3 nodes, by several owners");
}

CLIENT_TEST(a_peers_key_makes_ours_held)
{
    struct seen seen;
    quorlock_lock *lock;

    for (int i = 0; i < 2; i++) server_do(SERVER(i), "SET key peer-1 NX PX 30000");
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    assert_int_equal(seen.result.refused, 2);
    assert_int_equal(seen.result.valid_ms, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(seen.votes[i].outcome, QUORLOCK_VOTE_REFUSED);
        assert_string_equal(seen.votes[i].holder, "peer-1");
        assert_true(seen.votes[i].ttl_ms > 0 && seen.votes[i].ttl_ms <= 30000);
    }
    /* Ours on the third node is released; theirs stay. */
    await_holders("key", NULL, 2);
    assert_int_equal(holders("key", "peer-1"), 2);

    /* A key without expiry is shown as such. */
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "SET key peer-2");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    assert_string_equal(seen.votes[0].holder, "peer-2");
    assert_int_equal(seen.votes[0].ttl_ms, -1);
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL key");
    await_free("key");

    /* And our lock makes theirs fail. */
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "SET key peer-3 NX PX 30000");
    assert_int_equal(holders("key", seen.owner), 3);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free("key");
}
