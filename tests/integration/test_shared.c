/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shared.c - locks that are shared, on three real servers; what one process has of it
 *
 * test_command_parts.py has readers and writers of several processes.
 */
#include "fixture.h"

#define SENTINEL "quorlock:readers"
#define SHARED(...)                                                                                                    \
    fixture_options(&(struct quorlock_lock_options){                                                                   \
        .size = sizeof(struct quorlock_lock_options), .shared = QUORLOCK_SHARED_ALL, .lease_ms = __VA_ARGS__})

#define LONG_MS LONG_LEASE_MS

static quorlock_lock *reader(quorlock_client *client, uint32_t wait_ms)
{
    return fixture_lock(client, "k", SHARED(LONG_MS, .wait_ms = wait_ms));
}

static quorlock_lock *writer(quorlock_client *client, uint32_t wait_ms)
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
    quorlock_lock *one = reader(fixture.client, 0), *two = reader(other, 0);
    quorlock_lock *w = writer(fixture_new_client(3), 0);
    struct seen seen = {0};

    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    assert_status(fixture_acquire(w, &seen), QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "held by readers");
    assert_status(fixture_acquire(writer(fixture.client, 0), &seen), QUORLOCK_ERR_HELD);
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(w, &seen), QUORLOCK_ERR_HELD);
    assert_status(fixture_release(two, &seen), QUORLOCK_OK);
    await_nothing();
    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(one, &seen), QUORLOCK_ERR_HELD);
    assert_status(fixture_release(w, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
}

/* ---- waiting ---- */

/* Not even for a notice. */
CLIENT_TEST(a_reader_beside_one_of_its_process_does_not_wait)
{
    quorlock_lock *one = reader(fixture.client, 0), *two = reader(fixture.client, NO_LIMIT);
    struct seen seen = {0};

    fixture_needs_real_servers();
    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(two, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(server_ask_number(SERVER(i), "EVAL %s 0", "return #redis.call('PUBSUB', 'CHANNELS')"), 0);
    }
}

/* Inside a process the order of coming holds, and readers that follow each other hold together. */
CLIENT_TEST(readers_and_writers_of_a_process_come_in_turn)
{
    quorlock_lock *first = reader(fixture.client, 0), *w = writer(fixture.client, NO_LIMIT);
    quorlock_lock *one = reader(fixture.client, NO_LIMIT), *two = reader(fixture.client, NO_LIMIT);
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
    assert_true(quorlock_lock_valid_ms(one) > 0 && quorlock_lock_valid_ms(two) > 0);
}

/* ---- one owner ---- */

CLIENT_TEST(a_reader_nests_in_its_owner_s_writer)
{
    quorlock_lock *w = fixture_lock(fixture.client, "k", LEASE(LONG_MS, .owner = "me"));
    quorlock_lock *inner = fixture_lock(fixture.client, "k", SHARED(LONG_MS, .owner = "me"));
    struct seen seen = {0};
    char token[TEXT_SIZE];

    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
    snprintf(token, sizeof(token), "%s", seen.owner);
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
    assert_string_equal(seen.owner, token);
    assert_status(fixture_release(w, &seen), QUORLOCK_OK);
    await_holders("k", token, 3);
    assert_status(fixture_release(inner, &seen), QUORLOCK_OK);
    await_nothing();
}

CLIENT_TEST(a_writer_inside_its_owner_s_reader_would_wait_for_itself)
{
    quorlock_lock *one = fixture_lock(fixture.client, "k", SHARED(LONG_MS, .owner = "me"));
    quorlock_lock *again = fixture_lock(fixture.client, "k", SHARED(LONG_MS, .owner = "me"));
    quorlock_lock *w = fixture_lock(fixture.client, "k", LEASE(LONG_MS, .owner = "me", .wait_ms = NO_LIMIT));
    struct seen seen = {0};

    assert_status(fixture_acquire(one, &seen), QUORLOCK_OK);
    assert_status(quorlock_lock_acquire(w, on_result, &seen), QUORLOCK_ERR_STATE);
    assert_contains(quorlock_client_error(fixture.client), "wait for itself");
    assert_status(fixture_acquire(again, &seen), QUORLOCK_OK);
    await_holders("k", SENTINEL, 3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(readers_on(i), 1);
    assert_status(fixture_release(one, &seen), QUORLOCK_OK);
    assert_status(fixture_release(again, &seen), QUORLOCK_OK);
    await_nothing();
    assert_status(fixture_acquire(w, &seen), QUORLOCK_OK);
}
