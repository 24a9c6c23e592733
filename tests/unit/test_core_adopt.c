/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_adopt.c - a lock whose token passes from one client to another: what is asked, and what is released
 */
#include <string.h>

#include "fixture.h"

static const struct core_token passed = {.bytes = "passed on by others"};

static void open_adopting(struct fixture *f)
{
    fixture_open(f, 3, 2);
    assert_int_equal(fixture_adopt(f, &passed), CORE_OK);
}

static void open_adopted(struct fixture *f)
{
    open_adopting(f);
    fixture_answers(f, OP_EXTEND, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

/* No node gets a release, now or when it comes back. */
static void expect_no_release(struct fixture *f)
{
    fixture_node_states(f, "ddd");
    fixture_node_states(f, "rrr");
    fixture_expect_pending(f, OP_RELEASE, "000");
    assert_true(core_quiet(f->lock));
}

static void expect_released_everywhere(const struct fixture *f)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        assert_memory_equal(&fixture_latest(f, i, OP_RELEASE)->command.token, &passed, sizeof(passed));
    }
}

CORE_TEST(a_quorum_of_answers_holds_from_their_send_time_and_is_renewed)
{
    open_adopting(f);
    fixture_sleep(f, 50 * MS);
    fixture_answer(f, 0, OP_EXTEND, OUTCOME_YES);
    fixture_expect_nothing(f);
    fixture_answer(f, 2, OP_EXTEND, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 2968 * MS);
    fixture_answer(f, 1, OP_EXTEND, OUTCOME_YES);
    fixture_pass(f, 950 * MS);
    fixture_answers(f, OP_EXTEND, "yyy");
    assert_int_equal(core_valid_until(f->lock), FIXTURE_BEGIN_US + 3968 * MS);
    fixture_pass(f, 3000 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
}

CORE_TEST(a_token_without_a_quorum_is_lost_and_its_rest_is_released)
{
    static const char *const answers[] = {"ymm", "ymo", "moo", "uoo"};

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        open_adopting(f);
        fixture_answers(f, OP_EXTEND, answers[i]);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_LOST_LOCK);
        expect_released_everywhere(f);
        assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    }
}

CORE_TEST(an_adoption_with_too_few_answers_releases_nothing)
{
    static const char *const answers[] = {"yum", "yee", "umu"};

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        open_adopting(f);
        fixture_answers(f, OP_EXTEND, answers[i]);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NOQUORUM);
        expect_no_release(f);
        assert_int_equal(fixture_adopt(f, &passed), CORE_OK);
        fixture_answers(f, OP_EXTEND, "yyy");
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    }
}

CORE_TEST(an_adoption_read_too_late_is_not_held_and_releases_nothing)
{
    open_adopting(f);
    fixture_sleep(f, 2950 * MS);
    fixture_answers(f, OP_EXTEND, "yyy");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_TIMEDOUT);
    expect_no_release(f);
}

CORE_TEST(an_adopted_lock_is_released_also_where_it_was_not_asked)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, "..d");
    assert_int_equal(fixture_adopt(f, &passed), CORE_OK);
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answers(f, OP_RELEASE, "yy.");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    fixture_node_states(f, "..r");
    fixture_expect_pending(f, OP_RELEASE, "001");
    expect_released_everywhere(f);
}

CORE_TEST(nodes_in_quarantine_and_nodes_that_connect_have_a_vote_in_an_adoption)
{
    fixture_open(f, 3, 2);
    fixture_node_states(f, "qcc");
    assert_int_equal(fixture_adopt(f, &passed), CORE_OK);
    fixture_expect_pending(f, OP_EXTEND, "100");
    fixture_node_states(f, ".q.");
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* A node that connects after the grant is asked to extend, too: it must not set the key. */
    fixture_node_states(f, "..r");
    fixture_expect_pending(f, OP_EXTEND, "001");
    fixture_expect_pending(f, OP_ACQUIRE, "000");
}

CORE_TEST(an_adoption_waits_for_room_and_keeps_its_token)
{
    fixture_open_waiting(f, 3, 2, 10 * MS);
    f->no_attempt = true;
    assert_int_equal(fixture_adopt(f, &passed), CORE_OK);
    fixture_expect_pending(f, OP_EXTEND, "000");
    assert_true(core_has_token(f->lock, &passed));
    fixture_pass(f, 1000 * MS);
    f->no_attempt = false;
    fixture_begin(f);
    assert_memory_equal(&fixture_latest(f, 0, OP_EXTEND)->command.token, &passed, sizeof(passed));
}

