/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_clock.c - clocks that step, and validity that shrinks; the first rules of steps are in
 * test_core_fence.c
 */

#include "fixture.h"

#define VALID_US (2968 * MS) /* of a grant, after its send */

static void answer_renewal(struct fixture *f, uint32_t node, enum core_outcome outcome)
{
    fixture_answer(f, node, CORE_OP_EXTEND, outcome);
}

/* ---- steps ---- */

/* Our own clock stood still for nobody knows how long: the lease may have ended already. */
CORE_TEST(a_loss_by_our_own_clock_leaves_nothing)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, FIXTURE_BEGIN_US);
    fixture_step(f, 2, FIXTURE_BEGIN_US);
    assert_true(core_loss_pending(f->lock));
    assert_int_equal(core_remaining_us(f->lock, f->now_us), 0);
    fixture_expect_lost(f, CORE_LOSS_CLOCK);
    assert_int_equal(core_remaining_us(f->lock, f->now_us), 0);
}

CORE_TEST(a_loss_of_the_keys_leaves_nothing)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    answer_renewal(f, 0, CORE_MISSING);
    answer_renewal(f, 1, CORE_OTHER);
    assert_int_equal(core_remaining_us(f->lock, f->now_us), 0);
    fixture_expect_lost(f, CORE_LOSS_GONE);
}

CORE_TEST(a_loss_in_good_time_leaves_the_margin)
{
    fixture_open_held(f, 3, 2);
    fixture_node_states(f, "ddd");
    fixture_pass(f, VALID_US - 64 * MS);
    assert_int_equal(core_remaining_us(f->lock, f->now_us), 64 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
}

/* Each is one node's own clock: renewed in between, the lock has votes of after both. */
CORE_TEST(steps_further_apart_than_a_lease_are_two_nodes_clocks)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, f->now_us);
    for (uint32_t round = 0; round < 4; round++) {
        fixture_pass(f, round == 0 ? 0 : 1000 * MS);
        for (uint32_t i = 0; i < 3; i++) answer_renewal(f, i, CORE_YES);
        fixture_expect_nothing(f);
    }
    fixture_pass(f, 10 * MS);
    fixture_step(f, 1, f->now_us);
    fixture_expect_nothing(f);
    assert_true(core_notified_held(f->lock));
    assert_int_equal(core_counted(f->lock), 2);
}

CORE_TEST(steps_within_a_lease_are_our_own_clock)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, f->now_us);
    for (uint32_t round = 0; round < 2; round++) {
        fixture_pass(f, round == 0 ? 0 : 1000 * MS);
        for (uint32_t i = 0; i < 3; i++) answer_renewal(f, i, CORE_YES);
    }
    fixture_step(f, 1, FIXTURE_BEGIN_US);
    fixture_expect_lost(f, CORE_LOSS_CLOCK);
}

/* A vote says what time it is there. Asked for before a step that another vote of the node proved, it counts
 * for nothing. */
CORE_TEST(a_step_before_the_verdict_takes_the_vote)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_pass(f, 1 * MS);
    fixture_step(f, 0, f->now_us);
    fixture_answer(f, 1, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect_nothing(f);
    assert_false(core_notified_held(f->lock));
    fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(f->lock), 2);
}

/* The votes themselves prove it on a quorum, while their token is not agreed yet. */
CORE_TEST(votes_that_prove_our_own_standstill_grant_nothing)
{
    struct core_config config = fixture_config(3, 2);
    struct core_reply low = {.outcome = CORE_YES, .fence = 5, .ttl_us = -2};
    struct core_reply high = {.outcome = CORE_YES, .fence = 7, .ttl_us = -2};

    config.fencing = true;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answer_with(f, 0, CORE_OP_ACQUIRE, &low);
    fixture_step(f, 0, FIXTURE_BEGIN_US); /* the vote was asked for just then, and counts by itself */
    fixture_answer_with(f, 1, CORE_OP_ACQUIRE, &high);
    fixture_step(f, 1, FIXTURE_BEGIN_US);
    fixture_answer_with(f, 0, CORE_OP_RAISE, &high);
    fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_false(core_notified_held(f->lock));
}

