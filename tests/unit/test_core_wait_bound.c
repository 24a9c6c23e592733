/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_wait_bound.c - how a wait ends without a grant, and how a lock waits behind another of its process
 */

#include "fixture.h"

#define SRTT_US  ((uint64_t)500)
#define GRACE_US (2 * SRTT_US + 1000) /* how long the arbiter may take */

/* Only the arbiter was asked, so the node states decide. */
CORE_TEST(the_verdict_tells_outage_from_contention)
{
    static const struct {
        bool before, after; /* are there enough nodes then? */
        int status;
    } cases[] = {{true, true, CORE_HELD_BY_OTHER}, {true, false, CORE_TIMEDOUT}, {false, false, CORE_NOQUORUM}};

    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture_open_waiting(f, 3, 2, 3000 * MS);
        for (uint32_t node = 1; node < 3 && !cases[i].before; node++) fixture_node_state(f, node, NODE_DOWN);
        fixture_acquire(f);
        for (uint32_t node = 0; node < 3; node++) {
            if (fixture_pending(f, node, OP_ACQUIRE) > 0) fixture_refuse(f, node, HOLDER, -1);
        }
        for (uint32_t node = 1; node < 3 && !cases[i].after; node++) fixture_node_state(f, node, NODE_DOWN);
        /* Else it would sleep past its bound. */
        fixture_node_state(f, 0, NODE_READY);
        fixture_pass_to_attempt(f);
        fixture_refuse(f, 0, HOLDER, -1);
        assert_int_equal(core_wait_verdict(f->lock), cases[i].status);
        fixture_pass(f, FIXTURE_BEGIN_US + 3000 * MS - f->now_us);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, cases[i].status);
    }
}

CORE_TEST(a_late_grant_and_then_the_bound_is_a_timeout)
{
    fixture_open_waiting(f, 3, 2, 5000 * MS);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_sleep(f, 4998 * MS);
    fixture_expect_nothing(f);
    while (core_phase_now(f->lock) == CORE_WAITING && core_deadline(f->lock) < FIXTURE_BEGIN_US + 5000 * MS)
        fixture_pass_to_attempt(f);
    fixture_pass(f, FIXTURE_BEGIN_US + 5000 * MS - f->now_us);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
}

CORE_TEST(a_successor_keeps_what_was_asked_and_has_its_own_bound)
{
    fixture_open_waiting(f, 3, 2, 60 * MS);
    assert_int_equal(fixture_hand_off(f, FIXTURE_BEGIN_US, 100 * MS), CORE_STATE);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, 28000);
    fixture_answer_releases(f);
    fixture_pass_to_attempt(f);
    assert_int_equal(fixture_hand_off(f, FIXTURE_BEGIN_US + 5 * MS, 100 * MS), 0);
    fixture_expect_alone(f, 0);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_pass(f, FIXTURE_BEGIN_US + 104 * MS - f->now_us);
    fixture_expect_nothing(f);
    fixture_pass(f, 1 * MS);
    /* The wait has ended, although the owner is not notified yet. */
    assert_int_equal(fixture_hand_off(f, FIXTURE_BEGIN_US, 900 * MS), CORE_STATE);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}

/* A lock that takes over a wait takes over what was in its way. */
CORE_TEST(what_was_in_the_way_before_counts_in_the_verdict)
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

    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture_open_waiting(f, 3, 2, 60 * MS);
        for (uint32_t node = 0; node < 3 && !cases[i].held; node++) fixture_node_state(f, node, NODE_DOWN);
        fixture_acquire_after(f, cases[i].before);
        for (uint32_t node = 0; node < 3 && cases[i].held; node++) fixture_refuse(f, node, HOLDER, -1);
        assert_int_equal(core_seen(f->lock), cases[i].before | (cases[i].held ? CORE_SEEN_HELD : CORE_SEEN_NOQUORUM));
        fixture_pass(f, 60 * MS);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, cases[i].status);
    }
}

/* Each brings a lock into another phase of its acquire. */
static void to_asking_all(struct fixture *f)
{
    fixture_acquire(f);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
}

