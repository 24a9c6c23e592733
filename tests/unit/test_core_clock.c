/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_clock.c - clocks that step, validity that shrinks, and what a hold leaves to the next
 */

#include "fixture.h"

#define VALID_US (2968 * MS) /* of a grant, after its send */

static void answer_renewal(struct fixture *f, uint32_t node, enum outcome outcome)
{
    fixture_answer(f, node, OP_EXTEND, outcome);
}

/* ---- losses that are made up ---- */

CORE_TEST(a_hold_that_is_to_be_lost_has_its_margin_left)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    fixture_lose(f);
    assert_true(core_loss_pending(f->lock));
    /* Twice the allowance: 1 % of 3 s, and 2 ms. */
    assert_int_equal(core_remaining_us(f->lock, f->now_us), 64 * MS);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_pass(f, 2000 * MS);
    fixture_expect_nothing(f);
    assert_int_equal(fixture_release(f), 0);
    fixture_answers(f, OP_RELEASE, "yyy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
}

CORE_TEST(a_yes_that_comes_after_it_changes_nothing)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    assert_int_equal(fixture_pending(f, 0, OP_EXTEND), 1);
    fixture_lose(f);
    fixture_answers(f, OP_EXTEND, "yyy");
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
}

CORE_TEST(what_is_not_held_cannot_be_lost)
{
    fixture_open(f, 3, 2);
    fixture_lose(f);
    fixture_expect_nothing(f);
    fixture_acquire(f);
    fixture_lose(f);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_lose(f);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_true(core_valid_us(f->lock, f->now_us) > 0);
}

/* ---- steps ---- */

CORE_TEST(a_vote_asked_for_since_the_step_counts)
{
    fixture_open_held(f, 3, 2);
    fixture_step(f, 0, FIXTURE_BEGIN_US); /* they were asked for just then */
    assert_int_equal(core_counted(f->lock), 3);
}

CORE_TEST(a_step_that_drops_the_vote_of_a_quorum_is_a_loss)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yyu");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, f->now_us);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
}

CORE_TEST(steps_of_a_quorum_prove_that_our_own_clock_was_stopped)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, FIXTURE_BEGIN_US);
    fixture_expect_nothing(f);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 2, FIXTURE_BEGIN_US);
    assert_true(core_loss_pending(f->lock));
    assert_int_equal(core_remaining_us(f->lock, f->now_us), 0);
    fixture_expect_lost(f, CORE_LOSS_CLOCK);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    fixture_expect_nothing(f);
}

CORE_TEST(a_step_before_the_owner_is_notified_is_no_grant)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_pass(f, 1 * MS);
    fixture_step(f, 0, f->now_us);
    fixture_step(f, 1, f->now_us);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_false(core_notified_held(f->lock));
}

/* Renewed in between, the lock has votes from after both. */
CORE_TEST(steps_further_apart_than_a_lease_are_clocks_of_nodes)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, f->now_us);
    for (uint32_t round = 0; round < 4; round++) {
        fixture_pass(f, round == 0 ? 0 : 1000 * MS);
        for (uint32_t i = 0; i < 3; i++) answer_renewal(f, i, OUTCOME_YES);
        fixture_expect_nothing(f);
    }
    fixture_pass(f, 10 * MS);
    fixture_step(f, 1, f->now_us);
    fixture_expect_nothing(f);
    assert_true(core_notified_held(f->lock));
    assert_int_equal(core_counted(f->lock), 2);
}

CORE_TEST(steps_within_a_lease_prove_that_our_own_clock_was_stopped)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, f->now_us);
    for (uint32_t round = 0; round < 2; round++) {
        fixture_pass(f, round == 0 ? 0 : 1000 * MS);
        for (uint32_t i = 0; i < 3; i++) answer_renewal(f, i, OUTCOME_YES);
    }
    fixture_step(f, 1, FIXTURE_BEGIN_US);
    fixture_expect_lost(f, CORE_LOSS_CLOCK);
}

/* It was asked for before the step. */
CORE_TEST(a_step_before_the_verdict_drops_the_vote)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_pass(f, 1 * MS);
    fixture_step(f, 0, f->now_us);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect_nothing(f);
    assert_false(core_notified_held(f->lock));
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(f->lock), 2);
}

/* The votes of a quorum prove it, while their token is not agreed yet. */
CORE_TEST(votes_that_prove_a_stopped_own_clock_grant_nothing)
{
    struct core_config config = fixture_config(3, 2);
    struct core_reply low = {.outcome = OUTCOME_YES, .fence = 5, .ttl_us = -2};
    struct core_reply high = {.outcome = OUTCOME_YES, .fence = 7, .ttl_us = -2};

    config.fencing = true;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answer_with(f, 0, OP_ACQUIRE, &low);
    fixture_step(f, 0, FIXTURE_BEGIN_US); /* the vote was sent just then, and counts */
    fixture_answer_with(f, 1, OP_ACQUIRE, &high);
    fixture_step(f, 1, FIXTURE_BEGIN_US);
    fixture_answer_with(f, 0, OP_RAISE, &high);
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_UNKNOWN);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_false(core_notified_held(f->lock));
}

CORE_TEST(steps_before_an_attempt_do_not_count_in_it)
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

/* Two nodes renewed it, then one lacks the key: the lock is valid as long as the next best two votes. */
CORE_TEST(validity_shrinks_when_a_vote_goes)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    answer_renewal(f, 0, OUTCOME_YES);
    answer_renewal(f, 1, OUTCOME_YES);
    answer_renewal(f, 2, OUTCOME_UNKNOWN);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 1000 * MS + VALID_US);
    fixture_pass(f, 1000 * MS);
    answer_renewal(f, 1, OUTCOME_MISSING);
    /* The round is not settled: a repaired node may still take its place. */
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 1000 * MS + VALID_US);
    answer_renewal(f, 2, OUTCOME_UNKNOWN);
    answer_renewal(f, 0, OUTCOME_UNKNOWN);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + VALID_US);
    assert_int_equal(core_lost_at(f->lock), FIXTURE_BEGIN_US + VALID_US - 64 * MS);
    fixture_expect_nothing(f);
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
    answer_renewal(f, 0, OUTCOME_YES);
    answer_renewal(f, 1, OUTCOME_YES);
    answer_renewal(f, 2, OUTCOME_UNKNOWN);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 1, f->now_us);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + VALID_US);
}

/* ---- the hold after ---- */

/* Without the votes, renewals and absences of the hold before. */
CORE_TEST(a_second_hold_begins_with_nothing)
{
    uint64_t begun_us;

    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    answer_renewal(f, 0, OUTCOME_YES);
    answer_renewal(f, 1, OUTCOME_YES);
    answer_renewal(f, 2, OUTCOME_MISSING);
    fixture_release(f);
    fixture_answer_releases(f);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_drop(f);
    begun_us = f->now_us;
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, ".yy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(f->lock), 2);
    assert_int_equal(core_valid_until(f->lock), begun_us + VALID_US);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_UNKNOWN);
    assert_int_equal(core_counted(f->lock), 2);
    /* One yes is no renewal, whatever the nodes answered in the hold before. */
    fixture_pass(f, 1000 * MS);
    f->log = 0;
    answer_renewal(f, 0, OUTCOME_YES);
    assert_int_equal(f->log & CORE_LOG_RENEWED, 0);
    assert_int_equal(core_valid_until(f->lock), begun_us + VALID_US);
    answer_renewal(f, 1, OUTCOME_YES);
    assert_int_equal(f->log & CORE_LOG_RENEWED, CORE_LOG_RENEWED);
}
