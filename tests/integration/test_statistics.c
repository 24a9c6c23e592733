/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_statistics.c - what a client counts: each field of its statistics, and their text, read as Prometheus reads it
 */
#include "fixture.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODE_TIMEOUT_MS 300u

static struct quorlock_statistics statistics(void)
{
    struct quorlock_statistics ret = {.size = sizeof(ret)};

    assert_status(quorlock_client_statistics(fixture.client, &ret), QUORLOCK_OK);
    assert_int_equal(ret.size, sizeof(ret));
    assert_int_equal(ret.n_acquires, -QUORLOCK_ERR_UNSUPPORTED + 1);
    assert_int_equal(ret.n_losses, QUORLOCK_LOSS_CLOCK + 1);
    assert_int_equal(ret.n_nodes, fixture.options.n_nodes);
    return ret;
}

/* How many of one thing were counted, whichever it was. */
static uint64_t sum(const uint64_t *numbers, size_t n)
{
    uint64_t all = 0;

    for (size_t i = 0; i < n; i++) all += numbers[i];
    return all;
}

static uint64_t acquires(int status)
{
    return statistics().acquires[-status]->count;
}

static uint64_t errors(uint32_t node, int class)
{
    return statistics().nodes[node]->errors[class];
}

/* A histogram that agrees with itself. */
static void check_histogram(const struct quorlock_histogram *histogram, uint64_t count)
{
    assert_int_equal(histogram->count, count);
    assert_int_equal(sum(histogram->buckets, histogram->n_buckets), count);
}

/* A field that is awaited. */
struct wish {
    uint64_t (*read)(void);
    uint64_t least, most;
};

static bool is_so(void *arg)
{
    const struct wish *wish = arg;
    uint64_t now = wish->read();

    return now >= wish->least && now <= wish->most;
}

static void await_field(uint64_t (*read)(void), uint64_t least, uint64_t most, const char *what)
{
    struct wish wish = {read, least, most};

    await(is_so, &wish, GENEROUS_MS, what);
}

static uint64_t renewals(void)
{
    return statistics().renewals;
}

static uint64_t renewals_failed(void)
{
    return statistics().renewals_failed;
}

static uint64_t degraded(void)
{
    return statistics().degraded;
}

static uint64_t in_flight(void)
{
    uint64_t of_nodes = 0;

    for (size_t i = 0; i < statistics().n_nodes; i++) of_nodes += statistics().nodes[i]->in_flight;
    return statistics().in_flight + of_nodes;
}

static uint64_t state_of_first(void)
{
    return (uint64_t)statistics().nodes[0]->state;
}

/* ---- locks ---- */

CLIENT_TEST(nothing_has_been_counted_at_first)
{
    struct quorlock_statistics now = statistics();

    for (size_t i = 0; i < now.n_acquires; i++) check_histogram(now.acquires[i], 0);
    check_histogram(now.holds, 0);
    assert_int_equal(sum(now.losses, now.n_losses), 0);
    assert_int_equal(now.renewals + now.renewals_failed + now.degradations, 0);
    assert_int_equal(now.held + now.degraded + now.waiting, 0);
}

CLIENT_TEST(acquires_are_counted_by_their_result)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock *once = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock *waits = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    struct seen seen = {0}, waited = {0};

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(acquires(QUORLOCK_OK), 1);
    assert_status(fixture_acquire(once, &seen), QUORLOCK_ERR_HELD);
    assert_int_equal(acquires(QUORLOCK_ERR_HELD), 1);
    fixture_start_acquire(waits, &waited);
    assert_int_equal(statistics().waiting, 1);
    assert_status(quorlock_lock_acquire(waits, on_result, &waited), QUORLOCK_ERR_BUSY);
    assert_int_equal(statistics().waiting, 1);
    run_ms(20);
    assert_int_equal(quorlock_lock_cancel(waits), 0);
    await_status(&waited, QUORLOCK_ERR_CANCELED, "cancel");
    check_histogram(statistics().acquires[-QUORLOCK_ERR_CANCELED], 1);
    /* As long as it waited. */
    assert_true(statistics().acquires[-QUORLOCK_ERR_CANCELED]->sum_us >= 20000);
    assert_int_equal(statistics().acquires[-QUORLOCK_ERR_CANCELED]->sum_us / 1000, waited.result.elapsed_ms);
    server_kill(SERVER(0));
    server_kill(SERVER(1));
    assert_status(fixture_acquire(once, &seen), QUORLOCK_ERR_NOQUORUM);
    assert_int_equal(acquires(QUORLOCK_ERR_NOQUORUM), 1);
    assert_int_equal(acquires(QUORLOCK_OK), 1);
    assert_int_equal(statistics().waiting, 0);
}

