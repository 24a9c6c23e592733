/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_bound.c - how a wait ends without a grant, and where it waits behind a lock of the same process
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define HOLDER   77u
#define SRTT_US  ((uint64_t)500)
#define GRACE_US (2 * SRTT_US + 1000) /* how long an arbiter may take */

static void the_wait_bound_comes_while_the_arbiter_is_asked(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 30 * MS);

    (void)state;
    scene_acquire(scene);
    scene_round_trip(scene, 100);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, HOLDER, 28000);
    scene_answer_releases(scene);
    scene_pass_to_attempt(scene);
    assert_int_equal(core_phase_now(scene->lock), CORE_ASKING);
    scene_expect_asked_alone(scene, 0);
    scene_pass(scene, SCENE_BEGIN_US + 30 * MS - scene->now_us);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    assert_int_equal(scene_asked(scene, 1, CORE_OP_RELEASE), 0);
    scene_close(scene);
}

/* Contention or outage: the arbiter alone was asked, so the states of the nodes say which it is. */
static void outage_is_told_from_contention(void **state)
{
    static const struct {
        bool before, after; /* are there enough nodes then? */
        int status;
    } cases[] = {{true, true, CORE_HELD_BY_OTHER}, {true, false, CORE_TIMEDOUT}, {false, false, CORE_NOQUORUM}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene *scene = scene_open_waiting(3, 2, 3000 * MS);

        for (uint32_t node = 1; node < 3 && !cases[i].before; node++)
            scene_node_state(scene, node, CORE_NODE_DOWN);
        scene_acquire(scene);
        for (uint32_t node = 0; node < 3; node++) {
            if (scene_asked(scene, node, CORE_OP_ACQUIRE) > 0) scene_refuse(scene, node, HOLDER, -1);
        }
        for (uint32_t node = 1; node < 3 && !cases[i].after; node++)
            scene_node_state(scene, node, CORE_NODE_DOWN);
        scene_pass_to_attempt(scene);
        scene_refuse(scene, 0, HOLDER, -1);
        assert_int_equal(core_wait_verdict(scene->lock), cases[i].status);
        scene_pass(scene, SCENE_BEGIN_US + 3000 * MS - scene->now_us);
        scene_expect(scene, CORE_NOTIFY_ACQUIRED, cases[i].status);
        scene_close(scene);
    }
}

/* A grant that came too late to be told is neither contention nor outage. */
static void too_late_and_then_the_bound_is_a_timeout(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 5000 * MS);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_sleep(scene, 4998 * MS);
    scene_expect_nothing(scene);
    while (core_phase_now(scene->lock) == CORE_WAITING &&
           core_deadline(scene->lock) < SCENE_BEGIN_US + 5000 * MS)
        scene_pass_to_attempt(scene);
    scene_pass(scene, SCENE_BEGIN_US + 5000 * MS - scene->now_us);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    scene_close(scene);
}

static void the_wait_counts_from_when_it_began(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 700 * MS);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_DOWN);
    scene_acquire_since(scene, SCENE_BEGIN_US - 300 * MS);
    scene_pass(scene, 399 * MS);
    scene_expect_nothing(scene);
    scene_pass(scene, 1 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

/* Its bound is another; what was asked and learned stays. */
static void a_successor_goes_on_where_the_first_gave_up(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 60 * MS);

    (void)state;
    assert_int_equal(scene_hand_off(scene, SCENE_BEGIN_US, 100 * MS), CORE_STATE);
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, HOLDER, 28000);
    scene_answer_releases(scene);
    scene_pass_to_attempt(scene);
    assert_int_equal(scene_hand_off(scene, SCENE_BEGIN_US + 5 * MS, 100 * MS), 0);
    scene_expect_asked_alone(scene, 0);
    scene_refuse(scene, 0, HOLDER, -1);
    scene_pass(scene, SCENE_BEGIN_US + 104 * MS - scene->now_us);
    scene_expect_nothing(scene);
    scene_pass(scene, 1 * MS);
    /* Not that it gave up, for it does not wait any more. */
    assert_int_equal(scene_hand_off(scene, SCENE_BEGIN_US, 900 * MS), CORE_STATE);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    scene_close(scene);
}

/* Whoever waited before, in another's place, goes on with what stood in the way then. */
static void what_was_in_the_way_before_is_told_too(void **state)
{
    static const struct {
        uint32_t before;
        bool held; /* now; else too few can vote */
        int status;
    } cases[] = {{CORE_SEEN_HELD, true, CORE_HELD_BY_OTHER},
                 {CORE_SEEN_NOQUORUM, true, CORE_TIMEDOUT},
                 {CORE_SEEN_HELD, false, CORE_TIMEDOUT},
                 {CORE_SEEN_NOQUORUM, false, CORE_NOQUORUM},
                 {0, false, CORE_NOQUORUM}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene *scene = scene_open_waiting(3, 2, 60 * MS);

        for (uint32_t node = 0; node < 3 && !cases[i].held; node++)
            scene_node_state(scene, node, CORE_NODE_DOWN);
        scene_acquire_after(scene, cases[i].before);
        for (uint32_t node = 0; node < 3 && cases[i].held; node++) scene_refuse(scene, node, HOLDER, -1);
        assert_int_equal(core_seen(scene->lock),
                         cases[i].before | (cases[i].held ? CORE_SEEN_HELD : CORE_SEEN_NOQUORUM));
        scene_pass(scene, 60 * MS);
        scene_expect(scene, CORE_NOTIFY_ACQUIRED, cases[i].status);
        scene_close(scene);
    }
}

/* Each brings a lock that waits for ever into another phase of its acquire. */
static void to_asking_all(struct scene *scene)
{
    scene_acquire(scene);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
}

