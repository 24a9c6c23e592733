/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fair.c - fair locks: waiting clients get the keys in the order in which they came
 *
 * Each contender is a client of its own, as a process would be.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "fixture.h"

#define CONTENDERS 10u

static struct contender {
    quorlock_lock *lock;
    struct seen seen;
    bool stays; /* the test releases it */
} contenders[CONTENDERS + 1];
static uint32_t grants[CONTENDERS + 1], n_grants, wanted;
static bool cycles; /* who has released comes again */

static void on_turn(quorlock_lock *lock, const struct quorlock_result *result, void *arg);

static void on_given_back(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    (void)result;
    if (cycles) assert_int_equal(quorlock_lock_acquire(lock, on_turn, arg), 0);
}

static void on_turn(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct contender *contender = arg;

    on_result(lock, result, &contender->seen);
    if (result->status != QUORLOCK_OK) return;
    if (n_grants < LENGTH(grants)) grants[n_grants++] = (uint32_t)(contender - contenders);
    if (contender->stays) return;
    assert_int_equal(quorlock_lock_release(lock, on_given_back, contender), 0);
}

#define FAIR(shared_keys) LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT, .fair = 1, .shared = (shared_keys))

static bool is_up(uint32_t i)
{
    return SERVER(i)->pid > 0;
}

/* How many stand in the queue of the key on that node, without those that have its yes. */
static long long places_at(uint32_t i, const char *key)
{
    return server_ask_number(SERVER(i), "ZCOUNT quorlock:queue:%s 100000000000000 +inf", key);
}

/* The longest queue of the key on any node. */
static long long in_queue(const char *key)
{
    long long most = 0;

    for (uint32_t i = 0; i < 3; i++) {
        long long here = is_up(i) ? places_at(i, key) : 0;

        if (here > most) most = here;
    }
    return most;
}

struct awaited {
    const char *key;
    long long n;
};

static bool has_queue(void *arg)
{
    const struct awaited *awaited = arg;

    return in_queue(awaited->key) == awaited->n;
}

static void await_queue(const char *key, long long n)
{
    struct awaited awaited = {key, n};

    await(has_queue, &awaited, GENEROUS_MS, "the queue");
}

/* The node that has the longest queue. */
static uint32_t arbiter_of(const char *key)
{
    uint32_t arbiter = 0;

    for (uint32_t i = 0; i < 3; i++) {
        if (is_up(i) && places_at(i, key) == in_queue(key)) arbiter = i;
    }
    return arbiter;
}

static void reset(void)
{
    memset(contenders, 0, sizeof(contenders));
    n_grants = wanted = 0;
    cycles = false;
}

static void contend_by(quorlock_client *client, uint32_t i, const char *const *keys, size_t n_keys,
                       const struct quorlock_lock_options *options)
{
    contenders[i].lock = fixture_lock_all(client, keys, n_keys, options);
    assert_int_equal(quorlock_lock_acquire(contenders[i].lock, on_turn, &contenders[i]), 0);
    wanted++;
}

static void contend(uint32_t i, const char *const *keys, size_t n_keys, const struct quorlock_lock_options *options)
{
    contend_by(fixture_new_client(3), i, keys, n_keys, options);
}

static bool all_granted(void *arg)
{
    (void)arg;
    return n_grants >= wanted;
}

static void expect_in_order(uint32_t first, uint32_t n)
{
    await(all_granted, NULL, GENEROUS_MS, "all grants");
    assert_int_equal(n_grants, wanted);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(grants[i], first + i);
}

static const char *const one[] = {"one"};

/* Client 0 holds the key. */
static void hold(void)
{
    struct seen held = {0};

    reset();
    contenders[0].lock = fixture_lock(fixture.client, "one", FAIR(0));
    assert_status(fixture_acquire(contenders[0].lock, &held), QUORLOCK_OK);
}

/* The others come one after the other. */
/* Another node than the arbiter knows how long each client has waited, to within what a request takes. */
#define APART_MS 200u

static void queue_apart(uint32_t n, uint32_t apart_ms)
{
    for (uint32_t i = 1; i <= n; i++) {
        contend(i, one, 1, FAIR(0));
        await_queue("one", i);
        if (apart_ms != 0) run_ms(apart_ms);
    }
}

