/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claim.c - ties one core to the nodes, the clock and the handles that hold it
 */
#include "lock/lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/validity.h"
#include "lock/owner.h"

#define MS 1000u

#define SAME_STATUS(name, status)                                                                              \
    _Static_assert((int)(name) == (int)(status), "the core's statuses are the library's")
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

/* What the nodes see: the label, and the attempt's 20 bytes in hex; or as Redisson writes it. */
static size_t owner_text(const struct claim *claim, const struct core_token *token, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = strlen(claim->client->owner_label);

    if (claim->client->uuid[0] != '\0') return owner_redisson(ret, claim->client->uuid, token);
    memcpy(ret, claim->client->owner_label, n);
    for (size_t i = 0; i < CORE_TOKEN_SIZE; i++) {
        ret[n++] = digits[token->bytes[i] >> 4];
        ret[n++] = digits[token->bytes[i] & 15];
    }
    ret[n] = '\0';
    return n;
}

static enum node_op node_op_of(uint8_t op)
{
    switch ((enum core_op)op) {
    case CORE_OP_EXTEND: return NODE_EXTEND;
    case CORE_OP_RELEASE: return NODE_RELEASE;
    case CORE_OP_PEEK: return NODE_PEEK;
    case CORE_OP_REPAIR: return NODE_REPAIR;
    case CORE_OP_RAISE: return NODE_RAISE;
    case CORE_OP_ACQUIRE: break;
    }
    return NODE_ACQUIRE;
}

static bool send_command(struct claim *claim, const struct core_command *command)
{
    char owner[LOCK_OWNER_SIZE];
    struct request request = {.owner = claim, .tag = command->tag, .kind = REQUEST_CLAIM};
    struct node_request node_request = {.op = node_op_of(command->tag.op),
                                        .use_eval = command->use_eval,
                                        .keys = claim->keylist->keys,
                                        .n_keys = claim->keylist->n_keys,
                                        .owner = owner,
                                        .owner_length = owner_text(claim, &command->token, owner),
                                        .lease_ms = (uint32_t)(command->tag.lease_us / MS),
                                        .fenced = claim->config.fencing,
                                        .fence = command->fence,
                                        .fence_ttl_ms = claim->fence_ttl_ms,
                                        .explain = command->explain,
                                        .silent = command->silent,
                                        .timeout_ms = (uint32_t)((command->timeout_us + MS - 1) / MS)};
    bool release = command->tag.op == CORE_OP_RELEASE;
    bool room = !release || admission_has_release_room(claim->client, command->tag.node);

    if (!room || client_send(claim->client, command->tag.node, &node_request, &request) != NODE_SENT) {
        if (release) admission_unpaid(claim, command->tag.node);
        return false;
    }
    if (release && command->tag.attempt == core_attempt(claim->core)) {
        claim->results[command->tag.node].released = QUORLOCK_VOTE_PENDING;
    }
    claim->in_flight++;
    return true;
}

/* ---- steps ---- */

static void result_clear(struct claim *claim, struct node_result *result)
{
    alloc_free(&claim->client->alloc, result->error);
    alloc_free(&claim->client->alloc, result->holder);
    result->error = result->holder = NULL;
    result->ttl_ms = -2;
    result->latency_us = 0;
}

static void release_result_clear(struct claim *claim, struct node_result *result)
{
    alloc_free(&claim->client->alloc, result->release_error);
    alloc_free(&claim->client->alloc, result->release_holder);
    result->release_error = result->release_holder = NULL;
}

/* While the core waits its line listens. */
static void listen(struct claim *claim, bool wanted)
{
    struct keylist *keylist = claim->keylist;

    if (wanted == claim->listens) return;
    claim->listens = wanted;
    if (wanted) {
        keylist->listeners++;
        notices_open(keylist);
    } else if (--keylist->listeners == 0) {
        notices_close(keylist);
    }
    if (wanted) claim_notify_subscribed(claim, false);
}

