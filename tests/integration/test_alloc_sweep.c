/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_alloc_sweep.c - the 1st, 2nd, 3rd... allocation fails, until a whole life passes without reaching it
 *
 * Whatever fails, nothing crashes or leaks, each promised callback comes once, and the client can be closed.
 */
#include <quorlock/election.h>

#include "fixture.h"

#define SWEEP_MAX 4000

/* What may come of a start: a callback, or a refusal and no callback. */
static bool started(int status)
{
    if (status == QUORLOCK_OK) return true;
    assert_true(status == QUORLOCK_ERR_NOMEM || status == QUORLOCK_ERR_STATE);
    return false;
}

static int ended(struct seen *seen, const char *what)
{
    await_count(&seen->calls, 1, GENEROUS_MS, what);
    assert_int_equal(seen->calls, 1);
    return seen->result.status;
}

static void hold_and_release(quorlock_lock *lock)
{
    struct seen seen = {.calls = 0};

    if (!started(quorlock_lock_acquire(lock, on_result, &seen))) return;
    if (ended(&seen, "acquire") != QUORLOCK_OK) return;
    seen.calls = 0;
    if (started(quorlock_lock_extend(lock, 0, on_result, &seen))) ended(&seen, "extend");
    seen.calls = 0;
    if (started(quorlock_lock_release(lock, on_result, &seen))) ended(&seen, "release");
    assert_int_equal(seen.calls <= 1, 1);
}

static void inspect_and_break(quorlock_client *client, const char *key)
{
    struct seen_report report = {.calls = 0};

    if (started(quorlock_client_inspect(client, key, on_inspected, &report))) {
        await_count(&report.calls, 1, GENEROUS_MS, "inspect");
    }
    report.calls = 0;
    if (started(quorlock_client_inspect_node(client, 0, key, on_inspected, &report))) {
        await_count(&report.calls, 1, GENEROUS_MS, "inspect of a node");
    }
    report.calls = 0;
    if (started(quorlock_client_break(client, key, "nobody", on_broken, &report))) {
        await_count(&report.calls, 1, GENEROUS_MS, "break");
    }
    assert_true(report.calls <= 1);
}

/* Want of memory is no reason to say that a key is free. */
static void inspects_what_is_taken(quorlock_client *client)
{
    static const char *const taken[] = {"taken", "permits"};

    for (int k = 0; k < 2; k++) {
        struct seen_report report = {.calls = 0};

        if (!started(quorlock_client_inspect(client, taken[k], on_inspected, &report))) continue;
        await_count(&report.calls, 1, GENEROUS_MS, "inspect of a taken key");
        for (int i = 0; i < 2; i++) {
            bool holds = report.nodes[i].n_holders == 1 || report.nodes[i].state == QUORLOCK_INSPECT_HELD;

            assert_true(holds || report.nodes[i].state == QUORLOCK_INSPECT_DOWN);
        }
    }
}

static void on_listing(int status, const struct quorlock_list_report *listing, void *arg)
{
    bool listed = false;

    for (size_t i = 0; i < listing->n_locks; i++) listed |= strcmp(listing->locks[i]->key, "listed") == 0;
    /* Want of memory is no reason to say that there is no lock. */
    assert_true(listed || status != QUORLOCK_OK);
    *(int *)arg += listing->more == 0;
}

static void lists(quorlock_client *client, const char *key, bool for_good)
{
    int calls = 0;

    if (started(quorlock_client_list(client, NULL, on_listing, &calls))) await_count(&calls, 1, GENEROUS_MS, "list");
}

static void waits_in_vain(quorlock_client *client, const struct quorlock_lock_options *options)
{
    const char *key = "taken";
    struct seen seen = {.calls = 0};
    quorlock_lock *lock = NULL;

    if (!started(quorlock_lock_new(&lock, client, &key, 1, options))) return;
    if (started(quorlock_lock_acquire(lock, on_result, &seen))) {
        int status = ended(&seen, "acquire of a taken key");

        assert_true(status != QUORLOCK_OK);
    }
    quorlock_lock_free(lock);
}

static quorlock_lock *try_new(quorlock_client *client, const char *const *keys, size_t n_keys,
                              const struct quorlock_lock_options *options)
{
    quorlock_lock *lock = NULL;

    return started(quorlock_lock_new(&lock, client, keys, n_keys, options)) ? lock : NULL;
}

/* Four handles on two keys: two of one owner reenter, one waits behind another. */
static void reenters_and_waits(quorlock_client *client, const char *key, struct quorlock_lock_options options)
{
    const char *const keys[2] = {"zebra", key};
    quorlock_lock *locks[4] = {NULL};
    struct seen seen[4];
    bool waits[4] = {false};

    memset(seen, 0, sizeof(seen));
    options.wait_ms = 400;
    for (int i = 0; i < 4; i++) {
        options.owner = i < 2 ? "me" : NULL;
        locks[i] = try_new(client, keys, 2, &options);
        if (locks[i] != NULL) waits[i] = started(quorlock_lock_acquire(locks[i], on_result, &seen[i]));
        /* Two come during the acquire of the first, one after it. */
        if (i == 2 && waits[0]) ended(&seen[0], "acquire of the first");
    }
    for (int i = 0; i < 4; i++) {
        if (!waits[i] || ended(&seen[i], "acquire") != QUORLOCK_OK) continue;
        waits[i] = false;
        assert_int_equal(quorlock_lock_release(locks[i], NULL, NULL), 0);
    }
    for (int i = 0; i < 4; i++) quorlock_lock_free(locks[i]);
}

