/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_redisson_wire.c - our hash locks on real servers, beside what others write there by hand
 */
#include "fixture.h"

#include <hiredis/hiredis.h>

#include "redisson_peer.h"

#define KEY "job"

static quorlock_lock *redisson_lock(uint32_t lease_ms)
{
    return fixture_lock(fixture.client, KEY, LEASE(lease_ms));
}

static quorlock_lock *redisson_held(uint32_t lease_ms, char *ret_owner)
{
    quorlock_lock *lock = redisson_lock(lease_ms);
    struct seen seen;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    if (ret_owner != NULL) snprintf(ret_owner, TEXT_SIZE, "%s", seen.owner);
    return lock;
}

static bool whole(void *owner)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (peer_counts(SERVER(i), KEY, owner) != 1) return false;
    }
    return true;
}

/* An expiry is only ever made later, and a field that is gone comes back in a repair. */
REDISSON_TEST(expiry_and_repair)
{
    char owner[TEXT_SIZE];
    quorlock_lock *lock = redisson_held(3000, owner);

    await(whole, owner, GENEROUS_MS, "the field on all servers");
    server_do(SERVER(0), "PEXPIRE " KEY " 90000");
    server_do(SERVER(1), "DEL " KEY);
    await(whole, owner, GENEROUS_MS, "the repair");
    assert_in_range(server_pttl(SERVER(0), KEY), 3001, 90000);
    assert_in_range(server_pttl(SERVER(1), KEY), 1, 3000);
    assert_true(quorlock_lock_valid_ms(lock) > 0);
}

/* ---- notices ---- */

static void listen_all(struct listener *ears[3], const char *channel)
{
    for (uint32_t i = 0; i < 3; i++) ears[i] = server_listen(SERVER(i), channel);
}

static void hear_all(struct listener *ears[3])
{
    char said[TEXT_SIZE];

    for (uint32_t i = 0; i < 3; i++) {
        listener_next(ears[i], NULL, said, sizeof(said));
        assert_string_equal(said, "0");
    }
}

static void deafen_all(struct listener *ears[3])
{
    for (uint32_t i = 0; i < 3; i++) listener_close(ears[i]);
}

REDISSON_TEST(our_release_is_published)
{
    static const struct {
        const char *key, *channel;
    } rows[] = {{"job", "redisson_lock__channel:{job}"},
                {"{shard}:job", "redisson_lock__channel:{shard}:job"},
                {"odd{", "redisson_lock__channel:odd{"},
                {"odd}", "redisson_lock__channel:{odd}}"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        quorlock_lock *lock = fixture_lock(fixture.client, rows[i].key, LEASE(LONG_LEASE_MS));
        struct listener *ears[3];
        struct seen seen;

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        await_holders(rows[i].key, NULL, 3);
        listen_all(ears, rows[i].channel);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_free(rows[i].key);
        hear_all(ears);
        deafen_all(ears);
        quorlock_lock_free(lock);
    }
}

/* A hash too large for one reply is not a lock of ours: refused, and one of its fields is named. */
REDISSON_TEST(large_hash)
{
    quorlock_lock *lock = redisson_lock(20000);
    struct seen seen;
    uint32_t named = 0;

    for (uint32_t i = 0; i < 3; i++) {
        server_do(SERVER(i), "EVAL %s 1 " KEY,
                  "for i = 1, 3000 do redis.call('HSET', KEYS[1], 'f' .. i, i) end "
                  "for i = 1, 2990 do redis.call('HDEL', KEYS[1], 'f' .. i) end");
    }
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    /* The result needs any two answers. */
    for (uint32_t i = 0; i < 3; i++) named += seen.votes[i].holder[0] == 'f' && seen.votes[i].ttl_ms == -1;
    assert_in_range(named, 2, 3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(peer_fields(SERVER(i), KEY), 10);
}

/* ---- foreign types ---- */

/* Ours became a string meanwhile: it is left alone, and the lock is lost. */
REDISSON_TEST(turned_foreign)
{
    quorlock_lock *lock = redisson_held(3000, NULL);
    struct seen_loss loss = {0};

    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    await_holders(KEY, NULL, 3);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SET " KEY " somebody");
    await_count(&loss.calls, 1, GENEROUS_MS, "the loss");
    for (uint32_t i = 0; i < 3; i++) assert_true(server_holds(SERVER(i), KEY, "somebody"));
}

/* ---- guard, fencing ---- */

REDISSON_TEST(guard_and_fence)
{
    static const int guards[] = {QUORLOCK_GUARD_CONNECTION, QUORLOCK_GUARD_STRICT};
    uint64_t last = 0;

    fixture_bootstrap();
    for (size_t i = 0; i < 2; i++) {
        struct seen seen;
        quorlock_client *client;
        quorlock_lock *lock;

        fixture.options.guard = guards[i];
        client = fixture_new_client(3);
        lock = fixture_lock(client, KEY, LEASE(20000, .fencing = 1));
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_true(seen.result.fence > last);
        last = seen.result.fence;
        assert_status(fixture_extend(lock, 30000, &seen), QUORLOCK_OK);
        await_holders(KEY, NULL, 3);
        for (uint32_t k = 0; k < 3; k++) assert_true(server_pttl(SERVER(k), "quorlock:fence:" KEY) > 60000);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_free(KEY);
        /* The acquire itself sees a lost memory: the script checks the guard in any mode. */
        for (uint32_t k = 0; k < 3; k++) server_do(SERVER(k), "FLUSHALL");
        assert_int_not_equal(fixture_acquire(lock, &seen), QUORLOCK_OK);
        fixture_close(client);
        for (uint32_t k = 0; k < 3; k++) server_do(SERVER(k), "FLUSHALL");
        fixture_bootstrap();
    }
}
