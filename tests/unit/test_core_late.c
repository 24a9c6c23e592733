/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_late.c - requests that a node may execute after their connection has ended
 */

#include <string.h>

#include "core/compact.h"
#include "fixture.h"

#define LATE_US (60000 * MS)

static void reconnect(struct fixture *f, uint32_t node)
{
    fixture_node_state(f, node, NODE_DOWN);
    fixture_node_state(f, node, NODE_READY);
}

/* The release on the new connection is answered: is that debt handed over? */
static bool is_late(struct fixture *f, uint32_t node, enum outcome outcome)
{
    fixture_answer(f, node, OP_RELEASE, outcome);
    return f->update.late.until_us != 0;
}

/* ---- which debts ---- */

CORE_TEST(a_release_that_finds_nothing_is_final_where_its_acquire_was_answered)
{
    static const struct {
        const char *what;
        const char *before, *after; /* the answer to node 0's acquire, before and after its release was sent */
        enum outcome released;
        bool same_connection, late;
    } rows[] = {
        {"no answer", "...", "...", OUTCOME_MISSING, false, true},
        {"no answer, another's key", "...", "...", OUTCOME_OTHER, false, true},
        {"no answer, a key of another type", "...", "...", OUTCOME_ERROR, false, true},
        {"no answer in time", "u..", "...", OUTCOME_MISSING, false, true},
        {"no answer, and the key was there", "...", "...", OUTCOME_YES, false, false},
        {"no answer, the same connection", "...", "...", OUTCOME_MISSING, true, false},
        {"granted", "y..", "...", OUTCOME_MISSING, false, false},
        {"refused", "o..", "...", OUTCOME_MISSING, false, false},
        {"an error", "e..", "...", OUTCOME_MISSING, false, false},
        {"granted behind the release", "...", "y..", OUTCOME_MISSING, false, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_reply foreign = {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_FOREIGN, .ttl_us = -2};
        const struct core_late *late = &f->update.late;

        fixture_open(f, 3, 2);
        fixture_acquire(f);
        fixture_answers(f, OP_ACQUIRE, rows[i].before);
        fixture_cancel(f);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
        fixture_answers(f, OP_ACQUIRE, rows[i].after);
        if (!rows[i].same_connection) {
            fixture_drop(f);
            reconnect(f, 0);
        }
        fixture_pass(f, 100 * MS);
        if (rows[i].released == OUTCOME_ERROR)
            fixture_answer_with(f, 0, OP_RELEASE, &foreign);
        else
            fixture_answer(f, 0, OP_RELEASE, rows[i].released);
        if (rows[i].late != (late->until_us != 0)) fail_msg("%s", rows[i].what);
        assert_int_equal(core_debts(f->lock, 0), 0);
        if (!rows[i].late) continue;
        assert_int_equal(late->until_us, f->now_us + f->config.lease_us);
        assert_int_equal(late->gone_us, late->until_us + f->config.lease_us / 100 * 101);
        assert_false(late->twice);
        assert_int_equal(late->node, 0);
        assert_memory_equal(&late->token, core_token_now(f->lock), sizeof(late->token));
    }
}

CORE_TEST(a_late_debt_of_a_longer_lease_is_paid_as_long_as_a_request_can_be_under_way)
{
    struct core_config config = fixture_config(3, 2);

    config.lease_us = 21000 * MS;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_cancel(f);
    fixture_drop(f);
    reconnect(f, 0);
    assert_true(is_late(f, 0, OUTCOME_MISSING));
    assert_int_equal(f->update.late.until_us, f->now_us + LATE_US);
}

/* The request may come at the last moment. Its key then stands for a lease, and a node that was away owes its release.
 */
CORE_TEST(a_node_owes_the_release_while_a_late_key_of_a_longer_lease_may_stand)
{
    static const struct {
        uint64_t lease_us;
        bool open; /* the attempt ended before the connection did */
        uint64_t owed_us;
    } rows[] = {{20000 * MS, true, 20200 * MS},
                {20000 * MS, false, 20200 * MS},
                {30000 * MS, true, LATE_US + 30300 * MS},
                {30000 * MS, false, LATE_US + 30300 * MS}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_config config = fixture_config(3, 2);

        config.lease_us = rows[i].lease_us;
        fixture_open_config(f, &config);
        fixture_acquire(f);
        if (rows[i].open) fixture_cancel(f);
        fixture_node_state(f, 0, NODE_DOWN);
        if (!rows[i].open) fixture_cancel(f);
        fixture_drop(f);
        fixture_pass(f, rows[i].owed_us - 1);
        assert_int_equal(core_debts(f->lock, 0), 1);
        fixture_pass(f, 1);
        assert_int_equal(core_debts(f->lock, 0), 0);
    }
}

/* Node 2 left the acquire without an answer, and has connected again. */
static void open_held(struct fixture *f)
{
    struct core_config config = fixture_config(3, 2);

    config.lease_us = 30000 * MS;
    config.holder.renew_us = 10000 * MS;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yyu");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    reconnect(f, 2);
}

static void renew(struct fixture *f, const char *answers)
{
    fixture_pass(f, 10000 * MS);
    fixture_answers(f, OP_EXTEND, answers);
}

CORE_TEST(a_key_that_came_is_not_waited_for)
{
    open_held(f);
    renew(f, "yyy");
    fixture_release(f);
    assert_false(is_late(f, 2, OUTCOME_MISSING));
}

/* The key that is deleted is that of the repair. */
CORE_TEST(after_a_repair_the_first_request_may_still_come)
{
    open_held(f);
    renew(f, "yym");
    fixture_answer(f, 2, OP_REPAIR, OUTCOME_YES);
    fixture_release(f);
    assert_true(is_late(f, 2, OUTCOME_YES));
    assert_true(f->update.late.twice);
    /* But not for ever. */
    open_held(f);
    for (unsigned i = 0; i < 6; i++) {
        renew(f, "yym");
        fixture_answer(f, 2, OP_REPAIR, OUTCOME_YES);
    }
    fixture_release(f);
    assert_false(is_late(f, 2, OUTCOME_YES));
}

CORE_TEST(a_repair_without_an_answer_may_come_late)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_answer(f, 2, OP_REPAIR, OUTCOME_UNKNOWN);
    reconnect(f, 2);
    fixture_release(f);
    assert_true(is_late(f, 2, OUTCOME_MISSING));
}

