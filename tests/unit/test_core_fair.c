/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_fair.c - fair locks: which node is asked, and when
 */
#include "core/arbiter.h"
#include "fixture.h"

#define FIRST_MS 250u /* how long a first connection is waited for */
#define LATE_MS  200u /* longer than an arbiter is waited for */

static void open_fair(struct fixture *f, uint64_t wait_us)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.wait_us = wait_us;
    config.fair = true;
    fixture_open_config(f, &config);
}

/* The arbiter refuses: after so many releases it may be our turn, and so many turns of others come before ours. */
static void refuse_until(struct fixture *f, uint32_t node, uint32_t turns, uint32_t before, int64_t ttl_us)
{
    struct core_reply reply = {
        .outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = ttl_us, .turns = turns, .before = before};

    fixture_answer_with(f, node, OP_ACQUIRE, &reply);
}

static void refuse(struct fixture *f, uint32_t node, uint32_t turns, uint32_t before)
{
    refuse_until(f, node, turns, before, -1);
}

CORE_TEST(the_first_attempt_asks_the_arbiter_alone_and_stands_in_its_queue)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    fixture_expect_alone(f, 0);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.queues);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.queued_us > 0);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect_pending(f, OP_ACQUIRE, "011");
    for (uint32_t i = 1; i < 3; i++) assert_false(fixture_latest(f, i, OP_ACQUIRE)->command.queues);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* It was not in a queue. */
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(fixture_pending(f, i, OP_INTEND), 0);
}

CORE_TEST(a_lock_that_waited_leaves_the_queue_when_it_is_granted)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    refuse(f, 0, 1, 0);
    fixture_pass_to_attempt(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    assert_int_equal(fixture_pending(f, 0, OP_INTEND), 0);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_expect_pending(f, OP_INTEND, "100");
    assert_true(fixture_latest(f, 0, OP_INTEND)->command.queues);
}

/* The arbiter refuses until it is doubted; the other nodes have the key free. */
static void refuse_alone_until_asked(struct fixture *f)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 2; i++) {
        refuse(f, 0, 1, 0);
        fixture_pass_to_attempt(f);
        fixture_expect_alone(f, 0);
    }
    refuse(f, 0, 1, 0);
    fixture_expect_pending(f, OP_ACQUIRE, "011");
}

static void refuse_alone(struct fixture *f)
{
    refuse_alone_until_asked(f);
    fixture_answers(f, OP_ACQUIRE, ".yy");
}

CORE_TEST(a_lock_without_the_arbiters_key_asks_it_for_the_key_before_it_leaves_its_queue)
{
    static const enum outcome outcomes[] = {OUTCOME_YES, OUTCOME_OTHER, OUTCOME_UNKNOWN};

    for (size_t i = 0; i < LENGTH(outcomes); i++) {
        refuse_alone(f);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
        fixture_expect_pending(f, OP_ACQUIRE, "100");
        assert_false(fixture_latest(f, 0, OP_ACQUIRE)->command.queues);
        assert_true(fixture_latest(f, 0, OP_ACQUIRE) < fixture_latest(f, 0, OP_INTEND)); /* in the order of sending */
        fixture_answer(f, 0, OP_ACQUIRE, outcomes[i]);
        assert_true(core_notified_held(f->lock));
        assert_int_equal(core_counted(f->lock), outcomes[i] == OUTCOME_YES ? 3 : 2);
        fixture_expect_pending(f, OP_ACQUIRE, "000"); /* once */
        fixture_release(f);
        for (uint32_t node = 1; node < 3; node++) assert_int_equal(fixture_pending(f, node, OP_RELEASE), 1);
        assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 1);
    }
}

/* It has gone since it refused. */
CORE_TEST(an_arbiter_that_is_away_is_not_asked_for_the_key)
{
    refuse_alone_until_asked(f);
    fixture_node_state(f, 0, NODE_DOWN);
    fixture_answers(f, OP_ACQUIRE, ".yy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
}

CORE_TEST(a_lock_that_tries_once_does_not_queue)
{
    open_fair(f, 0);
    fixture_acquire(f);
    fixture_expect_alone(f, 0);
    assert_int_equal(fixture_latest(f, 0, OP_ACQUIRE)->command.queued_us, 0);
    refuse(f, 0, 1, 1);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}

/* Its place is known, and the node remembers it for twice as long. A lock that hears of no release must ask. */
CORE_TEST(far_behind_others_a_lock_that_hears_releases_asks_seldom)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 16; i++) {
        refuse(f, 0, 1000, 999);
        assert_in_range(fixture_pass_to_attempt(f), 1, 1000 * MS);
    }
    refuse(f, 0, 1000, 999);
    fixture_listening(f, 0);
    (void)fixture_pass_to_attempt(f);
    for (uint32_t i = 0; i < 16; i++) {
        refuse_until(f, 0, 1000, 999, i % 2 != 0 ? (int64_t)(20 * MS) : -1); /* when the lease ends others come first */
        assert_in_range(fixture_pass_to_attempt(f), 50000 * MS, 100000 * MS);
    }
    /* One of the first. */
    refuse(f, 0, 8, 7);
    assert_in_range(fixture_pass_to_attempt(f), 1, 1000 * MS);
}

