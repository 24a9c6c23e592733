/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/claim.h"

#include <assert.h>
#include <string.h>

#include "base/trace.h"

/* As many as there are attempts in flight at most (admission.c). */
#define SPARES_MAX 1024u
/* Of the claims that became compact so many blocks are kept for those that are expanded. */
#define RESUME_RESERVE 64u

/* ---- what comes to a claim ---- */

void claim_wake(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_TIMER, .now_us = claim->all->events->due(claim)};
    bool held = core_phase_now(claim->core) == CORE_HELD;

    if (claim->fault_us != 0 && claim->fault_us <= event.now_us) {
        claim->fault_us = 0;
        claim->all->faults->inject(claim);
    }
    /* A held lock begins no attempt, and needs no random bytes. */
    (void)(held ? claim_step(claim, &event) : claim_step_randomly(claim, &event));
    claim_reap(claim);
}

static void claim_on_wake(struct waker *waker)
{
    claim_wake(CONTAINER_OF(waker, struct claim, waker));
}

void claim_on_node_state(struct claim *claim, uint32_t index)
{
    claim_take_node(claim, index);
    claim_reap(claim);
}

void claim_clock_stepped(struct claim *claim, uint32_t index, uint64_t before_us)
{
    struct core_event event = {.type = CORE_EV_STEP, .step = {.node = index, .before_us = before_us}};

    (void)claim_step(claim, &event);
    claim_reap(claim);
}

static void claim_on_reply(struct requester *requester, const struct core_tag *tag, uint32_t generation,
                           const struct node_reply *reply)
{
    struct claim *claim = CONTAINER_OF(requester, struct claim, requester);

    assert(claim->in_flight > 0);
    claim_take_reply(claim, tag, generation, reply);
    claim_reap(claim);
}

static void send_unsent(struct unsent_release *unsent, uint32_t node)
{
    struct node_result *first = CONTAINER_OF(unsent, struct node_result, unsent) - node;
    struct claim *claim = CONTAINER_OF(first, struct claim, results);
    struct core_event event = {.type = CORE_EV_ROOM, .room = {.node = node}};

    assert(!list_has(&unsent->link) && node < claim->all->runtime->n_nodes);
    (void)claim_step(claim, &event);
    claim_reap(claim);
}

/* ---- all claims ---- */

/* Where the core lies in a claim's block. */
static size_t core_offset(const struct runtime *runtime)
{
    return sizeof(struct claim) + runtime->n_nodes * sizeof(struct node_result);
}

void claims_start(struct claims *all, struct runtime *runtime)
{
    all->runtime = runtime;
    all->admission.send = send_unsent;
    all->blocks = (struct spare){
        .alloc = &runtime->alloc, .size = core_offset(runtime) + core_size(runtime->n_nodes), .most = SPARES_MAX};
    all->debts =
        (struct spare){.alloc = &runtime->alloc, .size = core_debts_size(runtime->n_nodes), .most = SPARES_MAX};
    admission_start(&all->admission, runtime);
    lates_start(&all->lates, runtime, &all->admission, &all->terms);
    assert(all->events != NULL);
}

void claims_stop(struct claims *all)
{
    if (all->runtime == NULL) return;
    lates_stop(&all->lates);
    hashtable_free(&all->owners, &all->runtime->alloc);
    hashtable_free(&all->terms, &all->runtime->alloc);
    spare_clear(&all->blocks);
    spare_clear(&all->debts);
    alloc_free(&all->runtime->alloc, all->lent);
}

/* ---- life ---- */

/* Take a block, zeroed but for its waker and its core; NULL: out of memory. */
static struct claim *take_block(struct claims *all, bool reserve)
{
    struct runtime *runtime = all->runtime;
    struct claim *claim;

    if (all->blocks.count > (reserve ? 0 : RESUME_RESERVE)) {
        claim = spare_take(&all->blocks);
        memset(claim, 0, core_offset(runtime));
    } else {
        claim = alloc_zero(&runtime->alloc, all->blocks.size);
    }
    if (claim != NULL) runtime_start_waker(runtime, &claim->waker, claim_on_wake);
    return claim;
}

static void give_back_block(struct claims *all, struct claim *claim)
{
    runtime_stop_waker(&claim->waker);
    spare_keep(&all->blocks, claim);
    assert(all->blocks.count <= SPARES_MAX);
}

static struct claim *claim_make(struct claims *all, bool reserve, struct keylist *keylist, struct quorlock_lock *handle,
                                struct terms *terms)
{
    struct claim *claim = take_block(all, reserve);

    if (claim == NULL) return NULL;
    claim->core = (struct core_lock *)(void *)((char *)claim + core_offset(all->runtime));
    claim->all = all;
    claim->keylist = keylist;
    keylist->users++;
    claim->handle = handle;
    claim->requester.reply = claim_on_reply;
    claim->terms = terms_share(terms);
    list_add(&all->all, &claim->in_all);
    return claim;
}

struct claim *claim_new(struct claims *all, struct keylist *keylist, struct quorlock_lock *handle, struct terms *terms,
                        struct named_owner *named)
{
    struct claim *claim = claim_make(all, false, keylist, handle, terms);

    if (claim == NULL) return NULL;
    claim->named = named;
    if (named != NULL) named->users++;
    core_init(claim->core, &terms->config, keylist_first_arbiter(keylist));
    claim->node_changes = all->runtime->node_changes - 1;
    claim_check(claim);
    return claim;
}

