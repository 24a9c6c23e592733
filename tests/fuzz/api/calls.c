/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.c - what is called, drawn from the seed
 */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_ONCE_IN 1500u
#define BOUND_US      4000000u /* of what has no wait of its own */

static bool has_handle(const struct fuzz_handle *handle)
{
    return handle != NULL && handle->lock != NULL;
}

static struct fuzz_op *new_op(struct fuzz *fuzz, enum fuzz_kind kind, struct fuzz_client *client,
                              struct fuzz_handle *handle, struct draw *draw)
{
    struct fuzz_op *op = calloc(1, sizeof(*op));

    if (op == NULL) abort();
    *op = (struct fuzz_op){.fuzz = fuzz,
                           .client = client,
                           .client_serial = client->serial,
                           .handle = handle,
                           .kind = kind,
                           .inside = true,
                           .begun_us = fuzz->alive_us,
                           .bound_us = BOUND_US,
                           .draw = draw_of(fuzz->seed, draw_number(draw)),
                           .next = fuzz->ops};
    fuzz->ops = op;
    return op;
}

/* What a start returned: the promise, or none. */
static bool begun(struct fuzz_op *op, int status)
{
    struct fuzz *fuzz = op->fuzz;

    op->inside = false;
    op->promised = status == QUORLOCK_OK;
    if (status > 0 || status < -15) fuzz_fail(fuzz, "a start returns %d", status);
    fuzz->counts.calls++;
    fuzz->counts.refused += status != 0;
    if (status != 0 && quorlock_client_error(op->client->client)[0] == '\0') {
        fuzz_fail(fuzz, "%s has no text", quorlock_status_name(status));
    }
    return op->promised;
}

/* The start functions are told apart in what fails. */
static const char *enter(struct fuzz *fuzz, const char *name)
{
    const char *before = fuzz->inside;

    fuzz->inside = name;
    return before;
}

/* ---- clients ---- */

static void open_client(struct fuzz *fuzz, struct fuzz_client *client, struct draw *draw)
{
    char prefix[32], error[256] = "";
    struct quorlock_allocator hooks = memory_hooks(&client->memory);
    struct quorlock_client_options options = {.size = sizeof(options),
                                              .nodes = fuzz->nodes,
                                              .n_nodes = FUZZ_NODES,
                                              .dialect = fuzz->dialect,
                                              .max_lease_ms = FUZZ_LEASE_MAX_MS,
                                              .reconnect_min_ms = 5,
                                              .reconnect_max_ms = 100,
                                              .key_prefix = prefix,
                                              .set_name = "fuzz",
                                              .allocator = &hooks,
                                              .log = fuzz_on_log,
                                              .log_arg = client,
                                              .error = error,
                                              .error_size = sizeof(error)};
    int status;

    snprintf(prefix, sizeof(prefix), "r%u:", fuzz->round);
    options.policy = draw_once_in(draw, 8) ? QUORLOCK_ALL : QUORLOCK_MAJORITY;
    options.guard = draw_once_in(draw, 3) ? QUORLOCK_GUARD_STRICT : QUORLOCK_GUARD_CONNECTION;
    options.node_timeout_ms = draw_once_in(draw, 2) ? 0 : 50 + draw_below(draw, 100);
    options.owner_label = draw_once_in(draw, 2) ? NULL : "fuzz:1:";
    if (draw_once_in(draw, 8)) options.buggify = 1 + draw_below(draw, UINT32_MAX);
    client->fuzz = fuzz;
    client->serial = ++fuzz->client_count;
    client->memory =
        (struct memory){.draw = draw_of(fuzz->seed, draw_number(draw)), .fail_once_in = fuzz->fail_once_in};
    status = quorlock_client_new(&client->client, fuzz->base, &options);
    if (status == 0) return;
    if (client->client != NULL) fuzz_fail(fuzz, "client_new fails and touches what it returns");
    if (client->memory.blocks != 0) fuzz_fail(fuzz, "client_new fails and keeps %ld blocks", client->memory.blocks);
    if (status != QUORLOCK_NOMEM || fuzz->fail_once_in == 0) fuzz_fail(fuzz, "client_new: %s", error);
}

static struct fuzz_client *some_client(struct fuzz *fuzz, struct draw *draw)
{
    struct fuzz_client *client = &fuzz->clients[draw_below(draw, FUZZ_CLIENTS)];

    if (client->client == NULL && !fuzz->ended) open_client(fuzz, client, draw);
    return client->client == NULL ? NULL : client;
}

