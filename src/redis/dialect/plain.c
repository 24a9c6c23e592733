/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.c - the plain dialect: a string at the key */
#include <assert.h>
#include <quorlock/quorlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/dialect/dialect.h"
#include "redis/dialect/others.h"
#include "redis/wire/errors.h"
#include "scripts.h"

#define PLAIN_CHANNEL_PREFIX "quorlock:released:"
#define PLAIN_FENCE_PREFIX   "quorlock:fence:"
#define PLAIN_PERMITS_PREFIX "quorlock:permits:"
#define PLAIN_SLOT_FORMAT    "quorlock:slot:%u:"
#define PLAIN_SLOT_SIZE      24         /* the size of such a text */
#define PLAIN_FENCE_TTL_MS   604800000u /* seven days */

static const struct dialect_script plain_scripts[SCRIPTS] = {
    [SCRIPT_EXTEND] = DIALECT_SCRIPT(extend),
    [SCRIPT_RELEASE] = DIALECT_SCRIPT(release),
    [SCRIPT_PEEK] = DIALECT_SCRIPT(peek),
    [SCRIPT_BREAK] = DIALECT_SCRIPT(break),
    [SCRIPT_ACQUIRE] = DIALECT_SCRIPT(acquire),
    [SCRIPT_RAISE] = DIALECT_SCRIPT(raise),
    [SCRIPT_COMBINED] = DIALECT_SCRIPT(combined),
    [SCRIPT_SHARED_EXTEND] = DIALECT_SCRIPT(shared_extend),
    [SCRIPT_SHARED_RELEASE] = DIALECT_SCRIPT(shared_release),
    [SCRIPT_SHARED_ACQUIRE] = DIALECT_SCRIPT(shared_acquire),
    [SCRIPT_SHARED_RAISE] = DIALECT_SCRIPT(shared_raise),
    [SCRIPT_INTEND] = DIALECT_SCRIPT(intend),
    [SCRIPT_PERMIT] = DIALECT_SCRIPT(permit),
    [SCRIPT_FAIR_ACQUIRE] = DIALECT_SCRIPT(fair_acquire),
    [SCRIPT_FAIR_LEAVE] = DIALECT_SCRIPT(fair_leave),
    [SCRIPT_FAIR_PERMIT] = DIALECT_SCRIPT(fair_permit),
};

static const char *const plain_commands[] = {"GET", "SET", "PTTL", "PEXPIRE", "DEL", "TIME", "EVALSHA", NULL};

/* One command that is being written. */
struct plain_call {
    struct bytes *out;
    const struct node_request *request;
    const struct guard *guard;
    uint32_t *whole_sent; /* one bit for each script */
    const struct dialect_script *scripts;
    bool native;          /* an acquire may be a SET */
    bool guarded, fenced; /* the guard, the counters are among the command's keys */
};

static void name_script(const struct plain_call *call, enum script script, size_t n_keys, size_t n_args)
{
    const struct dialect_script *named = &call->scripts[script];
    bool read_only = call->request != NULL && call->request->read_only;
    bool known = (*call->whole_sent >> script & 1) != 0;
    struct bytes *out = call->out;

    assert(named->text != NULL);
    bytes_command(out, 3 + n_keys + n_args);
    if (known) {
        bytes_text(out, read_only ? "EVALSHA_RO" : "EVALSHA");
        bytes_word(out, named->sha, DIALECT_SHA_LENGTH);
    } else {
        bytes_text(out, read_only ? "EVAL_RO" : "EVAL");
        bytes_word(out, named->text, named->length);
        *call->whole_sent |= 1u << script;
    }
    bytes_number(out, n_keys);
}

static void begin_script(const struct plain_call *call, enum script script, size_t n_args)
{
    const struct node_request *request = call->request;
    struct bytes *out = call->out;
    size_t n_keys = request->n_keys * (call->fenced ? 2 : 1) + (size_t)call->guarded;

    name_script(call, script, n_keys, n_args);
    for (size_t i = 0; i < request->n_keys; i++) bytes_word(out, request->keys[i].text, request->keys[i].length);
    if (call->guarded) bytes_text(out, GUARD_KEY);
    for (size_t i = 0; call->fenced && i < request->n_keys; i++)
        bytes_joined(out, PLAIN_FENCE_PREFIX, sizeof(PLAIN_FENCE_PREFIX) - 1, request->keys[i].text,
                     request->keys[i].length);
}

