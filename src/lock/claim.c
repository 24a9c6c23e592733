/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/claim.h"

#include <stdio.h>
#include <string.h>

#include "base/trace.h"
#include "core/validity.h"

#define MS 1000u

/* As many as there are attempts in flight at most. */
#define SPARE_WORKS_MAX 1024u

#define SAME_STATUS(name, status) _Static_assert((int)(name) == (int)(status), "the core's statuses are the library's")
SAME_STATUS(CORE_INVAL, QUORLOCK_INVAL);
SAME_STATUS(CORE_BUSY, QUORLOCK_BUSY);
SAME_STATUS(CORE_STATE, QUORLOCK_STATE);
SAME_STATUS(CORE_HELD_BY_OTHER, QUORLOCK_HELD);
SAME_STATUS(CORE_NOQUORUM, QUORLOCK_NOQUORUM);
SAME_STATUS(CORE_TIMEDOUT, QUORLOCK_TIMEDOUT);
SAME_STATUS(CORE_LOST_LOCK, QUORLOCK_LOST);
SAME_STATUS(CORE_CANCELED, QUORLOCK_CANCELED);
SAME_STATUS(CORE_CLOSED, QUORLOCK_CLOSED);
SAME_STATUS(CORE_NO_AUTH, QUORLOCK_AUTH);
SAME_STATUS(CORE_FOREIGN_KEY, QUORLOCK_FOREIGN);
SAME_STATUS(CORE_NO_PROTO, QUORLOCK_PROTO);
_Static_assert((int)CORE_LOSS_EXPIRED == (int)QUORLOCK_LOST_EXPIRED, "reasons of loss");
_Static_assert((int)CORE_LOSS_GONE == (int)QUORLOCK_LOST_GONE, "reasons of loss");
_Static_assert((int)CORE_LOSS_MAX_HOLD == (int)QUORLOCK_LOST_MAX_HOLD, "reasons of loss");
_Static_assert((int)CORE_LOSS_NOT_RENEWED == (int)QUORLOCK_LOST_NOT_RENEWED, "reasons of loss");
_Static_assert((int)CORE_LOSS_CLOCK == (int)QUORLOCK_LOST_CLOCK, "reasons of loss");
_Static_assert(NODE_MS_MAX <= INT64_MAX / (int64_t)MS, "what a node says in ms fits in us");
_Static_assert(CORE_NODES_MAX == QUORLOCK_NODES_MAX, "as many nodes inside as outside");

/* ---- commands to the nodes ---- */

#define HEX_ROW(digit)                                                                                                 \
    digit "0" digit "1" digit "2" digit "3" digit "4" digit "5" digit "6" digit "7" digit "8" digit "9" digit          \
          "a" digit "b" digit "c" digit "d" digit "e" digit "f"

/* Two digits at a time: each attempt has a text of its own. */
static size_t hex_text(const unsigned char *bytes, size_t n, char *ret)
{
    static const char pairs[] =
        HEX_ROW("0") HEX_ROW("1") HEX_ROW("2") HEX_ROW("3") HEX_ROW("4") HEX_ROW("5") HEX_ROW("6") HEX_ROW("7")
            HEX_ROW("8") HEX_ROW("9") HEX_ROW("a") HEX_ROW("b") HEX_ROW("c") HEX_ROW("d") HEX_ROW("e") HEX_ROW("f");

    for (size_t i = 0; i < n; i++) memcpy(ret + 2 * i, pairs + 2 * (size_t)bytes[i], 2);
    ret[2 * n] = '\0';
    return 2 * n;
}

/* What the nodes see: the label, and the attempt's 20 bytes in hex; or as Redisson writes it. */
static size_t owner_text(const struct claim *claim, const struct core_token *token, char *ret)
{
    const struct runtime *runtime = claim->all->runtime;

    if (runtime->uuid[0] != '\0') return owner_redisson(ret, runtime->uuid, token);
    memcpy(ret, runtime->owner_label, runtime->owner_label_length);
    return runtime->owner_label_length + hex_text(token->bytes, CORE_TOKEN_SIZE, ret + runtime->owner_label_length);
}

