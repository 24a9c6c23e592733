/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_fence.c - one fencing token over the quorum; counters of nodes that show less are raised
 */

#include "fixture.h"

#define WALL UINT64_C(1700000000000000)

static void open_fenced(struct fixture *f, uint32_t n, uint32_t quorum, uint64_t wait_us)
{
    struct core_config config = fixture_config(n, quorum);

    config.fencing = true;
    config.holder.wait_us = wait_us;
    fixture_open_config(f, &config);
    f->wall_us = WALL;
}

/* A yes with this counter. */
static void shows(struct fixture *f, uint32_t node, enum op op, uint64_t counter)
{
    fixture_answer_with(f, node, op, &(struct core_reply){.outcome = OUTCOME_YES, .ttl_us = -2, .fence = counter});
}

/* Two of three nodes granted it, with counters that differ: node 0 is to be raised to 7. */
static void open_raising(struct fixture *f, uint64_t wait_us)
{
    open_fenced(f, 3, 2, wait_us);
    fixture_acquire(f);
    shows(f, 0, OP_ACQUIRE, 5);
    shows(f, 1, OP_ACQUIRE, 7);
}

static uint64_t asked_with(const struct fixture *f, uint32_t node, enum op op)
{
    return fixture_latest(f, node, op)->command.fence;
}

/* Granted with this token on three nodes. */
static void open_granted(struct fixture *f, uint64_t token)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) shows(f, i, OP_ACQUIRE, token);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_expect_nothing(f);
}

CORE_TEST(a_quorum_that_agrees_needs_one_round)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(asked_with(f, i, OP_ACQUIRE), WALL);
    shows(f, 0, OP_ACQUIRE, WALL);
    shows(f, 2, OP_ACQUIRE, WALL);
    assert_true(f->update.dispatch);
    fixture_expect_pending(f, OP_RAISE, "000");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), WALL);
}

CORE_TEST(without_fencing_there_is_no_token)
{
    fixture_open(f, 3, 2);
    f->wall_us = WALL;
    fixture_acquire(f);
    assert_int_equal(asked_with(f, 0, OP_ACQUIRE), 0);
    shows(f, 0, OP_ACQUIRE, 5);
    shows(f, 1, OP_ACQUIRE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 0);
}

CORE_TEST(the_floor_is_above_the_token_before)
{
    open_granted(f, WALL + 1000);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, "yyy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    f->wall_us = WALL - 1; /* set back meanwhile */
    fixture_acquire(f);
    assert_int_equal(asked_with(f, 1, OP_ACQUIRE), WALL + 1001);
    /* Releases do not leave the token of another grant behind. */
    fixture_answers(f, OP_ACQUIRE, "oo.");
    assert_int_equal(asked_with(f, 2, OP_RELEASE), 0);
}

/* All yeses show the same token, without another round trip. */
CORE_TEST(nodes_that_connect_within_a_node_timeout_have_one_floor)
{
    open_fenced(f, 3, 2, 0);
    fixture_node_states(f, "ccc");
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_node_state(f, i, NODE_READY);
        fixture_pass(f, 50 * MS);
        assert_int_equal(asked_with(f, i, OP_ACQUIRE), WALL);
    }
    fixture_answers(f, OP_ACQUIRE, "oo.");
}

/* It may have been in quarantine meanwhile, without its counters. */
CORE_TEST(the_floor_of_a_node_that_connects_later_is_of_now)
{
    open_fenced(f, 3, 2, 0);
    fixture_node_states(f, "ccc");
    fixture_acquire(f);
    fixture_pass(f, 150 * MS);
    fixture_node_states(f, "..r");
    assert_int_equal(asked_with(f, 2, OP_ACQUIRE), WALL + 150 * MS);
    fixture_pass(f, 60 * MS);
    fixture_node_states(f, ".r.");
    assert_int_equal(asked_with(f, 1, OP_ACQUIRE), WALL + 150 * MS);
    fixture_pass(f, 60 * MS);
    fixture_node_states(f, "r..");
    assert_int_equal(asked_with(f, 0, OP_ACQUIRE), WALL + 270 * MS);
}

CORE_TEST(a_late_vote_with_a_higher_counter_raises_the_others)
{
    open_fenced(f, 5, 3, 0);
    fixture_acquire(f);
    shows(f, 0, OP_ACQUIRE, 5);
    shows(f, 1, OP_ACQUIRE, 7);
    shows(f, 2, OP_ACQUIRE, 7);
    shows(f, 3, OP_ACQUIRE, 9);
    assert_int_equal(fixture_pending(f, 0, OP_RAISE), 1); /* to 7: one at a time */
    assert_int_equal(asked_with(f, 1, OP_RAISE), 9);
    assert_int_equal(asked_with(f, 2, OP_RAISE), 9);
    shows(f, 0, OP_RAISE, 7);
    assert_int_equal(asked_with(f, 0, OP_RAISE), 9); /* and again */
    shows(f, 1, OP_RAISE, 9);
    assert_false(f->update.dispatch);
    shows(f, 2, OP_RAISE, 9);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 9);
}

