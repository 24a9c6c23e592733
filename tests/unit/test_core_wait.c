/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_wait.c - waiting: whom to ask first, pauses, bounds, cancelling; notices are in test_core_notice.c
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
#define SRTT_US  500u
#define GRACE_US (2 * SRTT_US + 1000) /* how long an arbiter may take */
#define POLL_MAX (1000 * MS)

static struct scene *open_waiting(uint32_t n, uint32_t quorum, uint64_t wait_us)
{
    struct core_config config = scene_config(n, quorum);

    config.wait_us = wait_us;
    return scene_open(&config);
}

/* The first try meets a holder on all nodes; from now on it is waited for. */
static struct scene *open_behind_holder(uint32_t n, uint32_t quorum, int64_t ttl_us)
{
    struct scene *scene = open_waiting(n, quorum, CORE_NEVER);
    struct core_reply holder = {.outcome = CORE_YES, .holder_id = HOLDER, .ttl_us = ttl_us};

    assert_int_equal(scene_acquire(scene), CORE_OK);
    for (uint32_t i = 0; i < n; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_OTHER);
    for (uint32_t i = 0; i < n; i++) {
        if (scene_asked(scene, i, CORE_OP_PEEK) > 0) scene_answer_with(scene, i, CORE_OP_PEEK, &holder);
    }
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_answer_releases(scene);
    return scene;
}

/* Time goes by until the next attempt begins; returns how much. */
static uint64_t pass_to_attempt(struct scene *scene)
{
    uint64_t attempt = core_attempt(scene->lock);
    uint64_t begun_us = scene->now_us;

    while (core_attempt(scene->lock) == attempt) {
        uint64_t deadline_us = core_deadline(scene->lock);

        assert_int_not_equal(deadline_us, CORE_NEVER);
        scene_pass(scene, deadline_us > scene->now_us ? deadline_us - scene->now_us : 0);
    }
    return scene->now_us - begun_us;
}

static void expect_asked_alone(const struct scene *scene, uint32_t node)
{
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) {
        assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), i == node);
    }
}

static void the_second_try_asks_the_arbiter_alone(void **state)
{
    struct scene *scene = open_behind_holder(5, 3, 20 * MS);

    (void)state;
    assert_false(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.explain); /* the first is mostly granted */
    pass_to_attempt(scene);
    expect_asked_alone(scene, 0);
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
    pass_to_attempt(scene);
    expect_asked_alone(scene, 2);
    scene_close(scene);
}

static void who_cannot_vote_is_no_arbiter(void **state)
{
    static const enum core_level levels[] = {CORE_NODE_DOWN, CORE_NODE_QUARANTINED, CORE_NODE_CONNECTING};

    (void)state;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct scene *scene = open_behind_holder(3, 2, 20 * MS);

        scene_level(scene, 0, levels[i]);
        pass_to_attempt(scene);
        expect_asked_alone(scene, 1);
        scene_close(scene);
    }
}

static void without_an_arbiter_nobody_is_waited_for(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) scene_level(scene, i, CORE_NODE_DOWN);
    pass_to_attempt(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 0);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    scene_close(scene);
}

static void its_no_is_the_attempts_end(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);
    uint32_t sent;

    (void)state;
    pass_to_attempt(scene);
    sent = scene->n_sent;
    scene_refuse(scene, 0, HOLDER, 900 * MS);
    /* One request; nothing of ours is anywhere, so nothing is released. */
    assert_int_equal(scene->n_sent, sent);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(core_debts(scene->lock, i), 0);
    assert_true((scene->notes & CORE_NOTE_ATTEMPT_FAILED) != 0);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void with_its_yes_the_others_are_asked(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);
    uint64_t asked_us;
    uint64_t attempt;

    (void)state;
    pass_to_attempt(scene);
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
    scene_expect(scene, CORE_TELL_ACQUIRED, CORE_OK);
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
    pass_to_attempt(scene);
    asked_us = scene->now_us;
    expect_asked_alone(scene, 0);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect_nothing(scene);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_TELL_ACQUIRED, CORE_OK);
    assert_int_equal(core_valid_until(scene->lock), asked_us + 2968 * MS);
    scene_close(scene);
}

