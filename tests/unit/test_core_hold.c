/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_hold.c - holding: renewal, repair, loss, extend and release
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

static struct fixture *open_held(uint32_t n, uint32_t quorum)
{
    struct core_config config = fixture_config(n, quorum);
    struct fixture *f = fixture_open(&config);

    fixture_grant(f);
    return f;
}

static void answer_all(struct fixture *f, enum core_op op, enum core_outcome outcome)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        if (fixture_asked(f, i, op) != 0) fixture_answer(f, i, op, outcome);
    }
}

static void renewal_asks_every_node_in_one_burst(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS - 1);
    assert_int_equal(fixture_asked(f, 0, CORE_OP_EXTEND), 0);
    fixture_pass(f, 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(fixture_latest(f, i, CORE_OP_EXTEND)->command.tag.sent_us,
                         FIXTURE_BEGIN_US + 1000 * MS);
    }
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS); /* one yes is no renewal */
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 3968 * MS);
    assert_int_equal(f->notes & CORE_NOTE_RENEWED, CORE_NOTE_RENEWED);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_YES);
    fixture_pass(f, 1000 * MS); /* the next is due by the begin of this one */
    assert_int_equal(fixture_asked(f, 1, CORE_OP_EXTEND), 1);
    fixture_close(f);
}

static void work_longer_than_the_lease_is_held(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    for (uint32_t i = 0; i < 30; i++) {
        fixture_pass(f, 1000 * MS);
        answer_all(f, CORE_OP_EXTEND, CORE_YES);
        assert_true(core_told_held(f->lock));
    }
    fixture_expect_nothing(f);
    fixture_close(f);
}

static void a_failed_renewal_is_tried_again_until_lost_at(void **state)
{
    struct fixture *f = open_held(3, 2);
    uint32_t rounds = 0;

    (void)state;
    while (core_told_held(f->lock)) {
        if (fixture_asked(f, 0, CORE_OP_EXTEND) != 0) rounds++;
        answer_all(f, CORE_OP_EXTEND, CORE_UNKNOWN);
        fixture_pass(f, 10 * MS);
    }
    assert_in_range(rounds, 10, 60); /* again and again, but not without a pause */
    assert_int_equal(f->notes & CORE_NOTE_RENEW_FAILED, CORE_NOTE_RENEW_FAILED);
    assert_in_range(f->now_us, FIXTURE_BEGIN_US + 2904 * MS, FIXTURE_BEGIN_US + 2914 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_close(f);
}

static void a_node_that_comes_back_helps_at_once(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_level(f, 1, CORE_NODE_DOWN);
    fixture_level(f, 2, CORE_NODE_DOWN);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_pass(f, 300 * MS);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_level(f, 1, CORE_NODE_READY);
    fixture_pass(f, 0);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_YES);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    assert_true(core_valid_until(f->lock) > FIXTURE_BEGIN_US + 4000 * MS);
    fixture_close(f);
}

static void loss_is_told_before_validity_ends(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) fixture_level(f, i, CORE_NODE_DOWN);
    fixture_pass(f, 2904 * MS - 1);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 64 * MS + 1);
    fixture_pass(f, 1);
    assert_true(f->update.dispatch);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    assert_false(core_told_held(f->lock));
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_expect_nothing(f); /* once */
    fixture_close(f);
}

static void valid_us_is_zero_at_lost_at_whatever_was_told(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    assert_int_equal(core_valid_us(f->lock, FIXTURE_BEGIN_US + 2904 * MS - 1), 64 * MS + 1);
    assert_int_equal(core_valid_us(f->lock, FIXTURE_BEGIN_US + 2904 * MS), 0);
    fixture_close(f);
}

static void late_answers_do_not_wake_the_dead(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_sleep(f, 1904 * MS); /* the process stood still; answers came meanwhile */
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    assert_false(core_told_held(f->lock));
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_expect_nothing(f);
    fixture_close(f);
}

