/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_compact.c - a quiet held lock becomes a small record, and goes on from the record as if nothing had been */

#include <stdlib.h>
#include <string.h>

#include "core/compact.h"
#include "core/state.h"
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

/* ---- the record, member by member ---- */

/* A lock of four nodes, of which all said yes at different times. */
static struct core_compact *record_of(struct fixture *f, bool renews)
{
    struct core_config config = fixture_config(4, 3);
    struct core_compact *record;

    if (!renews) config.holder.renew_us = CORE_NEVER;
    fixture_open_config(f, &config);
    fixture_grant(f);
    record = calloc(1, core_compact_size(&f->config));
    assert_non_null(record);
    assert_true(core_compact(f->lock, f->now_us, record));
    return record;
}

CORE_TEST(a_lock_comes_back_from_its_record_as_it_was)
{
    struct core_compact *record = record_of(f, true);
    struct core_node before[4];
    uint64_t lease_us;
    uint32_t rounds;

    assert_int_equal(fixture_extend(f, 5000 * MS), CORE_OK);
    fixture_answers(f, OP_EXTEND, "yyym");
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_OK);
    fixture_answers(f, OP_REPAIR, "...e");
    f->lock->waiters = 7;
    f->lock->nodes[1].doubt.overdue = f->lock->nodes[2].doubt.unfit = true;
    f->srtt_us = 900;
    assert_true(core_compact(f->lock, f->now_us, record));
    memcpy(before, f->lock->nodes, sizeof(before));
    lease_us = core_lease_us(f->lock);
    rounds = core_rounds(f->lock);
    expand(f, record);
    free(record);
    assert_int_equal(core_lease_us(f->lock), lease_us);
    assert_int_equal(core_rounds(f->lock), rounds);
    assert_int_equal(f->lock->waiters, 7);
    for (uint32_t i = 0; i < 4; i++) {
        const struct core_node *node = &f->lock->nodes[i];

        assert_int_equal(node->vote, before[i].vote);
        assert_int_equal(node->fault, before[i].fault);
        assert_int_equal(node->gone, before[i].gone);
        assert_int_equal(node->extended, before[i].extended);
        assert_int_equal(node->doubt.overdue, before[i].doubt.overdue);
        assert_int_equal(node->doubt.unfit, before[i].doubt.unfit);
        if (i < 3) assert_int_equal(node->key.sent_us, before[i].key.sent_us);
        assert_int_equal(node->key.valid_until_us, before[i].key.valid_until_us);
        assert_int_equal(node->srtt_us, 900);
    }
    assert_true(f->lock->nodes[3].gone);
}

/* Before the first renewal no key was extended; servers' reports of changes are then of our own SET. */
CORE_TEST(a_yes_of_the_acquire_extended_no_key)
{
    struct core_compact *record = record_of(f, true);

    expand(f, record);
    assert_false(f->lock->nodes[0].extended);
    record->renewed = true;
    record->nodes[1].vote = CORE_VOTE_FAILED;
    expand(f, record);
    assert_true(f->lock->nodes[0].extended);
    assert_false(f->lock->nodes[1].extended);
    free(record);
}

/* Two locks that are made from records at one moment draw different pauses. */
CORE_TEST(a_lock_from_a_record_draws_by_its_token)
{
    struct core_compact *record = record_of(f, true);
    uint64_t state;

    expand(f, record);
    state = f->lock->jitter.state;
    memset(record->token.bytes, 0x5a, sizeof(record->token.bytes));
    expand(f, record);
    assert_int_not_equal(f->lock->jitter.state, state);
    state = f->lock->jitter.state;
    record->base_us++;
    expand(f, record);
    assert_int_not_equal(f->lock->jitter.state, state);
    free(record);
}

/* It has 32 bits for milliseconds. */
CORE_TEST(a_lease_that_is_too_long_to_be_written_keeps_a_lock_expanded)
{
    struct core_config config = fixture_config(3, 2);
    struct core_compact *record = calloc(1, core_compact_size(&config));

    assert_non_null(record);
    for (uint64_t over = 0; over < 2; over++) {
        config.lease_us = (UINT32_MAX + over) * MS;
        fixture_open_config(f, &config);
        fixture_grant(f);
        assert_int_equal(core_compact(f->lock, f->now_us, record), over == 0);
    }
    free(record);
}

