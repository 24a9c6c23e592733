/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grip.c - ties one core to the nodes, the clock and the handles that hold it
 */
#include "lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/validity.h"
#include "owner.h"

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
static size_t owner_text(const struct grip *grip, const struct core_token *token, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = strlen(grip->client->owner_label);

    if (grip->client->uuid[0] != '\0') return owner_redisson(ret, grip->client->uuid, token);
    memcpy(ret, grip->client->owner_label, n);
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

static bool send_command(struct grip *grip, const struct core_command *command)
{
    char owner[LOCK_OWNER_SIZE];
    struct request request = {.owner = grip, .tag = command->tag, .kind = REQUEST_GRIP};
    struct node_request node_request = {.op = node_op_of(command->tag.op),
                                        .whole_script = command->whole_script,
                                        .keys = grip->line->keys,
                                        .n_keys = grip->line->n_keys,
                                        .owner = owner,
                                        .owner_length = owner_text(grip, &command->token, owner),
                                        .lease_ms = (uint32_t)(command->tag.lease_us / MS),
                                        .fenced = grip->config.fencing,
                                        .fence = command->fence,
                                        .fence_ttl_ms = grip->fence_ttl_ms,
                                        .explain = command->explain,
                                        .silent = command->silent,
                                        .timeout_ms = (uint32_t)((command->timeout_us + MS - 1) / MS)};
    bool release = command->tag.op == CORE_OP_RELEASE;
    bool room = !release || room_for_release(grip->client, command->tag.node);

    if (!room || client_send(grip->client, command->tag.node, &node_request, &request) != NODE_SENT) {
        if (release) room_unpaid(grip, command->tag.node);
        return false;
    }
    if (release && command->tag.attempt == core_attempt(grip->core)) {
        grip->notes[command->tag.node].released = QUORLOCK_VOTE_PENDING;
    }
    grip->in_flight++;
    return true;
}

/* ---- steps ---- */

static void note_clear(struct grip *grip, struct lock_note *note)
{
    alloc_free(&grip->client->alloc, note->error);
    alloc_free(&grip->client->alloc, note->holder);
    note->error = note->holder = NULL;
    note->ttl_ms = -2;
    note->latency_us = 0;
}

static void release_note_clear(struct grip *grip, struct lock_note *note)
{
    alloc_free(&grip->client->alloc, note->release_error);
    alloc_free(&grip->client->alloc, note->release_holder);
    note->release_error = note->release_holder = NULL;
}

/* While the core waits its line listens. */
static void listen(struct grip *grip, bool wanted)
{
    struct line *line = grip->line;

    if (wanted == grip->listens) return;
    grip->listens = wanted;
    if (wanted) {
        line->listeners++;
        notices_open(line);
    } else if (--line->listeners == 0) {
        notices_close(line);
    }
    if (wanted) grip_tell_listening(grip, false);
}

/* Everything that follows from the core's new state. */
static void settle(struct grip *grip, const struct core_update *update)
{
    struct quorlock_client *client = grip->client;
    bool holds = core_phase_now(grip->core) == CORE_HELD;

    client_wake_at(client, &grip->waker, core_deadline(grip->core));
    if (core_phase_now(grip->core) != CORE_IDLE || core_deadline(grip->core) != CORE_NEVER) {
        list_add(&client->active, &grip->active);
    } else {
        list_remove(&client->active, &grip->active);
    }
    if (core_lost_untold(grip->core)) {
        if (!grip->lost.in) words_log_loss(grip);
        list_add(&client->lost, &grip->lost);
    } else {
        list_remove(&client->lost, &grip->lost);
    }
    if (update->dispatch) {
        list_add(&client->ready, &grip->ready);
        client_run_soon(client);
    } else {
        list_remove(&client->ready, &grip->ready);
    }
    room_follow(grip);
    if (holds != grip->counted) {
        grip->counted = holds;
        grip->line->held += holds ? 1u : UINT32_MAX;
        if (!holds) line_gave_back(grip->line, grip_holder_id(grip->owner, strlen(grip->owner)));
    }
    listen(grip, core_listens(grip->core));
}

/* What a node said to an earlier attempt is no news of this one; who is not asked again is quoted on. */
static void begin_notes(struct grip *grip, const struct core_update *update)
{
    if (grip->noted_attempt == core_attempt(grip->core)) return;
    grip->noted_attempt = core_attempt(grip->core);
    for (uint32_t i = 0; i < update->n_commands; i++) {
        const struct core_tag *tag = &update->commands[i].tag;

        if (tag->op == CORE_OP_ACQUIRE) note_clear(grip, &grip->notes[tag->node]);
    }
}

static int step(struct grip *grip, struct core_event *event, struct core_tell *ret_tell)
{
    struct core_update update;
    struct core_tag unsent[CORE_COMMANDS_MAX];
    uint32_t n_unsent = 0;
    int status;

    if (event->now_us == 0) event->now_us = client_now_us(grip->client);
    room_tell(grip->client, event);
    status = core_step(grip->core, event, &update);
    begin_notes(grip, &update);
    for (uint32_t i = 0; i < update.n_commands; i++) {
        if (!send_command(grip, &update.commands[i])) unsent[n_unsent++] = update.commands[i].tag;
    }
    if (update.notes != 0) words_log(grip, update.notes);
    settle(grip, &update);
    if (ret_tell != NULL) *ret_tell = update.tell;
    /* What could not be queued was certainly not executed. The core asks nobody again for it in this round. */
    for (uint32_t i = 0; i < n_unsent; i++) {
        struct core_event failed = {
            .type = CORE_EV_REPLY,
            .reply = {.tag = unsent[i],
                      .generation = node_generation(grip->client->nodes[unsent[i].node].node),
                      .outcome = CORE_UNSENT,
                      .fault = CORE_FAULT_PASSING,
                      .ttl_us = -2}};

        step(grip, &failed, NULL);
    }
    return status;
}

int grip_step(struct grip *grip, struct core_event *event)
{
    return step(grip, event, NULL);
}

/* Of the system's source: no generator of our own, for a fork must not repeat one. */
int grip_draw(unsigned char random[CORE_RANDOM_SIZE])
{
    ssize_t n;

    do {
        n = getrandom(random, CORE_RANDOM_SIZE, 0);
    } while (n < 0 && errno == EINTR);
    return n == CORE_RANDOM_SIZE ? 0 : -1;
}

/* The one use of the wall clock, and nothing but the order of tokens after a loss of all counters hangs on it.
 */
uint64_t grip_fence_floor(const struct quorlock_client *client, const struct core_config *config)
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
    struct grip *grip = (struct grip *)(void *)((char *)waker - offsetof(struct grip, waker));
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {
        .type = CORE_EV_TIMER, .random = random, .wall_us = grip_fence_floor(grip->client, &grip->config)};

    /* Renewals, losses and wait bounds need none; an attempt waits for some. */
    if (grip_draw(random) != 0) event.random = NULL;
    /* At that time, for a moment later the next one's bound may have passed, too, and the core would end all.
     */
    event.now_us = line_pass_bounds(grip);
    step(grip, &event, NULL);
    grip_reap(grip);
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

void grip_on_level(struct grip *grip, uint32_t index)
{
    const struct node *node = grip->client->nodes[index].node;
    enum node_level level = node_level_now(node);
    struct core_event event = {.type = CORE_EV_NODE,
                               .node = index,
                               .generation = node_generation(node),
                               .fault = fault_of(node_fault_now(node)),
                               .srtt_us = node_srtt_us(node)};

    event.level = CORE_NODE_DOWN;
    if (level == NODE_READY) event.level = CORE_NODE_READY;
    if (level == NODE_QUARANTINED) event.level = CORE_NODE_QUARANTINED;
    if (level == NODE_CONNECTING) event.level = CORE_NODE_CONNECTING;
    grip->levels = grip->client->levels;
    step(grip, &event, NULL);
    grip_reap(grip);
}

void grip_tell_listening(struct grip *grip, bool old)
{
    uint32_t news = notices_confirmed(grip->line) & ~grip->told_listening;

    for (uint32_t i = 0; i < grip->client->n_nodes; i++) {
        struct core_event event = {.type = CORE_EV_LISTENING, .node = i, .behind = old};

        if ((news & 1u << i) == 0) continue;
        grip->told_listening |= 1u << i;
        step(grip, &event, NULL);
    }
}

void grip_catch_up(struct grip *grip)
{
    if (grip->active.in || grip->levels == grip->client->levels) return;
    for (uint32_t i = 0; i < grip->client->n_nodes; i++) grip_on_level(grip, i);
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

uint64_t grip_holder_id(const char *owner, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)owner[i]) * 0x100000001b3u;
    return hash | 1;
}

