/* SPDX-License-Identifier: BSD-3-Clause */
#include "reentry_fixture.h"

void flavoured_client(int policy, int dialect, uint32_t node_timeout_ms)
{
    fixture.options.policy = policy;
    fixture.options.dialect = dialect;
    fixture.options.node_timeout_ms = node_timeout_ms;
    fixture_client(3);
}

#define SETUP(flavour, policy, dialect, node_timeout_ms)                                                               \
    int setup_##flavour(void **state)                                                                                  \
    {                                                                                                                  \
        fixture_begin(3);                                                                                              \
        flavoured_client(QUORLOCK_POLICY_##policy, QUORLOCK_DIALECT_##dialect, node_timeout_ms);                       \
        return 0;                                                                                                      \
    }
SETUP(majority, MAJORITY, PLAIN, 0)
SETUP(majority_redisson, MAJORITY, REDISSON, 0)
SETUP(all, ALL, PLAIN, 0)
SETUP(all_redisson, ALL, REDISSON, 0)
SETUP(patient, MAJORITY, PLAIN, 3000)

quorlock_lock *lock_of(const char *owner, uint32_t lease_ms)
{
    return fixture_lock(fixture.client, "key", LEASE(lease_ms, .owner = owner));
}

quorlock_lock *waiter_of(const char *owner)
{
    return fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .owner = owner, .wait_ms = NO_LIMIT));
}

quorlock_lock *unrenewed_of(const char *owner, uint32_t lease_ms)
{
    return fixture_lock(fixture.client, "key", LEASE(lease_ms, .owner = owner, .renew_ms = QUORLOCK_RENEW_NEVER));
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
