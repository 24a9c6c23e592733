/* SPDX-License-Identifier: BSD-3-Clause */
/* test_core_votes.c - what is asked of a node, and what each of its answers does to its vote */
#include "core/state.h"
#include "core/validity.h"
#include "core/vote.h"
#include "fixture.h"

#define WAIT_US (10000 * MS)

static struct core_node *node_of(struct fixture *f, uint32_t index)
{
    return &f->lock->nodes[index];
}

static const struct core_command *asked(const struct fixture *f, uint32_t node)
{
    return &fixture_latest(f, node, OP_ACQUIRE)->command;
}

CORE_TEST(votes_are_counted_by_kind)
{
    struct vote_tally tally;

    fixture_open(f, 5, 3);
    for (uint32_t i = 0; i < 5; i++) node_of(f, i)->vote = CORE_VOTE_NONE;
    tally = vote_count(f->lock);
    assert_int_equal(tally.pending, 0);
    node_of(f, 0)->state = NODE_CONNECTING;
    assert_true(vote_may_still_connect(node_of(f, 0)));
    assert_false(vote_may_still_connect(node_of(f, 1)));
    node_of(f, 1)->vote = CORE_VOTE_YES;
    node_of(f, 2)->vote = node_of(f, 3)->vote = CORE_VOTE_OTHER;
    node_of(f, 3)->asked.follow_up = FOLLOW_UP_PEEK;
    node_of(f, 4)->vote = CORE_VOTE_PENDING;
    tally = vote_count(f->lock);
    assert_int_equal(tally.yes, 1);
    assert_int_equal(tally.other, 2);
    assert_int_equal(tally.pending, 2);
    assert_int_equal(tally.peeking, 1);
    assert_int_equal(tally.peeked, 1);
}

CORE_TEST(an_attempt_forgets_the_votes_before)
{
    fixture_open(f, 3, 2);
    for (uint32_t i = 0; i < 3; i++) {
        struct core_node *node = node_of(f, i);

        node->vote = i == 0 ? CORE_VOTE_NONE : CORE_VOTE_OTHER;
        node->last_vote = CORE_VOTE_YES;
        node->fault = FAULT_CLASS_AUTH;
        node->asked.follow_up = FOLLOW_UP_RAISE;
        node->asked.asked_twice = node->asked.cut = node->open = node->late = node->gone = true;
        node->asked.fence = 7;
        node->key = (struct core_key){.valid_until_us = 1, .sent_us = 2, .stepped_us = 3, .yes_round = 4};
    }
    vote_clear(f->lock);
    for (uint32_t i = 0; i < 3; i++) {
        static const struct core_key none;
        const struct core_node *node = node_of(f, i);

        assert_int_equal(node->vote, CORE_VOTE_NONE);
        assert_int_equal(node->last_vote, i == 0 ? CORE_VOTE_YES : CORE_VOTE_OTHER);
        assert_int_equal(node->fault, FAULT_CLASS_NONE);
        assert_int_equal(node->asked.follow_up, FOLLOW_UP_NONE);
        assert_int_equal(node->asked.fence, 0);
        assert_false(node->asked.asked_twice || node->asked.cut || node->open || node->late || node->gone);
        assert_memory_equal(&node->key, &none, sizeof(none));
    }
}

CORE_TEST(a_request_says_how_long_readers_have_waited)
{
    struct core_config config = fixture_config(3, 2);

    config.holder.wait_us = WAIT_US;
    for (uint32_t reads = 0; reads < 2; reads++) {
        config.reads = reads != 0;
        config.shared = reads;
        fixture_open_config(f, &config);
        fixture_acquire(f);
        fixture_refuse_all(f, HOLDER, -1);
        fixture_pass_to_attempt(f);
        fixture_expect_alone(f, 0);
        assert_int_equal(asked(f, 0)->waited_us, reads != 0 ? f->now_us - FIXTURE_BEGIN_US : 0);
        assert_false(asked(f, 0)->queues);
        assert_int_equal(node_of(f, 0)->asked.at_us, f->now_us);
    }
}

