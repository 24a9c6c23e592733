/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_release.c - releases: when they end, how they are repeated, and what their answers prove
 */

#include "fixture.h"

#define NODE_TIMEOUT_US (100 * MS)
#define PAUSE_MAX_US    (1000 * MS) /* between two tries of one release */

static void answer(struct fixture *f, uint32_t node, enum outcome outcome)
{
    fixture_answer(f, node, OP_RELEASE, outcome);
}

static void refuse(struct fixture *f, uint32_t node, enum fault_class fault)
{
    fixture_answer_with(f, node, OP_RELEASE,
                        &(struct core_reply){.outcome = OUTCOME_ERROR, .fault = fault, .ttl_us = -2});
}

static void expect_released(struct fixture *f, int status, bool expired)
{
    struct core_completion completion = fixture_completion(f);

    assert_int_equal(completion.kind, CORE_NOTIFY_RELEASED);
    assert_int_equal(completion.status, status);
    assert_int_equal(completion.expired, expired);
}

/* ---- when it ends ---- */

CORE_TEST(a_release_ends_when_a_quorum_has_answered)
{
    fixture_open_held(f, 3, 2);
    assert_int_equal(fixture_release(f), CORE_OK);
    assert_false(core_notified_held(f->lock));
    assert_int_equal(fixture_release(f), CORE_BUSY);
    fixture_answer(f, 0, OP_RELEASE, OUTCOME_YES);
    fixture_expect_nothing(f);
    fixture_answer(f, 1, OP_RELEASE, OUTCOME_YES);
    expect_released(f, CORE_OK, false);
    assert_false(core_quiet(f->lock)); /* node 2 has not answered */
    fixture_answer(f, 2, OP_RELEASE, OUTCOME_YES);
    assert_true(core_quiet(f->lock));
    assert_int_equal(fixture_release(f), CORE_STATE);
}

CORE_TEST(a_release_without_a_quorum_ends_after_one_node_timeout)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answer(f, 0, OP_RELEASE, OUTCOME_YES);
    fixture_pass(f, 100 * MS);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_NOQUORUM);
    fixture_expect_nothing(f);
    fixture_answer(f, 1, OP_RELEASE, OUTCOME_YES);
    fixture_expect_nothing(f);
}

CORE_TEST(a_grant_ends_the_release_before_it)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_NOQUORUM);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* What is held can be released. */
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answer_releases(f);
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_expect_nothing(f);
}

CORE_TEST(no_loss_is_reported_after_a_release)
{
    fixture_open_held(f, 3, 2);
    fixture_sleep(f, 10000 * MS);
    assert_int_equal(fixture_release(f), CORE_OK); /* it had expired */
    fixture_answers(f, OP_RELEASE, "mmm");
    expect_released(f, CORE_OK, true);
    fixture_expect_nothing(f);
}

/* ---- repeated ---- */

/* Memory may be free again, and rights come back. */
static void repeats_after(struct fixture *f, enum fault_class fault)
{
    uint64_t longest_us = 0;

    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, ".yy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t asked_us = f->now_us;

        refuse(f, 0, fault);
        assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 0); /* after a pause */
        while (fixture_pending(f, 0, OP_RELEASE) == 0 && f->now_us <= asked_us + PAUSE_MAX_US) {
            fixture_pass(f, 1 * MS);
        }
        assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 1);
        if (f->now_us - asked_us > longest_us) longest_us = f->now_us - asked_us;
    }
    /* The pauses grow. */
    assert_in_range(longest_us, 300 * MS, PAUSE_MAX_US + MS);
    assert_int_equal(core_debts(f->lock, 0), 1);
    answer(f, 0, OUTCOME_YES);
    assert_true(core_quiet(f->lock));
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
}

CORE_TEST(a_release_is_repeated_after_any_error)
{
    static const enum fault_class faults[] = {FAULT_CLASS_TEMPORARY, FAULT_CLASS_AUTH, FAULT_CLASS_PROTO,
                                              FAULT_CLASS_CONFIG};

    for (size_t i = 0; i < LENGTH(faults); i++) repeats_after(f, faults[i]);
}

CORE_TEST(a_release_is_repeated_when_it_was_not_sent)
{
    static const enum outcome outcomes[] = {OUTCOME_UNSENT, OUTCOME_UNKNOWN};

    for (size_t i = 0; i < 2; i++) {
        fixture_open_held(f, 3, 2);
        fixture_release(f);
        for (uint32_t k = 0; k < 3; k++) answer(f, k, outcomes[i]);
        fixture_expect_nothing(f); /* there is time for more */
        for (uint32_t k = 0; k < 3; k++) fixture_room(f, k);
        fixture_pass(f, NODE_TIMEOUT_US / 2);
        fixture_answers(f, OP_RELEASE, "yyy");
        expect_released(f, CORE_OK, false);
        assert_true(core_quiet(f->lock));
    }
}

