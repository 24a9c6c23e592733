/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.h - one node of the library on a real server, without client and locks: its notices and its answers
 */
#ifndef TESTS_PROBE_H
#define TESTS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system_os.h"
#include "fixture.h"
#include "redis/link/uri.h"
#include "redis/node.h"

/* A copy of one reply. */
struct answer {
    bool came;
    struct node_reply reply; /* its pointers are dead, the texts are below */
    char holder[TEXT_SIZE], error[TEXT_SIZE], others[TEXT_SIZE];
};

struct probe {
    bool is_open;
    struct alloc alloc;
    struct system system;
    struct uri uri;
    struct node_config config; /* set what differs before probe_connect */
    struct node *node;
    enum node_state state;
    enum fault fault;
    uint32_t generation;
    unsigned levels; /* notices so far */
    char why[512];
    char logged[8192];
};

/* probe_open - a node that is not there yet, with a guard in `connection` mode for a set "s" of 3. It is closed
 * with the fixture, unless the test does. */
struct probe *probe_open(const char *address);
/* probe_ready - connected and ready, in that mode of the guard. */
struct probe *probe_ready(const char *address, uint32_t guard);
void probe_connect(struct probe *);
void probe_close(struct probe *);
/* probe_await - runs the loop until the node is on that level. */
void probe_await(struct probe *, enum node_state);
/* probe_await_after - until it is there after more than so many tellings. */
void probe_await_after(struct probe *, enum node_state, unsigned levels);
/* probe_ask - sends one request and runs the loop until it is answered. */
struct answer probe_ask(struct probe *, const struct node_request *);
/* probe_ask_all - so many of one turn of the loop. */
void probe_ask_all(struct probe *, const struct node_request *, struct answer *, size_t n);
/* probe_do - one request, of the lock "key" for that owner, with a lease of 30 s. */
struct answer probe_do(struct probe *, enum op, const char *owner);
/* probe_fenced - the same with a counter. */
struct answer probe_fenced(struct probe *, enum op, const char *owner, uint64_t fence);

#endif
