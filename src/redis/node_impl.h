/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_impl.h - what node.c, node_connect.c and node_guard.c share
 *
 *   PAUSE --> RESOLVE --> TCP --> HANDSHAKE --> OPEN
 *     ^          |         |          |           |
 *     +----------+---------+----------+-----------+  node_drop(): report, tell the state, pause
 *
 * Every entry from the loop stands between node_enter() and node_leave(). A callback may free the node: then
 * `dead` is set, all that could become ready is closed at once, and the memory goes with the last leave. So
 * after every callback, and after every call that may have made one, look with node_is_on() before going on.
 */
#ifndef QUORLOCK_REDIS_NODE_IMPL_H
#define QUORLOCK_REDIS_NODE_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/dialect.h"
#include "redis/dialect/guard.h"
#include "redis/link/conn.h"
#include "redis/link/dial.h"
#include "redis/link/handshake.h"
#include "redis/link/retry.h"
#include "redis/link/uri.h"
#include "redis/node.h"
#include "redis/ring.h"
#include "redis/wire/reply.h"

struct event;

#define NODE_NEVER     UINT64_MAX
#define NODE_TEXT_SIZE 640

enum node_step { NODE_STEP_PAUSE, NODE_STEP_RESOLVE, NODE_STEP_TCP, NODE_STEP_HANDSHAKE, NODE_STEP_OPEN };

struct node {
    struct event_base *base;
    struct alloc alloc;
    struct node_config config;
    struct node_events events;
    char *client_name;
    const struct dialect *dialect;

    enum node_step step;
    enum node_state state;
    enum node_fault fault;
    char why[NODE_TEXT_SIZE];
    uint32_t generation; /* of the latest READY connection */
    uint32_t connection; /* counts all of them, to see that one ended meanwhile */
    uint32_t depth;      /* entries from the loop on the stack */
    bool dead;

    struct event *timer;
    uint64_t timer_us; /* what it is armed for */
    uint64_t step_us;  /* when the present step ends, or the pause */
    uint64_t ready_us; /* since when it is READY */
    struct retry retry;

    struct dial dial;
    struct conn conn;
    struct reply_parser parser;
    struct handshake handshake; /* its steps, then the guard where one is kept */
    struct guard guard;
    char countdown_text[NODE_TEXT_SIZE];
    char *countdown; /* that text, which is made anew when somebody asks, also for a const node */
    bool expelled;   /* by the caller: DOWN at once, and long pauses */
    uint64_t handshake_us;
    struct ring ring;
    size_t answerable; /* requests that were out when the bytes at hand were read */
    size_t fresh;      /* requests that have not left yet: the latest ones of the ring */
    uint64_t heard_us; /* when bytes came last */
    uint32_t srtt_us;
};

uint64_t node_now(const struct node *);
void node_enter(struct node *);
void node_leave(struct node *);
/* node_is_on - the node lives and is still on that connection. */
bool node_is_on(const struct node *, uint32_t connection);
/* node_arm - the one timer, for that time. node_arm_step: for the end of the step that begins now. */
void node_arm(struct node *, uint64_t wake_us);
void node_arm_step(struct node *);
/* node_drop - ends the connection, or the try: reports what is in flight, tells the state, pauses. */
void node_drop(struct node *, enum node_fault, const char *reason);
void node_drop_nomem(struct node *);

/* node_set_state - tells a change, and only a change. */
void node_set_state(struct node *, enum node_state, enum node_fault, const char *why);
void node_log(struct node *, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* node_end_handshake - its last reply is in: the guard's turn, or open at once. */
void node_end_handshake(struct node *);
void node_on_guard_reply(struct node *, const struct reply *);
/* node_watch_guard - asks again where a quarantine is over; node_open_wake_us: when an open node wants to be
 * woken for that, or for its requests. */
void node_watch_guard(struct node *, uint64_t now_us);
uint64_t node_open_wake_us(struct node *);
/* node_on_part - a reply to one of the other commands of a transaction. */
void node_on_part(struct node *, struct ring_entry *, const struct reply *);
/* node_report - tells the reply to a request. */
void node_report(struct node *, const union node_tag *, const struct node_reply *);

/* node_begin - a try, from its beginning. node_fail_address: the present one is no good, for that reason, and
 * the next has its turn. */
void node_begin(struct node *);
void node_fail_address(struct node *, const char *problem);
/* node_on_connected - the socket is connected, or failed to. */
void node_on_connected(struct node *);
/* node_on_resolved - as dial_init wants it. */
void node_on_resolved(void *node);

#endif