void calls_close(struct fuzz *fuzz, struct fuzz_client *client)
{
    const char *before = enter(fuzz, "close");
    bool again = client->closing;
    int status;

    if (client->client == NULL) {
        fuzz->inside = before;
        return;
    }
    if (!again) {
        client->closing = true;
        client->closing_since_us = fuzz->alive_us;
        /* What is held is given back from now on. */
        for (struct fuzz_handle *handle = fuzz->handles; handle != NULL; handle = handle->next) {
            if (handle->client == client) handle->holds = 0;
        }
    }
    status = quorlock_client_close(client->client, fuzz_on_closed, client);
    if (status != (again ? QUORLOCK_CLOSED : QUORLOCK_OK)) fuzz_fail(fuzz, "close returns %d", status);
    fuzz->inside = before;
}

static void ask_report(struct fuzz *fuzz, struct draw *draw, bool breaks)
{
    struct fuzz_client *client = some_client(fuzz, draw);
    const char *before;
    struct fuzz_op *op;
    char key[16];

    if (client == NULL) return;
    snprintf(key, sizeof(key), "k%u",
             breaks ? FUZZ_KEYS + draw_below(draw, FUZZ_FREE_KEYS) : draw_below(draw, FUZZ_KEYS + FUZZ_FREE_KEYS));
    op = new_op(fuzz, FUZZ_REPORT, client, NULL, draw);
    before = enter(fuzz, breaks ? "break" : "inspect");
    begun(op, breaks ? quorlock_break(client->client, key, fuzz_on_report, op)
                     : quorlock_inspect(client->client, key, fuzz_on_report, op));
    fuzz->inside = before;
}

static void examine(struct fuzz *fuzz, struct draw *draw)
{
    struct fuzz_client *client = some_client(fuzz, draw);
    const char *before;
    struct fuzz_op *op;

    if (client == NULL) return;
    op = new_op(fuzz, FUZZ_EXAMINE, client, NULL, draw);
    before = enter(fuzz, "examine");
    begun(op, quorlock_examine(client->client, fuzz_on_examination, op));
    fuzz->inside = before;
}

/* ---- handles ---- */

/* Keys that are broken by force are never mixed with those on which exclusion is checked. */
static void draw_keys(struct fuzz_handle *handle, struct draw *draw, char texts[][16], const char **keys)
{
    bool free_keys = draw_once_in(draw, 12);
    uint32_t first = free_keys ? FUZZ_KEYS : 0;
    uint32_t n = free_keys ? FUZZ_FREE_KEYS : FUZZ_KEYS;
    uint32_t start = draw_below(draw, n);

    handle->n_keys = draw_once_in(draw, 4) ? 1 + draw_below(draw, FUZZ_KEYS_AT_ONCE) : 1;
    for (uint32_t i = 0; i < handle->n_keys; i++) {
        handle->keys[i] = first + (start + i) % n;
        snprintf(texts[i], 16, "k%u", handle->keys[i]);
        keys[i] = texts[i];
    }
}

/* Names with permits are no ordinary keys; the owners of both would hold different lists. */
static void draw_mode(struct fuzz_handle *handle, struct quorlock_options *options, struct draw *draw)
{
    bool shares = draw_once_in(draw, 3), all = draw_once_in(draw, 3);
    uint32_t bits = draw_below(draw, 16);

    if (handle->fuzz->dialect == QUORLOCK_DIALECT_REDISSON) return;
    if (handle->keys[0] < FUZZ_NAMES) {
        handle->n_keys = 1;
        handle->permits = options->permits = FUZZ_PERMITS(handle->keys[0]);
        return;
    }
    while (handle->keys[handle->n_keys - 1] < FUZZ_NAMES) handle->n_keys--;
    if (!shares) return;
    handle->shared = (all ? 15 : bits) & ((1u << handle->n_keys) - 1);
    options->shared = all ? QUORLOCK_SHARED_ALL : handle->shared;
}

/* What no lock is made of. */
static void check_nonsense(const struct fuzz *fuzz, const struct fuzz_client *client, struct draw *draw)
{
    static const struct quorlock_options nonsense[] = {
        {.permits = QUORLOCK_PERMITS_MAX + 1},         {.permits = UINT32_MAX}, {.permits = 1, .shared = 1},
        {.permits = 2, .shared = QUORLOCK_SHARED_ALL}, {.shared = 4},           {.shared = UINT64_MAX - 1}};
    const char *const keys[] = {"k0", "k1"};
    struct quorlock_options options = nonsense[draw_below(draw, sizeof(nonsense) / sizeof(nonsense[0]))];
    quorlock *lock = NULL;
    size_t n_keys = 1 + draw_below(draw, 2);
    int status;

    if (draw_once_in(draw, 4)) {
        options = (struct quorlock_options){.permits = 3};
        n_keys = 2;
    }
    options.size = sizeof(options);
    status = quorlock_new(&lock, client->client, keys, n_keys, &options);
    if (lock == NULL && (status == QUORLOCK_INVAL || status == QUORLOCK_UNSUPPORTED || status == QUORLOCK_NOMEM ||
                         status == QUORLOCK_CLOSED))
        return;
    fuzz_fail(fuzz, "permits %u with shared %llx of %zu keys are refused by %d", options.permits,
              (unsigned long long)options.shared, n_keys, status);
}

