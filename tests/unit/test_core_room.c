/* SPDX-License-Identifier: BSD-3-Clause */
/* What the core does when the nodes have no room for its commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

static void answer_all(struct scene *scene, enum core_op op, enum core_outcome outcome)
{
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) scene_answer(scene, i, op, outcome);
}

static void expect_asked(const struct scene *scene, enum core_op op, uint32_t times)
{
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) assert_int_equal(scene_asked(scene, i, op), times);
}

static struct scene *open_crowded(uint64_t wait_us)
{
    struct scene *scene = scene_open_waiting(3, 2, wait_us);

    scene->no_attempt = true;
    return scene;
}

static void an_attempt_waits_for_room(void **state)
{
    struct scene *scene = open_crowded(0);

    (void)state;
    assert_int_equal(scene_acquire(scene), CORE_OK);
    expect_asked(scene, CORE_OP_ACQUIRE, 0);
    assert_int_equal(core_wants(scene->lock), CORE_WANTS_ATTEMPT);
    assert_false(core_listens(scene->lock)); /* nobody is in its way */
    scene_pass(scene, 60000 * MS);
    scene_expect_nothing(scene);
    scene_begin(scene);
    assert_int_equal(core_wants(scene->lock), CORE_WANTS_NOTHING);
    answer_all(scene, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* The lease runs from when it was asked for, not from the call. */
    assert_int_equal(core_valid_us(scene->lock, scene->now_us), 2968 * MS);
    scene_close(scene);
}

static void the_wait_bound_counts_the_wait_for_room(void **state)
{
    struct scene *scene = open_crowded(500 * MS);

    (void)state;
    scene_acquire(scene);
    scene_pass(scene, 499 * MS);
    scene_expect_nothing(scene);
    scene_pass(scene, 1 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_int_equal(core_wants(scene->lock), CORE_WANTS_NOTHING);
    scene_begin(scene);
    expect_asked(scene, CORE_OP_ACQUIRE, 0);
    scene_close(scene);
}

static void cancel_ends_the_wait_for_room(void **state)
{
    struct scene *scene = open_crowded(500 * MS);

    (void)state;
    scene_acquire(scene);
    assert_int_equal(scene_cancel(scene), CORE_OK);
    assert_int_equal(core_wants(scene->lock), CORE_WANTS_NOTHING);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
    assert_true(core_quiet(scene->lock));
    scene_close(scene);
}

static void a_retry_and_a_notice_wait_for_room_too(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, 7, 400 * (int64_t)MS);
    scene_answer_releases(scene);
    scene->no_attempt = true;
    scene_pass(scene, 2000 * MS);
    assert_int_equal(core_rounds(scene->lock), 1);
    assert_int_equal(core_wants(scene->lock), CORE_WANTS_ATTEMPT);
    assert_true(core_listens(scene->lock));
    /* It keeps its turn: nothing but its turn makes it ask. */
    scene->no_attempt = false;
    for (uint32_t i = 0; i < 3; i++) scene_notice(scene, i, 7);
    scene_pass(scene, 2000 * MS);
    assert_int_equal(core_rounds(scene->lock), 1);
    scene_begin(scene);
    assert_int_equal(core_rounds(scene->lock), 2);
    scene_close(scene);
}

static void a_round_waits_for_room_but_not_the_loss(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_grant(scene);
    scene->no_round = true;
    scene_pass(scene, 1500 * MS);
    expect_asked(scene, CORE_OP_EXTEND, 0);
    assert_int_equal(core_wants(scene->lock), CORE_WANTS_ROUND);
    scene_begin(scene);
    expect_asked(scene, CORE_OP_EXTEND, 1);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_us(scene->lock, scene->now_us), 2968 * MS);
    scene->no_round = true;
    scene_pass(scene, 2903 * MS);
    scene_expect_nothing(scene);
    scene_pass(scene, 1 * MS);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    assert_int_equal(core_wants(scene->lock), CORE_WANTS_NOTHING);
    scene_close(scene);
}

static void an_extend_waits_for_room(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_grant(scene);
    scene->no_round = true;
    assert_int_equal(scene_extend(scene, 5000 * MS), CORE_OK);
    expect_asked(scene, CORE_OP_EXTEND, 0);
    assert_int_equal(scene_release(scene), CORE_BUSY);
    scene_begin(scene);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_EXTENDED, CORE_OK);
    assert_int_equal(core_lease_us(scene->lock), 5000 * MS);
    scene_close(scene);
}

static void a_release_waits_for_room(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_grant(scene);
    assert_int_equal(scene_release(scene), CORE_OK);
    answer_all(scene, CORE_OP_RELEASE, CORE_UNSENT);
    /* Longer than the node timeout: that runs from when it was sent. */
    scene_pass(scene, 1000 * MS);
    scene_expect_nothing(scene);
    for (uint32_t i = 0; i < 3; i++) scene_room(scene, i);
    expect_asked(scene, CORE_OP_RELEASE, 1);
    scene_pass(scene, 99 * MS);
    scene_expect_nothing(scene);
    answer_all(scene, CORE_OP_RELEASE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_true(core_quiet(scene->lock));
    scene_close(scene);
}

static void a_release_that_was_sent_at_last_has_its_time_to_answer(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_grant(scene);
    scene_release(scene);
    answer_all(scene, CORE_OP_RELEASE, CORE_UNSENT);
    scene_pass(scene, 1000 * MS);
    for (uint32_t i = 0; i < 3; i++) scene_room(scene, i);
    scene_pass(scene, 100 * MS);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_NOQUORUM);
    scene_close(scene);
}

/* The answers lie there unread: they are not late. */
static void a_process_that_stood_still_reads_the_answers_first(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_grant(scene);
    scene_release(scene);
    scene_sleep(scene, 400 * MS);
    scene_pass(scene, 1 * MS);
    scene_expect_nothing(scene);
    answer_all(scene, CORE_OP_RELEASE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    scene_close(scene);
}

/* Else the node would refuse us for the sake of our own old key. */
static void a_node_that_owes_an_unsent_release_is_not_asked(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_grant(scene);
    scene_release(scene);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_UNSENT);
    scene_answer(scene, 1, CORE_OP_RELEASE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_RELEASE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    scene_acquire(scene);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_ACQUIRE), 0);
    assert_int_equal(scene_asked(scene, 1, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

/* A held lock can do without the vote of a node that has just come back: renewal repairs it there. */
static void a_late_vote_is_not_asked_for_without_room(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene->no_attempt = true;
    scene_node_state(scene, 2, CORE_NODE_READY);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_ACQUIRE), 0);
    scene->no_attempt = false;
    scene_node_state(scene, 2, CORE_NODE_READY);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attempt_waits_for_room),
        cmocka_unit_test(the_wait_bound_counts_the_wait_for_room),
        cmocka_unit_test(cancel_ends_the_wait_for_room),
        cmocka_unit_test(a_retry_and_a_notice_wait_for_room_too),
        cmocka_unit_test(a_round_waits_for_room_but_not_the_loss),
        cmocka_unit_test(an_extend_waits_for_room),
        cmocka_unit_test(a_release_waits_for_room),
        cmocka_unit_test(a_release_that_was_sent_at_last_has_its_time_to_answer),
        cmocka_unit_test(a_process_that_stood_still_reads_the_answers_first),
        cmocka_unit_test(a_node_that_owes_an_unsent_release_is_not_asked),
        cmocka_unit_test(a_late_vote_is_not_asked_for_without_room),
    };

    return cmocka_run_group_tests_name("core: room", tests, NULL, NULL);
}
