/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixture.h - what the library's tests with real servers share: a base, a client, recorded callbacks, and
 * waiting
 *
 * Nothing waits by sleeping: await() runs the loop until a condition holds, and fails the test where it stands
 * when a generous limit passes.
 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <event2/event.h>
#include <quorlock/quorlock.h>

#include "cluster.h"

#define GENEROUS_MS 30000u
/* A key that goes before so long a lease ends was released, it did not expire. */
#define LONG_LEASE_MS 120000u

/* A copy of one node's vote. */
struct seen_vote {
    char node[TEXT_SIZE], error[TEXT_SIZE], holder[TEXT_SIZE];
    int outcome;
    uint32_t latency_us;
    int64_t ttl_ms;
};

/* What a result callback was handed. Zero it, give it as the callback's arg. */
struct seen {
    int calls;
    uint32_t order; /* counts over all callbacks of the test */
    uint64_t at_us;
    struct quorlock_result result; /* its pointers are dead, the texts are below */
    char text[TEXT_SIZE], owner[TEXT_SIZE];
    struct seen_vote votes[QUORLOCK_NODES_MAX];
};

struct seen_loss {
    int calls;
    uint32_t order;
    uint64_t at_us;
    uint32_t valid_ms; /* quorlock_valid_ms() as asked inside the callback */
    struct quorlock_loss loss;
    char text[TEXT_SIZE];
};

struct seen_report {
    int calls;
    int status;
    struct quorlock_report report;
    char holder[TEXT_SIZE];
    struct {
        char node[TEXT_SIZE], state[32], type[32], holder[TEXT_SIZE], error[TEXT_SIZE];
        int64_t ttl_ms;
        int broken;
    } nodes[QUORLOCK_NODES_MAX];
};

/* What one test uses. */
struct fixture {
    pid_t owner; /* the process that runs the test */
    struct cluster cluster;
    struct event_base *base;
    quorlock_client *client; /* closed by fixture_end where it is not NULL */
    int closed;              /* close callbacks seen */
    uint32_t order;
    bool inside_call; /* set around start functions: no callback may come meanwhile */
    char *log;        /* every line of the log hook */
    size_t log_length;
};

/* The one fixture of this program; callbacks count their order in it. */
extern struct fixture fixture;

/* As cmocka's setup and teardown: three servers, a base; then all of it gone, and nothing left on the base. */
int fixture_setup(void **state);
int fixture_setup_bare(void **state); /* without servers */
int fixture_teardown(void **state);
void fixture_begin(uint32_t n_servers);
void fixture_end(void);

/* fixture_options - defaults over the fixture's cluster, leases up to LONG_LEASE_MS, the recording log hook. */
struct quorlock_client_options fixture_options(void);
/* fixture_client - makes fixture.client of these options and waits until `ready` nodes answer. */
void fixture_client(const struct quorlock_client_options *, uint32_t ready);
quorlock_client *fixture_new_client(const struct quorlock_client_options *);
void fixture_await_ready(quorlock_client *, uint32_t ready);
void fixture_close(quorlock_client *);

quorlock *fixture_lock(quorlock_client *, const char *key, const struct quorlock_options *);
/* fixture_lease - options with a lease, all else default. */
struct quorlock_options fixture_lease(uint32_t lease_ms);

void on_result(quorlock *, const struct quorlock_result *, void *seen);
void on_loss(quorlock *, const struct quorlock_loss *, void *seen);
void on_report(int status, const struct quorlock_report *, void *seen);

/* Start an operation, wait for its end, and return its status. */
int fixture_acquire(quorlock *, struct seen *);
int fixture_release(quorlock *, struct seen *);
int fixture_extend(quorlock *, uint32_t lease_ms, struct seen *);
/* The same without waiting; the start must succeed. */
void fixture_start_acquire(quorlock *, struct seen *);
void fixture_start_release(quorlock *, struct seen *);
void fixture_start_extend(quorlock *, uint32_t lease_ms, struct seen *);
void fixture_inspect(quorlock_client *, const char *key, struct seen_report *);
void fixture_break(quorlock_client *, const char *key, struct seen_report *);

/* await_count - runs the loop until *count reaches wanted. */
void await_count(const int *count, int wanted, uint32_t limit_ms, const char *what);
typedef bool (*condition)(void *arg);
void await(condition, void *arg, uint32_t limit_ms, const char *what);
/* run_ms - runs the loop for a span that the test is about (a lease that must pass, say). */
void run_ms(uint32_t span_ms);

/* await_holders - until exactly so many servers hold the value at the key, as seen from outside. */
void await_holders(const char *key, const char *value, uint32_t wanted);
/* await_free - runs the loop until no server has the key. */
void await_free(const char *key);

#define assert_contains(text, part)                                                                            \
    do {                                                                                                       \
        if (strstr((text), (part)) == NULL) fail_msg("'%s' is not in '%s'", (part), (text));                   \
    } while (0)
#define assert_status(got, wanted)                                                                             \
    do {                                                                                                       \
        int got_ = (got);                                                                                      \
        if (got_ != (wanted))                                                                                  \
            fail_msg("status %s, not %s", quorlock_status_name(got_), quorlock_status_name(wanted));           \
    } while (0)

#endif
