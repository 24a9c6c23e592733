/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_slots.c - the decisions of slots.c as tables: what three nodes report of four slots in, which slot out
 *
 * The quorum is two, a report is news for 200 ms, and the acquire began at BEGUN_US.
 */
#include "core/slots.h"
#include "core/state.h"
#include "fixture.h"

#define BEGUN_US (FIXTURE_BEGIN_US + 300 * MS)
#define NOW_US   (FIXTURE_BEGIN_US + 400 * MS)
#define ALL      0xfu

/* A lock that asks for permits; a fourth node stands behind the three, and must never be looked at. */
static void open_permits(struct fixture *f)
{
    struct core_config config = fixture_config(4, 3);

    config.permits = 4;
    config.holder.wait_us = 10000 * MS;
    fixture_open_config(f, &config);
    f->config.n_nodes = 3;
    f->config.quorum = 2;
    assert_int_equal(fixture_acquire(f), CORE_OK);
    f->lock->acquire.begun_us = BEGUN_US;
    f->slots->nodes[3] = (struct core_slots_node){NOW_US, 0, NOW_US};
}

static void reports(struct fixture *f, uint32_t node, uint64_t at_us, uint64_t free)
{
    f->slots->nodes[node] = (struct core_slots_node){at_us, free, CORE_NEVER};
}

CORE_TEST(a_slot_that_is_held_here_is_free_at_no_node)
{
    open_permits(f);
    for (uint32_t i = 0; i < 3; i++) reports(f, i, NOW_US, ALL);
    f->slots->last = CORE_SLOT_NONE;
    core_slots_hold(f->slots, 2, true);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(f->slots->nodes[i].free, ALL & ~4u);
    assert_int_equal(f->slots->last, CORE_SLOT_NONE);
    core_slots_hold(f->slots, 2, false);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(f->slots->nodes[i].free, ALL);
    assert_int_equal(f->slots->last, 2);
}

CORE_TEST(a_refusal_reports_all_slots)
{
    struct core_reply reply = {.tag = {.node = 1}, .free = 0xffu, .first_us = 5000};

    open_permits(f);
    slots_on_refusal(f->slots, &reply, NOW_US);
    assert_int_equal(f->slots->nodes[1].at_us, NOW_US);
    assert_int_equal(f->slots->nodes[1].free, ALL);
    assert_int_equal(f->slots->nodes[1].first_us, NOW_US + 5000);
    reply.first_us = -1;
    slots_on_refusal(f->slots, &reply, NOW_US);
    assert_int_equal(f->slots->nodes[1].first_us, CORE_NEVER);
}

CORE_TEST(a_slot_is_free_by_news_and_by_nodes_that_say_nothing)
{
    static const struct {
        uint64_t at_us[3], free[3];
        bool known;
    } rows[] = {
        {{NOW_US, NOW_US, NOW_US}, {1, 1, 0}, true},
        {{NOW_US, NOW_US, NOW_US}, {1, 0, 0}, false},
        {{0, 0, 0}, {1, 1, 1}, false},
        {{NOW_US, 0, NOW_US}, {1, 0, 0}, true},                 /* the second never reported */
        {{NOW_US, NOW_US - 200 * MS, NOW_US}, {1, 0, 0}, true}, /* its report is old */
        {{NOW_US, BEGUN_US - 1, NOW_US}, {1, 0, 0}, true},      /* it is from before the acquire */
        {{NOW_US, BEGUN_US, NOW_US}, {1, 0, 0}, false},
        {{NOW_US - 200 * MS, NOW_US - 200 * MS, NOW_US}, {1, 1, 0}, false},
    };

    open_permits(f);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        for (uint32_t k = 0; k < 3; k++) reports(f, k, rows[i].at_us[k], rows[i].free[k]);
        assert_int_equal(slots_know_free(f->slots, f->lock, NOW_US), rows[i].known);
    }
    /* A node that is not there says nothing for a slot. */
    f->lock->nodes[1].state = NODE_DOWN;
    reports(f, 0, NOW_US, 1);
    reports(f, 1, 0, 0);
    reports(f, 2, NOW_US, 0);
    assert_false(slots_know_free(f->slots, f->lock, NOW_US));
}

/* On a young machine the clock shows less than two node timeouts. */
CORE_TEST(a_report_that_never_came_is_no_news_on_a_young_clock)
{
    open_permits(f);
    f->lock->acquire.begun_us = 0;
    for (uint32_t i = 0; i < 3; i++) reports(f, i, i == 0 ? 500 : 0, 1);
    assert_true(slots_know_free(f->slots, f->lock, 1000));
    reports(f, 0, 500, 0);
    assert_false(slots_know_free(f->slots, f->lock, 1000));
    /* A report of the acquire, but an old one: the node says nothing. */
    f->lock->acquire.begun_us = 1000;
    reports(f, 0, NOW_US, 1);
    reports(f, 1, NOW_US - 200 * MS, 0);
    reports(f, 2, NOW_US, 0);
    assert_true(slots_know_free(f->slots, f->lock, NOW_US));
}

