/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_notice.c - notices of releases, confirmed subscriptions, and releases that publish no notice
 */

#include "fixture.h"

#define SRTT_US ((uint64_t)500)

/* The nodes can tell when the key changes. */
static void open_told(struct fixture *f, uint32_t n, uint32_t quorum, uint64_t wait_us)
{
    struct core_config config = fixture_config(n, quorum);

    config.holder.wait_us = wait_us;
    config.told = true;
    fixture_open_config(f, &config);
}

/* It listens at all nodes, and waits for a holder whose lease has no end: the next poll is 50 ms away at least.
 */
static void open_listening(struct fixture *f, uint32_t n, uint32_t quorum)
{
    open_told(f, n, quorum, CORE_NEVER);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    assert_true(core_listens(f->lock));
    for (uint32_t i = 0; i < n; i++) fixture_listening(f, i);
    fixture_answer_releases(f);
    fixture_pass(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_round_trip(f, SRTT_US);
    /* The attempt came after the confirmations, so no other follows. */
    fixture_pass(f, 30 * MS);
    assert_int_equal(core_attempt(f->lock), 2);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

CORE_TEST(a_lock_listens_while_it_waits)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    assert_false(core_listens(f->lock));
    fixture_acquire(f);
    assert_false(core_listens(f->lock)); /* the first attempt is mostly granted */
    fixture_refuse_all(f, HOLDER, -1);
    assert_true(core_listens(f->lock));
    fixture_notice(f, 0, HOLDER);
    assert_true(core_listens(f->lock)); /* also while it asks again */
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_false(core_listens(f->lock));
}

CORE_TEST(notices_of_a_quorum_without_the_arbiter_wake_at_once)
{
    open_listening(f, 5, 3);
    fixture_notice(f, 3, HOLDER);
    fixture_notice(f, 3, HOLDER); /* the same node counts once */
    fixture_notice(f, 2, HOLDER);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_notice(f, 4, HOLDER);
    assert_int_equal(core_attempt(f->lock), 3);
    assert_int_equal(fixture_pending(f, 0, OP_ACQUIRE), 1);
}

CORE_TEST(a_notice_shortens_the_pauses_between_polls)
{
    uint64_t attempt;

    open_listening(f, 3, 2);
    for (uint32_t i = 0; i < 6; i++) {
        attempt = core_attempt(f->lock);
        while (core_attempt(f->lock) == attempt) fixture_pass(f, MS);
        for (uint32_t k = 0; k < 3; k++) {
            if (fixture_pending(f, k, OP_ACQUIRE) > 0) fixture_refuse(f, k, HOLDER, -1);
        }
        fixture_answer_releases(f);
    }
    fixture_notice(f, 0, HOLDER);
    attempt = core_attempt(f->lock);
    fixture_refuse(f, 0, HOLDER + 1, -1);
    fixture_pass(f, 100 * MS);
    assert_int_equal(core_attempt(f->lock), attempt + 1);
}

CORE_TEST(another_acquire_polls_often_again)
{
    open_listening(f, 3, 2);
    for (uint32_t i = 0; i < 6; i++) {
        (void)fixture_pass_to_attempt(f);
        for (uint32_t k = 0; k < 3; k++) {
            if (fixture_pending(f, k, OP_ACQUIRE) > 0) fixture_refuse(f, k, HOLDER, -1);
        }
        fixture_answer_releases(f);
    }
    fixture_cancel(f);
    fixture_completion(f);
    fixture_drop(f);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    assert_in_range(fixture_pass_to_attempt(f), 0, 100 * MS);
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
    fixture_refuse_all(f, 88, -1);
    attempt = core_attempt(f->lock);
    /* One confirmation of this acquire, whatever was confirmed before. */
    fixture_listening(f, 1);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), attempt);
    /* The same holder may have acquired it again. */
    fixture_notice(f, 1, HOLDER);
    fixture_pass(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), attempt + 1);
}

/* Each may come after the attempt asked the arbiter. */
static void hear_of_the_release(struct fixture *f)
{
    fixture_notice(f, 0, HOLDER);
}

static void hear_of_another_holder(struct fixture *f)
{
    fixture_notice(f, 1, 88);
}

static void confirm_again(struct fixture *f)
{
    fixture_listening(f, 0);
}

