/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - the slots, readers and waiting clients of a name, over all nodes, as text and as JSON */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

#include "text.h"

/* One holder of a name, or a client that waits for it, over all nodes. */
struct part {
    int kind; /* enum quorlock_holder_kind */
    uint32_t slot;
    bool shared;
    const char *holder;
    size_t n_nodes;    /* that have it */
    uint64_t fence;    /* the highest */
    uint32_t valid_ms; /* until it is on fewer than a quorum of nodes; 0: it is already. UINT32_MAX: no expiry */
};

struct parts {
    struct part *all;
    size_t n;
    size_t n_nodes;        /* of the report */
    uint32_t permits;      /* of the name; 0: no node has it as such */
    size_t slots, readers; /* on a quorum */
    bool failed;           /* memory was short: there may be more */
};

/* parts_find - of a report, which must outlive them. parts_clear: frees them. */
struct parts parts_find(const struct quorlock_report *report);
void parts_clear(struct parts *parts);
/* parts_table - a line for each; nothing where there are none. parts_json: the same. */
void parts_table(struct text *text, const struct parts *parts);
json_t *parts_json(const struct parts *parts);
/* parts_node_json - those of one node. */
json_t *parts_node_json(const struct quorlock_node_report *node);
/* parts_on_node - how many of that kind it has. */
size_t parts_on_node(const struct quorlock_node_report *node, int kind);