static void hold_and_queue_apart(uint32_t n, uint32_t apart_ms)
{
    hold();
    queue_apart(n, apart_ms);
}

static void hold_and_queue(uint32_t n)
{
    hold_and_queue_apart(n, 0);
}

static void give_back(void)
{
    struct seen released = {0};

    assert_status(fixture_release(contenders[0].lock, &released), QUORLOCK_OK);
}

CLIENT_TEST(ten_clients_get_the_key_in_the_order_of_coming)
{
    hold_and_queue(CONTENDERS);
    give_back();
    expect_in_order(1, CONTENDERS);
    await_queue("one", 0);
}

/* Whether a client in the queue has the arbiter's yes. */
static bool is_marked(void *arg)
{
    static const char script[] = "local n = 0 for _, c in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                                 "if string.match(c, '^W') then n = n + 1 end end return n";
    const uint32_t *arbiter = arg;

    return server_ask_number(SERVER(*arbiter), "EVAL %s 1 quorlock:queue:one", script) > 0;
}

/* The others have the key of one holder, as the arbiter had until now: a key that only the arbiter has would make
 * clients ask another one (rule 6.4). */
static uint32_t queue_for_the_arbiters_yes(uint32_t n)
{
    uint32_t arbiter;

    reset();
    take_by_hand(3, "one", "other");
    queue_apart(n, 0);
    arbiter = arbiter_of("one");
    server_do(SERVER(arbiter), "DEL one");
    await(is_marked, &arbiter, GENEROUS_MS, "an attempt");
    return arbiter;
}

CLIENT_TEST(an_attempt_that_fails_at_other_nodes_keeps_its_place)
{
    uint32_t arbiter = queue_for_the_arbiters_yes(CONTENDERS);

    for (uint32_t i = 0; i < 3; i++)
        if (i != arbiter) server_do(SERVER(i), "DEL one");
    expect_in_order(1, CONTENDERS);
    await_queue("one", 0);
}

/* Until when the client that has the arbiter's yes is remembered there. */
static long long marked_until(uint32_t arbiter)
{
    static const char script[] =
        "for _, c in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do if string.match(c, '^W') then "
        "return tonumber(redis.call('ZSCORE', KEYS[1], '~' .. string.sub(c, 2))) end end return 0";

    return server_ask_number(SERVER(arbiter), "EVAL %s 1 quorlock:queue:one", script);
}

static struct {
    uint32_t arbiter;
    long long until_ms;
} marked;

static bool is_marked_for_longer(void *arg)
{
    (void)arg;
    return marked_until(marked.arbiter) > marked.until_ms;
}

/* Otherwise it would be forgotten after two seconds, and those that came later pass. */
CLIENT_TEST(a_client_that_gets_the_arbiters_yes_in_vain_is_remembered)
{
    marked.arbiter = queue_for_the_arbiters_yes(2);
    marked.until_ms = marked_until(marked.arbiter);
    await(is_marked_for_longer, NULL, GENEROUS_MS, "another one");
    for (uint32_t i = 0; i < 3; i++)
        if (i != marked.arbiter) server_do(SERVER(i), "DEL one");
    expect_in_order(1, 2);
}

static bool has_queue_with_prefix(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < 3; i++) {
        if (server_keys(SERVER(i), "p:quorlock:queue:one") > 0) return true;
    }
    return false;
}

CLIENT_TEST(a_queue_has_the_prefix_of_its_clients)
{
    reset();
    fixture.options.key_prefix = "p:";
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SET p:one other PX 60000");
    contend(1, one, 1, FAIR(0));
    await(has_queue_with_prefix, NULL, GENEROUS_MS, "the queue");
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(server_keys(SERVER(i), "quorlock:"), 0);
}

static bool one_granted(void *arg)
{
    (void)arg;
    return n_grants == 1;
}

