/* SPDX-License-Identifier: BSD-3-Clause */
#include "shown.h"

static const char *const inspect_words[] = {[QUORLOCK_INSPECT_DOWN] = "down",
                                            [QUORLOCK_INSPECT_ERROR] = "error",
                                            [QUORLOCK_INSPECT_FREE] = "free",
                                            [QUORLOCK_INSPECT_HELD] = "held",
                                            [QUORLOCK_INSPECT_FOREIGN] = "foreign"};
static const char *const break_words[] = {[QUORLOCK_BREAK_DOWN] = "down",
                                          [QUORLOCK_BREAK_ERROR] = "error",
                                          [QUORLOCK_BREAK_FREE] = "free",
                                          [QUORLOCK_BREAK_HELD] = "held",
                                          [QUORLOCK_BREAK_FOREIGN] = "foreign"};
static const char *const bootstrap_words[] = {[QUORLOCK_BOOTSTRAP_DOWN] = "down",
                                              [QUORLOCK_BOOTSTRAP_ERROR] = "error",
                                              [QUORLOCK_BOOTSTRAP_FREE] = "free",
                                              [QUORLOCK_BOOTSTRAP_GUARDED] = "guarded",
                                              [QUORLOCK_BOOTSTRAP_WRITTEN] = "bootstrapped",
                                              [QUORLOCK_BOOTSTRAP_ENDED] = "ended",
                                              [QUORLOCK_BOOTSTRAP_CLOSED] = "closed",
                                              [QUORLOCK_BOOTSTRAP_UNKNOWN] = "unknown",
                                              [QUORLOCK_BOOTSTRAP_IN_USE] = "in use"};

struct shown shown_inspected(const struct quorlock_inspect_report *report)
{
    struct shown shown = {.quorum = report->quorum,
                          .answered = report->answered,
                          .valid_ms = report->valid_ms,
                          .held = report->held != 0,
                          .holder = report->holder,
                          .n_nodes = report->n_nodes};

    for (size_t i = 0; i < report->n_nodes; i++) {
        const struct quorlock_inspect_node *node = report->nodes[i];

        shown.nodes[i] = (struct shown_node){.node = node->node,
                                             .state = inspect_words[node->state],
                                             .holder = node->holder,
                                             .error = node->error,
                                             .type = node->type,
                                             .quarantine_why = node->quarantine_why,
                                             .ttl_ms = node->ttl_ms,
                                             .quarantine_ms = node->quarantine_ms,
                                             .waiters = node->waiters,
                                             .fence = node->fence,
                                             .latency_us = node->latency_us,
                                             .count = node->count,
                                             .permits = node->permits,
                                             .holders = node->holders,
                                             .n_holders = node->n_holders};
    }
    return shown;
}

/* was - return what a node had before. */
static const char *was(const struct quorlock_break_node *node)
{
    if (node->state != QUORLOCK_BREAK_BROKEN) return break_words[node->state];
    return node->holder != NULL ? "held" : node->type != NULL ? "foreign" : "free";
}

struct shown shown_broken(const struct quorlock_break_report *report)
{
    struct shown shown = {.quorum = report->quorum,
                          .valid_ms = report->valid_ms,
                          .held = report->held != 0,
                          .holder = report->holder,
                          .n_nodes = report->n_nodes};

    for (size_t i = 0; i < report->n_nodes; i++) {
        const struct quorlock_break_node *node = report->nodes[i];

        shown.nodes[i] = (struct shown_node){.node = node->node,
                                             .state = was(node),
                                             .holder = node->holder,
                                             .error = node->error,
                                             .type = node->type,
                                             .ttl_ms = node->ttl_ms,
                                             .quarantine_ms = -1,
                                             .waiters = -1,
                                             .latency_us = node->latency_us,
                                             .permits = node->permits,
                                             .broken = node->state == QUORLOCK_BREAK_BROKEN,
                                             .holders = node->holders,
                                             .n_holders = node->n_holders};
    }
    return shown;
}

struct shown shown_bootstrapped(const struct quorlock_bootstrap_report *report, size_t quorum)
{
    struct shown shown = {.quorum = (uint32_t)quorum, .n_nodes = report->n_nodes};

    for (size_t i = 0; i < report->n_nodes; i++) {
        const struct quorlock_bootstrap_node *node = report->nodes[i];

        shown.nodes[i] = (struct shown_node){.node = node->node,
                                             .state = bootstrap_words[node->state],
                                             .holder = node->guard,
                                             .error = node->error,
                                             .ttl_ms = node->quarantine_ms >= 0 ? -1 : -2, /* guards do not expire */
                                             .quarantine_ms = node->quarantine_ms,
                                             .waiters = -1,
                                             .latency_us = node->latency_us};
    }
    return shown;
}
