/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_try_once.c - a lock that tries once, where votes are split or a node comes late */

#include "fixture.h"

static void split(struct fixture *f)
{
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, 7, 3000 * (int64_t)MS);
    fixture_refuse(f, 2, 8, 3000 * (int64_t)MS);
    fixture_answer_releases(f);
}

/* Of several locks that ask at the same time one is granted: a lock that met no holder tries again. */
CORE_TEST(split_votes_are_settled)
{
    fixture_open_waiting(f, 3, 2, 0);
    split(f);
    fixture_expect_nothing(f);
    assert_false(core_listens(f->lock));
    assert_in_range(fixture_pass_to_attempt(f), 0, 50 * MS);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

/* After half a node timeout. */
CORE_TEST(votes_that_stay_split_are_given_up)
{
    uint64_t owner = 100;

    fixture_open_waiting(f, 3, 2, 0);
    split(f);
    while (core_phase_now(f->lock) == CORE_WAITING) {
        fixture_pass_to_attempt(f);
        fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
        fixture_refuse(f, 1, owner++, 3000 * (int64_t)MS);
        fixture_refuse(f, 2, owner++, 3000 * (int64_t)MS);
        fixture_answer_releases(f);
    }
    assert_in_range(f->now_us - FIXTURE_BEGIN_US, 50 * MS, 100 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
}

/* The later attempt waits for its turn, for nearly a node timeout. */
static void await_turn(struct fixture *f)
{
    fixture_open_waiting(f, 3, 2, 0);
    split(f);
    f->no_attempt = true;
    fixture_pass(f, 99 * MS);
}

/* The first attempt is made whenever its turn comes; the later ones wait a node timeout at most. */
CORE_TEST(a_later_attempt_that_gets_no_turn_is_given_up)
{
    await_turn(f);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ATTEMPT);
    fixture_expect_nothing(f);
    fixture_pass(f, 1 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_NOTHING);
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
}

CORE_TEST(a_later_attempt_takes_its_turn)
{
    await_turn(f);
    fixture_begin(f);
    fixture_pass(f, 10 * MS);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

/* One node is down and one refuses: the third decides whether the lock is held, or too few can vote. */
static void open_with_a_late_node(struct fixture *f)
{
    fixture_open_waiting(f, 3, 2, 0);
    fixture_node_states(f, "d.c");
    fixture_acquire(f);
    fixture_refuse(f, 1, 7, 3000 * (int64_t)MS);
    fixture_expect_nothing(f);
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(fixture_pending(f, 2, OP_ACQUIRE), 0);
    assert_int_equal(fixture_pending(f, 2, OP_PEEK), 1);
}

CORE_TEST(a_node_that_comes_late_names_the_holder)
{
    open_with_a_late_node(f);
    fixture_answer_with(f, 2, OP_PEEK,
                        &(struct core_reply){.outcome = OUTCOME_YES, .holder_id = 7, .ttl_us = 3000 * (int64_t)MS});
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}

CORE_TEST(a_node_that_comes_late_and_fails_has_no_vote)
{
    open_with_a_late_node(f);
    fixture_answer(f, 2, OP_PEEK, OUTCOME_UNKNOWN);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
}

CORE_TEST(a_node_that_comes_late_and_is_free_allows_another_attempt)
{
    open_with_a_late_node(f);
    fixture_answer(f, 2, OP_PEEK, OUTCOME_MISSING);
    fixture_answer_releases(f);
    fixture_expect_nothing(f);
    fixture_pass_to_attempt(f);
    fixture_answers(f, OP_ACQUIRE, ".yy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

/* ---- connections that had been forgotten ---- */

static void cut_off(struct fixture *f, enum node_state then)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (fixture_pending(f, i, OP_ACQUIRE) > 0) fixture_answer(f, i, OP_ACQUIRE, OUTCOME_UNKNOWN);
        fixture_node_state(f, i, then);
    }
}

CORE_TEST(an_attempt_whose_connections_end_is_followed_by_another)
{
    struct core_token first;

    fixture_open(f, 3, 2);
    fixture_acquire(f);
    first = *core_token_now(f->lock);
    fixture_pass(f, f->config.node_timeout_us / 2);
    cut_off(f, NODE_CONNECTING);
    fixture_expect_nothing(f);
    fixture_begin(f);
    assert_memory_not_equal(first.bytes, core_token_now(f->lock)->bytes, CORE_TOKEN_SIZE);
    fixture_node_states(f, "rrr");
    fixture_expect_pending(f, OP_ACQUIRE, "111");
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

/* Nodes that are busy, or have forgotten their scripts. */
CORE_TEST(an_attempt_that_was_refused_for_a_while_is_followed_by_one_more)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "ee.");
    fixture_answer_releases(f);
    fixture_answers(f, OP_ACQUIRE, "..e");
    fixture_expect_nothing(f);
    fixture_begin(f);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
    fixture_answers(f, OP_ACQUIRE, "eee");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
}

CORE_TEST(it_is_followed_by_one_more_at_most_and_in_time)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    cut_off(f, NODE_CONNECTING);
    fixture_begin(f);
    fixture_node_states(f, "rrr");
    cut_off(f, NODE_CONNECTING);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    /* A node that has no answer in time is frozen. */
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_pass(f, f->config.node_timeout_us);
    cut_off(f, NODE_CONNECTING);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
}