static bool is_guarded(const struct guard *guard)
{
    return guard != NULL && guard_is_on(guard);
}

/* Whether an acquire must check the guard, too. */
static bool is_strict(const struct guard *guard)
{
    return is_guarded(guard) && guard->mode == QUORLOCK_GUARD_STRICT;
}

/* Return the script for keys some of which are shared. */
static enum script shared_one(enum script script)
{
    switch (script) {
    case SCRIPT_ACQUIRE: return SCRIPT_SHARED_ACQUIRE;
    case SCRIPT_EXTEND: return SCRIPT_SHARED_EXTEND;
    case SCRIPT_RAISE: return SCRIPT_SHARED_RAISE;
    default: return SCRIPT_SHARED_RELEASE;
    }
}

/* Write one letter for each key. */
static void write_modes(const struct plain_call *call)
{
    char modes[NODE_KEYS_MAX];

    for (size_t i = 0; i < call->request->n_keys; i++) modes[i] = (call->request->shared >> i & 1) != 0 ? 's' : 'x';
    bytes_word(call->out, modes, call->request->n_keys);
}

static void write_waiter(const struct plain_call *call)
{
    bytes_word(call->out, call->request->waiter, call->request->waiter_length);
    bytes_number(call->out, call->request->waited_us / 1000);
}

/* Whether all keys are shared: readers get the counters, but do not increment them. */
static bool plain_reads(const struct node_request *request)
{
    size_t n = request->n_keys;
    uint64_t all = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;

    return (request->shared & all) == all;
}

/* Write how long counters live: this time and the lease, so that a release need not prolong a counter that already
 * equals its token. */
static void write_life(struct bytes *out, uint64_t fence_ttl_ms, uint32_t lease_ms)
{
    bytes_number(out, (fence_ttl_ms != 0 ? fence_ttl_ms : PLAIN_FENCE_TTL_MS) + lease_ms);
}

/* Write the floor or token, and how long the counters live. */
static void write_fence(const struct plain_call *call, bool acquires)
{
    if (!call->fenced)
        bytes_text(call->out, "");
    else if (acquires && plain_reads(call->request))
        bytes_text(call->out, "read");
    else
        bytes_number(call->out, call->request->fence);
    write_life(call->out, call->request->fence_ttl_ms, call->request->lease_ms);
}

static void write_max_lease(const struct plain_call *call)
{
    uint32_t most_ms = call->guard != NULL ? call->guard->max_lease_ms : 0;

    bytes_number(call->out, most_ms != 0 ? most_ms : QUORLOCK_LEASE_MS_DEFAULT);
}

/* Write who stands in the queue, since when, and for how long. */
static void write_place(const struct plain_call *call)
{
    const struct node_request *request = call->request;

    assert(request->op == OP_ACQUIRE && request->waiter != NULL && call->native);
    bytes_word(call->out, request->waiter, request->waiter_length);
    bytes_number(call->out, request->waited_us);
    bytes_number(call->out, request->queued_ms);
}

/* Write an acquire of a lock that stands in the queue. */
static void write_fair_acquire(const struct plain_call *call)
{
    const struct node_request *request = call->request;
    struct bytes *out = call->out;

    begin_script(call, SCRIPT_FAIR_ACQUIRE, 12);
    bytes_number(out, request->n_keys);
    bytes_word(out, request->owner, request->owner_length);
    bytes_number(out, request->lease_ms);
    bytes_text(out, call->guarded ? call->guard->seen : "");
    bytes_text(out, is_strict(call->guard) ? "strict" : "");
    write_fence(call, true);
    write_max_lease(call);
    write_place(call);
    write_modes(call);
}

static const char *release_how(const struct node_request *request)
{
    if (request->silent) return "silent";
    return request->if_deleted ? "deleted" : "";
}

