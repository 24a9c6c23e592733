/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_wait.c - waiting: the arbiter, which is asked first, and the pauses between attempts
 */
#include <string.h>

#include "core/validity.h"
#include "fixture.h"

#define SRTT_US  ((uint64_t)500)
#define GRACE_US (2 * SRTT_US + 1000) /* how long an arbiter may take */
#define POLL_MAX (1000 * MS)
#define OUTAGE   (10000 * MS)

/* The first attempt meets a holder on all nodes. */
static void open_behind_holder(struct fixture *f, uint32_t n, uint32_t quorum, int64_t ttl_us)
{
    struct core_reply holder = {.outcome = OUTCOME_YES, .holder_id = HOLDER, .ttl_us = ttl_us};

    fixture_open_waiting(f, n, quorum, CORE_NEVER);
    assert_int_equal(fixture_acquire(f), CORE_OK);
    for (uint32_t i = 0; i < n; i++) fixture_answer(f, i, OP_ACQUIRE, OUTCOME_OTHER);
    for (uint32_t i = 0; i < n; i++) {
        if (fixture_pending(f, i, OP_PEEK) > 0) fixture_answer_with(f, i, OP_PEEK, &holder);
    }
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_answer_releases(f);
    fixture_round_trip(f, SRTT_US);
}

/* All nodes that are asked refuse. */
static void refuse_everywhere(struct fixture *f, uint64_t holder_id)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        if (fixture_pending(f, i, OP_ACQUIRE) > 0) fixture_refuse(f, i, holder_id, -1);
    }
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    fixture_answer_releases(f);
}

CORE_TEST(the_second_attempt_asks_only_the_arbiter)
{
    open_behind_holder(f, 5, 3, 20 * MS);
    assert_false(fixture_latest(f, 0, OP_ACQUIRE)->command.explain);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
    assert_true(fixture_latest(f, 0, OP_ACQUIRE)->command.explain);
    assert_int_equal(core_phase_now(f->lock), CORE_ASKING);
}

CORE_TEST(the_arbiter_is_the_first_node_of_the_shared_order)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.wait_us = CORE_NEVER;
    memcpy(config.arbiters, (const uint8_t[]){2, 0, 1}, 3);
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "eee");
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 2);
}

CORE_TEST(a_refusal_of_the_arbiter_ends_the_attempt)
{
    uint32_t sent;

    open_behind_holder(f, 3, 2, 20 * MS);
    fixture_pass_to_attempt(f);
    sent = f->n_sent;
    fixture_refuse(f, 0, HOLDER, 900 * MS);
    /* No key is set, so nothing is released. */
    assert_int_equal(f->n_sent, sent);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(core_debts(f->lock, i), 0);
    assert_true((f->log & CORE_LOG_ATTEMPT_FAILED) != 0);
    fixture_expect_nothing(f);
}

CORE_TEST(a_yes_of_the_arbiter_asks_the_others)
{
    uint64_t asked_us;
    uint64_t attempt;

    open_behind_holder(f, 3, 2, 20 * MS);
    fixture_pass_to_attempt(f);
    asked_us = f->now_us;
    attempt = core_attempt(f->lock);
    fixture_pass(f, 900);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    assert_int_equal(core_attempt(f->lock), attempt);
    for (uint32_t i = 1; i < 3; i++) {
        const struct core_command *command = &fixture_latest(f, i, OP_ACQUIRE)->command;

        assert_int_equal(fixture_pending(f, i, OP_ACQUIRE), 1);
        assert_int_equal(command->tag.attempt, attempt);
        assert_int_equal(command->tag.sent_us, asked_us + 900);
        assert_memory_equal(command->token.bytes, core_token_now(f->lock)->bytes, CORE_TOKEN_SIZE);
    }
    fixture_answer(f, 2, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    /* The older of two votes bounds it; of three the second oldest. */
    assert_int_equal(core_valid_until(f->lock), asked_us + 2968 * MS);
    fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
    assert_int_equal(core_valid_until(f->lock), asked_us + 900 + 2968 * MS);
}

CORE_TEST(a_silent_arbiter_is_passed_over_after_its_grace)
{
    open_behind_holder(f, 3, 2, 20 * MS);
    fixture_pass_to_attempt(f);
    fixture_pass(f, GRACE_US - 1);
    fixture_expect_alone(f, 0);
    fixture_pass(f, 1);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
    fixture_refuse(f, 1, HOLDER, 20 * MS);
    fixture_refuse(f, 2, HOLDER, 20 * MS);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    /* It still has not answered: the next node is asked first. */
    fixture_drop(f);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 1);
}

