/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_redisson_wire.c - our hash locks and Redisson's on the same real servers; Redisson's commands by hand
 */
#include "fixture.h"

#include <hiredis/hiredis.h>

#include "redisson_peer.h"
#include "runtime/owner.h"

#define KEY     "job"
#define CHANNEL "redisson_lock__channel:{job}"
#define THEIRS  "9d1c0b7a-0000-4000-8000-0123456789ab:41"
#define OTHERS  "9d1c0b7a-0000-4000-8000-0123456789ab:42"
#define LATCH   "redisson_unlock_latch:{job}:0123abcd"

static quorlock *redisson_lock(uint32_t lease_ms)
{
    return fixture_lock(fixture.client, KEY, LEASE(lease_ms));
}

static quorlock *redisson_held(uint32_t lease_ms, char *ret_owner)
{
    quorlock *lock = redisson_lock(lease_ms);
    struct seen seen;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    if (ret_owner != NULL) snprintf(ret_owner, TEXT_SIZE, "%s", seen.owner);
    return lock;
}

static void peer_takes(uint32_t n, const char *owner, uint32_t lease_ms)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(peer_acquire(SERVER(i), KEY, owner, lease_ms), PEER_NIL);
    }
}

static bool whole(void *owner)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (peer_counts(SERVER(i), KEY, owner) != 1) return false;
    }
    return true;
}

/* ---- what we write ---- */

REDISSON_TEST(layout)
{
    char first[TEXT_SIZE], second[TEXT_SIZE], other[TEXT_SIZE];
    quorlock *lock;
    struct seen seen;

    fixture.options.owner_label = "host:7:"; /* there is no place for it */
    fixture_client(3);
    lock = redisson_held(20000, first);
    assert_true(owner_is_redisson(first));
    assert_string_equal(quorlock_token(lock), first);
    await(whole, first, GENEROUS_MS, "the field on all servers");
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(peer_type_is(SERVER(i), KEY, "hash"));
        assert_int_equal(peer_fields(SERVER(i), KEY), 1);
        assert_in_range(server_pttl(SERVER(i), KEY), 1, 20000);
    }
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.expired, 0);
    await_free(KEY);
    /* One uuid for each client, a new number for each grant. */
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    snprintf(second, sizeof(second), "%s", seen.owner);
    assert_memory_equal(second, first, OWNER_UUID_LENGTH + 1);
    assert_string_not_equal(second, first);
    fixture_close(fixture.client);
    await_free(KEY);
    fixture_client(3);
    redisson_held(20000, other);
    assert_memory_not_equal(other, first, OWNER_UUID_LENGTH);
}

/* ---- exclusion ---- */

REDISSON_TEST(ours_waits_for_theirs)
{
    quorlock *lock = redisson_lock(20000);
    struct seen seen;

    peer_takes(2, THEIRS, 60000);
    peer_takes(2, THEIRS, 60000); /* an inner call of theirs */
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
    assert_contains(seen.text, "is held by 9d1c0b7a:41 on 2 of 3 nodes");
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(seen.votes[i].outcome, QUORLOCK_VOTE_REFUSED);
        assert_string_equal(seen.votes[i].holder, THEIRS);
        assert_in_range(seen.votes[i].ttl_ms, 20001, 60000);
        assert_int_equal(peer_counts(SERVER(i), KEY, THEIRS), 2);
        assert_int_equal(peer_fields(SERVER(i), KEY), 1);
        assert_in_range(server_pttl(SERVER(i), KEY), 20001, 60000);
    }
    /* The failed attempt releases what it took. */
    await_holders(KEY, NULL, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(peer_release(SERVER(i), KEY, THEIRS), 0);
        assert_int_equal(peer_release(SERVER(i), KEY, THEIRS), 1);
    }
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
}

/* An expiry is only ever made later, and a field that is gone comes back in a repair. */
REDISSON_TEST(expiry_and_repair)
{
    char owner[TEXT_SIZE];
    quorlock *lock = redisson_held(3000, owner);

    await(whole, owner, GENEROUS_MS, "the field on all servers");
    server_do(SERVER(0), "PEXPIRE " KEY " 90000");
    server_do(SERVER(1), "DEL " KEY);
    await(whole, owner, GENEROUS_MS, "the repair");
    assert_in_range(server_pttl(SERVER(0), KEY), 3001, 90000);
    assert_in_range(server_pttl(SERVER(1), KEY), 1, 3000);
    assert_true(quorlock_valid_ms(lock) > 0);
}

/* ---- notices ---- */

static void listen_all(struct redisContext *ears[3], const char *channel)
{
    for (uint32_t i = 0; i < 3; i++) ears[i] = peer_listen(SERVER(i), channel);
}

static void hear_all(struct redisContext *ears[3])
{
    char said[TEXT_SIZE];

    for (uint32_t i = 0; i < 3; i++) {
        peer_hear(ears[i], said, sizeof(said));
        assert_string_equal(said, "0");
    }
}

