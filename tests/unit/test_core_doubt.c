/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_doubt.c - an arbiter that names a holder whom no quorum confirms, or that fails, keeps nobody from
 * the lock
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define ODD      55u /* the key that is on one node for good */
#define HOLDER   77u
#define ENDLESS  (-1)
#define LIMIT_US (15000 * MS)

/* What stands at each node, for tests that let a lock try again and again. */
struct keys {
    uint64_t of[5]; /* who; 0: nobody */
    int64_t ttl_us;
    enum core_fault fault; /* of node 0: it answers with this error */
};

/* Answers everything that is asked, as servers with these keys do. Says whether the lock was granted. */
static bool answer(struct scene *scene, const struct keys *keys)
{
    uint32_t granted = 0;

    for (uint32_t i = 0; i < scene->config.n_nodes; i++) {
        const struct core_reply failed = {.outcome = CORE_ERROR, .fault = keys->fault, .ttl_us = -2};
        const struct core_reply there = {.outcome = CORE_YES, .holder_id = keys->of[i], .ttl_us = keys->ttl_us};
        bool fails = i == 0 && keys->fault != CORE_FAULT_NONE;

        while (scene_asked(scene, i, CORE_OP_ACQUIRE) > 0) {
            if (fails) {
                scene_answer_with(scene, i, CORE_OP_ACQUIRE, &failed);
            } else if (keys->of[i] == 0) {
                scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_YES);
                granted++;
            } else if (scene_latest(scene, i, CORE_OP_ACQUIRE)->command.explain) {
                scene_refuse(scene, i, keys->of[i], keys->ttl_us);
            } else {
                scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_OTHER);
            }
        }
        while (scene_asked(scene, i, CORE_OP_PEEK) > 0) scene_answer_with(scene, i, CORE_OP_PEEK, &there);
        while (scene_asked(scene, i, CORE_OP_RELEASE) > 0) {
            scene_answer(scene, i, CORE_OP_RELEASE, keys->of[i] == 0 ? CORE_YES : CORE_OTHER);
        }
    }
    return core_phase_now(scene->lock) == CORE_GRANTED;
}

static void answer_all(struct scene *scene, const struct keys *keys)
{
    for (uint32_t before = UINT32_MAX; before != scene->n_sent;) {
        before = scene->n_sent;
        (void)answer(scene, keys);
    }
}

/* Until granted, or the limit; true: granted. */
static bool try_on(struct scene *scene, const struct keys *keys, uint64_t limit_us)
{
    uint64_t until_us = scene->now_us + limit_us;

    for (;;) {
        answer_all(scene, keys);
        if (core_phase_now(scene->lock) == CORE_GRANTED) return true;
        if (scene->now_us >= until_us) return false;
        scene_pass(scene, 1 * MS);
    }
}

static uint32_t asked_so_far(const struct scene *scene, enum core_op op)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < scene->n_sent; i++) n += scene->sent[i].command.tag.op == op;
    return n;
}

/* The lock is held while the wait begins, and then the odd key alone is left. */
static void an_odd_key_starves_nobody(void **state)
{
    static const int64_t ttls_us[] = {ENDLESS, 3600000 * INT64_C(1000), INT64_MAX};

    (void)state;
    for (size_t t = 0; t < sizeof(ttls_us) / sizeof(ttls_us[0]); t++) {
        for (uint32_t n = 3; n <= 5; n += 2) {
            struct scene *scene = scene_open_waiting(n, n / 2 + 1, CORE_NEVER);
            struct keys keys = {.of = {ODD, HOLDER, HOLDER, HOLDER, HOLDER}, .ttl_us = ttls_us[t]};

            scene_acquire(scene);
            assert_false(try_on(scene, &keys, 1000 * MS));
            keys = (struct keys){.of = {ODD}, .ttl_us = ttls_us[t]};
            /* No notice: the holder is a peer. A poll finds it. */
            assert_true(try_on(scene, &keys, 2000 * MS));
            scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
            assert_in_range(core_counted(scene->lock), n / 2 + 1, n - 1);
            scene_close(scene);
        }
    }
}

/* It was confirmed by a quorum once, and then the others lost it without a word. */
static void a_holder_is_not_believed_for_ever(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
    struct keys keys = {.of = {ODD, ODD, ODD}, .ttl_us = ENDLESS};

    (void)state;
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, LIMIT_US));
    keys = (struct keys){.of = {ODD}, .ttl_us = ENDLESS};
    assert_true(try_on(scene, &keys, 6000 * MS));
    scene_close(scene);
}

