/* SPDX-License-Identifier: BSD-3-Clause */
/* result.h - a node's answers for people; the verdict is the core's */
#pragma once

#include "lock/admission.h"
#include "lock/note.h"

struct node_result {
    struct unsent_release unsent;
    struct note *note; /* what they said; NULL: nothing */
    uint32_t latency_us;
    enum quorlock_vote_outcome released : 8; /* the outcome of the latest release */
};

/* result_take - what an answer to an attempt or a renewal said; true: it names another holder than before.
 * result_forget_others: the holders that other nodes named in answers to earlier attempts. result_take_release: the
 * answer to the latest release, while that is awaited. */
bool result_take(struct node_result *, const struct alloc *, uint64_t attempt, const struct node_reply *);
void result_forget_others(struct node_result *results, uint32_t n_nodes, const struct alloc *, uint32_t node);
void result_take_release(struct node_result *, const struct alloc *, const struct node_reply *);
/* result_clear - what an attempt or a renewal left. */
void result_clear(struct node_result *, const struct alloc *);