/* Write any script except peek and break: the number of locks, the owner, and the arguments of this script. */
static void write_script(const struct plain_call *call, enum script script)
{
    const struct node_request *request = call->request;
    struct bytes *out = call->out;
    bool shared = request->shared != 0;
    bool acquires = script == SCRIPT_ACQUIRE, leased = acquires || script == SCRIPT_EXTEND;
    bool kept = script == SCRIPT_RELEASE && request->keep;
    bool notice = script == SCRIPT_RELEASE && (request->silent || request->if_deleted || shared);
    bool more = acquires || script == SCRIPT_RAISE || call->guarded || call->fenced || notice || shared;
    const char *how = is_strict(call->guard) ? "strict" : "";
    size_t last = shared ? 1 + (acquires ? 2u : 0) : 0;

    assert(!kept || (request->silent && !shared));
    begin_script(call, shared ? shared_one(script) : script,
                 2u + leased + (more ? 3 : 0) + (acquires ? 2 : 0) + notice + kept + last);
    bytes_number(out, request->n_keys);
    bytes_word(out, request->owner, request->owner_length);
    if (leased) bytes_number(out, request->lease_ms);
    if (more) bytes_text(out, call->guarded ? call->guard->seen : "");
    if (acquires) bytes_text(out, request->op == OP_REPAIR ? "repair" : how);
    if (more) write_fence(call, acquires);
    if (acquires) write_max_lease(call);
    if (notice) bytes_text(out, release_how(request));
    if (kept) bytes_number(out, request->lease_ms);
    if (shared && acquires) write_waiter(call);
    if (shared) write_modes(call);
}

static void intend(const struct plain_call *call)
{
    const struct node_request *request = call->request;

    if (request->fair) {
        begin_script(call, SCRIPT_FAIR_LEAVE, 2);
        bytes_number(call->out, request->n_keys);
        bytes_word(call->out, request->waiter, request->waiter_length);
        return;
    }
    begin_script(call, SCRIPT_INTEND, 5);
    bytes_number(call->out, request->n_keys);
    write_waiter(call);
    bytes_number(call->out, request->lease_ms);
    write_modes(call);
}

/* ---- permits ---- */

/* Write the keys of a request for one slot: the slot's key, for the scripts of permits their number, the guard, the
 * counter. */
static void begin_permit(const struct plain_call *call, enum script script, size_t n_args)
{
    const struct node_request *request = call->request;
    const struct node_key *name = &request->keys[0];
    bool numbered = script == SCRIPT_PERMIT || script == SCRIPT_FAIR_PERMIT;
    char fence[sizeof(PLAIN_FENCE_PREFIX) + PLAIN_SLOT_SIZE];
    const char *slot = fence + sizeof(PLAIN_FENCE_PREFIX) - 1;
    struct bytes *out = call->out;

    snprintf(fence, sizeof(fence), PLAIN_FENCE_PREFIX PLAIN_SLOT_FORMAT, (unsigned)request->slot);
    name_script(call, script, 1u + numbered + call->guarded + call->fenced, n_args);
    bytes_joined(out, slot, strlen(slot), name->text, name->length);
    if (numbered) bytes_joined(out, PLAIN_PERMITS_PREFIX, sizeof(PLAIN_PERMITS_PREFIX) - 1, name->text, name->length);
    if (call->guarded) bytes_text(out, GUARD_KEY);
    if (call->fenced) bytes_joined(out, fence, strlen(fence), name->text, name->length);
}

static void write_permit(const struct plain_call *call, const char *what, const char *how)
{
    const struct node_request *request = call->request;
    bool acquires = request->op == OP_ACQUIRE || request->op == OP_REPAIR;
    struct bytes *out = call->out;
    char passed[QUORLOCK_PERMITS_MAX];

    begin_permit(call, request->fair ? SCRIPT_FAIR_PERMIT : SCRIPT_PERMIT,
                 10u + (acquires ? 2 : 0) + (request->fair ? 3 : 0));
    bytes_number(out, 2);
    bytes_word(out, request->owner, request->owner_length);
    bytes_text(out, what);
    bytes_number(out, request->lease_ms);
    bytes_text(out, call->guarded ? call->guard->seen : "");
    write_fence(call, false);
    bytes_number(out, request->permits);
    bytes_text(out, how);
    bytes_text(out, request->any ? "any" : "");
    if (!acquires) return;
    for (uint32_t i = 0; i < request->permits; i++) passed[i] = (request->passed >> i & 1u) != 0 ? '1' : '0';
    bytes_word(out, passed, request->permits);
    write_max_lease(call);
    if (request->fair) write_place(call);
}

