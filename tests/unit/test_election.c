/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_election.c - who leads by the answers of nodes, what an observer reports, and when a deposed leader stands again
 */

#include "core/election.h"
#include "test.h"

#define MS     UINT64_C(1000)
#define SECOND (1000 * MS)
#define SILENT                                                                                                         \
    {                                                                                                                  \
        .answered = false                                                                                              \
    }
#define FREE                                                                                                           \
    {                                                                                                                  \
        .answered = true                                                                                               \
    }
#define BY(o, c)                                                                                                       \
    {                                                                                                                  \
        .answered = true, .owner_id = (o), .counter = (c)                                                              \
    }

struct round {
    struct election_vote votes[5];
    uint32_t n, quorum;
    enum election_state state;
    bool certain;
    uint64_t owner_id, term;
};

static const struct round rounds[] = {
    {{BY(7, 40), BY(7, 40), BY(7, 40)}, 3, 2, ELECTION_LEADER, true, 7, 40},
    /* A quorum suffices, whatever the others show or would show. */
    {{BY(7, 40), SILENT, BY(7, 40)}, 3, 2, ELECTION_LEADER, true, 7, 40},
    {{BY(7, 40), BY(9, 50), BY(7, 40)}, 3, 2, ELECTION_LEADER, true, 7, 40},
    {{FREE, BY(7, 40), BY(7, 40)}, 3, 2, ELECTION_LEADER, true, 7, 40},
    /* What a node that did not answer showed before is no vote. */
    {{BY(7, 40), BY(7, 40), {.owner_id = 7, .counter = 50}}, 3, 2, ELECTION_LEADER, true, 7, 40},
    {{{.owner_id = 7, .counter = 50}, BY(7, 40), BY(7, 40)}, 3, 2, ELECTION_LEADER, true, 7, 40},
    {{{.owner_id = 7, .counter = 50}, BY(7, 40), FREE}, 3, 2, ELECTION_UNKNOWN, false, 0, 0},
    /* A late vote has another counter, higher or lower. */
    {{BY(7, 41), BY(7, 40), BY(7, 40)}, 3, 2, ELECTION_LEADER, false, 7, 40},
    {{BY(7, 39), BY(7, 40), BY(7, 40)}, 3, 2, ELECTION_LEADER, true, 7, 40},
    /* Which counter is the token is in doubt: the lowest is no later leader's. */
    {{BY(7, 41), BY(7, 40), SILENT}, 3, 2, ELECTION_LEADER, false, 7, 40},
    {{BY(7, 39), BY(7, 40), BY(7, 41)}, 3, 2, ELECTION_LEADER, false, 7, 39},
    {{BY(7, 0), BY(7, 40), SILENT}, 3, 2, ELECTION_LEADER, false, 7, 0},
    /* Two attempts, or one that is not through. */
    {{BY(7, 40), BY(9, 40), BY(8, 40)}, 3, 2, ELECTION_NONE, false, 0, 0},
    {{BY(7, 40), FREE, FREE}, 3, 2, ELECTION_NONE, false, 0, 0},
    {{BY(7, 40), FREE, SILENT}, 3, 2, ELECTION_UNKNOWN, false, 0, 0},
    {{FREE, FREE, SILENT}, 3, 2, ELECTION_NONE, false, 0, 0},
    {{FREE, SILENT, SILENT}, 3, 2, ELECTION_UNKNOWN, false, 0, 0},
    {{SILENT, SILENT, SILENT}, 3, 2, ELECTION_UNKNOWN, false, 0, 0},
    /* It holds the key without a token. */
    {{BY(7, 0), BY(7, 0), BY(7, 0)}, 3, 2, ELECTION_NONE, false, 0, 0},
    /* All nodes must grant. */
    {{BY(7, 40), BY(7, 40), BY(7, 40)}, 3, 3, ELECTION_LEADER, true, 7, 40},
    {{BY(7, 40), BY(7, 40), FREE}, 3, 3, ELECTION_NONE, false, 0, 0},
    {{BY(7, 40), BY(7, 40), SILENT}, 3, 3, ELECTION_UNKNOWN, false, 0, 0},
    {{BY(7, 40), BY(7, 40), BY(9, 50), BY(9, 50), SILENT}, 5, 3, ELECTION_UNKNOWN, false, 0, 0},
    {{BY(7, 40), BY(7, 40), BY(9, 50), BY(9, 50), FREE}, 5, 3, ELECTION_NONE, false, 0, 0},
    {{BY(7, 40), BY(9, 50), BY(9, 50), BY(9, 50), BY(7, 40)}, 5, 3, ELECTION_LEADER, true, 9, 50},
};