static void a_silent_arbiter_is_passed_over(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    pass_to_attempt(scene);
    scene_pass(scene, GRACE_US - 1);
    expect_asked_alone(scene, 0);
    scene_pass(scene, 1);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_refuse(scene, 2, HOLDER, 20 * MS);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    /* It still has not answered: another one is asked first. */
    scene_drop(scene);
    pass_to_attempt(scene);
    expect_asked_alone(scene, 1);
    scene_close(scene);
}

static void a_silent_arbiter_counts_when_it_answers(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    pass_to_attempt(scene);
    scene_pass(scene, GRACE_US);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_TELL_ACQUIRED, CORE_OK);
    scene_close(scene);
}

static void an_answer_makes_it_the_arbiter_again(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    pass_to_attempt(scene);
    scene_pass(scene, GRACE_US);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_refuse(scene, 2, HOLDER, 20 * MS);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_MISSING);
    scene_drop(scene);
    pass_to_attempt(scene);
    expect_asked_alone(scene, 0);
    scene_close(scene);
}

static void a_request_without_an_answer_makes_it_overdue(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    scene_refuse(scene, 2, HOLDER, 20 * MS);
    scene_drop(scene);
    pass_to_attempt(scene);
    expect_asked_alone(scene, 1);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    /* A new connection owes no answer. */
    scene_level(scene, 0, CORE_NODE_DOWN);
    scene_level(scene, 0, CORE_NODE_READY);
    scene_drop(scene);
    pass_to_attempt(scene);
    expect_asked_alone(scene, 0);
    scene_close(scene);
}

static void when_all_are_overdue_all_are_asked(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_drop(scene);
    pass_to_attempt(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

static void an_arbiter_that_fails_is_no_obstacle(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct scene *scene = open_behind_holder(3, 2, 20 * MS);

        pass_to_attempt(scene);
        if (ends) {
            scene_level(scene, 0, CORE_NODE_CONNECTING);
        } else {
            scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_ERROR);
        }
        for (uint32_t i = 1; i < 3; i++) {
            assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
            scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_YES);
        }
        scene_expect(scene, CORE_TELL_ACQUIRED, CORE_OK);
        scene_close(scene);
    }
}

static void a_forgotten_script_is_sent_to_the_arbiter_whole(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, 20 * MS);

    (void)state;
    pass_to_attempt(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_NOSCRIPT);
    expect_asked_alone(scene, 0);
    assert_true(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.whole_script);
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
    pass_to_attempt(scene);
    scene_refuse(scene, 0, HOLDER, 30 * MS);
    waited_us = pass_to_attempt(scene);
    assert_in_range(waited_us, 30 * MS, 31 * MS + 4 * SRTT_US);
    scene_close(scene);
}

/* The Qth smallest remaining lease: then a quorum is free. What was ours is free at once. */
static void a_quorums_end_is_waited_for(void **state)
{
    struct scene *scene = open_waiting(5, 3, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 4, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 0, HOLDER, 40 * MS);
    scene_refuse(scene, 1, HOLDER, 10 * MS);
    scene_refuse(scene, 2, HOLDER, 25 * MS);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    assert_in_range(pass_to_attempt(scene), 25 * MS, 26 * MS + 4 * SRTT_US);
    scene_close(scene);
}

