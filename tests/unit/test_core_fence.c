/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_fence.c - one token over the quorum; and what becomes of votes when a node's clock steps
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define WALL UINT64_C(1700000000000000)

static struct scene *open_fenced(uint32_t n, uint32_t quorum, uint64_t wait_us)
{
    struct core_config config = scene_config(n, quorum);
    struct scene *scene;

    config.fencing = true;
    config.wait_us = wait_us;
    scene = scene_open(&config);
    scene->wall_us = WALL;
    return scene;
}

/* A yes, and the counter that comes with it. */
static void shows(struct scene *scene, uint32_t node, enum core_op op, uint64_t counter)
{
    scene_answer_with(scene, node, op,
                      &(struct core_reply){.outcome = CORE_YES, .ttl_us = -2, .fence = counter});
}

static uint64_t asked_with(const struct scene *scene, uint32_t node, enum core_op op)
{
    return scene_latest(scene, node, op)->command.fence;
}

/* Granted with this token on three nodes. */
static struct scene *open_granted(uint64_t token)
{
    struct scene *scene = open_fenced(3, 2, 0);

    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) shows(scene, i, CORE_OP_ACQUIRE, token);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_expect_nothing(scene);
    return scene;
}

static void a_quorum_that_agrees_needs_one_round(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(asked_with(scene, i, CORE_OP_ACQUIRE), WALL);
    shows(scene, 0, CORE_OP_ACQUIRE, WALL);
    shows(scene, 2, CORE_OP_ACQUIRE, WALL);
    assert_true(scene->update.dispatch);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_RAISE), 0);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(scene->lock), WALL);
    scene_close(scene);
}

static void without_fencing_there_is_no_token(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene = scene_open(&config);

    (void)state;
    scene->wall_us = WALL;
    scene_acquire(scene);
    assert_int_equal(asked_with(scene, 0, CORE_OP_ACQUIRE), 0);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(scene->lock), 0);
    scene_close(scene);
}

static void the_floor_is_above_the_token_before(void **state)
{
    struct scene *scene = open_granted(WALL + 1000);

    (void)state;
    scene_release(scene);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_RELEASE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    scene->wall_us = WALL - 1; /* set back meanwhile */
    scene_acquire(scene);
    assert_int_equal(asked_with(scene, 1, CORE_OP_ACQUIRE), WALL + 1001);
    /* The token of another grant is none of this attempt's to leave behind. */
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_OTHER);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_OTHER);
    assert_int_equal(asked_with(scene, 2, CORE_OP_RELEASE), 0);
    scene_close(scene);
}

static void nodes_that_show_less_are_raised(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    assert_false(scene->update.dispatch);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RAISE), 1);
    assert_int_equal(scene_asked(scene, 1, CORE_OP_RAISE), 0);
    assert_int_equal(asked_with(scene, 0, CORE_OP_RAISE), 7);
    assert_int_equal(core_fence(scene->lock), 0); /* not agreed */
    shows(scene, 0, CORE_OP_RAISE, 7);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(scene->lock), 7);
    scene_close(scene);
}

static void a_higher_answer_is_the_new_token(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    shows(scene, 0, CORE_OP_RAISE, 9);
    assert_false(scene->update.dispatch);
    assert_int_equal(asked_with(scene, 1, CORE_OP_RAISE), 9);
    shows(scene, 1, CORE_OP_RAISE, 9);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(scene->lock), 9);
    scene_close(scene);
}

static void a_late_vote_may_be_the_highest(void **state)
{
    struct scene *scene = open_fenced(5, 3, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    shows(scene, 2, CORE_OP_ACQUIRE, 7);
    shows(scene, 3, CORE_OP_ACQUIRE, 9);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RAISE), 1); /* to 7: one at a time */
    assert_int_equal(asked_with(scene, 1, CORE_OP_RAISE), 9);
    assert_int_equal(asked_with(scene, 2, CORE_OP_RAISE), 9);
    shows(scene, 0, CORE_OP_RAISE, 7);
    assert_int_equal(asked_with(scene, 0, CORE_OP_RAISE), 9); /* and again */
    shows(scene, 1, CORE_OP_RAISE, 9);
    assert_false(scene->update.dispatch);
    shows(scene, 2, CORE_OP_RAISE, 9);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(scene->lock), 9);
    scene_close(scene);
}

static void a_vote_after_the_verdict_changes_no_token(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 7);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    shows(scene, 2, CORE_OP_ACQUIRE, 9);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(scene->lock), 7);
    assert_int_equal(core_counted(scene->lock), 3);
    scene_close(scene);
}