CORE_TEST(a_node_that_is_asked_names_its_holder_anew)
{
    struct core_node *node;

    fixture_open_waiting(f, 3, 2, WAIT_US);
    node = node_of(f, 0);
    fixture_acquire(f);
    fixture_answer_with(f, 0, OP_ACQUIRE,
                        &(struct core_reply){.outcome = OUTCOME_OTHER, .holder_id = 7, .ttl_us = 55, .readers = true});
    assert_int_equal(node->asked.holder.id, 7);
    assert_true(node->asked.holder.readers);
    for (uint32_t i = 1; i < 3; i++) fixture_refuse(f, i, 7, 55);
    fixture_pass_to_attempt(f);
    assert_int_equal(node->asked.holder.id, 0);
    assert_int_equal(node->asked.holder.before_id, 7);
    assert_int_equal(node->asked.holder.ttl_us, -2);
    assert_false(node->asked.holder.readers);
}

CORE_TEST(a_node_without_room_for_a_debt_has_no_vote)
{
    fixture_open(f, 3, 2);
    node_of(f, 0)->debt = (struct debt){.state = DEBT_UNSENT, .id.number = 1, .until_us = CORE_NEVER};
    f->lock->owing = 1;
    f->lock->id.number = 1;
    fixture_acquire(f);
    fixture_expect_pending(f, OP_ACQUIRE, "011");
    assert_int_equal(node_of(f, 0)->vote, CORE_VOTE_FAILED);
    assert_int_equal(node_of(f, 0)->fault, FAULT_CLASS_TEMPORARY);
}

CORE_TEST(an_adoption_expects_keys_as_long_as_its_request_may_take)
{
    struct core_config config = fixture_config(3, 2);
    static const struct core_token token = {{1}};

    for (uint32_t kept = 0; kept < 2; kept++) {
        config.holder.keep_us = kept;
        fixture_open_config(f, &config);
        fixture_node_states(f, "..c");
        assert_int_equal(fixture_adopt(f, &token), CORE_OK);
        fixture_pass(f, 50 * MS);
        fixture_node_state(f, 2, NODE_READY);
        assert_int_equal(node_of(f, 2)->key.until_us, validity_debt_until(f->now_us, 3000 * MS));
        assert_int_equal(node_of(f, 2)->asked.at_us, f->now_us);
        assert_int_equal(node_of(f, 2)->open, kept != 0);
        fixture_answers(f, OP_EXTEND, "m..");
        assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_MISSING);
        assert_true(node_of(f, 0)->gone);
        fixture_answer_with(f, 1, OP_EXTEND, &(struct core_reply){.outcome = OUTCOME_OTHER, .given_up = true});
        assert_int_equal(core_vote(f->lock, 1), CORE_VOTE_OTHER);
        fixture_expect_pending(f, OP_ACQUIRE, "000");
    }
}

CORE_TEST(an_answer_decides_the_vote_once)
{
    fixture_open(f, 5, 3);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yomue");
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_YES);
    assert_int_equal(core_vote(f->lock, 1), CORE_VOTE_OTHER);
    assert_int_equal(core_vote(f->lock, 2), CORE_VOTE_FAILED);
    fixture_open(f, 5, 3);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yo...");
    fixture_replay(f, fixture_latest(f, 0, OP_ACQUIRE), OUTCOME_OTHER);
    fixture_replay(f, fixture_latest(f, 1, OP_ACQUIRE), OUTCOME_YES);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_YES);
    assert_int_equal(core_vote(f->lock, 1), CORE_VOTE_OTHER);
}

