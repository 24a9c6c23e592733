/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_intent.c - locks that are shared: what a waiting reader or writer leaves at the nodes, and what token a
 * reader is told
 */
#include <string.h>

#include "fixture.h"

#define READERS 55u /* whom a node names where the keys are shared */
#define WRITER  77u
#define LIFE_US (2000 * MS)

enum mode { WRITES, READS, MIXED };

static void open_mode(struct fixture *f, enum mode mode, uint64_t wait_us)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.wait_us = wait_us;
    config.shared = mode != WRITES;
    config.reads = mode == READS;
    fixture_open_config(f, &config);
}

static void refuse(struct fixture *f, uint32_t node, bool by_readers)
{
    fixture_answer_with(
        f, node, OP_ACQUIRE,
        &(struct core_reply){
            .outcome = OUTCOME_OTHER, .holder_id = by_readers ? READERS : WRITER, .ttl_us = -1, .readers = by_readers});
}

/* It was refused everywhere, and waits. */
static void open_refused(struct fixture *f, enum mode mode, bool by_readers)
{
    open_mode(f, mode, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) refuse(f, i, by_readers);
    fixture_answer_releases(f);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

static void expect_intents(const struct fixture *f, uint64_t life_us)
{
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(fixture_latest(f, i, OP_INTEND)->command.tag.lease_us, life_us);
    }
}

/* ---- who leaves one ---- */

/* A list of both modes waits like a writer. */
CORE_TEST(a_mixed_list_tells_of_readers_in_its_way)
{
    open_refused(f, MIXED, false);
    fixture_expect_pending(f, OP_INTEND, "000");
    open_refused(f, MIXED, true);
    fixture_expect_pending(f, OP_INTEND, "111");
}

CORE_TEST(among_writers_nothing_is_left)
{
    open_refused(f, WRITES, false);
    fixture_expect_pending(f, OP_INTEND, "000");
    fixture_cancel(f);
    fixture_expect_pending(f, OP_INTEND, "000");
}

/* Neither while it settles split votes. */
CORE_TEST(one_that_tries_once_leaves_nothing_while_votes_are_split)
{
    open_mode(f, READS, 0);
    fixture_acquire(f);
    refuse(f, 0, false);
    fixture_refuse(f, 1, WRITER + 1, -1);
    fixture_answers(f, OP_ACQUIRE, "..y");
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_expect_pending(f, OP_INTEND, "000");
}

/* All nodes are needed, and one is out of reach, or may have lost its memory: it keeps nobody out until that ends. */
CORE_TEST(one_that_too_few_nodes_can_grant_leaves_nothing)
{
    for (int mode = WRITES; mode <= MIXED; mode++) {
        struct core_config config = fixture_config(3, 3);

        config.holder.wait_us = CORE_NEVER;
        config.shared = mode != WRITES;
        config.reads = mode == READS;
        fixture_open_config(f, &config);
        fixture_acquire(f);
        fixture_node_states(f, mode == READS ? "..q" : "..d");
        for (uint32_t i = 0; i < 3; i++) {
            if (fixture_pending(f, i, OP_ACQUIRE) != 0) refuse(f, i, mode != READS);
        }
        fixture_answer_releases(f);
        fixture_expect_pending(f, OP_INTEND, "000");
        fixture_node_states(f, "..r");
        fixture_wake(f);
        for (uint32_t i = 0; i < 3; i++) {
            if (fixture_pending(f, i, OP_ACQUIRE) != 0) refuse(f, i, mode != READS);
        }
        fixture_answer_releases(f);
        fixture_expect_pending(f, OP_INTEND, "111");
    }
}

/* ---- how long ---- */

/* Under one name, with the time it has waited; each attempt has a token of its own. */
CORE_TEST(an_intent_is_renewed_while_it_waits)
{
    struct core_token first, name;
    uint64_t last_us;

    open_refused(f, WRITES, true);
    first = fixture_latest(f, 0, OP_ACQUIRE)->command.token;
    name = fixture_latest(f, 0, OP_INTEND)->command.token;
    assert_memory_equal(&name, &first, sizeof(name));
    last_us = f->now_us;
    for (int i = 0; i < 20; i++) {
        fixture_answers(f, OP_INTEND, "yyy");
        while (fixture_pending(f, 0, OP_INTEND) == 0) {
            fixture_pass_to_attempt(f);
            for (uint32_t k = 0; k < 3; k++) {
                if (fixture_pending(f, k, OP_ACQUIRE) != 0) refuse(f, k, true);
            }
            fixture_answer_releases(f);
            assert_true(f->now_us - last_us < LIFE_US);
        }
        fixture_expect_pending(f, OP_INTEND, "111");
        assert_true(f->now_us - last_us >= 500 * MS);
        last_us = f->now_us;
        expect_intents(f, LIFE_US);
        assert_memory_equal(&fixture_latest(f, 0, OP_INTEND)->command.token, &name, sizeof(name));
        assert_int_equal(fixture_latest(f, 0, OP_INTEND)->command.waited_us, f->now_us - FIXTURE_BEGIN_US);
    }
}

