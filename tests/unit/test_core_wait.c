/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_wait.c - waiting: whom to ask first, and pauses; notices are in test_core_notice.c, bounds and
 * cancelling in test_core_bound.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/validity.h"
#include "scene.h"

#define HOLDER   77u
#define SRTT_US  ((uint64_t)500)
#define GRACE_US (2 * SRTT_US + 1000) /* how long an arbiter may take */
#define POLL_MAX (1000 * MS)

/* The first try meets a holder on all nodes; from now on it is waited for. */
static struct scene *open_behind_holder(uint32_t n, uint32_t quorum, int64_t ttl_us)
{
    struct scene *scene = scene_open_waiting(n, quorum, CORE_NEVER);
    struct core_reply holder = {.outcome = CORE_YES, .holder_id = HOLDER, .ttl_us = ttl_us};

    assert_int_equal(scene_acquire(scene), CORE_OK);
    for (uint32_t i = 0; i < n; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_OTHER);
    for (uint32_t i = 0; i < n; i++) {
        if (scene_asked(scene, i, CORE_OP_PEEK) > 0) scene_answer_with(scene, i, CORE_OP_PEEK, &holder);
    }
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_answer_releases(scene);
    scene_round_trip(scene, SRTT_US);
    return scene;
}

/* It has the keys of all nodes: whoever is asked refuses. */
static void refuse_everywhere(struct scene *scene, uint64_t holder_id)
{
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) {
        if (scene_asked(scene, i, CORE_OP_ACQUIRE) > 0) scene_refuse(scene, i, holder_id, -1);
    }
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_answer_releases(scene);
}

static void the_second_try_asks_the_arbiter_alone(void **state)
{
    struct scene *scene = open_behind_holder(5, 3, 20 * MS);

    (void)state;
    assert_false(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.explain); /* the first is mostly granted */
    scene_pass_to_attempt(scene);
    scene_expect_asked_alone(scene, 0);
    assert_true(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.explain);
    assert_int_equal(core_phase_now(scene->lock), CORE_ASKING);
    scene_close(scene);
}

static void arbiters_are_asked_in_the_shared_order(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene;

    (void)state;
    config.wait_us = CORE_NEVER;
    memcpy(config.arbiters, (const uint8_t[]){2, 0, 1}, 3);
    scene = scene_open(&config);
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_ERROR);
    scene_pass_to_attempt(scene);
    scene_expect_asked_alone(scene, 2);
    scene_close(scene);
}

static void who_cannot_vote_is_no_arbiter(void **state)
{
    static const enum core_node_state states[] = {CORE_NODE_DOWN, CORE_NODE_QUARANTINED, CORE_NODE_CONNECTING};

    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        struct scene *scene = open_behind_holder(3, 2, 20 * MS);

        scene_node_state(scene, 0, states[i]);
        scene_pass_to_attempt(scene);
        scene_expect_asked_alone(scene, 1);
        scene_close(scene);
    }
}

static void without_an_arbiter_nobody_is_waited_for(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_DOWN);
    scene_pass_to_attempt(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 0);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_close(scene);
}

static void its_no_is_the_attempts_end(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);
    uint32_t sent;

    (void)state;
    scene_pass_to_attempt(scene);
    sent = scene->n_sent;
    scene_refuse(scene, 0, HOLDER, 900 * MS);
    /* One request; nothing of ours is anywhere, so nothing is released. */
    assert_int_equal(scene->n_sent, sent);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(core_debts(scene->lock, i), 0);
    assert_true((scene->log & CORE_LOG_ATTEMPT_FAILED) != 0);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void with_its_yes_the_others_are_asked(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);
    uint64_t asked_us;
    uint64_t attempt;

    (void)state;
    scene_pass_to_attempt(scene);
    asked_us = scene->now_us;
    attempt = core_attempt(scene->lock);
    scene_pass(scene, 900);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(core_attempt(scene->lock), attempt);
    for (uint32_t i = 1; i < 3; i++) {
        const struct core_command *command = &scene_latest(scene, i, CORE_OP_ACQUIRE)->command;

        assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
        assert_int_equal(command->tag.attempt, attempt);
        assert_int_equal(command->tag.sent_us, asked_us + 900);
        assert_memory_equal(command->token.bytes, core_token_now(scene->lock)->bytes, CORE_TOKEN_SIZE);
    }
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* The older of two votes bounds it; with three the second oldest. */
    assert_int_equal(core_valid_until(scene->lock), asked_us + 2968 * MS);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(core_valid_until(scene->lock), asked_us + 900 + 2968 * MS);
    scene_close(scene);
}

