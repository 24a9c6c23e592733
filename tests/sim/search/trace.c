/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - a counterexample as a trace, step by step
 */
#include "model.h"

#include <stdio.h>

static void print_acquire(const struct model_config *config, const struct model_state *before,
                          const struct model_step *step)
{
    int owner = model_owner(config, before, step->node);

    printf("client %u > granted by node %u (counter %u)", step->attempt + 1U, step->node + 1U, step->value);
    if (owner >= 0) printf(", where the lock of client %d had ended", owner + 1);
    if (before->reported[step->attempt]) printf(", too late to be counted");
}

static void print_raise(const struct model_config *config, const struct model_step *step,
                        const struct model_state *before, const struct model_state *after)
{
    int owner = model_owner(config, before, step->node);

    printf("client %u > asks node %u to raise its counter %u to %u: ", step->attempt + 1U, step->node + 1U,
           before->counter[step->node], step->value);
    if (owner != (int)step->attempt) printf("not its lock any more, but ");
    if (after->cell[step->node][step->attempt].seen == step->value) {
        printf("acknowledged, counter %u", after->counter[step->node]);
    } else {
        printf("answers %u", after->cell[step->node][step->attempt].seen);
    }
}

static void print_report(const struct model_config *config, const struct model_step *step,
                         const struct model_state *before)
{
    printf("client %u > reports token %u", step->attempt + 1U, step->value);
    if (step->violated == 0) return;
    for (unsigned a = 0; a < config->grants; a++) {
        if (before->reported[a]) printf("; client %u had reported %u", a + 1U, before->token[a]);
    }
    if (before->token[step->attempt] != 0) {
        printf("; %u was reported before it began", before->token[step->attempt]);
    }
    printf(" !!%s%s%s", (step->violated & MODEL_I2) != 0 ? " I2" : "", (step->violated & MODEL_I3) != 0 ? " I3" : "",
           (step->violated & MODEL_I4) != 0 ? " I4" : "");
}

void model_print_trace(const struct model_config *config, const struct model_successor *trace, size_t n_trace)
{
    struct model_state before;

    model_start(config, &before);
    for (size_t t = 0; t < n_trace; t++) {
        const struct model_step *step = &trace[t].step;

        printf("    [%3zu] ", t + 1);
        switch (step->kind) {
        case MODEL_ACQUIRE: print_acquire(config, &before, step); break;
        case MODEL_RAISE: print_raise(config, step, &before, &trace[t].state); break;
        case MODEL_REPORT: print_report(config, step, &before); break;
        case MODEL_EXPIRE: printf("node %u > the lock ends", step->node + 1U); break;
        case MODEL_LIFT: printf("node %u > a late message carries %u here", step->node + 1U, step->value); break;
        case MODEL_LOSE: printf("node %u > loses its memory: lock and counter", step->node + 1U); break;
        }
        printf("\n");
        before = trace[t].state;
    }
}
