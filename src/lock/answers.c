/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/answers.h"

#include <assert.h>
#include <string.h>

#include "runtime/owner.h"

static const struct answer_texts nothing = {.ttl_ms = -2};

const struct answer_texts *answer_read(const struct answer_texts *answer)
{
    return answer != NULL ? answer : &nothing;
}

static void drop_text(const struct alloc *alloc, char **text)
{
    alloc_free(alloc, *text);
    *text = NULL;
}

static char *answer_copy(const struct alloc *alloc, const char *text)
{
    return text != NULL ? alloc_text(alloc, text, strlen(text)) : NULL;
}

static void answer_destroy(struct answer_texts *answer, const struct alloc *alloc)
{
    assert(answer->readers == 0);
    drop_text(alloc, &answer->error);
    drop_text(alloc, &answer->holder);
    drop_text(alloc, &answer->release_error);
    drop_text(alloc, &answer->release_holder);
    alloc_free(alloc, answer);
}

/* ---- for readers ---- */

void answer_share(struct answer_texts *answer)
{
    if (answer != NULL) answer->readers++;
}

void answer_unshare(struct answer_texts *answer, const struct alloc *alloc)
{
    if (answer == NULL) return;
    assert(answer->readers > 0);
    answer->readers--;
    if (answer->readers == 0 && answer->left) answer_destroy(answer, alloc);
}

enum part { PART_NONE, PART_ATTEMPT, PART_RELEASE };

/* Copy an answer that has readers, without the part that goes. */
static struct answer_texts *copy_shared(struct answer_texts **ret, const struct alloc *alloc, enum part goes)
{
    struct answer_texts *shared = *ret;
    struct answer_texts kept = nothing;
    bool any = false;

    assert(shared->readers > 0 && !shared->left);
    shared->left = true;
    *ret = NULL;
    if (goes != PART_ATTEMPT) {
        kept.error = shared->error;
        kept.holder = shared->holder;
        kept.ttl_ms = shared->ttl_ms;
        any = kept.error != NULL || kept.holder != NULL || kept.ttl_ms != -2;
    }
    if (goes != PART_RELEASE) {
        kept.release_holder = shared->release_holder;
        kept.release_error = shared->release_error;
        any = any || kept.release_holder != NULL || kept.release_error != NULL;
    }
    if (any) *ret = alloc_zero(alloc, sizeof(**ret));
    if (*ret == NULL) return NULL;
    **ret = (struct answer_texts){.error = answer_copy(alloc, kept.error),
                                  .holder = answer_copy(alloc, kept.holder),
                                  .ttl_ms = kept.ttl_ms,
                                  .holder_attempt = shared->holder_attempt,
                                  .named_id = shared->named_id,
                                  .release_holder = answer_copy(alloc, kept.release_holder),
                                  .release_error = answer_copy(alloc, kept.release_error)};
    return *ret;
}

/* Return what may be changed now; the caller drops that part of it anyway. While there are readers, the answer stays
 * theirs, and this is a copy of its other part: NULL where that says nothing, or out of memory. */
static inline struct answer_texts *answer_to_change(struct answer_texts **ret, const struct alloc *alloc,
                                                    enum part goes)
{
    return *ret == NULL || (*ret)->readers == 0 ? *ret : copy_shared(ret, alloc, goes);
}

/* ---- what the answers say ---- */

static void drop_if_empty(struct answer_texts **answer, const struct alloc *alloc)
{
    const struct answer_texts *now = *answer;

    assert(now->readers == 0);
    if (now->error != NULL || now->holder != NULL || now->ttl_ms != -2) return;
    if (now->release_holder != NULL || now->release_error != NULL) return;
    alloc_free(alloc, *answer);
    *answer = NULL;
}

static struct answer_texts *answer_open(struct answer_texts **answer, const struct alloc *alloc)
{
    if (*answer != NULL) return *answer;
    *answer = alloc_zero(alloc, sizeof(**answer));
    if (*answer != NULL) **answer = nothing;
    return *answer;
}

static void answer_clear(struct answer_texts **ret, const struct alloc *alloc)
{
    struct answer_texts *answer = answer_to_change(ret, alloc, PART_ATTEMPT);

    if (answer == NULL) return;
    drop_text(alloc, &answer->error);
    drop_text(alloc, &answer->holder);
    answer->ttl_ms = -2;
    drop_if_empty(ret, alloc);
}

