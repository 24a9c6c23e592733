/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_waiters.c - many wait for one key: which of them asks when its release is noticed
 */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "fixture.h"

#define LISTENER 0 /* the arbiter */
#define SRTT_US  ((uint64_t)500)

/* The lease of the holder ends after so long; -1: never. */
static void open_until(struct fixture *f, uint32_t n_nodes, uint32_t quorum, uint32_t waiters, uint8_t seed,
                       int64_t ttl_us)
{
    struct core_reply refusal = {.outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = ttl_us, .listeners = waiters};

    fixture_open_waiting(f, n_nodes, quorum, CORE_NEVER);
    f->randoms = seed;
    fixture_acquire(f);
    for (uint32_t i = 0; i < n_nodes; i++) fixture_answer_with(f, i, OP_ACQUIRE, &refusal);
    fixture_answer_releases(f);
    fixture_round_trip(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), 1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

/* A waiter to which the arbiter reported so many listeners; `seed` tells one from the other. */
static void open_among(struct fixture *f, uint32_t n_nodes, uint32_t quorum, uint32_t waiters, uint8_t seed)
{
    open_until(f, n_nodes, quorum, waiters, seed, -1);
}

/* Of `waiters` that hear of a release, how many ask within this time. */
static uint32_t ask_within(struct fixture *f, uint32_t waiters, uint64_t us)
{
    uint32_t asked = 0;

    for (uint32_t i = 0; i < waiters; i++) {
        open_among(f, 3, 2, waiters, (uint8_t)i);
        fixture_notice(f, LISTENER, HOLDER);
        if (us > 0) fixture_pass(f, us);
        asked += core_attempt(f->lock) > 1;
    }
    return asked;
}

/* Each waiter draws from the same seed every time. */
CORE_TEST(of_many_waiters_a_few_ask_at_once)
{
    for (uint32_t waiters = 10; waiters <= 250; waiters += 48) {
        uint32_t at_once = ask_within(f, waiters, 0);
        uint32_t soon = ask_within(f, waiters, 5 * SRTT_US);

        if (at_once > 7 || soon < 1 || soon > 16) fail_msg("of %u, %u at once, %u soon", waiters, at_once, soon);
    }
    assert_int_equal(ask_within(f, 3, 100 * SRTT_US), 3);
}

/* Where more than eight are left, half of them ask in the next span. */
CORE_TEST(all_of_the_last_few_waiters_ask_in_one_span)
{
    assert_int_equal(ask_within(f, 15, 5 * SRTT_US), 15);
    assert_in_range(ask_within(f, 16, 5 * SRTT_US), 1, 15);
}

/* A few poll as often as one alone. Each draws its pause, also when all know when the lease ends. */
CORE_TEST(polls_and_the_ends_of_leases_are_spread_by_the_size_of_the_crowd)
{
    static const struct {
        uint32_t waiters;
        int64_t ttl_us;
        uint64_t least_us, most_us;
    } rows[] = {{1, -1, 50 * MS, 100 * MS},
                {15, -1, 50 * MS, 100 * MS},
                {30, -1, 1500 * MS, 3000 * MS},
                {1, 20 * MS, 21 * MS, 21 * MS + 4 * SRTT_US},
                {15, 20 * MS, 21 * MS, 21 * MS + 4 * SRTT_US},
                {30, 20 * MS, 21 * MS, 3000 * MS}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint64_t first_us = UINT64_MAX;
        uint64_t last_us = 0;

        for (uint8_t seed = 0; seed < 40; seed++) {
            uint64_t pause_us;

            open_until(f, 3, 2, rows[i].waiters, seed, rows[i].ttl_us);
            pause_us = fixture_pass_to_attempt(f);
            assert_in_range(pause_us, rows[i].least_us, rows[i].most_us);
            if (pause_us < first_us) first_us = pause_us;
            if (pause_us > last_us) last_us = pause_us;
        }
        assert_true(last_us - first_us > (rows[i].most_us - rows[i].least_us) / 2);
    }
}

/* The lock asks soon anyway; a release that it hears of until then does not put that off. */
CORE_TEST(a_pause_after_a_release_ends_with_the_poll)
{
    for (uint8_t seed = 0; seed < 20; seed++) {
        open_among(f, 3, 2, 30, seed);
        fixture_yield(f);
        fixture_notice(f, LISTENER, HOLDER);
        if (core_attempt(f->lock) == 1) assert_true(fixture_pass_to_attempt(f) <= 4 * SRTT_US + 1000);
    }
}

/* How long after the release, and what may come behind it, one of many asks. */
static uint64_t turn_after(struct fixture *f, uint8_t seed, void (*behind)(struct fixture *))
{
    open_among(f, 3, 2, 30, seed);
    fixture_notice(f, LISTENER, HOLDER);
    if (core_attempt(f->lock) > 1) return 0;
    if (behind != NULL) behind(f);
    return core_attempt(f->lock) > 1 ? 0 : fixture_pass_to_attempt(f);
}

static void hear_the_same(struct fixture *f)
{
    fixture_notice(f, LISTENER, HOLDER);
}

static void be_told_of_the_same(struct fixture *f)
{
    fixture_told(f, LISTENER);
}

static void hear_another_elsewhere(struct fixture *f)
{
    fixture_notice(f, 1, 88);
}

static void hear_another(struct fixture *f)
{
    fixture_notice(f, LISTENER, 88);
}

/* Who drew twice would ask too soon. Only another release that the arbiter publishes is drawn for anew. */
CORE_TEST(the_pause_after_a_release_is_drawn_once)
{
    static void (*const same[])(struct fixture *) = {hear_the_same, be_told_of_the_same, hear_another_elsewhere};
    uint32_t at_once = 0;

    for (uint8_t seed = 0; seed < 50; seed++) {
        uint64_t turn_us = turn_after(f, seed, NULL);

        for (size_t i = 0; i < LENGTH(same); i++) assert_int_equal(turn_after(f, seed, same[i]), turn_us);
        at_once += turn_us > 0 && turn_after(f, seed, hear_another) == 0;
    }
    assert_in_range(at_once, 1, 20);
}

/* Of waiters that are drawn from so many: how many ask at once, and all of these so many nodes, or else the arbiter.
 * The holder is there for so long. */
static uint32_t ask_at_once(struct fixture *f, uint32_t n_nodes, uint32_t waiters, uint64_t quiet_us, bool all)
{
    uint32_t at_once = 0;

    for (uint8_t seed = 0; seed < 20; seed++) {
        open_among(f, n_nodes, n_nodes / 2 + 1, waiters, seed);
        fixture_pass(f, quiet_us);
        fixture_notice(f, LISTENER, HOLDER);
        if (core_attempt(f->lock) == 1) continue;
        at_once++;
        if (all) {
            fixture_expect_pending(f, OP_ACQUIRE, "111");
        } else {
            fixture_expect_alone(f, LISTENER);
        }
    }
    return at_once;
}

CORE_TEST(two_waiters_ask_all_nodes_at_once)
{
    for (uint32_t waiters = 1; waiters <= 2; waiters++) {
        open_among(f, 3, 2, waiters, 1);
        fixture_notice(f, LISTENER, HOLDER);
        fixture_expect_pending(f, OP_ACQUIRE, "111");
        fixture_answers(f, OP_ACQUIRE, ".yy");
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    }
}

/* Those that are drawn. */
CORE_TEST(a_few_that_wait_for_long_ask_all_nodes_at_once)
{
    for (uint32_t waiters = 3; waiters <= 8; waiters++)
        assert_in_range(ask_at_once(f, 3, waiters, 5 * SRTT_US, true), 1, 19);
    /* Too many, more nodes, or a holder that is new. */
    assert_in_range(ask_at_once(f, 3, 9, 5 * SRTT_US, false), 1, 19);
    assert_in_range(ask_at_once(f, 7, 3, 5 * SRTT_US, false), 1, 19);
    assert_in_range(ask_at_once(f, 3, 3, 2 * SRTT_US, false), 1, 19);
}

/* One node does not vote; an even number of nodes; a quorum of all; a node that owes an answer. */
CORE_TEST(two_waiters_ask_the_arbiter_where_votes_could_be_split)
{
    static const uint32_t n_nodes[] = {3, 4, 3, 3};
    static const uint32_t quorums[] = {2, 3, 3, 2};

    for (uint32_t i = 0; i < LENGTH(n_nodes); i++) {
        open_among(f, n_nodes[i], quorums[i], 2, 1);
        if (i == 0) fixture_node_state(f, 2, NODE_DOWN);
        if (i == 3) f->lock->nodes[2].doubt.overdue = true;
        fixture_notice(f, LISTENER, HOLDER);
        fixture_expect_alone(f, LISTENER);
    }
}

/* No later than without the notice. So many seldom poll. */
CORE_TEST(a_waiter_that_was_not_drawn_polls)
{
    for (uint32_t seed = 0; seed < 50; seed++) {
        open_among(f, 3, 2, UINT32_MAX, (uint8_t)seed);
        fixture_notice(f, LISTENER, HOLDER);
        assert_int_equal(core_attempt(f->lock), 1);
        fixture_pass(f, 60000 * MS);
        assert_int_equal(core_attempt(f->lock), 2);
    }
}

/* Nor does a number of listeners that only a broken server reports keep them from asking. */
CORE_TEST(waiters_at_unmeasured_nodes_are_drawn_too)
{
    uint32_t asked = 0;

    for (uint32_t seed = 0; seed < 100; seed++) {
        struct core_reply refusal = {.outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = -1, .listeners = 1000};

        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        if (seed % 10 == 0) refusal.listeners = UINT32_MAX;
        core_init(f->lock, &f->config, 0);
        f->srtt_us = 0;
        fixture_node_states(f, "rrr");
        f->randoms = (uint8_t)seed;
        fixture_acquire(f);
        for (uint32_t i = 0; i < 3; i++) fixture_answer_with(f, i, OP_ACQUIRE, &refusal);
        fixture_answer_releases(f);
        fixture_notice(f, LISTENER, HOLDER);
        asked += core_attempt(f->lock) > 1;
    }
    if (asked > 10) fail_msg("%u of 100 asked at once", asked);
}
