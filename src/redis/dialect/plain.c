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
    bool batched;         /* it is for many requests, and has their letters in the owner's place */
    bool prefixed;        /* a script that makes names of keys gets the prefix */
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

/* Write another name of a key, with `front` behind the prefix. */
static void plain_write_name(const struct plain_call *call, size_t key, const char *front)
{
    const struct node_key *of = &call->request->keys[key];

    bytes_insert_text(call->out, of->text, of->length, call->request->prefix, front);
}

/* Write the keys of a request for one slot: the slot's key, for the scripts of permits their number, the guard, the
 * counter. */
static void write_slot_keys(const struct plain_call *call, bool numbered)
{
    char fence[sizeof(PLAIN_FENCE_PREFIX) + PLAIN_SLOT_SIZE];
    const char *slot = fence + sizeof(PLAIN_FENCE_PREFIX) - 1;

    snprintf(fence, sizeof(fence), PLAIN_FENCE_PREFIX PLAIN_SLOT_FORMAT, (unsigned)call->request->slot);
    plain_write_name(call, 0, slot);
    if (numbered) plain_write_name(call, 0, PLAIN_PERMITS_PREFIX);
    if (call->guarded) bytes_text(call->out, GUARD_KEY);
    if (call->fenced) plain_write_name(call, 0, fence);
}

