/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/result.h"

#include <assert.h>
#include <string.h>

void result_clear(struct node_result *result, const struct alloc *alloc)
{
    note_clear(&result->note, alloc);
    result->latency_us = 0;
}

bool result_take(struct node_result *result, const struct alloc *alloc, uint64_t attempt,
                 const struct node_reply *reply)
{
    uint64_t holder_id;

    note_take(&result->note, alloc, attempt, reply);
    if (reply->holder == NULL || result->note == NULL) return false;
    holder_id = owner_id(reply->holder, reply->holder_length);
    if (holder_id == result->note->named_id) return false;
    result->note->named_id = holder_id;
    return result->note->holder != NULL;
}

void result_forget_others(struct node_result *results, uint32_t n_nodes, const struct alloc *alloc, uint32_t node)
{
    const struct note *news = results[node].note;

    assert(node < n_nodes && news != NULL && news->holder != NULL);
    for (uint32_t i = 0; i < n_nodes; i++) {
        struct note **other = &results[i].note;

        if (note_read(*other)->holder == NULL || (*other)->holder_attempt == news->holder_attempt) continue;
        if (strcmp((*other)->holder, news->holder) != 0) note_forget_holder(other, alloc);
    }
}

void result_take_release(struct node_result *result, const struct alloc *alloc, const struct node_reply *reply)
{
    if (result->released != QUORLOCK_VOTE_PENDING) return;
    note_take_release(&result->note, alloc, reply);
    result->released = QUORLOCK_VOTE_FAILED;
    if (reply->outcome == OUTCOME_YES) result->released = QUORLOCK_VOTE_GRANTED;
    if (reply->outcome == OUTCOME_MISSING || reply->outcome == OUTCOME_OTHER || reply->fault == FAULT_FOREIGN) {
        result->released = QUORLOCK_VOTE_REFUSED;
    }
    assert(result->released != QUORLOCK_VOTE_PENDING);
}
