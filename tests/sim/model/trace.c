/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - a counterexample as a trace: who did what, step by step
 */
#include "model.h"

#include <stdio.h>

static void tell_acquire(const struct model_config *config, const struct model_state *before,
                         const struct model_step *step)
{
    int owner = model_owner(config, before, step->node);

    printf("client %u > granted by node %u (counter %u)", step->attempt + 1U, step->node + 1U, step->value);
    if (owner >= 0) printf(", where the lock of client %d had ended", owner + 1);
    if (before->reported[step->attempt]) printf(", too late to be counted");
}

static void tell_raise(const struct model_config *config, const struct model_step *step,
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

static void tell_report(const struct model_config *config, const struct model_step *step,
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
    printf(" !!%s%s%s", (step->violated & MODEL_I2) != 0 ? " I2" : "",
           (step->violated & MODEL_I3) != 0 ? " I3" : "", (step->violated & MODEL_I4) != 0 ? " I4" : "");
}

void model_tell(const struct model_config *config, const struct model_step *trace, size_t n_trace)
{
    struct model_successor next[MODEL_STEPS_MAX];
    struct model_state state;

    model_start(config, &state);
    for (size_t t = 0; t < n_trace; t++) {
        const struct model_step *step = &trace[t];
        unsigned n = model_expand(config, &state, next);
        unsigned s = 0;

        while (s < n && (next[s].step.kind != step->kind || next[s].step.attempt != step->attempt ||
                         next[s].step.node != step->node || next[s].step.value != step->value)) {
            s++;
        }
        if (s == n) {
            printf("    [%3zu] no such step: the trace is broken\n", t + 1);
            return;
        }
        printf("    [%3zu] ", t + 1);
        switch (step->kind) {
        case MODEL_ACQUIRE: tell_acquire(config, &state, step); break;
        case MODEL_RAISE: tell_raise(config, step, &state, &next[s].state); break;
        case MODEL_REPORT: tell_report(config, step, &state); break;
        case MODEL_EXPIRE: printf("node %u > the lock ends", step->node + 1U); break;
        case MODEL_LIFT:
            printf("node %u > a late message carries %u here", step->node + 1U, step->value);
            break;
        case MODEL_LOSE: printf("node %u > loses its memory: lock and counter", step->node + 1U); break;
        }
        printf("\n");
        state = next[s].state;
    }
}
