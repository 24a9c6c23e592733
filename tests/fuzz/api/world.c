/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - the promises of the API, and what becomes of them
 */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#define SLACK_US   15000000u /* of loop time, on a busy machine */
#define STILL_US   30000u    /* without a tick: less than any node timeout */
#define CLOSING_US 40000u

void world_fail(const struct world *world, const char *format, ...)
{
    va_list args;

    fprintf(stderr,
            "fuzz of the API, seed %llu, round %u, call %llu: does not hold: ", (unsigned long long)world->seed,
            world->round, (unsigned long long)world->call_count);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    abort();
}

/* ---- exclusion ---- */

static bool share_key(const struct world_handle *one, const struct world_handle *other)
{
    for (uint32_t i = 0; i < one->n_keys; i++) {
        for (uint32_t k = 0; k < other->n_keys; k++) {
            if (one->keys[i] == other->keys[k] && one->keys[i] < WORLD_KEYS) return true;
        }
    }
    return false;
}

static bool same_owner(const struct world_handle *one, const struct world_handle *other)
{
    return one->client == other->client && one->owner >= 0 && one->owner == other->owner;
}

static bool believes(const struct world_handle *handle)
{
    return handle->lock != NULL && handle->holds > 0 && !handle->lost && quorlock_valid_ms(handle->lock) > 0;
}

static void check_exclusion(const struct world *world, const struct world_handle *handle)
{
    if (world->spoiled || !believes(handle)) return;
    for (const struct world_handle *other = world->handles; other != NULL; other = other->next) {
        if (other == handle || other->holds == 0 || !share_key(handle, other)) continue;
        if (same_owner(handle, other) || !believes(other)) continue;
        world_fail(world, "key %u is held twice: by %s for %u ms and by %s for %u ms", handle->keys[0],
                   quorlock_token(handle->lock), quorlock_valid_ms(handle->lock), quorlock_token(other->lock),
                   quorlock_valid_ms(other->lock));
    }
}

/* An owner's hold may be one more, with the token of the first; everybody else's is larger than all before. */
static void check_fence(struct world *world, const struct world_handle *handle, uint64_t fence)
{
    if (world->spoiled) return;
    if (!handle->fencing) return;
    if (fence == 0) world_fail(world, "a grant with fencing has no token");
    for (uint32_t i = 0; i < handle->n_keys; i++) {
        uint32_t key = handle->keys[i];

        if (key >= WORLD_KEYS) continue;
        if (fence < world->fences[key] || (fence == world->fences[key] && handle->owner < 0)) {
            world_fail(world, "key %u: token %llu after %llu", key, (unsigned long long)fence,
                       (unsigned long long)world->fences[key]);
        }
        world->fences[key] = fence;
    }
}

static void on_granted(struct world_handle *handle, const struct quorlock_result *result)
{
    struct world *world = handle->world;

    world->counts.grants++;
    /* Without an owner an acquire gives up what was lost. */
    if (handle->owner < 0) handle->holds = 0;
    handle->lost = false;
    handle->holds++;
    if (handle->lock == NULL) world_fail(world, "a grant is told to a handle that was freed");
    if (result->token == NULL) world_fail(world, "a grant without a token");
    check_fence(world, handle, result->fence);
    check_exclusion(world, handle);
}

/* ---- callbacks ---- */

static void check_status(const struct world_op *op, int status)
{
    /* A bit for each status that the header names for the result; CANCELED and CLOSED are always there. */
    static const unsigned allowed[WORLD_KINDS] = {
        [WORLD_ACQUIRE] = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 11 |
                          1u << 12 | 1u << 13,
        [WORLD_EXTEND] = 1u << 0 | 1u << 6 | 1u << 8,
        [WORLD_RELEASE] = 1u << 0 | 1u << 6,
        [WORLD_REPORT] = 1u << 0 | 1u << 6,
        [WORLD_EXAMINE] = 1u << 0 | 1u << 2,
    };
    bool ends = op->kind != WORLD_RELEASE && (status == QUORLOCK_CANCELED || status == QUORLOCK_CLOSED);

    if (status > 0 || status < -15) world_fail(op->world, "status %d", status);
    if (ends || (allowed[op->kind] >> -status & 1) != 0) return;
    if (op->kind == WORLD_RELEASE && (status == QUORLOCK_CANCELED || status == QUORLOCK_CLOSED)) return;
    world_fail(op->world, "operation %d ends with %s", (int)op->kind, quorlock_status_name(status));
}

