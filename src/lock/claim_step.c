/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/claim_step.h"

#include <assert.h>
#include <string.h>

#include "base/prefetch.h"
#include "base/trace.h"
#include "core/validity.h"

#define MS 1000u
/* More locks than this do not ask a node anew when it is connected anew (rule 3.11): that would be a burst. */
#define FEW_HELD 1000u

_Static_assert(NODE_MS_MAX <= INT64_MAX / (int64_t)MS, "what a node says in ms fits in us");
_Static_assert(CORE_NODES_MAX == QUORLOCK_NODES_MAX, "as many nodes inside as outside");

/* ---- what goes together ---- */

static void check_core(const struct claim *claim)
{
    const struct core_lock *core = claim->core;

    (void)core; /* without assertions */
    assert(claim->applicant.waits == core_wants(core));
    assert(claim->applicant.asking == (core_phase_now(core) == CORE_ASKING));
    assert(claim->counted == (core_phase_now(core) == CORE_HELD));
    assert(claim->degraded == (claim->counted && !core_is_whole(core)));
    assert((claim->listens || claim->far != NULL) == core_listens(core));
    assert(claim->far == NULL || core_is_far(core));
    assert(claim->loss_due == core_loss_pending(core));
    /* No answer belongs to an attempt that was never made. */
    assert(claim->results_attempt <= core_attempt(core) && claim->released_attempt <= core_attempt(core));
}

static void check_handles(const struct claim *claim)
{
    (void)claim; /* without assertions */
    assert(claim->named != NULL || (claim->holds <= 1 && claim->sharers.count == 0));
    assert(claim->named == NULL || (claim->holds > 0) == (claim->sharers.count > 0));
    assert(claim->named != NULL || claim->pending_holds.count == 0);
    /* A claim that acquires is not held yet. */
    assert(claim->acquirer == NULL || claim->holds == 0);
    assert(!claim->put_off || claim->releaser != NULL);
}

void claim_check(const struct claim *claim)
{
    assert(claim->keylist->users > 0 && claim->terms->users > 0);
    assert(!claim->counted || claim->keylist->held > 0);
    assert(!claim->listens || (claim->keylist->listeners > 0 && claim->far == NULL));
    check_core(claim);
    check_handles(claim);
}

/* ---- commands to the nodes ---- */

static bool send_command(struct claim *claim, const struct core_command *command, struct request_texts *texts)
{
    const struct core_tag *tag = &command->tag;
    struct node_result *result = &claim->results[tag->node];
    struct admission *admission = &claim->all->admission;
    struct node_request request = {.keys = claim->keylist->keys, .n_keys = claim->keylist->n_keys};
    bool release = tag->op == OP_RELEASE;
    bool room = !release || admission_has_release_room(admission, tag->node);

    assert(tag->node < claim->all->runtime->n_nodes);
    request_fill(&request, claim->all->runtime, claim->terms, command, core_waiter(claim->core), texts);
    if (!room || nodes_send(claim->all->runtime, &request, &claim->requester, tag) != NODE_SENT) {
        if (release) admission_add_unsent(admission, &result->unsent, tag->node);
        return false;
    }
    if (release && tag->attempt == claim->released_attempt) result->released = QUORLOCK_VOTE_PENDING;
    claim->in_flight++;
    return true;
}

/* ---- far behind others ---- */

static void far_on_confirmed(struct listener *listener)
{
    far_wake(listener);
}

static void far_on_unsubscribed(struct listener *listener, uint32_t node)
{
    struct claim *claim = far_owner(listener);

    claim->known_subscribed &= ~(1u << node);
}

/* It came near: an attempt, as after a confirmation, tells how near. */
static void far_on_notice(struct listener *listener, uint32_t node, uint32_t key, uint64_t holder_id)
{
    (void)key, (void)holder_id;
    far_on_unsubscribed(listener, node);
    far_wake(listener);
}

/* The rights are of a time before such channels. Each claim listens for its keys when it polls next, which is soon. */
static void far_on_refused(struct listener *listener)
{
    struct claim *claim = far_owner(listener);

    claim->all->no_far = true;
}