/* Its record could not say so. */
CORE_TEST(a_lock_is_not_compact_while_a_request_may_come_late)
{
    static const struct {
        const char *answers;
        unsigned seconds;
        bool compact;
    } rows[] = {{"yyy", 10, true}, {"yym", 10, false}, {"yym", 60, true}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        union {
            struct core_compact compact;
            char bytes[CORE_COMPACT_SIZE_MAX];
        } record;

        open_held(f);
        assert_false(core_compact(f->lock, f->now_us, &record.compact));
        for (unsigned s = 0; s < rows[i].seconds; s += 10) {
            renew(f, rows[i].answers);
            if (rows[i].answers[2] == 'm') fixture_answer(f, 2, OP_REPAIR, OUTCOME_YES);
        }
        assert_int_equal(core_compact(f->lock, f->now_us, &record.compact), rows[i].compact);
    }
}

/* ---- keys of ours that stand in the way ---- */

static void refuse(struct fixture *f, uint32_t node, enum op op, bool given_up)
{
    fixture_answer_with(
        f, node, op,
        &(struct core_reply){.outcome = OUTCOME_OTHER, .holder_id = 7, .ttl_us = 20000000, .given_up = given_up});
}

CORE_TEST(an_acquire_that_meets_a_key_given_up_asks_again_once)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) refuse(f, i, OP_ACQUIRE, true);
    fixture_expect_nothing(f);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
    assert_int_equal(core_attempt(f->lock), 1);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);

    fixture_open(f, 3, 2);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) refuse(f, i, OP_ACQUIRE, true);
    for (uint32_t i = 0; i < 3; i++) refuse(f, i, OP_ACQUIRE, true);
    fixture_expect_pending(f, OP_ACQUIRE, "000");
}

CORE_TEST(a_key_given_up_that_is_found_after_the_verdict_is_no_holder)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_answer(f, i, OP_ACQUIRE, OUTCOME_OTHER);
    fixture_expect_pending(f, OP_PEEK, "111");
    for (uint32_t i = 0; i < 3; i++) refuse(f, i, OP_PEEK, true);
    fixture_expect_nothing(f);
    fixture_pass_to_attempt(f);
}

/* Its release was refused a moment ago, and waits for its next try. */
CORE_TEST(an_acquire_that_meets_a_debt_has_it_paid_first)
{
    uint32_t first;

    fixture_open_held(f, 3, 2);
    fixture_release(f);
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < 3; i++) fixture_answer(f, i, OP_RELEASE, OUTCOME_ERROR);
        if (k < 2) fixture_pass(f, 40 * MS);
    }
    fixture_completion(f);
    fixture_acquire(f);
    first = f->n_sent;
    refuse(f, 1, OP_ACQUIRE, false);
    assert_int_equal(f->n_sent, first + 2);
    assert_int_equal(f->sent[first].command.tag.op, OP_RELEASE);
    assert_int_equal(f->sent[first + 1].command.tag.op, OP_ACQUIRE);
    assert_int_equal(f->sent[first].command.tag.node, 1);
    assert_memory_not_equal(&f->sent[first].command.token, &f->sent[first + 1].command.token, CORE_TOKEN_SIZE);
}