/* A slot is a lock like any other: its counter is raised and its holder read by the scripts for locks. */
static void raise_permit(const struct plain_call *call)
{
    const struct node_request *request = call->request;

    begin_permit(call, SCRIPT_RAISE, 5);
    bytes_number(call->out, 1);
    bytes_word(call->out, request->owner, request->owner_length);
    bytes_text(call->out, call->guarded ? call->guard->seen : "");
    write_fence(call, false);
}

static void build_permit(struct plain_call *call)
{
    const struct node_request *request = call->request;

    switch (request->op) {
    case OP_ACQUIRE: write_permit(call, "acquire", is_strict(call->guard) ? "strict" : ""); break;
    case OP_REPAIR: write_permit(call, "acquire", "repair"); break;
    case OP_EXTEND: write_permit(call, "extend", ""); break;
    case OP_RELEASE:
        call->fenced = request->fence != 0;
        write_permit(call, "release", release_how(request));
        break;
    case OP_RAISE:
        call->fenced = true;
        raise_permit(call);
        break;
    case OP_INTEND:
        call->guarded = call->fenced = false;
        intend(call);
        break;
    default:
        call->guarded = call->fenced = false;
        begin_permit(call, request->op == OP_BREAK ? SCRIPT_BREAK : SCRIPT_PEEK, 0);
        break;
    }
}

/* Peek and break have neither guard nor counters among their keys. */
static void peek(const struct plain_call *call)
{
    const struct node_request *request = call->request;
    bool counts = request->op == OP_PEEK && request->explain;
    bool chooses = request->op == OP_BREAK && request->owner != NULL;

    begin_script(call, request->op == OP_PEEK ? SCRIPT_PEEK : SCRIPT_BREAK, (size_t)counts + chooses);
    if (counts) bytes_text(call->out, "waiters");
    if (chooses) bytes_word(call->out, request->owner, request->owner_length);
}

static void set(struct bytes *out, const struct node_request *request)
{
    static const char front[] = "*6\r\n$3\r\nSET\r\n", options[] = "$2\r\nNX\r\n$2\r\nPX\r\n";
    size_t frames = sizeof(front) + sizeof(options) + (size_t)2 * BYTES_WORD_FRAME + BYTES_NUMBER_MAX;
    const struct node_key *key = &request->keys[0];
    char *at = bytes_begin(out, frames + key->length + request->owner_length);

    if (at == NULL) return;
    at = BYTES_AT_LITERAL(at, front);
    at = bytes_at_word(at, key->text, key->length);
    at = bytes_at_word(at, request->owner, request->owner_length);
    at = BYTES_AT_LITERAL(at, options);
    bytes_end(out, bytes_at_number(at, request->lease_ms));
}

/* SET is enough for one key without a counter if a bare yes or no is enough. */
static bool acquire(const struct plain_call *call)
{
    const struct node_request *request = call->request;
    bool more =
        is_strict(call->guard) || call->fenced || request->explain || request->op == OP_REPAIR || request->shared != 0;

    if (request->fair) {
        write_fair_acquire(call);
        return true;
    }
    if (call->native && !more && request->n_keys == 1) {
        set(call->out, request);
        return false;
    }
    write_script(call, SCRIPT_ACQUIRE);
    return true;
}

bool dialect_build(struct bytes *out, const struct node_request *request, uint32_t *whole_sent,
                   const struct guard *guard, const struct dialect *dialect)
{
    struct plain_call call = {.out = out,
                              .request = request,
                              .guard = guard,
                              .whole_sent = whole_sent,
                              .scripts = dialect->scripts,
                              .native = dialect == &dialect_plain,
                              .guarded = is_guarded(guard),
                              .fenced = request->fenced || request->fence != 0};

    if (request->permits != 0) {
        build_permit(&call);
        return true;
    }
    switch (request->op) {
    case OP_ACQUIRE:
    case OP_REPAIR: return acquire(&call);
    case OP_EXTEND: write_script(&call, SCRIPT_EXTEND); break;
    case OP_RELEASE:
        call.fenced = request->fence != 0;
        write_script(&call, SCRIPT_RELEASE);
        break;
    case OP_RAISE:
        call.fenced = true;
        write_script(&call, SCRIPT_RAISE);
        break;
    case OP_PEEK:
    case OP_BREAK:
        call.guarded = call.fenced = false;
        peek(&call);
        break;
    case OP_INTEND:
        call.guarded = call.fenced = false;
        intend(&call);
        break;
    case OP_CLIENTS: BYTES_TEXTS(out, "CLIENT", "LIST"); return false;
    case OP_MAY_KILL:
    case OP_BOOTSTRAP: guard_bootstrap(guard, out, request); return false;
    }
    return true;
}