CORE_TEST(an_answer_tells_whether_the_node_fits_and_may_vote_in_the_next_attempt)
{
    static const struct {
        enum outcome outcome;
        enum fault_class fault;
        bool unfit, cut;
    } rows[] = {
        {OUTCOME_YES, FAULT_CLASS_NONE, false, false},    {OUTCOME_OTHER, FAULT_CLASS_NONE, false, false},
        {OUTCOME_UNKNOWN, FAULT_CLASS_NONE, true, true},  {OUTCOME_ERROR, FAULT_CLASS_TEMPORARY, true, true},
        {OUTCOME_ERROR, FAULT_CLASS_AUTH, true, false},   {OUTCOME_UNSENT, FAULT_CLASS_NONE, false, false},
        {OUTCOME_MISSING, FAULT_CLASS_NONE, true, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        fixture_open(f, 5, 3);
        fixture_acquire(f);
        fixture_answer_with(f, 0, OP_ACQUIRE,
                            &(struct core_reply){.outcome = rows[i].outcome, .fault = rows[i].fault, .ttl_us = -2});
        assert_int_equal(node_of(f, 0)->doubt.unfit, rows[i].unfit);
        assert_int_equal(node_of(f, 0)->asked.cut, rows[i].cut);
    }
}

CORE_TEST(a_late_vote_asks_no_node_again)
{
    fixture_open(f, 3, 2);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "yy.");
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_answer_with(f, 2, OP_ACQUIRE, &(struct core_reply){.outcome = OUTCOME_OTHER, .given_up = true});
    fixture_expect_pending(f, OP_ACQUIRE, "000");
    /* Nor does one after the attempt failed: the holder is asked for instead. */
    fixture_open_waiting(f, 5, 3, WAIT_US);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "eee..");
    assert_int_equal(f->lock->attempt.stage, ATTEMPT_FAILED);
    fixture_answer_with(f, 3, OP_ACQUIRE, &(struct core_reply){.outcome = OUTCOME_OTHER, .given_up = true});
    fixture_expect_pending(f, OP_ACQUIRE, "00001");
    fixture_expect_pending(f, OP_PEEK, "00010");
}

CORE_TEST(a_vote_that_a_renewal_overtook_counts_for_its_time)
{
    for (uint32_t yes = 0; yes < 2; yes++) {
        fixture_open(f, 3, 2);
        fixture_acquire(f);
        fixture_answers(f, OP_ACQUIRE, "yy.");
        fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
        fixture_pass(f, 1000 * MS);
        fixture_answer(f, 2, OP_ACQUIRE, yes != 0 ? OUTCOME_YES : OUTCOME_OTHER);
        assert_int_equal(node_of(f, 2)->key.valid_until_us, yes != 0 ? FIXTURE_BEGIN_US + 2968 * MS : 0);
        assert_int_equal(node_of(f, 2)->vote, CORE_VOTE_PENDING);
    }
}

CORE_TEST(a_connection_that_ends_takes_its_answers_along)
{
    static const struct {
        enum core_vote vote;
        enum follow_up follow_up;
        enum core_vote after;
        bool cut, keeps;
    } rows[] = {
        {CORE_VOTE_PENDING, FOLLOW_UP_NONE, CORE_VOTE_FAILED, true, true},
        {CORE_VOTE_YES, FOLLOW_UP_NONE, CORE_VOTE_YES, false, true},
        {CORE_VOTE_YES, FOLLOW_UP_RAISE, CORE_VOTE_FAILED, false, false},
        {CORE_VOTE_OTHER, FOLLOW_UP_PEEK, CORE_VOTE_OTHER, false, true},
    };

    fixture_open(f, 3, 2);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_node *node = node_of(f, 0);

        node->state = NODE_DOWN;
        node->vote = rows[i].vote;
        node->asked.follow_up = rows[i].follow_up;
        node->asked.cut = false;
        node->key.valid_until_us = 5;
        node->down_fault = FAULT_CLASS_AUTH;
        vote_connection_ended(node);
        assert_int_equal(node->vote, rows[i].after);
        assert_int_equal(node->asked.follow_up, FOLLOW_UP_NONE);
        assert_int_equal(node->asked.cut, rows[i].cut);
        assert_int_equal(node->key.valid_until_us, rows[i].keeps ? 5 : 0);
        if (node->vote == CORE_VOTE_FAILED) assert_int_equal(node->fault, FAULT_CLASS_AUTH);
    }
    node_of(f, 0)->state = NODE_READY;
    node_of(f, 0)->vote = CORE_VOTE_NONE;
    node_of(f, 0)->key.valid_until_us = 0;
}