/* An arbiter that names another holder than before, and than nodes did that were asked before: those had it
 * then. */
static void forget_other_holders(struct grip *grip, uint32_t index)
{
    const struct lock_note *news = &grip->notes[index];

    /* A lock that tries once asked them a moment ago. */
    if (grip->config.wait_us == 0) return;
    for (uint32_t i = 0; i < grip->client->n_nodes && news->holder != NULL; i++) {
        struct lock_note *note = &grip->notes[i];

        if (note->holder == NULL || note->holder_attempt == news->holder_attempt) continue;
        if (strcmp(note->holder, news->holder) == 0) continue;
        alloc_free(&grip->client->alloc, note->holder);
        note->holder = NULL;
        note->ttl_ms = -2;
    }
}

static void take_note(struct grip *grip, const struct core_tag *tag, const struct node_reply *reply)
{
    const struct alloc *alloc = &grip->client->alloc;
    struct lock_note *note = &grip->notes[tag->node];
    uint32_t latency_us = note->latency_us;

    if (tag->op == CORE_OP_RELEASE) {
        line_listened(grip->line, tag->node, reply->count);
        if (note->released != QUORLOCK_VOTE_PENDING || tag->attempt != core_attempt(grip->core)) return;
        release_note_clear(grip, note);
        note->released = QUORLOCK_VOTE_FAILED;
        if (reply->error != NULL) note->release_error = alloc_text(alloc, reply->error, strlen(reply->error));
        if (reply->holder != NULL) {
            note->release_holder = alloc_text(alloc, reply->holder, reply->holder_length);
        }
        if (reply->outcome == NODE_YES) note->released = QUORLOCK_VOTE_GRANTED;
        if (reply->outcome == NODE_MISSING || reply->outcome == NODE_OTHER ||
            reply->fault == NODE_FAULT_FOREIGN) {
            note->released = QUORLOCK_VOTE_REFUSED;
        }
        return;
    }
    if (tag->attempt != core_attempt(grip->core) || reply->outcome == NODE_NOSCRIPT) return;
    note_clear(grip, note);
    note->latency_us = tag->op == CORE_OP_PEEK ? latency_us : reply->latency_us;
    note->ttl_ms = reply->ttl_ms;
    /* Out of memory costs the text, not the verdict. */
    if (reply->error != NULL) note->error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder == NULL) return;
    note->holder = owner_copy(alloc, reply->holder, reply->holder_length);
    note->holder_attempt = tag->attempt;
    if (grip_holder_id(reply->holder, reply->holder_length) == note->named_id) return;
    note->named_id = grip_holder_id(reply->holder, reply->holder_length);
    forget_other_holders(grip, tag->node);
}

