/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_callback_order.c - the order of callbacks within one turn of the loop, and how they may affect each other
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "fixture.h"

/* ---- calls in the log hook ---- */

enum hook_deed { HOOK_NOTHING, HOOK_CANCELS, HOOK_FREES };

static struct {
    enum hook_deed deed;
    quorlock_lock *lock;
    int heard, done;
} hook;

static void deed_log(int level, const char *text, void *arg)
{
    if (strstr(text, "waiting for") == NULL) return;
    hook.heard++;
    if (hook.deed == HOOK_NOTHING || strstr(text, "second") == NULL) return;
    if (hook.deed == HOOK_CANCELS) assert_status(quorlock_lock_cancel(hook.lock), QUORLOCK_OK);
    if (hook.deed == HOOK_FREES) quorlock_lock_free(hook.lock);
    hook.deed = HOOK_NOTHING;
    hook.done++;
}

/*
 * A lock waits for a key that a peer holds. Another peer takes it over, and the hook ends the wait when it
 * logs that. Then no node has or gets anything of it.
 */
static void end_in_hook(enum hook_deed deed)
{
    struct seen seen;
    quorlock_lock *next;

    fixture.options.log = deed_log;
    fixture_client(3);
    take_by_hand(3, "key", "first");
    memset(&hook, 0, sizeof(hook));
    hook.lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    hook.deed = deed;
    fixture_start_acquire(hook.lock, &seen);
    await_count(&hook.heard, 1, GENEROUS_MS, "the first line");
    take_by_hand(3, "key", "second");
    await_count(&hook.done, 1, GENEROUS_MS, "the second line");
    await_status(&seen, QUORLOCK_ERR_CANCELED, "the end of the acquire");
    drop_by_hand("key");
    /* Nothing of it is left: the key is free, and granted at once. */
    next = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = 0));
    assert_status(fixture_acquire(next, &seen), QUORLOCK_OK);
    assert_status(fixture_release(next, &seen), QUORLOCK_OK);
    await_free("key");
    if (deed == HOOK_CANCELS) quorlock_lock_free(hook.lock);
    quorlock_lock_free(next);
}

SERVERS_TEST(the_log_hook_may_cancel)
{
    end_in_hook(HOOK_CANCELS);
}

SERVERS_TEST(the_log_hook_may_free)
{
    end_in_hook(HOOK_FREES);
}

CLIENT_TEST(the_log_tells_a_loss_before_the_callback)
{
    struct seen_loss loss = {.calls = 0};
    struct seen seen;
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(500, .renew_ms = QUORLOCK_RENEW_NEVER));

    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    while (loss.calls == 0) {
        assert_true(fixture.log == NULL || strstr(fixture.log, "lost \"key\"") == NULL);
        fixture_turn(UINT64_MAX);
    }
    assert_contains(fixture.log, "lost \"key\": the lease ends and renewal is off");
}

/* ---- losses between reports ---- */

struct slow_report {
    quorlock_lock *lock;
    uint32_t order;
};

static void on_slow_report(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct slow_report *slow = arg;

    slow->order = ++fixture.order;
    while (slow->lock != NULL && quorlock_lock_valid_ms(slow->lock) > 0) cluster_pause_us(10000);
}

static bool both_reported(void *arg)
{
    const struct slow_report *slow = arg;

    return slow[0].order > 0 && slow[1].order > 0;
}

CLIENT_TEST(a_loss_is_reported_between_two_reports)
{
    struct seen_loss loss = {.calls = 0};
    struct slow_report slow[2];
    struct seen seen;
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(2000, .renew_ms = QUORLOCK_RENEW_NEVER));

    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    /* The first of the callbacks blocks until the lease has ended. */
    slow[0] = slow[1] = (struct slow_report){.lock = lock};
    for (int i = 0; i < 2; i++) {
        assert_status(quorlock_client_inspect(fixture.client, "key", on_slow_report, &slow[i]), QUORLOCK_OK);
    }
    await(both_reported, slow, GENEROUS_MS, "two reports");
    assert_int_equal(loss.calls, 1);
    assert_int_equal(loss.order, slow[0].order < slow[1].order ? slow[1].order - 1 : slow[0].order - 1);
}

/* ---- release and acquire ---- */

CLIENT_TEST(holds_of_an_owner_are_released_in_a_row)
{
    struct seen seen, released[3];
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = "me"));

    for (int i = 0; i < 3; i++) assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (int i = 0; i < 3; i++) fixture_start_release(lock, &released[i]);
    assert_status(quorlock_lock_release(lock, NULL, NULL), QUORLOCK_ERR_BUSY);
    for (int i = 0; i < 3; i++) {
        await_status(&released[i], QUORLOCK_OK, "release");
    }
    assert_true(released[0].order < released[1].order);
    await_free("key");
    for (int i = 0; i < 3; i++) assert_int_equal(released[i].calls, 1);
}

