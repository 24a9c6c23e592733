/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_candidates.c - candidates, one of which leads, and observers, with real servers
 *
 * test_elect.py has leaders that are stopped or killed.
 */
#include "election_fixture.h"

/* ---- one candidate ---- */

CLIENT_TEST(a_candidate_is_elected_and_resigns)
{
    static struct seat seat;
    static struct watcher watcher;

    no_seats();
    sit(&seat, fixture.client, "10.0.0.7:80", LONG_LEASE_MS);
    assert_int_equal(quorlock_candidate_term(seat.candidate), 0);
    assert_int_equal(quorlock_candidate_resign(seat.candidate), QUORLOCK_ERR_STATE);
    observe(&watcher, fixture.client, 0);
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    assert_int_equal(watcher.leader.term, 0);
    stand(&seat);
    assert_int_equal(quorlock_candidate_stand(seat.candidate), QUORLOCK_ERR_STATE);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    assert_string_equal(watcher.text, "10.0.0.7:80");
    assert_int_equal(strncmp(watcher.owner, "10.0.0.7:80:", 12), 0);
    await_holders(NAME, watcher.owner, 3);
    assert_true(watcher.leader.valid_ms > LONG_LEASE_MS / 2);
    resign(&seat);
    assert_int_equal(quorlock_candidate_valid_ms(seat.candidate), 0);
    assert_int_equal(quorlock_candidate_resign(seat.candidate), QUORLOCK_ERR_STATE);
    await_count(&seat.ended, 1, GENEROUS_MS, "the end");
    assert_status(seat.status, QUORLOCK_OK);
    await_free(NAME);
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    assert_true(watcher.leader.term == seat.term);
    /* The same one again, by a higher term; and as a pure observer of itself. */
    stand(&seat);
    await_count(&seat.elected, 2, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    assert_int_equal(watcher.calls, 4);
    quorlock_candidate_free(seat.candidate);
    await_free(NAME);
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    assert_int_equal(seat.ended, 1);
    assert_int_equal(seat.deposed, 0);
    quorlock_observer_free(watcher.observer);
}

CLIENT_TEST(invalid_options_are_refused)
{
    static const char *const long_text = "0123456789012345678901234567890123456789012345678901234567890123456789";
    struct quorlock_candidate_options options = CANDIDATE(.advertise = long_text);
    struct quorlock_observer_options watching = {.size = sizeof(watching)};
    quorlock_candidate *candidate = NULL;
    quorlock_observer *observer = NULL;
    quorlock_client *client = fixture.client;

    assert_int_equal(quorlock_candidate_new(&candidate, client, NAME, &options), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "the advertised text has 70 characters: at most 64"));
    options.advertise = "my host";
    assert_int_equal(quorlock_candidate_new(&candidate, client, NAME, &options), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "the advertised text \"my host\""));
    options.advertise = "";
    assert_int_equal(quorlock_candidate_new(&candidate, client, NAME, &options), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "the advertised text is empty"));
    options.advertise = NULL;
    assert_int_equal(quorlock_candidate_new(&candidate, client, "", &options), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_candidate_new(&candidate, client, "quorlock:x", &options), QUORLOCK_ERR_INVAL);
    options.lease_ms = 2 * LONG_LEASE_MS;
    assert_int_equal(quorlock_candidate_new(&candidate, client, NAME, &options), QUORLOCK_ERR_INVAL);
    assert_null(candidate);
    assert_int_equal(quorlock_observer_new(&observer, client, NAME, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_observer_new(&observer, client, NAME, &watching), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "changed is NULL"));
    watching.changed = on_leader;
    watching.poll_ms = 9;
    assert_int_equal(quorlock_observer_new(&observer, client, NAME, &watching), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "poll_ms is 9"));
    watching.poll_ms = 3600001;
    assert_int_equal(quorlock_observer_new(&observer, client, NAME, &watching), QUORLOCK_ERR_INVAL);
    assert_null(observer);
    quorlock_candidate_free(NULL);
    quorlock_observer_free(NULL);
}