/* Everything that follows from the core's new state. */
static void settle(struct claim *claim, const struct core_update *update)
{
    struct quorlock_client *client = claim->client;
    bool holds = core_phase_now(claim->core) == CORE_HELD;

    client_wake_at(client, &claim->waker, core_deadline(claim->core));
    if (core_phase_now(claim->core) != CORE_IDLE || core_deadline(claim->core) != CORE_NEVER) {
        list_add(&client->active, &claim->active);
    } else {
        list_remove(&client->active, &claim->active);
    }
    if (core_loss_pending(claim->core)) {
        if (!claim->lost.in) message_log_loss(claim);
        list_add(&client->lost, &claim->lost);
    } else {
        list_remove(&client->lost, &claim->lost);
    }
    if (update->dispatch) {
        list_add(&client->ready, &claim->ready);
        client_run_soon(client);
    } else {
        list_remove(&client->ready, &claim->ready);
    }
    admission_follow(claim);
    if (holds != claim->counted) {
        claim->counted = holds;
        claim->keylist->held += holds ? 1u : UINT32_MAX;
        if (!holds) queue_keys_released(claim->keylist, claim_holder_id(claim->owner, strlen(claim->owner)));
    }
    listen(claim, core_listens(claim->core));
}

/* What a node said to an earlier attempt is no news of this one; who is not asked again is quoted on. */
static void begin_results(struct claim *claim, const struct core_update *update)
{
    if (claim->results_attempt == core_attempt(claim->core)) return;
    claim->results_attempt = core_attempt(claim->core);
    for (uint32_t i = 0; i < update->n_commands; i++) {
        const struct core_tag *tag = &update->commands[i].tag;

        if (tag->op == CORE_OP_ACQUIRE) result_clear(claim, &claim->results[tag->node]);
    }
}

static int step(struct claim *claim, struct core_event *event, struct core_completion *ret_completion)
{
    struct core_update update;
    struct core_tag unsent[CORE_COMMANDS_MAX];
    uint32_t n_unsent = 0;
    int status;

    if (event->now_us == 0) event->now_us = client_now_us(claim->client);
    admission_limit(claim->client, event);
    status = core_step(claim->core, event, &update);
    begin_results(claim, &update);
    for (uint32_t i = 0; i < update.n_commands; i++) {
        if (!send_command(claim, &update.commands[i])) unsent[n_unsent++] = update.commands[i].tag;
    }
    if (update.log != 0) message_log(claim, update.log);
    settle(claim, &update);
    if (ret_completion != NULL) *ret_completion = update.completion;
    /* What could not be queued was certainly not executed. The core asks nobody again for it in this round. */
    for (uint32_t i = 0; i < n_unsent; i++) {
        struct core_event failed = {
            .type = CORE_EV_REPLY,
            .reply = {.tag = unsent[i],
                      .generation = node_generation(claim->client->nodes[unsent[i].node].node),
                      .outcome = CORE_UNSENT,
                      .fault = CORE_FAULT_PASSING,
                      .ttl_us = -2}};

        step(claim, &failed, NULL);
    }
    return status;
}

int claim_step(struct claim *claim, struct core_event *event)
{
    return step(claim, event, NULL);
}

/* Of the system's source: no generator of our own, for a fork must not repeat one. */
int claim_draw(unsigned char random[CORE_RANDOM_SIZE])
{
    ssize_t n;

    do {
        n = getrandom(random, CORE_RANDOM_SIZE, 0);
    } while (n < 0 && errno == EINTR);
    return n == CORE_RANDOM_SIZE ? 0 : -1;
}

/* The one use of the wall clock, and nothing but the order of tokens after a loss of all counters hangs on it.
 */
