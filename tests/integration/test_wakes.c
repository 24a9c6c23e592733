/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wakes.c - whoever waits is woken: here nobody polls, so that a wake-up that is lost is not made up for
 *
 * The lease is two minutes. Whoever is granted within the limit of a wait was woken.
 */
#include "core/control.h"
#include "fixture.h"

#include <stdlib.h>

static struct seen held, waited;
static quorlock *holder, *waiter;
static quorlock_client *second;
static int dialect;

static struct server *server_at(uint32_t node)
{
    return &fixture.cluster.servers[node];
}

static const char count_listeners[] = "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]";

static bool listens(void *key)
{
    char channel[TEXT_SIZE];
    long long n = 0;

    if (dialect == QUORLOCK_DIALECT_PLAIN) {
        snprintf(channel, sizeof(channel), "quorlock:released:%s", (const char *)key);
    } else {
        snprintf(channel, sizeof(channel), "redisson_lock__channel:{%s}", (const char *)key);
    }
    for (uint32_t i = 0; i < 3; i++)
        n += server_ask_number(server_at(i), "EVAL %s 0 %s", count_listeners, channel);
    return n >= 2;
}

static bool logs_the_wait(void *arg)
{
    return fixture.log != NULL && strstr(fixture.log, "waiting for") != NULL;
}

static quorlock *new_lock(quorlock_client *client, const char *key, const char *other)
{
    struct quorlock_options options = fixture_lease(LONG_LEASE_MS);
    const char *const keys[] = {key, other};
    quorlock *lock = NULL;

    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    assert_int_equal(quorlock_new(&lock, client, keys, other != NULL ? 2 : 1, &options), 0);
    return lock;
}

static void open_both(void)
{
    struct quorlock_client_options options = fixture_options();

    memset(&held, 0, sizeof(held));
    memset(&waited, 0, sizeof(waited));
    options.dialect = dialect;
    fixture_client(&options, 3);
    second = fixture_new_client(&options);
    fixture_await_ready(second, 3);
}

static void close_both(void)
{
    fixture_close(second);
    fixture_close(fixture.client);
    fixture.client = NULL;
}

static void hold_and_wait(const char *key)
{
    holder = new_lock(second, key, NULL);
    waiter = new_lock(fixture.client, key, NULL);
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    fixture_start_acquire(waiter, &waited);
}

static void give_back(void)
{
    assert_int_equal(quorlock_release(holder, NULL, NULL), 0);
}

static void expect_woken(void)
{
    await_count(&waited.calls, 1, GENEROUS_MS, "the waiter is woken");
    assert_status(waited.result.status, QUORLOCK_OK);
}

static void in_either_dialect(void (*story)(void))
{
    for (dialect = QUORLOCK_DIALECT_PLAIN; dialect <= QUORLOCK_DIALECT_REDISSON; dialect++) {
        open_both();
        story();
        close_both();
        cluster_await_free(&fixture.cluster, "key");
    }
    dialect = QUORLOCK_DIALECT_PLAIN;
}

/* What this program proves hangs on it. */
static void nobody_polls_here(void **state)
{
    open_both();
    for (uint32_t i = 0; i < 3; i++) server_do(server_at(i), "SET key peer");
    waiter = new_lock(fixture.client, "key", NULL);
    fixture_start_acquire(waiter, &waited);
    await(listens, "key", GENEROUS_MS, "the waiter listens");
    run_ms(500); /* until the tries that follow the confirmations are over */
    for (uint32_t i = 0; i < 3; i++) server_do(server_at(i), "DEL key");
    run_ms(2500); /* two polls, if there were any */
    assert_int_equal(waited.calls, 0);
    close_both();
}

static void story_of_a_notice(void)
{
    hold_and_wait("key");
    await(listens, "key", GENEROUS_MS, "the waiter listens");
    give_back();
    expect_woken();
}

static void a_notice_wakes(void **state)
{
    in_either_dialect(story_of_a_notice);
}

/* The wait has begun, and the subscription is still on its way. */
static void story_of_the_first_gap(void)
{
    free(fixture.log);
    fixture.log = NULL;
    fixture.log_length = 0;
    hold_and_wait("key");
    await(logs_the_wait, NULL, GENEROUS_MS, "the waiter waits");
    give_back();
    expect_woken();
}

static void a_release_before_the_confirmation_is_found(void **state)
{
    in_either_dialect(story_of_the_first_gap);
}

