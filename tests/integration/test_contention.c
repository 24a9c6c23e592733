/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_contention.c - contention for one key: by peers, clients of this process, twenty processes
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTENDERS 20

CLIENT_TEST(a_peers_key_makes_ours_held)
{
    struct seen seen;
    quorlock *lock;

    for (int i = 0; i < 2; i++) server_do(SERVER(i), "SET key peer-1 NX PX 30000");
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
    assert_int_equal(seen.result.refused, 2);
    assert_int_equal(seen.result.valid_ms, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(seen.votes[i].outcome, QUORLOCK_VOTE_REFUSED);
        assert_string_equal(seen.votes[i].holder, "peer-1");
        assert_true(seen.votes[i].ttl_ms > 0 && seen.votes[i].ttl_ms <= 30000);
    }
    /* Ours on the third node is released; theirs stay. */
    await_holders("key", NULL, 2);
    assert_int_equal(holders("key", "peer-1"), 2);

    /* A key without expiry is shown as such. */
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "SET key peer-2");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
    assert_string_equal(seen.votes[0].holder, "peer-2");
    assert_int_equal(seen.votes[0].ttl_ms, -1);
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL key");
    await_free("key");

    /* And our lock makes theirs fail. */
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "SET key peer-3 NX PX 30000");
    assert_int_equal(holders("key", seen.owner), 3);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free("key");
}

/* A peer on one node only blocks no lock. */
CLIENT_TEST(a_peer_on_a_minority_is_outvoted)
{
    struct seen seen;
    quorlock *lock;

    server_do(SERVER(1), "SET key peer-1 NX PX 60000");
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(holders("key", seen.owner), 2);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_holders("key", NULL, 1);
    assert_true(server_holds(SERVER(1), "key", "peer-1"));
}

CLIENT_TEST(waits_and_is_handed_over)
{
    struct seen held, waited;
    quorlock_client *second = fixture_new_client(3);
    quorlock *holder = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock *waiter = fixture_lock(second, "key", LEASE(LONG_LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER));

    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    fixture_start_acquire(waiter, &waited);
    run_ms(700);
    assert_int_equal(waited.calls, 0);
    assert_int_equal(holders("key", held.owner), 3);
    assert_int_equal(quorlock_release(holder, NULL, NULL), 0);
    await_status(&waited, QUORLOCK_OK, "hand-over");
    assert_true(waited.result.rounds > 1);
    await_holders("key", waited.owner, 3);
    fixture_close(second);
    assert_int_equal(holders("key", NULL), 0);
}

struct again {
    quorlock *lock;
    struct seen *seen;
};

static void acquire_again(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    const struct again *again = arg;

    fixture_start_acquire(again->lock, again->seen);
}

/* A holder that releases and acquires again at once would always be quicker than a waiter, which needs a notice
 * first. */
CLIENT_TEST(a_last_holder_lets_others_come_first)
{
    struct seen first, second;
    int polite = 0;
    quorlock_client *other = fixture_new_client(3);
    quorlock *has = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER));
    quorlock *wants = fixture_lock(other, "key", LEASE(LONG_LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER));

    assert_status(fixture_acquire(has, &first), QUORLOCK_OK);
    for (int turn = 0; turn < 20; turn++) {
        struct again again = {.lock = has, .seen = &first};

        fixture_start_acquire(wants, &second);
        run_ms(60);
        assert_int_equal(second.calls, 0);
        memset(&first, 0, sizeof(first));
        assert_int_equal(quorlock_release(has, acquire_again, &again), 0);
        while (first.calls + second.calls == 0) event_base_loop(fixture.base, EVLOOP_ONCE);
        polite += first.calls == 0;
        if (second.calls == 0) assert_int_equal(quorlock_release(has, NULL, NULL), 0);
        await_count(&second.calls, 1, GENEROUS_MS, "the other's turn");
        assert_int_equal(quorlock_release(wants, NULL, NULL), 0);
        if (first.calls == 0) await_count(&first.calls, 1, GENEROUS_MS, "its own turn again");
        /* If it was quicker after all, it has released it meanwhile. */
        if (quorlock_valid_ms(has) == 0) assert_status(fixture_acquire(has, &first), QUORLOCK_OK);
    }
    print_message("%d of 20 times the other came first\n", polite);
    assert_true(polite >= 10);
}

/* An acquire ends at its wait bound, and its result names the holder. */
CLIENT_TEST(the_wait_bound_holds)
{
    struct seen seen;
    quorlock *lock;

    take_by_hand(3, "key", "peer-1");
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = 800));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
    assert_true(seen.result.elapsed_ms >= 800);
    assert_true(seen.result.elapsed_ms < 10000);
    assert_int_equal(holders("key", "peer-1"), 3);
}

/* An acquire that is canceled at any moment leaves nothing, and its callback comes once. */
CLIENT_TEST(cancel_at_any_moment_leaves_nothing)
{
    struct seen seen;
    quorlock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER));

    for (int turns = 0; turns < 40; turns++) {
        bool held = turns % 2 == 1;

        for (int i = 0; held && i < 2; i++) server_do(SERVER(i), "SET key peer-1 PX 60000");
        fixture_start_acquire(lock, &seen);
        /* The loop runs a few turns: sent, some replies read, completed, waiting... */
        for (int i = 0; i < turns / 2 && seen.calls == 0; i++) event_base_loop(fixture.base, EVLOOP_NONBLOCK);
        if (seen.calls == 0) {
            assert_status(quorlock_cancel(lock), QUORLOCK_OK);
            await_status(&seen, QUORLOCK_CANCELED, "canceled acquire");
        } else {
            assert_status(quorlock_release(lock, NULL, NULL), QUORLOCK_OK);
        }
        assert_int_equal(quorlock_valid_ms(lock), 0);
        if (held) {
            await_holders("key", NULL, 2);
            for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL key");
        }
        await_free("key");
        assert_int_equal(seen.calls, 1);
    }
}