CORE_TEST(a_silent_arbiter_counts_when_it_answers)
{
    open_behind_holder(f, 3, 2, 20 * MS);
    fixture_pass_to_attempt(f);
    fixture_pass(f, GRACE_US);
    fixture_refuse(f, 1, HOLDER, 20 * MS);
    fixture_answers(f, OP_ACQUIRE, "y.y");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
}

CORE_TEST(an_answer_makes_a_silent_node_the_arbiter_again)
{
    open_behind_holder(f, 3, 2, 20 * MS);
    fixture_pass_to_attempt(f);
    fixture_pass(f, GRACE_US);
    fixture_refuse(f, 1, HOLDER, 20 * MS);
    fixture_refuse(f, 2, HOLDER, 20 * MS);
    fixture_answer(f, 0, OP_RELEASE, OUTCOME_MISSING);
    fixture_drop(f);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
}

CORE_TEST(a_node_with_an_unknown_outcome_is_no_arbiter_until_it_reconnects)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_UNKNOWN);
    fixture_refuse(f, 1, HOLDER, 20 * MS);
    fixture_refuse(f, 2, HOLDER, 20 * MS);
    fixture_drop(f);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 1);
    fixture_refuse(f, 1, HOLDER, 20 * MS);
    /* On a new connection no answer is missing. */
    fixture_node_state(f, 0, NODE_DOWN);
    fixture_node_state(f, 0, NODE_READY);
    fixture_drop(f);
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
}

CORE_TEST(when_all_nodes_are_overdue_all_are_asked)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "uuu");
    fixture_drop(f);
    fixture_pass_to_attempt(f);
    fixture_expect_pending(f, OP_ACQUIRE, "111");
}

CORE_TEST(an_arbiter_that_fails_lets_the_others_decide)
{
    for (int ends = 0; ends < 2; ends++) {
        open_behind_holder(f, 3, 2, 20 * MS);
        fixture_pass_to_attempt(f);
        if (ends != 0) {
            fixture_node_state(f, 0, NODE_CONNECTING);
        } else {
            fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_ERROR);
        }
        for (uint32_t i = 1; i < 3; i++) {
            assert_int_equal(fixture_pending(f, i, OP_ACQUIRE), 1);
            fixture_answer(f, i, OP_ACQUIRE, OUTCOME_YES);
        }
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    }
}

/* A quorum has voted: to keep the vote until the node timeout would block the others. */
CORE_TEST(a_silent_node_is_not_waited_for_when_another_holds)
{
    open_behind_holder(f, 3, 2, 20 * MS);
    fixture_pass_to_attempt(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_round_trip(f, SRTT_US);
    fixture_refuse(f, 1, 88, 900 * MS);
    fixture_pass(f, GRACE_US - 1);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 0);
    fixture_pass(f, 1);
    fixture_expect_pending(f, OP_RELEASE, "111");
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

/* Too few have voted, or no other holds. */
CORE_TEST(a_silent_node_is_waited_for_when_its_vote_decides)
{
    for (int met = 0; met < 2; met++) {
        uint32_t n = met != 0 ? 5 : 3;

        fixture_open_waiting(f, n, n / 2 + 1, CORE_NEVER);
        fixture_acquire(f);
        fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
        if (met != 0) fixture_refuse(f, 1, HOLDER, -1);
        fixture_pass(f, 90 * MS);
        assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 0);
        if (met == 0) {
            fixture_answer(f, 1, OP_ACQUIRE, OUTCOME_YES);
            fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
        }
    }
}

CORE_TEST(a_connecting_node_is_not_waited_for_when_another_holds)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_node_state(f, 2, NODE_CONNECTING);
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, HOLDER, 900 * MS);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 0);
    fixture_pass(f, GRACE_US);
    fixture_expect_nothing(f);
    assert_int_equal(fixture_pending(f, 0, OP_RELEASE), 1);
}

