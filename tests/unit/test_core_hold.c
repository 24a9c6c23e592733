/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_hold.c - holding: renewal, repair, loss and extend
 */

#include "fixture.h"

/* All nodes to which such a request is pending. */
static void answer_all(struct fixture *f, enum op op, enum outcome outcome)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        if (fixture_pending(f, i, op) != 0) fixture_answer(f, i, op, outcome);
    }
}

CORE_TEST(renewal_asks_every_node_in_one_burst)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS - 1);
    assert_int_equal(fixture_pending(f, 0, OP_EXTEND), 0);
    fixture_pass(f, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(fixture_latest(f, i, OP_EXTEND)->command.tag.sent_us, FIXTURE_BEGIN_US + 1000 * MS);
    }
    fixture_answer(f, 0, OP_EXTEND, OUTCOME_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS); /* one yes is no renewal */
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 3968 * MS);
    assert_int_equal(f->log & CORE_LOG_RENEWED, CORE_LOG_RENEWED);
    fixture_answer(f, 1, OP_EXTEND, OUTCOME_YES);
    fixture_pass(f, 1000 * MS); /* the next is due by the begin of this one */
    assert_int_equal(fixture_pending(f, 1, OP_EXTEND), 1);
}

/* So renewals of many locks go out together, but not of all locks at the same time. */
CORE_TEST(renewals_are_due_on_a_grid_at_random)
{
    struct core_config config = fixture_config(3, 2);
    uint64_t first_us = CORE_NEVER;
    uint64_t last_us = 0;

    config.holder.renew_grid_us = 8 * MS;
    for (uint32_t seed = 0; seed < 50; seed++) {
        uint64_t due_us;

        fixture_open_config(f, &config);
        f->randoms = (uint8_t)seed;
        fixture_sleep(f, seed * UINT64_C(77));
        fixture_grant(f);
        due_us = core_deadline(f->lock);
        assert_int_equal(due_us % (8 * MS), 0);
        assert_in_range(due_us - f->now_us, 1000 * MS - 1000 * MS / 16 - 8 * MS, 1000 * MS);
        if (due_us < first_us) first_us = due_us;
        if (due_us > last_us) last_us = due_us;
    }
    assert_in_range(last_us - first_us, 30 * MS, 1000 * MS);
}

CORE_TEST(a_failed_renewal_is_tried_again_until_lost_at)
{
    uint32_t rounds = 0;

    fixture_open_held(f, 3, 2);
    while (core_notified_held(f->lock)) {
        if (fixture_pending(f, 0, OP_EXTEND) != 0) rounds++;
        answer_all(f, OP_EXTEND, OUTCOME_UNKNOWN);
        fixture_pass(f, 10 * MS);
    }
    assert_in_range(rounds, 10, 60); /* with pauses */
    assert_int_equal(f->log & CORE_LOG_RENEW_FAILED, CORE_LOG_RENEW_FAILED);
    assert_in_range(f->now_us, FIXTURE_BEGIN_US + 2904 * MS, FIXTURE_BEGIN_US + 2914 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
}

/* As where the nodes have lost their scripts. */
CORE_TEST(a_refusal_that_passes_is_asked_once_more_in_its_round)
{
    static const struct core_reply denied = {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_AUTH};

    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    f->log = 0;
    fixture_sleep(f, 5 * MS);
    fixture_answers(f, OP_EXTEND, "eee");
    fixture_expect_pending(f, OP_EXTEND, "111");
    assert_int_equal(fixture_latest(f, 2, OP_EXTEND)->command.tag.lease_us, 3000 * MS);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(f->log, CORE_LOG_RENEWED); /* nothing was degraded */
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 3973 * MS);

    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "eey");
    fixture_expect_pending(f, OP_EXTEND, "110");
    fixture_answers(f, OP_EXTEND, "ee.");
    assert_int_equal(f->log & CORE_LOG_RENEW_FAILED, CORE_LOG_RENEW_FAILED);

    /* What may have been executed, what stays refused, and who has left. */
    fixture_pass(f, 1000 * MS);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, OP_EXTEND, OUTCOME_UNKNOWN);
    fixture_answer_with(f, 1, OP_EXTEND, &denied);
    fixture_node_states(f, "..d");
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_ERROR);
    fixture_expect_pending(f, OP_EXTEND, "000");
}

