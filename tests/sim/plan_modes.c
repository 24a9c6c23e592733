/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_modes.c - which keys are names with permits, who locks which keys shared, and which locks are kept or fair */
#include "parts/rng.h"
#include "plan.h"

#define STEP_MOST_US UINT64_C(60000000)

/* One of the keys in those bits. */
static uint32_t draw_key(uint32_t keys, struct rng *rng)
{
    uint32_t n = (uint32_t)rng_below(rng, (uint64_t)__builtin_popcount(keys)), key = 0;

    for (;; key++) {
        if ((keys >> key & 1u) != 0 && n-- == 0) return key;
    }
}

static void draw_permits(struct plan *plan, struct rng *rng)
{
    for (uint32_t key = 0; key < plan->n_keys; key++) {
        bool some = rng_one_in(rng, 2) || plan->n_keys == 1 || plan->bias == BIAS_PERMITS;
        uint8_t permits = (uint8_t)rng_between(rng, 1, PLAN_PERMITS_MAX);
        uint8_t others = (uint8_t)rng_between(rng, 1, PLAN_PERMITS_MAX);

        if (!some || !plan_has(plan, FEATURE_PERMITS)) continue;
        plan->permits[key] = permits;
        if (rng_one_in(rng, 8) && others != permits) plan->other_permits[key] = others;
    }
}

/* Permits belong to one name. */
static void draw_mode(const struct plan *plan, struct plan_actor *actor, uint64_t readers_of_8, struct rng *rng)
{
    uint32_t key = draw_key(actor->keys, rng);
    bool believes = rng_one_in(rng, 4);

    if (plan->permits[key] != 0) {
        actor->keys = (uint8_t)(1u << key);
        actor->options.permits =
            believes && plan->other_permits[key] != 0 ? plan->other_permits[key] : plan->permits[key];
    }
    for (uint32_t i = 0; i < plan->n_keys; i++) {
        bool reads = rng_below(rng, 8) < readers_of_8;

        if (i != key && plan->permits[i] != 0) actor->keys &= (uint8_t) ~(1u << i);
        if (plan->permits[i] == 0 && plan_has(plan, FEATURE_SHARED) && reads) actor->shared |= (uint8_t)(1u << i);
    }
    actor->shared &= actor->keys;
}

/* An owner's holds are of one list, and of one number of permits; but one may read what another writes. */
static void follow_owner(const struct plan *plan, uint32_t index, struct plan_actor *actor)
{
    for (uint32_t i = 0; i < index && actor->owner != 0; i++) {
        const struct plan_actor *other = &plan->actors[i];

        if (other->client != actor->client || other->owner != actor->owner) continue;
        actor->shared = other->keys == actor->keys ? actor->shared : other->shared;
        actor->keys = other->keys;
        actor->options.permits = other->options.permits;
        return;
    }
}

void plan_modes(struct plan *plan, struct rng *rng)
{
    uint64_t readers_of_8 = rng_between(rng, 1, 7);

    if (!plan_has(plan, FEATURE_PERMITS) && !plan_has(plan, FEATURE_SHARED)) return;
    draw_permits(plan, rng);
    for (uint32_t i = 0; i < plan->n_actors; i++) {
        draw_mode(plan, &plan->actors[i], readers_of_8, rng);
        follow_owner(plan, i, &plan->actors[i]);
    }
}

/* Where waits have bounds, or hand-overs are measured, no lock is kept. */
static bool may_keep(const struct plan *plan)
{
    bool several = plan_has(plan, FEATURE_KEYLISTS) && plan_has(plan, FEATURE_PERMITS);

    return (plan->bias == BIAS_NONE || plan->bias == BIAS_KEEP) && !several && !plan_has(plan, FEATURE_REDISSON);
}

void plan_keep(struct plan *plan, struct rng *rng)
{
    if (!may_keep(plan) || (plan->bias != BIAS_KEEP && !rng_one_in(rng, 3))) return;
    plan->features |= 1u << FEATURE_KEEP;
    for (uint32_t i = 0; i < plan->n_actors; i++) {
        struct plan_actor *actor = &plan->actors[i];
        uint32_t keep_ms = (uint32_t)rng_between(rng, 1, actor->options.lease_ms);

        /* A list would wait for ever beside locks that keep its keys in turn, and end without notices. */
        if (plan_has(plan, FEATURE_KEYLISTS)) actor->keys = plan->actors[0].keys;
        actor->shared &= actor->keys;
        if (rng_one_in(rng, 2) || plan->bias == BIAS_KEEP) actor->options.keep_ms = keep_ms;
        if (actor->options.permits != 0 || actor->shared != 0) actor->options.keep_ms = 0;
    }
}

/* One seed in three: all locks or some. */
void plan_fair(struct plan *plan, struct rng *rng)
{
    bool all = plan->bias == BIAS_FAIR || rng_one_in(rng, 2);

    if (plan_has(plan, FEATURE_REDISSON)) return;
    if (plan->bias != BIAS_FAIR && (plan->bias != BIAS_NONE || !rng_one_in(rng, 3))) return;
    plan->features |= 1u << FEATURE_FAIR;
    for (uint32_t i = 0; i < plan->n_actors; i++) {
        struct quorlock_lock_options *options = &plan->actors[i].options;

        if (all || rng_one_in(rng, 2)) options->fair = 1;
    }
}

void plan_fair_steps(struct plan *plan, struct rng *rng)
{
    uint64_t n = rng_one_in(rng, 2) ? 0 : rng_between(rng, 1, 6);

    for (; n > 0 && plan->n_faults < PLAN_FAULTS_MAX; n--) {
        struct plan_fault *fault = &plan->faults[plan->n_faults++];

        *fault = (struct plan_fault){.kind = FAULT_STEP_BACK,
                                     .at_us = rng_below(rng, plan->active_us),
                                     .for_us = rng_between(rng, 1000, STEP_MOST_US),
                                     .server = (uint8_t)rng_below(rng, plan->n_servers)};
    }
}

void plan_fair_permits(struct plan *plan, struct rng *rng)
{
    if (plan_has(plan, FEATURE_REDISSON) || rng_one_in(rng, 2)) return;
    plan->features |= 1u << FEATURE_PERMITS;
    for (uint32_t key = 0; key < plan->n_keys; key++)
        plan->permits[key] = (uint8_t)rng_between(rng, 1, PLAN_PERMITS_MAX);
    for (uint32_t i = 0; i < plan->n_actors; i++) {
        struct plan_actor *actor = &plan->actors[i];

        actor->options.permits = plan->permits[draw_key(actor->keys, rng)];
    }
}
