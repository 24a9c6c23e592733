/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_crowd.c - many who wait for one key: who of them asks when they hear of a release, and who has had
 * it lets others come first
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define HOLDER   77u
#define LISTENER 0 /* the arbiter */
#define SRTT_US  ((uint64_t)500)

/* Somebody waits whom the arbiter told that so many listen; `seed` tells one from the other. */
static struct fixture *open_in_crowd(uint32_t n_nodes, uint32_t quorum, uint32_t crowd, uint8_t seed)
{
    struct fixture *f = fixture_open_waiting(n_nodes, quorum, CORE_NEVER);
    struct core_reply refusal = {.outcome = CORE_OTHER, .holder_id = HOLDER, .ttl_us = -1, .listeners = crowd};

    f->randoms = seed;
    fixture_acquire(f);
    for (uint32_t i = 0; i < n_nodes; i++) fixture_answer_with(f, i, CORE_OP_ACQUIRE, &refusal);
    fixture_answer_releases(f);
    fixture_round_trip(f, SRTT_US);
    assert_int_equal(core_attempt(f->lock), 1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    return f;
}

/* Of `crowd` who hear of a release, how many ask within so long after it. */
static uint32_t ask_within(uint32_t crowd, uint64_t us)
{
    uint32_t asked = 0;

    for (uint32_t i = 0; i < crowd; i++) {
        struct fixture *f = open_in_crowd(3, 2, crowd, (uint8_t)i);

        fixture_notice(f, LISTENER, HOLDER);
        if (us > 0) fixture_pass(f, us);
        asked += core_attempt(f->lock) > 1;
        fixture_close(f);
    }
    return asked;
}

/* The lots of these tests are drawn from the same seeds every time. */
static void of_a_crowd_a_few_ask_at_once(void **state)
{
    (void)state;
    for (uint32_t crowd = 10; crowd <= 250; crowd += 48) {
        uint32_t at_once = ask_within(crowd, 0);
        uint32_t soon = ask_within(crowd, 5 * SRTT_US);

        if (at_once > 7 || soon < 1 || soon > 16) fail_msg("of %u, %u at once, %u soon", crowd, at_once, soon);
    }
    assert_int_equal(ask_within(3, 100 * SRTT_US), 3);
}

static void two_ask_all_nodes_at_once(void **state)
{
    (void)state;
    for (uint32_t crowd = 1; crowd <= 2; crowd++) {
        struct fixture *f = open_in_crowd(3, 2, crowd, 1);

        fixture_notice(f, LISTENER, HOLDER);
        for (uint32_t i = 0; i < 3; i++) assert_int_equal(fixture_asked(f, i, CORE_OP_ACQUIRE), 1);
        fixture_answer(f, 1, CORE_OP_ACQUIRE, CORE_YES);
        fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_YES);
        fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
        fixture_close(f);
    }
}

/* Where one does not vote they would split the rest, and of an even number, or where all are needed, too. */
static void two_ask_the_arbiter_where_votes_could_be_split(void **state)
{
    static const uint32_t n_nodes[] = {3, 4, 3};
    static const uint32_t quorums[] = {2, 3, 3};

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct fixture *f = open_in_crowd(n_nodes[i], quorums[i], 2, 1);

        if (i == 0) fixture_level(f, 2, CORE_NODE_DOWN);
        fixture_notice(f, LISTENER, HOLDER);
        fixture_expect_asked_alone(f, LISTENER);
        fixture_close(f);
    }
}

/* Where the nodes tell nothing of a crowd, everybody asks the arbiter. */
static void a_crowd_unknown_asks_the_arbiter(void **state)
{
    struct fixture *f = open_in_crowd(3, 2, 0, 1);

    (void)state;
    fixture_notice(f, LISTENER, HOLDER);
    fixture_expect_asked_alone(f, LISTENER);
    fixture_close(f);
}

