/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_answers.c - what a node said is kept until it says something else, also for callbacks that still read it
 */
#include <stdio.h>
#include <string.h>

#include "lock/answers.h"
#include "runtime/owner.h"
#include "test.h"

#define NODES 3u

/* What an answer says, a bit each. */
enum { ERROR = 1, HOLDER = 2, TTL = 4, RELEASE_ERROR = 8, RELEASE_HOLDER = 16, ALL = 31 };
#define OF_ATTEMPT (ERROR | HOLDER | TTL)

struct answers_fixture {
    struct counted counted;
    struct alloc alloc;
    struct node_result results[NODES];
};

static int setup(void **state)
{
    static struct answers_fixture f;
    struct alloc_hooks hooks;

    memset(&f, 0, sizeof(f));
    hooks = counted_hooks(&f.counted);
    f.counted.until_failure = -1;
    alloc_init(&f.alloc, &hooks);
    *state = &f;
    return 0;
}

static void clear_all(struct answers_fixture *f)
{
    for (uint32_t i = 0; i < NODES; i++) {
        result_clear(&f->results[i], &f->alloc);
        result_clear_release(&f->results[i], &f->alloc);
        assert_null(f->results[i].answer);
    }
    assert_int_equal(f->counted.out, 0);
}

#define ANSWERS_TEST(name) TEST_WITH(answers_fixture, name, setup, NULL)

static bool take(struct answers_fixture *f, uint32_t node, uint64_t attempt, const char *holder)
{
    const struct node_reply reply = {
        .ttl_ms = 500, .holder = holder, .holder_length = holder != NULL ? strlen(holder) : 0, .error = NULL};

    return result_take(&f->results[node], &f->alloc, attempt, &reply);
}

/* The node says what these bits name. */
static void say(struct answers_fixture *f, int bits)
{
    const struct node_reply attempt = {.error = (bits & ERROR) != 0 ? "late" : NULL,
                                       .holder = (bits & HOLDER) != 0 ? "bob, not ann" : NULL,
                                       .holder_length = 3,
                                       .ttl_ms = (bits & TTL) != 0 ? 500 : -2};
    const struct node_reply release = {.error = (bits & RELEASE_ERROR) != 0 ? "down" : NULL,
                                       .holder = (bits & RELEASE_HOLDER) != 0 ? "carl, not ann" : NULL,
                                       .holder_length = 4,
                                       .ttl_ms = -2};

    if ((bits & OF_ATTEMPT) != 0) (void)result_take(&f->results[0], &f->alloc, 7, &attempt);
    if ((bits & ~OF_ATTEMPT) == 0) return;
    f->results[0].released = QUORLOCK_VOTE_PENDING;
    result_take_release(&f->results[0], &f->alloc, &release);
}

static void expect_text(const char *text, bool there, const char *wanted)
{
    if (!there) {
        assert_null(text);
    } else {
        assert_non_null(text);
        assert_string_equal(text, wanted);
    }
}

static void expect(const struct answer_texts *answer, int bits)
{
    expect_text(answer->error, (bits & ERROR) != 0, "late");
    expect_text(answer->holder, (bits & HOLDER) != 0, "bob");
    assert_int_equal(answer->ttl_ms, (bits & TTL) != 0 ? 500 : -2);
    expect_text(answer->release_error, (bits & RELEASE_ERROR) != 0, "down");
    expect_text(answer->release_holder, (bits & RELEASE_HOLDER) != 0, "carl");
}

static void expect_now(const struct answers_fixture *f, int bits)
{
    assert_int_equal(f->results[0].answer != NULL, bits != 0);
    expect(answer_read(f->results[0].answer), bits);
}

/* One part goes, the other stays, and a callback that reads the answer meanwhile sees what it was handed. */
static void expect_part_goes(struct answers_fixture *f, int said, bool release_goes, bool is_read)
{
    struct answer_texts *read;

    say(f, said);
    expect_now(f, said);
    read = is_read ? f->results[0].answer : NULL;
    answer_share(read);
    if (release_goes) {
        result_clear_release(&f->results[0], &f->alloc);
    } else {
        f->results[0].latency_us = 12;
        result_clear(&f->results[0], &f->alloc);
        assert_int_equal(f->results[0].latency_us, 0);
    }
    expect_now(f, said & (release_goes ? OF_ATTEMPT : ~OF_ATTEMPT));
    if (read != NULL) expect(read, said);
    answer_unshare(read, &f->alloc);
    clear_all(f);
}

ANSWERS_TEST(each_part_of_an_answer_goes_alone)
{
    for (int said = 0; said <= ALL; said++) {
        for (int is_read = 0; is_read <= 1; is_read++) {
            expect_part_goes(f, said, false, is_read != 0);
            expect_part_goes(f, said, true, is_read != 0);
        }
    }
}

/* What a node says takes the place of what it said before, but only of that part. */
static void expect_replaced(struct answers_fixture *f, int said, int then, bool is_read)
{
    int replaced = (then & OF_ATTEMPT) != 0 ? OF_ATTEMPT : 0;
    struct answer_texts *read;

    if ((then & ~OF_ATTEMPT) != 0) replaced |= ALL & ~OF_ATTEMPT;
    say(f, said);
    read = is_read ? f->results[0].answer : NULL;
    answer_share(read);
    say(f, then);
    expect_now(f, (said & ~replaced) | then);
    if (read != NULL) expect(read, said);
    answer_unshare(read, &f->alloc);
    clear_all(f);
}

ANSWERS_TEST(an_answer_takes_the_place_of_the_one_before)
{
    for (int said = 0; said <= ALL; said++) {
        for (int then = 0; then <= ALL; then++) {
            expect_replaced(f, said, then, false);
            expect_replaced(f, said, then, true);
        }
    }
}