static void a_holder_is_polled_less_and_less(void **state)
{
    struct scene *scene = open_behind_holder(3, 2, -1);
    uint64_t longest_us = 0;

    (void)state;
    for (uint32_t i = 0; i < 12; i++) {
        uint64_t waited_us = pass_to_attempt(scene);

        assert_in_range(waited_us, i == 0 ? 50 * MS : i < 4 ? 100 * MS : 500 * MS, POLL_MAX);
        if (waited_us > longest_us) longest_us = waited_us;
        expect_asked_alone(scene, 0);
        scene_refuse(scene, 0, HOLDER, -1);
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
        pass_to_attempt(scene);
        scene_refuse(scene, 0, HOLDER, -1);
    }
    pass_to_attempt(scene);
    scene_refuse(scene, 0, HOLDER + 1, -1);
    assert_in_range(pass_to_attempt(scene), 50 * MS, 100 * MS);
    scene_close(scene);
}

/* Each node is somebody else's, every time: nobody holds it. The pauses are round trips, not polls, and grow.
 */
static void split_votes_are_tried_again_soon(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);
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
        waited_us = pass_to_attempt(scene);
        assert_in_range(waited_us, 0, bound_us);
        if (waited_us > longest_us) longest_us = waited_us;
    }
    assert_in_range(longest_us, 8 * SRTT_US, 64 * SRTT_US);
    scene_close(scene);
}

static void whom_a_node_names_twice_is_a_holder(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    scene_refuse(scene, 1, 2, 900 * MS);
    scene_refuse(scene, 2, 3, 900 * MS);
    scene_drop(scene);
    assert_in_range(pass_to_attempt(scene), 0, 2 * SRTT_US);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_refuse(scene, 1, 2, 900 * MS);
    scene_refuse(scene, 2, 5, 900 * MS);
    assert_in_range(pass_to_attempt(scene), 50 * MS, 100 * MS);
    scene_close(scene);
}

static void the_wait_bound_comes_while_the_arbiter_is_asked(void **state)
{
    struct scene *scene = open_waiting(3, 2, 30 * MS);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, HOLDER, 28000);
    scene_answer_releases(scene);
    scene_pass(scene, 29 * MS);
    if (core_phase_now(scene->lock) == CORE_WAITING) pass_to_attempt(scene);
    assert_int_equal(core_phase_now(scene->lock), CORE_ASKING);
    expect_asked_alone(scene, 0);
    scene_pass(scene, SCENE_BEGIN_US + 30 * MS - scene->now_us);
    scene_expect(scene, CORE_TELL_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    assert_int_equal(scene_asked(scene, 1, CORE_OP_RELEASE), 0);
    scene_close(scene);
}

/* Contention or outage: the arbiter alone was asked, so the levels say which it is. */
static void outage_is_told_from_contention(void **state)
{
    static const struct {
        bool before, after; /* are there enough nodes then? */
        int status;
    } cases[] = {{true, true, CORE_HELD_BY_OTHER}, {true, false, CORE_TIMEDOUT}, {false, false, CORE_NOQUORUM}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene *scene = open_waiting(3, 2, 3000 * MS);

        for (uint32_t node = 1; node < 3 && !cases[i].before; node++) scene_level(scene, node, CORE_NODE_DOWN);
        scene_acquire(scene);
        for (uint32_t node = 0; node < 3; node++) {
            if (scene_asked(scene, node, CORE_OP_ACQUIRE) > 0) scene_refuse(scene, node, HOLDER, -1);
        }
        for (uint32_t node = 1; node < 3 && !cases[i].after; node++) scene_level(scene, node, CORE_NODE_DOWN);
        pass_to_attempt(scene);
        scene_refuse(scene, 0, HOLDER, -1);
        assert_int_equal(core_wait_verdict(scene->lock), cases[i].status);
        scene_pass(scene, SCENE_BEGIN_US + 3000 * MS - scene->now_us);
        scene_expect(scene, CORE_TELL_ACQUIRED, cases[i].status);
        scene_close(scene);
    }
}

