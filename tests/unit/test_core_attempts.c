/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_attempts.c - how an acquire begins, what an attempt makes of events, and when it fails, case by case */
#include <string.h>

#include "core/attempt.h"
#include "core/state.h"
#include "core/validity.h"
#include "fixture.h"

#define WAIT_US (10000 * MS)

static struct core_node *node_of(struct fixture *f, uint32_t index)
{
    return &f->lock->nodes[index];
}

static struct step step_of(struct fixture *f)
{
    static const unsigned char random[CORE_RANDOM_SIZE] = {7};

    f->update.n_commands = 0;
    return (struct step){.now_us = f->now_us, .random = random, .update = &f->update, .slots = f->slots};
}

static void open_fair(struct fixture *f, uint32_t permits, uint64_t wait_us)
{
    struct core_config config = fixture_config(3, 2);

    config.fair = true;
    config.permits = permits;
    config.holder.wait_us = wait_us;
    fixture_open_config(f, &config);
}

/* An acquire of one of four permits that may wait is under way. */
static void acquire_permit(struct fixture *f)
{
    struct core_config config = fixture_config(3, 2);

    config.permits = 4;
    config.holder.wait_us = WAIT_US;
    fixture_open_config(f, &config);
    fixture_acquire(f);
}

static void open_fenced(struct fixture *f, uint64_t wait_us)
{
    struct core_config config = fixture_config(3, 2);

    config.fencing = true;
    config.holder.wait_us = wait_us;
    fixture_open_config(f, &config);
}

static void yes_with(struct fixture *f, uint32_t node, uint64_t counter)
{
    fixture_answer_with(f, node, OP_ACQUIRE, &(struct core_reply){.outcome = OUTCOME_YES, .fence = counter});
}

/* ---- an acquire begins ---- */

/* All that an acquire or an adoption before may have left. */
static void litter(struct fixture *f)
{
    memset(&f->lock->wait, 1, sizeof(f->lock->wait));
    memset(&f->lock->belief, 1, sizeof(f->lock->belief));
    f->lock->lease_us = 9000 * MS;
    f->lock->jitter.state = 99;
    if (f->config.fencing) f->lock->id.fence = 99;
    for (uint32_t i = 0; i < 3; i++) {
        memset(&node_of(f, i)->asked, 1, sizeof(node_of(f, i)->asked));
        memset(&node_of(f, i)->notices, 1, sizeof(node_of(f, i)->notices));
        node_of(f, i)->vote = node_of(f, i)->last_vote = CORE_VOTE_OTHER;
    }
}

CORE_TEST(an_acquire_begins_as_if_it_were_the_first)
{
    static const struct core_token token = {{3}};
    struct core_node nodes[3];
    struct core_lock lock;

    for (int how = 0; how < 4; how++) {
        for (int littered = 0; littered < 2; littered++) {
            if (how == 0) fixture_open_waiting(f, 3, 2, WAIT_US);
            if (how == 1) open_fair(f, 0, WAIT_US);
            if (how == 2) fixture_open_waiting(f, 3, 2, WAIT_US);
            if (how == 3) open_fenced(f, WAIT_US);
            if (littered != 0) litter(f);
            if (how < 2) assert_int_equal(fixture_acquire(f), CORE_OK);
            if (how == 2) assert_int_equal(fixture_acquire_behind(f), CORE_OK);
            if (how == 3) assert_int_equal(fixture_adopt(f, &token), CORE_OK);
            if (littered == 0) {
                memcpy(&lock, f->lock, sizeof(lock));
                memcpy(nodes, f->lock->nodes, sizeof(nodes));
            }
        }
        assert_memory_equal(&lock.wait, &f->lock->wait, sizeof(lock.wait));
        assert_memory_equal(&lock.belief, &f->lock->belief, sizeof(lock.belief));
        assert_memory_equal(&lock.jitter, &f->lock->jitter, sizeof(lock.jitter));
        assert_int_equal(lock.lease_us, f->lock->lease_us);
        assert_int_equal(lock.id.fence, f->lock->id.fence);
        for (uint32_t i = 0; i < 3; i++) {
            assert_memory_equal(&nodes[i].asked, &node_of(f, i)->asked, sizeof(nodes[i].asked));
            assert_memory_equal(&nodes[i].notices, &node_of(f, i)->notices, sizeof(nodes[i].notices));
            assert_int_equal(nodes[i].last_vote, node_of(f, i)->last_vote);
        }
    }
}