void grip_on_step(struct grip *grip, uint32_t index, uint64_t before_us)
{
    struct core_event event = {.type = CORE_EV_STEP, .node = index, .before_us = before_us};

    step(grip, &event, NULL);
    grip_reap(grip);
}

void grip_on_reply(struct grip *grip, const struct core_tag *tag, uint32_t generation,
                   const struct node_reply *reply)
{
    struct core_event event = {
        .type = CORE_EV_REPLY,
        .reply = {.tag = *tag,
                  .generation = generation,
                  .outcome = outcome_of(reply->outcome),
                  .fault = fault_of(reply->fault),
                  .holder_id = reply->holder == NULL ? 0 : grip_holder_id(reply->holder, reply->holder_length),
                  .listeners = tag->op == CORE_OP_PEEK ? 0 : reply->count,
                  .fence = reply->fence,
                  .ttl_us = reply->ttl_ms < 0 ? reply->ttl_ms : reply->ttl_ms * (int64_t)MS}};

    grip->in_flight--;
    room_measure(grip, tag, reply);
    take_note(grip, tag, reply);
    step(grip, &event, NULL);
    grip_reap(grip);
}

/* ---- what the owner is told ---- */

/* Everybody who holds it, each once. A callback may free any of them. */
static void tell_sharers(struct grip *grip, const struct quorlock_loss *loss)
{
    struct list_walk walk;
    struct link *at;

    list_walk_begin(&walk, &grip->sharers);
    while ((at = list_walk_next(&walk)) != NULL) lock_lost(LIST_ITEM(at, struct quorlock, share), loss);
}

uint32_t grip_remaining_ms(const struct grip *grip)
{
    return (uint32_t)(core_remaining_us(grip->core, client_now_us(grip->client)) / MS);
}

