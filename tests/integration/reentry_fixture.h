/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reentry_fixture.h - what the tests of nesting share: policies and dialects, handles of owners on one key
 */
#ifndef TESTS_REENTRY_FIXTURE_H
#define TESTS_REENTRY_FIXTURE_H

#include "fixture.h"

struct flavour {
    int policy, dialect;
};

extern struct flavour majority, majority_redisson, all, all_redisson;

#define FLAVOURED(test, flavour)                                                                               \
    {                                                                                                          \
#test " (" #flavour ")", test, fixture_setup, fixture_teardown, &(flavour)                             \
    }
#define EVERY_FLAVOUR(test)                                                                                    \
    FLAVOURED(test, majority), FLAVOURED(test, majority_redisson), FLAVOURED(test, all),                       \
        FLAVOURED(test, all_redisson)

/* begin - fixture.client in the flavour that *state points to. */
void begin(void **state);
/* begin_patient - with a node timeout that a busy machine keeps too, for leases that are short and not renewed.
 */
void begin_patient(void **state);
struct quorlock_options owned(const char *owner, uint32_t lease_ms);
/* lock_of - a handle on "key" that tries once; waiter_of waits for ever; unrenewed_of holds for one lease that
 * nobody renews but who is asked to. */
quorlock *lock_of(const char *owner, uint32_t lease_ms);
quorlock *waiter_of(const char *owner);
quorlock *unrenewed_of(const char *owner, uint32_t lease_ms);
/* calls - commands on locks that all servers have seen. least_pttl: of the key, on any of them. */
long long calls(void);
int64_t least_pttl(void);
/* delete_by_hand - the key, everywhere. */
void delete_by_hand(void);

#endif