CORE_TEST(each_attempt_draws_by_fresh_bytes)
{
    unsigned char bytes[sizeof(f->lock->jitter.state)];

    fixture_open_waiting(f, 3, 2, WAIT_US);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    fixture_pass_to_attempt(f);
    memset(bytes, f->randoms, sizeof(bytes));
    assert_memory_equal(&f->lock->jitter.state, bytes, sizeof(bytes));
}

CORE_TEST(requests_of_an_acquire_are_of_no_round)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yyy");
    fixture_release(f);
    fixture_answer_releases(f);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_acquire(f);
    assert_int_equal(fixture_latest(f, 0, OP_ACQUIRE)->command.tag.round, 0);
}

CORE_TEST(an_acquire_that_tries_once_waits_behind_nobody)
{
    fixture_open(f, 3, 2);
    assert_int_equal(fixture_acquire_behind(f), CORE_OK);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
}

CORE_TEST(an_adoption_of_a_fair_lock_asks_all_and_stands_in_no_queue)
{
    static const struct core_token token = {{3}};

    open_fair(f, 0, WAIT_US);
    assert_int_equal(fixture_adopt(f, &token), CORE_OK);
    fixture_expect_pending(f, OP_EXTEND, "111");
    assert_int_equal(f->lock->wait.intent_us, 0);
}

/* A fourth node stands behind the three: it failed, and must never be looked at. */
CORE_TEST(a_fair_lock_without_an_arbiter_asks_all)
{
    struct core_config config = fixture_config(4, 3);

    config.fair = true;
    fixture_open_config(f, &config);
    f->config.n_nodes = 3;
    f->config.quorum = 2;
    node_of(f, 3)->vote = CORE_VOTE_FAILED;
    node_of(f, 3)->fault = FAULT_CLASS_TEMPORARY;
    assert_int_equal(fixture_acquire_late(f, 7), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(fixture_pending(f, i, OP_ACQUIRE), 1);
}

CORE_TEST(a_fair_lock_that_was_cut_off_asks_the_arbiter_again)
{
    open_fair(f, 0, 0);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_expect_alone(f, i);
        fixture_answer(f, i, OP_ACQUIRE, OUTCOME_UNKNOWN);
    }
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ATTEMPT);
    fixture_node_states(f, "rrr"); /* no request is overdue any more */
    fixture_begin(f);
    fixture_expect_alone(f, 0);
}

/* ---- an attempt ends ---- */

CORE_TEST(the_reason_of_a_wait_is_the_one_that_all_attempts_had)
{
    static const struct {
        enum core_phase phase;
        uint32_t attempts, seen, yes, other;
        int status;
    } rows[] = {
        {CORE_ASKING, 1, 0, 0, 0, CORE_NOQUORUM},
        {CORE_ASKING, 1, 0, 1, 0, CORE_NOQUORUM},
        {CORE_ASKING, 1, 0, 1, 1, CORE_HELD_BY_OTHER},
        {CORE_ASKING, 1, 0, 2, 0, CORE_TIMEDOUT},
        {CORE_WAITING, 1, 0, 0, 0, CORE_TIMEDOUT},
        {CORE_ASKING, 2, 0, 0, 0, CORE_TIMEDOUT},
        {CORE_ASKING, 1, CORE_SEEN_HELD, 0, 0, CORE_HELD_BY_OTHER},
        {CORE_WAITING, 3, CORE_SEEN_NOQUORUM, 0, 0, CORE_NOQUORUM},
        {CORE_WAITING, 3, CORE_SEEN_HELD | CORE_SEEN_NOQUORUM, 0, 0, CORE_TIMEDOUT},
    };

    fixture_open(f, 3, 2);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->lock->phase = rows[i].phase;
        f->lock->acquire.attempts = rows[i].attempts;
        f->lock->acquire.seen = rows[i].seen;
        for (uint32_t k = 0; k < 3; k++) {
            node_of(f, k)->vote = k < rows[i].yes                   ? CORE_VOTE_YES
                                  : k < rows[i].yes + rows[i].other ? CORE_VOTE_OTHER
                                                                    : CORE_VOTE_PENDING;
        }
        assert_int_equal(attempt_wait_status(f->lock), rows[i].status);
    }
    f->lock->phase = CORE_IDLE;
}

