/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core.c - acquiring: votes, verdicts, retries, cancelling, debts; holding is in test_core_hold.c
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/validity.h"
#include "scene.h"

/* A lock over n nodes that tries once. */
static struct scene *open_scene(uint32_t n, uint32_t quorum)
{
    struct core_config config = scene_config(n, quorum);

    return scene_open(&config);
}

static struct scene *open_waiting(uint32_t n, uint32_t quorum, uint64_t wait_us)
{
    struct core_config config = scene_config(n, quorum);

    config.wait_us = wait_us;
    return scene_open(&config);
}

static void everybody_is_asked_at_once(void **state)
{
    struct scene *scene = open_scene(5, 3);

    (void)state;
    assert_int_equal(scene_acquire(scene), CORE_OK);
    for (uint32_t i = 0; i < 5; i++) {
        const struct core_command *command = &scene_latest(scene, i, CORE_OP_ACQUIRE)->command;

        assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), 1);
        assert_int_equal(command->tag.sent_us, SCENE_BEGIN_US);
        assert_int_equal(command->tag.lease_us, 3000 * MS);
        assert_int_equal(command->timeout_us, 100 * MS);
        assert_memory_equal(command->token.bytes, core_token_now(scene->lock)->bytes, CORE_TOKEN_SIZE);
    }
    scene_close(scene);
}

static void the_qth_yes_grants(void **state)
{
    struct scene *scene = open_scene(5, 3);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 4, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    assert_false(scene->update.dispatch);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    assert_true(scene->update.dispatch);
    assert_false(core_notified_held(scene->lock)); /* not before the owner was told */
    assert_int_equal(core_valid_us(scene->lock, scene->now_us), 0);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_true(core_notified_held(scene->lock));
    assert_int_equal(core_counted(scene->lock), 3);
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + 2968 * MS);
    assert_int_equal(core_lost_at(scene->lock), SCENE_BEGIN_US + (2968 - 64) * MS);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void validity_counts_from_each_nodes_own_send(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_node_state(scene, 1, CORE_NODE_CONNECTING);
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_pass(scene, 50 * MS);
    scene_node_state(scene, 1, CORE_NODE_READY);
    assert_int_equal(scene_asked(scene, 1, CORE_OP_ACQUIRE), 1);
    scene_pass(scene, 10 * MS);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    /* The Qth largest is the older one. */
    assert_int_equal(core_valid_until(scene->lock), SCENE_BEGIN_US + 2968 * MS);
    scene_close(scene);
}

static void a_late_yes_adds_margin(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    scene_pass(scene, 50 * MS);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_node_state(scene, 2, CORE_NODE_READY);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_counted(scene->lock), 2);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(core_counted(scene->lock), 3);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void it_fails_when_a_quorum_is_out_of_reach(void **state)
{
    struct scene *scene = open_scene(5, 3);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_OTHER);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_OTHER);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
    scene_answer(scene, 3, CORE_OP_ACQUIRE, CORE_OTHER);
    /* Released at once and everywhere: also where it was refused, and where nobody has answered yet. */
    for (uint32_t i = 0; i < 5; i++) {
        const struct scene_sent *release = scene_latest(scene, i, CORE_OP_RELEASE);

        assert_int_equal(release->command.timeout_us, 0);
        assert_memory_equal(release->command.token.bytes,
                            scene_latest(scene, i, CORE_OP_ACQUIRE)->command.token.bytes, CORE_TOKEN_SIZE);
    }
    scene_close(scene);
}

static void held_by_another_is_explained(void **state)
{
    struct scene *scene = open_scene(3, 2);
    struct core_reply holder = {.outcome = CORE_YES, .holder_id = 77, .ttl_us = 500 * MS};

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_OTHER);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_OTHER);
    assert_false(scene->update.dispatch); /* first: who is it? */
    scene_answer_with(scene, 0, CORE_OP_PEEK, &holder);
    scene_answer_with(scene, 1, CORE_OP_PEEK, &holder);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    scene_expect_nothing(scene);
    assert_int_equal(core_phase_now(scene->lock), CORE_IDLE);
    scene_close(scene);
}

