/* SPDX-License-Identifier: BSD-3-Clause */
#include "reentry_fixture.h"

struct flavour majority = {QUORLOCK_MAJORITY, QUORLOCK_DIALECT_PLAIN};
struct flavour majority_redisson = {QUORLOCK_MAJORITY, QUORLOCK_DIALECT_REDISSON};
struct flavour all = {QUORLOCK_ALL, QUORLOCK_DIALECT_PLAIN};
struct flavour all_redisson = {QUORLOCK_ALL, QUORLOCK_DIALECT_REDISSON};

static void begin_with(const struct flavour *flavour, uint32_t node_timeout_ms)
{
    struct quorlock_client_options client_options = fixture_options();

    client_options.policy = flavour->policy;
    client_options.dialect = flavour->dialect;
    client_options.node_timeout_ms = node_timeout_ms;
    fixture_client(&client_options, 3);
}

void begin(void **state)
{
    begin_with(*state, 0);
}

void begin_patient(void **state)
{
    begin_with(*state, 3000);
}

struct quorlock_options owned(const char *owner, uint32_t lease_ms)
{
    struct quorlock_options options = fixture_lease(lease_ms);

    options.owner = owner;
    return options;
}

quorlock *lock_of(const char *owner, uint32_t lease_ms)
{
    struct quorlock_options options = owned(owner, lease_ms);

    return fixture_lock(fixture.client, "key", &options);
}

quorlock *waiter_of(const char *owner)
{
    struct quorlock_options options = owned(owner, LONG_LEASE_MS);

    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    return fixture_lock(fixture.client, "key", &options);
}

quorlock *unrenewed_of(const char *owner, uint32_t lease_ms)
{
    struct quorlock_options options = owned(owner, lease_ms);

    options.renew_ms = QUORLOCK_RENEW_NEVER;
    return fixture_lock(fixture.client, "key", &options);
}

long long calls(void)
{
    long long sum = 0;

    for (int i = 0; i < 3; i++) sum += server_lock_calls(&fixture.cluster.servers[i]);
    return sum;
}

int64_t least_pttl(void)
{
    int64_t least_ms = INT64_MAX;

    for (int i = 0; i < 3; i++) {
        int64_t left_ms = server_pttl(&fixture.cluster.servers[i], "key");

        if (left_ms < least_ms) least_ms = left_ms;
    }
    return least_ms;
}

void delete_by_hand(void)
{
    for (int i = 0; i < 3; i++) server_do(&fixture.cluster.servers[i], "DEL key");
}
