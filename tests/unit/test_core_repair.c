/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_repair.c - a node that comes back with another life is given the key again before the renewal */

#include <stdlib.h>
#include <string.h>

#include "core/compact.h"
#include "fixture.h"

#define SPAN_US (300 * MS) /* a tenth of the lease */

static void held(struct fixture *f)
{
    fixture_open_held(f, 3, 2);
    fixture_sleep(f, 1); /* what comes now is later than the grant */
}

/* The first round, as it must be within the span; the key is missing at node 2. */
static void repair(struct fixture *f)
{
    fixture_pass(f, SPAN_US);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_answers(f, OP_REPAIR, "..y");
}

/* The lock becomes a record, from which it goes on; returns when that needs a repair. */
static uint64_t repair_at(struct fixture *f)
{
    struct core_node_change nodes[CORE_NODES_MAX];
    struct core_compact *record = malloc(core_compact_size(&f->config));
    uint64_t at_us;

    assert_non_null(record);
    assert_true(core_compact(f->lock, f->now_us, record));
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        nodes[i] = (struct core_node_change){.index = i,
                                             .state = f->ready[i] ? NODE_READY : NODE_DOWN,
                                             .generation = f->generations[i],
                                             .srtt_us = f->srtt_us,
                                             .life_us = f->life_us[i],
                                             .connected_us = f->connected_us[i]};
    }
    at_us = core_compact_repair_at(record, &f->config, nodes, f->now_us);
    memset(f->lock, 0xee, core_size(f->config.n_nodes));
    core_expand(f->lock, &f->config, record, nodes, f->now_us);
    free(record);
    return at_us;
}

CORE_TEST(a_new_life_is_repaired_and_confirmed_before_the_renewal)
{
    static const enum node_state states[] = {NODE_READY, NODE_QUARANTINED};

    for (size_t i = 0; i < LENGTH(states); i++) {
        held(f);
        fixture_revive(f, 2, states[i]);
        fixture_expect_pending(f, OP_EXTEND, "000"); /* not all locks at once */
        repair(f);
        assert_int_equal(core_counted(f->lock), 2);
        fixture_pass(f, SPAN_US);
        fixture_answers(f, OP_EXTEND, "yyy");
        assert_int_equal(core_counted(f->lock), 3);
        assert_true(core_is_whole(f->lock));
        fixture_pass(f, 600 * MS); /* no more rounds until the renewal */
        fixture_expect_pending(f, OP_EXTEND, "000");
    }
}

CORE_TEST(three_restarts_in_a_row_lose_nothing)
{
    static const char *const answers[] = {"myy", "ymy", "yym"};
    static const char *const repairs[] = {"y..", ".y.", "..y"};

    held(f);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_revive(f, i, NODE_QUARANTINED);
        fixture_pass(f, SPAN_US);
        fixture_answers(f, OP_EXTEND, answers[i]);
        fixture_answers(f, OP_REPAIR, repairs[i]);
    }
    fixture_pass(f, SPAN_US);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_true(core_notified_held(f->lock));
    assert_true(core_is_whole(f->lock));
}

CORE_TEST(a_node_that_loses_the_key_again_waits_for_the_renewal)
{
    held(f);
    fixture_revive(f, 2, NODE_READY);
    repair(f);
    repair(f); /* what was to be confirmed is missing */
    fixture_pass(f, 500 * MS);
    fixture_expect_pending(f, OP_EXTEND, "000");
    fixture_revive(f, 2, NODE_READY); /* another life is another reason */
    repair(f);
    fixture_pass(f, SPAN_US);
    fixture_expect_pending(f, OP_EXTEND, "111");
}

static void revive_in_vain(struct fixture *f, const struct core_config *config)
{
    fixture_open_config(f, config);
    fixture_grant(f);
    fixture_sleep(f, 1);
    fixture_revive(f, 2, NODE_READY);
    fixture_pass(f, SPAN_US);
    fixture_expect_pending(f, OP_EXTEND, "000");
}

CORE_TEST(where_all_nodes_must_have_the_key_one_that_came_back_is_asked_soon_and_not_repaired)
{
    for (uint32_t n = 1; n <= 3; n += 2) {
        fixture_open_held(f, n, n);
        fixture_sleep(f, 1);
        fixture_revive(f, n - 1, NODE_QUARANTINED);
        assert_in_range(repair_at(f), f->now_us, f->now_us + SPAN_US);
        fixture_pass(f, SPAN_US);
        fixture_answers(f, OP_EXTEND, n == 1 ? "y" : "yyy");
        assert_true(core_notified_held(f->lock));
        fixture_sleep(f, 1);
        fixture_revive(f, n - 1, NODE_QUARANTINED);
        fixture_pass(f, SPAN_US);
        fixture_answers(f, OP_EXTEND, n == 1 ? "m" : "yym");
        fixture_expect_lost(f, CORE_LOSS_GONE);
        fixture_expect_pending(f, OP_REPAIR, n == 1 ? "0" : "000");
    }
}