static void a_stopped_process_hears_of_its_loss_first(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    assert_int_equal(fixture_extend(f, 0), CORE_OK);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_YES);
    /* The extend has succeeded, but before that is told the lock is lost: it must not be told as a success. */
    fixture_sleep(f, 10000 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_expect(f, CORE_TELL_EXTENDED, CORE_LOST_LOCK);
    fixture_expect_nothing(f);
    fixture_close(f);
}

static void a_lock_gone_from_a_majority_is_lost_at_once(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_MISSING);
    assert_true(core_told_held(f->lock));
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_OTHER);
    assert_false(core_told_held(f->lock));
    fixture_expect_lost(f, CORE_LOSS_GONE);
    fixture_close(f);
}

static void one_lost_node_loses_a_lock_on_all(void **state)
{
    struct fixture *f = open_held(3, 3);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_MISSING);
    fixture_expect_lost(f, CORE_LOSS_GONE);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(fixture_asked(f, i, CORE_OP_REPAIR), 0);
    fixture_close(f);
}

static void repair_needs_a_quorum_of_its_round(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(fixture_asked(f, 2, CORE_OP_REPAIR), 0);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(fixture_asked(f, 2, CORE_OP_REPAIR), 1);
    assert_int_equal(f->notes & CORE_NOTE_DEGRADED, CORE_NOTE_DEGRADED);
    fixture_answer(f, 2, CORE_OP_REPAIR, CORE_YES);
    assert_int_equal(f->notes & CORE_NOTE_REPAIRED, CORE_NOTE_REPAIRED);
    assert_int_equal(core_counted(f->lock), 2); /* it counts from the next round on */
    fixture_pass(f, 1000 * MS);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_counted(f->lock), 3);
    assert_int_equal(f->notes & CORE_NOTE_WHOLE, CORE_NOTE_WHOLE);
    fixture_close(f);
}

/* The key was given again after it was found missing: another word of the time before does not end the lock. */
static void an_absence_from_before_a_repair_says_nothing(void **state)
{
    struct fixture *f = open_held(3, 2);
    struct fixture_sent before;

    (void)state;
    fixture_pass(f, 1000 * MS);
    before = *fixture_latest(f, 2, CORE_OP_EXTEND);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 2, CORE_OP_REPAIR, CORE_YES);
    fixture_replay(f, &before, CORE_MISSING);
    fixture_pass(f, 1000 * MS);
    /* One is gone, not two. */
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_MISSING);
    fixture_expect_nothing(f);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_counted(f->lock), 2);
    fixture_close(f);
}

static void somebody_elses_key_is_not_repaired(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_OTHER);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(fixture_asked(f, 2, CORE_OP_REPAIR), 0);
    fixture_close(f);
}

static void a_repair_that_fails_waits_for_the_next_round(void **state)
{
    static const enum core_outcome outcomes[] = {CORE_UNSENT, CORE_ERROR, CORE_UNKNOWN, CORE_OTHER};

    (void)state;
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        struct fixture *f = open_held(3, 2);

        fixture_pass(f, 1000 * MS);
        fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
        answer_all(f, CORE_OP_EXTEND, CORE_YES);
        fixture_answer(f, 2, CORE_OP_REPAIR, outcomes[i]);
        assert_int_equal(fixture_asked(f, 2, CORE_OP_REPAIR), 0);
        fixture_pass(f, 1000 * MS);
        fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
        answer_all(f, CORE_OP_EXTEND, CORE_YES);
        assert_int_equal(fixture_asked(f, 2, CORE_OP_REPAIR), 1);
        fixture_close(f);
    }
}

static void a_repair_by_an_unknown_script_is_sent_whole(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 2, CORE_OP_REPAIR, CORE_NOSCRIPT);
    assert_int_equal(fixture_asked(f, 2, CORE_OP_REPAIR), 1);
    assert_true(fixture_latest(f, 2, CORE_OP_REPAIR)->command.whole_script);
    fixture_answer(f, 2, CORE_OP_REPAIR, CORE_YES);
    assert_int_equal(f->notes & CORE_NOTE_REPAIRED, CORE_NOTE_REPAIRED);
    fixture_close(f);
}