CORE_TEST(news_during_an_attempt_is_followed_by_another_attempt)
{
    static void (*const news[])(struct fixture *) = {hear_of_the_release, hear_of_another_holder, confirm_again,
                                                     fixture_wake};

    for (size_t i = 0; i < LENGTH(news); i++) {
        open_listening(f, 3, 2);
        fixture_notice(f, 0, HOLDER);
        fixture_expect_alone(f, 0);
        news[i](f);
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
}

/* The arbiter granted an attempt, and two others hold the other nodes. */
static void open_split(struct fixture *f)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, 88, -1);
    fixture_refuse(f, 2, 89, -1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

/* One digit a node: 1 where its latest release publishes no notice, 2 where it does so without a key, too; . where none
 * was sent. */
static void expect_silent(const struct fixture *f, const char *silent)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (silent[i] == '.') continue;
        assert_int_equal(fixture_latest(f, i, OP_RELEASE)->command.silent, silent[i] == '1');
        assert_int_equal(fixture_latest(f, i, OP_RELEASE)->command.if_deleted, silent[i] != '2');
    }
}

/* That of the arbiter, or of so many nodes that a quorum's release reaches one of them. */
CORE_TEST(a_confirmation_is_followed_by_an_attempt)
{
    static const struct {
        uint32_t order[4], attempts[4];
    } rows[] = {{{0, 1, 2, 3}, {1, 1, 2, 2}}, {{1, 2, 3, 4}, {0, 0, 1, 1}}, {{3, 0, 2, 1}, {0, 1, 2, 2}}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        fixture_open_waiting(f, 5, 3, CORE_NEVER);
        fixture_acquire(f);
        fixture_refuse_all(f, HOLDER, -1);
        fixture_answer_releases(f);
        for (size_t k = 0; k < LENGTH(rows[i].order); k++) {
            fixture_listening(f, rows[i].order[k]);
            fixture_pass(f, SRTT_US);
            assert_int_equal(core_attempt(f->lock), 1 + rows[i].attempts[k]);
            if (fixture_pending(f, 0, OP_ACQUIRE) > 0) fixture_refuse(f, 0, HOLDER, -1);
        }
    }
}

CORE_TEST(confirmations_of_a_quorum_are_followed_by_an_attempt)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
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

/* No notice was missed. */
CORE_TEST(subscriptions_confirmed_before_the_wait_need_no_attempt)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_listening_before(f, i);
    fixture_refuse_all(f, HOLDER, -1);
    for (uint32_t i = 0; i < 3; i++) fixture_listening_before(f, i);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 1);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 2);
}

CORE_TEST(confirmations_start_no_attempt_behind_another_lock)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire_behind(f);
    for (uint32_t i = 0; i < 3; i++) fixture_listening(f, i);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 0);
}

/* The release reached the arbiter first, and our question the others before it. */
static void ask_too_early(struct fixture *f)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
}

static void expect_soon_after_a_notice(struct fixture *f)
{
    fixture_answer_releases(f);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
    /* Once: no node refused because of that holder since. */
    fixture_refuse(f, 0, 89, -1);
    fixture_notice(f, 1, HOLDER);
    fixture_notice(f, 2, HOLDER);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(a_notice_of_a_node_that_refused_because_of_that_holder_wakes_again)
{
    ask_too_early(f);
    fixture_refuse(f, 1, HOLDER, -1);
    fixture_refuse(f, 2, HOLDER, -1);
    fixture_notice(f, 1, HOLDER);
    expect_soon_after_a_notice(f);
}

CORE_TEST(notices_of_a_quorum_that_refused_because_of_that_holder_wake_at_once)
{
    ask_too_early(f);
    fixture_refuse(f, 1, HOLDER, -1);
    fixture_refuse(f, 2, HOLDER, -1);
    fixture_answer_releases(f);
    fixture_notice(f, 1, HOLDER);
    fixture_notice(f, 2, HOLDER);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(such_a_notice_may_come_during_the_attempt)
{
    for (int before_the_refusal = 0; before_the_refusal < 2; before_the_refusal++) {
        ask_too_early(f);
        if (before_the_refusal != 0) fixture_notice(f, 1, HOLDER);
        fixture_refuse(f, 1, HOLDER, -1);
        if (before_the_refusal == 0) fixture_notice(f, 1, HOLDER);
        fixture_refuse(f, 2, HOLDER, -1);
        expect_soon_after_a_notice(f);
    }
}

CORE_TEST(a_late_notice_of_a_node_that_refused_for_another_holder_wakes_nobody)
{
    ask_too_early(f);
    fixture_refuse(f, 1, 88, -1);
    fixture_refuse(f, 2, 88, -1);
    fixture_answer_releases(f);
    fixture_notice(f, 1, HOLDER);
    fixture_notice(f, 2, HOLDER);
    fixture_pass(f, 40 * MS);
    assert_int_equal(core_attempt(f->lock), 3);
}

/* Other programs publish without naming themselves. */
CORE_TEST(each_release_by_an_unknown_owner_wakes)
{
    open_listening(f, 3, 2);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_notice(f, 0, 0);
        assert_int_equal(core_attempt(f->lock), 3 + i);
        fixture_refuse(f, 0, 88 + i, -1);
    }
}

/* ---- servers that tell by themselves ---- */

static void refuse_asked(struct fixture *f, const struct core_reply *refusal)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (fixture_pending(f, i, OP_ACQUIRE) > 0) fixture_answer_with(f, i, OP_ACQUIRE, refusal);
    }
}

