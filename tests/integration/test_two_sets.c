/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_two_sets.c - nodes that are set up for another number of clients' nodes: old and new never both hold
 *
 * And one server that is listed twice, whose two connections come back one after the other.
 */
#include "fixture.h"

#include <unistd.h>

#define OLD          3
#define NEW          5
#define MAX_LEASE_MS 1500

#define FIVE_TEST(name) TEST_RUNS(name, RUN_WITH(name, "", setup_five))

static int setup_five(void **state)
{
    fixture_begin(NEW);
    return 0;
}

/* A client of the first n servers, all of them by the given addresses. */
static quorlock_client *client_of(const char *const *addresses, size_t n, int guard)
{
    fixture.options.nodes = addresses;
    fixture.options.n_nodes = n;
    fixture.options.guard = guard;
    fixture.options.set_name = "set";
    fixture.options.max_lease_ms = MAX_LEASE_MS;
    return fixture_new_client(0);
}

static void bootstrap(const char *const *addresses, size_t n, bool reconfigure, struct seen_report *ret)
{
    struct quorlock_bootstrap_options options = {.size = sizeof(options), .reconfigure = reconfigure};
    quorlock_client *client;

    /* Every node says what became of it, also where the machine is busy. */
    fixture.options.node_timeout_ms = GENEROUS_MS;
    client = client_of(addresses, n, QUORLOCK_GUARD_OFF);
    fixture.options.node_timeout_ms = 0;
    memset(ret, 0, sizeof(*ret));
    assert_status(quorlock_client_bootstrap(client, &options, on_bootstrapped, ret), QUORLOCK_OK);
    await_count(&ret->calls, 1, GENEROUS_MS, "bootstrap");
    fixture_close(client);
}

/* A client of the old set with its connections open, which has never asked for the key. */
static quorlock_lock *idle_old(quorlock_client **ret_client)
{
    *ret_client = client_of(fixture.cluster.addresses, OLD, QUORLOCK_GUARD_CONNECTION);
    fixture_await_ready(*ret_client, OLD);
    return fixture_lock(*ret_client, "key", LEASE(1000));
}

/* Both try once at the same time, when the quarantine of whatever was written is over. */
static void assert_not_both(quorlock_lock *old)
{
    struct seen theirs = {0}, ours = {0};
    quorlock_client *client = client_of(fixture.cluster.addresses, NEW, QUORLOCK_GUARD_CONNECTION);
    quorlock_lock *lock = fixture_lock(client, "key", LEASE(1000));

    run_ms(MAX_LEASE_MS + 500);
    fixture_start_acquire(old, &theirs);
    await_count(&theirs.calls, 1, GENEROUS_MS, "the old");
    fixture_start_acquire(lock, &ours);
    await_count(&ours.calls, 1, GENEROUS_MS, "the new");
    if (quorlock_lock_valid_ms(old) > 0 && quorlock_lock_valid_ms(lock) > 0) {
        fail_msg("held by both: %s, and %s", theirs.text, ours.text);
    }
    fixture_close(client);
}

/* Two of the old servers do not let us disconnect others. */
FIVE_TEST(a_right_that_is_missing)
{
    char few[2][TEXT_SIZE];
    const char *addresses[NEW];
    struct seen_report report;
    quorlock_client *client;
    quorlock_lock *old;

    bootstrap(fixture.cluster.addresses, OLD, false, &report);
    assert_status(report.status, QUORLOCK_OK);
    old = idle_old(&client);
    memcpy(addresses, fixture.cluster.addresses, sizeof(addresses));
    for (int i = 0; i < 2; i++) {
        server_do(SERVER(i), "ACL SETUSER few on >pw ~* &* +@all -client|kill");
        snprintf(few[i], sizeof(few[i]), "redis://few:pw@%s", fixture.cluster.addresses[i]);
        addresses[i] = few[i];
    }
    bootstrap(addresses, NEW, true, &report);
    assert_status(report.status, QUORLOCK_ERR_NOQUORUM);
    assert_not_both(old);
    for (int i = 0; i < NEW; i++) {
        assert_int_equal(report.nodes[i].state, i < 2     ? QUORLOCK_BOOTSTRAP_ERROR
                                                : i < OLD ? QUORLOCK_BOOTSTRAP_GUARDED
                                                          : QUORLOCK_BOOTSTRAP_FREE);
        if (i < 2) assert_contains(report.nodes[i].error, "NOPERM");
    }
    /* Nothing was written, so the old one works as before. */
    assert_true(quorlock_lock_valid_ms(old) > 0);
    fixture_close(client);
}

