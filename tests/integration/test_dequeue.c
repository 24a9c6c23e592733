/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_dequeue.c - waiters that leave the queue without the key, out of memory or at once; and those behind them
 */
#include "queue_fixture.h"

/* Memory ends during the callback of the first, and is back a little later. */
struct shortage {
    struct counted memory;
    struct seen seen;
};

static void completed_without_memory(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct shortage *shortage = arg;

    on_result(lock, result, &shortage->seen);
    shortage->memory.until_failure = -1;
}

SERVERS_TEST(a_waiter_without_memory_lets_the_next_go)
{
    static struct shortage shortage; /* until the client is closed */
    const struct alloc_hooks allocator = counted_hooks(&shortage.memory);
    quorlock_lock *second;

    shortage = (struct shortage){.memory = {.until_failure = -1, .for_good = true}};
    fixture.extras.memory = &allocator;
    fixture_client(3);
    take_by_hand(3, "key", "by-hand");
    enqueue(0, 1, NO_LIMIT);
    /* With another lease it cannot continue the attempt of the first. */
    second = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS / 2, .wait_ms = NO_LIMIT));
    assert_int_equal(quorlock_lock_acquire(second, completed_without_memory, &shortage), 0);
    enqueue(1, 3, NO_LIMIT);
    run_ms(50);
    assert_status(quorlock_lock_cancel(queue.locks[0]), QUORLOCK_OK);
    shortage.memory.until_failure = 0;
    await_count(&shortage.seen.calls, 1, GENEROUS_MS, "no memory to ask");
    assert_status(shortage.seen.result.status, QUORLOCK_ERR_NOMEM);
    assert_contains(shortage.seen.text, "out of memory");
    drop_by_hand("key");
    for (int i = 1; i < 3; i++) {
        await_count(&queue.seen[i].calls, 1, GENEROUS_MS, "the later waiters");
        /* They ended the same way if memory was still gone; a new acquire gets it. */
        if (queue.seen[i].result.status == QUORLOCK_OK) {
            assert_int_equal(quorlock_lock_release(queue.locks[i], NULL, NULL), 0);
        } else {
            assert_status(queue.seen[i].result.status, QUORLOCK_ERR_NOMEM);
        }
    }
    assert_status(fixture_acquire(second, &shortage.seen), QUORLOCK_OK);
}

struct stubborn {
    int calls;
    bool stop;
};

static void tries_again(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct stubborn *stubborn = arg;

    stubborn->calls++;
    if (!stubborn->stop) assert_int_equal(quorlock_lock_acquire(lock, tries_again, stubborn), 0);
}

/* A callback that answers each failure with a new acquire does not delay the callbacks of others. */
SERVERS_TEST(endless_retries_delay_no_other_callback)
{
    struct stubborn stubborn = {.calls = 0};
    quorlock_lock *lock;
    int calls;

    fixture.options.reconnect_min_ms = fixture.options.reconnect_max_ms = 20;
    fixture_client(3);
    for (int i = 0; i < 3; i++) server_kill(SERVER(i));
    lock = fixture_lock(fixture.client, "another", LEASE(LONG_LEASE_MS));
    assert_int_equal(quorlock_lock_acquire(lock, tries_again, &stubborn), 0);
    /* As soon as no node is connected, each try fails at once. */
    await_count(&stubborn.calls, 100, GENEROUS_MS, "tries");
    enqueue(0, 3, NO_LIMIT);
    for (int i = 2; i >= 0; i--) assert_status(quorlock_lock_cancel(queue.locks[i]), QUORLOCK_OK);
    await_completed(0, 3, "canceled");
    stubborn.stop = true;
    calls = stubborn.calls;
    await_count(&stubborn.calls, calls + 1, GENEROUS_MS, "the last try");
    free_queue(0, 3);
}

/* ---- no room at the nodes ---- */

#define MANY      300 /* more than begin to ask at once */
#define BOUND_MS  300u
#define SLOWER_MS 3000u

static struct seen many[MANY];

/* So many ask silent nodes that no other begins. */
static void fill_all_rooms(void)
{
    memset(many, 0, sizeof(many));
    for (int i = 0; i < 3; i++) {
        if (SERVER(i)->pid != 0) server_freeze(SERVER(i));
    }
    for (int i = 0; i < MANY; i++) {
        char key[16];

        snprintf(key, sizeof(key), "many-%d", i);
        fixture_start_acquire(fixture_lock(fixture.client, key, LEASE(LONG_LEASE_MS, .wait_ms = SLOWER_MS)), &many[i]);
    }
}

/* What the first in the queue has seen is the reason of the second, which becomes the first and finds no room. */
SERVERS_TEST(who_waits_for_room_knows_why_the_first_waited)
{
    static const int statuses[] = {QUORLOCK_ERR_HELD, QUORLOCK_ERR_NOQUORUM, QUORLOCK_ERR_TIMEDOUT};

    fixture.options.node_timeout_ms = SLOWER_MS;
    for (size_t i = 0; i < LENGTH(statuses); i++) {
        struct seen first, second;
        quorlock_lock *locks[2];

        fixture_client(3);
        if (statuses[i] == QUORLOCK_ERR_HELD) take_by_hand(3, "key", "peer");
        for (int k = 0; k < 2 && statuses[i] == QUORLOCK_ERR_NOQUORUM; k++) server_kill(SERVER(k));
        if (statuses[i] == QUORLOCK_ERR_TIMEDOUT) fill_all_rooms();
        /* The second has another lease, and cannot continue the attempt of the first. */
        locks[0] = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
        locks[1] = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS / 2, .wait_ms = BOUND_MS));
        fixture_start_acquire(locks[0], &first);
        if (statuses[i] != QUORLOCK_ERR_TIMEDOUT) await_log("waiting for \"key\"", (unsigned)i + 1);
        fixture_start_acquire(locks[1], &second);
        if (statuses[i] != QUORLOCK_ERR_TIMEDOUT) fill_all_rooms();
        assert_status(quorlock_lock_cancel(locks[0]), QUORLOCK_OK);
        await_count(&second.calls, 1, GENEROUS_MS, "the wait bound");
        assert_true(second.result.elapsed_ms >= BOUND_MS);
        for (int k = 0; k < 3; k++) {
            if (SERVER(k)->pid != 0)
                server_thaw(SERVER(k));
            else
                server_start(SERVER(k));
        }
        assert_status(second.result.status, statuses[i]);
        fixture_close(fixture.client);
        drop_by_hand("key");
    }
}
