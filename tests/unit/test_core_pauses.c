/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_pauses.c - pauses and their jitter, how a crowd spreads them, and what intents say, as tables */
#include "core/arbiter.h"
#include "core/backoff.h"
#include "core/crowd.h"
#include "core/intent.h"
#include "core/state.h"
#include "core/validity.h"
#include "core/wait.h"
#include "fixture.h"

#define WAIT_US (10000 * MS)

TEST(jitter_is_splitmix64)
{
    struct backoff_jitter jitter = {0};

    /* The first numbers of the reference implementation for the seed 1234567. */
    jitter.state = 1234567;
    assert_true(backoff_uniform(&jitter, UINT64_MAX) == UINT64_C(6457827717110365317));
    assert_true(backoff_uniform(&jitter, UINT64_MAX) == UINT64_C(3203168211198807973));
}

/* The least and the largest of many draws. */
static void draw(uint64_t (*pause)(struct backoff_jitter *, uint32_t), uint32_t times, uint64_t *ret_least,
                 uint64_t *ret_most)
{
    struct backoff_jitter jitter = {.state = 5};

    *ret_least = UINT64_MAX;
    *ret_most = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t drawn = pause(&jitter, times);

        *ret_least = core_smaller(*ret_least, drawn);
        *ret_most = core_larger(*ret_most, drawn);
    }
}

static uint64_t renew(struct backoff_jitter *jitter, uint32_t failures)
{
    return backoff_renew_us(jitter, 100000, failures);
}

TEST(pauses_grow_to_their_bound_and_are_jittered_by_half)
{
    static const struct {
        uint64_t (*pause)(struct backoff_jitter *, uint32_t);
        uint32_t times;
        uint64_t most_us;
    } rows[] = {
        {backoff_debt_us, 0, 10000},
        {backoff_debt_us, 1, 20000},
        {backoff_debt_us, 7, 1000000},
        {backoff_debt_us, 99, 1000000},
        {renew, 2, 25000},
        {renew, 3, 50000},
        {renew, 4, 100000},
        {renew, 5, 100000},
        {renew, 40, 100000},
        {renew, 100, 100000},
    };
    struct backoff_jitter jitter = {0};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint64_t least_us;
        uint64_t most_us;

        draw(rows[i].pause, rows[i].times, &least_us, &most_us);
        assert_in_range(least_us, rows[i].most_us / 2, rows[i].most_us / 2 + rows[i].most_us / 50);
        assert_in_range(most_us, rows[i].most_us - rows[i].most_us / 50, rows[i].most_us + 1);
    }
    assert_int_equal(backoff_renew_us(&jitter, 100000, 1), 0);
    /* A node timeout that is no multiple of four bounds it, too. */
    for (int i = 0; i < 1000; i++) assert_true(backoff_renew_us(&jitter, 30003, 9) <= 30004);
}

TEST(a_late_release_is_repeated_after_up_to_16_seconds)
{
    static const uint64_t seconds[] = {1, 2, 4, 8, 16, 16, 16};

    for (uint32_t i = 0; i < LENGTH(seconds); i++) assert_int_equal(backoff_late_us(i), seconds[i] * 1000000);
    assert_int_equal(backoff_late_us(100), 16000000);
}

TEST(a_share_of_a_large_time_is_rounded_up_and_saturates)
{
    assert_int_equal(validity_allowance_us(3000000, 10000, 0), 30000);
    assert_int_equal(validity_allowance_us(1, 1, 0), 1);
    assert_int_equal(validity_allowance_us(UINT64_C(5000000001), 1, 0), 5001);
    assert_int_equal(validity_allowance_us(UINT64_C(5000000000), 0, 0), 0);
    assert_int_equal(validity_allowance_us(UINT64_C(5000000000), 0, 7), 7);
    assert_true(validity_allowance_us(UINT64_MAX / 2, UINT32_MAX, 0) == UINT64_MAX);
}

/* ---- a crowd ---- */

