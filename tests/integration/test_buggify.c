/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_buggify.c - troubles that a client makes up: each kind comes, follows from the seed, and harms nobody
 */
#include "fixture.h"

#include <stdlib.h>

#define SEED            3u
#define CYCLES_MAX      400
#define NODE_TIMEOUT_MS 200u

#define BUGGIFY_TEST(name) TEST_RUNS(name, RUN_WITH(name, "", setup))

static int setup(void **state)
{
    fixture_begin(3);
    fixture.options.node_timeout_ms = NODE_TIMEOUT_MS;
    fixture.extras.buggify = SEED;
    fixture_client(3);
    return 0;
}

/* The number in the latest line of the log that has these texts around it; 0: there is none. */
static uint32_t logged_number(const char *before, const char *behind)
{
    const char *found = NULL;

    for (const char *at = fixture.log; at != NULL && (at = strstr(at, before)) != NULL; at++) {
        const char *number = at + strlen(before);
        size_t digits = strspn(number, "0123456789");

        if (digits > 0 && strncmp(number + digits, behind, strlen(behind)) == 0) found = number;
    }
    return found == NULL ? 0 : (uint32_t)strtoul(found, NULL, 10);
}

/* Releases it where it is held. */
static void give_back(quorlock_lock *lock, const struct seen *acquired)
{
    struct seen seen = {0};
    int status = acquired->result.status == QUORLOCK_OK ? fixture_release(lock, &seen) : QUORLOCK_OK;

    /* The servers of a busy machine may be too slow for the short node timeout; the keys go all the same. */
    if (status != QUORLOCK_ERR_NOQUORUM) assert_status(status, QUORLOCK_OK);
    await_free("key");
}

/* ---- on and off ---- */

CLIENT_TEST(nothing_is_made_up_unless_asked_for)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen;

    for (int i = 0; i < 50; i++) {
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    }
    assert_int_equal(logged("buggify"), 0);
}

BUGGIFY_TEST(it_says_so_at_the_beginning)
{
    await_log("buggify is on, with seed 3: ", 1);
}

SERVERS_TEST(the_environment_may_ask_for_it)
{
    struct quorlock_error error;
    quorlock_client *client = NULL;

    fixture_needs_real_servers();
    assert_int_equal(setenv("QUORLOCK_BUGGIFY", "77", 1), 0);
    fixture_client(0);
    await_log("buggify is on, with seed 77: ", 1);
    assert_int_equal(setenv("QUORLOCK_BUGGIFY", "lots", 1), 0);
    assert_status(quorlock_client_new(&client, fixture.base, &fixture.options, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "QUORLOCK_BUGGIFY is \"lots\": give a seed");
    assert_int_equal(unsetenv("QUORLOCK_BUGGIFY"), 0);
}

/* ---- the kinds ---- */

BUGGIFY_TEST(acquires_end_with_noquorum_and_leave_nothing)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = GENEROUS_MS));
    unsigned refused = 0;

    for (int i = 0; i < CYCLES_MAX && refused < 3; i++) {
        struct seen seen = {0};
        int status = fixture_acquire(lock, &seen);

        if (status != QUORLOCK_OK) assert_status(status, QUORLOCK_ERR_NOQUORUM);
        refused += status == QUORLOCK_ERR_NOQUORUM;
        assert_int_equal(logged("NOQUORUM is made up"), refused);
        give_back(lock, &seen);
    }
    assert_int_equal(refused, 3);
}

BUGGIFY_TEST(an_acquire_that_waits_for_ever_never_ends_so)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));

    for (int i = 0; i < 40; i++) {
        struct seen seen = {0};

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        give_back(lock, &seen);
    }
    assert_int_equal(logged("NOQUORUM is made up"), 0);
}

BUGGIFY_TEST(an_extend_ends_with_noquorum_and_the_lock_is_still_held)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    struct seen seen = {0}, extended = {0};
    struct seen_loss loss = {0};
    int status = QUORLOCK_OK;

    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (int i = 0; i < CYCLES_MAX && status == QUORLOCK_OK && loss.calls == 0; i++) {
        status = fixture_extend(lock, 0, &extended);
    }
    assert_status(status, QUORLOCK_ERR_NOQUORUM);
    assert_int_equal(logged("NOQUORUM is made up"), 1);
    assert_int_equal(loss.calls, 0);
    assert_true(quorlock_lock_valid_ms(lock) > 0);
    await_holders("key", seen.owner, 3);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}

