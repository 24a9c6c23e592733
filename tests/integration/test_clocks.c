/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clocks.c - clocks that jump: of real servers, and of this machine as a suspend moves it
 *
 * Servers get their clock from a preloaded library that adds what a file says. A suspend is what it looks like
 * to a process: the clock that counts it is ahead, all others stopped.
 */
#include "fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LEASE_MS 10000u
#define RENEW_MS 200u
#define STEP_US  INT64_C(3000000) /* less than the lease, and far more than any allowance */

static struct seen held;
static struct seen_loss lost;
static quorlock_lock *lock;
static int64_t slept_us; /* on this machine */

/* Replaces the system's. */
int clock_gettime(clockid_t id, struct timespec *now);
int clock_gettime(clockid_t id, struct timespec *now)
{
    int64_t ns;

    if (syscall(SYS_clock_gettime, id, now) != 0) return -1;
    if (id != CLOCK_BOOTTIME) return 0;
    ns = now->tv_nsec + slept_us % 1000000 * 1000;
    now->tv_sec += slept_us / 1000000 + ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    return 0;
}

static void hold(uint32_t renew_ms)
{
    /* with fencing, an acquire's reply has the node's clock */
    memset(&held, 0, sizeof(held));
    memset(&lost, 0, sizeof(lost));
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LEASE_MS, .renew_ms = renew_ms, .fencing = 1));
    quorlock_lock_set_on_lost(lock, on_loss, &lost);
    assert_status(fixture_acquire(lock, &held), QUORLOCK_OK);
    await_holders("key", held.owner, 3);
}

/* ---- a server's clock ---- */

#ifdef QUORLOCK_CLOCK_SHIM

static char clock_files[3][TEXT_SIZE];

static void set_clock(uint32_t node, int64_t ahead_us)
{
    int fd = open(clock_files[node], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, &ahead_us, sizeof(ahead_us)), sizeof(ahead_us));
    (void)close(fd);
}

static void restart_with_clocks(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct server *server = SERVER(i);

        snprintf(clock_files[i], TEXT_SIZE, "%s/clock", server->folder);
        set_clock(i, 0);
        server_kill(server);
        setenv("QUORLOCK_CHAOS_CLOCK", clock_files[i], 1);
        setenv("LD_PRELOAD", QUORLOCK_CLOCK_SHIM, 1);
        server_start(server);
        unsetenv("LD_PRELOAD");
        unsetenv("QUORLOCK_CHAOS_CLOCK");
    }
}

static bool logs_a_step(void *arg)
{
    return fixture.log != NULL && strstr(fixture.log, "its clock stepped forward") != NULL;
}

static bool is_lost(void *arg)
{
    return lost.calls > 0;
}

static bool renewed_since(void *pttl_ms)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (server_pttl(SERVER(i), "key") < *(int64_t *)pttl_ms) return false;
    }
    return true;
}

/* Valkey 9.1 reads its clock once in a millisecond. */
static bool has_stepped(void *arg)
{
    return server_pttl(SERVER(1), "key") < LEASE_MS - STEP_US / 2000;
}

/* Its old votes are dropped and it is asked again; the other nodes hold the lock meanwhile. */
SERVERS_TEST(a_server_whose_clock_steps_costs_no_lock)
{
    int64_t nearly_whole_ms = LEASE_MS - 2 * RENEW_MS;

    restart_with_clocks();
    hold(RENEW_MS);
    run_ms(3 * RENEW_MS); /* readings of its clock */
    assert_false(logs_a_step(NULL));
    set_clock(1, STEP_US);
    await(logs_a_step, NULL, GENEROUS_MS, "the step is noticed");
    assert_contains(fixture.log, fixture.cluster.servers[1].address);
    await(renewed_since, &nearly_whole_ms, GENEROUS_MS, "all three hold it as long as before");
    assert_int_equal(lost.calls, 0);
    assert_true(quorlock_lock_valid_ms(lock) > 0);
    assert_status(fixture_release(lock, &held), QUORLOCK_OK);
}

