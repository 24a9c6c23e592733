/* SPDX-License-Identifier: BSD-3-Clause */
#include "reentry_fixture.h"

struct flavour majority = {QUORLOCK_MAJORITY, QUORLOCK_DIALECT_PLAIN, 0};
struct flavour majority_redisson = {QUORLOCK_MAJORITY, QUORLOCK_DIALECT_REDISSON, 0};
struct flavour all = {QUORLOCK_ALL, QUORLOCK_DIALECT_PLAIN, 0};
struct flavour all_redisson = {QUORLOCK_ALL, QUORLOCK_DIALECT_REDISSON, 0};
struct flavour patient = {QUORLOCK_MAJORITY, QUORLOCK_DIALECT_PLAIN, 3000};
struct flavour patient_redisson = {QUORLOCK_MAJORITY, QUORLOCK_DIALECT_REDISSON, 3000};
struct flavour patient_all = {QUORLOCK_ALL, QUORLOCK_DIALECT_PLAIN, 3000};

void flavoured_client(const struct flavour *flavour)
{
    fixture.options.policy = flavour->policy;
    fixture.options.dialect = flavour->dialect;
    fixture.options.node_timeout_ms = flavour->node_timeout_ms;
    fixture_client(3);
}

int setup_flavour(void **state)
{
    fixture_begin(3);
    flavoured_client(*state);
    return 0;
}

quorlock *lock_of(const char *owner, uint32_t lease_ms)
{
    return fixture_lock(fixture.client, "key", LEASE(lease_ms, .owner = owner));
}

quorlock *waiter_of(const char *owner)
{
    return fixture_lock(fixture.client, "key",
                        LEASE(LONG_LEASE_MS, .owner = owner, .wait_ms = QUORLOCK_WAIT_FOREVER));
}

quorlock *unrenewed_of(const char *owner, uint32_t lease_ms)
{
    return fixture_lock(fixture.client, "key",
                        LEASE(lease_ms, .owner = owner, .renew_ms = QUORLOCK_RENEW_NEVER));
}

int64_t least_pttl(const char *key)
{
    int64_t least_ms = INT64_MAX;

    for (int i = 0; i < 3; i++) {
        int64_t left_ms = server_pttl(SERVER(i), key);

        if (left_ms < least_ms) least_ms = left_ms;
    }
    return least_ms;
}