BUGGIFY_TEST(a_late_grant_is_reported_long_after_the_nodes_have_the_key)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    unsigned late = 0;

    for (int i = 0; i < CYCLES_MAX && late < 3; i++) {
        struct seen seen = {0};
        uint32_t late_ms = 0;

        fixture_start_acquire(lock, &seen);
        await_holders("key", NULL, 3);
        if (logged("a grant is reported ") > late) late_ms = logged_number("a grant is reported ", " ms late");
        late += late_ms > 0;
        await_status(&seen, QUORLOCK_OK, "the grant");
        assert_true(seen.result.elapsed_ms >= late_ms);
        assert_true(late_ms <= NODE_TIMEOUT_MS);
        assert_true(quorlock_lock_valid_ms(lock) > 0);
        give_back(lock, &seen);
    }
    assert_int_equal(late, 3);
}

BUGGIFY_TEST(a_slow_release_is_reported_long_after_the_key_is_gone)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    unsigned late = 0;

    for (int i = 0; i < CYCLES_MAX && late < 3; i++) {
        struct seen seen = {0}, released = {0};
        uint32_t late_ms = 0;

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        fixture_start_release(lock, &released);
        await_free("key");
        if (logged("the end of the release is reported ") > late) {
            late_ms = logged_number("the end of the release is reported ", " ms late");
        }
        late += late_ms > 0;
        await_status(&released, QUORLOCK_OK, "the release");
        assert_true(released.result.elapsed_ms >= late_ms);
    }
    assert_int_equal(late, 3);
}

/* Another client cannot have the key while the loser has not released it. */
static void check_still_taken(quorlock_client *other)
{
    quorlock_lock *lock = fixture_lock(other, "key", LEASE(LONG_LEASE_MS));
    struct seen seen = {0};

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    quorlock_lock_free(lock);
}

BUGGIFY_TEST(a_loss_comes_early_and_the_lock_is_released_as_always)
{
    quorlock_lock *lock =
        fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT, .renew_ms = 50));
    bool expired = false, stepped = false;
    quorlock_client *other;

    fixture.extras.buggify = 0;
    other = fixture_new_client(3);
    for (int i = 0; i < 100 && !(expired && stepped); i++) {
        struct seen seen = {0}, released = {0};
        struct seen_loss loss = {0};

        quorlock_lock_set_on_lost(lock, on_loss, &loss);
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        await_count(&loss.calls, 1, GENEROUS_MS, "a loss");
        assert_int_equal(loss.valid_ms, 0);
        assert_true(loss.loss.reason == QUORLOCK_LOSS_EXPIRED || loss.loss.reason == QUORLOCK_LOSS_CLOCK);
        assert_int_equal(quorlock_lock_valid_ms(lock), 0);
        assert_null(quorlock_lock_token(lock));
        expired |= loss.loss.reason == QUORLOCK_LOSS_EXPIRED && loss.loss.remaining_ms > 0;
        stepped |= loss.loss.reason == QUORLOCK_LOSS_CLOCK && loss.loss.remaining_ms == 0;
        check_still_taken(other);
        assert_status(fixture_release(lock, &released), QUORLOCK_ERR_LOST);
        assert_int_equal(loss.calls, 1);
        await_free("key");
    }
    assert_true(expired && stepped);
}

/* ---- the seed ---- */

#define STORY_MAX 8192

/* The failures that the client makes up in some cycles of a lock without renewal. */
static void tell(uint64_t seed, char ret[STORY_MAX])
{
    size_t begun = fixture.log_length, length = 0;
    quorlock_lock *lock;

    fixture.extras.buggify = seed;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = GENEROUS_MS));
    for (int i = 0; i < 30; i++) {
        struct seen seen = {0}, released = {0};

        if (fixture_acquire(lock, &seen) == QUORLOCK_OK) (void)fixture_release(lock, &released);
        /* Before the next one, for a node that answers late could be asked twice. */
        await_free("key");
    }
    for (char *line = strstr(fixture.log + begun, "buggify: "); line != NULL; line = strstr(line + 1, "buggify: ")) {
        length += (size_t)snprintf(ret + length, STORY_MAX - length, "%.*s\n", (int)strcspn(line, "\n"), line);
    }
    fixture_close(fixture.client);
}

SERVERS_TEST(one_seed_makes_one_story)
{
    char first[STORY_MAX] = "", again[STORY_MAX] = "", other[STORY_MAX] = "";

    fixture.options.node_timeout_ms = NODE_TIMEOUT_MS;
    tell(11, first);
    tell(11, again);
    tell(12, other);
    assert_true(strlen(first) > 100);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
}
