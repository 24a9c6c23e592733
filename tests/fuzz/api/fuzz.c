/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.c - the promises of the API, and what becomes of them
 */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#define SLACK_US   15000000u /* of loop time, on a busy machine */
#define STILL_US   30000u    /* without a tick: less than any node timeout */
#define CLOSING_US 40000u

void fuzz_fail(const struct fuzz *fuzz, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "fuzz of the API, seed %llu, round %u, call %llu: does not hold: ", (unsigned long long)fuzz->seed,
            fuzz->round, (unsigned long long)fuzz->call_count);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    abort();
}

/* ---- exclusion ---- */

static bool reads(const struct fuzz_handle *handle, uint32_t nth)
{
    return (handle->shared >> nth & 1) != 0;
}

/* They hold a key that only one of them may. */
static bool share_key(const struct fuzz_handle *one, const struct fuzz_handle *other)
{
    if (one->permits != 0 && other->permits != 0 && one->slot != other->slot) return false;
    for (uint32_t i = 0; i < one->n_keys; i++) {
        for (uint32_t k = 0; k < other->n_keys; k++) {
            if (one->keys[i] == other->keys[k] && one->keys[i] < FUZZ_KEYS && !(reads(one, i) && reads(other, k)))
                return true;
        }
    }
    return false;
}

static bool same_owner(const struct fuzz_handle *one, const struct fuzz_handle *other)
{
    return one->client == other->client && one->owner >= 0 && one->owner == other->owner;
}

static bool believes(const struct fuzz_handle *handle)
{
    return handle->lock != NULL && handle->holds > 0 && !handle->lost && quorlock_valid_ms(handle->lock) > 0;
}

static void check_exclusion(const struct fuzz *fuzz, const struct fuzz_handle *handle)
{
    if (fuzz->spoiled || !believes(handle)) return;
    for (const struct fuzz_handle *other = fuzz->handles; other != NULL; other = other->next) {
        if (other == handle || other->holds == 0 || !share_key(handle, other)) continue;
        if (same_owner(handle, other) || !believes(other)) continue;
        fuzz_fail(fuzz, "key %u is held twice: by %s for %u ms and by %s for %u ms", handle->keys[0],
                  quorlock_token(handle->lock), quorlock_valid_ms(handle->lock), quorlock_token(other->lock),
                  quorlock_valid_ms(other->lock));
    }
}

/* An owner's hold may be one more, with the token of the first; those of other owners are larger than all
 * before. */
static void check_fence(struct fuzz *fuzz, const struct fuzz_handle *handle, uint64_t fence)
{
    if (fuzz->spoiled) return;
    if (!handle->fencing) return;
    /* A reader that no writer came before may be told none. */
    if (fence == 0 && handle->shared == 0) fuzz_fail(fuzz, "a grant with fencing has no token");
    for (uint32_t i = 0; i < handle->n_keys; i++) {
        uint32_t key = handle->keys[i];
        uint64_t *latest;

        if (key >= FUZZ_KEYS || reads(handle, i)) continue;
        latest = &fuzz->fences[key][handle->slot];
        if (fence < *latest || (fence == *latest && handle->owner < 0)) {
            fuzz_fail(fuzz, "key %u, slot %u: token %llu after %llu", key, handle->slot, (unsigned long long)fence,
                      (unsigned long long)*latest);
        }
        *latest = fence;
    }
}

static void on_granted(struct fuzz_handle *handle, const struct quorlock_result *result)
{
    struct fuzz *fuzz = handle->fuzz;

    fuzz->counts.grants++;
    /* Without an owner an acquire gives up what was lost. */
    if (handle->owner < 0) handle->holds = 0;
    handle->lost = false;
    handle->holds++;
    if (handle->lock == NULL) fuzz_fail(fuzz, "a grant of a handle that was freed");
    if (result->token == NULL) fuzz_fail(fuzz, "a grant without a token");
    if (result->slot != 0 && result->slot >= handle->permits)
        fuzz_fail(fuzz, "slot %u of %u permits", result->slot, handle->permits);
    handle->slot = result->slot;
    check_fence(fuzz, handle, result->fence);
    check_exclusion(fuzz, handle);
}