static void far_on_woken(void *owner)
{
    claim_notify_subscribed(owner, false);
}

static const struct far_events far_events = {.told = {.confirmed = far_on_confirmed,
                                                      .unsubscribed = far_on_unsubscribed,
                                                      .notice = far_on_notice,
                                                      .refused = far_on_refused},
                                             .woken = far_on_woken};

/* NULL: out of memory. */
static struct far *listen_far(struct claim *claim)
{
    char name[REQUEST_OWNER_SIZE];

    request_owner_text(claim->all->runtime, claim->terms, core_waiter(claim->core), name);
    return far_begin(claim->keylist, &far_events, claim, name);
}

/* ---- steps ---- */

/* Rule 9.5. */
static bool may_be_far(const struct claim *claim)
{
    return core_is_far(claim->core) && claim->keylist->n_keys == 1 && claim->terms->config.shared == 0 &&
           !claim->all->no_far;
}

/* Listen at the new place before the old one is left, so that the connections stay. */
void claim_listen(struct claim *claim, bool wanted)
{
    struct far *before = claim->far;
    bool near = wanted;

    assert(!claim->listens || claim->keylist->listeners > 0);
    claim->far = NULL;
    if (wanted && may_be_far(claim)) claim->far = before != NULL ? before : listen_far(claim);
    if (claim->far != NULL) near = false;
    if (near == claim->listens && claim->far == before) return;
    if (near != claim->listens) keylist_listen(claim->keylist, near);
    claim->listens = near;
    if (claim->far != before) {
        claim->known_subscribed = 0;
        if (before != NULL) far_end(before);
    }
    if (wanted) claim_notify_subscribed(claim, false);
}

static void set_in(struct list *list, struct link *link, bool in)
{
    if (in) {
        list_add(list, link);
    } else {
        list_remove(list, link);
    }
}

static void count_loss(struct claim *claim, enum core_loss reason)
{
    assert(reason > CORE_LOSS_NONE && (int)reason < COUNTS_LOSSES);
    claim->all->counts.losses[reason]++;
    TRACE2(loss, keylist_name(claim->keylist), (int)reason);
}

/* Losses come first, so a claim waits in one list at a time. */
static void follow_completions(struct claim *claim, bool dispatch)
{
    struct claims *all = claim->all;
    bool loss = core_loss_pending(claim->core);

    if (loss != claim->loss_due) {
        list_remove(claim->loss_due ? &all->lost : &all->ready, &claim->in_due);
        claim->loss_due = loss;
        if (loss) count_loss(claim, core_loss(claim->core));
        if (loss) all->events->lost(claim);
    }
    set_in(loss ? &all->lost : &all->ready, &claim->in_due, dispatch);
    if (dispatch) runtime_run_soon(all->runtime);
}

static void count_log(struct claim *claim, uint32_t log)
{
    struct counts *counts = &claim->all->counts;
    bool renewed = (log & CORE_LOG_RENEWED) != 0;
    bool failed = (log & CORE_LOG_RENEW_FAILED) != 0;

    assert(!(renewed && failed));
    counts->renewals += renewed;
    counts->renewals_failed += failed;
    counts->degradations += (log & CORE_LOG_DEGRADED) != 0;
    if (renewed || failed) TRACE2(renewal, keylist_name(claim->keylist), (int)renewed);
}

static void count_degraded(struct claim *claim, bool degraded)
{
    assert(claim->all->counts.degraded >= claim->degraded);
    if (degraded == claim->degraded) return;
    claim->degraded = degraded;
    claim->all->counts.degraded += degraded ? 1u : UINT64_MAX;
}

void claims_count_hold(struct claims *all, struct keylist *keylist, const struct claim_hold *hold, bool holds,
                       uint64_t now_us)
{
    assert(holds || all->counts.held > 0);
    keylist_count_hold(keylist, hold->config, holds);
    if (keylist->permits != 0) core_slots_hold(keylist_slots(keylist), hold->slot, holds);
    all->counts.held += holds ? 1u : UINT64_MAX;
    if (!holds) histogram_add(&all->counts.holds, validity_sub(now_us, hold->granted_us));
}