/* A grant that came too late to be told is neither contention nor outage. */
static void too_late_and_then_the_bound_is_a_timeout(void **state)
{
    struct scene *scene = open_waiting(3, 2, 5000 * MS);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_sleep(scene, 4998 * MS);
    scene_expect_nothing(scene);
    while (core_phase_now(scene->lock) == CORE_WAITING &&
           core_deadline(scene->lock) < SCENE_BEGIN_US + 5000 * MS)
        pass_to_attempt(scene);
    scene_pass(scene, SCENE_BEGIN_US + 5000 * MS - scene->now_us);
    scene_expect(scene, CORE_TELL_ACQUIRED, CORE_TIMEDOUT);
    scene_close(scene);
}

static void the_wait_counts_from_when_it_began(void **state)
{
    struct scene *scene = open_waiting(3, 2, 700 * MS);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) scene_level(scene, i, CORE_NODE_DOWN);
    scene_acquire_since(scene, SCENE_BEGIN_US - 300 * MS);
    scene_pass(scene, 399 * MS);
    scene_expect_nothing(scene);
    scene_pass(scene, 1 * MS);
    scene_expect(scene, CORE_TELL_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

/* Each brings a lock that waits for ever into another phase of its acquire. */
static void to_asking_all(struct scene *scene)
{
    scene_acquire(scene);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
}

static void to_doomed(struct scene *scene)
{
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_OTHER);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_OTHER);
}

static void to_waiting(struct scene *scene)
{
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_refuse(scene, i, HOLDER, 20 * MS);
}

static void to_asking_arbiter(struct scene *scene)
{
    to_waiting(scene);
    pass_to_attempt(scene);
}

static void to_asking_rest(struct scene *scene)
{
    to_asking_arbiter(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
}

static void to_silent_arbiter(struct scene *scene)
{
    to_asking_arbiter(scene);
    scene_pass(scene, GRACE_US);
}

static void to_granted(struct scene *scene)
{
    to_asking_rest(scene);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
}

static void to_behind(struct scene *scene)
{
    scene_acquire_behind(scene);
}

static void to_woken(struct scene *scene)
{
    to_behind(scene);
    scene_wake(scene);
}

static void cancel_leaves_nothing_in_any_phase(void **state)
{
    static void (*const scripts[])(struct scene *) = {to_asking_all,  to_doomed,         to_waiting,
                                                      to_asking_rest, to_asking_arbiter, to_silent_arbiter,
                                                      to_granted,     to_behind,         to_woken};

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct scene *scene = open_waiting(3, 2, CORE_NEVER);

        scripts[i](scene);
        assert_int_equal(scene_cancel(scene), CORE_OK);
        scene_expect(scene, CORE_TELL_ACQUIRED, CORE_CANCELED);
        scene_expect_nothing(scene);
        assert_false(core_listens(scene->lock));
        /* Late yeses change nothing: whatever was asked is followed by its release, on every node. */
        for (uint32_t node = 0; node < 3; node++) {
            while (scene_asked(scene, node, CORE_OP_ACQUIRE) > 0) {
                assert_true(core_debts(scene->lock, node) > 0);
                scene_answer(scene, node, CORE_OP_ACQUIRE, CORE_YES);
            }
            while (scene_asked(scene, node, CORE_OP_PEEK) > 0) {
                scene_answer(scene, node, CORE_OP_PEEK, CORE_MISSING);
            }
        }
        scene_answer_releases(scene);
        scene_expect_nothing(scene);
        assert_true(core_quiet(scene->lock));
        assert_int_equal(core_deadline(scene->lock), CORE_NEVER);
        scene_close(scene);
    }
}

static void who_waits_behind_another_asks_nobody(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);

    (void)state;
    assert_int_equal(scene_acquire_behind(scene), CORE_OK);
    assert_int_equal(scene->n_sent, 0);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    assert_true(core_listens(scene->lock));
    /* The other's end may be missed: he is polled, and the refusal names somebody to wait for. */
    assert_in_range(pass_to_attempt(scene), 50 * MS, 100 * MS);
    expect_asked_alone(scene, 0);
    assert_true(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.explain);
    scene_close(scene);
}