/* ---- callbacks ---- */

static void check_status(const struct fuzz_op *op, int status)
{
    /* A bit for each status that the header names for the result; CANCELED and CLOSED are always there. */
    static const unsigned allowed[FUZZ_KINDS] = {
        [FUZZ_ACQUIRE] = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 11 |
                         1u << 12 | 1u << 13,
        [FUZZ_EXTEND] = 1u << 0 | 1u << 6 | 1u << 8,
        [FUZZ_RELEASE] = 1u << 0 | 1u << 6,
        [FUZZ_REPORT] = 1u << 0 | 1u << 6,
        [FUZZ_EXAMINE] = 1u << 0 | 1u << 2,
    };
    bool ends = op->kind != FUZZ_RELEASE && (status == QUORLOCK_CANCELED || status == QUORLOCK_CLOSED);

    if (status > 0 || status < -15) fuzz_fail(op->fuzz, "status %d", status);
    if (ends || (allowed[op->kind] >> -status & 1) != 0) return;
    if (op->kind == FUZZ_RELEASE && (status == QUORLOCK_CANCELED || status == QUORLOCK_CLOSED)) return;
    fuzz_fail(op->fuzz, "operation %d ends with %s", (int)op->kind, quorlock_status_name(status));
}

static void answered(struct fuzz_op *op, int status)
{
    struct fuzz *fuzz = op->fuzz;

    fuzz->counts.callbacks++;
    if (op->inside || fuzz->inside != NULL) {
        fuzz_fail(fuzz, "a callback (%d) comes from inside %s", (int)op->kind,
                  fuzz->inside != NULL ? fuzz->inside : "its own start");
    }
    if (!op->promised) fuzz_fail(fuzz, "a callback (%d) that was never promised", (int)op->kind);
    if (++op->calls > 1) fuzz_fail(fuzz, "a callback (%d) comes twice", (int)op->kind);
    check_status(op, status);
    fuzz->counts.statuses[-status]++;
}

/* What a callback is handed is good until it returns: the sanitizer notices where it is not. */
static void read_votes(struct fuzz *fuzz, const struct quorlock_vote *const *votes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fuzz->counts.bytes_read += strlen(votes[i]->node);
        if (votes[i]->error != NULL) fuzz->counts.bytes_read += strlen(votes[i]->error);
        if (votes[i]->holder != NULL) fuzz->counts.bytes_read += strlen(votes[i]->holder);
    }
}

void fuzz_on_result(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct fuzz_op *op = arg;
    struct fuzz_handle *handle = op->handle;

    answered(op, result->status);
    if (handle->lock != NULL && handle->lock != lock) fuzz_fail(op->fuzz, "a callback names another handle");
    if (result->text == NULL) fuzz_fail(op->fuzz, "a result without a text");
    if (op->kind == FUZZ_ACQUIRE && result->status == QUORLOCK_OK) on_granted(handle, result);
    calls_inside(op->fuzz, handle, &op->draw);
    op->fuzz->counts.bytes_read += strlen(result->text);
    read_votes(op->fuzz, result->votes, result->n_votes);
}

void fuzz_on_report(int status, const struct quorlock_report *report, void *arg)
{
    struct fuzz_op *op = arg;

    answered(op, status);
    if (report != NULL && report->n_nodes > FUZZ_NODES) fuzz_fail(op->fuzz, "a report of too many nodes");
    for (size_t i = 0; report != NULL && i < report->n_nodes; i++) {
        const struct quorlock_node_report *node = report->nodes[i];

        for (size_t k = 0; k < node->n_holders; k++) {
            const struct quorlock_holder *holder = node->holders[k];

            if (holder->holder == NULL || holder->slot >= QUORLOCK_PERMITS_MAX || holder->kind < QUORLOCK_HOLDER_SLOT ||
                holder->kind > QUORLOCK_HOLDER_WAITS)
                fuzz_fail(op->fuzz, "a holder of kind %d, slot %u", holder->kind, holder->slot);
        }
    }
    calls_inside(op->fuzz, NULL, &op->draw);
}

