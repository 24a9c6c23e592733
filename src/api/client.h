/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h - what the rooms of the public API share: nodes, time, and callbacks run from the top of the loop
 */
#ifndef QUORLOCK_CLIENT_H
#define QUORLOCK_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quorlock/quorlock.h>

#include "api/options.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/list.h"
#include "core/core.h"
#include "core/nodeclock.h"
#include "lock/admission.h"
#include "lock/owner.h"
#include "redis/link/uri.h"
#include "redis/node.h"
#include "runtime/notices.h"

struct event;
struct inspect;

/* Something with a deadline, in the client's one heap. */
struct waker {
    struct heap_entry entry; /* first: the heap hands it back */
    void (*wake)(struct waker *);
};

#define CLIENT_RUN_ID_SIZE 64

struct client_node {
    struct uri uri;
    struct node *node;
    struct subscriber *subscriber; /* runs while somebody waits */
    struct nodeclock clock;
    struct list unpaid; /* releases that it had no room for */
    char
        run_id[CLIENT_RUN_ID_SIZE]; /* of the process that answered there last; kept when the connection ends */
};

struct quorlock_client {
    struct event_base *base;
    struct alloc alloc;
    struct quorlock_client_options options; /* checked; nodes and error are the caller's, not kept */
    bool max_lease_given;                   /* and not the default: reports take what the guards say else */
    char *key_prefix, *owner_label, *set;   /* set: name of the nodes in their guards */
    char uuid[OWNER_UUID_SIZE];             /* front of our owners in the redisson dialect; else empty */
    struct clock clock;
    struct options_error error;

    struct heap deadlines;
    struct event *timer;  /* for the earliest deadline, and for work put off to the next turn */
    int timer_fd;         /* behind it: CLOCK_BOOTTIME */
    uint64_t armed_us;    /* what it is armed for; UINT64_MAX: not at all */
    struct event *at_top; /* runs callbacks at the top of the loop, in this turn */
    size_t n_wakers;      /* claims, handles and inspections: room in the heap */

    uint64_t last_fence; /* the latest token of any of our grants */

    struct list locks;        /* all handles */
    struct list claims;       /* all */
    struct list active;       /* claims that hear of every change of a node */
    struct list lost;         /* a loss waits to be told */
    struct list ready;        /* something else waits to be told */
    struct list completed;    /* handles to which something is told that no core has to say */
    struct keylist **buckets; /* lines by the hash of their keys */
    size_t n_buckets, n_keylists;
    struct notices notices;
    struct waker linger; /* when lines stop listening for which nobody waits */
    struct admission admission;
    struct waker admission_look; /* looks for room while something waits for it */
    struct list log_lines;       /* of the log, to be told */
    size_t log_lines_dropped;    /* for want of memory, or because too many waited */
    struct inspect *inspections;
    size_t n_examinations; /* they end soon after the client begins to close, and it waits for them */

    uint32_t node_changes; /* counts changes of node states, for locks that did not hear of them */
    uint32_t running;      /* depth of client_run */
    size_t in_flight;      /* requests at the nodes */
    bool closing, ended;
    uint64_t close_until_us;
    void (*closed)(void *arg);
    void *closed_arg;

    uint32_t n_nodes;
    uint8_t order[CORE_NODES_MAX]; /* of nodes, the same for all clients of the set */
    struct client_node nodes[];
};

/* What travels with a request: whose it is, and the core's tag. */
enum request_kind { REQUEST_CLAIM, REQUEST_INSPECT };

struct request {
    void *owner; /* struct claim or struct inspect; outlives the request */
    struct core_tag tag;
    enum request_kind kind;
};

uint64_t client_now_us(struct quorlock_client *);
/* client_fail - notes the text for quorlock_client_error and returns the status. */
int client_fail(struct quorlock_client *, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* client_log - a line of the log, told from the top of the loop like every callback, in the order of saying. */
void client_log(struct quorlock_client *, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* client_reserve_waker - room in the heap for one more; client_return_waker gives it back. */
int client_reserve_waker(struct quorlock_client *, struct waker *, void (*wake)(struct waker *));
void client_return_waker(struct quorlock_client *, struct waker *);
void client_wake_at(struct quorlock_client *, struct waker *, uint64_t at_us);
/* client_send - hands a request to a node: enum node_send_result. */
int client_send(struct quorlock_client *, uint32_t node, struct node_request *, const struct request *);
/* client_run_soon - callbacks wait: run them at the top of the loop. */
void client_run_soon(struct quorlock_client *);
/* client_timeout_ms - the node timeout where no lock's lease says it. */
uint32_t client_timeout_ms(const struct quorlock_client *);

#endif
