/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_permits.c - permits: which slot is asked for, whose answer counts, and what is released
 */
#include <stdlib.h>

#include "core/compact.h"
#include "fixture.h"

#define K     4u
#define ALL   ((1u << K) - 1)
#define LEASE ((int64_t)(2000 * MS))

static void open_permits(struct fixture *f, uint32_t n_nodes, uint64_t wait_us)
{
    struct core_config config = fixture_config(n_nodes, n_nodes / 2 + 1);

    config.permits = K;
    config.holder.wait_us = wait_us;
    fixture_open_config(f, &config);
}

static uint8_t asked_slot(const struct fixture *f, uint32_t node)
{
    return fixture_latest(f, node, OP_ACQUIRE)->command.tag.slot;
}

static bool asked_any(const struct fixture *f, uint32_t node)
{
    return fixture_latest(f, node, OP_ACQUIRE)->command.any;
}

static uint64_t passed_over(const struct fixture *f, uint32_t node)
{
    return fixture_latest(f, node, OP_ACQUIRE)->command.passed;
}

static uint8_t released_slot(const struct fixture *f, uint32_t node)
{
    return fixture_latest(f, node, OP_RELEASE)->command.tag.slot;
}

/* Of the first n nodes. */
static void refuse(struct fixture *f, uint32_t n, uint64_t free)
{
    for (uint32_t i = 0; i < n; i++) fixture_refuse_slot(f, i, HOLDER, LEASE, free, LEASE);
}

static void let(struct fixture *f, uint32_t slot)
{
    core_slots_hold(f->slots, slot, false);
    f->slots->last = CORE_SLOT_NONE;
}

/* The first attempt was refused everywhere, and the arbiter is asked while that one is free. */
static void ask_arbiter(struct fixture *f, uint32_t free)
{
    core_slots_hold(f->slots, free, true);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    let(f, free);
    refuse(f, 3, 1u << free);
    fixture_answer_releases(f);
    fixture_pass(f, 0);
    fixture_expect_alone(f, 0);
    assert_true(asked_any(f, 0));
}

/* The first attempt never asks for that slot, so that it can be the free one. */
static void keep_from_first(struct fixture *f, uint32_t slot)
{
    core_slots_hold(f->slots, slot, true);
}

/* A poll: the arbiter has only slot 2 free, which is passed over, and the others, where they are asked, these. */
static void answer_poll(struct fixture *f, uint64_t free)
{
    fixture_refuse_slot(f, 0, HOLDER, LEASE, 1u << 2, LEASE);
    for (uint32_t k = 1; k < 3; k++) {
        if (fixture_pending(f, k, OP_ACQUIRE) > 0) fixture_refuse_slot(f, k, HOLDER, LEASE, free, LEASE);
    }
    fixture_answer_releases(f);
}

/* ---- the first attempt ---- */

CORE_TEST(it_is_drawn_among_those_that_this_process_does_not_hold)
{
    uint32_t drawn = 0;

    for (int i = 0; i < 200; i++) {
        open_permits(f, 3, 0);
        f->randoms = (uint8_t)i;
        keep_from_first(f, 1);
        assert_int_equal(fixture_acquire(f), CORE_OK);
        drawn |= 1u << asked_slot(f, 0);
    }
    assert_int_equal(drawn, ALL & ~(1u << 1));
}

CORE_TEST(the_slot_that_was_given_back_is_asked_for_once)
{
    for (uint8_t slot = 0; slot < K; slot++) {
        open_permits(f, 3, 0);
        core_slots_hold(f->slots, slot, true);
        core_slots_hold(f->slots, slot, false);
        assert_int_equal(fixture_acquire(f), CORE_OK);
        assert_int_equal(asked_slot(f, 0), slot);
        assert_int_equal(f->slots->last, CORE_SLOT_NONE);
    }
}

/* A vote for another slot does not count. */
CORE_TEST(a_vote_counts_for_the_slot_that_was_asked_for)
{
    open_permits(f, 3, 0);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) fixture_give_slot(f, i, (uint8_t)((asked_slot(f, 0) + i) % K));
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NO_PROTO);
    /* Each node gets the release of the slot that it was asked for. */
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(released_slot(f, i), asked_slot(f, 0));
}

