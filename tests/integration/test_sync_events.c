/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sync_events.c - events by a descriptor, for callers that want no callback from the loop's thread
 */
#include <poll.h>

#include "sync_fixture.h"

#define SHORT_LEASE_MS 600
#define TERM_LEASE_MS  4000 /* a busy machine deposes nobody, and who was deposed waits for it to end */

static int events_fd;

static int events_setup(void **state)
{
    if (sync_setup(state) != 0) return -1;
    return quorlock_sync_client_events(sync_client, &events_fd);
}

/* The client ends with its last event. */
static int events_teardown(void **state)
{
    struct quorlock_event event = {.size = sizeof(event)};

    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    do {
        assert_int_equal(quorlock_sync_client_next_event(sync_client, &event), 0);
        if (event.type == QUORLOCK_EVENT_NONE) fail_msg("the last event did not come");
    } while (event.type != QUORLOCK_EVENT_CLOSED);
    sync_client = NULL;
    return fixture_teardown(state);
}

/* open_again - open a client for the end of a test that has closed its own. */
static void open_again(void)
{
    struct quorlock_error error;

    if (quorlock_sync_client_new(&sync_client, &fixture.options, &error) != 0) fail_msg("open: %s", error.text);
    assert_int_equal(quorlock_sync_client_events(sync_client, &events_fd), 0);
}

#define EVENTS_TEST(name) TEST_RUNS(name, test_add(#name, name##_run, events_setup, events_teardown);)
/* The test switches the events on. */
#define LATER_TEST(name) TEST_RUNS(name, test_add(#name, name##_run, sync_setup, events_teardown);)

/* readable - return whether an event waits, by the descriptor. */
static bool readable(int wait_ms)
{
    struct pollfd waits = {.fd = events_fd, .events = POLLIN};

    return poll(&waits, 1, wait_ms) == 1;
}

/* next - return the next event that is no line of the log. */
static struct quorlock_event next_event(void)
{
    struct quorlock_event event = {.size = sizeof(event)};

    do {
        if (!readable(GENEROUS_US / 1000)) fail_msg("no event came");
        assert_int_equal(quorlock_sync_client_next_event(sync_client, &event), 0);
        if (event.type == QUORLOCK_EVENT_NONE) fail_msg("the descriptor is readable without an event");
    } while (event.type == QUORLOCK_EVENT_LOG);
    return event;
}

static struct quorlock_event expect_event(int type, const void *handle, const void *arg)
{
    struct quorlock_event event = next_event();

    assert_int_equal(event.type, type);
    assert_ptr_equal(event.handle, handle);
    assert_ptr_equal(event.arg, arg);
    assert_int_equal(event.size, sizeof(event));
    return event;
}

static void expect_none(void)
{
    struct quorlock_event event = {.size = sizeof(event), .type = QUORLOCK_EVENT_LOG};

    while (event.type == QUORLOCK_EVENT_LOG) assert_int_equal(quorlock_sync_client_next_event(sync_client, &event), 0);
    assert_int_equal(event.type, QUORLOCK_EVENT_NONE);
    assert_false(readable(0));
}

/* await_loss - wait until the lock, which is held, is lost. */
static void await_loss(quorlock_sync_lock *lock)
{
    uint64_t until_us = clock_us() + GENEROUS_US;

    drop_by_hand("key");
    while (quorlock_sync_lock_valid_ms(lock) > 0) {
        if (clock_us() > until_us) fail_msg("it was not lost");
        sched_yield();
    }
    (void)quorlock_sync_lock_release(lock, NULL);
}

EVENTS_TEST(operations_and_a_loss_come_in_order_with_what_the_caller_gave)
{
    quorlock_sync_lock *lock = new_lock("key", SHORT_LEASE_MS, NO_LIMIT);
    struct quorlock_event event;
    int loss, acquired, released;

    expect_none();
    quorlock_sync_lock_set_on_lost(lock, NULL, &loss);
    assert_int_equal(quorlock_sync_lock_start_acquire(lock, NULL, &acquired), 0);
    event = expect_event(QUORLOCK_EVENT_ACQUIRE_ENDED, lock, &acquired);
    assert_int_equal(event.status, QUORLOCK_OK);
    assert_true(event.valid_ms > 0);
    assert_true(cluster_holders(&fixture.cluster, "key", event.token) >= 2);
    assert_non_null(strstr(event.text, "key"));
    drop_by_hand("key");
    event = expect_event(QUORLOCK_EVENT_LOST, lock, &loss);
    assert_int_equal(event.reason, QUORLOCK_LOSS_GONE);
    assert_int_equal(quorlock_sync_lock_valid_ms(lock), 0);
    assert_true(strlen(event.text) > 0);
    assert_int_equal(quorlock_sync_lock_start_release(lock, NULL, &released), 0);
    event = expect_event(QUORLOCK_EVENT_RELEASE_ENDED, lock, &released);
    assert_true(event.status == QUORLOCK_ERR_STATE || event.status == QUORLOCK_ERR_LOST);
    expect_none();
    quorlock_sync_lock_free(lock);
}