/* The owner of the commands of one step, which mostly is one. */
struct step_owner {
    struct core_token token;
    char text[CLAIM_OWNER_SIZE];
    size_t length; /* 0: none yet */
};

static void own(struct step_owner *owner, const struct claim *claim, const struct core_token *token)
{
    if (owner->length != 0 && memcmp(&owner->token, token, sizeof(*token)) == 0) return;
    owner->token = *token;
    owner->length = owner_text(claim, token, owner->text);
}

static bool send_command(struct claim *claim, const struct core_command *command, struct step_owner *owner)
{
    const struct core_tag *tag = &command->tag;
    struct node_result *result = &claim->results[tag->node];
    struct admission *admission = &claim->all->admission;
    struct node_request request = {.op = (enum op)tag->op,
                                   .use_eval = command->use_eval,
                                   .keys = claim->keylist->keys,
                                   .n_keys = claim->keylist->n_keys,
                                   .owner = owner->text,
                                   .lease_ms = (uint32_t)(tag->lease_us / MS),
                                   .fenced = claim->terms->config.fencing,
                                   .fence = command->fence,
                                   .fence_ttl_ms = claim->terms->fence_ttl_ms,
                                   .explain = command->explain,
                                   .silent = command->silent,
                                   .if_deleted = command->if_deleted,
                                   .timeout_ms = (uint32_t)((command->timeout_us + MS - 1) / MS)};
    bool release = tag->op == OP_RELEASE;
    bool room = !release || admission_has_release_room(admission, tag->node);

    own(owner, claim, &command->token);
    request.owner_length = owner->length;
    if (!room || nodes_send(claim->all->runtime, tag->node, &request, &claim->requester, tag) != NODE_SENT) {
        if (release) admission_add_unsent(admission, &result->unsent, tag->node);
        return false;
    }
    if (release && tag->attempt == claim->released_attempt) result->released = QUORLOCK_VOTE_PENDING;
    claim->in_flight++;
    return true;
}

/* Whether an attempt may begin with this event. */
static bool wants_work(const struct claim *claim, const struct core_event *event)
{
    bool acquires = event->type == CORE_EV_ACQUIRE && (!event->no_attempt || event->acquire.behind);

    return !core_has_work(claim->core) && (acquires || event->type == CORE_EV_BEGIN);
}

static int step_core(struct claim *claim, struct core_event *event, struct core_update *update)
{
    struct claims *all = claim->all;
    int status;

    admission_limit(&all->admission, event);
    if (wants_work(claim, event)) event->work = spare_take(&all->works);
    status = core_step(claim->core, event, update);
    if (!core_has_work(claim->core)) spare_keep(&all->works, event->work);
    spare_keep(&all->works, core_end_work(claim->core, false));
    return status;
}

/* ---- steps ---- */

static void result_clear(struct claim *claim, struct node_result *result)
{
    note_clear(&result->note, &claim->all->runtime->alloc);
    result->latency_us = 0;
}

static void release_result_clear(struct claim *claim, struct node_result *result)
{
    note_clear_release(&result->note, &claim->all->runtime->alloc);
}

/* While the core waits its key list listens. */
static void listen(struct claim *claim, bool wanted)
{
    if (wanted == claim->listens) return;
    claim->listens = wanted;
    keylist_listen(claim->keylist, wanted);
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
    claim->all->counts.losses[reason]++;
    TRACE2(loss, claim->keylist->name, (int)reason);
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

    counts->renewals += renewed;
    counts->renewals_failed += failed;
    counts->degradations += (log & CORE_LOG_DEGRADED) != 0;
    if (renewed || failed) TRACE2(renewal, claim->keylist->name, (int)renewed);
}

