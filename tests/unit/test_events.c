/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/sync_events.h"

#include <poll.h>
#include <unistd.h>

#include "test.h"

#define LINES 1000

static bool readable(const struct sync_events *events)
{
    struct pollfd waits = {.fd = events->fd, .events = POLLIN};

    return poll(&waits, 1, 0) == 1;
}

TEST(lines_that_nobody_reads_are_counted_and_losses_stay)
{
    struct sync_events events = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    const struct quorlock_client_options given = {.size = sizeof(given)};
    struct quorlock_client_options copy;
    struct sync_event *lost = sync_event_new(QUORLOCK_EVENT_LOST, NULL, &events);
    const struct quorlock_loss loss = {.reason = QUORLOCK_LOSS_GONE, .text = "gone"};
    struct quorlock_event event = {.size = sizeof(event)};
    unsigned n_lines = 0;

    assert_ptr_equal(sync_events_options(&events, &given, &copy), &copy);
    assert_int_equal(sync_events_next(&events, &event), QUORLOCK_ERR_STATE);
    for (unsigned i = 0; i < LINES / 2; i++) copy.log(QUORLOCK_LOG_WARN, "a line", copy.log_arg);
    assert_int_equal(sync_events_start(&events), 0);
    assert_true(readable(&events));
    for (unsigned i = 0; i < LINES / 2; i++) copy.log(QUORLOCK_LOG_INFO, "a line", copy.log_arg);
    sync_events_put_loss(&events, lost, 7, &loss);
    sync_events_put_loss(&events, lost, 8, &loss);
    for (;;) {
        assert_int_equal(sync_events_next(&events, &event), 0);
        if (event.type != QUORLOCK_EVENT_LOG) break;
        assert_string_equal(event.text, "a line");
        n_lines++;
    }
    assert_true(n_lines > 0 && n_lines < LINES / 2);
    assert_int_equal(event.type, QUORLOCK_EVENT_LOST);
    assert_int_equal(event.term, 8);
    assert_ptr_equal(event.arg, &events);
    assert_false(readable(&events));
    assert_int_equal(sync_events_next(&events, &event), 0);
    assert_int_equal(event.type, QUORLOCK_EVENT_NONE);
    /* The next line that has room says how many had none. */
    copy.log(QUORLOCK_LOG_ERROR, "another", copy.log_arg);
    assert_int_equal(sync_events_next(&events, &event), 0);
    assert_int_equal(event.n_dropped, LINES - n_lines);
    assert_int_equal(event.level, QUORLOCK_LOG_ERROR);
    sync_event_free(&events, lost, true);
    copy.log(QUORLOCK_LOG_ERROR, "left over", copy.log_arg);
    sync_events_close(&events);
    assert_int_equal(sync_events_next(&events, &event), 0);
    assert_int_equal(sync_events_next(&events, &event), 0);
    assert_int_equal(event.type, QUORLOCK_EVENT_CLOSED);
    assert_int_equal(sync_events_next(&events, &event), QUORLOCK_ERR_STATE);
    copy.log(QUORLOCK_LOG_ERROR, "freed with the queue", copy.log_arg);
    sync_events_end(&events);
}

TEST(a_turn_wakes_who_reads_once)
{
    struct sync_events events = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    const struct quorlock_client_options given = {.size = sizeof(given)};
    struct quorlock_client_options copy;
    struct quorlock_event event = {.size = sizeof(event)};
    uint64_t n_raised = 0;

    assert_ptr_equal(sync_events_options(&events, &given, &copy), &copy);
    assert_int_equal(sync_events_start(&events), 0);
    for (unsigned i = 0; i < 2; i++) {
        copy.log(QUORLOCK_LOG_INFO, "read amid the turn", copy.log_arg);
        assert_false(readable(&events));
        assert_int_equal(sync_events_next(&events, &event), 0);
        copy.log(QUORLOCK_LOG_INFO, "read after it", copy.log_arg);
        sync_events_show(&events);
        assert_int_equal(read(events.fd, &n_raised, sizeof(n_raised)), sizeof(n_raised));
        assert_int_equal(n_raised, 1);
        assert_int_equal(sync_events_next(&events, &event), 0);
        assert_string_equal(event.text, "read after it");
    }
    copy.log(QUORLOCK_LOG_INFO, "read before its end", copy.log_arg);
    assert_int_equal(sync_events_next(&events, &event), 0);
    sync_events_show(&events);
    assert_false(readable(&events));
    sync_events_close(&events);
    assert_true(readable(&events));
    assert_int_equal(sync_events_next(&events, &event), 0);
    sync_events_end(&events);
}

TEST(a_log_hook_of_the_caller_stays)
{
    struct sync_events events = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct quorlock_client_options given = {.size = sizeof(given)}, copy;

    assert_ptr_equal(sync_events_options(&events, NULL, &copy), NULL);
    given.size = 4;
    assert_ptr_equal(sync_events_options(&events, &given, &copy), &given);
    given.size = sizeof(given);
    given.log = (quorlock_log_cb)(void (*)(void))readable;
    assert_ptr_equal(sync_events_options(&events, &given, &copy)->log, given.log);
    sync_events_end(&events);
}