/* The connections are cut and come back: what was released meanwhile nobody tells of again. */
static void story_of_a_resubscription(void)
{
    hold_and_wait("key");
    await(listens, "key", GENEROUS_MS, "the waiter listens");
    run_ms(300); /* the tries that follow the first confirmations are over */
    for (uint32_t i = 0; i < 3; i++) server_do(server_at(i), "CLIENT KILL TYPE pubsub");
    give_back();
    expect_woken();
}

static void a_release_in_the_gap_of_a_resubscription_is_found(void **state)
{
    in_either_dialect(story_of_a_resubscription);
}

static void story_after_a_resubscription(void)
{
    hold_and_wait("key");
    await(listens, "key", GENEROUS_MS, "the waiter listens");
    for (int turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < 3; i++) server_do(server_at(i), "CLIENT KILL TYPE pubsub");
        await(listens, "key", GENEROUS_MS, "the waiter listens again");
    }
    run_ms(300);
    give_back();
    expect_woken();
}

static void a_notice_after_resubscriptions_wakes(void **state)
{
    in_either_dialect(story_after_a_resubscription);
}

/* The first key was listened to before, for somebody else; the second one's release comes before its
 * subscription. */
static void the_second_keys_release_is_found(void **state)
{
    struct seen first = {0};
    quorlock *blocker;
    quorlock *other;

    open_both();
    blocker = new_lock(second, "third", NULL);
    assert_status(fixture_acquire(blocker, &held), QUORLOCK_OK);
    other = new_lock(fixture.client, "first", "third");
    fixture_start_acquire(other, &first);
    await(listens, "first", GENEROUS_MS, "the first key is listened to");
    holder = new_lock(second, "second", NULL);
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    free(fixture.log);
    fixture.log = NULL;
    fixture.log_length = 0;
    waiter = new_lock(fixture.client, "first", "second");
    fixture_start_acquire(waiter, &waited);
    await(logs_the_wait, NULL, GENEROUS_MS, "the waiter waits");
    give_back();
    expect_woken();
    assert_int_equal(quorlock_cancel(other), 0);
    await_count(&first.calls, 1, GENEROUS_MS, "the other is cancelled");
    close_both();
}

/* One of two keys, whichever it is, keeps the waiter from both. */
static void each_keys_notice_wakes(void **state)
{
    static const char *const keys[] = {"first", "second"};

    for (size_t i = 0; i < 2; i++) {
        open_both();
        holder = new_lock(second, keys[i], NULL);
        assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
        waiter = new_lock(fixture.client, "first", "second");
        fixture_start_acquire(waiter, &waited);
        await(listens, "first", GENEROUS_MS, "the waiter listens to the first");
        await(listens, "second", GENEROUS_MS, "the waiter listens to the second");
        run_ms(300);
        give_back();
        expect_woken();
        close_both();
    }
}

static bool logs_a_refusal(void *arg)
{
    return fixture.log != NULL && strstr(fixture.log, "SUBSCRIBE: NOPERM") != NULL;
}

/* A waiter that hears of one of its keys only is not told that notices come: it would look now, and then rely
 * on them. */
static void one_key_of_two_is_not_enough(void **state)
{
    struct quorlock_client_options options = fixture_options();
    char addresses[3][TEXT_SIZE];
    const char *nodes[3];

    open_both();
    fixture_close(fixture.client);
    for (uint32_t i = 0; i < 3; i++) {
        server_do(server_at(i), "ACL SETUSER few on >pw ~* +@all resetchannels &quorlock:released:first");
        snprintf(addresses[i], TEXT_SIZE, "redis://few:pw@%s", fixture.cluster.addresses[i]);
        nodes[i] = addresses[i];
    }
    options.nodes = nodes;
    fixture_client(&options, 3);
    holder = new_lock(second, "second", NULL);
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    waiter = new_lock(fixture.client, "first", "second");
    fixture_start_acquire(waiter, &waited);
    await(listens, "first", GENEROUS_MS, "the waiter listens to the first");
    await(logs_a_refusal, NULL, GENEROUS_MS, "the second is refused");
    run_ms(300);
    assert_int_equal(quorlock_cancel(waiter), 0);
    await_count(&waited.calls, 1, GENEROUS_MS, "the waiter is cancelled");
    assert_int_equal(waited.result.rounds, 1);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_polls_here, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_notice_wakes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_release_before_the_confirmation_is_found, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_release_in_the_gap_of_a_resubscription_is_found, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_notice_after_resubscriptions_wakes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_second_keys_release_is_found, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(each_keys_notice_wakes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(one_key_of_two_is_not_enough, fixture_setup, fixture_teardown),
    };

    core_control = CONTROL_NO_POLLS;
    return cmocka_run_group_tests_name("wake-ups", tests, NULL, NULL);
}