/* Under load the arbiter answers later. */
CORE_TEST(the_grace_of_the_arbiter_grows_with_round_trips)
{
    open_behind_holder(f, 3, 2, 20 * MS);
    for (uint32_t i = 0; i < 20; i++) {
        fixture_pass_to_attempt(f);
        while (fixture_pending(f, 1, OP_ACQUIRE) == 0 &&
               f->now_us < fixture_latest(f, 0, OP_ACQUIRE)->command.tag.sent_us + 10 * MS) {
            fixture_pass(f, 100);
        }
        if (fixture_pending(f, 1, OP_ACQUIRE) == 0) break;
        fixture_pass(f, fixture_latest(f, 0, OP_ACQUIRE)->command.tag.sent_us + 10 * MS - f->now_us);
        for (uint32_t node = 0; node < 3; node++) fixture_refuse(f, node, HOLDER, 20 * MS);
        fixture_answer_releases(f);
    }
    /* An arbiter that takes 10 ms is waited for now. */
    fixture_expect_alone(f, 0);
    fixture_refuse(f, 0, HOLDER, 20 * MS);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
}

CORE_TEST(a_node_that_becomes_ready_is_asked_behind_the_arbiter)
{
    open_behind_holder(f, 3, 2, 20 * MS);
    fixture_node_state(f, 2, NODE_CONNECTING);
    fixture_pass_to_attempt(f);
    fixture_node_state(f, 2, NODE_READY);
    fixture_expect_alone(f, 0);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    for (uint32_t i = 1; i < 3; i++) assert_int_equal(fixture_pending(f, i, OP_ACQUIRE), 1);
}

/* Expiry publishes no notice. */
CORE_TEST(the_next_attempt_comes_when_the_lease_at_the_arbiter_ends)
{
    uint64_t waited_us;

    open_behind_holder(f, 3, 2, 20 * MS);
    fixture_pass_to_attempt(f);
    fixture_refuse(f, 0, HOLDER, 30 * MS);
    waited_us = fixture_pass_to_attempt(f);
    assert_in_range(waited_us, 30 * MS, 31 * MS + 4 * SRTT_US);
}

/* At the Qth smallest remaining lease; our own key is free at once. */
CORE_TEST(the_next_attempt_comes_when_the_leases_of_a_quorum_end)
{
    fixture_open_waiting(f, 5, 3, CORE_NEVER);
    fixture_acquire(f);
    fixture_answer(f, 4, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 0, HOLDER, 40 * MS);
    fixture_refuse(f, 1, HOLDER, 10 * MS);
    fixture_refuse(f, 2, HOLDER, 25 * MS);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_in_range(fixture_pass_to_attempt(f), 25 * MS, 26 * MS + 4 * SRTT_US);
}

CORE_TEST(a_quorum_of_all_waits_for_the_end_of_all_leases)
{
    fixture_open_waiting(f, 3, 3, CORE_NEVER);
    fixture_acquire(f);
    fixture_refuse(f, 0, HOLDER, 10 * MS);
    fixture_refuse(f, 1, HOLDER, 40 * MS);
    fixture_refuse(f, 2, HOLDER, 25 * MS);
    assert_in_range(fixture_pass_to_attempt(f), 40 * MS, 41 * MS + 4 * SRTT_US);
}

/* But not while another holds. */
CORE_TEST(a_node_that_comes_back_starts_an_attempt_in_an_outage)
{
    for (int outage = 0; outage < 2; outage++) {
        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        fixture_node_state(f, 2, NODE_DOWN);
        if (outage != 0) fixture_node_state(f, 1, NODE_DOWN);
        fixture_acquire(f);
        fixture_refuse(f, 0, HOLDER, -1);
        if (outage == 0) fixture_refuse(f, 1, HOLDER, -1);
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        fixture_node_state(f, 2, NODE_READY);
        fixture_pass(f, 4 * SRTT_US);
        assert_int_equal(core_attempt(f->lock), outage != 0 ? 2 : 1);
    }
}

#define CONNECTING_US (100 * MS) /* more than a try to connect has */

/* No attempt could be granted, so a process with many such locks would wake for nothing. */
CORE_TEST(in_an_outage_a_waiter_sleeps)
{
    static const char *const states[] = {"ddd", "dqq", "rdd", "rqc"};

    for (size_t i = 0; i < LENGTH(states); i++) {
        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        fixture_node_states(f, states[i]);
        fixture_acquire(f);
        for (uint32_t attempts = 0; attempts < 5; attempts++) {
            if (fixture_pending(f, 0, OP_ACQUIRE) > 0) fixture_refuse(f, 0, HOLDER, -1);
            if (core_phase_now(f->lock) == CORE_ASKING) fixture_pass(f, f->config.connect_us + CONNECTING_US);
            assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
            assert_in_range(fixture_pass_to_attempt(f), OUTAGE / 2, OUTAGE);
        }
    }
}

