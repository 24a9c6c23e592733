/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - the invariants, seen from outside: by what users are told, and by what servers hold
 *
 * A validity window opens in the callback of a grant. It ends at the first of these: a call of release, free or close;
 * the end that a reported loss leaves; the end of the last value of quorlock_lock_valid_ms(), by the machine's clock.
 */
#include "judge.h"

#include <stdarg.h>
#include <string.h>

#include "actions.h"
#include "actor.h"
#include "election.h"
#include "fair.h"
#include "handover.h"
#include "holds.h"
#include "keep.h"
#include "membership.h"
#include "modes.h"
#include "passing.h"
#include "process.h"
#include "rare.h"
#include "tokens.h"
#include "trace.h"

#define GREW_US 1000u
/* Other threads may read so much less, because they read both clocks each time. */
#define SHOWN_LESS_MS 2u

static bool is_overlap(enum invariant invariant)
{
    return invariant == I1_EXCLUSION || invariant == I12_PERMITS || invariant == I13_READERS;
}

void judge_violated(struct world *world, enum invariant invariant, const char *format, ...)
{
    va_list arguments;

    if (world->over) return;
    if ((world->judged & (1u << invariant)) == 0) {
        if (world->plan->outside) totals_outside(world->totals, is_overlap(invariant));
        return;
    }
    world->over = true;
    world->violation.invariant = invariant;
    world->violation.at_us = world_now(world);
    va_start(arguments, format);
    /* A file of two programs is looked at twice in one run; the second time va_start is overlooked.
     * NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    (void)vsnprintf(world->violation.text, sizeof(world->violation.text), format, arguments);
    va_end(arguments);
    TRACE(world, "VIOLATION of %s: %s", trace_invariant(invariant), world->violation.text);
}

static void violated_if(struct actor *actor, enum invariant invariant, bool violated, const char *what)
{
    if (violated) judge_violated(actor->world, invariant, "actor %u %s", actor->index, what);
}

/* ---- reading ---- */

void judge_shown(struct process *process, const struct expiry *shown, const struct expiry_clock *clock,
                 uint64_t known_ms)
{
    struct world *world = process->world;
    struct system system = *machine_system(process->machine);
    /* From lost_at on, other threads read 0 at once. The loop's clock may be a little behind. */
    bool ends = atomic_load(&clock->last_us) + SHOWN_LESS_MS * MS >= atomic_load(&shown->lost_at_us);
    uint64_t left_ms;

    world->judging = true;
    left_ms = expiry_left_us(shown, clock, &system) / MS;
    world->judging = false;
    if (left_ms > known_ms || (!ends && left_ms + SHOWN_LESS_MS < known_ms)) {
        judge_violated(world, I6_TOLD_ONCE, "other threads of process %u read a validity of %llu ms, its loop %llu",
                       process->index, (unsigned long long)left_ms, (unsigned long long)known_ms);
    }
}

static uint32_t valid_ms(struct actor *actor)
{
    uint32_t ms;

    actor->world->judging = true;
    ms = quorlock_lock_valid_ms(actor->lock);
    actor->world->judging = false;
    judge_shown(actor_process(actor), &actor->shown, &actor_client(actor)->clock, ms);
    return ms;
}

static bool is_void(const struct actor *actor)
{
    return (actor->plan->keys & actor->world->plan->keys_void) != 0;
}

/* refresh - update the window by the validity that the users of the process can read now. */
static void refresh(struct actor *actor)
{
    struct window *window = &actor->window;
    uint64_t until_us;

    if (!window->open || actor->lost || !actor_process(actor)->alive) return;
    until_us = valid_ms(actor) * MS;
    if (until_us == 0) {
        if (!window->ended) actions_holder(actor, "ended");
        window->ended = true;
        return;
    }
    if (window->ended) actions_holder(actor, "renewed");
    violated_if(actor, I6_TOLD_ONCE, window->ended, "has validity, but had none a moment ago");
    until_us += process_now_us(actor_process(actor));
    if (until_us <= window->until_us) return;
    if (until_us > window->until_us + GREW_US) {
        window->fresh = true;
        actor->world->totals->of[TOTAL_RENEWED]++;
    }
    window->until_us = until_us;
    if (window->fresh) actions_holder(actor, "renewed");
}

bool judge_is_open(struct actor *actor)
{
    refresh(actor);
    return actor->window.open && process_now_us(actor_process(actor)) < actor->window.until_us;
}

void judge_stalls(struct process *process)
{
    struct world *world = process->world;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        if (actor_process(&world->actors[i]) == process) refresh(&world->actors[i]);
    }
}