static void tell_loss(struct grip *grip, const struct core_tell *tell)
{
    struct words_votes votes;
    struct quorlock_result result = {0};
    struct quorlock_loss loss = {.reason = (int)tell->loss, .text = words_loss(tell->loss)};

    words_votes(grip, &votes, &result);
    loss.votes = result.votes;
    loss.n_votes = result.n_votes;
    loss.remaining_ms = grip_remaining_ms(grip);
    tell_sharers(grip, &loss);
}

static void tell_acquired(struct grip *grip, const struct core_tell *tell)
{
    struct quorlock *handle = grip->acquirer;

    grip->acquirer = NULL;
    owner_text(grip, core_token_now(grip->core), grip->owner);
    if (tell->status != CORE_OK) grip->owner[0] = '\0';
    if (handle == NULL) return;
    if (tell->status == CORE_OK) {
        lock_share(handle, grip);
        nest_admit(grip);
        /* A grant of another key may have a lower one, and one without fencing has none. */
        if (core_fence(grip->core) > grip->client->last_fence)
            grip->client->last_fence = core_fence(grip->core);
    }
    line_step_out(handle);
    lock_call_back(handle, &handle->acquired, grip, tell);
}

static void tell_extended(struct grip *grip, const struct core_tell *tell)
{
    struct quorlock *handle = grip->extender;

    grip->extender = NULL;
    nest_renewed(grip, tell->status);
    if (handle != NULL) lock_call_back(handle, &handle->extended, grip, tell);
}

static void tell_released(struct grip *grip, const struct core_tell *tell)
{
    struct quorlock *handle = grip->releaser;

    /* That of an earlier hold, which nobody waits for. */
    if (grip->put_off) return;
    grip->releaser = NULL;
    if (handle == NULL) return;
    handle->releases--;
    lock_call_back(handle, &grip->released, grip, tell);
}

void grip_tell(struct grip *grip)
{
    struct core_event event = {.type = CORE_EV_DISPATCH};
    struct core_tell tell;

    grip->pins++;
    step(grip, &event, &tell);
    switch (tell.kind) {
    case CORE_TELL_NOTHING: break;
    case CORE_TELL_LOST: tell_loss(grip, &tell); break;
    case CORE_TELL_ACQUIRED: tell_acquired(grip, &tell); break;
    case CORE_TELL_EXTENDED: tell_extended(grip, &tell); break;
    case CORE_TELL_RELEASED: tell_released(grip, &tell); break;
    }
    grip->pins--;
    grip_let_go(grip);
    grip_reap(grip);
}

/* ---- life ---- */

struct grip *grip_new(struct quorlock *handle)
{
    struct quorlock_client *client = handle->client;
    struct grip *grip = alloc_zero(&client->alloc, sizeof(*grip) + client->n_nodes * sizeof(struct lock_note));

    if (grip == NULL) return NULL;
    grip->core = alloc_zero(&client->alloc, core_size(client->n_nodes));
    if (handle->owner_name != NULL) {
        grip->owner_name = alloc_text(&client->alloc, handle->owner_name, strlen(handle->owner_name));
    }
    if (grip->core == NULL || (handle->owner_name != NULL && grip->owner_name == NULL) ||
        client_reserve_waker(client, &grip->waker, on_wake) != 0) {
        alloc_free(&client->alloc, grip->owner_name);
        alloc_free(&client->alloc, grip->core);
        alloc_free(&client->alloc, grip);
        return NULL;
    }
    grip->client = client;
    grip->line = handle->line;
    grip->line->users++;
    grip->handle = handle;
    grip->config = handle->config;
    core_init(grip->core, &grip->config);
    grip->fence_ttl_ms = handle->fence_ttl_ms;
    grip->levels = client->levels - 1;
    for (uint32_t i = 0; i < client->n_nodes; i++) grip->notes[i].ttl_ms = -2;
    list_add(&client->grips, &grip->all);
    return grip;
}

/* A grip that has still to end an earlier hold, for whomever, goes on alone: the handle shall not wait for it.
 */
static void part_from_busy(struct quorlock *lock)
{
    struct grip *grip = lock->grip;

    if (grip == NULL || core_may_acquire(grip->core)) return;
    lock->grip = NULL;
    grip->handle = NULL;
    grip_let_go(grip);
    grip_reap(grip);
}