static void too_few_nodes_is_no_quorum(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_ERROR);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    /* Unknown and yes are released; the error too: it costs nothing to be sure. */
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    assert_int_equal(scene_asked(scene, 1, CORE_OP_RELEASE), 1);
    scene_close(scene);
}

static void what_was_not_sent_is_not_released(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_UNSENT);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_UNSENT);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_RELEASE), 1);
    scene_close(scene);
}

static void lasting_faults_have_their_own_status(void **state)
{
    static const struct {
        enum core_fault fault;
        int status;
    } cases[] = {{CORE_FAULT_AUTH, CORE_NO_AUTH},
                 {CORE_FAULT_FOREIGN, CORE_FOREIGN_KEY},
                 {CORE_FAULT_PROTO, CORE_NO_PROTO},
                 {CORE_FAULT_CONFIG, CORE_INVAL}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene *scene = open_waiting(3, 2, CORE_NEVER);
        struct core_reply reply = {.outcome = CORE_ERROR, .fault = cases[i].fault, .ttl_us = -2};

        scene_acquire(scene);
        scene_answer_with(scene, 0, CORE_OP_ACQUIRE, &reply);
        scene_answer_with(scene, 1, CORE_OP_ACQUIRE, &reply);
        scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
        /* No waiting mends it, so that even endless waiting ends. */
        scene_expect(scene, CORE_NOTIFY_ACQUIRED, cases[i].status);
        scene_close(scene);
    }
}

static void a_grant_that_waited_too_long_is_not_told(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_sleep(scene, (2968 - 64) * MS); /* exactly lost_at */
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    assert_false(core_notified_held(scene->lock));
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_RELEASE), 1);
    scene_close(scene);
}

static void a_grant_just_in_time_is_told(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_sleep(scene, (2968 - 64) * MS - 1);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_pass(scene, 1);
    scene_expect_lost(scene, CORE_LOSS_EXPIRED);
    scene_close(scene);
}

static void min_valid_is_kept(void **state)
{
    struct core_config config = scene_config(3, 2);
    struct scene *scene;

    (void)state;
    config.min_valid_us = 2900 * MS;
    scene = scene_open(&config);
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_sleep(scene, 68 * MS + 1);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    scene_close(scene);
}

static void readiness_waits_for_who_connects(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_node_state(scene, 1, CORE_NODE_CONNECTING);
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_pass(scene, 99 * MS);
    scene_expect_nothing(scene); /* two nodes may still vote */
    scene_pass(scene, 1 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

static void who_is_down_is_not_waited_for(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_acquire(scene);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1); /* it cannot be granted any more */
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

static void a_node_that_goes_down_in_the_try_has_no_vote(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_node_state(scene, 1, CORE_NODE_CONNECTING);
    scene_node_state(scene, 2, CORE_NODE_CONNECTING);
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_expect_nothing(scene);
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

static void a_fresh_token_for_every_attempt(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);
    struct core_token first;

    (void)state;
    scene_acquire(scene);
    first = *core_token_now(scene->lock);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_pass(scene, 2000 * MS);
    assert_true(core_attempt(scene->lock) > 1);
    assert_memory_not_equal(first.bytes, core_token_now(scene->lock)->bytes, CORE_TOKEN_SIZE);
    scene_close(scene);
}

static void votes_of_another_attempt_do_not_count(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);
    struct scene_sent old[3];

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) {
        old[i] = *scene_latest(scene, i, CORE_OP_ACQUIRE);
        scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    }
    while (core_attempt(scene->lock) == 1) scene_pass(scene, MS);
    for (uint32_t i = 0; i < 3; i++) scene_replay(scene, &old[i], CORE_YES);
    assert_int_equal(core_phase_now(scene->lock), CORE_ASKING);
    assert_int_equal(core_counted(scene->lock), 0);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void votes_of_another_connection_do_not_count(void **state)
{
    struct scene *scene = open_scene(3, 3);
    struct scene_sent old;

    (void)state;
    scene_acquire(scene);
    old = *scene_latest(scene, 0, CORE_OP_ACQUIRE);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_node_state(scene, 0, CORE_NODE_CONNECTING);
    scene_replay(scene, &old, CORE_YES);
    scene_node_state(scene, 0, CORE_NODE_READY);
    scene_replay(scene, &old, CORE_YES);
    assert_int_not_equal(core_phase_now(scene->lock), CORE_GRANTED);
    assert_int_equal(scene_told(scene).status, CORE_NOQUORUM);
    scene_close(scene);
}

static void the_wait_is_bounded(void **state)
{
    struct scene *scene = open_waiting(3, 2, 700 * MS);

    (void)state;
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_acquire(scene);
    scene_pass(scene, 699 * MS);
    scene_expect_nothing(scene);
    scene_pass(scene, 1 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

static void a_wait_of_both_kinds_has_timed_out(void **state)
{
    struct scene *scene = open_waiting(3, 2, 5000 * MS);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_OTHER);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_PEEK, CORE_MISSING);
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_DOWN);
    scene_pass(scene, 5000 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    scene_close(scene);
}

static void a_waiter_gets_it_when_it_is_free(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);
    struct core_reply holder = {.outcome = CORE_YES, .holder_id = 77, .ttl_us = 40 * MS};

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_OTHER);
    for (uint32_t i = 0; i < 3; i++) scene_answer_with(scene, i, CORE_OP_PEEK, &holder);
    scene_expect_nothing(scene);
    /* The holder's lease ends before the next poll would come. */
    scene_pass(scene, 60 * MS);
    assert_int_equal(core_attempt(scene->lock), 2);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_rounds(scene->lock), 2);
    scene_close(scene);
}

