/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - what the operator's questions to all nodes share: begun, completed, told once from the loop, freed
 */
#ifndef QUORLOCK_ADMIN_REPORT_H
#define QUORLOCK_ADMIN_REPORT_H

#include "runtime/nodes.h"

/* The reports of one client. */
struct admin {
    struct runtime *runtime;
    struct report *reports; /* newest first */
    size_t budget;          /* so many may still be told in this turn */
    struct turn turn;
    struct node_observer observer;
};

struct report {
    struct report *next;
    struct admin *all;
    bool complete, notified;
    uint32_t in_flight; /* requests that name it */
    /* A node's state changed; NULL: that is of no interest. */
    void (*node_changed)(struct report *, uint32_t node);
    /* The client closes: completes with CLOSED. */
    void (*close)(struct report *);
    /* Runs the user's callback. */
    void (*notify)(struct report *);
    void (*destroy)(struct report *);
};

/* admin_start - of a zeroed struct. admin_close: all reports complete. admin_stop: frees everything. */
void admin_start(struct admin *, struct runtime *);
void admin_close(struct admin *);
void admin_stop(struct admin *);
/* report_check - may a report begin? 0 or a status, with its text; has_callback: there is one to tell it. */
int report_check(struct admin *, bool has_callback);
/* report_begin - the report belongs to the admin from now on. */
void report_begin(struct admin *, struct report *);
/* report_complete - its callback runs soon. */
void report_complete(struct report *);

/* The reports themselves: behind quorlock_bootstrap and quorlock_examine. */
int bootstrap_begin(struct admin *, const struct quorlock_bootstrap_options *, quorlock_report_cb cb,
                    void *arg);
int doctor_begin(struct admin *, quorlock_examination_cb cb, void *arg);

#endif
