/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue_fixture.h"

struct queue_fixture queue;

void enqueue(int from, int to, uint32_t wait_ms)
{
    for (int i = from; i < to; i++) {
        queue.locks[i] = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = wait_ms));
        fixture_start_acquire(queue.locks[i], &queue.seen[i]);
    }
}

void free_queue(int from, int to)
{
    for (int i = from; i < to; i++) quorlock_lock_free(queue.locks[i]);
}

int completed(int from, int to)
{
    int calls = 0;

    for (int i = from; i < to; i++) {
        assert_true(queue.seen[i].calls <= 1);
        calls += queue.seen[i].calls;
    }
    return calls;
}

struct completed_wish {
    int from, to;
};

static bool all_completed(void *arg)
{
    const struct completed_wish *wish = arg;

    return completed(wish->from, wish->to) == wish->to - wish->from;
}

void await_completed(int from, int to, const char *what)
{
    struct completed_wish wish = {from, to};

    await(all_completed, &wish, GENEROUS_MS, what);
}

quorlock_lock *hold_key(struct seen *seen)
{
    quorlock_lock *holder = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));

    assert_status(fixture_acquire(holder, seen), QUORLOCK_OK);
    return holder;
}
