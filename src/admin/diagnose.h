/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * diagnose.h - what the facts about the nodes mean for the locks on them
 *
 * A pure function: no I/O, no clock, no memory of its own.
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
    const char *user; /* as whom we ask; NULL: the default user */
    const struct examine_facts *facts;
};

/* The nodes, and what their clients expect of them. */
struct diagnose_set {
    const struct diagnose_node *nodes;
    uint32_t n_nodes, quorum;
    const char *set;       /* what the guards should say */
    bool named;            /* that is a name, not a hash of the addresses */
    uint32_t max_lease_ms; /* likewise; 0: whatever they say, if they agree */
    bool allow_eviction;
};

/* A finding and its texts. */
struct diagnose_words {
    struct quorlock_finding finding;
    char text[DIAGNOSE_TEXT_SIZE], remedy[DIAGNOSE_REMEDY_SIZE];
};

/* Both arrays belong to the caller and have that many places; findings, in their order, point into words. */
struct diagnosis {
    const struct quorlock_finding **findings;
    struct diagnose_words *words;
    size_t n_findings, room;
};

/* diagnose_list_rights - "SET, PEXPIRE"; with rule "+set +pexpire", as ACL SETUSER takes it. */
void diagnose_list_rights(char *ret, size_t size, uint32_t rights, bool rule);
/* diagnose - all findings, the worst first, else in the order of the nodes. diagnose_room: places that suffice.
 * diagnose_severity: of the worst. */
size_t diagnose_room(uint32_t n_nodes);
void diagnose(const struct diagnose_set *, struct diagnosis *ret);
int diagnose_severity(const struct diagnosis *);
