/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_release.c - releases that fail are repeated, and what their answers say of the hold
 */

#include "fixture.h"

#define NODE_TIMEOUT_US (100 * MS)
#define PAUSE_MAX_US    (1000 * MS) /* between two tries of one release */

static void answer(struct fixture *f, uint32_t node, enum core_outcome outcome)
{
    fixture_answer(f, node, CORE_OP_RELEASE, outcome);
}

static void refuse(struct fixture *f, uint32_t node, enum core_fault fault)
{
    fixture_answer_with(f, node, CORE_OP_RELEASE,
                        &(struct core_reply){.outcome = CORE_ERROR, .fault = fault, .ttl_us = -2});
}

static void expect_released(struct fixture *f, int status, bool expired)
{
    struct core_completion tell = fixture_completion(f);

    assert_int_equal(tell.kind, CORE_NOTIFY_RELEASED);
    assert_int_equal(tell.status, status);
    assert_int_equal(tell.expired, expired);
}

/* ---- repeated ---- */

CORE_TEST(a_release_is_repeated_after_a_passing_error)
{
    uint64_t longest_us = 0;

    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, ".yy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t asked_us = f->now_us;

        refuse(f, 0, CORE_FAULT_PASSING);
        assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 0); /* not at once: it would spin */
        while (fixture_pending(f, 0, CORE_OP_RELEASE) == 0 && f->now_us <= asked_us + PAUSE_MAX_US) {
            fixture_pass(f, 1 * MS);
        }
        assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 1);
        if (f->now_us - asked_us > longest_us) longest_us = f->now_us - asked_us;
    }
    /* The pauses grow. */
    assert_in_range(longest_us, 300 * MS, PAUSE_MAX_US + MS);
    assert_int_equal(core_debts(f->lock, 0), 1);
    answer(f, 0, CORE_YES);
    assert_true(core_quiet(f->lock));
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
}

/* It did not fit into the queue, or nobody knows what became of it on a connection that lives. */
CORE_TEST(a_release_is_repeated_when_it_was_not_sent)
{
    static const enum core_outcome outcomes[] = {CORE_UNSENT, CORE_UNKNOWN};

    for (size_t i = 0; i < 2; i++) {
        fixture_open_held(f, 3, 2);
        fixture_release(f);
        for (uint32_t k = 0; k < 3; k++) answer(f, k, outcomes[i]);
        fixture_expect_nothing(f); /* there is time for more */
        for (uint32_t k = 0; k < 3; k++) fixture_room(f, k);
        fixture_pass(f, NODE_TIMEOUT_US / 2);
        fixture_answers(f, CORE_OP_RELEASE, "yyy");
        expect_released(f, CORE_OK, false);
        assert_true(core_quiet(f->lock));
    }
}

CORE_TEST(a_failed_attempts_release_is_repeated_too)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, CORE_OP_ACQUIRE, "yee");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    for (uint32_t i = 0; i < 3; i++) refuse(f, i, CORE_FAULT_PASSING);
    fixture_pass(f, 20 * MS);
    fixture_answers(f, CORE_OP_RELEASE, "yyy");
    assert_true(core_quiet(f->lock));
}

CORE_TEST(a_release_is_repeated_until_the_lease_has_ended)
{
    uint32_t sent;

    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_completion(f);
    for (uint32_t i = 0; i < 20; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            if (fixture_pending(f, k, CORE_OP_RELEASE) > 0) refuse(f, k, CORE_FAULT_PASSING);
        }
        fixture_pass(f, 200 * MS);
    }
    assert_true(core_quiet(f->lock) || core_debts(f->lock, 0) == 0);
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
    sent = f->n_sent;
    fixture_pass(f, 2000 * MS);
    assert_int_equal(f->n_sent, sent);
}

/* Room at the node is no reason to come before the pause is over. */
CORE_TEST(room_does_not_cut_a_pause_short)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    refuse(f, 0, CORE_FAULT_PASSING);
    fixture_room(f, 0);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 0);
    fixture_pass(f, 20 * MS);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 1);
}