EVENTS_TEST(losses_that_nobody_reads_are_one_a_handle_and_go_with_it)
{
    quorlock_sync_lock *lock = new_lock("key", SHORT_LEASE_MS, NO_LIMIT);
    quorlock_sync_lock *other = new_lock("key", SHORT_LEASE_MS, NO_LIMIT);
    struct quorlock_event event;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), 0);
        await_loss(lock);
    }
    expect_event(QUORLOCK_EVENT_LOST, lock, NULL);
    expect_none();
    assert_int_equal(quorlock_sync_lock_acquire(other, NULL), 0);
    await_loss(other);
    quorlock_sync_lock_free(other);
    expect_none();
    /* An operation that was started ends, also when its lock is free. */
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), 0);
    other = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
    assert_int_equal(quorlock_sync_lock_start_acquire(other, NULL, &event), 0);
    quorlock_sync_lock_free(other);
    event = expect_event(QUORLOCK_EVENT_ACQUIRE_ENDED, other, &event);
    assert_int_equal(event.status, QUORLOCK_ERR_CANCELED);
    quorlock_sync_lock_free(lock);
}

EVENTS_TEST(a_close_ends_what_was_started_and_is_the_last_event)
{
    quorlock_sync_lock *holds = new_lock("key", LONG_LEASE_MS, 0);
    quorlock_sync_lock *waits = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
    struct quorlock_event event;

    assert_int_equal(quorlock_sync_lock_acquire(holds, NULL), 0);
    assert_int_equal(quorlock_sync_lock_start_acquire(waits, NULL, NULL), 0);
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    event = expect_event(QUORLOCK_EVENT_ACQUIRE_ENDED, waits, NULL);
    assert_int_equal(event.status, QUORLOCK_ERR_CLOSED);
    expect_event(QUORLOCK_EVENT_CLOSED, NULL, NULL);
    quorlock_sync_lock_free(holds);
    quorlock_sync_lock_free(waits);
    open_again();
}

EVENTS_TEST(candidates_and_observers_have_events)
{
    const struct quorlock_candidate_options options = {
        .size = sizeof(options), .advertise = "here", .lease_ms = TERM_LEASE_MS, .arg = &events_fd};
    const struct quorlock_observer_options watches = {.size = sizeof(watches), .poll_ms = 20};
    quorlock_sync_candidate *candidate = NULL;
    quorlock_sync_observer *observer = NULL;
    struct quorlock_event event;
    uint64_t term = 0;

    assert_int_equal(quorlock_sync_candidate_new(&candidate, sync_client, "key", &options, NULL), 0);
    assert_int_equal(quorlock_sync_candidate_term(candidate), 0);
    assert_int_equal(quorlock_sync_candidate_stand(candidate, &term), 0);
    event = expect_event(QUORLOCK_EVENT_ELECTED, candidate, &events_fd);
    assert_int_equal(event.term, term);
    assert_int_equal(quorlock_sync_candidate_term(candidate), term);
    drop_by_hand("key");
    event = expect_event(QUORLOCK_EVENT_DEPOSED, candidate, &events_fd);
    assert_int_equal(event.term, term);
    assert_true(strlen(event.text) > 0);
    event = expect_event(QUORLOCK_EVENT_ELECTED, candidate, &events_fd);
    assert_true(event.term > term);
    assert_int_equal(quorlock_sync_observer_new(&observer, sync_client, "key", &watches, NULL), 0);
    do event = expect_event(QUORLOCK_EVENT_LEADER_CHANGED, observer, NULL);
    while (event.state != QUORLOCK_LEADER_KNOWN);
    assert_string_equal(event.text, "here");
    assert_true(strlen(event.token) > 0 && event.term > term);
    quorlock_sync_observer_free(observer);
    expect_none();
    assert_int_equal(quorlock_sync_candidate_resign(candidate), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_candidate_term(candidate), 0);
    event = expect_event(QUORLOCK_EVENT_RESIGNED, candidate, &events_fd);
    assert_int_equal(event.status, QUORLOCK_OK);
    quorlock_sync_candidate_free(candidate);
    assert_int_equal(quorlock_sync_candidate_term(NULL), 0);
}

