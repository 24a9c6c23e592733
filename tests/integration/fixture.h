/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixture.h - what the library's tests with whole servers share: a base, a client, recorded callbacks, and
 * waiting
 *
 * Nothing waits by sleeping: await() runs the loop until a condition holds, and fails the test where it stands
 * when a generous limit passes.
 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include <stdio.h>
#include <string.h>

#include <event2/event.h>
#include <quorlock/quorlock.h>

#include "cluster.h"
#include "host_loop.h"
#include "test.h"

#define GENEROUS_MS         30000u
#define FIXTURE_CLIENTS_MAX 16
/* A key that goes before so long a lease ends was released, it did not expire. */
#define LONG_LEASE_MS 120000u
/* That of a lock which is renewed for longer than this, also where the machine stalls for a moment. */
#define KEPT_LEASE_MS 5000u

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
    uint32_t valid_ms; /* quorlock_lock_valid_ms() as asked inside the callback */
    struct quorlock_loss loss;
    char text[TEXT_SIZE];
};

struct seen_report {
    int calls;
    int status;
    struct quorlock_inspect_report report; /* of an inspection; its holder is below */
    char holder[TEXT_SIZE];
    struct {
        int state; /* of the enum of that report */
        char holder[TEXT_SIZE], error[TEXT_SIZE];
        int64_t waiters;
        size_t n_holders;
    } nodes[QUORLOCK_NODES_MAX];
};

/* What one test uses. All of it is gone after the test, also where an assertion failed. */
struct fixture {
    pid_t owner; /* the process that runs the test */
    struct cluster cluster;
    const char *nodes[CLUSTER_NODES_MAX]; /* how clients reach the servers; see fixture_log_in */
    char uris[CLUSTER_NODES_MAX][2 * TEXT_SIZE];
    struct event_base *base;
    struct quorlock_client_options options; /* of the next client; see fixture_setup */
    struct client_extras extras;            /* likewise */
    quorlock_client *client;
    quorlock_client *clients[FIXTURE_CLIENTS_MAX]; /* all that are open */
    uint32_t order;
    void (*at_end)(void); /* closes what another part of the test put on the base */
    bool inside_call;     /* set around start functions: no callback may come meanwhile */
    bool in_loop;
    bool ending; /* the test's own memory is gone: nothing is recorded any more */
    char *log;   /* every line of the log hook */
    size_t log_length;
};

/* The one fixture of this program; callbacks count their order in it. */
extern struct fixture fixture;

/*
 * As cmocka's setup: three servers and a base. fixture.options are for a client on all of them, with the
 * recording log hook, leases up to LONG_LEASE_MS and no guard.
 * As cmocka's teardown: closes the clients that are open, checks that nothing is left on the base, frees all.
 */
int fixture_setup(void **state);
int fixture_setup_one(void **state);      /* one server */
int fixture_setup_bare(void **state);     /* without servers */
int fixture_setup_client(void **state);   /* also with fixture.client */
int fixture_setup_redisson(void **state); /* that client in the redisson dialect */
int fixture_teardown(void **state);
void fixture_begin(uint32_t n_servers);
void fixture_end(void);

/* fixture_add - add a test of this fixture; in the simulated world it runs several times, in other orders of events. */
void fixture_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup);

/* fixture_needs_real_servers - skip the test in the simulated world: what it asks of servers the models do not know. */
void fixture_needs_real_servers(void);

/* TEST_RUNS - a test that runs once for each RUN_WITH. SERVERS_TEST(name) { ... } and the like run once. */
#define TEST_RUNS(name, ...)                                                                                           \
    static void name(void);                                                                                            \
    static void name##_run(void **state)                                                                               \
    {                                                                                                                  \
        name();                                                                                                        \
    }                                                                                                                  \
    __attribute__((constructor)) static void name##_add(void)                                                          \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }                                                                                                                  \
    static void name(void)
#define RUN_WITH(name, label, setup) fixture_add(#name label, name##_run, setup);
#define BARE_TEST(name)              TEST_RUNS(name, RUN_WITH(name, "", fixture_setup_bare))
#define SERVER_TEST(name)            TEST_RUNS(name, RUN_WITH(name, "", fixture_setup_one))
#define SERVERS_TEST(name)           TEST_RUNS(name, RUN_WITH(name, "", fixture_setup))
#define CLIENT_TEST(name)            TEST_RUNS(name, RUN_WITH(name, "", fixture_setup_client))
#define REDISSON_TEST(name)          TEST_RUNS(name, RUN_WITH(name, "", fixture_setup_redisson))