CORE_TEST(a_crowd_spreads_its_requests)
{
    static const struct {
        bool reads, fair, listens, placed;
        uint32_t waiters, ahead, turns;
        uint64_t spread_us, kept_us;
    } rows[] = {
        {false, false, false, false, 8, 0, 0, 0, 0},
        {false, false, true, false, 100, 0, 0, 100ull * CROWD_EACH_US, 0},
        {false, false, true, false, 1000000, 0, 0, 300000 * MS, 0},
        {false, false, false, false, 1000000, 0, 0, 5000 * MS, 0}, /* nobody tells it of a release */
        {true, false, true, false, 1000000, 0, 0, 300000 * MS, 0},
        {true, true, true, false, 0, 0, 1000000, 300000 * MS, 0},
        {false, true, false, false, 0, 0, 1000000, 0, 0},
        {false, false, true, true, 100, 60, 0, 60ull * CROWD_EACH_US, 2ull * 60 * CROWD_EACH_US},
        {false, false, false, true, 100, 60, 0, 5000 * MS, 2ull * 60 * CROWD_EACH_US},
        {false, false, true, true, 100, UINT32_MAX, 0, 100ull * CROWD_EACH_US, 0}, /* no node has told its place yet */
        {false, false, true, false, 100, 60, 0, 100ull * CROWD_EACH_US, 0},        /* it has none */
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        fixture_open_waiting(f, 3, 2, WAIT_US);
        for (uint32_t k = 0; k < 3; k++) f->lock->nodes[k].srtt_us = 1;
        f->config.reads = rows[i].reads;
        f->config.fair = rows[i].fair;
        f->lock->nodes[2].notices.listening = rows[i].listens;
        f->lock->waiters = rows[i].waiters;
        f->lock->wait.intent_us = rows[i].placed ? 1 : 0;
        f->lock->wait.ahead = rows[i].ahead;
        f->lock->wait.turns = rows[i].turns;
        assert_int_equal(crowd_spread_us(f->lock), rows[i].spread_us);
        if (!rows[i].fair) assert_int_equal(crowd_kept_us(f->lock), rows[i].kept_us);
    }
}

/* Each row but the first differs from the others in one reason not to watch. */
CORE_TEST(of_a_crowd_nobody_watches)
{
    static const struct {
        bool told, fair, published, watches;
        uint64_t wait_us;
        uint32_t waiters, ahead; /* ahead of it; 0: not known */
    } rows[] = {
        {true, false, false, true, WAIT_US, 40, 0}, {false, false, false, false, WAIT_US, 40, 0},
        {true, true, false, false, WAIT_US, 40, 0}, {true, false, true, false, WAIT_US, 40, 0},
        {true, false, false, false, 0, 40, 0},      {true, false, false, false, WAIT_US, 41, 5},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        fixture_open_waiting(f, 3, 2, rows[i].wait_us);
        f->config.told = rows[i].told;
        f->config.fair = rows[i].fair;
        f->lock->news.published = rows[i].published;
        f->lock->waiters = rows[i].waiters;
        f->lock->wait.intent_us = rows[i].ahead;
        f->lock->wait.ahead = rows[i].ahead;
        assert_int_equal(wait_watches(f->lock), rows[i].watches);
    }
}

/* ---- intents ---- */

static struct step step_of(struct fixture *f)
{
    f->update.n_commands = 0;
    return (struct step){.now_us = f->now_us, .update = &f->update, .slots = f->slots};
}

/* A fenced writer behind readers. */
static void open_behind_readers(struct fixture *f)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.wait_us = WAIT_US;
    config.fencing = true;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    f->lock->id.fence = 9;
    for (uint32_t i = 0; i < 3; i++) {
        fixture_answer_with(
            f, i, OP_ACQUIRE,
            &(struct core_reply){.outcome = OUTCOME_OTHER, .holder_id = 7, .ttl_us = -1, .readers = true});
    }
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

CORE_TEST(an_intent_carries_no_fencing_token)
{
    open_behind_readers(f);
    assert_int_equal(fixture_latest(f, 0, OP_INTEND)->command.fence, 0);
}

CORE_TEST(only_a_refusal_because_of_readers_wants_an_intent)
{
    static const struct {
        enum core_vote vote;
        bool readers, intends;
    } rows[] = {{CORE_VOTE_OTHER, true, true}, {CORE_VOTE_OTHER, false, false}, {CORE_VOTE_FAILED, true, false}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct step step;

        open_behind_readers(f);
        fixture_drop(f);
        step = step_of(f);
        f->lock->wait.intent_us = 0;
        for (uint32_t k = 0; k < 3; k++) {
            f->lock->nodes[k].vote = rows[i].vote;
            f->lock->nodes[k].asked.holder.readers = rows[i].readers;
        }
        intent_leave(f->lock, &step);
        assert_int_equal(f->update.n_commands, rows[i].intends ? 3 : 0);
        /* It is renewed after a while. */
        step = step_of(f);
        intent_leave(f->lock, &step);
        assert_int_equal(f->update.n_commands, 0);
        if (!rows[i].intends) continue;
        step = step_of(f);
        step.now_us += 500 * MS;
        intent_leave(f->lock, &step);
        assert_int_equal(f->update.n_commands, 3);
    }
}