uint64_t claim_fence_floor(const struct quorlock_client *client, const struct core_config *config)
{
    struct timespec now;
    uint64_t wall_us;

    if (!config->fencing) return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    wall_us = (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
    return wall_us > client->last_fence ? wall_us : client->last_fence + 1;
}

static void on_wake(struct waker *waker)
{
    struct claim *claim = (struct claim *)(void *)((char *)waker - offsetof(struct claim, waker));
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {
        .type = CORE_EV_TIMER, .random = random, .wall_us = claim_fence_floor(claim->client, &claim->config)};

    /* Renewals, losses and wait bounds need none; an attempt waits for some. */
    if (claim_draw(random) != 0) event.random = NULL;
    /* At that time, for a moment later the next one's bound may have passed, too, and the core would end all.
     */
    event.now_us = queue_expire_waiters(claim);
    step(claim, &event, NULL);
    claim_reap(claim);
}

static enum core_fault fault_of(enum node_fault fault)
{
    switch (fault) {
    case NODE_FAULT_NONE: return CORE_FAULT_NONE;
    case NODE_FAULT_AUTH: return CORE_FAULT_AUTH;
    case NODE_FAULT_FOREIGN: return CORE_FAULT_FOREIGN;
    case NODE_FAULT_PROTO: return CORE_FAULT_PROTO;
    case NODE_FAULT_CONFIG: return CORE_FAULT_CONFIG;
    default: return CORE_FAULT_PASSING;
    }
}

void claim_on_node_state(struct claim *claim, uint32_t index)
{
    const struct node *node = claim->client->nodes[index].node;
    enum node_state state = node_state_now(node);
    struct core_event event = {.type = CORE_EV_NODE,
                               .node = index,
                               .generation = node_generation(node),
                               .fault = fault_of(node_fault_now(node)),
                               .srtt_us = node_srtt_us(node)};

    event.state = CORE_NODE_DOWN;
    if (state == NODE_READY) event.state = CORE_NODE_READY;
    if (state == NODE_QUARANTINED) event.state = CORE_NODE_QUARANTINED;
    if (state == NODE_CONNECTING) event.state = CORE_NODE_CONNECTING;
    claim->node_changes = claim->client->node_changes;
    step(claim, &event, NULL);
    claim_reap(claim);
}

void claim_notify_subscribed(struct claim *claim, bool old)
{
    uint32_t news = notices_confirmed(claim->keylist) & ~claim->known_subscribed;

    for (uint32_t i = 0; i < claim->client->n_nodes; i++) {
        struct core_event event = {.type = CORE_EV_LISTENING, .node = i, .behind = old};

        if ((news & 1u << i) == 0) continue;
        claim->known_subscribed |= 1u << i;
        step(claim, &event, NULL);
    }
}

void claim_catch_up(struct claim *claim)
{
    if (claim->active.in || claim->node_changes == claim->client->node_changes) return;
    for (uint32_t i = 0; i < claim->client->n_nodes; i++) claim_on_node_state(claim, i);
}

static enum core_outcome outcome_of(enum node_outcome outcome)
{
    switch (outcome) {
    case NODE_YES: return CORE_YES;
    case NODE_OTHER: return CORE_OTHER;
    case NODE_MISSING: return CORE_MISSING;
    case NODE_NOSCRIPT: return CORE_NOSCRIPT;
    case NODE_ERROR: return CORE_ERROR;
    case NODE_UNKNOWN: break;
    }
    return CORE_UNKNOWN;
}

uint64_t claim_holder_id(const char *owner, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)owner[i]) * 0x100000001b3u;
    return hash | 1;
}

/* An arbiter that names another holder than before, and than nodes did that were asked before: those had it
 * then. */
static void forget_other_holders(struct claim *claim, uint32_t index)
{
    const struct node_result *news = &claim->results[index];

    /* A lock that tries once asked them a moment ago. */
    if (claim->config.wait_us == 0) return;
    for (uint32_t i = 0; i < claim->client->n_nodes && news->holder != NULL; i++) {
        struct node_result *result = &claim->results[i];

        if (result->holder == NULL || result->holder_attempt == news->holder_attempt) continue;
        if (strcmp(result->holder, news->holder) == 0) continue;
        alloc_free(&claim->client->alloc, result->holder);
        result->holder = NULL;
        result->ttl_ms = -2;
    }
}