/* Somebody told of the release, and the arbiter did not: no poll has to find that out. */
static void a_holder_that_gave_it_back_elsewhere_is_not_believed(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
    struct keys keys = {.of = {HOLDER, HOLDER, HOLDER}, .ttl_us = 20000 * (int64_t)MS};

    (void)state;
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, LIMIT_US / 3));
    keys = (struct keys){.of = {HOLDER}, .ttl_us = 20000 * (int64_t)MS};
    scene_notice(scene, 1, HOLDER);
    assert_true(try_on(scene, &keys, 20 * MS));
    scene_close(scene);
}

/* Once it is known whose word is worth nothing the next in the order is asked first: one question a poll. */
static void the_next_node_is_asked_first(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
    struct keys keys = {.of = {ODD, HOLDER, HOLDER}, .ttl_us = ENDLESS};
    uint32_t alone = 0;

    (void)state;
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, 1000 * MS));
    for (uint32_t i = 0; i < 10; i++) {
        scene_pass_to_attempt(scene);
        assert_int_equal(scene_asked(scene, 1, CORE_OP_ACQUIRE), 1);
        alone += scene_asked(scene, 0, CORE_OP_ACQUIRE) == 0 && scene_asked(scene, 2, CORE_OP_ACQUIRE) == 0;
        answer_all(scene, &keys);
    }
    assert_int_equal(alone, 10); /* the others, where they are asked, come behind its answer */
    scene_close(scene);
}

/* Its key goes, or is another's: it is asked first again, as everybody else does. */
static void a_node_that_lost_its_odd_key_is_asked_first_again(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
        struct keys keys = {.of = {ODD, HOLDER, HOLDER}, .ttl_us = ENDLESS};

        scene_acquire(scene);
        assert_false(try_on(scene, &keys, 1000 * MS));
        keys.of[0] = way == 2 ? 0 : HOLDER;
        if (way == 1) {
            scene_notice(scene, 0, ODD);
            answer_all(scene, &keys);
        } else {
            assert_false(try_on(scene, &keys, 8000 * MS));
        }
        scene_pass_to_attempt(scene);
        scene_expect_asked_alone(scene, 0);
        scene_close(scene);
    }
}

/* A holder that a quorum confirms is polled at the arbiter alone, but for every fifth time. */
static void a_holder_is_looked_for_everywhere_now_and_then(void **state)
{
    struct scene *scene = scene_open_waiting(5, 3, CORE_NEVER);
    struct keys keys = {.of = {HOLDER, HOLDER, HOLDER, HOLDER, HOLDER}, .ttl_us = ENDLESS};
    uint32_t acquires;

    (void)state;
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, 10000 * MS));
    acquires = asked_so_far(scene, CORE_OP_ACQUIRE);
    for (uint32_t i = 0; i < 20; i++) {
        scene_pass_to_attempt(scene);
        scene_expect_asked_alone(scene, 0);
        answer_all(scene, &keys);
    }
    acquires = asked_so_far(scene, CORE_OP_ACQUIRE) - acquires;
    assert_in_range(acquires, 20 + 3 * 4, 20 + 4 * 4);
    scene_close(scene);
}

/* It is not disproved while a node that could have it does not answer. */
static void a_holder_that_may_have_a_quorum_is_waited_for(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
    struct keys keys = {.of = {HOLDER}, .ttl_us = ENDLESS};
    uint32_t sent;

    (void)state;
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, 5000 * MS));
    sent = scene->n_sent;
    for (uint32_t i = 0; i < 4; i++) {
        scene_pass_to_attempt(scene);
        scene_expect_asked_alone(scene, 0);
        answer_all(scene, &keys);
    }
    assert_in_range(scene->n_sent - sent, 4, 12);
    scene_close(scene);
}

static void two_odd_keys_are_a_lock_that_is_held(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 15000 * MS);
    struct keys keys = {.of = {ODD, ODD + 1}, .ttl_us = ENDLESS};

    (void)state;
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, 14000 * MS));
    /* Nobody is to be woken by what is given back in vain, and no votes are fought for. */
    assert_in_range(core_rounds(scene->lock), 10, 60);
    scene_pass(scene, 1000 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    scene_close(scene);
}

