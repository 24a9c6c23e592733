/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_fixture.h - two clients in one loop: one holds "key", the other one waits for it
 */
#ifndef TESTS_WAIT_FIXTURE_H
#define TESTS_WAIT_FIXTURE_H

#include "fixture.h"

extern quorlock_client *second; /* the holder's; fixture.client is the waiter's */
extern quorlock_lock *holder, *waiter;
extern struct seen held, waited;
extern uint32_t frozen; /* a node that must not be asked; NO_NODE: none is */

#define NO_NODE UINT32_MAX

/* As cmocka's setup: three servers, and both clients. */
int setup_both(void **state);
int setup_both_redisson(void **state);
#define BOTH_TEST(name) TEST_RUNS(name, RUN_WITH(name, "", setup_both))
#define DIALECTS_TEST(name)                                                                                            \
    TEST_RUNS(name, RUN_WITH(name, " (plain)", setup_both) RUN_WITH(name, " (redisson)", setup_both_redisson))

/* open_both - the clients and their locks, by fixture.options. */
void open_both(void);
void close_both(void);
/* lasting_lock - of one key or, where `other` is not NULL, two: a long lease, and it waits for ever. */
quorlock_lock *lasting_lock(quorlock_client *, const char *key, const char *other);

/* listeners - connections of the live servers that listen to the key's channel. */
long long listeners(const char *key);
void await_listeners(const char *key);
bool is_live(uint32_t node);

/* begin_to_wait - the waiter listens, and was not called. hold_and_wait: the holder has the key before. */
void begin_to_wait(void);
void hold_and_wait(void);
void release_holder(void);

#endif