/* Its time runs also where there is no room, if the node answers nobody; else it begins when there is room. */
CORE_TEST(a_release_does_not_wait_for_room_at_nodes_that_are_overdue)
{
    for (int i = 0; i < 2; i++) {
        bool overdue = i == 1;
        struct core_reply unsent = {.outcome = OUTCOME_UNSENT, .overdue = overdue, .ttl_us = -2};

        fixture_open_held(f, 3, 2);
        fixture_release(f);
        fixture_answer(f, 0, OP_RELEASE, OUTCOME_YES);
        for (uint32_t k = 1; k < 3; k++) fixture_answer_with(f, k, OP_RELEASE, &unsent);
        fixture_pass(f, NODE_TIMEOUT_US * 2);
        if (overdue) expect_released(f, CORE_NOQUORUM, false);
        fixture_expect_nothing(f);
        for (uint32_t k = 1; k < 3; k++) fixture_room(f, k);
        fixture_answers(f, OP_RELEASE, ".yy");
        if (!overdue) expect_released(f, CORE_OK, false);
        assert_true(core_quiet(f->lock));
    }
}

/* The process was suspended after it read the send time, before the request was sent. */
CORE_TEST(a_key_that_was_set_late_is_released_as_long_as_it_may_be_there)
{
    static const char *const answers[] = {"...", "y.."};

    for (size_t i = 0; i < LENGTH(answers); i++) {
        fixture_open(f, 3, 2);
        fixture_acquire(f);
        fixture_sleep(f, 4000 * MS); /* longer than the lease */
        fixture_answers(f, OP_ACQUIRE, answers[i]);
        fixture_cancel(f);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
        fixture_expect_pending(f, OP_RELEASE, "111");
        answer(f, 0, OUTCOME_YES);
        fixture_pass(f, 2900 * MS);
        assert_int_equal(core_debts(f->lock, 1), 1);
    }
}

CORE_TEST(room_at_the_node_does_not_end_a_pause)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    refuse(f, 0, FAULT_CLASS_TEMPORARY);
    fixture_room(f, 0);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 0);
    fixture_pass(f, 20 * MS);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 1);
}

CORE_TEST(no_result_waits_for_a_lasting_error_to_pass)
{
    static const enum fault_class faults[] = {FAULT_CLASS_AUTH, FAULT_CLASS_PROTO, FAULT_CLASS_CONFIG};

    for (size_t i = 0; i < LENGTH(faults); i++) {
        fixture_open_held(f, 3, 2);
        fixture_release(f);
        for (uint32_t k = 0; k < 3; k++) refuse(f, k, faults[i]);
        expect_released(f, CORE_NOQUORUM, false);
        fixture_node_state(f, 0, NODE_DOWN);
        fixture_node_state(f, 0, NODE_READY);
        assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 1);
    }
}

CORE_TEST(more_releases_than_fit_into_one_step_are_all_repeated)
{
    fixture_open(f, 31, 16);
    for (uint32_t k = 0; k < CORE_DEBTS_MAX; k++) {
        fixture_acquire(f);
        fixture_cancel(f);
        fixture_completion(f);
    }
    for (uint32_t i = 0; i < 31; i++) {
        while (fixture_pending(f, i, OP_RELEASE) > 0) refuse(f, i, FAULT_CLASS_TEMPORARY);
    }
    fixture_sleep(f, PAUSE_MAX_US);
    fixture_pass(f, 0);
    for (uint32_t i = 0; i < 31; i++) {
        assert_int_equal(fixture_pending(f, i, OP_RELEASE), CORE_DEBTS_MAX);
    }
}

/* ---- what the answers prove ---- */

CORE_TEST(keys_that_were_gone_are_reported)
{
    static const struct core_reply answers[] = {{.outcome = OUTCOME_MISSING, .ttl_us = -2},
                                                {.outcome = OUTCOME_OTHER, .ttl_us = -2},
                                                {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_FOREIGN, .ttl_us = -2}};

    for (size_t i = 0; i < LENGTH(answers); i++) {
        fixture_open_held(f, 3, 2);
        fixture_release(f);
        fixture_answer_with(f, 0, OP_RELEASE, &answers[i]);
        fixture_expect_nothing(f);
        fixture_answer_with(f, 1, OP_RELEASE, &answers[i]);
        expect_released(f, CORE_OK, true);
        assert_int_equal(core_debts(f->lock, 0), 0);
    }
}

/* A node that restarted has no key. */
CORE_TEST(nodes_that_a_quorum_can_spare_may_lack_the_key)
{
    for (uint32_t n = 3; n <= 5; n += 2) {
        uint32_t spare = n - n / 2 - 1;

        fixture_open_held(f, n, n / 2 + 1);
        fixture_release(f);
        for (uint32_t i = 0; i < spare; i++) answer(f, i, OUTCOME_MISSING);
        for (uint32_t i = spare; i < n; i++) {
            fixture_expect_nothing(f); /* the last answer decides */
            answer(f, i, OUTCOME_YES);
        }
        expect_released(f, CORE_OK, false);
    }
}