TEST(votes_show_a_leader_none_or_leave_it_in_doubt)
{
    for (size_t i = 0; i < LENGTH(rounds); i++) {
        const struct round *round = &rounds[i];
        struct election_leader leader = {0};

        if (election_judge(round->votes, round->n, round->quorum, &leader) != round->state) fail_msg("round %zu", i);
        assert_int_equal(leader.owner_id, round->owner_id);
        assert_int_equal(leader.term, round->term);
        assert_int_equal(leader.certain, round->certain);
    }
}

/* An observer that stops at the first certain answer reports the same as one that waits for all. */
TEST(more_answers_change_nothing_that_is_certain)
{
    for (uint32_t code = 0; code < 4 * 4 * 4 * 4 * 4; code++) {
        static const struct election_vote kinds[] = {SILENT, FREE, BY(7, 40), BY(9, 50)};
        struct election_leader leader = {0};
        struct election_leader later = {0};
        struct election_vote votes[5];
        enum election_state state;

        for (uint32_t i = 0, rest = code; i < 5; i++, rest /= 4) votes[i] = kinds[rest % 4];
        state = election_judge(votes, 5, 3, &leader);
        if (state == ELECTION_UNKNOWN) continue;
        for (uint32_t i = 0; i < 5; i++) {
            if (votes[i].answered) continue;
            for (uint32_t kind = 1; kind < 4; kind++) {
                votes[i] = kinds[kind];
                assert_int_equal(election_judge(votes, 5, 3, &later), state);
                assert_int_equal(later.term, leader.term);
            }
            votes[i] = kinds[0];
        }
    }
}

static bool shows(struct election_view *view, uint64_t owner_id, uint64_t term)
{
    const struct election_leader leader = {.owner_id = owner_id, .term = term, .agreed = true, .certain = true};

    return election_observe(view, ELECTION_LEADER, &leader);
}

static bool guesses(struct election_view *view, uint64_t owner_id, uint64_t term)
{
    const struct election_leader leader = {.owner_id = owner_id, .term = term};

    return election_observe(view, ELECTION_LEADER, &leader);
}

static bool shows_none(struct election_view *view)
{
    return election_observe(view, ELECTION_NONE, NULL);
}

static bool shows_nothing(struct election_view *view)
{
    return election_observe(view, ELECTION_UNKNOWN, NULL);
}

TEST(each_change_is_reported_once)
{
    struct election_view view = {0};

    assert_true(shows_none(&view)); /* the first round is reported in any case */
    assert_false(shows_none(&view));
    assert_true(shows(&view, 7, 40));
    assert_false(shows(&view, 7, 40));
    assert_true(shows(&view, 9, 41)); /* nobody saw the pause between them */
    assert_true(shows_none(&view));
    assert_true(shows(&view, 7, 42));
    assert_int_equal(view.leader.term, 42);
    assert_int_equal(view.leader.owner_id, 7);
}

TEST(no_older_term_is_reported_after_a_newer_one)
{
    struct election_view view = {0};

    assert_true(shows(&view, 7, 40));
    /* Another owner with the counter of the last leader, or an older one, has no term of its own. */
    assert_true(shows(&view, 8, 40));
    assert_int_equal(view.state, ELECTION_NONE);
    assert_int_equal(view.leader.term, 40);
    assert_false(shows(&view, 9, 39));
    assert_int_equal(view.leader.term, 40);
    /* The same owner is seen again. */
    assert_true(shows(&view, 7, 40));
    assert_int_equal(view.state, ELECTION_LEADER);
    assert_int_equal(view.leader.term, 40);
}

/* Its token may be raised, however late: a candidate may have been suspended before that. What others make of single
 * nodes' counters changes nothing. */
TEST(a_leaders_term_rises_only_where_a_round_is_certain)
{
    struct election_view view = {0};

    for (int i = 0; i < 100; i++) (void)shows(&view, 7, 40);
    assert_true(shows(&view, 7, 44));
    assert_int_equal(view.leader.term, 44);
    for (int i = 0; i < 100; i++) assert_false(guesses(&view, 7, 50));
    assert_false(shows(&view, 7, 40));
    assert_true(shows_none(&view));
    assert_true(shows(&view, 7, 44));
    assert_int_equal(view.leader.term, 44);
    assert_true(shows(&view, 8, 51));
}