/* The node became ready during the attempt, too late to vote, and no further event follows. */
CORE_TEST(a_quorum_that_is_ready_again_is_asked_soon)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_node_states(f, "rdd");
    fixture_acquire(f);
    fixture_node_state(f, 1, NODE_READY);
    fixture_refuse(f, 0, HOLDER, -1);
    assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
    assert_in_range(fixture_pass_to_attempt(f), 0, POLL_MAX);
}

CORE_TEST(what_a_node_says_in_an_outage_ends_the_acquire)
{
    static const struct {
        enum fault_class fault;
        int status;
    } cases[] = {
        {FAULT_CLASS_AUTH, CORE_NO_AUTH}, {FAULT_CLASS_PROTO, CORE_NO_PROTO}, {FAULT_CLASS_CONFIG, CORE_INVAL}};

    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        fixture_node_states(f, "ddd");
        fixture_acquire(f);
        for (uint32_t node = 0; node < 2; node++) fixture_node_state_fault(f, node, NODE_DOWN, cases[i].fault);
        fixture_pass(f, 4 * SRTT_US);
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, cases[i].status);
    }
}

/* Amid a change of passwords: the servers may have the new one before us, or after. */
CORE_TEST(a_refused_login_ends_no_wait_of_a_client_that_was_let_in)
{
    for (int logged_in = 0; logged_in < 2; logged_in++) {
        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        f->logged_in = logged_in != 0;
        fixture_node_states(f, "ddd");
        fixture_acquire(f);
        fixture_node_state_fault(f, 0, NODE_DOWN, FAULT_CLASS_LOGIN);
        fixture_node_state_fault(f, 1, NODE_DOWN, FAULT_CLASS_AUTH);
        fixture_pass(f, 4 * SRTT_US);
        if (logged_in == 0) {
            fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_NO_AUTH);
            continue;
        }
        fixture_node_state_fault(f, 1, NODE_DOWN, FAULT_CLASS_LOGIN);
        fixture_pass(f, 60000 * MS);
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        fixture_node_state(f, 0, NODE_READY);
        fixture_node_state(f, 1, NODE_READY);
        assert_in_range(fixture_pass_to_attempt(f), 0, POLL_MAX);
    }
}

CORE_TEST(a_holder_is_polled_at_growing_pauses)
{
    uint64_t longest_us = 0;

    open_behind_holder(f, 3, 2, -1);
    for (uint32_t i = 0; i < 12; i++) {
        uint64_t waited_us = fixture_pass_to_attempt(f);

        assert_in_range(waited_us, i == 0 ? 50 * MS : i < 4 ? 100 * MS : 500 * MS, POLL_MAX);
        if (waited_us > longest_us) longest_us = waited_us;
        fixture_expect_alone(f, 0);
        refuse_everywhere(f, HOLDER);
    }
    assert_in_range(longest_us, 500 * MS, POLL_MAX);
}

/* Peers without notices hand over, and may do so again soon. */
CORE_TEST(a_new_holder_is_polled_at_short_pauses_again)
{
    open_behind_holder(f, 3, 2, -1);
    for (uint32_t i = 0; i < 6; i++) {
        fixture_pass_to_attempt(f);
        refuse_everywhere(f, HOLDER);
    }
    fixture_pass_to_attempt(f);
    refuse_everywhere(f, HOLDER + 1);
    assert_in_range(fixture_pass_to_attempt(f), 50 * MS, 100 * MS);
}

/* Each node names another holder every time: none holds the lock. */
CORE_TEST(split_votes_are_tried_again_after_round_trips)
{
    uint64_t longest_us = 0;

    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    for (uint32_t round = 0; round < 40; round++) {
        uint64_t bound_us = (2 * SRTT_US) << (round < 5 ? round : 5);
        uint64_t waited_us;

        fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES); /* the arbiter */
        fixture_refuse(f, 1, 2000 + round, 900 * MS);
        fixture_refuse(f, 2, 3000 + round, 900 * MS);
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        fixture_answer_releases(f);
        waited_us = fixture_pass_to_attempt(f);
        assert_in_range(waited_us, 0, bound_us);
        if (waited_us > longest_us) longest_us = waited_us;
    }
    assert_in_range(longest_us, 8 * SRTT_US, 64 * SRTT_US);
}