/* It is late, or there is no room at the node for the request. */
CORE_TEST(the_deciding_answer_is_waited_for_one_node_timeout)
{
    static const char *const answers[] = {"my.", "myn"};

    for (size_t i = 0; i < LENGTH(answers); i++) {
        fixture_open_held(f, 3, 2);
        fixture_release(f);
        fixture_answers(f, OP_RELEASE, answers[i]);
        fixture_pass(f, NODE_TIMEOUT_US - 1);
        fixture_expect_nothing(f);
        fixture_pass(f, 1);
        expect_released(f, CORE_OK, false);
    }
}

CORE_TEST(an_answer_that_cannot_come_is_not_waited_for)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, "my.");
    fixture_node_state(f, 2, NODE_DOWN);
    expect_released(f, CORE_OK, false);
}

/* The first may have been executed. */
CORE_TEST(a_repeated_release_that_finds_no_key_proves_nothing)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) {
        answer(f, i, OUTCOME_UNKNOWN);
        fixture_node_state(f, i, NODE_CONNECTING);
        fixture_node_state(f, i, NODE_READY);
        answer(f, i, OUTCOME_MISSING);
    }
    answer(f, 2, OUTCOME_YES);
    expect_released(f, CORE_OK, false);
}

CORE_TEST(a_release_repeated_on_the_next_connection_proves_nothing)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_node_states(f, "ccc");
    fixture_drop(f);
    assert_int_equal(fixture_completion(f).kind, CORE_NOTIFY_RELEASED);
    fixture_node_states(f, "rrr");
    fixture_answers(f, OP_RELEASE, "mmm");
    assert_true(core_quiet(f->lock));
}

CORE_TEST(nor_does_one_repeated_while_others_are_pending)
{
    struct fixture_sent again;

    fixture_open_held(f, 3, 2);
    fixture_release(f);
    for (uint32_t i = 0; i < 2; i++) {
        fixture_node_state(f, i, NODE_CONNECTING);
        fixture_node_state(f, i, NODE_READY);
        again = *fixture_latest(f, i, OP_RELEASE);
        fixture_replay(f, &again, OUTCOME_MISSING);
    }
    answer(f, 2, OUTCOME_YES);
    expect_released(f, CORE_OK, false);
}

/* The first was certainly not executed. */
CORE_TEST(a_repeated_release_that_was_refused_first_counts)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    refuse(f, 0, FAULT_CLASS_TEMPORARY);
    fixture_answers(f, OP_RELEASE, ".ne");
    fixture_room(f, 1);
    fixture_pass(f, NODE_TIMEOUT_US / 2);
    fixture_answers(f, OP_RELEASE, "ooo");
    expect_released(f, CORE_OK, true);
}

CORE_TEST(answers_to_the_release_before_do_not_count)
{
    fixture_open_held(f, 3, 2);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, "mm.");
    expect_released(f, CORE_OK, true);
    fixture_grant(f);
    fixture_release(f);
    answer(f, 2, OUTCOME_MISSING); /* of the one before */
    fixture_answers(f, OP_RELEASE, "yy.");
    expect_released(f, CORE_OK, false);
}

CORE_TEST(a_lost_lock_with_a_repair_is_released_everywhere)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_answers(f, OP_REPAIR, "..y");
    fixture_step(f, 1, f->now_us);
    fixture_drop(f);
    fixture_pass(f, 3000 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_expect_pending(f, OP_RELEASE, "111");
    fixture_answers(f, OP_RELEASE, "uny");
    fixture_step(f, 0, f->now_us);
    fixture_room(f, 1);
    fixture_node_states(f, "dr.");
    fixture_node_states(f, "r..");
    fixture_expect_pending(f, OP_RELEASE, "110");
    assert_int_equal(fixture_latest(f, 0, OP_RELEASE)->command.tag.attempt, 1);
    fixture_answers(f, OP_RELEASE, "yy.");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_true(core_quiet(f->lock));
}

CORE_TEST(the_next_hold_keeps_what_is_owed_for_the_one_before)
{
    struct core_token first;

    fixture_open_held(f, 3, 2);
    first = *core_token_now(f->lock);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answers(f, OP_RELEASE, "yy.");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_int_equal(core_debts(f->lock, 2), 1);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_debts(f->lock, 2), 1);
    /* It is sent again, for the attempt that it is of. */
    fixture_node_states(f, "..d");
    fixture_node_states(f, "..r");
    assert_int_equal(fixture_latest(f, 2, OP_RELEASE)->command.tag.attempt, 1);
    assert_memory_equal(&fixture_latest(f, 2, OP_RELEASE)->command.token, &first, sizeof(first));
    fixture_replay(f, fixture_latest(f, 2, OP_RELEASE), OUTCOME_MISSING);
    assert_int_equal(core_debts(f->lock, 2), 0);
    assert_int_equal(core_counted(f->lock), 3);
}