/* ---- I1 ---- */

static void check_pair(struct actor *actor, const struct held *other, const char *whom, uint32_t index)
{
    enum invariant violated = holds_conflict(&actor->window.held, other);

    if (violated == INVARIANT_NONE) return;
    judge_violated(actor->world, violated, "actor %u and %s %u both hold a key%s", actor->index, whom, index,
                   violated == I13_READERS ? ", one of them shared" : "");
}

static void check_ghosts(struct actor *actor)
{
    struct world *world = actor->world;

    for (uint32_t i = 0; i < world->n_ghosts; i++) {
        const struct ghost *ghost = &world->ghosts[i];

        if (world_now(world) < ghost->until_us) check_pair(actor, &ghost->held, "the dead actor", ghost->actor);
    }
}

/* check_peers - check the window against the lock of a plain peer, which is a writer. */
static void check_peers(struct actor *actor)
{
    struct world *world = actor->world;
    const struct peer *peer = &world->peer;
    const struct held held = {.keys = (uint8_t)(1u << peer->key)};

    if (!peer->held || world_now(world) >= peer->until_us || actor->window.held.permits != 0) return;
    check_pair(actor, &held, "peer", 0);
}

struct holders {
    uint64_t tokens[GHOSTS_MAX + PLAN_ACTORS_MAX];
    uint32_t n;
};

static void count_holder(struct holders *holders, uint64_t token_hash)
{
    for (uint32_t i = 0; i < holders->n; i++) {
        if (holders->tokens[i] == token_hash) return;
    }
    holders->tokens[holders->n++] = token_hash;
}

/* check_permits - check I12: no more holders than permits, and all of them with the same number of permits. */
static void check_permits(struct actor *actor)
{
    struct world *world = actor->world;
    const struct held *held = &actor->window.held;
    struct holders holders = {.n = 0};

    count_holder(&holders, actor->window.token_hash);
    for (uint32_t i = 0; i < world->n_ghosts; i++) {
        const struct ghost *ghost = &world->ghosts[i];

        if (ghost->held.keys == held->keys && world_now(world) < ghost->until_us)
            count_holder(&holders, ghost->token_hash);
    }
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *other = &world->actors[i];

        if (other == actor || !other->window.open || other->window.held.keys != held->keys) continue;
        if (!judge_is_open(other)) continue;
        count_holder(&holders, other->window.token_hash);
        if (other->window.held.permits == held->permits) continue;
        judge_violated(world, I12_PERMITS, "actor %u holds one of %u permits, and actor %u one of %u of the same name",
                       actor->index, held->permits, i, other->window.held.permits);
    }
    world->totals->of[TOTAL_PERMITS_ALL] += holders.n == held->permits && holders.n > 1;
    if (holders.n <= held->permits) return;
    judge_violated(world, I12_PERMITS, "with actor %u %u hold a permit of %u", actor->index, holders.n, held->permits);
}

/* check_exclusion - check a window that opens or grows. A reported grant without validity counts as a window, too,
 * unless the machine stalled between its look at the clock and the callback. */
static void check_exclusion(struct actor *actor, bool at_grant)
{
    struct world *world = actor->world;

    if (is_void(actor) || (!at_grant && !judge_is_open(actor))) return;
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *other = &world->actors[i];

        if (other == actor || !other->window.open || other->window.token_hash == actor->window.token_hash) continue;
        if (holds_conflict(&actor->window.held, &other->window.held) != INVARIANT_NONE && judge_is_open(other))
            check_pair(actor, &other->window.held, "actor", i);
    }
    check_ghosts(actor);
    check_peers(actor);
    keep_check(actor);
    if (actor->window.held.permits != 0) check_permits(actor);
}

/* ---- I5 ---- */

