/* SPDX-License-Identifier: BSD-3-Clause */
#include "line_world.h"

struct line_world line;

void stand_in_line(int from, int to, uint32_t wait_ms)
{
    struct quorlock_options options = fixture_lease(LONG_LEASE_MS);

    options.wait_ms = wait_ms;
    for (int i = from; i < to; i++) {
        line.locks[i] = fixture_lock(fixture.client, "key", &options);
        fixture_start_acquire(line.locks[i], &line.seen[i]);
    }
}

void free_line(int from, int to)
{
    for (int i = from; i < to; i++) quorlock_free(line.locks[i]);
}

int told(int from, int to)
{
    int calls = 0;

    for (int i = from; i < to; i++) {
        assert_true(line.seen[i].calls <= 1);
        calls += line.seen[i].calls;
    }
    return calls;
}

struct told_wish {
    int from, to;
};

static bool all_told(void *arg)
{
    const struct told_wish *wish = arg;

    return told(wish->from, wish->to) == wish->to - wish->from;
}

void await_told(int from, int to, const char *what)
{
    struct told_wish wish = {from, to};

    await(all_told, &wish, GENEROUS_MS, what);
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
