/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reentry_fixture.h - policies and dialects, and handles of owners on one key
 */
#ifndef TESTS_REENTRY_FIXTURE_H
#define TESTS_REENTRY_FIXTURE_H

#include "fixture.h"

struct flavour {
    int policy, dialect;
    uint32_t node_timeout_ms;
};

extern struct flavour majority, majority_redisson, all, all_redisson;
/* With a node timeout that a busy machine keeps too, for leases that are short and not renewed. */
extern struct flavour patient, patient_redisson, patient_all;

#define FLAVOURED(test, flavour)                                                                               \
    {                                                                                                          \
#test " (" #flavour ")", test, setup_flavour, fixture_teardown, &(flavour)                             \
    }
#define EVERY_FLAVOUR(test)                                                                                    \
    FLAVOURED(test, majority), FLAVOURED(test, majority_redisson), FLAVOURED(test, all),                       \
        FLAVOURED(test, all_redisson)

/* setup_flavour - three servers, and fixture.client in the flavour that *state points to. flavoured_client:
 * only the client. */
int setup_flavour(void **state);
void flavoured_client(const struct flavour *);
/* lock_of - a handle on "key" that tries once; waiter_of waits for ever; unrenewed_of is renewed on request
 * only. */
quorlock *lock_of(const char *owner, uint32_t lease_ms);
quorlock *waiter_of(const char *owner);
quorlock *unrenewed_of(const char *owner, uint32_t lease_ms);
/* least_pttl - of the key, on any of the servers. */
int64_t least_pttl(const char *key);

#endif