static void cancel_while_asking(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(scene_cancel(scene), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_RELEASE), 1);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES); /* comes too late */
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
    scene_expect_nothing(scene);
    assert_int_equal(scene_cancel(scene), CORE_STATE);
    scene_close(scene);
}

static void cancel_while_waiting(void **state)
{
    struct scene *scene = open_waiting(3, 2, CORE_NEVER);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    assert_int_equal(core_phase_now(scene->lock), CORE_WAITING);
    assert_int_equal(scene_cancel(scene), CORE_OK);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void cancel_between_verdict_and_callback(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(core_phase_now(scene->lock), CORE_GRANTED);
    assert_int_equal(scene_cancel(scene), CORE_OK);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene_asked(scene, i, CORE_OP_RELEASE), 1);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_CANCELED);
    scene_expect_nothing(scene);
    scene_close(scene);
}

static void busy_while_something_is_in_flight(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    assert_int_equal(scene_release(scene), CORE_STATE);
    assert_int_equal(scene_extend(scene, 0), CORE_STATE);
    assert_int_equal(scene_cancel(scene), CORE_STATE);
    scene_acquire(scene);
    assert_int_equal(scene_acquire(scene), CORE_BUSY);
    assert_int_equal(scene_release(scene), CORE_BUSY);
    assert_int_equal(scene_extend(scene, 0), CORE_BUSY);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(scene_release(scene), CORE_BUSY); /* granted, but not told yet */
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(scene_acquire(scene), CORE_STATE);
    scene_close(scene);
}

static void forgotten_scripts_are_sent_again_while_the_attempt_lives(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_NOSCRIPT);
    assert_true(scene_latest(scene, 0, CORE_OP_ACQUIRE)->command.use_eval);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_OTHER);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_OTHER);
    /* The release is queued: an acquire behind it would stay for a lease. */
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_NOSCRIPT);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_ACQUIRE), 0);
    /* But a release is asked again, whole. */
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_NOSCRIPT);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    assert_true(scene_latest(scene, 0, CORE_OP_RELEASE)->command.use_eval);
    scene_close(scene);
}

static void a_debt_is_paid_on_the_next_connection(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    scene_node_state(scene, 0, CORE_NODE_CONNECTING); /* its answer, and whether it was executed: unknown */
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_OTHER);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_OTHER);
    assert_int_equal(core_debts(scene->lock, 0), 1);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
    scene_drop(scene);
    scene_node_state(scene, 0, CORE_NODE_READY);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 1);
    scene_node_state(scene, 0, CORE_NODE_DOWN); /* and once more */
    scene_drop(scene);
    scene_node_state(scene, 0, CORE_NODE_READY);
    scene_answer(scene, 0, CORE_OP_RELEASE, CORE_MISSING);
    assert_int_equal(core_debts(scene->lock, 0), 0);
    scene_close(scene);
}

