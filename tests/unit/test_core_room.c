/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_room.c - what a lock does while the nodes have no room for its commands */

#include "fixture.h"

static void open_crowded(struct fixture *f, uint64_t wait_us)
{
    fixture_open_waiting(f, 3, 2, wait_us);
    f->no_attempt = true;
}

CORE_TEST(an_attempt_waits_for_room_at_the_nodes)
{
    open_crowded(f, 0);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ATTEMPT);
    assert_false(core_listens(f->lock)); /* no holder is in its way */
    fixture_pass(f, 60000 * MS);
    fixture_expect_nothing(f);
    fixture_begin(f);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_NOTHING);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* The lease counts from the request, not from the call. */
    assert_int_equal(core_valid_us(f->lock, f->now_us), 2968 * MS);
}

CORE_TEST(the_wait_bound_counts_the_wait_for_room)
{
    open_crowded(f, 500 * MS);
    fixture_acquire(f);
    fixture_pass(f, 499 * MS);
    fixture_expect_nothing(f);
    fixture_pass(f, 1 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_NOTHING);
    fixture_begin(f);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
}

static void hear_elsewhere(struct fixture *f)
{
    fixture_notice(f, 1, HOLDER);
}

static void come_back(struct fixture *f)
{
    fixture_node_state(f, 2, NODE_READY);
}

/* The caller says when there is room; a timer until then would be for nothing. */
CORE_TEST(nothing_that_a_lock_hears_before_its_first_attempt_sets_a_deadline)
{
    static void (*const events[])(struct fixture *) = {hear_elsewhere, come_back, fixture_yield, fixture_wake};

    for (size_t i = 0; i < LENGTH(events); i++) {
        open_crowded(f, CORE_NEVER);
        fixture_acquire_after(f, CORE_SEEN_NOQUORUM);
        events[i](f);
        assert_true(core_deadline(f->lock) == CORE_NEVER);
        assert_int_equal(core_wants(f->lock), CORE_WANTS_ATTEMPT);
    }
}

/* Without them a token could be another's. */
CORE_TEST(an_attempt_waits_for_random_bytes)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    f->no_random = true;
    assert_int_equal(fixture_acquire(f), CORE_OK);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ATTEMPT);
    f->no_random = false;
    fixture_begin(f);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
}

CORE_TEST(a_lock_that_waits_for_room_ignores_polls_and_notices)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_refuse_all(f, 7, 400 * (int64_t)MS);
    fixture_answer_releases(f);
    f->no_attempt = true;
    fixture_pass(f, 2000 * MS);
    assert_int_equal(core_rounds(f->lock), 1);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ATTEMPT);
    assert_true(core_listens(f->lock));
    /* It keeps its turn. */
    f->no_attempt = false;
    for (uint32_t i = 0; i < 3; i++) fixture_notice(f, i, 7);
    fixture_pass(f, 2000 * MS);
    assert_int_equal(core_rounds(f->lock), 1);
    fixture_begin(f);
    assert_int_equal(core_rounds(f->lock), 2);
}

CORE_TEST(a_renewal_waits_for_room_but_loss_does_not)
{
    fixture_open_waiting(f, 3, 2, 0);
    fixture_grant(f);
    f->no_round = true;
    fixture_pass(f, 1500 * MS);
    fixture_expect_pending(f, OP_EXTEND, "000");
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ROUND);
    fixture_begin(f);
    fixture_expect_pending(f, OP_EXTEND, "111");
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(core_valid_us(f->lock, f->now_us), 2968 * MS);
    f->no_round = true;
    fixture_pass(f, 2903 * MS);
    fixture_expect_nothing(f);
    fixture_pass(f, 1 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_NOTHING);
}

CORE_TEST(an_extend_waits_for_room)
{
    fixture_open_waiting(f, 3, 2, 0);
    fixture_grant(f);
    f->no_round = true;
    assert_int_equal(fixture_extend(f, 5000 * MS), CORE_OK);
    fixture_expect_pending(f, OP_EXTEND, "000");
    assert_int_equal(fixture_release(f), CORE_BUSY);
    fixture_begin(f);
    fixture_answers(f, OP_EXTEND, "yyy");
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_OK);
    assert_int_equal(core_lease_us(f->lock), 5000 * MS);
}

CORE_TEST(a_release_waits_for_room)
{
    fixture_open_waiting(f, 3, 2, 0);
    fixture_grant(f);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answers(f, OP_RELEASE, "nnn");
    /* Longer than the node timeout, which counts from the sending. */
    fixture_pass(f, 1000 * MS);
    fixture_expect_nothing(f);
    for (uint32_t i = 0; i < 3; i++) fixture_room(f, i);
    fixture_expect_pending(f, OP_RELEASE, "111");
    fixture_pass(f, 99 * MS);
    fixture_expect_nothing(f);
    fixture_answers(f, OP_RELEASE, "yyy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_true(core_quiet(f->lock));
}

CORE_TEST(the_node_timeout_of_a_release_counts_from_its_sending)
{
    fixture_open_waiting(f, 3, 2, 0);
    fixture_grant(f);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, "nnn");
    fixture_pass(f, 1000 * MS);
    for (uint32_t i = 0; i < 3; i++) fixture_room(f, i);
    fixture_pass(f, 100 * MS);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_NOQUORUM);
}

CORE_TEST(after_a_suspension_answers_are_read_before_a_release_times_out)
{
    fixture_open_waiting(f, 3, 2, 0);
    fixture_grant(f);
    fixture_release(f);
    fixture_sleep(f, 400 * MS);
    fixture_pass(f, 1 * MS);
    fixture_expect_nothing(f);
    fixture_answers(f, OP_RELEASE, "yyy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
}

/* It would refuse because of our own key. */
CORE_TEST(a_node_with_an_unsent_release_is_not_asked)
{
    fixture_open_waiting(f, 3, 2, 0);
    fixture_grant(f);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, "nyy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_acquire(f);
    fixture_expect_pending(f, OP_ACQUIRE, "01.");
}

/* The lock is held: a renewal repairs it there. */
CORE_TEST(a_node_that_comes_late_is_not_asked_without_room)
{
    fixture_open_waiting(f, 3, 2, 0);
    fixture_node_state(f, 2, NODE_CONNECTING);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    f->no_attempt = true;
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(fixture_pending(f, 2, OP_ACQUIRE), 0);
    f->no_attempt = false;
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(fixture_pending(f, 2, OP_ACQUIRE), 1);
}
