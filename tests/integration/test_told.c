/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_told.c - a holder learns at once what other clients do to its keys, because the servers tell it
 *
 * The leases are so long that no renewal comes within the limit of a wait, but for the first one.
 */
#include "fixture.h"

struct told {
    quorlock_lock *lock;
    struct seen seen;
    struct seen_loss loss;
};

/* A client that keeps a guard, which was written before. */
static void guarded_client(int dialect)
{
    fixture.options.dialect = dialect;
    fixture_bootstrap();
    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    fixture_client(3);
}

static void hold(struct told *told, const char *key, const struct quorlock_lock_options *options)
{
    memset(told, 0, sizeof(*told));
    told->lock = fixture_lock(fixture.client, key, options);
    quorlock_lock_set_on_lost(told->lock, on_loss, &told->loss);
    assert_status(fixture_acquire(told->lock, &told->seen), QUORLOCK_OK);
    await_holders(key, NULL, 3);
}

static uint64_t renewals(void)
{
    struct quorlock_statistics now = {.size = sizeof(now)};

    assert_status(quorlock_client_statistics(fixture.client, &now), QUORLOCK_OK);
    return now.renewals;
}

static bool has_renewed(void *arg)
{
    return renewals() >= *(const uint64_t *)arg;
}

static void await_renewals(uint64_t n)
{
    await(has_renewed, &n, GENEROUS_MS, "renewals");
}

static bool nothing_is_in_flight(void *unused)
{
    struct quorlock_statistics now = {.size = sizeof(now)};

    (void)unused;
    assert_status(quorlock_client_statistics(fixture.client, &now), QUORLOCK_OK);
    for (size_t i = 0; i < now.n_nodes; i++) {
        if (now.nodes[i]->in_flight > 0) return false;
    }
    return true;
}

/* A server tells of what comes after its read of the key, which is behind the renewal. */
static void await_reads(void)
{
    await(nothing_is_in_flight, NULL, GENEROUS_MS, "the reads behind the renewals");
}

static void await_lost(struct told *told)
{
    await_count(&told->loss.calls, 1, GENEROUS_MS, "the loss");
    assert_int_equal(told->loss.loss.reason, QUORLOCK_LOSS_GONE);
    assert_status(fixture_release(told->lock, &told->seen), QUORLOCK_ERR_LOST);
    quorlock_lock_free(told->lock);
}

enum way { DELETED, OVERWRITTEN, BROKEN, WAYS };

static void take_away(const char *key, enum way way)
{
    struct seen_report report;

    if (way == BROKEN) fixture_break(fixture.client, key, &report);
    for (uint32_t i = 0; i < 3 && way != BROKEN; i++) {
        if (way == DELETED) server_do(SERVER(i), "DEL %s", key);
        if (way == OVERWRITTEN) server_do(SERVER(i), "SET %s other PX 1000", key);
    }
}

static void taken_away(int dialect)
{
    const struct quorlock_lock_options options[] = {*LEASE(LONG_LEASE_MS), *LEASE(LONG_LEASE_MS, .fencing = 1),
                                                    *LEASE(LONG_LEASE_MS, .owner = "owner")};
    struct told told;

    guarded_client(dialect);
    for (size_t i = 0; i < LENGTH(options); i++) {
        for (enum way way = 0; way < WAYS; way++) {
            hold(&told, "key", &options[i]);
            assert_status(fixture_extend(told.lock, 0, &told.seen), QUORLOCK_OK);
            await_reads();
            take_away("key", way);
            await_lost(&told);
            drop_by_hand("key");
        }
    }
}

SERVERS_TEST(a_key_that_is_taken_away_is_told)
{
    taken_away(QUORLOCK_DIALECT_PLAIN);
}

SERVERS_TEST(so_is_one_of_the_redisson_dialect)
{
    taken_away(QUORLOCK_DIALECT_REDISSON);
}

