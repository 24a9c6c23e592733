/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_dequeue.c - who leaves the line without the key: canceled, freed, closed, out of memory; and those
 * behind
 */
#include "queue_fixture.h"

#include <stdlib.h>

/* ---- leaving the line ---- */

static void canceled_wherever_it_stands(void **state)
{
    struct seen held;
    quorlock *holder = hold_key(&held);

    enqueue(0, 6, QUORLOCK_WAIT_FOREVER);
    run_ms(50);
    /* One behind. */
    assert_status(quorlock_cancel(queue.locks[2]), QUORLOCK_OK);
    assert_int_equal(queue.seen[2].calls, 0);
    await_completed(2, 3, "canceled behind others");
    assert_status(queue.seen[2].result.status, QUORLOCK_CANCELED);
    assert_status(quorlock_cancel(queue.locks[2]), QUORLOCK_STATE);
    /* The first: the next takes its place. */
    assert_status(quorlock_cancel(queue.locks[0]), QUORLOCK_OK);
    await_completed(0, 1, "canceled as the first");
    assert_status(queue.seen[0].result.status, QUORLOCK_CANCELED);
    assert_int_equal(completed(1, 2) + completed(3, 6), 0);
    assert_int_equal(quorlock_release(holder, NULL, NULL), 0);
    await_completed(1, 2, "the new first");
    assert_status(queue.seen[1].result.status, QUORLOCK_OK);
    /* All who are left, and then the keys are free. */
    for (int i = 3; i < 6; i++) assert_status(quorlock_cancel(queue.locks[i]), QUORLOCK_OK);
    await_completed(3, 6, "all canceled");
    for (int i = 3; i < 6; i++) assert_status(queue.seen[i].result.status, QUORLOCK_CANCELED);
    assert_true(holders("key", queue.seen[1].owner) >= 2);
    assert_int_equal(quorlock_release(queue.locks[1], NULL, NULL), 0);
    await_free("key");
    /* They are as good as new. */
    assert_status(fixture_acquire(queue.locks[4], &queue.seen[4]), QUORLOCK_OK);
    free_queue(0, 6);
    quorlock_free(holder);
    await_free("key");
}

/* All at once, at any moment of the first one's attempt. */
static void all_canceled_leave_nothing(void **state)
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

static void freed_in_line(void **state)
{
    struct seen held;
    quorlock *holder = hold_key(&held);

    enqueue(0, 5, QUORLOCK_WAIT_FOREVER);
    run_ms(50);
    quorlock_free(queue.locks[0]);
    quorlock_free(queue.locks[3]);
    assert_int_equal(completed(0, 5), 0);
    await_completed(0, 1, "freed as the first");
    await_completed(3, 4, "freed behind others");
    assert_status(queue.seen[0].result.status, QUORLOCK_CANCELED);
    assert_status(queue.seen[3].result.status, QUORLOCK_CANCELED);
    /* So does the holder's. */
    quorlock_free(holder);
    await_completed(1, 2, "the next");
    assert_status(queue.seen[1].result.status, QUORLOCK_OK);
    assert_int_equal(completed(2, 3) + completed(4, 5), 0);
    quorlock_free(queue.locks[1]);
    await_completed(2, 3, "the one after");
    quorlock_free(queue.locks[4]);
    quorlock_free(queue.locks[2]);
    await_completed(4, 5, "the last");
    assert_status(queue.seen[4].result.status, QUORLOCK_CANCELED);
    await_free("key");
    run_ms(50);
    assert_int_equal(completed(0, 5), 5);
}

static void closed_with_a_line(void **state)
{
    struct seen held;

    for (int round = 0; round < 3; round++) {
        int first_told = 0;

        fixture_client(3);
        if (round == 1) (void)hold_key(&held);
        if (round == 2) take_by_hand(3, "key", "by-hand");
        enqueue(0, 10, QUORLOCK_WAIT_FOREVER);
        if (round != 0) run_ms(50);
        /* One leaves it in the same breath. */
        quorlock_free(queue.locks[round]);
        assert_int_equal(completed(0, 10), 0);
        fixture_close(fixture.client);
        for (int i = 0; i < 10; i++) {
            assert_int_equal(queue.seen[i].calls, 1);
            first_told += queue.seen[i].result.status == QUORLOCK_CANCELED;
            if (i != round) assert_status(queue.seen[i].result.status, QUORLOCK_CLOSED);
        }
        assert_int_equal(first_told, 1);
        assert_int_equal(holders("key", NULL), round == 2 ? 3 : 0);
    }
}