/* One of several holders; beside readers; and both kinds of keys in one list. */
static void holds_with_others(quorlock_client *client, const char *key, struct quorlock_lock_options options)
{
    const char *const keys[2] = {key, "zebra"};
    const struct {
        uint32_t permits;
        uint64_t shared;
        size_t n_keys;
    } modes[] = {{3, 0, 1}, {0, QUORLOCK_SHARED_ALL, 1}, {0, 2, 2}};

    options.fencing = 1;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        quorlock_lock *lock;

        options.permits = modes[i].permits;
        options.shared = modes[i].shared;
        lock = try_new(client, keys, modes[i].n_keys, &options);
        if (lock != NULL) hold_and_release(lock);
        quorlock_lock_free(lock);
    }
}

static void count_election(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    ++*(int *)arg;
}

static void count_end(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    *(int *)arg += 1000;
}

static void count_leader(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    ++*(int *)arg;
}

/* Without memory it stands again and again, and memory may never come back. */
static void stands_and_observes(quorlock_client *client, const char *name, bool for_good)
{
    int events = 0;
    int told = 0;
    const struct quorlock_candidate_options options = {
        .size = sizeof(options), .elected = count_election, .ended = count_end, .arg = &events, .lease_ms = 400};
    const struct quorlock_observer_options watching = {
        .size = sizeof(watching), .changed = count_leader, .arg = &told, .poll_ms = 10};
    quorlock_candidate *candidate = NULL;
    quorlock_observer *observer = NULL;

    if (started(quorlock_observer_new(&observer, client, name, &watching)) && !for_good)
        await_count(&told, 1, GENEROUS_MS, "the first look");
    if (started(quorlock_candidate_new(&candidate, client, name, &options)) &&
        started(quorlock_candidate_stand(candidate))) {
        if (!for_good) await_count(&events, 1, GENEROUS_MS, "election");
        if (quorlock_candidate_resign(candidate) == 0) {
            while (events < 1000) await_count(&events, events + 1, GENEROUS_MS, "the end");
        }
    }
    assert_true(events / 1000 <= 1);
    quorlock_candidate_free(candidate);
    quorlock_observer_free(observer);
}

/* What happens in a life. */
typedef void life(quorlock_client *client, const char *key, bool for_good);

static void locks_and_leads(quorlock_client *client, const char *key, bool for_good)
{
    struct quorlock_lock_options options = *LEASE(400);
    quorlock_lock *lock = try_new(client, &key, 1, &options);

    if (lock != NULL) hold_and_release(lock);
    reenters_and_waits(client, key, options);
    holds_with_others(client, key, options);
    inspect_and_break(client, key);
    inspects_what_is_taken(client);
    waits_in_vain(client, &options);
    stands_and_observes(client, key, for_good);
    if (key[strlen(key) - 3] % 2 == 0) quorlock_lock_free(lock); /* close frees it as well */
}

/* One whole life in which that allocation fails, and where `for_good` all after it; true where none failed. */
static bool live(life *lives, long fail_at, bool for_good)
{
    static struct counted counted; /* outlives a failed assertion, as the client does */
    const struct alloc_hooks allocator = counted_hooks(&counted);
    char key[64];
    quorlock_client *client = NULL;
    int status;

    counted = (struct counted){.until_failure = fail_at - 1, .for_good = for_good};
    snprintf(key, sizeof(key), "key-%ld-%d", fail_at, for_good);
    fixture.extras.memory = &allocator;
    fixture.options.node_timeout_ms = 50;
    fixture.options.reconnect_min_ms = 1;
    fixture.options.reconnect_max_ms = 2;
    fixture.options.owner_label = "sweep";
    fixture.options.key_prefix = "p:";
    status = host_loop_client(&client, &fixture.options, &fixture.extras, NULL);
    if (status != QUORLOCK_OK) {
        assert_status(status, QUORLOCK_ERR_NOMEM);
        assert_null(client);
        assert_int_equal(counted.out, 0);
        return false;
    }
    fixture_adopt(client);
    lives(client, key, for_good);
    fixture_close(client);
    assert_int_equal(counted.out, 0);
    return counted.until_failure > 0;
}

static void sweep(life *lives, bool for_good)
{
    long at = 1;

    for (int i = 0; i < 2; i++) {
        server_do(SERVER(i), "SET p:taken peer");
        server_do(SERVER(i), "SET p:listed peer:0123456789abcdef0123456789abcdef01234567");
        server_do(SERVER(i), "SET p:quorlock:permits:permits 2");
        server_do(SERVER(i), "SET p:quorlock:slot:1:permits peer");
    }
    while (at < SWEEP_MAX && !live(lives, at, for_good)) at++;
    print_message("%ld allocations failed\n", at - 1);
    assert_true(at < SWEEP_MAX);
    /* A sweep over no allocation proves nothing. */
    assert_true(at > 20);
}

SERVERS_TEST(one_allocation_fails)
{
    sweep(locks_and_leads, false);
}

SERVERS_TEST(memory_ends_for_good)
{
    sweep(locks_and_leads, true);
}

SERVERS_TEST(one_allocation_of_a_listing_fails)
{
    fixture_needs_real_servers();
    sweep(lists, false);
    sweep(lists, true);
}
