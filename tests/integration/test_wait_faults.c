/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wait_faults.c - what goes wrong while somebody waits: he still gets the lock, and who gives up leaves
 * nothing
 *
 * Most are told twice, in either dialect. A lease of two minutes stands for what must not be waited for: who
 * gets the lock before was woken, or looked himself.
 */
#include "fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_LEASE_MS 1500u
/* From a release that nobody tells of to the grant: the longest poll is a second. */
#define LITTLE_MS       10000u
#define NODE_TIMEOUT_MS 1000u /* of a long lease */
#define SECRET          "sesame"

static const char count_listeners[] = "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]";
static const char count_clients[] =
    "return tonumber(string.match(redis.call('INFO', 'clients'), 'connected_clients:(%d+)'))";

static struct seen held, waited;
static quorlock *holder, *waiter;
static quorlock_client *second;
static int dialect;
static uint32_t frozen; /* a node that must not be asked; 3: none is */

static const char *channel(void)
{
    return dialect == QUORLOCK_DIALECT_PLAIN ? "quorlock:released:key" : "redisson_lock__channel:{key}";
}

static struct server *server_at(uint32_t node)
{
    return &fixture.cluster.servers[node];
}

static bool is_live(uint32_t node)
{
    return node != frozen && server_at(node)->pid != 0;
}

static long long listeners(void)
{
    long long n = 0;

    for (uint32_t i = 0; i < 3; i++) {
        if (is_live(i)) n += server_ask_number(server_at(i), "EVAL %s 0 %s", count_listeners, channel());
    }
    return n;
}

static long long connections(void)
{
    long long n = 0;

    for (uint32_t i = 0; i < 3; i++) {
        if (is_live(i)) n += server_ask_number(server_at(i), "EVAL %s 0", count_clients);
    }
    return n;
}

static bool listens(void *arg)
{
    return listeners() >= 2;
}

static bool listens_no_more(void *arg)
{
    return listeners() == 0;
}

static bool logs_the_wait(void *arg)
{
    return fixture.log != NULL && strstr(fixture.log, "waiting for") != NULL;
}

/* Locks by hand, as peers write them, which tell nobody anything. */
static void peer_takes(uint32_t lease_ms)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (!is_live(i)) continue;
        if (dialect == QUORLOCK_DIALECT_PLAIN) {
            server_do(server_at(i), "SET key peer PX %u", lease_ms);
        } else {
            server_do(server_at(i), "HSET key uuid:1 1");
            server_do(server_at(i), "PEXPIRE key %u", lease_ms);
        }
    }
}

static void peer_gives_back(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (is_live(i)) server_do(server_at(i), "DEL key");
    }
}

/* Two clients in one loop: the waiter is fixture.client's. */
static void open_both(const struct quorlock_client_options *given)
{
    struct quorlock_client_options client_options = given != NULL ? *given : fixture_options();
    struct quorlock_options options = fixture_lease(LONG_LEASE_MS);

    frozen = 3;
    memset(&held, 0, sizeof(held));
    memset(&waited, 0, sizeof(waited));
    client_options.dialect = dialect;
    fixture_client(&client_options, 3);
    second = fixture_new_client(&client_options);
    fixture_await_ready(second, 3);
    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    holder = fixture_lock(second, "key", &options);
    waiter = fixture_lock(fixture.client, "key", &options);
}

static void close_both(void)
{
    fixture_close(second);
    fixture_close(fixture.client);
    fixture.client = NULL;
}

static void begin_to_wait(void)
{
    fixture_start_acquire(waiter, &waited);
    await(listens, NULL, GENEROUS_MS, "the waiter listens");
    assert_int_equal(waited.calls, 0);
}

static void hold_and_wait(void)
{
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    begin_to_wait();
}

/* Recorded times: the grant came within so long after that. */
static void expect_grant(uint64_t since_us, uint32_t within_ms, const char *what)
{
    await_count(&waited.calls, 1, GENEROUS_MS, what);
    assert_status(waited.result.status, QUORLOCK_OK);
    if (waited.at_us < since_us || waited.at_us - since_us > within_ms * 1000ull) {
        fail_msg("%s: the grant came %lld ms after it", what, (long long)(waited.at_us - since_us) / 1000);
    }
}

static void release_holder(void)
{
    assert_int_equal(quorlock_release(holder, NULL, NULL), 0);
}

