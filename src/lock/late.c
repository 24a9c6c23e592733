/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/late.h"

#include <assert.h>
#include <string.h>

#include "core/backoff.h"
#include "lock/request.h"

/* Each takes some 130 bytes. */
#define LATES_MAX 4096u
/* Tries are due at multiples of this, so that many requests leave as one batch. */
#define GRID_US 250000u

struct late {
    struct link in_all;
    struct hashtable_entry entry; /* by the hash of its keys */
    struct requester requester;
    struct lates *all;
    struct keylist *keylist;
    struct terms *terms;
    struct core_late debt;
    uint64_t holder_id;
    uint64_t again_us;
    uint32_t tries;
    bool in_flight;
    bool last; /* what is or was in flight left when nothing could come any more */
};

static void lates_check(const struct lates *all)
{
    (void)all; /* without assertions */
    assert(all->all.count == all->by_keys.count && all->all.count <= LATES_MAX);
    /* While there are any, the waker is set. */
    assert(all->all.count == 0 || runtime_wakes_at(&all->look) != UINT64_MAX || all->runtime->closing);
}

static void late_forget(struct late *late)
{
    struct lates *all = late->all;
    const struct alloc *alloc = &all->runtime->alloc;

    assert(late->entry.hash == late->keylist->entry.hash);
    list_remove(&all->all, &late->in_all);
    hashtable_remove(&all->by_keys, &late->entry);
    terms_leave(all->terms, alloc, late->terms);
    keylist_leave(late->keylist);
    alloc_free(alloc, late);
}

static void late_look_at(struct lates *all, uint64_t at_us)
{
    if (at_us < runtime_wakes_at(&all->look)) runtime_wake_at(all->runtime, &all->look, at_us);
}

static void plan(struct late *late, uint64_t pause_us)
{
    uint64_t at_us = runtime_now_us(late->all->runtime) + pause_us;

    if (at_us < late->debt.from_us) at_us = late->debt.from_us;
    late->again_us = at_us + GRID_US - 1 - (at_us + GRID_US - 1) % GRID_US;
    late_look_at(late->all, late->again_us);
    assert(late->again_us >= at_us && late->again_us % GRID_US == 0);
}

/* The last release is not due before until_us. */
static void plan_next(struct late *late)
{
    uint64_t pause_us = backoff_late_us(late->tries++);
    uint64_t now_us = runtime_now_us(late->all->runtime);

    if (now_us < late->debt.until_us && late->debt.until_us - now_us < pause_us)
        pause_us = late->debt.until_us - now_us;
    plan(late, pause_us);
}

/* Send the release. False: not now. */
static bool pay(struct late *late)
{
    struct runtime *runtime = late->all->runtime;
    const struct core_tag tag = {
        .sent_us = runtime_now_us(runtime), .op = OP_RELEASE, .node = late->debt.node, .slot = late->debt.slot};
    const struct core_command command = {
        .tag = tag, .token = late->debt.token, .fence = late->debt.fence, .if_deleted = true};
    struct node_request request = {.keys = late->keylist->keys, .n_keys = late->keylist->n_keys};
    struct request_texts texts = {0};

    assert(!late->in_flight);
    if (!admission_has_release_room(late->all->admission, tag.node)) return false;
    request_fill(&request, runtime, late->terms, &command, NULL, &texts);
    late->in_flight = nodes_send(runtime, &request, &late->requester, &tag) == NODE_SENT;
    late->last = tag.sent_us >= late->debt.until_us;
    return late->in_flight;
}

static void late_on_reply(struct requester *requester, const struct core_tag *tag, uint32_t generation,
                          const struct node_reply *reply)
{
    struct late *late = CONTAINER_OF(requester, struct late, requester);
    bool executed = reply->outcome < OUTCOME_UNKNOWN || reply->fault == FAULT_FOREIGN;

    (void)tag;
    (void)generation;
    assert(late->in_flight && tag->node == late->debt.node);
    late->in_flight = false;
    /* The key was set late, and is deleted now; or it can be set no more. */
    if ((reply->outcome == OUTCOME_YES && !late->debt.twice) || (executed && late->last)) {
        late_forget(late);
    } else {
        plan_next(late);
    }
}