static void deafen_all(struct redisContext *ears[3])
{
    for (uint32_t i = 0; i < 3; i++) peer_deafen(ears[i]);
}

REDISSON_TEST(our_release_is_published)
{
    static const struct {
        const char *key, *channel;
    } rows[] = {{"job", "redisson_lock__channel:{job}"},
                {"{shard}:job", "redisson_lock__channel:{shard}:job"},
                {"odd{", "redisson_lock__channel:odd{"},
                {"odd}", "redisson_lock__channel:{odd}}"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        quorlock *lock = fixture_lock(fixture.client, rows[i].key, LEASE(LONG_LEASE_MS));
        struct redisContext *ears[3];
        struct seen seen;

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        await_holders(rows[i].key, NULL, 3);
        listen_all(ears, rows[i].channel);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_free(rows[i].key);
        hear_all(ears);
        deafen_all(ears);
        quorlock_free(lock);
    }
}

/* Their release is published on the same channel as ours. */
REDISSON_TEST(their_release_wakes_ours)
{
    struct redisContext *ears[3];

    listen_all(ears, CHANNEL);
    peer_takes(3, THEIRS, 30000);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(peer_release(SERVER(i), KEY, THEIRS), 1);
    hear_all(ears);
    deafen_all(ears);
}

/* A user that may not publish can release all the same, and needs no more rights than these. */
REDISSON_TEST(few_rights)
{
    struct seen seen;
    char owner[TEXT_SIZE];
    quorlock *lock;

    for (uint32_t i = 0; i < 3; i++) {
        server_do(SERVER(i), "ACL SETUSER bob reset on >sesame ~job ~ready? resetchannels +info +client|setname "
                             "+eval +evalsha +time +hexists +hscan +hset +hdel +pttl +pexpire");
    }
    fixture_log_in("bob:sesame@", "");
    fixture_client(3);
    lock = redisson_held(20000, owner);
    await(whole, owner, GENEROUS_MS, "the field on all servers");
    assert_status(fixture_extend(lock, 30000, &seen), QUORLOCK_OK);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_true(seen.result.granted >= 2);
    assert_int_equal(seen.result.failed, 0);
    await_free(KEY);
    /* Without the right to set an expiry no lock is written that has none. */
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "ACL SETUSER bob -pexpire");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_AUTH);
    for (uint32_t i = 0; i < 3; i++) assert_false(server_has(SERVER(i), KEY));
}

/* ---- forced unlocks, both ways ---- */

REDISSON_TEST(our_break)
{
    struct redisContext *ears[3];
    struct seen_report seen = {0};

    peer_takes(3, THEIRS, 60000);
    listen_all(ears, CHANNEL);
    fixture_break(fixture.client, KEY, &seen);
    assert_status(seen.status, 0);
    assert_string_equal(seen.holder, THEIRS);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(seen.nodes[i].broken, 1);
        assert_string_equal(seen.nodes[i].holder, THEIRS);
        assert_false(server_has(SERVER(i), KEY));
    }
    hear_all(ears);
    deafen_all(ears);
}

REDISSON_TEST(latches_stay)
{
    quorlock *lock = redisson_lock(20000);
    struct seen seen;
    struct seen_report broken = {0};

    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SET " LATCH " 1 PX 600000");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    peer_takes(3, THEIRS, 60000);
    fixture_break(fixture.client, KEY, &broken);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(server_holds(SERVER(i), LATCH, "1"));
        assert_in_range(server_pttl(SERVER(i), LATCH), 60000, 600000);
    }
}

struct counts {
    int calls;
    uint32_t count[3];
};

static void on_counts(int status, const struct quorlock_report *report, void *arg)
{
    struct counts *counts = arg;

    assert_status(status, 0);
    for (size_t i = 0; i < report->n_nodes; i++) counts->count[i] = report->nodes[i]->count;
    counts->calls++;
}

REDISSON_TEST(inspect)
{
    struct seen_report seen = {0};
    struct counts counts = {0};

    for (int i = 0; i < 3; i++) peer_takes(2, THEIRS, 60000);
    server_do(SERVER(2), "HSET " KEY " mode read " OTHERS " 1"); /* a read-write lock, without expiry */
    fixture_inspect(fixture.client, KEY, &seen);
    assert_int_equal(seen.report.held, 1);
    assert_string_equal(seen.holder, THEIRS);
    assert_in_range(seen.report.valid_ms, 1, 60000);
    assert_string_equal(seen.nodes[0].holder, THEIRS);
    assert_string_equal(seen.nodes[2].holder, "RReadWriteLock:read");
    assert_int_equal(seen.nodes[2].ttl_ms, -1);
    assert_int_equal(quorlock_inspect(fixture.client, KEY, on_counts, &counts), 0);
    await_count(&counts.calls, 1, GENEROUS_MS, "inspect");
    assert_int_equal(counts.count[0], 3);
    assert_int_equal(counts.count[2], 1);
    fixture_inspect(fixture.client, "nobody", &seen);
    assert_string_equal(seen.nodes[0].state, "free");
}

