/* SPDX-License-Identifier: BSD-3-Clause */
/* sync_fixture.h - a sync client on three servers, and threads that wait for a lock of it */
#ifndef TESTS_BLOCKING_FIXTURE_H
#define TESTS_BLOCKING_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include <quorlock/sync.h>

#include "fixture.h"

#define GENEROUS_US 30000000u

/* Closed by the teardown, where the test has not set it to NULL. */
extern quorlock_sync_client *sync_client;

int sync_setup(void **state);
int sync_teardown(void **state);

#define BLOCKING_TEST(name) TEST_RUNS(name, test_add(#name, name##_run, sync_setup, sync_teardown);)

quorlock_sync_lock *new_lock(const char *key, uint32_t lease_ms, uint32_t wait_ms);
quorlock_sync_candidate *new_candidate(const char *advertise);
/* acquires_waiting - as the client's statistics have it. */
uint64_t acquires_waiting(void);

struct waiter {
    quorlock_sync_lock *lock;
    pthread_t thread;
    int status;
    atomic_bool ended;
};

/* start_waiter - a thread that waits for "key" with a lock of its own; returns when its acquire is in flight for
 * certain. end_waiter - joins it. */
void start_waiter(struct waiter *);
void end_waiter(struct waiter *, int status);

struct stand {
    pthread_t thread;
    quorlock_sync_candidate *candidate;
    int status;
    uint64_t term;
};

/* stands - a thread's function. */
void *stands(void *stand);

#endif
