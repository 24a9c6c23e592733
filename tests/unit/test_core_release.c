/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_release.c - releases that fail are repeated, and what their answers say of the hold
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define NODE_TIMEOUT_US (100 * MS)
#define PAUSE_MAX_US    (1000 * MS) /* between two tries of one release */

static struct scene *open_held(uint32_t n, uint32_t quorum)
{
    struct core_config config = scene_config(n, quorum);
    struct scene *scene = scene_open(&config);

    scene_grant(scene);
    return scene;
}

static void answer(struct scene *scene, uint32_t node, enum core_outcome outcome)
{
    scene_answer(scene, node, CORE_OP_RELEASE, outcome);
}

static void refuse(struct scene *scene, uint32_t node, enum core_fault fault)
{
    scene_answer_with(scene, node, CORE_OP_RELEASE,
                      &(struct core_reply){.outcome = CORE_ERROR, .fault = fault, .ttl_us = -2});
}

static void expect_released(struct scene *scene, int status, bool expired)
{
    struct core_completion tell = scene_told(scene);

    assert_int_equal(tell.kind, CORE_NOTIFY_RELEASED);
    assert_int_equal(tell.status, status);
    assert_int_equal(tell.expired, expired);
}

/* ---- repeated ---- */

static void a_release_is_repeated_after_a_passing_error(void **state)
{
    struct scene *scene = open_held(3, 2);
    uint64_t longest_us = 0;

    (void)state;
    scene_release(scene);
    answer(scene, 1, CORE_YES);
    answer(scene, 2, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t asked_us = scene->now_us;

        refuse(scene, 0, CORE_FAULT_PASSING);
        assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0); /* not at once: it would spin */
        while (scene_asked(scene, 0, CORE_OP_RELEASE) == 0 && scene->now_us <= asked_us + PAUSE_MAX_US) {
            scene_pass(scene, 1 * MS);
        }
        assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
        if (scene->now_us - asked_us > longest_us) longest_us = scene->now_us - asked_us;
    }
    /* The pauses grow. */
    assert_in_range(longest_us, 300 * MS, PAUSE_MAX_US + MS);
    assert_int_equal(core_debts(scene->lock, 0), 1);
    answer(scene, 0, CORE_YES);
    assert_true(core_quiet(scene->lock));
    assert_int_equal(core_deadline(scene->lock), CORE_NEVER);
    scene_close(scene);
}

/* It did not fit into the queue, or nobody knows what became of it on a connection that lives. */
static void a_release_is_repeated_when_it_was_not_sent(void **state)
{
    static const enum core_outcome outcomes[] = {CORE_UNSENT, CORE_UNKNOWN};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene *scene = open_held(3, 2);

        scene_release(scene);
        for (uint32_t k = 0; k < 3; k++) answer(scene, k, outcomes[i]);
        scene_expect_nothing(scene); /* there is time for more */
        for (uint32_t k = 0; k < 3; k++) scene_room(scene, k);
        scene_pass(scene, NODE_TIMEOUT_US / 2);
        for (uint32_t k = 0; k < 3; k++) answer(scene, k, CORE_YES);
        expect_released(scene, CORE_OK, false);
        assert_true(core_quiet(scene->lock));
        scene_close(scene);
    }
}

static void a_failed_attempts_release_is_repeated_too(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene = scene_open(&config);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_ERROR);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_ERROR);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    for (uint32_t i = 0; i < 3; i++) refuse(scene, i, CORE_FAULT_PASSING);
    scene_pass(scene, 20 * MS);
    for (uint32_t i = 0; i < 3; i++) answer(scene, i, CORE_YES);
    assert_true(core_quiet(scene->lock));
    scene_close(scene);
}

static void a_release_is_repeated_until_the_lease_has_ended(void **state)
{
    struct scene *scene = open_held(3, 2);
    uint32_t sent;

    (void)state;
    scene_release(scene);
    scene_told(scene);
    for (uint32_t i = 0; i < 20; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            if (scene_asked(scene, k, CORE_OP_RELEASE) > 0) refuse(scene, k, CORE_FAULT_PASSING);
        }
        scene_pass(scene, 200 * MS);
    }
    assert_true(core_quiet(scene->lock) || core_debts(scene->lock, 0) == 0);
    assert_int_equal(core_deadline(scene->lock), CORE_NEVER);
    sent = scene->n_sent;
    scene_pass(scene, 2000 * MS);
    assert_int_equal(scene->n_sent, sent);
    scene_close(scene);
}

