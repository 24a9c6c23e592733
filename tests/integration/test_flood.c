/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More at once than the connections carry: whatever was accepted is carried out, and what is held stays held.
 */
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

#define FLOOD_SMALL 10000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FLOOD FLOOD_SMALL
#else
#define FLOOD 100000
#endif
#define FEW             6000 /* still more releases than a connection takes at first */
#define KEPT            50
#define KEPT_LEASE      24000u
#define KEPT_RENEW      500u
#define FLOOD_MS        120000u
#define PATIENT_MS      5000u
#define LONG_TIMEOUT_MS 25000u
#define STANDSTILL_MS   4000u
#define QUARTER         4 /* of the flood: more than waits on a connection without an answer */

struct flood {
    quorlock_lock **locks;
    int n, granted, refused, released, unreleased, losses;
};

static struct flood flood;

/* Over TLS the servers have more to do, and in the simulated world this computer has. */
static int flood_size(void)
{
    return getenv("QUORLOCK_TEST_TLS") != NULL || fixture.base == NULL ? FLOOD_SMALL : FLOOD;
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    if (result->status == QUORLOCK_OK) {
        flood.granted++;
    } else if (flood.refused++ == 0) {
        print_message("first refusal: %s\n", result->text);
    }
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    if (result->status == QUORLOCK_OK) {
        flood.released++;
    } else if (flood.unreleased++ == 0) {
        print_message("first failed release: %s\n", result->text);
    }
}

static void on_any_loss(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    if (flood.losses++ == 0) print_message("first loss: %s\n", loss->text);
}

static bool all_asked(void *arg)
{
    return flood.granted + flood.refused >= flood.n;
}

static bool all_given_back(void *arg)
{
    return flood.released + flood.unreleased >= flood.n;
}

/* A server on a busy machine must not look faulty. */
static void patient_client(void)
{
    fixture.options.node_timeout_ms = PATIENT_MS;
    fixture_client(3);
}

static quorlock_lock *new_lock(const char *name, int i, uint32_t lease_ms, uint32_t wait_ms, uint32_t renew_ms)
{
    char key[64];
    quorlock_lock *lock;

    snprintf(key, sizeof(key), "%s-%d", name, i);
    lock = fixture_lock(fixture.client, key, LEASE(lease_ms, .wait_ms = wait_ms, .renew_ms = renew_ms));
    quorlock_lock_set_on_lost(lock, on_any_loss, NULL);
    return lock;
}

static void open_flood(int n, uint32_t wait_ms)
{
    flood = (struct flood){.n = n, .locks = calloc((size_t)n, sizeof(quorlock_lock *))};
    assert_non_null(flood.locks);
    for (int i = 0; i < n; i++) flood.locks[i] = new_lock("flood", i, LONG_LEASE_MS, wait_ms, 0);
}

static void close_flood(void)
{
    for (int i = 0; i < flood.n; i++) quorlock_lock_free(flood.locks[i]);
    free(flood.locks);
    flood.locks = NULL;
}

static void acquire_all(void)
{
    uint64_t begun_us = clock_us();

    for (int i = 0; i < flood.n; i++) {
        assert_status(quorlock_lock_acquire(flood.locks[i], on_acquired, NULL), QUORLOCK_OK);
    }
    await(all_asked, NULL, FLOOD_MS, "every acquire");
    print_message("%d acquires in one turn: %d granted, %d not; %llu ms\n", flood.n, flood.granted, flood.refused,
                  (unsigned long long)(clock_us() - begun_us) / 1000);
    assert_int_equal(flood.granted, flood.n);
}

static void release_all(void)
{
    uint64_t begun_us = clock_us();

    for (int i = 0; i < flood.n; i++) {
        assert_status(quorlock_lock_release(flood.locks[i], on_released, NULL), QUORLOCK_OK);
    }
    await(all_given_back, NULL, FLOOD_MS, "every release");
    print_message("%d releases in one turn: %d done, %d not; %llu ms\n", flood.n, flood.released, flood.unreleased,
                  (unsigned long long)(clock_us() - begun_us) / 1000);
    assert_int_equal(flood.released, flood.n);
}

static bool nothing_is_left(void *arg)
{
    uint32_t from = *(const uint32_t *)arg;

    for (uint32_t i = from; i < fixture.cluster.n; i++) {
        if (server_keys(SERVER(i), "flood-") != 0) return false;
    }
    return true;
}

static void expect_nothing_left(uint32_t from)
{
    await(nothing_is_left, &from, FLOOD_MS, "no key of the flood");
}

