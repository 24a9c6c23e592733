/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_odd_key.c - keys that no lock of a quorum left: one odd key on one node keeps nobody from the lock
 *
 * The holder is a client of its own in the same loop, so that each release has to be found by the waiter.
 */
#include "fixture.h"

#define LEASE_MS 60000u
/* What the nodes are asked while somebody waits so long for a lock that stays taken: some polls, no storm. */
#define WAIT_MS   2000u
#define CALLS_MAX 90

static struct seen held, waited;
static quorlock *holder, *waiter;
static quorlock_client *second;

static struct server *server_at(uint32_t node)
{
    return &fixture.cluster.servers[node];
}

static void open_both(uint32_t wait_ms)
{
    struct quorlock_client_options client_options = fixture_options();
    struct quorlock_options options = fixture_lease(LEASE_MS);

    memset(&held, 0, sizeof(held));
    memset(&waited, 0, sizeof(waited));
    fixture_client(&client_options, 3);
    second = fixture_new_client(&client_options);
    fixture_await_ready(second, 3);
    options.wait_ms = wait_ms;
    holder = fixture_lock(second, "key", &options);
    waiter = fixture_lock(fixture.client, "key", &options);
}

static void close_both(void)
{
    fixture_close(second);
    fixture_close(fixture.client);
    fixture.client = NULL;
}

static long long calls(void)
{
    long long n = 0;

    for (uint32_t i = 0; i < 3; i++) n += server_lock_calls(server_at(i));
    return n;
}

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
static void an_odd_key_on_one_node_starves_nobody(void **state)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        for (uint32_t node = 0; node < 3; node++) {
            open_both(GENEROUS_MS);
            leave_odd_key(server_at(node), kind);
            assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
            fixture_start_acquire(waiter, &waited);
            run_ms(300);
            assert_int_equal(waited.calls, 0);
            assert_int_equal(quorlock_release(holder, NULL, NULL), 0);
            await_count(&waited.calls, 1, 2 * GENEROUS_MS, "the waiter is told");
            assert_status(waited.result.status, QUORLOCK_OK);
            assert_int_equal(waited.result.granted, 2);
            close_both();
            for (uint32_t i = 0; i < 3; i++) server_do(server_at(i), "DEL key");
        }
    }
}

/* Two of three nodes are taken for good: then the lock is, and that is what is told. */
static void two_odd_keys_are_a_lock_that_is_held(void **state)
{
    open_both(WAIT_MS);
    server_do(server_at(0), "SET key odd");
    server_do(server_at(1), "SET key even");
    assert_status(fixture_acquire(waiter, &waited), QUORLOCK_HELD);
    assert_int_equal(waited.result.refused, 2);
    close_both();
    for (uint32_t i = 0; i < 3; i++) server_do(server_at(i), "DEL key");
}

/* No third node can still tell which of the two it is. */
static void keys_of_two_owners_are_held_by_no_one_owner(void **state)
{
    open_both(0);
    server_do(server_at(0), "SET key odd");
    server_do(server_at(1), "SET key even");
    server_kill(server_at(2));
    assert_status(fixture_acquire(waiter, &waited), QUORLOCK_HELD);
    assert_contains(waited.text, "\"key\" is taken on 2 of 3 nodes, by no one owner");
    close_both();
}

/* A lease in milliseconds that overflows in microseconds is a very long one, not one that has ended. */
static void a_lease_without_measure_is_waited_for_quietly(void **state)
{
    static const char *const leases[] = {"10000000000000000", "18446744073709600", "9223372036854775"};

    for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
        long long before;

        open_both(WAIT_MS);
        for (uint32_t node = 0; node < 3; node++) {
            server_do(server_at(node), "SET key odd");
            /* Not every version takes such a one. */
            (void)server_ask_number(server_at(node), "PEXPIRE key %s", leases[i]);
        }
        before = calls();
        assert_status(fixture_acquire(waiter, &waited), QUORLOCK_HELD);
        if (calls() - before > CALLS_MAX) fail_msg("PX %s: %lld requests", leases[i], calls() - before);
        close_both();
        for (uint32_t node = 0; node < 3; node++) server_do(server_at(node), "DEL key");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lease_without_measure_is_waited_for_quietly, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(two_odd_keys_are_a_lock_that_is_held, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(keys_of_two_owners_are_held_by_no_one_owner, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(an_odd_key_on_one_node_starves_nobody, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests_name("odd keys", tests, NULL, NULL);
}
