/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lifecycle.c - the whole life of locks on three healthy servers
 *
 * Also run under valgrind, so it is kept short.
 */
#include "fixture.h"

#include <stdlib.h>
#include <time.h>

/* The Qth largest remaining time of three; every server has the key. */
static int64_t quorum_pttl(const char *key)
{
    int64_t left[3];

    for (int i = 0; i < 3; i++) left[i] = server_pttl(SERVER(i), key);
    for (int i = 0; i < 3; i++) {
        for (int k = i + 1; k < 3; k++) {
            int64_t larger = left[k] > left[i] ? left[k] : left[i];

            left[k] = left[k] > left[i] ? left[i] : left[k];
            left[i] = larger;
        }
    }
    return left[1];
}

/* The validity is never more than what the quorum's servers still keep. */
static void check_validity(quorlock_lock *lock, const char *key, uint32_t lease_ms)
{
    uint64_t asked_us = clock_us();
    uint32_t valid_ms = quorlock_lock_valid_ms(lock);
    int64_t left_ms = quorum_pttl(key);
    int64_t passed_ms = (int64_t)((clock_us() - asked_us) / 1000) + 1;

    assert_true(valid_ms > 0);
    assert_true(valid_ms < lease_ms);
    assert_true(valid_ms <= left_ms + passed_ms);
}

SERVERS_TEST(one_whole_life)
{
    struct seen seen;
    struct seen_loss loss = {0};
    quorlock_lock *lock;

    fixture.options.key_prefix = "app:";
    fixture.options.owner_label = "tester:7";
    fixture_client(3);
    lock = fixture_lock(fixture.client, "job", LEASE(5000, .renew_ms = 250));
    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_int_equal(quorlock_lock_valid_ms(lock), 0);
    assert_null(quorlock_lock_token(lock));

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.n_votes, 3);
    assert_true(seen.result.granted >= 2);
    assert_int_equal(seen.result.rounds, 1);
    assert_true(seen.result.valid_ms > 0 && seen.result.valid_ms <= 5000 - 52);
    assert_non_null(seen.result.text);
    assert_string_equal(seen.owner, quorlock_lock_token(lock));
    assert_ptr_equal(strstr(seen.owner, "tester:7"), seen.owner);
    assert_int_equal(quorlock_lock_fence(lock), 0);
    for (int i = 0; i < 3; i++) {
        bool granted = seen.votes[i].outcome == QUORLOCK_VOTE_GRANTED;

        assert_string_equal(seen.votes[i].node, fixture.cluster.addresses[i]);
        assert_int_equal(seen.votes[i].latency_us > 0, granted);
        assert_true(seen.votes[i].latency_us / 1000 <= seen.result.elapsed_ms);
    }
    await_holders("app:job", seen.owner, 3);

    /* Several renewals. */
    while (clock_us() < seen.at_us + 1200000) {
        run_ms(100);
        check_validity(lock, "app:job", 5000);
    }
    assert_int_equal(loss.calls, 0);
    assert_int_equal(holders("app:job", quorlock_lock_token(lock)), 3);

    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_int_equal(quorlock_lock_valid_ms(lock), 0);
    assert_null(quorlock_lock_token(lock));
    await_free("app:job");
    assert_int_equal(loss.calls, 0);
}

static bool has_renewed(void *arg)
{
    struct quorlock_statistics now = {.size = sizeof(now)};

    assert_status(quorlock_client_statistics(fixture.client, &now), QUORLOCK_OK);
    return now.renewals >= *(const uint64_t *)arg;
}

/* Whoever has the right may take the scripts from a server at any time. */
SERVERS_TEST(a_renewal_brings_the_scripts_that_a_server_has_lost)
{
    struct seen seen;
    quorlock_lock *lock;

    fixture.options.node_timeout_ms = 2000; /* the machine may be busy */
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(60000, .renew_ms = 50));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint64_t renewals = 2; renewals <= 8; renewals += 2) {
        await(has_renewed, &renewals, GENEROUS_MS, "renewals");
        for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    }
    assert_int_equal(logged("NOSCRIPT"), 0);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free("key");
}