int grip_acquire(struct quorlock *lock, bool behind, uint32_t seen)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {.type = CORE_EV_ACQUIRE,
                               .random = random,
                               .wall_us = grip_fence_floor(lock->client, &lock->config),
                               .begun_us = lock->acquired.begun_us,
                               .behind = behind,
                               .seen = seen};
    struct grip *grip;
    int status;

    if (grip_draw(random) != 0) return QUORLOCK_STATE;
    part_from_busy(lock);
    if (lock->grip == NULL) lock->grip = grip_new(lock);
    if (lock->grip == NULL) return QUORLOCK_NOMEM;
    grip = lock->grip;
    grip->pins++;
    grip_catch_up(grip);
    grip->pins--;
    for (uint32_t i = 0; i < lock->client->n_nodes; i++) note_clear(grip, &grip->notes[i]);
    grip->told_wait_reason = 0;
    grip->told_wait_us = 0;
    grip->told_listening = 0;
    status = step(grip, &event, NULL);
    if (status != 0) return status;
    grip->acquirer = lock;
    if (lock->config.wait_us != 0) lock->line->asked = grip;
    grip_tell_listening(grip, true);
    return 0;
}

/* The answers of a release are counted from its beginning. */
static int begin_release(struct grip *grip)
{
    struct core_event event = {.type = CORE_EV_RELEASE};
    uint32_t n_nodes = grip->client->n_nodes;
    int before[QUORLOCK_NODES_MAX] = {0};
    int status;

    for (uint32_t i = 0; i < n_nodes; i++) {
        before[i] = grip->notes[i].released;
        grip->notes[i].released = QUORLOCK_VOTE_NONE;
    }
    status = step(grip, &event, NULL);
    for (uint32_t i = 0; i < n_nodes; i++) {
        struct lock_note *note = &grip->notes[i];

        /* The release in flight, if there is one, still waits for its answers. */
        if (status != 0) note->released = before[i];
        if (status == 0) release_note_clear(grip, note);
        if (status == 0 && note->released == QUORLOCK_VOTE_NONE && core_debts(grip->core, i) > 0) {
            note->released = QUORLOCK_VOTE_FAILED;
        }
    }
    if (status == 0) grip->put_off = false;
    return status;
}

int grip_release(struct quorlock *lock, struct grip *grip, const struct lock_callback *callback)
{
    struct core_event nobody_wants = {.type = CORE_EV_CANCEL, .reason = CORE_CANCELED};
    int status = begin_release(grip);

    if (status != 0 && (status != QUORLOCK_BUSY || grip->releaser != NULL)) return status;
    grip->releaser = lock;
    grip->released = *callback;
    lock->releases++;
    if (status == 0) return 0;
    /* A renewal for somebody who does not hold it any more ends first, and is told: then grip_let_go. */
    grip->put_off = true;
    (void)step(grip, &nobody_wants, NULL);
    return 0;
}

void grip_abandon(struct grip *grip)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .reason = CORE_CANCELED};

    grip->acquirer = NULL;
    (void)step(grip, &event, NULL);
}

void grip_let_go(struct grip *grip)
{
    enum core_phase phase = core_phase_now(grip->core);

    if (grip->holds > 0 || grip->entrants.count > 0) return;
    if (phase != CORE_HELD && phase != CORE_LOST) return;
    /* Refused while something else waits to be told: then it is tried again after that. */
    (void)begin_release(grip);
}

void grip_destroy(struct grip *grip)
{
    struct quorlock_client *client = grip->client;
    const struct alloc *alloc = &client->alloc;

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        note_clear(grip, &grip->notes[i]);
        release_note_clear(grip, &grip->notes[i]);
    }
    if (grip->handle != NULL) grip->handle->grip = NULL;
    listen(grip, false);
    if (grip->line->asked == grip) grip->line->asked = NULL;
    room_leave(grip);
    list_remove(&client->grips, &grip->all);
    list_remove(&client->active, &grip->active);
    list_remove(&client->lost, &grip->lost);
    list_remove(&client->ready, &grip->ready);
    client_return_waker(client, &grip->waker);
    line_leave(grip->line);
    alloc_free(alloc, grip->owner_name);
    alloc_free(alloc, grip->core);
    alloc_free(alloc, grip);
}

void grip_reap(struct grip *grip)
{
    bool owed = grip->acquirer != NULL || grip->extender != NULL || grip->releaser != NULL;

    /* Where others wait, who has had his turn keeps nothing. */
    if (grip->handle != NULL && grip->line->waiting.count == 0) return;
    if (owed || grip->holds > 0 || grip->entrants.count > 0 || grip->pins > 0 || grip->in_flight > 0) return;
    if (core_quiet(grip->core)) grip_destroy(grip);
}
