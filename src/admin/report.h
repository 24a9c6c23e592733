/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - the operator's questions to all nodes: what inspect, bootstrap and doctor share */
#pragma once

#include "runtime/nodes.h"

/* The reports of one client. */
struct admin {
    struct runtime *runtime;
    struct report *reports; /* newest first */
    size_t budget;          /* callbacks left for this turn */
    struct turn turn;
    struct node_observer observer;
    /* The guard of each node, as an inspection saw it last; until: of a first contact, 0 where there was no guard. */
    struct {
        enum guard_set set;
        uint64_t until_us;
    } guards[QUORLOCK_NODES_MAX];
};

struct report {
    struct report *next;
    struct admin *all;
    bool complete, notified;
    uint32_t in_flight;                                   /* requests that name it */
    void (*node_changed)(struct report *, uint32_t node); /* or NULL */
    void (*close)(struct report *);                       /* the client closes: completes with CLOSED */
    void (*notify)(struct report *);                      /* runs the user's callback */
    void (*destroy)(struct report *);
};

/* admin_start - of a zeroed struct. admin_close: all reports complete. admin_stop: frees everything. */
void admin_start(struct admin *, struct runtime *);
void admin_close(struct admin *);
void admin_stop(struct admin *);
/* report_check - whether a report may begin: 0 or a status, with its text. report_begin: the admin owns the
 * report from now on. report_complete: its callback runs soon. */
int report_check(struct admin *, bool has_callback);
void report_begin(struct admin *, struct report *);
void report_complete(struct report *);
/* Behind quorlock_bootstrap and quorlock_examine. */
int bootstrap_begin(struct admin *, const struct quorlock_bootstrap_options *, quorlock_report_cb cb, void *arg);
int doctor_begin(struct admin *, quorlock_examination_cb cb, void *arg);