static void all_of_them_need_the_arbiter_too(void **state)
{
    struct scene *scene = open_behind_holder(3, 3, 20 * MS);
    uint64_t asked_us;

    (void)state;
    scene_pass_to_attempt(scene);
    asked_us = scene->now_us;
    scene_expect_asked_alone(scene, 0);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect_nothing(scene);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_valid_until(scene->lock), asked_us + 2968 * MS);
    scene_close(scene);
}

static void a_silent_arbiter_is_passed_over(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    scene_pass_to_attempt(scene);
    scene_pass(scene, GRACE_US - 1);
    scene_expect_asked_alone(scene, 0);
    scene_pass(scene, 1);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_refuse(scene, 2, HOLDER, 20 * MS);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    /* It still has not answered: another one is asked first. */
    scene_drop(scene);
    scene_pass_to_attempt(scene);
    scene_expect_asked_alone(scene, 1);
    scene_close(scene);
}

static void a_silent_arbiter_counts_when_it_answers(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    scene_pass_to_attempt(scene);
    scene_pass(scene, GRACE_US);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

static void an_answer_makes_it_the_arbiter_again(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    scene_pass_to_attempt(scene);
    scene_pass(scene, GRACE_US);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_refuse(scene, 2, HOLDER, 20 * MS);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_MISSING);
    scene_drop(scene);
    scene_pass_to_attempt(scene);
    scene_expect_asked_alone(scene, 0);
    scene_close(scene);
}

static void a_request_without_an_answer_makes_it_overdue(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_refuse(scene, 2, HOLDER, 20 * MS);
    scene_drop(scene);
    scene_pass_to_attempt(scene);
    scene_expect_asked_alone(scene, 1);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    /* A new connection owes no answer. */
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_node_state(scene, 0, CORE_NODE_READY);
    scene_drop(scene);
    scene_pass_to_attempt(scene);
    scene_expect_asked_alone(scene, 0);
    scene_close(scene);
}

static void when_all_are_overdue_all_are_asked(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_drop(scene);
    scene_pass_to_attempt(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

static void an_arbiter_that_fails_is_no_obstacle(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct scene *scene = open_behind_holder(3, 2, 20 * MS);

        scene_pass_to_attempt(scene);
        if (ends) {
            scene_node_state(scene, 0, CORE_NODE_CONNECTING);
        } else {
            scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_ERROR);
        }
        for (uint32_t i = 1; i < 3; i++) {
            assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
            scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_YES);
        }
        scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
        scene_close(scene);
    }
}

/* One of three does not answer, another has somebody else's key: with that, Q nodes have voted, and whoever
 * holds on to his vote until the node timeout is in everybody's way. */
static void who_does_not_answer_is_not_waited_for_where_somebody_is(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    scene_pass_to_attempt(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_round_trip(scene, SRTT_US);
    scene_refuse(scene, 1, 88, 900 * MS);
    scene_pass(scene, GRACE_US - 1);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0); /* a round trip or two are granted */
    scene_pass(scene, 1);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_RELEASE), 1);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_close(scene);
}

static void who_did_not_answer_before_is_not_waited_for_at_all(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    for (uint32_t i = 0; i < 2; i++) scene_refuse(scene, i, HOLDER, 20 * MS);
    scene_drop(scene);
    scene_pass_to_attempt(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_ACQUIRE), 1);
    scene_refuse(scene, 1, 88, 900 * MS);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    scene_close(scene);
}

/* Too few have voted, or nobody is in the way: then a slow node is what it depends on. */
static void who_does_not_answer_is_waited_for_where_nobody_is(void **state)
{
    (void)state;
    for (int met = 0; met < 2; met++) {
        uint32_t n = met ? 5 : 3;
        struct scene *scene = scene_open_waiting(n, n / 2 + 1, CORE_NEVER);

        scene_acquire(scene);
        scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
        if (met) scene_refuse(scene, 1, HOLDER, -1);
        scene_pass(scene, 90 * MS);
        assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
        if (!met) {
            scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
            scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
        }
        scene_close(scene);
    }
}

/* Nor for one that is still connecting. */
static void who_connects_is_not_waited_for_where_somebody_is(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, HOLDER, 900 * MS);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
    scene_pass(scene, GRACE_US);
    scene_expect_nothing(scene);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    scene_close(scene);
}

/* Who tries once cannot come again: a vote that is late is waited for as long as any. */
static void one_try_waits_for_the_late(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 0);

    (void)state;
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, HOLDER, 900 * MS);
    scene_pass(scene, GRACE_US);
    scene_expect_nothing(scene);
    scene_node_state(scene, 2, CORE_NODE_READY);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

