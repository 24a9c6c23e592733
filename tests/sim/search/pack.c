/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack.c - a state in 128 bits, the same for all renamings of nodes and attempts
 *
 * A head for each attempt (reported, token) and a column for each node (counter, unheld, a cell for each
 * attempt). No field names a node or an attempt, so a renaming only moves heads, columns and cells. Under one
 * naming of the attempts, sorted columns are the smallest; of the namings only those that sort the heads can be
 * the smallest.
 */
#include "model.h"

enum {
    HEAD_BITS = 5,
    CELL_BITS = 7,
    BASE_BITS = 5,
};

_Static_assert(MODEL_GRANTS_MAX *HEAD_BITS <= 32, "heads fit their word");
_Static_assert(BASE_BITS + MODEL_GRANTS_MAX * CELL_BITS <= 64, "a column fits its word");

struct parts {
    uint8_t head[MODEL_GRANTS_MAX];
    uint64_t base[MODEL_NODES_MAX];
    uint8_t cell[MODEL_NODES_MAX][MODEL_GRANTS_MAX];
};

static void push(struct model_packed *packed, uint64_t value, unsigned bits)
{
    packed->word[1] = packed->word[1] << bits | packed->word[0] >> (64 - bits);
    packed->word[0] = packed->word[0] << bits | value;
}

static uint64_t pop(struct model_packed *packed, unsigned bits)
{
    uint64_t value = packed->word[0] & ((UINT64_C(1) << bits) - 1);

    packed->word[0] = packed->word[0] >> bits | packed->word[1] << (64 - bits);
    packed->word[1] >>= bits;
    return value;
}

static void split(const struct model_config *config, const struct model_state *state, struct parts *ret_parts)
{
    for (unsigned a = 0; a < config->grants; a++) {
        ret_parts->head[a] = (uint8_t)(state->token[a] << 1 | (state->reported[a] ? 1 : 0));
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        ret_parts->base[i] = (uint64_t)state->counter[i] << 1 | (state->unheld[i] ? 1 : 0);
        for (unsigned a = 0; a < config->grants; a++) {
            const struct model_cell *cell = &state->cell[i][a];

            ret_parts->cell[i][a] = (uint8_t)(cell->rank << 4 | cell->seen);
        }
    }
}

static struct model_packed assemble(const struct model_config *config, const struct parts *parts, const uint8_t *naming,
                                    bool sorted)
{
    struct model_packed packed = {{0, 0}};
    uint64_t column[MODEL_NODES_MAX];

    for (unsigned i = 0; i < config->nodes; i++) {
        uint64_t value = parts->base[i];
        unsigned at = i;

        for (unsigned a = 0; a < config->grants; a++) value = value << CELL_BITS | parts->cell[i][naming[a]];
        for (; sorted && at > 0 && column[at - 1] > value; at--) column[at] = column[at - 1];
        column[at] = value;
    }
    for (unsigned a = 0; a < config->grants; a++) push(&packed, parts->head[naming[a]], HEAD_BITS);
    for (unsigned i = 0; i < config->nodes; i++) {
        push(&packed, column[i], BASE_BITS + CELL_BITS * config->grants);
    }
    return packed;
}

static bool is_smaller(const struct model_packed *one, const struct model_packed *other)
{
    return one->word[1] != other->word[1] ? one->word[1] < other->word[1] : one->word[0] < other->word[0];
}

/* Tries all orders of naming[from..] that keep the heads sorted; keeps the smallest packing. */
static void try_namings(const struct model_config *config, const struct parts *parts, uint8_t *naming, unsigned from,
                        struct model_packed *best)
{
    if (from == config->grants) {
        struct model_packed packed = assemble(config, parts, naming, true);

        if (is_smaller(&packed, best)) *best = packed;
        return;
    }
    for (unsigned a = from; a < config->grants; a++) {
        uint8_t chosen = naming[a];

        if (parts->head[chosen] != parts->head[naming[from]]) break; /* sorted: none of the rest is equal */
        naming[a] = naming[from];
        naming[from] = chosen;
        try_namings(config, parts, naming, from + 1, best);
        naming[from] = naming[a];
        naming[a] = chosen;
    }
}

struct model_packed model_pack(const struct model_config *config, const struct model_state *state, bool symmetry)
{
    struct model_packed best = {{UINT64_MAX, UINT64_MAX}};
    uint8_t naming[MODEL_GRANTS_MAX] = {0};
    struct parts parts;

    split(config, state, &parts);
    for (unsigned a = 0; a < config->grants; a++) {
        unsigned at = a;

        for (; symmetry && at > 0 && parts.head[naming[at - 1]] > parts.head[a]; at--) naming[at] = naming[at - 1];
        naming[at] = (uint8_t)a;
    }
    if (!symmetry) return assemble(config, &parts, naming, false);
    try_namings(config, &parts, naming, 0, &best);
    return best;
}

void model_unpack(const struct model_config *config, struct model_packed packed, struct model_state *ret_state)
{
    for (unsigned i = config->nodes; i-- > 0;) {
        for (unsigned a = config->grants; a-- > 0;) {
            uint64_t cell = pop(&packed, CELL_BITS);

            ret_state->cell[i][a] = (struct model_cell){.rank = (uint8_t)(cell >> 4), .seen = (uint8_t)(cell & 15)};
        }
        ret_state->unheld[i] = pop(&packed, 1) != 0;
        ret_state->counter[i] = (uint8_t)pop(&packed, 4);
    }
    for (unsigned a = config->grants; a-- > 0;) {
        ret_state->reported[a] = pop(&packed, 1) != 0;
        ret_state->token[a] = (uint8_t)pop(&packed, 4);
    }
}