/* The first of all arbiters tells it when it came near. */
CORE_TEST(far_behind_others_a_lock_listens_to_its_own_channel)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    refuse(f, 0, 20, 19);
    assert_true(core_listens(f->lock) && !core_is_far(f->lock));
    (void)fixture_pass_to_attempt(f);
    refuse(f, 0, 21, 20);
    assert_true(core_listens(f->lock) && core_is_far(f->lock));
    fixture_listening(f, 0);
    (void)fixture_pass_to_attempt(f);
    assert_true(core_is_far(f->lock)); /* also while it asks again */
    refuse(f, 0, 1000, 999);
    assert_true(core_is_far(f->lock));
    fixture_node_state(f, 0, NODE_DOWN);
    assert_true(core_listens(f->lock) && !core_is_far(f->lock));
    fixture_node_state(f, 0, NODE_READY);
    assert_true(core_is_far(f->lock));
    fixture_listening(f, 0); /* it is told */
    assert_in_range(fixture_pass_to_attempt(f), 0, 1000 * MS);
    refuse(f, 0, 11, 10);
    assert_true(core_listens(f->lock) && !core_is_far(f->lock));
    fixture_cancel(f);
    assert_false(core_listens(f->lock) || core_is_far(f->lock));
}

CORE_TEST(far_behind_others_at_a_later_arbiter_a_lock_listens_to_the_channel_of_the_key)
{
    open_fair(f, CORE_NEVER);
    fixture_node_state(f, 0, NODE_DOWN);
    fixture_acquire(f);
    refuse(f, 1, 1000, 999);
    assert_true(core_listens(f->lock));
    fixture_node_state(f, 0, NODE_READY);
    assert_false(core_is_far(f->lock));
}

/* The queue decides whose turn it is: nobody is drawn, and no change of the key matters. */
CORE_TEST(the_first_in_the_queue_asks_at_once_however_many_wait)
{
    for (uint8_t seed = 0; seed < 10; seed++) {
        struct core_reply reply = {
            .outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = -1, .turns = 1, .listeners = 30};

        open_fair(f, CORE_NEVER);
        f->randoms = seed;
        fixture_acquire(f);
        fixture_answer_with(f, 0, OP_ACQUIRE, &reply);
        fixture_notice(f, 0, HOLDER);
        fixture_expect_alone(f, 0);
    }
}

/* All nodes have executed that release. */
CORE_TEST(a_release_by_the_process_is_one_turn)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    refuse(f, 0, 2, 1);
    fixture_wake(f);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    fixture_wake(f);
    fixture_expect_alone(f, 0);
}

/* An unfair lock would ask the other nodes about a holder that is named again. */
CORE_TEST(behind_others_only_the_arbiter_is_asked_and_a_release_is_only_counted)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t turns = 8; turns > 2; turns--) {
        refuse(f, 0, turns, turns - 1);
        fixture_expect_pending(f, OP_ACQUIRE, "000");
        fixture_pass_to_attempt(f);
        fixture_expect_alone(f, 0);
    }
    refuse(f, 0, 3, 2);
    for (uint64_t holder = 1; holder < 3; holder++) {
        for (uint32_t i = 0; i < 3; i++) fixture_notice(f, i, holder);
        fixture_expect_pending(f, OP_ACQUIRE, "000");
    }
    fixture_notice(f, 0, 3);
    fixture_expect_alone(f, 0);
}

/* It began the attempt, and other nodes publish it later. */
CORE_TEST(a_release_is_counted_once)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    refuse(f, 0, 1, 0);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_notice(f, 1, HOLDER);
    refuse(f, 0, 2, 1);
    fixture_notice(f, 1, 88);
    fixture_pass(f, 10 * MS);
    assert_int_equal(core_attempt(f->lock), 2);
    fixture_notice(f, 1, 89);
    fixture_pass(f, 10 * MS);
    assert_int_equal(core_attempt(f->lock), 3);
}