/* A renewal that no call waits for is in flight when the lock is released and acquired again. */
CLIENT_TEST(an_acquire_after_release_is_not_busy_with_itself)
{
    struct seen seen, inner, released, again;
    quorlock_lock *outer = fixture_lock(fixture.client, "key", LEASE(20000, .owner = "me", .wait_ms = GENEROUS_MS));
    quorlock_lock *nested = fixture_lock(fixture.client, "key", LEASE(40000, .owner = "me", .wait_ms = GENEROUS_MS));

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    /* It asks for a longer lease, so the lock is renewed first; then it is canceled. */
    fixture_start_acquire(nested, &inner);
    assert_status(quorlock_lock_cancel(nested), QUORLOCK_OK);
    fixture_start_release(outer, &released);
    fixture_start_acquire(outer, &again);
    await_status(&again, QUORLOCK_OK, "the acquire after the release");
    await_count(&released.calls, 1, GENEROUS_MS, "the release");
    await_status(&inner, QUORLOCK_ERR_CANCELED, "the canceled acquire");
    await_holders("key", again.owner, 3);
    assert_status(fixture_release(outer, &seen), QUORLOCK_OK);
    await_free("key");
}

/* ---- closing ---- */

CLIENT_TEST(cancel_while_closing_changes_nothing)
{
    struct seen extended, acquired;
    quorlock_lock *held, *wanted;
    int closed;

    held = fixture_lock(fixture.client, "held", LEASE(LONG_LEASE_MS));
    wanted = fixture_lock(fixture.client, "wanted", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(held, &extended), QUORLOCK_OK);
    fixture_start_extend(held, 0, &extended);
    fixture_start_acquire(wanted, &acquired);
    fixture_start_close(fixture.client, &closed);
    assert_status(quorlock_lock_cancel(held), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_lock_cancel(wanted), QUORLOCK_ERR_CLOSED);
    await_count(&closed, 1, GENEROUS_MS, "close");
    assert_status(extended.result.status, QUORLOCK_ERR_CLOSED);
    assert_status(acquired.result.status, QUORLOCK_ERR_CLOSED);
    await_free("held");
    await_free("wanted");
    assert_int_equal(extended.calls, 1);
    assert_int_equal(acquired.calls, 1);
}

/* ---- every lock is notified of every change ---- */

static void shut_out(struct server *server)
{
    server_do(server, "ACL SETUSER default -info");
    server_do(server, "CLIENT KILL TYPE normal SKIPME yes");
}

static void let_in(struct server *server)
{
    server_do(server, "ACL SETUSER default +info");
}

/* The test's own connection, which the server keeps. */
static redisReply *ask(redisContext *context, const char *words)
{
    redisReply *reply = redisCommand(context, words);

    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    return reply;
}

/* Returns when the server has answered the whole handshake of a new connection. */
static void await_handshake(redisContext *context)
{
    uint64_t until_us = clock_us() + GENEROUS_MS * 1000ull;
    bool done = false;

    while (!done) {
        redisReply *reply = ask(context, "CLIENT LIST TYPE normal");

        for (char *line = strtok(reply->str, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            done |= strstr(line, "name=quorlock-unguarded ") != NULL && strstr(line, "qbuf=0 ") != NULL &&
                    strstr(line, "cmd=eval") != NULL;
        }
        freeReplyObject(reply);
        assert_true(clock_us() < until_us);
    }
}

/* The node's connection is refused once, and then made anew; its last reply is sent, and not read yet. */
static void make_nearly_ready(struct server *server)
{
    redisContext *context = redisConnect("127.0.0.1", server->port);

    assert_non_null(context);
    freeReplyObject(ask(context, "CONFIG SET maxclients 1"));
    freeReplyObject(ask(context, "CLIENT KILL TYPE normal SKIPME yes"));
    await_log("down: ", 3);
    freeReplyObject(ask(context, "CONFIG SET maxclients 1000"));
    server_freeze(server);
    run_ms(30);
    server_thaw(server);
    await_handshake(context);
    redisFree(context);
}

/*
 * When a node becomes READY, the first lock that is notified finds that its lease is over and hands off its
 * key; the next one cannot take it and ends, and so leaves the list of observers. The last one must still be
 * notified, because it needs the vote of that node.
 */
SERVERS_TEST(each_lock_is_notified_of_a_ready_node)
{
    struct server *servers = fixture.cluster.servers;
    quorlock_lock *expiring, *behind, *last;
    struct seen seen, waiting;

    fixture_needs_real_servers();
    fixture.options.reconnect_min_ms = fixture.options.reconnect_max_ms = 1;
    fixture.options.node_timeout_ms = 2000;
    fixture_client(3);
    expiring = fixture_lock(fixture.client, "key", LEASE(3000, .renew_ms = QUORLOCK_RENEW_NEVER));
    assert_status(fixture_acquire(expiring, &seen), QUORLOCK_OK);
    behind = fixture_lock(fixture.client, "key", LEASE(3000, .renew_ms = QUORLOCK_RENEW_NEVER, .wait_ms = NO_LIMIT));
    fixture_start_acquire(behind, &waiting);
    last = fixture_lock(fixture.client, "other", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(last, &seen), QUORLOCK_OK);
    shut_out(&servers[0]);
    shut_out(&servers[1]);
    await_log("down: ", 2);
    make_nearly_ready(&servers[2]);
    while (quorlock_lock_valid_ms(expiring) > 0) cluster_pause_us(10000);
    await_status(&waiting, QUORLOCK_ERR_AUTH, "the end of what waited");
    let_in(&servers[0]);
    await_log(": ready, ", 5);
    assert_status(fixture_extend(last, 0, &seen), QUORLOCK_OK);
}
