/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_keep.c - a lock that is released before its keep time is over keeps its keys until then
 */
#include <stdlib.h>

#include "core/compact.h"
#include "fixture.h"

#define KEEP_US (2500 * MS)

static void open_kept(struct fixture *f)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.keep_us = KEEP_US;
    fixture_open_config(f, &config);
    fixture_grant(f);
}

/* The latest release to each node keeps the keys for so long; 0: it deletes them. */
static void expect_kept(const struct fixture *f, uint64_t kept_us)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        const struct core_command *command = &fixture_latest(f, i, OP_RELEASE)->command;

        assert_int_equal(command->tag.lease_us, kept_us);
        assert_int_equal(command->silent, kept_us != 0);
    }
}

static void reconnect(struct fixture *f, uint32_t node)
{
    fixture_drop(f);
    fixture_node_state(f, node, NODE_DOWN);
    fixture_node_state(f, node, NODE_READY);
}

CORE_TEST(an_early_release_keeps_the_keys_for_the_rest_of_the_time)
{
    struct core_completion completion;

    open_kept(f);
    fixture_pass(f, 900 * MS);
    assert_int_equal(fixture_release(f), CORE_OK);
    expect_kept(f, 1600 * MS);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    fixture_answers(f, OP_RELEASE, "yyy");
    completion = fixture_completion(f);
    assert_int_equal(completion.kind, CORE_NOTIFY_RELEASED);
    assert_int_equal(completion.status, CORE_OK);
    assert_int_equal(completion.keep_until_us, f->now_us + 1600 * MS);
    assert_true(core_quiet(f->lock));
}

/* Servers count milliseconds: a part of one is kept as a whole one. */
CORE_TEST(the_keys_are_kept_until_the_last_moment)
{
    static const uint64_t passed_us[] = {1,          999, 1000, 1001, KEEP_US - 1001, KEEP_US - 1000, KEEP_US - 999,
                                         KEEP_US - 1};
    static const uint64_t kept_ms[] = {2500, 2500, 2499, 2499, 2, 1, 1, 1};

    for (size_t i = 0; i < LENGTH(passed_us); i++) {
        open_kept(f);
        fixture_sleep(f, passed_us[i]);
        assert_int_equal(fixture_release(f), CORE_OK);
        expect_kept(f, kept_ms[i] * MS);
    }
    open_kept(f);
    fixture_sleep(f, KEEP_US);
    assert_int_equal(fixture_release(f), CORE_OK);
    expect_kept(f, 0);
}

CORE_TEST(a_late_release_deletes_the_keys)
{
    open_kept(f);
    for (int i = 0; i < 2; i++) {
        fixture_pass(f, 1000 * MS);
        fixture_answers(f, OP_EXTEND, "yyy");
    }
    fixture_pass(f, 500 * MS);
    fixture_release(f);
    expect_kept(f, 0);
    fixture_answers(f, OP_RELEASE, "yyy");
    assert_int_equal(fixture_completion(f).keep_until_us, 0);
}

/* The time counts from the grant, however often the lock was renewed. */
CORE_TEST(a_compact_lock_remembers_its_grant)
{
    struct core_compact *record;
    struct core_node_change nodes[3];

    open_kept(f);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yyy");
    record = malloc(core_compact_size(&f->config));
    assert_non_null(record);
    assert_true(core_compact(f->lock, f->now_us, record));
    for (uint32_t i = 0; i < 3; i++) {
        nodes[i] =
            (struct core_node_change){.index = i, .state = NODE_READY, .generation = f->generations[i], .srtt_us = 1};
    }
    core_expand(f->lock, &f->config, record, nodes, f->now_us);
    free(record);
    fixture_release(f);
    expect_kept(f, 1500 * MS);
}

CORE_TEST(a_lock_that_was_not_held_is_not_kept)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.keep_us = KEEP_US;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yo.");
    fixture_cancel(f);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
    assert_int_equal(fixture_latest(f, 0, OP_RELEASE)->command.tag.lease_us, 0);
    /* Granted, but the owner was not told. */
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_cancel(f);
    expect_kept(f, 0);
    /* Granted too late. */
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yyy");
    fixture_sleep(f, 2950 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    expect_kept(f, 0);
}

CORE_TEST(a_lost_lock_is_not_kept)
{
    open_kept(f);
    fixture_lose(f);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    fixture_release(f);
    expect_kept(f, 0);
}

/* A repair without an answer may be executed late; its release must not take the kept key away. */
CORE_TEST(a_late_debt_waits_until_the_key_is_not_kept_any_more)
{
    uint64_t granted_us;

    open_kept(f);
    granted_us = f->now_us;
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_expect_pending(f, OP_REPAIR, "001");
    reconnect(f, 2);
    fixture_release(f);
    assert_int_equal(fixture_latest(f, 2, OP_RELEASE)->command.tag.lease_us, 1500 * MS);
    fixture_answer(f, 2, OP_RELEASE, OUTCOME_MISSING);
    assert_int_equal(f->update.late.node, 2);
    assert_int_equal(f->update.late.from_us, granted_us + KEEP_US);
    assert_int_equal(f->update.late.until_us, granted_us + KEEP_US + f->config.lease_us);
}

/* A renewal without an answer may be executed late, and would prolong the kept key. */
CORE_TEST(a_late_renewal_is_released_after_the_keep_time)
{
    for (int answered = 0; answered < 2; answered++) {
        open_kept(f);
        fixture_pass(f, 1000 * MS);
        fixture_answers(f, OP_EXTEND, answered != 0 ? "yyy" : "yy.");
        reconnect(f, 2);
        fixture_release(f);
        fixture_answer(f, 2, OP_RELEASE, OUTCOME_YES);
        assert_int_equal(f->update.late.until_us != 0, answered == 0);
        if (answered == 0) assert_in_range(f->update.late.from_us, f->now_us + 1500 * MS, f->now_us + 1500 * MS);
    }
}

/* So the kept keys refuse it. */
CORE_TEST(the_next_attempt_is_a_stranger)
{
    struct core_token token;

    open_kept(f);
    token = *core_token_now(f->lock);
    fixture_release(f);
    fixture_answers(f, OP_RELEASE, "yyy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_acquire(f);
    assert_memory_not_equal(&token, &fixture_latest(f, 0, OP_ACQUIRE)->command.token, sizeof(token));
}