CLIENT_TEST(a_freed_acquire_waits_no_more)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen = {0};

    fixture_start_acquire(lock, &seen);
    quorlock_lock_free(lock);
    await_status(&seen, QUORLOCK_ERR_CANCELED, "free");
    assert_int_equal(statistics().waiting, 0);
    assert_int_equal(acquires(QUORLOCK_ERR_CANCELED), 1);
}

CLIENT_TEST(a_hold_is_as_long_as_from_its_grant_to_its_release)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen = {0};
    uint64_t begun_us = clock_us();

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(statistics().held, 1);
    check_histogram(statistics().holds, 0);
    run_ms(50);
    fixture_start_release(lock, &seen);
    assert_int_equal(statistics().held, 0);
    check_histogram(statistics().holds, 1);
    assert_true(statistics().holds->sum_us >= 50000);
    assert_true(statistics().holds->sum_us <= clock_us() - begun_us);
    await_count(&seen.calls, 1, GENEROUS_MS, "release");
}

CLIENT_TEST(nested_holds_are_one_hold_and_two_acquires)
{
    quorlock_lock *outer = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = "me"));
    quorlock_lock *inner = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = "me"));
    struct seen seen = {0};

    assert_status(fixture_acquire(outer, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(inner, &seen), QUORLOCK_OK);
    assert_int_equal(acquires(QUORLOCK_OK), 2);
    assert_int_equal(statistics().waiting, 0);
    assert_int_equal(statistics().held, 1);
    assert_status(fixture_release(inner, &seen), QUORLOCK_OK);
    assert_int_equal(statistics().held, 1);
    check_histogram(statistics().holds, 0);
    assert_status(fixture_release(outer, &seen), QUORLOCK_OK);
    assert_int_equal(statistics().held, 0);
    check_histogram(statistics().holds, 1);
}

/* Takes "key" and waits for its loss. */
static void lose(const struct quorlock_lock_options *options, int reason, void (*harm)(void))
{
    struct quorlock_lock_options patient = *options;
    uint64_t holds = statistics().holds->count, losses = sum(statistics().losses, statistics().n_losses);
    struct seen_loss loss = {0};
    struct seen seen = {0};
    quorlock_lock *lock;

    patient.wait_ms = GENEROUS_MS;
    lock = fixture_lock(fixture.client, "key", &patient);
    quorlock_lock_set_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    if (harm != NULL) await_holders("key", seen.owner, 3);
    if (harm != NULL) harm();
    await_count(&loss.calls, 1, GENEROUS_MS, "loss");
    assert_int_equal(loss.loss.reason, reason);
    assert_int_equal(statistics().losses[reason], 1);
    assert_int_equal(sum(statistics().losses, statistics().n_losses), losses + 1);
    assert_int_equal(statistics().held, 0);
    assert_int_equal(statistics().degraded, 0);
    check_histogram(statistics().holds, holds + 1);
    quorlock_lock_free(lock);
}

static void delete_two(void)
{
    server_do(SERVER(0), "DEL key");
    server_do(SERVER(1), "DEL key");
}

static void freeze_two(void)
{
    server_freeze(SERVER(0));
    server_freeze(SERVER(1));
}

CLIENT_TEST(losses_are_counted_by_their_reason)
{
    lose(LEASE(LONG_LEASE_MS, .renew_ms = 50), QUORLOCK_LOSS_GONE, delete_two);
    lose(LEASE(1000, .renew_ms = 50, .max_hold_ms = 60), QUORLOCK_LOSS_MAX_HOLD, NULL);
    lose(LEASE(500, .renew_ms = QUORLOCK_RENEW_NEVER), QUORLOCK_LOSS_NOT_RENEWED, NULL);
    lose(LEASE(3000), QUORLOCK_LOSS_EXPIRED, freeze_two);
    server_thaw(SERVER(0));
    server_thaw(SERVER(1));
}