/* A granted lock waits no more, and neither does one that gave up. */
CORE_TEST(an_intent_is_withdrawn)
{
    for (int way = 0; way < 3; way++) {
        open_refused(f, READS, false);
        fixture_answers(f, OP_INTEND, "yyy");
        if (way == 0) {
            fixture_wake(f);
            fixture_answers(f, OP_ACQUIRE, "yy.");
            fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
        } else if (way == 1) {
            fixture_cancel(f);
            fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
        } else {
            fixture_wake(f);
            for (uint32_t i = 0; i < 3; i++)
                fixture_answer_with(
                    f, i, OP_ACQUIRE,
                    &(struct core_reply){.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_FOREIGN, .ttl_us = -2});
            fixture_answer_releases(f);
            fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_FOREIGN_KEY);
        }
        fixture_expect_pending(f, OP_INTEND, "111");
        expect_intents(f, 0);
    }
}

/* ---- many that wait ---- */

static void refuse_among(struct fixture *f, uint32_t node, bool by_readers, uint32_t listeners)
{
    fixture_answer_with(f, node, OP_ACQUIRE,
                        &(struct core_reply){.outcome = OUTCOME_OTHER,
                                             .holder_id = by_readers ? READERS : WRITER,
                                             .ttl_us = -1,
                                             .readers = by_readers,
                                             .listeners = listeners});
}

static void open_among(struct fixture *f, enum mode mode, bool by_readers, uint32_t listeners)
{
    open_mode(f, mode, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) refuse_among(f, i, by_readers, listeners);
    fixture_answer_releases(f);
}

/* Pass to the next attempt, in which all that are asked refuse; return after how long. */
static uint64_t poll_among(struct fixture *f, uint32_t listeners)
{
    uint64_t us = fixture_pass_to_attempt(f);

    for (uint32_t i = 0; i < 3; i++) {
        if (fixture_pending(f, i, OP_ACQUIRE) != 0) refuse_among(f, i, false, listeners);
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (fixture_pending(f, i, OP_ACQUIRE) != 0) refuse_among(f, i, false, listeners);
    }
    fixture_answer_releases(f);
    return us;
}

/* The refusal tells how many there are before any intent does. */
CORE_TEST(one_of_many_readers_asks_seldom_and_leaves_its_intent_with_its_first_poll)
{
    open_among(f, READS, false, 1000);
    fixture_expect_pending(f, OP_INTEND, "000");
    assert_in_range(poll_among(f, 1000), 2500 * MS, 5000 * MS);
    fixture_expect_pending(f, OP_INTEND, "111");
    assert_true(fixture_latest(f, 0, OP_INTEND)->command.patient);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.patient);
    /* Nor is it asked often while the nodes have not answered that. */
    assert_in_range(poll_among(f, 1000), 2500 * MS, 5000 * MS);
}

/* A writer keeps new readers out by its intent, and few readers come before a writer that way. */
CORE_TEST(a_writer_and_one_of_few_readers_leave_the_intent_at_once)
{
    open_among(f, WRITES, true, 1000);
    fixture_expect_pending(f, OP_INTEND, "111");
    open_among(f, READS, false, 8);
    fixture_expect_pending(f, OP_INTEND, "111");
    fixture_answers(f, OP_INTEND, "yyy");
    (void)poll_among(f, 8);
    assert_false(fixture_latest(f, 0, OP_ACQUIRE)->command.patient);
}

/* Ask again and again from the place behind 999 readers: at intervals of most_us at most, and the intent is renewed no
 * sooner than from_us, no later than to_us. */
