/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_release.c - releases that fail are repeated, and what their answers say of the hold
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

#define NODE_TIMEOUT_US (100 * MS)
#define PAUSE_MAX_US    (1000 * MS) /* between two tries of one release */

static struct fixture *open_held(uint32_t n, uint32_t quorum)
{
    struct core_config config = fixture_config(n, quorum);
    struct fixture *f = fixture_open(&config);

    fixture_grant(f);
    return f;
}

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
    struct core_tell tell = fixture_told(f);

    assert_int_equal(tell.kind, CORE_TELL_RELEASED);
    assert_int_equal(tell.status, status);
    assert_int_equal(tell.expired, expired);
}

/* ---- repeated ---- */

static void a_release_is_repeated_after_a_passing_error(void **state)
{
    struct fixture *f = open_held(3, 2);
    uint64_t longest_us = 0;

    (void)state;
    fixture_release(f);
    answer(f, 1, CORE_YES);
    answer(f, 2, CORE_YES);
    fixture_expect(f, CORE_TELL_RELEASED, CORE_OK);
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t asked_us = f->now_us;

        refuse(f, 0, CORE_FAULT_PASSING);
        assert_int_equal(fixture_asked(f, 0, CORE_OP_RELEASE), 0); /* not at once: it would spin */
        while (fixture_asked(f, 0, CORE_OP_RELEASE) == 0 && f->now_us <= asked_us + PAUSE_MAX_US) {
            fixture_pass(f, 1 * MS);
        }
        assert_int_equal(fixture_asked(f, 0, CORE_OP_RELEASE), 1);
        if (f->now_us - asked_us > longest_us) longest_us = f->now_us - asked_us;
    }
    /* The pauses grow. */
    assert_in_range(longest_us, 300 * MS, PAUSE_MAX_US + MS);
    assert_int_equal(core_debts(f->lock, 0), 1);
    answer(f, 0, CORE_YES);
    assert_true(core_quiet(f->lock));
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
    fixture_close(f);
}

/* It did not fit into the queue, or nobody knows what became of it on a connection that lives. */
static void a_release_is_repeated_when_it_was_not_sent(void **state)
{
    static const enum core_outcome outcomes[] = {CORE_UNSENT, CORE_UNKNOWN};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture *f = open_held(3, 2);

        fixture_release(f);
        for (uint32_t k = 0; k < 3; k++) answer(f, k, outcomes[i]);
        fixture_expect_nothing(f); /* there is time for more */
        for (uint32_t k = 0; k < 3; k++) fixture_room(f, k);
        fixture_pass(f, NODE_TIMEOUT_US / 2);
        for (uint32_t k = 0; k < 3; k++) answer(f, k, CORE_YES);
        expect_released(f, CORE_OK, false);
        assert_true(core_quiet(f->lock));
        fixture_close(f);
    }
}

static void a_failed_attempts_release_is_repeated_too(void **state)
{
    struct core_config config = fixture_config(3, 2);
    struct fixture *f = fixture_open(&config);

    (void)state;
    fixture_acquire(f);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_answer(f, 1, CORE_OP_ACQUIRE, CORE_ERROR);
    fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_ERROR);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_NOQUORUM);
    for (uint32_t i = 0; i < 3; i++) refuse(f, i, CORE_FAULT_PASSING);
    fixture_pass(f, 20 * MS);
    for (uint32_t i = 0; i < 3; i++) answer(f, i, CORE_YES);
    assert_true(core_quiet(f->lock));
    fixture_close(f);
}

static void a_release_is_repeated_until_the_lease_has_ended(void **state)
{
    struct fixture *f = open_held(3, 2);
    uint32_t sent;

    (void)state;
    fixture_release(f);
    fixture_told(f);
    for (uint32_t i = 0; i < 20; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            if (fixture_asked(f, k, CORE_OP_RELEASE) > 0) refuse(f, k, CORE_FAULT_PASSING);
        }
        fixture_pass(f, 200 * MS);
    }
    assert_true(core_quiet(f->lock) || core_debts(f->lock, 0) == 0);
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
    sent = f->n_sent;
    fixture_pass(f, 2000 * MS);
    assert_int_equal(f->n_sent, sent);
    fixture_close(f);
}

/* Room at the node is no reason to come before the pause is over. */
static void room_does_not_cut_a_pause_short(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    refuse(f, 0, CORE_FAULT_PASSING);
    fixture_room(f, 0);
    assert_int_equal(fixture_asked(f, 0, CORE_OP_RELEASE), 0);
    fixture_pass(f, 20 * MS);
    assert_int_equal(fixture_asked(f, 0, CORE_OP_RELEASE), 1);
    fixture_close(f);
}

/* One node lacks the key, one has no room for the question: a quorum has answered, and that is waited for. */
static void what_has_no_room_is_waited_for_one_node_timeout(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    answer(f, 0, CORE_MISSING);
    answer(f, 1, CORE_YES);
    answer(f, 2, CORE_UNSENT);
    fixture_pass(f, NODE_TIMEOUT_US - 1);
    fixture_expect_nothing(f);
    fixture_pass(f, 1);
    expect_released(f, CORE_OK, false);
    fixture_close(f);
}