static void observe_reply(struct claim *claim, const struct core_tag *tag, const struct node_reply *reply)
{
    const struct alloc *alloc = &claim->client->alloc;
    struct node_result *result = &claim->results[tag->node];
    uint32_t latency_us = result->latency_us;

    if (tag->op == CORE_OP_RELEASE) {
        queue_count_listeners(claim->keylist, tag->node, reply->count);
        if (result->released != QUORLOCK_VOTE_PENDING || tag->attempt != core_attempt(claim->core)) return;
        release_result_clear(claim, result);
        result->released = QUORLOCK_VOTE_FAILED;
        if (reply->error != NULL) result->release_error = alloc_text(alloc, reply->error, strlen(reply->error));
        if (reply->holder != NULL) {
            result->release_holder = alloc_text(alloc, reply->holder, reply->holder_length);
        }
        if (reply->outcome == NODE_YES) result->released = QUORLOCK_VOTE_GRANTED;
        if (reply->outcome == NODE_MISSING || reply->outcome == NODE_OTHER ||
            reply->fault == NODE_FAULT_FOREIGN) {
            result->released = QUORLOCK_VOTE_REFUSED;
        }
        return;
    }
    if (tag->attempt != core_attempt(claim->core) || reply->outcome == NODE_NOSCRIPT) return;
    result_clear(claim, result);
    result->latency_us = tag->op == CORE_OP_PEEK ? latency_us : reply->latency_us;
    result->ttl_ms = reply->ttl_ms;
    /* Out of memory costs the text, not the verdict. */
    if (reply->error != NULL) result->error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder == NULL) return;
    result->holder = owner_copy(alloc, reply->holder, reply->holder_length);
    result->holder_attempt = tag->attempt;
    if (claim_holder_id(reply->holder, reply->holder_length) == result->named_id) return;
    result->named_id = claim_holder_id(reply->holder, reply->holder_length);
    forget_other_holders(claim, tag->node);
}

void claim_on_step(struct claim *claim, uint32_t index, uint64_t before_us)
{
    struct core_event event = {.type = CORE_EV_STEP, .node = index, .before_us = before_us};

    step(claim, &event, NULL);
    claim_reap(claim);
}

void claim_on_reply(struct claim *claim, const struct core_tag *tag, uint32_t generation,
                    const struct node_reply *reply)
{
    struct core_event event = {
        .type = CORE_EV_REPLY,
        .reply = {.tag = *tag,
                  .generation = generation,
                  .outcome = outcome_of(reply->outcome),
                  .fault = fault_of(reply->fault),
                  .holder_id = reply->holder == NULL ? 0 : claim_holder_id(reply->holder, reply->holder_length),
                  .listeners = tag->op == CORE_OP_PEEK ? 0 : reply->count,
                  .fence = reply->fence,
                  .ttl_us = reply->ttl_ms < 0 ? reply->ttl_ms : reply->ttl_ms * (int64_t)MS}};

    claim->in_flight--;
    admission_update_rtt(claim, tag, reply);
    observe_reply(claim, tag, reply);
    step(claim, &event, NULL);
    claim_reap(claim);
}

/* ---- what the owner is told ---- */

/* Everybody who holds it, each once. A callback may free any of them. */
static void notify_sharers(struct claim *claim, const struct quorlock_loss *loss)
{
    struct list_walk walk;
    struct link *at;

    list_walk_begin(&walk, &claim->sharers);
    while ((at = list_walk_next(&walk)) != NULL) lock_lost(LIST_ITEM(at, struct quorlock, share), loss);
}

uint32_t claim_remaining_ms(const struct claim *claim)
{
    return (uint32_t)(core_remaining_us(claim->core, client_now_us(claim->client)) / MS);
}

static void notify_loss(struct claim *claim, const struct core_completion *completion)
{
    struct message_votes votes;
    struct quorlock_result result = {0};
    struct quorlock_loss loss = {.reason = (int)completion->loss, .text = message_loss(completion->loss)};

    message_votes(claim, &votes, &result);
    loss.votes = result.votes;
    loss.n_votes = result.n_votes;
    loss.remaining_ms = claim_remaining_ms(claim);
    notify_sharers(claim, &loss);
}

