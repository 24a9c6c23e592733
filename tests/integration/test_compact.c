/* SPDX-License-Identifier: BSD-3-Clause */
/* test_compact.c - held and quiet locks, of which small records are kept: what they do, also without memory */
#include <unistd.h>

#include "api/client.h"
#include "fixture.h"

#define FEW       200
#define MANY      1200 /* more than the blocks that a client keeps for them */
#define LEASE_MS  3000u
#define LONG_MS   20000u
#define QUIET_MS  9000u /* a busy machine grants all before the first is renewed */
#define RENEW_MS  500u
#define ACTIVE_MS 2600u /* some renewals */

struct compact {
    quorlock_lock *locks[MANY];
    int granted, extended, released, dropped, losses;
    int without_votes; /* of the losses */
};

static struct compact compact;
static struct counted counted; /* outlives a failed assertion, as the client does */

static void on_granted(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    compact.granted += result->status == QUORLOCK_OK;
}

static void on_extended(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    /* Without memory for its bytes a request may not have left. */
    if (result->status != QUORLOCK_OK) assert_status(result->status, QUORLOCK_ERR_NOQUORUM);
    compact.extended++;
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    compact.released += result->status == QUORLOCK_OK;
    compact.dropped += result->status == QUORLOCK_ERR_NOQUORUM && result->n_votes == 0;
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    compact.losses++;
    compact.without_votes += loss->n_votes == 0;
    assert_int_equal(quorlock_lock_valid_ms(lock), 0);
    assert_null(quorlock_lock_token(lock));
}

static bool all_answered(void *arg)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    assert_status(quorlock_client_statistics(fixture.client, &statistics), QUORLOCK_OK);
    return statistics.in_flight == 0;
}

static struct expiry_clock shown_clock; /* outlives a failed assertion, too */
static struct expiry shown;

/* So many locks, which all nodes have granted. */
static void hold(int n, uint32_t lease_ms, uint32_t renew_ms)
{
    static struct alloc_hooks hooks;

    compact = (struct compact){.granted = 0};
    counted = (struct counted){.until_failure = -1};
    hooks = counted_hooks(&counted);
    fixture.extras.memory = &hooks;
    fixture.extras.clock = &shown_clock;
    fixture_client(3);
    for (int i = 0; i < n; i++) {
        char key[32];

        snprintf(key, sizeof(key), "compact-%d", i);
        compact.locks[i] =
            fixture_lock(fixture.client, key, LEASE(lease_ms, .renew_ms = renew_ms, .wait_ms = NO_LIMIT));
        quorlock_lock_set_on_lost(compact.locks[i], on_lost, NULL);
        assert_status(quorlock_lock_acquire(compact.locks[i], on_granted, NULL), QUORLOCK_OK);
    }
    await_count(&compact.granted, n, GENEROUS_MS, "all locks are granted");
    await(all_answered, NULL, GENEROUS_MS, "the late votes are there");
}

static void memory_is_out(void)
{
    counted.until_failure = 0;
    counted.for_good = true;
}

static void memory_is_back(void)
{
    counted.until_failure = -1;
    counted.for_good = false;
}

SERVERS_TEST(compact_locks_are_renewed_and_released_without_memory)
{
    hold(FEW, LONG_MS, RENEW_MS);
    memory_is_out();
    run_ms(ACTIVE_MS);
    assert_int_equal(compact.losses, 0);
    for (int i = 0; i < FEW; i++) assert_true(quorlock_lock_valid_ms(compact.locks[i]) > 0);
    for (int i = 0; i < FEW; i++)
        assert_status(quorlock_lock_release(compact.locks[i], on_released, NULL), QUORLOCK_OK);
    await_count(&compact.released, FEW, GENEROUS_MS, "all are released");
    memory_is_back();
}

SERVERS_TEST(a_compact_lock_has_the_same_token)
{
    struct seen seen = {.calls = 0};
    char token[TEXT_SIZE];

    hold(1, LONG_MS, RENEW_MS);
    snprintf(token, sizeof(token), "%s", quorlock_lock_token(compact.locks[0]));
    await_holders("compact-0", token, 3);
    run_ms(ACTIVE_MS);
    assert_string_equal(quorlock_lock_token(compact.locks[0]), token);
    assert_status(quorlock_lock_acquire(compact.locks[0], on_granted, NULL), QUORLOCK_ERR_STATE);
    assert_status(fixture_extend(compact.locks[0], 2 * LONG_MS, &seen), QUORLOCK_OK);
    assert_true(seen.result.granted >= 2);
    assert_true(quorlock_lock_valid_ms(compact.locks[0]) > LONG_MS);
    assert_status(fixture_release(compact.locks[0], &seen), QUORLOCK_OK);
    await_free("compact-0");
}