SERVERS_TEST(extends_longer_but_never_shorter)
{
    struct seen seen;
    quorlock_lock *lock;

    fixture.options.max_lease_ms = 60000;
    fixture.options.node_timeout_ms = 2000; /* the machine may be busy */
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(10000));
    assert_status(quorlock_lock_extend(lock, 0, on_result, &seen), QUORLOCK_ERR_STATE);
    assert_contains(quorlock_client_error(fixture.client), ": it is not held");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);

    assert_status(fixture_extend(lock, 60000, &seen), QUORLOCK_OK);
    assert_true(quorlock_lock_valid_ms(lock) > 30000);
    assert_true(quorum_pttl("key") > 30000);
    assert_status(quorlock_lock_extend(lock, 10000, on_result, &seen), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "10000");
    assert_status(quorlock_lock_extend(lock, 60001, on_result, &seen), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "60001");
    assert_status(fixture_extend(lock, 0, &seen), QUORLOCK_OK);
    assert_true(quorum_pttl("key") > 30000);

    /* A canceled extend leaves the lock held. */
    fixture_start_extend(lock, 0, &seen);
    assert_status(quorlock_lock_release(lock, on_result, &seen), QUORLOCK_ERR_BUSY);
    assert_status(quorlock_lock_cancel(lock), QUORLOCK_OK);
    await_status(&seen, QUORLOCK_ERR_CANCELED, "canceled extend");
    assert_true(quorlock_lock_valid_ms(lock) > 0);
    await_holders("key", quorlock_lock_token(lock), 3); /* one may execute the acquire only now */

    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free("key");
}

CLIENT_TEST(calls_in_the_wrong_state_are_refused)
{
    struct seen seen, other;
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    const char *key = "key";

    assert_status(quorlock_lock_new(NULL, fixture.client, &key, 1, NULL), QUORLOCK_ERR_INVAL);
    assert_status(quorlock_lock_cancel(NULL), QUORLOCK_ERR_INVAL);
    assert_status(quorlock_lock_release(lock, on_result, &other), QUORLOCK_ERR_STATE);
    assert_status(quorlock_lock_cancel(lock), QUORLOCK_ERR_STATE);
    fixture_start_acquire(lock, &seen);
    assert_status(quorlock_lock_acquire(lock, on_result, &other), QUORLOCK_ERR_BUSY);
    assert_status(quorlock_lock_extend(lock, 0, on_result, &other), QUORLOCK_ERR_BUSY);
    assert_status(quorlock_lock_release(lock, on_result, &other), QUORLOCK_ERR_BUSY);
    assert_true(strlen(quorlock_client_error(fixture.client)) > 0);
    await_status(&seen, QUORLOCK_OK, "acquire");
    assert_status(quorlock_lock_acquire(lock, on_result, &other), QUORLOCK_ERR_STATE);
    assert_status(quorlock_lock_cancel(lock), QUORLOCK_ERR_STATE);
    fixture_start_release(lock, &seen);
    assert_status(quorlock_lock_release(lock, on_result, &other), QUORLOCK_ERR_BUSY);
    await_count(&seen.calls, 1, GENEROUS_MS, "release");
    assert_int_equal(seen.calls, 1);
    await_free("key");
}

/* The same handle tries once, waits for a time, and waits without a limit, also with a claim of an earlier hold. */
CLIENT_TEST(sets_how_long_the_next_acquire_waits)
{
    struct seen seen, other;
    quorlock_lock *holder = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(quorlock_lock_set_wait_ms(lock, 1), QUORLOCK_ERR_STATE);
    assert_contains(quorlock_client_error(fixture.client), "held already");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(holder, &other), QUORLOCK_OK);

    assert_status(quorlock_lock_set_wait_ms(lock, QUORLOCK_TRY_ONCE), QUORLOCK_OK);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    assert_status(quorlock_lock_set_wait_ms(lock, 50), QUORLOCK_OK);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    assert_true(seen.result.elapsed_ms >= 50);

    assert_status(quorlock_lock_set_wait_ms(lock, 0), QUORLOCK_OK);
    fixture_start_acquire(lock, &seen);
    assert_status(quorlock_lock_set_wait_ms(lock, 1), QUORLOCK_ERR_BUSY);
    run_ms(200);
    assert_int_equal(seen.calls, 0);
    assert_status(fixture_release(holder, &other), QUORLOCK_OK);
    await_status(&seen, QUORLOCK_OK, "acquire without a limit");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free("key");
}