/* A hash too large for one reply is not a lock of ours: refused, and one of its fields is named. */
REDISSON_TEST(large_hash)
{
    quorlock *lock = redisson_lock(20000);
    struct seen seen;
    uint32_t named = 0;

    for (uint32_t i = 0; i < 3; i++) {
        server_do(SERVER(i), "EVAL %s 1 " KEY,
                  "for i = 1, 3000 do redis.call('HSET', KEYS[1], 'f' .. i, i) end "
                  "for i = 1, 2990 do redis.call('HDEL', KEYS[1], 'f' .. i) end");
    }
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
    /* The result needs any two answers. */
    for (uint32_t i = 0; i < 3; i++) named += seen.votes[i].holder[0] == 'f' && seen.votes[i].ttl_ms == -1;
    assert_in_range(named, 2, 3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(peer_fields(SERVER(i), KEY), 10);
}

/* ---- foreign types ---- */

REDISSON_TEST(string_is_foreign)
{
    quorlock *lock = redisson_lock(20000);
    struct seen seen;
    struct seen_report report;

    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SET " KEY " somebody PX 60000");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_FOREIGN);
    assert_contains(seen.text, "not a hash");
    fixture_inspect(fixture.client, KEY, &report);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(report.nodes[i].state, "foreign");
        assert_true(server_holds(SERVER(i), KEY, "somebody"));
        assert_in_range(server_pttl(SERVER(i), KEY), 20001, 60000);
    }
    fixture_break(fixture.client, KEY, &report);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(report.nodes[i].broken, 1);
        assert_string_equal(report.nodes[i].type, "string");
        assert_false(server_has(SERVER(i), KEY));
    }
}

REDISSON_TEST(hash_is_foreign_to_plain)
{
    struct seen seen;
    struct seen_report report;
    quorlock *lock;

    fixture.options.dialect = QUORLOCK_DIALECT_PLAIN;
    fixture_client(3);
    lock = fixture_lock(fixture.client, KEY, LEASE(20000));
    peer_takes(3, THEIRS, 60000);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_FOREIGN);
    assert_contains(seen.text, "--dialect redisson");
    fixture_inspect(fixture.client, KEY, &report);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(report.nodes[i].state, "foreign");
        assert_string_equal(report.nodes[i].type, "hash");
        assert_int_equal(peer_counts(SERVER(i), KEY, THEIRS), 1);
    }
}

/* Ours became a string meanwhile: it is left alone, and the lock is lost. */
REDISSON_TEST(turned_foreign)
{
    quorlock *lock = redisson_held(3000, NULL);
    struct seen_loss loss = {0};

    quorlock_on_lost(lock, on_loss, &loss);
    await_holders(KEY, NULL, 3);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SET " KEY " somebody");
    await_count(&loss.calls, 1, GENEROUS_MS, "the loss");
    for (uint32_t i = 0; i < 3; i++) assert_true(server_holds(SERVER(i), KEY, "somebody"));
}

/* ---- guard, fencing ---- */

static void bootstrap(void)
{
    struct seen_report seen = {0};
    quorlock_client *client;

    fixture.options.guard = QUORLOCK_GUARD_OFF;
    client = fixture_new_client(0);
    assert_int_equal(quorlock_bootstrap(client, NULL, on_report, &seen), 0);
    await_count(&seen.calls, 1, GENEROUS_MS, "bootstrap");
    assert_status(seen.status, 0);
    fixture_close(client);
}

REDISSON_TEST(guard_and_fence)
{
    static const int guards[] = {QUORLOCK_GUARD_CONNECTION, QUORLOCK_GUARD_STRICT};
    uint64_t last = 0;

    bootstrap();
    for (size_t i = 0; i < 2; i++) {
        struct seen seen;
        quorlock_client *client;
        quorlock *lock;

        fixture.options.guard = guards[i];
        client = fixture_new_client(3);
        lock = fixture_lock(client, KEY, LEASE(20000, .fencing = 1));
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_true(seen.result.fence > last);
        last = seen.result.fence;
        assert_status(fixture_extend(lock, 30000, &seen), QUORLOCK_OK);
        await_holders(KEY, NULL, 3);
        for (uint32_t k = 0; k < 3; k++) assert_true(server_pttl(SERVER(k), "quorlock:fence:" KEY) > 60000);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_free(KEY);
        /* The acquire itself sees a lost memory: the script checks the guard in any mode. */
        for (uint32_t k = 0; k < 3; k++) server_do(SERVER(k), "FLUSHALL");
        assert_int_not_equal(fixture_acquire(lock, &seen), QUORLOCK_OK);
        fixture_close(client);
        for (uint32_t k = 0; k < 3; k++) server_do(SERVER(k), "FLUSHALL");
        bootstrap();
    }
}