static void count_degraded(struct claim *claim, bool degraded)
{
    if (degraded == claim->degraded) return;
    claim->degraded = degraded;
    claim->all->counts.degraded += degraded ? 1u : UINT64_MAX;
}

static void count_hold(struct claim *claim, bool holds, uint64_t now_us)
{
    struct counts *counts = &claim->all->counts;

    claim->counted = holds;
    claim->keylist->held += holds ? 1u : UINT32_MAX;
    counts->held += holds ? 1u : UINT64_MAX;
    if (!holds) histogram_add(&counts->holds, validity_sub(now_us, core_granted_us(claim->core)));
}

static uint64_t next_wake_us(const struct claim *claim, uint64_t held_back_us)
{
    uint64_t at_us = core_deadline(claim->core);

    if (claim->trouble_us != 0 && claim->trouble_us < at_us) at_us = claim->trouble_us;
    return held_back_us != 0 && held_back_us < at_us ? held_back_us : at_us;
}

/* Everything that follows from the core's new state. */
static void settle(struct claim *claim, const struct core_update *update, uint64_t now_us)
{
    struct claims *all = claim->all;
    enum core_phase phase = core_phase_now(claim->core);
    uint64_t held_back_us = all->troubles != NULL ? all->troubles->hold_back(claim, update, now_us) : 0;
    bool active = phase != CORE_IDLE || core_deadline(claim->core) != CORE_NEVER;
    bool holds = phase == CORE_HELD;

    runtime_wake_at(all->runtime, &claim->waker, next_wake_us(claim, held_back_us));
    set_in(&all->active, &claim->in_active, active);
    if (claim->named != NULL) set_in(&claim->named->claims, &claim->in_owner, active);
    follow_completions(claim, update->dispatch && held_back_us == 0);
    admission_follow(&all->admission, &claim->applicant, core_wants(claim->core), phase == CORE_ASKING);
    count_degraded(claim, holds && !core_is_whole(claim->core));
    if (holds != claim->counted) {
        count_hold(claim, holds, now_us);
        if (!holds) all->events->keys_released(claim);
    }
    listen(claim, core_listens(claim->core));
}

/* A new attempt clears the results of the nodes that it asks; the others keep their last. */
static void begin_results(struct claim *claim, const struct core_update *update)
{
    if (claim->results_attempt == core_attempt(claim->core)) return;
    claim->results_attempt = core_attempt(claim->core);
    for (uint32_t i = 0; i < update->n_commands; i++) {
        const struct core_tag *tag = &update->commands[i].tag;

        if (tag->op == OP_ACQUIRE) result_clear(claim, &claim->results[tag->node]);
    }
}

static int step(struct claim *claim, struct core_event *event, struct core_completion *ret_completion)
{
    struct core_update update;
    struct core_tag unsent[CORE_COMMANDS_MAX];
    struct step_owner owner;
    uint32_t n_unsent = 0;
    int status;

    if (event->now_us == 0) event->now_us = runtime_now_us(claim->all->runtime);
    status = step_core(claim, event, &update);
    begin_results(claim, &update);
    owner.length = 0;
    for (uint32_t i = 0; i < update.n_commands; i++) {
        if (!send_command(claim, &update.commands[i], &owner)) unsent[n_unsent++] = update.commands[i].tag;
    }
    if (update.log != 0) {
        count_log(claim, update.log);
        claim->all->events->logs(claim, update.log);
    }
    settle(claim, &update, event->now_us);
    if (ret_completion != NULL) *ret_completion = update.completion;
    /* A command that was not queued was not executed: the core asks that node no more in this round. */
    for (uint32_t i = 0; i < n_unsent; i++) {
        struct core_event failed = {
            .type = CORE_EV_REPLY,
            .reply = {.tag = unsent[i],
                      .generation = node_generation(claim->all->runtime->nodes[unsent[i].node].node),
                      .outcome = OUTCOME_UNSENT,
                      .fault = FAULT_CLASS_TEMPORARY,
                      .ttl_us = -2}};

        step(claim, &failed, NULL);
    }
    return status;
}

