/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_clock.c - clocks that step, and validity that shrinks; the first rules of steps are in
 * test_core_fence.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define VALID_US (2968 * MS) /* of a grant, after its send */

static struct scene *open_held(uint32_t n, uint32_t quorum)
{
    struct core_config config = scene_config(n, quorum);
    struct scene *scene = scene_open(&config);

    scene_grant(scene);
    return scene;
}

static void answer_renewal(struct scene *scene, uint32_t node, enum core_outcome outcome)
{
    scene_answer(scene, node, CORE_OP_EXTEND, outcome);
}

/* ---- steps ---- */

/* Our own clock stood still for nobody knows how long: the lease may have ended already. */
static void a_loss_by_our_own_clock_leaves_nothing(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 10 * MS);
    scene_step(scene, 0, SCENE_BEGIN_US);
    scene_step(scene, 2, SCENE_BEGIN_US);
    assert_true(core_loss_pending(scene->lock));
    assert_int_equal(core_remaining_us(scene->lock, scene->now_us), 0);
    scene_expect_lost(scene, CORE_LOSS_CLOCK);
    assert_int_equal(core_remaining_us(scene->lock, scene->now_us), 0);
    scene_close(scene);
}

static void a_loss_of_the_keys_leaves_nothing(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    answer_renewal(scene, 0, CORE_MISSING);
    answer_renewal(scene, 1, CORE_OTHER);
    assert_int_equal(core_remaining_us(scene->lock, scene->now_us), 0);
    scene_expect_lost(scene, CORE_LOSS_GONE);
    scene_close(scene);
}

static void a_loss_in_good_time_leaves_the_margin(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_pass(scene, VALID_US - 64 * MS);
    assert_int_equal(core_remaining_us(scene->lock, scene->now_us), 64 * MS);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_close(scene);
}

/* Each is one node's own clock: renewed in between, the lock has votes of after both. */
static void steps_further_apart_than_a_lease_are_two_nodes_clocks(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 10 * MS);
    scene_step(scene, 0, scene->now_us);
    for (uint32_t round = 0; round < 4; round++) {
        scene_pass(scene, round == 0 ? 0 : 1000 * MS);
        for (uint32_t i = 0; i < 3; i++) answer_renewal(scene, i, CORE_YES);
        scene_expect_nothing(scene);
    }
    scene_pass(scene, 10 * MS);
    scene_step(scene, 1, scene->now_us);
    scene_expect_nothing(scene);
    assert_true(core_notified_held(scene->lock));
    assert_int_equal(core_counted(scene->lock), 2);
    scene_close(scene);
}

static void steps_within_a_lease_are_our_own_clock(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 10 * MS);
    scene_step(scene, 0, scene->now_us);
    for (uint32_t round = 0; round < 2; round++) {
        scene_pass(scene, round == 0 ? 0 : 1000 * MS);
        for (uint32_t i = 0; i < 3; i++) answer_renewal(scene, i, CORE_YES);
    }
    scene_step(scene, 1, SCENE_BEGIN_US);
    scene_expect_lost(scene, CORE_LOSS_CLOCK);
    scene_close(scene);
}

/* A vote says what time it is there. Asked for before a step that another vote of the node proved, it counts
 * for nothing. */
static void a_step_before_the_verdict_takes_the_vote(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene = scene_open(&config);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_pass(scene, 1 * MS);
    scene_step(scene, 0, scene->now_us);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect_nothing(scene);
    assert_false(core_notified_held(scene->lock));
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(scene->lock), 2);
    scene_close(scene);
}

/* The votes themselves prove it on a quorum, while their token is not agreed yet. */
static void votes_that_prove_our_own_standstill_grant_nothing(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct core_reply low = {.outcome = CORE_YES, .fence = 5, .ttl_us = -2};
    struct core_reply high = {.outcome = CORE_YES, .fence = 7, .ttl_us = -2};
    struct scene *scene;

    (void)state;
    config.fencing = true;
    scene = scene_open(&config);
    scene_acquire(scene);
    scene_answer_with(scene, 0, CORE_OP_ACQUIRE, &low);
    scene_step(scene, 0, SCENE_BEGIN_US); /* the vote was asked for just then, and counts by itself */
    scene_answer_with(scene, 1, CORE_OP_ACQUIRE, &high);
    scene_step(scene, 1, SCENE_BEGIN_US);
    scene_answer_with(scene, 0, CORE_OP_RAISE, &high);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_false(core_notified_held(scene->lock));
    scene_close(scene);
}

/* What was proven before an attempt says nothing about votes that were asked for after it. */
static void steps_before_an_attempt_are_forgotten_with_it(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 10 * MS);
    scene_step(scene, 0, SCENE_BEGIN_US);
    scene_step(scene, 1, SCENE_BEGIN_US);
    scene_expect_lost(scene, CORE_LOSS_CLOCK);
    scene_drop(scene);
    scene_grant(scene);
    scene_pass(scene, 10 * MS);
    scene_step(scene, 2, scene->now_us);
    scene_expect_nothing(scene);
    assert_true(core_notified_held(scene->lock));
    scene_close(scene);
}

/* ---- validity that shrinks ---- */

/* Two renewed it, then one of them says that the key is gone: the lock is valid as long as the next best two
 * are. */
