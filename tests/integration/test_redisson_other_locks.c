/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_redisson_other_locks.c - Redisson's other locks at the key of ours: RFairLock, whose waiters we wake,
 * and RReadWriteLock, which does not look at locks; their commands by hand
 */
#include "fixture.h"

#include <hiredis/hiredis.h>

#include "redisson_peer.h"

#define KEY    "job"
#define THEIRS "9d1c0b7a-0000-4000-8000-0123456789ab:41"
#define DEAD   "9d1c0b7a-0000-4000-8000-0123456789ab:51"
#define WAITS  "9d1c0b7a-0000-4000-8000-0123456789ab:52"
#define LATER  "9d1c0b7a-0000-4000-8000-0123456789ab:53"

static quorlock_lock *new_lock(const char *key, uint32_t lease_ms)
{
    return fixture_lock(fixture.client, key, LEASE(lease_ms));
}

static quorlock_lock *take(const char *key, uint32_t lease_ms)
{
    quorlock_lock *lock = new_lock(key, lease_ms);
    struct seen seen = {0};

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders(key, NULL, 3);
    return lock;
}

/* ---- fair locks ---- */

/* The queue of one key on one server, and the channels of two of its waiters; the first of the queue died. */
struct queue {
    const struct server *server;
    char name[TEXT_SIZE], waits[TEXT_SIZE], later[TEXT_SIZE];
    struct listener *waits_ear, *later_ear;
};

static void queue_up(struct queue *queue, const struct server *server, const char *tagged)
{
    queue->server = server;
    snprintf(queue->name, sizeof(queue->name), "redisson_lock_queue:%s", tagged);
    snprintf(queue->waits, sizeof(queue->waits), "redisson_lock__channel:%s:" WAITS, tagged);
    snprintf(queue->later, sizeof(queue->later), "redisson_lock__channel:%s:" LATER, tagged);
    server_do(server, "RPUSH %s " DEAD " " WAITS " " LATER, queue->name);
    queue->waits_ear = server_listen(server, queue->waits);
    queue->later_ear = server_listen(server, queue->later);
}

/* The first that listens got one message, the next got none, and the queue is unchanged. */
static void assert_first_was_told(struct queue *queue)
{
    char said[TEXT_SIZE];

    listener_next(queue->waits_ear, NULL, said, sizeof(said));
    assert_string_equal(said, "0");
    assert_int_equal(server_ask_number(queue->server, "PUBLISH %s end", queue->waits), 1);
    assert_int_equal(server_ask_number(queue->server, "PUBLISH %s end", queue->later), 1);
    listener_next(queue->waits_ear, NULL, said, sizeof(said));
    assert_string_equal(said, "end");
    listener_next(queue->later_ear, NULL, said, sizeof(said));
    assert_string_equal(said, "end");
    assert_int_equal(server_ask_number(queue->server, "LLEN %s", queue->name), 3);
    listener_close(queue->waits_ear);
    listener_close(queue->later_ear);
    server_do(queue->server, "DEL %s", queue->name);
}

REDISSON_TEST(a_release_wakes_fair_waiters)
{
    static const struct {
        const char *key, *tagged;
    } rows[] = {{"job", "{job}"}, {"{shard}:job", "{shard}:job"}};

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        quorlock_lock *lock = take(rows[r].key, LONG_LEASE_MS);
        struct queue queues[3];
        struct seen seen = {0};

        for (uint32_t i = 0; i < 3; i++) queue_up(&queues[i], SERVER(i), rows[r].tagged);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_free(rows[r].key);
        for (uint32_t i = 0; i < 3; i++) assert_first_was_told(&queues[i]);
    }
}

REDISSON_TEST(a_break_wakes_fair_waiters)
{
    struct queue queues[3];
    struct seen_report report = {0};

    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(peer_acquire(SERVER(i), KEY, THEIRS, 60000), PEER_NIL);
        queue_up(&queues[i], SERVER(i), "{" KEY "}");
    }
    fixture_break(fixture.client, KEY, &report);
    for (uint32_t i = 0; i < 3; i++) assert_first_was_told(&queues[i]);
}