/* The node tells, and is asked within two round trips. */
static void hint(struct fixture *f, uint32_t node)
{
    fixture_told(f, node);
    fixture_pass(f, 2 * SRTT_US);
}

static bool watches(const struct fixture *f, uint32_t node, enum op op)
{
    return fixture_latest(f, node, op)->command.watch;
}

/* The first attempt is mostly granted. */
CORE_TEST(the_arbiter_is_watched_from_the_first_refusal_on)
{
    open_told(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) assert_false(watches(f, i, OP_ACQUIRE));
    fixture_refuse_all(f, HOLDER, -1);
    fixture_expect_pending(f, OP_PEEK, "100");
    assert_true(watches(f, 0, OP_PEEK));
    fixture_answer_releases(f);
    (void)fixture_pass_to_attempt(f);
    assert_true(watches(f, 0, OP_ACQUIRE));
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_expect_pending(f, OP_PEEK, "100");
}

CORE_TEST(a_peek_that_asks_for_the_holder_watches)
{
    open_told(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "ooo");
    fixture_expect_pending(f, OP_PEEK, "111");
    for (uint32_t i = 0; i < 3; i++) assert_true(watches(f, i, OP_PEEK));
}

CORE_TEST(who_tries_once_or_was_notified_watches_nothing)
{
    open_told(f, 3, 2, 0);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "ooo");
    for (uint32_t i = 0; i < 3; i++) assert_false(watches(f, i, OP_PEEK));
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 3);
    assert_false(watches(f, 0, OP_ACQUIRE));
    /* The next release may be by somebody who publishes nothing. */
    fixture_refuse(f, 0, 88, -1);
    (void)fixture_pass_to_attempt(f);
    assert_true(watches(f, 0, OP_ACQUIRE));
}

CORE_TEST(who_cannot_be_told_watches_nothing)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    fixture_expect_pending(f, OP_PEEK, "000");
}

/* Found missing before the node began to watch. */
CORE_TEST(a_key_that_is_gone_when_the_node_looks_is_asked_for)
{
    open_told(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    fixture_answer_releases(f);
    fixture_answer(f, 0, OP_PEEK, OUTCOME_MISSING);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 2);
}

CORE_TEST(a_change_that_the_arbiter_tells_wakes)
{
    open_listening(f, 3, 2);
    fixture_told(f, 0);
    fixture_pass(f, 0);
    assert_int_equal(core_attempt(f->lock), 3);
    assert_true(watches(f, 0, OP_ACQUIRE));
}

/* Each was a release. */
CORE_TEST(each_change_of_the_holder_that_is_told_wakes)
{
    open_listening(f, 3, 2);
    for (uint32_t i = 0; i < 3; i++) {
        hint(f, 0);
        assert_int_equal(core_attempt(f->lock), 3 + i);
        fixture_refuse(f, 0, 88 + i, -1);
    }
}

/* The first two have refused, which are a quorum. */
static void open_refused_at_first(struct fixture *f)
{
    open_told(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    fixture_answer_releases(f);
    fixture_round_trip(f, SRTT_US);
}

CORE_TEST(a_change_that_another_node_tells_wakes)
{
    open_refused_at_first(f);
    fixture_told(f, 1);
    fixture_pass(f, SRTT_US - 1);
    assert_int_equal(core_attempt(f->lock), 1);
    fixture_pass(f, 1);
    fixture_expect_alone(f, 0);
    /* The same is published now. */
    fixture_refuse(f, 0, 88, -1);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 2);
}

