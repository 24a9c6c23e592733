/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_calls.c - which calls a lock refuses, what each event leaves alone, and what a lock tells of itself */
#include <stdlib.h>

#include "core/debt.h"
#include "core/state.h"
#include "fixture.h"

#define WAIT_US (10000 * MS)

static struct core_node *node_of(struct fixture *f, uint32_t index)
{
    return &f->lock->nodes[index];
}

CORE_TEST(a_new_lock_knows_no_node)
{
    struct core_config config = fixture_config(3, 2);
    struct core_lock *lock = malloc(core_size(3));

    assert_non_null(lock);
    memset(lock, 0x5a, core_size(3));
    core_init(lock, &config, 2);
    assert_int_equal(lock->first_arbiter, 2);
    assert_int_equal(lock->lease_us, 3000 * MS);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lock->nodes[i].state, NODE_DOWN);
        assert_int_equal(lock->nodes[i].down_fault, FAULT_CLASS_TEMPORARY);
    }
    free(lock);
    (void)f;
}

CORE_TEST(a_call_is_refused_until_the_owner_knows_the_end_of_the_one_before)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, "ddd");
    assert_int_equal(fixture_acquire(f), CORE_OK);
    assert_int_equal(core_phase_now(f->lock), CORE_IDLE);
    assert_int_equal(fixture_acquire(f), CORE_BUSY);
    assert_int_equal(fixture_release(f), CORE_BUSY);
    assert_int_equal(fixture_detach(f), CORE_BUSY);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    fixture_node_states(f, "rrr");
    fixture_grant(f);
    assert_int_equal(fixture_extend(f, 0), CORE_OK);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(fixture_extend(f, 0), CORE_BUSY);
    assert_int_equal(fixture_release(f), CORE_BUSY);
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_OK);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answer_releases(f);
    assert_int_equal(core_may_release(f->lock), CORE_BUSY);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_int_equal(core_may_release(f->lock), CORE_STATE);
}

CORE_TEST(a_release_that_no_node_can_answer_ends_at_once)
{
    fixture_open_held(f, 3, 2);
    fixture_node_states(f, "ddd");
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_NOQUORUM);
}

CORE_TEST(a_round_that_waits_for_room_ends_with_the_hold)
{
    for (int how = 0; how < 2; how++) {
        fixture_open_held(f, 3, 2);
        f->no_round = true;
        fixture_pass(f, 1000 * MS);
        assert_int_equal(core_wants(f->lock), CORE_WANTS_ROUND);
        assert_int_equal(how == 0 ? fixture_release(f) : fixture_detach(f), CORE_OK);
        assert_int_equal(core_wants(f->lock), CORE_WANTS_NOTHING);
    }
}

CORE_TEST(a_successor_holds_by_its_own_options)
{
    fixture_open_waiting(f, 3, 2, WAIT_US);
    fixture_acquire(f);
    assert_int_equal(fixture_hand_off(f, f->now_us, 500 * MS), CORE_OK);
    assert_ptr_equal(f->lock->config, &f->successor);
    assert_int_equal(core_wait_until_us(f->lock), f->now_us + 500 * MS);
}

/* ---- replies ---- */

CORE_TEST(what_was_not_sent_or_has_no_answer_counts_on_no_connection)
{
    static const struct {
        enum outcome outcome;
        enum core_vote vote;
    } rows[] = {
        {OUTCOME_UNSENT, CORE_VOTE_FAILED}, {OUTCOME_UNKNOWN, CORE_VOTE_FAILED}, {OUTCOME_YES, CORE_VOTE_PENDING}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        fixture_open(f, 3, 2);
        fixture_acquire(f);
        for (uint32_t k = 0; k < f->n_sent; k++) f->sent[k].generation = 0;
        fixture_answer(f, 0, OP_ACQUIRE, rows[i].outcome);
        assert_int_equal(core_vote(f->lock, 0), rows[i].vote);
    }
}

CORE_TEST(round_trips_are_averaged_and_one_answer_at_most_doubles_them)
{
    static const struct {
        uint32_t before_us;
        uint64_t took_us;
        uint32_t after_us;
    } rows[] = {
        {0, 50 * MS, 50000},           {0, 5000 * MS, 1000000}, {500, 500, 500}, {500, 1000 * MS, (7 * 500 + 5000) / 8},
        {1000000, 9000 * MS, 1000000}, {800, 0, 700},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        fixture_open(f, 3, 2);
        fixture_acquire(f);
        node_of(f, 0)->srtt_us = rows[i].before_us;
        fixture_sleep(f, rows[i].took_us);
        fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
        assert_int_equal(node_of(f, 0)->srtt_us, rows[i].after_us);
        fixture_drop(f);
    }
}

/* ---- an event does its own work only ---- */