/* ---- nodes ---- */

static void the_node_one_listens_to_dies(void **state)
{
    for (uint32_t node = 0; node < 3; node++) {
        uint64_t released_us;

        open_both(NULL);
        hold_and_wait();
        server_kill(server_at(node));
        released_us = clock_us();
        release_holder();
        expect_grant(released_us, LITTLE_MS, "hand-over with a dead node");
        close_both();
        server_wipe(server_at(node)); /* what is left there is owed by nobody any more */
    }
}

/* Its notices end, and nothing says so. */
static void the_node_one_listens_to_freezes(void **state)
{
    for (uint32_t node = 0; node < 3; node++) {
        uint64_t released_us;

        open_both(NULL);
        hold_and_wait();
        server_freeze(server_at(node));
        frozen = node;
        released_us = clock_us();
        release_holder();
        expect_grant(released_us, LITTLE_MS, "hand-over with a frozen node");
        close_both();
        server_thaw(server_at(node));
        cluster_await_free(&fixture.cluster, "key");
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The two hand it to and fro; the median of the hand-overs. */
static uint64_t median_hand_over_us(uint32_t times)
{
    uint64_t took_us[64];

    assert_true(times <= 64);
    for (uint32_t i = 0; i < times; i++) {
        quorlock *has = i % 2 == 0 ? holder : waiter;
        quorlock *wants = i % 2 == 0 ? waiter : holder;
        struct seen given_back = {0};
        uint64_t begun_us;

        memset(&waited, 0, sizeof(waited));
        fixture_start_acquire(wants, &waited);
        await(listens, NULL, GENEROUS_MS, "the waiter listens");
        run_ms(20);
        assert_int_equal(waited.calls, 0);
        begun_us = clock_us();
        assert_int_equal(quorlock_release(has, on_result, &given_back), 0);
        await_count(&waited.calls, 1, GENEROUS_MS, "hand-over");
        assert_status(waited.result.status, QUORLOCK_OK);
        await_count(&given_back.calls, 1, GENEROUS_MS, "release");
        took_us[i] = waited.at_us - begun_us;
    }
    qsort(took_us, times, sizeof(took_us[0]), compare);
    return took_us[times / 2];
}

/* Of the same order as with all nodes: the node timeout, which is a second, is not waited for. */
static void one_frozen_node_makes_no_hand_over_slow(void **state)
{
    for (uint32_t node = 0; node < 3; node++) {
        uint64_t whole_us, hurt_us;

        open_both(NULL);
        assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
        whole_us = median_hand_over_us(10);
        server_freeze(server_at(node));
        frozen = node;
        /* What it leaves unanswered is found out by the first of them. */
        (void)median_hand_over_us(4);
        hurt_us = median_hand_over_us(10);
        print_message("hand-over %llu us, with node %u frozen %llu us\n", (unsigned long long)whole_us,
                      node + 1, (unsigned long long)hurt_us);
        assert_true(hurt_us < 10 * whole_us + NODE_TIMEOUT_MS * 1000 / 2);
        close_both();
        server_thaw(server_at(node));
        cluster_await_free(&fixture.cluster, "key");
    }
}

/* ---- notices ---- */

/* The connections are cut and the release happens before they are made anew: nobody tells of it again. */
static void a_release_in_the_gap_of_a_cut_subscriber(void **state)
{
    for (dialect = QUORLOCK_DIALECT_PLAIN; dialect <= QUORLOCK_DIALECT_REDISSON; dialect++) {
        uint64_t released_us;

        open_both(NULL);
        peer_takes(LONG_LEASE_MS);
        begin_to_wait();
        for (uint32_t i = 0; i < 3; i++) server_do(server_at(i), "CLIENT KILL TYPE pubsub");
        released_us = clock_us();
        peer_gives_back();
        expect_grant(released_us, LITTLE_MS, "hand-over in the gap");
        close_both();
    }
    dialect = QUORLOCK_DIALECT_PLAIN;
}

/* Cut again and again, they come back, and the next notice is heard. */
static void cut_subscribers_listen_again(void **state)
{
    uint64_t released_us;

    open_both(NULL);
    hold_and_wait();
    for (int turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < 3; i++) server_do(server_at(i), "CLIENT KILL TYPE pubsub");
        await(listens, NULL, GENEROUS_MS, "the waiter listens again");
    }
    released_us = clock_us();
    release_holder();
    expect_grant(released_us, LITTLE_MS, "hand-over after cuts");
    close_both();
}

static void a_peer_that_tells_nobody(void **state)
{
    for (dialect = QUORLOCK_DIALECT_PLAIN; dialect <= QUORLOCK_DIALECT_REDISSON; dialect++) {
        uint64_t released_us;

        open_both(NULL);
        peer_takes(LONG_LEASE_MS);
        begin_to_wait();
        run_ms(300);
        assert_int_equal(waited.calls, 0);
        released_us = clock_us();
        peer_gives_back();
        expect_grant(released_us, LITTLE_MS, "hand-over by a silent peer");
        close_both();
    }
    dialect = QUORLOCK_DIALECT_PLAIN;
}

/* Neither may publish, subscribe, or ask who listens. */
static void an_acl_that_forbids_channels(void **state)
{
    char addresses[3][TEXT_SIZE + 32];
    const char *nodes[3] = {addresses[0], addresses[1], addresses[2]};
    struct quorlock_client_options client_options = fixture_options();

    for (uint32_t i = 0; i < 3; i++) {
        server_do(server_at(i), "ACL SETUSER deaf on >%s resetchannels ~* +@all -pubsub", SECRET);
        snprintf(addresses[i], sizeof(addresses[i]), "redis://deaf:%s@%s", SECRET, server_at(i)->address);
    }
    client_options.nodes = nodes;
    for (dialect = QUORLOCK_DIALECT_PLAIN; dialect <= QUORLOCK_DIALECT_REDISSON; dialect++) {
        uint64_t released_us;

        open_both(&client_options);
        assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
        fixture_start_acquire(waiter, &waited);
        await(logs_the_wait, NULL, GENEROUS_MS, "the waiter waits");
        run_ms(300);
        assert_int_equal(listeners(), 0);
        assert_int_equal(waited.calls, 0);
        released_us = clock_us();
        release_holder();
        expect_grant(released_us, LITTLE_MS, "hand-over without channels");
        close_both();
    }
    dialect = QUORLOCK_DIALECT_PLAIN;
    assert_contains(fixture.log, "release notices");
    assert_null(strstr(fixture.log, SECRET));
}

/* The servers take no more connections, so none for notices. */
static void a_subscriber_that_is_not_let_in(void **state)
{
    uint64_t released_us;

    open_both(NULL);
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) {
        long long taken = server_ask_number(server_at(i), "EVAL %s 0", count_clients);

        /* The connection that asked is gone by now. */
        server_do(server_at(i), "CONFIG SET maxclients %lld", taken - 1);
    }
    fixture_start_acquire(waiter, &waited);
    await(logs_the_wait, NULL, GENEROUS_MS, "the waiter waits");
    run_ms(300);
    assert_int_equal(waited.calls, 0);
    released_us = clock_us();
    release_holder();
    expect_grant(released_us, LITTLE_MS, "hand-over without a subscriber");
    close_both();
}

