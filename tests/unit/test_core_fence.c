/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_fence.c - one token over the quorum; and what becomes of votes when a node's clock steps
 */

#include "fixture.h"

#define WALL UINT64_C(1700000000000000)

static void open_fenced(struct fixture *f, uint32_t n, uint32_t quorum, uint64_t wait_us)
{
    struct core_config config = fixture_config(n, quorum);

    config.fencing = true;
    config.wait_us = wait_us;
    fixture_open_config(f, &config);
    f->wall_us = WALL;
}

/* A yes, and the counter that comes with it. */
static void shows(struct fixture *f, uint32_t node, enum core_op op, uint64_t counter)
{
    fixture_answer_with(f, node, op, &(struct core_reply){.outcome = CORE_YES, .ttl_us = -2, .fence = counter});
}

static uint64_t asked_with(const struct fixture *f, uint32_t node, enum core_op op)
{
    return fixture_latest(f, node, op)->command.fence;
}

/* Granted with this token on three nodes. */
static void open_granted(struct fixture *f, uint64_t token)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) shows(f, i, CORE_OP_ACQUIRE, token);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_expect_nothing(f);
}

CORE_TEST(a_quorum_that_agrees_needs_one_round)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(asked_with(f, i, CORE_OP_ACQUIRE), WALL);
    shows(f, 0, CORE_OP_ACQUIRE, WALL);
    shows(f, 2, CORE_OP_ACQUIRE, WALL);
    assert_true(f->update.dispatch);
    fixture_expect_pending(f, CORE_OP_RAISE, "000");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), WALL);
}

CORE_TEST(without_fencing_there_is_no_token)
{
    fixture_open(f, 3, 2);
    f->wall_us = WALL;
    fixture_acquire(f);
    assert_int_equal(asked_with(f, 0, CORE_OP_ACQUIRE), 0);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 0);
}

CORE_TEST(the_floor_is_above_the_token_before)
{
    open_granted(f, WALL + 1000);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, "yyy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    f->wall_us = WALL - 1; /* set back meanwhile */
    fixture_acquire(f);
    assert_int_equal(asked_with(f, 1, CORE_OP_ACQUIRE), WALL + 1001);
    /* The token of another grant is none of this attempt's to leave behind. */
    fixture_answers(f, CORE_OP_ACQUIRE, "oo.");
    assert_int_equal(asked_with(f, 2, CORE_OP_RELEASE), 0);
}

CORE_TEST(nodes_that_show_less_are_raised)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    assert_false(f->update.dispatch);
    fixture_expect_pending(f, CORE_OP_RAISE, "10.");
    assert_int_equal(asked_with(f, 0, CORE_OP_RAISE), 7);
    assert_int_equal(core_fence(f->lock), 0); /* not agreed */
    shows(f, 0, CORE_OP_RAISE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 7);
}

CORE_TEST(a_higher_answer_is_the_new_token)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    shows(f, 0, CORE_OP_RAISE, 9);
    assert_false(f->update.dispatch);
    assert_int_equal(asked_with(f, 1, CORE_OP_RAISE), 9);
    shows(f, 1, CORE_OP_RAISE, 9);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 9);
}

CORE_TEST(a_late_vote_may_be_the_highest)
{
    open_fenced(f, 5, 3, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    shows(f, 2, CORE_OP_ACQUIRE, 7);
    shows(f, 3, CORE_OP_ACQUIRE, 9);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_RAISE), 1); /* to 7: one at a time */
    assert_int_equal(asked_with(f, 1, CORE_OP_RAISE), 9);
    assert_int_equal(asked_with(f, 2, CORE_OP_RAISE), 9);
    shows(f, 0, CORE_OP_RAISE, 7);
    assert_int_equal(asked_with(f, 0, CORE_OP_RAISE), 9); /* and again */
    shows(f, 1, CORE_OP_RAISE, 9);
    assert_false(f->update.dispatch);
    shows(f, 2, CORE_OP_RAISE, 9);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 9);
}

CORE_TEST(a_vote_after_the_verdict_changes_no_token)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 7);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    shows(f, 2, CORE_OP_ACQUIRE, 9);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 7);
    assert_int_equal(core_counted(f->lock), 3);
}

/* Whatever a raise came to but a yes: the node has not acknowledged, and has no vote. */
CORE_TEST(a_raise_that_fails_is_no_vote)
{
    static const enum core_outcome outcomes[] = {CORE_UNKNOWN, CORE_ERROR, CORE_MISSING, CORE_OTHER,
                                                 CORE_UNSENT};

    for (size_t i = 0; i < LENGTH(outcomes); i++) {
        open_fenced(f, 3, 2, 0);
        fixture_acquire(f);
        fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
        shows(f, 0, CORE_OP_ACQUIRE, 5);
        shows(f, 1, CORE_OP_ACQUIRE, 7);
        fixture_answer(f, 0, CORE_OP_RAISE, outcomes[i]);
        for (uint32_t node = 0; node < 3; node++) {
            assert_int_equal(fixture_pending(f, node, CORE_OP_RELEASE), 1);
            assert_int_equal(asked_with(f, node, CORE_OP_RELEASE), 0); /* nothing was agreed */
        }
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
        assert_int_equal(core_fence(f->lock), 0);
    }
}

CORE_TEST(another_node_stands_in)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    fixture_answer(f, 0, CORE_OP_RAISE, CORE_UNKNOWN);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 0); /* node 2 may still agree */
    shows(f, 2, CORE_OP_ACQUIRE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 7);
    assert_int_equal(core_counted(f->lock), 2);
}

CORE_TEST(a_node_that_is_gone_cannot_be_raised)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    fixture_node_state(f, 0, CORE_NODE_DOWN);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_RAISE), 0);
    fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
}