/* ---- the search for a free one ---- */

CORE_TEST(the_arbiter_names_the_slot_and_the_others_are_asked_for_it)
{
    open_permits(f, 3, 0);
    keep_from_first(f, 2);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    let(f, 2);
    refuse(f, 3, 1u << 2);
    fixture_answer_releases(f);
    fixture_pass(f, 0);
    fixture_expect_alone(f, 0);
    assert_true(asked_any(f, 0));
    assert_int_equal(asked_slot(f, 0), 2);
    /* Another client was faster. */
    fixture_give_slot(f, 0, 3);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(fixture_pending(f, i, OP_ACQUIRE), 1);
        assert_int_equal(asked_slot(f, i), 3);
        assert_false(asked_any(f, i));
    }
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_slot(f->lock), 3);
    assert_int_equal(core_rounds(f->lock), 2);
}

/* It may have been given back since. */
CORE_TEST(what_a_node_said_before_the_acquire_does_not_end_its_search)
{
    open_permits(f, 3, 0);
    fixture_sleep(f, MS);
    slots_on_refusal(f->slots, &(struct core_reply){.outcome = OUTCOME_OTHER}, f->now_us);
    fixture_sleep(f, MS);
    keep_from_first(f, 2);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    f->slots->ours = 0;
    fixture_refuse_slot(f, 1, HOLDER, LEASE, 1u << 2, LEASE);
    fixture_refuse_slot(f, 2, HOLDER, LEASE, 0, LEASE);
    fixture_expect_nothing(f);
    fixture_pass(f, 0);
    fixture_expect_pending(f, OP_ACQUIRE, "211");
    assert_int_equal(asked_slot(f, 0), 2);
}

/* No quorum has it free. */
CORE_TEST(a_slot_that_too_few_nodes_have_free_is_not_searched_for)
{
    open_permits(f, 3, 0);
    keep_from_first(f, 2);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    let(f, 2);
    fixture_refuse_slot(f, 0, HOLDER, LEASE, 1u << 2, LEASE);
    fixture_node_state(f, 2, NODE_DOWN);
    fixture_refuse_slot(f, 1, HOLDER, LEASE, 0, LEASE);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}

/* One round trip after the refusal, in the place of two. */
CORE_TEST(one_of_several_free_slots_is_asked_of_all)
{
    open_permits(f, 3, CORE_NEVER);
    f->slots->ours = 1u << 1 | 1u << 3;
    assert_int_equal(fixture_acquire(f), CORE_OK);
    f->slots->ours = 0;
    refuse(f, 3, 1u << 1 | 1u << 3);
    fixture_answer_releases(f);
    fixture_pass(f, 0);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(asked_slot(f, i), asked_slot(f, 0));
        assert_false(asked_any(f, i));
    }
    assert_true(asked_slot(f, 0) == 1 || asked_slot(f, 0) == 3);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_rounds(f->lock), 2);
}

/* Those that wait are woken together, and would split the votes. */
CORE_TEST(who_has_waited_asks_the_arbiter_also_where_several_are_free)
{
    open_permits(f, 3, CORE_NEVER);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    refuse(f, 3, 0);
    fixture_answer_releases(f);
    assert_true(core_listens(f->lock));
    for (uint32_t i = 0; i < 3; i++) f->slots->nodes[i].free = 1u << 1 | 1u << 3;
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
    assert_true(asked_any(f, 0));
}

/* What was said long ago says nothing. */
CORE_TEST(old_answers_are_not_searched_by)
{
    open_permits(f, 3, CORE_NEVER);
    keep_from_first(f, 1);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    let(f, 1);
    refuse(f, 3, 0);
    f->slots->nodes[1].free = f->slots->nodes[2].free = 1u << 1;
    fixture_answer_releases(f);
    fixture_sleep(f, 2 * f->config.node_timeout_us + MS);
    assert_true(core_listens(f->lock));
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
}