/* quorum_until_us - return until when a quorum holds the keys, and how many servers have them. */
static uint64_t quorum_until_us(struct actor *actor, uint32_t *ret_holders)
{
    const struct world *world = actor->world;
    uint32_t client = actor->plan->client;
    uint64_t ends_us[PLAN_SERVERS_MAX] = {0};

    *ret_holders = 0;
    for (uint32_t i = 0; i < membership_set(world, client)->n; i++) {
        uint64_t end_us = holds_until_us(actor->world, membership_server(world, client, i), &actor->window);

        *ret_holders += end_us != 0;
        for (uint32_t k = 0; k <= i; k++) {
            uint64_t moved_us = ends_us[k];

            if (moved_us >= end_us) continue;
            ends_us[k] = end_us;
            end_us = moved_us;
        }
    }
    return ends_us[membership_quorum(world, client) - 1];
}

void judge_quorum(struct actor *actor)
{
    struct world *world = actor->world;
    struct window *window = &actor->window;
    uint64_t until_us = process_true_us(actor_process(actor), window->until_us);
    uint32_t holders;
    uint64_t quorum_us;

    window->fresh = false;
    if (is_void(actor) || world_now(world) >= until_us) return;
    quorum_us = quorum_until_us(actor, &holders);
    world->totals->of[TOTAL_DEGRADED] += holders < membership_set(world, actor->plan->client)->n;
    if (quorum_us >= until_us) return;
    judge_violated(world, I5_QUORUM_HOLDS,
                   "actor %u reports validity until %llu us, but a quorum holds its key until %llu us only (%u nodes "
                   "hold it)",
                   actor->index, (unsigned long long)until_us, (unsigned long long)quorum_us, holders);
}

/* ---- grants ---- */

/* I7: a fresh grant stands on a quorum of servers that had a vote when they said yes. */
static void check_votes(struct actor *actor)
{
    struct world *world = actor->world;
    const struct plan_client *client = &world->plan->clients[actor->plan->client];
    uint32_t votes = 0;
    uint32_t quarantined = 0;

    if (client->twins) return;
    for (uint32_t i = 0; i < membership_set(world, actor->plan->client)->n; i++) {
        struct site *site = &world->sites[membership_server(world, actor->plan->client, i)];
        const struct taking *taking = holds_taking(site, &actor->window);
        /* The client measures what is left of a quarantine by its own clock. */
        bool late = taking != NULL && taking->quarantined && !site->stepped_back;

        votes += taking != NULL && !late;
        quarantined += late;
    }
    if (client->guard == QUORLOCK_GUARD_OFF) votes += quarantined;
    if (votes >= membership_quorum(world, actor->plan->client)) return;
    judge_violated(world, I7_FOREIGN_VOTE, "actor %u is granted by %u nodes with a vote, and %u in quarantine",
                   actor->index, votes, quarantined);
}

/* is_nested - return whether another handle of the owner holds the keys. */
static bool is_nested(struct actor *actor)
{
    struct world *world = actor->world;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct actor *other = &world->actors[i];

        if (other == actor || !other->window.open || other->plan->owner == 0) continue;
        if (other->window.token_hash != actor->window.token_hash) continue;
        violated_if(actor, I13_READERS, (other->window.held.shared & ~actor->window.held.shared) != 0,
                    "writes inside of what its owner only reads");
        violated_if(actor, I6_TOLD_ONCE, actor->window.held.slot != other->window.held.slot,
                    "has another slot than the hold of its owner that it is in");
        return true;
    }
    return false;
}

static void open_window(struct actor *actor, const struct quorlock_result *result)
{
    const char *token = quorlock_lock_token(actor->lock);
    struct window *window = &actor->window;

    if (token == NULL || result->token == NULL || strcmp(token, result->token) != 0) {
        violated_if(actor, I6_TOLD_ONCE, !actor_process(actor)->stood_in_turn, "is granted a lock without its token");
        return;
    }
    *window = (struct window){.held = {.keys = actor->plan->keys,
                                       .shared = actor->plan->shared,
                                       .slot = (uint8_t)(result->slot != QUORLOCK_SLOT_NONE ? result->slot : 0),
                                       .permits = (uint8_t)actor->plan->options.permits},
                              .open = true,
                              .token_hash = world_hash(token, strlen(token)),
                              .fence = quorlock_lock_fence(actor->lock),
                              .granted_us = process_now_us(actor_process(actor)),
                              .until_us = process_now_us(actor_process(actor)) + valid_ms(actor) * MS};
    window->asked_us = window->until_us - MS * actor->plan->options.lease_ms;
    (void)snprintf(window->token, sizeof(window->token), "%s", token);
    if (actor->plan->owner != 0) holds_as_taken(actor->world, window);
    world_mix(actor->world, window->token_hash ^ window->until_us);
    actions_holder(actor, actor->adopting != NULL ? "adopted" : "granted");
}