static uint64_t claim_next_wake_us(const struct claim *claim, uint64_t deadline_us, uint64_t held_back_us)
{
    uint64_t at_us = deadline_us;

    assert(claim->all->faults != NULL || (claim->fault_us == 0 && held_back_us == 0));
    if (claim->fault_us != 0 && claim->fault_us < at_us) at_us = claim->fault_us;
    return held_back_us != 0 && held_back_us < at_us ? held_back_us : at_us;
}

static void follow_listening(struct claim *claim)
{
    bool listens = core_listens(claim->core);

    /* Most claims never listen. */
    if (listens || claim->listens || claim->far != NULL) claim_listen(claim, listens);
}

/* Do everything that follows from the core's new state. */
static void claim_settle(struct claim *claim, const struct core_update *update, uint64_t now_us)
{
    struct claims *all = claim->all;
    enum core_phase phase = core_phase_now(claim->core);
    uint64_t held_back_us = all->faults != NULL ? all->faults->hold_back(claim, update, now_us) : 0;
    uint64_t deadline_us = core_deadline(claim->core);
    bool active = phase != CORE_IDLE || deadline_us != CORE_NEVER;
    bool holds = phase == CORE_HELD;

    runtime_wake_at(all->runtime, &claim->waker, claim_next_wake_us(claim, deadline_us, held_back_us));
    set_in(&all->active, &claim->in_active, active);
    if (claim->named != NULL) set_in(&claim->named->claims, &claim->in_owner, active);
    follow_completions(claim, update->dispatch && held_back_us == 0);
    admission_follow(&all->admission, &claim->applicant, core_wants(claim->core), phase == CORE_ASKING);
    count_degraded(claim, holds && !core_is_whole(claim->core));
    if (holds != claim->counted) {
        const struct claim_hold hold = {.config = &claim->terms->config,
                                        .granted_us = core_granted_us(claim->core),
                                        .slot = core_slot(claim->core)};

        claim->counted = holds;
        claims_count_hold(all, claim->keylist, &hold, holds, now_us);
        if (!holds) all->events->keys_released(claim);
    }
    follow_listening(claim);
}

/* A new attempt clears the results of the nodes that it asks; the others keep their latest result. */
static void begin_results(struct claim *claim, const struct core_update *update)
{
    if (claim->results_attempt == core_attempt(claim->core)) return;
    claim->results_attempt = core_attempt(claim->core);
    for (uint32_t i = 0; i < update->n_commands; i++) {
        const struct core_tag *tag = &update->commands[i].tag;

        if (tag->op == OP_ACQUIRE) result_clear(&claim->results[tag->node], &claim->all->runtime->alloc);
    }
}

/* Add what the core needs to know with each event. */
static void complete_event(const struct claim *claim, struct core_event *event)
{
    if (event->now_us == 0) event->now_us = runtime_now_us(claim->all->runtime);
    event->logged_in = claim->all->runtime->logged_in;
    /* The key list of a lock that was compact is in no cache: do not read it for nothing. */
    if (claim->terms->config.permits != 0) event->slots = keylist_slots(claim->keylist);
    admission_limit(&claim->all->admission, event);
}

/* Return a block for debts; NULL: out of memory. One that came back keeps the contents of the last debts, of which none
 * is owed. */
static struct debt *block_to_lend(struct claims *all)
{
    if (all->lent == NULL) all->lent = spare_take(&all->debts);
    if (all->lent == NULL) all->lent = alloc_zero(all->debts.alloc, all->debts.size);
    return all->lent;
}

static int step_core(struct claim *claim, struct core_event *event, struct core_update *update)
{
    struct debt *before = core_debts_block(claim->core), *after;
    int status;

    event->debts = before == NULL ? block_to_lend(claim->all) : NULL;
    status = core_step(claim->core, event, update);
    after = core_debts_block(claim->core);
    if (before == NULL && after != NULL) claim->all->lent = NULL;
    if (before != NULL && after == NULL) spare_keep(&claim->all->debts, before);
    return status;
}