CORE_TEST(a_slot_beyond_the_permits_is_a_broken_server)
{
    struct core_config config = fixture_config(3, 2);

    config.permits = 4;
    config.holder.wait_us = WAIT_US;
    fixture_open_config(f, &config);
    core_slots_hold(f->slots, 0, true);
    fixture_acquire(f);
    for (uint32_t i = 0; i < 3; i++) fixture_refuse_slot(f, i, HOLDER, 5000, 0, 5000);
    core_slots_hold(f->slots, 0, false);
    f->slots->last = CORE_SLOT_NONE;
    fixture_pass_to_attempt(f);
    fixture_expect_alone(f, 0);
    fixture_give_slot(f, 0, 4);
    assert_int_equal(core_vote(f->lock, 0), CORE_VOTE_FAILED);
}

/* ---- who is the holder? ---- */

static void open_peeking(struct fixture *f, bool reads)
{
    struct core_config config = fixture_config(5, 3);

    config.holder.wait_us = WAIT_US;
    config.reads = reads;
    config.shared = reads;
    fixture_open_config(f, &config);
    fixture_acquire(f);
    fixture_answers(f, OP_ACQUIRE, "eee..");
    assert_int_equal(f->lock->attempt.stage, ATTEMPT_FAILED);
}

CORE_TEST(only_a_node_that_can_be_asked_and_named_nobody_is_asked_for_the_holder)
{
    struct step step = {.update = &f->update};

    open_peeking(f, false);
    step.now_us = f->now_us;
    f->update.n_commands = 0;
    node_of(f, 3)->asked.holder.id = 7;
    vote_peek(f->lock, &step, 3);
    node_of(f, 4)->state = NODE_DOWN;
    vote_peek(f->lock, &step, 4);
    assert_int_equal(f->update.n_commands, 0);
    node_of(f, 4)->state = NODE_READY;
    vote_peek(f->lock, &step, 4);
    assert_int_equal(f->update.n_commands, 1);
    node_of(f, 3)->vote = CORE_VOTE_NONE;
    vote_ask_holder(f->lock, &step, 3);
    assert_int_equal(f->update.n_commands, 2);
    assert_int_equal(node_of(f, 3)->asked.holder.before_id, 7);
}

