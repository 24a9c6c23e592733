/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_debts.c - what a debt of a release becomes with each event, as tables */
#include <stdlib.h>

#include "core/debt.h"
#include "core/state.h"
#include "fixture.h"

#define FIRST  3u /* the attempt whose release is owed */
#define LATEST 5u

static struct step step_of(struct fixture *f)
{
    f->update.n_commands = 0;
    f->update.late.until_us = 0;
    return (struct step){.now_us = f->now_us, .update = &f->update, .slots = f->slots};
}

/* An idle lock of three nodes, which has made some attempts, with the block of debts. */
static void open_idle(struct fixture *f)
{
    fixture_open(f, 3, 2);
    for (uint32_t i = 0; i < 3; i++) f->lock->nodes[i].more = f->debts + (size_t)i * CORE_DEBTS_LENT;
    f->lock->id.number = LATEST;
}

static struct debt *owe_at(struct fixture *f, uint32_t node, struct debt debt)
{
    struct debt *at = &f->lock->nodes[node].debt;

    *at = debt;
    at->id.number = FIRST;
    at->until_us = f->now_us + 1000 * MS;
    f->lock->owing |= 1u << node;
    return at;
}

static struct debt *owe_sent(struct fixture *f, uint32_t node)
{
    struct debt *debt = owe_at(f, node, (struct debt){.state = DEBT_OWED, .again_at_us = CORE_NEVER});

    debt->sent_generation = f->lock->nodes[node].generation;
    return debt;
}

static void answer(struct fixture *f, uint32_t node, const struct core_reply *of)
{
    struct step step = step_of(f);
    struct core_reply reply = *of;

    reply.tag = (struct core_tag){.op = OP_RELEASE, .node = (uint8_t)node, .attempt = FIRST};
    reply.generation = f->lock->nodes[node].generation;
    debt_on_reply(f->lock, &step, &reply);
}

/* The fixture gives the block back by itself. */
static void close_idle(struct fixture *f)
{
    for (uint32_t i = 0; i < 3; i++) f->lock->nodes[i].more = NULL;
}

CORE_TEST(a_debt_is_found_by_its_attempt_and_by_its_token)
{
    static const struct core_token none;
    struct debt *debt;

    open_idle(f);
    debt = owe_at(f, 0, (struct debt){.state = DEBT_OWED});
    assert_ptr_equal(debt_of(&f->lock->nodes[0], FIRST), debt);
    assert_null(debt_of(&f->lock->nodes[0], LATEST));
    assert_true(debt_has_token(&f->lock->nodes[0], &none));
    debt->id.token.bytes[0] = 1;
    assert_false(debt_has_token(&f->lock->nodes[0], &none));
    debt->id.token.bytes[0] = 0;
    debt->state = DEBT_NONE;
    assert_null(debt_of(&f->lock->nodes[0], FIRST));
    assert_false(debt_has_token(&f->lock->nodes[0], &none));
    close_idle(f);
}

CORE_TEST(the_block_of_debts_is_taken_for_a_node_that_owes_a_release)
{
    for (int owes = 0; owes < 2; owes++) {
        struct step step;

        fixture_open(f, 3, 2);
        step = step_of(f);
        step.debts = f->debts;
        if (owes == 1) (void)owe_sent(f, 0);
        for (int i = 0; i < 2; i++) assert_true(debt_has_room(f->lock, &step, &f->lock->nodes[0]));
        assert_ptr_equal(core_debts_block(f->lock), owes == 1 ? f->debts : NULL);
        close_idle(f);
    }
}

CORE_TEST(the_block_of_debts_goes_back_unless_a_node_may_need_it)
{
    for (int row = 0; row < 4; row++) {
        open_idle(f);
        if (row != 1) (void)owe_sent(f, 0);
        if (row == 2) f->lock->nodes[0].key.until_us = CORE_NEVER;
        if (row == 3) f->lock->nodes[2].more[CORE_DEBTS_LENT - 1].state = DEBT_OWED;
        f->lock->nodes[1].key.until_us = CORE_NEVER; /* it owes nothing yet */
        debt_give_back(f->lock);
        assert_int_equal(core_debts_block(f->lock) == NULL, row < 2);
        if (row == 3) f->lock->nodes[2].more[CORE_DEBTS_LENT - 1].state = DEBT_NONE;
        close_idle(f);
    }
}

