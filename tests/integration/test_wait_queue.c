/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wait_queue.c - handles of one client that wait for the same key form a queue, and only the first asks
 * the nodes
 *
 * test_dequeue.c tests waiters that leave it without the key.
 */
#include "queue_fixture.h"

static quorlock_client *other_client(void)
{
    quorlock_client *other = fixture_new_client(0);

    fixture_await_ready(other, fixture.cluster.n);
    return other;
}

/* ---- the order, and its cost ---- */

CLIENT_TEST(granted_in_the_order_of_coming)
{
    struct seen held, released;
    quorlock_lock *holder = hold_key(&held);

    enqueue(0, 10, NO_LIMIT);
    run_ms(100);
    assert_int_equal(completed(0, 10), 0);
    fixture_start_release(holder, &released);
    for (int i = 0; i < 10; i++) {
        await_completed(0, i + 1, "the next in the queue");
        assert_int_equal(completed(i + 1, 10), 0);
        assert_status(queue.seen[i].result.status, QUORLOCK_OK);
        assert_true(quorlock_lock_valid_ms(queue.locks[i]) > 0);
        assert_true(strcmp(queue.seen[i].owner, i > 0 ? queue.seen[i - 1].owner : held.owner) != 0);
        assert_true(holders("key", queue.seen[i].owner) >= 2);
        assert_int_equal(quorlock_lock_release(queue.locks[i], NULL, NULL), 0);
    }
    await_free("key");
    free_queue(0, 10);
}

/* Commands on locks while so many handles wait for a while. */
static long long cost_of_waiting(int n, uint32_t span_ms)
{
    long long before = lock_calls();
    long long after;

    enqueue(0, n, NO_LIMIT);
    run_ms(span_ms);
    assert_int_equal(completed(0, n), 0);
    after = lock_calls();
    free_queue(0, n);
    await_completed(0, n, "freed in the queue");
    return after - before;
}

CLIENT_TEST(many_waiters_cost_as_much_as_one)
{
    long long one, many;

    take_by_hand(3, "key", "by-hand");
    one = cost_of_waiting(1, 1500);
    many = cost_of_waiting(QUEUE_MAX, 1500);
    print_message("one costs %lld commands, %d cost %lld\n", one, QUEUE_MAX, many);
    assert_true(one > 0);
    /* They poll after random pauses. */
    assert_true(many <= 3 * one + 10);
    assert_int_equal(holders("key", "by-hand"), 3);
}

CLIENT_TEST(a_single_try_does_not_queue)
{
    struct seen seen;
    quorlock_lock *once;

    take_by_hand(3, "key", "by-hand");
    enqueue(0, 3, NO_LIMIT);
    once = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(once, &seen), QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "is held by by-hand");
    assert_int_equal(seen.result.rounds, 1);
    assert_int_equal(completed(0, 3), 0);
    free_queue(0, 3);
}

/* ---- hand-over ---- */

/*
 * Checked after every turn of the loop: where the release and the next acquire are sent together, a quorum
 * always has the key. Not where this process lets others come first, or was just polling at the release.
 */
CLIENT_TEST(handed_over_in_one_flush)
{
    enum { TURNS = 12 };
    struct seen held;
    int at_once = 0;
    quorlock_lock *holder = hold_key(&held);

    await_holders("key", held.owner, 3);
    enqueue(0, TURNS, NO_LIMIT);
    run_ms(50);
    assert_int_equal(quorlock_lock_release(holder, NULL, NULL), 0);
    for (int i = 0; i < TURNS; i++) {
        uint64_t until_us = clock_us() + GENEROUS_MS * 1000ull;
        bool seen_free = false;

        while (queue.seen[i].calls == 0) {
            fixture_turn(until_us);
            seen_free |= holders("key", NULL) < 2;
            assert_true(clock_us() < until_us);
        }
        assert_status(queue.seen[i].result.status, QUORLOCK_OK);
        at_once += !seen_free;
        assert_int_equal(quorlock_lock_release(queue.locks[i], NULL, NULL), 0);
    }
    print_message("%d of %d at once\n", at_once, TURNS);
    assert_true(at_once >= 1);
    await_free("key");
    free_queue(0, TURNS);
}