/* Load makes round trips longer: whoever counted in those of a quiet time would pass over an arbiter that
 * answers, and come back too soon after split votes. */
static void patience_grows_with_round_trips(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        scene_pass_to_attempt(scene);
        while (scene_asked(scene, 1, CORE_OP_ACQUIRE) == 0 &&
               scene->now_us < scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.tag.sent_us + 10 * MS) {
            scene_pass(scene, 100);
        }
        if (scene_asked(scene, 1, CORE_OP_ACQUIRE) == 0) break;
        scene_pass(scene,
                   scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.tag.sent_us + 10 * MS - scene->now_us);
        for (uint32_t node = 0; node < 3; node++) scene_refuse(scene, node, HOLDER, 20 * MS);
        scene_answer_releases(scene);
    }
    /* An arbiter that takes 10 ms is waited for. */
    scene_expect_asked_alone(scene, 0);
    scene_refuse(scene, 0, HOLDER, 20 * MS);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_close(scene);
}

/* Nor is anybody asked who comes meanwhile: that is what the arbiter's answer decides. */
static void who_becomes_ready_waits_for_the_arbiter_too(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_pass_to_attempt(scene);
    scene_node_state(scene, 2, CORE_NODE_READY);
    scene_expect_asked_alone(scene, 0);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    for (uint32_t i = 1; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

static void a_forgotten_script_is_sent_to_the_arbiter_whole(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    scene_pass_to_attempt(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_NOSCRIPT);
    scene_expect_asked_alone(scene, 0);
    assert_true(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.use_eval);
    assert_true(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.explain);
    scene_refuse(scene, 0, HOLDER, 20 * MS);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    assert_int_equal(core_debts(scene->lock, 0), 0);
    scene_close(scene);
}

/* Expiry sends no notice: who waits comes when the arbiter's key ends, and no poll has to find that out. */
static void the_end_of_a_lease_is_waited_for(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);
    uint64_t waited_us;

    (void)state;
    scene_pass_to_attempt(scene);
    scene_refuse(scene, 0, HOLDER, 30 * MS);
    waited_us = scene_pass_to_attempt(scene);
    assert_in_range(waited_us, 30 * MS, 31 * MS + 4 * SRTT_US);
    scene_close(scene);
}

/* The Qth smallest remaining lease: then a quorum is free. What was ours is free at once. */
static void a_quorums_end_is_waited_for(void **state)
{
    struct scene *scene = scene_open_waiting(5, 3, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 4, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 0, HOLDER, 40 * MS);
    scene_refuse(scene, 1, HOLDER, 10 * MS);
    scene_refuse(scene, 2, HOLDER, 25 * MS);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    assert_in_range(scene_pass_to_attempt(scene), 25 * MS, 26 * MS + 4 * SRTT_US);
    scene_close(scene);
}

/* All of them: the last one's. */
static void the_end_of_all_leases_is_waited_for(void **state)
{
    struct scene *scene = scene_open_waiting(3, 3, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    scene_refuse(scene, 0, HOLDER, 10 * MS);
    scene_refuse(scene, 1, HOLDER, 40 * MS);
    scene_refuse(scene, 2, HOLDER, 25 * MS);
    assert_in_range(scene_pass_to_attempt(scene), 40 * MS, 41 * MS + 4 * SRTT_US);
    scene_close(scene);
}

/* Where too few could vote, whoever comes back is what was waited for; a holder does not go for it. */
static void a_node_that_comes_back_ends_an_outage(void **state)
{
    (void)state;
    for (int outage = 0; outage < 2; outage++) {
        struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

        scene_node_state(scene, 2, CORE_NODE_DOWN);
        if (outage) scene_node_state(scene, 1, CORE_NODE_DOWN);
        scene_acquire(scene);
        scene_refuse(scene, 0, HOLDER, -1);
        if (!outage) scene_refuse(scene, 1, HOLDER, -1);
        assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
        scene_node_state(scene, 2, CORE_NODE_READY);
        scene_pass(scene, 4 * SRTT_US);
        assert_int_equal(core_attempt(scene->lock), outage ? 2 : 1);
        scene_close(scene);
    }
}

static void a_holder_is_polled_less_and_less(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, -1);
    uint64_t longest_us = 0;

    (void)state;
    for (uint32_t i = 0; i < 12; i++) {
        uint64_t waited_us = scene_pass_to_attempt(scene);

        assert_in_range(waited_us, i == 0 ? 50 * MS : i < 4 ? 100 * MS : 500 * MS, POLL_MAX);
        if (waited_us > longest_us) longest_us = waited_us;
        scene_expect_asked_alone(scene, 0);
        refuse_everywhere(scene, HOLDER);
    }
    assert_in_range(longest_us, 500 * MS, POLL_MAX);
    scene_close(scene);
}

/* Peers hand over without a word: who was there a moment ago may be gone in a moment, too. */
static void another_holder_is_polled_from_the_beginning(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, -1);

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        scene_pass_to_attempt(scene);
        refuse_everywhere(scene, HOLDER);
    }
    scene_pass_to_attempt(scene);
    refuse_everywhere(scene, HOLDER + 1);
    assert_in_range(scene_pass_to_attempt(scene), 50 * MS, 100 * MS);
    scene_close(scene);
}