/* The second handle of a client came before client 3. It stands in the queue when the first handle has the key. */
CLIENT_TEST(handles_of_one_client_keep_their_places_among_other_clients)
{
    quorlock_client *client;

    hold();
    client = fixture_new_client(3);
    contend_by(client, 1, one, 1, FAIR(0));
    contenders[1].stays = true;
    await_queue("one", 1);
    contend_by(client, 2, one, 1, FAIR(0));
    run_ms(200); /* longer than a request takes on a busy machine, which may seem to be waiting less by that */
    contend(3, one, 1, FAIR(0));
    await_queue("one", 2);
    contend_by(client, 4, one, 1, FAIR(0));
    give_back();
    await(one_granted, NULL, GENEROUS_MS, "the first grant");
    await_queue("one", 2);
    assert_int_equal(quorlock_lock_release(contenders[1].lock, on_given_back, &contenders[1]), 0);
    expect_in_order(1, 4);
}

/* What a client leaves that came first and is killed after its last look. Its places are as in modules/queue.lua, its
 * life is by the queues' clock, which the node may not have yet. */
static void add_dead_waiter(const char *key, const char *letter)
{
    static const char script[] =
        "local life = redis.call('TIME')[1] * 1000 local clock = redis.call('GET', 'quorlock:clock') "
        "if clock then life = math.floor(string.match(clock, '(%d+)$') / 1000) end "
        "local place = 100000000000017 + (ARGV[1] == 'r' and 4503599627370496 or 0) "
        "redis.call('ZADD', KEYS[1], string.format('%.0f', place), ARGV[1] .. 'dead', "
        "string.format('%.0f', life + 2000), '~dead') return 1";

    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(server_ask_number(SERVER(i), "EVAL %s 1 quorlock:queue:%s %s", script, key, letter), 1);
}

/* Otherwise a list would stand in queues on different nodes, each with another order. */
CLIENT_TEST(all_fair_locks_have_one_arbiter)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    quorlock_client *client = fixture_new_client(3);

    reset();
    for (uint32_t i = 0; i < LENGTH(names); i++) {
        struct seen held = {0};

        assert_status(fixture_acquire(fixture_lock(fixture.client, names[i], FAIR(0)), &held), QUORLOCK_OK);
        contend_by(client, i, &names[i], 1, FAIR(0));
        await_queue(names[i], 1);
        assert_int_equal(arbiter_of(names[i]), arbiter_of(names[0]));
    }
}

/* Return how long the quickest of several new locks took, after the first one. */
static uint32_t quickest_ms(quorlock_client *client)
{
    uint32_t least_ms = UINT32_MAX;

    for (uint32_t i = 0; i < 8; i++) {
        quorlock_lock *lock = fixture_lock(client, "two", FAIR(0));
        struct seen seen = {0};

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        if (i > 0 && seen.result.elapsed_ms < least_ms) least_ms = seen.result.elapsed_ms;
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        quorlock_lock_free(lock);
    }
    return least_ms;
}

/* A fair lock waits for the arbiter's answer for 100 ms, and for its first connection for 250 ms. If that is not spared
 * to a new lock, each one takes as long. */
CLIENT_TEST(a_frozen_arbiter_is_waited_for_by_the_first_lock_of_a_client_only)
{
    uint32_t arbiter;

    hold_and_queue(1);
    arbiter = arbiter_of("one");
    give_back();
    expect_in_order(1, 1);
    server_freeze(SERVER(arbiter));
    assert_in_range(quickest_ms(fixture.client), 0, 99);
    assert_in_range(quickest_ms(fixture_new_client(0)), 0, 249);
    server_thaw(SERVER(arbiter));
}

CLIENT_TEST(a_dead_client_delays_the_others_for_two_looks)
{
    hold_and_queue(1);
    add_dead_waiter("one", "w");
    give_back();
    expect_in_order(1, 1);
}

/* A machine with a hundred waiting clients is gone, and one of another machine is behind them. */
static void add_dead_crowd(const char *key)
{
    static const char script[] =
        "local life = redis.call('TIME')[1] * 1000 local clock = redis.call('GET', 'quorlock:clock') "
        "if clock then life = math.floor(string.match(clock, '(%d+)$') / 1000) end "
        "for i = 1, 100 do "
        "redis.call('ZADD', KEYS[1], string.format('%.0f', 100000000000000 + i), 'wdead' .. i, "
        "string.format('%.0f', life + 10000), '~dead' .. i) end return 1";

    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(server_ask_number(SERVER(i), "EVAL %s 1 quorlock:queue:%s", script, key), 1);
}