static void begin_script(const struct plain_call *call, enum script script, size_t n_args)
{
    const struct node_request *request = call->request;
    bool numbered = script == SCRIPT_PERMIT || script == SCRIPT_FAIR_PERMIT;
    size_t n_keys = request->n_keys * (call->fenced ? 2 : 1) + (size_t)call->guarded + numbered;
    struct bytes *out = call->out;

    name_script(call, script, n_keys, n_args);
    if (request->permits != 0 && request->op != OP_INTEND) {
        write_slot_keys(call, numbered);
        return;
    }
    for (size_t i = 0; i < request->n_keys; i++) bytes_word(out, request->keys[i].text, request->keys[i].length);
    if (call->guarded) bytes_text(out, GUARD_KEY);
    for (size_t i = 0; call->fenced && i < request->n_keys; i++) plain_write_name(call, i, PLAIN_FENCE_PREFIX);
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

/* ---- the arguments of the scripts for locks ---- */

static bool acquires(const struct node_request *request)
{
    return request->op == OP_ACQUIRE || request->op == OP_REPAIR;
}

/* Whether all keys are shared: readers get the counters, but do not increment them. */
static bool plain_reads(const struct node_request *request)
{
    size_t n = request->n_keys;
    uint64_t all = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;

    return (request->shared & all) == all;
}

/* Write the floor or token, and how long the counters live: this time and the lease, so that a release need not prolong
 * a counter that already equals its token. */
static void write_fence(const struct plain_call *call)
{
    const struct node_request *request = call->request;
    uint64_t ttl_ms = request->fence_ttl_ms != 0 ? request->fence_ttl_ms : PLAIN_FENCE_TTL_MS;

    if (!call->fenced)
        bytes_text(call->out, "");
    else if (call->batched)
        bytes_text(call->out, "each");
    else if (acquires(request) && plain_reads(request))
        bytes_text(call->out, "read");
    else
        bytes_number(call->out, request->fence);
    bytes_number(call->out, ttl_ms + request->lease_ms);
}

/* The arguments that each of these scripts begins with: how many locks, the owner, the lease; and the guard, the floor
 * or token and the life of the counters, which are left out where there is neither guard, counter, nor another
 * argument.
 */
#define RECORD_SHORT 3
#define RECORD_WHOLE 6

static void plain_record(const struct plain_call *call, bool whole)
{
    const struct node_request *request = call->request;

    bytes_number(call->out, request->n_keys);
    bytes_word(call->out, request->owner, request->owner_length);
    bytes_number(call->out, request->lease_ms);
    if (!whole) return;
    bytes_text(call->out, call->guarded ? call->guard->seen : "");
    write_fence(call);
}

static const char *release_how(const struct node_request *request)
{
    assert(!request->keep || (request->silent && request->shared == 0));
    if (request->keep) return "keep";
    if (request->silent) return "silent";
    return request->if_deleted ? "deleted" : "";
}

/* Return in which way the script is to do it; "": in the ordinary one. */
static const char *plain_how(const struct plain_call *call)
{
    enum op op = call->request->op;

    if (op == OP_RELEASE) return release_how(call->request);
    if (op == OP_REPAIR) return "repair";
    return op == OP_ACQUIRE && is_strict(call->guard) ? "strict" : "";
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
    bytes_number(call->out, call->request->waited_us);
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

static void tail_release(const struct plain_call *call)
{
    bytes_text(call->out, plain_how(call));
}

static void tail_acquire(const struct plain_call *call)
{
    uint32_t most_ms = call->guard != NULL ? call->guard->max_lease_ms : 0;

    bytes_text(call->out, plain_how(call));
    bytes_number(call->out, most_ms != 0 ? most_ms : QUORLOCK_LEASE_MS_DEFAULT);
}

static void tail_shared_release(const struct plain_call *call)
{
    tail_release(call);
    write_modes(call);
}

static void tail_shared_acquire(const struct plain_call *call)
{
    tail_acquire(call);
    write_waiter(call);
    write_modes(call);
}

static void tail_fair_acquire(const struct plain_call *call)
{
    tail_acquire(call);
    write_place(call);
    write_modes(call);
}

static void tail_permit(const struct plain_call *call)
{
    const struct node_request *request = call->request;
    char passed[QUORLOCK_PERMITS_MAX];

    tail_acquire(call);
    bytes_text(call->out, acquires(request) ? "acquire" : request->op == OP_EXTEND ? "extend" : "release");
    bytes_number(call->out, request->permits);
    bytes_text(call->out, request->any ? "any" : "");
    for (uint32_t i = 0; i < request->permits; i++) passed[i] = (request->passed >> i & 1u) != 0 ? '1' : '0';
    bytes_word(call->out, passed, request->permits);
}

static void tail_fair_permit(const struct plain_call *call)
{
    tail_permit(call);
    write_place(call);
}

/* What each script gets behind these. */
static const struct tail {
    size_t n_args;
    void (*write)(const struct plain_call *);
} tails[SCRIPTS] = {
    [SCRIPT_RELEASE] = {1, tail_release},
    [SCRIPT_ACQUIRE] = {2, tail_acquire},
    [SCRIPT_SHARED_EXTEND] = {1, write_modes},
    [SCRIPT_SHARED_RELEASE] = {2, tail_shared_release},
    [SCRIPT_SHARED_ACQUIRE] = {5, tail_shared_acquire},
    [SCRIPT_SHARED_RAISE] = {1, write_modes},
    [SCRIPT_PERMIT] = {6, tail_permit},
    [SCRIPT_FAIR_ACQUIRE] = {6, tail_fair_acquire},
    [SCRIPT_FAIR_PERMIT] = {9, tail_fair_permit},
};

static void write_prefix(const struct plain_call *call)
{
    if (call->prefixed) bytes_word(call->out, call->request->keys[0].text, call->request->prefix);
}

/* Write a script for locks. An ordinary release need not be told that it is one. Scripts with more arguments are those
 * that make names of keys, but for Redisson's. */
static void write_script(const struct plain_call *call, enum script script)
{
    const struct tail *tail = &tails[script];
    bool prefixed = call->prefixed && call->native && tail->n_args != 0;
    size_t n_more = script == SCRIPT_RELEASE && *plain_how(call) == '\0' && !prefixed ? 0 : tail->n_args;
    bool whole = n_more != 0 || call->guarded || call->fenced;

    begin_script(call, script, (whole ? RECORD_WHOLE : RECORD_SHORT) + n_more + prefixed);
    plain_record(call, whole);
    if (n_more != 0) tail->write(call);
    if (prefixed) write_prefix(call);
}

/* Return the script for this operation on such keys. A slot is a lock like any other to the one that raises counters.
 */
static enum script plain_script(const struct node_request *request)
{
    bool shared = request->shared != 0;

    if (request->permits != 0 && request->op != OP_RAISE) return request->fair ? SCRIPT_FAIR_PERMIT : SCRIPT_PERMIT;
    switch (request->op) {
    case OP_EXTEND: return shared ? SCRIPT_SHARED_EXTEND : SCRIPT_EXTEND;
    case OP_RELEASE: return shared ? SCRIPT_SHARED_RELEASE : SCRIPT_RELEASE;
    case OP_RAISE: return shared ? SCRIPT_SHARED_RAISE : SCRIPT_RAISE;
    default: return request->fair ? SCRIPT_FAIR_ACQUIRE : shared ? SCRIPT_SHARED_ACQUIRE : SCRIPT_ACQUIRE;
    }
}

static void intend(const struct plain_call *call)
{
    const struct node_request *request = call->request;

    if (request->fair) {
        begin_script(call, SCRIPT_FAIR_LEAVE, 2 + call->prefixed);
        bytes_number(call->out, request->n_keys);
        bytes_word(call->out, request->waiter, request->waiter_length);
        write_prefix(call);
        return;
    }
    begin_script(call, SCRIPT_INTEND, 5 + call->prefixed);
    bytes_number(call->out, request->n_keys);
    write_waiter(call);
    bytes_number(call->out, request->lease_ms);
    write_modes(call);
    write_prefix(call);
}

/* Peek and break have neither guard nor counters among their keys. */
static void peek(const struct plain_call *call)
{
    const struct node_request *request = call->request;
    bool counts = request->op == OP_PEEK && request->explain && request->permits == 0;
    bool chooses = request->op == OP_BREAK && request->owner != NULL;
    size_t n_args = call->prefixed ? 2 : (size_t)counts + chooses;

    begin_script(call, request->op == OP_PEEK ? SCRIPT_PEEK : SCRIPT_BREAK, n_args);
    if (counts) bytes_text(call->out, "waiters");
    if (chooses) bytes_word(call->out, request->owner, request->owner_length);
    if (call->prefixed && !counts && !chooses) bytes_text(call->out, "");
    write_prefix(call);
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
static bool is_native(const struct plain_call *call)
{
    const struct node_request *request = call->request;
    bool more = is_strict(call->guard) || call->fenced || request->explain || request->shared != 0 || request->fair;

    return call->native && request->op == OP_ACQUIRE && request->n_keys == 1 && request->permits == 0 && !more;
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
                              .prefixed = request->prefix != 0,
                              .guarded = is_guarded(guard),
                              .fenced = request->fenced || request->fence != 0};

    switch (request->op) {
    case OP_ACQUIRE:
    case OP_REPAIR:
    case OP_EXTEND: break;
    case OP_RELEASE: call.fenced = request->fence != 0; break;
    case OP_RAISE: call.fenced = true; break;
    case OP_PEEK:
    case OP_BREAK:
    case OP_INTEND: call.guarded = call.fenced = false; break;
    case OP_CLIENTS: BYTES_TEXTS(out, "CLIENT", "LIST"); return false;
    case OP_MAY_KILL:
    case OP_BOOTSTRAP: guard_bootstrap(guard, out, request); return false;
    }
    if (request->op == OP_INTEND) {
        intend(&call);
    } else if (request->op == OP_PEEK || request->op == OP_BREAK) {
        peek(&call);
    } else if (is_native(&call)) {
        set(out, request);
        return false;
    } else {
        write_script(&call, plain_script(request));
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

        bytes_insert_text(out, text, length, batch->prefix, PLAIN_FENCE_PREFIX);
        word = text + length + 2;
    }
}

void dialect_build_batch(struct bytes *out, const struct dialect_batch *batch, uint32_t *whole_sent,
                         const struct guard *guard, const struct dialect *dialect)
{
    const struct node_key first = {.text = strchr(batch->keys.data, '\n') + 1};
    const struct node_request all = {.op = OP_ACQUIRE,
                                     .keys = &first,
                                     .n_keys = batch->n,
                                     .prefix = batch->prefix,
                                     .owner = batch->letters,
                                     .owner_length = batch->n,
                                     .lease_ms = batch->lease_ms,
                                     .fence_ttl_ms = batch->fence_ttl_ms};
    const struct plain_call call = {.out = out,
                                    .request = &all,
                                    .whole_sent = whole_sent,
                                    .guard = guard,
                                    .scripts = dialect->scripts,
                                    .batched = true,
                                    .prefixed = batch->prefix != 0 && dialect == &dialect_plain,
                                    .guarded = is_guarded(guard),
                                    .fenced = batch->fenced};
    size_t counters = batch->fenced ? batch->n : 0, n_args = RECORD_WHOLE + 2 + batch->n + counters + call.prefixed;

    name_script(&call, SCRIPT_COMBINED, batch->n + call.guarded + counters, n_args);
    bytes_append(out, batch->keys.data, batch->keys.used);
    if (call.guarded) bytes_text(out, GUARD_KEY);
    if (batch->fenced) write_counters(out, batch);
    plain_record(&call, true);
    tail_acquire(&call);
    bytes_append(out, batch->owners.data, batch->owners.used);
    bytes_append(out, batch->numbers.data, batch->numbers.used);
    write_prefix(&call);
}

static void plain_build_batch(struct bytes *out, const struct dialect_batch *batch, uint32_t *whole_sent,
                              const struct guard *guard)
{
    dialect_build_batch(out, batch, whole_sent, guard, &dialect_plain);
}

/* ---- the dialect ---- */

static size_t plain_channel(const struct node_key *key, size_t prefix, char *ret, size_t size)
{
    size_t used = bytes_put(ret, size, "", key->text, prefix, PLAIN_CHANNEL_PREFIX);

    return used + bytes_put(ret + used, size - used, "", key->text + prefix, key->length - prefix, "");
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