/* ---- what goes wrong in front ---- */

static void the_firsts_grant_is_lost(void **state)
{
    struct seen seen;
    struct seen_loss loss = {.calls = 0};
    quorlock *holder;

    fixture.options.node_timeout_ms = 3000;
    fixture_client(3);
    /* a try does not stand in line */
    holder = fixture_lock(fixture.client, "key",
                          LEASE(1500, .renew_ms = QUORLOCK_RENEW_NEVER, .wait_ms = QUORLOCK_WAIT_FOREVER));
    quorlock_on_lost(holder, on_loss, &loss);
    assert_status(fixture_acquire(holder, &seen), QUORLOCK_OK);
    enqueue(0, 2, QUORLOCK_WAIT_FOREVER);
    /* Nobody releases. */
    await_completed(0, 1, "after the loss");
    assert_status(queue.seen[0].result.status, QUORLOCK_OK);
    assert_int_equal(loss.calls, 1);
    assert_true(loss.order < queue.seen[0].order);
    assert_int_equal(quorlock_valid_ms(holder), 0);
    /* Whoever lost it and did not release it may ask anew, and stands behind. */
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

/* What was lost and not released is given back when its owner asks anew, although he stands behind others. */
static void asks_anew_for_what_it_lost(void **state)
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
    /* Its key stands there for two minutes yet. */
    assert_int_equal(holders("key", seen.owner), 3);
    fixture_start_acquire(holder, &seen);
    await_completed(0, 1, "who stood in line before");
    assert_status(queue.seen[0].result.status, QUORLOCK_OK);
    assert_int_equal(quorlock_release(queue.locks[0], NULL, NULL), 0);
    await_count(&seen.calls, 1, GENEROUS_MS, "its own turn");
    assert_status(seen.result.status, QUORLOCK_OK);
    free_queue(0, 1);
    quorlock_free(holder);
    await_free("key");
}

/* ---- memory ---- */

struct memory {
    bool gone;
    int refused;
};

static void *allocate(void *arg, size_t size)
{
    struct memory *memory = arg;

    memory->refused += memory->gone;
    return memory->gone ? NULL : malloc(size);
}

static void *reallocate(void *arg, void *block, size_t size)
{
    struct memory *memory = arg;

    memory->refused += memory->gone;
    return memory->gone ? NULL : realloc(block, size);
}

static void release(void *arg, void *block)
{
    free(block);
}

/* Memory ends while the first is told, and is there again a little later. */
struct short_of_memory {
    struct memory memory;
    struct seen seen;
};

static void told_without_memory(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct short_of_memory *shortage = arg;

    on_result(lock, result, &shortage->seen);
    shortage->memory.gone = false;
}

static void who_cannot_ask_lets_the_next_go(void **state)
{
    struct short_of_memory shortage = {.memory = {.gone = false}};
    const struct quorlock_allocator allocator = {sizeof(allocator), allocate, reallocate, release,
                                                 &shortage.memory};
    struct quorlock_options options = *LEASE(LONG_LEASE_MS);
    quorlock *second;

    fixture.options.allocator = &allocator;
    fixture_client(3);
    take_by_hand(3, "key", "by-hand");
    enqueue(0, 1, QUORLOCK_WAIT_FOREVER);
    /* With a lease of its own, so that the first one's place is no good for it. */
    options.lease_ms = LONG_LEASE_MS / 2;
    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    /* With another lease it cannot go on with what the first began. */
    options.lease_ms--;
    second = fixture_lock(fixture.client, "key", &options);
    assert_int_equal(quorlock_acquire(second, told_without_memory, &shortage), 0);
    enqueue(1, 3, QUORLOCK_WAIT_FOREVER);
    run_ms(50);
    assert_status(quorlock_cancel(queue.locks[0]), QUORLOCK_OK);
    shortage.memory.gone = true;
    await_count(&shortage.seen.calls, 1, GENEROUS_MS, "no memory to ask");
    assert_true(shortage.memory.refused > 0);
    assert_status(shortage.seen.result.status, QUORLOCK_NOMEM);
    assert_contains(shortage.seen.text, "out of memory");
    shortage.memory.gone = false;
    drop_by_hand("key");
    for (int i = 1; i < 3; i++) {
        await_count(&queue.seen[i].calls, 1, GENEROUS_MS, "who came later");
        /* While memory was away they were told the same; at the latest a new one gets it. */
        if (queue.seen[i].result.status == QUORLOCK_OK) {
            assert_int_equal(quorlock_release(queue.locks[i], NULL, NULL), 0);
        } else {
            assert_status(queue.seen[i].result.status, QUORLOCK_NOMEM);
        }
    }
    assert_status(fixture_acquire(second, &shortage.seen), QUORLOCK_OK);
    quorlock_free(second);
    free_queue(0, 3);
    await_free("key");
}

