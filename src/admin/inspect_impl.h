/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inspect_impl.h - what inspect.c and bootstrap.c share
 */
#ifndef QUORLOCK_INSPECT_IMPL_H
#define QUORLOCK_INSPECT_IMPL_H

#include "admin/inspect.h"

enum answer { ANSWER_WAITED_FOR, ANSWER_ASKED, ANSWER_IN, ANSWER_NONE };

struct inspect_node {
    enum answer answer;
    enum node_op op; /* that it was asked last */
    enum node_outcome outcome;
    enum node_fault fault;
    char *error, *holder, *type;
    int64_t ttl_ms;
    uint32_t latency_us;
    uint64_t fence;
    int64_t quarantine_ms;
    uint32_t count;
    bool has_guard;
    bool again; /* asked with the whole script */
    /* Of a bootstrap. */
    char *guard; /* as found, then as written; NULL: none */
    uint32_t max_lease_ms,
        longest_ms;              /* what the guard that was found says; longest_ms: of leases that may run */
    bool guarded, unreadable;    /* as found */
    bool tried, closed, written; /* its guard may be another now; is for nobody; is as it was asked for */
};

/* Of a bootstrap: what is done with all nodes before the next is. */
enum bootstrap_stage { BOOTSTRAP_LOOKS, BOOTSTRAP_CLOSES, BOOTSTRAP_WRITES, BOOTSTRAP_WAITS, BOOTSTRAP_CHECKS };

struct inspect {
    struct waker waker;
    struct quorlock_client *client;
    struct inspect *next;
    enum node_op op; /* what each node is asked first */
    bool bootstrap, reconfigure;
    enum bootstrap_stage stage;
    uint32_t lease_ms, longest_ms; /* of a bootstrap: what is written */
    char *key;
    size_t key_length;
    const char *name;
    quorlock_report_cb call;
    void *arg;
    int status;
    bool complete, notified;
    uint32_t in_flight;
    struct inspect_node nodes[];
};

/* inspect_ask - sends one request to a node: its answer is awaited, or cannot come. */
void inspect_ask(struct inspect *, uint32_t node, enum node_op);
/* inspect_ask_all - the same to every node, as soon as it is connected. */
void inspect_ask_all(struct inspect *);
/* inspect_set_deadline - for all that is asked now. */
void inspect_set_deadline(struct inspect *);

/* bootstrap_on_reply - another reply, which is noted in the node. */
void bootstrap_on_reply(struct inspect *, uint32_t node, const struct node_reply *);
/* bootstrap_step - all nodes answered, or cannot. True: they were asked something else; or else the status at
 * the end, or that it waits. */
bool bootstrap_step(struct inspect *, int *ret_status);
/* bootstrap_waits - nothing is asked until its deadline; bootstrap_wait_over: it came. */
bool bootstrap_waits(const struct inspect *);
void bootstrap_wait_over(struct inspect *);
void bootstrap_report(const struct inspect *, uint32_t node, struct quorlock_node_report *ret);

#endif
