/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search.c - breadth first over all states: each is kept once, packed, with the state it was first reached from
 *
 * States lie in blocks in the order they were found, which is also the order in which they are visited. The
 * table that distinguishes known states from new ones holds their numbers, open addressing, linear probing.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BLOCK_BITS = 18,
    BLOCK_STATES = 1 << BLOCK_BITS,
    BLOCKS_MAX = 1 << (32 - BLOCK_BITS),
    LOOK_AT_CLOCK = 4096, /* states between two looks at the clock */
};

struct block {
    struct model_packed state[BLOCK_STATES];
    uint32_t parent[BLOCK_STATES];
};

struct store {
    struct block *block[BLOCKS_MAX];
    uint32_t *slot; /* number + 1 of a state, 0: empty */
    size_t n_slots; /* a power of two */
    size_t n;
};

/* Of the processor, so that other work on the machine does not count. */
static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct model_packed *store_state(const struct store *store, size_t number)
{
    return &store->block[number >> BLOCK_BITS]->state[number & (BLOCK_STATES - 1)];
}

static size_t hash(struct model_packed packed)
{
    uint64_t value = packed.word[0] * UINT64_C(0x9E3779B97F4A7C15);

    value ^= packed.word[1] + (value >> 32);
    value *= UINT64_C(0xD6E8FEB86659FD93);
    return (size_t)(value ^ value >> 32);
}

static void store_free(struct store *store)
{
    for (size_t b = 0; b < BLOCKS_MAX && store->block[b] != NULL; b++) free(store->block[b]);
    free(store->slot);
    free(store);
}

/* Where the state is in the table, or would be. */
static size_t find_place(const struct store *store, struct model_packed packed)
{
    size_t at = hash(packed) & (store->n_slots - 1);

    for (; store->slot[at] != 0; at = (at + 1) & (store->n_slots - 1)) {
        const struct model_packed *known = store_state(store, store->slot[at] - 1);

        if (known->word[0] == packed.word[0] && known->word[1] == packed.word[1]) break;
    }
    return at;
}

static bool grow_table(struct store *store)
{
    size_t n_slots = store->n_slots != 0 ? store->n_slots * 2 : (size_t)1 << 16;
    uint32_t *old = store->slot;

    store->slot = calloc(n_slots, sizeof(*store->slot));
    if (store->slot == NULL) {
        store->slot = old;
        return false;
    }
    free(old);
    store->n_slots = n_slots;
    for (size_t number = 0; number < store->n; number++) {
        store->slot[find_place(store, *store_state(store, number))] = (uint32_t)(number + 1);
    }
    return true;
}

/* Adds a state unless it is known. False: no room. */
static bool store_add(struct store *store, struct model_packed packed, uint32_t parent)
{
    size_t at;

    if (store->n * 5 >= store->n_slots * 3 && !grow_table(store)) return false;
    at = find_place(store, packed);
    if (store->slot[at] != 0) return true;
    if (store->n + 1 >= UINT32_MAX) return false;
    struct block **block = &store->block[store->n >> BLOCK_BITS];
    if (*block == NULL) *block = malloc(sizeof(**block));
    if (*block == NULL) return false;
    (*block)->state[store->n & (BLOCK_STATES - 1)] = packed;
    (*block)->parent[store->n & (BLOCK_STATES - 1)] = parent;
    store->slot[at] = (uint32_t)++store->n;
    return true;
}

static size_t path_to(const struct store *store, size_t number, uint32_t *ret_path, size_t path_max)
{
    size_t n = 0;

    for (; number != 0 && n < path_max; n++) {
        if (ret_path != NULL) ret_path[path_max - 1 - n] = (uint32_t)number;
        number = store->block[number >> BLOCK_BITS]->parent[number & (BLOCK_STATES - 1)];
    }
    return n;
}

/* The kept states have lost their names: walks the path again from the start in one naming. */
static void retrace(const struct model_config *config, const struct store *store, size_t last,
                    struct model_result *result)
{
    size_t n_path = path_to(store, last, NULL, SIZE_MAX);
    uint32_t *path = calloc(n_path + 1, sizeof(*path));
    struct model_successor next[MODEL_STEPS_MAX];
    struct model_state state;
    unsigned n;

