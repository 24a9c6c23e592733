/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controls.c - a control that never fires proves nothing, so each has a minimum and a bound of runs
 */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../src/core/control.h"

#ifdef QUORLOCK_CONTROLS

struct control {
    const char *name;
    enum core_control core;
    enum server_rule server;
    enum plan_bias bias;
    enum invariant invariant;
    uint32_t minimum;
    uint32_t runs_max;
};

/*
 * raise-unchecked also leaves out the look at the owner of the lock. Alone, `counter <= T` can be left out
 * without harm here: while a key is ours, only we raise its counter, the core raises to ever larger tokens, and
 * those of one connection stay in order. The exhaustive search (sim/model) lets raises overtake each other, and
 * needs it.
 */
static const struct control controls[] = {
    {"same-token", CONTROL_SAME_TOKEN, SERVER_SOUND, BIAS_LATE_EXECUTION, I1_EXCLUSION, 20, 20000},
    {"no-second-check", CONTROL_NO_SECOND_CHECK, SERVER_SOUND, BIAS_LATE_CLIENT, I1_EXCLUSION, 20, 20000},
    {"late-renewal-i5", CONTROL_LATE_RENEWAL, SERVER_SOUND, BIAS_LATE_CLIENT, I5_QUORUM_HOLDS, 5, 20000},
    {"late-renewal-i6", CONTROL_LATE_RENEWAL, SERVER_SOUND, BIAS_LATE_CLIENT, I6_NOTIFIED_ONCE, 20, 20000},
    {"resurrect-i1", CONTROL_RESURRECT, SERVER_RESURRECTS, BIAS_LATE_CLIENT, I1_EXCLUSION, 4, 20000},
    {"resurrect-i6", CONTROL_RESURRECT, SERVER_RESURRECTS, BIAS_LATE_CLIENT, I6_NOTIFIED_ONCE, 20, 20000},
    {"shortening-extend", CONTROL_NONE, SERVER_SHORTENS, BIAS_LATE_EXECUTION, I1_EXCLUSION, 5, 60000},
    {"unconditional-delete", CONTROL_NONE, SERVER_DELETES_ANY, BIAS_NONE, I1_EXCLUSION, 20, 20000},
    {"half-quorum", CONTROL_HALF_QUORUM, SERVER_SOUND, BIAS_NONE, I1_EXCLUSION, 20, 20000},
    {"no-guard", CONTROL_NONE, SERVER_NO_GUARD, BIAS_LOSS, I1_EXCLUSION, 20, 20000},
    {"uptime-guard", CONTROL_NONE, SERVER_UPTIME_GUARD, BIAS_LOSS, I1_EXCLUSION, 20, 20000},
    {"twins-unseen", CONTROL_NONE, SERVER_TWINS_UNSEEN, BIAS_TWINS, I1_EXCLUSION, 5, 60000},
    {"twins-forgotten", CONTROL_NONE, SERVER_TWINS_FORGOTTEN, BIAS_TWINS, I1_EXCLUSION, 5, 60000},
    {"no-write-back", CONTROL_NO_WRITE_BACK, SERVER_SOUND, BIAS_TOKENS, I3_RISES, 5, 40000},
    {"no-write-back-i2", CONTROL_NO_WRITE_BACK, SERVER_NO_FLOOR, BIAS_TOKENS, I2_UNIQUE, 20, 20000},
    {"no-write-back-i3", CONTROL_NO_WRITE_BACK, SERVER_NO_FLOOR, BIAS_TOKENS, I3_RISES, 20, 20000},
    {"raise-unchecked", CONTROL_NONE, SERVER_RAISES_ANY, BIAS_TOKENS, I2_UNIQUE, 4, 60000},
    {"pure-counters-i2", CONTROL_NONE, SERVER_NO_FLOOR, BIAS_TOKENS_LOST, I2_UNIQUE, 20, 20000},
    {"pure-counters-i3", CONTROL_NONE, SERVER_NO_FLOOR, BIAS_TOKENS_LOST, I3_RISES, 20, 20000},
    {"pure-counters-i4", CONTROL_NONE, SERVER_NO_FLOOR, BIAS_TOKENS_LOST, I4_ORDER, 20, 20000},
    {"token-unchecked", CONTROL_NONE, SERVER_TAKES_ANY, BIAS_OUTSIDE, STALE_WRITE, 20, 20000},
    {"no-back-off", CONTROL_NO_BACKOFF, SERVER_SOUND, BIAS_CROWD, I9_LIVENESS, 5, 20},
    {"no-back-off-storm", CONTROL_NO_BACKOFF, SERVER_SOUND, BIAS_CALM, REQUEST_STORM, 5, 400},
    {"lost-wake", CONTROL_LOST_WAKE, SERVER_SOUND, BIAS_CALM, I9_LIVENESS, 10, 400},
    {"never-overdue", CONTROL_NEVER_OVERDUE, SERVER_SOUND, BIAS_FROZEN, I9_LIVENESS, 20, 400},
    {"waits-for-late", CONTROL_WAITS_FOR_LATE, SERVER_SOUND, BIAS_FROZEN, I9_LIVENESS, 20, 400},
    {"stale-round-trips", CONTROL_STALE_TRIPS, SERVER_SOUND, BIAS_CALM, I9_LIVENESS, 5, 400},
    {"believes-one", CONTROL_BELIEVES_ONE, SERVER_SOUND, BIAS_ODD, I9_LIVENESS, 20, 400},
    {"wakes-in-vain", CONTROL_WAKES_IN_VAIN, SERVER_SOUND, BIAS_CALM, REQUEST_STORM, 5, 400},
};