static struct quorlock_options draw_options(struct fuzz_handle *handle, struct draw *draw)
{
    static const uint32_t waits_ms[8] = {0, 0, 50, 300, 1000, 3000, 3000, QUORLOCK_WAIT_FOREVER};
    static const char *const owners[3] = {"ann", "bob", "cy"};
    struct quorlock_options options = {.size = sizeof(options)};

    options.lease_ms = draw_once_in(draw, 60) ? draw_below(draw, 4000) : 300 + draw_below(draw, 1700);
    options.wait_ms = waits_ms[draw_below(draw, 8)];
    if (draw_once_in(draw, 6)) options.renew_ms = QUORLOCK_RENEW_NEVER;
    if (draw_once_in(draw, 6)) options.min_valid_ms = draw_below(draw, 300);
    if (draw_once_in(draw, 6)) options.max_hold_ms = 1 + draw_below(draw, 2000);
    if (draw_once_in(draw, 10)) options.lost_margin_ms = 1 + draw_below(draw, 100);
    if (draw_once_in(draw, 10) && handle->fuzz->dialect == QUORLOCK_DIALECT_PLAIN) options.label = "label";
    options.fencing = handle->fencing = draw_once_in(draw, 3);
    handle->owner = draw_once_in(draw, 3) ? (int)draw_below(draw, 3) : -1;
    if (handle->owner >= 0) options.owner = owners[handle->owner];
    draw_mode(handle, &options, draw);
    return options;
}

static void new_handle(struct fuzz *fuzz, uint32_t slot, struct draw *draw)
{
    struct fuzz_client *client = some_client(fuzz, draw);
    struct fuzz_handle *handle;
    struct quorlock_options options;
    char texts[FUZZ_KEYS_AT_ONCE][16];
    const char *keys[FUZZ_KEYS_AT_ONCE];
    int status;

    if (client == NULL) return;
    if (draw_once_in(draw, 40)) check_nonsense(fuzz, client, draw);
    handle = calloc(1, sizeof(*handle));
    if (handle == NULL) abort();
    handle->fuzz = fuzz;
    handle->client = client;
    draw_keys(handle, draw, texts, keys);
    options = draw_options(handle, draw);
    handle->wait_ms = options.wait_ms;
    status = quorlock_new(&handle->lock, client->client, keys, handle->n_keys, &options);
    if (status != 0) {
        if (handle->lock != NULL) fuzz_fail(fuzz, "quorlock_new fails and touches what it returns");
        free(handle);
        return;
    }
    handle->next = fuzz->handles;
    fuzz->handles = handle;
    fuzz->slots[slot] = handle;
    if (!draw_once_in(draw, 8)) quorlock_on_lost(handle->lock, fuzz_on_lost, handle);
}

static void acquire(struct fuzz_handle *handle, struct draw *draw)
{
    struct fuzz_op *op = new_op(handle->fuzz, FUZZ_ACQUIRE, handle->client, handle, draw);
    const char *before = enter(handle->fuzz, "acquire");

    op->bound_us = handle->wait_ms == QUORLOCK_WAIT_FOREVER ? UINT64_MAX : BOUND_US + UINT64_C(1000) * handle->wait_ms;
    if (begun(op, quorlock_acquire(handle->lock, fuzz_on_result, op)) && handle->owner < 0) {
        /* What was lost is given up. */
        handle->holds = 0;
    }
    handle->fuzz->inside = before;
}

static void extend(struct fuzz_handle *handle, struct draw *draw)
{
    struct fuzz_op *op = new_op(handle->fuzz, FUZZ_EXTEND, handle->client, handle, draw);
    const char *before = enter(handle->fuzz, "extend");
    uint32_t lease_ms = draw_once_in(draw, 2) ? 0 : draw_below(draw, FUZZ_LEASE_MAX_MS + 200);

    begun(op, quorlock_extend(handle->lock, lease_ms, fuzz_on_result, op));
    handle->fuzz->inside = before;
}

static void release(struct fuzz_handle *handle, struct draw *draw)
{
    struct fuzz_op *op = new_op(handle->fuzz, FUZZ_RELEASE, handle->client, handle, draw);
    const char *before = enter(handle->fuzz, "release");
    bool told = !draw_once_in(draw, 4);
    bool released = begun(op, quorlock_release(handle->lock, told ? fuzz_on_result : NULL, op));

    /* Without a callback nothing is owed. */
    if (!told) op->promised = false;
    if (released && handle->holds > 0) handle->holds--;
    handle->fuzz->inside = before;
}