ANSWERS_TEST(a_plain_yes_leaves_no_text)
{
    const struct node_reply yes = {.outcome = OUTCOME_YES, .ttl_ms = -2};

    say(f, ALL);
    assert_false(result_take(&f->results[0], &f->alloc, 8, &yes));
    expect_now(f, ALL & ~OF_ATTEMPT);
    f->results[0].released = QUORLOCK_VOTE_PENDING;
    result_take_release(&f->results[0], &f->alloc, &yes);
    expect_now(f, 0);
    assert_int_equal(f->counted.out, 0);
}

/* The last of two readers frees it. */
ANSWERS_TEST(several_callbacks_read_an_answer)
{
    struct answer_texts *read;

    say(f, ALL);
    read = f->results[0].answer;
    answer_share(read);
    answer_share(read);
    result_clear(&f->results[0], &f->alloc);
    result_clear_release(&f->results[0], &f->alloc);
    answer_unshare(read, &f->alloc);
    expect(read, ALL);
    answer_unshare(read, &f->alloc);
    assert_int_equal(f->counted.out, 0);
}

ANSWERS_TEST(an_answer_that_was_read_and_stays_is_not_freed)
{
    say(f, ALL);
    answer_share(f->results[0].answer);
    answer_unshare(f->results[0].answer, &f->alloc);
    expect_now(f, ALL);
    clear_all(f);
}

/* Without memory for its texts an answer is as if the node had said nothing, and nothing leaks. */
ANSWERS_TEST(without_memory_a_text_is_missing)
{
    for (int then = 1; then <= ALL; then++) {
        for (long until = 0; until < 8; until++) {
            struct answer_texts *read;

            say(f, ALL);
            read = f->results[0].answer;
            answer_share(read);
            f->counted.until_failure = until;
            f->counted.for_good = true;
            say(f, then);
            f->counted.until_failure = -1;
            f->counted.for_good = false;
            expect(read, ALL);
            answer_unshare(read, &f->alloc);
            clear_all(f);
        }
    }
    f->counted.until_failure = 1;
    say(f, RELEASE_ERROR);
    expect_now(f, 0);
    f->counted.until_failure = -1;
    assert_int_equal(f->counted.out, 0);
}

ANSWERS_TEST(a_holder_is_news_once)
{
    assert_true(take(f, 0, 1, "bob"));
    assert_false(take(f, 0, 1, "bob"));
    assert_false(take(f, 0, 2, "bob"));
    assert_false(take(f, 0, 2, NULL));
    assert_false(take(f, 0, 3, "bob"));
    assert_true(take(f, 0, 3, "ann"));
    assert_true(take(f, 0, 3, "bob"));
    assert_true(take(f, 1, 3, "bob"));
    clear_all(f);
}

/* Each node but the first named a holder in attempt 1; now the first names one. */
ANSWERS_TEST(a_new_holder_takes_the_place_of_those_of_earlier_attempts)
{
    static const struct {
        const char *before, *now;
        uint64_t attempt;
        bool stays;
    } rows[] = {
        {"bob", "ann", 2, false},
        {"bob", "bob", 2, true},
        {"bob", "ann", 1, true},
        {NULL, "ann", 2, true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct node_result *other = &f->results[2];

        (void)take(f, 2, 1, rows[i].before);
        (void)take(f, 0, rows[i].attempt, rows[i].now);
        results_forget_others(f->results, NODES, &f->alloc, 0);
        assert_int_equal(other->answer != NULL, rows[i].stays);
        expect_text(answer_read(other->answer)->holder, rows[i].stays && rows[i].before != NULL, "bob");
        assert_int_equal(answer_read(other->answer)->ttl_ms, rows[i].stays ? 500 : -2);
        expect_text(f->results[0].answer->holder, true, rows[i].now);
        clear_all(f);
    }
}

ANSWERS_TEST(the_outcome_of_a_release)
{
    static const struct {
        enum outcome outcome;
        enum fault fault;
        enum quorlock_vote_outcome released;
    } rows[] = {
        {OUTCOME_YES, FAULT_NONE, QUORLOCK_VOTE_GRANTED},       {OUTCOME_MISSING, FAULT_NONE, QUORLOCK_VOTE_REFUSED},
        {OUTCOME_OTHER, FAULT_NONE, QUORLOCK_VOTE_REFUSED},     {OUTCOME_ERROR, FAULT_FOREIGN, QUORLOCK_VOTE_REFUSED},
        {OUTCOME_ERROR, FAULT_TEMPORARY, QUORLOCK_VOTE_FAILED}, {OUTCOME_UNKNOWN, FAULT_TIMEOUT, QUORLOCK_VOTE_FAILED},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct node_reply reply = {.outcome = rows[i].outcome, .fault = rows[i].fault, .ttl_ms = -2};

        f->results[0].released = QUORLOCK_VOTE_PENDING;
        result_take_release(&f->results[0], &f->alloc, &reply);
        assert_int_equal(f->results[0].released, rows[i].released);
    }
}

/* It is of an earlier release. */
ANSWERS_TEST(an_answer_to_a_release_that_nobody_awaits_is_left_out)
{
    const struct node_reply reply = {.outcome = OUTCOME_ERROR, .error = "down", .ttl_ms = -2};

    f->results[0].released = QUORLOCK_VOTE_GRANTED;
    result_take_release(&f->results[0], &f->alloc, &reply);
    assert_int_equal(f->results[0].released, QUORLOCK_VOTE_GRANTED);
    expect_now(f, 0);
}