CORE_TEST(a_release_that_waited_for_room_has_its_time_to_answer_from_then_on)
{
    static const struct {
        enum debt_state state;
        uint64_t release;
        bool anew;
    } rows[] = {{DEBT_UNSENT, FIRST, true}, {DEBT_UNSENT, LATEST, false}, {DEBT_OWED, FIRST, false}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct step step;
        struct debt *debt;

        open_idle(f);
        debt = owe_at(f, 0, (struct debt){.state = rows[i].state, .again_at_us = f->now_us});
        f->lock->release = (struct release){.attempt = rows[i].release, .until_us = f->now_us + 1, .looked_us = 1};
        step = step_of(f);
        if (rows[i].state == DEBT_OWED) debt_hurry(f->lock, &step, 0);
        if (rows[i].state == DEBT_UNSENT) {
            (void)owe_at(f, 1, (struct debt){.state = DEBT_UNSENT});
            debt_on_room(f->lock, &step, 0);
        }
        assert_int_equal(f->update.n_commands, 1);
        assert_int_equal(f->update.commands[0].timeout_us, 0);
        assert_int_equal(debt->state, DEBT_OWED);
        assert_int_equal(debt->sent_generation, f->lock->nodes[0].generation);
        if (rows[i].anew) {
            assert_int_equal(f->lock->release.until_us, f->now_us + 100 * MS);
            assert_int_equal(f->lock->release.looked_us, 0);
        } else {
            assert_int_equal(f->lock->release.until_us, f->now_us + 1);
        }
        close_idle(f);
    }
}

CORE_TEST(room_sends_what_waits_at_a_node_that_takes_requests)
{
    struct step step;
    struct debt *debt;

    open_idle(f);
    debt = owe_at(f, 0, (struct debt){.state = DEBT_UNSENT});
    debt->until_us = f->now_us;
    step = step_of(f);
    debt_on_room(f->lock, &step, 0);
    assert_int_equal(f->update.n_commands, 0);
    debt->until_us = CORE_NEVER;
    f->lock->nodes[0].state = NODE_DOWN;
    debt_on_room(f->lock, &step, 0);
    assert_int_equal(f->update.n_commands, 0);
    f->lock->nodes[0].state = NODE_READY;
    debt_on_room(f->lock, &step, 0);
    assert_int_equal(f->update.n_commands, 1);
    debt_on_room(f->lock, &step, 0);
    assert_int_equal(f->update.n_commands, 1);
    /* And a release that nobody waits for any more ends. */
    f->lock->release = (struct release){.attempt = LATEST, .until_us = f->now_us, .looked_us = 1};
    debt_on_room(f->lock, &step, 1);
    assert_int_equal(f->lock->release.attempt, 0);
    f->lock->pending.kinds = 0;
    close_idle(f);
}

CORE_TEST(a_permit_that_the_arbiter_was_to_choose_is_released_by_its_token)
{
    static const struct {
        enum core_phase phase;
        enum core_vote vote;
        enum attempt_stage stage;
        bool unnamed;
    } rows[] = {
        {CORE_ASKING, CORE_VOTE_PENDING, ATTEMPT_ASKS_ARBITER, true},
        {CORE_ASKING, CORE_VOTE_YES, ATTEMPT_ASKS_ARBITER, false},
        {CORE_ASKING, CORE_VOTE_PENDING, ATTEMPT_ASKS_ALL, false},
        {CORE_IDLE, CORE_VOTE_PENDING, ATTEMPT_ASKS_ARBITER, false},
    };
    struct core_config config = fixture_config(3, 2);

    for (uint32_t permits = 0; permits < 2; permits++) {
        config.permits = permits * 4;
        for (size_t i = 0; i < LENGTH(rows); i++) {
            struct step step;
            struct core_node *node;

            fixture_open_config(f, &config);
            step = step_of(f);
            f->lock->id.number = LATEST;
            f->lock->id.slot = 0;
            f->lock->phase = rows[i].phase;
            f->lock->attempt.stage = rows[i].stage;
            node = &f->lock->nodes[0];
            node->vote = rows[i].vote;
            node->key.until_us = f->now_us + 1;
            node->open = node->late = true;
            debt_end_attempt(f->lock, &step, DEBT_WAKES_ALL);
            assert_int_equal(node->debt.id.slot, permits != 0 && rows[i].unnamed ? CORE_SLOT_NONE : 0);
            assert_int_equal(f->update.commands[0].tag.slot, node->debt.id.slot);
            assert_false(node->open || node->late);
            assert_true(node->debt.open);
            f->lock->phase = CORE_IDLE;
        }
    }
}