int claim_step(struct claim *claim, struct core_event *event)
{
    return step(claim, event, NULL);
}

static bool draw(const struct claim *claim, unsigned char random[CORE_RANDOM_SIZE])
{
    struct runtime *runtime = claim->all->runtime;

    return random_draw(&runtime->random, &runtime->system, random, CORE_RANDOM_SIZE) == 0;
}

/* The least fencing token of the next attempt; 0 without fencing. The wall clock is used for nothing else, and
 * matters only where all counters were lost. */
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

    event->random = draw(claim, random) ? random : NULL;
    event->wall_us = fence_floor(claim);
    return step(claim, event, NULL);
}

struct core_completion claim_dispatch(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_DISPATCH};
    struct core_completion completion;

    step(claim, &event, &completion);
    return completion;
}

static void on_wake(struct waker *waker)
{
    struct claim *claim = CONTAINER_OF(waker, struct claim, waker);
    struct core_event event = {.type = CORE_EV_TIMER, .now_us = claim->all->events->due(claim)};
    bool held = core_phase_now(claim->core) == CORE_HELD;

    if (claim->trouble_us != 0 && claim->trouble_us <= event.now_us) {
        claim->trouble_us = 0;
        claim->all->troubles->strike(claim);
    }
    /* What is held begins no attempt. */
    (void)(held ? claim_step(claim, &event) : claim_step_randomly(claim, &event));
    claim_reap(claim);
}

/* ---- admission ---- */

static bool begin_admitted(struct applicant *applicant)
{
    struct claim *claim = CONTAINER_OF(applicant, struct claim, applicant);
    struct core_event event = {.type = CORE_EV_BEGIN};

    /* A renewal needs none. */
    if (core_wants(claim->core) == CORE_WANTS_ATTEMPT && !core_has_work(claim->core) &&
        !spare_reserve(&claim->all->works)) {
        return false;
    }
    (void)claim_step_randomly(claim, &event);
    return event.random != NULL;
}

static void send_unsent(struct unsent_release *unsent, uint32_t node)
{
    struct node_result *first = CONTAINER_OF(unsent, struct node_result, unsent) - node;
    struct claim *claim = CONTAINER_OF(first, struct claim, results);
    struct core_event event = {.type = CORE_EV_ROOM, .room = {.node = node}};

    step(claim, &event, NULL);
    claim_reap(claim);
}

int claims_start(struct claims *all, struct runtime *runtime)
{
    all->runtime = runtime;
    all->admission.begin = begin_admitted;
    all->admission.send = send_unsent;
    all->works =
        (struct spare){.alloc = &runtime->alloc, .size = core_work_size(runtime->n_nodes), .most = SPARE_WORKS_MAX};
    return admission_start(&all->admission, runtime);
}

void claims_stop(struct claims *all)
{
    if (all->runtime == NULL) return;
    hashtable_clear(&all->owners, &all->runtime->alloc);
    hashtable_clear(&all->terms, &all->runtime->alloc);
    spare_clear(&all->works);
}

/* ---- nodes ---- */

void claim_on_node_state(struct claim *claim, uint32_t index)
{
    const struct node *node = claim->all->runtime->nodes[index].node;
    struct core_event event = {.type = CORE_EV_NODE,
                               .node = {.index = index,
                                        .state = node_state_now(node),
                                        .generation = node_generation(node),
                                        .fault = fault_class(node_fault_now(node)),
                                        .srtt_us = node_srtt_us(node)}};

    claim->node_changes = claim->all->runtime->node_changes;
    step(claim, &event, NULL);
    claim_reap(claim);
}