/* One node lacks the key, one has no room for the question: a quorum has answered, and that is waited for. */
CORE_TEST(what_has_no_room_is_waited_for_one_node_timeout)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, "myn");
    fixture_pass(f, NODE_TIMEOUT_US - 1);
    fixture_expect_nothing(f);
    fixture_pass(f, 1);
    expect_released(f, CORE_OK, false);
}

/* What repeating on this connection cannot mend waits for the next one. */
CORE_TEST(a_lasting_error_waits_for_the_next_connection)
{
    static const enum core_fault faults[] = {CORE_FAULT_AUTH, CORE_FAULT_PROTO, CORE_FAULT_CONFIG};

    for (size_t i = 0; i < LENGTH(faults); i++) {
        fixture_open_held(f, 3, 2);
        fixture_release(f);
        for (uint32_t k = 0; k < 3; k++) refuse(f, k, faults[i]);
        expect_released(f, CORE_NOQUORUM, false);
        fixture_pass(f, 2000 * MS);
        assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 0);
        fixture_node_state(f, 0, CORE_NODE_DOWN);
        fixture_node_state(f, 0, CORE_NODE_READY);
        assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 1);
    }
}

/* While there is no connection no timer runs for it, and the next one is asked at once. */
CORE_TEST(a_pause_ends_with_the_connection)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, ".yy");
    fixture_completion(f);
    refuse(f, 0, CORE_FAULT_PASSING);
    fixture_node_state(f, 0, CORE_NODE_DOWN);
    fixture_pass(f, 500 * MS);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 0);
    fixture_node_state(f, 0, CORE_NODE_READY);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_RELEASE), 1);
}

/* Many of many nodes at once: a step has room for them, and the rest comes with the next. */
CORE_TEST(as_many_as_a_step_has_room_for_are_repeated)
{
    fixture_open(f, 31, 16);
    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        fixture_acquire(f);
        fixture_cancel(f);
        fixture_completion(f);
    }
    for (uint32_t i = 0; i < 31; i++) {
        while (fixture_pending(f, i, CORE_OP_RELEASE) > 0) refuse(f, i, CORE_FAULT_PASSING);
    }
    fixture_sleep(f, PAUSE_MAX_US);
    fixture_pass(f, 0);
    for (uint32_t i = 0; i < 31; i++) {
        assert_int_equal(fixture_pending(f, i, CORE_OP_RELEASE), CORE_DEBTS_MAX);
    }
}

/* ---- what the answers say ---- */

CORE_TEST(keys_that_were_gone_are_told)
{
    static const enum core_outcome outcomes[] = {CORE_MISSING, CORE_OTHER};

    for (size_t i = 0; i < 2; i++) {
        fixture_open_held(f, 3, 2);
        fixture_release(f);
        answer(f, 0, outcomes[i]);
        fixture_expect_nothing(f);
        answer(f, 1, outcomes[i]);
        expect_released(f, CORE_OK, true);
    }
}

CORE_TEST(a_value_of_another_type_is_not_ours)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) refuse(f, i, CORE_FAULT_FOREIGN);
    expect_released(f, CORE_OK, true);
    assert_int_equal(core_debts(f->lock, 0), 0);
}

/* One that restarted need not have it. */
CORE_TEST(so_many_nodes_may_lack_the_key)
{
    for (uint32_t n = 3; n <= 5; n += 2) {
        uint32_t spare = n - n / 2 - 1;

        fixture_open_held(f, n, n / 2 + 1);
        fixture_release(f);
        for (uint32_t i = 0; i < spare; i++) answer(f, i, CORE_MISSING);
        for (uint32_t i = spare; i < n; i++) {
            fixture_expect_nothing(f); /* the last answer decides */
            answer(f, i, CORE_YES);
        }
        expect_released(f, CORE_OK, false);
    }
}