CORE_TEST(a_search_listens_for_no_notices_and_a_wait_does)
{
    open_permits(f, 3, CORE_NEVER);
    keep_from_first(f, 2);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    let(f, 2);
    refuse(f, 3, 1u << 2);
    assert_false(core_listens(f->lock));
    fixture_answer_releases(f);
    fixture_pass(f, 0);
    assert_false(core_listens(f->lock));
    fixture_refuse_slot(f, 0, HOLDER + 1, LEASE, 0, LEASE);
    /* The others said that it is free: they are asked once more. */
    fixture_pass(f, 0);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
    refuse(f, 3, 0);
    assert_true(core_listens(f->lock));
}

/* ---- slots that are passed over ---- */

/* The arbiter gives slot 2, which the others refuse. */
static void be_fooled(struct fixture *f, uint64_t wait_us)
{
    open_permits(f, 3, wait_us);
    keep_from_first(f, 2);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    let(f, 2);
    refuse(f, 3, 1u << 2);
    fixture_answer_releases(f);
    fixture_pass(f, 0);
    fixture_give_slot(f, 0, 2);
    fixture_refuse_slot(f, 1, HOLDER + 2, (int64_t)(400 * MS), 0, (int64_t)(400 * MS));
    fixture_refuse_slot(f, 2, HOLDER + 2, (int64_t)(400 * MS), 0, (int64_t)(400 * MS));
    fixture_answer_releases(f);
}

CORE_TEST(a_slot_that_a_quorum_refuses_is_passed_over_until_its_lease_ends)
{
    uint64_t begun_us;

    be_fooled(f, CORE_NEVER);
    begun_us = f->now_us;
    while (f->now_us < begun_us + 400 * MS) {
        fixture_pass_to_attempt(f);
        assert_true(asked_any(f, 0));
        if (f->now_us >= begun_us + 400 * MS) break;
        assert_int_equal(passed_over(f, 0), 1u << 2);
        answer_poll(f, 0);
    }
    /* So long it waits, and not much longer. */
    assert_true(f->now_us < begun_us + 410 * MS);
    assert_int_equal(passed_over(f, 0), 0);
}

CORE_TEST(a_release_by_its_holder_brings_the_slot_back)
{
    be_fooled(f, CORE_NEVER);
    fixture_listening(f, 0);
    fixture_notice(f, 1, HOLDER + 9);
    assert_int_equal(f->slots->passed, 1u << 2);
    fixture_notice(f, 0, HOLDER + 2);
    fixture_expect_alone(f, 0);
    assert_int_equal(passed_over(f, 0), 0);
}

/* A node that is not the arbiter has told of a release, and the attempt that follows asks the arbiter. */
static void be_woken_elsewhere(struct fixture *f)
{
    open_permits(f, 3, CORE_NEVER);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    refuse(f, 3, 0);
    fixture_answer_releases(f);
    fixture_notice(f, 1, HOLDER + 9);
    (void)fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
}

/* The arbiter executes the release last, and names another holder until then. */
CORE_TEST(a_release_that_the_arbiter_publishes_last_wakes)
{
    for (int before_the_refusal = 0; before_the_refusal < 2; before_the_refusal++) {
        be_woken_elsewhere(f);
        if (before_the_refusal != 0) fixture_notice(f, 0, HOLDER + 9);
        fixture_refuse_slot(f, 0, HOLDER, LEASE, 0, LEASE);
        if (before_the_refusal == 0) fixture_notice(f, 0, HOLDER + 9);
        assert_true(core_attempt(f->lock) == 3 || fixture_pass_to_attempt(f) < 10 * MS);
    }
}

/* Another node tells late of what woke before: the arbiter has refused since then. */
CORE_TEST(a_release_that_another_node_publishes_last_does_not_wake)
{
    be_woken_elsewhere(f);
    fixture_refuse_slot(f, 0, HOLDER, LEASE, 0, LEASE);
    fixture_notice(f, 2, HOLDER + 9);
    assert_true(fixture_pass_to_attempt(f) > 100 * MS);
}

/* A break does not say whose slot it deletes. */
CORE_TEST(a_notice_without_a_name_brings_the_slot_back)
{
    be_fooled(f, CORE_NEVER);
    fixture_listening(f, 0);
    fixture_notice(f, 0, 0);
    fixture_expect_alone(f, 0);
    assert_int_equal(passed_over(f, 0), 0);
}

