/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_core_arbiter.c - the decisions of arbiter.c as tables: three nodes' answers in, what is believed out
 *
 * The quorum is two. X and Y are holders.
 */
#include "core/arbiter.h"
#include "core/state.h"
#include "fixture.h"

#define X 7u
#define Y 8u

struct answer {
    enum core_vote vote;
    uint64_t holder, before;
    enum fault_class fault;
};

#define YES                                                                                                            \
    {                                                                                                                  \
        CORE_VOTE_YES, 0, 0, FAULT_CLASS_NONE                                                                          \
    }
#define PENDING                                                                                                        \
    {                                                                                                                  \
        CORE_VOTE_PENDING, 0, 0, FAULT_CLASS_NONE                                                                      \
    }
#define FAILED(class)                                                                                                  \
    {                                                                                                                  \
        CORE_VOTE_FAILED, 0, 0, FAULT_CLASS_##class                                                                    \
    }
#define NAMES(id)                                                                                                      \
    {                                                                                                                  \
        CORE_VOTE_OTHER, id, 0, FAULT_CLASS_NONE                                                                       \
    }
#define AGAIN(id)                                                                                                      \
    {                                                                                                                  \
        CORE_VOTE_OTHER, id, id, FAULT_CLASS_NONE                                                                      \
    }

/* A lock that asks for its votes; a fourth node stands behind the three, and must never be looked at. */
static void open_asking(struct fixture *f)
{
    fixture_open_waiting(f, 4, 3, 10000 * MS);
    f->config.n_nodes = 3;
    f->config.quorum = 2;
    f->lock->nodes[3].srtt_us = 9999;
    assert_int_equal(fixture_acquire(f), CORE_OK);
}

static void answers(struct fixture *f, const struct answer *of)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct core_node *node = &f->lock->nodes[i];

        node->vote = of[i].vote;
        node->fault = of[i].fault;
        node->asked.holder.id = of[i].holder;
        node->asked.holder.before_id = of[i].before;
        node->asked.minority_id = 0;
    }
}

CORE_TEST(a_failed_attempt_teaches_who_holds_the_key)
{
    static const struct {
        struct answer answers[3];
        enum attempt_doubt doubt;
        uint64_t minority, confirmed; /* of the first node */
        uint32_t polls;
    } rows[] = {
        /* Too many nodes lack the key of X. */
        {{AGAIN(X), YES, YES}, DOUBT_NONE, X, 0, 0},
        {{AGAIN(X), NAMES(Y), YES}, DOUBT_NONE, X, 0, 0},
        {{AGAIN(X), FAILED(FOREIGN), FAILED(FOREIGN)}, DOUBT_NONE, X, 0, 0},
        {{NAMES(X), YES, YES}, DOUBT_NONE, 0, 0, 0},
        /* Who does not answer, or names nobody, says nothing against X. */
        {{AGAIN(X), FAILED(TEMPORARY), FAILED(TEMPORARY)}, DOUBT_NONE, 0, 0, 0},
        {{AGAIN(X), PENDING, PENDING}, DOUBT_NONE, 0, 0, 0},
        {{AGAIN(X), NAMES(0), NAMES(0)}, DOUBT_OPEN, 0, X, 4},
        {{AGAIN(X), NAMES(0), NAMES(0)}, DOUBT_NONE, 0, 0, 0},
        /* A quorum names X; all had time to answer; or one speaks against. */
        {{NAMES(X), NAMES(X), PENDING}, DOUBT_NONE, 0, X, 4},
        {{NAMES(X), PENDING, PENDING}, DOUBT_NONE, 0, 0, 0},
        {{NAMES(X), PENDING, PENDING}, DOUBT_SETTLED, 0, X, 4},
        {{NAMES(X), NAMES(Y), PENDING}, DOUBT_OPEN, 0, 0, 0},
        /* Nobody is no holder, however many name nobody. */
        {{NAMES(0), NAMES(0), PENDING}, DOUBT_NONE, 0, 0, 0},
    };

    open_asking(f);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        answers(f, rows[i].answers);
        f->lock->attempt.stage = ATTEMPT_FAILED;
        f->lock->attempt.doubt = rows[i].doubt;
        f->lock->belief = (struct belief){.polls = 3, .confirmed_id = Y};
        arbiter_learn(f->lock);
        assert_int_equal(f->lock->nodes[0].asked.minority_id, rows[i].minority);
        assert_int_equal(f->lock->belief.confirmed_id, rows[i].confirmed);
        assert_int_equal(f->lock->belief.polls, rows[i].polls);
    }
}

/* What an answer left from before must not count: this node granted. */
CORE_TEST(a_node_that_granted_has_no_minority_key)
{
    static const struct answer granted[] = {{CORE_VOTE_YES, X, X, FAULT_CLASS_NONE}, YES, YES};

    open_asking(f);
    answers(f, granted);
    f->lock->attempt.stage = ATTEMPT_FAILED;
    arbiter_learn(f->lock);
    assert_int_equal(f->lock->nodes[0].asked.minority_id, 0);
}

