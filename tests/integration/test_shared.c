/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shared.c - locks that are shared, on three real servers
 */
#include "fixture.h"

#define SENTINEL "quorlock:readers"
#define SHARED(...)                                                                                                    \
    &(struct quorlock_options)                                                                                         \
    {                                                                                                                  \
        .size = sizeof(struct quorlock_options), .shared = QUORLOCK_SHARED_ALL, .lease_ms = __VA_ARGS__                \
    }

#define SHORT_MS 2000 /* a slow machine does not miss it */
#define LONG_MS  LONG_LEASE_MS

static quorlock *reader(quorlock_client *client, uint32_t wait_ms)
{
    return fixture_lock(client, "k", SHARED(LONG_MS, .wait_ms = wait_ms));
}

static quorlock *writer(quorlock_client *client, uint32_t wait_ms)
{
    return fixture_lock(client, "k", LEASE(LONG_MS, .wait_ms = wait_ms));
}

static long long readers_on(uint32_t server)
{
    return server_ask_number(SERVER(server), "ZCARD quorlock:readers:k");
}

/* None of the servers has anything of the key. */
static bool nothing_left(void *arg)
{
    long long left = 0;

    for (uint32_t i = 0; i < 3; i++) left += server_ask_number(SERVER(i), "DBSIZE");
    return left == 0;
}

static void await_nothing(void)
{
    await(nothing_left, NULL, GENEROUS_MS, "all keys gone");
}

/* ---- who holds together ---- */

CLIENT_TEST(readers_hold_together_and_keep_writers_out)
{
    quorlock_client *other = fixture_new_client(3);
    quorlock *one = reader(fixture.client, 0), *two = reader(other, 0);
    quorlock *w = writer(fixture_new_client(3), 0);
    struct seen seen = {0};

    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    assert_status(fixture_acquire(w, &seen), QUORLOCK_HELD);
    assert_contains(seen.text, "held by readers");
    assert_status(fixture_acquire(writer(fixture.client, 0), &seen), QUORLOCK_HELD);
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.expired, 0);
    assert_status(fixture_acquire(w, &seen), QUORLOCK_HELD);
    assert_status(fixture_release(two, &seen), QUORLOCK_OK);
    await_nothing();
    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(one, &seen), QUORLOCK_HELD);
    assert_status(fixture_release(w, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
}

/* A peer, which knows nothing of readers. */
CLIENT_TEST(peers_and_readers_exclude_each_other)
{
    quorlock *one = reader(fixture.client, 0);
    struct seen seen = {0};

    take_by_hand(2, "k", "peer");
    assert_status(fixture_acquire(one, &seen), QUORLOCK_HELD);
    drop_by_hand("k");
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(server_ask_number(SERVER(i), "EVAL %s 1 k",
                                           "return redis.call('SET', KEYS[1], 'peer', 'NX', 'PX', 1000) and 1 or 0"),
                         0);
    }
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    await_nothing();
}

CLIENT_TEST(a_free_key_takes_one_round_trip)
{
    quorlock *one = reader(fixture.client, 0);
    struct seen seen = {0};
    long long before;

    /* All servers know the scripts from then on, also one that was too slow for the quorum. */
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    await_nothing();
    before = lock_calls();
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    assert_int_equal(seen.result.rounds, 1);
    /* The script, and the SET in it. */
    assert_int_equal(lock_calls() - before, 2 * 3);
}

CLIENT_TEST(all_nodes_must_grant_where_the_policy_says_so)
{
    quorlock *one, *two;
    struct seen seen = {0};

    fixture.options.policy = QUORLOCK_ALL;
    fixture_client(3);
    one = reader(fixture.client, 0);
    two = reader(fixture.client, 0);
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(readers_on(i), 2);
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    assert_status(fixture_release(two, &seen), QUORLOCK_OK);
    take_by_hand(1, "k", "peer");
    assert_status(fixture_acquire(one, &seen), QUORLOCK_HELD);
}

/* ---- holding ---- */

CLIENT_TEST(a_reader_is_renewed_and_repaired)
{
    quorlock *lock = fixture_lock(fixture.client, "k", SHARED(SHORT_MS, .wait_ms = GENEROUS_MS));
    struct seen_loss loss = {0};
    struct seen seen = {0};

    quorlock_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    run_ms(3 * SHORT_MS);
    assert_int_equal(loss.calls, 0);
    server_do(SERVER(1), "FLUSHALL");
    await_holders("k", SENTINEL, 3);
    /* An entry without the sentinel is no reader. */
    server_do(SERVER(2), "DEL k");
    await_holders("k", SENTINEL, 3);
    assert_int_equal(loss.calls, 0);
    assert_status(fixture_extend(lock, LONG_MS, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) assert_true(server_pttl(SERVER(i), "k") > LONG_MS / 2);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_nothing();
}

CLIENT_TEST(a_reader_whose_key_is_gone_is_lost)
{
    quorlock *lock = fixture_lock(fixture.client, "k", SHARED(SHORT_MS, .wait_ms = GENEROUS_MS));
    struct seen_loss loss = {0};
    struct seen seen = {0};

    quorlock_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "DEL k");
    await_count(&loss.calls, 1, GENEROUS_MS, "the loss");
    assert_int_equal(loss.loss.reason, QUORLOCK_LOST_GONE);
    assert_int_equal(quorlock_valid_ms(lock), 0);
}

