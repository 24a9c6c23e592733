/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/buggify.h"

#include <assert.h>

#define MS 1000u

/* One in so many is made to fail. */
#define REFUSALS      8u /* acquires and extends */
#define LATE_GRANTS   4u
#define LATE_RELEASES 4u
#define LOSSES        8u /* grants and renewals */

#define LOG(claim, format, ...)                                                                                        \
    runtime_log((claim)->all->runtime, QUORLOCK_LOG_WARN, "buggify: \"%s\": " format, keylist_name((claim)->keylist),  \
                __VA_ARGS__)

/* splitmix64: a small seed is as good as any. */
static uint64_t buggify_draw(struct claims *all)
{
    uint64_t z = all->fault_state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static bool happens(struct claims *all, uint32_t one_in)
{
    assert(all->faults != NULL && one_in > 0);
    return buggify_draw(all) % one_in == 0;
}

/* Return at least 1, also where there is less time. */
static uint32_t some_ms(struct claims *all, uint64_t most_us)
{
    return 1 + (uint32_t)(buggify_draw(all) % (most_us < MS ? 1 : most_us / MS));
}

/* ---- losses, and acquires that fail ---- */

static void buggify_lose(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_LOSE};

    assert(core_phase_now(claim->core) == CORE_HELD);
    if (happens(claim->all, 2)) {
        LOG(claim, "%s", "its loss is made up: it expires");
        (void)claim_step(claim, &event);
        return;
    }
    LOG(claim, "%s", "its loss is made up: the nodes' clocks step");
    for (uint32_t i = 0; i < claim->all->runtime->n_nodes; i++) {
        event = (struct core_event){.type = CORE_EV_STEP, .step = {.node = i, .before_us = CORE_NEVER}};
        (void)claim_step(claim, &event);
    }
}

static void buggify_refuse(struct claim *claim)
{
    struct core_event event = {.type = CORE_EV_CANCEL, .cancel = {.status = CORE_NOQUORUM}};

    LOG(claim, "%s", "NOQUORUM is made up");
    (void)claim_step(claim, &event);
}

/* An acquire without a wait bound is not refused. */
static void inject_fault(struct claim *claim)
{
    enum core_phase phase = core_phase_now(claim->core);

    assert(claim->all->faults != NULL && claim->fault_us == 0);
    if (phase == CORE_HELD) {
        buggify_lose(claim);
    } else if (claim->acquirer != NULL && claim->terms->config.holder.wait_us != CORE_NEVER) {
        buggify_refuse(claim);
    }
}

/* Plan a loss before the next renewal, or, without renewal, at any time of the lease. */
static void plan_loss(struct claim *claim, uint64_t now_us)
{
    const struct core_config *config = &claim->terms->config;
    uint64_t span_us = config->holder.renew_us != CORE_NEVER ? config->holder.renew_us : config->lease_us;

    assert(core_phase_now(claim->core) == CORE_HELD);
    claim->fault_us = happens(claim->all, LOSSES) ? now_us + (uint64_t)some_ms(claim->all, span_us) * MS : 0;
}

/* ---- callbacks that come late ---- */

/* Within the wait bound. */
static uint64_t held_back_until_us(const struct claim *claim)
{
    uint64_t late_us = (uint64_t)claim->late_ms * MS;
    uint64_t bound_us = core_wait_until_us(claim->core);

    if (core_phase_now(claim->core) == CORE_GRANTED) {
        uint64_t until_us = core_granted_us(claim->core) + late_us;

        return claim->terms->config.holder.wait_us != 0 && until_us > bound_us ? bound_us : until_us;
    }
    return core_release_pending(claim->core) ? claim->released.begun_us + late_us : 0;
}

static uint64_t hold_back(struct claim *claim, const struct core_update *update, uint64_t now_us)
{
    uint64_t until_us = held_back_until_us(claim);
    bool holds = core_phase_now(claim->core) == CORE_HELD;

    assert(claim->all->faults != NULL);
    if (holds && (!claim->counted || (update->log & CORE_LOG_RENEWED) != 0)) plan_loss(claim, now_us);
    return claim->all->runtime->closing || until_us <= now_us ? 0 : until_us;
}

static uint32_t draw_late_ms(struct claim *claim, uint32_t one_in)
{
    struct claims *all = claim->all;

    return happens(all, one_in) ? some_ms(all, claim->terms->config.node_timeout_us) : 0;
}

/* ---- what begins ---- */

void buggify_start(struct claims *all, uint64_t seed)
{
    static const struct claim_faults faults = {.hold_back = hold_back, .inject = inject_fault};

    if (seed == 0) return;
    all->faults = &faults;
    all->fault_state = seed;
    runtime_log(all->runtime, QUORLOCK_LOG_WARN,
                "buggify is on, with seed %llu: losses, NOQUORUM, late grants and slow releases are made up. Only for "
                "tests: take QUORLOCK_BUGGIFY out of the environment",
                (unsigned long long)seed);
}

void buggify_acquire(struct claim *claim)
{
    uint64_t now_us = runtime_now_us(claim->all->runtime);

    assert(claim->acquirer != NULL);
    if (claim->all->faults == NULL) return;
    claim->late_ms = draw_late_ms(claim, LATE_GRANTS);
    claim->fault_us = happens(claim->all, REFUSALS) ? now_us : 0;
    if (claim->fault_us != 0) runtime_wake_at(claim->all->runtime, &claim->waker, now_us);
    if (claim->late_ms != 0) LOG(claim, "a grant is reported %u ms late", claim->late_ms);
}

void buggify_extend(struct claim *claim)
{
    assert(claim->extender != NULL);
    if (claim->all->faults != NULL && happens(claim->all, REFUSALS)) buggify_refuse(claim);
}

void buggify_release(struct claim *claim)
{
    assert(claim->releaser != NULL);
    if (claim->all->faults == NULL) return;
    claim->late_ms = draw_late_ms(claim, LATE_RELEASES);
    if (claim->late_ms != 0) LOG(claim, "the end of the release is reported %u ms late", claim->late_ms);
}