REDISSON_TEST(the_redisson_dialect_has_no_elections)
{
    struct quorlock_candidate_options options = CANDIDATE(.lease_ms = 0);
    struct quorlock_observer_options watching = {.size = sizeof(watching), .changed = on_leader};
    quorlock_candidate *candidate = NULL;
    quorlock_observer *observer = NULL;

    assert_int_equal(quorlock_candidate_new(&candidate, fixture.client, NAME, &options), QUORLOCK_ERR_UNSUPPORTED);
    assert_non_null(strstr(quorlock_client_error(fixture.client), "redisson dialect"));
    assert_int_equal(quorlock_observer_new(&observer, fixture.client, NAME, &watching), QUORLOCK_ERR_UNSUPPORTED);
    assert_null(candidate);
    assert_null(observer);
}

CLIENT_TEST(a_terms_counter_lives_as_long_as_was_asked_for)
{
    static struct seat seat;
    int64_t left_ms;

    no_seats();
    sit_with(&seat, fixture.client, &CANDIDATE(.arg = &seat, .lease_ms = LONG_LEASE_MS, .fence_ttl_ms = LONG_LEASE_MS));
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await_holders(NAME, NULL, 3);
    for (int i = 0; i < 3; i++) {
        left_ms = server_pttl(SERVER(i), "quorlock:fence:" NAME);
        assert_in_range(left_ms, LONG_LEASE_MS / 2, 2 * LONG_LEASE_MS);
    }
}

CLIENT_TEST(a_key_that_is_no_lock_ends_the_candidate)
{
    static struct seat seat;
    static struct watcher watcher;

    no_seats();
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "RPUSH " NAME " x");
    sit(&seat, fixture.client, "a", LONG_LEASE_MS);
    observe(&watcher, fixture.client, 0);
    stand(&seat);
    await_count(&seat.ended, 1, GENEROUS_MS, "the end");
    assert_status(seat.status, QUORLOCK_ERR_FOREIGN);
    assert_true(strlen(seat.text) > 0);
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    /* Once the key is free it may stand again. */
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "DEL " NAME);
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
}

/* ---- handing over ---- */

