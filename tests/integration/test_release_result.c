/* SPDX-License-Identifier: BSD-3-Clause */
/* test_release_result.c - a release reports what it found */
#include "fixture.h"

static struct seen held, given_back;
static struct seen_loss lost;
static quorlock_lock *lock;

/* The lease is so long that no renewal comes before the release. */
static void hold(void)
{
    memset(&held, 0, sizeof(held));
    memset(&given_back, 0, sizeof(given_back));
    memset(&lost, 0, sizeof(lost));
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock_set_on_lost(lock, on_loss, &lost);
    assert_status(fixture_acquire(lock, &held), QUORLOCK_OK);
    await_holders("key", held.owner, 3);
}

static void expect_expired(bool expired, const char *text)
{
    assert_status(fixture_release(lock, &given_back), expired ? QUORLOCK_ERR_LOST : QUORLOCK_OK);
    assert_string_equal(given_back.text, text);
    assert_int_equal(lost.calls, 0);
}

SERVERS_TEST(deleted_keys_are_reported)
{
    hold();
    drop_by_hand("key");
    assert_status(fixture_release(lock, &given_back), QUORLOCK_ERR_LOST);
    /* The third answer may come after the result. */
    assert_int_equal(given_back.result.granted, 0);
    assert_in_range(given_back.result.refused, 2, 3);
    assert_contains(given_back.text, "released \"key\" on 0 of 3 nodes; not there any more on ");
    assert_contains(given_back.text, "it had expired or was lost before");
}

SERVERS_TEST(the_new_owner_of_the_keys_is_named)
{
    hold();
    for (uint32_t i = 0; i < 2; i++) server_do(SERVER(i), "SET key peer PX 60000");
    server_freeze(SERVER(2));
    expect_expired(true, "released \"key\" on 0 of 3 nodes; held by peer on 2; it had expired or was lost before");
    for (uint32_t i = 0; i < 2; i++) assert_true(server_holds(SERVER(i), "key", "peer"));
    server_thaw(SERVER(2));
}

/* ---- keys that come late ---- */

static bool has_key(void *arg)
{
    return server_has(arg, "key");
}

static bool has_no_key(void *arg)
{
    return !has_key(arg);
}

/* As if a proxy delivered the acquire after so long: its key is released, although the lock was released before. */
static void comes_late(const char *owner, uint32_t after_ms)
{
    run_ms(after_ms);
    server_do(SERVER(2), "SET key %s PX %u", owner, LONG_LEASE_MS);
    await(has_no_key, SERVER(2), 17000 + GENEROUS_MS, "the release of a late key");
}

/* Two requests may come where the key was also repaired. A request may come at the last moment. */
SERVERS_TEST(a_late_key_is_released)
{
    for (uint32_t i = 0; i < 2; i++) {
        bool repaired = i != 0;

        fixture_client(3);
        lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
        server_freeze(SERVER(2));
        assert_status(fixture_acquire(lock, &held), QUORLOCK_OK);
        if (!repaired) assert_status(fixture_release(lock, &given_back), QUORLOCK_OK);
        server_wipe(SERVER(2));
        if (repaired) {
            await(has_key, SERVER(2), LONG_LEASE_MS, "the repair");
            assert_status(fixture_release(lock, &given_back), QUORLOCK_OK);
            comes_late(held.owner, 1000);
        }
        fixture_await_ready(fixture.client, 3);
        comes_late(held.owner, repaired ? 20000 : 55000);
        fixture_close(fixture.client);
    }
}

/* The key of server 2 was given up, and may still be set there. */
static void give_up_late(void)
{
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    server_freeze(SERVER(2));
    assert_status(fixture_acquire(lock, &held), QUORLOCK_OK);
    assert_status(fixture_release(lock, &given_back), QUORLOCK_OK);
    server_wipe(SERVER(2));
    fixture_await_ready(fixture.client, 3);
    run_ms(3000);
    server_kill(SERVER(0));
}

static void acquire_beside(const char *owner, int status)
{
    struct seen seen;

    server_do(SERVER(2), "SET key %s PX %u", owner, LONG_LEASE_MS);
    assert_status(fixture_acquire(lock, &seen), status);
    if (status == QUORLOCK_OK) assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

/* Rule 2.8: it is released at once where it is in the way of the next acquire. */
SERVERS_TEST(a_late_key_is_in_the_way_of_no_acquire)
{
    struct seen seen;
    long long before;

    give_up_late();
    acquire_beside(held.owner, QUORLOCK_OK);
    fixture_close(fixture.client);
    server_start(SERVER(0));
    /* Nobody adopts what may still be released. */
    give_up_late();
    assert_status(quorlock_lock_adopt(lock, held.owner, on_result, &seen), QUORLOCK_ERR_STATE);
    before = server_lock_calls(SERVER(2));
    acquire_beside("peer", QUORLOCK_ERR_HELD);
    assert_in_range(server_lock_calls(SERVER(2)) - before, 1, 15);
    assert_true(server_holds(SERVER(2), "key", "peer"));
}
