/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_queues.c - the decisions of fair.c as tables: whom a fair lock asks first, for how long, whose turn it is
 */
#include "core/arbiter.h"
#include "core/fair.h"
#include "core/state.h"
#include "fixture.h"

#define WAIT_US (10000 * MS)

static struct core_node *node_of(struct fixture *f, uint32_t index)
{
    return &f->lock->nodes[index];
}

/* An idle fair lock; a fourth node stands behind the three, and must never be looked at. */
static void open_fair(struct fixture *f)
{
    struct core_config config = fixture_config(4, 3);

    config.fair = true;
    config.holder.wait_us = WAIT_US;
    config.node_timeout_us = 1000 * MS;
    fixture_open_config(f, &config);
    f->config.n_nodes = 3;
    f->config.quorum = 2;
    f->lock->acquire.attempts = 1;
}

/* A fair acquire that may wait is under way. */
static void acquire_fair(struct fixture *f, uint32_t permits)
{
    struct core_config config = fixture_config(3, 2);

    config.fair = true;
    config.permits = permits;
    config.holder.wait_us = WAIT_US;
    fixture_open_config(f, &config);
    fixture_acquire(f);
}

CORE_TEST(the_first_node_that_may_serve_is_asked)
{
    enum { ASKED = 1, OVERDUE = 2, DOWN = 4, CONNECTING = 8, BROKEN = 16, UNFIT = 32, MINORITY = 64 };
    static const struct {
        uint32_t nodes[3], first;
    } rows[] = {
        {{0, 0, 0}, 0},
        {{ASKED, 0, 0}, 1},
        {{OVERDUE, 0, 0}, 1},
        {{DOWN, 0, 0}, 1},
        {{CONNECTING, 0, 0}, 0},
        {{CONNECTING | BROKEN, 0, 0}, 1},
        {{UNFIT, 0, 0}, 1},
        {{UNFIT, UNFIT, UNFIT}, 0},
        {{UNFIT | MINORITY, UNFIT, UNFIT}, 1},
        {{UNFIT | MINORITY, DOWN, UNFIT | MINORITY}, 3},
        {{MINORITY, MINORITY, 0}, 2},
        {{UNFIT, CONNECTING, 0}, 1},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct plan plan;

        open_fair(f);
        for (uint32_t k = 0; k < 3; k++) {
            struct core_node *node = node_of(f, k);
            uint32_t is = rows[i].nodes[k];

            if ((is & ASKED) != 0) node->vote = CORE_VOTE_PENDING;
            if ((is & DOWN) != 0) node->state = NODE_DOWN;
            if ((is & CONNECTING) != 0) node->state = NODE_CONNECTING;
            if ((is & MINORITY) != 0) node->asked.minority_id = HOLDER;
            node->doubt.overdue = (is & OVERDUE) != 0;
            node->doubt.broken = (is & BROKEN) != 0;
            node->doubt.unfit = (is & UNFIT) != 0;
        }
        plan = fair_plan(f->lock, f->now_us);
        assert_int_equal(plan.first, rows[i].first);
        assert_int_equal(plan.until_us == 0, plan.first == 3);
    }
}

CORE_TEST(a_lock_that_waits_gives_its_arbiter_longer)
{
    open_fair(f);
    assert_int_equal(fair_plan_at(f->lock, 0, f->now_us).until_us,
                     arbiter_timeout(node_of(f, 0), f->now_us) + 100 * MS);
    f->lock->acquire.attempts = 2;
    assert_int_equal(fair_plan_at(f->lock, 0, f->now_us).until_us,
                     arbiter_timeout(node_of(f, 0), f->now_us) + 500 * MS);
    f->config.node_timeout_us = 9000 * MS;
    assert_int_equal(fair_plan_at(f->lock, 0, f->now_us).until_us,
                     arbiter_timeout(node_of(f, 0), f->now_us) + 1000 * MS);
    node_of(f, 0)->state = NODE_CONNECTING;
    assert_int_equal(fair_plan_at(f->lock, 0, f->now_us).until_us, f->now_us + 250 * MS);
}

CORE_TEST(a_node_that_may_have_given_a_permit_is_not_simply_passed_over)
{
    open_fair(f);
    assert_int_equal(fair_plan_at(f->lock, 0, f->now_us).on_silence, SILENCE_ASKS_NEXT);
    f->config.permits = 4;
    assert_int_equal(fair_plan_at(f->lock, 0, f->now_us).on_silence, SILENCE_BEGINS_ANEW);
    node_of(f, 0)->state = NODE_CONNECTING;
    assert_int_equal(fair_plan_at(f->lock, 0, f->now_us).on_silence, SILENCE_ASKS_NEXT);
    f->config.permits = 0;
}