/* Each of these members, changed alone, is something under way. */
CORE_TEST(anything_under_way_keeps_a_lock_expanded)
{
    struct core_compact *record = record_of(f, true);
    size_t size = core_size(4);
    char *quiet = malloc(size);
    struct core_lock *lock = f->lock;

    assert_non_null(quiet);
    memcpy(quiet, lock, size);
#define UNDER_WAY(change)                                                                                              \
    do {                                                                                                               \
        memcpy(lock, quiet, size);                                                                                     \
        assert_true(core_compact(lock, f->now_us, record));                                                            \
        change;                                                                                                        \
        assert_false(core_compact(lock, f->now_us, record));                                                           \
    } while (false)
    UNDER_WAY(lock->phase = CORE_GRANTED);
    UNDER_WAY(lock->owing = 1);
    UNDER_WAY(lock->release.attempt = 1);
    UNDER_WAY(lock->pending.kinds = 1);
    UNDER_WAY(lock->hold.extend_lease_us = lock->lease_us);
    UNDER_WAY(lock->hold.round_waits = true);
    UNDER_WAY(lock->hold.repair_waits = true);
    UNDER_WAY(lock->hold.looks = true);
    UNDER_WAY(lock->hold.round_state = ROUND_DECIDED);
    UNDER_WAY(lock->hold.renew_failures = 1);
    UNDER_WAY(lock->nodes[0].vote = CORE_VOTE_PENDING);
    UNDER_WAY(lock->nodes[0].vote = CORE_VOTE_NONE);
    UNDER_WAY((lock->hold.round = 1, lock->nodes[0].vote = CORE_VOTE_PENDING));
    UNDER_WAY(lock->nodes[0].open = true);
    UNDER_WAY(lock->nodes[0].key.stepped_us = f->now_us);
    UNDER_WAY(lock->nodes[0].key.sent_us = lock->hold.renew_at_us + 1);
    UNDER_WAY(lock->nodes[0].key.valid_until_us++);
    UNDER_WAY(lock->hold.validity_us++);
    UNDER_WAY(lock->lease_us++);
    UNDER_WAY(lock->lease_us = ((uint64_t)UINT32_MAX + 1) * MS);
    /* A node that a renewal did not ask is no late vote; a step is nothing to a lock that is lost. */
    memcpy(lock, quiet, size);
    lock->hold.round = 1;
    lock->nodes[3].vote = CORE_VOTE_NONE;
    assert_true(core_compact(lock, f->now_us, record));
    memcpy(lock, quiet, size);
    lock->phase = CORE_LOST;
    lock->hold.loss = CORE_LOSS_GONE;
    lock->hold.renew_failures = 3;
    lock->nodes[0].key.stepped_us = f->now_us;
    lock->hold.validity_us++;
    assert_true(core_compact(lock, f->now_us, record));
    assert_int_equal(record->nodes[0].age_us, CORE_COMPACT_NO_YES);
    assert_false(core_compact_holds(record));
    assert_int_equal(core_compact_valid_us(record, &f->config, f->now_us), 0);
    memcpy(lock, quiet, size);
    free(quiet);
    free(record);
}

CORE_TEST(the_validity_of_a_record_ends_with_its_loss)
{
    struct core_compact *record = record_of(f, true);
    uint64_t lost_at_us = core_compact_lost_at(record, &f->config);

    assert_int_equal(core_compact_valid_us(record, &f->config, lost_at_us - 1), 64 * MS + 1);
    assert_int_equal(core_compact_valid_us(record, &f->config, lost_at_us), 0);
    core_compact_lose(record, &f->config, f->now_us);
    assert_int_equal(core_compact_valid_us(record, &f->config, f->now_us), 0);
    assert_false(core_compact_drop_yes(record, 0, 0));
    record->nodes[0].age_us = CORE_COMPACT_NO_YES;
    assert_false(core_compact_drop_yes(record, 0, CORE_NEVER));
    free(record);
}

/* ---- does the record need a repair? ---- */

static void change_nodes(const struct fixture *f, struct core_node_change *nodes, enum node_state state)
{
    for (uint32_t i = 0; i < 4; i++) {
        nodes[i] = (struct core_node_change){.index = i, .state = i == 3 ? state : NODE_READY, .generation = 1};
    }
    (void)f;
}