static void an_odd_key_and_an_outage_are_no_quorum(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, 3000 * MS);
    struct keys keys = {.of = {ODD}, .ttl_us = ENDLESS};

    (void)state;
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, 2999 * MS));
    scene_pass(scene, 1 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
    scene_close(scene);
}

/* With all nodes needed, one odd key is in the way for good, and is told. */
static void one_odd_key_of_all_is_held(void **state)
{
    struct scene *scene = scene_open_waiting(3, 3, 5000 * MS);
    struct keys keys = {.of = {ODD}, .ttl_us = ENDLESS};

    (void)state;
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, 4000 * MS));
    assert_in_range(core_rounds(scene->lock), 3, 30);
    scene_pass(scene, 1000 * MS);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
    scene_close(scene);
}

/* Busy with a script, out of memory, a value of another type: it is asked first no more, until it has voted. */
static void a_node_that_answers_with_errors_is_no_arbiter(void **state)
{
    static const enum core_fault faults[] = {CORE_FAULT_PASSING, CORE_FAULT_FOREIGN};

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
        struct keys keys = {.of = {0, HOLDER, HOLDER}, .ttl_us = ENDLESS, .fault = faults[i]};

        scene_acquire(scene);
        assert_false(try_on(scene, &keys, 1000 * MS));
        scene_pass_to_attempt(scene);
        scene_expect_asked_alone(scene, 1);
        answer_all(scene, &keys);
        keys.fault = CORE_FAULT_NONE;
        keys.of[0] = HOLDER;
        assert_false(try_on(scene, &keys, 8000 * MS));
        scene_pass_to_attempt(scene);
        scene_expect_asked_alone(scene, 0);
        scene_close(scene);
    }
}

static void a_new_connection_may_be_the_arbiter_again(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
    struct keys keys = {.of = {0, HOLDER, HOLDER}, .ttl_us = ENDLESS, .fault = CORE_FAULT_PASSING};

    (void)state;
    scene_acquire(scene);
    assert_false(try_on(scene, &keys, 1000 * MS));
    scene_node_state(scene, 0, CORE_NODE_DOWN);
    scene_node_state(scene, 0, CORE_NODE_READY);
    scene_pass_to_attempt(scene);
    scene_expect_asked_alone(scene, 0);
    scene_close(scene);
}

/* Whose connection ended and came back while the arbiter had the word is asked with its yes like any other. */
static void a_node_that_comes_back_meanwhile_is_asked_with_the_rest(void **state)
{
    struct scene *scene = scene_open_waiting(3, 2, CORE_NEVER);
    struct keys keys = {.of = {HOLDER, HOLDER, HOLDER}, .ttl_us = ENDLESS};

    (void)state;
    scene_acquire(scene);
    answer_all(scene, &keys);
    scene_pass_to_attempt(scene);
    scene_expect_asked_alone(scene, 0);
    scene_node_state(scene, 1, CORE_NODE_DOWN);
    scene_node_state(scene, 2, CORE_NODE_DOWN);
    scene_node_state(scene, 1, CORE_NODE_READY);
    scene_answer(scene, 0, CORE_OP_ACQUIRE, CORE_YES);
    assert_int_equal(scene_asked(scene, 1, CORE_OP_ACQUIRE), 1);
    assert_int_equal(scene_asked(scene, 2, CORE_OP_ACQUIRE), 0);
    scene_answer(scene, 1, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_close(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_odd_key_starves_nobody),
        cmocka_unit_test(a_holder_is_not_believed_for_ever),
        cmocka_unit_test(a_holder_that_gave_it_back_elsewhere_is_not_believed),
        cmocka_unit_test(the_next_node_is_asked_first),
        cmocka_unit_test(a_node_that_lost_its_odd_key_is_asked_first_again),
        cmocka_unit_test(a_holder_is_looked_for_everywhere_now_and_then),
        cmocka_unit_test(a_holder_that_may_have_a_quorum_is_waited_for),
        cmocka_unit_test(two_odd_keys_are_a_lock_that_is_held),
        cmocka_unit_test(an_odd_key_and_an_outage_are_no_quorum),
        cmocka_unit_test(one_odd_key_of_all_is_held),
        cmocka_unit_test(a_node_that_answers_with_errors_is_no_arbiter),
        cmocka_unit_test(a_new_connection_may_be_the_arbiter_again),
        cmocka_unit_test(a_node_that_comes_back_meanwhile_is_asked_with_the_rest),
    };

    return cmocka_run_group_tests_name("core: doubted arbiters", tests, NULL, NULL);
}
