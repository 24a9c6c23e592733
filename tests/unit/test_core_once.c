/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock that tries once: what it is told where votes are split, or a node comes late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

static void split(struct fixture *f)
{
    fixture_acquire(f);
    fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
    fixture_refuse(f, 1, 7, 3000 * (int64_t)MS);
    fixture_refuse(f, 2, 8, 3000 * (int64_t)MS);
    fixture_answer_releases(f);
}

/* Of several that fire at the same tick one gets it: whoever met no holder tries on. */
static void split_votes_are_settled(void **state)
{
    struct fixture *f = fixture_open_waiting(3, 2, 0);

    (void)state;
    split(f);
    fixture_expect_nothing(f);
    assert_false(core_listens(f->lock));
    assert_in_range(fixture_pass_to_attempt(f), 0, 50 * MS);
    for (uint32_t i = 0; i < 3; i++) fixture_answer(f, i, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
    fixture_close(f);
}

static void the_arbiters_no_ends_it(void **state)
{
    struct fixture *f = fixture_open_waiting(3, 2, 0);

    (void)state;
    split(f);
    fixture_pass_to_attempt(f);
    fixture_refuse(f, 0, 9, 3000 * (int64_t)MS);
    assert_int_equal(core_rounds(f->lock), 2);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_HELD_BY_OTHER);
    fixture_close(f);
}

/* Whatever the others do, it is over after half a node timeout. */
static void votes_that_stay_split_are_given_up(void **state)
{
    struct fixture *f = fixture_open_waiting(3, 2, 0);
    uint64_t begun_us = f->now_us;
    uint64_t owner = 100;

    (void)state;
    split(f);
    while (core_phase_now(f->lock) == CORE_WAITING) {
        fixture_pass_to_attempt(f);
        fixture_answer(f, 0, CORE_OP_ACQUIRE, CORE_YES);
        fixture_refuse(f, 1, owner++, 3000 * (int64_t)MS);
        fixture_refuse(f, 2, owner++, 3000 * (int64_t)MS);
        fixture_answer_releases(f);
    }
    assert_in_range(f->now_us - begun_us, 50 * MS, 100 * MS);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_HELD_BY_OTHER);
    assert_int_equal(core_deadline(f->lock), CORE_NEVER);
    fixture_close(f);
}

static void one_holder_on_a_quorum_is_told_at_once(void **state)
{
    struct fixture *f = fixture_open_waiting(3, 2, 0);

    (void)state;
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse(f, i, 7, 3000 * (int64_t)MS);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_HELD_BY_OTHER);
    fixture_close(f);
}

/* One node is down and one refuses: whether the lock is held, or too few can vote, the third will say. */
static struct fixture *open_with_a_late_node(void)
{
    struct fixture *f = fixture_open_waiting(3, 2, 0);

    fixture_level(f, 0, CORE_NODE_DOWN);
    fixture_level(f, 2, CORE_NODE_CONNECTING);
    fixture_acquire(f);
    fixture_refuse(f, 1, 7, 3000 * (int64_t)MS);
    fixture_expect_nothing(f);
    fixture_level(f, 2, CORE_NODE_READY);
    assert_int_equal(fixture_asked(f, 2, CORE_OP_ACQUIRE), 0);
    assert_int_equal(fixture_asked(f, 2, CORE_OP_PEEK), 1);
    return f;
}

static void a_node_that_comes_late_names_the_holder(void **state)
{
    struct fixture *f = open_with_a_late_node();

    (void)state;
    fixture_answer_with(
        f, 2, CORE_OP_PEEK,
        &(struct core_reply){.outcome = CORE_YES, .holder_id = 7, .ttl_us = 3000 * (int64_t)MS});
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_HELD_BY_OTHER);
    fixture_close(f);
}

static void a_node_that_comes_late_and_fails_is_no_vote(void **state)
{
    struct fixture *f = open_with_a_late_node();

    (void)state;
    fixture_answer(f, 2, CORE_OP_PEEK, CORE_UNKNOWN);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_NOQUORUM);
    fixture_close(f);
}

static void a_node_that_comes_late_and_is_free_leaves_a_chance(void **state)
{
    struct fixture *f = open_with_a_late_node();

    (void)state;
    fixture_answer(f, 2, CORE_OP_PEEK, CORE_MISSING);
    fixture_answer_releases(f);
    fixture_expect_nothing(f);
    fixture_pass_to_attempt(f);
    fixture_answer(f, 1, CORE_OP_ACQUIRE, CORE_YES);
    fixture_answer(f, 2, CORE_OP_ACQUIRE, CORE_YES);
    fixture_expect(f, CORE_TELL_ACQUIRED, CORE_OK);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_votes_are_settled),
        cmocka_unit_test(the_arbiters_no_ends_it),
        cmocka_unit_test(votes_that_stay_split_are_given_up),
        cmocka_unit_test(one_holder_on_a_quorum_is_told_at_once),
        cmocka_unit_test(a_node_that_comes_late_names_the_holder),
        cmocka_unit_test(a_node_that_comes_late_and_fails_is_no_vote),
        cmocka_unit_test(a_node_that_comes_late_and_is_free_leaves_a_chance),
    };

    return cmocka_run_group_tests_name("core: trying once", tests, NULL, NULL);
}