void fuzz_on_examination(int status, const struct quorlock_examination *examination, void *arg)
{
    struct fuzz_op *op = arg;

    answered(op, status);
    calls_inside(op->fuzz, NULL, &op->draw);
}

void fuzz_on_lost(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct fuzz_handle *handle = arg;
    struct fuzz *fuzz = handle->fuzz;
    struct draw draw = draw_of(fuzz->seed, ++fuzz->counts.losses + 0x1055u);

    if (fuzz->inside != NULL) fuzz_fail(fuzz, "a loss callback inside %s", fuzz->inside);
    if (handle->lock == NULL) fuzz_fail(fuzz, "a loss of a handle that was freed");
    if (handle->lock != lock) fuzz_fail(fuzz, "a loss names another handle");
    if (handle->holds == 0) fuzz_fail(fuzz, "a loss of a handle that holds nothing");
    if (handle->lost) fuzz_fail(fuzz, "a second callback of one loss");
    if (loss->reason < QUORLOCK_LOST_EXPIRED || loss->reason > QUORLOCK_LOST_CLOCK || loss->text == NULL) {
        fuzz_fail(fuzz, "a loss for reason %d", loss->reason);
    }
    if (quorlock_valid_ms(lock) != 0) fuzz_fail(fuzz, "a lock that was lost is valid");
    handle->lost = true;
    calls_inside(fuzz, handle, &draw);
    read_votes(fuzz, loss->votes, loss->n_votes);
}

void fuzz_on_log(void *arg, int level, const char *text)
{
    struct fuzz_client *client = arg;
    struct fuzz *fuzz = client->fuzz;
    struct draw draw;

    if (level < QUORLOCK_LOG_DEBUG || level > QUORLOCK_LOG_ERROR) fuzz_fail(fuzz, "log level %d", level);
    if (strchr(text, '\n') != NULL) fuzz_fail(fuzz, "a log line of two: %s", text);
    if (level >= QUORLOCK_LOG_WARN) fuzz->troubled = true;
    draw = draw_of(fuzz->seed, ++fuzz->counts.lines + 0x106u);
    if (fuzz->log_calls) calls_in_log(fuzz, client, &draw);
}

void fuzz_on_closed(void *arg)
{
    struct fuzz_client *client = arg;
    struct fuzz *fuzz = client->fuzz;

    if (fuzz->inside != NULL) fuzz_fail(fuzz, "a close callback inside %s", fuzz->inside);
    if (!client->closing) fuzz_fail(fuzz, "a second close callback, or one without a close");
    if (client->memory.blocks != 0) fuzz_fail(fuzz, "after close %ld blocks are left", client->memory.blocks);
    for (const struct fuzz_op *op = fuzz->ops; op != NULL; op = op->next) {
        if (op->client == client && op->client_serial == client->serial && op->promised && op->calls != 1) {
            fuzz_fail(fuzz, "after close a callback (%d) is still owed", (int)op->kind);
        }
    }
    for (struct fuzz_handle *handle = fuzz->handles; handle != NULL; handle = handle->next) {
        if (handle->client != client || handle->lock == NULL) continue;
        handle->lock = NULL;
        handle->holds = 0;
    }
    if (fuzz->alive_us > client->closing_since_us + CLOSING_US) fuzz->troubled = true;
    fuzz->counts.closes++;
    fuzz->counts.failed_allocations += client->memory.failed;
    client->client = NULL;
    client->closing = false;
}

/* ---- rounds ---- */

static void forget_answered(struct fuzz *fuzz)
{
    struct fuzz_op **at = &fuzz->ops;

    while (*at != NULL) {
        struct fuzz_op *op = *at;

        if (op->promised && op->calls == 0) {
            at = &op->next;
            continue;
        }
        /* Kept for a while, so that a second callback finds it. */
        if (op->calls > 0 && fuzz->alive_us < op->begun_us + SLACK_US) {
            at = &op->next;
            continue;
        }
        if (!op->promised && fuzz->alive_us < op->begun_us + SLACK_US) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        free(op);
    }
}

