/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_stays.c - faults that stay for good, and what a calm world is held to */
#include <string.h>

#include "parts/rng.h"
#include "plan.h"
#include "runtime/owner.h"

#define MS          UINT64_C(1000)
#define FOR_GOOD_US (UINT64_C(1) << 40)
#define AWAY_US     UINT64_C(5000)
/* A hand-over in a calm world mostly takes less: far below a poll. */
#define CALM_TRIPS   16u
#define CALM_LATE_US 12000u
/* Where few of those who listen still ask, it may wait for a late turn as well: each draws from spans that grow, in
 * each but the first as if half as many waited, until one that begins so late. */
#define TURNS_GROWTH 4u
#define TURNS_FEW    8u
#define TURNS_US     40000u
/* And the longest where a server got a key that is no lock's: its refusals are believed twice (rule 6.3), so one waiter
 * must have polled two times, at intervals of up to 1.2 s, and of a crowd longer (rule 6.15). */
#define ODD_FOUND_US 2400000u
#define ODD_EACH_US  200000u
/* Until notices come to who waits for the first time: it is refused, connects and subscribes. */
#define LISTENS_TRIPS 12u
/* And its requests: some times what all of them send in one attempt, for as long as the lock is held. */
#define CALM_REQUESTS      100u
#define CALM_REQUESTS_EACH 25u

static bool is_calm(enum plan_bias bias)
{
    return bias == BIAS_CALM || bias == BIAS_FROZEN || bias == BIAS_ODD || bias == BIAS_FARTHER;
}

static bool stays(const struct plan *plan, uint8_t server)
{
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        if (plan->faults[i].for_ever && plan->faults[i].server == server) return true;
    }
    return false;
}

static struct plan_fault *add_for_good(struct plan *plan, enum plan_fault_kind kind, uint8_t server, uint64_t at_us)
{
    struct plan_fault *fault = &plan->faults[plan->n_faults++];

    *fault = (struct plan_fault){
        .kind = kind, .at_us = at_us, .for_us = FOR_GOOD_US, .server = server, .all = true, .for_ever = true};
    return fault;
}

static uint64_t latest_turn_us(uint64_t span_us, uint32_t waiters)
{
    uint64_t end_us = 0;

    for (; waiters > 2; span_us *= TURNS_GROWTH) {
        if (end_us > 0) waiters = end_us < TURNS_US && waiters / 2 >= TURNS_FEW ? waiters / 2 : 1;
        end_us += span_us;
    }
    return end_us;
}

static void bound_handovers(struct plan *plan)
{
    plan->handover_mostly_us = CALM_TRIPS * plan->round_trip_us + CALM_LATE_US;
    plan->handover_most_us = plan->handover_mostly_us + latest_turn_us(plan->round_trip_us, plan->n_actors);
}

/* All servers: round trips take many times of what they took when the connections were made. */
static void move_away(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_servers; i++)
        add_for_good(plan, FAULT_SLOW, (uint8_t)i, plan->active_us / 8)->for_us = AWAY_US;
    plan->round_trip_us += 2 * AWAY_US;
    plan->requests_most *= 3;
    bound_handovers(plan);
}

/* That needs all nodes in the end. */
static bool reconfigures(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        if (plan->faults[i].kind == FAULT_RECONFIGURE) return true;
    }
    return plan_has(plan, FEATURE_BOOTSTRAP) || plan->changes;
}

uint8_t plan_first_arbiter(const struct plan *plan)
{
    const char *key = plan_has(plan, FEATURE_PREFIX) ? "app:k0" : "k0";

    return (uint8_t)((owner_id(key, strlen(key)) >> 1) % plan->n_servers);
}

/* Of a minority, and only where a majority decides. */
void plan_stays(struct plan *plan, struct rng *rng)
{
    enum plan_bias bias = plan->bias;
    static const enum plan_fault_kind kinds[] = {FAULT_CRASH, FAULT_VANISH, FAULT_FREEZE, FAULT_CUT_TO, FAULT_CUT_FROM,
                                                 FAULT_HANG,  FAULT_REFUSE, FAULT_ODD,    FAULT_ODD,    FAULT_BUSY};
    uint32_t spare = plan->n_servers - (plan->n_servers / 2 + 1);
    uint32_t n = 0;
    uint8_t first = (uint8_t)rng_below(rng, plan->n_servers);

    if (plan_has(plan, FEATURE_ALL) || bias == BIAS_CROWD || bias == BIAS_CALM || reconfigures(plan)) return;
    if (bias == BIAS_FARTHER) {
        move_away(plan);
        return;
    }
    if (is_calm(bias)) {
        if (!rng_one_in(rng, 8)) first = plan_first_arbiter(plan);
        (void)add_for_good(plan, bias == BIAS_ODD ? FAULT_ODD : FAULT_FREEZE, first, plan->active_us / 8);
        /* Waiters pass a frozen arbiter over; whose key is odd they have to find out by their polls, and what was
         * released before their other servers would tell them. */
        if (bias == BIAS_ODD) {
            plan->handover_most_us =
                plan->n_actors * ODD_EACH_US > ODD_FOUND_US ? plan->n_actors * ODD_EACH_US : ODD_FOUND_US;
            plan->requests_most += plan->requests_most / 4;
        }
        if (bias == BIAS_FROZEN) plan->listens_us = LISTENS_TRIPS * plan->round_trip_us;
        return;
    }
    if (bias == BIAS_LIVENESS || bias == BIAS_QUEUE) n = spare;
    if (bias == BIAS_NONE && rng_one_in(rng, 6)) n = (uint32_t)rng_below(rng, spare + 1);
    for (uint32_t i = 0; i < n; i++) {
        enum plan_fault_kind kind = bias == BIAS_QUEUE ? FAULT_FREEZE : kinds[rng_below(rng, 10)];
        uint8_t server = (uint8_t)((first + i) % plan->n_servers);
        struct plan_fault *fault;

        if (stays(plan, server)) continue;
        fault = add_for_good(plan, kind, server, rng_below(rng, plan->active_us));
        fault->key = (uint8_t)rng_below(rng, plan->n_keys);
        fault->nth = (uint32_t)rng_below(rng, 8);
    }
}

void plan_calm(struct plan *plan, struct rng *rng)
{
    uint32_t delay_us = (uint32_t)rng_between(rng, 300, 700);

    if (!plan->calm) return;
    for (uint32_t i = 0; i < PLAN_SERVERS_MAX; i++) plan->servers[i].delay_us = delay_us;
    plan->round_trip_us = 2 * delay_us + plan->service_us;
    plan->requests_most = CALM_REQUESTS + CALM_REQUESTS_EACH * plan->n_actors;
    bound_handovers(plan);
}