/* A node that was given the key again, and whose answer is not known, may well hold it: no definite loss. */
static void a_repair_of_unknown_outcome_is_no_absence(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 2, CORE_OP_REPAIR, CORE_UNKNOWN);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_MISSING);
    fixture_expect_nothing(f);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_YES); /* it does */
    fixture_expect_nothing(f);
    assert_true(core_told_held(f->lock));
    assert_int_equal(core_counted(f->lock), 2);
    fixture_close(f);
}

static void a_repair_that_met_another_is_an_absence(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 2, CORE_OP_REPAIR, CORE_OTHER);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_MISSING);
    fixture_expect_lost(f, CORE_LOSS_GONE);
    fixture_close(f);
}

static void a_node_that_was_away_is_repaired_and_released(void **state)
{
    struct core_config config = fixture_config(3, 2);
    struct fixture *f = fixture_open(&config);

    (void)state;
    fixture_level(f, 2, CORE_NODE_DOWN);
    fixture_acquire(f);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_answer(f, 1, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
    fixture_level(f, 2, CORE_NODE_READY);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_MISSING);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 2, CORE_OP_REPAIR, CORE_UNKNOWN);
    fixture_release(f);
    assert_int_equal(fixture_asked(f, 2, CORE_OP_RELEASE), 1); /* it may hold the key */
    fixture_close(f);
}

static void extend_lengthens_and_never_shortens(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    assert_int_equal(fixture_extend(f, 2999 * MS), CORE_INVAL);
    assert_int_equal(fixture_extend(f, 6000 * MS), CORE_OK);
    assert_int_equal(fixture_extend(f, 6000 * MS), CORE_BUSY);
    assert_int_equal(fixture_release(f), CORE_BUSY);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_YES);
    fixture_expect(f, CORE_TELL_EXTENDED, CORE_OK);
    assert_int_equal(core_lease_us(f->lock), 6000 * MS);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + (6000 - 62) * MS);
    assert_int_equal(fixture_extend(f, 3000 * MS), CORE_INVAL);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_YES);
    fixture_pass(f, 1000 * MS); /* later renewals use it too */
    assert_int_equal(fixture_latest(f, 0, CORE_OP_EXTEND)->command.tag.lease_us, 6000 * MS);
    fixture_close(f);
}

static void an_extend_without_quorum_changes_nothing(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_extend(f, 6000 * MS);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_UNKNOWN);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_UNKNOWN);
    fixture_expect(f, CORE_TELL_EXTENDED, CORE_NOQUORUM);
    assert_true(core_told_held(f->lock));
    assert_int_equal(core_lease_us(f->lock), 3000 * MS);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
    fixture_close(f);
}

static void a_canceled_extend_leaves_the_lock_held(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_extend(f, 6000 * MS);
    assert_int_equal(fixture_cancel(f), CORE_OK);
    fixture_expect(f, CORE_TELL_EXTENDED, CORE_CANCELED);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_expect_nothing(f);
    assert_true(core_told_held(f->lock));
    assert_int_equal(core_lease_us(f->lock), 3000 * MS);
    fixture_close(f);
}

/* The acquire's answer of a slow node comes while a renewal already asks it: it is no answer to the renewal. */
static void a_late_acquire_does_not_settle_a_renewal(void **state)
{
    struct core_config config = fixture_config(3, 2);
    struct fixture *f = fixture_open(&config);

    (void)state;
    fixture_acquire(f);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_answer(f, 1, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
    fixture_extend(f, 0);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 1, CORE_OP_EXTEND, CORE_UNKNOWN);
    fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect_nothing(f); /* node 2 has not answered the extend */
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_YES);
    fixture_expect(f, CORE_TELL_EXTENDED, CORE_OK);
    fixture_close(f);
}