static void to_doomed(struct scene *scene)
{
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_OTHER);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_OTHER);
}

static void to_waiting(struct scene *scene)
{
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, HOLDER, 20 * MS);
}

static void to_asking_arbiter(struct scene *scene)
{
    to_waiting(scene);
    scene_pass_to_attempt(scene);
}

static void to_asking_rest(struct scene *scene)
{
    to_asking_arbiter(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
}

static void to_silent_arbiter(struct scene *scene)
{
    to_asking_arbiter(scene);
    scene_pass(scene, GRACE_US);
}

static void to_granted(struct scene *scene)
{
    to_asking_rest(scene);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
}

static void to_behind(struct scene *scene)
{
    scene_acquire_behind(scene);
}

static void to_woken(struct scene *scene)
{
    to_behind(scene);
    scene_wake(scene);
}

static void cancel_leaves_nothing_in_any_phase(void **state)
{
    static void (*const scripts[])(struct scene *) = {to_asking_all,  to_doomed,         to_waiting,
                                                      to_asking_rest, to_asking_arbiter, to_silent_arbiter,
                                                      to_granted,     to_behind,         to_woken};

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

        scripts[i](scene);
        assert_int_equal(scene_cancel(scene), CORE_OK);
        scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
        scene_expect_nothing(scene);
        assert_false(core_listens(scene->lock));
        /* Late yeses change nothing: whatever was asked is followed by its release, on every node. */
        for (uint32_t node = 0; node < 3; node++) {
            while (scene_asked(scene, node, CORE_OP_ACQUIRE) > 0) {
                assert_true(core_debts(scene->lock, node) > 0);
                scene_answer(scene, node, CORE_OP_ACQUIRE, CORE_YES);
            }
            while (scene_asked(scene, node, CORE_OP_PEEK) > 0) {
                scene_answer(scene, node, CORE_OP_PEEK, CORE_MISSING);
            }
        }
        scene_answer_releases(scene);
        scene_expect_nothing(scene);
        assert_true(core_quiet(scene->lock));
        assert_int_equal(core_deadline(scene->lock), CORE_NEVER);
        scene_close(scene);
    }
}

static void who_waits_behind_another_asks_nobody(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    assert_int_equal(scene_acquire_behind(scene), CORE_OK);
    assert_int_equal(scene->n_sent, 0);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    assert_true(core_listens(scene->lock));
    /* The other's end may be missed: he is polled, and the refusal names somebody to wait for. */
    assert_in_range(scene_pass_to_attempt(scene), 50 * MS, 100 * MS);
    scene_expect_asked_alone(scene, 0);
    assert_true(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.explain);
    scene_close(scene);
}

static void behind_another_the_bound_is_contention(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 40 * MS);

    (void)state;
    scene_acquire_behind(scene);
    scene_pass(scene, 40 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_true(core_quiet(scene->lock));
    scene_close(scene);
}

static void who_tries_once_does_not_wait_behind(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_acquire_behind(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

static void whoever_is_woken_asks_everybody(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire_behind(scene);
    scene_pass(scene, 10 * MS);
    scene_wake(scene);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
        assert_int_equal(scene_latest(scene, i, CORE_OP_ACQUIRE)->command.tag.sent_us,
                         SCENE_BEGIN_US + 10 * MS);
    }
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

/* Votes of an attempt that asked one node say nothing of the others: theirs of before are shown. */
static void votes_of_before_are_shown(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
    enum core_fault fault;

    (void)state;
    scene_acquire(scene);
    scene_answer_with(scene, 2, CORE_OP_ACQUIRE,
                      &(struct core_reply){.outcome = CORE_ERROR, .fault = CORE_FAULT_AUTH, .ttl_us = -2});
    scene_refuse(scene, 0, HOLDER, 20 * MS);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_pass_to_attempt(scene);
    assert_int_equal(core_vote(scene->lock, 0, NULL), CORE_VOTE_PENDING);
    assert_int_equal(core_vote(scene->lock, 1, NULL), CORE_VOTE_OTHER);
    assert_int_equal(core_vote(scene->lock, 2, &fault), CORE_VOTE_FAILED);
    assert_int_equal(fault, CORE_FAULT_AUTH);
    scene_refuse(scene, 0, HOLDER, 20 * MS);
    assert_int_equal(core_vote(scene->lock, 0, NULL), CORE_VOTE_OTHER);
    assert_int_equal(core_vote(scene->lock, 2, NULL), CORE_VOTE_FAILED);
    /* But never of another acquire. */
    scene_cancel(scene);
    scene_told(scene);
    scene_node_state(scene, 1, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    assert_int_equal(core_vote(scene->lock, 1, NULL), CORE_VOTE_NONE);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wait_bound_comes_while_the_arbiter_is_asked),
        cmocka_unit_test(outage_is_told_from_contention),
        cmocka_unit_test(too_late_and_then_the_bound_is_a_timeout),
        cmocka_unit_test(the_wait_counts_from_when_it_began),
        cmocka_unit_test(a_successor_goes_on_where_the_first_gave_up),
        cmocka_unit_test(what_was_in_the_way_before_is_told_too),
        cmocka_unit_test(cancel_leaves_nothing_in_any_phase),
        cmocka_unit_test(who_waits_behind_another_asks_nobody),
        cmocka_unit_test(behind_another_the_bound_is_contention),
        cmocka_unit_test(who_tries_once_does_not_wait_behind),
        cmocka_unit_test(whoever_is_woken_asks_everybody),
        cmocka_unit_test(votes_of_before_are_shown),
    };

    return cmocka_run_group_tests_name("core: bounds of waiting", tests, NULL, NULL);
}