CORE_TEST(a_quorum_that_has_it_free_brings_the_slot_back)
{
    struct core_reply refusal = {.outcome = OUTCOME_OTHER, .free = 1u << 2};

    be_fooled(f, CORE_NEVER);
    f->slots->each[2].until_us = CORE_NEVER;
    fixture_sleep(f, MS);
    /* What the arbiter says is no news. */
    slots_on_refusal(f->slots, &refusal, f->now_us);
    assert_int_equal(slots_shut(f->slots, f->lock, f->now_us), 1u << 2);
    refusal.tag.node = 2;
    slots_on_refusal(f->slots, &refusal, f->now_us);
    assert_int_equal(slots_shut(f->slots, f->lock, f->now_us), 0);
}

/* Contenders that have one node each: the slot is tried again after a pause, not after a lease. */
CORE_TEST(split_votes_pass_a_slot_over_for_a_moment)
{
    uint64_t begun_us;

    open_permits(f, 3, CORE_NEVER);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse_slot(f, 1, HOLDER, LEASE, 0, LEASE);
    fixture_refuse_slot(f, 2, HOLDER + 1, LEASE, 0, LEASE);
    fixture_answer_releases(f);
    begun_us = f->now_us;
    fixture_pass_to_attempt(f);
    assert_true(f->now_us - begun_us < 10 * MS);
    fixture_expect_alone(f, 0);
}

/* ---- waiting ---- */

CORE_TEST(the_first_lease_to_end_is_waited_for)
{
    open_permits(f, 3, CORE_NEVER);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse_slot(f, i, HOLDER, LEASE, 0, (int64_t)(40 * MS));
    fixture_answer_releases(f);
    assert_true(fixture_pass_to_attempt(f) < 50 * MS);
    assert_true(asked_any(f, 0));
}

/* ---- what is released ---- */

/* It may have taken any slot, and its release may be executed late, when the node was repaired. */
CORE_TEST(the_token_that_a_late_arbiter_got_is_released_and_never_held)
{
    struct core_token first;

    open_permits(f, 3, 0);
    ask_arbiter(f, 2);
    first = *core_token_now(f->lock);
    fixture_pass(f, 20 * MS);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 1);
    assert_int_equal(released_slot(f, 0), CORE_SLOT_NONE);
    assert_memory_equal(fixture_latest(f, 0, OP_RELEASE)->command.token.bytes, first.bytes, CORE_TOKEN_SIZE);
    fixture_begin(f);
    fixture_expect_pending(f, OP_ACQUIRE, "211");
    assert_memory_not_equal(core_token_now(f->lock)->bytes, first.bytes, CORE_TOKEN_SIZE);
    fixture_give_slot(f, 0, 3);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect_nothing(f);
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_slot(f->lock), asked_slot(f, 1));
    /* The arbiter is asked for that slot, too. */
    fixture_answer(f, 0, OP_RELEASE, OUTCOME_YES);
    fixture_give_slot(f, 0, asked_slot(f, 1));
    fixture_pass(f, f->config.holder.renew_us);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(fixture_release(f), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(released_slot(f, i), core_slot(f->lock));
}

/* Slot 2 is free at node 1 and taken at node 2, and the arbiter does not answer. All nodes are asked for slot 2. */
static void search_without_arbiter(struct fixture *f, uint64_t wait_us)
{
    open_permits(f, 3, wait_us);
    keep_from_first(f, 2);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    let(f, 2);
    fixture_refuse_slot(f, 1, HOLDER, LEASE, 1u << 2, LEASE);
    fixture_refuse_slot(f, 2, HOLDER, LEASE, 0, LEASE);
    fixture_pass(f, 0);
    fixture_expect_pending(f, OP_ACQUIRE, "200");
    fixture_pass(f, 20 * MS);
    fixture_begin(f);
    fixture_expect_pending(f, OP_ACQUIRE, "311");
    fixture_give_slot(f, 1, 2);
    fixture_refuse_slot(f, 2, HOLDER + 1, LEASE, 0, LEASE);
    fixture_expect_nothing(f);
}

