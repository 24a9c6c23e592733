/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - the slots, readers and waiting clients of a name over all nodes, as text and as JSON */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

#include "document.h"
#include "settings/text.h"
#include "shown.h"

/* A holder of a name, or a client that waits for it. */
struct part {
    const struct quorlock_holder *of; /* on the first node that has it */
    size_t n_nodes;                   /* how many nodes have it */
    uint64_t fence;                   /* the highest of all nodes */
    uint32_t valid_ms;                /* until fewer than a quorum of nodes have it; 0: now; UINT32_MAX: no expiry */
};

struct parts {
    struct part *all;
    size_t n;
    size_t n_nodes;        /* of the report */
    uint32_t permits;      /* of the name; 0: it has none */
    size_t slots, readers; /* how many are on a quorum */
    bool failed;           /* out of memory: some may be missing */
};

/*
 * parts_find  - find the parts in a report, which must outlive them
 * parts_clear - free them
 */
struct parts parts_find(const struct shown *report);
void parts_clear(struct parts *parts);
/*
 * parts_table - add a line for each part
 * parts_json  - return them as JSON
 */
void parts_table(struct text *text, const struct parts *parts);
json_t *parts_json(const struct parts *parts);
/* parts_node_json - return the parts of one node as JSON. */
json_t *parts_node_json(const struct shown_node *node);
/* parts_on_node - return how many parts of that kind a node has. */
size_t parts_on_node(const struct shown_node *node, int kind);
