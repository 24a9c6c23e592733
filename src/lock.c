/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c - one lock: ties its core to the nodes, the clock and the owner
 */
#include "lock.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/validity.h"
#include "owner.h"

#define MS                 1000u
#define NO_RANDOM_PAUSE_US 100000u

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
_Static_assert(CORE_NODES_MAX == QUORLOCK_NODES_MAX, "as many nodes inside as outside");

/* ---- commands to the nodes ---- */

/* What the nodes see: the label, and the attempt's 20 bytes in hex; or as Redisson writes it. */
static size_t owner_text(const struct quorlock *lock, const struct core_token *token, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = strlen(lock->client->owner_label);

    if (lock->client->uuid[0] != '\0') return owner_redisson(ret, lock->client->uuid, token);
    memcpy(ret, lock->client->owner_label, n);
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

static bool send_command(struct quorlock *lock, const struct core_command *command)
{
    char owner[LOCK_OWNER_SIZE];
    struct request request = {.owner = lock, .tag = command->tag, .kind = REQUEST_LOCK};
    struct node_request node_request = {.op = node_op_of(command->tag.op),
                                        .whole_script = command->whole_script,
                                        NODE_KEY(lock->key, lock->key_length),
                                        .owner = owner,
                                        .owner_length = owner_text(lock, &command->token, owner),
                                        .lease_ms = (uint32_t)(command->tag.lease_us / MS),
                                        .fenced = lock->fencing,
                                        .fence = command->fence,
                                        .fence_ttl_ms = lock->fence_ttl_ms,
                                        .timeout_ms = (uint32_t)((command->timeout_us + MS - 1) / MS)};

    if (client_send(lock->client, command->tag.node, &node_request, &request) != NODE_SENT) return false;
    if (command->tag.op == CORE_OP_RELEASE && command->tag.attempt == core_attempt(lock->core)) {
        lock->notes[command->tag.node].released = QUORLOCK_VOTE_PENDING;
    }
    lock->in_flight++;
    return true;
}

/* ---- steps ---- */

static void note_clear(struct quorlock *lock, struct lock_note *note)
{
    alloc_free(&lock->client->alloc, note->error);
    alloc_free(&lock->client->alloc, note->holder);
    note->error = note->holder = NULL;
    note->ttl_ms = -2;
    note->latency_us = 0;
}

/* Everything that follows from the core's new state. */
static void settle(struct quorlock *lock, const struct core_update *update)
{
    struct quorlock_client *client = lock->client;

    client_wake_at(client, &lock->waker, core_deadline(lock->core));
    if (core_phase_now(lock->core) != CORE_IDLE || core_deadline(lock->core) != CORE_NEVER) {
        list_add(&client->active, lock, LOCK_ACTIVE);
    } else {
        list_remove(&client->active, lock, LOCK_ACTIVE);
    }
    if (core_lost_untold(lock->core)) {
        list_add(&client->lost, lock, LOCK_LOST);
    } else {
        list_remove(&client->lost, lock, LOCK_LOST);
    }
    if (update->dispatch) {
        list_add(&client->ready, lock, LOCK_READY);
        client_run_soon(client);
    } else {
        list_remove(&client->ready, lock, LOCK_READY);
    }
}

/* What nodes said to an earlier attempt is no news of this one. */
static void begin_notes(struct quorlock *lock)
{
    if (lock->noted_attempt == core_attempt(lock->core)) return;
    lock->noted_attempt = core_attempt(lock->core);
    for (uint32_t i = 0; i < lock->client->n_nodes; i++) note_clear(lock, &lock->notes[i]);
}

static int step(struct quorlock *lock, struct core_event *event, struct core_tell *ret_tell)
{
    struct core_update update;
    struct core_tag unsent[CORE_COMMANDS_MAX];
    uint32_t n_unsent = 0;
    int status;

    event->now_us = client_now_us(lock->client);
    status = core_step(lock->core, event, &update);
    begin_notes(lock);
    for (uint32_t i = 0; i < update.n_commands; i++) {
        if (!send_command(lock, &update.commands[i])) unsent[n_unsent++] = update.commands[i].tag;
    }
    if (update.notes != 0) words_log(lock, update.notes);
    settle(lock, &update);
    if (ret_tell != NULL) *ret_tell = update.tell;
    /* What could not be queued was certainly not executed. The core asks nobody again for it in this round. */
    for (uint32_t i = 0; i < n_unsent; i++) {
        struct core_event failed = {
            .type = CORE_EV_REPLY,
            .reply = {.tag = unsent[i],
                      .generation = node_generation(lock->client->nodes[unsent[i].node].node),
                      .outcome = CORE_UNSENT,
                      .fault = CORE_FAULT_PASSING,
                      .ttl_us = -2}};

        step(lock, &failed, NULL);
    }
    return status;
}

/* Fresh bytes of the system's source for one attempt: no generator of our own, for a fork must not repeat one.
 */
static int draw(unsigned char random[CORE_RANDOM_SIZE])
{
    ssize_t n;

    do {
        n = getrandom(random, CORE_RANDOM_SIZE, 0);
    } while (n < 0 && errno == EINTR);
    return n == CORE_RANDOM_SIZE ? 0 : -1;
}

/* The floor of fencing tokens: the one use of the wall clock, and nothing but their order after a loss of all
 * counters hangs on it. */
static uint64_t wall_us(const struct quorlock *lock)
{
    struct timespec now;

    if (!lock->fencing) return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void on_wake(struct waker *waker)
{
    struct quorlock *lock = (struct quorlock *)(void *)((char *)waker - offsetof(struct quorlock, waker));
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {.type = CORE_EV_TIMER, .random = random, .wall_us = wall_us(lock)};

    if (draw(random) != 0) {
        client_log(lock->client, QUORLOCK_LOG_ERROR, "getrandom failed: \"%s\" cannot try again", lock->name);
        client_wake_at(lock->client, &lock->waker, client_now_us(lock->client) + NO_RANDOM_PAUSE_US);
        return;
    }
    step(lock, &event, NULL);
    lock_reap(lock);
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

static bool refuses(const struct quorlock *lock, uint32_t index, uint64_t lease_us)
{
    uint32_t max_lease_ms = node_max_lease_ms(lock->client->nodes[index].node);

    return max_lease_ms != 0 && lease_us > (uint64_t)max_lease_ms * MS;
}

bool lock_lease_refused(const struct quorlock *lock, uint32_t index)
{
    return refuses(lock, index, core_lease_us(lock->core));
}

/* Kept in words for whoever is told of the vote. Out of memory costs the figures, not the refusal. */
static bool refuse_lease(struct quorlock *lock, uint32_t index)
{
    const struct alloc *alloc = &lock->client->alloc;
    struct lock_note *note = &lock->notes[index];
    char text[160];

    alloc_free(alloc, note->refusal);
    note->refusal = NULL;
    if (!lock_lease_refused(lock, index)) return false;
    snprintf(text, sizeof(text),
             "its guard allows leases up to %u ms and ours is %llu ms: shorten it, or "
             "'quorlock bootstrap --reconfigure'",
             node_max_lease_ms(lock->client->nodes[index].node),
             (unsigned long long)(core_lease_us(lock->core) / MS));
    note->refusal = alloc_text(alloc, text, strlen(text));
    return true;
}

void lock_on_level(struct quorlock *lock, uint32_t index)
{
    const struct node *node = lock->client->nodes[index].node;
    enum node_level level = node_level_now(node);
    struct core_event event = {.type = CORE_EV_NODE,
                               .node = index,
                               .generation = node_generation(node),
                               .fault = fault_of(node_fault_now(node)),
                               .srtt_us = node_srtt_us(node)};

    event.level = CORE_NODE_DOWN;
    if (level == NODE_READY) event.level = CORE_NODE_READY;
    if (level == NODE_QUARANTINED) event.level = CORE_NODE_QUARANTINED;
    if (refuse_lease(lock, index)) {
        event.level = CORE_NODE_DOWN;
        event.fault = CORE_FAULT_CONFIG;
    }
    /* Whether it is quarantined, and for how long, is known in a moment. */
    if (level == NODE_CONNECTING || node_awaits_max_lease(node)) event.level = CORE_NODE_CONNECTING;
    lock->levels = lock->client->levels;
    step(lock, &event, NULL);
    lock_reap(lock);
}

/* An idle lock did not hear of levels; it learns them when it begins. */
static void catch_up(struct quorlock *lock)
{
    if (lock->links[LOCK_ACTIVE].in || lock->levels == lock->client->levels) return;
    for (uint32_t i = 0; i < lock->client->n_nodes; i++) lock_on_level(lock, i);
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

static uint64_t holder_id(const struct node_reply *reply)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    if (reply->holder == NULL) return 0;
    for (size_t i = 0; i < reply->holder_length; i++) {
        hash = (hash ^ (unsigned char)reply->holder[i]) * 0x100000001b3u;
    }
    return hash | 1;
}

static void take_note(struct quorlock *lock, const struct core_tag *tag, const struct node_reply *reply)
{
    const struct alloc *alloc = &lock->client->alloc;
    struct lock_note *note = &lock->notes[tag->node];
    uint32_t latency_us = note->latency_us;

    if (tag->op == CORE_OP_RELEASE) {
        if (note->released != QUORLOCK_VOTE_PENDING || tag->attempt != core_attempt(lock->core)) return;
        note->released = QUORLOCK_VOTE_FAILED;
        if (reply->outcome == NODE_YES) note->released = QUORLOCK_VOTE_GRANTED;
        if (reply->outcome == NODE_MISSING || reply->outcome == NODE_OTHER) {
            note->released = QUORLOCK_VOTE_REFUSED;
        }
        return;
    }
    if (tag->attempt != core_attempt(lock->core) || reply->outcome == NODE_NOSCRIPT) return;
    note_clear(lock, note);
    note->latency_us = tag->op == CORE_OP_PEEK ? latency_us : reply->latency_us;
    note->ttl_ms = reply->ttl_ms;
    /* Out of memory costs the text, not the verdict. */
    if (reply->error != NULL) note->error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder != NULL) note->holder = alloc_text(alloc, reply->holder, reply->holder_length);
}

void lock_on_step(struct quorlock *lock, uint32_t index, uint64_t before_us)
{
    struct core_event event = {.type = CORE_EV_STEP, .node = index, .before_us = before_us};

    step(lock, &event, NULL);
    lock_reap(lock);
}

void lock_on_reply(struct quorlock *lock, const struct core_tag *tag, uint32_t generation,
                   const struct node_reply *reply)
{
    struct core_event event = {
        .type = CORE_EV_REPLY,
        .reply = {.tag = *tag,
                  .generation = generation,
                  .outcome = outcome_of(reply->outcome),
                  .fault = fault_of(reply->fault),
                  .holder_id = holder_id(reply),
                  .fence = reply->fence,
                  .ttl_us = reply->ttl_ms < 0 ? reply->ttl_ms : reply->ttl_ms * (int64_t)MS}};

    lock->in_flight--;
    take_note(lock, tag, reply);
    step(lock, &event, NULL);
    lock_reap(lock);
}

/* ---- what the owner is told ---- */

static void call_back(struct quorlock *lock, struct lock_callback *callback, const struct core_tell *tell)
{
    struct quorlock_vote votes[QUORLOCK_NODES_MAX];
    struct lock_callback now = *callback;
    uint64_t now_us = client_now_us(lock->client);
    char text[LOCK_TEXT_SIZE];
    struct quorlock_result result = {.status = tell->status,
                                     .rounds = core_rounds(lock->core),
                                     .elapsed_ms = (uint32_t)(validity_sub(now_us, now.begun_us) / MS),
                                     .valid_ms = (uint32_t)(core_valid_us(lock->core, now_us) / MS),
                                     .expired = tell->expired,
                                     .text = text,
                                     .fence = core_fence(lock->core),
                                     .owner = lock->owner[0] != '\0' ? lock->owner : NULL};

    *callback = (struct lock_callback){0};
    if (now.call == NULL) return;
    if (tell->kind == CORE_TELL_RELEASED) {
        words_release_votes(lock, votes, &result);
        snprintf(text, sizeof(text), "released \"%s\" on %u of %zu nodes%s", lock->name,
                 result.granted + result.refused, result.n_votes,
                 tell->expired ? "; it had expired or was lost before" : "");
    } else {
        words_votes(lock, votes, &result);
        words_verdict(lock, tell->status, &result, text, sizeof(text));
    }
    now.call(lock, &result, now.arg);
}

static void tell_loss(struct quorlock *lock, const struct core_tell *tell)
{
    static const char *const texts[] = {
        [CORE_LOSS_NONE] = "",
        [CORE_LOSS_EXPIRED] = "renewal did not reach a quorum in time",
        [CORE_LOSS_GONE] = "the key is gone from so many nodes that a quorum is out of reach",
        [CORE_LOSS_MAX_HOLD] = "max_hold_ms is over",
        [CORE_LOSS_NOT_RENEWED] = "the lease ends and renewal is off",
        [CORE_LOSS_CLOCK] = "the clocks of a quorum advanced faster than ours: this machine stood still",
    };
    struct quorlock_vote votes[QUORLOCK_NODES_MAX];
    struct quorlock_result result = {0};
    struct quorlock_loss loss = {.reason = (int)tell->loss, .text = texts[tell->loss], .votes = votes};
    uint64_t left_us = core_remaining_us(lock->core, client_now_us(lock->client));

    words_votes(lock, votes, &result);
    loss.n_votes = result.n_votes;
    loss.remaining_ms = tell->loss == CORE_LOSS_GONE ? 0 : (uint32_t)(left_us / MS);
    client_log(lock->client, QUORLOCK_LOG_ERROR, "lost \"%s\": %s; %u ms of validity left", lock->name,
               loss.text, loss.remaining_ms);
    if (lock->lost != NULL) lock->lost(lock, &loss, lock->lost_arg);
}

static void let_go(struct quorlock *lock)
{
    struct core_event event = {.type = CORE_EV_RELEASE};

    if (!lock->freed) return;
    lock->lost = NULL;
    /* Refused while something else waits to be told: then it is tried again after that. */
    (void)step(lock, &event, NULL);
}

void lock_tell(struct quorlock *lock)
{
    struct core_event event = {.type = CORE_EV_DISPATCH};
    struct core_tell tell;

    lock->pins++;
    step(lock, &event, &tell);
    switch (tell.kind) {
    case CORE_TELL_NOTHING: break;
    case CORE_TELL_LOST: tell_loss(lock, &tell); break;
    case CORE_TELL_ACQUIRED:
        owner_text(lock, core_token_now(lock->core), lock->owner);
        if (tell.status != CORE_OK) lock->owner[0] = '\0';
        call_back(lock, &lock->acquired, &tell);
        break;
    case CORE_TELL_EXTENDED: call_back(lock, &lock->extended, &tell); break;
    case CORE_TELL_RELEASED: call_back(lock, &lock->released, &tell); break;
    }
    lock->pins--;
    let_go(lock);
    lock_reap(lock);
}

/* ---- the end ---- */

void lock_give_up(struct quorlock *lock, int status)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .reason = status};

    lock->freed = true;
    (void)step(lock, &event, NULL);
    let_go(lock);
}