CORE_TEST(split_votes_after_a_holder_are_tried_again_soon)
{
    for (uint8_t seed = 0; seed < 10; seed++) {
        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        f->randoms = seed;
        fixture_acquire(f);
        for (uint32_t round = 0; round < 6; round++) {
            if (round == 5) {
                refuse_everywhere(f, HOLDER);
                (void)fixture_pass_to_attempt(f);
            }
            fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
            fixture_refuse(f, 1, 2000 + round, 900 * MS);
            fixture_refuse(f, 2, 3000 + round, 900 * MS);
            fixture_answer_releases(f);
            if (round < 5) (void)fixture_pass_to_attempt(f);
        }
        assert_true(fixture_pass_to_attempt(f) <= 2 * SRTT_US);
    }
}

/* The nodes stay, but do not vote, or went away after they had voted: then none that comes back would end a long pause.
 */
CORE_TEST(nodes_that_fail_and_a_holder_behind_which_nodes_went_away_are_polled)
{
    for (int away = 0; away < 2; away++) {
        fixture_open_waiting(f, 3, 2, CORE_NEVER);
        if (away != 0) {
            fixture_node_state(f, 2, NODE_DOWN);
            fixture_acquire(f);
            fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_OTHER);
            fixture_refuse(f, 1, HOLDER, -1);
            fixture_node_state(f, 1, NODE_DOWN);
            fixture_answer_with(f, 0, OP_PEEK,
                                &(struct core_reply){.outcome = OUTCOME_YES, .holder_id = HOLDER, .ttl_us = -1});
        } else {
            fixture_acquire(f);
            fixture_answers(f, OP_ACQUIRE, "eee");
        }
        assert_int_equal(core_phase_now(f->lock), CORE_WAITING);
        assert_in_range(fixture_pass_to_attempt(f), 50 * MS, 100 * MS);
    }
}

/* The same contender's key is met twice in a moment, while its owner is about to release it. */
CORE_TEST(a_contender_that_a_node_names_twice_at_once_is_no_holder)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_round_trip(f, SRTT_US);
    fixture_acquire(f);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, HOLDER, 900 * MS);
    fixture_refuse(f, 2, HOLDER + 1, 900 * MS);
    fixture_answer_releases(f);
    fixture_drop(f);
    fixture_notice(f, 0, 0);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_refuse(f, 1, HOLDER, 900 * MS);
    fixture_refuse(f, 2, HOLDER + 2, 900 * MS);
    /* Whoever asked the arbiter meanwhile waits for this. */
    assert_false(fixture_latest(f, 0, OP_RELEASE)->command.silent);
    assert_in_range(fixture_pass_to_attempt(f), 0, 8 * SRTT_US);
}

CORE_TEST(a_holder_that_a_node_names_twice_is_polled)
{
    fixture_open_waiting(f, 3, 2, CORE_NEVER);
    fixture_acquire(f);
    fixture_refuse(f, 1, 2, 900 * MS);
    fixture_refuse(f, 2, 3, 900 * MS);
    fixture_drop(f);
    assert_in_range(fixture_pass_to_attempt(f), 0, 2 * SRTT_US);
    fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
    fixture_pass(f, 4 * SRTT_US);
    fixture_refuse(f, 1, 2, 900 * MS);
    fixture_refuse(f, 2, 5, 900 * MS);
    assert_in_range(fixture_pass_to_attempt(f), 50 * MS, 100 * MS);
}

/* The arbiter lacks the holder's key, so that waiters take theirs there in turn, and meet each other. */
CORE_TEST(contenders_at_a_free_node_do_not_hide_the_holder)
{
    uint64_t waited_us = 0;

    fixture_open_waiting(f, 5, 3, CORE_NEVER);
    fixture_round_trip(f, SRTT_US);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 8; i++) {
        fixture_answer(f, 0, OP_ACQUIRE, OUTCOME_YES);
        fixture_refuse(f, 1, HOLDER, 900 * MS);
        fixture_refuse(f, 2, HOLDER, 900 * MS);
        fixture_answer(f, 3, OP_ACQUIRE, OUTCOME_ERROR);
        fixture_answer_releases(f);
        fixture_drop(f);
        waited_us = fixture_pass_to_attempt(f);
        if (waited_us >= 50 * MS) break;
        fixture_expect_alone(f, 0);
        fixture_refuse(f, 0, 1000 + i, 900 * MS);
        fixture_pass(f, SRTT_US);
        fixture_notice(f, 0, 1000 + i);
    }
    assert_in_range(waited_us, 50 * MS, POLL_MAX);
    assert_true(fixture_latest(f, 0, OP_RELEASE)->command.silent);
}
