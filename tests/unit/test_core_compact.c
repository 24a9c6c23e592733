/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_compact.c - a quiet held lock becomes a small record, and goes on from the record as if nothing had been */

#include <stdlib.h>
#include <string.h>

#include "core/compact.h"
#include "fixture.h"

#define HOUR_US UINT64_C(3600000000)

/* Make the lock from its record, in memory that knows nothing of it. */
static void expand(struct fixture *f, const struct core_compact *record)
{
    struct core_node_change nodes[CORE_NODES_MAX];

    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        nodes[i] = (struct core_node_change){.index = i,
                                             .state = f->ready[i] ? NODE_READY : NODE_CONNECTING,
                                             .generation = f->generations[i],
                                             .fault = f->ready[i] ? FAULT_CLASS_NONE : FAULT_CLASS_TEMPORARY,
                                             .srtt_us = f->srtt_us};
    }
    memset(f->lock, 0xee, core_size(f->config.n_nodes));
    core_expand(f->lock, &f->config, record, nodes, f->now_us);
}

/* True: the lock became a record, and goes on from that record in memory that held nothing else of it. */
static bool becomes_compact(struct fixture *f)
{
    struct core_compact *record = malloc(core_compact_size(&f->config));
    bool compact;

    assert_non_null(record);
    compact = core_compact(f->lock, f->now_us, record);
    if (compact) {
        expand(f, record);
        assert_int_equal(core_deadline(f->lock), core_compact_deadline(record, &f->config));
    }
    free(record);
    return compact;
}

CORE_TEST(a_record_is_small)
{
    struct core_config config = fixture_config(3, 2);

    assert_int_equal(core_compact_size(&config), 72);
    config.fencing = true;
    assert_int_equal(core_compact_size(&config), 80);
}

CORE_TEST(a_node_that_missed_rounds_counts_as_before)
{
    fixture_open_held(f, 3, 2);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yyu");
    assert_true(becomes_compact(f));
    assert_false(core_is_whole(f->lock));
    assert_int_equal(core_vote(f->lock, 2), CORE_VOTE_FAILED);
    /* Without the yes of the second, that of the third counts, from the acquire. */
    fixture_step(f, 1, f->now_us + 1);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
}

CORE_TEST(a_compact_lock_is_lost_in_time)
{
    fixture_open_held(f, 3, 2);
    assert_true(becomes_compact(f));
    fixture_sleep(f, 2968 * MS - 64 * MS);
    fixture_pass(f, 0);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    assert_true(becomes_compact(f));
    assert_int_equal(core_phase_now(f->lock), CORE_LOST);
    assert_int_equal(core_loss(f->lock), CORE_LOSS_EXPIRED);
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_expect_pending(f, OP_RELEASE, "111");
}

CORE_TEST(a_lock_without_renewal_is_compact_until_its_loss)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.renew_us = CORE_NEVER;
    fixture_open_config(f, &config);
    fixture_grant(f);
    assert_true(becomes_compact(f));
    fixture_sleep(f, 2968 * MS);
    fixture_pass(f, 0);
    fixture_expect_lost(f, CORE_LOSS_NOT_RENEWED);
}

CORE_TEST(a_compact_lock_keeps_its_fencing_token)
{
    struct core_config config = fixture_config(3, 2);

    config.fencing = true;
    fixture_open_config(f, &config);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_answer_with(f, i, OP_ACQUIRE, &(struct core_reply){.outcome = OUTCOME_YES, .fence = 77});
    }
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_true(becomes_compact(f));
    assert_int_equal(core_fence(f->lock), 77);
    fixture_pass(f, 1000 * MS);
    assert_int_equal(fixture_latest(f, 0, OP_EXTEND)->command.fence, 77);
}

CORE_TEST(a_lock_with_anything_under_way_is_not_compact)
{
    fixture_open(f, 3, 2);
    assert_false(becomes_compact(f));
    fixture_acquire(f);
    assert_false(becomes_compact(f));
    fixture_answers(f, OP_ACQUIRE, "yy.");
    assert_false(becomes_compact(f));
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_false(becomes_compact(f)); /* a late vote */
    fixture_answers(f, OP_ACQUIRE, "..y");
    assert_true(becomes_compact(f));
    assert_int_equal(fixture_extend(f, 0), CORE_OK);
    assert_false(becomes_compact(f));
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_false(becomes_compact(f)); /* the owner is not notified yet */
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_OK);
    assert_true(becomes_compact(f));
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "uuu");
    assert_false(becomes_compact(f)); /* a node that comes back renews at once */
}