/* ---- holders ---- */

static void a_holder_that_expires_silently(void **state)
{
    for (dialect = QUORLOCK_DIALECT_PLAIN; dialect <= QUORLOCK_DIALECT_REDISSON; dialect++) {
        uint64_t taken_us;

        open_both(NULL);
        taken_us = clock_us();
        peer_takes(SHORT_LEASE_MS);
        begin_to_wait();
        /* Not before its end, whatever clocks round to. */
        expect_grant(taken_us + (SHORT_LEASE_MS - 50) * 1000ull, LITTLE_MS, "the end of a lease");
        close_both();
    }
    dialect = QUORLOCK_DIALECT_PLAIN;
}

/* The child: holds, renews, says so, until it is killed. */
static void doomed_life(int pipe_in)
{
    struct quorlock_client_options client_options = fixture_options();
    struct quorlock_options options = fixture_lease(SHORT_LEASE_MS);
    struct seen seen = {0};
    quorlock *lock;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    event_reinit(fixture.base);
    client_options.log = NULL;
    client_options.dialect = dialect;
    lock = fixture_lock(fixture_new_client(&client_options), "key", &options);
    options.wait_ms = GENEROUS_MS;
    if (fixture_acquire(lock, &seen) != QUORLOCK_OK || write(pipe_in, "", 1) != 1) _exit(20);
    for (;;) event_base_loop(fixture.base, EVLOOP_ONCE);
}

