/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - the life of a report: what inspect, bootstrap and doctor have in common */
#pragma once

#include "runtime/nodes.h"

/* The reports of one client. */
struct admin {
    struct runtime *runtime;
    struct report *reports; /* newest first */
    size_t budget;          /* callbacks that may still run in this turn */
    struct turn turn;
    struct node_observer observer;
    /* The guard of each node at the last inspection. until_us: end of the quarantine of a first contact; 0: no guard.
     */
    struct {
        enum guard_set set;
        uint64_t until_us;
    } guards[QUORLOCK_NODES_MAX];
};

struct report {
    struct report *next;
    struct admin *all;
    bool complete, notified;
    uint32_t in_flight;                                   /* requests that refer to it */
    void (*node_changed)(struct report *, uint32_t node); /* or NULL */
    void (*close)(struct report *);                       /* the client closes: complete with CLOSED */
    void (*notify)(struct report *);                      /* run the user's callback */
    void (*destroy)(struct report *);
};

/*
 * admin_start - initialize a zeroed struct
 * admin_close - complete all reports
 * admin_stop  - free everything
 */
void admin_start(struct admin *, struct runtime *);
void admin_close(struct admin *);
void admin_stop(struct admin *);
/*
 * report_check    - check whether a report may begin: 0, or a status and its text
 * report_begin    - add the report; the admin owns it from now on
 * report_complete - have its callback run soon
 */
int report_check(struct admin *, bool has_callback);
void report_begin(struct admin *, struct report *);
void report_complete(struct report *);
/* report_refuses - tell whether a node with this fault refuses us: it lacks a right, or the login.
 * report_lack - return the status where fewer than `needed` of `asked` nodes answered. AUTH: without those that refuse
 * us there would be too few anyway. */
bool report_refuses(enum fault);
int report_lack(size_t refused, size_t asked, size_t needed);
/* bootstrap_begin, doctor_begin, list_begin - implement quorlock_client_bootstrap, quorlock_client_doctor and
 * quorlock_client_list. */
int bootstrap_begin(struct admin *, const struct quorlock_bootstrap_options *, quorlock_bootstrap_cb cb, void *arg);
int doctor_begin(struct admin *, quorlock_doctor_cb cb, void *arg);
int list_begin(struct admin *, const char *pattern, quorlock_list_cb cb, void *arg);
