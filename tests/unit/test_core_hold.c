/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_hold.c - holding: renewal, repair, loss, extend and release
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

static struct scene *open_held(uint32_t n, uint32_t quorum)
{
    struct core_config config = scene_config(n, quorum);
    struct scene *scene = scene_open(&config);

    scene_grant(scene);
    return scene;
}

static void answer_all(struct scene *scene, enum core_op op, enum core_outcome outcome)
{
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) {
        if (scene_asked(scene, i, op) != 0) scene_answer(scene, i, op, outcome);
    }
}

static void renewal_asks_every_node_in_one_burst(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS - 1);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_EXTEND), 0);
    scene_pass(scene, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(scene_latest(scene, i, CORE_OP_EXTEND)->command.tag.sent_us,
                         SCENE_BEGIN_US + 1000 * MS);
    }
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + 2968 * MS); /* one yes is no renewal */
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + 3968 * MS);
    assert_int_equal(scene->log & CORE_LOG_RENEWED, CORE_LOG_RENEWED);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_YES);
    scene_pass(scene, 1000 * MS); /* the next is due by the begin of this one */
    assert_int_equal(scene_asked(scene, 1, CORE_OP_EXTEND), 1);
    scene_close(scene);
}

static void work_longer_than_the_lease_is_held(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    for (uint32_t i = 0; i < 30; i++) {
        scene_pass(scene, 1000 * MS);
        answer_all(scene, CORE_OP_EXTEND, CORE_YES);
        assert_true(core_notified_held(scene->lock));
    }
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void a_failed_renewal_is_tried_again_until_lost_at(void **state)
{
    struct scene *scene = open_held(3, 2);
    uint32_t rounds = 0;

    (void)state;
    while (core_notified_held(scene->lock)) {
        if (scene_asked(scene, 0, CORE_OP_EXTEND) != 0) rounds++;
        answer_all(scene, CORE_OP_EXTEND, CORE_UNKNOWN);
        scene_pass(scene, 10 * MS);
    }
    assert_in_range(rounds, 10, 60); /* again and again, but not without a pause */
    assert_int_equal(scene->log & CORE_LOG_RENEW_FAILED, CORE_LOG_RENEW_FAILED);
    assert_in_range(scene->now_us, SCENE_BEGIN_US + 2904 * MS, SCENE_BEGIN_US + 2914 * MS);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_close(scene);
}

static void a_node_that_comes_back_helps_at_once(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_pass(scene, 300 * MS);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_node_state(scene, 1, CORE_NODE_READY);
    scene_pass(scene, 0);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_YES);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    assert_true(core_valid_until(scene->lock) > SCENE_BEGIN_US + 4000 * MS);
    scene_close(scene);
}

static void loss_is_told_before_validity_ends(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_DOWN);
    scene_pass(scene, 2904 * MS - 1);
    assert_int_equal(core_valid_us(scene->lock, scene->now_us), 64 * MS + 1);
    scene_pass(scene, 1);
    assert_true(scene->update.dispatch);
    assert_int_equal(core_valid_us(scene->lock, scene->now_us), 0);
    assert_false(core_notified_held(scene->lock));
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_expect_nothing(scene); /* once */
    scene_close(scene);
}

static void valid_us_is_zero_at_lost_at_whatever_was_told(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    assert_int_equal(core_valid_us(scene->lock, SCENE_BEGIN_US + 2904 * MS - 1), 64 * MS + 1);
    assert_int_equal(core_valid_us(scene->lock, SCENE_BEGIN_US + 2904 * MS), 0);
    scene_close(scene);
}