static void cancel(struct fuzz_handle *handle)
{
    const char *before = enter(handle->fuzz, "cancel");
    int status = quorlock_cancel(handle->lock);

    if (status != QUORLOCK_OK && status != QUORLOCK_STATE && status != QUORLOCK_CLOSED) {
        fuzz_fail(handle->fuzz, "cancel returns %d", status);
    }
    handle->fuzz->inside = before;
}

static void free_handle(struct fuzz_handle *handle)
{
    const char *before = enter(handle->fuzz, "free");

    quorlock_free(handle->lock);
    handle->lock = NULL;
    handle->holds = 0;
    handle->fuzz->counts.frees++;
    handle->fuzz->inside = before;
}

static void look_at(struct fuzz_handle *handle, struct draw *draw)
{
    const char *owner = quorlock_token(handle->lock);

    if (quorlock_valid_ms(handle->lock) > 0 && owner == NULL) {
        fuzz_fail(handle->fuzz, "a lock that is valid has no token");
    }
    if (draw_once_in(draw, 2)) quorlock_on_lost(handle->lock, fuzz_on_lost, handle);
    (void)quorlock_fence(handle->lock);
}

static void call_handle(struct fuzz_handle *handle, struct draw *draw)
{
    uint32_t which = draw_below(draw, 100);

    if (which < 45) {
        acquire(handle, draw);
    } else if (which < 72) {
        release(handle, draw);
    } else if (which < 82) {
        extend(handle, draw);
    } else if (which < 89) {
        cancel(handle);
    } else if (which < 95) {
        free_handle(handle);
    } else {
        look_at(handle, draw);
    }
}

static void call_each(struct fuzz *fuzz, const struct fuzz_client *client, struct draw *draw)
{
    for (uint32_t i = 0; client->client != NULL && i < fuzz->n_slots; i++) {
        struct fuzz_handle *handle = fuzz->slots[i];

        if (!draw_once_in(draw, 2) || !has_handle(handle) || handle->client != client) continue;
        if (draw_once_in(draw, 4)) {
            extend(handle, draw);
        } else if (draw_once_in(draw, 4)) {
            cancel(handle);
        } else {
            call_handle(handle, draw);
        }
    }
}

/* With much in flight; and until the callback of its close a client's handles are good for any call. */
static void call_closing(struct fuzz *fuzz, struct draw *draw)
{
    struct fuzz_client *client = &fuzz->clients[draw_below(draw, FUZZ_CLIENTS)];

    call_each(fuzz, client, draw);
    calls_close(fuzz, client);
    call_each(fuzz, client, draw);
}

static void call_any(struct fuzz *fuzz, struct draw *draw)
{
    uint32_t slot = draw_below(draw, fuzz->n_slots);
    uint32_t which = draw_below(draw, CLOSE_ONCE_IN);

    if (fuzz->ended) return;
    if (which == 0) {
        call_closing(fuzz, draw);
    } else if (which < 8) {
        ask_report(fuzz, draw, which % 2 == 0 && fuzz->breaks);
    } else if (which == 8) {
        examine(fuzz, draw);
    } else {
        if (!has_handle(fuzz->slots[slot])) new_handle(fuzz, slot, draw);
        if (has_handle(fuzz->slots[slot])) call_handle(fuzz->slots[slot], draw);
    }
}

void fuzz_call(struct fuzz *fuzz)
{
    struct draw draw = draw_of(fuzz->seed + fuzz->round, ++fuzz->call_count);

    call_any(fuzz, &draw);
}

void calls_inside(struct fuzz *fuzz, struct fuzz_handle *handle, struct draw *draw)
{
    uint32_t which = draw_below(draw, 100);

    if (fuzz->ended) return;
    if (which < 25) return;
    if (which < 45) {
        call_any(fuzz, draw);
    } else if (has_handle(handle)) {
        if (which < 50) {
            free_handle(handle);
        } else if (which < 65) {
            release(handle, draw);
        } else if (which < 80) {
            release(handle, draw);
            acquire(handle, draw);
        } else if (which == 99 && draw_once_in(draw, 20)) {
            calls_close(fuzz, handle->client);
        } else {
            call_handle(handle, draw);
        }
    }
}

void calls_in_log(struct fuzz *fuzz, const struct fuzz_client *client, struct draw *draw)
{
    struct fuzz_handle *handle = fuzz->slots[draw_below(draw, fuzz->n_slots)];

    if (!draw_once_in(draw, 20) || !has_handle(handle) || handle->client != client) return;
    if (draw_once_in(draw, 2)) {
        free_handle(handle);
    } else {
        cancel(handle);
    }
}
