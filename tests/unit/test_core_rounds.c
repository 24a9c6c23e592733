/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_rounds.c - renewal and repair, event by event: what a node's state, answer or report does to a held lock */
#include <stdlib.h>

#include "core/hold.h"
#include "core/state.h"
#include "core/validity.h"
#include "fixture.h"

static struct core_node *node_of(struct fixture *f, uint32_t index)
{
    return &f->lock->nodes[index];
}

static struct hold *hold_of(struct fixture *f)
{
    return &f->lock->hold;
}

static void open_told(struct fixture *f, uint64_t renew_us, uint64_t grid_us)
{
    struct core_config config = fixture_config(3, 2);

    config.told = true;
    config.holder.renew_us = renew_us;
    config.holder.renew_grid_us = grid_us;
    fixture_open_config(f, &config);
}

/* ---- when a renewal is due ---- */

CORE_TEST(the_first_renewal_is_early_where_nodes_tell_of_changes)
{
    static const struct {
        uint64_t renew_us, due_us;
    } rows[] = {
        {1000 * MS, 1000 * MS},
        {900 * MS, 900 * MS},
        {1500 * MS, 1000 * MS},
        {CORE_NEVER, CORE_NEVER},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        open_told(f, rows[i].renew_us, 0);
        fixture_grant(f);
        assert_int_equal(hold_of(f)->renew_at_us,
                         rows[i].due_us == CORE_NEVER ? CORE_NEVER : f->now_us + rows[i].due_us);
    }
}

CORE_TEST(a_renewal_has_its_place_on_the_grid)
{
    open_told(f, 1000 * MS, 250 * MS);
    fixture_grant(f);
    assert_int_equal(hold_of(f)->renew_at_us % (250 * MS), 0);
}

CORE_TEST(a_margin_that_was_asked_for_is_kept)
{
    struct core_config config = fixture_config(3, 2);

    assert_int_equal(hold_margin_us(&config, config.lease_us), 64 * MS);
    config.holder.lost_margin_us = 7;
    assert_int_equal(hold_margin_us(&config, config.lease_us), 7);
}

CORE_TEST(a_grant_forgets_what_was_told_of_the_hold_before)
{
    fixture_open_held(f, 3, 2);
    for (uint32_t i = 0; i < 3; i++) node_of(f, i)->told = node_of(f, i)->extended = true;
    fixture_release(f);
    fixture_answer_releases(f);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_grant(f);
    for (uint32_t i = 0; i < 3; i++) assert_false(node_of(f, i)->told || node_of(f, i)->extended);
}

/* ---- reports of changes ---- */

CORE_TEST(a_report_of_a_change_brings_a_round_forward)
{
    fixture_open_held(f, 3, 2);
    fixture_look(f, 0, true); /* it may be our own SET */
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
    fixture_look(f, 0, false);
    assert_int_not_equal(hold_of(f)->repair_at_us, CORE_NEVER);
    assert_true(hold_of(f)->looks);
    assert_int_equal(hold_of(f)->renew_at_us, FIXTURE_BEGIN_US + 1000 * MS);
    fixture_look(f, 1, false);
    assert_int_equal(hold_of(f)->renew_at_us, f->now_us);
    fixture_pass(f, 0);
    for (uint32_t i = 0; i < 3; i++) assert_false(node_of(f, i)->told);
    assert_false(hold_of(f)->looks);
    fixture_answers(f, OP_EXTEND, "yyy");
    /* A server that has extended our key since reports somebody else's change. */
    fixture_look(f, 2, true);
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER); /* no more than in the round before */
    fixture_look(f, 1, true);
    fixture_look(f, 0, true);
    assert_int_not_equal(hold_of(f)->repair_at_us, CORE_NEVER);
}

CORE_TEST(a_report_changes_nothing_where_no_renewal_is_ahead)
{
    open_told(f, CORE_NEVER, 0);
    fixture_grant(f);
    for (uint32_t i = 0; i < 3; i++) fixture_look(f, i, false);
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
    assert_int_equal(hold_of(f)->renew_at_us, CORE_NEVER);
    assert_false(hold_of(f)->looks);
    /* Nor during a round. */
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    for (uint32_t i = 0; i < 3; i++) fixture_look(f, i, false);
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
    assert_int_equal(hold_of(f)->renew_at_us, CORE_NEVER);
    fixture_answers(f, OP_EXTEND, "yy.");
    assert_int_equal(hold_of(f)->renew_at_us, f->now_us);
}