CORE_TEST(only_the_notice_of_a_failed_attempt_comes_back_to_this_client)
{
    static const struct {
        enum core_phase phase;
        enum core_vote vote;
        uint32_t wakes;
        uint8_t own;
        bool listening, echoed;
    } rows[] = {
        {CORE_ASKING, CORE_VOTE_YES, 0, 3, true, true},   {CORE_ASKING, CORE_VOTE_YES, DEBT_WAKES_ALL, 3, true, true},
        {CORE_ASKING, CORE_VOTE_YES, 1, 3, true, false},  {CORE_ASKING, CORE_VOTE_PENDING, 0, 3, true, false},
        {CORE_ASKING, CORE_VOTE_YES, 0, 3, false, false}, {CORE_ASKING, CORE_VOTE_YES, 0, 200, true, false},
        {CORE_IDLE, CORE_VOTE_YES, 0, 3, true, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct step step;
        struct core_node *node;

        open_idle(f);
        step = step_of(f);
        f->lock->phase = rows[i].phase;
        node = &f->lock->nodes[0];
        node->vote = rows[i].vote;
        node->key.until_us = f->now_us + 1;
        node->notices.listening = rows[i].listening;
        node->notices.own = rows[i].own;
        debt_end_attempt(f->lock, &step, rows[i].wakes);
        assert_int_equal(node->debt.echoed, rows[i].echoed);
        assert_int_equal(node->notices.own, rows[i].own + rows[i].echoed);
        f->lock->phase = CORE_IDLE;
        close_idle(f);
    }
}

CORE_TEST(a_release_that_published_nothing_comes_back_to_nobody)
{
    static const struct {
        struct core_reply reply;
        bool echoed;
        uint8_t own, left;
    } rows[] = {
        {{.outcome = OUTCOME_YES, .listeners = 1}, true, 2, 2},
        {{.outcome = OUTCOME_YES}, true, 2, 1},
        {{.outcome = OUTCOME_YES}, false, 2, 2},
        {{.outcome = OUTCOME_YES}, true, 0, 0},
        {{.outcome = OUTCOME_MISSING, .listeners = 1}, true, 2, 1},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct debt *debt;

        open_idle(f);
        debt = owe_sent(f, 0);
        debt->echoed = rows[i].echoed;
        f->lock->nodes[0].notices.own = rows[i].own;
        answer(f, 0, &rows[i].reply);
        assert_int_equal(f->lock->nodes[0].notices.own, rows[i].left);
        assert_int_equal(debt->echoed, rows[i].reply.listeners != 0 && rows[i].reply.outcome == OUTCOME_YES);
        assert_int_equal(f->lock->owing, 0);
        close_idle(f);
    }
}

CORE_TEST(an_answer_to_a_release_settles_it_or_has_it_sent_again)
{
    static const struct {
        struct core_reply reply;
        enum debt_state state;
        bool unclear, again;
    } rows[] = {
        {{.outcome = OUTCOME_YES}, DEBT_NONE, false, false},
        {{.outcome = OUTCOME_MISSING}, DEBT_NONE, false, false},
        {{.outcome = OUTCOME_UNKNOWN}, DEBT_OWED, true, true},
        {{.outcome = OUTCOME_UNSENT}, DEBT_UNSENT, false, false},
        {{.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_FOREIGN}, DEBT_NONE, false, false},
        {{.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_TEMPORARY}, DEBT_OWED, false, true},
        {{.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_AUTH}, DEBT_REFUSED, false, true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct debt *debt;

        open_idle(f);
        debt = owe_sent(f, 0);
        answer(f, 0, &rows[i].reply);
        assert_int_equal(debt->state, rows[i].state);
        assert_int_equal(debt->unclear, rows[i].unclear);
        assert_int_equal(debt->again_at_us != CORE_NEVER, rows[i].again);
        if (rows[i].state != DEBT_NONE) assert_int_equal(debt->sent_generation, 0);
        assert_int_equal(f->lock->owing, rows[i].state != DEBT_NONE);
        close_idle(f);
    }
}

CORE_TEST(an_answer_belongs_to_its_attempt_and_connection_and_counts_once)
{
    struct debt *debt;

    open_idle(f);
    f->lock->release = (struct release){.attempt = FIRST, .until_us = CORE_NEVER};
    (void)owe_sent(f, 1);
    (void)owe_sent(f, 2);
    debt = owe_sent(f, 0);
    debt->id.number = LATEST;
    answer(f, 0, &(struct core_reply){.outcome = OUTCOME_MISSING});
    assert_int_equal(debt->state, DEBT_OWED);
    debt->id.number = FIRST;
    debt->sent_generation = 0;
    answer(f, 0, &(struct core_reply){.outcome = OUTCOME_MISSING});
    assert_int_equal(debt->state, DEBT_OWED);
    debt->sent_generation = f->lock->nodes[0].generation;
    answer(f, 0, &(struct core_reply){.outcome = OUTCOME_MISSING});
    assert_int_equal(f->lock->release.absent, 1);
    f->lock->owing |= 1;
    answer(f, 0, &(struct core_reply){.outcome = OUTCOME_MISSING});
    assert_int_equal(f->lock->release.absent, 1);
    f->lock->pending.kinds = 0;
    close_idle(f);
}

CORE_TEST(a_key_that_may_be_set_late_is_handed_over_with_its_token)
{
    static const struct {
        enum outcome outcome;
        bool late, twice, reads, passed_on;
    } rows[] = {
        {OUTCOME_YES, true, true, false, true},     {OUTCOME_YES, true, false, false, false},
        {OUTCOME_YES, false, true, false, false},   {OUTCOME_MISSING, true, false, false, true},
        {OUTCOME_MISSING, true, false, true, true}, {OUTCOME_MISSING, false, true, false, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct debt *debt;

        open_idle(f);
        f->config.reads = rows[i].reads;
        debt = owe_sent(f, 0);
        debt->late = rows[i].late;
        debt->twice = rows[i].twice;
        debt->id.fence = 44;
        answer(f, 0, &(struct core_reply){.outcome = rows[i].outcome});
        assert_int_equal(f->update.late.until_us != 0, rows[i].passed_on);
        if (rows[i].passed_on) {
            assert_int_equal(f->update.late.until_us, f->now_us + 3000 * MS);
            assert_int_equal(f->update.late.fence, rows[i].reads ? 0 : 44);
        }
        close_idle(f);
    }
}

CORE_TEST(a_new_connection_carries_the_releases_that_are_owed)
{
    static const struct {
        enum debt_state state;
        uint32_t sent_generation;
        bool sends, unclear;
    } rows[] = {
        {DEBT_OWED, 1, true, true},   {DEBT_OWED, 0, true, false},  {DEBT_REFUSED, 1, true, false},
        {DEBT_OWED, 2, false, false}, {DEBT_NONE, 1, false, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct step step;
        struct debt *debt;

        open_idle(f);
        f->lock->nodes[0].generation = 2;
        debt = owe_at(f, 0, (struct debt){.state = rows[i].state, .sent_generation = rows[i].sent_generation});
        step = step_of(f);
        debt_pay(f->lock, &step, 0);
        assert_int_equal(f->update.n_commands, rows[i].sends);
        assert_int_equal(debt->unclear, rows[i].unclear);
        assert_int_equal(debt->if_deleted, rows[i].sends);
        f->lock->nodes[0].generation = 1;
        debt->state = DEBT_NONE;
        close_idle(f);
    }
}

/* ---- requests that may still set the key ---- */

CORE_TEST(an_answer_shows_that_no_request_is_under_way_any_more)
{
    enum { NO_GENERATION = 1, OTHER_ATTEMPT = 2, KEEPS = 4, REPAIRED = 8, NONE_OWED = 16 };
    static const struct {
        enum op op;
        enum outcome outcome;
        uint32_t how, round;
        bool open, late, debt_open;
    } rows[] = {
        {OP_ACQUIRE, OUTCOME_YES, 0, 0, false, true, false},
        {OP_ACQUIRE, OUTCOME_UNSENT, 0, 0, false, true, false},
        {OP_ACQUIRE, OUTCOME_UNKNOWN, 0, 0, true, true, true},
        {OP_ACQUIRE, OUTCOME_YES, NO_GENERATION, 0, true, true, true},
        {OP_ACQUIRE, OUTCOME_YES, OTHER_ATTEMPT, 0, true, true, true},
        {OP_REPAIR, OUTCOME_UNSENT, 0, 0, true, true, true},
        {OP_REPAIR, OUTCOME_YES, REPAIRED, 2, false, true, false},
        {OP_EXTEND, OUTCOME_YES, 0, 1, false, false, true},
        {OP_EXTEND, OUTCOME_MISSING, 0, 1, false, true, true},
        {OP_EXTEND, OUTCOME_YES, KEEPS, 1, false, true, true},
        {OP_EXTEND, OUTCOME_YES, REPAIRED, 3, false, true, true},
        {OP_EXTEND, OUTCOME_YES, REPAIRED, 2, true, true, true},
        {OP_EXTEND, OUTCOME_YES, OTHER_ATTEMPT, 1, true, true, true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_reply reply = {.outcome = rows[i].outcome};
        struct core_node *node;
        struct debt *other;
        struct debt *debt;

        open_idle(f);
        f->config.holder.keep_us = (rows[i].how & KEEPS) != 0 ? 1 : 0;
        f->lock->id.number = FIRST;
        node = &f->lock->nodes[0];
        node->open = node->late = true;
        node->key.repair_round = (rows[i].how & REPAIRED) != 0 ? 2 : 0;
        debt = owe_at(f, 0, (struct debt){.state = DEBT_OWED, .open = true});
        other = &node->more[0];
        *other = (struct debt){.state = DEBT_NONE, .open = true, .id.number = FIRST};
        node->more[1] = (struct debt){.state = DEBT_OWED, .open = true, .id.number = FIRST - 1};
        reply.tag = (struct core_tag){.op = (uint8_t)rows[i].op, .attempt = FIRST, .round = rows[i].round};
        if ((rows[i].how & OTHER_ATTEMPT) != 0) reply.tag.attempt = FIRST + 1;
        reply.generation = node->generation + ((rows[i].how & NO_GENERATION) != 0);
        debt_on_set_answered(f->lock, &reply);
        assert_int_equal(node->open, rows[i].open);
        assert_int_equal(node->late, rows[i].late);
        assert_int_equal(debt->open, rows[i].debt_open);
        assert_true(other->open && node->more[1].open);
        node->more[1].state = DEBT_NONE;
        f->lock->id.number = LATEST;
        close_idle(f);
    }
}

CORE_TEST(what_was_open_on_a_connection_that_ended_may_come_late)
{
    struct core_node *node;
    struct debt *debt;

    open_idle(f);
    node = &f->lock->nodes[0];
    assert_false(debt_may_come_late(f->lock, node, f->now_us));
    node->open = true;
    assert_true(debt_may_come_late(f->lock, node, f->now_us));
    debt = owe_at(f, 0, (struct debt){.state = DEBT_OWED, .open = true});
    debt_on_connection_ended(f->lock, 0, f->now_us);
    assert_false(node->open || debt->open);
    assert_true(node->late && debt->late);
    assert_true(debt_may_come_late(f->lock, node, f->now_us + 59999 * MS));
    assert_false(debt_may_come_late(f->lock, node, f->now_us + 60000 * MS));
    node->open = node->late = true;
    debt_waive(f->lock);
    assert_false(node->open || node->late);
    debt->state = DEBT_NONE;
    f->lock->owing = 0;
    close_idle(f);
}

/* ---- when a release is sent again ---- */

CORE_TEST(a_release_that_is_due_is_sent_to_a_node_that_takes_requests)
{
    struct step step;
    struct debt *debt;

    open_idle(f);
    debt = owe_at(f, 0, (struct debt){.state = DEBT_OWED, .again_at_us = f->now_us + 1, .echoed = true});
    assert_int_equal(debt_deadline(f->lock), f->now_us + 1);
    step = step_of(f);
    debt_on_timer(f->lock, &step);
    assert_int_equal(f->update.n_commands, 0);
    step.now_us = ++f->now_us;
    f->lock->nodes[0].state = NODE_DOWN;
    debt_on_timer(f->lock, &step);
    assert_false(debt_hurry(f->lock, &step, 0));
    assert_int_equal(f->update.n_commands, 0);
    assert_int_equal(debt_deadline(f->lock), debt->until_us);
    f->lock->nodes[0].state = NODE_READY;
    f->update.n_commands = 3; /* there is no room in this step */
    debt_on_timer(f->lock, &step);
    assert_int_equal(f->update.n_commands, 3);
    f->update.n_commands = 2;
    debt_on_timer(f->lock, &step);
    assert_int_equal(f->update.n_commands, 3);
    /* The key has expired: nobody owes anything, and no notice will come. */
    f->lock->nodes[0].notices.own = 1;
    step.now_us = debt->until_us;
    debt_on_timer(f->lock, &step);
    assert_int_equal(debt->state, DEBT_NONE);
    assert_int_equal(f->lock->nodes[0].notices.own, 0);
    assert_int_equal(f->lock->owing, 0);
    assert_int_equal(debt_deadline(f->lock), CORE_NEVER);
    close_idle(f);
}

CORE_TEST(only_what_is_due_later_is_hurried)
{
    struct step step;

    open_idle(f);
    step = step_of(f);
    assert_false(debt_hurry(f->lock, &step, 0));
    (void)owe_sent(f, 0);
    assert_false(debt_hurry(f->lock, &step, 0));
    f->lock->nodes[0].debt.again_at_us = f->now_us + 5000;
    assert_true(debt_hurry(f->lock, &step, 0));
    f->lock->nodes[0].debt.again_at_us = f->now_us + 5000;
    f->lock->nodes[0].debt.until_us = f->now_us;
    assert_false(debt_hurry(f->lock, &step, 0));
    assert_int_equal(f->update.n_commands, 1);
    close_idle(f);
}

/* ---- the result of a release ---- */

struct at_node {
    enum debt_state state;
    bool sent, again, down, overdue;
};

CORE_TEST(a_release_ends_when_its_result_is_certain_or_its_time_is_over)
{
    enum { GOES_ON = 1 };
    static const struct {
        struct at_node nodes[3];
        uint32_t absent;
        bool expired, late;
        int status;
    } rows[] = {
        {{{0}, {0}, {0}}, 0, false, false, CORE_OK},
        {{{0}, {0}, {DEBT_OWED, .sent = true}}, 0, false, false, CORE_OK},
        {{{0}, {0}, {DEBT_OWED, .sent = true}}, 1, false, false, GOES_ON}, /* the hold may have expired before */
        {{{0}, {0}, {DEBT_OWED, .sent = true}}, 1, false, true, CORE_OK},
        {{{0}, {0}, {DEBT_OWED, .sent = true}}, 2, false, false, CORE_OK},
        {{{0}, {0}, {DEBT_OWED, .down = true}}, 1, false, false, CORE_OK},
        {{{0}, {DEBT_OWED, .sent = true}, {.state = DEBT_OWED}}, 0, false, false, GOES_ON},
        {{{0}, {DEBT_OWED, .sent = true}, {.state = DEBT_OWED}}, 0, false, true, CORE_NOQUORUM},
        {{{0}, {.state = DEBT_OWED}, {.state = DEBT_OWED}}, 0, false, false, CORE_NOQUORUM},
        {{{0}, {.state = DEBT_OWED}, {.state = DEBT_OWED}}, 0, true, false, CORE_OK},
        {{{0}, {DEBT_OWED, .again = true}, {.state = DEBT_OWED}}, 0, false, false, GOES_ON},
        {{{0}, {DEBT_REFUSED, .again = true}, {.state = DEBT_OWED}}, 0, false, false, CORE_NOQUORUM},
        {{{0}, {DEBT_OWED, .again = true, .down = true}, {.state = DEBT_OWED}}, 0, false, false, CORE_NOQUORUM},
        {{{0}, {DEBT_UNSENT, .down = true}, {.state = DEBT_OWED}}, 0, false, false, CORE_NOQUORUM},
        {{{0}, {.state = DEBT_UNSENT}, {.state = DEBT_OWED}}, 0, false, true, GOES_ON}, /* room will come */
        {{{0}, {DEBT_UNSENT, .overdue = true}, {.state = DEBT_OWED}}, 0, false, true, CORE_NOQUORUM},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        open_idle(f);
        for (uint32_t k = 0; k < 3; k++) {
            const struct at_node *at = &rows[i].nodes[k];
            struct debt *debt;

            if (at->state == DEBT_NONE) continue;
            debt = owe_at(f, k, (struct debt){.state = at->state, .again_at_us = at->again ? 1 : CORE_NEVER});
            if (at->sent) debt->sent_generation = f->lock->nodes[k].generation;
            if (at->down) f->lock->nodes[k].state = NODE_DOWN;
            f->lock->nodes[k].doubt.overdue = at->overdue;
        }
        f->lock->release = (struct release){.attempt = FIRST,
                                            .until_us = rows[i].late ? f->now_us : CORE_NEVER,
                                            .looked_us = rows[i].late ? 1 : 0,
                                            .absent = rows[i].absent,
                                            .expired = rows[i].expired};
        debt_judge_release(f->lock, f->now_us);
        assert_int_equal(f->lock->release.attempt != 0, rows[i].status == GOES_ON);
        if (rows[i].status != GOES_ON) {
            assert_int_equal(f->lock->pending.status[CORE_NOTIFY_RELEASED], rows[i].status);
            assert_int_equal(f->lock->release.expired, rows[i].expired || rows[i].absent > 1);
        }
        f->lock->pending.kinds = 0;
        close_idle(f);
    }
}

CORE_TEST(the_time_of_a_release_ends_a_while_after_its_end_was_found_near)
{
    open_idle(f);
    for (uint32_t i = 0; i < 2; i++) (void)owe_sent(f, i);
    f->lock->release = (struct release){.attempt = FIRST, .until_us = f->now_us + 100 * MS};
    assert_int_equal(debt_release_deadline(f->lock), f->now_us + 75 * MS);
    debt_judge_release(f->lock, f->now_us + 75 * MS - 1);
    assert_int_equal(f->lock->release.looked_us, 0);
    debt_judge_release(f->lock, f->now_us + 75 * MS);
    assert_int_equal(f->lock->release.looked_us, f->now_us + 75 * MS);
    assert_int_equal(debt_release_deadline(f->lock), f->now_us + 100 * MS);
    f->lock->release.until_us += 10 * MS;
    debt_judge_release(f->lock, f->now_us + 105 * MS);
    assert_int_equal(f->lock->release.attempt, FIRST);
    debt_judge_release(f->lock, f->now_us + 110 * MS);
    assert_int_equal(f->lock->release.attempt, 0);
    f->lock->pending.kinds = 0;
    /* While it waits for room, the time does not run. */
    f->lock->release = (struct release){.attempt = FIRST, .until_us = f->now_us + 100 * MS};
    f->lock->nodes[0].debt.state = DEBT_UNSENT;
    assert_int_equal(debt_release_deadline(f->lock), CORE_NEVER);
    f->lock->nodes[1].debt.state = DEBT_NONE;
    assert_int_equal(debt_release_deadline(f->lock), f->now_us + 75 * MS);
    f->lock->release.attempt = 0;
    assert_int_equal(debt_release_deadline(f->lock), CORE_NEVER);
    close_idle(f);
}
