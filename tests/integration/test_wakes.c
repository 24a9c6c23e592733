/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wakes.c - notices wake waiters: no lock polls here, so nothing makes up for a lost wake-up
 *
 * The lease is two minutes. A waiter that is granted within the limit of a wait was woken.
 */
#include "promises/mutant.h"
#include "wait_fixture.h"

#include <string.h>

#define LONG_KEY  1005
#define LISTS     130
#define LONG_KEYS (LISTS * QUORLOCK_KEYS_MAX)

__attribute__((constructor)) static void turn_polls_off(void)
{
    (void)mutant_choose("no-polls");
}

static void expect_woken(void)
{
    release_holder();
    await_status(&waited, QUORLOCK_OK, "the waiter is woken");
}

static void hold(const char *key)
{
    holder = lasting_lock(second, key, NULL);
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
}

/* The other tests prove something only if this holds. */
BOTH_TEST(no_lock_polls_here)
{
    take_by_hand(3, "key", "peer");
    begin_to_wait();
    run_ms(500); /* until the tries that follow the confirmations are over */
    drop_by_hand("key");
    run_ms(2500); /* two polls, if there were any */
    assert_int_equal(waited.calls, 0);
}

DIALECTS_TEST(a_notice_wakes)
{
    hold_and_wait();
    expect_woken();
}

static bool listens_to(uint32_t node)
{
    return server_ask_number(SERVER(node), "EVAL %s 0 %s", "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]",
                             "quorlock:released:key") > 0;
}

/* The waiter listens to two nodes: the one has lost the holder's key, and the other one freezes. */
SERVERS_TEST(a_node_that_lacks_the_key_notifies_of_its_release)
{
    for (uint32_t turn = 0; turn < 2; turn++) {
        uint32_t heard[3] = {0};
        uint32_t n = 0;

        open_both();
        hold_and_wait();
        run_ms(300); /* until the tries that follow the confirmations are over */
        for (uint32_t i = 0; i < 3; i++) {
            if (listens_to(i)) heard[n++] = i;
        }
        assert_int_equal(n, 2);
        server_do(SERVER(heard[turn]), "DEL key");
        frozen = heard[1 - turn];
        server_freeze(SERVER(frozen));
        expect_woken();
        close_both();
        server_thaw(SERVER(frozen));
        cluster_await_free(&fixture.cluster, "key");
    }
}

/* A server that keeps a guard tells of it. */
DIALECTS_TEST(what_is_deleted_by_hand_wakes)
{
    bool plain = fixture.options.dialect == QUORLOCK_DIALECT_PLAIN;

    close_both();
    fixture_bootstrap();
    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    open_both();
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), plain ? "SET key peer" : "HSET key peer:1 1");
    begin_to_wait();
    run_ms(500); /* until the tries that follow the confirmations are over */
    drop_by_hand("key");
    await_status(&waited, QUORLOCK_OK, "the waiter is woken");
}

/* The wait has begun, and the subscription is still on its way. */
DIALECTS_TEST(a_release_before_the_confirmation_is_found)
{
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    fixture_start_acquire(waiter, &waited);
    await_log("waiting for", 1);
    expect_woken();
}

static bool nobody_listens(void *key)
{
    return listeners(key) == 0;
}

static void await_no_listener(const char *key)
{
    char own[TEXT_SIZE];

    snprintf(own, sizeof(own), "%s", key);
    await(nobody_listens, own, GENEROUS_MS, "the channel is left");
}

/* The waits end one after the other. */
BOTH_TEST(each_channel_is_left_after_its_last_wait)
{
    static const char *const keys[] = {"first", "second", "third"};
    struct seen seen[3];
    quorlock_lock *locks[3];

    for (int i = 0; i < 3; i++) {
        take_by_hand(3, keys[i], "peer");
        locks[i] = lasting_lock(fixture.client, keys[i], NULL);
        fixture_start_acquire(locks[i], &seen[i]);
        await_listeners(keys[i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(quorlock_lock_cancel(locks[i]), 0);
        run_ms(20); /* so that their ends differ; it would pass without */
    }
    for (int i = 0; i < 3; i++) await_no_listener(keys[i]);
}

/* The handle's wait before this one was canceled, and its channel was left. */
DIALECTS_TEST(a_release_before_the_confirmation_of_a_second_wait_is_found)
{
    unsigned waits;

    hold_and_wait();
    run_ms(300); /* until the waiter has heard of its subscriptions; it would pass without */
    assert_int_equal(quorlock_lock_cancel(waiter), 0);
    await_status(&waited, QUORLOCK_ERR_CANCELED, "the canceled wait");
    await_no_listener("key");
    waits = logged("waiting for");
    fixture_start_acquire(waiter, &waited);
    await_log("waiting for", waits + 1);
    expect_woken();
}

static uint64_t requests(void)
{
    struct quorlock_statistics statistics = {.size = sizeof(statistics)};
    uint64_t all = 0;

    assert_status(quorlock_client_statistics(fixture.client, &statistics), QUORLOCK_OK);
    for (size_t i = 0; i < statistics.n_nodes; i++) all += statistics.nodes[i]->requests;
    return all;
}

/* It released what it got, and the holder has the key as before. */
TEST_RUNS(a_failed_attempt_of_another_wakes_nobody,
          RUN_WITH(a_failed_attempt_of_another_wakes_nobody, "", setup_both_redisson))
{
    uint64_t before;

    hold_and_wait();
    run_ms(300);
    before = requests();
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "PUBLISH redisson_lock__channel:{key} 00");
    run_ms(300);
    assert_int_equal(requests(), before);
    expect_woken();
}

static void cut_subscribers(void)
{
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CLIENT KILL TYPE pubsub");
}

/* The connections are cut and come back: no notice repeats a release that happened meanwhile. */
DIALECTS_TEST(a_release_in_the_gap_of_a_resubscription_is_found)
{
    hold_and_wait();
    run_ms(300); /* the tries that follow the first confirmations are over */
    cut_subscribers();
    expect_woken();
}

DIALECTS_TEST(a_notice_after_resubscriptions_wakes)
{
    hold_and_wait();
    for (int turn = 0; turn < 3; turn++) {
        cut_subscribers();
        await_listeners("key");
    }
    run_ms(300);
    expect_woken();
}

static bool all_listen(void *arg)
{
    static const char count[] = "return tonumber(string.match(redis.call('INFO', 'stats'), 'pubsub_channels:(%d+)'))";
    long long n = 0;

    for (uint32_t i = 0; i < 3; i++) n += server_ask_number(SERVER(i), "EVAL %s 0", count);
    return n == 2LL * LISTS * QUORLOCK_KEYS_MAX;
}

/* A waiter for so many keys from that number on. */
static void wait_for_keys(int first, struct seen *seen)
{
    static char texts[QUORLOCK_KEYS_MAX][LONG_KEY + 1];
    const char *keys[QUORLOCK_KEYS_MAX];

    for (int i = 0; i < QUORLOCK_KEYS_MAX; i++) {
        char number[6];

        snprintf(number, sizeof(number), "%05d", first + i);
        memset(texts[i], 'k', LONG_KEY);
        memcpy(texts[i], number, 5);
        keys[i] = texts[i];
    }
    fixture_start_acquire(
        fixture_lock_all(fixture.client, keys, QUORLOCK_KEYS_MAX, LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT)), seen);
}