CORE_TEST(a_lock_that_is_not_held_hears_no_report)
{
    fixture_open(f, 3, 2);
    fixture_look(f, 0, false);
    assert_false(node_of(f, 0)->told);
    fixture_acquire(f);
    fixture_look(f, 0, false);
    assert_false(node_of(f, 0)->told);
}

/* ---- repairs ---- */

CORE_TEST(a_repair_that_is_due_or_waits_is_not_put_off)
{
    uint64_t due_us;

    fixture_open_held(f, 5, 3);
    fixture_look(f, 0, false);
    due_us = hold_of(f)->repair_at_us;
    fixture_pass(f, 1);
    fixture_look(f, 1, false);
    assert_int_equal(hold_of(f)->repair_at_us, due_us);
    f->no_repair = true;
    fixture_pass(f, 300 * MS);
    assert_true(hold_of(f)->repair_waits);
    fixture_expect_pending(f, OP_EXTEND, "00000");
    f->lock->nodes[2].told = false;
    hold_of(f)->looked = 0;
    fixture_look(f, 2, false);
    assert_int_equal(hold_of(f)->repair_at_us, core_smaller(hold_of(f)->repair_at_us, CORE_NEVER));
    fixture_begin(f);
    fixture_expect_pending(f, OP_EXTEND, "11111");
}

CORE_TEST(a_repair_that_waits_is_due_at_no_time)
{
    fixture_open_held(f, 5, 3);
    hold_of(f)->repair_waits = true;
    fixture_look(f, 0, false);
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
}

/* Its yes from before may be that of an earlier life. */
CORE_TEST(a_quarantined_node_wants_a_repair_at_the_grant)
{
    static const char *const before[] = {"...", "..y"};

    for (size_t i = 0; i < LENGTH(before); i++) {
        for (uint32_t quarantined = 0; quarantined < 2; quarantined++) {
            fixture_open(f, 3, 2);
            fixture_acquire(f);
            fixture_answers(f, OP_ACQUIRE, before[i]);
            if (quarantined != 0) fixture_node_state(f, 2, NODE_QUARANTINED);
            fixture_answers(f, OP_ACQUIRE, "yy.");
            fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
            assert_int_equal(hold_of(f)->repair_at_us != CORE_NEVER, quarantined);
            fixture_drop(f);
        }
    }
}

CORE_TEST(the_yes_of_a_node_that_lost_its_memory_since_does_not_count)
{
    fixture_open(f, 3, 3);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "y..");
    node_of(f, 0)->asked.follow_up = FOLLOW_UP_RAISE;
    fixture_node_state(f, 0, NODE_QUARANTINED);
    assert_int_equal(node_of(f, 0)->asked.follow_up, FOLLOW_UP_NONE);
    assert_int_equal(node_of(f, 0)->key.valid_until_us, 0);
    fixture_answers(f, OP_ACQUIRE, ".y.");
    /* A node that has not answered yet may still refuse. */
    fixture_node_state(f, 2, NODE_QUARANTINED);
    assert_int_equal(core_vote(f->lock, 2), CORE_VOTE_PENDING);
    fixture_answers(f, OP_ACQUIRE, "..o");
    assert_int_not_equal(core_phase_now(f->lock), CORE_GRANTED);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_FAILED);
    assert_int_equal(core_vote(f->lock, 2), CORE_VOTE_OTHER);
}

/* What is adopted was held before: the yes is that of a renewal. */
CORE_TEST(an_adoption_counts_the_yes_of_a_node_in_quarantine)
{
    static const struct core_token token = {{3}};

    fixture_open(f, 3, 2);
    assert_int_equal(fixture_adopt(f, &token), CORE_OK);
    fixture_answers(f, OP_EXTEND, "y..");
    fixture_node_state(f, 0, NODE_QUARANTINED);
    fixture_answers(f, OP_EXTEND, ".y.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

/* The third node lost its key, which the others still have. */
static void open_missing(struct fixture *f)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_expect_pending(f, OP_REPAIR, "001");
}

CORE_TEST(a_node_that_is_being_repaired_does_not_count)
{
    open_missing(f);
    assert_int_equal(node_of(f, 2)->key.valid_until_us, 0);
    assert_int_equal(core_counted(f->lock), 2);
    assert_false(node_of(f, 2)->gone);
    fixture_answers(f, OP_REPAIR, "..y");
    assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_REPAIRED);
    assert_int_equal(node_of(f, 2)->key.valid_until_us, 0);
    assert_int_not_equal(hold_of(f)->repair_at_us, CORE_NEVER);
    fixture_pass(f, 300 * MS);
    assert_true(hold_of(f)->confirms);
    assert_false(hold_of(f)->repaired);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(core_counted(f->lock), 3);
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
}