void claim_notify_subscribed(struct claim *claim, bool old)
{
    uint32_t news = keylist_confirmed(claim->keylist) & ~claim->known_subscribed;

    for (uint32_t i = 0; i < claim->all->runtime->n_nodes; i++) {
        struct core_event event = {.type = CORE_EV_LISTENING, .listening = {.node = i, .before_acquire = old}};

        if ((news & 1u << i) == 0) continue;
        claim->known_subscribed |= 1u << i;
        step(claim, &event, NULL);
    }
}

/* Node states that changed while the core was idle. */
static void catch_up(struct claim *claim)
{
    const struct runtime *runtime = claim->all->runtime;

    if (list_has(&claim->in_active) || claim->node_changes == runtime->node_changes) return;
    claim->pins++;
    for (uint32_t i = 0; i < runtime->n_nodes; i++) claim_on_node_state(claim, i);
    claim->pins--;
}

void claim_clock_stepped(struct claim *claim, uint32_t index, uint64_t before_us)
{
    struct core_event event = {.type = CORE_EV_STEP, .step = {.node = index, .before_us = before_us}};

    step(claim, &event, NULL);
    claim_reap(claim);
}

/* ---- replies ---- */

/* An arbiter named a new holder, so other holders in answers to earlier attempts are out of date. */
static void forget_other_holders(struct claim *claim, const struct note *news)
{
    /* A lock that tries once asked all a moment ago. */
    if (claim->terms->config.wait_us == 0) return;
    for (uint32_t i = 0; i < claim->all->runtime->n_nodes && news->holder != NULL; i++) {
        struct note **other = &claim->results[i].note;

        if (note_read(*other)->holder == NULL || (*other)->holder_attempt == news->holder_attempt) continue;
        if (strcmp((*other)->holder, news->holder) != 0) note_forget_holder(other, &claim->all->runtime->alloc);
    }
}

static void observe_release(struct claim *claim, const struct core_tag *tag, const struct node_reply *reply)
{
    struct node_result *result = &claim->results[tag->node];

    keylist_count_listeners(claim->keylist, tag->node, reply->count);
    if (result->released != QUORLOCK_VOTE_PENDING || tag->attempt != claim->released_attempt) return;
    note_take_release(&result->note, &claim->all->runtime->alloc, reply);
    result->released = QUORLOCK_VOTE_FAILED;
    if (reply->outcome == OUTCOME_YES) result->released = QUORLOCK_VOTE_GRANTED;
    if (reply->outcome == OUTCOME_MISSING || reply->outcome == OUTCOME_OTHER || reply->fault == FAULT_FOREIGN) {
        result->released = QUORLOCK_VOTE_REFUSED;
    }
}

static void observe_reply(struct claim *claim, const struct core_tag *tag, const struct node_reply *reply)
{
    struct node_result *result = &claim->results[tag->node];
    uint64_t holder_id;

    if (tag->attempt != core_attempt(claim->core) || reply->outcome == OUTCOME_NOSCRIPT) return;
    if (tag->op != OP_PEEK) result->latency_us = reply->latency_us;
    note_take(&result->note, &claim->all->runtime->alloc, tag->attempt, reply);
    if (reply->holder == NULL || result->note == NULL) return;
    holder_id = owner_id(reply->holder, reply->holder_length);
    if (holder_id == result->note->named_id) return;
    result->note->named_id = holder_id;
    forget_other_holders(claim, result->note);
}

static void on_reply(struct requester *requester, const struct core_tag *tag, uint32_t index, uint32_t generation,
                     const struct node_reply *reply)
{
    struct claim *claim = CONTAINER_OF(requester, struct claim, requester);
    bool peeks = tag->op == OP_PEEK;
    struct core_event event = {
        .type = CORE_EV_REPLY,
        .reply = {.tag = *tag,
                  .generation = generation,
                  .outcome = reply->outcome,
                  .fault = fault_class(reply->fault),
                  .holder_id = reply->holder == NULL ? 0 : owner_id(reply->holder, reply->holder_length),
                  .listeners = peeks ? 0 : reply->count,
                  .fence = reply->fence,
                  .ttl_us = reply->ttl_ms < 0 ? reply->ttl_ms : reply->ttl_ms * (int64_t)MS}};

    (void)index;
    claim->in_flight--;
    if (!peeks && reply->outcome != OUTCOME_UNKNOWN) {
        admission_update_rtt(&claim->all->admission, reply->latency_us, claim->terms->config.node_timeout_us);
    }
    if (tag->op == OP_RELEASE) {
        observe_release(claim, tag, reply);
    } else {
        observe_reply(claim, tag, reply);
    }
    step(claim, &event, NULL);
    claim_reap(claim);
}