SERVERS_TEST(more_at_once_than_the_blocks_that_are_kept)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};
    int refused = 0;
    quorlock_lock *dropped = NULL;

    hold(MANY, LONG_MS, 0);
    memory_is_out();
    for (int i = 0; i < MANY; i++) {
        int status = quorlock_lock_extend(compact.locks[i], LONG_MS, on_extended, NULL);

        if (status == QUORLOCK_OK) continue;
        assert_status(status, QUORLOCK_ERR_NOMEM);
        assert_true(quorlock_lock_valid_ms(compact.locks[i]) > 0);
        refused++;
        if (refused == 1) quorlock_lock_free(compact.locks[i]);
        if (refused == 2) dropped = compact.locks[i];
    }
    assert_true(refused > 1 && refused < MANY);
    assert_status(quorlock_lock_release(dropped, on_released, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_lock_valid_ms(dropped), 0);
    assert_status(quorlock_lock_acquire(dropped, on_granted, NULL), QUORLOCK_ERR_NOMEM);
    await_count(&compact.dropped, 1, GENEROUS_MS, "a release without memory ends");
    await_count(&compact.extended, MANY - refused, GENEROUS_MS, "all other extends end");
    assert_status(quorlock_lock_release(compact.locks[MANY - 1], on_released, NULL), QUORLOCK_OK);
    await_count(&compact.released, 1, GENEROUS_MS, "one is released");
    memory_is_back();
    assert_int_equal(compact.losses, 0);
    /* One is freed, one is dropped and one is released. */
    assert_status(quorlock_client_statistics(fixture.client, &statistics), QUORLOCK_OK);
    assert_int_equal(statistics.held, MANY - 3);
}

/* What is refused needs no block for longer than the call. */
SERVERS_TEST(refused_extends_take_no_memory)
{
    struct seen seen = {.calls = 0};

    hold(MANY, LONG_MS, 0);
    memory_is_out();
    for (int i = 0; i < MANY; i++) {
        assert_status(quorlock_lock_extend(compact.locks[i], LONG_MS - 1, on_extended, NULL), QUORLOCK_ERR_INVAL);
        assert_non_null(strstr(quorlock_client_error(fixture.client), "the lease is 20000, and is never shortened"));
    }
    assert_status(fixture_extend(compact.locks[0], 0, &seen), QUORLOCK_OK);
    memory_is_back();
    assert_int_equal(compact.losses, 0);
}

SERVERS_TEST(losses_are_told_without_memory)
{
    hold(MANY, QUIET_MS, 0);
    for (int i = 0; i < 3; i++) server_freeze(SERVER(i));
    memory_is_out();
    /* This process stalls: then all are over at once. */
    cluster_pause_us(QUIET_MS * UINT64_C(1000));
    await_count(&compact.losses, MANY, GENEROUS_MS, "all losses are told");
    assert_true(compact.without_votes > 0);
    assert_true(compact.without_votes < MANY);
    run_ms(100);
    assert_int_equal(compact.losses, MANY);
    for (int i = 0; i < 3; i++) server_thaw(SERVER(i));
    memory_is_back();
    /* Each can be taken again. */
    compact.granted = 0;
    for (int i = 0; i < MANY; i++)
        assert_status(quorlock_lock_acquire(compact.locks[i], on_granted, NULL), QUORLOCK_OK);
    await_count(&compact.granted, MANY, GENEROUS_MS, "all are granted again");
}

/* ---- without room at the nodes ---- */

#define FEWER      100 /* more than the least that a slow node is sent at once */
#define SLOW_MS    200u
#define TIMEOUT_MS 400u

/* While answers are slow the client sends less and less at once: in the end 32 requests to a node. */
static void narrow_all_rooms(void)
{
    struct seen seen;

    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 3; k++) server_freeze(SERVER(k));
        fixture_start_extend(compact.locks[0], LONG_LEASE_MS, &seen);
        run_ms(SLOW_MS);
        for (int k = 0; k < 3; k++) server_thaw(SERVER(k));
        await_count(&seen.calls, 1, GENEROUS_MS, "a slow extend");
        /* Else the slow way would become the usual one. */
        (void)fixture_extend(compact.locks[0], LONG_LEASE_MS, &seen);
        await(all_answered, NULL, GENEROUS_MS, "all is quiet");
    }
}