static void answered(struct world_op *op, int status)
{
    struct world *world = op->world;

    world->counts.callbacks++;
    if (op->inside || world->inside != NULL) {
        world_fail(world, "a callback (%d) comes from inside %s", (int)op->kind,
                   world->inside != NULL ? world->inside : "its own start");
    }
    if (!op->promised) world_fail(world, "a callback (%d) that was never promised", (int)op->kind);
    if (++op->calls > 1) world_fail(world, "a callback (%d) comes twice", (int)op->kind);
    check_status(op, status);
    world->counts.statuses[-status]++;
}

void world_on_result(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct world_op *op = arg;
    struct world_handle *handle = op->handle;

    answered(op, result->status);
    if (handle->lock != NULL && handle->lock != lock) world_fail(op->world, "a callback names another handle");
    if (result->text == NULL) world_fail(op->world, "a result without a text");
    if (op->kind == WORLD_ACQUIRE && result->status == QUORLOCK_OK) on_granted(handle, result);
    calls_inside(op->world, handle, &op->draw);
}

void world_on_report(int status, const struct quorlock_report *report, void *arg)
{
    struct world_op *op = arg;

    answered(op, status);
    if (report != NULL && report->n_nodes > WORLD_NODES) world_fail(op->world, "a report of too many nodes");
    calls_inside(op->world, NULL, &op->draw);
}

void world_on_examination(int status, const struct quorlock_examination *examination, void *arg)
{
    struct world_op *op = arg;

    (void)examination;
    answered(op, status);
    calls_inside(op->world, NULL, &op->draw);
}

void world_on_lost(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct world_handle *handle = arg;
    struct world *world = handle->world;
    struct draw draw = draw_of(world->seed, ++world->counts.losses + 0x1055u);

    if (world->inside != NULL) world_fail(world, "a loss is told from inside %s", world->inside);
    if (handle->lock == NULL) world_fail(world, "a loss is told to a handle that was freed");
    if (handle->lock != lock) world_fail(world, "a loss names another handle");
    if (handle->holds == 0) world_fail(world, "a loss is told to a handle that holds nothing");
    if (handle->lost) world_fail(world, "a loss is told twice");
    if (loss->reason < QUORLOCK_LOST_EXPIRED || loss->reason > QUORLOCK_LOST_CLOCK || loss->text == NULL) {
        world_fail(world, "a loss for reason %d", loss->reason);
    }
    if (quorlock_valid_ms(lock) != 0) world_fail(world, "a lock that was lost is valid");
    handle->lost = true;
    calls_inside(world, handle, &draw);
}

void world_on_log(void *arg, int level, const char *text)
{
    struct world_client *client = arg;
    struct world *world = client->world;
    struct draw draw;

    if (level < QUORLOCK_LOG_DEBUG || level > QUORLOCK_LOG_ERROR) world_fail(world, "log level %d", level);
    if (strchr(text, '\n') != NULL) world_fail(world, "a log line of two: %s", text);
    if (level >= QUORLOCK_LOG_WARN) world->troubled = true;
    draw = draw_of(world->seed, ++world->counts.lines + 0x106u);
    if (world->log_calls) calls_in_log(world, client, &draw);
}

