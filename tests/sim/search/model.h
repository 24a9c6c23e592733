/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - the fencing rules as a small world, searched exhaustively
 *
 * The world: N nodes that each keep a counter and a lock, and G attempts to take that one lock with a token. It
 * has no clock: whatever timing could cause happens at any moment, or never. Messages of an attempt do this,
 * each in one atomic step at the node:
 *
 * - acquire, where the lock is not held: counter := max(counter + 1, floor), lock := ours, show the counter
 * - raise T, only where the lock is ours: if counter <= T then counter := T; show the counter
 *
 * The client reports T once Q nodes have shown it T. Tokens must be unique (I2), above every token that was
 * reported before the attempt began (I3), and must rise along the order in which two holders had a node that
 * both of them counted (I4).
 *
 * Why so few steps leave nothing out (every simplification allows more than the rules do):
 *
 * - A lost message, a dead client or a frozen node is a step that never happens.
 * - An answer is noted in the step that makes it, and the client may act on it at any later time. `seen` keeps the
 *   last one of each node; a newer answer that the client has not got yet is a lift to the node.
 * - The rules raise to the largest counter shown. Here the client may raise to any counter shown, at any time.
 * - Releases, repairs and raises of ended attempts carry tokens to any node, also one that another holds by then: any
 *   counter may be lifted at any time, up to the largest counter there is. That matters only to the next acquire or
 *   raise at the node, so it is done in the same step: an acquire shows any counter from its own increment to the
 *   largest + 1, a raise any from its own to the largest.
 * - A floor P above the largest + 1 leaves a gap: `floors` names such values, and any message may carry any.
 * - A lease may end at any time before the next owner's acquire; it ends in the step of that acquire. (`separate`
 *   makes lifts and ends steps of their own.)
 * - An attempt begins when its first message is executed, the latest moment possible.
 * - An attempt asks a node to acquire once (a retry is a new attempt), so counters rise G x N times at most.
 *
 * What makes the search small without losing anything: of all renamings of nodes and attempts the smallest is
 * kept, and what cannot matter any more is forgotten (model_forget). `--check` searches a smaller world also
 * without any of these, and compares what can be reported.
 */
#ifndef QUORLOCK_MODEL_H
#define QUORLOCK_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MODEL_NODES_MAX = 5,
    MODEL_GRANTS_MAX = 4,
    MODEL_VALUE_MAX = 15, /* four bits a value */
    MODEL_STEPS_MAX = 320,
    MODEL_FLOORS_MAX = 3,
    MODEL_RANK_DONE = 7, /* acquired here, but its place in the order cannot matter any more */
};

enum model_invariant {
    MODEL_I2 = 1, /* tokens are unique */
    MODEL_I3 = 2, /* tokens rise in real time */
    MODEL_I4 = 4, /* token order is hold order on the nodes both count */
};

/* The rule that a negative control breaks. */
enum model_broken {
    MODEL_SOUND,
    MODEL_NO_WRITE_BACK, /* the largest counter of Q answers is reported without a raise */
    MODEL_ACK_ANY,       /* a raise is acknowledged although the counter is above T already */
    MODEL_WRITE_ANY,     /* a raise stores T although the counter is above T already */
    MODEL_NO_OWNER,      /* a raise does not look at the owner of the lock */
    MODEL_HALF,          /* Q = N/2 */
    MODEL_FORGETFUL,     /* a node loses its counter, and there is no floor */
};

struct model_config {
    unsigned nodes;
    unsigned grants;
    unsigned quorum;
    enum model_broken broken;
    uint8_t floors[MODEL_FLOORS_MAX]; /* P of an acquire: none, or any of these, anew for each message */
    unsigned n_floors;
    bool lift;        /* late messages of all kinds; off in the controls: their traces show the rules by the letter */
    bool symmetry;    /* renamed worlds are one */
    bool forget;      /* drop what cannot matter any more */
    bool separate;    /* lifts, and the end of a lock, are steps of their own */
    unsigned watched; /* invariants whose violation ends the search */
};

/* What one attempt has to do with one node. */
struct model_cell {
    uint8_t rank; /* 0: acquire not executed; else its place in the order of this node's holders */
    uint8_t seen; /* the counter it was last shown; once reported: 1 where this node was counted */
};

struct model_state {
    uint8_t counter[MODEL_NODES_MAX];
    bool unheld[MODEL_NODES_MAX]; /* else the attempt with the largest rank holds it */
    bool reported[MODEL_GRANTS_MAX];
    uint8_t token[MODEL_GRANTS_MAX]; /* reported; before that the largest reported before it began */
    struct model_cell cell[MODEL_NODES_MAX][MODEL_GRANTS_MAX];
};

enum model_kind { MODEL_ACQUIRE, MODEL_EXPIRE, MODEL_RAISE, MODEL_LIFT, MODEL_REPORT, MODEL_LOSE };

struct model_step {
    enum model_kind kind;
    uint8_t attempt;
    uint8_t node;
    uint8_t value; /* acquire: the counter shown; raise, lift: the target; report: the token */
    unsigned violated;
};

struct model_successor {
    struct model_step step;
    struct model_state state;
};

struct model_packed {
    uint64_t word[2];
};

/* The world before anything happened. */
void model_start(const struct model_config *config, struct model_state *ret_state);

/* All steps possible in a state; returns their number, at most MODEL_STEPS_MAX. */
unsigned model_expand(const struct model_config *config, const struct model_state *state,
                      struct model_successor *ret_successors);

/* The attempt that holds a node's lock, or -1. */
int model_owner(const struct model_config *config, const struct model_state *state, unsigned node);

/* A state in 128 bits; with symmetry, the smallest of all its renamings. */
struct model_packed model_pack(const struct model_config *config, const struct model_state *state, bool symmetry);
void model_unpack(const struct model_config *config, struct model_packed packed, struct model_state *ret_state);

enum model_verdict {
    MODEL_EXHAUSTED, /* every state was visited, nothing watched was violated */
    MODEL_VIOLATED,
    MODEL_GAVE_UP, /* out of time, memory or values: says nothing about the rules */
};

/* (token, largest token before it began, another's token): what an attempt can report, as a set. */
struct model_outcomes {
    uint64_t bits[(MODEL_VALUE_MAX + 1) * (MODEL_VALUE_MAX + 1) * (MODEL_VALUE_MAX + 1) / 64];
};

struct model_result {
    enum model_verdict verdict;
    const char *gave_up; /* why */
    size_t states, steps;
    unsigned depth; /* steps from the start to the farthest state */
    unsigned value_max;
    unsigned reported_max; /* the most attempts that reported in one run */
    size_t renamed;        /* states left when renamings are counted once; only without symmetry */
    double seconds;
    unsigned violated;
    struct model_outcomes outcomes;
    struct model_successor *trace; /* to be freed by the caller; in one fixed naming */
    size_t n_trace;
};

/* Visits every state, nearest first; single thread, owns no memory after its return but ret_result->trace. */
void model_search(const struct model_config *config, double seconds_max, struct model_result *ret_result);

/* Prints a trace on stdout. */
void model_print_trace(const struct model_config *config, const struct model_successor *trace, size_t n_trace);

#endif