static bool is_refused_for_five(void *arg)
{
    struct seen seen = {0};
    int status = fixture_acquire(arg, &seen);

    /* Its nodes are not ready while it connects anew. */
    if (status != QUORLOCK_ERR_NOQUORUM) assert_status(status, QUORLOCK_ERR_INVAL);
    return strstr(seen.text, "its guard says 5 nodes") != NULL;
}

/* With that right the old client is disconnected at once, on every node. */
FIVE_TEST(nothing_missing)
{
    struct seen_report report;
    quorlock_client *client;
    quorlock_lock *old;

    bootstrap(fixture.cluster.addresses, OLD, false, &report);
    old = idle_old(&client);
    bootstrap(fixture.cluster.addresses, NEW, true, &report);
    assert_status(report.status, QUORLOCK_OK);
    for (int i = 0; i < NEW; i++) assert_int_equal(report.nodes[i].state, QUORLOCK_BOOTSTRAP_WRITTEN);
    /* It may have reconnected before the guards were written. */
    await(is_refused_for_five, old, GENEROUS_MS, "the old client learns of the five nodes");
    fixture_close(client);
}

/* Two old nodes take no writes: the others accept no client, because with them new clients had a quorum. */
FIVE_TEST(an_old_node_that_is_not_written)
{
    struct seen_report report;
    quorlock_client *client;
    quorlock_lock *old;

    bootstrap(fixture.cluster.addresses, OLD, false, &report);
    old = idle_old(&client);
    for (int i = 0; i < 2; i++) {
        /* Reading and scripts that write nothing are fine. */
        server_do(SERVER(i), "CONFIG SET min-replicas-to-write 1");
    }
    bootstrap(fixture.cluster.addresses, NEW, true, &report);
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 0");
    assert_status(report.status, QUORLOCK_ERR_NOQUORUM);
    assert_not_both(old);
    for (int i = 0; i < NEW; i++) {
        assert_int_equal(report.nodes[i].state, i < 2 ? QUORLOCK_BOOTSTRAP_ERROR : QUORLOCK_BOOTSTRAP_CLOSED);
    }
    fixture_close(client);
    /* The same command once more completes it. */
    bootstrap(fixture.cluster.addresses, NEW, true, &report);
    assert_status(report.status, QUORLOCK_OK);
}

/* ---- one server, listed twice ---- */

/*
 * The two come back one after the other. The one that is back alone must not vote either: the other one could
 * vote with its next connection.
 */
SERVERS_TEST(twins_one_after_the_other)
{
    const char *addresses[3] = {fixture.cluster.addresses[0], fixture.cluster.servers[0].unix_address,
                                fixture.cluster.addresses[1]};
    struct seen seen = {0};
    quorlock_client *client;
    quorlock_lock *lock;

    fixture.options.nodes = addresses;
    fixture.options.n_nodes = 3;
    fixture.options.reconnect_min_ms = fixture.options.reconnect_max_ms = 20;
    client = fixture_new_client(0);
    await_log("are one server", 1);
    /* From now on only the first finds the server. */
    assert_int_equal(unlink(fixture.cluster.servers[0].unix_address + strlen("unix://")), 0);
    run_ms(100);
    lock = fixture_lock(client, "key", LEASE(10000, .wait_ms = NO_LIMIT));
    fixture_start_acquire(lock, &seen);
    /* The one that comes alone is refused, too. */
    await_log("are one server", logged("are one server") + 5);
    assert_int_equal(seen.calls, 0);
    assert_status(quorlock_lock_cancel(lock), QUORLOCK_OK);
    await_status(&seen, QUORLOCK_ERR_CANCELED, "cancel");
}