CORE_TEST(a_record_wants_a_repair_for_a_node_that_may_lack_the_key)
{
    static const struct {
        enum node_state state;
        uint32_t life_ms; /* after the grant */
        bool renewed, there, yes, repaired;
        bool wants;
    } rows[] = {
        {NODE_READY, 0, false, true, true, false, false},
        {NODE_READY, 1, false, true, true, false, true}, /* another life */
        {NODE_DOWN, 1, false, true, true, false, false}, /* but out of reach */
        {NODE_QUARANTINED, 0, false, false, false, false, true},
        {NODE_QUARANTINED, 0, true, false, false, false, false},
        {NODE_QUARANTINED, 0, false, true, false, false, false},
        {NODE_QUARANTINED, 0, false, false, true, false, false},
        {NODE_READY, 0, false, false, false, false, false},
        {NODE_READY, 0, true, true, false, true, true}, /* a repair is to be confirmed */
        {NODE_DOWN, 0, true, true, false, true, false},
    };
    struct core_compact *record = record_of(f, true);
    struct core_node_change nodes[4];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint64_t at_us;

        change_nodes(f, nodes, rows[i].state);
        nodes[3].life_us = f->now_us + rows[i].life_ms * MS;
        record->renewed = rows[i].renewed;
        record->nodes[3] = (struct core_compact_node){.age_us = rows[i].yes ? 0 : CORE_COMPACT_NO_YES,
                                                      .vote = rows[i].repaired ? CORE_VOTE_REPAIRED : CORE_VOTE_YES,
                                                      .there = rows[i].there};
        if (rows[i].yes) record->nodes[3].age_us = record->nodes[0].age_us;
        at_us = core_compact_repair_at(record, &f->config, nodes, f->now_us);
        assert_int_equal(at_us != CORE_NEVER, rows[i].wants);
        if (rows[i].wants) assert_in_range(at_us, f->now_us, f->now_us + 300 * MS);
        core_expand(f->lock, &f->config, record, nodes, f->now_us);
        assert_int_equal(f->lock->hold.repair_at_us, rows[i].wants ? f->now_us : CORE_NEVER);
        /* Another life has not confirmed anything. */
        assert_int_equal(f->lock->hold.repaired, rows[i].repaired && rows[i].life_ms == 0);
    }
    record->nodes[3].vote = CORE_VOTE_REPAIRED;
    change_nodes(f, nodes, NODE_READY);
    nodes[0].life_us = f->now_us + 1;
    core_expand(f->lock, &f->config, record, nodes, f->now_us);
    assert_false(f->lock->hold.repaired);
    free(record);
}

CORE_TEST(a_record_without_renewal_or_hold_wants_no_repair)
{
    struct core_compact *record = record_of(f, false);
    struct core_node_change nodes[4];

    change_nodes(f, nodes, NODE_READY);
    nodes[0].life_us = f->now_us + 1;
    assert_int_equal(core_compact_repair_at(record, &f->config, nodes, f->now_us), CORE_NEVER);
    free(record);
    record = record_of(f, true);
    assert_int_not_equal(core_compact_repair_at(record, &f->config, nodes, f->now_us), CORE_NEVER);
    core_compact_lose(record, &f->config, f->now_us);
    assert_int_equal(core_compact_repair_at(record, &f->config, nodes, f->now_us), CORE_NEVER);
    free(record);
}

CORE_TEST(repairs_of_many_records_are_spread)
{
    struct core_compact *record = record_of(f, true);
    struct core_node_change nodes[4];
    uint64_t first_us;
    uint64_t other_us;

    change_nodes(f, nodes, NODE_READY);
    nodes[0].life_us = f->now_us + 1;
    first_us = core_compact_repair_at(record, &f->config, nodes, f->now_us);
    memset(record->token.bytes, 0x5a, sizeof(record->token.bytes));
    other_us = core_compact_repair_at(record, &f->config, nodes, f->now_us);
    assert_int_not_equal(first_us, other_us);
    assert_int_not_equal(core_compact_repair_at(record, &f->config, nodes, f->now_us + 1), other_us + 1);
    free(record);
}