static bool first_or(void *arg)
{
    const struct seen *stranger = arg;

    return queue.seen[0].calls > 0 || stranger->calls > 0;
}

/* A waiter of another process, which polls, is not quicker than the next in the queue of this one. */
CLIENT_TEST(the_next_in_the_queue_comes_before_another_client)
{
    struct seen held, waited;
    quorlock_lock *holder;
    int first = 0;
    quorlock_client *other = other_client();
    quorlock_lock *stranger = fixture_lock(other, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));

    for (int round = 0; round < 5; round++) {
        holder = hold_key(&held);
        fixture_start_acquire(stranger, &waited);
        run_ms(100);
        enqueue(0, 1, NO_LIMIT);
        run_ms(20);
        assert_int_equal(quorlock_lock_release(holder, NULL, NULL), 0);
        await(first_or, &waited, GENEROUS_MS, "one of them");
        first += queue.seen[0].calls == 1 && waited.calls == 0;
        if (waited.calls == 0) assert_int_equal(quorlock_lock_release(queue.locks[0], NULL, NULL), 0);
        await_status(&waited, QUORLOCK_OK, "the other client's turn");
        assert_int_equal(quorlock_lock_release(stranger, NULL, NULL), 0);
        await_completed(0, 1, "this process's turn");
        quorlock_lock_free(queue.locks[0]);
        quorlock_lock_free(holder);
        await_free("key");
    }
    assert_true(first >= 1);
}

/* Releases each grant at once and acquires again, until it is stopped. */
struct turner {
    quorlock_lock *lock;
    bool stop;
    int grants, ends;
};

static void turner_completed(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct turner *turner = arg;

    if (result->status != QUORLOCK_OK) {
        turner->ends++;
        return;
    }
    turner->grants++;
    assert_int_equal(quorlock_lock_release(lock, NULL, NULL), 0);
    if (turner->stop) {
        turner->ends++;
    } else {
        assert_int_equal(quorlock_lock_acquire(lock, turner_completed, turner), 0);
    }
}

SERVERS_TEST(others_get_their_turn)
{
    enum { TURNERS = 40, TURNS = 5 };
    static struct turner turners[TURNERS];
    struct seen waited;
    quorlock_client *other;
    quorlock_lock *stranger;
    int local = 0;

    memset(turners, 0, sizeof(turners));
    fixture_client(3);
    other = other_client();
    stranger = fixture_lock(other, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    for (int i = 0; i < TURNERS; i++) {
        turners[i].lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
        assert_int_equal(quorlock_lock_acquire(turners[i].lock, turner_completed, &turners[i]), 0);
    }
    await_count(&turners[TURNERS - 1].grants, 1, GENEROUS_MS, "one round");
    for (int turn = 0; turn < TURNS; turn++) {
        /* All the others may have theirs before it, which takes long on a busy machine. */
        memset(&waited, 0, sizeof(waited));
        fixture_start_acquire(stranger, &waited);
        await_count(&waited.calls, 1, 4 * GENEROUS_MS, "its turn");
        assert_status(waited.result.status, QUORLOCK_OK);
        assert_status(fixture_release(stranger, &waited), QUORLOCK_OK);
    }
    for (int i = 0; i < TURNERS; i++) turners[i].stop = true;
    for (int i = 0; i < TURNERS; i++) {
        await_count(&turners[i].ends, 1, GENEROUS_MS, "the last round");
        local += turners[i].grants;
        quorlock_lock_free(turners[i].lock);
    }
    print_message("%d turns of one, %d of %d others\n", TURNS, local, TURNERS);
    fixture_close(other);
    await_free("key");
}

struct again {
    quorlock_lock *lock;
    struct seen *seen;
};

static void acquire_again(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    const struct again *again = arg;

    fixture_start_acquire(again->lock, again->seen);
}

/* A holder that releases and acquires again at once would always be quicker than a waiter, which needs a notice
 * first. */
CLIENT_TEST(a_last_holder_lets_others_come_first)
{
    struct seen first, second;
    int polite = 0;
    quorlock_client *other = fixture_new_client(3);
    quorlock_lock *has = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    quorlock_lock *wants = fixture_lock(other, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));

    assert_status(fixture_acquire(has, &first), QUORLOCK_OK);
    for (int turn = 0; turn < 20; turn++) {
        struct again again = {.lock = has, .seen = &first};

        fixture_start_acquire(wants, &second);
        run_ms(60);
        assert_int_equal(second.calls, 0);
        memset(&first, 0, sizeof(first));
        assert_int_equal(quorlock_lock_release(has, acquire_again, &again), 0);
        while (first.calls + second.calls == 0) fixture_turn(UINT64_MAX);
        polite += first.calls == 0;
        if (second.calls == 0) assert_int_equal(quorlock_lock_release(has, NULL, NULL), 0);
        await_count(&second.calls, 1, GENEROUS_MS, "the other's turn");
        assert_int_equal(quorlock_lock_release(wants, NULL, NULL), 0);
        if (first.calls == 0) await_count(&first.calls, 1, GENEROUS_MS, "its own turn again");
        /* If it was quicker after all, it has released it meanwhile. */
        if (quorlock_lock_valid_ms(has) == 0) assert_status(fixture_acquire(has, &first), QUORLOCK_OK);
    }
    print_message("%d of 20 times the other came first\n", polite);
    assert_true(polite >= 10);
}