/* A vote of a failed attempt blocked waiters, so its release wakes them. */
REDISSON_TEST(a_failed_attempt_wakes_fair_waiters)
{
    quorlock_lock *lock;
    struct queue queue;
    struct seen seen = {0};

    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(peer_acquire(SERVER(i), KEY, THEIRS, 60000), PEER_NIL);
    }
    queue_up(&queue, SERVER(2), "{" KEY "}");
    lock = new_lock(KEY, 20000);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    await_holders(KEY, NULL, 2);
    assert_first_was_told(&queue);
}

/* A release succeeds whatever value the key of the queue has. */
REDISSON_TEST(no_queue_hinders_a_release)
{
    quorlock_lock *lock;
    struct seen seen = {0};

    lock = take(KEY, 20000);
    server_do(SERVER(0), "SET redisson_lock_queue:{" KEY "} text");
    server_do(SERVER(1), "HSET redisson_lock_queue:{" KEY "} a b");
    server_do(SERVER(2), "RPUSH redisson_lock_queue:{" KEY "} %s", "");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.failed, 0);
    await_free(KEY);
}

/* ---- read-write locks ---- */

/* It acquires and releases as if ours were not there: the next renewal finds ours gone, and that is a loss. */
REDISSON_TEST(their_read_lock_ends_ours_with_a_loss)
{
    struct seen_loss loss = {0};
    struct seen released = {0};
    quorlock_lock *lock;

    lock = take(KEY, 3000);
    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(peer_read(SERVER(i), KEY, THEIRS, 60000), PEER_NIL);
        assert_int_equal(peer_fields(SERVER(i), KEY), 3);
    }
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(peer_read_end(SERVER(i), KEY, THEIRS), 1);
    await_count(&loss.calls, 1, GENEROUS_MS, "the loss");
    assert_int_equal(loss.loss.reason, QUORLOCK_LOSS_GONE);
    assert_int_equal(loss.loss.remaining_ms, 0);
    assert_int_equal(loss.valid_ms, 0);
    assert_status(fixture_release(lock, &released), QUORLOCK_ERR_LOST);
    for (uint32_t i = 0; i < 3; i++) assert_false(server_has(SERVER(i), KEY));
}

static bool theirs_only(void *arg)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (peer_fields(SERVER(i), KEY) != 2) return false;
    }
    return true;
}

/* Where both are in one hash, our release deletes only ours. */
REDISSON_TEST(our_release_leaves_theirs)
{
    struct seen seen = {0};
    quorlock_lock *lock;

    lock = take(KEY, 20000);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(peer_read(SERVER(i), KEY, THEIRS, 60000), PEER_NIL);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await(theirs_only, NULL, GENEROUS_MS, "our fields gone");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "is held by RReadWriteLock:read on ");
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(peer_counts(SERVER(i), KEY, THEIRS), 1);
        assert_int_equal(peer_fields(SERVER(i), KEY), 2);
        assert_int_equal(peer_read_end(SERVER(i), KEY, THEIRS), 1);
    }
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
}

/* A user that may not read the field sees such a lock, on all nodes alike. */
REDISSON_TEST(without_the_right_to_read_its_mode)
{
    struct seen_report report = {0};

    for (uint32_t i = 0; i < 3; i++) {
        server_do(SERVER(i), "HSET " KEY " mode %s " THEIRS " 1", i > 0 ? "read" : "write");
        server_do(SERVER(i), "ACL SETUSER bob reset on >sesame ~* &* +@all -hget");
    }
    fixture_log_in("bob:sesame@", "");
    fixture_client(3);
    fixture_inspect(fixture.client, KEY, &report);
    assert_int_equal(report.report.held, 1);
    assert_string_equal(report.holder, "RReadWriteLock:unread");
}