static int claim_step_core(struct claim *claim, struct core_event *event, struct core_completion *ret_completion)
{
    struct core_update update;
    struct core_tag unsent[CORE_COMMANDS_MAX];
    struct request_texts texts;
    uint32_t n_unsent = 0;
    int status;

    claim_check(claim);
    complete_event(claim, event);
    status = step_core(claim, event, &update);
    assert(update.n_commands <= CORE_COMMANDS_MAX && (status == 0 || update.n_commands == 0));
    /* Other threads read the new validity before any command leaves that may end it. */
    if (claim->holds > 0 && claim->all->runtime->clock.shown != NULL) claim->all->events->held(claim);
    begin_results(claim, &update);
    texts.owner_length = texts.waiter_length = 0;
    for (uint32_t i = 0; i < update.n_commands; i++) {
        if (!send_command(claim, &update.commands[i], &texts)) unsent[n_unsent++] = update.commands[i].tag;
    }
    if (update.log != 0) {
        count_log(claim, update.log);
        claim->all->events->logs(claim, update.log);
    }
    if (update.late.until_us != 0) late_add(&claim->all->lates, claim->keylist, claim->terms, &update.late);
    claim_settle(claim, &update, event->now_us);
    if (ret_completion != NULL) *ret_completion = update.completion;
    /* A command that was not queued was not executed: the core asks that node no more in this round. */
    for (uint32_t i = 0; i < n_unsent; i++) {
        const struct node *node = claim->all->runtime->nodes[unsent[i].node].node;
        struct core_event failed = {.type = CORE_EV_REPLY,
                                    .reply = {.tag = unsent[i],
                                              .generation = node_generation(node),
                                              .outcome = OUTCOME_UNSENT,
                                              .fault = FAULT_CLASS_TEMPORARY,
                                              .overdue = node_is_late(node),
                                              .ttl_us = -2}};

        claim_step_core(claim, &failed, NULL);
    }
    claim_check(claim);
    return status;
}

int claim_step(struct claim *claim, struct core_event *event)
{
    return claim_step_core(claim, event, NULL);
}

static bool claim_draw(const struct claim *claim, unsigned char random[CORE_RANDOM_SIZE])
{
    struct runtime *runtime = claim->all->runtime;

    if (random_draw(&runtime->random, &runtime->system, random, CORE_RANDOM_SIZE) != 0) return false;
    /* The token comes first. */
    keylist_mark(claim->keylist, claim->terms->config.fencing, random + CORE_TOKEN_SIZE - KEYLIST_MARK_SIZE);
    return true;
}

/* Rule 5.4. Return the least fencing token of the next attempt; 0 without fencing. The wall clock is used for nothing
 * else, and matters only when all counters were lost. */
static uint64_t fence_floor(const struct claim *claim)
{
    struct system *system = &claim->all->runtime->system;
    uint64_t last = claim->all->last_fence;
    uint64_t wall_us;

    if (!claim->terms->config.fencing) return 0;
    wall_us = system->ops->wall_us(system);
    return wall_us > last ? wall_us : last + 1;
}

int claim_step_randomly(struct claim *claim, struct core_event *event)
{
    unsigned char random[CORE_RANDOM_SIZE];

    event->random = claim_draw(claim, random) ? random : NULL;
    event->wall_us = fence_floor(claim);
    return claim_step(claim, event);
}

struct core_completion claim_dispatch(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_DISPATCH};
    struct core_completion completion;

    claim_step_core(claim, &event, &completion);
    return completion;
}

bool claim_begin_admitted(struct applicant *applicant)
{
    struct claim *claim = CONTAINER_OF(applicant, struct claim, applicant);
    struct core_event event = {.type = CORE_EV_BEGIN};

    claim_check(claim);
    assert(!applicant->of_handle && applicant->waits != CORE_WANTS_NOTHING);
    if (core_wants(claim->core) != CORE_WANTS_ATTEMPT) {
        (void)claim_step(claim, &event);
        return true;
    }
    (void)claim_step_randomly(claim, &event);
    return event.random != NULL;
}

/* ---- nodes ---- */

bool claims_are_few(const struct claims *all)
{
    return all->counts.held <= FEW_HELD;
}

struct core_node_change claims_node_now(const struct claims *all, uint32_t index)
{
    const struct runtime_node *at = &all->runtime->nodes[index];
    const struct node *node = at->node;

