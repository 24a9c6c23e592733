/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_doubt.c - an arbiter that fails, or that names a holder which no quorum confirms, blocks no lock
 */

#include "fixture.h"

#define ODD      55u /* the key that is on one node for good */
#define ENDLESS  (-1)
#define LIMIT_US (15000 * MS)

/* The keys on the nodes, for tests in which a lock tries again and again. */
struct keys {
    uint64_t of[5]; /* holders; 0: none */
    int64_t ttl_us;
    enum fault_class fault; /* node 0 answers with this error */
};

/* Answers everything that is pending, as servers with these keys do. */
static void answer(struct fixture *f, const struct keys *keys)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        const struct core_reply failed = {.outcome = OUTCOME_ERROR, .fault = keys->fault, .ttl_us = -2};
        const struct core_reply there = {.outcome = OUTCOME_YES, .holder_id = keys->of[i], .ttl_us = keys->ttl_us};
        bool fails = i == 0 && keys->fault != FAULT_CLASS_NONE;

        while (fixture_pending(f, i, OP_ACQUIRE) > 0) {
            if (fails) {
                fixture_answer_with(f, i, OP_ACQUIRE, &failed);
            } else if (keys->of[i] == 0) {
                fixture_answer(f, i, OP_ACQUIRE, OUTCOME_YES);
            } else if (fixture_latest(f, i, OP_ACQUIRE)->command.explain) {
                fixture_refuse(f, i, keys->of[i], keys->ttl_us);
            } else {
                fixture_answer(f, i, OP_ACQUIRE, OUTCOME_OTHER);
            }
        }
        while (fixture_pending(f, i, OP_PEEK) > 0) fixture_answer_with(f, i, OP_PEEK, &there);
        while (fixture_pending(f, i, OP_RELEASE) > 0) {
            fixture_answer(f, i, OP_RELEASE, keys->of[i] == 0 ? OUTCOME_YES : OUTCOME_OTHER);
        }
    }
}

static void answer_all(struct fixture *f, const struct keys *keys)
{
    for (uint32_t before = UINT32_MAX; before != f->n_sent;) {
        before = f->n_sent;
        answer(f, keys);
    }
}

/* Tries until granted, or the limit; true: granted. */
static bool try_on(struct fixture *f, const struct keys *keys, uint64_t limit_us)
{
    uint64_t until_us = f->now_us + limit_us;

    for (;;) {
        answer_all(f, keys);
        if (core_phase_now(f->lock) == CORE_GRANTED) return true;
        if (f->now_us >= until_us) return false;
        fixture_pass(f, 1 * MS);
    }
}

/* The lock is held when the wait begins, and then only the minority key is left. */
CORE_TEST(an_odd_key_at_the_arbiter_blocks_no_lock)
{
    static const int64_t ttls_us[] = {ENDLESS, 3600000 * INT64_C(1000), INT64_MAX};

    for (size_t t = 0; t < LENGTH(ttls_us); t++) {
        for (uint32_t n = 3; n <= 5; n += 2) {
            struct keys keys = {.of = {ODD, HOLDER, HOLDER, HOLDER, HOLDER}, .ttl_us = ttls_us[t]};

            fixture_open_waiting(f, n, n / 2 + 1, CORE_NEVER);
            fixture_acquire(f);
            assert_false(try_on(f, &keys, 1000 * MS));
            keys = (struct keys){.of = {ODD}, .ttl_us = ttls_us[t]};
            /* Without a notice a poll finds out. */
            assert_true(try_on(f, &keys, 2000 * MS));
            fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
            assert_in_range(core_counted(f->lock), n / 2 + 1, n - 1);
        }
    }
}

/* Without a poll. */
CORE_TEST(a_notice_of_another_node_disproves_the_arbiter)
{
    struct keys keys = {.of = {HOLDER, HOLDER, HOLDER}, .ttl_us = 20000 * (int64_t)MS};

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    assert_false(try_on(f, &keys, LIMIT_US / 3));
    keys = (struct keys){.of = {HOLDER}, .ttl_us = 20000 * (int64_t)MS};
    fixture_notice(f, 1, HOLDER);
    assert_true(try_on(f, &keys, 20 * MS));
}

/* The others have the holder's key, too: who reported its release was wrong. */
CORE_TEST(an_arbiter_that_all_confirm_is_believed_again)
{
    const struct keys keys = {.of = {HOLDER, HOLDER, HOLDER}, .ttl_us = ENDLESS};
    uint32_t alone = 0;

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    assert_false(try_on(f, &keys, 1000 * MS));
    fixture_notice(f, 1, HOLDER);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t before;

        (void)fixture_pass_to_attempt(f);
        before = f->n_sent;
        answer_all(f, &keys);
        alone += f->n_sent == before;
    }
    assert_int_equal(alone, 3);
}

