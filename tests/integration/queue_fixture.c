/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue_fixture.h"

struct queue_fixture queue;

void enqueue(int from, int to, uint32_t wait_ms)
{
    struct quorlock_options options = fixture_lease(LONG_LEASE_MS);

    options.wait_ms = wait_ms;
    for (int i = from; i < to; i++) {
        queue.locks[i] = fixture_lock(fixture.client, "key", &options);
        fixture_start_acquire(queue.locks[i], &queue.seen[i]);
    }
}

void free_queue(int from, int to)
{
    for (int i = from; i < to; i++) quorlock_free(queue.locks[i]);
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

quorlock *hold_key(struct seen *seen)
{
    struct quorlock_options options = fixture_lease(LONG_LEASE_MS);
    quorlock *holder = fixture_lock(fixture.client, "key", &options);

    assert_status(fixture_acquire(holder, seen), QUORLOCK_OK);
    return holder;
}

void by_hand_on(const char *key, int n_servers)
{
    for (int i = 0; i < n_servers; i++) server_do(&fixture.cluster.servers[i], "SET %s by-hand PX 60000", key);
}