CORE_TEST(a_repair_that_cannot_help_does_not_begin)
{
    struct core_config config = fixture_config(3, 2);

    /* It would lengthen the lease. */
    config.holder.renew_us = CORE_NEVER;
    revive_in_vain(f, &config);
    /* The connection ended, and the same server is there still. */
    held(f);
    fixture_node_state(f, 2, NODE_CONNECTING);
    fixture_node_state(f, 2, NODE_READY);
    fixture_pass(f, SPAN_US);
    fixture_expect_pending(f, OP_EXTEND, "000");
}

CORE_TEST(a_grant_beside_a_quarantine_is_completed_soon)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, "..q");
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    repair(f);
    fixture_pass(f, SPAN_US);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(core_counted(f->lock), 3);
}

CORE_TEST(a_repair_without_room_waits_behind_renewals)
{
    held(f);
    fixture_revive(f, 2, NODE_READY);
    f->no_repair = true;
    fixture_pass(f, SPAN_US);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_REPAIR);
    fixture_expect_pending(f, OP_EXTEND, "000");
    fixture_begin(f);
    fixture_expect_pending(f, OP_EXTEND, "111");
    fixture_answers(f, OP_EXTEND, "yyy");
    /* One that waits for so long is a renewal. */
    fixture_revive(f, 2, NODE_READY);
    f->no_repair = f->no_round = true;
    fixture_pass(f, 1000 * MS);
    assert_int_equal(core_wants(f->lock), CORE_WANTS_ROUND);
    f->no_round = false;
    fixture_begin(f);
    fixture_expect_pending(f, OP_EXTEND, "111");
}

CORE_TEST(a_look_is_one_round_soon)
{
    held(f);
    fixture_look(f, 0, false);
    fixture_look(f, 0, false);
    fixture_expect_pending(f, OP_EXTEND, "000");
    fixture_pass(f, SPAN_US);
    fixture_expect_pending(f, OP_EXTEND, "111");
    fixture_answers(f, OP_EXTEND, "mmy");
    fixture_expect_lost(f, CORE_LOSS_GONE);
}

CORE_TEST(a_look_comes_at_once_where_the_lock_may_be_lost)
{
    held(f);
    fixture_look(f, 0, false);
    assert_true(core_deadline(f->lock) > f->now_us);
    fixture_look(f, 2, false);
    assert_int_equal(core_deadline(f->lock), f->now_us);
    fixture_pass(f, 0);
    fixture_expect_pending(f, OP_EXTEND, "111");
    fixture_answers(f, OP_EXTEND, "mym");
    fixture_expect_lost(f, CORE_LOSS_GONE);
}

/* Only the connection of the renewal is told of changes. */
CORE_TEST(a_node_that_is_connected_anew_is_asked_to_tell)
{
    uint64_t due_us;

    held(f);
    f->config.told = true;
    due_us = core_deadline(f->lock);
    fixture_reconnect(f, 1); /* nothing is told before the first renewal */
    assert_int_equal(core_deadline(f->lock), due_us);
    fixture_pass(f, due_us - f->now_us);
    fixture_answers(f, OP_EXTEND, "yyy");
    fixture_sleep(f, 1);
    fixture_reconnect(f, 1);
    fixture_expect_pending(f, OP_EXTEND, "000"); /* not all locks at once */
    fixture_pass(f, SPAN_US);
    fixture_expect_pending(f, OP_EXTEND, "111");
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(repair_at(f), CORE_NEVER);
    f->connected_us[2] = f->now_us + 1;
    assert_in_range(repair_at(f), f->now_us, f->now_us + SPAN_US);
    fixture_pass(f, 0);
    fixture_answers(f, OP_EXTEND, "yyy");
    /* A node out of reach is not asked, whenever it was connected. */
    fixture_sleep(f, 2);
    f->connected_us[2] = f->now_us;
    due_us = core_deadline(f->lock);
    fixture_node_state(f, 2, NODE_DOWN);
    assert_int_equal(core_deadline(f->lock), due_us);
    assert_int_equal(repair_at(f), CORE_NEVER);
    f->config.told = false;
    due_us = core_deadline(f->lock);
    fixture_reconnect(f, 0);
    assert_int_equal(core_deadline(f->lock), due_us);
}