CORE_TEST(the_node_after_a_disproved_arbiter_is_asked_first)
{
    struct keys keys = {.of = {ODD, HOLDER, HOLDER}, .ttl_us = ENDLESS};
    uint32_t alone = 0;

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    assert_false(try_on(f, &keys, 1000 * MS));
    for (uint32_t i = 0; i < 10; i++) {
        fixture_pass_to_attempt(f);
        assert_int_equal(fixture_pending(f, 1, OP_ACQUIRE), 1);
        alone += fixture_pending(f, 0, OP_ACQUIRE) == 0 && fixture_pending(f, 2, OP_ACQUIRE) == 0;
        answer_all(f, &keys);
    }
    assert_int_equal(alone, 10); /* the others are asked behind its answer, if at all */
}

/* A node publishes the release of a hold whatever key it has. */
CORE_TEST(a_notice_of_another_holder_leaves_an_odd_key_odd)
{
    struct keys keys = {.of = {ODD, HOLDER, HOLDER}, .ttl_us = ENDLESS};

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    assert_false(try_on(f, &keys, 1000 * MS));
    fixture_notice(f, 0, HOLDER);
    answer_all(f, &keys);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 1);
}

CORE_TEST(a_node_without_its_odd_key_is_the_arbiter_again)
{
    for (int way = 0; way < 3; way++) {
        struct keys keys = {.of = {ODD, HOLDER, HOLDER}, .ttl_us = ENDLESS};

        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        fixture_acquire(f);
        assert_false(try_on(f, &keys, 1000 * MS));
        keys.of[0] = way == 2 ? 0 : HOLDER;
        if (way == 1) {
            fixture_notice(f, 0, ODD);
            answer_all(f, &keys);
        } else {
            assert_false(try_on(f, &keys, 8000 * MS));
        }
        fixture_pass_to_attempt(f);
        fixture_expect_alone(f, 0);
    }
}

/* A node that could hold its key is down. */
CORE_TEST(a_holder_is_waited_for_while_it_may_have_a_quorum)
{
    struct keys keys = {.of = {HOLDER}, .ttl_us = ENDLESS};
    uint32_t sent;

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_node_state(f, 2, NODE_DOWN);
    fixture_acquire(f);
    assert_false(try_on(f, &keys, 5000 * MS));
    sent = f->n_sent;
    for (uint32_t i = 0; i < 4; i++) {
        fixture_pass_to_attempt(f);
        fixture_expect_alone(f, 0);
        answer_all(f, &keys);
    }
    assert_in_range(f->n_sent - sent, 4, 12);
}

CORE_TEST(two_odd_keys_are_a_lock_that_is_held)
{
    struct keys keys = {.of = {ODD, ODD + 1}, .ttl_us = ENDLESS};

    fixture_open_waiting(f, 3, 2, 15000 * MS);
    fixture_acquire(f);
    assert_false(try_on(f, &keys, 14000 * MS));
    /* Attempts are polls, not those of split votes. */
    assert_in_range(core_rounds(f->lock), 10, 60);
    fixture_pass(f, 1000 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}

CORE_TEST(one_odd_key_blocks_a_quorum_of_all)
{
    struct keys keys = {.of = {ODD}, .ttl_us = ENDLESS};

    fixture_open_waiting(f, 3, 3, 5000 * MS);
    fixture_acquire(f);
    assert_false(try_on(f, &keys, 4000 * MS));
    assert_in_range(core_rounds(f->lock), 3, 30);
    fixture_pass(f, 1000 * MS);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_HELD_BY_OTHER);
}

/* Busy with a script, out of memory, or with a value of another type. */
CORE_TEST(a_node_that_answers_with_errors_is_no_arbiter_until_it_votes)
{
    static const enum fault_class faults[] = {FAULT_CLASS_TEMPORARY, FAULT_CLASS_FOREIGN};

    for (size_t i = 0; i < LENGTH(faults); i++) {
        struct keys keys = {.of = {0, HOLDER, HOLDER}, .ttl_us = ENDLESS, .fault = faults[i]};

        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        fixture_acquire(f);
        assert_false(try_on(f, &keys, 1000 * MS));
        fixture_pass_to_attempt(f);
        fixture_expect_alone(f, 1);
        answer_all(f, &keys);
        keys.fault = FAULT_CLASS_NONE;
        keys.of[0] = HOLDER;
        assert_false(try_on(f, &keys, 8000 * MS));
        fixture_pass_to_attempt(f);
        fixture_expect_alone(f, 0);
    }
}

CORE_TEST(a_new_connection_may_be_the_arbiter_again)
{
    struct keys keys = {.of = {0, HOLDER, HOLDER}, .ttl_us = ENDLESS, .fault = FAULT_CLASS_TEMPORARY};

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    assert_false(try_on(f, &keys, 1000 * MS));
    fixture_node_state(f, 0, NODE_DOWN);
    fixture_node_state(f, 0, NODE_READY);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
}

CORE_TEST(a_node_that_comes_back_is_asked_when_the_arbiter_has_granted)
{
    struct keys keys = {.of = {HOLDER, HOLDER, HOLDER}, .ttl_us = ENDLESS};

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    answer_all(f, &keys);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
    fixture_node_states(f, ".dd");
    fixture_node_state(f, 1, NODE_READY);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect_pending(f, OP_ACQUIRE, ".10");
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}
