/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_dequeue.c - waiters that leave the queue without the key: canceled, freed, closed, out of memory; and
 * the waiters behind them
 */
#include "queue_fixture.h"

#include <stdlib.h>

/* ---- leaving the queue ---- */

/* All at once, at any moment of the attempt of the first. */
CLIENT_TEST(all_canceled_leave_nothing)
{
    long long clients[3];

    for (int i = 0; i < 3; i++) clients[i] = server_clients(SERVER(i));
    for (int turns = 0; turns < 12; turns++) {
        bool taken = turns % 2 == 1;
        int granted;

        if (taken) take_by_hand(2, "key", "by-hand");
        enqueue(0, 10, QUORLOCK_WAIT_FOREVER);
        for (int i = 0; i < turns / 2; i++) event_base_loop(fixture.base, EVLOOP_NONBLOCK);
        granted = completed(0, 1);
        for (int i = granted; i < 10; i++) assert_status(quorlock_cancel(queue.locks[i]), QUORLOCK_OK);
        await_completed(0, 10, "all canceled");
        for (int i = granted; i < 10; i++) assert_status(queue.seen[i].result.status, QUORLOCK_CANCELED);
        free_queue(0, 10);
        await_holders("key", NULL, taken ? 2 : 0);
        for (int i = 0; taken && i < 2; i++) server_do(SERVER(i), "DEL key");
    }
    for (int i = 0; i < 3; i++) {
        uint64_t until_us = clock_us() + GENEROUS_MS * 1000ull;

        while (server_clients(SERVER(i)) > clients[i] && clock_us() < until_us) run_ms(10);
        assert_int_equal(server_clients(SERVER(i)), clients[i]);
    }
}

/* ---- faults of the first ---- */

SERVERS_TEST(the_grant_of_the_first_is_lost)
{
    struct seen seen;
    struct seen_loss loss = {.calls = 0};
    quorlock *holder;

    fixture.options.node_timeout_ms = 3000;
    fixture_client(3);
    /* a single try does not queue */
    holder = fixture_lock(fixture.client, "key",
                          LEASE(1500, .renew_ms = QUORLOCK_RENEW_NEVER, .wait_ms = QUORLOCK_WAIT_FOREVER));
    quorlock_on_lost(holder, on_loss, &loss);
    assert_status(fixture_acquire(holder, &seen), QUORLOCK_OK);
    enqueue(0, 2, QUORLOCK_WAIT_FOREVER);
    /* No release follows. */
    await_completed(0, 1, "after the loss");
    assert_status(queue.seen[0].result.status, QUORLOCK_OK);
    assert_int_equal(loss.calls, 1);
    assert_true(loss.order < queue.seen[0].order);
    assert_int_equal(quorlock_valid_ms(holder), 0);
    /* A holder that lost it and did not release it may acquire anew, and waits behind. */
    fixture_start_acquire(holder, &seen);
    assert_int_equal(quorlock_release(queue.locks[0], NULL, NULL), 0);
    await_completed(1, 2, "the second");
    assert_int_equal(seen.calls, 0);
    assert_int_equal(quorlock_cancel(holder), 0);
    await_count(&seen.calls, 1, GENEROUS_MS, "canceled");
    free_queue(0, 2);
    quorlock_free(holder);
    await_free("key");
}

/* A lost lock that was not released is released when its handle acquires anew, although it waits behind others.
 */