/* ---- the wait bound behind the first ---- */

static void check_bound(const struct seen *seen, int status, uint32_t wait_ms)
{
    assert_status(seen->result.status, status);
    assert_true(seen->result.elapsed_ms >= wait_ms);
    assert_true(seen->result.elapsed_ms < wait_ms + 5000);
    assert_int_equal(seen->result.valid_ms, 0);
    assert_string_equal(seen->owner, "");
}

CLIENT_TEST(behind_a_lock_of_this_process_is_held)
{
    struct seen held;
    quorlock_lock *holder = hold_key(&held);

    enqueue(0, 1, 60);
    enqueue(1, 3, 1500);
    enqueue(3, 4, 200);
    enqueue(4, 5, NO_LIMIT);
    await_completed(0, 4, "wait bounds");
    check_bound(&queue.seen[0], QUORLOCK_ERR_HELD, 60);
    check_bound(&queue.seen[1], QUORLOCK_ERR_HELD, 1500);
    check_bound(&queue.seen[2], QUORLOCK_ERR_HELD, 1500);
    check_bound(&queue.seen[3], QUORLOCK_ERR_HELD, 200);
    assert_true(queue.seen[3].order < queue.seen[1].order);
    for (int i = 0; i < 4; i++) assert_contains(queue.seen[i].text, "\"key\" is held by another lock of this");
    assert_int_equal(queue.seen[4].calls, 0);
    assert_int_equal(quorlock_lock_release(holder, NULL, NULL), 0);
    await_completed(4, 5, "the waiter without a bound");
    assert_status(queue.seen[4].result.status, QUORLOCK_OK);
    free_queue(0, 5);
    quorlock_lock_free(holder);
    await_free("key");
}

/* Servers that got no time on a busy machine have not answered within the bound. */
static int unanswered(int n)
{
    int found = 0;

    for (int i = 0; i < n; i++) found += queue.seen[i].result.status == QUORLOCK_ERR_NOQUORUM;
    return found;
}

/* Also a waiter that becomes the first just before its wait bound gets the holder in its result. */
SERVERS_TEST(behind_another_client_is_held)
{
    int busy = 0;

    fixture_client(3);
    take_by_hand(3, "key", "by-hand");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
            enqueue(i, i + 1, 250);
            cluster_pause_us(300);
        }
        await_completed(0, 20, "wait bounds");
        if (unanswered(20) > 0 && busy++ < 40) {
            round--;
        } else {
            for (int i = 0; i < 20; i++) {
                check_bound(&queue.seen[i], QUORLOCK_ERR_HELD, 250);
                assert_contains(queue.seen[i].text, "\"key\" is held by ");
            }
        }
        free_queue(0, 20);
    }
    assert_int_equal(holders("key", "by-hand"), 3);
}
