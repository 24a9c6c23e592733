/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_loss.c - losing a lock: its callback comes in time, first and once; and calls after it
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redisson_peer.h"

/* ---- a holder that is stopped for longer than its lease ---- */

struct sleeper {
    int report; /* a pipe: one letter for each event */
    quorlock *lock;
    bool released;
};

static void say(const struct sleeper *sleeper, char letter)
{
    if (write(sleeper->report, &letter, 1) != 1) _exit(3);
}

static void sleeper_released(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct sleeper *sleeper = arg;

    say(sleeper, result->status == QUORLOCK_OK && result->expired != 0 ? 'R' : 'r');
    sleeper->released = true;
}

static void sleeper_lost(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct sleeper *sleeper = arg;

    say(sleeper, loss->remaining_ms == 0 && quorlock_valid_ms(lock) == 0 ? 'L' : 'l');
    if (quorlock_release(lock, sleeper_released, sleeper) != 0) say(sleeper, '!');
}

static void sleeper_other_ended(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    /* Where the nodes were slow to answer, it does not know that it is held. */
    say(arg, result->status != QUORLOCK_OK ? 'H' : 'h');
}

static void sleeper_acquired(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    say(arg, result->status == QUORLOCK_OK ? 'A' : 'a');
}

static void sleep_now(evutil_socket_t fd, short what, void *arg)
{
    struct sleeper *sleeper = arg;

    say(sleeper, 'S');
    raise(SIGSTOP);
    say(sleeper, quorlock_valid_ms(sleeper->lock) == 0 ? '0' : 'v');
}

/* The child: holds "key" with a second, and waits for "other" whose wait bound passes while it is stopped. */
static void sleeper_life(int report)
{
    struct sleeper sleeper = {.report = report};
    const struct timeval soon = {.tv_usec = 600000};
    struct event *stop;
    quorlock *other;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    host_loop_forked();
    fixture.options.log = NULL;
    fixture_client(0);
    fixture_await_ready(fixture.client, 3);
    sleeper.lock = fixture_lock(fixture.client, "key", LEASE(1000));
    quorlock_on_lost(sleeper.lock, sleeper_lost, &sleeper);
    other = fixture_lock(fixture.client, "other", LEASE(1000, .wait_ms = 1000));
    if (quorlock_acquire(sleeper.lock, sleeper_acquired, &sleeper) != 0) _exit(4);
    if (quorlock_acquire(other, sleeper_other_ended, &sleeper) != 0) _exit(5);
    stop = event_new(fixture.base, -1, 0, sleep_now, &sleeper);
    event_add(stop, &soon);
    while (!sleeper.released) event_base_loop(fixture.base, EVLOOP_ONCE);
    _exit(0);
}

static void await_stop(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR) continue;
    assert_true(WIFSTOPPED(status));
}

static void read_story(int fd, char *ret, size_t size)
{
    size_t length = 0;
    ssize_t got;

    while (length + 1 < size && (got = read(fd, ret + length, size - length - 1)) > 0) length += (size_t)got;
    ret[length] = '\0';
}

SERVERS_TEST(a_stopped_holder_learns_of_its_loss_first)
{
    struct seen seen;
    char story[64];
    int ends[2];
    int status = 0;
    pid_t child;
    quorlock *lock;

    for (int i = 0; i < 3; i++) server_do(SERVER(i), "SET other by-hand PX 60000");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) sleeper_life(ends[1]);
    close(ends[1]);
    await_stop(child);

    /* The stopped process cannot renew: its lease ends, and the lock is granted here. */
    fixture_client(3);
    /* two nodes grant it at first; a renewal takes the third */
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = GENEROUS_MS, .renew_ms = 300));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    run_ms(300);

    assert_int_equal(kill(child, SIGCONT), 0);
    read_story(ends[0], story, sizeof(story));
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* Acquired, stopped; after that the validity is 0; the loss comes before all else that is due; then the end
     * of the other acquire and the harmless release, in any order. */
    if (strcmp(story, "AS0LHR") != 0 && strcmp(story, "AS0LRH") != 0 && strcmp(story, "AS0LR") != 0) {
        fail_msg("the story was %s", story);
    }
    assert_int_equal(holders("key", quorlock_token(lock)), 3);
    assert_true(quorlock_valid_ms(lock) > 0);
    quorlock_free(lock);
    await_free("key");
}