/* Nothing is renewed here: the clock in the reply to another lock's acquire shows the step. */
SERVERS_TEST(an_acquire_shows_a_step_too)
{
    struct seen seen;
    quorlock_lock *other;

    restart_with_clocks();
    hold(QUORLOCK_RENEW_NEVER);
    other = fixture_lock(fixture.client, "other", LEASE(LEASE_MS, .renew_ms = QUORLOCK_RENEW_NEVER, .fencing = 1));
    assert_false(logs_a_step(NULL));
    set_clock(1, STEP_US);
    await(has_stepped, NULL, GENEROUS_MS, "the server sees the step");
    assert_status(fixture_acquire(other, &seen), QUORLOCK_OK);
    await(logs_a_step, NULL, GENEROUS_MS, "the step is noticed");
    assert_contains(fixture.log, fixture.cluster.servers[1].address);
    assert_int_equal(lost.calls, 0);
}

/* On a quorum at once: then this process stalled, for an unknown time. */
SERVERS_TEST(servers_whose_clocks_step_together_end_it)
{
    restart_with_clocks();
    hold(RENEW_MS);
    run_ms(3 * RENEW_MS);
    set_clock(0, STEP_US);
    set_clock(2, STEP_US);
    await(is_lost, NULL, GENEROUS_MS, "the loss");
    assert_int_equal(lost.calls, 1);
    assert_int_equal(lost.loss.reason, QUORLOCK_LOSS_CLOCK);
    assert_int_equal(lost.loss.remaining_ms, 0);
    assert_int_equal(lost.valid_ms, 0);
    assert_status(fixture_release(lock, &held), QUORLOCK_ERR_LOST);
}

/* ---- the arbiter's clock under fair locks ---- */

#define BACK_US    INT64_C(3600000000) /* longer than any test waits */
#define FORWARD_US INT64_C(60000000)   /* the keys of the queues are kept for longer */
#define NEWCOMERS  5

static struct seen waits;
static uint32_t arbiter;

static quorlock_lock *fair_lock(quorlock_client *client, uint32_t wait_ms, uint32_t permits)
{
    return fixture_lock(client, "key", LEASE(LONG_LEASE_MS, .wait_ms = wait_ms, .fair = 1, .permits = permits));
}

static bool is_queued(void *arg)
{
    (void)arg;
    for (arbiter = 0; arbiter < 3; arbiter++) {
        if (server_ask_number(SERVER(arbiter), "ZCOUNT quorlock:queue:key 100000000000000 +inf") > 0) return true;
    }
    return false;
}

/* One client holds the lock, and one waits. */
static quorlock_lock *hold_and_wait(uint32_t permits)
{
    quorlock_lock *holder;

    memset(&held, 0, sizeof(held));
    memset(&waits, 0, sizeof(waits));
    restart_with_clocks();
    fixture_client(3);
    holder = fair_lock(fixture.client, NO_LIMIT, permits);
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    fixture_start_acquire(fair_lock(fixture_new_client(3), NO_LIMIT, permits), &waits);
    await(is_queued, NULL, GENEROUS_MS, "the queue");
    return holder;
}

/* Before them another one came that has just asked, and died. */
static void add_dead(void)
{
    static const char script[] =
        "local life = math.floor(string.match(redis.call('GET', 'quorlock:clock'), '(%d+)$') / 1000) "
        "return redis.call('ZADD', KEYS[1], 100000000000017, 'wdead', string.format('%.0f', life + 2000), '~dead')";

    assert_int_equal(server_ask_number(SERVER(arbiter), "EVAL %s 1 quorlock:queue:key", script), 2);
}

/* The newcomers' requests follow the release on the same connection, so they come before that of the client that waits.
 */
