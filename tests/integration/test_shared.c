/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shared.c - locks that are shared, on three real servers
 */
#include "fixture.h"

#define SENTINEL "quorlock:readers"
#define SHARED(...)                                                                                                    \
    &(struct quorlock_options)                                                                                         \
    {                                                                                                                  \
        .size = sizeof(struct quorlock_options), .shared = QUORLOCK_SHARED_ALL, .lease_ms = __VA_ARGS__                \
    }

static quorlock *reader(const char *key, uint32_t wait_ms)
{
    return fixture_lock(fixture.client, key, SHARED(30000, .wait_ms = wait_ms));
}

static quorlock *writer(const char *key, uint32_t wait_ms)
{
    return fixture_lock(fixture.client, key, LEASE(30000, .wait_ms = wait_ms));
}

/* ---- one client ---- */

CLIENT_TEST(readers_hold_together_and_keep_a_writer_out)
{
    quorlock *one = reader("k", 0), *two = reader("k", 0), *w = writer("k", 0);
    struct seen seen = {0};

    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &seen), QUORLOCK_OK);
    assert_int_equal(holders("k", SENTINEL), 3);
    assert_status(fixture_acquire(w, &seen), QUORLOCK_HELD);
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.expired, 0);
    assert_status(fixture_acquire(w, &seen), QUORLOCK_HELD);
    assert_status(fixture_release(two, &seen), QUORLOCK_OK);
    await_free("k");
    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(one, &seen), QUORLOCK_HELD);
    assert_status(fixture_release(w, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
}