CLIENT_TEST(a_hold_with_a_bound_ends)
{
    quorlock *lock = fixture_lock(fixture.client, "k", SHARED(SHORT_MS, .max_hold_ms = 1));
    struct seen_loss loss = {0};
    struct seen seen = {0};

    quorlock_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_count(&loss.calls, 1, GENEROUS_MS, "the loss");
    assert_int_equal(loss.loss.reason, QUORLOCK_LOST_MAX_HOLD);
    await_free("k");
}

/* ---- waiting ---- */

/* Not even for a notice. */
CLIENT_TEST(a_reader_beside_one_of_its_process_does_not_wait)
{
    quorlock *one = reader(fixture.client, 0), *two = reader(fixture.client, QUORLOCK_WAIT_FOREVER);
    struct seen seen = {0};

    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(server_ask_number(SERVER(i), "EVAL %s 0", "return #redis.call('PUBSUB', 'CHANNELS')"), 0);
    }
}

/* Inside a process the order of coming holds, and readers that follow each other hold together. */
CLIENT_TEST(readers_and_writers_of_a_process_come_in_turn)
{
    quorlock *first = reader(fixture.client, 0), *w = writer(fixture.client, QUORLOCK_WAIT_FOREVER);
    quorlock *one = reader(fixture.client, QUORLOCK_WAIT_FOREVER), *two = reader(fixture.client, QUORLOCK_WAIT_FOREVER);
    struct seen seen = {0}, wrote = {0}, read[2] = {{0}};

    assert_status(fixture_acquire(first, &seen), QUORLOCK_OK);
    fixture_start_acquire(w, &wrote);
    fixture_start_acquire(one, &read[0]);
    fixture_start_acquire(two, &read[1]);
    run_ms(300);
    assert_int_equal(wrote.calls + read[0].calls + read[1].calls, 0);
    assert_status(fixture_release(first, &seen), QUORLOCK_OK);
    await_status(&wrote, QUORLOCK_OK, "the writer");
    assert_int_equal(read[0].calls + read[1].calls, 0);
    assert_status(fixture_release(w, &seen), QUORLOCK_OK);
    await_status(&read[0], QUORLOCK_OK, "a reader");
    await_status(&read[1], QUORLOCK_OK, "the other");
    assert_true(wrote.order < read[0].order && read[0].order < read[1].order);
    assert_true(quorlock_valid_ms(one) > 0 && quorlock_valid_ms(two) > 0);
}

static bool intends(void *arg)
{
    uint32_t nodes = 0;

    for (uint32_t i = 0; i < 3; i++) nodes += server_has(SERVER(i), "quorlock:intents:k");
    return nodes == 3;
}