void fuzz_check(struct fuzz *fuzz, uint64_t passed_us)
{
    /* A machine that stood still, or a server that was started meanwhile, is no fault of the library. */
    fuzz->alive_us += passed_us < STILL_US ? passed_us : STILL_US;
    if (passed_us >= STILL_US) fuzz->troubled = true;
    for (const struct fuzz_op *op = fuzz->ops; op != NULL; op = op->next) {
        if (!op->promised || op->calls > 0 || op->bound_us == UINT64_MAX) continue;
        if (fuzz->alive_us > op->begun_us + op->bound_us + SLACK_US) {
            fuzz_fail(fuzz, "an operation (%d) does not end: after %llu ms, bound %llu ms", (int)op->kind,
                      (unsigned long long)(fuzz->alive_us - op->begun_us) / 1000,
                      (unsigned long long)op->bound_us / 1000);
        }
    }
    for (uint32_t i = 0; i < FUZZ_CLIENTS; i++) {
        const struct fuzz_client *client = &fuzz->clients[i];

        if (client->closing && fuzz->alive_us > client->closing_since_us + SLACK_US) {
            fuzz_fail(fuzz, "a close does not end");
        }
    }
    for (const struct fuzz_handle *handle = fuzz->handles; handle != NULL; handle = handle->next) {
        if (handle->holds > 0) check_exclusion(fuzz, handle);
    }
    forget_answered(fuzz);
}

void fuzz_begin_round(struct fuzz *fuzz, uint32_t round)
{
    fuzz->round = round;
    fuzz->ended = fuzz->troubled = false;
    memset(fuzz->fences, 0, sizeof(fuzz->fences));
    if (fuzz->slots == NULL) fuzz->slots = calloc(fuzz->n_slots, sizeof(struct fuzz_handle *));
    if (fuzz->slots == NULL) abort();
    memset(fuzz->slots, 0, fuzz->n_slots * sizeof(struct fuzz_handle *));
}

void fuzz_free_all(struct fuzz *fuzz)
{
    fuzz->ended = true;
    for (struct fuzz_handle *handle = fuzz->handles; handle != NULL; handle = handle->next) {
        if (handle->lock != NULL) quorlock_free(handle->lock);
        handle->lock = NULL;
        handle->holds = 0;
    }
}

bool fuzz_is_quiet(const struct fuzz *fuzz)
{
    for (uint32_t i = 0; i < FUZZ_CLIENTS; i++) {
        const struct fuzz_client *client = &fuzz->clients[i];
        struct quorlock_statistics statistics = {.size = sizeof(statistics)};

        if (client->client == NULL || client->closing) continue;
        if (quorlock_client_statistics(client->client, &statistics) != 0) fuzz_fail(fuzz, "no statistics");
        if (statistics.held > 0 || statistics.degraded > 0) return false;
        if (statistics.waiting > 0 || statistics.in_flight > 0) return false;
    }
    return true;
}

void fuzz_close_all(struct fuzz *fuzz)
{
    fuzz->ended = true;
    for (uint32_t i = 0; i < FUZZ_CLIENTS; i++) calls_close(fuzz, &fuzz->clients[i]);
}

bool fuzz_is_closed(const struct fuzz *fuzz)
{
    for (uint32_t i = 0; i < FUZZ_CLIENTS; i++) {
        if (fuzz->clients[i].client != NULL) return false;
    }
    return true;
}

void fuzz_end_round(struct fuzz *fuzz)
{
    while (fuzz->ops != NULL) {
        struct fuzz_op *op = fuzz->ops;

        if (op->promised && op->calls != 1) fuzz_fail(fuzz, "a callback (%d) never came", (int)op->kind);
        fuzz->ops = op->next;
        free(op);
    }
    while (fuzz->handles != NULL) {
        struct fuzz_handle *handle = fuzz->handles;

        fuzz->handles = handle->next;
        free(handle);
    }
}