/* ---- keys that are deleted while they are held ---- */

struct hold {
    quorlock *lock;
    struct seen seen;
    struct seen_loss loss;
};

static void grant_key(struct hold *hold, const struct quorlock_options *options)
{
    struct quorlock_options patient = *options;

    /* So short a lease may be over before the grant on a busy machine: then another try follows. */
    patient.wait_ms = GENEROUS_MS;
    memset(hold, 0, sizeof(*hold));
    hold->lock = fixture_lock(fixture.client, "key", &patient);
    quorlock_on_lost(hold->lock, on_loss, &hold->loss);
    assert_status(fixture_acquire(hold->lock, &hold->seen), QUORLOCK_OK);
}

static void hold_key(struct hold *hold, const struct quorlock_options *options)
{
    grant_key(hold, options);
    await_holders("key", hold->seen.owner, 3);
}

static void check_lost(struct hold *hold, int reason)
{
    assert_int_equal(hold->loss.calls, 1);
    assert_int_equal(hold->loss.loss.reason, reason);
    assert_int_equal(hold->loss.valid_ms, 0);
    assert_true(strlen(hold->loss.text) > 0);
    assert_int_equal(quorlock_valid_ms(hold->lock), 0);
}

static void check_lost_release(struct hold *hold)
{
    assert_status(fixture_release(hold->lock, &hold->seen), QUORLOCK_OK);
    assert_int_equal(hold->seen.result.expired, 1);
    assert_int_equal(hold->loss.calls, 1);
    quorlock_free(hold->lock);
}

CLIENT_TEST(two_keys_deleted_is_lost_at_once)
{
    struct hold hold;
    uint64_t deleted_us;

    hold_key(&hold, LEASE(LONG_LEASE_MS, .renew_ms = 300));
    deleted_us = clock_us();
    server_do(SERVER(0), "DEL key");
    server_do(SERVER(2), "DEL key");
    await_count(&hold.loss.calls, 1, GENEROUS_MS, "loss");
    /* At the next renewal, not at the end of the lease. */
    assert_true(hold.loss.at_us - deleted_us < 15000000);
    check_lost(&hold, QUORLOCK_LOST_GONE);
    /* Nothing was resurrected. */
    assert_false(server_has(SERVER(0), "key"));
    assert_false(server_has(SERVER(2), "key"));
    check_lost_release(&hold);
    await_free("key");
}

CLIENT_TEST(broken_by_another_is_lost_at_once)
{
    struct seen_report report;
    struct hold hold;
    quorlock_client *breaker = fixture_new_client(3);

    hold_key(&hold, LEASE(LONG_LEASE_MS, .renew_ms = 300));
    fixture_break(breaker, "key", &report);
    assert_status(report.status, QUORLOCK_OK);
    assert_string_equal(report.holder, hold.seen.owner);
    await_count(&hold.loss.calls, 1, GENEROUS_MS, "loss");
    check_lost(&hold, QUORLOCK_LOST_GONE);
    check_lost_release(&hold);
}

/* One of three is repaired, and nothing is lost. */
CLIENT_TEST(one_key_deleted_is_repaired)
{
    struct hold hold;

    hold_key(&hold, LEASE(LONG_LEASE_MS, .renew_ms = 300));
    server_do(SERVER(1), "DEL key");
    await_holders("key", hold.seen.owner, 3);
    assert_int_equal(hold.loss.calls, 0);
    /* Another's key in the place of ours is left alone. */
    server_do(SERVER(1), "SET key by-hand PX 60000");
    assert_status(fixture_extend(hold.lock, 0, &hold.seen), QUORLOCK_OK);
    assert_status(fixture_extend(hold.lock, 0, &hold.seen), QUORLOCK_OK);
    assert_true(server_holds(SERVER(1), "key", "by-hand"));
    assert_status(fixture_release(hold.lock, &hold.seen), QUORLOCK_OK);
    await_holders("key", NULL, 1);
    assert_true(server_holds(SERVER(1), "key", "by-hand"));
}

