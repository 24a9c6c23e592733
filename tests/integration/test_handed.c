/* SPDX-License-Identifier: BSD-3-Clause */
/* test_handed.c - what a callback is handed is good until it returns, whatever it does; the sanitizer sees the rest */
#include <quorlock/election.h>

#include "fixture.h"

#define OTHER "somebody-else-0123456789"

/* What a callback read before it did something, and after that. */
struct handed {
    int calls, done;
    bool again; /* it acquires anew */
    bool frees;
    char before[QUORLOCK_NODES_MAX][2 * TEXT_SIZE], after[QUORLOCK_NODES_MAX][2 * TEXT_SIZE];
    size_t n;
};

static void read_votes(char ret[][2 * TEXT_SIZE], const struct quorlock_vote *const *votes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(ret[i], sizeof(ret[i]), "%s: %s, %s", votes[i]->node,
                       votes[i]->holder != NULL ? votes[i]->holder : "no holder",
                       votes[i]->error != NULL ? votes[i]->error : "no error");
    }
}

static void count_end(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    int *done = arg;

    ++*done;
}

/* All that makes a lock forget what the nodes said. */
static void do_all(struct handed *handed, quorlock_lock *lock)
{
    if (quorlock_lock_valid_ms(lock) > 0) assert_status(quorlock_lock_release(lock, NULL, NULL), QUORLOCK_OK);
    if (handed->again) assert_status(quorlock_lock_acquire(lock, count_end, &handed->done), QUORLOCK_OK);
    if (handed->frees) quorlock_lock_free(lock);
}

static void act(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct handed *handed = arg;

    handed->n = result->n_votes;
    read_votes(handed->before, result->votes, result->n_votes);
    do_all(handed, lock);
    read_votes(handed->after, result->votes, result->n_votes);
    handed->calls++;
}

static void act_on_loss(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct handed *handed = arg;

    handed->n = loss->n_votes;
    read_votes(handed->before, loss->votes, loss->n_votes);
    assert_status(quorlock_lock_release(lock, NULL, NULL), QUORLOCK_OK);
    do_all(handed, lock);
    read_votes(handed->after, loss->votes, loss->n_votes);
    handed->calls++;
}

static void assert_same(const struct handed *handed)
{
    assert_int_equal(handed->n, 3);
    for (size_t i = 0; i < handed->n; i++) assert_string_equal(handed->before[i], handed->after[i]);
}

/* The verdict does not wait for all of them. */
static void assert_named(const struct handed *handed, const char *holder)
{
    int named = 0;

    for (size_t i = 0; i < handed->n; i++) named += strstr(handed->before[i], holder) != NULL;
    assert_true(named >= 2);
}

static void lose_to_another(void)
{
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SET handed " OTHER " PX %u", LONG_LEASE_MS);
}

/* Another client holds the key; the callback of the refusal acquires again, and may free the lock. */
static void be_refused(bool frees)
{
    static struct handed handed;
    quorlock_lock *lock = fixture_lock(fixture.client, "handed", LEASE(LONG_LEASE_MS));

    handed = (struct handed){.again = true, .frees = frees};
    take_by_hand(3, "handed", OTHER);
    assert_status(quorlock_lock_acquire(lock, act, &handed), QUORLOCK_OK);
    await_count(&handed.done, 1, GENEROUS_MS, "the next acquire has ended, too");
    assert_same(&handed);
    assert_named(&handed, OTHER);
}

CLIENT_TEST(votes_outlive_the_next_acquire)
{
    be_refused(false);
}

CLIENT_TEST(votes_outlive_their_lock)
{
    be_refused(true);
}

CLIENT_TEST(votes_of_a_loss_outlive_the_next_acquire)
{
    static struct handed handed;
    static struct seen acquired;
    quorlock_lock *lock = fixture_lock(fixture.client, "handed", LEASE(KEPT_LEASE_MS, .renew_ms = 100));

    handed = (struct handed){.again = true};
    quorlock_lock_set_on_lost(lock, act_on_loss, &handed);
    assert_status(fixture_acquire(lock, &acquired), QUORLOCK_OK);
    lose_to_another();
    await_count(&handed.done, 1, GENEROUS_MS, "the acquire in the callback has ended, too");
    assert_int_equal(handed.calls, 1);
    assert_same(&handed);
}

/* ---- elections ---- */

struct stood {
    quorlock_candidate *candidate, *next;
    int ended;
    char before[TEXT_SIZE], after[TEXT_SIZE];
};

static void free_when_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    struct stood *stood = arg;

    (void)snprintf(stood->before, sizeof(stood->before), "%s", text);
    quorlock_candidate_free(candidate);
    /* Perhaps in the same memory. */
    assert_status(quorlock_candidate_new(&stood->next, fixture.client, "next", NULL), QUORLOCK_OK);
    (void)snprintf(stood->after, sizeof(stood->after), "%s", text);
    stood->ended++;
}

CLIENT_TEST(the_text_of_an_end_outlives_its_candidate)
{
    static struct stood stood;
    struct quorlock_candidate_options options = {.size = sizeof(options), .ended = free_when_ended, .arg = &stood};

    stood = (struct stood){.ended = 0};
    assert_status(quorlock_candidate_new(&stood.candidate, fixture.client, "handed", &options), QUORLOCK_OK);
    assert_status(quorlock_candidate_stand(stood.candidate), QUORLOCK_OK);
    assert_status(quorlock_candidate_resign(stood.candidate), QUORLOCK_OK);
    await_count(&stood.ended, 1, GENEROUS_MS, "the end");
    assert_string_equal(stood.before, "it has resigned");
    assert_string_equal(stood.before, stood.after);
}
