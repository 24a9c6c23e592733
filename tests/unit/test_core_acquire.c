/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_acquire.c - acquiring: votes, verdicts and releases of attempts that failed
 */
#include <string.h>

#include "core/validity.h"
#include <stdlib.h>

#include "fixture.h"

CORE_TEST(the_qth_yes_grants)
{
    fixture_open(f, 5, 3);
    fixture_acquire(f);
    fixture_answer(f, 4, OP_ACQUIRE, OUTCOME_YES);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    assert_false(f->update.dispatch);
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
    assert_true(f->update.dispatch);
    assert_false(core_notified_held(f->lock)); /* not before the owner is notified */
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_true(core_notified_held(f->lock));
    assert_int_equal(core_counted(f->lock), 3);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
    assert_int_equal(core_lost_at(f->lock), FIXTURE_BEGIN_US + (2968 - 64) * MS);
    fixture_expect_nothing(f);
}

CORE_TEST(validity_counts_from_each_nodes_own_send)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, ".cc");
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_pass(f, 50 * MS);
    fixture_node_state(f, 1, NODE_READY);
    assert_int_equal(fixture_pending(f, 1, OP_ACQUIRE), 1);
    fixture_pass(f, 10 * MS);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    /* The Qth largest is the older one. */
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
}

CORE_TEST(what_was_not_sent_is_not_released)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "nny");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    fixture_expect_pending(f, OP_RELEASE, "0.1");
}

CORE_TEST(a_refused_login_ends_an_acquire_that_tries_once)
{
    static const enum fault_class faults[][2] = {{FAULT_CLASS_LOGIN, FAULT_CLASS_LOGIN},
                                                 {FAULT_CLASS_AUTH, FAULT_CLASS_LOGIN}};

    for (size_t i = 0; i < LENGTH(faults); i++) {
        fixture_open(f, 3, 2);
        f->logged_in = true;
        for (uint32_t node = 0; node < 2; node++) fixture_node_state_fault(f, node, NODE_DOWN, faults[i][node]);
        fixture_acquire(f);
        fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NO_AUTH);
    }
}

CORE_TEST(a_grant_that_is_dispatched_at_lost_at_is_none)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_sleep(f, (2968 - 64) * MS); /* exactly lost_at */
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_false(core_notified_held(f->lock));
    fixture_expect_pending(f, OP_RELEASE, "111");
}

CORE_TEST(a_grant_with_less_than_min_valid_left_is_none)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.min_valid_us = 2900 * MS;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_sleep(f, 68 * MS + 1);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
}

CORE_TEST(an_acquire_waits_for_connecting_nodes)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, ".cc");
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_pass(f, 400 * MS);
    fixture_expect_nothing(f); /* two nodes may still vote */
    fixture_pass(f, 100 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
}

CORE_TEST(a_node_that_connects_late_has_its_time_to_answer)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, ".cc");
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_pass(f, 400 * MS);
    fixture_node_state(f, 1, NODE_READY);
    fixture_pass(f, 1000 * MS); /* only the command's own timeout ends it */
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

/* The votes are split, and a quorum has voted. */
CORE_TEST(a_node_that_does_not_connect_delays_no_verdict)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, "..c");
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, 7, 3000 * (int64_t)MS);
    fixture_pass(f, 99 * MS);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 0);
    fixture_pass(f, 1 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}

CORE_TEST(every_attempt_has_a_fresh_token)
{
    struct core_token first;

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    first = *core_token_now(f->lock);
    fixture_answers(f, OP_ACQUIRE, "uuu");
    fixture_pass(f, 2000 * MS);
    assert_true(core_attempt(f->lock) > 1);
    assert_memory_not_equal(first.bytes, core_token_now(f->lock)->bytes, CORE_TOKEN_SIZE);
}

CORE_TEST(votes_of_another_attempt_do_not_count)
{
    struct fixture_sent old[3];

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) {
        old[i] = *fixture_latest(f, i, OP_ACQUIRE);
        fixture_answer(f, i, OP_ACQUIRE, OUTCOME_UNKNOWN);
    }
    while (core_attempt(f->lock) == 1) fixture_pass(f, MS);
    for (uint32_t i = 0; i < 3; i++) fixture_replay(f, &old[i], OUTCOME_YES);
    assert_int_equal(core_phase_now(f->lock), CORE_ASKING);
    assert_int_equal(core_counted(f->lock), 0);
    fixture_expect_nothing(f);
}