/* An acquire that fails releases what it took; the holder's keys are untouched throughout. */
CLIENT_TEST(a_failing_contender_leaves_no_key)
{
    struct seen seen;
    quorlock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));

    for (int i = 1; i < 3; i++) server_do(SERVER(i), "SET key peer-1 PX 60000");
    for (int i = 0; i < 50; i++) {
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
        assert_int_equal(seen.calls, 1);
    }
    await_holders("key", NULL, 2);
    assert_int_equal(holders("key", "peer-1"), 2);
}

/* ---- twenty processes, one key, and a node that is killed and comes back with its memory ---- */

struct contender {
    quorlock *lock;
    const char *file; /* exists while a contender is inside */
    uint64_t end_us;
    int turns;
    bool done;
};

static void contender_next(struct contender *);

static void contender_rested(evutil_socket_t fd, short what, void *arg)
{
    contender_next(arg);
}

/* There is no fairness among processes: one that acquires again at once starves the others. So each one pauses
 * for a moment, as a worker does. */
static void contender_released(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    const struct timeval rest = {.tv_usec = 20000};

    if (event_base_once(fixture.base, -1, EV_TIMEOUT, contender_rested, arg, &rest) != 0) _exit(28);
}

static void contender_leaves(evutil_socket_t fd, short what, void *arg)
{
    struct contender *contender = arg;

    if (quorlock_valid_ms(contender->lock) == 0) _exit(20); /* a lease of 10 s is over? the machine is too slow */
    if (unlink(contender->file) != 0) _exit(21);
    contender->turns++;
    if (quorlock_release(contender->lock, contender_released, contender) != 0) _exit(22);
}

static void contender_inside(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    const struct timeval work = {.tv_usec = 3000};
    struct contender *contender = arg;
    int fd;

    if (result->status != QUORLOCK_OK) {
        contender_next(contender);
        return;
    }
    fd = open(contender->file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) _exit(errno == EEXIST ? 23 : 24); /* two inside */
    close(fd);
    if (event_base_once(fixture.base, -1, EV_TIMEOUT, contender_leaves, contender, &work) != 0) _exit(25);
}

static void contender_next(struct contender *contender)
{
    uint64_t now_us = clock_us();

    /* A number of turns is not promised, but each contender must get one: it stays that long, with a limit. */
    if (now_us >= contender->end_us && (contender->turns > 0 || now_us >= contender->end_us + GENEROUS_MS * 1000ull)) {
        contender->done = true;
    } else if (quorlock_acquire(contender->lock, contender_inside, contender) != 0) {
        _exit(26);
    }
}

/* The child: its exit status says what went wrong, its file how many turns it had. */
static void contender_life(int number, uint64_t end_us)
{
    char inside[TEXT_SIZE], turns[TEXT_SIZE];
    struct contender contender = {.file = inside, .end_us = end_us};
    FILE *file;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    host_loop_forked();
    snprintf(inside, sizeof(inside), "%s/inside", fixture.cluster.folder);
    snprintf(turns, sizeof(turns), "%s/turns.%d", fixture.cluster.folder, number);
    fixture.options.log = NULL;
    fixture.options.reconnect_max_ms = 500;
    fixture_client(0);
    contender.lock = fixture_lock(fixture.client, "key", LEASE(10000, .wait_ms = 2000));
    contender_next(&contender);
    while (!contender.done) event_base_loop(fixture.base, EVLOOP_ONCE);
    fixture_close(fixture.client);
    file = fopen(turns, "w");
    if (file == NULL || fprintf(file, "%d\n", contender.turns) < 0 || fclose(file) != 0) _exit(27);
    _exit(0);
}

static int turns_of(int number)
{
    char path[TEXT_SIZE], line[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "%s/turns.%d", fixture.cluster.folder, number);
    file = fopen(path, "r");
    if (file == NULL) return 0;
    if (fgets(line, sizeof(line), file) == NULL) line[0] = '\0';
    fclose(file);
    return (int)strtol(line, NULL, 10);
}

SERVERS_TEST(twenty_processes_one_key)
{
    const char *span = getenv("QUORLOCK_CONTEND_S");
    uint64_t span_us = 1000000ull * (span == NULL ? 12 : strtoul(span, NULL, 10));
    uint64_t end_us = clock_us() + span_us;
    pid_t children[CONTENDERS];
    int least = INT32_MAX;
    int total = 0;

    for (int i = 0; i < CONTENDERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) contender_life(i, end_us);
    }
    for (uint32_t node = 0; clock_us() + span_us / 6 < end_us; node = (node + 1) % 3) {
        run_ms((uint32_t)(span_us / 1000 / 12));
        server_kill(SERVER(node));
        run_ms((uint32_t)(span_us / 1000 / 12));
        server_start(SERVER(node));
    }
    for (int i = 0; i < CONTENDERS; i++) {
        int status = 0;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("contender %d ended with %x", i, status);
        total += turns_of(i);
        if (turns_of(i) < least) least = turns_of(i);
    }
    print_message("%d turns, at least %d each\n", total, least);
    assert_true(least > 0);
    await_free("key");
}
