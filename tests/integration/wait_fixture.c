/* SPDX-License-Identifier: BSD-3-Clause */
#include "wait_fixture.h"

quorlock_client *second;
quorlock_lock *holder, *waiter;
struct seen held, waited;
uint32_t frozen;

quorlock_lock *lasting_lock(quorlock_client *client, const char *key, const char *other)
{
    const char *const keys[] = {key, other};

    return fixture_lock_all(client, keys, other != NULL ? 2 : 1, LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
}

void open_both(void)
{
    frozen = NO_NODE;
    fixture_client(3);
    second = fixture_new_client(3);
    holder = lasting_lock(second, "key", NULL);
    waiter = lasting_lock(fixture.client, "key", NULL);
}

void close_both(void)
{
    fixture_close(second);
    fixture_close(fixture.client);
}

int setup_both(void **state)
{
    fixture_begin(3);
    open_both();
    return 0;
}

int setup_both_redisson(void **state)
{
    fixture_begin(3);
    fixture.options.dialect = QUORLOCK_DIALECT_REDISSON;
    open_both();
    return 0;
}

bool is_live(uint32_t node)
{
    return node != frozen && SERVER(node)->pid != 0;
}

long long listeners(const char *key)
{
    bool plain = fixture.options.dialect == QUORLOCK_DIALECT_PLAIN;
    char channel[TEXT_SIZE];
    long long n = 0;

    snprintf(channel, sizeof(channel), plain ? "quorlock:released:%s" : "redisson_lock__channel:{%s}", key);
    for (uint32_t i = 0; i < 3; i++) {
        if (!is_live(i)) continue;
        n += server_ask_number(SERVER(i), "EVAL %s 0 %s", "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]", channel);
    }
    return n;
}

/* A waiter listens to two nodes, of which one may be frozen. */
static bool listens(void *key)
{
    return listeners(key) >= (frozen == NO_NODE ? 2 : 1);
}

void await_listeners(const char *key)
{
    char own[TEXT_SIZE];

    snprintf(own, sizeof(own), "%s", key);
    await(listens, own, GENEROUS_MS, "the waiter listens");
}

void begin_to_wait(void)
{
    fixture_start_acquire(waiter, &waited);
    await_listeners("key");
    assert_int_equal(waited.calls, 0);
}

void hold_and_wait(void)
{
    assert_status(fixture_acquire(holder, &held), QUORLOCK_OK);
    begin_to_wait();
}

void release_holder(void)
{
    assert_int_equal(quorlock_lock_release(holder, NULL, NULL), 0);
}