/* What was proven before an attempt says nothing about votes that were asked for after it. */
CORE_TEST(steps_before_an_attempt_are_forgotten_with_it)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, FIXTURE_BEGIN_US);
    fixture_step(f, 1, FIXTURE_BEGIN_US);
    fixture_expect_lost(f, CORE_LOSS_CLOCK);
    fixture_drop(f);
    fixture_grant(f);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 2, f->now_us);
    fixture_expect_nothing(f);
    assert_true(core_notified_held(f->lock));
}

/* ---- validity that shrinks ---- */

/* Two renewed it, then one of them says that the key is gone: the lock is valid as long as the next best two
 * are. */
CORE_TEST(validity_shrinks_when_a_vote_goes)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    answer_renewal(f, 0, CORE_YES);
    answer_renewal(f, 1, CORE_YES);
    answer_renewal(f, 2, CORE_UNKNOWN);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 1000 * MS + VALID_US);
    fixture_pass(f, 1000 * MS);
    answer_renewal(f, 1, CORE_MISSING);
    /* The round is not settled: one that was repaired before may still stand in. */
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 1000 * MS + VALID_US);
    answer_renewal(f, 2, CORE_UNKNOWN);
    answer_renewal(f, 0, CORE_UNKNOWN);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + VALID_US);
    assert_int_equal(core_lost_at(f->lock), FIXTURE_BEGIN_US + VALID_US - 64 * MS);
    fixture_expect_nothing(f);
    /* And the loss comes by that time. */
    fixture_node_states(f, "ddd");
    fixture_pass(f, FIXTURE_BEGIN_US + VALID_US - 64 * MS - f->now_us - 1);
    fixture_expect_nothing(f);
    fixture_pass(f, 1);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
}

CORE_TEST(a_step_shrinks_validity_to_the_other_votes)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    answer_renewal(f, 0, CORE_YES);
    answer_renewal(f, 1, CORE_YES);
    answer_renewal(f, 2, CORE_UNKNOWN);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 1, f->now_us);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + VALID_US);
}

/* ---- the hold after ---- */

/* A vote of the hold before, however late, is none of this one. */
CORE_TEST(a_late_vote_of_the_hold_before_does_not_count)
{
    struct fixture_sent late;
    uint64_t begun_us;

    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, CORE_OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    late = *fixture_latest(f, 2, CORE_OP_ACQUIRE);
    fixture_release(f);
    fixture_answer_releases(f);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_drop(f);
    fixture_pass(f, 10 * MS);
    begun_us = f->now_us;
    fixture_acquire(f);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_replay(f, &late, CORE_YES);
    assert_false(f->update.dispatch);
    fixture_answer(f, 1, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_replay(f, &late, CORE_YES);
    assert_int_equal(core_counted(f->lock), 2);
    assert_int_equal(core_valid_until(f->lock), begun_us + VALID_US);
    /* Its own late vote does. */
    fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(core_counted(f->lock), 3);
}

/* Nor do the votes, renewals and absences that the hold before had. */
CORE_TEST(a_second_hold_begins_with_nothing)
{
    uint64_t begun_us;

    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    answer_renewal(f, 0, CORE_YES);
    answer_renewal(f, 1, CORE_YES);
    answer_renewal(f, 2, CORE_MISSING);
    fixture_release(f);
    fixture_answer_releases(f);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_drop(f);
    begun_us = f->now_us;
    fixture_acquire(f);
    fixture_answers(f, CORE_OP_ACQUIRE, ".yy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(f->lock), 2);
    assert_int_equal(core_valid_until(f->lock), begun_us + VALID_US);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    assert_int_equal(core_counted(f->lock), 2);
    /* A renewal of its own, by its own yes: one is not enough, whatever was said in the hold before. */
    fixture_pass(f, 1000 * MS);
    f->log = 0;
    answer_renewal(f, 0, CORE_YES);
    assert_int_equal(f->log & CORE_LOG_RENEWED, 0);
    assert_int_equal(core_valid_until(f->lock), begun_us + VALID_US);
    answer_renewal(f, 1, CORE_YES);
    assert_int_equal(f->log & CORE_LOG_RENEWED, CORE_LOG_RENEWED);
}