SERVERS_TEST(renewals_are_counted_by_their_result)
{
    struct seen seen = {0};
    uint64_t failed, renewed;
    quorlock_lock *lock;

    fixture.options.node_timeout_ms = NODE_TIMEOUT_MS;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = QUORLOCK_RENEW_NEVER));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    failed = renewals_failed();
    renewed = renewals();
    assert_status(fixture_extend(lock, LONG_LEASE_MS, &seen), QUORLOCK_OK);
    assert_int_equal(renewals(), renewed + 1);
    assert_int_equal(renewals_failed(), failed);
    freeze_two();
    assert_status(fixture_extend(lock, LONG_LEASE_MS, &seen), QUORLOCK_ERR_NOQUORUM);
    assert_int_equal(renewals(), renewed + 1);
    assert_int_equal(renewals_failed(), failed + 1);
    server_thaw(SERVER(0));
    server_thaw(SERVER(1));
    quorlock_lock_free(lock);
}

CLIENT_TEST(a_hold_is_degraded_while_a_renewal_does_not_reach_all_nodes)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .renew_ms = 50));
    struct seen seen = {0};
    uint64_t degradations;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    await_field(renewals, 1, UINT64_MAX, "a renewal");
    await_field(degraded, 0, 0, "whole");
    degradations = statistics().degradations;
    server_freeze(SERVER(2));
    await_field(degraded, 1, 1, "degraded");
    assert_true(statistics().degradations > degradations);
    server_thaw(SERVER(2));
    await_field(degraded, 0, 0, "whole again");
    server_freeze(SERVER(2));
    await_field(degraded, 1, 1, "degraded once more");
    fixture_start_release(lock, &seen);
    assert_int_equal(statistics().degraded, 0);
    server_thaw(SERVER(2));
    await_count(&seen.calls, 1, GENEROUS_MS, "release");
}

/* ---- nodes ---- */

CLIENT_TEST(requests_and_their_answers_are_counted)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    uint64_t before[3], bytes_in[3], bytes_out[3];
    struct seen seen = {0};

    await_field(in_flight, 0, 0, "all is answered");
    for (uint32_t i = 0; i < 3; i++) {
        before[i] = statistics().nodes[i]->requests;
        bytes_in[i] = statistics().nodes[i]->bytes_in;
        bytes_out[i] = statistics().nodes[i]->bytes_out;
    }
    fixture_start_acquire(lock, &seen);
    assert_int_equal(statistics().in_flight, 3);
    assert_int_equal(statistics().nodes[0]->in_flight, 1);
    await_status(&seen, QUORLOCK_OK, "acquire");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_field(in_flight, 0, 0, "all is answered again");
    for (uint32_t i = 0; i < 3; i++) {
        const struct quorlock_node_statistics *node = statistics().nodes[i];

        assert_string_equal(node->node, fixture.cluster.addresses[i]);
        assert_int_equal(node->state, QUORLOCK_NODE_STATE_READY);
        assert_null(node->why);
        assert_int_equal(node->quarantine_ms, 0);
        assert_true(node->round_trip_us > 0);
        assert_int_equal(node->reconnects, 0);
        assert_int_equal(node->n_errors, QUORLOCK_NODE_ERROR_LOGIN + 1);
        assert_true(node->requests >= before[i] + 2);
        /* Each was answered, or is an error. */
        check_histogram(node->round_trips, node->requests - sum(node->errors, node->n_errors));
        /* A key, a token of 40 letters, and two commands; +OK and :1. */
        assert_true(node->bytes_out >= bytes_out[i] + 100);
        assert_true(node->bytes_in >= bytes_in[i] + 9);
    }
}

/* Both measures of one request, in microseconds; the smoothed one has it with a weight of one eighth. */
CLIENT_TEST(a_slow_answer_is_measured)
{
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen = {0};
    uint64_t sum_us, took_us;
    uint32_t smooth_us;

    await_field(in_flight, 0, 0, "all is answered");
    sum_us = statistics().nodes[2]->round_trips->sum_us;
    smooth_us = statistics().nodes[2]->round_trip_us;
    server_freeze(SERVER(2));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    run_ms(50);
    server_thaw(SERVER(2));
    await_field(in_flight, 0, 0, "the answer");
    took_us = statistics().nodes[2]->round_trips->sum_us - sum_us;
    assert_true(took_us >= 50000);
    assert_int_equal(statistics().nodes[2]->round_trip_us, smooth_us - smooth_us / 8 + took_us / 8);
}