/* ---- callbacks that meddle ---- */

struct meddler {
    struct seen seen;
    quorlock *victim;
};

static void frees_another(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct meddler *meddler = arg;

    on_result(lock, result, &meddler->seen);
    quorlock_free(meddler->victim);
}

/* Who tries once is told between the first one's end and its callback. */
static void the_first_is_freed_by_a_callback(void **state)
{
    struct meddler meddler = {.seen = {.calls = 0}};
    struct seen tried[4];
    quorlock *meddling, *once[4];

    take_by_hand(3, "key", "by-hand");
    enqueue(0, 2, QUORLOCK_WAIT_FOREVER);
    run_ms(50);
    meddling = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    meddler.victim = queue.locks[0];
    assert_int_equal(quorlock_acquire(meddling, frees_another, &meddler), 0);
    for (int i = 0; i < 4; i++) {
        once[i] = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
        fixture_start_acquire(once[i], &tried[i]);
    }
    await_count(&meddler.seen.calls, 1, GENEROUS_MS, "the meddler");
    for (int i = 0; i < 4; i++) await_count(&tried[i].calls, 1, GENEROUS_MS, "who tries once");
    await_completed(0, 1, "who was freed");
    assert_status(queue.seen[0].result.status, QUORLOCK_CANCELED);
    drop_by_hand("key");
    await_completed(1, 2, "the next");
    assert_status(queue.seen[1].result.status, QUORLOCK_OK);
    for (int i = 0; i < 4; i++) quorlock_free(once[i]);
    quorlock_free(meddling);
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

/* Somebody who answers each failure with a new try does not keep others from hearing of theirs. */
static void a_stubborn_one_drowns_nobody(void **state)
{
    struct stubborn stubborn = {.calls = 0};
    quorlock *lock;
    int calls;

    fixture.options.reconnect_min_ms = fixture.options.reconnect_max_ms = 20;
    fixture_client(3);
    for (int i = 0; i < 3; i++) server_kill(SERVER(i));
    lock = fixture_lock(fixture.client, "another", LEASE(LONG_LEASE_MS));
    assert_int_equal(quorlock_acquire(lock, tries_again, &stubborn), 0);
    /* From when nobody is connected on, each try fails at once. */
    await_count(&stubborn.calls, 100, GENEROUS_MS, "tries");
    enqueue(0, 3, QUORLOCK_WAIT_FOREVER);
    for (int i = 2; i >= 0; i--) assert_status(quorlock_cancel(queue.locks[i]), QUORLOCK_OK);
    await_completed(0, 3, "canceled");
    stubborn.stop = true;
    calls = stubborn.calls;
    await_count(&stubborn.calls, calls + 1, GENEROUS_MS, "the last try");
    free_queue(0, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CLIENT(canceled_wherever_it_stands),
        WITH_CLIENT(all_canceled_leave_nothing),
        WITH_CLIENT(freed_in_line),
        WITH_SERVERS(closed_with_a_line),
        WITH_SERVERS(the_firsts_grant_is_lost),
        WITH_CLIENT(asks_anew_for_what_it_lost),
        WITH_SERVERS(who_cannot_ask_lets_the_next_go),
        WITH_CLIENT(the_first_is_freed_by_a_callback),
        WITH_SERVERS(a_stubborn_one_drowns_nobody),
    };

    return cmocka_run_group_tests_name("the ends of a line", tests, NULL, NULL);
}