    return (struct core_node_change){.index = index,
                                     .state = node_state_now(node),
                                     .generation = node_generation(node),
                                     .fault = fault_class(node_fault_now(node)),
                                     .srtt_us = node_srtt_us(node),
                                     .life_us = at->life_us,
                                     .connected_us = claims_are_few(all) ? at->connected_us : 0};
}

void claim_take_node(struct claim *claim, uint32_t index)
{
    struct core_event event = {.type = CORE_EV_NODE, .node = claims_node_now(claim->all, index)};

    assert(index < claim->all->runtime->n_nodes);
    claim->node_changes = claim->all->runtime->node_changes;
    (void)claim_step(claim, &event);
}

void claim_notify_subscribed(struct claim *claim, bool old)
{
    uint32_t confirmed = claim->far != NULL ? far_confirmed(claim->far) : keylist_confirmed(claim->keylist);
    uint32_t news = confirmed & ~claim->known_subscribed;

    for (uint32_t i = 0; news >> i != 0; i++) {
        struct core_event event;

        if ((news & 1u << i) == 0) continue;
        event = (struct core_event){.type = CORE_EV_LISTENING, .listening = {.node = i, .before_acquire = old}};
        claim->known_subscribed |= 1u << i;
        (void)claim_step(claim, &event);
    }
}

/* ---- replies ---- */

static void observe_release(struct claim *claim, const struct core_tag *tag, const struct node_reply *reply)
{
    assert(tag->op == OP_RELEASE);
    keylist_count_listeners(claim->keylist, tag->node, reply->count);
    if (tag->attempt != claim->released_attempt) return;
    result_take_release(&claim->results[tag->node], &claim->all->runtime->alloc, reply);
}

static void observe_denial(const struct claim *claim, const struct core_tag *tag, struct node_reply *reply, char *text)
{
    request_denied(reply, claim->all->runtime, claim->terms, claim->keylist->keys, claim->keylist->n_keys,
                   tag->slot == CORE_SLOT_NONE ? 0 : tag->slot, text);
}

static void observe_reply(struct claim *claim, const struct core_tag *tag, const struct node_reply *reply)
{
    struct node_result *result = &claim->results[tag->node];
    struct node_reply denied = {.fault = reply->fault};
    char text[REQUEST_DENIED_SIZE];

    assert(tag->op != OP_RELEASE && tag->op != OP_INTEND);
    if (tag->attempt != core_attempt(claim->core)) return;
    if (tag->op != OP_PEEK) result->latency_us = reply->latency_us;
    if (reply->fault == FAULT_AUTH) {
        denied = *reply;
        observe_denial(claim, tag, &denied, text);
        reply = &denied;
    }
    /* An arbiter named a new holder, so other holders in answers to earlier attempts are out of date. A lock that
     * tries once asked all nodes a moment ago. */
    if (result_take(result, &claim->all->runtime->alloc, tag->attempt, reply) &&
        claim->terms->config.holder.wait_us != 0) {
        results_forget_others(claim->results, claim->all->runtime->n_nodes, &claim->all->runtime->alloc, tag->node);
    }
}

/* A key of an attempt that was given up may have refused: release that key at once. */
static bool pay_late(struct claim *claim, const struct core_reply *reply)
{
    bool refused = reply->outcome == OUTCOME_OTHER || (reply->tag.op == OP_PEEK && reply->outcome == OUTCOME_YES);
    bool unnamed = reply->readers || claim->terms->config.permits != 0;

    assert(claim->in_flight > 0);
    if (!refused || (reply->tag.op != OP_ACQUIRE && reply->tag.op != OP_PEEK)) return false;
    return late_pay(&claim->all->lates, claim->keylist, reply->tag.node, unnamed ? 0 : reply->holder_id);
}

