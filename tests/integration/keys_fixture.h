/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keys_fixture.h - one server, one node of the library on it in either dialect, and three keys: "a", "b", "c"
 */
#ifndef TESTS_KEYS_FIXTURE_H
#define TESTS_KEYS_FIXTURE_H

#include "probe.h"

#define N         3
#define US        "us:1"
#define THEM      "them:2"
#define OTHERS    "others:3"
#define LEASE_MS  30000
#define LONG_MS   600000
#define SHORT_MS  10000
#define NO_EXPIRY (-1)

extern const struct server *const server;
extern uint32_t dialect;
extern struct probe *probe; /* open, without a guard */
extern const char *const names[N];

int setup_plain(void **state);
int setup_redisson(void **state);
#define DIALECTS_TEST(name)                                                                                            \
    TEST_RUNS(name, RUN_WITH(name, " (plain)", setup_plain) RUN_WITH(name, " (redisson)", setup_redisson))

void open_probe(const char *address, uint32_t guard);
bool plain(void);

/* ---- the server, from outside ---- */

/* put_lock, put - that owner's lock, as the dialect writes it, whatever was there before. lock_is_of, holds - the lock
 * is that owner's, with a count of 1. */
void put_lock(const char *name, const char *owner, int32_t lease_ms);
bool lock_is_of(const char *name, const char *owner);
void put(size_t i, const char *owner, int32_t lease_ms);
void put_all(const char *owner, int32_t lease_ms);
void drop(size_t i);
bool has(size_t i);
bool holds(size_t i, const char *owner);
void assert_left(size_t i, int64_t least_ms, int64_t most_ms);
void count_to(size_t i, const char *counter);
void assert_counter(size_t i, const char *wanted); /* "": there is none */
void assert_counters(const char *wanted);
void wipe(void);
/* key_count - how many keys the server has, of any kind. */
long long key_count(void);

/* ---- requests ---- */

/* request_of - of the three keys, with LEASE_MS. ask, ask_fenced: the same for US, answered. */
struct node_request request_of(enum op, const char *owner);
struct answer ask(enum op);
struct answer ask_fenced(enum op, uint64_t fence);
void assert_outcome(struct answer, enum outcome);
void assert_fault(struct answer, enum fault);
void assert_counts(struct answer, uint64_t fence);
void assert_held_by(struct answer, const char *holder, int64_t least_ms, int64_t most_ms);

#endif