struct claim *claim_expand(struct claims *all, struct keylist *keylist, struct quorlock_lock *handle,
                           struct terms *terms, const struct core_compact *record)
{
    struct runtime *runtime = all->runtime;
    struct claim *claim = claim_make(all, true, keylist, handle, terms);
    struct core_node_change nodes[CORE_NODES_MAX];

    if (claim == NULL) return NULL;
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        nodes[i] = claims_node_now(all, i);
        claim->results[i].latency_us = record->nodes[i].latency_us;
    }
    core_expand(claim->core, &terms->config, record, nodes, runtime_now_us(runtime));
    claim->node_changes = runtime->node_changes;
    claim->results_attempt = core_attempt(claim->core);
    claim_keep_owner(claim, true);
    claim->counted = core_compact_holds(record);
    claim->degraded = claim->counted && !record->whole;
    list_add(&all->active, &claim->in_active);
    runtime_wake_at(runtime, &claim->waker, core_deadline(claim->core));
    claim_check(claim);
    return claim;
}

void claim_agree(struct claim *claim, struct terms *terms)
{
    struct terms *before = claim->terms;

    /* What the nodes were asked for is the same. */
    assert(terms->config.lease_us == claim->terms->config.lease_us &&
           terms->config.quorum == claim->terms->config.quorum);
    claim->terms = terms_share(terms);
    terms_leave(&claim->all->terms, &claim->all->runtime->alloc, before);
}

void claim_destroy(struct claim *claim)
{
    struct claims *all = claim->all;
    const struct alloc *alloc = &all->runtime->alloc;

    assert(list_has(&claim->in_all) && claim->all->runtime == claim->keylist->all->runtime);
    for (uint32_t i = 0; i < all->runtime->n_nodes; i++) {
        result_clear(&claim->results[i], alloc);
        result_clear_release(&claim->results[i], alloc);
        list_remove(&all->admission.unsent[i], &claim->results[i].unsent.link);
    }
    all->events->destroyed(claim);
    claim_listen(claim, false);
    if (claim->keylist->asked == claim) claim->keylist->asked = NULL;
    admission_leave(&all->admission, &claim->applicant);
    list_remove(&all->all, &claim->in_all);
    list_remove(&all->active, &claim->in_active);
    list_remove(claim->loss_due ? &all->lost : &all->ready, &claim->in_due);
    if (claim->named != NULL) list_remove(&claim->named->claims, &claim->in_owner);
    named_owner_leave(&all->owners, alloc, claim->named);
    terms_leave(&all->terms, alloc, claim->terms);
    keylist_leave(claim->keylist);
    /* It has debts that nobody waits for any more, so it is not zeroed. */
    alloc_free(alloc, core_debts_block(claim->core));
    give_back_block(all, claim);
}

void claim_reap(struct claim *claim)
{
    bool owed = claim->acquirer != NULL || claim->extender != NULL || claim->releaser != NULL;

    claim_check(claim);
    if (owed || claim->pins > 0 || claim->in_flight > 0) return;
    if (claim->holds > 0) {
        claim->all->events->quiet(claim);
        return;
    }
    /* A handle keeps its claim for the next acquire, unless others wait in the queue. */
    if (claim->handle != NULL && bare_list_first(&claim->keylist->waiting) == NULL) return;
    if (claim->pending_holds.count > 0) return;
    if (core_quiet(claim->core)) claim_destroy(claim);
}

/* ---- the keys are given back ---- */

static void claim_give_back(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_RELEASE, .release = {.undo = claim->undone}};
    uint32_t n_nodes = claim->all->runtime->n_nodes;

    assert(claim->acquirer == NULL && core_may_release(claim->core) == 0);
    /* From now on the results are about this release. */
    claim->released_attempt = core_attempt(claim->core);
    for (uint32_t i = 0; i < n_nodes; i++) {
        claim->results[i].released = QUORLOCK_VOTE_NONE;
        result_clear_release(&claim->results[i], &claim->all->runtime->alloc);
    }
    (void)claim_step(claim, &event);
    for (uint32_t i = 0; i < n_nodes; i++) {
        struct node_result *result = &claim->results[i];

        if (result->released == QUORLOCK_VOTE_NONE && core_debts(claim->core, i) > 0) {
            result->released = QUORLOCK_VOTE_FAILED;
        }
    }
    claim->put_off = claim->undone = false;
    TRACE1(release, keylist_name(claim->keylist));
    assert(core_phase_now(claim->core) == CORE_IDLE);
}

int claim_release(struct claim *claim, struct quorlock_lock *releaser, const struct lock_callback *callback)
{
    struct core_event nobody_wants = {.type = CORE_EV_CANCEL, .cancel = {.status = CORE_CANCELED}};
    int status = core_may_release(claim->core);

    assert(claim->holds == 1 && claim->pending_holds.count == 0);
    if (status != 0 && (status != QUORLOCK_ERR_BUSY || claim->releaser != NULL)) return status;
    if (status == 0) claim_give_back(claim);
    claim->releaser = releaser;
    claim->released = *callback;
    if (status == 0) return 0;
    /* The renewal of a handle that holds the keys no more ends first, with its callback; then claim_let_go releases. */
    claim->put_off = true;
    (void)claim_step(claim, &nobody_wants);
    return 0;
}

void claim_let_go(struct claim *claim)
{
    if (claim->holds > 0 || claim->pending_holds.count > 0) return;
    /* It may not while another callback is due; the claim is let go again after that. */
    if (core_may_release(claim->core) == 0) claim_give_back(claim);
    claim_check(claim);
}