/* What repeating on this connection cannot mend waits for the next one. */
static void a_lasting_error_waits_for_the_next_connection(void **state)
{
    static const enum core_fault faults[] = {CORE_FAULT_AUTH, CORE_FAULT_PROTO, CORE_FAULT_CONFIG};

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct fixture *f = open_held(3, 2);

        fixture_release(f);
        for (uint32_t k = 0; k < 3; k++) refuse(f, k, faults[i]);
        expect_released(f, CORE_NOQUORUM, false);
        fixture_pass(f, 2000 * MS);
        assert_int_equal(fixture_asked(f, 0, CORE_OP_RELEASE), 0);
        fixture_level(f, 0, CORE_NODE_DOWN);
        fixture_level(f, 0, CORE_NODE_READY);
        assert_int_equal(fixture_asked(f, 0, CORE_OP_RELEASE), 1);
        fixture_close(f);
    }
}

/* While there is no connection no timer runs for it, and the next one is asked at once. */
static void a_pause_ends_with_the_connection(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    answer(f, 1, CORE_YES);
    answer(f, 2, CORE_YES);
    fixture_told(f);
    refuse(f, 0, CORE_FAULT_PASSING);
    fixture_level(f, 0, CORE_NODE_DOWN);
    fixture_pass(f, 500 * MS);
    assert_int_equal(fixture_asked(f, 0, CORE_OP_RELEASE), 0);
    fixture_level(f, 0, CORE_NODE_READY);
    assert_int_equal(fixture_asked(f, 0, CORE_OP_RELEASE), 1);
    fixture_close(f);
}

/* Many of many nodes at once: a step has room for them, and the rest comes with the next. */
static void as_many_as_a_step_has_room_for_are_repeated(void **state)
{
    struct core_config config = fixture_config(31, 16);
    struct fixture *f = fixture_open(&config);

    (void)state;
    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        fixture_acquire(f);
        fixture_cancel(f);
        fixture_told(f);
    }
    for (uint32_t i = 0; i < 31; i++) {
        while (fixture_asked(f, i, CORE_OP_RELEASE) > 0) refuse(f, i, CORE_FAULT_PASSING);
    }
    fixture_sleep(f, PAUSE_MAX_US);
    fixture_pass(f, 0);
    for (uint32_t i = 0; i < 31; i++) {
        assert_int_equal(fixture_asked(f, i, CORE_OP_RELEASE), CORE_DEBTS_MAX);
    }
    fixture_close(f);
}

/* ---- what the answers say ---- */

static void keys_that_were_gone_are_told(void **state)
{
    static const enum core_outcome outcomes[] = {CORE_MISSING, CORE_OTHER};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture *f = open_held(3, 2);

        fixture_release(f);
        answer(f, 0, outcomes[i]);
        fixture_expect_nothing(f);
        answer(f, 1, outcomes[i]);
        expect_released(f, CORE_OK, true);
        fixture_close(f);
    }
}

static void a_value_of_another_type_is_not_ours(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) refuse(f, i, CORE_FAULT_FOREIGN);
    expect_released(f, CORE_OK, true);
    assert_int_equal(core_debts(f->lock, 0), 0);
    fixture_close(f);
}

/* One that restarted need not have it. */
static void so_many_nodes_may_lack_the_key(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 5; n += 2) {
        struct fixture *f = open_held(n, n / 2 + 1);
        uint32_t spare = n - n / 2 - 1;

        fixture_release(f);
        for (uint32_t i = 0; i < spare; i++) answer(f, i, CORE_MISSING);
        for (uint32_t i = spare; i < n; i++) {
            fixture_expect_nothing(f); /* the last answer decides */
            answer(f, i, CORE_YES);
        }
        expect_released(f, CORE_OK, false);
        fixture_close(f);
    }
}

static void with_all_nodes_needed_none_may_lack_it(void **state)
{
    struct fixture *f = open_held(3, 3);

    (void)state;
    fixture_release(f);
    answer(f, 0, CORE_YES);
    answer(f, 1, CORE_MISSING);
    answer(f, 2, CORE_YES);
    expect_released(f, CORE_OK, true);
    fixture_close(f);
}

/* A good release is told as soon as before: with the Qth answer. */
static void good_answers_of_a_quorum_decide(void **state)
{
    struct fixture *f = open_held(5, 3);

    (void)state;
    fixture_release(f);
    answer(f, 4, CORE_YES);
    answer(f, 0, CORE_YES);
    fixture_expect_nothing(f);
    answer(f, 2, CORE_YES);
    expect_released(f, CORE_OK, false);
    fixture_close(f);
}

static void the_answer_that_decides_is_waited_for_one_node_timeout(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    answer(f, 0, CORE_MISSING);
    answer(f, 1, CORE_YES);
    fixture_pass(f, NODE_TIMEOUT_US - 1);
    fixture_expect_nothing(f);
    fixture_pass(f, 1);
    expect_released(f, CORE_OK, false);
    fixture_close(f);
}