/* Whatever a raise came to but a yes: the node has not acknowledged, and has no vote. */
static void a_raise_that_fails_is_no_vote(void **state)
{
    static const enum core_outcome outcomes[] = {CORE_UNKNOWN, CORE_ERROR, CORE_MISSING, CORE_OTHER,
                                                 CORE_UNSENT};

    (void)state;
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        struct scene *scene = open_fenced(3, 2, 0);

        scene_acquire(scene);
        scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
        shows(scene, 0, CORE_OP_ACQUIRE, 5);
        shows(scene, 1, CORE_OP_ACQUIRE, 7);
        scene_answer(scene, 0, CORE_OP_RAISE, outcomes[i]);
        for (uint32_t node = 0; node < 3; node++) {
            assert_int_equal(scene_asked(scene, node, CORE_OP_RELEASE), 1);
            assert_int_equal(asked_with(scene, node, CORE_OP_RELEASE), 0); /* nothing was agreed */
        }
        scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
        assert_int_equal(core_fence(scene->lock), 0);
        scene_close(scene);
    }
}

static void another_node_stands_in(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    scene_answer(scene, 0, CORE_OP_RAISE, CORE_UNKNOWN);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0); /* node 2 may still agree */
    shows(scene, 2, CORE_OP_ACQUIRE, 7);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(scene->lock), 7);
    assert_int_equal(core_counted(scene->lock), 2);
    scene_close(scene);
}

static void a_node_that_is_gone_cannot_be_raised(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RAISE), 0);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

/* It showed the highest before it went: that stands, for its counter is not lower since. */
static void a_node_that_is_gone_may_have_agreed(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 7);
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    shows(scene, 1, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_RAISE, 7);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(scene->lock), 7);
    scene_close(scene);
}

static void a_connection_that_ends_takes_the_raise_with_it(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    scene_node_state(scene, 0, CORE_NODE_CONNECTING);
    scene_node_state(scene, 0, CORE_NODE_READY);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RAISE), 1); /* the one that went with the connection */
    shows(scene, 0, CORE_OP_RAISE, 7);                         /* its answer comes all the same */
    assert_false(scene->update.dispatch);
    shows(scene, 2, CORE_OP_ACQUIRE, 7);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(scene->lock), 2);
    scene_close(scene);
}

static void an_unknown_script_is_sent_whole(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_NOSCRIPT);
    assert_true(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.use_eval);
    assert_int_equal(asked_with(scene, 0, CORE_OP_ACQUIRE), WALL);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    scene_answer(scene, 0, CORE_OP_RAISE, CORE_NOSCRIPT);
    assert_true(scene_latest(scene, 0, CORE_OP_RAISE)->command.use_eval);
    assert_int_equal(asked_with(scene, 0, CORE_OP_RAISE), 7);
    shows(scene, 0, CORE_OP_RAISE, 7);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

static void all_means_all(void **state)
{
    struct scene *scene = open_fenced(3, 3, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 7);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    shows(scene, 2, CORE_OP_ACQUIRE, 6);
    assert_false(scene->update.dispatch);
    shows(scene, 2, CORE_OP_RAISE, 7);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

static void what_follows_carries_the_token(void **state)
{
    struct scene *scene = open_granted(7);

    (void)state;
    scene_pass(scene, 1000 * MS);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(asked_with(scene, i, CORE_OP_EXTEND), 7);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(asked_with(scene, 2, CORE_OP_REPAIR), 7);
    scene_release(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(asked_with(scene, i, CORE_OP_RELEASE), 7);
    scene_close(scene);
}

static void a_debt_keeps_its_own_token(void **state)
{
    struct scene *scene = open_granted(7);

    (void)state;
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_release(scene);
    scene_answer(scene, 1, CORE_OP_RELEASE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_RELEASE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    scene_acquire(scene);
    shows(scene, 1, CORE_OP_ACQUIRE, 9);
    shows(scene, 2, CORE_OP_ACQUIRE, 9);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_node_state(scene, 0, CORE_NODE_READY);
    assert_int_equal(asked_with(scene, 0, CORE_OP_RELEASE), 7);
    scene_close(scene);
}

static void rounds_that_take_too_long_are_no_grant(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    scene_sleep(scene, 2950 * MS); /* valid until 2968, lost at 2904 */
    shows(scene, 0, CORE_OP_RAISE, 7);
    assert_true(scene->update.dispatch);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_RELEASE), 1);
    scene_close(scene);
}

/* Nobody stood in the way, and a quorum had granted: neither HELD nor NOQUORUM is the story. */
static void a_wait_that_ends_while_raising_timed_out(void **state)
{
    struct scene *scene = open_fenced(3, 2, 20 * MS);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    scene_pass(scene, 20 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    scene_close(scene);
}

static void a_wait_that_ends_while_held_was_held(void **state)
{
    struct scene *scene = open_fenced(3, 2, 20 * MS);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 5);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_OTHER);
    scene_pass(scene, 20 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    scene_close(scene);
}

/* ---- clocks that step ---- */

static void one_step_drops_the_votes_before_it(void **state)
{
    struct scene *scene = open_granted(7);
    uint64_t until_us = core_valid_until(scene->lock);

    (void)state;
    scene_pass(scene, 10 * MS);
    scene_step(scene, 0, scene->now_us);
    assert_int_equal(core_counted(scene->lock), 2);
    assert_int_equal(core_valid_until(scene->lock), until_us); /* two are enough */
    scene_pass(scene, 0);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_EXTEND), 1); /* asked again at once */
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_counted(scene->lock), 3);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void votes_asked_for_since_count(void **state)
{
    struct scene *scene = open_granted(7);

    (void)state;
    scene_step(scene, 0, SCENE_BEGIN_US); /* they were asked for just then */
    assert_int_equal(core_counted(scene->lock), 3);
    scene_close(scene);
}

