/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_fixture.h - a node, a server that plays scripts, and the trace of what the node reported
 *
 * Each state and each reply becomes a line: "ready 1", "down auth", "7 yes", "7 unknown timeout".
 */
#ifndef QUORLOCK_TESTS_NODE_FIXTURE_H
#define QUORLOCK_TESTS_NODE_FIXTURE_H

#include "base/system_os.h"
#include "fake_server.h"
#include "redis/link/uri.h"
#include "redis/node.h"
#include "redis/subscriber.h"
#include "test.h"

#define LIMIT_S 60

/* NODE_TEST - a test whose `f` is to be opened by node_fixture_open or a function that calls it. */
#define NODE_TEST(name) TEST_WITH(node_fixture, name, node_fixture_setup, node_fixture_teardown)

/* What the owner of a subscriber does from inside the callback that reports the line act_at, once. */
enum act { ACT_NONE, ACT_STOP, ACT_RESTART, ACT_FREE, ACT_LISTEN, ACT_FORGET };

struct node_fixture {
    struct event_base *base;
    struct fake_server *server;
    struct counted counted;
    struct alloc alloc;
    struct system system;
    struct uri uri;
    struct node_config config; /* its link is also the subscriber's */
    struct node *node;
    char trace[1 << 21];
    size_t trace_length;
    char why[512], error[512]; /* of the latest state and reply */
    char logged[8192];
    int down_level; /* of the latest line of the log that a node is down */
    char holder[64], type[32];
    uint32_t latency_us;
    bool watched; /* of the latest reply */
    unsigned n_replies;
    const char *free_at; /* the line at which a callback frees the node */
    void (*on_line)(struct node_fixture *, const char *line);
    bool freed;
    unsigned after_free;
    /* Instead of the node, by notice_fixture.h: */
    struct subscriber *subscriber;
    const char *wants; /* one-letter channels, asked for at each open */
    const char *act_at;
    enum act act;
};

#define STEP(verb, text)                                                                                               \
    {                                                                                                                  \
        verb, 0, text, NULL                                                                                            \
    }
#define SHAKE                                                                                                          \
    {                                                                                                                  \
        FAKE_HANDSHAKE, 0, NULL, NULL                                                                                  \
    }
#define SHAKE_AS(text, more)                                                                                           \
    {                                                                                                                  \
        FAKE_HANDSHAKE, 0, text, more                                                                                  \
    }
#define SLEEP(ms)                                                                                                      \
    {                                                                                                                  \
        FAKE_SLEEP, ms, NULL, NULL                                                                                     \
    }
#define CLOSE                                                                                                          \
    {                                                                                                                  \
        FAKE_CLOSE, 0, NULL, NULL                                                                                      \
    }
#define RESET                                                                                                          \
    {                                                                                                                  \
        FAKE_RESET, 0, NULL, NULL                                                                                      \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        FAKE_END, 0, NULL, NULL                                                                                        \
    }
#define EXPECT(text) STEP(FAKE_EXPECT, text)
#define SEND(text)   STEP(FAKE_SEND, text)

/* node_fixture_open - a base and a server; the test may change the config before node_fixture_new_node. Closes
 * what was open; that fails the test where an expectation was not met, memory is out, or a callback came late.
 */
void node_fixture_open(struct node_fixture *);
/* node_fixture_uri - the server's address with credentials in front or a database behind. */
void node_fixture_uri(struct node_fixture *, const char *front, const char *back);
struct node *node_fixture_new_node(struct node_fixture *);
/* node_fixture_trace - one more line of the trace; free_at and on_line react to it. */
void node_fixture_trace(struct node_fixture *, const char *line);
/* node_fixture_log - as an events.log, with the fixture as its arg. */
void node_fixture_log(int level, const char *text, void *f);
/* node_fixture_start - opens it and starts the node; the first connection plays that script. */
void node_fixture_start(struct node_fixture *, const struct fake_step *script);
/* node_fixture_ready - the same, and the handshake has been answered. */
void node_fixture_ready(struct node_fixture *, const struct fake_step *script);
int node_fixture_setup(void **state);
int node_fixture_teardown(void **state);
/* run_until - runs the loop until the trace holds that text; fails after a generous limit. */
void run_until(struct node_fixture *, const char *line);
/* run_on - runs the loop for some time; only where nothing more may come. */
void run_on(struct node_fixture *, unsigned ms);
int ask(struct node_fixture *, unsigned tag, enum op, uint32_t timeout_ms);
/* ask_sent - must be accepted, and reported only later. */
void ask_sent(struct node_fixture *, unsigned tag, enum op, uint32_t timeout_ms);
void assert_trace(struct node_fixture *, const char *wanted);
uint64_t clock_us(void *arg);
/* block_ms - keeps the loop from running. */
void block_ms(unsigned ms);

#endif