/* Room at the node is no reason to come before the pause is over. */
static void room_does_not_cut_a_pause_short(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    refuse(scene, 0, CORE_FAULT_PASSING);
    scene_room(scene, 0);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
    scene_pass(scene, 20 * MS);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    scene_close(scene);
}

/* One node lacks the key, one has no room for the question: a quorum has answered, and that is waited for. */
static void what_has_no_room_is_waited_for_one_node_timeout(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    answer(scene, 0, CORE_MISSING);
    answer(scene, 1, CORE_YES);
    answer(scene, 2, CORE_UNSENT);
    scene_pass(scene, NODE_TIMEOUT_US - 1);
    scene_expect_nothing(scene);
    scene_pass(scene, 1);
    expect_released(scene, CORE_OK, false);
    scene_close(scene);
}

/* What repeating on this connection cannot mend waits for the next one. */
static void a_lasting_error_waits_for_the_next_connection(void **state)
{
    static const enum core_fault faults[] = {CORE_FAULT_AUTH, CORE_FAULT_PROTO, CORE_FAULT_CONFIG};

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct scene *scene = open_held(3, 2);

        scene_release(scene);
        for (uint32_t k = 0; k < 3; k++) refuse(scene, k, faults[i]);
        expect_released(scene, CORE_NOQUORUM, false);
        scene_pass(scene, 2000 * MS);
        assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
        scene_node_state(scene, 0, CORE_NODE_DOWN);
        scene_node_state(scene, 0, CORE_NODE_READY);
        assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
        scene_close(scene);
    }
}

/* While there is no connection no timer runs for it, and the next one is asked at once. */
static void a_pause_ends_with_the_connection(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    answer(scene, 1, CORE_YES);
    answer(scene, 2, CORE_YES);
    scene_told(scene);
    refuse(scene, 0, CORE_FAULT_PASSING);
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_pass(scene, 500 * MS);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
    scene_node_state(scene, 0, CORE_NODE_READY);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    scene_close(scene);
}

/* Many of many nodes at once: a step has room for them, and the rest comes with the next. */
static void as_many_as_a_step_has_room_for_are_repeated(void **state)
{
    struct core_config config = scene_config(31, 16);
    struct scene *scene = scene_open(&config);

    (void)state;
    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        scene_acquire(scene);
        scene_cancel(scene);
        scene_told(scene);
    }
    for (uint32_t i = 0; i < 31; i++) {
        while (scene_asked(scene, i, CORE_OP_RELEASE) > 0) refuse(scene, i, CORE_FAULT_PASSING);
    }
    scene_sleep(scene, PAUSE_MAX_US);
    scene_pass(scene, 0);
    for (uint32_t i = 0; i < 31; i++) {
        assert_int_equal(scene_asked(scene, i, CORE_OP_RELEASE), CORE_DEBTS_MAX);
    }
    scene_close(scene);
}

/* ---- what the answers say ---- */

static void keys_that_were_gone_are_told(void **state)
{
    static const enum core_outcome outcomes[] = {CORE_MISSING, CORE_OTHER};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene *scene = open_held(3, 2);

        scene_release(scene);
        answer(scene, 0, outcomes[i]);
        scene_expect_nothing(scene);
        answer(scene, 1, outcomes[i]);
        expect_released(scene, CORE_OK, true);
        scene_close(scene);
    }
}

static void a_value_of_another_type_is_not_ours(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    for (uint32_t i = 0; i < 2; i++) refuse(scene, i, CORE_FAULT_FOREIGN);
    expect_released(scene, CORE_OK, true);
    assert_int_equal(core_debts(scene->lock, 0), 0);
    scene_close(scene);
}

/* One that restarted need not have it. */
static void so_many_nodes_may_lack_the_key(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 5; n += 2) {
        struct scene *scene = open_held(n, n / 2 + 1);
        uint32_t spare = n - n / 2 - 1;

        scene_release(scene);
        for (uint32_t i = 0; i < spare; i++) answer(scene, i, CORE_MISSING);
        for (uint32_t i = spare; i < n; i++) {
            scene_expect_nothing(scene); /* the last answer decides */
            answer(scene, i, CORE_YES);
        }
        expect_released(scene, CORE_OK, false);
        scene_close(scene);
    }
}

static void with_all_nodes_needed_none_may_lack_it(void **state)
{
    struct scene *scene = open_held(3, 3);

    (void)state;
    scene_release(scene);
    answer(scene, 0, CORE_YES);
    answer(scene, 1, CORE_MISSING);
    answer(scene, 2, CORE_YES);
    expect_released(scene, CORE_OK, true);
    scene_close(scene);
}