/* Rule 2.6. */
static void late_on_look(struct waker *waker)
{
    struct lates *all = CONTAINER_OF(waker, struct lates, look);
    uint64_t now_us = runtime_now_us(all->runtime);

    /* Each was sent once, and nobody waits for more. */
    if (all->runtime->closing) return;
    LIST_WALK (struct late, late, &all->all, in_all) {
        if (late->in_flight) continue;
        if (now_us >= late->debt.gone_us) {
            late_forget(late);
        } else if (now_us < late->again_us) {
            late_look_at(all, late->again_us);
        } else if (!pay(late)) {
            plan(late, GRID_US);
        }
    }
}

void lates_start(struct lates *all, struct runtime *runtime, const struct admission *admission, struct hashtable *terms)
{
    all->runtime = runtime;
    all->admission = admission;
    all->terms = terms;
    runtime_start_waker(runtime, &all->look, late_on_look);
}

void lates_stop(struct lates *all)
{
    if (all->runtime == NULL) return;
    assert(all->all.count == all->by_keys.count);
    LIST_WALK (struct late, late, &all->all, in_all) late_forget(late);
    hashtable_free(&all->by_keys, &all->runtime->alloc);
    runtime_stop_waker(&all->look);
    assert(all->all.count == 0);
}

static void forget_oldest(struct lates *all)
{
    struct late *oldest = NULL;

    LIST_EACH (struct late, late, &all->all, in_all) {
        if (oldest == NULL && !late->in_flight) oldest = late;
    }
    if (oldest != NULL) late_forget(oldest);
}

void late_add(struct lates *all, struct keylist *keylist, struct terms *terms, const struct core_late *debt)
{
    const struct alloc *alloc = &all->runtime->alloc;
    struct request_texts texts;
    size_t length = request_owner_text(all->runtime, terms, &debt->token, texts.owner);
    struct late *late;

    if (all->runtime->closing) return;
    if (all->all.count >= LATES_MAX) forget_oldest(all);
    if (all->all.count >= LATES_MAX || hashtable_reserve(&all->by_keys, alloc) != 0) return;
    late = alloc_zero(alloc, sizeof(*late));
    if (late == NULL) return;
    late->requester.reply = late_on_reply;
    late->all = all;
    late->keylist = keylist;
    keylist->users++;
    late->terms = terms_share(terms);
    late->debt = *debt;
    late->holder_id = owner_id(texts.owner, length);
    late->entry.hash = keylist->entry.hash;
    hashtable_add(&all->by_keys, &late->entry);
    list_add(&all->all, &late->in_all);
    plan_next(late);
    lates_check(all);
}

bool lates_have_token(const struct lates *all, const struct core_token *token)
{
    LIST_EACH (struct late, late, &all->all, in_all) {
        if (memcmp(&late->debt.token, token, sizeof(*token)) == 0) return true;
    }
    return false;
}

/* Rule 2.8. */
bool late_pay(struct lates *all, const struct keylist *keylist, uint32_t node, uint64_t holder_id)
{
    bool paid = false;

    assert(node < all->runtime->n_nodes);
    if (all->all.count == 0) return false;
    HASHTABLE_EACH_OF (struct late, late, &all->by_keys, keylist->entry.hash, entry) {
        bool is_in_way = holder_id == 0 || holder_id == late->holder_id;

        if (late->keylist != keylist || late->debt.node != node || !is_in_way) continue;
        if (runtime_now_us(all->runtime) < late->debt.from_us) continue;
        paid = late->in_flight || pay(late) || paid;
    }
    return paid;
}