void lock_destroy(struct quorlock *lock)
{
    struct quorlock_client *client = lock->client;
    const struct alloc alloc = client->alloc;

    for (uint32_t i = 0; i < client->n_nodes; i++) {
        note_clear(lock, &lock->notes[i]);
        alloc_free(&alloc, lock->notes[i].refusal);
    }
    list_remove(&client->locks, lock, LOCK_ALL);
    list_remove(&client->active, lock, LOCK_ACTIVE);
    list_remove(&client->lost, lock, LOCK_LOST);
    list_remove(&client->ready, lock, LOCK_READY);
    client_return_waker(client, &lock->waker);
    alloc_free(&alloc, lock->core);
    alloc_free(&alloc, lock->key);
    alloc_free(&alloc, lock->name);
    alloc_free(&alloc, lock);
}

void lock_reap(struct quorlock *lock)
{
    /* While the client closes, handles stay good until its end. */
    if (!lock->freed || lock->pins > 0 || lock->in_flight > 0 || lock->client->closing) return;
    if (core_quiet(lock->core)) lock_destroy(lock);
}

/* ---- the public API ---- */

static int copy_key(struct quorlock *lock, const char *key)
{
    const struct quorlock_client *client = lock->client;

    lock->key = alloc_joined(&client->alloc, client->key_prefix, key, &lock->key_length);
    lock->name = alloc_text(&client->alloc, key, strlen(key));
    if (lock->key == NULL || lock->name == NULL) return -1;
    /* A key may hold anything, a log line must stay one line. */
    for (char *at = lock->name; *at != '\0'; at++) {
        if (iscntrl((unsigned char)*at)) *at = '?';
    }
    return 0;
}