static void validity_shrinks_when_a_vote_goes(void **state)
{
    struct scene *scene = open_held(3, 2);
    uint64_t first_us = scene->now_us;

    (void)state;
    scene_pass(scene, 1000 * MS);
    answer_renewal(scene, 0, CORE_YES);
    answer_renewal(scene, 1, CORE_YES);
    answer_renewal(scene, 2, CORE_UNKNOWN);
    assert_int_equal(core_valid_until(scene->lock), first_us + 1000 * MS + VALID_US);
    scene_pass(scene, 1000 * MS);
    answer_renewal(scene, 1, CORE_MISSING);
    /* The round is not settled: one that was repaired before may still stand in. */
    assert_int_equal(core_valid_until(scene->lock), first_us + 1000 * MS + VALID_US);
    answer_renewal(scene, 2, CORE_UNKNOWN);
    answer_renewal(scene, 0, CORE_UNKNOWN);
    assert_int_equal(core_valid_until(scene->lock), first_us + VALID_US);
    assert_int_equal(core_lost_at(scene->lock), first_us + VALID_US - 64 * MS);
    scene_expect_nothing(scene);
    /* And the loss comes by that time. */
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_pass(scene, first_us + VALID_US - 64 * MS - scene->now_us - 1);
    scene_expect_nothing(scene);
    scene_pass(scene, 1);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_close(scene);
}

static void a_step_shrinks_validity_to_the_other_votes(void **state)
{
    struct scene *scene = open_held(3, 2);
    uint64_t first_us = scene->now_us;

    (void)state;
    scene_pass(scene, 1000 * MS);
    answer_renewal(scene, 0, CORE_YES);
    answer_renewal(scene, 1, CORE_YES);
    answer_renewal(scene, 2, CORE_UNKNOWN);
    scene_pass(scene, 10 * MS);
    scene_step(scene, 1, scene->now_us);
    assert_int_equal(core_valid_until(scene->lock), first_us + VALID_US);
    scene_close(scene);
}

/* ---- the hold after ---- */

/* A vote of the hold before, however late, is none of this one. */
static void a_late_vote_of_the_hold_before_does_not_count(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene = scene_open(&config);
    struct scene_sent late;
    uint64_t begun_us;

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    late = *scene_latest(scene, 2, CORE_OP_ACQUIRE);
    scene_release(scene);
    scene_answer_releases(scene);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    scene_drop(scene);
    scene_pass(scene, 10 * MS);
    begun_us = scene->now_us;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_replay(scene, &late, CORE_YES);
    assert_false(scene->update.dispatch);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_replay(scene, &late, CORE_YES);
    assert_int_equal(core_counted(scene->lock), 2);
    assert_int_equal(core_valid_until(scene->lock), begun_us + VALID_US);
    /* Its own late vote does. */
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(core_counted(scene->lock), 3);
    scene_close(scene);
}

/* Nor do the votes, renewals and absences that the hold before had. */
static void a_second_hold_begins_with_nothing(void **state)
{
    struct scene *scene = open_held(3, 2);
    uint64_t begun_us;

    (void)state;
    scene_pass(scene, 1000 * MS);
    answer_renewal(scene, 0, CORE_YES);
    answer_renewal(scene, 1, CORE_YES);
    answer_renewal(scene, 2, CORE_MISSING);
    scene_release(scene);
    scene_answer_releases(scene);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    scene_drop(scene);
    begun_us = scene->now_us;
    scene_acquire(scene);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(scene->lock), 2);
    assert_int_equal(core_valid_until(scene->lock), begun_us + VALID_US);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    assert_int_equal(core_counted(scene->lock), 2);
    /* A renewal of its own, by its own yes: one is not enough, whatever was said in the hold before. */
    scene_pass(scene, 1000 * MS);
    scene->log = 0;
    answer_renewal(scene, 0, CORE_YES);
    assert_int_equal(scene->log & CORE_LOG_RENEWED, 0);
    assert_int_equal(core_valid_until(scene->lock), begun_us + VALID_US);
    answer_renewal(scene, 1, CORE_YES);
    assert_int_equal(scene->log & CORE_LOG_RENEWED, CORE_LOG_RENEWED);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_by_our_own_clock_leaves_nothing),
        cmocka_unit_test(a_loss_of_the_keys_leaves_nothing),
        cmocka_unit_test(a_loss_in_good_time_leaves_the_margin),
        cmocka_unit_test(steps_further_apart_than_a_lease_are_two_nodes_clocks),
        cmocka_unit_test(steps_within_a_lease_are_our_own_clock),
        cmocka_unit_test(a_step_before_the_verdict_takes_the_vote),
        cmocka_unit_test(votes_that_prove_our_own_standstill_grant_nothing),
        cmocka_unit_test(steps_before_an_attempt_are_forgotten_with_it),
        cmocka_unit_test(validity_shrinks_when_a_vote_goes),
        cmocka_unit_test(a_step_shrinks_validity_to_the_other_votes),
        cmocka_unit_test(a_late_vote_of_the_hold_before_does_not_count),
        cmocka_unit_test(a_second_hold_begins_with_nothing),
    };

    return cmocka_run_group_tests_name("core: clocks and validity", tests, NULL, NULL);
}