static uint64_t renewals(void)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};

    assert_status(quorlock_client_statistics(fixture.client, &statistics), QUORLOCK_OK);
    return statistics.renewals;
}

static bool all_renewed(void *arg)
{
    return renewals() >= *(uint64_t *)arg;
}

static void await_rounds(void)
{
    uint64_t wanted = renewals() + FEWER - 1;

    /* All are due together. */
    cluster_pause_us(UINT64_C(1000) * QUIET_MS / 2);
    await(all_renewed, &wanted, GENEROUS_MS, "each is renewed");
    assert_int_equal(compact.losses, 0);
}

SERVERS_TEST(compact_locks_wait_for_room_and_are_renewed)
{
    fixture.options.node_timeout_ms = TIMEOUT_MS;
    hold(FEWER, LONG_MS, QUIET_MS / 2);
    narrow_all_rooms();
    await_rounds();
    /* Without memory they wait on, and are tried again. */
    memory_is_out();
    await_rounds();
    memory_is_back();
    for (int i = 0; i < FEWER; i++) assert_true(quorlock_lock_valid_ms(compact.locks[i]) > LONG_MS / 2);
}

static bool all_repaired(void *arg)
{
    return server_keys(SERVER(2), "compact-") == FEWER;
}

/* Long before a renewal is due. */
SERVERS_TEST(compact_locks_wait_for_room_and_are_repaired)
{
    fixture.options.node_timeout_ms = TIMEOUT_MS;
    hold(FEWER, LONG_LEASE_MS, LONG_LEASE_MS / 2);
    narrow_all_rooms();
    server_wipe(SERVER(2));
    fixture_await_ready(fixture.client, 3);
    cluster_pause_us(1500000);
    await(all_repaired, NULL, LONG_LEASE_MS / 4, "each is repaired");
    assert_int_equal(compact.losses, 0);
}

/* ---- for other threads ---- */

/* A reader never finds more than the loop's thread. */
static void expect_shown(const quorlock_lock *lock)
{
    struct system system = host_loop_system(NULL);
    uint32_t valid_ms = quorlock_lock_valid_ms(lock);
    uint64_t left_ms = expiry_left_us(&shown, &shown_clock, &system) / 1000;

    assert_in_range(left_ms, valid_ms < 1000 ? 0 : valid_ms - 1000, valid_ms);
}

SERVERS_TEST(other_threads_see_the_same_validity)
{
    static struct seen seen;
    struct seen_loss loss = {.calls = 0};
    quorlock_lock *lock, *second;

    hold(1, LONG_MS, RENEW_MS);
    lock = compact.locks[0];
    client_show_lock(lock, &shown);
    assert_true(quorlock_lock_valid_ms(lock) > 0);
    expect_shown(lock);
    run_ms(ACTIVE_MS);
    expect_shown(lock);
    assert_status(fixture_extend(lock, 2 * LONG_MS, &seen), QUORLOCK_OK);
    assert_true(quorlock_lock_valid_ms(lock) > LONG_MS);
    expect_shown(lock);
    fixture_start_release(lock, &seen);
    expect_shown(lock);
    await_status(&seen, QUORLOCK_OK, "its release");
    fixture_start_acquire(lock, &seen);
    await_status(&seen, QUORLOCK_OK, "once more");
    expect_shown(lock);
    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    await_holders("compact-0", NULL, 3);
    drop_by_hand("compact-0");
    await_count(&loss.calls, 1, GENEROUS_MS, "its loss");
    expect_shown(lock);
    quorlock_lock_free(lock);
    /* A hold that an owner shares. */
    lock = fixture_lock(fixture.client, "shared", LEASE(LONG_MS, .owner = "me"));
    second = fixture_lock(fixture.client, "shared", LEASE(LONG_MS, .owner = "me"));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    client_show_lock(second, &shown);
    expect_shown(second);
    assert_status(fixture_acquire(second, &seen), QUORLOCK_OK);
    expect_shown(second);
    assert_status(fixture_extend(lock, 2 * LONG_MS, &seen), QUORLOCK_OK);
    expect_shown(second);
    quorlock_lock_free(second);
    assert_int_equal(atomic_load(&shown.valid_until_us), 0);
}