static bool plain_build(struct bytes *out, const struct node_request *request, uint32_t *whole_sent,
                        const struct guard *guard)
{
    return dialect_build(out, request, whole_sent, guard, &dialect_plain);
}

/* ---- batches ---- */

char dialect_letter(const struct node_request *request)
{
    if (request->n_keys != 1 || request->shared != 0 || request->permits != 0 || request->fair) return '\0';
    if (request->op == OP_EXTEND) return 'e';
    if (request->op == OP_ACQUIRE) return 'a';
    if (request->op != OP_RELEASE || request->keep) return '\0';
    if (request->silent) return 's';
    return request->if_deleted ? 'd' : 'r';
}

/* An acquire that needs no script is sent alone: its own SET costs a server less than one in a script. */
static char plain_letter(const struct node_request *request, const struct guard *guard)
{
    return request->op == OP_ACQUIRE && !request->fenced && !is_strict(guard) ? '\0' : dialect_letter(request);
}

/* Write the counters' keys, made from the words of the lock keys. */
static void write_counters(struct bytes *out, const struct dialect_batch *batch)
{
    const char *word = batch->keys.data;

    for (size_t i = 0; i < batch->n; i++) {
        size_t length = strtoul(word + 1, NULL, 10);
        const char *text = strchr(word, '\n') + 1;

        bytes_joined(out, PLAIN_FENCE_PREFIX, sizeof(PLAIN_FENCE_PREFIX) - 1, text, length);
        word = text + length + 2;
    }
}

void dialect_build_batch(struct bytes *out, const struct dialect_batch *batch, uint32_t *whole_sent,
                         const struct guard *guard, const struct dialect *dialect)
{
    const struct plain_call call = {.out = out,
                                    .whole_sent = whole_sent,
                                    .guard = guard,
                                    .scripts = dialect->scripts,
                                    .guarded = is_guarded(guard)};
    size_t counters = batch->fenced ? batch->n : 0;

    name_script(&call, SCRIPT_COMBINED, batch->n + call.guarded + counters, 7 + batch->n + counters);
    bytes_append(out, batch->keys.data, batch->keys.used);
    if (call.guarded) bytes_text(out, GUARD_KEY);
    if (batch->fenced) write_counters(out, batch);
    bytes_number(out, batch->n);
    bytes_word(out, batch->letters, batch->n);
    bytes_text(out, call.guarded ? guard->seen : "");
    if (batch->lease_ms != 0)
        bytes_number(out, batch->lease_ms);
    else
        bytes_text(out, "");
    bytes_text(out, is_strict(guard) ? "strict" : "");
    if (batch->fenced)
        write_life(out, batch->fence_ttl_ms, batch->lease_ms);
    else
        bytes_text(out, "");
    write_max_lease(&call);
    bytes_append(out, batch->owners.data, batch->owners.used);
    bytes_append(out, batch->numbers.data, batch->numbers.used);
}

static void plain_build_batch(struct bytes *out, const struct dialect_batch *batch, uint32_t *whole_sent,
                              const struct guard *guard)
{
    dialect_build_batch(out, batch, whole_sent, guard, &dialect_plain);
}

/* ---- the dialect ---- */

static size_t plain_channel(const struct node_key *key, char *ret, size_t size)
{
    return bytes_put(ret, size, PLAIN_CHANNEL_PREFIX, key->text, key->length, "");
}

/* A batch of one request is sent as the ordinary command. */
_Static_assert(sizeof(script_combined) >= sizeof(script_extend) && sizeof(script_combined) >= sizeof(script_release) &&
                   sizeof(script_combined) >= sizeof(script_acquire),
               "a batch has room for them");
_Static_assert(sizeof(PLAIN_FENCE_PREFIX) + BYTES_WORD_FRAME <= DIALECT_COUNTER_FRAME, "room for a counter's key");

const struct dialect dialect_plain = {
    .scripts = plain_scripts,
    .commands = plain_commands,
    .build = plain_build,
    .letter = plain_letter,
    .build_batch = plain_build_batch,
    .channel = plain_channel,
    .judge = dialect_judge_reply,
};