/* Each node is somebody else's, every time: nobody holds it. The pauses are round trips, not polls, and grow.
 */
static void split_votes_are_tried_again_soon(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
    uint64_t longest_us = 0;

    (void)state;
    scene_acquire(scene);
    for (uint32_t round = 0; round < 40; round++) {
        uint64_t bound_us = (2 * SRTT_US) << (round < 5 ? round : 5);
        uint64_t waited_us;

        scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES); /* the arbiter's */
        scene_refuse(scene, 1, 2000 + round, 900 * MS);
        scene_refuse(scene, 2, 3000 + round, 900 * MS);
        assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
        scene_answer_releases(scene);
        waited_us = scene_pass_to_attempt(scene);
        assert_in_range(waited_us, 0, bound_us);
        if (waited_us > longest_us) longest_us = waited_us;
    }
    assert_in_range(longest_us, 8 * SRTT_US, 64 * SRTT_US);
    scene_close(scene);
}

static void whom_a_node_names_twice_is_a_holder(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    scene_refuse(scene, 1, 2, 900 * MS);
    scene_refuse(scene, 2, 3, 900 * MS);
    scene_drop(scene);
    assert_in_range(scene_pass_to_attempt(scene), 0, 2 * SRTT_US);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, 2, 900 * MS);
    scene_refuse(scene, 2, 5, 900 * MS);
    assert_in_range(scene_pass_to_attempt(scene), 50 * MS, 100 * MS);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_try_asks_the_arbiter_alone),
        cmocka_unit_test(arbiters_are_asked_in_the_shared_order),
        cmocka_unit_test(who_cannot_vote_is_no_arbiter),
        cmocka_unit_test(without_an_arbiter_nobody_is_waited_for),
        cmocka_unit_test(its_no_is_the_attempts_end),
        cmocka_unit_test(with_its_yes_the_others_are_asked),
        cmocka_unit_test(all_of_them_need_the_arbiter_too),
        cmocka_unit_test(a_silent_arbiter_is_passed_over),
        cmocka_unit_test(a_silent_arbiter_counts_when_it_answers),
        cmocka_unit_test(an_answer_makes_it_the_arbiter_again),
        cmocka_unit_test(a_request_without_an_answer_makes_it_overdue),
        cmocka_unit_test(when_all_are_overdue_all_are_asked),
        cmocka_unit_test(an_arbiter_that_fails_is_no_obstacle),
        cmocka_unit_test(who_does_not_answer_is_not_waited_for_where_somebody_is),
        cmocka_unit_test(who_did_not_answer_before_is_not_waited_for_at_all),
        cmocka_unit_test(who_does_not_answer_is_waited_for_where_nobody_is),
        cmocka_unit_test(who_connects_is_not_waited_for_where_somebody_is),
        cmocka_unit_test(one_try_waits_for_the_late),
        cmocka_unit_test(patience_grows_with_round_trips),
        cmocka_unit_test(who_becomes_ready_waits_for_the_arbiter_too),
        cmocka_unit_test(a_forgotten_script_is_sent_to_the_arbiter_whole),
        cmocka_unit_test(the_end_of_a_lease_is_waited_for),
        cmocka_unit_test(a_quorums_end_is_waited_for),
        cmocka_unit_test(the_end_of_all_leases_is_waited_for),
        cmocka_unit_test(a_node_that_comes_back_ends_an_outage),
        cmocka_unit_test(a_holder_is_polled_less_and_less),
        cmocka_unit_test(another_holder_is_polled_from_the_beginning),
        cmocka_unit_test(split_votes_are_tried_again_soon),
        cmocka_unit_test(whom_a_node_names_twice_is_a_holder),
    };

    return cmocka_run_group_tests_name("core: waiting", tests, NULL, NULL);
}