LATER_TEST(warnings_from_before_the_events_wait_for_them)
{
    struct quorlock_event event = {.size = sizeof(event)};
    uint64_t until_us = clock_us() + GENEROUS_US;
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);

    /* Each connection that ends is a warning. */
    for (int i = 0; i < 3; i++) server_kill(SERVER(i));
    while (quorlock_sync_lock_acquire(lock, NULL) != QUORLOCK_ERR_NOQUORUM)
        if (clock_us() > until_us) fail_msg("a quorum answers without servers");
    quorlock_sync_lock_free(lock);
    assert_int_equal(quorlock_sync_client_events(sync_client, &events_fd), 0);
    do {
        assert_true(readable(GENEROUS_US / 1000));
        assert_int_equal(quorlock_sync_client_next_event(sync_client, &event), 0);
        assert_int_equal(event.type, QUORLOCK_EVENT_LOG);
    } while (event.level < QUORLOCK_LOG_WARN);
    assert_true(strlen(event.text) > 0);
}

static void on_dropped(int status, const struct quorlock_inspect_report *report, void *arg)
{
    (void)status;
    (void)report;
    (void)arg;
}

LATER_TEST(all_lines_from_before_the_events_wait_for_them_if_there_was_no_handle)
{
    struct quorlock_event event = {.size = sizeof(event)};

    /* After the answer the nodes are ready, which is not a warning. */
    assert_int_equal(quorlock_sync_client_inspect(sync_client, "key", on_dropped, NULL), 0);
    assert_int_equal(quorlock_sync_client_events(sync_client, &events_fd), 0);
    do {
        assert_true(readable(GENEROUS_US / 1000));
        assert_int_equal(quorlock_sync_client_next_event(sync_client, &event), 0);
        assert_int_equal(event.type, QUORLOCK_EVENT_LOG);
    } while (event.level != QUORLOCK_LOG_INFO || strstr(event.text, "ready") == NULL);
}

LATER_TEST(events_are_switched_on_before_there_is_a_handle)
{
    struct quorlock_event event = {.size = sizeof(event)};
    const struct quorlock_observer_options watches = {.size = sizeof(watches)};
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);
    quorlock_sync_observer *observer = NULL;
    int fd = -1, again = -1;

    assert_int_equal(quorlock_sync_client_events(NULL, &fd), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_events(sync_client, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_events(sync_client, &fd), QUORLOCK_ERR_STATE);
    assert_int_equal(quorlock_sync_client_next_event(sync_client, &event), QUORLOCK_ERR_STATE);
    assert_int_equal(quorlock_sync_lock_start_acquire(lock, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_observer_new(&observer, sync_client, "key", &watches, NULL), QUORLOCK_ERR_INVAL);
    quorlock_sync_lock_free(lock);
    assert_int_equal(fd, -1);
    assert_int_equal(quorlock_sync_client_events(sync_client, &fd), 0);
    assert_int_equal(quorlock_sync_client_events(sync_client, &again), 0);
    assert_int_equal(fd, again);
    assert_int_equal(quorlock_sync_client_next_event(NULL, &event), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_next_event(sync_client, NULL), QUORLOCK_ERR_INVAL);
    event.size = 8;
    assert_int_equal(quorlock_sync_client_next_event(sync_client, &event), QUORLOCK_ERR_INVAL);
    events_fd = fd;
}

/* ---- a thread that reads, and others that make, use and free locks meanwhile ---- */

static void *read_until_closed(void *arg)
{
    struct quorlock_event event = {.size = sizeof(event)};
    unsigned *n_ended = arg;

    while (event.type != QUORLOCK_EVENT_CLOSED) {
        if (event.type == QUORLOCK_EVENT_NONE) (void)readable(-1);
        if (quorlock_sync_client_next_event(sync_client, &event) != 0) return "an error";
        *n_ended += event.type == QUORLOCK_EVENT_ACQUIRE_ENDED || event.type == QUORLOCK_EVENT_RELEASE_ENDED;
    }
    return NULL;
}

static void *start_and_free(void *arg)
{
    unsigned *n_started = arg;

    for (int i = 0; i < 20; i++) {
        quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 10);

        *n_started += quorlock_sync_lock_start_acquire(lock, NULL, NULL) == 0;
        *n_started += quorlock_sync_lock_start_release(lock, NULL, NULL) == 0;
        quorlock_sync_lock_free(lock);
    }
    return NULL;
}

EVENTS_TEST(each_operation_ends_once_for_a_reader_beside_other_threads)
{
    unsigned n_started[3] = {0}, n_ended = 0;
    pthread_t threads[3], reader;
    void *failed = NULL;

    assert_int_equal(pthread_create(&reader, NULL, read_until_closed, &n_ended), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, start_and_free, &n_started[i]), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    assert_int_equal(pthread_join(reader, &failed), 0);
    open_again();
    assert_null(failed);
    assert_int_equal(n_started[0] + n_started[1] + n_started[2], 120);
    assert_int_equal(n_ended, 120);
}