int quorlock_new(quorlock **ret, quorlock_client *client, const char *const *keys, size_t n_keys,
                 const struct quorlock_options *options)
{
    struct core_config config;
    struct quorlock *lock;
    int status;

    if (client->closing) {
        return client_fail(client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    status = options_lock(&config, &client->options, keys, n_keys, options, &client->error);
    if (status != 0) return status;
    lock = alloc_zero(&client->alloc, sizeof(*lock) + client->n_nodes * sizeof(struct lock_note));
    if (lock == NULL) goto nomem;
    lock->client = client;
    lock->core = alloc_zero(&client->alloc, core_size(client->n_nodes));
    if (lock->core == NULL || copy_key(lock, keys[0]) != 0) goto nomem;
    if (client_reserve_waker(client, &lock->waker, on_wake) != 0) goto nomem;
    core_init(lock->core, &config);
    lock->fencing = config.fencing;
    lock->fence_ttl_ms = options_fence_ttl_ms(options);
    lock->levels = client->levels - 1;
    for (uint32_t i = 0; i < client->n_nodes; i++) lock->notes[i].ttl_ms = -2;
    list_add(&client->locks, lock, LOCK_ALL);
    *ret = lock;
    return 0;
nomem:
    if (lock != NULL) {
        alloc_free(&client->alloc, lock->core);
        alloc_free(&client->alloc, lock->key);
        alloc_free(&client->alloc, lock->name);
    }
    alloc_free(&client->alloc, lock);
    return client_fail(client, QUORLOCK_NOMEM, "%s", quorlock_status_text(QUORLOCK_NOMEM));
}

static int begin(struct quorlock *lock, struct core_event *event, const char *why)
{
    struct quorlock_client *client = lock->client;
    int status;

    if (client->closing || lock->freed) {
        return client_fail(client, QUORLOCK_CLOSED, "%s", quorlock_status_text(QUORLOCK_CLOSED));
    }
    status = step(lock, event, NULL);
    if (status == 0) return 0;
    return client_fail(client, status, "\"%s\": %s%s", lock->name, quorlock_status_text(status),
                       status == QUORLOCK_BUSY ? "" : why);
}

int quorlock_acquire(quorlock *lock, quorlock_cb cb, void *arg)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {.type = CORE_EV_ACQUIRE, .random = random, .wall_us = wall_us(lock)};
    enum core_phase phase = core_phase_now(lock->core);
    int status;

    if (draw(random) != 0) {
        return client_fail(lock->client, QUORLOCK_STATE, "getrandom failed: no owner token without it");
    }
    catch_up(lock);
    status = begin(lock, &event, ": it is held already, or its loss was not told yet");
    if (status != 0) return status;
    if (phase == CORE_IDLE || phase == CORE_LOST) {
        lock->told_wait_reason = 0;
        lock->told_wait_us = 0;
    }
    lock->acquired = (struct lock_callback){cb, arg, event.now_us};
    return 0;
}

/* As far as options and guards say; a node that was not reached yet may say less, and is DOWN to us then. */
static uint32_t lease_most_ms(const struct quorlock *lock)
{
    uint32_t most_ms = options_lease_most_ms(&lock->client->options);

    for (uint32_t i = 0; i < lock->client->n_nodes; i++) {
        uint32_t guard_ms = node_max_lease_ms(lock->client->nodes[i].node);

        if (guard_ms != 0 && guard_ms < most_ms) most_ms = guard_ms;
    }
    return most_ms;
}

int quorlock_extend(quorlock *lock, uint32_t lease_ms, quorlock_cb cb, void *arg)
{
    struct core_event event = {.type = CORE_EV_EXTEND, .lease_us = (uint64_t)lease_ms * MS};
    uint32_t most_ms = lease_most_ms(lock);
    int status;

    if (lease_ms > most_ms) {
        return client_fail(lock->client, QUORLOCK_INVAL, "lease_ms is %u: max_lease_ms is %u", lease_ms,
                           most_ms);
    }
    for (uint32_t i = 0; i < lock->client->n_nodes; i++) {
        if (!refuses(lock, i, event.lease_us)) continue;
        return client_fail(lock->client, QUORLOCK_INVAL, "lease_ms is %u: the guard of %s says at most %u",
                           lease_ms, node_name(lock->client->nodes[i].node),
                           node_max_lease_ms(lock->client->nodes[i].node));
    }
    status = begin(lock, &event, ": it is not held");
    if (status == QUORLOCK_INVAL) {
        return client_fail(lock->client, status, "lease_ms is %u: the lease is %llu, and is never shortened",
                           lease_ms, (unsigned long long)(core_lease_us(lock->core) / MS));
    }
    if (status == 0) lock->extended = (struct lock_callback){cb, arg, event.now_us};
    return status;
}

int quorlock_release(quorlock *lock, quorlock_cb cb, void *arg)
{
    struct core_event event = {.type = CORE_EV_RELEASE};
    int before[QUORLOCK_NODES_MAX] = {0};
    int status;

    for (uint32_t i = 0; i < lock->client->n_nodes; i++) {
        before[i] = lock->notes[i].released;
        lock->notes[i].released = QUORLOCK_VOTE_NONE;
    }
    status = begin(lock, &event, ": there is no grant to release");
    if (status != 0) {
        /* The release in flight, if there is one, still waits for its answers. */
        for (uint32_t i = 0; i < lock->client->n_nodes; i++) lock->notes[i].released = before[i];
        return status;
    }
    lock->released = (struct lock_callback){cb, arg, event.now_us};
    for (uint32_t i = 0; i < lock->client->n_nodes; i++) {
        struct lock_note *note = &lock->notes[i];

        if (note->released == QUORLOCK_VOTE_NONE && core_debts(lock->core, i) > 0) {
            note->released = QUORLOCK_VOTE_FAILED;
        }
    }
    return 0;
}

int quorlock_cancel(quorlock *lock)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .reason = CORE_CANCELED};
    int status = step(lock, &event, NULL);

    if (status == 0) return 0;
    return client_fail(lock->client, status, "\"%s\": no acquire or extend is in flight", lock->name);
}

void quorlock_free(quorlock *lock)
{
    if (lock == NULL || lock->freed) return;
    lock_give_up(lock, CORE_CANCELED);
    lock_reap(lock);
}

void quorlock_on_lost(quorlock *lock, quorlock_lost_cb cb, void *arg)
{
    lock->lost = cb;
    lock->lost_arg = arg;
}

uint32_t quorlock_valid_ms(const quorlock *lock)
{
    return (uint32_t)(core_valid_us(lock->core, client_now_us(lock->client)) / MS);
}

const char *quorlock_owner(const quorlock *lock)
{
    return core_told_held(lock->core) ? lock->owner : NULL;
}

uint64_t quorlock_fence(const quorlock *lock)
{
    return core_told_held(lock->core) ? core_fence(lock->core) : 0;
}