CORE_TEST(a_search_pauses_only_for_the_arbiters_slots)
{
    open_fair(f);
    f->lock->attempt.plan.first = 1;
    f->lock->attempt.stage = ATTEMPT_FAILED;
    assert_int_equal(fair_search_at_us(f->lock, f->now_us), f->now_us);
    f->lock->attempt.stage = ATTEMPT_ASKS_ARBITER;
    assert_int_equal(fair_search_at_us(f->lock, f->now_us), arbiter_timeout(node_of(f, 1), f->now_us));
}

CORE_TEST(an_attempt_counts_releases_anew)
{
    for (uint32_t waits = 0; waits < 2; waits++) {
        open_fair(f);
        f->config.holder.wait_us = waits;
        f->lock->wait.turns = 9;
        f->lock->wait.behind = true;
        f->lock->wait.intent_us = 0;
        for (uint32_t i = 0; i < 3; i++) node_of(f, i)->notices.turns = 4;
        fair_begin(f->lock, f->now_us);
        assert_int_equal(f->lock->wait.turns, 1);
        assert_false(f->lock->wait.behind);
        assert_int_equal(f->lock->wait.intent_us, waits != 0 ? f->now_us : 0);
        for (uint32_t i = 0; i < 3; i++) assert_int_equal(node_of(f, i)->notices.turns, 0);
    }
}

CORE_TEST(a_refusal_without_a_place_leaves_the_place_as_it_was)
{
    static const struct {
        uint32_t turns, before, then;
        bool behind;
    } rows[] = {{0, 0, 7, true}, {3, 0, 3, false}, {3, 2, 3, true}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        open_fair(f);
        f->lock->wait.turns = 7;
        f->lock->wait.behind = true;
        fair_on_refusal(
            f->lock, &(struct core_reply){.outcome = OUTCOME_OTHER, .turns = rows[i].turns, .before = rows[i].before});
        assert_int_equal(f->lock->wait.turns, rows[i].then);
        assert_int_equal(f->lock->wait.behind, rows[i].behind);
    }
}

CORE_TEST(releases_count_by_node_and_by_the_keys_in_the_way)
{
    static const struct {
        uint32_t index;
        uint64_t refusing, keys;
        uint32_t heard[3];
    } rows[] = {
        {0, 0, 1, {1, 0, 0}}, {2, 0, 1, {0, 0, 1}}, {3, 0, 1, {1, 1, 1}},
        {1, 2, 1, {0, 0, 0}}, {1, 2, 2, {0, 1, 0}}, {1, 2, UINT64_MAX, {0, 1, 0}},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        open_fair(f);
        f->lock->attempt.plan.first = 1;
        node_of(f, 1)->asked.refusing = rows[i].refusing;
        f->lock->wait.turns = 2;
        fair_hear(f->lock, rows[i].index, rows[i].keys);
        for (uint32_t k = 0; k < 3; k++) assert_int_equal(node_of(f, k)->notices.turns, rows[i].heard[k]);
        assert_false(fair_is_turn(f->lock));
        fair_hear(f->lock, rows[i].index, rows[i].keys);
        assert_int_equal(fair_is_turn(f->lock), rows[i].heard[0] + rows[i].heard[1] + rows[i].heard[2] > 0);
    }
}

/* Notices may have been missed: the lock asks, whatever its place was. */
CORE_TEST(after_all_keys_may_have_been_released_it_is_everybodys_turn)
{
    acquire_fair(f, 0);
    fixture_answer_with(
        f, 0, OP_ACQUIRE,
        &(struct core_reply){.outcome = OUTCOME_OTHER, .holder_id = HOLDER, .ttl_us = -1, .turns = 9, .before = 8});
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_false(fair_is_turn(f->lock));
    fixture_node_states(f, ".dd");
    fixture_wake(f);
    assert_true(fair_is_turn(f->lock));
}

CORE_TEST(a_lock_that_is_granted_asks_only_where_it_stands_in_a_queue)
{
    acquire_fair(f, 0);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, HOLDER, -1);
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

CORE_TEST(a_later_attempt_for_a_permit_stands_in_the_queue_again)
{
    acquire_fair(f, 4);
    fixture_refuse_slot(f, 0, HOLDER, 1000, 0, 1000);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
    assert_true(f->lock->attempt.plan.until_us >= f->now_us + 100 * MS);
}
