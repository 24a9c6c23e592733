/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rules.c - the steps of the fencing rules, their invariants, and what may be forgotten
 */
#include "model.h"

#include <string.h>

void model_start(const struct model_config *config, struct model_state *ret_state)
{
    memset(ret_state, 0, sizeof(*ret_state));
    for (unsigned i = 0; i < config->nodes; i++) ret_state->unheld[i] = true;
}

static unsigned last_rank(const struct model_config *config, const struct model_state *state, unsigned node,
                          int *ret_attempt)
{
    unsigned largest = 0;

    for (unsigned a = 0; a < config->grants; a++) {
        unsigned rank = state->cell[node][a].rank;

        if (rank == MODEL_RANK_DONE || rank <= largest) continue;
        largest = rank;
        *ret_attempt = (int)a;
    }
    return largest;
}

int model_owner(const struct model_config *config, const struct model_state *state, unsigned node)
{
    int owner = -1;

    if (!state->unheld[node]) last_rank(config, state, node, &owner);
    return owner;
}

static uint8_t largest_counter(const struct model_config *config, const struct model_state *state)
{
    uint8_t largest = 0;

    for (unsigned i = 0; i < config->nodes; i++) {
        if (state->counter[i] > largest) largest = state->counter[i];
    }
    return largest;
}

static bool has_begun(const struct model_config *config, const struct model_state *state, unsigned attempt)
{
    for (unsigned i = 0; i < config->nodes; i++) {
        if (state->cell[i][attempt].rank != 0) return true;
    }
    return false;
}

/* Could this attempt still be shown exactly `value` by this node, or was it? Counters never fall. */
static bool can_show(const struct model_state *state, unsigned node, unsigned attempt, int owner, unsigned value)
{
    const struct model_cell *cell = &state->cell[node][attempt];

    if (cell->rank == 0) return state->counter[node] < value;
    if (cell->seen == value) return true;
    return owner == (int)attempt && state->counter[node] <= value;
}

static bool can_report(const struct model_config *config, const struct model_state *state, const int *owners,
                       unsigned attempt, unsigned value)
{
    unsigned nodes = 0;

    for (unsigned i = 0; i < config->nodes; i++) {
        nodes += can_show(state, i, attempt, owners[i], value) ? 1 : 0;
    }
    return nodes >= config->quorum;
}

/* An answer that can no longer find its Q equals is of no use; neither is the place of its holder then. */
static void forget_answers(const struct model_config *config, struct model_state *state, const int *owners,
                           unsigned attempt)
{
    bool lost = true;

    for (unsigned value = 1; value <= MODEL_VALUE_MAX && lost; value++) {
        lost = !can_report(config, state, owners, attempt, value);
    }
    if (lost) state->token[attempt] = 0;
    for (unsigned i = 0; i < config->nodes; i++) {
        struct model_cell *cell = &state->cell[i][attempt];

        if (cell->rank == 0) continue;
        if (lost && owners[i] == (int)attempt) state->unheld[i] = true;
        if (lost || (cell->seen != 0 && !can_report(config, state, owners, attempt, cell->seen))) cell->seen = 0;
        if (cell->seen == 0 && (lost || owners[i] != (int)attempt)) cell->rank = MODEL_RANK_DONE;
    }
}

/* Ranks are an order only: the same order must be the same numbers. */
static void renumber_ranks(const struct model_config *config, struct model_state *state, unsigned node)
{
    uint8_t next = 1;

    for (unsigned rank = 1; rank <= MODEL_GRANTS_MAX; rank++) {
        for (unsigned a = 0; a < config->grants; a++) {
            struct model_cell *cell = &state->cell[node][a];

            if (cell->rank != rank) continue;
            cell->rank = next++;
            break;
        }
    }
}

/* Nobody can be shown this node's counter any more; what it says is of no account, if only it is not the
 * largest. */
static bool is_settled(const struct model_config *config, const struct model_state *state, unsigned node)
{
    for (unsigned a = 0; a < config->grants; a++) {
        if (state->cell[node][a].rank == 0) return false;
    }
    return model_owner(config, state, node) < 0;
}

static bool is_finished(const struct model_config *config, const struct model_state *state)
{
    for (unsigned a = 0; a < config->grants; a++) {
        if (state->reported[a]) continue;
        for (unsigned i = 0; i < config->nodes; i++) {
            const struct model_cell *cell = &state->cell[i][a];

            /* A lost attempt has nothing but acquires that were executed or are under way, too few for Q. */
            if (cell->rank != 0 && cell->rank != MODEL_RANK_DONE) return false;
        }
        if (!has_begun(config, state, a)) return false;
        unsigned open = 0;
        for (unsigned i = 0; i < config->nodes; i++) open += state->cell[i][a].rank == 0 ? 1 : 0;
        if (open >= config->quorum) return false;
    }
    return true;
}

/*
 * Drops what no invariant can depend on any more. The holder of a node matters only while it may be counted
 * there: a raise of any other attempt does what a lift does.
 */
