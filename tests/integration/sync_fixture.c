/* SPDX-License-Identifier: BSD-3-Clause */
#include "sync_fixture.h"

quorlock_sync_client *sync_client;

int sync_setup(void **state)
{
    struct quorlock_error error;

    fixture_begin(3);
    fixture.options.log = NULL;
    if (quorlock_sync_client_new(&sync_client, &fixture.options, &error) != 0) fail_msg("open: %s", error.text);
    return 0;
}

int sync_teardown(void **state)
{
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
    sync_client = NULL;
    return fixture_teardown(state);
}

quorlock_sync_lock *new_lock(const char *key, uint32_t lease_ms, uint32_t wait_ms)
{
    struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = lease_ms, .wait_ms = fixture_wait(wait_ms)};
    quorlock_sync_lock *lock = NULL;
    struct quorlock_error error;

    if (quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, &error) != 0) {
        fail_msg("new: %s", error.text);
    }
    return lock;
}

static void *wait_for_lock(void *arg)
{
    struct waiter *waiter = arg;

    waiter->status = quorlock_sync_lock_acquire(waiter->lock, NULL);
    return NULL;
}

void start_waiter(struct waiter *waiter)
{
    uint64_t until_us = clock_us() + GENEROUS_US;

    waiter->lock = new_lock("key", LONG_LEASE_MS, NO_LIMIT);
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_lock, waiter), 0);
    /* A release is STATE before the acquire began, BUSY since. */
    while (quorlock_sync_lock_release(waiter->lock, NULL) != QUORLOCK_ERR_BUSY) {
        if (clock_us() > until_us) fail_msg("the acquire of the other thread did not begin");
    }
}

void end_waiter(struct waiter *waiter, int status)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    assert_int_equal(waiter->status, status);
}

quorlock_sync_candidate *new_candidate(const char *advertise)
{
    const struct quorlock_candidate_options options = {
        .size = sizeof(options), .advertise = advertise, .lease_ms = LONG_LEASE_MS};
    quorlock_sync_candidate *candidate = NULL;
    struct quorlock_error error;

    if (quorlock_sync_candidate_new(&candidate, sync_client, "election", &options, &error) != 0)
        fail_msg("candidate: %s", error.text);
    return candidate;
}

void *stands(void *arg)
{
    struct stand *stand = arg;

    stand->status = quorlock_sync_candidate_stand(stand->candidate, &stand->term);
    return NULL;
}

static void read_waiting(const struct quorlock_statistics *statistics, void *arg)
{
    *(uint64_t *)arg = statistics->waiting;
}

uint64_t acquires_waiting(void)
{
    uint64_t waiting = 0;

    assert_int_equal(quorlock_sync_client_statistics(sync_client, read_waiting, &waiting), 0);
    return waiting;
}