static void count_grant(struct actor *actor)
{
    struct world *world = actor->world;

    world->totals->of[TOTAL_GRANTS]++;
    world->totals->of[TOTAL_MIXED] += actor->plan->shared != 0 && actor->plan->shared != actor->plan->keys;
    actor->granted_us = world_now(world);
    if (world->phase != PHASE_HEALED || (world->changed && !actor_client(actor)->renewed)) return;
    for (uint32_t key = 0; key < world->plan->n_keys; key++)
        world->grants_healed[key][actor->plan->shared >> key & 1u] += actor->plan->keys >> key & 1u;
    world->totals->of[TOTAL_TURNS] += !actor->had_turn;
    actor->had_turn = true;
}

void judge_granted(struct actor *actor, const struct quorlock_result *result)
{
    struct world *world = actor->world;
    bool stood = actor_process(actor)->stood_in_turn;
    bool again = actor->holds > 0;

    actor->holds++;
    count_grant(actor);
    world->totals->of[TOTAL_LATE_GRANT] += process_stood(actor_process(actor));
    world->totals->of[TOTAL_ROUNDS] += result->rounds > 1 ? result->rounds - 1 : 0;
    if (again) {
        world->totals->of[TOTAL_NESTED]++;
        world->totals->of[TOTAL_NESTED_RENEWED] += world_now(world) > actor->acquire_since_us + MS / 2;
        violated_if(actor, I6_TOLD_ONCE, actor->lost, "is granted one more hold of what it has lost");
        return;
    }
    actor->lost = false;
    open_window(actor, result);
    violated_if(actor, I6_TOLD_ONCE, (result->valid_ms == 0 || valid_ms(actor) == 0) && !stood,
                "is granted a lock that is not valid");
    violated_if(actor, I6_TOLD_ONCE, result->valid_ms + 2 < actor->plan->options.min_valid_ms && !stood,
                "is granted less validity than it asked for");
    violated_if(actor, I6_TOLD_ONCE,
                (actor->plan->options.permits == 0 ? result->slot != QUORLOCK_SLOT_NONE
                                                   : result->slot >= actor->plan->options.permits),
                "is granted a slot that its name does not have");
    modes_waited(actor);
    actor->n_grants++;
    handover_granted(actor);
    fair_granted(actor);
    rare_granted(actor);
    if (is_nested(actor)) {
        world->totals->of[TOTAL_NESTED]++;
    } else if (actor->adopting != NULL) {
        passing_adopted(actor);
        tokens_granted(actor);
    } else {
        check_votes(actor);
        tokens_granted(actor);
    }
    check_exclusion(actor, !stood);
    judge_quorum(actor);
}

void judge_given_back(struct actor *actor, const char *action)
{
    actor->kept = NOBODY;
    if (actor->window.open) {
        /* What it relied on up to now. */
        refresh(actor);
        if (actor->window.fresh) judge_quorum(actor);
        handover_freed(actor);
        actions_holder(actor, action);
        rare_given_back(actor);
        keep_given_back(actor);
    }
    actor->window.open = false;
    actor->lost = false;
}

/* ---- losses ---- */

static bool somebody(const struct actor *actor, bool (*is_so)(const struct quorlock_lock_options *))
{
    const struct world *world = actor->world;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        const struct plan_actor *other = &world->plan->actors[i];
        bool same = other->client == actor->plan->client && other->owner != 0 && other->owner == actor->plan->owner;

        if ((same || other == actor->plan) && is_so(&other->options)) return true;
    }
    return false;
}

static bool is_bounded(const struct quorlock_lock_options *options)
{
    return options->max_hold_ms != 0;
}

static bool is_unrenewed(const struct quorlock_lock_options *options)
{
    return options->renew_ms == QUORLOCK_RENEW_NEVER;
}

/* nothing_fails - return whether the plan has no fault that a holder may notice. A renewal needs no random bytes. */
static bool nothing_fails(const struct world *world)
{
    const struct plan *plan = world->plan;
    uint32_t n = plan->n_faults;

    for (uint32_t i = 0; i < plan->n_faults; i++) n -= plan->faults[i].kind == FAULT_NO_RANDOM;
    return n == 0 && !plan_has(world->plan, FEATURE_PEERS) && !world->plan->clients[0].twins;
}

