/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_notice.c - notices of releases, the lost wake, and who is told of what; pauses are in
 * test_core_wait.c
 */

#include "fixture.h"

#define HOLDER  77u
#define SRTT_US ((uint64_t)500)

/* Everybody listens, and waits for a holder without an end: the next poll is 50 ms away at least. */
static void open_listening(struct fixture *f, uint32_t n, uint32_t quorum)
{
    struct core_config config = fixture_config(n, quorum);

    config.wait_us = CORE_NEVER;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    for (uint32_t i = 0; i < n; i++) fixture_refuse(f, i, HOLDER, -1);
    assert_true(core_listens(f->lock));
    for (uint32_t i = 0; i < n; i++) fixture_listening(f, i);
    fixture_answer_releases(f);
    fixture_pass(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_round_trip(f, SRTT_US);
    /* It was confirmed before that attempt, so nothing else is to come of it. */
    fixture_pass(f, 30 * MS);
    assert_int_equal(core_attempt(f->lock), 2);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

CORE_TEST(listening_begins_with_the_wait)
{
    struct core_config config = fixture_config(3, 2);

    config.wait_us = CORE_NEVER;
    fixture_open_config(f, &config);
    assert_false(core_listens(f->lock));
    fixture_acquire(f);
    assert_false(core_listens(f->lock)); /* the first try is mostly granted */
    for (uint32_t i = 0; i < 3; i++) fixture_refuse(f, i, HOLDER, -1);
    assert_true(core_listens(f->lock));
    fixture_notice(f, 0, HOLDER);
    assert_true(core_listens(f->lock)); /* also while it asks again */
    fixture_answers(f, CORE_OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_false(core_listens(f->lock));
}

CORE_TEST(the_arbiters_notice_wakes_at_once)
{
    open_listening(f, 5, 3);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 3);
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(fixture_pending(f, i, CORE_OP_ACQUIRE), i == 0);
}

CORE_TEST(notices_of_a_quorum_wake_at_once)
{
    open_listening(f, 5, 3);
    fixture_notice(f, 3, HOLDER);
    fixture_notice(f, 3, HOLDER); /* the same node counts once */
    fixture_notice(f, 2, HOLDER);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_notice(f, 4, HOLDER);
    assert_int_equal(core_attempt(f->lock), 3);
    assert_int_equal(fixture_pending(f, 0, CORE_OP_ACQUIRE), 1);
}

CORE_TEST(one_other_notice_wakes_a_round_trip_later)
{
    open_listening(f, 5, 3);
    fixture_notice(f, 3, HOLDER);
    fixture_pass(f, SRTT_US - 1);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_pass(f, 1);
    assert_int_equal(core_attempt(f->lock), 3);
}

/* What woke the attempt before counts no more. */
CORE_TEST(notices_count_from_when_the_wait_began)
{
    open_listening(f, 5, 3);
    fixture_notice(f, 3, HOLDER);
    fixture_notice(f, 2, HOLDER);
    fixture_pass(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_refuse(f, 0, 88, -1);
    fixture_notice(f, 4, 88);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_pass(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(a_notice_begins_the_polls_anew)
{
    uint64_t attempt;

    open_listening(f, 3, 2);
    for (uint32_t i = 0; i < 6; i++) {
        attempt = core_attempt(f->lock);
        while (core_attempt(f->lock) == attempt) fixture_pass(f, MS);
        for (uint32_t k = 0; k < 3; k++) {
            if (fixture_pending(f, k, CORE_OP_ACQUIRE) > 0) fixture_refuse(f, k, HOLDER, -1);
        }
        fixture_answer_releases(f);
    }
    fixture_notice(f, 0, HOLDER);
    attempt = core_attempt(f->lock);
    fixture_refuse(f, 0, HOLDER + 1, -1);
    fixture_pass(f, 100 * MS);
    assert_int_equal(core_attempt(f->lock), attempt + 1);
}

CORE_TEST(another_acquire_begins_without_notices)
{
    uint64_t attempt;

    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_cancel(f);
    fixture_completion(f);
    fixture_drop(f);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse(f, i, 88, -1);
    attempt = core_attempt(f->lock);
    /* One confirmation of this acquire, whatever was confirmed before. */
    fixture_listening(f, 1);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), attempt);
    /* He had it once more. */
    fixture_notice(f, 1, HOLDER);
    fixture_pass(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), attempt + 1);
}

CORE_TEST(the_arbiter_wakes_only_while_it_is_one)
{
    open_listening(f, 3, 2);
    fixture_node_state(f, 0, CORE_NODE_DOWN);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_notice(f, 1, HOLDER);
    assert_int_equal(core_attempt(f->lock), 3);
    assert_int_equal(fixture_pending(f, 1, CORE_OP_ACQUIRE), 1);
}

/* The attempt may have asked before the release was there. */
CORE_TEST(a_notice_during_an_attempt_is_followed_by_another)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_refuse(f, 0, HOLDER, -1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
    /* Once: the next pause is that of a poll again. */
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 4);
}

/* Whoever holds it without the arbiter tells of his release elsewhere. */
CORE_TEST(a_notice_of_one_that_was_not_asked_counts_too)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_expect_alone(f, 0);
    fixture_notice(f, 1, 88);
    fixture_refuse(f, 0, 89, -1);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(a_notice_of_one_that_was_asked_counts_too)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_refuse(f, 1, 88, -1);
    fixture_notice(f, 1, 88);
    fixture_refuse(f, 2, 88, -1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_answer_releases(f);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(confirmations_are_followed_by_one_more_try)
{
    struct core_config config = fixture_config(3, 2);

    config.wait_us = CORE_NEVER;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse(f, i, HOLDER, -1);
    fixture_round_trip(f, SRTT_US);
    fixture_listening(f, 1);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 1);
    fixture_listening(f, 2);
    fixture_pass(f, SRTT_US - 1);
    assert_int_equal(core_attempt(f->lock), 1);
    fixture_pass(f, 1);
    assert_int_equal(core_attempt(f->lock), 2);
}

/* Subscribed since before the first question: nothing was missed. */
CORE_TEST(what_was_confirmed_before_needs_no_try)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_listening_before(f, i);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse(f, i, HOLDER, -1);
    for (uint32_t i = 0; i < 3; i++) fixture_listening_before(f, i);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 1);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 2);
}

