/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock that tries once: what it is told where votes are split, or a node comes late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

static void split(struct scene *scene)
{
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, 7, 3000 * (int64_t)MS);
    scene_refuse(scene, 2, 8, 3000 * (int64_t)MS);
    scene_answer_releases(scene);
}

/* Of several that fire at the same tick one gets it: whoever met no holder tries on. */
static void split_votes_are_settled(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    split(scene);
    scene_expect_nothing(scene);
    assert_false(core_listens(scene->lock));
    assert_in_range(scene_pass_to_attempt(scene), 0, 50 * MS);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

static void the_arbiters_no_ends_it(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    split(scene);
    scene_pass_to_attempt(scene);
    scene_refuse(scene, 0, 9, 3000 * (int64_t)MS);
    assert_int_equal(core_rounds(scene->lock), 2);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    scene_close(scene);
}

/* Whatever the others do, it is over after half a node timeout. */
static void votes_that_stay_split_are_given_up(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);
    uint64_t begun_us = scene->now_us;
    uint64_t owner = 100;

    (void)state;
    split(scene);
    while (core_phase_now(scene->lock) == CORE_WAITING) {
        scene_pass_to_attempt(scene);
        scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
        scene_refuse(scene, 1, owner++, 3000 * (int64_t)MS);
        scene_refuse(scene, 2, owner++, 3000 * (int64_t)MS);
        scene_answer_releases(scene);
    }
    assert_in_range(scene->now_us - begun_us, 50 * MS, 100 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_int_equal(core_deadline(scene->lock), CORE_NEVER);
    scene_close(scene);
}

static void one_holder_on_a_quorum_is_told_at_once(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, 7, 3000 * (int64_t)MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    scene_close(scene);
}

/* One node is down and one refuses: whether the lock is held, or too few can vote, the third will say. */
static struct scene *open_with_a_late_node(void)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    scene_refuse(scene, 1, 7, 3000 * (int64_t)MS);
    scene_expect_nothing(scene);
    scene_node_state(scene, 2, CORE_NODE_READY);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_ACQUIRE), 0);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_PEEK), 1);
    return scene;
}

static void a_node_that_comes_late_names_the_holder(void **state)
{
    struct scene *scene = open_with_a_late_node();

    (void)state;
    scene_answer_with(scene, 2, CORE_OP_PEEK,
                      &(struct core_reply){.outcome = CORE_YES, .holder_id = 7, .ttl_us = 3000 * (int64_t)MS});
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    scene_close(scene);
}

static void a_node_that_comes_late_and_fails_is_no_vote(void **state)
{
    struct scene *scene = open_with_a_late_node();

    (void)state;
    scene_answer(scene, 2, CORE_OP_PEEK, CORE_UNKNOWN);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

static void a_node_that_comes_late_and_is_free_leaves_a_chance(void **state)
{
    struct scene *scene = open_with_a_late_node();

    (void)state;
    scene_answer(scene, 2, CORE_OP_PEEK, CORE_MISSING);
    scene_answer_releases(scene);
    scene_expect_nothing(scene);
    scene_pass_to_attempt(scene);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_votes_are_settled),
        cmocka_unit_test(the_arbiters_no_ends_it),
        cmocka_unit_test(votes_that_stay_split_are_given_up),
        cmocka_unit_test(one_holder_on_a_quorum_is_told_at_once),
        cmocka_unit_test(a_node_that_comes_late_names_the_holder),
        cmocka_unit_test(a_node_that_comes_late_and_fails_is_no_vote),
        cmocka_unit_test(a_node_that_comes_late_and_is_free_leaves_a_chance),
    };

    return cmocka_run_group_tests_name("core: trying once", tests, NULL, NULL);
}