static void max_hold_ends_renewal(void **state)
{
    struct core_config config = fixture_config(3, 2);
    struct fixture *f;

    (void)state;
    config.max_hold_us = 1500 * MS;
    f = fixture_open(&config);
    fixture_grant(f);
    fixture_pass(f, 1000 * MS);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_pass(f, 1500 * MS);
    assert_int_equal(fixture_asked(f, 0, CORE_OP_EXTEND), 0);
    assert_int_equal(fixture_extend(f, 0), CORE_STATE);
    fixture_pass(f, 1404 * MS);
    fixture_expect_lost(f, CORE_LOSS_MAX_HOLD);
    fixture_close(f);
}

static void without_renewal_it_holds_for_one_lease(void **state)
{
    struct core_config config = fixture_config(3, 2);
    struct fixture *f;

    (void)state;
    config.renew_us = CORE_NEVER;
    f = fixture_open(&config);
    fixture_grant(f);
    fixture_pass(f, 2904 * MS);
    assert_int_equal(fixture_asked(f, 0, CORE_OP_EXTEND), 0);
    fixture_expect_lost(f, CORE_LOSS_NOT_RENEWED);
    fixture_close(f);
}

static void release_is_told_when_a_quorum_answered(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    assert_int_equal(fixture_release(f), CORE_OK);
    assert_false(core_told_held(f->lock));
    assert_int_equal(fixture_release(f), CORE_BUSY);
    fixture_answer(f, 0, CORE_OP_RELEASE, CORE_YES);
    fixture_expect_nothing(f);
    fixture_answer(f, 1, CORE_OP_RELEASE, CORE_YES);
    fixture_expect(f, CORE_TELL_RELEASED, CORE_OK);
    assert_false(core_quiet(f->lock)); /* node 2 still owes */
    fixture_answer(f, 2, CORE_OP_RELEASE, CORE_YES);
    assert_true(core_quiet(f->lock));
    assert_int_equal(fixture_release(f), CORE_STATE);
    fixture_close(f);
}

static void release_ends_after_one_node_timeout(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    fixture_answer(f, 0, CORE_OP_RELEASE, CORE_YES);
    fixture_pass(f, 100 * MS);
    fixture_expect(f, CORE_TELL_RELEASED, CORE_NOQUORUM);
    fixture_expect_nothing(f);
    fixture_answer(f, 1, CORE_OP_RELEASE, CORE_YES);
    fixture_expect_nothing(f);
    fixture_close(f);
}

static void an_acquire_does_not_wait_for_the_release(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    assert_int_equal(fixture_asked(f, 0, CORE_OP_ACQUIRE), 1);
    answer_all(f, CORE_OP_RELEASE, CORE_YES);
    answer_all(f, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_TELL_RELEASED, CORE_OK);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
    assert_true(core_told_held(f->lock));
    fixture_close(f);
}

static void a_grant_ends_the_release_before_it(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    answer_all(f, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_TELL_RELEASED, CORE_NOQUORUM);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
    /* What is held can be released. */
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answer_releases(f);
    fixture_expect(f, CORE_TELL_RELEASED, CORE_OK);
    fixture_expect_nothing(f);
    fixture_close(f);
}

static void no_loss_is_told_after_release(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_sleep(f, 10000 * MS);
    assert_int_equal(fixture_release(f), CORE_OK); /* it had expired: harmless, and told */
    answer_all(f, CORE_OP_RELEASE, CORE_MISSING);
    assert_true(fixture_told(f).expired);
    assert_int_equal(f->update.tell.kind, CORE_TELL_RELEASED);
    fixture_expect_nothing(f);
    fixture_close(f);
}

