/* SPDX-License-Identifier: BSD-3-Clause */
/* shown.h - what inspect, break and bootstrap report, in one form for their tables and JSON */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

/* What a report does not have is NULL or 0; of numbers that may be 0, -1 or less. */
struct shown_node {
    const char *node;
    const char *state;  /* a word of quorlock(1); of what was broken, what it was */
    const char *holder; /* of bootstrap: the guard */
    const char *error, *type, *quarantine_why;
    int64_t ttl_ms, quarantine_ms, waiters;
    uint64_t fence;
    uint32_t latency_us, count, permits;
    bool broken;
    const struct quorlock_holder *const *holders;
    size_t n_holders;
};

struct shown {
    uint32_t quorum, answered, valid_ms;
    bool held;
    const char *holder;
    struct shown_node nodes[QUORLOCK_NODES_MAX];
    size_t n_nodes;
};

/* shown_inspected, shown_broken, shown_bootstrapped - return the report, whose texts it uses. */
struct shown shown_inspected(const struct quorlock_inspect_report *report);
struct shown shown_broken(const struct quorlock_break_report *report);
struct shown shown_bootstrapped(const struct quorlock_bootstrap_report *report, size_t quorum);
