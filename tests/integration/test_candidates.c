/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_candidates.c - candidates, one of which leads, and observers, with real servers
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "election_fixture.h"

/* ---- one candidate ---- */

CLIENT_TEST(a_candidate_is_elected_and_resigns)
{
    static struct seat seat;
    static struct watcher watcher;

    no_seats();
    sit(&seat, fixture.client, "10.0.0.7:80", LONG_LEASE_MS);
    assert_int_equal(quorlock_candidate_term(seat.candidate), 0);
    assert_int_equal(quorlock_resign(seat.candidate), QUORLOCK_STATE);
    observe(&watcher, fixture.client, 0);
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    assert_int_equal(watcher.leader.term, 0);
    stand(&seat);
    assert_int_equal(quorlock_stand(seat.candidate), QUORLOCK_STATE);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    assert_string_equal(watcher.text, "10.0.0.7:80");
    assert_int_equal(strncmp(watcher.owner, "10.0.0.7:80:", 12), 0);
    await_holders(NAME, watcher.owner, 3);
    assert_true(watcher.leader.valid_ms > LONG_LEASE_MS / 2);
    resign(&seat);
    assert_int_equal(quorlock_candidate_valid_ms(seat.candidate), 0);
    assert_int_equal(quorlock_resign(seat.candidate), QUORLOCK_STATE);
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

/* What stands behind the end of a struct, or in it, is checked like anywhere else. */
CLIENT_TEST(what_cannot_be_is_refused)
{
    static const char *const long_text = "0123456789012345678901234567890123456789012345678901234567890123456789";
    struct quorlock_candidate_options options = CANDIDATE(.advertise = long_text);
    struct quorlock_observer_options watching = {.size = sizeof(watching)};
    quorlock_candidate *candidate = NULL;
    quorlock_observer *observer = NULL;
    quorlock_client *client = fixture.client;

    assert_int_equal(quorlock_candidate_new(&candidate, client, NAME, &options), QUORLOCK_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "the advertised text has 70 characters: at most 64"));
    options.advertise = "my host";
    assert_int_equal(quorlock_candidate_new(&candidate, client, NAME, &options), QUORLOCK_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "the advertised text \"my host\""));
    options.advertise = "";
    assert_int_equal(quorlock_candidate_new(&candidate, client, NAME, &options), QUORLOCK_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "the advertised text is empty"));
    options.advertise = NULL;
    assert_int_equal(quorlock_candidate_new(&candidate, client, "", &options), QUORLOCK_INVAL);
    assert_int_equal(quorlock_candidate_new(&candidate, client, "quorlock:x", &options), QUORLOCK_INVAL);
    options.lease_ms = 2 * LONG_LEASE_MS;
    assert_int_equal(quorlock_candidate_new(&candidate, client, NAME, &options), QUORLOCK_INVAL);
    assert_null(candidate);
    assert_int_equal(quorlock_observe(&observer, client, NAME, NULL), QUORLOCK_INVAL);
    assert_int_equal(quorlock_observe(&observer, client, NAME, &watching), QUORLOCK_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "changed is NULL"));
    watching.changed = on_leader;
    watching.poll_ms = 9;
    assert_int_equal(quorlock_observe(&observer, client, NAME, &watching), QUORLOCK_INVAL);
    assert_non_null(strstr(quorlock_client_error(client), "poll_ms is 9"));
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

    assert_int_equal(quorlock_candidate_new(&candidate, fixture.client, NAME, &options), QUORLOCK_UNSUPPORTED);
    assert_non_null(strstr(quorlock_client_error(fixture.client), "redisson dialect"));
    assert_int_equal(quorlock_observe(&observer, fixture.client, NAME, &watching), QUORLOCK_UNSUPPORTED);
    assert_null(candidate);
    assert_null(observer);
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
    assert_status(seat.status, QUORLOCK_FOREIGN);
    assert_true(strlen(seat.text) > 0);
    await(knows_none, &watcher, GENEROUS_MS, "that nobody leads");
    /* It may stand again when that is mended. */
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "DEL " NAME);
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
}

/* ---- handing over ---- */