CORE_TEST(a_repair_without_a_yes_is_tried_after_the_next_round)
{
    static const struct {
        enum outcome outcome;
        bool gone;
    } rows[] = {{OUTCOME_UNKNOWN, false}, {OUTCOME_OTHER, true}, {OUTCOME_ERROR, true}, {OUTCOME_MISSING, true}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        open_missing(f);
        fixture_answer(f, 2, OP_REPAIR, rows[i].outcome);
        assert_int_equal(node_of(f, 2)->gone, rows[i].gone);
        assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
        assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_MISSING);
        fixture_expect_pending(f, OP_REPAIR, "000");
    }
}

CORE_TEST(an_answer_to_a_repair_of_an_earlier_round_says_nothing)
{
    const struct fixture_sent *first;

    open_missing(f);
    first = fixture_latest(f, 2, OP_REPAIR);
    fixture_answer(f, 2, OP_REPAIR, OUTCOME_UNKNOWN);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_expect_pending(f, OP_REPAIR, "001");
    fixture_replay(f, first, OUTCOME_YES);
    assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_MISSING);
    fixture_replay(f, first, OUTCOME_OTHER);
    assert_false(node_of(f, 2)->gone);
}

CORE_TEST(a_node_that_cannot_be_asked_or_owes_too_much_is_not_repaired)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "y.m");
    fixture_node_state(f, 2, NODE_DOWN);
    fixture_answers(f, OP_EXTEND, ".y.");
    fixture_expect_pending(f, OP_REPAIR, "000");
    /* A key that it has already needs no more room. */
    for (uint32_t has = 0; has < 2; has++) {
        fixture_open_held(f, 3, 2);
        free(f->debts);
        f->debts = NULL;
        fixture_pass(f, 1000 * MS);
        fixture_answers(f, OP_EXTEND, "y.m");
        node_of(f, 2)->debt = (struct debt){.state = DEBT_OWED, .until_us = CORE_NEVER, .again_at_us = CORE_NEVER};
        node_of(f, 2)->debt.id.number = 1;
        node_of(f, 2)->debt.id.token.bytes[0] = 0xff;
        f->lock->owing |= 4;
        if (has == 0) node_of(f, 2)->key.until_us = 0;
        fixture_answers(f, OP_EXTEND, ".y.");
        assert_int_equal(fixture_pending(f, 2, OP_REPAIR), has);
    }
}

/* ---- rounds that fail ---- */

static void open_round(struct fixture *f)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_expect_pending(f, OP_EXTEND, "111");
}

/* Each node refuses, and once more when it is asked again. */
static void fail_round(struct fixture *f)
{
    fixture_answers(f, OP_EXTEND, "eee");
    fixture_answers(f, OP_EXTEND, "eee");
}

CORE_TEST(renewals_that_fail_are_repeated_and_a_success_forgets_them)
{
    open_round(f);
    fail_round(f);
    assert_int_equal(hold_of(f)->renew_failures, 1);
    fixture_pass(f, 0);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(hold_of(f)->renew_failures, 0);
    assert_int_equal(hold_of(f)->renew_at_us, f->now_us + 1000 * MS);
}

CORE_TEST(an_extend_asks_again_after_what_passes)
{
    static const struct {
        enum outcome outcome;
        enum fault_class fault;
        bool again;
    } rows[] = {
        {OUTCOME_ERROR, FAULT_CLASS_TEMPORARY, true},
        {OUTCOME_ERROR, FAULT_CLASS_AUTH, false},
        {OUTCOME_MISSING, FAULT_CLASS_TEMPORARY, false},
        {OUTCOME_UNKNOWN, FAULT_CLASS_TEMPORARY, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_reply reply = {.outcome = rows[i].outcome, .fault = rows[i].fault};

        fixture_open_held(f, 5, 3);
        assert_int_equal(fixture_extend(f, 0), CORE_OK);
        fixture_answers(f, OP_EXTEND, "yy.uu");
        fixture_answer_with(f, 2, OP_EXTEND, &reply);
        assert_int_equal(core_is_pending(f->lock, CORE_NOTIFY_EXTENDED), !rows[i].again);
        if (rows[i].again) fixture_answer_with(f, 2, OP_EXTEND, &reply);
        fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
    }
    /* A connection that ended comes back only later. */
    fixture_open_held(f, 5, 3);
    assert_int_equal(fixture_extend(f, 0), CORE_OK);
    fixture_answers(f, OP_EXTEND, "yy.uu");
    fixture_node_state(f, 2, NODE_DOWN);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
}

CORE_TEST(a_failed_renewal_without_an_extend_asks_nobody_to_wait_for_it)
{
    open_round(f);
    fixture_answers(f, OP_EXTEND, "yuu");
    fixture_expect_nothing(f);
    assert_int_equal(hold_of(f)->renew_failures, 1);
}

CORE_TEST(no_round_follows_the_end_of_the_longest_hold)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.max_hold_us = 1500 * MS;
    fixture_open_config(f, &config);
    fixture_grant(f);
    assert_int_equal(fixture_extend(f, 9000 * MS), CORE_OK);
    fixture_sleep(f, 1500 * MS);
    fail_round(f);
    assert_int_equal(hold_of(f)->renew_at_us, CORE_NEVER);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
}