/* The node has refused, and the attempt goes on. */
CORE_TEST(a_change_during_an_attempt_is_followed_by_another_attempt)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, HOLDER, -1);
    fixture_told(f, 1);
    fixture_refuse(f, 2, HOLDER, -1);
    fixture_answer_releases(f);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

/* In either order. */
CORE_TEST(a_release_that_is_told_and_published_wakes_once)
{
    for (int published_first = 0; published_first < 2; published_first++) {
        open_listening(f, 3, 2);
        if (published_first != 0)
            fixture_notice(f, 0, HOLDER);
        else
            hint(f, 0);
        assert_int_equal(core_attempt(f->lock), 3);
        if (published_first != 0)
            fixture_told(f, 0);
        else
            fixture_notice(f, 0, HOLDER);
        refuse_asked(f, &(struct core_reply){.outcome = OUTCOME_OTHER, .holder_id = 88, .ttl_us = -1});
        fixture_answer_releases(f);
        fixture_pass(f, 40 * MS);
        assert_int_equal(core_attempt(f->lock), 3);
    }
}

/* The holder renews: that is a change, too. */
CORE_TEST(after_a_change_in_vain_the_next_one_wakes_only_behind_a_poll)
{
    open_listening(f, 3, 2);
    hint(f, 0);
    refuse_asked(f, &(struct core_reply){.outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = -1});
    fixture_answer_releases(f);
    hint(f, 0);
    assert_int_equal(core_attempt(f->lock), 3);
    assert_in_range(fixture_pass_to_attempt(f), 40 * MS, 1000 * MS);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_answer_releases(f);
    hint(f, 0);
    assert_int_equal(core_attempt(f->lock), 5);
}

/* The arbiter does not tell of the release, for instance because it is frozen. */
CORE_TEST(a_release_after_a_change_in_vain_wakes)
{
    for (uint32_t tells = 0; tells < 2; tells++) {
        open_refused_at_first(f);
        hint(f, tells);
        fixture_refuse(f, 0, HOLDER, -1);
        fixture_notice(f, 2, HOLDER);
        assert_true(fixture_pass_to_attempt(f) < 40 * MS);
    }
}

/* The attempt that a renewal began is refused because of the holder, which has released meanwhile. */
CORE_TEST(a_release_during_an_attempt_in_vain_wakes)
{
    open_listening(f, 3, 2);
    hint(f, 0);
    fixture_notice(f, 0, HOLDER);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_answer_releases(f);
    fixture_pass(f, 2 * SRTT_US);
    assert_int_equal(core_attempt(f->lock), 4);
}

/* All nodes that are asked refuse; returns how long after that the next attempt comes. */
static uint64_t next_poll_us(struct fixture *f, bool watched)
{
    const struct core_reply refusal = {.outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = -1, .watched = watched};

    refuse_asked(f, &refusal);
    refuse_asked(f, &refusal); /* those that the first refusal made it ask */
    fixture_answer_releases(f);
    return fixture_pass_to_attempt(f);
}

CORE_TEST(who_is_told_polls_less)
{
    open_told(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 12; i++) (void)next_poll_us(f, true);
    assert_in_range(next_poll_us(f, true), 2000 * MS, 4000 * MS);
    assert_in_range(next_poll_us(f, false), 500 * MS, 1000 * MS);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_answer_releases(f);
    /* In vain: the holder renewed. */
    hint(f, 0);
    assert_in_range(next_poll_us(f, true), 500 * MS, 1000 * MS);
    assert_in_range(next_poll_us(f, true), 2000 * MS, 4000 * MS);
}