/* fixture_new_client - a client of fixture.options; returns when `ready` nodes answer. */
quorlock_client *fixture_new_client(uint32_t ready);
/* fixture_client - the same as fixture.client. */
void fixture_client(uint32_t ready);
/* fixture_adopt - the test made it, the fixture closes it. */
void fixture_adopt(quorlock_client *);
void fixture_await_ready(quorlock_client *, uint32_t ready);
/* fixture_close - closes it and waits for that. fixture_start_close: *closed counts the callback. */
void fixture_close(quorlock_client *);
void fixture_start_close(quorlock_client *, int *closed);

/* SERVER - one of the fixture's. holders: cluster_holders of them. */
#define SERVER(i) (&fixture.cluster.servers[i])
uint32_t holders(const char *key, const char *value);

/* fixture_bootstrap - write the guard on all servers. fixture.options.guard is off then. */
void fixture_bootstrap(void);

/* fixture_log_in - the next clients reach their nodes with "USER:PASSWORD@", "", and "/DATABASE" or "". */
void fixture_log_in(const char *credentials, const char *database);

/* fixture_lock - a lock of one key, or of several. The client frees it, unless the test does. */
quorlock_lock *fixture_lock(quorlock_client *, const char *key, const struct quorlock_lock_options *);
quorlock_lock *fixture_lock_all(quorlock_client *, const char *const *keys, size_t n_keys,
                                const struct quorlock_lock_options *);
/* Most locks of the tests try once: so they have a wait_ms of their own, where 0 is QUORLOCK_TRY_ONCE, and this one no
 * limit. fixture_wait and fixture_options turn it into that of the library. */
#define NO_LIMIT (UINT32_MAX - 1)
static inline uint32_t fixture_wait(uint32_t wait_ms)
{
    if (wait_ms == 0) return QUORLOCK_TRY_ONCE;
    return wait_ms == NO_LIMIT ? 0 : wait_ms;
}
static inline struct quorlock_lock_options *fixture_options(struct quorlock_lock_options *options)
{
    options->wait_ms = fixture_wait(options->wait_ms);
    return options;
}
/* LEASE - lock options: LEASE(1000), LEASE(1000, .renew_ms = 100). */
#define LEASE(...)                                                                                                     \
    fixture_options(                                                                                                   \
        &(struct quorlock_lock_options){.size = sizeof(struct quorlock_lock_options), .lease_ms = __VA_ARGS__})

void on_result(quorlock_lock *, const struct quorlock_result *, void *seen);
void on_loss(quorlock_lock *, const struct quorlock_loss *, void *seen);
void on_inspected(int status, const struct quorlock_inspect_report *, void *seen);
void on_broken(int status, const struct quorlock_break_report *, void *seen);
void on_bootstrapped(int status, const struct quorlock_bootstrap_report *, void *seen);

/* Start an operation, wait for its end, and return its status. */
int fixture_acquire(quorlock_lock *, struct seen *);
int fixture_release(quorlock_lock *, struct seen *);
int fixture_extend(quorlock_lock *, uint32_t lease_ms, struct seen *);
/* The same without waiting; the start must succeed. */
void fixture_start_acquire(quorlock_lock *, struct seen *);
void fixture_start_release(quorlock_lock *, struct seen *);
void fixture_start_extend(quorlock_lock *, uint32_t lease_ms, struct seen *);
void fixture_inspect(quorlock_client *, const char *key, struct seen_report *);
void fixture_break(quorlock_client *, const char *key, struct seen_report *);

/* await_count - runs the loop until *count reaches wanted. */
void await_count(const int *count, int wanted, uint32_t limit_ms, const char *what);
/* await_status - runs the loop until the callback came, which brings that status. */
void await_status(const struct seen *, int status, const char *what);
typedef bool (*condition)(void *arg);
/* fixture_turn - runs the loop until something has happened there, at the latest until clock_us() shows that. */
void fixture_turn(uint64_t until_us);
void await(condition, void *arg, uint32_t limit_ms, const char *what);
/* run_ms - runs the loop for a span that the test is about (a lease that must pass, say). */
void run_ms(uint32_t span_ms);

/* await_holders - until exactly so many servers hold the value at the key, as seen from outside. */
void await_holders(const char *key, const char *value, uint32_t wanted);
/* await_free - runs the loop until no server has the key. */
void await_free(const char *key);
/* logged - how often the log has that text. await_log: until it has it so often. */
unsigned logged(const char *text);
void await_log(const char *text, unsigned times);

/* take_by_hand - another owner's lock on the first n servers, in the clients' dialect; drop_by_hand: it is gone
 * from all servers that run. */
void take_by_hand(uint32_t n, const char *key, const char *owner);
void drop_by_hand(const char *key);
/* lock_calls - commands on locks that all servers have seen. */
long long lock_calls(void);

#define assert_status(got, wanted)                                                                                     \
    do {                                                                                                               \
        int got_ = (got);                                                                                              \
        if (got_ != (wanted)) fail_msg("status %s, not %s", quorlock_status_name(got_), quorlock_status_name(wanted)); \
    } while (0)

#endif