CORE_TEST(votes_of_another_connection_do_not_count)
{
    struct fixture_sent old;

    fixture_open(f, 3, 3);
    fixture_acquire(f);
    old = *fixture_latest(f, 0, OP_ACQUIRE);
    fixture_answers(f, OP_ACQUIRE, ".yy");
    fixture_pass(f, f->config.node_timeout_us);
    fixture_node_state(f, 0, NODE_CONNECTING);
    fixture_replay(f, &old, OUTCOME_YES);
    fixture_node_state(f, 0, NODE_READY);
    fixture_replay(f, &old, OUTCOME_YES);
    assert_int_not_equal(core_phase_now(f->lock), CORE_GRANTED);
    assert_int_equal(fixture_completion(f).status, CORE_NOQUORUM);
}

/* Its server may have started anew meanwhile. */
CORE_TEST(a_renewal_counts_no_yes_of_another_connection)
{
    struct fixture_sent old;

    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    old = *fixture_latest(f, 0, OP_EXTEND);
    fixture_answers(f, OP_EXTEND, ".yu");
    fixture_node_states(f, "c..");
    fixture_node_states(f, "r..");
    fixture_replay(f, &old, OUTCOME_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
}

CORE_TEST(a_pending_operation_makes_others_busy)
{
    fixture_open(f, 3, 2);
    assert_int_equal(fixture_release(f), CORE_STATE);
    assert_int_equal(fixture_extend(f, 0), CORE_STATE);
    assert_int_equal(fixture_cancel(f), CORE_STATE);
    fixture_acquire(f);
    assert_int_equal(fixture_acquire(f), CORE_BUSY);
    assert_int_equal(fixture_release(f), CORE_BUSY);
    assert_int_equal(fixture_extend(f, 0), CORE_BUSY);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    assert_int_equal(fixture_release(f), CORE_BUSY); /* granted, but the owner is not notified yet */
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(fixture_acquire(f), CORE_STATE);
}

CORE_TEST(a_debt_ends_with_the_lease)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_node_states(f, "ddd");
    fixture_completion(f);
    fixture_pass(f, 3030 * MS - 1);
    assert_int_equal(core_debts(f->lock, 0), 1);
    assert_false(core_quiet(f->lock));
    fixture_pass(f, 1);
    assert_int_equal(core_debts(f->lock, 0), 0);
    assert_true(core_quiet(f->lock));
    fixture_drop(f);
    fixture_node_state(f, 0, NODE_READY);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 0);
}

CORE_TEST(room_for_more_debts_than_one_is_borrowed_while_a_node_may_have_more)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_cancel(f);
    fixture_completion(f);
    assert_null(core_debts_block(f->lock));
    fixture_acquire(f);
    assert_ptr_equal(core_debts_block(f->lock), f->debts);
    fixture_cancel(f);
    fixture_completion(f);
    assert_int_equal(core_debts(f->lock, 0), 2);
    fixture_answers(f, OP_RELEASE, "yy.");
    fixture_answers(f, OP_RELEASE, "yy.");
    assert_int_equal(core_debts(f->lock, 0), 0);
    assert_ptr_equal(core_debts_block(f->lock), f->debts);
    fixture_answers(f, OP_RELEASE, "..y");
    fixture_answers(f, OP_RELEASE, "..y");
    assert_null(core_debts_block(f->lock));
    assert_true(core_quiet(f->lock));
}

CORE_TEST(without_memory_a_node_that_owes_a_release_is_not_asked)
{
    fixture_open(f, 3, 2);
    free(f->debts);
    f->debts = NULL;
    fixture_acquire(f);
    fixture_cancel(f);
    fixture_completion(f);
    fixture_acquire(f);
    assert_int_equal(fixture_pending(f, 0, OP_ACQUIRE), 1);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    fixture_answers(f, OP_RELEASE, "yyy");
    fixture_acquire(f);
    assert_int_equal(fixture_pending(f, 0, OP_ACQUIRE), 2);
}

CORE_TEST(a_node_that_is_owed_too_many_releases_is_not_asked)
{
    fixture_open(f, 3, 2);
    for (uint32_t i = 0; i < CORE_DEBTS_MAX; i++) {
        fixture_acquire(f);
        assert_int_equal(fixture_pending(f, 0, OP_ACQUIRE), i + 1);
        fixture_cancel(f);
        fixture_completion(f);
    }
    assert_int_equal(core_debts(f->lock, 0), CORE_DEBTS_MAX);
    fixture_acquire(f);
    assert_int_equal(fixture_pending(f, 0, OP_ACQUIRE), CORE_DEBTS_MAX);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
}