static void a_debt_ends_with_the_lease(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_acquire(scene);
    for (uint32_t i = 0; i < 3; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_UNKNOWN);
    scene_told(scene);
    for (uint32_t i = 0; i < 3; i++) scene_node_state(scene, i, CORE_NODE_DOWN);
    scene_pass(scene, 3030 * MS - 1);
    assert_int_equal(core_debts(scene->lock, 0), 1);
    assert_false(core_quiet(scene->lock));
    scene_pass(scene, 1);
    assert_int_equal(core_debts(scene->lock, 0), 0);
    assert_true(core_quiet(scene->lock));
    scene_drop(scene);
    scene_node_state(scene, 0, CORE_NODE_READY);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_RELEASE), 0);
    scene_close(scene);
}

static void who_owes_too_much_is_not_asked(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    for (uint32_t i = 0; i < CORE_DEBTS_MAX; i++) {
        scene_acquire(scene);
        assert_int_equal(scene_asked(scene, 0, CORE_OP_ACQUIRE), i + 1);
        scene_cancel(scene);
        scene_told(scene);
    }
    assert_int_equal(core_debts(scene->lock, 0), CORE_DEBTS_MAX);
    scene_acquire(scene);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_ACQUIRE), CORE_DEBTS_MAX);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

static void a_quarantined_node_has_no_vote(void **state)
{
    struct scene *scene = open_scene(3, 2);

    (void)state;
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_node_state(scene, 0, CORE_NODE_QUARANTINED);
    scene_acquire(scene);
    assert_int_equal(scene_asked(scene, 0, CORE_OP_ACQUIRE), 0);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_answer(scene, 2, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_is_asked_at_once),
        cmocka_unit_test(the_qth_yes_grants),
        cmocka_unit_test(validity_counts_from_each_nodes_own_send),
        cmocka_unit_test(a_late_yes_adds_margin),
        cmocka_unit_test(it_fails_when_a_quorum_is_out_of_reach),
        cmocka_unit_test(held_by_another_is_explained),
        cmocka_unit_test(too_few_nodes_is_no_quorum),
        cmocka_unit_test(what_was_not_sent_is_not_released),
        cmocka_unit_test(lasting_faults_have_their_own_status),
        cmocka_unit_test(a_grant_that_waited_too_long_is_not_told),
        cmocka_unit_test(a_grant_just_in_time_is_told),
        cmocka_unit_test(min_valid_is_kept),
        cmocka_unit_test(readiness_waits_for_who_connects),
        cmocka_unit_test(who_is_down_is_not_waited_for),
        cmocka_unit_test(a_node_that_goes_down_in_the_try_has_no_vote),
        cmocka_unit_test(a_fresh_token_for_every_attempt),
        cmocka_unit_test(votes_of_another_attempt_do_not_count),
        cmocka_unit_test(votes_of_another_connection_do_not_count),
        cmocka_unit_test(the_wait_is_bounded),
        cmocka_unit_test(a_wait_of_both_kinds_has_timed_out),
        cmocka_unit_test(a_waiter_gets_it_when_it_is_free),
        cmocka_unit_test(cancel_while_asking),
        cmocka_unit_test(cancel_while_waiting),
        cmocka_unit_test(cancel_between_verdict_and_callback),
        cmocka_unit_test(busy_while_something_is_in_flight),
        cmocka_unit_test(forgotten_scripts_are_sent_again_while_the_attempt_lives),
        cmocka_unit_test(a_debt_is_paid_on_the_next_connection),
        cmocka_unit_test(a_debt_ends_with_the_lease),
        cmocka_unit_test(who_owes_too_much_is_not_asked),
        cmocka_unit_test(a_quarantined_node_has_no_vote),
    };

    return cmocka_run_group_tests_name("core: acquiring", tests, NULL, NULL);
}
