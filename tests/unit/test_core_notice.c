/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_notice.c - notices of releases, the lost wake, and who is told of what; pauses are in
 * test_core_wait.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define HOLDER  77u
#define SRTT_US ((uint64_t)500)

/* Everybody listens, and waits for a holder without an end: the next poll is 50 ms away at least. */
static struct scene *open_listening(uint32_t n, uint32_t quorum)
{
    struct core_config config = scene_config(n, quorum);
    struct scene *scene;

    config.wait_us = CORE_NEVER;
    scene = scene_open(&config);
    scene_acquire(scene);
    for (uint32_t i = 0; i < n; i++) scene_refuse(scene, i, HOLDER, -1);
    assert_true(core_listens(scene->lock));
    for (uint32_t i = 0; i < n; i++) scene_listening(scene, i);
    scene_answer_releases(scene);
    scene_pass(scene, SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 2);
    scene_refuse(scene, 0, HOLDER, -1);
    scene_round_trip(scene, SRTT_US);
    /* It was confirmed before that attempt, so nothing else is to come of it. */
    scene_pass(scene, 30 * MS);
    assert_int_equal(core_attempt(scene->lock), 2);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    return scene;
}

static void listening_begins_with_the_wait(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene;

    (void)state;
    config.wait_us = CORE_NEVER;
    scene = scene_open(&config);
    assert_false(core_listens(scene->lock));
    scene_acquire(scene);
    assert_false(core_listens(scene->lock)); /* the first try is mostly granted */
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, HOLDER, -1);
    assert_true(core_listens(scene->lock));
    scene_notice(scene, 0, HOLDER);
    assert_true(core_listens(scene->lock)); /* also while it asks again */
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_false(core_listens(scene->lock));
    scene_close(scene);
}

static void the_arbiters_notice_wakes_at_once(void **state)
{
    struct scene *scene = open_listening(5, 3);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    assert_int_equal(core_attempt(scene->lock), 3);
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), i == 0);
    scene_close(scene);
}