CORE_TEST(a_lock_in_a_queue_leaves_no_intent)
{
    struct step step;

    open_behind_readers(f);
    f->config.fair = true;
    step = step_of(f);
    step.now_us += 5000 * MS;
    intent_leave(f->lock, &step);
    assert_int_equal(f->update.n_commands, 0);
    f->config.fair = false;
    intent_leave(f->lock, &step);
    assert_int_equal(f->update.n_commands, 3);
}

CORE_TEST(the_place_of_an_intent_is_the_best_that_a_node_tells_while_it_waits)
{
    struct core_reply reply = {.outcome = OUTCOME_YES, .before = 5};

    open_behind_readers(f);
    f->lock->wait.ahead = 9;
    intent_on_reply(f->lock, &reply);
    assert_int_equal(f->lock->wait.ahead, 5);
    reply.before = 7;
    intent_on_reply(f->lock, &reply);
    assert_int_equal(f->lock->wait.ahead, 5);
    reply = (struct core_reply){.outcome = OUTCOME_ERROR};
    intent_on_reply(f->lock, &reply);
    assert_int_equal(f->lock->wait.ahead, 5);
    reply.outcome = OUTCOME_YES;
    f->lock->phase = CORE_ASKING;
    intent_on_reply(f->lock, &reply);
    assert_int_equal(f->lock->wait.ahead, 5);
    f->lock->phase = CORE_WAITING;
    f->lock->wait.intent_us = 0;
    intent_on_reply(f->lock, &reply);
    assert_int_equal(f->lock->wait.ahead, 5);
}

CORE_TEST(an_intent_is_withdrawn_where_it_may_be)
{
    static const struct {
        bool fair, granted, arbiter_said_yes, has_arbiter;
        uint32_t attempts;
        uint32_t queues, sent;
    } rows[] = {
        {false, true, true, true, 2, 0, 7}, /* an intent: at all nodes */
        {true, false, true, true, 2, 0, 7}, /* it stops waiting */
        {true, true, false, true, 2, 0, 7}, /* it is not known where it stands */
        {true, true, true, false, 2, 0, 7}, /* nor here */
        {true, true, true, true, 1, 0, 0},  /* the first attempt has no place */
        {true, true, true, true, 2, 0, 1},  /* its place at the arbiter */
        {true, true, true, true, 1, 3, 2},  /* places at former arbiters */
        {true, true, true, true, 2, 6, 7},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct step step;
        uint32_t sent = 0;

        open_behind_readers(f);
        fixture_drop(f);
        f->config.fair = rows[i].fair;
        f->lock->phase = rows[i].granted ? CORE_GRANTED : CORE_WAITING;
        f->lock->wait.intent_us = 5;
        f->lock->wait.queues = rows[i].queues;
        f->lock->attempt.plan.first = rows[i].has_arbiter ? 0 : 3;
        f->lock->acquire.attempts = rows[i].attempts;
        f->lock->nodes[0].vote = rows[i].arbiter_said_yes ? CORE_VOTE_YES : CORE_VOTE_OTHER;
        step = step_of(f);
        intent_withdraw(f->lock, &step);
        for (uint32_t k = 0; k < f->update.n_commands; k++) sent |= 1u << f->update.commands[k].tag.node;
        assert_int_equal(sent, rows[i].sent);
        assert_int_equal(f->lock->wait.intent_us, 0);
        /* There is nothing left. */
        step = step_of(f);
        intent_withdraw(f->lock, &step);
        assert_int_equal(f->update.n_commands, 0);
        f->lock->phase = CORE_IDLE;
    }
}

CORE_TEST(a_place_at_a_node_that_is_away_ends_by_itself)
{
    struct step step;

    open_behind_readers(f);
    fixture_drop(f);
    f->config.fair = true;
    f->lock->phase = CORE_GRANTED;
    f->lock->wait.intent_us = 5;
    f->lock->wait.queues = 6;
    f->lock->attempt.plan.first = 0;
    f->lock->acquire.attempts = 1;
    f->lock->nodes[0].vote = CORE_VOTE_YES;
    f->lock->nodes[1].state = NODE_DOWN;
    step = step_of(f);
    intent_withdraw(f->lock, &step);
    assert_int_equal(f->update.n_commands, 1);
    assert_int_equal(f->update.commands[0].tag.node, 2);
    f->lock->phase = CORE_IDLE;
}