struct watch {
    struct hold *hold;
    uint64_t valid_until_us;
};

/* Follows the end of validity until the loss. */
static bool lost_meanwhile(void *arg)
{
    struct watch *watch = arg;
    uint64_t now_us = clock_us();
    uint32_t valid_ms = quorlock_valid_ms(watch->hold->lock);

    /* valid_ms is rounded down, so the true end is up to one more. */
    if (valid_ms > 0) watch->valid_until_us = now_us + (valid_ms + 1) * 1000ull;
    return watch->hold->loss.calls > 0;
}

CLIENT_TEST(two_nodes_killed_is_lost_before_validity_ends)
{
    struct hold hold;
    struct watch watch = {.hold = &hold};

    /* more than a busy machine delays the loop */
    hold_key(&hold, LEASE(3000, .renew_ms = 300, .lost_margin_ms = 1000));
    server_kill(SERVER(0));
    server_kill(SERVER(1));
    await(lost_meanwhile, &watch, GENEROUS_MS, "loss");
    check_lost(&hold, QUORLOCK_LOST_EXPIRED);
    assert_true(hold.loss.loss.remaining_ms > 0);
    assert_true(hold.loss.loss.remaining_ms <= 1000);
    assert_true(hold.loss.at_us < watch.valid_until_us);
    /* It stays lost, also when the nodes are back with the key. */
    server_start(SERVER(0));
    server_start(SERVER(1));
    fixture_await_ready(fixture.client, 3);
    assert_int_equal(quorlock_valid_ms(hold.lock), 0);
    assert_status(quorlock_extend(hold.lock, 0, on_result, &hold.seen), QUORLOCK_STATE);
    assert_non_null(strstr(quorlock_client_error(fixture.client), ": it is not held"));
    check_lost_release(&hold);
    await_free("key");
}

CLIENT_TEST(never_renewed_ends_with_its_lease)
{
    struct hold hold;

    grant_key(&hold, LEASE(500, .renew_ms = QUORLOCK_RENEW_NEVER));
    await_count(&hold.loss.calls, 1, GENEROUS_MS, "loss");
    check_lost(&hold, QUORLOCK_LOST_NOT_RENEWED);
    await_free("key");
    /* The release of the expired lock leaves a new holder's key. */
    take_by_hand(3, "key", "by-hand");
    check_lost_release(&hold);
    assert_int_equal(holders("key", "by-hand"), 3);
}

CLIENT_TEST(max_hold_ends_renewal)
{
    struct hold hold;
    uint64_t granted_us;

    hold_key(&hold, LEASE(KEPT_LEASE_MS, .max_hold_ms = 1500));
    granted_us = hold.seen.at_us;
    run_ms(1600);
    assert_true(quorlock_valid_ms(hold.lock) > 0);
    assert_status(quorlock_extend(hold.lock, 0, on_result, &hold.seen), QUORLOCK_STATE);
    assert_non_null(strstr(quorlock_client_error(fixture.client), ": max_hold_ms has ended its renewal"));
    await_count(&hold.loss.calls, 1, GENEROUS_MS, "loss");
    check_lost(&hold, QUORLOCK_LOST_MAX_HOLD);
    assert_true(hold.loss.at_us - granted_us >= 1300000);
    check_lost_release(&hold);
    await_free("key");
}

