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

#include "scene.h"

#define HOLDER   77u
#define LISTENER 0 /* the arbiter */
#define SRTT_US  ((uint64_t)500)

/* Somebody waits whom the arbiter told that so many listen; `seed` tells one from the other. */
static struct scene *open_in_crowd(uint32_t n_nodes, uint32_t quorum, uint32_t waiters, uint8_t seed)
{
    struct scene *scene = scene_open_waiting(n_nodes, quorum, CORE_NEVER);
    struct core_reply refusal = {
        .outcome = CORE_OTHER, .holder_id = HOLDER, .ttl_us = -1, .listeners = waiters};

    scene->randoms = seed;
    scene_acquire(scene);
    for (uint32_t i = 0; i < n_nodes; i++) scene_answer_with(scene, i, CORE_OP_ACQUIRE, &refusal);
    scene_answer_releases(scene);
    scene_round_trip(scene, SRTT_US);
    assert_int_equal(core_attempt(scene->lock), 1);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    return scene;
}

/* Of `waiters` who hear of a release, how many ask within so long after it. */
static uint32_t ask_within(uint32_t waiters, uint64_t us)
{
    uint32_t asked = 0;

    for (uint32_t i = 0; i < waiters; i++) {
        struct scene *scene = open_in_crowd(3, 2, waiters, (uint8_t)i);

        scene_notice(scene, LISTENER, HOLDER);
        if (us > 0) scene_pass(scene, us);
        asked += core_attempt(scene->lock) > 1;
        scene_close(scene);
    }
    return asked;
}

/* The lots of these scenes are drawn from the same seeds every time. */
static void of_a_crowd_a_few_ask_at_once(void **state)
{
    (void)state;
    for (uint32_t waiters = 10; waiters <= 250; waiters += 48) {
        uint32_t at_once = ask_within(waiters, 0);
        uint32_t soon = ask_within(waiters, 5 * SRTT_US);

        if (at_once > 7 || soon < 1 || soon > 16)
            fail_msg("of %u, %u at once, %u soon", waiters, at_once, soon);
    }
    assert_int_equal(ask_within(3, 100 * SRTT_US), 3);
}

static void two_ask_all_nodes_at_once(void **state)
{
    (void)state;
    for (uint32_t waiters = 1; waiters <= 2; waiters++) {
        struct scene *scene = open_in_crowd(3, 2, waiters, 1);

        scene_notice(scene, LISTENER, HOLDER);
        for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
        scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
        scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
        scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
        scene_close(scene);
    }
}

/* Where one does not vote they would split the rest, and of an even number, or where all are needed, too. */
static void two_ask_the_arbiter_where_votes_could_be_split(void **state)
{
    static const uint32_t n_nodes[] = {3, 4, 3};
    static const uint32_t quorums[] = {2, 3, 3};

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct scene *scene = open_in_crowd(n_nodes[i], quorums[i], 2, 1);

        if (i == 0) scene_node_state(scene, 2, CORE_NODE_DOWN);
        scene_notice(scene, LISTENER, HOLDER);
        scene_expect_asked_alone(scene, LISTENER);
        scene_close(scene);
    }
}

/* Where the nodes tell nothing of a waiters, everybody asks the arbiter. */
static void a_crowd_unknown_asks_the_arbiter(void **state)
{
    struct scene *scene = open_in_crowd(3, 2, 0, 1);

    (void)state;
    scene_notice(scene, LISTENER, HOLDER);
    scene_expect_asked_alone(scene, LISTENER);
    scene_close(scene);
}

/* Whoever was not drawn asks in any case, no later than if he had heard nothing. */
static void whoever_was_not_drawn_polls(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 50; seed++) {
        struct scene *scene = open_in_crowd(3, 2, UINT32_MAX, (uint8_t)seed);

        scene_notice(scene, LISTENER, HOLDER);
        assert_int_equal(core_attempt(scene->lock), 1);
        scene_pass(scene, 100 * MS);
        assert_int_equal(core_attempt(scene->lock), 2);
        scene_close(scene);
    }
}

/* Round trips that nobody has measured yet, as of nodes that just came, are no reason to ask all at once; nor
 * is a number that only a broken server can tell a reason to draw for ever. */
static void a_crowd_of_unmeasured_nodes_takes_turns(void **state)
{
    uint32_t asked = 0;

    (void)state;
    for (uint32_t seed = 0; seed < 100; seed++) {
        struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
        struct core_reply refusal = {
            .outcome = CORE_OTHER, .holder_id = HOLDER, .ttl_us = -1, .listeners = 1000};

        if (seed % 10 == 0) refusal.listeners = UINT32_MAX;
        core_init(scene->lock, &scene->config);
        for (uint32_t i = 0; i < 3; i++) {
            struct core_event event = {.type = CORE_EV_NODE, .now_us = scene->now_us, .node = i};
            struct core_update update;

            event.state = CORE_NODE_READY;
            event.generation = scene->generations[i];
            core_step(scene->lock, &event, &update);
        }
        scene->randoms = (uint8_t)seed;
        scene_acquire(scene);
        for (uint32_t i = 0; i < 3; i++) scene_answer_with(scene, i, CORE_OP_ACQUIRE, &refusal);
        scene_answer_releases(scene);
        scene_notice(scene, LISTENER, HOLDER);
        asked += core_attempt(scene->lock) > 1;
        scene_close(scene);
    }
    if (asked > 10) fail_msg("%u of 100 asked at once", asked);
}

/* A release that follows soon is a new lot: the old one does not ask in the middle of somebody's hold. */
static void each_release_is_drawn_anew(void **state)
{
    uint32_t asked = 0;

    (void)state;
    for (uint32_t seed = 0; seed < 100; seed++) {
        struct scene *scene = open_in_crowd(3, 2, 100, (uint8_t)seed);

        for (uint64_t i = 0; i < 20 && core_attempt(scene->lock) == 1; i++) {
            scene_notice(scene, LISTENER, 1000 + i);
            if (core_attempt(scene->lock) == 1) scene_pass(scene, SRTT_US / 2);
        }
        asked += core_attempt(scene->lock) > 1;
        scene_close(scene);
    }
    /* 20 releases for two of a hundred each, and half of the two that would have come within the next round
     * trip.
     */
    if (asked < 20 || asked > 70) fail_msg("%u asked", asked);
}

/* Those who wait ask the arbiter as soon as it has told them: it hears first. */
static void the_arbiter_is_told_first(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene;

    (void)state;
    memcpy(config.arbiters, ((const uint8_t[]){2, 0, 1}), 3);
    scene = scene_open(&config);
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene->sent[i].command.tag.node, config.arbiters[i]);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_release(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene->sent[3 + i].command.tag.node, config.arbiters[i]);
    scene_close(scene);
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