/* It would keep out others, which reach the nodes that it does not reach. */
CORE_TEST(a_lock_without_a_quorum_does_not_queue)
{
    open_fair(f, CORE_NEVER);
    fixture_node_state_fault(f, 1, NODE_DOWN, FAULT_CLASS_CONFIG);
    fixture_node_state_fault(f, 2, NODE_CONNECTING, FAULT_CLASS_TEMPORARY);
    fixture_acquire(f);
    assert_int_equal(fixture_latest(f, 0, OP_ACQUIRE)->command.queued_us, 0);
    refuse(f, 0, 1, 0);
    fixture_pass_to_attempt(f);
    assert_int_equal(fixture_latest(f, 0, OP_ACQUIRE)->command.waited_us, 0);
    refuse(f, 0, 1, 0);
    fixture_node_state(f, 2, NODE_READY);
    fixture_pass_to_attempt(f);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.queued_us > 0);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.waited_us > 0);
}

/* The nodes answer others, but its requests with errors. */
CORE_TEST(a_lock_that_a_quorum_does_not_vote_for_does_not_queue)
{
    const struct core_reply error = {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_TEMPORARY};

    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    for (uint32_t i = 1; i < 3; i++) fixture_answer_with(f, i, OP_ACQUIRE, &error);
    fixture_pass_to_attempt(f);
    assert_int_equal(fixture_latest(f, 0, OP_ACQUIRE)->command.queued_us, 0);
}

CORE_TEST(a_lock_queues_while_its_first_connections_are_made)
{
    open_fair(f, CORE_NEVER);
    for (uint32_t i = 1; i < 3; i++) fixture_node_state_fault(f, i, NODE_CONNECTING, FAULT_CLASS_NONE);
    fixture_acquire(f);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.queued_us > 0);
}

CORE_TEST(a_first_connection_to_the_arbiter_is_waited_for)
{
    open_fair(f, CORE_NEVER);
    fixture_node_state_fault(f, 0, NODE_CONNECTING, FAULT_CLASS_NONE);
    fixture_acquire(f);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    fixture_node_state(f, 0, NODE_READY);
    fixture_expect_alone(f, 0);
}

CORE_TEST(a_new_lock_passes_over_a_node_that_is_silent_for_its_client)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire_late(f, 1);
    fixture_expect_alone(f, 1);
}

CORE_TEST(a_connection_that_takes_long_is_not_waited_for)
{
    open_fair(f, CORE_NEVER);
    fixture_node_state_fault(f, 0, NODE_CONNECTING, FAULT_CLASS_NONE);
    fixture_acquire(f);
    fixture_pass(f, FIRST_MS * MS);
    fixture_expect_alone(f, 1);
    assert_true(fixture_latest(f, 1, OP_ACQUIRE)->command.queues);
}

CORE_TEST(a_connection_that_is_made_again_is_not_waited_for)
{
    open_fair(f, CORE_NEVER);
    fixture_node_state_fault(f, 0, NODE_CONNECTING, FAULT_CLASS_TEMPORARY);
    fixture_acquire(f);
    fixture_expect_alone(f, 1);
}

/* What the first arbiter may still grant is released. */
CORE_TEST(an_arbiter_that_does_not_answer_is_followed_by_the_next)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    fixture_pass(f, LATE_MS * MS);
    fixture_expect_pending(f, OP_ACQUIRE, "110");
    assert_true(fixture_latest(f, 1, OP_ACQUIRE)->command.queues);
    refuse(f, 1, 2, 1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 1);
    assert_int_equal(fixture_pending(f, 1, OP_RELEASE), 0);
}

/* It may have a place there. */
CORE_TEST(a_granted_lock_leaves_the_queue_of_an_arbiter_that_did_not_answer)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    fixture_pass(f, LATE_MS * MS);
    fixture_expect_pending(f, OP_ACQUIRE, "110");
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_expect_pending(f, OP_INTEND, "100");
}

CORE_TEST(who_stops_waiting_leaves_the_queue)
{
    open_fair(f, CORE_NEVER);
    fixture_acquire(f);
    refuse(f, 0, 2, 1);
    fixture_cancel(f);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
    assert_int_equal(fixture_pending(f, 0, OP_INTEND), 1);
    assert_true(fixture_latest(f, 0, OP_INTEND)->command.queues);
}

/* ---- permits ---- */

#define PERMITS 4u

static void open_fair_permits(struct fixture *f)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.wait_us = CORE_NEVER;
    config.fair = true;
    config.permits = PERMITS;
    fixture_open_config(f, &config);
    fixture_acquire(f);
}

