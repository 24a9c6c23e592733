/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_world.h - a node, a server that plays scripts, and the story of what the node told
 *
 * Each state and each reply becomes a line: "ready 1", "down auth", "7 yes", "7 unknown timeout".
 */
#ifndef QUORLOCK_TESTS_NODE_WORLD_H
#define QUORLOCK_TESTS_NODE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_server.h"
#include "redis/link/uri.h"
#include "redis/node.h"

#define LIMIT_S 20

/* Memory hooks that fail the allocation whose turn it is, and count what is out. */
struct counted {
    long until_failure, out;
};

struct world {
    struct event_base *base;
    struct fake_server *server;
    struct counted counted;
    struct alloc alloc;
    struct uri uri;
    struct node_config config;
    struct node *node;
    char story[1 << 18];
    size_t told;
    char why[512], error[512]; /* of the latest state and reply */
    char logged[8192];
    char holder[64], type[32];
    uint32_t latency_us;
    unsigned n_replies;
    const char *free_at; /* the line at which a callback frees the node */
    void (*on_line)(struct world *, const char *line);
    bool freed;
    unsigned after_free;
};

#define STEP(verb, text)                                                                                       \
    {                                                                                                          \
        verb, 0, text, NULL                                                                                    \
    }
#define SHAKE                                                                                                  \
    {                                                                                                          \
        FAKE_HANDSHAKE, 0, NULL, NULL                                                                          \
    }
#define SHAKE_AS(text, more)                                                                                   \
    {                                                                                                          \
        FAKE_HANDSHAKE, 0, text, more                                                                          \
    }
#define SLEEP(ms)                                                                                              \
    {                                                                                                          \
        FAKE_SLEEP, ms, NULL, NULL                                                                             \
    }
#define CLOSE                                                                                                  \
    {                                                                                                          \
        FAKE_CLOSE, 0, NULL, NULL                                                                              \
    }
#define RESET                                                                                                  \
    {                                                                                                          \
        FAKE_RESET, 0, NULL, NULL                                                                              \
    }
#define END                                                                                                    \
    {                                                                                                          \
        FAKE_END, 0, NULL, NULL                                                                                \
    }
#define EXPECT(text) STEP(FAKE_EXPECT, text)
#define SEND(text)   STEP(FAKE_SEND, text)

/* world_open - a base and a server; the node comes with world_node, so that the test can set the config before.
 */
void world_open(struct world *);
/* world_uri - the server's address with credentials in front or a database behind. */
void world_uri(struct world *, const char *front, const char *back);
struct node *world_node(struct world *);
/* world_tell - one more line of the story; acts on it as free_at and on_line say. */
void world_tell(struct world *, const char *line);
/* world_log - as an events.log, with the world as its arg. */
void world_log(void *world, int level, const char *text);
/* world_start - all of it, the first connection playing that script. */
void world_start(struct world *, const struct fake_step *script);
/* world_close - frees everything; fails if an expectation was not met, memory is out, or a callback came late.
 */
void world_close(struct world *);
/* run_until - runs the loop until the story holds that text; fails after a generous limit. */
void run_until(struct world *, const char *line);
/* run_on - runs the loop for some time: only where nothing more may come. */
void run_on(struct world *, unsigned ms);
int ask(struct world *, unsigned tag, enum node_op, uint32_t timeout_ms);
/* ask_sent - must be taken, and told of later only. */
void ask_sent(struct world *, unsigned tag, enum node_op, uint32_t timeout_ms);
void assert_story(struct world *, const char *wanted);
void assert_holds(const char *text, const char *part);
uint64_t clock_us(void *arg);
/* block_ms - keeps the loop from running. */
void block_ms(unsigned ms);

#endif