CORE_TEST(the_answer_for_the_holder_is_a_vote_that_explains)
{
    static const struct {
        enum core_vote before;
        struct core_reply reply;
        bool reads;
        enum core_vote after;
    } rows[] = {
        {CORE_VOTE_OTHER, {.outcome = OUTCOME_OTHER, .holder_id = 9}, false, CORE_VOTE_OTHER},
        {CORE_VOTE_OTHER, {.outcome = OUTCOME_YES, .holder_id = 9}, false, CORE_VOTE_OTHER},
        {CORE_VOTE_OTHER, {.outcome = OUTCOME_MISSING}, false, CORE_VOTE_OTHER},
        {CORE_VOTE_OTHER, {.outcome = OUTCOME_OTHER, .given_up = true}, false, CORE_VOTE_YES},
        {CORE_VOTE_OTHER, {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_FOREIGN}, false, CORE_VOTE_FAILED},
        {CORE_VOTE_OTHER, {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_AUTH}, false, CORE_VOTE_OTHER},
        {CORE_VOTE_OTHER, {.outcome = OUTCOME_UNKNOWN, .fault = FAULT_CLASS_FOREIGN}, false, CORE_VOTE_OTHER},
        {CORE_VOTE_PENDING, {.outcome = OUTCOME_MISSING}, false, CORE_VOTE_YES},
        {CORE_VOTE_PENDING, {.outcome = OUTCOME_OTHER, .holder_id = 9, .readers = true}, false, CORE_VOTE_OTHER},
        {CORE_VOTE_PENDING, {.outcome = OUTCOME_OTHER, .holder_id = 9, .readers = true}, true, CORE_VOTE_YES},
        {CORE_VOTE_PENDING, {.outcome = OUTCOME_OTHER, .holder_id = 9}, true, CORE_VOTE_OTHER},
        {CORE_VOTE_OTHER, {.outcome = OUTCOME_OTHER, .holder_id = 9, .readers = true}, true, CORE_VOTE_OTHER},
        {CORE_VOTE_PENDING, {.outcome = OUTCOME_ERROR, .fault = FAULT_CLASS_AUTH}, false, CORE_VOTE_FAILED},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_reply reply = rows[i].reply;
        struct step step = {.update = &f->update};
        struct core_node *node;

        open_peeking(f, rows[i].reads);
        node = node_of(f, 3);
        step.now_us = f->now_us;
        node->vote = rows[i].before;
        node->doubt.unfit = false;
        node->asked.follow_up = FOLLOW_UP_PEEK;
        node->asked.refusing = 5;
        reply.tag = (struct core_tag){.op = OP_PEEK, .node = 3, .attempt = f->lock->id.number};
        vote_on_reply(f->lock, &step, &reply);
        assert_int_equal(node->vote, rows[i].after);
        assert_int_equal(node->asked.follow_up, FOLLOW_UP_NONE);
        assert_int_equal(node->doubt.unfit, reply.outcome == OUTCOME_ERROR && reply.fault == FAULT_CLASS_FOREIGN);
        if (rows[i].after == CORE_VOTE_OTHER && reply.holder_id != 0) {
            assert_int_equal(node->asked.holder.id, 9);
            assert_int_equal(node->asked.holder.readers, reply.readers);
            assert_int_equal(node->asked.refusing, 0);
        }
        /* It is asked once. */
        node->vote = CORE_VOTE_FAILED;
        reply.outcome = OUTCOME_OTHER;
        vote_on_reply(f->lock, &step, &reply);
        assert_int_equal(node->vote, CORE_VOTE_FAILED);
    }
}

CORE_TEST(a_counter_that_was_not_raised_costs_the_vote)
{
    static const struct {
        enum outcome outcome;
        bool keeps, gone;
    } rows[] = {
        {OUTCOME_YES, true, false},    {OUTCOME_MISSING, false, true},  {OUTCOME_OTHER, false, true},
        {OUTCOME_ERROR, false, false}, {OUTCOME_UNKNOWN, false, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct core_reply reply = {.outcome = rows[i].outcome, .fence = 88, .tag = {.op = OP_RAISE}};
        struct step step = {.update = &f->update};
        struct core_node *node;

        fixture_open(f, 3, 2);
        fixture_acquire(f);
        fixture_answers(f, OP_ACQUIRE, "y..");
        node = node_of(f, 0);
        step.now_us = f->now_us;
        /* It was not asked to. */
        vote_on_reply(f->lock, &step, &reply);
        assert_int_equal(node->asked.fence, 0);
        assert_int_equal(node->vote, CORE_VOTE_YES);
        node->asked.follow_up = FOLLOW_UP_RAISE;
        vote_on_reply(f->lock, &step, &reply);
        assert_int_equal(node->vote, rows[i].keeps ? CORE_VOTE_YES : CORE_VOTE_FAILED);
        assert_int_equal(node->asked.fence, rows[i].keeps ? 88 : 0);
        assert_int_equal(node->key.valid_until_us != 0, rows[i].keeps);
        assert_int_equal(node->gone, rows[i].gone);
        node->asked.fence = 0;
    }
}
