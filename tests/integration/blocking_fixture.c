/* SPDX-License-Identifier: BSD-3-Clause */
#include "blocking_fixture.h"

quorlock_blocking *blocking;

int blocking_setup(void **state)
{
    static char error[TEXT_SIZE];

    fixture_begin(3);
    fixture.options.log = NULL;
    fixture.options.error = error;
    fixture.options.error_size = sizeof(error);
    if (quorlock_blocking_open(&blocking, &fixture.options) != 0) fail_msg("open: %s", error);
    return 0;
}

int blocking_teardown(void **state)
{
    assert_int_equal(quorlock_blocking_close(blocking), 0);
    blocking = NULL;
    return fixture_teardown(state);
}

quorlock_blocking_lock *new_lock(const char *key, uint32_t lease_ms, uint32_t wait_ms)
{
    struct quorlock_options options = {.size = sizeof(options), .lease_ms = lease_ms, .wait_ms = wait_ms};
    quorlock_blocking_lock *lock = NULL;
    char error[TEXT_SIZE] = "";

    if (quorlock_blocking_new(&lock, blocking, &key, 1, &options, error, sizeof(error)) != 0) {
        fail_msg("new: %s", error);
    }
    return lock;
}

static void *wait_for_lock(void *arg)
{
    struct waiter *waiter = arg;

    waiter->status = quorlock_blocking_acquire(waiter->lock, NULL);
    return NULL;
}

void start_waiter(struct waiter *waiter)
{
    uint64_t until_us = clock_us() + GENEROUS_US;

    waiter->lock = new_lock("key", LONG_LEASE_MS, QUORLOCK_WAIT_FOREVER);
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_lock, waiter), 0);
    /* A release is STATE before the acquire began, BUSY since. */
    while (quorlock_blocking_release(waiter->lock, NULL) != QUORLOCK_BUSY) {
        if (clock_us() > until_us) fail_msg("the acquire of the other thread did not begin");
    }
}

void end_waiter(struct waiter *waiter, int status)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    assert_int_equal(waiter->status, status);
}

quorlock_blocking_candidate *new_candidate(const char *advertise)
{
    const struct quorlock_candidate_options options = {
        .size = sizeof(options), .advertise = advertise, .lease_ms = LONG_LEASE_MS};
    quorlock_blocking_candidate *candidate = NULL;
    char error[TEXT_SIZE] = "";

    if (quorlock_blocking_candidate_new(&candidate, blocking, "election", &options, error, sizeof(error)) != 0)
        fail_msg("candidate: %s", error);
    return candidate;
}

void *stands(void *arg)
{
    struct stand *stand = arg;

    stand->status = quorlock_blocking_stand(stand->candidate, &stand->term);
    return NULL;
}

static void read_waiting(const struct quorlock_statistics *statistics, void *arg)
{
    *(uint64_t *)arg = statistics->waiting;
}

uint64_t acquires_waiting(void)
{
    uint64_t waiting = 0;

    assert_int_equal(quorlock_blocking_statistics(blocking, read_waiting, &waiting), 0);
    return waiting;
}