/* Two of three nodes are asked for each key, which is more than a connection takes at once. */
BOTH_TEST(all_of_very_many_keys_are_listened_to_again)
{
    static struct seen seen[LISTS];
    static const char hold_all[] = "for i = 0, ARGV[1] - 1 do redis.call('SET', string.format('%05d', i) .. "
                                   "string.rep('k', 1000), 'peer', 'PX', 600000) end";

    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "EVAL %s 0 %d", hold_all, LONG_KEYS);
    for (int i = 0; i < LISTS; i++) wait_for_keys(i * QUORLOCK_KEYS_MAX, &seen[i]);
    await(all_listen, NULL, GENEROUS_MS, "all waiters listen");
    cut_subscribers();
    run_ms(100); /* until they are gone; it would pass without */
    await(all_listen, NULL, GENEROUS_MS, "all waiters listen again");
    for (int i = 0; i < LISTS; i++) assert_int_equal(seen[i].calls, 0);
    close_both();
}

/* Another lock listens to the first key already; the second key's release comes before its subscription. */
BOTH_TEST(the_second_keys_release_is_found)
{
    struct seen first;
    unsigned waits;

    hold("third");
    fixture_start_acquire(lasting_lock(fixture.client, "first", "third"), &first);
    await_listeners("first");
    hold("second");
    waits = logged("waiting for");
    waiter = lasting_lock(fixture.client, "first", "second");
    fixture_start_acquire(waiter, &waited);
    await_log("waiting for", waits + 1);
    expect_woken();
    assert_int_equal(first.calls, 0);
}

/* One of two keys, whichever it is, keeps the waiter from both. */
SERVERS_TEST(each_keys_notice_wakes)
{
    static const char *const keys[] = {"first", "second"};

    for (size_t i = 0; i < 2; i++) {
        open_both();
        hold(keys[i]);
        waiter = lasting_lock(fixture.client, "first", "second");
        fixture_start_acquire(waiter, &waited);
        await_listeners("first");
        await_listeners("second");
        run_ms(300);
        expect_woken();
        close_both();
    }
}

/* The confirmation for one of two keys is not enough: the waiter neither polls at it nor relies on notices. */
BOTH_TEST(one_key_of_two_is_not_enough)
{
    for (uint32_t i = 0; i < 3; i++) {
        server_do(SERVER(i), "ACL SETUSER few on >pw ~* +@all resetchannels &quorlock:released:first");
    }
    fixture_log_in("few:pw@", "");
    fixture_client(3);
    hold("second");
    waiter = lasting_lock(fixture.client, "first", "second");
    fixture_start_acquire(waiter, &waited);
    await_listeners("first");
    await_log("SUBSCRIBE: NOPERM", 1);
    run_ms(300);
    assert_int_equal(quorlock_lock_cancel(waiter), 0);
    await_count(&waited.calls, 1, GENEROUS_MS, "the canceled wait");
    assert_int_equal(waited.result.rounds, 1);
}

/* Others of this process wait for the key, so notices of it come. */
CLIENT_TEST(a_broken_lock_with_waiters_beside_it_is_lost_soon)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock *other = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    struct seen_report report = {.calls = 0};
    struct seen_loss loss = {.calls = 0};
    struct seen seen, later;

    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    fixture_start_acquire(other, &later);
    await_listeners("key");
    fixture_break(fixture_new_client(3), "key", &report);
    await_count(&loss.calls, 1, GENEROUS_MS, "the loss is told");
    assert_int_equal(loss.loss.reason, QUORLOCK_LOSS_GONE);
    assert_status(fixture_release(lock, &seen), QUORLOCK_ERR_LOST);
    await_status(&later, QUORLOCK_OK, "the waiter is granted");
    assert_status(fixture_release(other, &later), QUORLOCK_OK);
}