/* A good release is told as soon as before: with the Qth answer. */
static void good_answers_of_a_quorum_decide(void **state)
{
    struct scene *scene = open_held(5, 3);

    (void)state;
    scene_release(scene);
    answer(scene, 4, CORE_YES);
    answer(scene, 0, CORE_YES);
    scene_expect_nothing(scene);
    answer(scene, 2, CORE_YES);
    expect_released(scene, CORE_OK, false);
    scene_close(scene);
}

static void the_answer_that_decides_is_waited_for_one_node_timeout(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    answer(scene, 0, CORE_MISSING);
    answer(scene, 1, CORE_YES);
    scene_pass(scene, NODE_TIMEOUT_US - 1);
    scene_expect_nothing(scene);
    scene_pass(scene, 1);
    expect_released(scene, CORE_OK, false);
    scene_close(scene);
}

/* Where it cannot come, it is not waited for. */
static void an_answer_that_cannot_come_is_not_waited_for(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    answer(scene, 0, CORE_MISSING);
    answer(scene, 1, CORE_YES);
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    expect_released(scene, CORE_OK, false);
    scene_close(scene);
}

/* It was executed perhaps, and then there was nothing left to delete. */
static void a_repeated_release_that_finds_nothing_says_nothing(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    for (uint32_t i = 0; i < 2; i++) {
        answer(scene, i, CORE_UNKNOWN);
        scene_node_state(scene, i, CORE_NODE_CONNECTING);
        scene_node_state(scene, i, CORE_NODE_READY);
        answer(scene, i, CORE_MISSING);
    }
    answer(scene, 2, CORE_YES);
    expect_released(scene, CORE_OK, false);
    scene_close(scene);
}

/* The connection ended, and nobody told of the request. */
static void a_release_paid_again_that_finds_nothing_says_nothing(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_CONNECTING);
    scene_drop(scene);
    assert_int_equal(scene_told(scene).kind, CORE_NOTIFY_RELEASED);
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_READY);
    for (uint32_t i = 0; i < 3; i++) answer(scene, i, CORE_MISSING);
    assert_true(core_quiet(scene->lock));
    scene_close(scene);
}

/* The same while the others are still to answer: it is not counted as a hold that had ended. */
static void a_release_paid_again_in_time_that_finds_nothing_says_nothing(void **state)
{
    struct scene *scene = open_held(3, 2);
    struct scene_sent again;

    (void)state;
    scene_release(scene);
    for (uint32_t i = 0; i < 2; i++) {
        scene_node_state(scene, i, CORE_NODE_CONNECTING);
        scene_node_state(scene, i, CORE_NODE_READY);
        again = *scene_latest(scene, i, CORE_OP_RELEASE);
        scene_replay(scene, &again, CORE_MISSING);
    }
    answer(scene, 2, CORE_YES);
    expect_released(scene, CORE_OK, false);
    scene_close(scene);
}

/* That certainly did not execute: the answer is the first. */
static void a_repeated_release_that_was_refused_first_says_all(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    refuse(scene, 0, CORE_FAULT_PASSING);
    answer(scene, 1, CORE_UNSENT);
    answer(scene, 2, CORE_NOSCRIPT);
    scene_room(scene, 1);
    scene_pass(scene, NODE_TIMEOUT_US / 2);
    for (uint32_t i = 0; i < 3; i++) answer(scene, i, CORE_OTHER);
    expect_released(scene, CORE_OK, true);
    scene_close(scene);
}

static void a_hold_that_was_lost_stays_lost(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_MISSING);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_MISSING);
    scene_expect_lost(scene, CORE_LOSS_GONE);
    scene_release(scene);
    for (uint32_t i = 0; i < 2; i++) answer(scene, i, CORE_YES);
    expect_released(scene, CORE_OK, true);
    scene_close(scene);
}

/* Answers to the release before are none to this one. */
static void the_release_after_is_judged_by_itself(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    answer(scene, 0, CORE_MISSING);
    answer(scene, 1, CORE_MISSING);
    expect_released(scene, CORE_OK, true);
    scene_grant(scene);
    scene_release(scene);
    answer(scene, 2, CORE_MISSING); /* of the one before */
    answer(scene, 0, CORE_YES);
    answer(scene, 1, CORE_YES);
    expect_released(scene, CORE_OK, false);
    scene_close(scene);
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
