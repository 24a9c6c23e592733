/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answers.h - what each node answered, for people: the verdict is the core's
 *
 * Most answers say yes or no and nothing else, so there is a struct answer_texts only while a node said more. Out of
 * memory costs its texts, not the verdict. A callback is handed these texts, and may do anything to the lock meanwhile:
 * so struct answer_texts counts its readers, and while there is one it is copied instead of changed.
 */
#pragma once

#include "base/alloc.h"
#include "lock/admission.h"

/* What a node said beyond yes and no. */
struct answer_texts {
    char *error, *holder;
    int64_t ttl_ms;                       /* of that holder; -2: the node did not say */
    uint64_t holder_attempt;              /* in which the node named the holder */
    uint64_t named_id;                    /* the holder that it named last, also where that is not quoted any more */
    char *release_holder, *release_error; /* what the node said to the latest release; NULL: nothing */
    uint32_t readers : 31;                /* callbacks that were handed the texts */
    bool left : 1;                        /* no result points to it: the last reader frees it */
};

struct node_result {
    struct unsent_release unsent;
    struct answer_texts *answer; /* NULL: the node said nothing beyond yes and no */
    uint32_t latency_us;
    enum quorlock_vote_outcome released : 8; /* the outcome of the latest release */
};

/* answer_read - return the answer, or one that says nothing. */
const struct answer_texts *answer_read(const struct answer_texts *);
/* answer_share - keep the texts for one more reader; NULL is fine. answer_unshare - one reader less. */
void answer_share(struct answer_texts *);
void answer_unshare(struct answer_texts *, const struct alloc *);

/* result_take - keep what a node said to an attempt or a renewal, in place of the answer before. True: it names
 * another holder than before.
 * result_take_release - keep what a node said to the latest release, while that is awaited. */
bool result_take(struct node_result *, const struct alloc *, uint64_t attempt, const struct node_reply *);
void result_take_release(struct node_result *, const struct alloc *, const struct node_reply *);
/* result_clear - forget the answer to an attempt or a renewal. result_clear_release - forget that to a release. */
void result_clear(struct node_result *, const struct alloc *);
void result_clear_release(struct node_result *, const struct alloc *);
/* results_forget_others - forget the holders that nodes named in answers to earlier attempts, where they differ from
 * the one that this node named now. */
void results_forget_others(struct node_result *results, uint32_t n_nodes, const struct alloc *, uint32_t node);