/* 10 s; if it asked as seldom as behind the living, minutes. */
CLIENT_TEST(a_crowd_that_died_delays_one_that_lives_for_as_long_as_it_is_remembered)
{
    struct seen seen = {0};
    quorlock_lock *lock;

    add_dead_crowd("one");
    lock = fixture_lock(fixture.client, "one", FAIR(0));
    fixture_start_acquire(lock, &seen);
    await_count(&seen.calls, 1, 2 * GENEROUS_MS, "acquire");
    assert_in_range(seen.result.elapsed_ms, 9000, 2 * GENEROUS_MS);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

CLIENT_TEST(a_lock_that_tries_once_does_not_overtake_and_an_unfair_lock_does)
{
    struct seen seen = {0};

    add_dead_waiter("one", "w");
    assert_status(fixture_acquire(fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .fair = 1)), &seen),
                  QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "\"one\" is kept for a client that waits, dead");
    assert_int_equal(in_queue("one"), 1);
    assert_status(fixture_acquire(fixture_lock(fixture_new_client(3), "one", LEASE(LONG_LEASE_MS)), &seen),
                  QUORLOCK_OK);
}

static long long notices_of(uint32_t node)
{
    static const char script[] = "return tonumber(string.match(redis.call('INFO', 'commandstats'), "
                                 "'cmdstat_publish:calls=(%d+)') or 0)";

    return server_ask_number(SERVER(node), "EVAL %s 0", script);
}

CLIENT_TEST(a_client_that_stops_waiting_leaves_the_queue)
{
    struct seen seen = {0};
    quorlock_lock *middle;
    long long notices;

    fixture_needs_real_servers();
    hold_and_queue(2);
    middle = fixture_lock(fixture_new_client(3), "one", FAIR(0));
    fixture_start_acquire(middle, &seen);
    await_queue("one", 3);
    contend(3, one, 1, FAIR(0));
    await_queue("one", 4);
    /* So long the places would stand that nobody renews or leaves. */
    server_do(
        SERVER(arbiter_of("one")), "EVAL %s 1 quorlock:queue:one",
        "for _, m in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], 0, 1e14)) do redis.call('ZINCRBY', KEYS[1], 9e6, m) "
        "end return 1");
    notices = notices_of(arbiter_of("one"));
    assert_int_equal(quorlock_lock_cancel(middle), 0);
    await_status(&seen, QUORLOCK_ERR_CANCELED, "the cancel");
    await_queue("one", 3);
    /* For those behind. */
    assert_int_equal(notices_of(arbiter_of("one")), notices + 1);
    give_back();
    expect_in_order(1, 3);
}

CLIENT_TEST(the_next_node_keeps_the_order_while_the_arbiter_is_down)
{
    uint32_t arbiter;

    hold_and_queue_apart(4, APART_MS);
    arbiter = arbiter_of("one");
    server_kill(SERVER(arbiter));
    await_queue("one", 4);
    assert_true(arbiter_of("one") != arbiter);
    give_back();
    expect_in_order(1, 4);
    server_start(SERVER(arbiter));
    fixture_await_ready(fixture.client, 3);
    hold_and_queue(4);
    assert_int_equal(arbiter_of("one"), arbiter);
    give_back();
    expect_in_order(1, 4);
}

/* Clients that want single keys again and again, and one that wants them all. */
CLIENT_TEST(a_list_of_keys_gets_its_turn_beside_single_keys)
{
    const char *all[QUORLOCK_KEYS_MAX];
    char names[QUORLOCK_KEYS_MAX][16];

    reset();
    for (uint32_t i = 0; i < QUORLOCK_KEYS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "k%02u", i);
        all[i] = names[i];
    }
    cycles = true;
    for (uint32_t i = 1; i <= 8; i++) contend(i, &all[i % 4], 1, FAIR(0));
    contend(0, all, QUORLOCK_KEYS_MAX, FAIR(0));
    await_count(&contenders[0].seen.calls, 1, GENEROUS_MS, "the list");
    assert_status(contenders[0].seen.result.status, QUORLOCK_OK);
    cycles = false;
}