static void model_forget(const struct model_config *config, struct model_state *state)
{
    int owners[MODEL_NODES_MAX];

    for (unsigned i = 0; i < config->nodes; i++) {
        owners[i] = model_owner(config, state, i);
        if (owners[i] >= 0 && state->reported[owners[i]]) {
            state->unheld[i] = true;
            owners[i] = -1;
        }
    }
    for (unsigned a = 0; a < config->grants; a++) {
        if (!state->reported[a]) {
            forget_answers(config, state, owners, a);
            continue;
        }
        for (unsigned i = 0; i < config->nodes; i++) {
            struct model_cell *cell = &state->cell[i][a];

            if (cell->rank != 0 && cell->seen == 0) cell->rank = MODEL_RANK_DONE;
        }
    }
    for (unsigned i = 0; i < config->nodes; i++) {
        renumber_ranks(config, state, i);
        if (is_settled(config, state, i)) state->counter[i] = largest_counter(config, state);
    }
    if (is_finished(config, state)) {
        /* No attempt can report any more: all such worlds are one. */
        memset(state, 0, sizeof(*state));
        for (unsigned a = 0; a < config->grants; a++) {
            state->reported[a] = true;
            for (unsigned i = 0; i < config->nodes; i++) state->cell[i][a].rank = MODEL_RANK_DONE;
        }
        for (unsigned i = 0; i < config->nodes; i++) state->unheld[i] = true;
    }
}

struct expansion {
    const struct model_config *config;
    const struct model_state *from;
    struct model_successor *successors;
    unsigned n;
};

static struct model_state *add_step(struct expansion *to, enum model_kind kind, unsigned attempt, unsigned node,
                                    unsigned value)
{
    struct model_successor *next = &to->successors[to->n++];

    next->step =
        (struct model_step){.kind = kind, .attempt = (uint8_t)attempt, .node = (uint8_t)node, .value = (uint8_t)value};
    next->state = *to->from;
    return &next->state;
}

static void add_acquire(struct expansion *to, unsigned attempt, unsigned node, unsigned shown)
{
    const struct model_config *config = to->config;
    const struct model_state *from = to->from;
    struct model_state *state = add_step(to, MODEL_ACQUIRE, attempt, node, shown);
    int unused = -1;

    if (!from->reported[attempt] && !has_begun(config, from, attempt)) {
        for (unsigned a = 0; a < config->grants; a++) {
            if (from->reported[a] && from->token[a] > state->token[attempt]) state->token[attempt] = from->token[a];
        }
    }
    state->counter[node] = (uint8_t)shown;
    state->unheld[node] = false;
    state->cell[node][attempt].rank = (uint8_t)(last_rank(config, from, node, &unused) + 1);
    /* What comes after the report is not counted. */
    state->cell[node][attempt].seen = from->reported[attempt] ? 0 : (uint8_t)shown;
}

static void expand_acquire(struct expansion *to, unsigned attempt, unsigned node)
{
    const struct model_config *config = to->config;
    const struct model_state *from = to->from;
    unsigned largest = from->counter[node];

    if (from->cell[node][attempt].rank != 0) return;
    if (config->separate && !from->unheld[node]) return;
    if (config->lift && !config->separate) largest = largest_counter(config, from);
    for (unsigned shown = from->counter[node] + 1U; shown <= largest + 1; shown++) {
        add_acquire(to, attempt, node, shown);
    }
    for (unsigned f = 0; f < config->n_floors; f++) {
        if (config->floors[f] > largest + 1) add_acquire(to, attempt, node, config->floors[f]);
    }
}

/* Distinct counters shown to an attempt, each once. */
static unsigned counters_shown(const struct model_config *config, const struct model_state *state, unsigned attempt,
                               uint8_t *ret_values)
{
    unsigned seen = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < config->nodes; i++) seen |= 1U << state->cell[i][attempt].seen;
    for (unsigned value = 1; value <= MODEL_VALUE_MAX; value++) {
        if ((seen & 1U << value) != 0) ret_values[n++] = (uint8_t)value;
    }
    return n;
}

static unsigned count_shown(const struct model_config *config, const struct model_state *state, unsigned attempt,
                            unsigned least, unsigned most)
{
    unsigned n = 0;

    for (unsigned i = 0; i < config->nodes; i++) {
        unsigned seen = state->cell[i][attempt].seen;

        n += seen >= least && seen <= most ? 1 : 0;
    }
    return n;
}

/* By the rules, the target is the largest of Q answers that the client has got. */
static unsigned raise_targets(const struct model_config *config, const struct model_state *state, unsigned attempt,
                              unsigned node, uint8_t *ret_targets)
{
    uint8_t shown[MODEL_NODES_MAX];
    unsigned n_shown = counters_shown(config, state, attempt, shown);
    unsigned n = 0;

    if (config->lift && !config->separate) {
        uint8_t largest = largest_counter(config, state);

        for (uint8_t value = state->counter[node]; value <= largest; value++) ret_targets[n++] = value;
        return n;
    }
    for (unsigned s = 0; s < n_shown; s++) {
        bool allowed = config->lift || count_shown(config, state, attempt, 1, shown[s]) >= config->quorum;

        if (allowed) ret_targets[n++] = shown[s];
    }
    return n;
}