/* Without a call of the owner. */
SERVERS_TEST(the_first_renewal_comes_early)
{
    struct told told;

    guarded_client(QUORLOCK_DIALECT_PLAIN);
    hold(&told, "key", LEASE(LONG_LEASE_MS));
    await_renewals(1);
    await_reads();
    take_away("key", DELETED);
    await_lost(&told);
}

/* The owner that leaves is not the one that is told. */
SERVERS_TEST(who_still_shares_a_hold_is_told)
{
    struct told first, second;

    guarded_client(QUORLOCK_DIALECT_PLAIN);
    hold(&first, "key", LEASE(LONG_LEASE_MS, .owner = "owner"));
    hold(&second, "key", LEASE(LONG_LEASE_MS, .owner = "owner"));
    assert_status(fixture_extend(first.lock, 0, &first.seen), QUORLOCK_OK);
    assert_status(fixture_release(second.lock, &second.seen), QUORLOCK_OK);
    quorlock_lock_free(second.lock);
    await_reads();
    take_away("key", DELETED);
    await_lost(&first);
}

/* Many are renewed with one command. */
static void lose_some(int dialect)
{
    struct told told[100];
    char key[16];

    guarded_client(dialect);
    for (uint32_t i = 0; i < LENGTH(told); i++) {
        snprintf(key, sizeof(key), "key%u", i);
        hold(&told[i], key, LEASE(LONG_LEASE_MS));
    }
    await_renewals(LENGTH(told));
    await_reads();
    for (uint32_t i = 0; i < LENGTH(told); i += 10) {
        snprintf(key, sizeof(key), "key%u", i);
        take_away(key, i % 20 == 0 ? DELETED : OVERWRITTEN);
    }
    for (uint32_t i = 0; i < LENGTH(told); i += 10) await_lost(&told[i]);
    for (uint32_t i = 0; i < LENGTH(told); i++) {
        if (i % 10 == 0) continue;
        assert_int_equal(told[i].loss.calls, 0);
        assert_status(fixture_release(told[i].lock, &told[i].seen), QUORLOCK_OK);
    }
}

SERVERS_TEST(of_many_locks_only_what_is_gone_is_lost)
{
    lose_some(QUORLOCK_DIALECT_PLAIN);
}

SERVERS_TEST(of_many_hashes_only_what_is_gone_is_lost)
{
    lose_some(QUORLOCK_DIALECT_REDISSON);
}

SERVERS_TEST(a_key_that_is_gone_from_one_node_is_set_again)
{
    struct told told;

    guarded_client(QUORLOCK_DIALECT_PLAIN);
    hold(&told, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_extend(told.lock, 0, &told.seen), QUORLOCK_OK);
    await_reads();
    server_do(SERVER(1), "DEL key");
    await_holders("key", NULL, 3);
    assert_int_equal(told.loss.calls, 0);
    assert_status(fixture_release(told.lock, &told.seen), QUORLOCK_OK);
}

/* Their tables have room for one key, so they tell of changes that were none, and go on as long as they are asked. */
SERVERS_TEST(servers_with_full_tables_cost_rounds_but_no_lock)
{
    struct told told[20];
    char key[16];

    fixture_needs_real_servers();
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET tracking-table-max-keys 1");
    guarded_client(QUORLOCK_DIALECT_PLAIN);
    for (uint32_t i = 0; i < LENGTH(told); i++) {
        snprintf(key, sizeof(key), "key%u", i);
        hold(&told[i], key, LEASE(LONG_LEASE_MS));
    }
    /* The first renewals, and looks after most of them. */
    await_renewals(LENGTH(told) + LENGTH(told) / 2);
    run_ms(2000);
    /* A look for each node that tells at most: then the lock waits for its next renewal. */
    assert_in_range(renewals(), 0, LENGTH(told) * 4);
    for (uint32_t i = 0; i < LENGTH(told); i++) {
        assert_int_equal(told[i].loss.calls, 0);
        assert_status(fixture_release(told[i].lock, &told[i].seen), QUORLOCK_OK);
    }
}