static void check_reason(struct actor *actor, int reason)
{
    static const enum total of[] = {[QUORLOCK_LOSS_EXPIRED] = TOTAL_LOST_EXPIRED,
                                    [QUORLOCK_LOSS_GONE] = TOTAL_LOST_GONE,
                                    [QUORLOCK_LOSS_MAX_HOLD] = TOTAL_LOST_MAX_HOLD,
                                    [QUORLOCK_LOSS_NOT_RENEWED] = TOTAL_LOST_NOT_RENEWED,
                                    [QUORLOCK_LOSS_CLOCK] = TOTAL_LOST_CLOCK};
    struct world *world = actor->world;

    if (reason < QUORLOCK_LOSS_EXPIRED || reason > QUORLOCK_LOSS_CLOCK) {
        judge_violated(world, UNEXPLAINED, "actor %u loses its lock for reason %d", actor->index, reason);
        return;
    }
    world->totals->of[of[reason]]++;
    violated_if(actor, UNEXPLAINED, reason == QUORLOCK_LOSS_MAX_HOLD && !somebody(actor, is_bounded),
                "comes to the end of a hold that has none");
    violated_if(actor, UNEXPLAINED, reason == QUORLOCK_LOSS_NOT_RENEWED && !somebody(actor, is_unrenewed),
                "is not renewed, but it asked for renewals");
    violated_if(actor, UNEXPLAINED, reason == QUORLOCK_LOSS_CLOCK && !world->plan->outside,
                "is told that clocks stepped that never did");
    violated_if(actor, SERVERS_KEEP, actor->plan->course.keeps, "loses its lock, although its servers keep it");
    violated_if(actor, I11_OWN_LOAD,
                (reason == QUORLOCK_LOSS_EXPIRED || reason == QUORLOCK_LOSS_GONE) && nothing_fails(world) &&
                    !process_stood(actor_process(actor)),
                "loses its lock, and nothing failed");
}

void judge_lost(struct actor *actor, const struct quorlock_loss *loss)
{
    struct window *window = &actor->window;
    uint64_t now_us = process_now_us(actor_process(actor));

    violated_if(actor, I6_TOLD_ONCE, actor->holds == 0, "is told of a loss, but it holds nothing");
    violated_if(actor, I6_TOLD_ONCE, actor->lost, "is told of its loss twice");
    violated_if(actor, I6_TOLD_ONCE, now_us >= window->until_us && !process_stood(actor_process(actor)),
                "is told of its loss after its validity");
    check_reason(actor, loss->reason);
    violated_if(actor, I6_TOLD_ONCE, valid_ms(actor) != 0, "has validity left after its loss");
    actor->lost = true;
    if (now_us + loss->remaining_ms * MS < window->until_us) window->until_us = now_us + loss->remaining_ms * MS;
    if (loss->remaining_ms == 0) window->open = false;
    actions_holder(actor, "lost");
}

/* A loss that is due is reported first. It may be late only if the process stalled after it had looked for losses. */
void judge_called(struct world *world, uint32_t client)
{
    if (process_of(world, client)->stood_at_look || world->clients[client].state != CLIENT_OPEN) return;
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *actor = &world->actors[i];

        if (actor->plan->client != client || actor->holds == 0 || actor->lost || actor->no_lost) continue;
        violated_if(actor, I6_TOLD_ONCE, valid_ms(actor) == 0, "is not told of its loss before another callback");
    }
}

void judge_killed(struct process *process)
{
    struct world *world = process->world;

    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *actor = &world->actors[i];

        if (actor_process(actor) != process || !actor->window.open) continue;
        actions_holder(actor, "crashed");
        if (judge_is_open(actor) && !is_void(actor) && world->n_ghosts < GHOSTS_MAX) {
            world->ghosts[world->n_ghosts++] =
                (struct ghost){.until_us = process_true_us(process, actor->window.until_us),
                               .token_hash = actor->window.token_hash,
                               .actor = i,
                               .held = actor->window.held};
        }
        actor->window.open = false;
        rare_abandoned(world, actor->plan->keys);
    }
    election_killed(process);
}

void judge_peer(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        struct actor *actor = &world->actors[i];

        if (actor->window.open && !is_void(actor) && judge_is_open(actor)) check_peers(actor);
    }
}

/* ---- at any time ---- */