CLIENT_TEST(a_lost_lock_can_be_acquired_anew)
{
    struct hold hold;
    char first[TEXT_SIZE];

    hold_key(&hold, LEASE(LONG_LEASE_MS, .renew_ms = 300));
    snprintf(first, sizeof(first), "%s", hold.seen.owner);
    server_do(SERVER(0), "DEL key");
    server_do(SERVER(1), "DEL key");
    await_count(&hold.loss.calls, 1, GENEROUS_MS, "loss");
    assert_status(fixture_acquire(hold.lock, &hold.seen), QUORLOCK_OK);
    assert_string_not_equal(hold.seen.owner, first);
    /* Its own old key on the third node was released on the way. */
    await_holders("key", hold.seen.owner, 3);
    /* And it can be lost again: once for each grant. */
    server_do(SERVER(0), "DEL key");
    server_do(SERVER(1), "DEL key");
    await_count(&hold.loss.calls, 2, GENEROUS_MS, "second loss");
    quorlock_free(hold.lock);
    await_free("key");
}

CLIENT_TEST(no_loss_callback_after_release)
{
    struct hold hold;

    grant_key(&hold, LEASE(600, .renew_ms = QUORLOCK_RENEW_NEVER));
    assert_status(quorlock_release(hold.lock, NULL, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_valid_ms(hold.lock), 0);
    run_ms(900);
    assert_int_equal(hold.loss.calls, 0);
    quorlock_free(hold.lock);
    await_free("key");
}

/* The loop did not run for longer than the lease: loss comes before the result of what was in flight. */
CLIENT_TEST(a_loop_that_stood_still_tells_loss_first)
{
    struct hold hold;
    struct seen extended;
    uint64_t until_us;

    hold_key(&hold, LEASE(1000));
    fixture_start_extend(hold.lock, 0, &extended);
    until_us = clock_us() + 1300000;
    while (clock_us() < until_us) continue;
    assert_int_equal(quorlock_valid_ms(hold.lock), 0);
    await_status(&extended, QUORLOCK_LOST, "extend");
    check_lost(&hold, QUORLOCK_LOST_EXPIRED);
    assert_int_equal(hold.loss.loss.remaining_ms, 0);
    assert_true(hold.loss.order < extended.order);
    check_lost_release(&hold);
    await_free("key");
}

struct slow {
    struct seen seen;
    const struct hold *hold;
};

/* At its end the loss is due. */
static void on_slow_result(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct slow *slow = arg;

    on_result(lock, result, &slow->seen);
    while (quorlock_valid_ms(slow->hold->lock) > 0) continue;
}

/* Both callbacks wait for the same turn of the loop, because they need no server. */
CLIENT_TEST(a_loss_that_is_due_comes_before_the_next_callback)
{
    struct quorlock_options options = *LEASE(LONG_LEASE_MS);
    struct slow slow = {.seen = {.calls = 0}};
    struct seen seen;
    struct hold hold;
    quorlock *mine[3];

    options.owner = "me";
    for (int i = 0; i < 3; i++) mine[i] = fixture_lock(fixture.client, "other", &options);
    assert_status(fixture_acquire(mine[0], &seen), QUORLOCK_OK);
    options = *LEASE(1000);
    options.renew_ms = QUORLOCK_RENEW_NEVER;
    grant_key(&hold, &options);
    slow.hold = &hold;
    memset(&seen, 0, sizeof(seen));
    assert_status(quorlock_acquire(mine[1], on_slow_result, &slow), QUORLOCK_OK);
    fixture_start_acquire(mine[2], &seen);
    await_count(&seen.calls, 1, GENEROUS_MS, "the second of one turn");
    assert_int_equal(slow.seen.calls, 1);
    check_lost(&hold, QUORLOCK_LOST_NOT_RENEWED);
    assert_true(hold.loss.order < seen.order);
    check_lost_release(&hold);
    for (int i = 0; i < 3; i++) quorlock_free(mine[i]);
    await_free("other");
}

static void block(evutil_socket_t fd, short what, void *arg)
{
    uint64_t *until_us = arg;

    *until_us = clock_us() + 4300000;
    while (clock_us() < *until_us) continue;
}

static void lost_ends_the_loop(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    on_loss(lock, loss, arg);
    event_base_loopbreak(fixture.base);
}

/* libevent computes its next wait from the time before a callback; the loss must not be late for that. */
SERVERS_TEST(a_long_callback_of_another_does_not_delay_the_loss)
{
    const struct timeval soon = {.tv_usec = 20000};
    struct hold hold;
    uint64_t until_us = 0;

    /* Otherwise the nodes' own timers would wake the loop. */
    fixture.options.node_timeout_ms = 20000;
    fixture_client(3);
    hold_key(&hold, LEASE(4000, .renew_ms = QUORLOCK_RENEW_NEVER));
    assert_int_equal(event_base_once(fixture.base, -1, EV_TIMEOUT, block, &until_us, &soon), 0);
    quorlock_on_lost(hold.lock, lost_ends_the_loop, &hold.loss);
    /* One run of the loop, and no timer of the fixture's that would wake it. The test's time limit is the
     * limit. */
    event_base_dispatch(fixture.base);
    assert_true(until_us != 0);
    assert_true(hold.loss.at_us < until_us + 2000000);
    check_lost(&hold, QUORLOCK_LOST_NOT_RENEWED);
    check_lost_release(&hold);
}

/* ---- renewal ---- */

/*
 * Held at once for longer than their leases, so they live by renewal alone: in each dialect a lock of one key
 * for five leases, one of two keys, and an owner's whose first handle is freed.
 */
SERVERS_TEST(renewed_locks_outlive_their_leases)
{
    static const char *const keys[2][4] = {{"a", "b", "c", "d"}, {"e", "f", "g", "h"}};
    struct hold holds[2][3] = {{{.loss = {0}}}};
    uint64_t until_us;

    for (int dialect = 0; dialect < 2; dialect++) {
        struct hold *hold = holds[dialect];
        quorlock *outer;

        fixture.options.dialect = dialect == 0 ? QUORLOCK_DIALECT_PLAIN : QUORLOCK_DIALECT_REDISSON;
        fixture_client(3);
        hold[0].lock = fixture_lock(fixture.client, keys[dialect][0], LEASE(6000, .wait_ms = GENEROUS_MS));
        hold[1].lock = fixture_lock_all(fixture.client, keys[dialect] + 1, 2, LEASE(6000, .fencing = 1));
        hold[2].lock = fixture_lock(fixture.client, keys[dialect][3], LEASE(6000, .owner = "me"));
        outer = fixture_lock(fixture.client, keys[dialect][3], LEASE(6000, .owner = "me"));
        assert_status(fixture_acquire(outer, &hold[2].seen), QUORLOCK_OK);
        for (int i = 0; i < 3; i++) {
            quorlock_on_lost(hold[i].lock, on_loss, &hold[i].loss);
            assert_status(fixture_acquire(hold[i].lock, &hold[i].seen), QUORLOCK_OK);
        }
        quorlock_free(outer);
        for (int k = 0; k < 4; k++) await_holders(keys[dialect][k], NULL, 3);
    }
    until_us = clock_us() + 7000000;
    while (clock_us() < until_us) {
        run_ms(100);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(holds[i / 3][i % 3].loss.calls, 0);
            assert_true(quorlock_valid_ms(holds[i / 3][i % 3].lock) > 0);
        }
        assert_int_equal(holders("a", NULL), 3);
        for (int i = 0; i < 3; i++) assert_true(peer_acquire(SERVER(i), "e", "peer:1", 30000) >= 0);
    }
    for (int k = 0; k < 8; k++) assert_int_equal(holders(keys[k / 4][k % 4], NULL), 3);
    for (int i = 0; i < 6; i++) {
        struct hold *hold = &holds[i / 3][i % 3];

        assert_status(fixture_release(hold->lock, &hold->seen), QUORLOCK_OK);
        assert_int_equal(hold->seen.result.expired, 0);
    }
    for (int k = 0; k < 8; k++) await_free(keys[k / 4][k % 4]);
}