SERVERS_TEST(close_waits_for_its_releases)
{
    struct seen seen;
    int closed = 0;
    quorlock_lock *lock;

    fixture.options.node_timeout_ms = GENEROUS_MS;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    server_freeze(SERVER(0));
    fixture_start_close(fixture.client, &closed);
    run_ms(100);
    assert_int_equal(closed, 0);
    server_thaw(SERVER(0));
    await_count(&closed, 1, GENEROUS_MS, "close");
    assert_int_equal(holders("key", NULL), 0);
}

SERVERS_TEST(closes_before_the_loop_ever_ran)
{
    quorlock_client *client = fixture_new_client(0);
    quorlock_lock *lock = fixture_lock(client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen;

    fixture_start_acquire(lock, &seen);
    fixture_close(client);
    assert_int_equal(seen.calls, 1);
    assert_status(seen.result.status, QUORLOCK_ERR_CLOSED);
    assert_int_equal(holders("key", NULL), 0);
}

TEST(names_and_version)
{
    const int number = QUORLOCK_VERSION_NUMBER;
    char text[sizeof("1000.1000.1000")];

    snprintf(text, sizeof(text), "%d.%d.%d", number / 1000000, number / 1000 % 1000, number % 1000);
    assert_string_equal(text, QUORLOCK_VERSION);
    assert_string_equal(quorlock_version(), QUORLOCK_VERSION);
    assert_string_equal(quorlock_status_name(QUORLOCK_ERR_HELD), "HELD");
    assert_string_equal(quorlock_status_name(QUORLOCK_OK), "OK");
    assert_string_equal(quorlock_status_name(1), "UNKNOWN");
    assert_string_equal(quorlock_status_name(-1000), "UNKNOWN");
    assert_non_null(quorlock_status_text(-1000));
    assert_string_equal(quorlock_status_text(QUORLOCK_ERR_LOST), "the lock was lost");
}

static uint64_t fence_of(const char *key, bool fencing)
{
    struct seen seen = {0};

    assert_status(fixture_acquire(fixture_lock(fixture.client, key, LEASE(20000, .fencing = fencing)), &seen),
                  QUORLOCK_OK);
    return seen.result.fence;
}

/* A client that knows of a token above the wall clock goes on above it, as far as nodes let it: half a max
 * lease. Grants in between without a token, or with a lower one, do not change that. */
CLIENT_TEST(the_highest_token_is_kept_in_mind)
{
    const uint64_t highest = (uint64_t)1 << 52;
    struct timespec now;
    uint64_t ahead_us;

    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SET quorlock:fence:high 4503599627370496");
    clock_gettime(CLOCK_REALTIME, &now);
    ahead_us = ((uint64_t)now.tv_sec + 10) * 1000000u;
    assert_int_equal(fence_of("high", 1), highest + 1);
    assert_int_equal(fence_of("none", 0), 0);
    assert_true(fence_of("low", 1) >= ahead_us);
    assert_true(fence_of("lower", 1) >= ahead_us);
}

SERVERS_TEST(a_password_beside_the_addresses)
{
    static const char secret[] = "se%63ret/@";
    char user[] = "default", password[sizeof(secret)];
    quorlock_lock *lock;
    struct seen seen = {0};

    for (uint32_t i = 0; i < 3; i++) {
        SERVER(i)->password = secret;
        server_restart(SERVER(i));
    }
    memcpy(password, secret, sizeof(secret));
    fixture.options.user = user;
    fixture.options.password = password;
    fixture_client(3);
    /* They were copied: the nodes are connected to again. */
    memset(user, 'x', sizeof(user) - 1);
    memset(password, 'x', sizeof(password) - 1);
    for (uint32_t i = 0; i < 3; i++) server_restart(SERVER(i));
    lock = fixture_lock(fixture.client, "key", LEASE(10000, .wait_ms = GENEROUS_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
}