static void look_at(struct actor *actor)
{
    struct process *process = actor_process(actor);

    if (actor->lock == NULL || actor_client(actor)->state != CLIENT_OPEN) return;
    if (actor->holds == 0 || actor->lost) {
        /* A hold beside others of its owner begins before its callback. */
        if (actor->acquiring != NULL && actor->plan->owner != 0) return;
        if (valid_ms(actor) == 0) return;
        if (actor->lost) actions_holder(actor, "renewed");
        violated_if(actor, I6_TOLD_ONCE, true, "has validity, but was told otherwise");
        return;
    }
    if (!actor->window.open) return;
    refresh(actor);
    if (actor->window.fresh) {
        check_exclusion(actor, false);
        judge_quorum(actor);
    }
    if (actor->no_lost || process_stood(process) || actor->world->plan->n_flood > 0) return;
    violated_if(actor, I6_TOLD_ONCE, process_now_us(process) >= actor->window.until_us + LATE_US,
                "was not told of its loss before its validity ended");
}

void judge_turned(struct process *process)
{
    struct world *world = process->world;

    if (world->over) return;
    world->totals->turns++;
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        if (actor_process(&world->actors[i]) == process) look_at(&world->actors[i]);
    }
}

/* counts_from_us - return when the time of a call begins. A release, and an acquire that tries once, may have to wait
 * for memory, or for random bytes of an attempt. */
static uint64_t counts_from_us(const struct promise *promise, const struct process *process)
{
    bool once = promise->kind == PROMISE_ACQUIRE && promise->actor->plan->options.wait_ms == QUORLOCK_TRY_ONCE;
    uint64_t from_us = promise->since_us;

    if (once && process->no_random_until_us > from_us) from_us = process->no_random_until_us;
    if ((once || promise->kind == PROMISE_RELEASE) && process->no_memory_until_us > from_us)
        from_us = process->no_memory_until_us;
    return from_us;
}

static void check_in_time(const struct promise *promise)
{
    struct world *world = promise->world;
    const struct process *process = process_of(world, promise->client);
    uint64_t stood_us = process->stood_us - promise->stood_us;

    if (promise->bound_us == NEVER || !process->alive || process_stood(process)) return;
    if (world_now(world) <= counts_from_us(promise, process) + stood_us + promise->bound_us + LATE_US) return;
    judge_violated(world, I10_FORGOTTEN, "client %u%s: %s takes %llu us, %llu are the bound", promise->client,
                   promise->pending ? "" : ", at last", trace_promise((enum promise_kind)promise->kind),
                   (unsigned long long)(world_now(world) - promise->since_us), (unsigned long long)promise->bound_us);
}

void judge_look(struct world *world)
{
    for (uint32_t i = 0; i < world->n_promises && !world->over; i++) {
        if (world->promises[i].pending) check_in_time(&world->promises[i]);
    }
    /* Also those whose machine stalls. */
    for (uint32_t i = 0; i < world->plan->n_actors; i++) {
        refresh(&world->actors[i]);
        if (world->actors[i].acquiring != NULL) modes_waited(&world->actors[i]);
    }
}

static bool has_fault(const struct world *world, enum plan_fault_kind kind)
{
    for (uint32_t i = 0; i < world->plan->n_faults; i++) {
        if (world->plan->faults[i].kind == kind) return true;
    }
    return false;
}

/* is_of_two_minds - return whether users give its name different numbers of permits. While a slot is held, one side is
 * refused. */
static bool is_of_two_minds(const struct actor *actor)
{
    for (uint32_t key = 0; actor != NULL && key < PLAN_KEYS_MAX; key++) {
        if ((actor->plan->keys >> key & 1u) != 0 && actor->world->plan->other_permits[key] != 0) return true;
    }
    return false;
}