CORE_TEST(a_node_that_comes_back_is_renewed_at_once)
{
    fixture_open_held(f, 3, 2);
    fixture_node_states(f, ".dd");
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, OP_EXTEND, OUTCOME_YES);
    fixture_pass(f, 300 * MS);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_node_state(f, 1, NODE_READY);
    fixture_pass(f, 0);
    fixture_answer(f, 1, OP_EXTEND, OUTCOME_YES);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    assert_true(core_valid_until(f->lock) > FIXTURE_BEGIN_US + 4000 * MS);
}

CORE_TEST(loss_is_reported_before_validity_ends)
{
    fixture_open_held(f, 3, 2);
    fixture_node_states(f, "ddd");
    assert_int_equal(core_valid_us(f->lock, FIXTURE_BEGIN_US + 2904 * MS), 0); /* before any step */
    fixture_pass(f, 2904 * MS - 1);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 64 * MS + 1);
    fixture_pass(f, 1);
    assert_true(f->update.dispatch);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    assert_int_equal(core_remaining_us(f->lock, f->now_us), 64 * MS);
    assert_false(core_notified_held(f->lock));
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_expect_nothing(f); /* once */
}

CORE_TEST(loss_is_reported_before_an_extend_that_had_succeeded)
{
    fixture_open_held(f, 3, 2);
    assert_int_equal(fixture_extend(f, 0), CORE_OK);
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_sleep(f, 10000 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_LOST_LOCK);
    fixture_expect_nothing(f);
}

CORE_TEST(a_lock_missing_on_a_majority_is_lost_at_once)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, OP_EXTEND, OUTCOME_MISSING);
    assert_true(core_notified_held(f->lock));
    fixture_answer(f, 1, OP_EXTEND, OUTCOME_OTHER);
    assert_false(core_notified_held(f->lock));
    assert_int_equal(core_remaining_us(f->lock, f->now_us), 0);
    fixture_expect_lost(f, CORE_LOSS_GONE);
}

CORE_TEST(repair_needs_a_quorum_of_its_round)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_MISSING);
    fixture_answer(f, 0, OP_EXTEND, OUTCOME_YES);
    assert_int_equal(fixture_pending(f, 2, OP_REPAIR), 0);
    fixture_answer(f, 1, OP_EXTEND, OUTCOME_YES);
    assert_int_equal(fixture_pending(f, 2, OP_REPAIR), 1);
    assert_int_equal(f->log & CORE_LOG_DEGRADED, CORE_LOG_DEGRADED);
    fixture_answer(f, 2, OP_REPAIR, OUTCOME_YES);
    assert_int_equal(f->log & CORE_LOG_REPAIRED, CORE_LOG_REPAIRED);
    assert_int_equal(core_counted(f->lock), 2); /* it counts from the next round on */
    fixture_pass(f, 1000 * MS);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    assert_int_equal(core_counted(f->lock), 3);
    assert_int_equal(f->log & CORE_LOG_WHOLE, CORE_LOG_WHOLE);
}

/* The key was set again since. */
CORE_TEST(an_absence_from_before_a_repair_does_not_count)
{
    struct fixture_sent before;

    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    before = *fixture_latest(f, 2, OP_EXTEND);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_MISSING);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_answer(f, 2, OP_REPAIR, OUTCOME_YES);
    fixture_replay(f, &before, OUTCOME_MISSING);
    fixture_pass(f, 1000 * MS);
    /* One node lacks the key, not two. */
    fixture_answer(f, 1, OP_EXTEND, OUTCOME_MISSING);
    fixture_expect_nothing(f);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    assert_int_equal(core_counted(f->lock), 2);
}

/* The node may hold the key. */
CORE_TEST(a_repair_of_unknown_outcome_is_no_absence)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_MISSING);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_answer(f, 2, OP_REPAIR, OUTCOME_UNKNOWN);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "ym.");
    fixture_expect_nothing(f);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_YES); /* it does */
    fixture_expect_nothing(f);
    assert_true(core_notified_held(f->lock));
    assert_int_equal(core_counted(f->lock), 2);
}