static void answer_forget_holder(struct answer_texts **ret, const struct alloc *alloc)
{
    struct answer_texts *answer = answer_to_change(ret, alloc, PART_NONE);

    if (answer == NULL) return;
    drop_text(alloc, &answer->holder);
    answer->ttl_ms = -2;
    drop_if_empty(ret, alloc);
}

static void answer_clear_release(struct answer_texts **ret, const struct alloc *alloc)
{
    struct answer_texts *answer = answer_to_change(ret, alloc, PART_RELEASE);

    if (answer == NULL) return;
    drop_text(alloc, &answer->release_error);
    drop_text(alloc, &answer->release_holder);
    drop_if_empty(ret, alloc);
}

static void answer_take(struct answer_texts **ret, const struct alloc *alloc, uint64_t attempt,
                        const struct node_reply *reply)
{
    struct answer_texts *answer;

    if (reply->error == NULL && reply->holder == NULL && reply->ttl_ms == -2) {
        answer_clear(ret, alloc);
        return;
    }
    (void)answer_to_change(ret, alloc, PART_ATTEMPT);
    answer = answer_open(ret, alloc);
    if (answer == NULL) return;
    assert(answer->readers == 0);
    drop_text(alloc, &answer->error);
    drop_text(alloc, &answer->holder);
    answer->ttl_ms = reply->ttl_ms;
    if (reply->error != NULL) answer->error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder != NULL) {
        answer->holder = owner_copy(alloc, reply->holder, reply->holder_length);
        answer->holder_attempt = attempt;
    }
}

static void answer_take_release(struct answer_texts **ret, const struct alloc *alloc, const struct node_reply *reply)
{
    struct answer_texts *answer;

    answer_clear_release(ret, alloc);
    if (reply->error == NULL && reply->holder == NULL) return;
    answer = answer_open(ret, alloc);
    if (answer == NULL) return;
    if (reply->error != NULL) answer->release_error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder != NULL) answer->release_holder = alloc_text(alloc, reply->holder, reply->holder_length);
    drop_if_empty(ret, alloc);
}

/* ---- of a node ---- */

void result_clear(struct node_result *result, const struct alloc *alloc)
{
    answer_clear(&result->answer, alloc);
    result->latency_us = 0;
}

void result_clear_release(struct node_result *result, const struct alloc *alloc)
{
    answer_clear_release(&result->answer, alloc);
}

bool result_take(struct node_result *result, const struct alloc *alloc, uint64_t attempt,
                 const struct node_reply *reply)
{
    uint64_t holder_id;

    answer_take(&result->answer, alloc, attempt, reply);
    if (reply->holder == NULL || result->answer == NULL) return false;
    holder_id = owner_id(reply->holder, reply->holder_length);
    if (holder_id == result->answer->named_id) return false;
    result->answer->named_id = holder_id;
    return result->answer->holder != NULL;
}

void result_take_release(struct node_result *result, const struct alloc *alloc, const struct node_reply *reply)
{
    if (result->released != QUORLOCK_VOTE_PENDING) return;
    answer_take_release(&result->answer, alloc, reply);
    result->released = QUORLOCK_VOTE_FAILED;
    if (reply->outcome == OUTCOME_YES) result->released = QUORLOCK_VOTE_GRANTED;
    if (reply->outcome == OUTCOME_MISSING || reply->outcome == OUTCOME_OTHER || reply->fault == FAULT_FOREIGN) {
        result->released = QUORLOCK_VOTE_REFUSED;
    }
    assert(result->released != QUORLOCK_VOTE_PENDING);
}

void results_forget_others(struct node_result *results, uint32_t n_nodes, const struct alloc *alloc, uint32_t node)
{
    const struct answer_texts *news = results[node].answer;

    assert(node < n_nodes && news != NULL && news->holder != NULL);
    for (uint32_t i = 0; i < n_nodes; i++) {
        struct answer_texts **other = &results[i].answer;

        if (answer_read(*other)->holder == NULL || (*other)->holder_attempt == news->holder_attempt) continue;
        if (strcmp((*other)->holder, news->holder) != 0) answer_forget_holder(other, alloc);
    }
}