static void notify_acquired(struct claim *claim, const struct core_completion *completion)
{
    struct quorlock *handle = claim->acquirer;

    claim->acquirer = NULL;
    owner_text(claim, core_token_now(claim->core), claim->owner);
    if (completion->status != CORE_OK) claim->owner[0] = '\0';
    if (handle == NULL) return;
    if (completion->status == CORE_OK) {
        lock_share(handle, claim);
        reentry_admit(claim);
        /* A grant of another key may have a lower one, and one without fencing has none. */
        if (core_fence(claim->core) > claim->client->last_fence)
            claim->client->last_fence = core_fence(claim->core);
    }
    queue_leave(handle);
    lock_call_back(handle, &handle->acquired, claim, completion);
}

static void notify_extended(struct claim *claim, const struct core_completion *completion)
{
    struct quorlock *handle = claim->extender;

    claim->extender = NULL;
    reentry_renewed(claim, completion->status);
    if (handle != NULL) lock_call_back(handle, &handle->extended, claim, completion);
}

static void notify_released(struct claim *claim, const struct core_completion *completion)
{
    struct quorlock *handle = claim->releaser;

    /* That of an earlier hold, which nobody waits for. */
    if (claim->put_off) return;
    claim->releaser = NULL;
    if (handle == NULL) return;
    handle->releases--;
    lock_call_back(handle, &claim->released, claim, completion);
}

void claim_notify(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_DISPATCH};
    struct core_completion completion;

    claim->pins++;
    step(claim, &event, &completion);
    switch (completion.kind) {
    case CORE_NOTIFY_NOTHING: break;
    case CORE_NOTIFY_LOST: notify_loss(claim, &completion); break;
    case CORE_NOTIFY_ACQUIRED: notify_acquired(claim, &completion); break;
    case CORE_NOTIFY_EXTENDED: notify_extended(claim, &completion); break;
    case CORE_NOTIFY_RELEASED: notify_released(claim, &completion); break;
    }
    claim->pins--;
    claim_let_go(claim);
    claim_reap(claim);
}

/* ---- life ---- */

struct claim *claim_new(struct quorlock *handle)
{
    struct quorlock_client *client = handle->client;
    struct claim *claim =
        alloc_zero(&client->alloc, sizeof(*claim) + client->n_nodes * sizeof(struct node_result));

    if (claim == NULL) return NULL;
    claim->core = alloc_zero(&client->alloc, core_size(client->n_nodes));
    if (handle->owner_name != NULL) {
        claim->owner_name = alloc_text(&client->alloc, handle->owner_name, strlen(handle->owner_name));
    }
    if (claim->core == NULL || (handle->owner_name != NULL && claim->owner_name == NULL) ||
        client_reserve_waker(client, &claim->waker, on_wake) != 0) {
        alloc_free(&client->alloc, claim->owner_name);
        alloc_free(&client->alloc, claim->core);
        alloc_free(&client->alloc, claim);
        return NULL;
    }
    claim->client = client;
    claim->keylist = handle->keylist;
    claim->keylist->users++;
    claim->handle = handle;
    claim->config = handle->config;
    core_init(claim->core, &claim->config);
    claim->fence_ttl_ms = handle->fence_ttl_ms;
    claim->node_changes = client->node_changes - 1;
    for (uint32_t i = 0; i < client->n_nodes; i++) claim->results[i].ttl_ms = -2;
    list_add(&client->claims, &claim->all);
    return claim;
}

/* A claim that has still to end an earlier hold, for whomever, goes on alone: the handle shall not wait for it.
 */
static void part_from_busy(struct quorlock *lock)
{
    struct claim *claim = lock->claim;

    if (claim == NULL || core_may_acquire(claim->core)) return;
    lock->claim = NULL;
    claim->handle = NULL;
    claim_let_go(claim);
    claim_reap(claim);
}