static struct step step_of(struct fixture *f)
{
    return (struct step){.now_us = NOW_US, .slots = f->slots, .update = &f->update};
}

/* The attempt for slot 1 failed. */
static void attempt_failed(struct fixture *f)
{
    f->lock->attempt.stage = ATTEMPT_FAILED;
    f->lock->id.slot = 1;
    f->lock->wait.splits = 5;
    f->slots->passed = 0;
    f->slots->each[1] = (struct core_slot){0};
    for (uint32_t i = 0; i < 3; i++) {
        f->lock->nodes[i].vote = CORE_VOTE_FAILED;
        f->lock->nodes[i].asked.holder.id = 99;
        f->lock->nodes[i].asked.holder.ttl_us = 77000;
        reports(f, i, 0, 0);
    }
}

static void refuses(struct fixture *f, uint32_t node, uint64_t holder, int64_t ttl_us)
{
    f->lock->nodes[node].vote = CORE_VOTE_OTHER;
    f->lock->nodes[node].asked.holder.id = holder;
    f->lock->nodes[node].asked.holder.ttl_us = ttl_us;
}

CORE_TEST(a_slot_of_a_holder_is_passed_over_until_its_lease_ends)
{
    struct step step;

    open_permits(f);
    step = step_of(f);
    attempt_failed(f);
    refuses(f, 1, HOLDER, 2000);
    refuses(f, 2, HOLDER, 3000);
    slots_judge(f->lock, &step, 0, NOW_US + 100);
    assert_int_equal(f->slots->passed, 2);
    assert_int_equal(f->slots->each[1].since_us, NOW_US);
    assert_int_equal(f->slots->each[1].until_us, NOW_US + 3000);
    assert_int_equal(f->slots->each[1].holder_id, HOLDER);
    assert_int_equal(f->lock->wait.splits, 0);
    /* The first of two holders is remembered; a key without an expiry counts for a lease. */
    attempt_failed(f);
    refuses(f, 0, HOLDER + 1, -1);
    refuses(f, 1, HOLDER, 2000);
    refuses(f, 2, HOLDER, 2000);
    slots_judge(f->lock, &step, 0, NOW_US + 100);
    assert_int_equal(f->slots->each[1].holder_id, HOLDER + 1);
    assert_int_equal(f->slots->each[1].until_us, NOW_US + f->lock->lease_us);
    /* Nobody refused. */
    attempt_failed(f);
    f->slots->each[1].holder_id = HOLDER;
    slots_judge(f->lock, &step, 0, NOW_US + 100);
    assert_int_equal(f->slots->each[1].holder_id, 0);
    assert_int_equal(f->slots->each[1].until_us, NOW_US);
}

CORE_TEST(a_slot_of_contenders_is_passed_over_for_their_pause)
{
    struct step step;

    open_permits(f);
    step = step_of(f);
    attempt_failed(f);
    refuses(f, 1, HOLDER, 2000);
    slots_judge(f->lock, &step, 0, NOW_US + 100);
    assert_int_equal(f->slots->passed, 2);
    assert_int_equal(f->slots->each[1].until_us, NOW_US + 100);
    assert_int_equal(f->lock->wait.splits, 5);
}

CORE_TEST(a_slot_that_reports_show_as_taken_needs_no_passing_over)
{
    struct step step;

    open_permits(f);
    step = step_of(f);
    for (uint32_t taken = 0; taken < 2; taken++) {
        attempt_failed(f);
        refuses(f, 1, HOLDER, 2000);
        for (uint32_t i = 0; i < 3; i++) reports(f, i, NOW_US, taken != 0 ? ALL & ~2u : ALL);
        slots_judge(f->lock, &step, 0, NOW_US + 100);
        assert_int_equal(f->slots->passed, taken != 0 ? 0 : 2);
    }
    /* But for the one that the arbiter gave. */
    f->lock->nodes[0].vote = CORE_VOTE_YES;
    slots_judge(f->lock, &step, 1, NOW_US + 100);
    assert_int_equal(f->slots->passed, 2);
    /* Its arbiter did not answer in time, and may complete a quorum. */
    for (uint32_t yes = 0; yes < 2; yes++) {
        attempt_failed(f);
        f->lock->attempt.arbiter_late = true;
        slots_judge(f->lock, &step, yes, NOW_US + 100);
        assert_int_equal(f->slots->passed, yes != 0 ? 0 : 2);
    }
}