static void a_lost_lock_is_acquired_anew(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) fixture_level(f, i, CORE_NODE_DOWN);
    fixture_pass(f, 2904 * MS);
    assert_int_equal(fixture_acquire(f), CORE_STATE); /* its loss is told first */
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_drop(f);
    for (uint32_t i = 0; i < 3; i++) fixture_level(f, i, CORE_NODE_READY);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(fixture_asked(f, i, CORE_OP_RELEASE), 1);
    answer_all(f, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
    fixture_close(f);
}

static void an_extend_asked_again_prolongs_the_debt(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_pass(f, 1000 * MS);
    fixture_pass(f, 90 * MS);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_NOSCRIPT);
    assert_true(fixture_latest(f, 0, CORE_OP_EXTEND)->command.whole_script);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    fixture_release(f);
    for (uint32_t i = 0; i < 3; i++) fixture_level(f, i, CORE_NODE_DOWN);
    /* Asked at 1090 ms, the key may live until 4090 ms and a little. */
    fixture_pass(f, (3030 - 90) * MS + 89 * MS);
    assert_int_equal(core_debts(f->lock, 0), 1);
    fixture_pass(f, 2 * MS);
    fixture_pass(f, 90 * MS);
    assert_int_equal(core_debts(f->lock, 0), 0);
    fixture_close(f);
}

static void a_quarantined_node_extends(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_level(f, 0, CORE_NODE_CONNECTING);
    fixture_level(f, 0, CORE_NODE_QUARANTINED);
    fixture_level(f, 1, CORE_NODE_DOWN);
    fixture_pass(f, 1000 * MS);
    fixture_answer(f, 0, CORE_OP_EXTEND, CORE_YES);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 3968 * MS);
    fixture_close(f);
}

static void answers_of_an_old_connection_do_not_count(void **state)
{
    struct fixture *f = open_held(3, 2);
    struct fixture_sent old;

    (void)state;
    fixture_level(f, 1, CORE_NODE_DOWN);
    fixture_pass(f, 1000 * MS);
    old = *fixture_latest(f, 0, CORE_OP_EXTEND);
    fixture_level(f, 0, CORE_NODE_CONNECTING);
    fixture_level(f, 0, CORE_NODE_READY);
    fixture_replay(f, &old, CORE_YES);
    fixture_answer(f, 2, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
    fixture_replay(f, &old, CORE_MISSING);
    assert_true(core_told_held(f->lock));
    fixture_close(f);
}

static void loss_ends_an_extend_in_flight(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_extend(f, 0);
    fixture_pass(f, 2904 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_expect(f, CORE_TELL_EXTENDED, CORE_LOST_LOCK);
    fixture_expect_nothing(f);
    fixture_close(f);
}

static void a_release_whose_answer_is_lost_is_paid_again(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_release(f);
    fixture_answer(f, 0, CORE_OP_RELEASE, CORE_UNKNOWN);
    fixture_level(f, 0, CORE_NODE_CONNECTING);
    assert_int_equal(core_debts(f->lock, 0), 1);
    fixture_level(f, 0, CORE_NODE_READY);
    fixture_answer(f, 0, CORE_OP_RELEASE, CORE_MISSING);
    assert_int_equal(core_debts(f->lock, 0), 0);
    fixture_close(f);
}

static void a_shorter_renewal_does_not_take_validity_away(void **state)
{
    struct fixture *f = open_held(3, 2);

    (void)state;
    fixture_extend(f, 6000 * MS);
    fixture_cancel(f);
    fixture_expect(f, CORE_TELL_EXTENDED, CORE_CANCELED);
    answer_all(f, CORE_OP_EXTEND, CORE_YES); /* the nodes did it all the same */
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + (6000 - 62) * MS);
    fixture_pass(f, 1000 * MS);
    assert_int_equal(fixture_latest(f, 0, CORE_OP_EXTEND)->command.tag.lease_us, 3000 * MS);
    answer_all(f, CORE_OP_EXTEND, CORE_YES);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + (6000 - 62) * MS);
    fixture_close(f);
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