/* ---- life ---- */

struct claim *claim_new(struct claims *all, struct keylist *keylist, struct quorlock *handle, struct terms *terms,
                        struct named_owner *named)
{
    struct runtime *runtime = all->runtime;
    uint32_t n_nodes = runtime->n_nodes;
    size_t size = sizeof(struct claim) + n_nodes * sizeof(struct node_result);
    struct claim *claim = alloc_zero(&runtime->alloc, size + core_size(n_nodes));

    if (claim == NULL) return NULL;
    claim->core = (struct core_lock *)(void *)((char *)claim + size);
    if (runtime_reserve_waker(runtime, &claim->waker, on_wake) != 0) {
        alloc_free(&runtime->alloc, claim);
        return NULL;
    }
    claim->all = all;
    claim->keylist = keylist;
    keylist->users++;
    claim->handle = handle;
    claim->named = named;
    if (named != NULL) named->users++;
    claim->requester.reply = on_reply;
    claim->terms = terms_share(terms);
    core_init(claim->core, &terms->config, keylist_first_arbiter(keylist));
    claim->node_changes = runtime->node_changes - 1;
    list_add(&all->all, &claim->in_all);
    return claim;
}

int claim_acquire(struct claim *claim, struct quorlock *acquirer, const struct core_acquire *acquire, bool promised)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {
        .type = CORE_EV_ACQUIRE, .random = random, .wall_us = fence_floor(claim), .acquire = *acquire};
    int status;

    if (!draw(claim, random)) event.random = NULL;
    if (event.random == NULL && !promised) return QUORLOCK_STATE;
    if (!core_has_work(claim->core) && !spare_reserve(&claim->all->works) && !promised) return QUORLOCK_NOMEM;
    catch_up(claim);
    for (uint32_t i = 0; i < claim->all->runtime->n_nodes; i++) result_clear(claim, &claim->results[i]);
    claim->logged_wait_reason = 0;
    claim->logged_wait_us = 0;
    claim->known_subscribed = 0;
    status = step(claim, &event, NULL);
    if (status != 0) return status;
    claim->acquirer = acquirer;
    if (claim->terms->config.wait_us != 0) claim->keylist->asked = claim;
    claim_notify_subscribed(claim, true);
    return 0;
}

void claim_note_owner(struct claim *claim, bool granted)
{
    claim->granted = granted;
    claim->token = *core_token_now(claim->core);
}

const char *claim_owner(const struct claim *claim, char *ret)
{
    if (!claim->granted) return NULL;
    owner_text(claim, &claim->token, ret);
    return ret;
}

uint32_t claim_remaining_ms(const struct claim *claim)
{
    return (uint32_t)(core_remaining_us(claim->core, runtime_now_us(claim->all->runtime)) / MS);
}