CORE_TEST(with_all_nodes_needed_none_may_lack_it)
{
    fixture_open_held(f, 3, 3);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, "ymy");
    expect_released(f, CORE_OK, true);
}

/* A good release is told as soon as before: with the Qth answer. */
CORE_TEST(good_answers_of_a_quorum_decide)
{
    fixture_open_held(f, 5, 3);
    fixture_release(f);
    answer(f, 4, CORE_YES);
    answer(f, 0, CORE_YES);
    fixture_expect_nothing(f);
    answer(f, 2, CORE_YES);
    expect_released(f, CORE_OK, false);
}

CORE_TEST(the_answer_that_decides_is_waited_for_one_node_timeout)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, "my.");
    fixture_pass(f, NODE_TIMEOUT_US - 1);
    fixture_expect_nothing(f);
    fixture_pass(f, 1);
    expect_released(f, CORE_OK, false);
}

/* Where it cannot come, it is not waited for. */
CORE_TEST(an_answer_that_cannot_come_is_not_waited_for)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, "my.");
    fixture_node_state(f, 2, CORE_NODE_DOWN);
    expect_released(f, CORE_OK, false);
}

/* It was executed perhaps, and then there was nothing left to delete. */
CORE_TEST(a_repeated_release_that_finds_nothing_says_nothing)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) {
        answer(f, i, CORE_UNKNOWN);
        fixture_node_state(f, i, CORE_NODE_CONNECTING);
        fixture_node_state(f, i, CORE_NODE_READY);
        answer(f, i, CORE_MISSING);
    }
    answer(f, 2, CORE_YES);
    expect_released(f, CORE_OK, false);
}

/* The connection ended, and nobody told of the request. */
CORE_TEST(a_release_paid_again_that_finds_nothing_says_nothing)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_node_states(f, "ccc");
    fixture_drop(f);
    assert_int_equal(fixture_completion(f).kind, CORE_NOTIFY_RELEASED);
    fixture_node_states(f, "rrr");
    fixture_answers(f, CORE_OP_RELEASE, "mmm");
    assert_true(core_quiet(f->lock));
}

/* The same while the others are still to answer: it is not counted as a hold that had ended. */
CORE_TEST(a_release_paid_again_in_time_that_finds_nothing_says_nothing)
{
    struct fixture_sent again;

    fixture_open_held(f, 3, 2);
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) {
        fixture_node_state(f, i, CORE_NODE_CONNECTING);
        fixture_node_state(f, i, CORE_NODE_READY);
        again = *fixture_latest(f, i, CORE_OP_RELEASE);
        fixture_replay(f, &again, CORE_MISSING);
    }
    answer(f, 2, CORE_YES);
    expect_released(f, CORE_OK, false);
}

/* That certainly did not execute: the answer is the first. */
CORE_TEST(a_repeated_release_that_was_refused_first_says_all)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    refuse(f, 0, CORE_FAULT_PASSING);
    fixture_answers(f, CORE_OP_RELEASE, ".ns");
    fixture_room(f, 1);
    fixture_pass(f, NODE_TIMEOUT_US / 2);
    fixture_answers(f, CORE_OP_RELEASE, "ooo");
    expect_released(f, CORE_OK, true);
}

CORE_TEST(a_hold_that_was_lost_stays_lost)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, CORE_OP_EXTEND, "mm.");
    fixture_expect_lost(f, CORE_LOSS_GONE);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, "yy.");
    expect_released(f, CORE_OK, true);
}

/* Answers to the release before are none to this one. */
CORE_TEST(the_release_after_is_judged_by_itself)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, CORE_OP_RELEASE, "mm.");
    expect_released(f, CORE_OK, true);
    fixture_grant(f);
    fixture_release(f);
    answer(f, 2, CORE_MISSING); /* of the one before */
    fixture_answers(f, CORE_OP_RELEASE, "yy.");
    expect_released(f, CORE_OK, false);
}