CORE_TEST(who_stands_behind_another_tries_at_no_confirmation)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire_behind(f);
    for (uint32_t i = 0; i < 3; i++) fixture_listening(f, i);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 0);
}

/* After a reconnect notices may have been missed; an attempt under way may have asked before. */
CORE_TEST(a_confirmation_during_an_attempt_is_followed_by_another)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_listening(f, 0);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(a_straggler_of_the_same_release_wakes_nobody)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_refuse(f, 0, 88, -1);
    fixture_notice(f, 1, HOLDER);
    fixture_notice(f, 2, HOLDER);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 3);
    /* The next release is news. */
    fixture_notice(f, 1, 88);
    fixture_pass(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(releases_without_a_name_are_news)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, 0);
    fixture_refuse(f, 0, 88, -1);
    fixture_notice(f, 1, 0);
    fixture_pass(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(notices_of_our_own_releases_are_no_news)
{
    struct core_reply told = {.outcome = CORE_YES, .listeners = 1, .ttl_us = -2};

    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_refuse(f, 1, 88, -1);
    fixture_refuse(f, 2, 89, -1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_answer_with(f, 0, CORE_OP_RELEASE, &told);
    fixture_answer_releases(f);
    fixture_notice(f, 0, 0); /* ours */
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_notice(f, 0, 0); /* somebody's */
    assert_int_equal(core_attempt(f->lock), 4);
}

/* Nothing was there to be deleted, or nobody was told of it, or it was refused: no notice of ours is to come,
 * and the next one is somebody's. */
CORE_TEST(a_release_that_told_nobody_swallows_no_notice)
{
    static const struct core_reply answers[] = {{.outcome = CORE_MISSING, .ttl_us = -2},
                                                {.outcome = CORE_OTHER, .ttl_us = -2},
                                                {.outcome = CORE_YES, .ttl_us = -2},
                                                {.outcome = CORE_UNSENT, .ttl_us = -2},
                                                {.outcome = CORE_ERROR, .fault = CORE_FAULT_PASSING}};

    for (size_t i = 0; i < LENGTH(answers); i++) {
        open_listening(f, 3, 2);
        fixture_notice(f, 0, HOLDER);
        fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
        fixture_refuse(f, 1, 88, -1);
        fixture_refuse(f, 2, 89, -1);
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        fixture_answer_with(f, 0, CORE_OP_RELEASE, &answers[i]);
        fixture_room(f, 0);
        fixture_notice(f, 0, 88);
        fixture_expect_alone(f, 0);
    }
}

CORE_TEST(a_release_that_was_not_sent_swallows_no_notice)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_node_state(f, 0, CORE_NODE_CONNECTING);
    fixture_refuse(f, 1, 88, -1);
    fixture_refuse(f, 2, 89, -1);
    fixture_node_state(f, 0, CORE_NODE_READY);
    fixture_answer(f, 0, CORE_OP_RELEASE, CORE_MISSING);
    fixture_drop(f);
    fixture_notice(f, 0, 88);
    fixture_expect_alone(f, 0);
}

/* Whoever waits asks the arbiter: only there a failed attempt was in the way of anybody. */
CORE_TEST(failed_attempts_wake_others_only_where_they_were_in_the_way)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_refuse(f, 1, 88, -1);
    fixture_refuse(f, 2, 89, -1);
    assert_false(fixture_latest(f, 0, CORE_OP_RELEASE)->command.silent);
    assert_true(fixture_latest(f, 1, CORE_OP_RELEASE)->command.silent);
    assert_true(fixture_latest(f, 2, CORE_OP_RELEASE)->command.silent);
}