/* They change the key whenever one comes or goes. */
CORE_TEST(changes_by_readers_wake_no_writer)
{
    const struct core_reply refusal = {
        .outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = -1, .watched = true, .readers = true};

    open_told(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_answer_with(f, i, OP_ACQUIRE, &refusal);
    fixture_answer_releases(f);
    hint(f, 0);
    assert_int_equal(core_attempt(f->lock), 1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

/* It releases what a lock of the process held: that is published. */
CORE_TEST(after_a_release_by_the_process_during_an_attempt_nobody_watches)
{
    for (int asking = 0; asking < 2; asking++) {
        open_refused_at_first(f);
        if (asking != 0) (void)fixture_pass_to_attempt(f);
        fixture_wake(f);
        if (asking != 0) fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
        assert_int_equal(core_attempt(f->lock), 2);
        for (uint32_t i = 1; i < 3; i++) assert_int_equal(watches(f, i, OP_ACQUIRE), asking == 0);
    }
}

/* The node granted, and the key was deleted because others did not. */
CORE_TEST(a_change_of_our_own_key_is_no_news)
{
    open_told(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, HOLDER, -1);
    fixture_refuse(f, 2, HOLDER, -1);
    fixture_expect_pending(f, OP_PEEK, "000"); /* nor is it watched */
    fixture_answer_releases(f);
    fixture_told(f, 0);
    assert_int_equal(core_attempt(f->lock), 1);
    fixture_pass(f, 0);
    assert_int_equal(core_attempt(f->lock), 1);
}

CORE_TEST(notices_of_own_releases_do_not_wake)
{
    struct core_reply reply = {.outcome = OUTCOME_YES, .listeners = 1, .ttl_us = -2};

    open_split(f);
    fixture_answer_with(f, 0, OP_RELEASE, &reply);
    fixture_answer_releases(f);
    fixture_notice(f, 0, 0); /* ours */
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_notice(f, 0, 0); /* of another */
    assert_int_equal(core_attempt(f->lock), 4);
}

/* It came, or is lost: the node publishes it to a subscription that has ended. */
CORE_TEST(a_confirmation_is_followed_by_no_notice_of_an_own_release)
{
    struct core_reply reply = {.outcome = OUTCOME_YES, .listeners = 1, .ttl_us = -2};

    open_split(f);
    fixture_answer_with(f, 0, OP_RELEASE, &reply);
    fixture_answer_releases(f);
    fixture_listening(f, 0);
    (void)fixture_pass_to_attempt(f);
    fixture_refuse(f, 0, 90, -1);
    fixture_notice(f, 0, 90);
    fixture_expect_alone(f, 0);
    assert_int_equal(core_attempt(f->lock), 5);
}

/* No notice of our own is to come, so the next one is that of another. */
CORE_TEST(a_release_that_published_nothing_swallows_no_notice)
{
    static const struct core_reply answers[] = {{.outcome = OUTCOME_MISSING, .ttl_us = -2},
                                                {.outcome = OUTCOME_OTHER, .ttl_us = -2},
                                                {.outcome = OUTCOME_YES, .ttl_us = -2},
                                                {.outcome = OUTCOME_UNSENT, .ttl_us = -2},
                                                {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_TEMPORARY}};

    for (size_t i = 0; i < LENGTH(answers); i++) {
        open_split(f);
        fixture_answer_with(f, 0, OP_RELEASE, &answers[i]);
        fixture_room(f, 0);
        fixture_notice(f, 0, 88);
        fixture_expect_alone(f, 0);
    }
}

CORE_TEST(a_failed_attempt_publishes_nothing_in_an_outage)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_node_states(f, ".dq");
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    expect_silent(f, "1..");
}

static void open_outage(struct fixture *f)
{
    open_listening(f, 3, 2);
    fixture_node_states(f, ".dq");
}

static void expect_attempt_once_ready(struct fixture *f)
{
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    fixture_node_state(f, 1, NODE_READY);
    assert_true(fixture_pass_to_attempt(f) <= 4 * SRTT_US);
    fixture_expect_alone(f, 0);
}

/* Its yes would only keep out others, which may have a quorum. */
CORE_TEST(in_an_outage_a_notice_begins_no_attempt_until_a_quorum_is_ready)
{
    open_outage(f);
    fixture_notice(f, 0, HOLDER);
    expect_attempt_once_ready(f);
    open_outage(f);
    hint(f, 0);
    expect_attempt_once_ready(f);
}

/* The same of a release by this process. */
CORE_TEST(in_an_outage_the_next_lock_of_the_process_waits_for_a_quorum)
{
    open_outage(f);
    fixture_wake(f);
    expect_attempt_once_ready(f);
}

/* Others may be refused because of this attempt. */
CORE_TEST(an_attempt_canceled_at_the_arbiter_publishes_there)
{
    open_listening(f, 3, 2);
    fixture_notice(f, 0, HOLDER);
    fixture_cancel(f);
    expect_silent(f, "0..");
}

/* A node that executes it late does so after the others have published it. */
CORE_TEST(a_release_that_is_sent_again_publishes_only_where_the_key_is)
{
    fixture_open(f, 3, 2);
    fixture_grant(f);
    fixture_node_state(f, 0, NODE_DOWN);
    fixture_release(f);
    fixture_node_state(f, 1, NODE_DOWN);
    fixture_node_state(f, 0, NODE_READY);
    fixture_node_state(f, 1, NODE_READY);
    expect_silent(f, "002");
}

/* Or for a little longer than a notice takes. */
CORE_TEST(a_lock_that_yields_waits_for_the_notice)
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

/* A waiter for keys 0, 1 and 2 that the arbiter refused because of these. */
static void open_refused(struct fixture *f, uint64_t refusing)
{
    open_listening(f, 3, 2);
    fixture_notice_key(f, 0, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_refuse_keys(f, 0, HOLDER + 1, refusing);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

CORE_TEST(a_notice_of_a_key_that_did_not_refuse_wakes_nobody)
{
    open_refused(f, 1u << 2);
    for (uint32_t node = 0; node < 3; node++) {
        fixture_notice_key(f, node, 0, HOLDER + 5);
        fixture_notice_key(f, node, 1, HOLDER + 6);
    }
    fixture_pass(f, 20 * MS);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_notice_key(f, 0, 2, HOLDER + 1);
    assert_int_equal(core_attempt(f->lock), 4);
}

CORE_TEST(of_two_keys_that_refused_both_must_be_released)
{
    open_refused(f, 1u << 0 | 1u << 2);
    fixture_notice_key(f, 0, 2, HOLDER + 1);
    assert_int_equal(core_attempt(f->lock), 3);
    fixture_notice_key(f, 0, 0, HOLDER + 2);
    assert_int_equal(core_attempt(f->lock), 4);
    /* The other one refuses now. */
    fixture_refuse_keys(f, 0, HOLDER + 3, 1u << 1);
    fixture_notice_key(f, 0, 0, HOLDER + 4);
    assert_int_equal(core_attempt(f->lock), 4);
    fixture_notice_key(f, 0, 1, HOLDER + 3);
    assert_int_equal(core_attempt(f->lock), 5);
}

/* Nodes that refuse because of different keys: a quorum must be free. */
CORE_TEST(a_notice_wakes_where_a_quorum_may_be_free)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    for (uint32_t i = 0; i < 3; i++) fixture_listening_before(f, i);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse_keys(f, i, HOLDER + i / 2, i < 2 ? 1u << 0 : 1u << 1);
    fixture_answer_releases(f);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_notice_key(f, 0, 1, HOLDER + 1); /* frees one node */
    assert_int_equal(core_attempt(f->lock), 1);
    fixture_notice_key(f, 0, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 2);
}

/* The node granted in the latest attempt; that it refused an earlier one because of another key does not count. */
CORE_TEST(a_node_that_granted_may_do_so_again)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    for (uint32_t i = 0; i < 3; i++) fixture_listening_before(f, i);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse_keys(f, i, HOLDER + i, i == 0 ? 1u << 0 : 1u << 1);
    fixture_answer_releases(f);
    fixture_wake(f);
    fixture_refuse_keys(f, 0, HOLDER, 1u << 0);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse_keys(f, 2, HOLDER + 2, 1u << 1);
    fixture_answer_releases(f);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_notice_key(f, 0, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 3);
}

/* Each node that waits has answered since: only what the arbiter published before is made up for. */
CORE_TEST(a_confirmation_of_another_node_frees_no_key_that_refused)
{
    open_refused(f, 1u << 2);
    fixture_listening(f, 1);
    fixture_notice_key(f, 0, 0, HOLDER + 5);
    fixture_pass(f, 20 * MS);
    assert_int_equal(core_attempt(f->lock), 3);
}

/* The node may have executed the release before the attempt, or behind it. */
CORE_TEST(a_key_that_was_released_during_the_attempt_is_asked_for_again)
{
    static const uint32_t keys[] = {1, 2};

    for (size_t i = 0; i < LENGTH(keys); i++) {
        open_listening(f, 3, 2);
        fixture_notice_key(f, 0, 0, HOLDER);
        fixture_notice_key(f, 0, keys[i], HOLDER + 1);
        fixture_refuse_keys(f, 0, HOLDER + 1, 1u << 2);
        fixture_pass(f, 10 * MS);
        assert_int_equal(core_attempt(f->lock), keys[i] == 2 ? 4 : 3);
    }
    /* Any may have been released before the confirmation. */
    open_listening(f, 3, 2);
    fixture_notice_key(f, 0, 0, HOLDER);
    fixture_listening(f, 0);
    fixture_refuse_keys(f, 0, HOLDER + 1, 1u << 2);
    fixture_pass(f, 10 * MS);
    assert_int_equal(core_attempt(f->lock), 4);
}
