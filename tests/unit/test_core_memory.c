/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_memory.c - when a lock needs the block for attempts, and what it does where there is no memory for it */

#include "fixture.h"

CORE_TEST(an_attempt_waits_for_memory)
{
    fixture_open(f, 3, 2);
    f->no_work = true;
    assert_int_equal(fixture_acquire(f), CORE_OK);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ATTEMPT);
    fixture_begin(f);
    fixture_notice(f, 0, 7);
    fixture_wake(f);
    fixture_pass(f, 60000 * MS);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    fixture_expect_nothing(f);
    f->no_work = false;
    fixture_begin(f);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

CORE_TEST(an_acquire_that_waits_for_memory_can_end)
{
    fixture_open_waiting(f, 3, 2, 500 * MS);
    f->no_work = true;
    assert_int_equal(fixture_acquire_behind(f), CORE_OK);
    fixture_listening(f, 0);
    fixture_node_states(f, "dr.");
    fixture_yield(f);
    fixture_pass(f, 500 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    assert_int_equal(fixture_cancel(f), CORE_OK);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
    assert_true(core_quiet(f->lock));
}

/* Renewal, repair, loss and release have all that they need. */
CORE_TEST(a_lock_that_is_held_needs_no_memory)
{
    fixture_open_held(f, 3, 2);
    assert_false(core_has_work(f->lock));
    f->no_work = true;
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_answers(f, OP_REPAIR, "..y");
    fixture_step(f, 1, f->now_us);
    fixture_drop(f);
    fixture_pass(f, 3000 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_expect_pending(f, OP_RELEASE, "111");
    fixture_answers(f, OP_RELEASE, "uny");
    fixture_step(f, 0, f->now_us);
    fixture_room(f, 1);
    fixture_node_states(f, "dr.");
    fixture_node_states(f, "r..");
    fixture_expect_pending(f, OP_RELEASE, "110");
    assert_int_equal(fixture_latest(f, 0, OP_RELEASE)->command.tag.attempt, 1);
    fixture_answers(f, OP_RELEASE, "yy.");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_true(core_quiet(f->lock));
    assert_false(core_has_work(f->lock));
}

/* It keeps the block until the last vote is there, or a renewal asks that node anyway. */
CORE_TEST(late_votes_keep_the_block)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_true(core_has_work(f->lock));
    fixture_answers(f, OP_ACQUIRE, "..y");
    assert_false(core_has_work(f->lock));
    assert_int_equal(core_counted(f->lock), 3);
}

/* The next attempt needs the key's place, which its release has had so far. */
CORE_TEST(the_next_attempt_takes_over_what_is_owed)
{
    struct core_token first;

    fixture_open_held(f, 3, 2);
    first = *core_token_now(f->lock);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answers(f, OP_RELEASE, "yy.");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_false(core_has_work(f->lock));
    assert_int_equal(core_debts(f->lock, 2), 1);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_debts(f->lock, 2), 1);
    /* It is sent again, for the attempt that it is of. */
    fixture_node_states(f, "..d");
    fixture_node_states(f, "..r");
    assert_int_equal(fixture_latest(f, 2, OP_RELEASE)->command.tag.attempt, 1);
    assert_memory_equal(&fixture_latest(f, 2, OP_RELEASE)->command.token, &first, sizeof(first));
    fixture_replay(f, fixture_latest(f, 2, OP_RELEASE), OUTCOME_MISSING);
    assert_int_equal(core_debts(f->lock, 2), 0);
    assert_false(core_has_work(f->lock));
    assert_int_equal(core_counted(f->lock), 3);
}