CORE_TEST(what_was_seen_is_told_with_the_end_of_a_wait)
{
    static const struct {
        const char *answers;
        uint32_t seen;
    } rows[] = {{"o.y", CORE_SEEN_HELD}, {"o..", CORE_SEEN_NOQUORUM}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_config config = fixture_config(3, 2);

        config.holder.wait_us = 20 * MS;
        config.fencing = true;
        fixture_open_config(f, &config);
        fixture_acquire(f);
        for (uint32_t k = 0; k < 3; k++) node_of(f, k)->srtt_us = 900000;
        fixture_answers(f, OP_ACQUIRE, rows[i].answers);
        fixture_pass(f, 20 * MS);
        assert_int_equal(core_phase_now(f->lock), CORE_IDLE);
        assert_int_equal(core_seen(f->lock), rows[i].seen);
    }
}

CORE_TEST(an_acquire_that_tries_once_asks_again_where_connections_ended)
{
    static const struct {
        const char *answers; /* a: not allowed */
        bool again;
    } rows[] = {
        {"uuuaa", true}, {"uuaaa", false}, {"uooaa", true},  {"uyyaa", true},
        {"uyoaa", true}, {"uoaaa", false}, {"oyaaa", false}, {"eeeaa", true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        fixture_open(f, 5, 3);
        fixture_acquire(f);
        for (uint32_t k = 0; k < 5; k++) {
            static const struct core_reply refused = {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_CONFIG};
            char answer = rows[i].answers[k];

            if (answer == 'a') fixture_answer_with(f, k, OP_ACQUIRE, &refused);
            if (answer == 'o') fixture_refuse(f, k, HOLDER, 1000);
            if (answer == 'u') fixture_answer(f, k, OP_ACQUIRE, OUTCOME_UNKNOWN);
            if (answer == 'e') fixture_answer(f, k, OP_ACQUIRE, OUTCOME_ERROR);
            if (answer == 'y') fixture_answer(f, k, OP_ACQUIRE, OUTCOME_YES);
        }
        assert_int_equal(core_wants(f->lock) == CORE_WANTS_ATTEMPT, rows[i].again);
    }
    /* A node that is down is not asked again. */
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_node_states(f, "ddd");
    assert_int_equal(core_wants(f->lock), CORE_WANTS_NOTHING);
}

CORE_TEST(split_votes_are_settled_in_half_a_node_timeout)
{
    for (uint8_t seed = 0; seed < 20; seed++) {
        fixture_open(f, 3, 2);
        f->randoms = seed;
        for (uint32_t i = 0; i < 3; i++) node_of(f, i)->srtt_us = 300000;
        fixture_acquire(f);
        fixture_answers(f, OP_ACQUIRE, "y..");
        fixture_refuse(f, 1, HOLDER, 1000);
        fixture_refuse(f, 2, HOLDER + 1, 1000);
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        assert_true(f->lock->wait.retry_at_us <= FIXTURE_BEGIN_US + 50 * MS);
    }
}

CORE_TEST(too_few_votes_are_no_contention_for_a_permit)
{
    acquire_permit(f);
    fixture_refuse_slot(f, 0, HOLDER, 1000, 0xf, 1000);
    fixture_answers(f, OP_ACQUIRE, ".ee");
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_true(f->lock->wait.retry_at_us > f->now_us);
    assert_int_equal(f->slots->passed, 0);
}

CORE_TEST(a_search_for_a_permit_goes_on_without_a_pause)
{
    acquire_permit(f);
    for (uint32_t round = 0; round < 2; round++) {
        uint64_t free = 0xfu & ~(1u << core_slot(f->lock));

        for (uint32_t i = 0; i < 3; i++) fixture_refuse_slot(f, i, HOLDER, 1000, free, 1000);
        assert_true(f->lock->wait.searches);
        assert_int_equal(f->lock->wait.retry_at_us, f->now_us);
        fixture_pass(f, 0);
        fixture_expect_pending(f, OP_ACQUIRE, "111");
    }
}

CORE_TEST(an_adoption_waits_for_all_votes)
{
    static const struct core_token token = {{3}};

    fixture_open_waiting(f, 3, 2, WAIT_US);
    assert_int_equal(fixture_adopt(f, &token), CORE_OK);
    fixture_answers(f, OP_EXTEND, "yo.");
    assert_int_equal(attempt_deadline(f->lock), CORE_NEVER);
    /* And tells why it has no quorum. */
    fixture_open(f, 3, 2);
    assert_int_equal(fixture_adopt(f, &token), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_answer_with(f, i, OP_EXTEND, &(struct core_reply){.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_AUTH});
    }
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NO_AUTH);
}