/* The lease is long: only the notice can be why the other one is elected. */
static void hand_over(int policy)
{
    static struct seat a, b;
    static struct watcher watcher;
    quorlock_client *other;
    long long before, most;
    uint64_t begun_us;

    no_seats();
    fixture.options.policy = policy;
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

SERVERS_TEST(a_leader_that_resigns_hands_over)
{
    hand_over(QUORLOCK_MAJORITY);
}

SERVERS_TEST(a_leader_of_all_nodes_hands_over)
{
    hand_over(QUORLOCK_ALL);
}

/* Every candidate stands again when its end was told; whoever leads resigns. */
SERVERS_TEST(two_never_lead_and_terms_rise)
{
    static struct seat all[9];
    static struct watcher watchers[3];
    quorlock_client *clients[3];
    size_t wanted = 120;
    size_t n_leaders = 0;

    no_seats();
    for (int i = 0; i < 3; i++) clients[i] = fixture_new_client(3);
    for (int i = 0; i < 3; i++) observe(&watchers[i], clients[i], 20);
    for (size_t i = 0; i < LENGTH(all); i++) {
        char name[16];

        snprintf(name, sizeof(name), "host%zu", i);
        sit(&all[i], clients[i % 3], name, 2000);
        all[i].stand_when_ended = true;
        stand(&all[i]);
    }
    while (reigns.n < wanted) {
        size_t n = reigns.n;

        for (size_t i = 0; i < LENGTH(all); i++)
            if (all[i].leads) resign(&all[i]);
        if (n % 40 == 20) server_restart(SERVER(n % 3));
        while (reigns.n == n) event_base_loop(fixture.base, EVLOOP_ONCE);
    }
    for (int i = 0; i < 3; i++) {
        await(knows_of, &watchers[i], GENEROUS_MS, "the leader");
        assert_string_equal(watchers[i].text, reigns.of[reigns.n - 1]->advertised);
        assert_true(watchers[i].calls > 3);
    }
    for (size_t i = 0; i < LENGTH(all); i++) n_leaders += all[i].elected > 0;
    assert_true(n_leaders > 1);
}

/* ---- deposed ---- */

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
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL " NAME);
    await_count(&seat.deposed, 1, GENEROUS_MS, "deposed");
    await_count(&seat.elected, 2, GENEROUS_MS, "election");
    /* The one that it was deposed from may have acted as the leader until then. */
    assert_true(seat.elected_us >= seat.deposed_us + (uint64_t)seat.remaining_ms * 1000);
    assert_int_equal(seat.ended, 0);
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    /* Resigned from while it pauses. */
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL " NAME);
    await_count(&seat.deposed, 2, GENEROUS_MS, "deposed");
    resign(&seat);
    await_count(&seat.ended, 1, GENEROUS_MS, "the end");
    assert_status(seat.status, QUORLOCK_OK);
    await_free(NAME);
    run_ms(300);
    assert_int_equal(seat.elected, 2);
}

/* No renewal has shown it yet. Only the answers to the release do, and the end of the candidate says so. */
CLIENT_TEST(a_leader_that_was_none_any_more_is_told_when_it_resigns)
{
    static struct seat seat;

    no_seats();
    sit(&seat, fixture.client, "a", LONG_LEASE_MS);
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await_holders(NAME, NULL, 3);
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL " NAME);
    resign(&seat);
    assert_int_equal(quorlock_resign(seat.candidate), QUORLOCK_STATE);
    await_count(&seat.ended, 1, GENEROUS_MS, "the end");
    assert_status(seat.status, QUORLOCK_LOST);
    assert_int_equal(seat.deposed, 0);
    await_free(NAME);
    /* That was of one term. */
    stand(&seat);
    await_count(&seat.elected, 2, GENEROUS_MS, "election");
    resign(&seat);
    await_count(&seat.ended, 2, GENEROUS_MS, "the end");
    assert_status(seat.status, QUORLOCK_OK);
}

CLIENT_TEST(servers_that_come_back_do_not_depose)
{
    static struct seat seat;
    static struct watcher watcher;
    char owner[TEXT_SIZE];

    no_seats();
    sit(&seat, fixture.client, "a", 3000);
    observe(&watcher, fixture.client, 50);
    stand(&seat);
    await_count(&seat.elected, 1, GENEROUS_MS, "election");
    await(knows_of, &watcher, GENEROUS_MS, "the leader");
    snprintf(owner, sizeof(owner), "%s", watcher.owner);
    for (int i = 0; i < 3; i++) {
        server_wipe(SERVER(i));
        await_holders(NAME, owner, 3);
    }
    assert_int_equal(seat.deposed, 0);
    assert_int_equal(seat.elected, 1);
    assert_int_equal(watcher.calls, 2);
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

/* What holds the key without a term is no leader, although the last one's counter is there. */
CLIENT_TEST(a_plain_lock_is_no_leader)
{
    static struct seat seat;
    static struct watcher watcher;
    struct seen seen;
    quorlock *lock = fixture_lock(fixture.client, NAME, LEASE(LONG_LEASE_MS));

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
    for (int i = 0; i < 2; i++) server_do(SERVER(i), "DEL " NAME);
    await_count(&deposed.deposed, 1, GENEROUS_MS, "deposed");
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
    assert_status(leading.status, QUORLOCK_CLOSED);
    assert_int_equal(waiting.ended, 1);
    assert_status(waiting.status, QUORLOCK_CLOSED);
    assert_int_equal(resigning.ended, 1);
    assert_int_equal(idle.ended, 0);
    cluster_await_free(&fixture.cluster, NAME);
}

/* ---- processes that stand still, or die ---- */

/* A process of its own that stands, and stops when it leads. */
struct stopper {
    int report; /* a pipe: one letter for each event, and the term */
    bool over;
};

static void tell(const struct stopper *stopper, char letter, uint64_t term)
{
    char line[40];
    int length = snprintf(line, sizeof(line), "%c %" PRIu64 "\n", letter, term);

    if (write(stopper->report, line, (size_t)length) != length) _exit(3);
}

static void stopper_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    tell(arg, 'E', term);
    raise(SIGSTOP);
    tell(arg, quorlock_candidate_valid_ms(candidate) == 0 && quorlock_candidate_term(candidate) == 0 ? '0' : 'v', term);
}