CLIENT_TEST(a_lost_lock_is_released_when_it_is_acquired_again)
{
    struct seen seen;
    struct seen_loss loss = {.calls = 0};
    quorlock *holder = fixture_lock(fixture.client, "key",
                                    LEASE(LONG_LEASE_MS, .lost_margin_ms = LONG_LEASE_MS - 4000,
                                          .renew_ms = QUORLOCK_RENEW_NEVER, .wait_ms = QUORLOCK_WAIT_FOREVER));

    quorlock_on_lost(holder, on_loss, &loss);
    assert_status(fixture_acquire(holder, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    enqueue(0, 1, QUORLOCK_WAIT_FOREVER);
    await_count(&loss.calls, 1, GENEROUS_MS, "loss");
    /* Its keys stay for two more minutes. */
    assert_int_equal(holders("key", seen.owner), 3);
    fixture_start_acquire(holder, &seen);
    await_completed(0, 1, "the waiter in front");
    assert_status(queue.seen[0].result.status, QUORLOCK_OK);
    assert_int_equal(quorlock_release(queue.locks[0], NULL, NULL), 0);
    await_status(&seen, QUORLOCK_OK, "its own turn");
    free_queue(0, 1);
    quorlock_free(holder);
    await_free("key");
}

/* ---- memory ---- */

/* Memory ends during the callback of the first, and is back a little later. */
struct shortage {
    struct counted memory;
    struct seen seen;
};

static void completed_without_memory(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct shortage *shortage = arg;

    on_result(lock, result, &shortage->seen);
    shortage->memory.until_failure = -1;
}

SERVERS_TEST(a_waiter_without_memory_lets_the_next_go)
{
    static struct shortage shortage; /* until the client is closed */
    const struct quorlock_allocator allocator = counted_hooks(&shortage.memory);
    quorlock *second;

    shortage = (struct shortage){.memory = {.until_failure = -1, .for_good = true}};
    fixture.options.allocator = &allocator;
    fixture_client(3);
    take_by_hand(3, "key", "by-hand");
    enqueue(0, 1, QUORLOCK_WAIT_FOREVER);
    /* With another lease it cannot continue the attempt of the first. */
    second = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS / 2, .wait_ms = QUORLOCK_WAIT_FOREVER));
    assert_int_equal(quorlock_acquire(second, completed_without_memory, &shortage), 0);
    enqueue(1, 3, QUORLOCK_WAIT_FOREVER);
    run_ms(50);
    assert_status(quorlock_cancel(queue.locks[0]), QUORLOCK_OK);
    shortage.memory.until_failure = 0;
    await_count(&shortage.seen.calls, 1, GENEROUS_MS, "no memory to ask");
    assert_status(shortage.seen.result.status, QUORLOCK_NOMEM);
    assert_contains(shortage.seen.text, "out of memory");
    drop_by_hand("key");
    for (int i = 1; i < 3; i++) {
        await_count(&queue.seen[i].calls, 1, GENEROUS_MS, "the later waiters");
        /* They ended the same way if memory was still gone; a new acquire gets it. */
        if (queue.seen[i].result.status == QUORLOCK_OK) {
            assert_int_equal(quorlock_release(queue.locks[i], NULL, NULL), 0);
        } else {
            assert_status(queue.seen[i].result.status, QUORLOCK_NOMEM);
        }
    }
    assert_status(fixture_acquire(second, &shortage.seen), QUORLOCK_OK);
}

/* ---- callbacks that free, and that retry ---- */

struct freeing {
    struct seen seen;
    quorlock *victim;
};

static void free_victim(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct freeing *freeing = arg;

    on_result(lock, result, &freeing->seen);
    quorlock_free(freeing->victim);
}

/* Single tries complete between the end of the first and its callback. */
CLIENT_TEST(a_callback_frees_the_first)
{
    struct freeing freeing = {.seen = {.calls = 0}};
    struct seen tried[4];
    quorlock *freer, *once[4];

    take_by_hand(3, "key", "by-hand");
    enqueue(0, 2, QUORLOCK_WAIT_FOREVER);
    run_ms(50);
    freer = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    freeing.victim = queue.locks[0];
    assert_int_equal(quorlock_acquire(freer, free_victim, &freeing), 0);
    for (int i = 0; i < 4; i++) {
        once[i] = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
        fixture_start_acquire(once[i], &tried[i]);
    }
    await_count(&freeing.seen.calls, 1, GENEROUS_MS, "the callback that frees");
    for (int i = 0; i < 4; i++) await_count(&tried[i].calls, 1, GENEROUS_MS, "a single try");
    await_completed(0, 1, "the freed waiter");
    assert_status(queue.seen[0].result.status, QUORLOCK_CANCELED);
    drop_by_hand("key");
    await_completed(1, 2, "the next");
    assert_status(queue.seen[1].result.status, QUORLOCK_OK);
    for (int i = 0; i < 4; i++) quorlock_free(once[i]);
    quorlock_free(freer);
    quorlock_free(queue.locks[1]);
    await_free("key");
}

struct stubborn {
    int calls;
    bool stop;
};

static void tries_again(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct stubborn *stubborn = arg;

    stubborn->calls++;
    if (!stubborn->stop) assert_int_equal(quorlock_acquire(lock, tries_again, stubborn), 0);
}

/* A callback that answers each failure with a new acquire does not delay the callbacks of others. */
SERVERS_TEST(endless_retries_delay_no_other_callback)
{
    struct stubborn stubborn = {.calls = 0};
    quorlock *lock;
    int calls;

    fixture.options.reconnect_min_ms = fixture.options.reconnect_max_ms = 20;
    fixture_client(3);
    for (int i = 0; i < 3; i++) server_kill(SERVER(i));
    lock = fixture_lock(fixture.client, "another", LEASE(LONG_LEASE_MS));
    assert_int_equal(quorlock_acquire(lock, tries_again, &stubborn), 0);
    /* As soon as no node is connected, each try fails at once. */
    await_count(&stubborn.calls, 100, GENEROUS_MS, "tries");
    enqueue(0, 3, QUORLOCK_WAIT_FOREVER);
    for (int i = 2; i >= 0; i--) assert_status(quorlock_cancel(queue.locks[i]), QUORLOCK_OK);
    await_completed(0, 3, "canceled");
    stubborn.stop = true;
    calls = stubborn.calls;
    await_count(&stubborn.calls, calls + 1, GENEROUS_MS, "the last try");
    free_queue(0, 3);
}