static void to_failed(struct fixture *f)
{
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "oo.");
}

static void to_waiting(struct fixture *f)
{
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, 20 * MS);
}

static void to_asking_arbiter(struct fixture *f)
{
    to_waiting(f);
    fixture_pass_to_attempt(f);
}

static void to_asking_rest(struct fixture *f)
{
    to_asking_arbiter(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
}

static void to_silent_arbiter(struct fixture *f)
{
    to_asking_arbiter(f);
    fixture_pass(f, GRACE_US);
}

static void to_granted(struct fixture *f)
{
    to_asking_rest(f);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
}

static void to_behind(struct fixture *f)
{
    fixture_acquire_behind(f);
}

static void to_woken(struct fixture *f)
{
    to_behind(f);
    fixture_wake(f);
}

CORE_TEST(cancel_leaves_nothing_in_any_phase)
{
    static void (*const scripts[])(struct fixture *) = {to_asking_all,  to_failed,         to_waiting,
                                                        to_asking_rest, to_asking_arbiter, to_silent_arbiter,
                                                        to_granted,     to_behind,         to_woken};

    for (size_t i = 0; i < LENGTH(scripts); i++) {
        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        scripts[i](f);
        assert_int_equal(fixture_cancel(f), CORE_OK);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
        fixture_expect_nothing(f);
        assert_false(core_listens(f->lock));
        assert_int_equal(fixture_cancel(f), CORE_STATE);
        /* Late answers change nothing: each acquire is followed by its release at once. */
        for (uint32_t node = 0; node < 3; node++) {
            while (fixture_pending(f, node, OP_ACQUIRE) > 0) {
                assert_true(fixture_pending(f, node, OP_RELEASE) > 0);
                fixture_answer(f, node, OP_ACQUIRE, OUTCOME_YES);
            }
            while (fixture_pending(f, node, OP_PEEK) > 0) {
                fixture_answer(f, node, OP_PEEK, OUTCOME_MISSING);
            }
        }
        fixture_answer_releases(f);
        fixture_expect_nothing(f);
        assert_true(core_quiet(f->lock));
        assert_int_equal(core_deadline(f->lock), CORE_NEVER);
    }
}

CORE_TEST(a_lock_behind_another_of_its_process_asks_no_node)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    assert_int_equal(fixture_acquire_behind(f), CORE_OK);
    assert_int_equal(f->n_sent, 0);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_true(core_listens(f->lock));
    /* The release of the other may be missed: the arbiter is polled, and asked for the holder. */
    assert_in_range(fixture_pass_to_attempt(f), 50 * MS, 100 * MS);
    fixture_expect_alone(f, 0);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.explain);
}

CORE_TEST(a_bound_reached_behind_another_is_contention)
{
    fixture_open_waiting(f, 3, 2, 40 * MS);
    fixture_acquire_behind(f);
    fixture_pass(f, 40 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_true(core_quiet(f->lock));
}

/* An attempt that asks one node has no votes of the others. */
CORE_TEST(votes_of_the_attempt_before_are_shown)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_answer_with(f, 2, OP_ACQUIRE,
                        &(struct core_reply){.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_AUTH, .ttl_us = -2});
    fixture_refuse(f, 0, HOLDER, 20 * MS);
    fixture_refuse(f, 1, HOLDER, 20 * MS);
    fixture_pass_to_attempt(f);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_PENDING);
    assert_int_equal(core_vote(f->lock, 1), CORE_VOTE_OTHER);
    assert_int_equal(core_vote(f->lock, 2), CORE_VOTE_FAILED);
    fixture_refuse(f, 0, HOLDER, 20 * MS);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_OTHER);
    assert_int_equal(core_vote(f->lock, 2), CORE_VOTE_FAILED);
    /* But not votes of another acquire. */
    fixture_cancel(f);
    fixture_completion(f);
    fixture_node_state(f, 1, NODE_CONNECTING);
    fixture_acquire(f);
    assert_int_equal(core_vote(f->lock, 1), CORE_VOTE_NONE);
}