CORE_TEST(a_quorum_that_only_lacks_its_token_has_no_time_limit_of_votes)
{
    open_fenced(f, WAIT_US);
    fixture_acquire(f);
    fixture_refuse(f, 2, HOLDER, 1000);
    yes_with(f, 0, 5);
    yes_with(f, 1, 7);
    fixture_expect_pending(f, OP_RAISE, "100");
    assert_int_equal(attempt_deadline(f->lock), FIXTURE_BEGIN_US + WAIT_US);
}

CORE_TEST(a_yes_that_cannot_be_raised_ends_the_attempt)
{
    open_fenced(f, WAIT_US);
    fixture_acquire(f);
    yes_with(f, 0, 5);
    fixture_node_state(f, 0, NODE_DOWN);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_YES);
    fixture_answer_with(f, 2, OP_ACQUIRE, &(struct core_reply){.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_AUTH});
    fixture_node_state(f, 2, NODE_DOWN);
    yes_with(f, 1, 7);
    assert_int_equal(node_of(f, 0)->vote, CORE_VOTE_FAILED);
    assert_int_equal(node_of(f, 0)->key.valid_until_us, 0);
    assert_int_equal(node_of(f, 2)->fault, FAULT_CLASS_AUTH);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

CORE_TEST(an_arbiter_without_an_answer_costs_no_timer_for_a_permit)
{
    acquire_permit(f);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse_slot(f, i, HOLDER, 1000, 0, 1000);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
    fixture_pass(f, 3 * MS);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ATTEMPT);
    assert_int_equal(f->lock->wait.retry_at_us, CORE_NEVER);
    assert_int_equal(f->lock->wait.poll_at_us, CORE_NEVER);
}

/* ---- doubt ---- */

/* The arbiter names the same holder in a second attempt, so all are asked; the last node is silent. */
static void open_doubt(struct fixture *f)
{
    fixture_open_waiting(f, 3, 2, WAIT_US);
    fixture_acquire(f);
    fixture_refuse(f, 0, HOLDER, -1);
    fixture_answers(f, OP_ACQUIRE, ".ee");
    for (int i = 0; i < 9 && f->lock->attempt.doubt != DOUBT_OPEN; i++) {
        fixture_pass_to_attempt(f);
        fixture_refuse(f, 0, HOLDER, -1);
    }
    assert_int_equal(f->lock->attempt.doubt, DOUBT_OPEN);
}