static void expand_raise(struct expansion *to, unsigned attempt, unsigned node)
{
    const struct model_config *config = to->config;
    const struct model_state *from = to->from;
    uint8_t targets[MODEL_VALUE_MAX + 1];
    unsigned n_targets = raise_targets(config, from, attempt, node, targets);
    bool ours = model_owner(config, from, node) == (int)attempt;

    if (from->reported[attempt] || from->cell[node][attempt].rank == 0) return;
    if (!ours && config->broken != MODEL_NO_OWNER) return;
    for (unsigned t = 0; t < n_targets; t++) {
        uint8_t target = targets[t];
        bool store = from->counter[node] <= target;
        uint8_t shown = store ? target : from->counter[node];
        uint8_t counter = shown;

        if (config->broken == MODEL_ACK_ANY) shown = target;
        if (config->broken == MODEL_WRITE_ANY) shown = counter = target;
        if (shown == from->cell[node][attempt].seen && counter == from->counter[node]) continue;
        struct model_state *state = add_step(to, MODEL_RAISE, attempt, node, target);
        state->counter[node] = counter;
        state->cell[node][attempt].seen = shown;
    }
}

static unsigned judge_report(const struct model_config *config, const struct model_state *state, unsigned attempt,
                             unsigned token)
{
    unsigned violated = token > state->token[attempt] ? 0 : MODEL_I3;

    for (unsigned a = 0; a < config->grants; a++) {
        if (!state->reported[a]) continue;
        if (state->token[a] == token) violated |= MODEL_I2;
        for (unsigned i = 0; i < config->nodes; i++) {
            const struct model_cell *mine = &state->cell[i][attempt];
            const struct model_cell *other = &state->cell[i][a];
            bool both = mine->seen == token && other->seen != 0 && mine->rank != MODEL_RANK_DONE &&
                        other->rank != MODEL_RANK_DONE;

            if (both && (mine->rank > other->rank) != (token > state->token[a])) violated |= MODEL_I4;
        }
    }
    return violated;
}

/* Every node that showed the token is taken as counted: whichever Q of them were, I4 holds for them too. */
static void expand_report(struct expansion *to, unsigned attempt)
{
    const struct model_config *config = to->config;
    const struct model_state *from = to->from;
    uint8_t tokens[MODEL_NODES_MAX];
    unsigned n_tokens = counters_shown(config, from, attempt, tokens);

    if (from->reported[attempt]) return;
    for (unsigned t = 0; t < n_tokens; t++) {
        unsigned least = config->broken == MODEL_NO_WRITE_BACK ? 1 : tokens[t];

        if (count_shown(config, from, attempt, least, tokens[t]) < config->quorum) continue;
        struct model_state *state = add_step(to, MODEL_REPORT, attempt, 0, tokens[t]);
        to->successors[to->n - 1].step.violated = judge_report(config, from, attempt, tokens[t]);
        state->reported[attempt] = true;
        state->token[attempt] = tokens[t];
        for (unsigned i = 0; i < config->nodes; i++) {
            struct model_cell *cell = &state->cell[i][attempt];

            cell->seen = cell->seen == tokens[t] ? 1 : 0;
        }
    }
}

static void expand_node(struct expansion *to, unsigned node)
{
    const struct model_config *config = to->config;
    const struct model_state *from = to->from;
    unsigned largest = config->lift && config->separate ? largest_counter(config, from) : 0;

    for (unsigned value = from->counter[node] + 1U; value <= largest; value++) {
        add_step(to, MODEL_LIFT, 0, node, value)->counter[node] = (uint8_t)value;
    }
    if (config->separate && !from->unheld[node]) {
        add_step(to, MODEL_EXPIRE, 0, node, 0)->unheld[node] = true;
    }
    if (config->broken == MODEL_FORGETFUL && from->counter[node] != 0) {
        struct model_state *state = add_step(to, MODEL_LOSE, 0, node, 0);

        state->counter[node] = 0;
        state->unheld[node] = true;
    }
}

unsigned model_expand(const struct model_config *config, const struct model_state *state,
                      struct model_successor *ret_successors)
{
    struct expansion to = {.config = config, .from = state, .successors = ret_successors};

    for (unsigned a = 0; a < config->grants; a++) {
        for (unsigned i = 0; i < config->nodes; i++) {
            expand_acquire(&to, a, i);
            expand_raise(&to, a, i);
        }
        expand_report(&to, a);
    }
    for (unsigned i = 0; i < config->nodes; i++) expand_node(&to, i);
    if (config->forget) {
        for (unsigned s = 0; s < to.n; s++) model_forget(config, &to.successors[s].state);
    }
    return to.n;
}