CORE_TEST(a_repair_refused_by_another_is_an_absence)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_MISSING);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_answer(f, 2, OP_REPAIR, OUTCOME_OTHER);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 1, OP_EXTEND, OUTCOME_MISSING);
    fixture_expect_lost(f, CORE_LOSS_GONE);
}

CORE_TEST(a_node_that_was_away_is_repaired_and_released)
{
    fixture_open(f, 3, 2);
    fixture_node_state(f, 2, NODE_DOWN);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_node_state(f, 2, NODE_READY);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_MISSING);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_answer(f, 2, OP_REPAIR, OUTCOME_UNKNOWN);
    fixture_release(f);
    assert_int_equal(fixture_pending(f, 2, OP_RELEASE), 1); /* it may hold the key */
}

CORE_TEST(an_extend_lengthens_the_lease_and_never_shortens_it)
{
    fixture_open_held(f, 3, 2);
    assert_int_equal(fixture_extend(f, 2999 * MS), CORE_INVAL);
    assert_int_equal(fixture_extend(f, 6000 * MS), CORE_OK);
    assert_int_equal(fixture_extend(f, 6000 * MS), CORE_BUSY);
    assert_int_equal(fixture_release(f), CORE_BUSY);
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_OK);
    assert_int_equal(core_lease_us(f->lock), 6000 * MS);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + (6000 - 62) * MS);
    assert_int_equal(fixture_extend(f, 3000 * MS), CORE_INVAL);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_YES);
    fixture_pass(f, 1000 * MS); /* later renewals use it too */
    assert_int_equal(fixture_latest(f, 0, OP_EXTEND)->command.tag.lease_us, 6000 * MS);
}

CORE_TEST(an_extend_without_quorum_changes_nothing)
{
    fixture_open_held(f, 3, 2);
    fixture_extend(f, 6000 * MS);
    fixture_answers(f, OP_EXTEND, "yuu");
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
    assert_true(core_notified_held(f->lock));
    assert_int_equal(core_lease_us(f->lock), 3000 * MS);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
}

/* Busy nodes, or such as have forgotten their scripts. */
CORE_TEST(an_extend_that_was_refused_for_a_while_is_asked_once_more)
{
    static const uint64_t renew_us[] = {1000 * MS, CORE_NEVER};

    for (size_t i = 0; i < 2; i++) {
        fixture_open_held(f, 3, 2);
        f->config.holder.renew_us = renew_us[i];
        fixture_extend(f, 6000 * MS);
        fixture_answers(f, OP_EXTEND, "eee");
        fixture_expect_nothing(f);
        fixture_answers(f, OP_EXTEND, "yye");
        fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_OK);
        assert_int_equal(core_lease_us(f->lock), 6000 * MS);
    }
}

CORE_TEST(an_extend_that_is_refused_twice_fails)
{
    fixture_open_held(f, 3, 2);
    fixture_extend(f, 6000 * MS);
    fixture_answers(f, OP_EXTEND, "euu");
    fixture_answers(f, OP_EXTEND, "e..");
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
}

CORE_TEST(a_canceled_extend_leaves_the_lock_held)
{
    fixture_open_held(f, 3, 2);
    fixture_extend(f, 6000 * MS);
    assert_int_equal(fixture_cancel(f), CORE_OK);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_CANCELED);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_expect_nothing(f);
    assert_true(core_notified_held(f->lock));
    assert_int_equal(core_lease_us(f->lock), 3000 * MS);
}

/* It answers the acquire, while the renewal is pending at the same node. */
CORE_TEST(a_late_vote_does_not_settle_a_renewal)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_extend(f, 0);
    fixture_answers(f, OP_EXTEND, "yu.");
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect_nothing(f); /* node 2 has not answered the extend */
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_OK);
}

CORE_TEST(max_hold_ends_renewal)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.max_hold_us = 1500 * MS;
    fixture_open_config(f, &config);
    fixture_grant(f);
    fixture_pass(f, 1000 * MS);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_pass(f, 1500 * MS);
    assert_int_equal(fixture_pending(f, 0, OP_EXTEND), 0);
    assert_int_equal(fixture_extend(f, 0), CORE_STATE);
    fixture_pass(f, 1404 * MS);
    fixture_expect_lost(f, CORE_LOSS_MAX_HOLD);
}