CORE_TEST(a_refusal_of_the_arbiter_is_believed_for_a_while)
{
    static const struct {
        struct answer arbiter;
        struct belief before;
        bool doubts;
        uint32_t polls;
        uint64_t elsewhere_id; /* others say that it released */
    } rows[] = {
        {NAMES(X), {0}, false, 1, 0},                             /* news */
        {AGAIN(X), {0}, true, 0, 0},                              /* believed once */
        {AGAIN(X), {.polls = 2}, false, 1, 0},                    /* once more */
        {NAMES(X), {.polls = 3, .confirmed_id = X}, false, 2, 0}, /* no news */
        {NAMES(X), {.polls = 0, .confirmed_id = X}, true, 0, 0},  /* likewise */
        {NAMES(X), {.polls = 0}, true, 0, X},
        {AGAIN(X), {.polls = 2}, true, 2, X},
        {{CORE_VOTE_OTHER, 0, 0, 0}, {.polls = 2}, false, 1, 0}, /* an unknown holder was not released */
        {{CORE_VOTE_OTHER, 0, X, 0}, {.polls = 0}, true, 0, 0},  /* nor is it news */
        {{CORE_VOTE_OTHER, Y, X, 0}, {.polls = 0, .confirmed_id = X}, false, 1, 0},
    };

    open_asking(f);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct answer all[] = {rows[i].arbiter, PENDING, PENDING};

        answers(f, all);
        f->lock->attempt.stage = ATTEMPT_ASKS_ARBITER;
        f->lock->attempt.plan.first = 0;
        f->lock->attempt.doubt = DOUBT_NONE;
        f->lock->belief = rows[i].before;
        f->lock->news.elsewhere_id = rows[i].elsewhere_id;
        assert_int_equal(arbiter_doubt(f->lock), rows[i].doubts);
        assert_int_equal(f->lock->belief.polls, rows[i].polls);
    }
}

CORE_TEST(a_doubt_lasts_until_the_slowest_of_those_asked_should_have_answered)
{
    static const struct answer some[] = {YES, PENDING, PENDING};

    open_asking(f);
    answers(f, some);
    for (uint32_t i = 0; i < 3; i++) {
        f->lock->nodes[i].asked.at_us = 100000 - i * 10000;
        f->lock->nodes[i].srtt_us = 500;
    }
    f->lock->attempt.doubt = DOUBT_SETTLED;
    assert_int_equal(arbiter_doubt_until(f->lock), 0);
    f->lock->attempt.doubt = DOUBT_OPEN;
    assert_int_equal(arbiter_doubt_until(f->lock), 90000 + 1000 + ARBITER_GRACE_US);
}

CORE_TEST(the_arbiter_is_the_first_node_that_fits_or_else_one_that_may_serve)
{
    open_asking(f);
    assert_int_equal(arbiter_choose(f->lock), 0);
    assert_int_equal(arbiter_pace_us(f->lock), 20 * 500);
    f->lock->nodes[0].doubt.unfit = true;
    f->lock->nodes[0].asked.minority_id = X;
    f->lock->nodes[1].doubt.unfit = true;
    assert_int_equal(arbiter_choose(f->lock), 2);
    f->lock->nodes[2].doubt.overdue = true;
    assert_int_equal(arbiter_choose(f->lock), 1);
    f->lock->nodes[1].doubt.overdue = true;
    assert_int_equal(arbiter_choose(f->lock), 3);
    assert_int_equal(arbiter_plan(f->lock, f->now_us).until_us, 0);
    assert_int_equal(arbiter_pace_us(f->lock), 0);
}

CORE_TEST(a_minority_key_is_forgotten_with_another_answer)
{
    static const struct {
        struct answer answer;
        uint64_t minority;
        bool unfit;
    } rows[] = {
        {YES, 0, false}, {NAMES(Y), 0, false}, {NAMES(X), X, false}, {NAMES(0), X, false}, {FAILED(TEMPORARY), X, true},
    };

    open_asking(f);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct answer all[] = {rows[i].answer, PENDING, PENDING};

        answers(f, all);
        f->lock->nodes[0].asked.minority_id = X;
        arbiter_on_vote(&f->lock->nodes[0]);
        assert_int_equal(f->lock->nodes[0].asked.minority_id, rows[i].minority);
        assert_int_equal(f->lock->nodes[0].doubt.unfit, rows[i].unfit);
    }
}

CORE_TEST(a_holder_is_named_by_a_quorum_or_twice_by_one_node)
{
    static const struct {
        struct answer answers[3];
        uint64_t minority[3];
        uint32_t waiters;
        bool known_for_long, meets;
    } rows[] = {
        {{NAMES(X), NAMES(X), PENDING}, {0}, 0, true, true},
        {{NAMES(X), NAMES(Y), PENDING}, {0}, 0, true, false},
        {{AGAIN(X), NAMES(Y), PENDING}, {0}, 0, true, true},
        {{NAMES(0), NAMES(0), PENDING}, {0}, 0, true, false},
        /* It may be a contender, unless there are many of them. */
        {{AGAIN(X), NAMES(Y), PENDING}, {0}, 3, false, false},
        {{AGAIN(X), NAMES(Y), PENDING}, {0}, 4, false, true},
        {{AGAIN(Y), NAMES(X), PENDING}, {0}, 3, false, true},
        /* Minority keys are no holder's, but two of them block a quorum. */
        {{AGAIN(X), NAMES(Y), PENDING}, {X, 0, 0}, 0, true, false},
        {{AGAIN(X), AGAIN(Y), PENDING}, {X, Y, 0}, 0, true, true},
        {{AGAIN(X), PENDING, YES}, {X, Y, Y}, 0, true, false},
    };

    open_asking(f);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        answers(f, rows[i].answers);
        for (uint32_t k = 0; k < 3; k++) f->lock->nodes[k].asked.minority_id = rows[i].minority[k];
        f->lock->waiters = rows[i].waiters;
        f->lock->wait.polled = (struct named){.id = X, .since_us = rows[i].known_for_long ? 1 : f->now_us};
        assert_int_equal(arbiter_meets_holder(f->lock, f->now_us), rows[i].meets);
    }
}