    result->trace = calloc(n_path + 1, sizeof(*result->trace));
    if (path == NULL || result->trace == NULL) goto done;
    path_to(store, last, path, n_path);
    model_start(config, &state);
    for (size_t p = 0; p < n_path; p++) {
        const struct model_packed *wanted = store_state(store, path[p]);
        unsigned s = 0;

        n = model_expand(config, &state, next);
        for (; s < n; s++) {
            struct model_packed packed = model_pack(config, &next[s].state, config->symmetry);

            if (memcmp(&packed, wanted, sizeof(packed)) == 0) break;
        }
        if (s == n) goto done; /* not the same naming: the trace just ends */
        result->trace[result->n_trace++] = next[s];
        state = next[s].state;
    }
    n = model_expand(config, &state, next);
    for (unsigned s = 0; s < n; s++) {
        if ((next[s].step.violated & config->watched) == 0) continue;
        result->trace[result->n_trace++] = next[s];
        break;
    }
done:
    free(path);
}

static void note_outcome(const struct model_config *config, const struct model_state *from,
                         const struct model_step *step, struct model_result *result)
{
    unsigned reported = 1;

    for (unsigned a = 0; a < config->grants; a++) {
        unsigned other = a != step->attempt && from->reported[a] ? from->token[a] : 0;
        unsigned outcome = ((unsigned)step->value << 4 | from->token[step->attempt]) << 4 | other;

        result->outcomes.bits[outcome / 64] |= UINT64_C(1) << outcome % 64;
        reported += from->reported[a] ? 1 : 0;
    }
    if (reported > result->reported_max) result->reported_max = reported;
}

static void give_up(struct model_result *result, const char *why)
{
    result->verdict = MODEL_GAVE_UP;
    result->gave_up = why;
}

/* Visits one state; false ends the search. */
static bool visit(const struct model_config *config, struct store *store, size_t number, struct model_successor *next,
                  struct model_result *result)
{
    struct model_state state = {0};
    unsigned n;

    model_unpack(config, *store_state(store, number), &state);
    n = model_expand(config, &state, next);
    result->steps += n;
    for (unsigned s = 0; s < n; s++) {
        if (next[s].step.kind == MODEL_REPORT) note_outcome(config, &state, &next[s].step, result);
        for (unsigned i = 0; i < config->nodes; i++) {
            if (next[s].state.counter[i] > result->value_max) result->value_max = next[s].state.counter[i];
        }
        if ((next[s].step.violated & config->watched) != 0) {
            result->verdict = MODEL_VIOLATED;
            result->violated = next[s].step.violated & config->watched;
            return false;
        }
        if (!store_add(store, model_pack(config, &next[s].state, config->symmetry), (uint32_t)number)) {
            give_up(result, "out of memory");
            return false;
        }
    }
    if (result->value_max >= MODEL_VALUE_MAX) {
        give_up(result, "a counter outgrew its four bits");
        return false;
    }
    return true;
}

static void count_renamed(const struct model_config *config, const struct store *store, struct model_result *result)
{
    struct store *renamed = calloc(1, sizeof(*renamed));

    for (size_t number = 0; renamed != NULL && number < store->n; number++) {
        struct model_state state = {0};

        model_unpack(config, *store_state(store, number), &state);
        if (!store_add(renamed, model_pack(config, &state, true), 0)) give_up(result, "out of memory");
    }
    if (renamed == NULL) {
        give_up(result, "out of memory");
        return;
    }
    result->renamed = renamed->n;
    store_free(renamed);
}

void model_search(const struct model_config *config, double seconds_max, struct model_result *ret_result)
{
    struct model_result result = {.verdict = MODEL_EXHAUSTED};
    struct store *store = calloc(1, sizeof(*store));
    struct model_successor *next = calloc(MODEL_STEPS_MAX, sizeof(*next));
    double began = now_seconds();
    size_t number = 0;
    size_t depth_end = 1;
    struct model_state start;

    model_start(config, &start);
    if (store == NULL || next == NULL || !store_add(store, model_pack(config, &start, config->symmetry), 0)) {
        give_up(&result, "out of memory");
        goto done;
    }
    for (; number < store->n; number++) {
        if (number == depth_end) {
            result.depth++;
            depth_end = store->n;
        }
        if (number % LOOK_AT_CLOCK == 0 && now_seconds() - began > seconds_max) {
            give_up(&result, "out of time");
            break;
        }
        if (!visit(config, store, number, next, &result)) break;
    }
    if (result.verdict == MODEL_VIOLATED) retrace(config, store, number, &result);
    if (result.verdict == MODEL_EXHAUSTED && !config->symmetry) count_renamed(config, store, &result);
done:
    if (store != NULL) {
        result.states = store->n;
        store_free(store);
    }
    free(next);
    result.seconds = now_seconds() - began;
    *ret_result = result;
}