/* Without its vote no quorum has the slot: another arbiter is asked for that very slot. */
CORE_TEST(a_slot_that_a_late_arbiter_may_have_free_is_not_passed_over)
{
    search_without_arbiter(f, CORE_NEVER);
    fixture_pass(f, 0);
    fixture_expect_pending(f, OP_ACQUIRE, "310");
    fixture_give_slot(f, 1, 2);
    fixture_expect_pending(f, OP_ACQUIRE, "401");
    assert_int_equal(asked_slot(f, 0), 2);
    assert_false(asked_any(f, 0));
    fixture_refuse_slot(f, 0, HOLDER, LEASE, 1u << 2, LEASE);
    for (uint32_t i = 0; i < 3; i++) fixture_give_slot(f, 0, 2);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_slot(f->lock), 2);
    assert_int_equal(core_rounds(f->lock), 4);
}

CORE_TEST(a_late_arbiter_gives_the_slot_that_all_were_asked_for)
{
    search_without_arbiter(f, 0);
    for (uint32_t i = 0; i < 3; i++) fixture_give_slot(f, 0, 2);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_slot(f->lock), 2);
}

/* It is asked for that slot twice, not again and again. */
CORE_TEST(a_slot_that_waits_for_a_silent_node_is_passed_over_in_the_end)
{
    search_without_arbiter(f, CORE_NEVER);
    fixture_pass(f, 0);
    fixture_give_slot(f, 1, 2);
    fixture_refuse_slot(f, 2, HOLDER + 1, LEASE, 0, LEASE);
    fixture_expect_nothing(f);
    assert_true(fixture_pass_to_attempt(f) > 0);
    assert_int_equal(core_rounds(f->lock), 5);
}

CORE_TEST(one_canceled_while_the_arbiter_chooses_releases_whichever_it_took)
{
    open_permits(f, 3, CORE_NEVER);
    ask_arbiter(f, 2);
    assert_int_equal(fixture_cancel(f), CORE_OK);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 1);
    assert_int_equal(released_slot(f, 0), CORE_SLOT_NONE);
    /* Once it has named the slot, that one. */
    open_permits(f, 3, CORE_NEVER);
    ask_arbiter(f, 2);
    fixture_give_slot(f, 0, 3);
    assert_int_equal(fixture_cancel(f), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(released_slot(f, i), 3);
}

/* The next attempts ask for others. */
CORE_TEST(a_debt_remembers_its_slot)
{
    uint8_t slot;

    open_permits(f, 3, CORE_NEVER);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    slot = asked_slot(f, 0);
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
    fixture_node_state(f, 2, NODE_DOWN);
    refuse(f, 2, 1u << (slot + 1) % K);
    fixture_answer(f, 0, OP_RELEASE, OUTCOME_MISSING);
    fixture_answer(f, 1, OP_RELEASE, OUTCOME_MISSING);
    fixture_pass(f, 0);
    fixture_give_slot(f, 0, (uint8_t)((slot + 1) % K));
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(released_slot(f, 2), slot);
    assert_int_not_equal(core_slot(f->lock), slot);
}

/* ---- a held slot ---- */

CORE_TEST(a_compact_lock_keeps_its_slot)
{
    struct core_node_change nodes[3];
    struct core_compact *record = calloc(1, 4096);

    assert_non_null(record);
    for (uint8_t slot = 0; slot < K; slot++) {
        open_permits(f, 3, 0);
        f->slots->last = slot;
        fixture_grant(f);
        assert_true(core_compact(f->lock, f->now_us, record));
        assert_int_equal(record->slot, slot);
        for (uint32_t i = 0; i < 3; i++) {
            nodes[i] = (struct core_node_change){.index = i, .state = NODE_READY, .generation = 1, .srtt_us = 500};
        }
        core_expand(f->lock, &f->config, record, nodes, f->now_us);
        assert_int_equal(fixture_release(f), CORE_OK);
        assert_int_equal(released_slot(f, 0), slot);
    }
    free(record);
}

/* Only the arbiter chooses a slot. */
CORE_TEST(two_waiters_for_permits_ask_the_arbiter_first)
{
    const struct core_reply refusal = {
        .outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = LEASE, .first_us = LEASE, .listeners = 2};

    open_permits(f, 3, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_answer_with(f, i, OP_ACQUIRE, &refusal);
    fixture_answer_releases(f);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_notice(f, 0, HOLDER);
    fixture_expect_alone(f, 0);
}