CLIENT_TEST(a_node_that_dies_and_comes_back_is_seen_so)
{
    assert_int_equal(errors(0, QUORLOCK_NODE_ERROR_UNREACHABLE), 0);
    server_kill(SERVER(0));
    await_field(state_of_first, QUORLOCK_NODE_STATE_DOWN, QUORLOCK_NODE_STATE_DOWN, "down");
    assert_true(errors(0, QUORLOCK_NODE_ERROR_UNREACHABLE) >= 1);
    assert_non_null(statistics().nodes[0]->why);
    assert_true(strlen(statistics().nodes[0]->why) > 0);
    assert_int_equal(statistics().nodes[0]->reconnects, 0);
    server_start(SERVER(0));
    await_field(state_of_first, QUORLOCK_NODE_STATE_READY, QUORLOCK_NODE_STATE_READY, "ready");
    assert_int_equal(statistics().nodes[0]->reconnects, 1);
    assert_int_equal(statistics().nodes[1]->reconnects, 0);
    assert_int_equal(errors(1, QUORLOCK_NODE_ERROR_UNREACHABLE), 0);
}

SERVERS_TEST(a_frozen_node_times_out)
{
    quorlock_lock *lock;
    struct seen seen = {0};
    uint64_t answered, requests = 0, ended = 0, cut = 0;

    fixture.options.node_timeout_ms = NODE_TIMEOUT_MS;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    await_field(in_flight, 0, 0, "all is answered");
    freeze_two();
    answered = statistics().nodes[0]->round_trips->count;
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_NOQUORUM);
    assert_true(errors(0, QUORLOCK_NODE_ERROR_TIMEOUT) >= 1);
    assert_int_equal(statistics().nodes[0]->round_trips->count, answered);
    for (uint32_t i = 0; i < 3; i++) {
        const struct quorlock_node_statistics *node = statistics().nodes[i];

        requests += node->requests;
        ended += node->round_trips->count + sum(node->errors, node->n_errors);
        cut += node->errors[QUORLOCK_NODE_ERROR_UNREACHABLE];
    }
    /* Connections may have ended if this process stalled for seconds; they are counted, too. */
    if (cut == 0) assert_int_equal(requests, ended + statistics().in_flight);
    server_thaw(SERVER(0));
    server_thaw(SERVER(1));
}

static uint64_t login_errors(void)
{
    return errors(0, QUORLOCK_NODE_ERROR_LOGIN);
}

SERVERS_TEST(a_wrong_password_is_an_error_that_comes_again_and_is_not_shown)
{
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET requirepass s3cret");
    for (int i = 0; i < 3; i++) SERVER(i)->password = "s3cret";
    fixture_log_in("bob:wr0ng@", "");
    fixture_client(0);
    await_field(login_errors, 2, UINT64_MAX, "two refusals");
    assert_int_equal(statistics().nodes[0]->state, QUORLOCK_NODE_STATE_DOWN);
    assert_string_equal(statistics().nodes[0]->node, fixture.cluster.addresses[0]);
    assert_null(strstr(statistics().nodes[0]->why, "wr0ng"));
}

SERVERS_TEST(a_quarantine_counts_down)
{
    uint64_t first_ms;

    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    fixture_client(0);
    await_field(state_of_first, QUORLOCK_NODE_STATE_QUARANTINED, QUORLOCK_NODE_STATE_QUARANTINED, "quarantined");
    first_ms = statistics().nodes[0]->quarantine_ms;
    assert_true(first_ms > LONG_LEASE_MS / 2 && first_ms <= LONG_LEASE_MS + 5000);
    assert_non_null(statistics().nodes[0]->why);
    run_ms(20);
    assert_true(statistics().nodes[0]->quarantine_ms + 20 <= first_ms);
}

/* Its end has passed, but the votes count only from the loop's next turn on. */
SERVERS_TEST(a_quarantine_shows_no_0_before_the_votes_count)
{
    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    fixture.options.max_lease_ms = 500;
    fixture_client(0);
    await_field(state_of_first, QUORLOCK_NODE_STATE_QUARANTINED, QUORLOCK_NODE_STATE_QUARANTINED, "quarantined");
    cluster_pause_us(600000);
    assert_int_equal(statistics().nodes[0]->state, QUORLOCK_NODE_STATE_QUARANTINED);
    assert_true(statistics().nodes[0]->quarantine_ms > 0);
    await_field(state_of_first, QUORLOCK_NODE_STATE_READY, QUORLOCK_NODE_STATE_READY, "ready");
    assert_int_equal(statistics().nodes[0]->quarantine_ms, 0);
}

/* ---- the call ---- */