/* Whoever was not drawn asks in any case, no later than if he had heard nothing. */
static void whoever_was_not_drawn_polls(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 50; seed++) {
        struct fixture *f = open_in_crowd(3, 2, UINT32_MAX, (uint8_t)seed);

        fixture_notice(f, LISTENER, HOLDER);
        assert_int_equal(core_attempt(f->lock), 1);
        fixture_pass(f, 100 * MS);
        assert_int_equal(core_attempt(f->lock), 2);
        fixture_close(f);
    }
}

/* Round trips that nobody has measured yet, as of nodes that just came, are no reason to ask all at once; nor
 * is a number that only a broken server can tell a reason to draw for ever. */
static void a_crowd_of_unmeasured_nodes_takes_turns(void **state)
{
    uint32_t asked = 0;

    (void)state;
    for (uint32_t seed = 0; seed < 100; seed++) {
        struct fixture *f = fixture_open_waiting(3, 2, CORE_NEVER);
        struct core_reply refusal = {
            .outcome = CORE_OTHER, .holder_id = HOLDER, .ttl_us = -1, .listeners = 1000};

        if (seed % 10 == 0) refusal.listeners = UINT32_MAX;
        core_init(f->lock, &f->config);
        for (uint32_t i = 0; i < 3; i++) {
            struct core_event event = {.type = CORE_EV_NODE, .now_us = f->now_us, .node = i};
            struct core_update update;

            event.level = CORE_NODE_READY;
            event.generation = f->generations[i];
            core_step(f->lock, &event, &update);
        }
        f->randoms = (uint8_t)seed;
        fixture_acquire(f);
        for (uint32_t i = 0; i < 3; i++) fixture_answer_with(f, i, CORE_OP_ACQUIRE, &refusal);
        fixture_answer_releases(f);
        fixture_notice(f, LISTENER, HOLDER);
        asked += core_attempt(f->lock) > 1;
        fixture_close(f);
    }
    if (asked > 10) fail_msg("%u of 100 asked at once", asked);
}

/* A release that follows soon is a new lot: the old one does not ask in the middle of somebody's hold. */
static void each_release_is_drawn_anew(void **state)
{
    uint32_t asked = 0;

    (void)state;
    for (uint32_t seed = 0; seed < 100; seed++) {
        struct fixture *f = open_in_crowd(3, 2, 100, (uint8_t)seed);

        for (uint64_t i = 0; i < 20 && core_attempt(f->lock) == 1; i++) {
            fixture_notice(f, LISTENER, 1000 + i);
            if (core_attempt(f->lock) == 1) fixture_pass(f, SRTT_US / 2);
        }
        asked += core_attempt(f->lock) > 1;
        fixture_close(f);
    }
    /* 20 releases for two of a hundred each, and half of the two that would have come within the next round
     * trip.
     */
    if (asked < 20 || asked > 70) fail_msg("%u asked", asked);
}

/* Those who wait ask the arbiter as soon as it has told them: it hears first. */
static void the_arbiter_is_told_first(void **state)
{
    struct core_config config = fixture_config(3, 2);
    struct fixture *f;

    (void)state;
    memcpy(config.arbiters, ((const uint8_t[]){2, 0, 1}), 3);
    f = fixture_open(&config);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(f->sent[i].command.tag.node, config.arbiters[i]);
    for (uint32_t i = 0; i < 3; i++) fixture_answer(f, i, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
    fixture_release(f);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(f->sent[3 + i].command.tag.node, config.arbiters[i]);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_crowd_a_few_ask_at_once),
        cmocka_unit_test(two_ask_all_nodes_at_once),
        cmocka_unit_test(two_ask_the_arbiter_where_votes_could_be_split),
        cmocka_unit_test(a_crowd_unknown_asks_the_arbiter),
        cmocka_unit_test(whoever_was_not_drawn_polls),
        cmocka_unit_test(a_crowd_of_unmeasured_nodes_takes_turns),
        cmocka_unit_test(each_release_is_drawn_anew),
        cmocka_unit_test(the_arbiter_is_told_first),
    };

    return cmocka_run_group_tests_name("core: crowds", tests, NULL, NULL);
}