CLIENT_TEST(a_queue_of_another_type_is_named_and_costs_only_the_order)
{
    struct seen seen = {0};
    quorlock_lock *lock = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .fair = 1));

    server_do(SERVER(0), "SET quorlock:queue:one x");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 1; i < 3; i++) server_do(SERVER(i), "SET quorlock:queue:one x");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_FOREIGN);
    assert_contains(seen.text, "quorlock:queue:one");
}

/* ---- readers ---- */

static struct seen held[8];
static quorlock_lock *sharers[8];

static void queue_up(uint32_t i, uint64_t shared, long long n)
{
    sharers[i] = fixture_lock(fixture_new_client(3), "one", FAIR(shared));
    fixture_start_acquire(sharers[i], &held[i]);
    if (n > 0) await_queue("one", n);
}

static void release_sharer(uint32_t i)
{
    struct seen released = {0};

    await_count(&held[i].calls, 1, GENEROUS_MS, "a turn");
    assert_status(held[i].result.status, QUORLOCK_OK);
    assert_status(fixture_release(sharers[i], &released), QUORLOCK_OK);
}

CLIENT_TEST(a_reader_passes_readers_and_no_writer)
{
    struct seen seen = {0};
    quorlock_lock *reader = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .fair = 1, .shared = 1));

    add_dead_waiter("one", "r");
    assert_status(fixture_acquire(fixture_lock(fixture_new_client(3), "one", LEASE(LONG_LEASE_MS, .fair = 1)), &seen),
                  QUORLOCK_ERR_HELD);
    add_dead_waiter("one", "r");
    assert_status(fixture_acquire(reader, &seen), QUORLOCK_OK);
    assert_status(fixture_release(reader, &seen), QUORLOCK_OK);
    add_dead_waiter("one", "w");
    assert_status(fixture_acquire(reader, &seen), QUORLOCK_ERR_HELD);
}

CLIENT_TEST(readers_that_follow_each_other_in_the_queue_have_their_turn_together)
{
    memset(held, 0, sizeof(held));
    queue_up(0, 0, 0);
    await_count(&held[0].calls, 1, GENEROUS_MS, "the first writer");
    queue_up(1, QUORLOCK_SHARED_ALL, 1);
    queue_up(2, QUORLOCK_SHARED_ALL, 2);
    queue_up(3, 0, 3);
    queue_up(4, QUORLOCK_SHARED_ALL, 4);
    release_sharer(0);
    await_count(&held[1].calls, 1, GENEROUS_MS, "a reader");
    await_count(&held[2].calls, 1, GENEROUS_MS, "its neighbour");
    assert_int_equal(held[3].calls + held[4].calls, 0);
    release_sharer(1);
    assert_int_equal(held[3].calls + held[4].calls, 0);
    release_sharer(2);
    await_count(&held[3].calls, 1, GENEROUS_MS, "the writer");
    assert_int_equal(held[4].calls, 0);
    release_sharer(3);
    release_sharer(4);
}

/* ---- permits ---- */

#define PERMITS     2u
#define FAIR_PERMIT LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT, .fair = 1, .permits = PERMITS, .fencing = true)

/* All permits are held; then the others come one after the other. */
static void hold_permits_and_queue(quorlock_lock **ret_holders, uint32_t n, uint32_t apart_ms)
{
    struct seen holds = {0};

    reset();
    for (uint32_t i = 0; i < PERMITS; i++) {
        ret_holders[i] = fixture_lock(fixture.client, "one", FAIR_PERMIT);
        assert_status(fixture_acquire(ret_holders[i], &holds), QUORLOCK_OK);
    }
    for (uint32_t i = 0; i < n; i++) {
        contend(i, one, 1, FAIR_PERMIT);
        contenders[i].stays = true;
        await_queue("one", i + 1);
        if (apart_ms != 0) run_ms(apart_ms);
    }
}

static bool as_many_granted(void *arg)
{
    return n_grants == *(const uint32_t *)arg;
}

static void release_permit(quorlock_lock *lock, uint32_t granted)
{
    struct seen released = {0};

    assert_status(fixture_release(lock, &released), QUORLOCK_OK);
    await(as_many_granted, &granted, GENEROUS_MS, "the next permit");
}