CORE_TEST(a_failed_extend_begins_no_renewal_where_there_is_none)
{
    open_told(f, CORE_NEVER, 0);
    fixture_grant(f);
    assert_int_equal(fixture_extend(f, 0), CORE_OK);
    fail_round(f);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
    assert_int_equal(hold_of(f)->renew_at_us, CORE_NEVER);
}

/* ---- nodes come and go ---- */

CORE_TEST(a_round_counts_a_node_that_is_not_there_as_failed)
{
    fixture_open_held(f, 3, 2);
    fixture_node_state_fault(f, 2, NODE_DOWN, FAULT_CLASS_AUTH);
    fixture_pass(f, 1000 * MS);
    assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_FAILED);
    assert_int_equal(node_of(f, 2)->fault, FAULT_CLASS_AUTH);
    /* All are gone: the round fails at once. */
    fixture_open_held(f, 3, 2);
    fixture_node_states(f, "ddd");
    fixture_pass(f, 1000 * MS);
    assert_int_not_equal(hold_of(f)->renew_failures, 0);
}

CORE_TEST(a_connection_that_ends_answers_the_round)
{
    open_round(f);
    fixture_answers(f, OP_EXTEND, "y..");
    fixture_node_state_fault(f, 1, NODE_DOWN, FAULT_CLASS_AUTH);
    assert_int_equal(node_of(f, 1)->vote, CORE_VOTE_FAILED);
    assert_int_equal(node_of(f, 1)->fault, FAULT_CLASS_AUTH);
    assert_int_equal(hold_of(f)->round_state, ROUND_OPEN);
    fixture_node_state(f, 2, NODE_DOWN);
    assert_int_equal(hold_of(f)->round_state, ROUND_SETTLED);
    assert_int_equal(hold_of(f)->renew_failures, 1);
    /* A vote that is there stays, and so does one that is still to come on a connection that stays. */
    open_round(f);
    fixture_answers(f, OP_EXTEND, "y..");
    fixture_node_state(f, 0, NODE_DOWN);
    assert_int_equal(node_of(f, 0)->vote, CORE_VOTE_YES);
    fixture_node_state(f, 1, NODE_QUARANTINED);
    assert_int_equal(node_of(f, 1)->vote, CORE_VOTE_PENDING);
}

CORE_TEST(a_node_that_comes_back_renews_at_once_while_renewal_fails)
{
    open_round(f);
    fixture_answers(f, OP_EXTEND, "yuu");
    hold_of(f)->renew_at_us = f->now_us + 500 * MS;
    fixture_node_state(f, 2, NODE_DOWN);
    assert_int_equal(hold_of(f)->renew_at_us, f->now_us + 500 * MS);
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(hold_of(f)->renew_at_us, f->now_us);
    /* Not where renewal is off, nor during a round. */
    hold_of(f)->renew_at_us = CORE_NEVER;
    fixture_node_state(f, 1, NODE_READY);
    assert_int_equal(hold_of(f)->renew_at_us, CORE_NEVER);
    hold_of(f)->renew_at_us = f->now_us;
    fixture_pass(f, 0);
    hold_of(f)->renew_at_us = f->now_us + 500 * MS;
    fixture_node_state(f, 1, NODE_READY);
    assert_int_equal(hold_of(f)->renew_at_us, f->now_us + 500 * MS);
    hold_of(f)->renew_at_us = CORE_NEVER;
}

