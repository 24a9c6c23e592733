/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reentry_fixture.h - policies and dialects, and handles of owners on one key
 */
#ifndef TESTS_REENTRY_FIXTURE_H
#define TESTS_REENTRY_FIXTURE_H

#include "fixture.h"

/* As cmocka's setup: three servers, and fixture.client of a policy and a dialect. */
int setup_majority(void **state);
int setup_majority_redisson(void **state);
int setup_all(void **state);
int setup_all_redisson(void **state);
/* With a node timeout that a busy machine keeps too, for leases that are short and not renewed. */
int setup_patient(void **state);
/* flavoured_client - only the client. */
void flavoured_client(int policy, int dialect, uint32_t node_timeout_ms);
#define RUN_IN(name, flavour)       RUN_WITH(name, " (" #flavour ")", setup_##flavour)
#define FLAVOUR_TEST(name, flavour) TEST_RUNS(name, RUN_IN(name, flavour))
#define FLAVOURS_TEST(name)                                                                                            \
    TEST_RUNS(name, RUN_IN(name, majority) RUN_IN(name, majority_redisson) RUN_IN(name, all) RUN_IN(name, all_redisson))

/* lock_of - a handle on "key" that tries once; waiter_of waits for ever; unrenewed_of is renewed on request
 * only. */
quorlock_lock *lock_of(const char *owner, uint32_t lease_ms);
quorlock_lock *waiter_of(const char *owner);
quorlock_lock *unrenewed_of(const char *owner, uint32_t lease_ms);
/* least_pttl - of the key, on any of the servers. */
int64_t least_pttl(const char *key);

#endif