#define N_CONTROLS (sizeof(controls) / sizeof(controls[0]))

static void break_rule(struct world *world, const struct control *control)
{
    core_control = control->core;
    world->server_rule = control->server;
    world->judged = 1u << control->invariant;
}

/* The rule of the server that is no part of what the control breaks. */
static enum server_rule sound_rule(const struct control *control)
{
    bool both = control->core != CONTROL_NONE && control->server == SERVER_NO_FLOOR;

    return both || control->server == SERVER_RAISES_ANY ? SERVER_NO_FLOOR : SERVER_SOUND;
}

static void mend(struct world *world)
{
    core_control = CONTROL_NONE;
    world->server_rule = SERVER_SOUND;
    world->judged = UINT32_MAX;
}

static bool run_seed(struct world *world, uint64_t seed, enum plan_bias bias)
{
    static struct plan plan;
    static struct totals ignored;

    plan_make(&plan, seed, bias);
    return world_run(world, &plan, &ignored);
}

/* The same seeds with all rules kept: what was caught was caught because of the rule. */
static bool run_sound(struct world *world, const struct control *control, uint64_t first_seed, uint32_t runs)
{
    mend(world);
    world->server_rule = sound_rule(control);
    for (uint32_t i = 0; i < runs; i++) {
        if (run_seed(world, first_seed + i, control->bias)) continue;
        (void)printf("sim: seed %" PRIu64 " violates %s with every rule kept: %s\n", first_seed + i,
                     trace_invariant(world->violation.invariant), world->violation.text);
        (void)printf("  replay: sim_controls --seed %" PRIu64 " --trace --bias %d\n", first_seed + i,
                     (int)control->bias);
        return false;
    }
    return true;
}

static bool run_control(struct world *world, const struct control *control, uint64_t first_seed)
{
    uint32_t hits = 0;
    uint32_t runs = 0;
    uint64_t hit_seed = 0;
    const char *invariant = trace_invariant(control->invariant);
    bool sound;

    break_rule(world, control);
    while (runs < control->runs_max && hits < control->minimum) {
        if (!run_seed(world, first_seed + runs, control->bias)) {
            hits++;
            hit_seed = first_seed + runs;
        }
        runs++;
    }
    sound = run_sound(world, control, first_seed, runs);
    (void)printf("%-22s  %-3.*s %8u %6u %8u   %s (seed %" PRIu64 ")%s\n", control->name, (int)strcspn(invariant, " "),
                 invariant, runs, hits, control->minimum, hits >= control->minimum ? "caught" : "NOT CAUGHT", hit_seed,
                 sound ? "" : ", and violated WITHOUT the control");
    (void)fflush(stdout);
    return sound && hits >= control->minimum;
}

bool controls_run(struct world *world, uint64_t first_seed)
{
    bool all = true;

    (void)printf("%-22s  %-3s %8s %6s %8s\n", "rule broken", "inv", "runs", "hits", "minimum");
    for (size_t i = 0; i < N_CONTROLS; i++) all &= run_control(world, &controls[i], first_seed);
    mend(world);
    return all;
}

bool controls_set(struct world *world, const char *name, enum plan_bias *ret_bias)
{
    for (size_t i = 0; i < N_CONTROLS; i++) {
        if (strcmp(controls[i].name, name) != 0) continue;
        break_rule(world, &controls[i]);
        *ret_bias = controls[i].bias;
        return true;
    }
    return false;
}

#else

bool controls_run(struct world *world, uint64_t first_seed)
{
    (void)world;
    (void)first_seed;
    (void)fputs("sim: this build cannot break rules; sim_controls can\n", stderr);
    return false;
}

bool controls_set(struct world *world, const char *name, enum plan_bias *ret_bias)
{
    (void)name;
    (void)ret_bias;
    return controls_run(world, 0);
}

#endif