SERVERS_TEST(all_that_is_asked_in_a_turn_is_done)
{
    quorlock_lock *kept[KEPT];
    struct seen seen;

    patient_client();
    open_flood(flood_size(), 0);
    for (int i = 0; i < KEPT; i++) {
        kept[i] = new_lock("kept", i, KEPT_LEASE, 0, KEPT_RENEW);
        assert_status(fixture_acquire(kept[i], &seen), QUORLOCK_OK);
    }
    acquire_all();
    release_all();
    expect_nothing_left(0);
    /* Locks that were held before are held still. */
    for (int i = 0; i < KEPT; i++) {
        assert_true(quorlock_lock_valid_ms(kept[i]) > 0);
        assert_status(fixture_release(kept[i], &seen), QUORLOCK_OK);
    }
    assert_int_equal(flood.losses, 0);
    close_flood();
}

/* Its room is not waited for: all are granted long before its timeout. */
SERVERS_TEST(a_frozen_node_holds_up_nothing)
{
    uint64_t begun_us;

    fixture.options.node_timeout_ms = LONG_TIMEOUT_MS;
    fixture_client(3);
    open_flood(flood_size() / QUARTER, 0);
    server_freeze(SERVER(0));
    begun_us = clock_us();
    acquire_all();
    assert_true(clock_us() - begun_us < LONG_TIMEOUT_MS * 1000ull);
    release_all();
    expect_nothing_left(1);
    server_thaw(SERVER(0));
    expect_nothing_left(0);
    assert_int_equal(flood.losses, 0);
    close_flood();
}

SERVERS_TEST(waiting_for_room_needs_no_second_try)
{
    patient_client();
    open_flood(5000, 20000);
    acquire_all();
    /* Freed in one turn, all of them are released as well. */
    close_flood();
    expect_nothing_left(0);
}

SERVERS_TEST(closing_gives_everything_back)
{
    patient_client();
    open_flood(FEW, 0);
    acquire_all();
    fixture_close(fixture.client);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(server_keys(SERVER(i), "flood-"), 0);
    }
    free(flood.locks);
}

/* The timeout of a request that waited for room runs from its sending, also where the first requests were sent
 * long before. */
SERVERS_TEST(closing_after_a_standstill_gives_everything_back)
{
    int closed;

    fixture.options.node_timeout_ms = STANDSTILL_MS;
    fixture_client(3);
    open_flood(FEW, 0);
    acquire_all();
    fixture_start_close(fixture.client, &closed);
    cluster_pause_us((STANDSTILL_MS + 100) * UINT64_C(1000));
    await_count(&closed, 1, GENEROUS_MS, "close");
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(server_keys(SERVER(i), "flood-"), 0);
    }
    free(flood.locks);
}

SERVERS_TEST(closing_does_not_wait_for_a_frozen_node)
{
    patient_client();
    open_flood(FEW, 0);
    server_freeze(SERVER(2));
    acquire_all();
    fixture_close(fixture.client);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(server_keys(SERVER(i), "flood-"), 0);
    }
    server_thaw(SERVER(2));
    free(flood.locks);
}

SERVERS_TEST(a_flood_that_is_canceled_leaves_nothing)
{
    fixture_client(3);
    open_flood(FEW, 20000);
    for (int i = 0; i < flood.n; i++) {
        assert_status(quorlock_lock_acquire(flood.locks[i], on_acquired, NULL), QUORLOCK_OK);
    }
    for (int i = 0; i < flood.n; i++) assert_status(quorlock_lock_cancel(flood.locks[i]), QUORLOCK_OK);
    await(all_asked, NULL, FLOOD_MS, "every acquire");
    assert_int_equal(flood.refused, flood.n);
    expect_nothing_left(0);
    close_flood();
}

/* Behind a flood, of one key: the first waits for room at the nodes, and goes before it has asked. */
static void expect_next(uint32_t wait_ms, bool cancels)
{
    quorlock_lock *first = new_lock("queued", 0, LONG_LEASE_MS, wait_ms, 0);
    quorlock_lock *second = new_lock("queued", 0, LONG_LEASE_MS, NO_LIMIT, 0);
    struct seen gone = {0}, granted = {0};

    for (int i = 0; i < flood.n; i++) {
        assert_status(quorlock_lock_acquire(flood.locks[i], on_acquired, NULL), QUORLOCK_OK);
    }
    fixture_start_acquire(first, &gone);
    fixture_start_acquire(second, &granted);
    if (cancels) assert_status(quorlock_lock_cancel(first), QUORLOCK_OK);
    await_status(&gone, cancels ? QUORLOCK_ERR_CANCELED : QUORLOCK_ERR_TIMEDOUT, "the end of the first");
    await_status(&granted, QUORLOCK_OK, "the grant of the second");
    await(all_asked, NULL, FLOOD_MS, "every acquire");
    quorlock_lock_free(first);
    quorlock_lock_free(second);
}

SERVERS_TEST(the_next_asks_when_one_is_canceled_that_waited_for_room)
{
    patient_client();
    open_flood(FEW, 20000);
    expect_next(NO_LIMIT, true);
    close_flood();
}

SERVERS_TEST(the_next_asks_when_one_has_waited_long_enough_for_room)
{
    patient_client();
    open_flood(FEW, 20000);
    expect_next(1, false);
    close_flood();
}