void world_on_closed(void *arg)
{
    struct world_client *client = arg;
    struct world *world = client->world;

    if (world->inside != NULL) world_fail(world, "close is told from inside %s", world->inside);
    if (!client->closing) world_fail(world, "close is told twice, or unasked");
    if (client->memory.blocks != 0) world_fail(world, "after close %ld blocks are left", client->memory.blocks);
    for (const struct world_op *op = world->ops; op != NULL; op = op->next) {
        if (op->client == client && op->client_serial == client->serial && op->promised && op->calls != 1) {
            world_fail(world, "after close a callback (%d) is still owed", (int)op->kind);
        }
    }
    for (struct world_handle *handle = world->handles; handle != NULL; handle = handle->next) {
        if (handle->client != client || handle->lock == NULL) continue;
        handle->lock = NULL;
        handle->holds = 0;
    }
    if (world->alive_us > client->closing_since_us + CLOSING_US) world->troubled = true;
    world->counts.closes++;
    world->counts.failed_allocations += client->memory.failed;
    client->client = NULL;
    client->closing = false;
}

/* ---- rounds ---- */

static void forget_answered(struct world *world)
{
    struct world_op **at = &world->ops;

    while (*at != NULL) {
        struct world_op *op = *at;

        if (op->promised && op->calls == 0) {
            at = &op->next;
            continue;
        }
        /* Kept for a while, so that a second callback finds it. */
        if (op->calls > 0 && world->alive_us < op->begun_us + SLACK_US) {
            at = &op->next;
            continue;
        }
        if (!op->promised && world->alive_us < op->begun_us + SLACK_US) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        free(op);
    }
}

void world_look(struct world *world, uint64_t passed_us)
{
    /* A machine that stood still, or a server that was started meanwhile, is nobody's fault. */
    world->alive_us += passed_us < STILL_US ? passed_us : STILL_US;
    if (passed_us >= STILL_US) world->troubled = true;
    for (const struct world_op *op = world->ops; op != NULL; op = op->next) {
        if (!op->promised || op->calls > 0 || op->bound_us == UINT64_MAX) continue;
        if (world->alive_us > op->begun_us + op->bound_us + SLACK_US) {
            world_fail(world, "an operation (%d) does not end: after %llu ms, bound %llu ms", (int)op->kind,
                       (unsigned long long)(world->alive_us - op->begun_us) / 1000,
                       (unsigned long long)op->bound_us / 1000);
        }
    }
    for (uint32_t i = 0; i < WORLD_CLIENTS; i++) {
        const struct world_client *client = &world->clients[i];

        if (client->closing && world->alive_us > client->closing_since_us + SLACK_US) {
            world_fail(world, "a close does not end");
        }
    }
    for (const struct world_handle *handle = world->handles; handle != NULL; handle = handle->next) {
        if (handle->holds > 0) check_exclusion(world, handle);
    }
    forget_answered(world);
}

void world_begin_round(struct world *world, uint32_t round)
{
    world->round = round;
    world->ended = world->troubled = false;
    memset(world->fences, 0, sizeof(world->fences));
    if (world->slots == NULL) world->slots = calloc(world->n_slots, sizeof(struct world_handle *));
    if (world->slots == NULL) abort();
    memset(world->slots, 0, world->n_slots * sizeof(struct world_handle *));
}

void world_close_all(struct world *world)
{
    world->ended = true;
    for (uint32_t i = 0; i < WORLD_CLIENTS; i++) calls_close(world, &world->clients[i]);
}

bool world_is_closed(const struct world *world)
{
    for (uint32_t i = 0; i < WORLD_CLIENTS; i++) {
        if (world->clients[i].client != NULL) return false;
    }
    return true;
}

void world_end_round(struct world *world)
{
    while (world->ops != NULL) {
        struct world_op *op = world->ops;

        if (op->promised && op->calls != 1) world_fail(world, "a callback (%d) never came", (int)op->kind);
        world->ops = op->next;
        free(op);
    }
    while (world->handles != NULL) {
        struct world_handle *handle = world->handles;

        world->handles = handle->next;
        free(handle);
    }
}