CORE_TEST(a_doubt_ends_with_the_time_of_its_answers)
{
    open_doubt(f);
    fixture_refuse(f, 1, HOLDER, -1);
    fixture_expect_pending(f, OP_ACQUIRE, "001");
    fixture_pass(f, 5 * MS);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_int_equal(f->lock->attempt.doubt, DOUBT_SETTLED);
}

CORE_TEST(an_attempt_that_asked_all_has_no_doubt_to_settle)
{
    fixture_open_waiting(f, 3, 2, WAIT_US);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    assert_int_equal(f->lock->attempt.doubt, DOUBT_NONE);
}

/* ---- timers ---- */

CORE_TEST(a_node_that_connects_is_given_up_only_when_its_time_is_over)
{
    struct step step;

    fixture_open(f, 3, 2);
    fixture_node_states(f, "..c");
    fixture_acquire(f);
    step = step_of(f);
    attempt_on_timer(f->lock, &step);
    assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_NONE);
    step.now_us = f->now_us + 500 * MS;
    attempt_on_timer(f->lock, &step);
    assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_FAILED);
    fixture_cancel(f);
}

CORE_TEST(the_wait_bound_ends_no_hold)
{
    struct step step;

    fixture_open_waiting(f, 3, 2, 500 * MS);
    fixture_grant(f);
    f->now_us += 900 * MS;
    step = step_of(f);
    attempt_on_timer(f->lock, &step);
    assert_int_equal(core_phase_now(f->lock), CORE_HELD);
    assert_int_equal(core_seen(f->lock), 0);
}

CORE_TEST(behind_others_a_free_permit_is_theirs)
{
    for (uint32_t behind = 0; behind < 2; behind++) {
        acquire_permit(f);
        for (uint32_t i = 0; i < 3; i++) fixture_refuse_slot(f, i, HOLDER, 1000, 0, 1000);
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        f->slots->passed = 0;
        f->slots->nodes[1].free = f->slots->nodes[2].free = 1;
        f->lock->wait.behind = behind != 0;
        f->lock->wait.retry_at_us = f->now_us;
        fixture_pass(f, 0);
        fixture_expect_pending(f, OP_ACQUIRE, behind != 0 ? "100" : "111");
    }
}

/* ---- states of nodes ---- */

CORE_TEST(a_node_that_is_ready_is_asked_while_votes_are_wanted)
{
    /* Granted, and the owner does not know it yet. */
    fixture_open(f, 3, 2);
    fixture_node_states(f, "..c");
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_node_state(f, 2, NODE_READY);
    fixture_expect_pending(f, OP_ACQUIRE, "001");
    /* Waiting: it neither votes nor tells of a holder. */
    fixture_open_waiting(f, 3, 2, WAIT_US);
    fixture_node_states(f, "..c");
    fixture_acquire(f);
    for (uint32_t i = 0; i < 2; i++) fixture_refuse(f, i, HOLDER, -1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_NONE);
    fixture_node_state(f, 2, NODE_READY);
    fixture_expect_pending(f, OP_PEEK, "000");
    fixture_expect_pending(f, OP_ACQUIRE, "000");
}

CORE_TEST(a_node_that_went_away_has_no_vote)
{
    static const struct {
        enum node_state state;
        enum core_vote vote;
    } rows[] = {
        {NODE_CONNECTING, CORE_VOTE_NONE},
        {NODE_DOWN, CORE_VOTE_FAILED},
        {NODE_QUARANTINED, CORE_VOTE_FAILED},
        {NODE_READY, CORE_VOTE_PENDING},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        fixture_open(f, 3, 2);
        fixture_node_states(f, "..c");
        fixture_acquire(f);
        fixture_node_state_fault(f, 2, rows[i].state, rows[i].state == NODE_DOWN ? FAULT_CLASS_AUTH : FAULT_CLASS_NONE);
        assert_int_equal(node_of(f, 2)->vote, rows[i].vote);
        if (rows[i].state == NODE_DOWN) assert_int_equal(node_of(f, 2)->fault, FAULT_CLASS_AUTH);
        fixture_cancel(f);
    }
}