static bool is_explained(const struct promise *promise, int status)
{
    const struct world *world = promise->world;
    const struct plan *plan = world->plan;
    bool owned = promise->actor != NULL && promise->actor->plan->owner != 0;
    bool acquires = promise->kind == PROMISE_ACQUIRE;

    switch (status) {
    case QUORLOCK_OK:
    case QUORLOCK_ERR_NOQUORUM: return true;
    case QUORLOCK_ERR_CANCELED: return promise->kind <= PROMISE_EXTEND;
    case QUORLOCK_ERR_HELD:
    case QUORLOCK_ERR_TIMEDOUT: return acquires;
    case QUORLOCK_ERR_LOST:
        return promise->kind == PROMISE_EXTEND || promise->kind == PROMISE_RELEASE ||
               (acquires && (owned || (promise->actor != NULL && promise->actor->adopting != NULL)));
    /* An acquire that waits goes on, unless no node has ever let the client in. */
    case QUORLOCK_ERR_AUTH:
        if (!has_fault(world, FAULT_ROTATE)) return false;
        if (promise->kind >= PROMISE_INSPECT && promise->kind <= PROMISE_BOOTSTRAP) return true;
        return acquires && (promise->actor == NULL || promise->actor->plan->options.wait_ms == QUORLOCK_TRY_ONCE ||
                            owned || !world->clients[promise->client].let_in);
    case QUORLOCK_ERR_CLOSED: return world->clients[promise->client].state != CLIENT_OPEN;
    case QUORLOCK_ERR_NOMEM: return has_fault(world, FAULT_NO_MEMORY) || has_fault(world, FAULT_NO_DESCRIPTORS);
    case QUORLOCK_ERR_FOREIGN: return acquires && (has_fault(world, FAULT_ODD) || has_fault(world, FAULT_PEER_KEY));
    /* A writer that nests in its owner's reader would wait for itself. And a nested hold may need a renewal, also right
     * before its callback, when the outer hold has reached its max_hold_ms. */
    case QUORLOCK_ERR_STATE:
        return promise->kind == PROMISE_BOOTSTRAP ||
               (acquires && owned && (plan_has(plan, FEATURE_SHARED) || plan_has(plan, FEATURE_MAX_HOLD)));
    case QUORLOCK_ERR_INVAL:
        if (promise->kind == PROMISE_BOOTSTRAP || (acquires && is_of_two_minds(promise->actor))) return true;
        return acquires && (owned || plan->clients[promise->client].twins || plan_has(plan, FEATURE_BOOTSTRAP) ||
                            has_fault(world, FAULT_RECONFIGURE) || has_fault(world, FAULT_FLIP) ||
                            has_fault(world, FAULT_FLIP_LIVE));
    default: return false;
    }
}

static void count_ended(struct totals *totals, const struct promise *promise, int status)
{
    static const enum total of[] = {
        [-QUORLOCK_ERR_HELD] = TOTAL_HELD,         [-QUORLOCK_ERR_NOQUORUM] = TOTAL_NOQUORUM,
        [-QUORLOCK_ERR_TIMEDOUT] = TOTAL_TIMEDOUT, [-QUORLOCK_ERR_CANCELED] = TOTAL_CANCELED,
        [-QUORLOCK_ERR_CLOSED] = TOTAL_CLOSED,     [-QUORLOCK_ERR_FOREIGN] = TOTAL_FOREIGN,
        [-QUORLOCK_ERR_INVAL] = TOTAL_CONFIG,      [-QUORLOCK_ERR_NOMEM] = TOTAL_NOMEM,
        [-QUORLOCK_ERR_LOST] = TOTAL_NESTED_FAILED};

    if (promise->kind == PROMISE_EXTEND) {
        totals->of[status == QUORLOCK_OK ? TOTAL_EXTENDED : TOTAL_EXTEND_FAILED]++;
    } else if (promise->kind == PROMISE_RELEASE) {
        totals->of[TOTAL_RELEASE_NOQUORUM] += status == QUORLOCK_ERR_NOQUORUM;
    } else if (promise->kind == PROMISE_ACQUIRE && status < 0 && (size_t)-status < sizeof(of) / sizeof(of[0])) {
        totals->of[of[-status]]++;
    }
}

void judge_ended(const struct promise *promise, int status)
{
    struct world *world = promise->world;

    check_in_time(promise);
    world->clients[promise->client].let_in |= promise->kind == PROMISE_ACQUIRE && status == QUORLOCK_OK;
    if (!is_explained(promise, status)) {
        judge_violated(world, UNEXPLAINED, "client %u: %s ends with %s", promise->client,
                       trace_promise((enum promise_kind)promise->kind), quorlock_status_name(status));
    }
    count_ended(world->totals, promise, status);
    world->totals->of[TOTAL_TWO_MINDS] +=
        promise->kind == PROMISE_ACQUIRE && status == QUORLOCK_ERR_INVAL && is_of_two_minds(promise->actor);
}