static void stopper_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    tell(arg, loss->remaining_ms == 0 ? 'D' : 'd', 0);
    if (quorlock_resign(candidate) != 0) _exit(4);
}

static void stopper_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    struct stopper *stopper = arg;

    tell(stopper, status == QUORLOCK_OK ? 'R' : 'r', 0);
    stopper->over = true;
}

static void stopper_life(int report)
{
    struct stopper stopper = {.report = report};
    const struct quorlock_candidate_options options = {.size = sizeof(options),
                                                       .advertise = "stopper",
                                                       .elected = stopper_elected,
                                                       .deposed = stopper_deposed,
                                                       .ended = stopper_ended,
                                                       .arg = &stopper,
                                                       .lease_ms = 1000};
    quorlock_candidate *candidate;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    host_loop_forked();
    fixture.options.log = NULL;
    fixture_client(0);
    fixture_await_ready(fixture.client, 3);
    if (quorlock_candidate_new(&candidate, fixture.client, NAME, &options) != 0) _exit(5);
    if (quorlock_stand(candidate) != 0) _exit(6);
    while (!stopper.over) event_base_loop(fixture.base, EVLOOP_ONCE);
    _exit(0);
}

static pid_t start_stopper(int *ret_fd)
{
    int ends[2];
    int status = 0;
    pid_t child;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) stopper_life(ends[1]);
    close(ends[1]);
    while (waitpid(child, &status, WUNTRACED) < 0 && errno == EINTR) continue;
    assert_true(WIFSTOPPED(status));
    *ret_fd = ends[0];
    return child;
}

static uint64_t read_line(int fd, char *ret_letter)
{
    char line[40] = "";
    size_t length = 0;

    while (length + 1 < sizeof(line) && read(fd, line + length, 1) == 1 && line[length] != '\n') length++;
    *ret_letter = line[0];
    return strtoull(line + 1, NULL, 10);
}

static void await_successor(struct seat *seat, struct watcher *watcher, uint64_t term)
{
    no_seats();
    fixture_client(3);
    sit(seat, fixture.client, "here", LONG_LEASE_MS);
    observe(watcher, fixture.client, 50);
    stand(seat);
    await_count(&seat->elected, 1, GENEROUS_MS, "election");
    assert_true(seat->term > term);
    await(knows_of, watcher, GENEROUS_MS, "the leader");
    assert_string_equal(watcher->text, "here");
}

SERVERS_TEST(a_leader_that_was_stopped_learns_that_it_is_deposed)
{
    static struct seat seat;
    static struct watcher watcher;
    int fd;
    int status = 0;
    char letter;
    pid_t child = start_stopper(&fd);
    uint64_t term = read_line(fd, &letter);

    assert_int_equal(letter, 'E');
    await_successor(&seat, &watcher, term);
    assert_int_equal(kill(child, SIGCONT), 0);
    (void)read_line(fd, &letter);
    assert_int_equal(letter, '0');
    (void)read_line(fd, &letter);
    assert_int_equal(letter, 'D');
    (void)read_line(fd, &letter);
    assert_int_equal(letter, 'R');
    close(fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* What it gave back was not ours. */
    assert_true(quorlock_candidate_valid_ms(seat.candidate) > 0);
    assert_int_equal(seat.deposed, 0);
    assert_true(watcher.leader.term == seat.term);
}

SERVERS_TEST(a_leader_that_is_killed_is_succeeded)
{
    static struct seat seat;
    static struct watcher watcher;
    int fd;
    char letter;
    pid_t child = start_stopper(&fd);
    uint64_t term = read_line(fd, &letter);

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(fd);
    await_successor(&seat, &watcher, term);
}