CORE_TEST(a_wake_or_room_for_releases_begins_no_round)
{
    fixture_open_held(f, 3, 2);
    f->no_round = true;
    fixture_pass(f, 1000 * MS);
    f->no_round = false;
    fixture_wake(f);
    fixture_expect_pending(f, OP_EXTEND, "000");
    fixture_room(f, 0);
    fixture_expect_pending(f, OP_EXTEND, "000");
}

CORE_TEST(room_for_an_attempt_sends_no_release_that_waits_for_its_node)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, "n..");
    fixture_begin(f);
    fixture_expect_pending(f, OP_RELEASE, "011");
    fixture_room(f, 0);
    fixture_expect_pending(f, OP_RELEASE, "111");
}

CORE_TEST(room_for_releases_moves_no_clock_and_a_clock_tells_of_no_change)
{
    fixture_open_held(f, 3, 2);
    fixture_room(f, 0);
    assert_int_equal(node_of(f, 0)->key.stepped_us, 0);
    assert_int_equal(f->lock->hold.renew_at_us, FIXTURE_BEGIN_US + 1000 * MS);
    fixture_step(f, 0, 0);
    assert_int_equal(node_of(f, 0)->key.stepped_us, f->now_us);
    assert_false(node_of(f, 0)->told);
}

CORE_TEST(an_update_has_nothing_of_the_step_before)
{
    fixture_open_held(f, 3, 2);
    f->update.late.until_us = 5;
    f->update.n_commands = 3;
    f->update.completion.kind = CORE_NOTIFY_LOST;
    fixture_wake(f);
    assert_int_equal(f->update.late.until_us, 0);
    assert_int_equal(f->update.n_commands, 0);
    assert_int_equal(f->update.completion.kind, CORE_NOTIFY_NOTHING);
}

/* ---- what a lock tells ---- */

CORE_TEST(a_lock_listens_while_a_release_may_help_it)
{
    static const struct {
        enum core_phase phase;
        enum wait_verdict awaits_room;
        uint32_t attempts, seen;
        uint64_t wait_us;
        bool searches, listens;
    } rows[] = {
        {CORE_WAITING, WAIT_STAY, 1, 0, WAIT_US, false, true},
        {CORE_ASKING, WAIT_STAY, 1, 0, WAIT_US, false, false},
        {CORE_ASKING, WAIT_STAY, 2, 0, WAIT_US, false, true},
        {CORE_HELD, WAIT_STAY, 2, 0, WAIT_US, false, false},
        {CORE_WAITING, WAIT_STAY, 1, 0, 0, false, false},
        {CORE_WAITING, WAIT_STAY, 1, 0, WAIT_US, true, false},
        {CORE_WAITING, WAIT_TRY_ALL, 0, 0, WAIT_US, false, false},
        {CORE_WAITING, WAIT_STAY, 0, 0, WAIT_US, false, true},
        {CORE_WAITING, WAIT_TRY_ALL, 1, 0, WAIT_US, false, true},
        {CORE_WAITING, WAIT_TRY_ALL, 0, CORE_SEEN_HELD, WAIT_US, false, true},
    };

    fixture_open(f, 3, 2);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->lock->phase = rows[i].phase;
        f->lock->awaits_room = rows[i].awaits_room;
        f->lock->acquire.attempts = rows[i].attempts;
        f->lock->acquire.seen = rows[i].seen;
        f->config.holder.wait_us = rows[i].wait_us;
        f->lock->wait.searches = rows[i].searches;
        assert_int_equal(core_listens(f->lock), rows[i].listens);
    }
    f->lock->phase = CORE_IDLE;
}

CORE_TEST(a_notice_cannot_help_an_acquire_that_waits_for_room_at_first)
{
    static const struct {
        enum wait_verdict awaits_room;
        uint32_t attempts;
        bool awaits;
    } rows[] = {{WAIT_STAY, 0, false}, {WAIT_TRY_ALL, 0, true}, {WAIT_TRY_ALL, 1, false}};

    fixture_open(f, 3, 2);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->lock->awaits_room = rows[i].awaits_room;
        f->lock->acquire.attempts = rows[i].attempts;
        assert_int_equal(core_awaits_first_attempt(f->lock), rows[i].awaits);
    }
}

CORE_TEST(a_vote_of_the_attempt_before_is_told_only_while_there_is_no_grant)
{
    static const struct {
        enum core_phase phase;
        enum core_vote vote;
    } rows[] = {
        {CORE_IDLE, CORE_VOTE_OTHER},   {CORE_WAITING, CORE_VOTE_OTHER}, {CORE_ASKING, CORE_VOTE_OTHER},
        {CORE_GRANTED, CORE_VOTE_NONE}, {CORE_HELD, CORE_VOTE_NONE},     {CORE_LOST, CORE_VOTE_NONE},
    };

    fixture_open(f, 3, 2);
    node_of(f, 0)->last_vote = CORE_VOTE_OTHER;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        node_of(f, 0)->vote = CORE_VOTE_NONE;
        f->lock->phase = rows[i].phase;
        assert_int_equal(core_vote(f->lock, 0), rows[i].vote);
        node_of(f, 0)->vote = CORE_VOTE_YES;
        assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_YES);
    }
    f->lock->phase = CORE_IDLE;
}