static void behind_another_the_bound_is_contention(void **state)
{
    struct scene *scene = open_waiting(3, 2, 40 * MS);

    (void)state;
    scene_acquire_behind(scene);
    scene_pass(scene, 40 * MS);
    scene_expect(scene, CORE_TELL_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_true(core_quiet(scene->lock));
    scene_close(scene);
}

static void who_tries_once_does_not_wait_behind(void **state)
{
    struct scene *scene = open_waiting(3, 2, 0);

    (void)state;
    scene_acquire_behind(scene);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
    scene_close(scene);
}

static void whoever_is_woken_asks_everybody(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire_behind(scene);
    scene_pass(scene, 10 * MS);
    scene_wake(scene);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
        assert_int_equal(scene_latest(scene, i, CORE_OP_ACQUIRE)->command.tag.sent_us,
                         SCENE_BEGIN_US + 10 * MS);
    }
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_TELL_ACQUIRED, CORE_OK);
    scene_close(scene);
}

/* Votes of an attempt that asked one node say nothing of the others: theirs of before are shown. */
static void votes_of_before_are_shown(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);
    enum core_fault fault;

    (void)state;
    scene_acquire(scene);
    scene_answer_with(scene, 2, CORE_OP_ACQUIRE,
                      &(struct core_reply){.outcome = CORE_ERROR, .fault = CORE_FAULT_AUTH, .ttl_us = -2});
    scene_refuse(scene, 0, HOLDER, 20 * MS);
    scene_refuse(scene, 1, HOLDER, 20 * MS);
    pass_to_attempt(scene);
    assert_int_equal(core_vote(scene->lock, 0, NULL), CORE_VOTE_PENDING);
    assert_int_equal(core_vote(scene->lock, 1, NULL), CORE_VOTE_OTHER);
    assert_int_equal(core_vote(scene->lock, 2, &fault), CORE_VOTE_FAILED);
    assert_int_equal(fault, CORE_FAULT_AUTH);
    scene_refuse(scene, 0, HOLDER, 20 * MS);
    assert_int_equal(core_vote(scene->lock, 0, NULL), CORE_VOTE_OTHER);
    assert_int_equal(core_vote(scene->lock, 2, NULL), CORE_VOTE_FAILED);
    /* But never of another acquire. */
    scene_cancel(scene);
    scene_told(scene);
    scene_level(scene, 1, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    assert_int_equal(core_vote(scene->lock, 1, NULL), CORE_VOTE_NONE);
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
        cmocka_unit_test(a_forgotten_script_is_sent_to_the_arbiter_whole),
        cmocka_unit_test(the_end_of_a_lease_is_waited_for),
        cmocka_unit_test(a_quorums_end_is_waited_for),
        cmocka_unit_test(a_holder_is_polled_less_and_less),
        cmocka_unit_test(another_holder_is_polled_from_the_beginning),
        cmocka_unit_test(split_votes_are_tried_again_soon),
        cmocka_unit_test(whom_a_node_names_twice_is_a_holder),
        cmocka_unit_test(the_wait_bound_comes_while_the_arbiter_is_asked),
        cmocka_unit_test(outage_is_told_from_contention),
        cmocka_unit_test(too_late_and_then_the_bound_is_a_timeout),
        cmocka_unit_test(the_wait_counts_from_when_it_began),
        cmocka_unit_test(cancel_leaves_nothing_in_any_phase),
        cmocka_unit_test(who_waits_behind_another_asks_nobody),
        cmocka_unit_test(behind_another_the_bound_is_contention),
        cmocka_unit_test(who_tries_once_does_not_wait_behind),
        cmocka_unit_test(whoever_is_woken_asks_everybody),
        cmocka_unit_test(votes_of_before_are_shown),
    };

    return cmocka_run_group_tests_name("core: waiting", tests, NULL, NULL);
}