int claim_acquire(struct quorlock *lock, bool behind, uint32_t seen)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {.type = CORE_EV_ACQUIRE,
                               .random = random,
                               .wall_us = claim_fence_floor(lock->client, &lock->config),
                               .begun_us = lock->acquired.begun_us,
                               .behind = behind,
                               .seen = seen};
    struct claim *claim;
    int status;

    if (claim_draw(random) != 0) return QUORLOCK_STATE;
    part_from_busy(lock);
    if (lock->claim == NULL) lock->claim = claim_new(lock);
    if (lock->claim == NULL) return QUORLOCK_NOMEM;
    claim = lock->claim;
    claim->pins++;
    claim_catch_up(claim);
    claim->pins--;
    for (uint32_t i = 0; i < lock->client->n_nodes; i++) result_clear(claim, &claim->results[i]);
    claim->logged_wait_reason = 0;
    claim->logged_wait_us = 0;
    claim->known_subscribed = 0;
    status = step(claim, &event, NULL);
    if (status != 0) return status;
    claim->acquirer = lock;
    if (lock->config.wait_us != 0) lock->keylist->asked = claim;
    claim_notify_subscribed(claim, true);
    return 0;
}

/* The answers of a release are counted from its beginning. */
static int begin_release(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_RELEASE};
    uint32_t n_nodes = claim->client->n_nodes;
    int before[QUORLOCK_NODES_MAX] = {0};
    int status;

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
    if (status == 0) claim->put_off = false;
    return status;
}

int claim_release(struct quorlock *lock, struct claim *claim, const struct lock_callback *callback)
{
    struct core_event nobody_wants = {.type = CORE_EV_CANCEL, .reason = CORE_CANCELED};
    int status = begin_release(claim);

    if (status != 0 && (status != QUORLOCK_BUSY || claim->releaser != NULL)) return status;
    claim->releaser = lock;
    claim->released = *callback;
    lock->releases++;
    if (status == 0) return 0;
    /* A renewal for somebody who does not hold it any more ends first, and is told: then claim_let_go. */
    claim->put_off = true;
    (void)step(claim, &nobody_wants, NULL);
    return 0;
}

void claim_abandon(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .reason = CORE_CANCELED};

    claim->acquirer = NULL;
    (void)step(claim, &event, NULL);
}

void claim_let_go(struct claim *claim)
{
    enum core_phase phase = core_phase_now(claim->core);

    if (claim->holds > 0 || claim->pending_holds.count > 0) return;
    if (phase != CORE_HELD && phase != CORE_LOST) return;
    /* Refused while something else waits to be told: then it is tried again after that. */
    (void)begin_release(claim);
}

void claim_destroy(struct claim *claim)
{
    struct quorlock_client *client = claim->client;
    const struct alloc *alloc = &client->alloc;

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        result_clear(claim, &claim->results[i]);
        release_result_clear(claim, &claim->results[i]);
    }
    if (claim->handle != NULL) claim->handle->claim = NULL;
    listen(claim, false);
    if (claim->keylist->asked == claim) claim->keylist->asked = NULL;
    admission_leave(claim);
    list_remove(&client->claims, &claim->all);
    list_remove(&client->active, &claim->active);
    list_remove(&client->lost, &claim->lost);
    list_remove(&client->ready, &claim->ready);
    client_return_waker(client, &claim->waker);
    keylist_leave(claim->keylist);
    alloc_free(alloc, claim->owner_name);
    alloc_free(alloc, claim->core);
    alloc_free(alloc, claim);
}

void claim_reap(struct claim *claim)
{
    bool owed = claim->acquirer != NULL || claim->extender != NULL || claim->releaser != NULL;

    /* Where others wait, who has had his turn keeps nothing. */
    if (claim->handle != NULL && claim->keylist->waiting.count == 0) return;
    if (owed || claim->holds > 0 || claim->pending_holds.count > 0 || claim->pins > 0 || claim->in_flight > 0)
        return;
    if (core_quiet(claim->core)) claim_destroy(claim);
}