/* Each node shows its counter when it is asked to raise it. */
CORE_TEST(an_adopted_lock_has_the_fencing_token_of_its_former_owner)
{
    struct core_config config = fixture_config(3, 2);

    config.fencing = true;
    fixture_open_config(f, &config);
    assert_int_equal(fixture_adopt(f, &passed), CORE_OK);
    fixture_answers(f, OP_EXTEND, "yy.");
    fixture_expect_nothing(f);
    for (uint32_t i = 0; i < 2; i++) {
        fixture_answer_with(f, i, OP_RAISE, &(struct core_reply){.outcome = OUTCOME_YES, .fence = 77});
    }
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    assert_int_equal(core_fence(f->lock), 77);
}

/* One that said yes is out of reach before it has shown its counter, because its user was changed. */
CORE_TEST(an_adoption_tells_why_nodes_do_not_agree_on_a_fencing_token)
{
    struct core_config config = fixture_config(3, 2);

    config.fencing = true;
    fixture_open_config(f, &config);
    fixture_adopt(f, &passed);
    fixture_answer_with(f, 2, OP_EXTEND, &(struct core_reply){.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_AUTH});
    fixture_answer(f, 0, OP_EXTEND, OUTCOME_YES);
    fixture_node_state_fault(f, 0, NODE_DOWN, FAULT_CLASS_AUTH);
    fixture_answer(f, 1, OP_EXTEND, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NO_AUTH);
}

CORE_TEST(a_detached_lock_is_neither_renewed_nor_released)
{
    fixture_open_held(f, 3, 2);
    assert_int_equal(fixture_detach(f), CORE_OK);
    assert_int_equal(core_valid_us(f->lock, f->now_us), 0);
    fixture_pass(f, 3000 * MS);
    fixture_expect_nothing(f);
    fixture_expect_pending(f, OP_EXTEND, "000");
    expect_no_release(f);
}

/* Another client may have adopted it. */
CORE_TEST(an_acquire_after_a_detach_releases_nothing)
{
    fixture_open_held(f, 3, 2);
    assert_int_equal(fixture_detach(f), CORE_OK);
    fixture_grant(f);
    fixture_expect_pending(f, OP_RELEASE, "000");
}

CORE_TEST(only_a_lock_that_is_held_and_not_being_extended_is_detached)
{
    fixture_open_held(f, 3, 2);
    assert_int_equal(fixture_extend(f, 0), CORE_OK);
    assert_int_equal(fixture_detach(f), CORE_BUSY);
    fixture_answers(f, OP_EXTEND, "yyy");
    fixture_expect(f, CORE_NOTIFY_EXTENDED, CORE_OK);
    fixture_pass(f, 2968 * MS);
    assert_int_equal(fixture_detach(f), CORE_STATE);
}

/* The release that is still to come would delete the keys under the hold. */
CORE_TEST(a_token_that_was_released_is_not_adopted)
{
    open_adopted(f);
    assert_int_equal(fixture_release(f), CORE_OK);
    fixture_answers(f, OP_RELEASE, "yyu");
    fixture_expect(f, CORE_NOTIFY_RELEASED, CORE_OK);
    assert_int_equal(fixture_adopt(f, &passed), CORE_STATE);
    open_adopted(f);
    fixture_pass(f, 3000 * MS);
    fixture_expect_lost(f, CORE_LOSS_EXPIRED);
    assert_int_equal(fixture_adopt(f, &passed), CORE_STATE);
}

/* As a lock does that waits while another lock of this client holds what it had detached. */
CORE_TEST(a_lock_that_waits_does_not_have_the_token_that_it_detached)
{
    struct core_token detached;

    fixture_open_waiting(f, 3, 2, 10000 * MS);
    fixture_grant(f);
    detached = *core_token_now(f->lock);
    assert_true(core_has_token(f->lock, &detached));
    assert_int_equal(fixture_detach(f), CORE_OK);
    assert_int_equal(fixture_acquire_behind(f), CORE_OK);
    assert_false(core_has_token(f->lock, &detached));
}