static void late_answers_do_not_wake_the_dead(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_sleep(scene, 1904 * MS); /* the process stood still; answers came meanwhile */
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    assert_false(core_notified_held(scene->lock));
    assert_int_equal(core_valid_us(scene->lock, scene->now_us), 0);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void a_stopped_process_hears_of_its_loss_first(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    assert_int_equal(scene_extend(scene, 0), CORE_OK);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_YES);
    /* The extend has succeeded, but before that is told the lock is lost: it must not be told as a success. */
    scene_sleep(scene, 10000 * MS);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_expect(scene, CORE_NOTIFY_EXTENDED, CORE_LOST_LOCK);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void a_lock_gone_from_a_majority_is_lost_at_once(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_MISSING);
    assert_true(core_notified_held(scene->lock));
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_OTHER);
    assert_false(core_notified_held(scene->lock));
    scene_expect_lost(scene, CORE_LOSS_GONE);
    scene_close(scene);
}

static void one_lost_node_loses_a_lock_on_all(void **state)
{
    struct scene *scene = open_held(3, 3);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_MISSING);
    scene_expect_lost(scene, CORE_LOSS_GONE);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_REPAIR), 0);
    scene_close(scene);
}

static void repair_needs_a_quorum_of_its_round(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_REPAIR), 0);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_REPAIR), 1);
    assert_int_equal(scene->log & CORE_LOG_DEGRADED, CORE_LOG_DEGRADED);
    scene_answer(scene, 2, CORE_OP_REPAIR, CORE_YES);
    assert_int_equal(scene->log & CORE_LOG_REPAIRED, CORE_LOG_REPAIRED);
    assert_int_equal(core_counted(scene->lock), 2); /* it counts from the next round on */
    scene_pass(scene, 1000 * MS);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_counted(scene->lock), 3);
    assert_int_equal(scene->log & CORE_LOG_WHOLE, CORE_LOG_WHOLE);
    scene_close(scene);
}

/* The key was given again after it was found missing: another word of the time before does not end the lock. */
static void an_absence_from_before_a_repair_says_nothing(void **state)
{
    struct scene *scene = open_held(3, 2);
    struct scene_sent before;

    (void)state;
    scene_pass(scene, 1000 * MS);
    before = *scene_latest(scene, 2, CORE_OP_EXTEND);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 2, CORE_OP_REPAIR, CORE_YES);
    scene_replay(scene, &before, CORE_MISSING);
    scene_pass(scene, 1000 * MS);
    /* One is gone, not two. */
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_MISSING);
    scene_expect_nothing(scene);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_counted(scene->lock), 2);
    scene_close(scene);
}

static void somebody_elses_key_is_not_repaired(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_OTHER);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_REPAIR), 0);
    scene_close(scene);
}

static void a_repair_that_fails_waits_for_the_next_round(void **state)
{
    static const enum core_outcome outcomes[] = {CORE_UNSENT, CORE_ERROR, CORE_UNKNOWN, CORE_OTHER};

    (void)state;
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        struct scene *scene = open_held(3, 2);

        scene_pass(scene, 1000 * MS);
        scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
        answer_all(scene, CORE_OP_EXTEND, CORE_YES);
        scene_answer(scene, 2, CORE_OP_REPAIR, outcomes[i]);
        assert_int_equal(scene_asked(scene, 2, CORE_OP_REPAIR), 0);
        scene_pass(scene, 1000 * MS);
        scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
        answer_all(scene, CORE_OP_EXTEND, CORE_YES);
        assert_int_equal(scene_asked(scene, 2, CORE_OP_REPAIR), 1);
        scene_close(scene);
    }
}

static void a_repair_by_an_unknown_script_is_sent_whole(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 2, CORE_OP_REPAIR, CORE_NOSCRIPT);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_REPAIR), 1);
    assert_true(scene_latest(scene, 2, CORE_OP_REPAIR)->command.use_eval);
    scene_answer(scene, 2, CORE_OP_REPAIR, CORE_YES);
    assert_int_equal(scene->log & CORE_LOG_REPAIRED, CORE_LOG_REPAIRED);
    scene_close(scene);
}

/* A node that was given the key again, and whose answer is not known, may well hold it: no definite loss. */
static void a_repair_of_unknown_outcome_is_no_absence(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 2, CORE_OP_REPAIR, CORE_UNKNOWN);
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_MISSING);
    scene_expect_nothing(scene);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_YES); /* it does */
    scene_expect_nothing(scene);
    assert_true(core_notified_held(scene->lock));
    assert_int_equal(core_counted(scene->lock), 2);
    scene_close(scene);
}

