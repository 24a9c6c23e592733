/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_script_flush.c - servers that are told to forget their scripts again and again, under locks of every kind
 *
 * A request by the hash of a script meets NOSCRIPT then. Nothing that is held may be lost by it, nobody who waits may
 * be forgotten, and nothing may be left behind.
 */
#include <quorlock/election.h>

#include "fixture.h"

#define OF_A_KIND 10
#define LEASE_MS  6000u /* a slow machine does not miss it, also with a sanitizer */
#define RENEW_MS  300u
#define PAUSE_MS  10u /* between two flushes, for the loop: servers are flushed outside of it */
/* Renewed so often that each kind meets forgotten scripts. */
#define HELD_MS (LEASE_MS + LEASE_MS / 6)

enum client { PLAIN, STRICT, REDISSON, CLIENTS };

static const struct kind {
    const char *name;
    enum client client;
    uint32_t permits;
    bool fencing, shared, several;
} kinds[] = {
    {.name = "plain"},
    {.name = "fenced", .fencing = true},
    {.name = "permit", .permits = 1},
    {.name = "permit-fenced", .permits = 1, .fencing = true},
    {.name = "shared", .shared = true},
    {.name = "several", .several = true},
    {.name = "strict", .client = STRICT},
    {.name = "strict-fenced", .client = STRICT, .fencing = true},
    {.name = "redisson", .client = REDISSON},
    {.name = "redisson-fenced", .client = REDISSON, .fencing = true, .several = true},
};

/* One that holds, and one of another client that waits for the same. */
struct lock {
    quorlock *lock;
    struct seen acquired, released;
    struct seen_loss loss;
};
struct leader {
    quorlock_candidate *candidate;
    int elected, deposed, ended;
};

static quorlock_client *clients[2][CLIENTS];
static struct lock locks[2][LENGTH(kinds)][OF_A_KIND];
static struct leader leaders[2][OF_A_KIND];

/* ---- locks and candidates ---- */

static void key_of(char ret[TEXT_SIZE], const struct kind *kind, size_t i, size_t nth)
{
    snprintf(ret, TEXT_SIZE, "%s-%zu-%zu", kind->name, i, nth);
}

/* What waits for a shared key wants it alone. await_all() has the limit. */
static void make_lock(size_t who, size_t k, size_t i)
{
    const struct kind *kind = &kinds[k];
    struct lock *lock = &locks[who][k][i];
    const struct quorlock_options *options =
        LEASE(LEASE_MS, .renew_ms = RENEW_MS, .wait_ms = QUORLOCK_WAIT_FOREVER, .permits = kind->permits,
              .fencing = kind->fencing, .shared = kind->shared && who == 0 ? QUORLOCK_SHARED_ALL : 0);
    char names[2][TEXT_SIZE];
    const char *const keys[] = {names[0], names[1]};

    key_of(names[0], kind, i, 0);
    key_of(names[1], kind, i, 1);
    lock->lock = fixture_lock_all(clients[who][kind->client], keys, kind->several ? 2 : 1, options);
    quorlock_on_lost(lock->lock, on_loss, &lock->loss);
}

static void on_elected(quorlock_candidate *candidate, uint64_t term, void *leader)
{
    (void)candidate;
    (void)term;
    ((struct leader *)leader)->elected++;
}

static void on_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *leader)
{
    (void)candidate;
    (void)loss;
    ((struct leader *)leader)->deposed++;
}

static void on_ended(quorlock_candidate *candidate, int status, const char *text, void *leader)
{
    (void)candidate;
    if (status != QUORLOCK_OK) fail_msg("%s", text);
    ((struct leader *)leader)->ended++;
}

static void make_leader(size_t who, size_t i)
{
    struct leader *leader = &leaders[who][i];
    const struct quorlock_candidate_options options = {.size = sizeof(options),
                                                       .lease_ms = LEASE_MS,
                                                       .renew_ms = RENEW_MS,
                                                       .elected = on_elected,
                                                       .deposed = on_deposed,
                                                       .ended = on_ended,
                                                       .arg = leader};
    char name[TEXT_SIZE];

    snprintf(name, sizeof(name), "election-%zu", i);
    assert_status(quorlock_candidate_new(&leader->candidate, clients[who][PLAIN], name, &options), QUORLOCK_OK);
}

/* ---- servers that forget ---- */

static void flush_scripts(void)
{
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
}

/* How often the server was asked for a script that it did not have. */
static long long missed(uint32_t i)
{
    static const char script[] = "return tonumber(string.match(redis.call('INFO', 'errorstats'), "
                                 "'errorstat_NOSCRIPT:count=(%d+)') or 0)";

    return server_ask_number(SERVER(i), "EVAL %s 0", script);
}

static void assert_nothing_lost(size_t who)
{
    for (size_t k = 0; k < LENGTH(kinds); k++) {
        for (size_t i = 0; i < OF_A_KIND; i++) {
            if (locks[who][k][i].loss.calls > 0) fail_msg("%s: %s", kinds[k].name, locks[who][k][i].loss.text);
        }
    }
    for (size_t i = 0; i < OF_A_KIND; i++) assert_int_equal(leaders[who][i].deposed, 0);
}

static void hold_ms(uint32_t span_ms)
{
    uint64_t until_us = clock_us() + span_ms * UINT64_C(1000);

    while (clock_us() < until_us) {
        flush_scripts();
        run_ms(PAUSE_MS);
    }
}