CORE_TEST(a_step_of_a_clock_is_remembered_for_a_lease)
{
    fixture_open_held(f, 3, 2);
    fixture_step(f, 0, f->now_us + 1);
    assert_false(becomes_compact(f));
    fixture_pass(f, 1);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_false(becomes_compact(f));
    for (int i = 0; i < 3; i++) {
        fixture_pass(f, 1000 * MS);
        fixture_answers(f, OP_EXTEND, "yyy");
    }
    assert_true(becomes_compact(f));
}

/* Where a node may hold the key for longer than the lease, a release may be owed for longer. */
CORE_TEST(a_longer_lease_that_no_quorum_gave_keeps_it_awake)
{
    fixture_open_held(f, 3, 2);
    assert_int_equal(fixture_extend(f, 9000 * MS), CORE_OK);
    fixture_answers(f, OP_EXTEND, "uuu");
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_NOQUORUM);
    fixture_pass(f, 1);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_false(becomes_compact(f));
}

/* Ages have 32 bits, of microseconds: 71 minutes before the next renewal. */
CORE_TEST(a_yes_that_is_too_old_to_be_written_keeps_it_awake)
{
    struct core_config config = fixture_config(3, 2);

    config.lease_us = 4 * HOUR_US;
    config.holder.renew_us = HOUR_US / 2;
    fixture_open_config(f, &config);
    fixture_grant(f);
    assert_true(becomes_compact(f));
    for (int i = 0; i < 2; i++) {
        assert_true(becomes_compact(f));
        fixture_pass(f, HOUR_US / 2);
        fixture_answers(f, OP_EXTEND, "yyu");
    }
    assert_false(becomes_compact(f));
    fixture_pass(f, HOUR_US / 2);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_true(becomes_compact(f));
}

/* Without memory a lock is not made again from its record: it is lost by it. */
CORE_TEST(a_record_can_be_lost)
{
    struct core_compact *record;

    fixture_open_held(f, 3, 2);
    record = malloc(core_compact_size(&f->config));
    assert_non_null(record);
    assert_true(core_compact(f->lock, f->now_us, record));
    assert_false(core_compact_drop_yes(record, 0, f->now_us));
    assert_int_equal(core_compact_lost_at(record, &f->config), core_lost_at(f->lock));
    assert_true(core_compact_drop_yes(record, 0, f->now_us + 1));
    assert_false(core_compact_drop_yes(record, 0, f->now_us + 1));
    assert_int_equal(core_compact_lost_at(record, &f->config), core_lost_at(f->lock));
    assert_true(core_compact_drop_yes(record, 1, f->now_us + 1));
    assert_int_equal(core_compact_valid_us(record, &f->config, f->now_us), 0);
    assert_int_equal(core_compact_lose(record, &f->config, f->now_us), CORE_LOSS_EXPIRED);
    assert_false(core_compact_holds(record));
    free(record);
}

/* The clocks of a quorum stepped, and there was no memory to expand the lock then. */
CORE_TEST(a_record_without_validity_is_lost_when_it_is_expanded)
{
    struct core_compact *record;

    fixture_open_held(f, 3, 2);
    record = malloc(core_compact_size(&f->config));
    assert_non_null(record);
    assert_true(core_compact(f->lock, f->now_us, record));
    for (uint32_t i = 0; i < 2; i++) assert_true(core_compact_drop_yes(record, i, f->now_us + 1));
    expand(f, record);
    free(record);
    fixture_pass(f, 0);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
}

/* Until the last vote is there, or a renewal asks that node anyway. */
CORE_TEST(late_votes_keep_a_lock_expanded)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_false(becomes_compact(f));
    fixture_answers(f, OP_ACQUIRE, "..y");
    assert_true(becomes_compact(f));
    assert_int_equal(core_counted(f->lock), 3);
}

/* A node that was still connecting may yet be asked. */
CORE_TEST(a_node_that_was_not_asked_keeps_a_lock_expanded)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, "..c");
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_false(becomes_compact(f));
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yy.");
    assert_true(becomes_compact(f));
}

/* A fair lock waits for the first connection to a node only. */
CORE_TEST(a_connection_that_is_made_again_is_not_waited_for_by_what_was_compact)
{
    struct core_config config = fixture_config(3, 2);

    config.fair = true;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_answer(f, i, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_node_state(f, 0, NODE_CONNECTING);
    assert_true(becomes_compact(f));
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answers(f, OP_RELEASE, ".yy");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_acquire(f);
    fixture_expect_alone(f, 1);
}
