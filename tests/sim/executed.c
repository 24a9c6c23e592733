/* SPDX-License-Identifier: BSD-3-Clause */
/* executed.c - what servers execute, and which keys that changes, as the judge and the totals see it */
#include <string.h>

#include "actions.h"
#include "handover.h"
#include "holds.h"
#include "judge.h"
#include "rare.h"
#include "trace.h"

#include "executed.h"

static void on_changed(void *arg, const char *key, size_t length)
{
    struct site *site = arg;

    if (length == 14 && memcmp(key, "quorlock:guard", 14) == 0) {
        site->world->totals->of[TOTAL_GUARD_WRITTEN]++;
        for (uint32_t i = 0; i < site->world->plan->n_actors; i++) {
            site->world->totals->of[TOTAL_GUARD_VOTING] += site->world->actors[i].acquiring != NULL;
        }
        if (holds_is_quarantined(site->world, site->index)) rare_quarantined(site);
        return;
    }
    holds_changed(site, key, length);
}

/* Of locks, and not of connections. */
static bool is_request(const char *text)
{
    static const char *const names[] = {"SET ", "acquire",  "extend",    "release", "raise",
                                        "peek", "combined", "redisson_", "fair_"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(text, names[i], strlen(names[i])) == 0) return true;
    }
    return false;
}

/* What takes or prolongs a lock; no question about rights. */
static bool is_taking(const char *text)
{
    static const char *const names[] = {
        "SET ",          "acquire",      "extend",      "permit",           "shared_acquire",
        "shared_extend", "fair_acquire", "fair_permit", "redisson_acquire", "redisson_extend"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(text, names[i], strlen(names[i])) == 0)
            return strstr(text, " release ") == NULL && strstr(text, " NX XX") == NULL;
    }
    return false;
}

static void on_executed(void *arg, struct session *session, const char *text)
{
    struct site *site = arg;
    struct world *world = site->world;
    uint64_t *of = world->totals->of;

    rare_executed(site, session);
    if (server_is_resent(session) && is_taking(text))
        judge_violated(world, I14_GIVEN_UP, "server %u executes \"%s\", which its client's kernel sent again",
                       site->index, text);
    world->commands++;
    world->totals->commands++;
    world_mix(world, world_hash(text, strlen(text)));
    TRACE(world, "server %u  %s", site->index, text);
    of[TOTAL_PEEKS] += strncmp(text, "peek", 4) == 0;
    of[TOTAL_RAISES] += strncmp(text, "raise", 5) == 0;
    of[TOTAL_BATCHES] += strncmp(text, "combined", 8) == 0;
    of[TOTAL_SUBSCRIBES] += strncmp(text, "SUBSCRIBE", 9) == 0;
    if (world->plan->calm && is_request(text)) handover_asked(world);
}

const struct model_events *executed_events(struct world *world, uint32_t server)
{
    struct site *site = &world->sites[server];

    site->events = (struct model_events){.changed = on_changed,
                                         .executed = on_executed,
                                         .replied = world->actions ? actions_replied : NULL,
                                         .arg = site};
    return &site->events;
}