static void a_step_that_takes_the_quorum_is_a_loss(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    shows(scene, 0, CORE_OP_ACQUIRE, 7);
    shows(scene, 1, CORE_OP_ACQUIRE, 7);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_pass(scene, 10 * MS);
    scene_step(scene, 0, scene->now_us);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    assert_int_equal(core_valid_us(scene->lock, scene->now_us), 0);
    scene_close(scene);
}

static void steps_of_a_quorum_are_our_own_clock(void **state)
{
    struct scene *scene = open_granted(7);

    (void)state;
    scene_pass(scene, 10 * MS);
    scene_step(scene, 0, SCENE_BEGIN_US);
    scene_expect_nothing(scene);
    scene_pass(scene, 10 * MS);
    scene_step(scene, 2, SCENE_BEGIN_US);
    scene_expect_lost(scene, CORE_LOSS_CLOCK);
    assert_int_equal(core_valid_us(scene->lock, scene->now_us), 0);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void the_same_node_twice_is_no_quorum(void **state)
{
    struct scene *scene = open_granted(7);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        scene_pass(scene, 10 * MS);
        scene_step(scene, 0, SCENE_BEGIN_US);
    }
    scene_expect_nothing(scene);
    assert_true(core_notified_held(scene->lock));
    scene_close(scene);
}

static void a_step_before_the_tell_is_no_grant(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) shows(scene, i, CORE_OP_ACQUIRE, 7);
    scene_pass(scene, 1 * MS);
    scene_step(scene, 0, scene->now_us);
    scene_step(scene, 1, scene->now_us);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_false(core_notified_held(scene->lock));
    scene_close(scene);
}

static void a_step_while_idle_is_nothing(void **state)
{
    struct scene *scene = open_fenced(3, 2, 0);

    (void)state;
    scene_step(scene, 0, scene->now_us);
    scene_expect_nothing(scene);
    assert_int_equal(core_phase_now(scene->lock), CORE_IDLE);
    assert_int_equal(core_deadline(scene->lock), CORE_NEVER);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quorum_that_agrees_needs_one_round),
        cmocka_unit_test(without_fencing_there_is_no_token),
        cmocka_unit_test(the_floor_is_above_the_token_before),
        cmocka_unit_test(nodes_that_show_less_are_raised),
        cmocka_unit_test(a_higher_answer_is_the_new_token),
        cmocka_unit_test(a_late_vote_may_be_the_highest),
        cmocka_unit_test(a_vote_after_the_verdict_changes_no_token),
        cmocka_unit_test(a_raise_that_fails_is_no_vote),
        cmocka_unit_test(another_node_stands_in),
        cmocka_unit_test(a_node_that_is_gone_cannot_be_raised),
        cmocka_unit_test(a_node_that_is_gone_may_have_agreed),
        cmocka_unit_test(a_connection_that_ends_takes_the_raise_with_it),
        cmocka_unit_test(an_unknown_script_is_sent_whole),
        cmocka_unit_test(all_means_all),
        cmocka_unit_test(what_follows_carries_the_token),
        cmocka_unit_test(a_debt_keeps_its_own_token),
        cmocka_unit_test(rounds_that_take_too_long_are_no_grant),
        cmocka_unit_test(a_wait_that_ends_while_raising_timed_out),
        cmocka_unit_test(a_wait_that_ends_while_held_was_held),
        cmocka_unit_test(one_step_drops_the_votes_before_it),
        cmocka_unit_test(votes_asked_for_since_count),
        cmocka_unit_test(a_step_that_takes_the_quorum_is_a_loss),
        cmocka_unit_test(steps_of_a_quorum_are_our_own_clock),
        cmocka_unit_test(the_same_node_twice_is_no_quorum),
        cmocka_unit_test(a_step_before_the_tell_is_no_grant),
        cmocka_unit_test(a_step_while_idle_is_nothing),
    };

    return cmocka_run_group_tests_name("core: fencing and clocks", tests, NULL, NULL);
}