static void a_holder_that_is_killed(void **state)
{
    struct quorlock_client_options client_options;
    struct quorlock_options options = fixture_lease(LONG_LEASE_MS);
    uint64_t killed_us;
    int ends[2];
    char byte;
    pid_t child;

    frozen = 3;
    memset(&waited, 0, sizeof(waited));
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) doomed_life(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    client_options = fixture_options();
    fixture_client(&client_options, 3);
    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    waiter = fixture_lock(fixture.client, "key", &options);
    begin_to_wait();
    /* It renews: longer than its lease nobody gets it. */
    run_ms(2 * SHORT_LEASE_MS);
    assert_int_equal(waited.calls, 0);
    killed_us = clock_us();
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    expect_grant(killed_us, SHORT_LEASE_MS + LITTLE_MS, "a killed holder");
    close(ends[0]);
}

/* Who stands behind a lock of his own process asks the arbiter now and then. Its no is an answer, and the
 * others were not asked: that is no lack of nodes. */
static void who_stands_behind_is_told_of_the_holder(void **state)
{
    struct seen behind = {0};
    quorlock *third;
    struct quorlock_options options = fixture_lease(LONG_LEASE_MS);

    open_both(NULL);
    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    third = fixture_lock(second, "key", &options);
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    fixture_start_acquire(third, &behind);
    await(logs_the_wait, NULL, GENEROUS_MS, "the wait is logged");
    assert_contains(fixture.log, "\"key\" is held by");
    assert_null(strstr(fixture.log, "too few nodes"));
    assert_null(strstr(fixture.log, "not ready in time"));
    release_holder();
    await_count(&behind.calls, 1, GENEROUS_MS, "the local hand-over");
    assert_status(behind.result.status, QUORLOCK_OK);
    close_both();
}

/* ---- giving up ---- */

static bool connections_are(void *arg)
{
    return connections() == *(const long long *)arg;
}

static void who_gives_up_leaves_nothing(void **state)
{
    for (dialect = QUORLOCK_DIALECT_PLAIN; dialect <= QUORLOCK_DIALECT_REDISSON; dialect++) {
        long long before;

        open_both(NULL);
        peer_takes(LONG_LEASE_MS);
        before = connections();
        begin_to_wait();
        assert_true(connections() > before);
        assert_status(quorlock_cancel(waiter), QUORLOCK_OK);
        await_count(&waited.calls, 1, GENEROUS_MS, "the canceled wait");
        assert_status(waited.result.status, QUORLOCK_CANCELED);
        await(listens_no_more, NULL, GENEROUS_MS, "the channels are left");
        await(connections_are, &before, GENEROUS_MS, "the connections for notices end");
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(server_ask_number(server_at(i), "DBSIZE"), 1);
            server_do(server_at(i), "DEL key");
        }
        close_both();
    }
    dialect = QUORLOCK_DIALECT_PLAIN;
}

/* The same where the wait ends by itself. */
static void a_wait_that_ends_leaves_nothing(void **state)
{
    struct quorlock_options options = fixture_lease(LONG_LEASE_MS);
    long long before;

    open_both(NULL);
    peer_takes(LONG_LEASE_MS);
    before = connections();
    options.wait_ms = 700;
    waiter = fixture_lock(fixture.client, "key", &options);
    assert_status(fixture_acquire(waiter, &waited), QUORLOCK_HELD);
    await(listens_no_more, NULL, GENEROUS_MS, "the channels are left");
    await(connections_are, &before, GENEROUS_MS, "the connections for notices end");
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(server_ask_number(server_at(i), "DBSIZE"), 1);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_node_one_listens_to_dies, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_node_one_listens_to_freezes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(one_frozen_node_makes_no_hand_over_slow, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_release_in_the_gap_of_a_cut_subscriber, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(cut_subscribers_listen_again, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_tells_nobody, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(an_acl_that_forbids_channels, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_subscriber_that_is_not_let_in, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_holder_that_expires_silently, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_holder_that_is_killed, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(who_stands_behind_is_told_of_the_holder, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(who_gives_up_leaves_nothing, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_wait_that_ends_leaves_nothing, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests_name("wait faults", tests, NULL, NULL);
}
