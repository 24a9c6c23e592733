/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * diagnose.h - findings from the facts about the nodes
 *
 * diagnose() is a pure function: it does no I/O, reads no clock and allocates no memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quorlock/quorlock.h>

#include "redis/examine.h"

#define DIAGNOSE_TEXT_SIZE   640
#define DIAGNOSE_REMEDY_SIZE 400

struct diagnose_node {
    const char *name;
    const char *user; /* that the address names; NULL: none */
    const struct examine_facts *facts;
};

/* The nodes, and the settings of their clients. */
struct diagnose_set {
    const struct diagnose_node *nodes;
    uint32_t n_nodes, quorum;
    const char *set;       /* the set that the guards should name */
    const char *prefix;    /* of their keys; "": none */
    bool named;            /* set is a name, not a hash of the addresses */
    uint32_t max_lease_ms; /* that the guards should have; 0: any that they agree on */
    bool allow_eviction;
};

/* A finding and its texts. */
struct diagnose_words {
    struct quorlock_finding finding;
    char text[DIAGNOSE_TEXT_SIZE], remedy[DIAGNOSE_REMEDY_SIZE];
};

/* Both arrays belong to the caller, and have `room` places. findings, sorted, point into words. */
struct diagnosis {
    const struct quorlock_finding **findings;
    struct diagnose_words *words;
    size_t n_findings, room;
};

/* diagnose_list_rights - write a list of rights, as "SET, PEXPIRE"; with rule for ACL SETUSER, as "+set +pexpire". */
void diagnose_list_rights(char *ret, size_t size, uint32_t rights, bool rule);
/* diagnose_has_tracking, diagnose_has_msetex - return whether clients use these commands on the node. */
bool diagnose_has_tracking(const struct examine_facts *facts);
bool diagnose_has_msetex(const struct examine_facts *facts);
/*
 * diagnose_room     - return how many findings there can be
 * diagnose          - find all, the worst first, otherwise in the order of the nodes
 * diagnose_severity - return the severity of the worst finding
 */
size_t diagnose_room(uint32_t n_nodes);
void diagnose(const struct diagnose_set *, struct diagnosis *ret);
int diagnose_severity(const struct diagnosis *);