/* Somebody holds the others, and not the arbiter: whoever waits gets its yes, and in vain. If the release of
 * each woke the next they would try in turns for as long as he holds it. */
CORE_TEST(failed_attempts_wake_nobody_where_a_holder_is)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_refuse(f, 1, 88, -1);
    fixture_refuse(f, 2, 88, -1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(fixture_latest(f, i, CORE_OP_RELEASE)->command.silent);
    }
    /* Nothing of ours is told, so whatever is told of the arbiter is news. */
    fixture_answer_releases(f);
    fixture_notice(f, 0, 0);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(cancelled_attempts_wake_others_likewise)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answers(f, CORE_OP_ACQUIRE, "yu.");
    fixture_cancel(f);
    assert_false(fixture_latest(f, 0, CORE_OP_RELEASE)->command.silent);
    assert_true(fixture_latest(f, 1, CORE_OP_RELEASE)->command.silent);
}

/* Nor does an outage end by trying in turns. */
CORE_TEST(failed_attempts_wake_nobody_where_too_few_can_vote)
{
    open_listening(f, 3, 2);
    fixture_node_states(f, ".dq");
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_true(fixture_latest(f, 0, CORE_OP_RELEASE)->command.silent);
}

/* Who was in our way an attempt ago is not now: others are refused for the sake of this very attempt. */
CORE_TEST(who_cancels_while_the_arbiter_is_asked_wakes_others)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_cancel(f);
    assert_false(fixture_latest(f, 0, CORE_OP_RELEASE)->command.silent);
}

CORE_TEST(releases_of_a_hold_wake_everywhere)
{
    fixture_open(f, 3, 2);
    fixture_grant(f);
    fixture_release(f);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(fixture_latest(f, i, CORE_OP_RELEASE)->command.silent);
    }
}

/* Granted, but too late to be told: others were refused for its sake, everywhere. */
CORE_TEST(grants_that_come_too_late_wake_everywhere)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answers(f, CORE_OP_ACQUIRE, "yy.");
    fixture_sleep(f, 3000 * MS);
    fixture_expect_nothing(f);
    for (uint32_t i = 0; i < 3; i++) {
        assert_false(fixture_latest(f, i, CORE_OP_RELEASE)->command.silent);
    }
}

CORE_TEST(a_wake_during_an_attempt_is_followed_by_another)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_wake(f);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

/* Others come first this time: the notice decides, or a little more time than it takes. */
CORE_TEST(who_yields_lets_the_notice_decide)
{
    for (int noticed = 0; noticed < 2; noticed++) {
        open_listening(f, 3, 2);
        fixture_yield(f);
        fixture_pass(f, 3 * SRTT_US);
        assert_int_equal(core_attempt(f->lock), 2);
        if (noticed != 0) fixture_notice(f, 0, HOLDER);
        if (noticed == 0) fixture_pass(f, SRTT_US + 1000);
        assert_int_equal(core_attempt(f->lock), 3);
        fixture_expect_alone(f, 0);
    }
}

CORE_TEST(who_does_not_acquire_does_not_listen)
{
    fixture_open(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_listening(f, 0);
    fixture_wake(f);
    assert_int_equal(f->n_sent, 0);
    fixture_grant(f);
    fixture_notice(f, 0, HOLDER);
    fixture_listening(f, 0);
    fixture_wake(f);
    assert_int_equal(core_attempt(f->lock), 1);
    assert_true(core_notified_held(f->lock));
    fixture_release(f);
    fixture_notice(f, 0, HOLDER);
    fixture_wake(f);
    assert_int_equal(core_attempt(f->lock), 1);
}