CORE_TEST(another_life_of_a_node_wants_a_repair)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 10 * MS);
    f->life_us[2] = f->now_us;
    fixture_node_state(f, 2, NODE_DOWN); /* it cannot be asked */
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
    fixture_node_state(f, 2, NODE_READY);
    assert_int_not_equal(hold_of(f)->repair_at_us, CORE_NEVER);
    /* It was asked since. */
    fixture_open_held(f, 3, 2);
    f->life_us[2] = f->now_us;
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
    /* It is being asked. */
    open_round(f);
    fixture_pass(f, 10 * MS);
    f->life_us[2] = f->now_us;
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
}

CORE_TEST(room_begins_only_what_waits)
{
    fixture_open_held(f, 3, 2);
    fixture_begin(f);
    fixture_expect_pending(f, OP_EXTEND, "000");
    f->no_round = true;
    fixture_pass(f, 1000 * MS);
    fixture_expect_pending(f, OP_EXTEND, "000");
    fixture_begin(f);
    fixture_expect_pending(f, OP_EXTEND, "111");
}

CORE_TEST(a_repair_begins_no_second_round)
{
    open_round(f);
    hold_of(f)->repair_at_us = f->now_us;
    fixture_pass(f, 0);
    fixture_expect_pending(f, OP_EXTEND, "111");
    assert_int_equal(hold_of(f)->repair_at_us, CORE_NEVER);
}

/* ---- answers ---- */

CORE_TEST(a_yes_shows_that_the_key_is_there_and_was_extended)
{
    open_round(f);
    node_of(f, 0)->gone = true;
    node_of(f, 0)->key.valid_until_us = 0;
    fixture_answers(f, OP_EXTEND, "yy.");
    assert_false(node_of(f, 0)->gone);
    assert_true(node_of(f, 0)->extended);
    assert_int_equal(node_of(f, 0)->key.valid_until_us, f->now_us + 2968 * MS);
    assert_int_equal(core_counted(f->lock), 2); /* the third node's yes is from the acquire */
    fixture_answers(f, OP_EXTEND, "..m");
    assert_true(node_of(f, 2)->gone == false || node_of(f, 2)->key.valid_until_us == 0);
    assert_int_equal(node_of(f, 2)->key.valid_until_us, 0);
}

CORE_TEST(an_answer_to_an_earlier_round_fails_no_vote)
{
    const struct fixture_sent *first;

    open_round(f);
    first = fixture_latest(f, 2, OP_EXTEND);
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_pass(f, 1000 * MS);
    fixture_replay(f, first, OUTCOME_ERROR);
    assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_PENDING);
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_replay(f, fixture_latest(f, 0, OP_EXTEND), OUTCOME_ERROR);
    assert_int_equal(node_of(f, 0)->vote, CORE_VOTE_YES);
}

CORE_TEST(late_votes_of_the_acquire_are_no_round)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_answers(f, OP_ACQUIRE, "..y");
    assert_int_equal(hold_of(f)->round_state, ROUND_SETTLED);
    assert_int_equal(hold_of(f)->renew_at_us, FIXTURE_BEGIN_US + 1000 * MS);
    fixture_expect_pending(f, OP_REPAIR, "000");
    /* Before the owner knows of the grant, too: the third vote is the best of the quorum's. */
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    node_of(f, 0)->key.valid_until_us -= 1000;
    hold_of(f)->validity_us -= 1000;
    fixture_answers(f, OP_ACQUIRE, "..y");
    assert_int_equal(hold_of(f)->validity_us, FIXTURE_BEGIN_US + 2968 * MS);
}

CORE_TEST(a_step_of_a_clock_that_leaves_too_little_loses_the_lock_at_once)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_sleep(f, 1920 * MS); /* the third node's yes from the acquire lasts for less than the margin */
    fixture_step(f, 0, f->now_us);
    assert_int_equal(core_phase_now(f->lock), CORE_LOST);
}

/* The third node of the quorum is the one whose yes is oldest. */
CORE_TEST(a_round_that_leaves_too_little_loses_the_lock_at_once)
{
    fixture_open_held(f, 5, 3);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yyyuu");
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "ymmu.");
    fixture_sleep(f, 910 * MS);
    assert_int_equal(core_phase_now(f->lock), CORE_HELD);
    fixture_answers(f, OP_EXTEND, "....u");
    assert_int_equal(core_phase_now(f->lock), CORE_LOST);
}

CORE_TEST(an_adopted_lock_repairs_no_node_before_a_round)
{
    static const struct core_token token = {{3}};

    fixture_open(f, 3, 2);
    assert_int_equal(fixture_adopt(f, &token), CORE_OK);
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_answers(f, OP_EXTEND, "..m");
    fixture_expect_pending(f, OP_REPAIR, "000");
}