/* It showed the highest before it went: that stands, for its counter is not lower since. */
CORE_TEST(a_node_that_is_gone_may_have_agreed)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 7);
    fixture_node_state(f, 0, CORE_NODE_DOWN);
    shows(f, 1, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_RAISE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 7);
}

CORE_TEST(a_connection_that_ends_takes_the_raise_with_it)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    fixture_node_state(f, 0, CORE_NODE_CONNECTING);
    fixture_node_state(f, 0, CORE_NODE_READY);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_RAISE), 1); /* the one that went with the connection */
    shows(f, 0, CORE_OP_RAISE, 7);                             /* its answer comes all the same */
    assert_false(f->update.dispatch);
    shows(f, 2, CORE_OP_ACQUIRE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(f->lock), 2);
}

CORE_TEST(an_unknown_script_is_sent_whole)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_NOSCRIPT);
    assert_true(fixture_latest(f, 0, CORE_OP_ACQUIRE)->command.use_eval);
    assert_int_equal(asked_with(f, 0, CORE_OP_ACQUIRE), WALL);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    fixture_answer(f, 0, CORE_OP_RAISE, CORE_NOSCRIPT);
    assert_true(fixture_latest(f, 0, CORE_OP_RAISE)->command.use_eval);
    assert_int_equal(asked_with(f, 0, CORE_OP_RAISE), 7);
    shows(f, 0, CORE_OP_RAISE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

CORE_TEST(all_means_all)
{
    open_fenced(f, 3, 3, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 7);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    shows(f, 2, CORE_OP_ACQUIRE, 6);
    assert_false(f->update.dispatch);
    shows(f, 2, CORE_OP_RAISE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

CORE_TEST(what_follows_carries_the_token)
{
    open_granted(f, 7);
    fixture_pass(f, 1000 * MS);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(asked_with(f, i, CORE_OP_EXTEND), 7);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
    fixture_answers(f, CORE_OP_EXTEND, "yy.");
    assert_int_equal(asked_with(f, 2, CORE_OP_REPAIR), 7);
    fixture_release(f);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(asked_with(f, i, CORE_OP_RELEASE), 7);
}

CORE_TEST(a_debt_keeps_its_own_token)
{
    open_granted(f, 7);
    fixture_node_state(f, 0, CORE_NODE_DOWN);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, ".yy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_acquire(f);
    shows(f, 1, CORE_OP_ACQUIRE, 9);
    shows(f, 2, CORE_OP_ACQUIRE, 9);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_node_state(f, 0, CORE_NODE_READY);
    assert_int_equal(asked_with(f, 0, CORE_OP_RELEASE), 7);
}

CORE_TEST(rounds_that_take_too_long_are_no_grant)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    fixture_sleep(f, 2950 * MS); /* valid until 2968, lost at 2904 */
    shows(f, 0, CORE_OP_RAISE, 7);
    assert_true(f->update.dispatch);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    fixture_expect_pending(f, CORE_OP_RELEASE, "111");
}

/* Nobody stood in the way, and a quorum had granted: neither HELD nor NOQUORUM is the story. */
CORE_TEST(a_wait_that_ends_while_raising_timed_out)
{
    open_fenced(f, 3, 2, 20 * MS);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    fixture_pass(f, 20 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
}

CORE_TEST(a_wait_that_ends_while_held_was_held)
{
    open_fenced(f, 3, 2, 20 * MS);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 5);
    fixture_answer(f, 1, CORE_OP_ACQUIRE, CORE_OTHER);
    fixture_pass(f, 20 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}

/* ---- clocks that step ---- */

CORE_TEST(one_step_drops_the_votes_before_it)
{
    open_granted(f, 7);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, f->now_us);
    assert_int_equal(core_counted(f->lock), 2);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS); /* two are enough */
    fixture_pass(f, 0);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_EXTEND), 1); /* asked again at once */
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_counted(f->lock), 3);
    fixture_expect_nothing(f);
}

CORE_TEST(votes_asked_for_since_count)
{
    open_granted(f, 7);
    fixture_step(f, 0, FIXTURE_BEGIN_US); /* they were asked for just then */
    assert_int_equal(core_counted(f->lock), 3);
}

CORE_TEST(a_step_that_takes_the_quorum_is_a_loss)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, CORE_OP_ACQUIRE, 7);
    shows(f, 1, CORE_OP_ACQUIRE, 7);
    fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, f->now_us);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
}

CORE_TEST(steps_of_a_quorum_are_our_own_clock)
{
    open_granted(f, 7);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 0, FIXTURE_BEGIN_US);
    fixture_expect_nothing(f);
    fixture_pass(f, 10 * MS);
    fixture_step(f, 2, FIXTURE_BEGIN_US);
    fixture_expect_lost(f, CORE_LOSS_CLOCK);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    fixture_expect_nothing(f);
}

CORE_TEST(the_same_node_twice_is_no_quorum)
{
    open_granted(f, 7);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_pass(f, 10 * MS);
        fixture_step(f, 0, FIXTURE_BEGIN_US);
    }
    fixture_expect_nothing(f);
    assert_true(core_notified_held(f->lock));
}

CORE_TEST(a_step_before_the_tell_is_no_grant)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) shows(f, i, CORE_OP_ACQUIRE, 7);
    fixture_pass(f, 1 * MS);
    fixture_step(f, 0, f->now_us);
    fixture_step(f, 1, f->now_us);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_false(core_notified_held(f->lock));
}

CORE_TEST(a_step_while_idle_is_nothing)
{
    open_fenced(f, 3, 2, 0);
    fixture_step(f, 0, f->now_us);
    fixture_expect_nothing(f);
    assert_int_equal(core_phase_now(f->lock), CORE_IDLE);
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
}