static void a_repair_that_met_another_is_an_absence(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 2, CORE_OP_REPAIR, CORE_OTHER);
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_MISSING);
    scene_expect_lost(scene, CORE_LOSS_GONE);
    scene_close(scene);
}

static void a_node_that_was_away_is_repaired_and_released(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene = scene_open(&config);

    (void)state;
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_node_state(scene, 2, CORE_NODE_READY);
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 2, CORE_OP_REPAIR, CORE_UNKNOWN);
    scene_release(scene);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_RELEASE), 1); /* it may hold the key */
    scene_close(scene);
}

static void extend_lengthens_and_never_shortens(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    assert_int_equal(scene_extend(scene, 2999 * MS), CORE_INVAL);
    assert_int_equal(scene_extend(scene, 6000 * MS), CORE_OK);
    assert_int_equal(scene_extend(scene, 6000 * MS), CORE_BUSY);
    assert_int_equal(scene_release(scene), CORE_BUSY);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_EXTENDED, CORE_OK);
    assert_int_equal(core_lease_us(scene->lock), 6000 * MS);
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + (6000 - 62) * MS);
    assert_int_equal(scene_extend(scene, 3000 * MS), CORE_INVAL);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_YES);
    scene_pass(scene, 1000 * MS); /* later renewals use it too */
    assert_int_equal(scene_latest(scene, 0, CORE_OP_EXTEND)->command.tag.lease_us, 6000 * MS);
    scene_close(scene);
}

static void an_extend_without_quorum_changes_nothing(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_extend(scene, 6000 * MS);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_UNKNOWN);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_UNKNOWN);
    scene_expect(scene, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
    assert_true(core_notified_held(scene->lock));
    assert_int_equal(core_lease_us(scene->lock), 3000 * MS);
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + 2968 * MS);
    scene_close(scene);
}

static void a_canceled_extend_leaves_the_lock_held(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_extend(scene, 6000 * MS);
    assert_int_equal(scene_cancel(scene), CORE_OK);
    scene_expect(scene, CORE_NOTIFY_EXTENDED, CORE_CANCELED);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_expect_nothing(scene);
    assert_true(core_notified_held(scene->lock));
    assert_int_equal(core_lease_us(scene->lock), 3000 * MS);
    scene_close(scene);
}

/* The acquire's answer of a slow node comes while a renewal already asks it: it is no answer to the renewal. */
static void a_late_acquire_does_not_settle_a_renewal(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene = scene_open(&config);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_extend(scene, 0);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 1, CORE_OP_EXTEND, CORE_UNKNOWN);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect_nothing(scene); /* node 2 has not answered the extend */
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_EXTENDED, CORE_OK);
    scene_close(scene);
}

static void max_hold_ends_renewal(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene;

    (void)state;
    config.max_hold_us = 1500 * MS;
    scene = scene_open(&config);
    scene_grant(scene);
    scene_pass(scene, 1000 * MS);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_pass(scene, 1500 * MS);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_EXTEND), 0);
    assert_int_equal(scene_extend(scene, 0), CORE_STATE);
    scene_pass(scene, 1404 * MS);
    scene_expect_lost(scene, CORE_LOSS_MAX_HOLD);
    scene_close(scene);
}

static void without_renewal_it_holds_for_one_lease(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene;

    (void)state;
    config.renew_us = CORE_NEVER;
    scene = scene_open(&config);
    scene_grant(scene);
    scene_pass(scene, 2904 * MS);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_EXTEND), 0);
    scene_expect_lost(scene, CORE_LOSS_NOT_RENEWED);
    scene_close(scene);
}