void claim_take_reply(struct claim *claim, const struct core_tag *tag, uint32_t generation,
                      const struct node_reply *reply)
{
    bool peeks = tag->op == OP_PEEK;
    struct core_event event = {
        .type = CORE_EV_REPLY,
        .reply = {.tag = *tag,
                  .generation = generation,
                  .outcome = reply->outcome,
                  .fault = fault_class(reply->fault),
                  .holder_id = reply->holder == NULL ? 0 : owner_id(reply->holder, reply->holder_length),
                  .listeners = peeks ? 0 : reply->count,
                  .readers = reply->readers,
                  .watched = reply->watched,
                  .refusing = reply->refusing,
                  .turns = reply->turns,
                  .before = reply->before,
                  .fence = reply->fence,
                  .slot = reply->slot,
                  .free = reply->free,
                  .first_us = reply->first_ttl_ms < 0 ? -1 : reply->first_ttl_ms * (int64_t)MS,
                  .ttl_us = reply->ttl_ms < 0 ? reply->ttl_ms : reply->ttl_ms * (int64_t)MS}};

    event.reply.given_up = pay_late(claim, &event.reply);
    claim->in_flight--;
    /* The next answer may be the last to a renewal: then the lock becomes compact. */
    if (claim->in_flight == 1) prefetch(claim->handle, PREFETCH_LOCK);
    if (!peeks && reply->outcome != OUTCOME_UNKNOWN) {
        admission_update_rtt(&claim->all->admission, tag->node, reply->latency_us,
                             claim->terms->config.node_timeout_us);
    }
    if (tag->op == OP_RELEASE) {
        observe_release(claim, tag, reply);
    } else if (tag->op != OP_INTEND) {
        observe_reply(claim, tag, reply);
    }
    (void)claim_step(claim, &event);
}

/* ---- acquires ---- */

/* Step by the node states that changed while the core was idle. */
static void catch_up(struct claim *claim)
{
    const struct runtime *runtime = claim->all->runtime;

    if (list_has(&claim->in_active) || claim->node_changes == runtime->node_changes) return;
    for (uint32_t i = 0; i < runtime->n_nodes; i++) claim_take_node(claim, i);
}

/* Rule 6.2. Return the nodes that leave earlier requests of the client unanswered, a bit each. */
static uint32_t late_nodes(const struct runtime *runtime)
{
    uint32_t late = 0;

    for (uint32_t i = 0; i < runtime->n_nodes; i++) late |= node_is_late(runtime->nodes[i].node) ? 1u << i : 0;
    return late;
}

int claim_acquire(struct claim *claim, struct quorlock_lock *acquirer, const struct core_acquire *acquire,
                  bool promised)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {
        .type = CORE_EV_ACQUIRE, .random = random, .wall_us = fence_floor(claim), .acquire = *acquire};
    int status;

    claim_check(claim);
    assert(claim->acquirer == NULL && claim->holds == 0);
    if (!claim_draw(claim, random)) event.random = NULL;
    if (event.random == NULL && !promised) return QUORLOCK_ERR_STATE;
    event.acquire.late = late_nodes(claim->all->runtime);
    catch_up(claim);
    for (uint32_t i = 0; i < claim->all->runtime->n_nodes; i++) {
        result_clear(&claim->results[i], &claim->all->runtime->alloc);
    }
    claim->logged_reason = 0;
    claim->logged_us = 0;
    claim->known_subscribed = 0;
    status = claim_step(claim, &event);
    if (status != 0) return status;
    claim->acquirer = acquirer;
    if (claim->terms->config.holder.wait_us != 0 && acquire->adopts == NULL) claim->keylist->asked = claim;
    claim_notify_subscribed(claim, true);
    claim_check(claim);
    return 0;
}

void claim_abandon(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .cancel = {.status = CORE_CANCELED}};

    assert(claim->acquirer != NULL);
    claim->acquirer = NULL;
    (void)claim_step(claim, &event);
}

void claim_keep_owner(struct claim *claim, bool granted)
{
    assert(claim->acquirer == NULL);
    claim->granted = granted;
    claim->token = *core_token_now(claim->core);
}

const char *claim_owner(const struct claim *claim, char *ret)
{
    if (!claim->granted) return NULL;
    (void)request_owner_text(claim->all->runtime, claim->terms, &claim->token, ret);
    return ret;
}

uint32_t claim_remaining_ms(const struct claim *claim)
{
    return (uint32_t)(core_remaining_us(claim->core, runtime_now_us(claim->all->runtime)) / MS);
}