CORE_TEST(while_the_arbiter_alone_is_asked_other_nodes_may_come_back)
{
    fixture_open_waiting(f, 3, 2, WAIT_US);
    fixture_acquire(f);
    fixture_refuse_all(f, HOLDER, -1);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
    fixture_node_state(f, 1, NODE_DOWN);
    assert_int_equal(node_of(f, 1)->vote, CORE_VOTE_NONE);
    fixture_node_state(f, 1, NODE_READY);
    fixture_expect_alone(f, 0);
}

static void open_connecting(struct fixture *f)
{
    open_fair(f, 0, WAIT_US);
    fixture_node_state_fault(f, 0, NODE_CONNECTING, FAULT_CLASS_NONE);
    fixture_acquire(f);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
}

CORE_TEST(a_fair_lock_waits_for_its_arbiters_first_connection)
{
    open_connecting(f);
    assert_int_equal(f->lock->attempt.plan.until_us, f->now_us + 250 * MS);
    fixture_pass(f, 200 * MS);
    fixture_node_state(f, 0, NODE_READY);
    fixture_expect_alone(f, 0);
    assert_true(f->lock->attempt.plan.until_us >= f->now_us + 100 * MS);
    /* One whose connection failed is not waited for. */
    open_connecting(f);
    fixture_node_state_fault(f, 0, NODE_CONNECTING, FAULT_CLASS_TEMPORARY);
    fixture_expect_alone(f, 1);
    /* Nor is one that went away. */
    open_connecting(f);
    fixture_node_state(f, 0, NODE_DOWN);
    fixture_expect_alone(f, 1);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_FAILED);
}

CORE_TEST(the_floor_rises_only_for_nodes_that_are_about_to_be_asked)
{
    uint64_t floor;

    open_fenced(f, 0);
    f->wall_us = 1000;
    fixture_node_states(f, "..c");
    fixture_acquire(f);
    floor = f->lock->attempt.floor;
    fixture_pass(f, 150 * MS);
    fixture_node_state(f, 2, NODE_CONNECTING);
    assert_int_equal(f->lock->attempt.floor, floor);
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(f->lock->attempt.floor, floor + 150 * MS);
    yes_with(f, 0, 2000 * MS);
    yes_with(f, 1, 2000 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    floor = f->lock->attempt.floor;
    fixture_pass(f, 150 * MS);
    fixture_node_state(f, 2, NODE_READY);
    assert_int_equal(f->lock->attempt.floor, floor);
}

/* ---- a clock steps ---- */

CORE_TEST(a_step_of_a_clock_undoes_a_yes_and_nothing_else)
{
    fixture_open_held(f, 3, 2);
    fixture_step(f, 0, f->now_us + 1);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_YES);
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "y.u");
    fixture_step(f, 1, f->now_us + 1);
    assert_int_equal(core_vote(f->lock, 1), CORE_VOTE_PENDING);
    fixture_step(f, 0, f->now_us);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_YES);
    fixture_step(f, 0, f->now_us + 1);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_FAILED);
    assert_int_equal(f->lock->attempt.stage, ATTEMPT_FAILED); /* no quorum can grant any more */
}

CORE_TEST(a_counter_of_a_node_whose_clock_stepped_does_not_count)
{
    open_fenced(f, 0);
    fixture_acquire(f);
    yes_with(f, 0, 99);
    fixture_step(f, 0, f->now_us + 1);
    yes_with(f, 1, 7);
    yes_with(f, 2, 7);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 7);
    /* Nor is it asked to raise. */
    open_fenced(f, 0);
    fixture_acquire(f);
    yes_with(f, 0, 5);
    yes_with(f, 1, 7);
    assert_int_equal(node_of(f, 0)->asked.follow_up, FOLLOW_UP_RAISE);
    fixture_step(f, 0, f->now_us + 1);
    assert_int_equal(node_of(f, 0)->asked.follow_up, FOLLOW_UP_NONE);
}