static void notices_of_a_quorum_wake_at_once(void **state)
{
    struct scene *scene = open_listening(5, 3);

    (void)state;
    scene_notice(scene, 3, HOLDER);
    scene_notice(scene, 3, HOLDER); /* the same node counts once */
    scene_notice(scene, 2, HOLDER);
    assert_int_equal(core_attempt(scene->lock), 2);
    scene_notice(scene, 4, HOLDER);
    assert_int_equal(core_attempt(scene->lock), 3);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

static void one_other_notice_wakes_a_round_trip_later(void **state)
{
    struct scene *scene = open_listening(5, 3);

    (void)state;
    scene_notice(scene, 3, HOLDER);
    scene_pass(scene, SRTT_US - 1);
    assert_int_equal(core_attempt(scene->lock), 2);
    scene_pass(scene, 1);
    assert_int_equal(core_attempt(scene->lock), 3);
    scene_close(scene);
}

/* What woke the attempt before counts no more. */
static void notices_count_from_when_the_wait_began(void **state)
{
    struct scene *scene = open_listening(5, 3);

    (void)state;
    scene_notice(scene, 3, HOLDER);
    scene_notice(scene, 2, HOLDER);
    scene_pass(scene, SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 3);
    scene_refuse(scene, 0, 88, -1);
    scene_notice(scene, 4, 88);
    assert_int_equal(core_attempt(scene->lock), 3);
    scene_pass(scene, SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

static void a_notice_begins_the_polls_anew(void **state)
{
    struct scene *scene = open_listening(3, 2);
    uint64_t attempt;

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        attempt = core_attempt(scene->lock);
        while (core_attempt(scene->lock) == attempt) scene_pass(scene, MS);
        for (uint32_t k = 0; k < 3; k++) {
            if (scene_asked(scene, k, CORE_OP_ACQUIRE) > 0) scene_refuse(scene, k, HOLDER, -1);
        }
        scene_answer_releases(scene);
    }
    scene_notice(scene, 0, HOLDER);
    attempt = core_attempt(scene->lock);
    scene_refuse(scene, 0, HOLDER + 1, -1);
    scene_pass(scene, 100 * MS);
    assert_int_equal(core_attempt(scene->lock), attempt + 1);
    scene_close(scene);
}

static void another_acquire_begins_without_notices(void **state)
{
    struct scene *scene = open_listening(3, 2);
    uint64_t attempt;

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_cancel(scene);
    scene_told(scene);
    scene_drop(scene);
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, 88, -1);
    attempt = core_attempt(scene->lock);
    /* One confirmation of this acquire, whatever was confirmed before. */
    scene_listening(scene, 1);
    scene_pass(scene, 40 * MS);
    assert_int_equal(core_attempt(scene->lock), attempt);
    /* He had it once more. */
    scene_notice(scene, 1, HOLDER);
    scene_pass(scene, SRTT_US);
    assert_int_equal(core_attempt(scene->lock), attempt + 1);
    scene_close(scene);
}

static void the_arbiter_wakes_only_while_it_is_one(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_notice(scene, 0, HOLDER);
    assert_int_equal(core_attempt(scene->lock), 2);
    scene_notice(scene, 1, HOLDER);
    assert_int_equal(core_attempt(scene->lock), 3);
    assert_int_equal(scene_asked(scene, 1, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

/* The attempt may have asked before the release was there. */
static void a_notice_during_an_attempt_is_followed_by_another(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_notice(scene, 0, HOLDER);
    assert_int_equal(core_attempt(scene->lock), 3);
    scene_refuse(scene, 0, HOLDER, -1);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_pass(scene, 2 * SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 4);
    /* Once: the next pause is that of a poll again. */
    scene_refuse(scene, 0, HOLDER, -1);
    scene_pass(scene, 40 * MS);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

/* Whoever holds it without the arbiter tells of his release elsewhere. */
static void a_notice_of_one_that_was_not_asked_counts_too(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_expect_asked_alone(scene, 0);
    scene_notice(scene, 1, 88);
    scene_refuse(scene, 0, 89, -1);
    scene_pass(scene, 2 * SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

static void a_notice_of_one_that_was_asked_counts_too(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, 88, -1);
    scene_notice(scene, 1, 88);
    scene_refuse(scene, 2, 88, -1);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_answer_releases(scene);
    scene_pass(scene, 2 * SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

static void confirmations_are_followed_by_one_more_try(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene;

    (void)state;
    config.wait_us = CORE_NEVER;
    scene = scene_open(&config);
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, HOLDER, -1);
    scene_round_trip(scene, SRTT_US);
    scene_listening(scene, 1);
    scene_pass(scene, 40 * MS);
    assert_int_equal(core_attempt(scene->lock), 1);
    scene_listening(scene, 2);
    scene_pass(scene, SRTT_US - 1);
    assert_int_equal(core_attempt(scene->lock), 1);
    scene_pass(scene, 1);
    assert_int_equal(core_attempt(scene->lock), 2);
    scene_close(scene);
}

/* Subscribed since before the first question: nothing was missed. */
static void what_was_confirmed_before_needs_no_try(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_listening_before(scene, i);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, HOLDER, -1);
    for (uint32_t i = 0; i < 3; i++) scene_listening_before(scene, i);
    scene_pass(scene, 40 * MS);
    assert_int_equal(core_attempt(scene->lock), 1);
    scene_notice(scene, 0, HOLDER);
    assert_int_equal(core_attempt(scene->lock), 2);
    scene_close(scene);
}

static void who_stands_behind_another_tries_at_no_confirmation(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire_behind(scene);
    for (uint32_t i = 0; i < 3; i++) scene_listening(scene, i);
    scene_pass(scene, 40 * MS);
    assert_int_equal(core_attempt(scene->lock), 0);
    scene_close(scene);
}

/* After a reconnect notices may have been missed; an attempt under way may have asked before. */
static void a_confirmation_during_an_attempt_is_followed_by_another(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_listening(scene, 0);
    scene_refuse(scene, 0, HOLDER, -1);
    scene_pass(scene, 2 * SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

static void a_straggler_of_the_same_release_wakes_nobody(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_refuse(scene, 0, 88, -1);
    scene_notice(scene, 1, HOLDER);
    scene_notice(scene, 2, HOLDER);
    scene_pass(scene, 40 * MS);
    assert_int_equal(core_attempt(scene->lock), 3);
    /* The next release is news. */
    scene_notice(scene, 1, 88);
    scene_pass(scene, SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

static void releases_without_a_name_are_news(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, 0);
    scene_refuse(scene, 0, 88, -1);
    scene_notice(scene, 1, 0);
    scene_pass(scene, SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

static void notices_of_our_own_releases_are_no_news(void **state)
{
    struct scene *scene = open_listening(3, 2);
    struct core_reply told = {.outcome = CORE_YES, .listeners = 1, .ttl_us = -2};

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, 88, -1);
    scene_refuse(scene, 2, 89, -1);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_answer_with(scene, 0, CORE_OP_RELEASE, &told);
    scene_answer_releases(scene);
    scene_notice(scene, 0, 0); /* ours */
    assert_int_equal(core_attempt(scene->lock), 3);
    scene_notice(scene, 0, 0); /* somebody's */
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

/* Nothing was there to be deleted, or nobody was told of it, or it was refused: no notice of ours is to come,
 * and the next one is somebody's. */
static void a_release_that_told_nobody_swallows_no_notice(void **state)
{
    static const struct core_reply answers[] = {{.outcome = CORE_MISSING, .ttl_us = -2},
                                                {.outcome = CORE_OTHER, .ttl_us = -2},
                                                {.outcome = CORE_YES, .ttl_us = -2},
                                                {.outcome = CORE_UNSENT, .ttl_us = -2},
                                                {.outcome = CORE_ERROR, .fault = CORE_FAULT_PASSING}};

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct scene *scene = open_listening(3, 2);

        scene_notice(scene, 0, HOLDER);
        scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
        scene_refuse(scene, 1, 88, -1);
        scene_refuse(scene, 2, 89, -1);
        assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
        scene_answer_with(scene, 0, CORE_OP_RELEASE, &answers[i]);
        scene_room(scene, 0);
        scene_notice(scene, 0, 88);
        scene_expect_asked_alone(scene, 0);
        scene_close(scene);
    }
}

static void a_release_that_was_not_sent_swallows_no_notice(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_node_state(scene, 0, CORE_NODE_CONNECTING);
    scene_refuse(scene, 1, 88, -1);
    scene_refuse(scene, 2, 89, -1);
    scene_node_state(scene, 0, CORE_NODE_READY);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_MISSING);
    scene_drop(scene);
    scene_notice(scene, 0, 88);
    scene_expect_asked_alone(scene, 0);
    scene_close(scene);
}

/* Whoever waits asks the arbiter: only there a failed attempt was in the way of anybody. */
static void failed_attempts_wake_others_only_where_they_were_in_the_way(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, 88, -1);
    scene_refuse(scene, 2, 89, -1);
    assert_false(scene_latest(scene, 0, CORE_OP_RELEASE)->command.silent);
    assert_true(scene_latest(scene, 1, CORE_OP_RELEASE)->command.silent);
    assert_true(scene_latest(scene, 2, CORE_OP_RELEASE)->command.silent);
    scene_close(scene);
}

/* Somebody holds the others, and not the arbiter: whoever waits gets its yes, and in vain. If the release of
 * each woke the next they would try in turns for as long as he holds it. */
static void failed_attempts_wake_nobody_where_a_holder_is(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, 88, -1);
    scene_refuse(scene, 2, 88, -1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(scene_latest(scene, i, CORE_OP_RELEASE)->command.silent);
    }
    /* Nothing of ours is told, so whatever is told of the arbiter is news. */
    scene_answer_releases(scene);
    scene_notice(scene, 0, 0);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

static void cancelled_attempts_wake_others_likewise(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_cancel(scene);
    assert_false(scene_latest(scene, 0, CORE_OP_RELEASE)->command.silent);
    assert_true(scene_latest(scene, 1, CORE_OP_RELEASE)->command.silent);
    scene_close(scene);
}

/* Nor does an outage end by trying in turns. */
static void failed_attempts_wake_nobody_where_too_few_can_vote(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_node_state(scene, 2, CORE_NODE_QUARANTINED);
    scene_notice(scene, 0, HOLDER);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    assert_true(scene_latest(scene, 0, CORE_OP_RELEASE)->command.silent);
    scene_close(scene);
}

/* Who was in our way an attempt ago is not now: others are refused for the sake of this very attempt. */
static void who_cancels_while_the_arbiter_is_asked_wakes_others(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_cancel(scene);
    assert_false(scene_latest(scene, 0, CORE_OP_RELEASE)->command.silent);
    scene_close(scene);
}

static void releases_of_a_hold_wake_everywhere(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene = scene_open(&config);

    (void)state;
    scene_grant(scene);
    scene_release(scene);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(scene_latest(scene, i, CORE_OP_RELEASE)->command.silent);
    }
    scene_close(scene);
}

/* Granted, but too late to be told: others were refused for its sake, everywhere. */
static void grants_that_come_too_late_wake_everywhere(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_sleep(scene, 3000 * MS);
    scene_expect_nothing(scene);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(scene_latest(scene, i, CORE_OP_RELEASE)->command.silent);
    }
    scene_close(scene);
}

static void a_wake_during_an_attempt_is_followed_by_another(void **state)
{
    struct scene *scene = open_listening(3, 2);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_wake(scene);
    assert_int_equal(core_attempt(scene->lock), 3);
    scene_refuse(scene, 0, HOLDER, -1);
    scene_pass(scene, 2 * SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 4);
    scene_close(scene);
}

/* Others come first this time: the notice decides, or a little more time than it takes. */
static void who_yields_lets_the_notice_decide(void **state)
{
    (void)state;
    for (int noticed = 0; noticed < 2; noticed++) {
        struct scene *scene = open_listening(3, 2);

        scene_yield(scene);
        scene_pass(scene, 3 * SRTT_US);
        assert_int_equal(core_attempt(scene->lock), 2);
        if (noticed) scene_notice(scene, 0, HOLDER);
        if (!noticed) scene_pass(scene, SRTT_US + 1000);
        assert_int_equal(core_attempt(scene->lock), 3);
        scene_expect_asked_alone(scene, 0);
        scene_close(scene);
    }
}

static void who_does_not_acquire_does_not_listen(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene = scene_open(&config);

    (void)state;
    scene_notice(scene, 0, HOLDER);
    scene_listening(scene, 0);
    scene_wake(scene);
    assert_int_equal(scene->n_sent, 0);
    scene_grant(scene);
    scene_notice(scene, 0, HOLDER);
    scene_listening(scene, 0);
    scene_wake(scene);
    assert_int_equal(core_attempt(scene->lock), 1);
    assert_true(core_notified_held(scene->lock));
    scene_release(scene);
    scene_notice(scene, 0, HOLDER);
    scene_wake(scene);
    assert_int_equal(core_attempt(scene->lock), 1);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listening_begins_with_the_wait),
        cmocka_unit_test(the_arbiters_notice_wakes_at_once),
        cmocka_unit_test(notices_of_a_quorum_wake_at_once),
        cmocka_unit_test(one_other_notice_wakes_a_round_trip_later),
        cmocka_unit_test(notices_count_from_when_the_wait_began),
        cmocka_unit_test(a_notice_begins_the_polls_anew),
        cmocka_unit_test(another_acquire_begins_without_notices),
        cmocka_unit_test(the_arbiter_wakes_only_while_it_is_one),
        cmocka_unit_test(a_notice_during_an_attempt_is_followed_by_another),
        cmocka_unit_test(a_notice_of_one_that_was_not_asked_counts_too),
        cmocka_unit_test(a_notice_of_one_that_was_asked_counts_too),
        cmocka_unit_test(confirmations_are_followed_by_one_more_try),
        cmocka_unit_test(what_was_confirmed_before_needs_no_try),
        cmocka_unit_test(who_stands_behind_another_tries_at_no_confirmation),
        cmocka_unit_test(a_confirmation_during_an_attempt_is_followed_by_another),
        cmocka_unit_test(a_straggler_of_the_same_release_wakes_nobody),
        cmocka_unit_test(releases_without_a_name_are_news),
        cmocka_unit_test(notices_of_our_own_releases_are_no_news),
        cmocka_unit_test(a_release_that_told_nobody_swallows_no_notice),
        cmocka_unit_test(a_release_that_was_not_sent_swallows_no_notice),
        cmocka_unit_test(failed_attempts_wake_others_only_where_they_were_in_the_way),
        cmocka_unit_test(failed_attempts_wake_nobody_where_a_holder_is),
        cmocka_unit_test(cancelled_attempts_wake_others_likewise),
        cmocka_unit_test(failed_attempts_wake_nobody_where_too_few_can_vote),
        cmocka_unit_test(who_cancels_while_the_arbiter_is_asked_wakes_others),
        cmocka_unit_test(releases_of_a_hold_wake_everywhere),
        cmocka_unit_test(grants_that_come_too_late_wake_everywhere),
        cmocka_unit_test(a_wake_during_an_attempt_is_followed_by_another),
        cmocka_unit_test(who_yields_lets_the_notice_decide),
        cmocka_unit_test(who_does_not_acquire_does_not_listen),
    };

    return cmocka_run_group_tests_name("core: notices", tests, NULL, NULL);
}