CLIENT_TEST(permits_are_granted_in_the_order_of_coming)
{
    quorlock_lock *holders[PERMITS];

    hold_permits_and_queue(holders, 6, 0);
    release_permit(holders[0], 1);
    release_permit(holders[1], 2);
    for (uint32_t i = 0; i < 4; i++) release_permit(contenders[i].lock, 3 + i);
    expect_in_order(0, 6);
    await_queue("one", 0);
}

CLIENT_TEST(a_new_client_leaves_a_free_permit_to_one_that_waits)
{
    struct seen seen = {0};
    quorlock_lock *late = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .fair = 1, .permits = PERMITS));

    add_dead_waiter("one", "w");
    /* Of two free slots one is the dead client's. */
    assert_status(fixture_acquire(late, &seen), QUORLOCK_OK);
    late = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .fair = 1, .permits = PERMITS));
    assert_status(fixture_acquire(late, &seen), QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "is kept for a client that waits, dead");
    late = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .permits = PERMITS));
    assert_status(fixture_acquire(late, &seen), QUORLOCK_OK);
}

/* The client had each node's yes, which is taken back: its slot is free again there. */
CLIENT_TEST(an_attempt_for_a_permit_that_fails_at_other_nodes_keeps_its_place)
{
    static const char script[] =
        "local place = 100000000000017 redis.call('ZREM', KEYS[1], 'wdead') "
        "redis.call('ZADD', KEYS[1], string.format('%.0f', -place), 'Wdead', '-2', '=dead') return 1";
    struct quorlock_lock_options *options = LEASE(LONG_LEASE_MS, .fair = 1, .permits = PERMITS);
    struct seen seen = {0};

    add_dead_waiter("one", "w");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(server_ask_number(SERVER(i), "EVAL %s 1 quorlock:queue:one", script), 1);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "one", options), &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "one", options), &seen), QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "is kept for a client that waits, dead");
}

CLIENT_TEST(a_dead_client_delays_permits_for_two_looks)
{
    quorlock_lock *holders[PERMITS];

    hold_permits_and_queue(holders, 1, 0);
    add_dead_waiter("one", "w");
    release_permit(holders[0], 1);
    expect_in_order(0, 1);
}

/* Client A waits for three permits, then client B for one. */
CLIENT_TEST(each_wait_for_a_permit_has_its_place)
{
    quorlock_lock *holders[3];
    struct seen holds = {0};
    const struct quorlock_lock_options *three = LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT, .fair = 1, .permits = 3);
    quorlock_client *client;

    reset();
    for (uint32_t i = 0; i < 3; i++) {
        holders[i] = fixture_lock(fixture.client, "one", three);
        assert_status(fixture_acquire(holders[i], &holds), QUORLOCK_OK);
    }
    client = fixture_new_client(3);
    for (uint32_t i = 0; i < 3; i++) {
        contend_by(client, i, one, 1, three);
        await_queue("one", i + 1);
        contenders[i].stays = true;
    }
    contend(3, one, 1, three);
    contenders[3].stays = true;
    await_queue("one", 4);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(quorlock_lock_release(holders[i], NULL, NULL), 0);
    wanted = 3;
    await(all_granted, NULL, GENEROUS_MS, "three grants");
    /* In any order of the slots, and not B's. */
    for (uint32_t i = 0; i < 3; i++) assert_true(grants[i] < 3);
    wanted = 4;
    assert_int_equal(quorlock_lock_release(contenders[0].lock, NULL, NULL), 0);
    expect_in_order(grants[0], 0);
    assert_int_equal(grants[3], 3);
}

/* The second wait of client A came after client B: it does not inherit the place of the first. */
CLIENT_TEST(a_wait_that_ends_leaves_its_place_to_nobody)
{
    quorlock_client *client;

    hold();
    client = fixture_new_client(3);
    contend_by(client, 3, one, 1, FAIR(0));
    await_queue("one", 1);
    contend(1, one, 1, FAIR(0));
    await_queue("one", 2);
    run_ms(200);
    contend_by(client, 2, one, 1, FAIR(0));
    assert_int_equal(quorlock_lock_cancel(contenders[3].lock), 0);
    await_queue("one", 2);
    wanted = 2;
    give_back();
    expect_in_order(1, 2);
}

