/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_alloc_sweep.c - the 1st, 2nd, 3rd... allocation fails, until a whole life passes without reaching it
 *
 * Whatever fails, nothing crashes or leaks, each promised callback comes once, and the client can be closed.
 */
#include "fixture.h"

#include <stdlib.h>

#define SWEEP_MAX 4000

struct memory {
    long calls;    /* allocations asked for */
    long fail_at;  /* this one fails, from 1 */
    bool for_good; /* and all after it */
    long blocks;   /* not given back yet */
};

static bool refuses(struct memory *memory)
{
    memory->calls++;
    return memory->for_good ? memory->calls >= memory->fail_at : memory->calls == memory->fail_at;
}

static void *sweep_allocate(void *arg, size_t size)
{
    struct memory *memory = arg;
    void *block = refuses(memory) ? NULL : malloc(size);

    memory->blocks += block != NULL;
    return block;
}

static void *sweep_reallocate(void *arg, void *block, size_t size)
{
    struct memory *memory = arg;
    void *grown = refuses(memory) ? NULL : realloc(block, size);

    memory->blocks += block == NULL && grown != NULL;
    return grown;
}

static void sweep_release(void *arg, void *block)
{
    struct memory *memory = arg;

    memory->blocks -= block != NULL;
    free(block);
}

/* What may come of a start: a callback, or a refusal and no callback. */
static bool started(int status)
{
    if (status == QUORLOCK_OK) return true;
    assert_true(status == QUORLOCK_NOMEM || status == QUORLOCK_STATE);
    return false;
}

static int ended(struct seen *seen, const char *what)
{
    await_count(&seen->calls, 1, GENEROUS_MS, what);
    assert_int_equal(seen->calls, 1);
    return seen->result.status;
}

static void hold_and_release(quorlock *lock)
{
    struct seen seen = {.calls = 0};

    if (!started(quorlock_acquire(lock, on_result, &seen))) return;
    if (ended(&seen, "acquire") != QUORLOCK_OK) return;
    seen.calls = 0;
    if (started(quorlock_extend(lock, 0, on_result, &seen))) ended(&seen, "extend");
    seen.calls = 0;
    if (started(quorlock_release(lock, on_result, &seen))) ended(&seen, "release");
    assert_int_equal(seen.calls <= 1, 1);
}

static void inspect_and_break(quorlock_client *client, const char *key)
{
    struct seen_report report = {.calls = 0};

    if (started(quorlock_inspect(client, key, on_report, &report))) {
        await_count(&report.calls, 1, GENEROUS_MS, "inspect");
    }
    report.calls = 0;
    if (started(quorlock_break(client, key, on_report, &report))) {
        await_count(&report.calls, 1, GENEROUS_MS, "break");
    }
    assert_true(report.calls <= 1);
}

static void waits_in_vain(quorlock_client *client, const struct quorlock_options *options)
{
    const char *key = "taken";
    struct seen seen = {.calls = 0};
    quorlock *lock = NULL;

    if (!started(quorlock_new(&lock, client, &key, 1, options))) return;
    if (started(quorlock_acquire(lock, on_result, &seen))) {
        int status = ended(&seen, "acquire of a taken key");

        assert_true(status != QUORLOCK_OK);
    }
    quorlock_free(lock);
}

static quorlock *try_new(quorlock_client *client, const char *const *keys, size_t n_keys,
                         const struct quorlock_options *options)
{
    quorlock *lock = NULL;

    return started(quorlock_new(&lock, client, keys, n_keys, options)) ? lock : NULL;
}

/* Four handles on two keys: two of one owner reenter, one waits behind another. */
static void reenters_and_waits(quorlock_client *client, const char *key, struct quorlock_options options)
{
    const char *const keys[2] = {"zebra", key};
    quorlock *locks[4] = {NULL};
    struct seen seen[4];
    bool waits[4] = {false};

    memset(seen, 0, sizeof(seen));
    options.wait_ms = 400;
    for (int i = 0; i < 4; i++) {
        options.owner = i < 2 ? "me" : NULL;
        locks[i] = try_new(client, keys, 2, &options);
        if (locks[i] != NULL) waits[i] = started(quorlock_acquire(locks[i], on_result, &seen[i]));
        /* Two come during the acquire of the first, one after it. */
        if (i == 2 && waits[0]) ended(&seen[0], "acquire of the first");
    }
    for (int i = 0; i < 4; i++) {
        if (!waits[i] || ended(&seen[i], "acquire") != QUORLOCK_OK) continue;
        waits[i] = false;
        assert_int_equal(quorlock_release(locks[i], NULL, NULL), 0);
    }
    for (int i = 0; i < 4; i++) quorlock_free(locks[i]);
}

/* One whole life; true where no allocation failed. */
static bool live(struct memory *memory)
{
    const struct quorlock_allocator allocator = {sizeof(allocator), sweep_allocate, sweep_reallocate,
                                                 sweep_release, memory};
    struct quorlock_options options = *LEASE(400);
    char key[64];
    const char *const keys[1] = {key};
    quorlock_client *client = NULL;
    quorlock *lock = NULL;
    int status;

    snprintf(key, sizeof(key), "key-%ld-%d", memory->fail_at, memory->for_good);
    fixture.options.allocator = &allocator;
    fixture.options.node_timeout_ms = 50;
    fixture.options.reconnect_min_ms = 1;
    fixture.options.reconnect_max_ms = 2;
    fixture.options.owner_label = "sweep";
    fixture.options.key_prefix = "p:";
    status = quorlock_client_new(&client, fixture.base, &fixture.options);
    if (status != QUORLOCK_OK) {
        assert_status(status, QUORLOCK_NOMEM);
        assert_null(client);
        assert_int_equal(memory->blocks, 0);
        return false;
    }
    fixture_adopt(client);
    if (started(quorlock_new(&lock, client, keys, 1, &options))) hold_and_release(lock);
    reenters_and_waits(client, key, options);
    inspect_and_break(client, key);
    waits_in_vain(client, &options);
    if (memory->fail_at % 2 == 0) quorlock_free(lock); /* close frees it as well */
    fixture_close(client);
    assert_int_equal(memory->blocks, 0);
    return memory->calls < memory->fail_at;
}

static void sweep(bool for_good)
{
    long at = 0;
    bool whole = false;

    for (int i = 0; i < 2; i++) server_do(SERVER(i), "SET p:taken peer");
    while (!whole && at < SWEEP_MAX) {
        struct memory memory = {.fail_at = ++at, .for_good = for_good};

        whole = live(&memory);
    }
    print_message("%ld allocations failed\n", at - 1);
    assert_true(whole);
    /* A sweep over no allocation proves nothing. */
    assert_true(at > 20);
}

static void one_allocation_fails(void **state)
{
    sweep(false);
}

static void memory_ends_for_good(void **state)
{
    sweep(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVERS(one_allocation_fails),
        WITH_SERVERS(memory_ends_for_good),
    };

    return cmocka_run_group_tests_name("alloc sweep", tests, NULL, NULL);
}