static void release_is_told_when_a_quorum_answered(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    assert_int_equal(scene_release(scene), CORE_OK);
    assert_false(core_notified_held(scene->lock));
    assert_int_equal(scene_release(scene), CORE_BUSY);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_YES);
    scene_expect_nothing(scene);
    scene_answer(scene, 1, CORE_OP_RELEASE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_false(core_quiet(scene->lock)); /* node 2 still owes */
    scene_answer(scene, 2, CORE_OP_RELEASE, CORE_YES);
    assert_true(core_quiet(scene->lock));
    assert_int_equal(scene_release(scene), CORE_STATE);
    scene_close(scene);
}

static void release_ends_after_one_node_timeout(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_YES);
    scene_pass(scene, 100 * MS);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_NOQUORUM);
    scene_expect_nothing(scene);
    scene_answer(scene, 1, CORE_OP_RELEASE, CORE_YES);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void an_acquire_does_not_wait_for_the_release(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    assert_int_equal(scene_acquire(scene), CORE_OK);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_ACQUIRE), 1);
    answer_all(scene, CORE_OP_RELEASE, CORE_YES);
    answer_all(scene, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_true(core_notified_held(scene->lock));
    scene_close(scene);
}

static void a_grant_ends_the_release_before_it(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    assert_int_equal(scene_acquire(scene), CORE_OK);
    answer_all(scene, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_NOQUORUM);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* What is held can be released. */
    assert_int_equal(scene_release(scene), CORE_OK);
    scene_answer_releases(scene);
    scene_expect(scene, CORE_NOTIFY_RELEASED, CORE_OK);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void no_loss_is_told_after_release(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_sleep(scene, 10000 * MS);
    assert_int_equal(scene_release(scene), CORE_OK); /* it had expired: harmless, and told */
    answer_all(scene, CORE_OP_RELEASE, CORE_MISSING);
    assert_true(scene_told(scene).expired);
    assert_int_equal(scene->update.completion.kind, CORE_NOTIFY_RELEASED);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void a_lost_lock_is_acquired_anew(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_DOWN);
    scene_pass(scene, 2904 * MS);
    assert_int_equal(scene_acquire(scene), CORE_STATE); /* its loss is told first */
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_drop(scene);
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_READY);
    assert_int_equal(scene_acquire(scene), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_RELEASE), 1);
    answer_all(scene, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

static void an_extend_asked_again_prolongs_the_debt(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_pass(scene, 1000 * MS);
    scene_pass(scene, 90 * MS);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_NOSCRIPT);
    assert_true(scene_latest(scene, 0, CORE_OP_EXTEND)->command.use_eval);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    scene_release(scene);
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_DOWN);
    /* Asked at 1090 ms, the key may live until 4090 ms and a little. */
    scene_pass(scene, (3030 - 90) * MS + 89 * MS);
    assert_int_equal(core_debts(scene->lock, 0), 1);
    scene_pass(scene, 2 * MS);
    scene_pass(scene, 90 * MS);
    assert_int_equal(core_debts(scene->lock, 0), 0);
    scene_close(scene);
}

static void a_quarantined_node_extends(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_node_state(scene, 0, CORE_NODE_CONNECTING);
    scene_node_state(scene, 0, CORE_NODE_QUARANTINED);
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_pass(scene, 1000 * MS);
    scene_answer(scene, 0, CORE_OP_EXTEND, CORE_YES);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + 3968 * MS);
    scene_close(scene);
}

static void answers_of_an_old_connection_do_not_count(void **state)
{
    struct scene *scene = open_held(3, 2);
    struct scene_sent old;

    (void)state;
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_pass(scene, 1000 * MS);
    old = *scene_latest(scene, 0, CORE_OP_EXTEND);
    scene_node_state(scene, 0, CORE_NODE_CONNECTING);
    scene_node_state(scene, 0, CORE_NODE_READY);
    scene_replay(scene, &old, CORE_YES);
    scene_answer(scene, 2, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + 2968 * MS);
    scene_replay(scene, &old, CORE_MISSING);
    assert_true(core_notified_held(scene->lock));
    scene_close(scene);
}