CLIENT_TEST(a_struct_of_another_size_is_filled_as_far_as_both_know)
{
    struct {
        struct quorlock_statistics known;
        uint64_t more;
    } longer = {.known.size = sizeof(longer)};
    struct quorlock_statistics shorter = {.size = sizeof(shorter) - 1};

    assert_status(quorlock_client_statistics(fixture.client, &longer.known), QUORLOCK_OK);
    assert_int_equal(longer.known.size, sizeof(longer));
    assert_int_equal(longer.known.n_nodes, 3);
    longer.known = (struct quorlock_statistics){.size = sizeof(longer)};
    longer.more = 1;
    assert_status(quorlock_client_statistics(fixture.client, &longer.known), QUORLOCK_ERR_INVAL);
    assert_int_equal(longer.known.n_nodes, 0);
    assert_contains(quorlock_client_error(fixture.client), "quorlock_statistics has a non-zero byte");
    assert_status(quorlock_client_statistics(fixture.client, &shorter), QUORLOCK_ERR_INVAL);
    assert_int_equal(shorter.n_nodes, 0);
    assert_contains(quorlock_client_error(fixture.client), "set it to sizeof(struct quorlock_statistics)");
    assert_status(quorlock_client_statistics(fixture.client, NULL), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "ret is NULL");
}

CLIENT_TEST(metrics_want_a_place_for_the_text_and_its_length)
{
    size_t length = 7;
    char buffer[4];

    assert_status(quorlock_client_metrics(fixture.client, NULL, buffer, sizeof(buffer), NULL), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "ret_length is NULL");
    assert_status(quorlock_client_metrics(fixture.client, NULL, NULL, 1, &length), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "buffer is NULL");
    assert_int_equal(length, 7);
    assert_status(quorlock_client_metrics(fixture.client, NULL, NULL, 0, &length), QUORLOCK_OK);
    assert_true(length > 1000);
    assert_status(quorlock_client_metrics(fixture.client, NULL, buffer, sizeof(buffer), &length), QUORLOCK_OK);
    assert_string_equal(buffer, "# T");
}

/* ---- the text, read by Prometheus' own library ---- */

#define READ_MAX        65536
#define LIBRARY_MISSING 77

/* The reader's exit status, and what it says of that text. */
static int run_reader(const char *word, const char *text, size_t length, char *ret)
{
    int in[2], out[2], status = 0;
    size_t got = 0;
    ssize_t n;
    pid_t child;

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    /* All of it has room, so nothing waits for the reader. */
    assert_true(fcntl(in[1], F_SETPIPE_SZ, READ_MAX) >= READ_MAX);
    assert_int_equal(write(in[1], text, length), length);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        execl(QUORLOCK_READ_METRICS, QUORLOCK_READ_METRICS, word, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(in[1]);
    close(out[1]);
    while ((n = read(out[0], ret + got, READ_MAX - 1 - got)) > 0) got += (size_t)n;
    ret[got] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What read_metrics.py says of the client's metrics; skips the test where the library is missing. */
static void read_metrics(int format, const char *word, char *ret)
{
    const struct quorlock_metrics_options options = {.size = sizeof(options), .format = format};
    char text[READ_MAX];
    size_t length;
    int status;

    assert_status(quorlock_client_metrics(fixture.client, &options, text, sizeof(text), &length), QUORLOCK_OK);
    assert_true(length < sizeof(text));
    status = run_reader(word, text, length, ret);
    if (status == LIBRARY_MISSING) {
        print_message("%s", ret);
        skip();
    }
    if (status != 0) fail_msg("status %d: %s\n%s", status, ret, text);
}

CLIENT_TEST(the_metrics_are_read_in_both_formats)
{
    static const char *const words[] = {"openmetrics", "prometheus"};
    quorlock_lock *lock = fixture_lock(fixture.client, "secret-key", LEASE(LONG_LEASE_MS));
    char text[READ_MAX], line[512];
    struct seen seen = {0};

    fixture_needs_real_servers();
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (int format = 0; format < 2; format++) {
        read_metrics(format, words[format], text);
        assert_contains(text, "quorlock_acquire_duration_seconds histogram "
                              "quorlock_acquire_duration_seconds_count{result=\"ok\"} 1\n");
        assert_contains(text, "quorlock_losses counter quorlock_losses_total{reason=\"expired\"} 0\n");
        assert_contains(text, "quorlock_held gauge quorlock_held{} 1\n");
        for (uint32_t i = 0; i < 3; i++) {
            snprintf(line, sizeof(line), "quorlock_node_up gauge quorlock_node_up{node=\"%s\"} 1\n",
                     fixture.cluster.addresses[i]);
            assert_contains(text, line);
        }
        assert_null(strstr(text, "unknown"));
        assert_null(strstr(text, "secret-key"));
    }
}