CLIENT_TEST(the_log_says_why_nodes_do_not_renew)
{
    quorlock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = 50));
    struct seen seen;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 1");
    /* They answer, and stay connected: only these lines tell of it. */
    await_log("degraded \"key\"", 1);
    await_log("reached 0 of 3 nodes", 1);
    assert_contains(strstr(fixture.log, "degraded \"key\""), "NOREPLICAS");
    assert_contains(strstr(fixture.log, "reached 0 of 3 nodes"), "NOREPLICAS");
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 0");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

CLIENT_TEST(silent_nodes_still_count_in_the_log)
{
    quorlock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_freeze(SERVER(i));
    assert_status(fixture_extend(lock, LONG_LEASE_MS, &seen), QUORLOCK_NOQUORUM);
    await_log("degraded \"key\": held on", 1);
    assert_null(strstr(fixture.log, "held on 0 of 3"));
    assert_contains(strstr(fixture.log, "degraded \"key\""), "3 did not renew it");
    assert_true(quorlock_valid_ms(lock) > 0);
    for (uint32_t i = 0; i < 3; i++) server_thaw(SERVER(i));
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

/* Long before the renewal. */
SERVERS_TEST(rolling_empty_restarts_lose_no_lock)
{
    static const char *const list[] = {"list-a", "list-b"};
    struct quorlock_options options = *LEASE(LONG_LEASE_MS);
    struct {
        const char *key; /* on the nodes */
        quorlock *lock;
        struct seen seen;
        struct seen_loss loss;
    } kept[] = {
        {.key = "plain"}, {.key = "fenced"}, {.key = "owned"}, {.key = "list-b"}, {.key = "quorlock:slot:0:permit"},
        {.key = "shared"}};

    fixture_client(3);
    kept[0].lock = fixture_lock(fixture.client, "plain", &options);
    kept[1].lock = fixture_lock(fixture.client, "fenced", LEASE(LONG_LEASE_MS, .fencing = 1));
    kept[2].lock = fixture_lock(fixture.client, "owned", LEASE(LONG_LEASE_MS, .owner = "owner"));
    kept[3].lock = fixture_lock_all(fixture.client, list, 2, &options);
    kept[4].lock = fixture_lock(fixture.client, "permit", LEASE(LONG_LEASE_MS, .permits = 1));
    kept[5].lock = fixture_lock(fixture.client, "shared", LEASE(LONG_LEASE_MS, .shared = QUORLOCK_SHARED_ALL));
    for (size_t i = 0; i < LENGTH(kept); i++) {
        quorlock_on_lost(kept[i].lock, on_loss, &kept[i].loss);
        assert_status(fixture_acquire(kept[i].lock, &kept[i].seen), QUORLOCK_OK);
        await_holders(kept[i].key, NULL, 3);
    }
    for (uint32_t i = 0; i < 3; i++) {
        server_wipe(SERVER(i));
        for (size_t k = 0; k < LENGTH(kept); k++) await_holders(kept[k].key, NULL, 3);
    }
    for (size_t i = 0; i < LENGTH(kept); i++) {
        assert_int_equal(kept[i].loss.calls, 0);
        assert_status(fixture_release(kept[i].lock, &kept[i].seen), QUORLOCK_OK);
        assert_int_equal(kept[i].seen.result.expired, 0);
    }
}

static bool has_failed_often(void *arg)
{
    struct quorlock_statistics now = {.size = sizeof(now)};

    assert_status(quorlock_client_statistics(fixture.client, &now), QUORLOCK_OK);
    return now.renewals_failed >= *(const uint64_t *)arg;
}

/* Many locks with few nodes would fill the log. */
CLIENT_TEST(renewals_that_fail_as_before_are_logged_seldom)
{
    quorlock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = 50));
    struct seen seen;
    uint64_t often = 20, from_us = clock_us();

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 1");
    await(has_failed_often, &often, GENEROUS_MS, "renewals that fail");
    /* The nodes came to refuse one after the other, and each was news. */
    assert_in_range(logged("renewal of \"key\""), 1, 6 + (clock_us() - from_us) / 10000000);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 0");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}