/* The lease is long: only the notice can be why the other one is elected. */
SERVERS_TEST(a_leader_that_resigns_hands_over)
{
    static struct seat a, b;
    static struct watcher watcher;
    quorlock_client *other;
    long long before, most;
    uint64_t begun_us;

    no_seats();
    fixture_client(3);
    other = fixture_new_client(3);
    sit(&a, fixture.client, "a", LONG_LEASE_MS);
    sit(&b, other, "b", LONG_LEASE_MS);
    observe(&watcher, other, 0);
    stand(&a);
    await_count(&a.elected, 1, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    stand(&b);
    run_ms(300); /* it subscribes */
    assert_int_equal(b.elected, 0);
    before = lock_calls();
    begun_us = clock_us();
    resign(&a);
    await_count(&b.elected, 1, GENEROUS_MS, "the other's election");
    /* Releases and acquires, three each, some looks of waiter and observer: no storm, and no polling for seconds. On a
     * busy machine a hand-over takes longer, and has more looks. */
    most = 24 + (long long)((clock_us() - begun_us) / 5000);
    assert_true(lock_calls() - before <= most);
    assert_true(b.term > a.term);
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    assert_string_equal(watcher.text, "b");
    await_count(&a.ended, 1, GENEROUS_MS, "the end");
    quorlock_observer_free(watcher.observer);
}

/* ---- deposed ---- */

struct deposal {
    const struct seat *seat;
    int wanted; /* times that it was deposed */
};

/* Its keys are gone when a quorum tells so. Deleted once they may come back before: by an acquire that is on its way,
 * for a server may have had the key of the leader before until now, or by a repair, if one server tells later. */
static bool is_deposed(void *arg)
{
    const struct deposal *deposal = arg;

    if (deposal->seat->deposed >= deposal->wanted) return true;
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL " NAME);
    return false;
}

static void depose(const struct seat *seat)
{
    struct deposal deposal = {seat, seat->deposed + 1};

    await(is_deposed, &deposal, GENEROUS_MS, "deposed");
}

CLIENT_TEST(a_deposed_leader_stands_again)
{
    static struct seat seat;
    static struct watcher watcher;

    no_seats();
    sit(&seat, fixture.client, "a", 2000);
    observe(&watcher, fixture.client, 50);
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    depose(&seat);
    await_count(&seat.elected, 2, GENEROUS_MS, "election");
    /* The one that it was deposed from may have acted as the leader until then. */
    assert_true(seat.elected_us >= seat.deposed_us + (uint64_t)seat.remaining_ms * 1000);
    assert_int_equal(seat.ended, 0);
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    /* Resigned from while it pauses. */
    depose(&seat);
    resign(&seat);
    await_count(&seat.ended, 1, GENEROUS_MS, "the end");
    assert_status(seat.status, QUORLOCK_OK);
    await_free(NAME);
    run_ms(300);
    assert_int_equal(seat.elected, 2);
}

/* No renewal has found the keys gone yet. The answers to the release show it, so the candidate ends with LOST. */
CLIENT_TEST(a_leader_whose_keys_are_gone_ends_with_lost_when_it_resigns)
{
    static struct seat seat;

    no_seats();
    sit(&seat, fixture.client, "a", LONG_LEASE_MS);
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await_holders(NAME, NULL, 3);
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL " NAME);
    resign(&seat);
    assert_int_equal(quorlock_candidate_resign(seat.candidate), QUORLOCK_ERR_STATE);
    await_count(&seat.ended, 1, GENEROUS_MS, "the end");
    assert_status(seat.status, QUORLOCK_ERR_LOST);
    assert_int_equal(seat.deposed, 0);
    await_free(NAME);
    /* That was of one term. */
    stand(&seat);
    await_count(&seat.elected, 2, GENEROUS_MS, "election");
    resign(&seat);
    await_count(&seat.ended, 2, GENEROUS_MS, "the end");
    assert_status(seat.status, QUORLOCK_OK);
}

/* ---- an observer that cannot know ---- */

CLIENT_TEST(an_observer_says_that_it_does_not_know)
{
    static struct seat seat;
    static struct watcher watcher;

    no_seats();
    sit(&seat, fixture.client, "a", LONG_LEASE_MS);
    observe(&watcher, fixture.client, 50);
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    server_kill(SERVER(0));
    server_kill(SERVER(1));
    await(knows_nothing, &watcher, GENEROUS_MS, "that it does not know");
    assert_true(watcher.leader.term == seat.term);
    server_start(SERVER(0));
    server_start(SERVER(1));
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
}

/* One look that waited for it would take longer than a test waits for anything. */
CLIENT_TEST(a_frozen_node_delays_no_observer)
{
    static struct seat seat;
    static struct watcher watcher;

    no_seats();
    fixture_close(fixture.client);
    fixture.options.node_timeout_ms = 40000;
    fixture.options.max_lease_ms = 3 * LONG_LEASE_MS;
    fixture_client(3);
    sit(&seat, fixture.client, "a", 3 * LONG_LEASE_MS);
    observe(&watcher, fixture.client, 50);
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    server_freeze(SERVER(1));
    for (int i = 0; i < 5; i++) {
        stand(&seat);
        await_count(&seat.elected, i + 1, GENEROUS_MS, "election");
        await(knows_of, &watcher, GENEROUS_MS, "the leader");
        resign(&seat);
        await_count(&seat.ended, i + 1, GENEROUS_MS, "the end");
        await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    }
    server_thaw(SERVER(1));
}

static bool is_listened_to(void *unused)
{
    (void)unused;
    return server_ask_number(SERVER(0), "EVAL %s 0",
                             "return redis.call('PUBSUB', 'NUMSUB', 'quorlock:released:" NAME "')[2]") > 0;
}

static bool third_is_waited_for(void *unused)
{
    struct quorlock_statistics seen = {.size = sizeof(seen)};

    (void)unused;
    assert_status(quorlock_client_statistics(fixture.client, &seen), QUORLOCK_OK);
    return seen.nodes[2]->in_flight > 0 && seen.nodes[0]->in_flight + seen.nodes[1]->in_flight == 0;
}

static bool knows_some(void *watcher)
{
    return ((const struct watcher *)watcher)->leader.state == QUORLOCK_LEADER_KNOWN;
}

/* The counters differ, so a look waits for the frozen node for a moment after the others' answers, which are old then.
 * There is no poll. */
CLIENT_TEST(a_notice_during_a_look_is_heeded)
{
    static struct watcher watcher;

    no_seats();
    for (int i = 0; i < 3; i++) {
        server_do(SERVER(i), "SET quorlock:fence:" NAME " %d", i == 0 ? 5 : 7);
        server_do(SERVER(i), "SET " NAME " a:0123456789012345678901234567890123456789 PX 3600000");
    }
    observe(&watcher, fixture.client, 3600000);
    await(knows_some, &watcher, GENEROUS_MS, "the leader");
    await(is_listened_to, NULL, GENEROUS_MS, "the subscription");
    server_freeze(SERVER(2));
    server_do(SERVER(0), "PUBLISH quorlock:released:" NAME " x");
    await(third_is_waited_for, NULL, GENEROUS_MS, "two answers");
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL " NAME);
    server_do(SERVER(0), "PUBLISH quorlock:released:" NAME " x");
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    server_thaw(SERVER(2));
    quorlock_observer_free(watcher.observer);
}

/* A lock without a term is no leader, although the last leader's counter is still there. */
CLIENT_TEST(a_plain_lock_is_no_leader)
{
    static struct seat seat;
    static struct watcher watcher;
    struct seen seen;
    quorlock_lock *lock = fixture_lock(fixture.client, NAME, LEASE(LONG_LEASE_MS));

    no_seats();
    sit(&seat, fixture.client, "a", LONG_LEASE_MS);
    observe(&watcher, fixture.client, 20);
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    resign(&seat);
    await_count(&seat.ended, 1, GENEROUS_MS, "the end");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    stand(&seat);
    run_ms(200);
    assert_int_equal(seat.elected, 1);
    assert_true(knows_none(&watcher));
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_count(&seat.elected, 2, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
}

/* ---- freeing and closing, in any state ---- */

CLIENT_TEST(handles_may_be_freed_in_their_callbacks)
{
    static struct seat elected, deposed, waiting;
    static struct watcher watcher;

    no_seats();
    observe(&watcher, fixture.client, 0);
    watcher.free_when_told = true;
    await_count(&watcher.calls, 1, GENEROUS_MS, "the first look");
    sit(&elected, fixture.client, "a", 2000);
    sit(&deposed, fixture.client, "b", 2000);
    sit(&waiting, fixture.client, "c", 2000);
    elected.free_when_elected = deposed.free_when_deposed = true;
    stand(&elected);
    await_count(&elected.elected, 1, GENEROUS_MS, "election");
    stand(&deposed);
    await_count(&deposed.elected, 1, GENEROUS_MS, "election");
    stand(&waiting);
    quorlock_candidate_free(waiting.candidate);
    waiting.candidate = NULL;
    depose(&deposed);
    await_free(NAME);
    assert_int_equal(waiting.elected + waiting.ended + elected.ended + deposed.ended, 0);
}

SERVERS_TEST(a_client_that_closes_ends_all_of_them)
{
    static struct seat leading, waiting, idle, resigning;
    static struct watcher watcher;

    no_seats();
    fixture_client(3);
    sit(&leading, fixture.client, "a", LONG_LEASE_MS);
    sit(&waiting, fixture.client, "b", LONG_LEASE_MS);
    sit(&resigning, fixture.client, "c", LONG_LEASE_MS);
    sit(&idle, fixture.client, "d", LONG_LEASE_MS);
    observe(&watcher, fixture.client, 10);
    stand(&leading);
    await_count(&leading.elected, 1, GENEROUS_MS, "election");
    stand(&waiting);
    stand(&resigning);
    resign(&resigning);
    no_more_checks();
    fixture_close(fixture.client);
    assert_int_equal(leading.ended, 1);
    assert_status(leading.status, QUORLOCK_ERR_CLOSED);
    assert_int_equal(waiting.ended, 1);
    assert_status(waiting.status, QUORLOCK_ERR_CLOSED);
    assert_int_equal(resigning.ended, 1);
    assert_int_equal(idle.ended, 0);
    cluster_await_free(&fixture.cluster, NAME);
}