/* The first look came before the token was raised, and what another candidate made of one node's counter stays. */
TEST(a_leaders_term_rises_where_a_quorum_agrees)
{
    struct election_vote before[] = {{true, 7, 40}, {true, 7, 40}, {true, 7, 40}, {false, 0, 0}, {false, 0, 0}};
    struct election_vote after[] = {{true, 7, 44}, {true, 7, 44}, {true, 7, 44}, {true, 7, 40}, {true, 7, 50}};
    struct election_view view = {0};
    struct election_leader leader;

    assert_int_equal(election_judge(before, 5, 3, &leader), ELECTION_LEADER);
    assert_true(leader.certain);
    assert_true(election_observe(&view, ELECTION_LEADER, &leader));
    assert_int_equal(election_judge(after, 5, 3, &leader), ELECTION_LEADER);
    assert_false(leader.certain);
    assert_true(election_observe(&view, ELECTION_LEADER, &leader));
    assert_int_equal(view.leader.term, 44);
    /* Of a term on which no quorum agrees it is not sure again. */
    for (int i = 0; i < 100; i++) assert_false(election_observe(&view, ELECTION_LEADER, &leader));
    assert_int_equal(view.leader.term, 44);
}

TEST(what_is_not_certain_is_taken_after_three_rounds)
{
    struct election_view view = {0};

    for (int i = 0; i < 2; i++) assert_false(guesses(&view, 7, 40));
    assert_true(guesses(&view, 7, 40));
    assert_int_equal(view.state, ELECTION_LEADER);
    assert_int_equal(view.leader.term, 40);
    assert_false(guesses(&view, 7, 39));
    assert_true(shows(&view, 7, 41));
    /* A later leader has a higher term: so this is not its term. */
    for (int i = 0; i < 2; i++) assert_false(guesses(&view, 8, 41));
    assert_true(guesses(&view, 8, 41));
    assert_int_equal(view.state, ELECTION_UNKNOWN);
    assert_int_equal(view.leader.term, 41);
    assert_true(shows(&view, 8, 42));
}

/* Nodes were cut, and one of the others fell behind: only when all answer again they show the term. */
TEST(an_uncertain_term_rises_as_soon_as_a_round_is_certain)
{
    struct election_view view = {0};

    for (int i = 0; i < 3; i++) (void)guesses(&view, 7, 30);
    assert_int_equal(view.leader.term, 30);
    for (int i = 0; i < 100; i++) assert_false(guesses(&view, 7, 30));
    assert_true(shows(&view, 7, 40));
    assert_int_equal(view.leader.term, 40);
    /* Now it was certain once: what is in doubt changes it no more. */
    for (int i = 0; i < 100; i++) assert_false(guesses(&view, 7, 50));
    assert_false(shows(&view, 7, 30));
    assert_int_equal(view.leader.term, 40);
}

/* One node's counter is above the others for ever, so no round is certain. */
TEST(an_uncertain_term_rises_after_three_rounds_in_doubt)
{
    struct election_view view = {0};

    for (int i = 0; i < 3; i++) (void)guesses(&view, 7, 30);
    for (int i = 0; i < 20; i++) {
        assert_false(guesses(&view, 7, 40));
        assert_false(guesses(&view, 7, 40));
        assert_false(guesses(&view, 7, 30));
    }
    for (int i = 0; i < 2; i++) assert_false(guesses(&view, 7, 40));
    assert_true(guesses(&view, 7, 40));
    assert_int_equal(view.leader.term, 40);
    for (int i = 0; i < 100; i++) assert_false(guesses(&view, 7, i % 2 == 0 ? 30 : 40));
    assert_int_equal(view.leader.term, 40);
    /* A round that leaves it in doubt who leads is no round for a higher term, nor the other way round. */
    for (int i = 0; i < 2; i++) assert_false(guesses(&view, 7, 44));
    assert_false(shows_nothing(&view));
    assert_false(shows_nothing(&view));
    assert_true(guesses(&view, 7, 44));
    assert_int_equal(view.leader.term, 44);
}

/* An uncertain term was reported, which was right or too high. */
TEST(an_uncertain_term_stays_when_a_round_is_certain_of_no_more)
{
    for (uint64_t term = 39; term <= 40; term++) {
        struct election_view view = {0};

        for (int i = 0; i < 3; i++) (void)guesses(&view, 7, 40);
        assert_false(shows(&view, 7, term));
        assert_int_equal(view.leader.term, 40);
        for (int i = 0; i < 100; i++) assert_false(guesses(&view, 7, 50));
        assert_int_equal(view.leader.term, 40);
    }
}

TEST(an_observer_in_doubt_says_so_after_three_rounds)
{
    struct election_view view = {0};

    assert_true(shows(&view, 7, 40));
    assert_false(shows_nothing(&view));
    assert_false(shows_nothing(&view));
    assert_false(shows(&view, 7, 40));
    assert_false(shows_nothing(&view));
    assert_false(shows_nothing(&view));
    assert_true(shows_nothing(&view));
    assert_int_equal(view.state, ELECTION_UNKNOWN);
    assert_false(shows_nothing(&view));
    assert_true(shows(&view, 7, 40));
    assert_true(shows_none(&view));
}