/* The answers of a release are counted from its beginning. */
static int begin_release(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_RELEASE};
    uint32_t n_nodes = claim->all->runtime->n_nodes;
    uint64_t attempt_before = claim->released_attempt;
    enum quorlock_vote_outcome before[QUORLOCK_NODES_MAX] = {QUORLOCK_VOTE_NONE};
    int status;

    claim->released_attempt = core_attempt(claim->core);
    for (uint32_t i = 0; i < n_nodes; i++) {
        before[i] = claim->results[i].released;
        claim->results[i].released = QUORLOCK_VOTE_NONE;
    }
    status = step(claim, &event, NULL);
    for (uint32_t i = 0; i < n_nodes; i++) {
        struct node_result *result = &claim->results[i];

        /* The release in flight, if there is one, still waits for its answers. */
        if (status != 0) result->released = before[i];
        if (status == 0) release_result_clear(claim, result);
        if (status == 0 && result->released == QUORLOCK_VOTE_NONE && core_debts(claim->core, i) > 0) {
            result->released = QUORLOCK_VOTE_FAILED;
        }
    }
    if (status == 0) {
        TRACE1(release, claim->keylist->name);
        claim->put_off = false;
    } else {
        claim->released_attempt = attempt_before;
    }
    return status;
}

int claim_release(struct claim *claim, struct quorlock *releaser, const struct lock_callback *callback)
{
    struct core_event nobody_wants = {.type = CORE_EV_CANCEL, .cancel = {.status = CORE_CANCELED}};
    int status = begin_release(claim);

    if (status != 0 && (status != QUORLOCK_BUSY || claim->releaser != NULL)) return status;
    claim->releaser = releaser;
    claim->released = *callback;
    if (status == 0) return 0;
    /* A renewal for a handle that holds it no more ends first, with its callback; claim_let_go follows. */
    claim->put_off = true;
    (void)step(claim, &nobody_wants, NULL);
    return 0;
}

void claim_abandon(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .cancel = {.status = CORE_CANCELED}};

    claim->acquirer = NULL;
    (void)step(claim, &event, NULL);
}

void claim_agree(struct claim *claim, struct terms *terms)
{
    struct terms *before = claim->terms;

    claim->terms = terms_share(terms);
    terms_leave(&claim->all->terms, &claim->all->runtime->alloc, before);
}

void claim_let_go(struct claim *claim)
{
    enum core_phase phase = core_phase_now(claim->core);

    if (claim->holds > 0 || claim->pending_holds.count > 0) return;
    if (phase != CORE_HELD && phase != CORE_LOST) return;
    /* Refused while another callback is due; it is tried again after that. */
    (void)begin_release(claim);
}

void claim_destroy(struct claim *claim)
{
    struct claims *all = claim->all;
    const struct alloc *alloc = &all->runtime->alloc;

    for (uint32_t i = 0; i < all->runtime->n_nodes; i++) {
        result_clear(claim, &claim->results[i]);
        release_result_clear(claim, &claim->results[i]);
        list_remove(&all->admission.unsent[i], &claim->results[i].unsent.link);
    }
    all->events->destroyed(claim);
    listen(claim, false);
    if (claim->keylist->asked == claim) claim->keylist->asked = NULL;
    admission_leave(&all->admission, &claim->applicant);
    list_remove(&all->all, &claim->in_all);
    list_remove(&all->active, &claim->in_active);
    list_remove(claim->loss_due ? &all->lost : &all->ready, &claim->in_due);
    if (claim->named != NULL) list_remove(&claim->named->claims, &claim->in_owner);
    named_owner_leave(&all->owners, alloc, claim->named);
    /* The core reads its config once more. */
    spare_keep(&all->works, core_end_work(claim->core, true));
    terms_leave(&all->terms, alloc, claim->terms);
    runtime_return_waker(all->runtime, &claim->waker);
    keylist_leave(claim->keylist);
    alloc_free(alloc, claim);
}

void claim_reap(struct claim *claim)
{
    bool owed = claim->acquirer != NULL || claim->extender != NULL || claim->releaser != NULL;

    /* Where handles wait in the queue, a handle whose turn is over keeps no claim. */
    if (claim->handle != NULL && claim->keylist->waiting.count == 0) return;
    if (owed || claim->holds > 0 || claim->pending_holds.count > 0) return;
    if (claim->pins > 0 || claim->in_flight > 0) return;
    if (core_quiet(claim->core)) claim_destroy(claim);
}