/* Retries stop, too: what the last renewal that succeeded gave is all that is left. */
CORE_TEST(a_renewal_that_fails_after_max_hold_is_not_tried_again)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.max_hold_us = 1150 * MS;
    for (unsigned asked = 0; asked < 2; asked++) {
        fixture_open_config(f, &config);
        fixture_grant(f);
        fixture_pass(f, 990 * MS);
        if (asked != 0) assert_int_equal(fixture_extend(f, 0), CORE_OK);
        fixture_pass(f, 170 * MS);
        answer_all(f, OP_EXTEND, OUTCOME_UNKNOWN);
        if (asked != 0) fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
        fixture_pass(f, 1740 * MS);
        fixture_expect_pending(f, OP_EXTEND, "000");
        fixture_expect_nothing(f);
        fixture_pass(f, 10 * MS);
        fixture_expect_lost(f, CORE_LOSS_MAX_HOLD);
    }
}

CORE_TEST(a_lock_without_renewal_holds_for_one_lease)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.renew_us = CORE_NEVER;
    fixture_open_config(f, &config);
    fixture_grant(f);
    fixture_pass(f, 2904 * MS);
    assert_int_equal(fixture_pending(f, 0, OP_EXTEND), 0);
    fixture_expect_lost(f, CORE_LOSS_NOT_RENEWED);
}

CORE_TEST(a_lost_lock_is_acquired_anew)
{
    fixture_open_held(f, 3, 2);
    fixture_node_states(f, "ddd");
    fixture_pass(f, 2904 * MS);
    assert_int_equal(fixture_acquire(f), CORE_STATE); /* the loss is reported first */
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_drop(f);
    fixture_node_states(f, "rrr");
    assert_int_equal(fixture_acquire(f), CORE_OK);
    fixture_expect_pending(f, OP_RELEASE, "111");
    answer_all(f, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

CORE_TEST(an_extend_asked_again_prolongs_the_debt)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_pass(f, 90 * MS);
    fixture_answers(f, OP_EXTEND, "eee"); /* a fault that passes */
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    fixture_release(f);
    fixture_node_states(f, "ddd");
    /* Asked at 1090 ms, the key may live until 4090 ms and a little. */
    fixture_pass(f, (3030 - 90) * MS + 89 * MS);
    assert_int_equal(core_debts(f->lock, 0), 1);
    fixture_pass(f, 2 * MS);
    fixture_pass(f, 90 * MS);
    assert_int_equal(core_debts(f->lock, 0), 0);
}

CORE_TEST(a_quarantined_node_extends)
{
    fixture_open_held(f, 3, 2);
    fixture_node_state(f, 0, NODE_CONNECTING);
    fixture_node_states(f, "qd.");
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "y.y");
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 3968 * MS);
}

CORE_TEST(answers_of_an_old_connection_do_not_count)
{
    struct fixture_sent old;

    fixture_open_held(f, 3, 2);
    fixture_node_state(f, 1, NODE_DOWN);
    fixture_pass(f, 1000 * MS);
    old = *fixture_latest(f, 0, OP_EXTEND);
    fixture_node_state(f, 0, NODE_CONNECTING);
    fixture_node_state(f, 0, NODE_READY);
    fixture_replay(f, &old, OUTCOME_YES);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
    fixture_replay(f, &old, OUTCOME_MISSING);
    assert_true(core_notified_held(f->lock));
}

CORE_TEST(loss_ends_an_extend_in_flight)
{
    fixture_open_held(f, 3, 2);
    fixture_extend(f, 0);
    fixture_pass(f, 2904 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_LOST_LOCK);
    fixture_expect_nothing(f);
}

CORE_TEST(a_shorter_renewal_does_not_take_validity_away)
{
    fixture_open_held(f, 3, 2);
    fixture_extend(f, 6000 * MS);
    fixture_cancel(f);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_CANCELED);
    answer_all(f, OP_EXTEND, OUTCOME_YES); /* the nodes did it all the same */
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + (6000 - 62) * MS);
    fixture_pass(f, 1000 * MS);
    assert_int_equal(fixture_latest(f, 0, OP_EXTEND)->command.tag.lease_us, 3000 * MS);
    answer_all(f, OP_EXTEND, OUTCOME_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + (6000 - 62) * MS);
}