/* Behind many others a client is remembered for long; when it has become the first, it must ask. */
CLIENT_TEST(a_client_that_died_far_behind_delays_the_others_for_two_looks)
{
    hold_and_queue(1);
    add_dead_waiter("one", "w");
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "ZADD quorlock:queue:one 99999999999999 ~dead");
    give_back();
    expect_in_order(1, 1);
}

/* ---- far behind (rule 9.5) ---- */

/* As if others asked all the time: otherwise those before a client may all be dead, and it asks soon. */
static void keep_asking(uint32_t arbiter)
{
    static const char script[] =
        "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] "
        "redis.call('SET', 'quorlock:clock', string.format('1 %.0f %.0f %.0f', now, now, now)) "
        "return 1";

    assert_int_equal(server_ask_number(SERVER(arbiter), "EVAL %s 0", script), 1);
}

/* So many whose last look was just now came before those that come later. */
static void add_crowd(uint32_t arbiter, const char *key)
{
    static const char script[] = "local t = redis.call('TIME') for i = 1, 3000 do redis.call('ZADD', KEYS[1], "
                                 "string.format('%.0f', 100000000000000 + t[1] * 1000000 + t[2]), 'wcrowd' .. i, "
                                 "string.format('%.0f', t[1] * 1000 + 600000), '~crowd' .. i) end return 1";

    assert_int_equal(server_ask_number(SERVER(arbiter), "EVAL %s 1 quorlock:queue:%s", script, key), 1);
}

/* How many listen to channels of their own. */
static bool so_many_are_far(void *arg)
{
    static const char script[] = "return #redis.call('PUBSUB', 'CHANNELS', 'quorlock:released:quorlock:turn:*:one')";
    const struct awaited *awaited = arg;
    uint32_t arbiter = arbiter_of("one");

    keep_asking(arbiter);
    return server_ask_number(SERVER(arbiter), "EVAL %s 0", script) == awaited->n;
}

static void await_far(long long n)
{
    struct awaited awaited = {"one", n};

    await(so_many_are_far, &awaited, GENEROUS_MS, "channels of their own");
}

/* All but ten of the crowd go away. Nobody tells that to whoever is behind, and polls after 150 s or more. */
static void end_crowd(uint32_t arbiter)
{
    static const char script[] = "for i = 11, 3000 do redis.call('ZREM', KEYS[1], 'wcrowd' .. i, '~crowd' .. i) end "
                                 "return 1";

    await_far(1);
    run_ms(200); /* it asks again when the node has confirmed the subscription */
    await_far(1);
    assert_int_equal(server_ask_number(SERVER(arbiter), "EVAL %s 1 quorlock:queue:one", script), 1);
}

/* Contender 1 is behind that crowd. */
static void wait_behind_crowd(const struct quorlock_lock_options *options)
{
    uint32_t arbiter = arbiter_of("one");

    add_crowd(arbiter, "one");
    contend(1, one, 1, options);
    end_crowd(arbiter);
}

CLIENT_TEST(a_client_far_behind_is_told_when_a_grant_brings_it_near)
{
    fixture_needs_real_servers();
    hold();
    contend(2, one, 1, FAIR(0));
    await_queue("one", 1);
    wait_behind_crowd(FAIR(0));
    give_back();
    await_far(0);
}

CLIENT_TEST(a_client_far_behind_is_told_when_another_stops_waiting)
{
    fixture_needs_real_servers();
    hold();
    contend(2, one, 1, FAIR(0));
    await_queue("one", 1);
    wait_behind_crowd(FAIR(0));
    assert_int_equal(quorlock_lock_cancel(contenders[2].lock), 0);
    await_far(0);
}

CLIENT_TEST(a_client_far_behind_is_told_when_another_is_forgotten)
{
    fixture_needs_real_servers();
    hold();
    contend(2, one, 1, FAIR(0));
    await_queue("one", 1);
    wait_behind_crowd(FAIR(0));
    server_do(SERVER(arbiter_of("one")), "ZADD quorlock:queue:one 1 ~crowd1");
    await_far(0);
}

CLIENT_TEST(a_client_far_behind_is_told_when_a_permit_brings_it_near)
{
    quorlock_lock *holders[PERMITS];

    fixture_needs_real_servers();
    hold_permits_and_queue(holders, 1, 0);
    wait_behind_crowd(FAIR_PERMIT);
    release_permit(holders[0], 1);
    await_far(0);
}