static void stay_far_behind(struct fixture *f, uint64_t most_us, uint64_t from_us, uint64_t to_us)
{
    const struct core_reply place = {.outcome = OUTCOME_YES, .before = 999};
    uint64_t since_us = f->now_us;

    for (int i = 0; i < 100; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            if (fixture_pending(f, k, OP_INTEND) != 0) fixture_answer_with(f, k, OP_INTEND, &place);
        }
        assert_in_range(poll_among(f, 1000), most_us / 2, most_us);
        if (fixture_pending(f, 0, OP_INTEND) == 0) continue;
        assert_in_range(f->now_us - since_us, from_us, to_us);
        since_us = f->now_us;
    }
    assert_true(f->now_us - since_us <= to_us);
}

/* The nodes remember them for 200 s. */
CORE_TEST(readers_far_behind_ask_seldom_and_seldom_renew_the_intent)
{
    open_among(f, READS, false, 1000);
    (void)poll_among(f, 1000);
    stay_far_behind(f, 5000 * MS, 66600 * MS, 72000 * MS); /* nobody would tell them of a release */
    fixture_listening(f, 0);
    (void)poll_among(f, 1000);
    stay_far_behind(f, 100000 * MS, 66600 * MS, 167000 * MS);
}

/* Only the first of them ask when the writer's lease ends: whoever gets the key tells the others. */
CORE_TEST(readers_far_behind_do_not_ask_when_the_lease_ends)
{
    const struct core_reply place = {.outcome = OUTCOME_YES, .before = 999};
    const struct core_reply refusal = {
        .outcome = OUTCOME_OTHER, .holder_id = WRITER, .ttl_us = (int64_t)(20 * MS), .listeners = 1000};

    open_among(f, READS, false, 1000);
    (void)poll_among(f, 1000);
    for (uint32_t k = 0; k < 3; k++) fixture_answer_with(f, k, OP_INTEND, &place);
    for (uint8_t i = 0; i < 20; i++) {
        assert_in_range(fixture_pass_to_attempt(f), 2500 * MS, 5000 * MS);
        for (uint32_t k = 0; k < 3; k++) {
            if (fixture_pending(f, k, OP_ACQUIRE) != 0) fixture_answer_with(f, k, OP_ACQUIRE, &refusal);
        }
    }
}

/* The waiting goes on for the successor, under the same name. */
CORE_TEST(a_successor_goes_on_under_the_same_name)
{
    struct core_token name;

    open_refused(f, READS, false);
    name = fixture_latest(f, 0, OP_INTEND)->command.token;
    fixture_answers(f, OP_INTEND, "yyy");
    fixture_hand_off(f, f->now_us, CORE_NEVER);
    fixture_expect_pending(f, OP_INTEND, "000");
    fixture_pass(f, 500 * MS);
    fixture_wake(f);
    for (uint32_t i = 0; i < 3; i++) {
        if (fixture_pending(f, i, OP_ACQUIRE) != 0) refuse(f, i, false);
    }
    fixture_expect_pending(f, OP_INTEND, "111");
    assert_memory_equal(&fixture_latest(f, 0, OP_INTEND)->command.token, &name, sizeof(name));
}

/* What becomes of it changes nothing. */
CORE_TEST(no_grant_depends_on_one)
{
    open_refused(f, READS, false);
    fixture_answers(f, OP_INTEND, "ueo");
    fixture_wake(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

/* ---- tokens ---- */

static void shows(struct fixture *f, uint32_t node, uint64_t counter)
{
    fixture_answer_with(f, node, OP_ACQUIRE,
                        &(struct core_reply){.outcome = OUTCOME_YES, .ttl_us = -2, .fence = counter});
}

/* Nodes increment nothing for it, so there is nothing to agree on. */
CORE_TEST(a_reader_is_told_the_highest_counter)
{
    struct core_config config = fixture_config(3, 2);

    config.shared = 1;
    config.reads = config.fencing = true;
    fixture_open_config(f, &config);
    f->wall_us = 1700000000000000u;
    fixture_acquire(f);
    assert_int_equal(fixture_latest(f, 0, OP_ACQUIRE)->command.fence, 0);
    shows(f, 0, 5);
    shows(f, 1, 7);
    fixture_expect_pending(f, OP_RAISE, "000");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 7);
    shows(f, 2, 9);
    assert_int_equal(core_fence(f->lock), 7);
    /* It has none to carry to nodes that show less. */
    fixture_pass(f, 1000 * MS);
    assert_int_equal(fixture_latest(f, 0, OP_EXTEND)->command.fence, 0);
    fixture_answers(f, OP_EXTEND, "yym");
    assert_int_equal(fixture_latest(f, 2, OP_REPAIR)->command.fence, 0);
    fixture_release(f);
    assert_int_equal(fixture_latest(f, 0, OP_RELEASE)->command.fence, 0);
}