enum what { ACQUIRED, RELEASED };

static size_t count(size_t who, enum what what)
{
    size_t n = 0;

    for (size_t k = 0; k < LENGTH(kinds); k++) {
        for (size_t i = 0; i < OF_A_KIND; i++) {
            const struct seen *seen = what == ACQUIRED ? &locks[who][k][i].acquired : &locks[who][k][i].released;

            if (seen->calls > 0 && seen->result.status != QUORLOCK_OK) fail_msg("%s: %s", kinds[k].name, seen->text);
            if (seen->calls > 0 && what == RELEASED) assert_int_equal(seen->result.expired, 0);
            n += (size_t)seen->calls;
        }
    }
    for (size_t i = 0; i < OF_A_KIND; i++)
        n += (size_t)(what == ACQUIRED ? leaders[who][i].elected : leaders[who][i].ended);
    return n;
}

static void await_all(size_t who, enum what what)
{
    uint64_t until_us = clock_us() + UINT64_C(2000) * GENEROUS_MS;

    while (count(who, what) < (LENGTH(kinds) + 1) * OF_A_KIND) {
        if (clock_us() > until_us) fail_msg("%zu of %zu", count(who, what), (LENGTH(kinds) + 1) * OF_A_KIND);
        hold_ms(PAUSE_MS);
    }
}

/* ---- what one side does ---- */

static void make(size_t who)
{
    memset(locks[who], 0, sizeof(locks[who]));
    memset(leaders[who], 0, sizeof(leaders[who]));
    for (size_t k = 0; k < LENGTH(kinds); k++)
        for (size_t i = 0; i < OF_A_KIND; i++) make_lock(who, k, i);
    for (size_t i = 0; i < OF_A_KIND; i++) make_leader(who, i);
}

static void acquire_all(size_t who)
{
    for (size_t k = 0; k < LENGTH(kinds); k++) {
        for (size_t i = 0; i < OF_A_KIND; i++) fixture_start_acquire(locks[who][k][i].lock, &locks[who][k][i].acquired);
        hold_ms(PAUSE_MS);
    }
    for (size_t i = 0; i < OF_A_KIND; i++) assert_status(quorlock_stand(leaders[who][i].candidate), QUORLOCK_OK);
}

static void release_all(size_t who)
{
    for (size_t k = 0; k < LENGTH(kinds); k++) {
        for (size_t i = 0; i < OF_A_KIND; i++) fixture_start_release(locks[who][k][i].lock, &locks[who][k][i].released);
        hold_ms(PAUSE_MS);
    }
    for (size_t i = 0; i < OF_A_KIND; i++) assert_status(quorlock_resign(leaders[who][i].candidate), QUORLOCK_OK);
}

static void open_clients(void)
{
    struct seen_report seen = {.calls = 0};

    /* The servers are told to forget while the loop stands still. */
    fixture.options.node_timeout_ms = LEASE_MS / 3;
    for (size_t who = 0; who < 2; who++) {
        fixture.options.guard = QUORLOCK_GUARD_OFF;
        fixture.options.dialect = QUORLOCK_DIALECT_PLAIN;
        clients[who][PLAIN] = fixture_new_client(3);
        if (who == 0) {
            assert_status(quorlock_bootstrap(clients[0][PLAIN], NULL, on_report, &seen), QUORLOCK_OK);
            await_count(&seen.calls, 1, GENEROUS_MS, "bootstrap");
            assert_status(seen.status, QUORLOCK_OK);
        }
        fixture.options.guard = QUORLOCK_GUARD_STRICT;
        clients[who][STRICT] = fixture_new_client(3);
        fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
        fixture.options.dialect = QUORLOCK_DIALECT_REDISSON;
        clients[who][REDISSON] = fixture_new_client(3);
    }
}

static void await_all_free(void)
{
    for (size_t k = 0; k < LENGTH(kinds); k++) {
        for (size_t i = 0; i < OF_A_KIND; i++) {
            char key[TEXT_SIZE], slot[2 * TEXT_SIZE];

            key_of(key, &kinds[k], i, 0);
            snprintf(slot, sizeof(slot), "%s%s", kinds[k].permits > 0 ? "quorlock:slot:0:" : "", key);
            await_free(slot);
        }
    }
}

SERVERS_TEST(scripts_that_are_forgotten_again_and_again_lose_no_lock)
{
    open_clients();
    make(0);
    acquire_all(0);
    await_all(0, ACQUIRED);
    hold_ms(HELD_MS);
    assert_nothing_lost(0);
    make(1);
    acquire_all(1);
    hold_ms(HELD_MS / 4);
    assert_nothing_lost(0);
    assert_int_equal(count(1, ACQUIRED), 0);
    release_all(0);
    await_all(0, RELEASED);
    await_all(1, ACQUIRED);
    hold_ms(HELD_MS / 4);
    assert_nothing_lost(1);
    release_all(1);
    await_all(1, RELEASED);
    await_all_free();
    /* How many there were depends on the speed of the machine. */
    for (uint32_t i = 0; i < 3; i++) assert_in_range(missed(i), 10, INT32_MAX);
    for (size_t who = 0; who < 2; who++)
        for (size_t i = 0; i < OF_A_KIND; i++) quorlock_candidate_free(leaders[who][i].candidate);
}