static bool both_listen_to_the_key(void *arg)
{
    const struct awaited *nodes = arg; /* so many of those that waiters listen to are up */
    static const char script[] = "return redis.call('PUBSUB', 'NUMSUB', 'quorlock:released:' .. ARGV[1])[2]";
    long long listening = 0;

    for (uint32_t i = 0; i < 3; i++)
        if (is_up(i)) keep_asking(i);
    for (uint32_t i = 0; i < 3; i++)
        if (is_up(i)) listening += server_ask_number(SERVER(i), "EVAL %s 0 %s", script, nodes->key);
    return listening == nodes->n * 2;
}

static void await_both_listen_to_the_key(const char *key, long long nodes)
{
    struct awaited awaited = {key, nodes};

    await(both_listen_to_the_key, &awaited, GENEROUS_MS, "subscriptions to the key's channel");
}

/* Whoever is far behind learns nothing from an arbiter that is away. */
CLIENT_TEST(a_client_far_behind_listens_to_the_key_while_the_arbiter_is_away)
{
    fixture_needs_real_servers();
    hold();
    contend(2, one, 1, FAIR(0));
    await_queue("one", 1);
    wait_behind_crowd(FAIR(0));
    server_kill(SERVER(arbiter_of("one")));
    await_both_listen_to_the_key("one", 1);
}

/* As where rights were written for an earlier version. */
CLIENT_TEST(a_client_far_behind_that_may_have_no_channel_of_its_own_listens_to_the_key)
{
    fixture_needs_real_servers();
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "ACL SETUSER default resetchannels &quorlock:released:one");
    hold();
    contend(2, one, 1, FAIR(0));
    await_queue("one", 1);
    add_crowd(arbiter_of("one"), "one");
    contend(1, one, 1, FAIR(0));
    await_both_listen_to_the_key("one", 2);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "ACL SETUSER default allchannels");
}

/* The notice comes when it does not want that channel any more: its client has learned that it may not have another. */
CLIENT_TEST(a_client_far_behind_leaves_its_channel_when_it_is_told)
{
    static const char *const two[] = {"two"};
    quorlock_client *client;
    struct seen got = {0};
    uint32_t arbiter;

    fixture_needs_real_servers();
    for (uint32_t i = 0; i < 3; i++)
        server_do(SERVER(i), "ACL SETUSER default resetchannels &quorlock:released:one &quorlock:released:two "
                             "&quorlock:released:quorlock:turn:*:one");
    hold();
    contend(2, one, 1, FAIR(0));
    await_queue("one", 1);
    client = fixture_new_client(3);
    arbiter = arbiter_of("one");
    add_crowd(arbiter, "one");
    contend_by(client, 1, one, 1, FAIR(0));
    await_far(1);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "two", FAIR(0)), &got), QUORLOCK_OK);
    contend(3, two, 1, FAIR(0));
    await_queue("two", 1);
    add_crowd(arbiter_of("two"), "two");
    contend_by(client, 4, two, 1, FAIR(0));
    await_both_listen_to_the_key("two", 2);
    end_crowd(arbiter);
    give_back();
    await_far(0);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "ACL SETUSER default allchannels");
}

CLIENT_TEST(a_client_that_stops_waiting_for_a_permit_leaves_the_queue)
{
    quorlock_lock *holders[PERMITS];

    hold_permits_and_queue(holders, 2, 0);
    assert_int_equal(quorlock_lock_cancel(contenders[0].lock), 0);
    await_queue("one", 1);
    wanted = 1;
    release_permit(holders[0], 1);
    expect_in_order(1, 1);
}

CLIENT_TEST(the_next_node_keeps_the_order_of_permits_while_the_arbiter_is_down)
{
    quorlock_lock *holders[PERMITS];

    hold_permits_and_queue(holders, 4, APART_MS);
    server_kill(SERVER(arbiter_of("one")));
    await_queue("one", 4);
    release_permit(holders[0], 1);
    release_permit(holders[1], 2);
    for (uint32_t i = 0; i < 2; i++) release_permit(contenders[i].lock, 3 + i);
    expect_in_order(0, 4);
}