CORE_TEST(a_slot_that_is_passed_over_comes_back)
{
    open_permits(f);
    f->slots->passed = 3;
    f->slots->each[0] = (struct core_slot){.since_us = BEGUN_US, .until_us = NOW_US, .holder_id = HOLDER};
    f->slots->each[1] = (struct core_slot){.since_us = BEGUN_US, .until_us = NOW_US + 1, .holder_id = HOLDER + 1};
    for (uint32_t i = 0; i < 3; i++) reports(f, i, BEGUN_US + (i == 0), ALL);
    assert_int_equal(slots_shut(f->slots, f->lock, NOW_US), 2);
    reports(f, 1, BEGUN_US + 1, ALL & ~2u);
    assert_int_equal(slots_shut(f->slots, f->lock, NOW_US), 2);
    slots_on_notice(f->slots, HOLDER);
    assert_int_equal(slots_shut(f->slots, f->lock, NOW_US), 2);
    reports(f, 1, BEGUN_US + 1, ALL);
    assert_int_equal(slots_shut(f->slots, f->lock, NOW_US), 0);
    f->slots->passed = 2;
    for (uint32_t i = 0; i < 3; i++) reports(f, i, BEGUN_US, ALL);
    slots_on_notice(f->slots, HOLDER + 1);
    assert_int_equal(slots_shut(f->slots, f->lock, NOW_US), 0);
    f->slots->passed = 2;
    slots_on_notice(f->slots, 0);
    assert_int_equal(slots_shut(f->slots, f->lock, NOW_US), 0);
}

CORE_TEST(all_are_asked_for_several_slots_or_for_one_that_the_arbiter_lacks)
{
    static const struct {
        uint64_t free[3];
        bool searches, all;
    } rows[] = {
        {{3, 3, 3}, true, true},  {{3, 3, 3}, false, false}, {{1, 1, 1}, true, false},
        {{0, 1, 1}, false, true}, {{0, 0, 0}, true, false},
    };

    open_permits(f);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        for (uint32_t k = 0; k < 3; k++) reports(f, k, NOW_US, rows[i].free[k]);
        f->lock->wait.searches = rows[i].searches;
        assert_int_equal(slots_suit_all(f->slots, f->lock, NOW_US), rows[i].all);
    }
    /* There is no arbiter: none of them has to report it. */
    for (uint32_t k = 0; k < 3; k++) {
        reports(f, k, NOW_US, 1);
        f->lock->nodes[k].doubt.overdue = true;
    }
    assert_false(slots_suit_all(f->slots, f->lock, NOW_US));
}

CORE_TEST(the_slot_that_was_released_last_is_chosen_unless_it_is_taken)
{
    struct step step;

    open_permits(f);
    step = step_of(f);
    for (uint32_t k = 0; k < 3; k++) reports(f, k, NOW_US, 0xeu);
    f->slots->last = 2;
    assert_int_equal(slots_choose(f->lock, &step, true), 2);
    assert_int_equal(f->slots->last, CORE_SLOT_NONE);
    for (int i = 0; i < 50; i++) {
        f->slots->last = 2;
        f->slots->ours = 4;
        assert_int_not_equal(slots_choose(f->lock, &step, true), 2);
        f->slots->last = 0; /* it is taken */
        assert_int_not_equal(slots_choose(f->lock, &step, true), 0);
    }
}

CORE_TEST(the_arbiter_is_asked_for_a_slot_that_it_reports)
{
    struct step step;

    open_permits(f);
    step = step_of(f);
    reports(f, 0, NOW_US, 1);
    for (uint32_t k = 1; k < 3; k++) reports(f, k, NOW_US, ALL);
    for (int i = 0; i < 50; i++) assert_int_equal(slots_choose(f->lock, &step, false), 0);
    /* Where none is free, the first attempt draws; later ones stay with theirs, unless all nodes are asked. */
    for (uint32_t k = 0; k < 3; k++) reports(f, k, NOW_US, 0);
    f->lock->id.slot = 3;
    f->lock->acquire.attempts = 2;
    for (int i = 0; i < 50; i++) assert_int_equal(slots_choose(f->lock, &step, false), 3);
    for (uint32_t all = 0; all < 2; all++) {
        uint32_t seen = 0;

        f->lock->acquire.attempts = all != 0 ? 2 : 1;
        for (int i = 0; i < 200; i++) seen |= 1u << slots_choose(f->lock, &step, all != 0);
        assert_int_equal(seen, ALL);
        f->slots->passed = 1;
        f->slots->each[0].until_us = NOW_US + 1;
        for (int i = 0; i < 50; i++) assert_int_not_equal(slots_choose(f->lock, &step, all != 0), 0);
        f->slots->passed = 0;
    }
}

CORE_TEST(the_first_lease_that_ends_is_waited_for)
{
    open_permits(f);
    for (uint32_t k = 0; k < 3; k++) {
        f->slots->nodes[k].first_us = NOW_US + 100 + k;
        f->slots->each[k].until_us = NOW_US + 50 + k;
        f->lock->nodes[k].vote = CORE_VOTE_FAILED;
    }
    f->slots->passed = 0;
    assert_int_equal(slots_free_us(f->slots, f->lock), CORE_NEVER);
    f->lock->nodes[1].vote = f->lock->nodes[2].vote = CORE_VOTE_OTHER;
    assert_int_equal(slots_free_us(f->slots, f->lock), NOW_US + 101);
    f->slots->passed = 6;
    assert_int_equal(slots_free_us(f->slots, f->lock), NOW_US + 51);
}