static void loss_ends_an_extend_in_flight(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_extend(scene, 0);
    scene_pass(scene, 2904 * MS);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_expect(scene, CORE_NOTIFY_EXTENDED, CORE_LOST_LOCK);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void a_release_whose_answer_is_lost_is_paid_again(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_release(scene);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_UNKNOWN);
    scene_node_state(scene, 0, CORE_NODE_CONNECTING);
    assert_int_equal(core_debts(scene->lock, 0), 1);
    scene_node_state(scene, 0, CORE_NODE_READY);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_MISSING);
    assert_int_equal(core_debts(scene->lock, 0), 0);
    scene_close(scene);
}

static void a_shorter_renewal_does_not_take_validity_away(void **state)
{
    struct scene *scene = open_held(3, 2);

    (void)state;
    scene_extend(scene, 6000 * MS);
    scene_cancel(scene);
    scene_expect(scene, CORE_NOTIFY_EXTENDED, CORE_CANCELED);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES); /* the nodes did it all the same */
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + (6000 - 62) * MS);
    scene_pass(scene, 1000 * MS);
    assert_int_equal(scene_latest(scene, 0, CORE_OP_EXTEND)->command.tag.lease_us, 3000 * MS);
    answer_all(scene, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + (6000 - 62) * MS);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renewal_asks_every_node_in_one_burst),
        cmocka_unit_test(work_longer_than_the_lease_is_held),
        cmocka_unit_test(a_failed_renewal_is_tried_again_until_lost_at),
        cmocka_unit_test(a_node_that_comes_back_helps_at_once),
        cmocka_unit_test(loss_is_told_before_validity_ends),
        cmocka_unit_test(valid_us_is_zero_at_lost_at_whatever_was_told),
        cmocka_unit_test(late_answers_do_not_wake_the_dead),
        cmocka_unit_test(a_stopped_process_hears_of_its_loss_first),
        cmocka_unit_test(a_lock_gone_from_a_majority_is_lost_at_once),
        cmocka_unit_test(one_lost_node_loses_a_lock_on_all),
        cmocka_unit_test(repair_needs_a_quorum_of_its_round),
        cmocka_unit_test(an_absence_from_before_a_repair_says_nothing),
        cmocka_unit_test(somebody_elses_key_is_not_repaired),
        cmocka_unit_test(a_repair_that_fails_waits_for_the_next_round),
        cmocka_unit_test(a_repair_by_an_unknown_script_is_sent_whole),
        cmocka_unit_test(a_repair_of_unknown_outcome_is_no_absence),
        cmocka_unit_test(a_repair_that_met_another_is_an_absence),
        cmocka_unit_test(a_node_that_was_away_is_repaired_and_released),
        cmocka_unit_test(extend_lengthens_and_never_shortens),
        cmocka_unit_test(an_extend_without_quorum_changes_nothing),
        cmocka_unit_test(a_canceled_extend_leaves_the_lock_held),
        cmocka_unit_test(a_late_acquire_does_not_settle_a_renewal),
        cmocka_unit_test(max_hold_ends_renewal),
        cmocka_unit_test(without_renewal_it_holds_for_one_lease),
        cmocka_unit_test(release_is_told_when_a_quorum_answered),
        cmocka_unit_test(release_ends_after_one_node_timeout),
        cmocka_unit_test(an_acquire_does_not_wait_for_the_release),
        cmocka_unit_test(a_grant_ends_the_release_before_it),
        cmocka_unit_test(no_loss_is_told_after_release),
        cmocka_unit_test(a_lost_lock_is_acquired_anew),
        cmocka_unit_test(an_extend_asked_again_prolongs_the_debt),
        cmocka_unit_test(a_quarantined_node_extends),
        cmocka_unit_test(answers_of_an_old_connection_do_not_count),
        cmocka_unit_test(loss_ends_an_extend_in_flight),
        cmocka_unit_test(a_release_whose_answer_is_lost_is_paid_again),
        cmocka_unit_test(a_shorter_renewal_does_not_take_validity_away),
    };

    return cmocka_run_group_tests_name("core: holding", tests, NULL, NULL);
}
