/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c - what a lock took is given back when it is freed, and not only when its client is closed */
#include "fixture.h"

#define ROUNDS 130
#define WARM   90 /* rounds after which all blocks that are kept for the next use are there */
#define HOLD   LEASE(LONG_LEASE_MS)

static struct counted counted; /* outlives a failed assertion, as the client does */
static struct seen seen;

static quorlock_lock *lock_named(const char *key, const char *owner)
{
    return fixture_lock(fixture.client, key, LEASE(LONG_LEASE_MS, .owner = owner, .wait_ms = NO_LIMIT));
}

static void only_made(void)
{
    quorlock_lock_free(fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .fencing = 1)));
}

static void released(void)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .fencing = 1));

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(fixture_extend(lock, LONG_LEASE_MS, &seen), QUORLOCK_OK);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    quorlock_lock_free(lock);
}

static void freed_while_it_is_held(void)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", HOLD);

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    quorlock_lock_free(lock);
}

static void freed_while_it_is_asked_for(void)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", HOLD);

    fixture_start_acquire(lock, &seen);
    quorlock_lock_free(lock);
    await_count(&seen.calls, 1, GENEROUS_MS, "its end");
}

static void held_twice(void)
{
    quorlock_lock *first = lock_named("key", "me"), *second = lock_named("key", "me");

    assert_status(fixture_acquire(first, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(second, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(first, &seen), QUORLOCK_OK);
    assert_status(fixture_release(first, &seen), QUORLOCK_OK);
    quorlock_lock_free(first);
    assert_status(fixture_release(second, &seen), QUORLOCK_OK);
    quorlock_lock_free(second);
}

static void refused(void)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "taken", HOLD);

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    quorlock_lock_free(lock);
}

static void canceled(void)
{
    quorlock_lock *first = lock_named("taken", NULL), *second = lock_named("taken", NULL);
    struct seen other;

    fixture_start_acquire(first, &seen);
    fixture_start_acquire(second, &other);
    run_ms(10);
    assert_status(quorlock_lock_cancel(first), QUORLOCK_OK);
    await_status(&seen, QUORLOCK_ERR_CANCELED, "the end of the first");
    assert_status(quorlock_lock_cancel(second), QUORLOCK_OK);
    await_status(&other, QUORLOCK_ERR_CANCELED, "the end of the second");
    quorlock_lock_free(first);
    quorlock_lock_free(second);
}

static void detached(void)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", HOLD);
    const char *token;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(quorlock_lock_detach(lock, &token, NULL, NULL), QUORLOCK_OK);
    quorlock_lock_free(lock);
    drop_by_hand("key");
}

static bool is_quiet(void *arg)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    assert_status(quorlock_client_statistics(fixture.client, &statistics), QUORLOCK_OK);
    return statistics.in_flight == 0 && statistics.held == 0;
}

static void expect_given_back(void (*round)(void))
{
    long warm = 0;

    for (int i = 0; i < ROUNDS; i++) {
        seen = (struct seen){.calls = 0};
        round();
        await(is_quiet, NULL, GENEROUS_MS, "all is answered");
        if (i == WARM) warm = counted.out;
    }
    /* One block that each round leaves behind would be more. */
    assert_in_range(counted.out, 0, warm + (ROUNDS - WARM) / 2);
}

#define GIVEN_BACK(round)                                                                                              \
    SERVERS_TEST(all_is_given_back_when_##round)                                                                       \
    {                                                                                                                  \
        static struct alloc_hooks hooks;                                                                               \
        counted = (struct counted){.until_failure = -1};                                                               \
        hooks = counted_hooks(&counted);                                                                               \
        fixture.extras.memory = &hooks;                                                                                \
        fixture_client(3);                                                                                             \
        take_by_hand(3, "taken", "another");                                                                           \
        expect_given_back(round);                                                                                      \
    }
GIVEN_BACK(only_made)
GIVEN_BACK(released)
GIVEN_BACK(freed_while_it_is_held)
GIVEN_BACK(freed_while_it_is_asked_for)
GIVEN_BACK(held_twice)
GIVEN_BACK(refused)
GIVEN_BACK(canceled)
GIVEN_BACK(detached)