/* The arbiter has these slots free, which belong to others that came first. */
static void refuse_slots(struct fixture *f, uint32_t node, uint64_t free, uint32_t turns, uint32_t before)
{
    struct core_reply reply = {.outcome = OUTCOME_OTHER,
                               .holder_id = HOLDER,
                               .ttl_us = -1,
                               .free = free,
                               .first_us = -1,
                               .turns = turns,
                               .before = before};

    fixture_answer_with(f, node, OP_ACQUIRE, &reply);
}

CORE_TEST(a_permit_is_asked_for_at_the_arbiter_which_names_the_slot)
{
    open_fair_permits(f);
    fixture_expect_alone(f, 0);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.queues && fixture_latest(f, 0, OP_ACQUIRE)->command.any);
    fixture_give_slot(f, 0, 3);
    fixture_expect_pending(f, OP_ACQUIRE, "011");
    for (uint32_t i = 1; i < 3; i++) assert_int_equal(fixture_latest(f, i, OP_ACQUIRE)->command.tag.slot, 3);
    fixture_give_slot(f, 1, 3);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(fixture_pending(f, i, OP_INTEND), 0);
}

CORE_TEST(slots_that_are_free_behind_others_are_not_asked_for_before_the_turn)
{
    open_fair_permits(f);
    refuse_slots(f, 0, 1u << 1 | 1u << 2, 2, 2);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_pass(f, ARBITER_GRACE_US + 2 * (uint64_t)f->srtt_us);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    fixture_notice(f, 0, 1);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    fixture_notice(f, 0, 2);
    fixture_expect_alone(f, 0);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.queues);
}

/* The slot that the arbiter lacks may just have been given to a lock that came first. */
CORE_TEST(a_slot_that_only_other_nodes_report_is_asked_for_after_a_pause)
{
    open_fair_permits(f);
    fixture_give_slot(f, 0, 3);
    for (uint32_t i = 1; i < 3; i++) refuse_slots(f, i, 1u << 1, 0, 0);
    fixture_answer_releases(f);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
    refuse_slots(f, 0, 0, 1, 0);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_pass(f, ARBITER_GRACE_US);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    fixture_pass(f, 2 * (uint64_t)f->srtt_us);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(fixture_latest(f, i, OP_ACQUIRE)->command.tag.slot, 1);
}

/* Which slot the late arbiter takes is unknown, so no slot is held with that token. */
CORE_TEST(after_an_arbiter_that_does_not_answer_all_nodes_are_asked_for_a_slot_with_another_token)
{
    struct core_token token;

    open_fair_permits(f);
    token = fixture_latest(f, 0, OP_ACQUIRE)->command.token;
    fixture_pass(f, LATE_MS * MS);
    fixture_begin(f);
    fixture_expect_pending(f, OP_ACQUIRE, "211");
    assert_memory_not_equal(&fixture_latest(f, 1, OP_ACQUIRE)->command.token, &token, sizeof(token));
    fixture_give_slot(f, 0, 3);
    for (uint32_t i = 0; i < 2; i++) {
        assert_false(fixture_latest(f, i, OP_ACQUIRE)->command.queues);
        fixture_give_slot(f, i, fixture_latest(f, i, OP_ACQUIRE)->command.tag.slot);
    }
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* The place in the queue was not given up by a grant of the arbiter. */
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(fixture_pending(f, i, OP_INTEND), 1);
}

CORE_TEST(a_slot_that_the_arbiter_lacks_is_asked_for_there_before_the_queue_is_left)
{
    open_fair_permits(f);
    fixture_give_slot(f, 0, 3);
    for (uint32_t i = 1; i < 3; i++) refuse_slots(f, i, 1u << 1, 0, 0);
    fixture_answer_releases(f);
    fixture_pass_to_attempt(f);
    refuse_slots(f, 0, 0, 1, 0);
    fixture_pass(f, ARBITER_GRACE_US + 2 * (uint64_t)f->srtt_us);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
    refuse_slots(f, 0, 0, 0, 0);
    for (uint32_t i = 1; i < 3; i++) fixture_give_slot(f, i, 1);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_expect_pending(f, OP_ACQUIRE, "100");
    assert_false(fixture_latest(f, 0, OP_ACQUIRE)->command.any);
    assert_int_equal(fixture_latest(f, 0, OP_ACQUIRE)->command.tag.slot, 1);
    fixture_give_slot(f, 0, 1);
    assert_int_equal(core_counted(f->lock), 3);
}