/* Where it cannot come, it is not waited for. */
static void an_answer_that_cannot_come_is_not_waited_for(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    answer(f, 0, CORE_MISSING);
    answer(f, 1, CORE_YES);
    fixture_level(f, 2, CORE_NODE_DOWN);
    expect_released(f, CORE_OK, false);
    fixture_close(f);
}

/* It was executed perhaps, and then there was nothing left to delete. */
static void a_repeated_release_that_finds_nothing_says_nothing(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) {
        answer(f, i, CORE_UNKNOWN);
        fixture_level(f, i, CORE_NODE_CONNECTING);
        fixture_level(f, i, CORE_NODE_READY);
        answer(f, i, CORE_MISSING);
    }
    answer(f, 2, CORE_YES);
    expect_released(f, CORE_OK, false);
    fixture_close(f);
}

/* The connection ended, and nobody told of the request. */
static void a_release_paid_again_that_finds_nothing_says_nothing(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    for (uint32_t i = 0; i < 3; i++) fixture_level(f, i, CORE_NODE_CONNECTING);
    fixture_drop(f);
    assert_int_equal(fixture_told(f).kind, CORE_TELL_RELEASED);
    for (uint32_t i = 0; i < 3; i++) fixture_level(f, i, CORE_NODE_READY);
    for (uint32_t i = 0; i < 3; i++) answer(f, i, CORE_MISSING);
    assert_true(core_quiet(f->lock));
    fixture_close(f);
}

/* The same while the others are still to answer: it is not counted as a hold that had ended. */
static void a_release_paid_again_in_time_that_finds_nothing_says_nothing(void **state)
{
    struct fixture *f = open_held(3, 2);
    struct fixture_sent again;

    (void)state;
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) {
        fixture_level(f, i, CORE_NODE_CONNECTING);
        fixture_level(f, i, CORE_NODE_READY);
        again = *fixture_latest(f, i, CORE_OP_RELEASE);
        fixture_replay(f, &again, CORE_MISSING);
    }
    answer(f, 2, CORE_YES);
    expect_released(f, CORE_OK, false);
    fixture_close(f);
}

/* That certainly did not execute: the answer is the first. */
static void a_repeated_release_that_was_refused_first_says_all(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    refuse(f, 0, CORE_FAULT_PASSING);
    answer(f, 1, CORE_UNSENT);
    answer(f, 2, CORE_NOSCRIPT);
    fixture_room(f, 1);
    fixture_pass(f, NODE_TIMEOUT_US / 2);
    for (uint32_t i = 0; i < 3; i++) answer(f, i, CORE_OTHER);
    expect_released(f, CORE_OK, true);
    fixture_close(f);
}

static void a_hold_that_was_lost_stays_lost(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_MISSING);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_MISSING);
    fixture_expect_lost(f, CORE_LOSS_GONE);
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) answer(f, i, CORE_YES);
    expect_released(f, CORE_OK, true);
    fixture_close(f);
}

/* Answers to the release before are none to this one. */
static void the_release_after_is_judged_by_itself(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    answer(f, 0, CORE_MISSING);
    answer(f, 1, CORE_MISSING);
    expect_released(f, CORE_OK, true);
    fixture_grant(f);
    fixture_release(f);
    answer(f, 2, CORE_MISSING); /* of the one before */
    answer(f, 0, CORE_YES);
    answer(f, 1, CORE_YES);
    expect_released(f, CORE_OK, false);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_is_repeated_after_a_passing_error),
        cmocka_unit_test(a_release_is_repeated_when_it_was_not_sent),
        cmocka_unit_test(a_failed_attempts_release_is_repeated_too),
        cmocka_unit_test(a_release_is_repeated_until_the_lease_has_ended),
        cmocka_unit_test(room_does_not_cut_a_pause_short),
        cmocka_unit_test(what_has_no_room_is_waited_for_one_node_timeout),
        cmocka_unit_test(a_lasting_error_waits_for_the_next_connection),
        cmocka_unit_test(a_pause_ends_with_the_connection),
        cmocka_unit_test(as_many_as_a_step_has_room_for_are_repeated),
        cmocka_unit_test(keys_that_were_gone_are_told),
        cmocka_unit_test(a_value_of_another_type_is_not_ours),
        cmocka_unit_test(so_many_nodes_may_lack_the_key),
        cmocka_unit_test(with_all_nodes_needed_none_may_lack_it),
        cmocka_unit_test(good_answers_of_a_quorum_decide),
        cmocka_unit_test(the_answer_that_decides_is_waited_for_one_node_timeout),
        cmocka_unit_test(an_answer_that_cannot_come_is_not_waited_for),
        cmocka_unit_test(a_repeated_release_that_finds_nothing_says_nothing),
        cmocka_unit_test(a_release_paid_again_that_finds_nothing_says_nothing),
        cmocka_unit_test(a_release_paid_again_in_time_that_finds_nothing_says_nothing),
        cmocka_unit_test(a_repeated_release_that_was_refused_first_says_all),
        cmocka_unit_test(a_hold_that_was_lost_stays_lost),
        cmocka_unit_test(the_release_after_is_judged_by_itself),
    };

    return cmocka_run_group_tests_name("core: releases", tests, NULL, NULL);
}