CORE_TEST(a_raise_that_fails_is_no_vote)
{
    static const enum outcome outcomes[] = {OUTCOME_UNKNOWN, OUTCOME_ERROR, OUTCOME_MISSING, OUTCOME_OTHER,
                                            OUTCOME_UNSENT};

    for (size_t i = 0; i < LENGTH(outcomes); i++) {
        open_fenced(f, 3, 2, 0);
        fixture_acquire(f);
        fixture_pass(f, f->config.node_timeout_us);
        fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_UNKNOWN);
        shows(f, 0, OP_ACQUIRE, 5);
        shows(f, 1, OP_ACQUIRE, 7);
        fixture_answer(f, 0, OP_RAISE, outcomes[i]);
        for (uint32_t node = 0; node < 3; node++) {
            assert_int_equal(fixture_pending(f, node, OP_RELEASE), 1);
            assert_int_equal(asked_with(f, node, OP_RELEASE), 0); /* nothing was agreed */
        }
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
        assert_int_equal(core_fence(f->lock), 0);
    }
}

CORE_TEST(another_node_takes_the_place_of_one_that_failed)
{
    open_raising(f, 0);
    fixture_answer(f, 0, OP_RAISE, OUTCOME_UNKNOWN);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 0); /* node 2 may still agree */
    shows(f, 2, OP_ACQUIRE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 7);
    assert_int_equal(core_counted(f->lock), 2);
}

CORE_TEST(a_node_that_is_gone_cannot_be_raised)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, OP_ACQUIRE, 5);
    fixture_node_state(f, 0, NODE_DOWN);
    shows(f, 1, OP_ACQUIRE, 7);
    assert_int_equal(fixture_pending(f, 0, OP_RAISE), 0);
    fixture_pass(f, f->config.node_timeout_us);
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_UNKNOWN);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
}

/* Its counter is not lower since. */
CORE_TEST(a_node_that_went_after_it_showed_the_highest_agrees)
{
    open_fenced(f, 3, 2, 0);
    fixture_acquire(f);
    shows(f, 0, OP_ACQUIRE, 7);
    fixture_node_state(f, 0, NODE_DOWN);
    shows(f, 1, OP_ACQUIRE, 5);
    shows(f, 1, OP_RAISE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 7);
}

CORE_TEST(a_connection_that_ends_takes_the_raise_with_it)
{
    open_raising(f, 0);
    fixture_node_state(f, 0, NODE_CONNECTING);
    fixture_node_state(f, 0, NODE_READY);
    assert_int_equal(fixture_pending(f, 0, OP_RAISE), 1); /* the one that went with the connection */
    shows(f, 0, OP_RAISE, 7);                             /* its answer comes all the same */
    assert_false(f->update.dispatch);
    shows(f, 2, OP_ACQUIRE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(f->lock), 2);
}

CORE_TEST(a_quorum_of_all_agrees_on_all_nodes)
{
    open_fenced(f, 3, 3, 0);
    fixture_acquire(f);
    shows(f, 0, OP_ACQUIRE, 7);
    shows(f, 1, OP_ACQUIRE, 7);
    shows(f, 2, OP_ACQUIRE, 6);
    assert_false(f->update.dispatch);
    shows(f, 2, OP_RAISE, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

CORE_TEST(a_release_that_is_owed_keeps_its_own_token)
{
    open_granted(f, 7);
    fixture_node_state(f, 0, NODE_DOWN);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, ".yy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_acquire(f);
    shows(f, 1, OP_ACQUIRE, 9);
    shows(f, 2, OP_ACQUIRE, 9);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_node_state(f, 0, NODE_READY);
    assert_int_equal(asked_with(f, 0, OP_RELEASE), 7);
}

CORE_TEST(raises_that_take_too_long_are_no_grant)
{
    open_raising(f, 0);
    fixture_sleep(f, 2950 * MS); /* valid until 2968, lost at 2904 */
    shows(f, 0, OP_RAISE, 7);
    assert_true(f->update.dispatch);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    fixture_expect_pending(f, OP_RELEASE, "111");
}

/* A quorum had granted: neither HELD_BY_OTHER nor NOQUORUM. */
CORE_TEST(a_wait_that_ends_during_a_raise_has_timed_out)
{
    open_raising(f, 20 * MS);
    fixture_pass(f, 20 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
}

CORE_TEST(a_wait_that_ends_while_another_holds_is_held_by_other)
{
    open_fenced(f, 3, 2, 20 * MS);
    fixture_acquire(f);
    shows(f, 0, OP_ACQUIRE, 5);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_OTHER);
    fixture_pass(f, 20 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}