static void expect_turn(quorlock_lock *holder, uint32_t permits)
{
    struct seen tries[NEWCOMERS] = {0};

    assert_int_equal(quorlock_lock_release(holder, NULL, NULL), 0);
    for (int i = 0; i < NEWCOMERS; i++) fixture_start_acquire(fair_lock(fixture.client, 0, permits), &tries[i]);
    for (int i = 0; i < NEWCOMERS; i++) await_status(&tries[i], QUORLOCK_ERR_HELD, "a newcomer's answer");
    await_status(&waits, QUORLOCK_OK, "the turn of the client that waits");
}

static void expect_turn_after(int64_t step_us, bool dead, uint32_t permits)
{
    quorlock_lock *holder = hold_and_wait(permits);

    if (dead) add_dead();
    set_clock(arbiter, step_us);
    expect_turn(holder, permits);
}

/* By that clock the newcomers came first. */
SERVERS_TEST(an_arbiter_set_back_lets_no_newcomer_pass)
{
    expect_turn_after(-BACK_US, false, 0);
}

SERVERS_TEST(an_arbiter_set_back_lets_no_newcomer_have_a_permit)
{
    expect_turn_after(-BACK_US, false, 1);
}

/* By that clock it is remembered for an hour. */
SERVERS_TEST(an_arbiter_set_back_forgets_a_client_that_died)
{
    expect_turn_after(-BACK_US, true, 0);
}

SERVERS_TEST(an_arbiter_set_back_forgets_a_client_that_died_before_its_permit)
{
    expect_turn_after(-BACK_US, true, 1);
}

SERVERS_TEST(an_arbiter_set_forward_takes_the_place_of_no_client_that_waits)
{
    expect_turn_after(FORWARD_US, true, 0);
}

SERVERS_TEST(an_arbiter_set_forward_takes_the_place_of_no_client_that_waits_for_a_permit)
{
    expect_turn_after(FORWARD_US, true, 1);
}

#else

SERVERS_TEST(clocks_of_servers_are_not_tested_with_a_sanitizer)
{
    print_message("skipped: a server cannot be given a library that has a sanitizer\n");
    skip();
}

#endif

/* ---- a suspend of this machine ---- */

/* Nothing ran meanwhile, and the nodes' clocks went on: the first callback is the loss. */
SERVERS_TEST(a_suspend_past_the_lease_is_a_loss)
{
    struct seen extended = {0};

    hold(0);
    fixture_start_extend(lock, 0, &extended);
    slept_us += INT64_C(2000) * LEASE_MS;
    assert_int_equal(quorlock_lock_valid_ms(lock), 0); /* at once, before any callback */
    await_count(&lost.calls, 1, GENEROUS_MS, "the loss");
    assert_int_equal(lost.loss.reason, QUORLOCK_LOSS_EXPIRED);
    assert_int_equal(lost.loss.remaining_ms, 0);
    await_count(&extended.calls, 1, GENEROUS_MS, "the end of the extend");
    assert_true(lost.order < extended.order);
    assert_status(extended.result.status, QUORLOCK_ERR_LOST);
}

static bool is_renewed(void *least_ms)
{
    return quorlock_lock_valid_ms(lock) >= *(uint32_t *)least_ms;
}

SERVERS_TEST(a_suspend_within_the_lease_is_none)
{
    uint32_t before_ms;
    uint32_t least_ms;

    hold(0);
    before_ms = quorlock_lock_valid_ms(lock);
    slept_us += LEASE_MS * INT64_C(1000) / 2;
    assert_true(quorlock_lock_valid_ms(lock) <= before_ms - LEASE_MS / 2);
    assert_true(quorlock_lock_valid_ms(lock) > 0);
    /* The renewal that became due meanwhile comes now. */
    least_ms = before_ms - LEASE_MS / 4;
    await(is_renewed, &least_ms, GENEROUS_MS, "it is renewed");
    assert_int_equal(lost.calls, 0);
    assert_status(fixture_release(lock, &held), QUORLOCK_OK);
}