CORE_TEST(only_a_lock_that_may_wait_has_a_name_at_the_nodes)
{
    fixture_open(f, 3, 2);
    assert_null(core_waiter(f->lock));
    f->config.fair = true;
    assert_non_null(core_waiter(f->lock));
    f->config.fair = false;
    f->config.holder.wait_us = 1;
    assert_non_null(core_waiter(f->lock));
}

CORE_TEST(a_lock_has_its_own_token_only)
{
    struct core_token other;

    fixture_open_held(f, 3, 2);
    other = *core_token_now(f->lock);
    assert_true(core_has_token(f->lock, &other));
    other.bytes[0]++;
    assert_false(core_has_token(f->lock, &other));
}

CORE_TEST(a_lock_is_quiet_when_nothing_is_under_way)
{
    fixture_open(f, 3, 2);
    assert_true(core_quiet(f->lock));
    f->lock->phase = CORE_HELD;
    assert_false(core_quiet(f->lock));
    f->lock->phase = CORE_IDLE;
    f->lock->release.attempt = 1;
    assert_false(core_quiet(f->lock));
    f->lock->release.attempt = 0;
    f->lock->pending.kinds = 1;
    assert_false(core_quiet(f->lock));
    f->lock->pending.kinds = 0;
    node_of(f, 2)->debt.state = DEBT_OWED;
    assert_false(core_quiet(f->lock));
    node_of(f, 2)->debt.state = DEBT_NONE;
}

CORE_TEST(what_remains_of_a_lost_lock_depends_on_its_loss)
{
    static const struct {
        enum core_loss loss;
        uint64_t left_us;
    } rows[] = {{CORE_LOSS_EXPIRED, 50}, {CORE_LOSS_GONE, 0}, {CORE_LOSS_CLOCK, 0}};

    fixture_open(f, 3, 2);
    f->lock->hold.validity_us = f->now_us + 50;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->lock->phase = CORE_LOST;
        f->lock->hold.loss = rows[i].loss;
        assert_int_equal(core_remaining_us(f->lock, f->now_us), rows[i].left_us);
        assert_int_equal(core_remaining_us(f->lock, f->now_us + 60), 0);
    }
    f->lock->phase = CORE_IDLE;
}

/* ---- nodes ---- */

/* Too few nodes voted, so the lock waits for one that answers, if only by a fault that lasts. */
CORE_TEST(a_waiting_lock_asks_soon_where_a_node_answers_in_any_way)
{
    static const struct {
        enum node_state state;
        enum fault_class fault;
        bool logged_in, soon;
    } rows[] = {
        {NODE_DOWN, FAULT_CLASS_TEMPORARY, false, false}, {NODE_DOWN, FAULT_CLASS_NONE, false, false},
        {NODE_DOWN, FAULT_CLASS_AUTH, false, true},       {NODE_DOWN, FAULT_CLASS_AUTH, true, true},
        {NODE_DOWN, FAULT_CLASS_LOGIN, false, true},      {NODE_DOWN, FAULT_CLASS_LOGIN, true, false},
        {NODE_READY, FAULT_CLASS_NONE, false, true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint64_t retry_at_us;

        fixture_open_waiting(f, 3, 2, 100000 * MS);
        fixture_acquire(f);
        fixture_node_states(f, "dd.");
        fixture_answers(f, OP_ACQUIRE, "..e");
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        retry_at_us = f->lock->wait.retry_at_us;
        f->logged_in = rows[i].logged_in;
        fixture_node_state_fault(f, 0, rows[i].state, rows[i].fault);
        assert_int_equal(f->lock->wait.retry_at_us < retry_at_us, rows[i].soon);
    }
}

CORE_TEST(a_notice_begins_the_first_attempt_of_a_lock_behind_others_but_not_of_one_without_room)
{
    fixture_open_waiting(f, 3, 2, WAIT_US);
    assert_int_equal(fixture_acquire_behind(f), CORE_OK);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_rounds(f->lock), 1);
    fixture_open_waiting(f, 3, 2, WAIT_US);
    f->no_attempt = true;
    assert_int_equal(fixture_acquire(f), CORE_OK);
    f->no_attempt = false;
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(core_rounds(f->lock), 0);
    /* A later attempt that waits for room may ask all, after a notice. */
    fixture_open_waiting(f, 3, 2, WAIT_US);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    f->lock->waiters = 2;
    f->no_attempt = true;
    fixture_pass(f, 2000 * MS);
    assert_int_equal(f->lock->awaits_room, WAIT_TRY_ARBITER);
    fixture_notice(f, 0, HOLDER);
    assert_int_equal(f->lock->awaits_room, WAIT_TRY_ALL);
}