/* Each time all nodes tell of changes that were none: the lock lasts, and after a look it waits for the renewal. */
CORE_TEST(looks_are_not_without_end)
{
    held(f);
    for (uint32_t i = 0; i < 10; i++) {
        uint64_t due_us = i == 0 ? f->now_us : core_deadline(f->lock);

        for (uint32_t node = 0; node < 3; node++) fixture_look(f, node, false);
        assert_int_equal(core_deadline(f->lock), due_us);
        fixture_pass(f, due_us - f->now_us);
        fixture_expect_pending(f, OP_EXTEND, "111");
        fixture_answers(f, OP_EXTEND, "yyy");
        assert_true(core_deadline(f->lock) > f->now_us + 900 * MS);
        assert_int_equal(repair_at(f), CORE_NEVER); /* a record, for nothing else is due */
    }
    /* Nothing was told before this renewal. */
    fixture_pass(f, core_deadline(f->lock) - f->now_us);
    fixture_answers(f, OP_EXTEND, "yyy");
    fixture_look(f, 1, false);
    fixture_look(f, 2, false);
    assert_int_equal(core_deadline(f->lock), f->now_us);
}

CORE_TEST(a_look_after_another_is_for_more_nodes)
{
    uint64_t due_us;

    held(f);
    fixture_look(f, 0, false);
    fixture_pass(f, SPAN_US);
    fixture_answers(f, OP_EXTEND, "yyy");
    due_us = core_deadline(f->lock);
    fixture_look(f, 0, false);
    assert_int_equal(core_deadline(f->lock), due_us);
    fixture_look(f, 1, false);
    assert_int_equal(core_deadline(f->lock), f->now_us);
}

/* A server tells of the SET of our acquire and of our repair, too, where it was asked to tell before. */
CORE_TEST(what_a_server_tells_before_it_extends_may_be_ours)
{
    uint64_t due_us;

    held(f);
    due_us = core_deadline(f->lock);
    for (uint32_t node = 0; node < 3; node++) fixture_look(f, node, true);
    assert_int_equal(core_deadline(f->lock), due_us);
    fixture_pass(f, due_us - f->now_us);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_answers(f, OP_REPAIR, "..y");
    fixture_look(f, 2, true);
    fixture_pass(f, SPAN_US);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(repair_at(f), CORE_NEVER); /* it becomes a record, and is extended there as well */
    fixture_look(f, 2, true);
    fixture_look(f, 0, true);
    assert_int_equal(core_deadline(f->lock), f->now_us);
}

/* Two nodes tell of it while the third has not answered the renewal. */
CORE_TEST(what_is_told_during_a_round_is_looked_after)
{
    held(f);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "y..");
    fixture_look(f, 0, false);
    fixture_look(f, 1, false);
    fixture_answers(f, OP_EXTEND, ".y.");
    assert_int_equal(core_deadline(f->lock), f->now_us);
}

CORE_TEST(a_record_needs_the_repair_that_its_lock_needs)
{
    held(f);
    assert_int_equal(repair_at(f), CORE_NEVER);
    fixture_revive(f, 2, NODE_READY);
    assert_in_range(repair_at(f), f->now_us, f->now_us + SPAN_US);
    fixture_pass(f, 0);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_answers(f, OP_REPAIR, "..y");
    assert_in_range(repair_at(f), f->now_us, f->now_us + SPAN_US);
    fixture_pass(f, 0);
    fixture_answers(f, OP_EXTEND, "yym"); /* gone again */
    fixture_answers(f, OP_REPAIR, "..y");
    assert_int_equal(repair_at(f), CORE_NEVER);
    fixture_pass(f, 1000 * MS);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(repair_at(f), CORE_NEVER);
    /* It is down. */
    fixture_node_state(f, 1, NODE_DOWN);
    assert_int_equal(repair_at(f), CORE_NEVER);
}

CORE_TEST(a_node_that_refuses_the_repair_is_left_to_the_renewal)
{
    held(f);
    fixture_revive(f, 2, NODE_READY);
    fixture_pass(f, SPAN_US);
    fixture_answers(f, OP_EXTEND, "yym");
    fixture_answers(f, OP_REPAIR, "..e");
    assert_int_equal(repair_at(f), CORE_NEVER);
    fixture_pass(f, SPAN_US);
    fixture_expect_pending(f, OP_EXTEND, "000");
}

/* The quorum of the round may be older than the node's new life, and another client may have collected votes since. */
CORE_TEST(a_key_missed_on_an_earlier_connection_is_not_repaired)
{
    held(f);
    fixture_revive(f, 2, NODE_QUARANTINED);
    fixture_pass(f, SPAN_US);
    fixture_answers(f, OP_EXTEND, "y.m");
    fixture_expect_pending(f, OP_REPAIR, "000");
    fixture_revive(f, 2, NODE_QUARANTINED);
    fixture_answers(f, OP_EXTEND, ".y.");
    fixture_expect_pending(f, OP_REPAIR, "000");
    fixture_pass(f, SPAN_US);
    fixture_answers(f, OP_EXTEND, "y.m");
    fixture_node_state(f, 2, NODE_READY); /* its quarantine is over, on the same connection */
    fixture_answers(f, OP_EXTEND, ".y.");
    fixture_expect_pending(f, OP_REPAIR, "001");
}