/* A writer that waits is not passed over by readers of other processes; those that hold go on. */
CLIENT_TEST(a_writer_that_waits_keeps_new_readers_out)
{
    quorlock_client *other = fixture_new_client(3);
    quorlock *old = fixture_lock(other, "k", SHARED(SHORT_MS)), *new = reader(other, 0);
    quorlock *w = writer(fixture.client, QUORLOCK_WAIT_FOREVER);
    struct seen seen = {0}, wrote = {0};

    assert_status(fixture_acquire(old, &seen), QUORLOCK_OK);
    /* Also one that was too slow for the quorum: a writer that finds it free is not kept out there. */
    await_holders("k", SENTINEL, 3);
    fixture_start_acquire(w, &wrote);
    await(intends, NULL, GENEROUS_MS, "the intent on all servers");
    assert_status(fixture_acquire(new, &seen), QUORLOCK_HELD);
    run_ms(2 * SHORT_MS);
    assert_true(quorlock_valid_ms(old) > 0);
    assert_status(fixture_acquire(new, &seen), QUORLOCK_HELD);
    assert_int_equal(wrote.calls, 0);
    assert_status(fixture_release(old, &seen), QUORLOCK_OK);
    await_status(&wrote, QUORLOCK_OK, "the writer");
    /* It waits no more: the intent does not outlive it. */
    await_holders("quorlock:intents:k", NULL, 0);
    assert_status(fixture_release(w, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(new, &seen), QUORLOCK_OK);
}

/* A writer that gives up leaves nothing, and readers that waited behind it are in at once. */
CLIENT_TEST(a_wait_that_ends_leaves_nothing)
{
    quorlock_client *other = fixture_new_client(3);
    quorlock *old = reader(other, 0), *new = reader(fixture_new_client(3), QUORLOCK_WAIT_FOREVER);
    quorlock *w = writer(fixture.client, QUORLOCK_WAIT_FOREVER);
    struct seen seen = {0}, wrote = {0}, read = {0};

    assert_status(fixture_acquire(old, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    fixture_start_acquire(w, &wrote);
    await(intends, NULL, GENEROUS_MS, "the intent on all servers");
    fixture_start_acquire(new, &read);
    assert_status(quorlock_cancel(w), 0);
    await_status(&wrote, QUORLOCK_CANCELED, "the end of the wait");
    await_status(&read, QUORLOCK_OK, "the reader");
    assert_status(fixture_release(old, &seen), QUORLOCK_OK);
    assert_status(fixture_release(new, &seen), QUORLOCK_OK);
    await_nothing();
}

/* ---- several keys ---- */

/* The bits are those of the caller's order. */
CLIENT_TEST(each_key_has_its_mode)
{
    static const char *const keys[] = {"k", "c", "z"};
    const struct quorlock_options options = {.size = sizeof(options), .lease_ms = LONG_MS, .shared = 5};
    quorlock *mixed = fixture_lock_all(fixture.client, keys, 3, &options);
    struct seen seen = {0}, other = {0};

    assert_status(fixture_acquire(mixed, &seen), QUORLOCK_OK);
    await_holders("c", seen.owner, 3);
    await_holders("k", SENTINEL, 3);
    await_holders("z", SENTINEL, 3);
    assert_status(fixture_acquire(reader(fixture.client, 0), &other), QUORLOCK_OK);
    assert_status(fixture_acquire(writer(fixture.client, 0), &other), QUORLOCK_HELD);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "c", SHARED(LONG_MS)), &other), QUORLOCK_HELD);
    assert_status(fixture_release(mixed, &seen), QUORLOCK_OK);
    await_free("c");
    await_free("z");
    assert_int_equal(holders("k", SENTINEL), 3);
}

/* ---- tokens ---- */

CLIENT_TEST(a_reader_is_told_the_latest_writer_s_token)
{
    quorlock *w = fixture_lock(fixture.client, "k", LEASE(LONG_MS, .fencing = 1));
    quorlock *one = fixture_lock(fixture.client, "k", SHARED(LONG_MS, .fencing = 1));
    quorlock *two = fixture_lock(fixture.client, "k", SHARED(LONG_MS, .fencing = 1));
    struct seen seen = {0};
    uint64_t token;

    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
    token = seen.result.fence;
    assert_status(fixture_release(w, &seen), QUORLOCK_OK);
    await_free("k");
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.fence, token);
    assert_int_equal(quorlock_fence(one), token);
    assert_status(fixture_acquire(two, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.fence, token);
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    assert_status(fixture_release(two, &seen), QUORLOCK_OK);
    await_free("k");
    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
    assert_true(seen.result.fence > token);
}

/* ---- one owner ---- */

CLIENT_TEST(a_reader_nests_in_its_owner_s_writer)
{
    quorlock *w = fixture_lock(fixture.client, "k", LEASE(LONG_MS, .owner = "me"));
    quorlock *inner = fixture_lock(fixture.client, "k", SHARED(LONG_MS, .owner = "me"));
    struct seen seen = {0};
    char token[TEXT_SIZE];

    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
    snprintf(token, sizeof(token), "%s", seen.owner);
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
    assert_string_equal(seen.owner, token);
    assert_status(fixture_release(w, &seen), QUORLOCK_OK);
    assert_int_equal(holders("k", token), 3);
    assert_status(fixture_release(inner, &seen), QUORLOCK_OK);
    await_nothing();
}

CLIENT_TEST(a_writer_inside_its_owner_s_reader_would_wait_for_itself)
{
    quorlock *one = fixture_lock(fixture.client, "k", SHARED(LONG_MS, .owner = "me"));
    quorlock *again = fixture_lock(fixture.client, "k", SHARED(LONG_MS, .owner = "me"));
    quorlock *w = fixture_lock(fixture.client, "k", LEASE(LONG_MS, .owner = "me", .wait_ms = QUORLOCK_WAIT_FOREVER));
    struct seen seen = {0};

    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(quorlock_acquire(w, on_result, &seen), QUORLOCK_STATE);
    assert_contains(quorlock_client_error(fixture.client), "wait for itself");
    assert_status(fixture_acquire(again, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(readers_on(i), 1);
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    assert_status(fixture_release(again, &seen), QUORLOCK_OK);
    await_nothing();
    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
}

/* ---- the end ---- */

CLIENT_TEST(a_handle_that_is_freed_gives_back)
{
    quorlock *one = reader(fixture.client, 0), *two = reader(fixture.client, 0);
    struct seen seen = {0};

    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &seen), QUORLOCK_OK);
    quorlock_free(one);
    await_holders("k", SENTINEL, 3);
    fixture_close(fixture.client);
    await_nothing();
}