TEST(whatever_rounds_show_terms_never_fall)
{
    struct backoff_jitter jitter = {.state = 42};

    for (uint32_t run = 0; run < 2000; run++) {
        struct election_view view = {0};
        uint64_t owner_of[8] = {0};
        uint64_t reported = 0;

        for (uint32_t i = 0; i < 40; i++) {
            uint64_t before = view.leader.term;
            enum election_state state = (enum election_state)backoff_uniform(&jitter, 2);
            const struct election_leader leader = {.owner_id = 1 + backoff_uniform(&jitter, 3),
                                                   .term = 1 + backoff_uniform(&jitter, 6),
                                                   .certain = backoff_uniform(&jitter, 1) == 1};

            if (!election_observe(&view, state, &leader) || view.state != ELECTION_LEADER) continue;
            assert_true(view.leader.term >= reported && view.leader.term >= before);
            /* A term has one owner. */
            if (owner_of[view.leader.term] != 0) assert_int_equal(owner_of[view.leader.term], view.leader.owner_id);
            owner_of[view.leader.term] = view.leader.owner_id;
            reported = view.leader.term;
        }
    }
}

TEST(an_observer_asks_often_where_something_changes)
{
    struct backoff_jitter jitter = {.state = 1};
    struct election_view view = {0};

    for (int i = 0; i < 100; i++) assert_true(election_poll_us(&jitter, &view, SECOND, UINT64_MAX) <= 10 * MS);
    assert_true(shows(&view, 7, 40));
    for (int i = 0; i < 100; i++) {
        uint64_t pause_us = election_poll_us(&jitter, &view, SECOND, UINT64_MAX);

        assert_in_range(pause_us, SECOND / 2, SECOND);
        /* Not behind the end of its lease. */
        assert_int_equal(election_poll_us(&jitter, &view, SECOND, 20 * MS), 21 * MS);
    }
    assert_false(shows_nothing(&view));
    assert_true(election_poll_us(&jitter, &view, SECOND, UINT64_MAX) <= 40 * MS);
    for (int i = 0; i < 20; i++) shows_none(&view);
    assert_in_range(election_poll_us(&jitter, &view, SECOND, UINT64_MAX), SECOND / 2, SECOND);
    assert_true(shows(&view, 7, 41));
    assert_true(shows_none(&view));
    assert_true(election_poll_us(&jitter, &view, SECOND, UINT64_MAX) <= 10 * MS);
}

TEST(a_leader_that_is_deposed_soon_pauses_longer_each_time)
{
    struct backoff_jitter jitter = {.state = 1};
    uint64_t lease_us = 5 * SECOND;
    uint32_t soon = 0;

    /* It led for long. */
    assert_in_range(election_stand_us(&jitter, &soon, 4 * lease_us, lease_us), 50 * MS, 100 * MS);
    assert_int_equal(soon, 0);
    assert_in_range(election_stand_us(&jitter, &soon, lease_us, lease_us), 100 * MS, 200 * MS);
    assert_in_range(election_stand_us(&jitter, &soon, 0, lease_us), 200 * MS, 400 * MS);
    for (int i = 0; i < 100; i++) assert_true(election_stand_us(&jitter, &soon, 0, lease_us) <= lease_us);
    assert_true(election_stand_us(&jitter, &soon, 0, lease_us) >= lease_us / 2);
    assert_true(election_stand_us(&jitter, &soon, 4 * lease_us, lease_us) <= 100 * MS);
    /* A lease may be shorter than the first pause. */
    assert_true(election_stand_us(&jitter, &soon, 0, 10 * MS) <= 10 * MS);
}

TEST(the_first_state_is_news_whatever_it_is)
{
    static const enum election_state states[] = {ELECTION_NONE, ELECTION_UNKNOWN};

    for (size_t i = 0; i < LENGTH(states); i++) {
        struct election_view view = {.state = states[i]};
        bool news = false;

        for (uint32_t k = 0; k < ELECTION_DOUBTS && !news; k++) news = election_observe(&view, states[i], NULL);
        assert_true(news);
    }
}

/* Only a leader whose lease ends soon is looked at then. */
TEST(a_view_in_doubt_is_not_looked_at_by_the_end_of_a_lease)
{
    struct backoff_jitter jitter = {.state = 3};
    struct election_view view = {.state = ELECTION_UNKNOWN};

    for (int i = 0; i < 20; i++) assert_true(election_poll_us(&jitter, &view, SECOND, 0) >= 5 * MS);
    view.state = ELECTION_LEADER;
    assert_int_equal(election_poll_us(&jitter, &view, SECOND, 0), MS);
}
