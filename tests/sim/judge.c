/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.c - what must hold, seen from outside
 *
 * A reported validity window of a lock opens in the callback that says granted, and ends when release is
 * called, when the loss of the key was reported as a fact (gone), or when the validity that was reported ends
 * by its owner's clock: whichever comes first. A loss reported in good time does not end it, for its owner may
 * use what remains.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LATE_US 30000u /* what a loop's lateness may add to any bound */

void judge_violated(struct world *world, enum invariant invariant, const char *format, ...)
{
    va_list arguments;

    if (world->over) return;
    if ((world->judged & (1u << invariant)) == 0) {
        if (world->plan->outside) totals_outside(world->totals, invariant == I1_EXCLUSION);
        return;
    }
    world->over = true;
    world->violation.invariant = invariant;
    world->violation.at_us = world->now_us;
    va_start(arguments, format);
    /* A file of two programs is looked at twice in one run; the second time va_start is overlooked.
     * NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    (void)vsnprintf(world->violation.text, sizeof(world->violation.text), format, arguments);
    va_end(arguments);
    TRACE(world, "VIOLATION of %s: %s", trace_invariant(invariant), world->violation.text);
}

static void violated_if(struct world *world, struct lock *lock, enum invariant invariant, bool violated,
                        const char *what)
{
    if (violated) judge_violated(world, invariant, "lock %u %s", lock->index, what);
}

static uint64_t clock_of(const struct world *world, const struct lock *lock)
{
    return world_client_clock(world, lock->client, world->now_us);
}

static bool is_open(const struct world *world, const struct lock *lock)
{
    return lock->verdicts.open && clock_of(world, lock) < lock->verdicts.until_us;
}

/* I1, when a window opens or moves on. A grant that is reported is a window, if of no length. */
static void check_exclusion(struct world *world, struct lock *lock, bool at_grant)
{
    if (!at_grant && !is_open(world, lock)) return;
    for (uint32_t i = 0; i < world->plan->n_locks; i++) {
        const struct lock *other = &world->locks[i];

        if (i == lock->index || other->key != lock->key || !is_open(world, other)) continue;
        judge_violated(world, I1_EXCLUSION, "lock %u and lock %u both hold key %u", lock->index, i, lock->key);
    }
    for (uint32_t i = 0; i < world->n_ghosts; i++) {
        const struct ghost *ghost = &world->ghosts[i];

        if (ghost->key != lock->key) continue;
        if (world_client_clock(world, ghost->client, world->now_us) >= ghost->until_us) continue;
        judge_violated(world, I1_EXCLUSION, "lock %u holds key %u within the validity of dead client %u", lock->index,
                       lock->key, ghost->client);
    }
}

/* A node that holds the key, or would if no fault had made it forget: it does not vote against it. */
static bool holds(const struct world *world, uint32_t server, const struct lock *lock, const struct core_token *token)
{
    const struct shadow *shadow = &world->shadows[server][lock->index];

    if (server_holds(world, server, lock->key, token)) return true;
    return shadow->expires_ms > world_node_ms(world, server) && memcmp(&shadow->token, token, sizeof(*token)) == 0;
}

/* I5, when a window opens or moves on, and whenever a key of it goes. */
static void check_quorum(struct world *world, struct lock *lock)
{
    const struct core_token *token = core_token_now(lock->core);
    uint32_t holding = 0;

    if (!is_open(world, lock)) return;
    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        holding += holds(world, plan_server(world->plan, lock->client, i), lock, token);
    }
    if (holding >= world->plan->quorum) return;
    judge_violated(world, I5_QUORUM_HOLDS, "lock %u reports %llu us more, but only %u nodes hold its key", lock->index,
                   (unsigned long long)(lock->verdicts.until_us - clock_of(world, lock)), holding);
}

void judge_key_gone(struct world *world, struct lock *lock, uint32_t life)
{
    if (lock->life == life && lock->state != ACTOR_DEAD) check_quorum(world, lock);
}

void judge_key_forgotten(struct world *world, uint32_t server, struct lock *lock, const struct core_token *token,
                         uint64_t expires_ms)
{
    struct shadow *shadow = &world->shadows[server][lock->index];

    /* What came back with older memory may be of an older attempt, or end sooner, and is forgotten again. */
    if (lock->state == ACTOR_DEAD || memcmp(core_token_now(lock->core), token, sizeof(*token)) != 0) return;
    if (shadow->expires_ms >= expires_ms && memcmp(&shadow->token, token, sizeof(*token)) == 0) return;
    *shadow = (struct shadow){.token = *token, .expires_ms = expires_ms};
}

void judge_asked(struct world *world, struct lock *lock, const struct core_command *command)
{
    uint32_t node = command->tag.node;
    enum node_state state = world->clients[lock->client].links[node].state;

    if (command->tag.op != OP_ACQUIRE || state != NODE_QUARANTINED) return;
    judge_violated(world, I7_FOREIGN_VOTE, "lock %u asks node %u for a vote, which is quarantined", lock->index, node);
}

void judge_stepped(struct world *world, uint32_t client, uint32_t node)
{
    TRACE(world, "client %u   finds that the clock of node %u has stepped forward", client, node);
    world->totals->of[TOTAL_CLOCK_STEPS]++;
    if (world->plan->outside) return;
    judge_violated(world, I7_FOREIGN_VOTE, "client %u drops votes for a step of node %u that never was", client, node);
}

static uint64_t allowance(const struct core_config *config, uint64_t lease_us)
{
    return (lease_us * config->drift_ppm + 999999) / 1000000 + config->drift_fixed_us;
}

/* A yes that may count: of this attempt, on the connection that is there now, before the loss. */
static void see_yes(struct world *world, struct lock *lock, const struct core_reply *reply, uint64_t now_us)
{
    const struct link *link = &world->clients[lock->client].links[reply->tag.node];
    struct seen_vote *vote = &lock->verdicts.votes[reply->tag.node];
    uint64_t end_us = reply->tag.sent_us + reply->tag.lease_us - allowance(&lock->config, reply->tag.lease_us);

    if (reply->tag.attempt != core_attempt(lock->core)) return;
    if (!world_talks(link->state) || link->generation != reply->generation) return;
    if (lock->verdicts.lost || (lock->verdicts.notified_held && now_us >= core_lost_at(lock->core))) return;
    if (vote->attempt == reply->tag.attempt && vote->end_us > end_us) return;
    *vote = (struct seen_vote){.attempt = reply->tag.attempt, .end_us = end_us};
}

static void see_absence(struct lock *lock, const struct core_reply *reply, bool absent)
{
    struct verdicts *verdicts = &lock->verdicts;

    if (verdicts->absent_attempt != reply->tag.attempt) verdicts->absent_nodes = 0;
    verdicts->absent_attempt = reply->tag.attempt;
    if (absent) {
        verdicts->absent_nodes |= 1u << reply->tag.node;
    } else {
        verdicts->absent_nodes &= ~(1u << reply->tag.node);
    }
}

void judge_before(struct world *world, struct lock *lock, const struct core_event *event)
{
    const struct core_reply *reply = &event->reply;
    const struct link *link;
    enum op op;

    if (lock->verdicts.notified_held && event->now_us >= core_lost_at(lock->core)) lock->verdicts.past_lost_at = true;
    if (event->type != CORE_EV_REPLY) return;
    link = &world->clients[lock->client].links[reply->tag.node];
    op = (enum op)reply->tag.op;
    trace_mix(world, ((uint64_t)reply->outcome << 8) | reply->tag.op);
    if (op == OP_RELEASE) return;
    if (op == OP_PEEK || reply->outcome == OUTCOME_OTHER) lock->verdicts.other_seen = true;
    if (op == OP_PEEK || reply->tag.attempt != core_attempt(lock->core)) return;
    /* What comes on a connection that has ended proves nothing. */
    if (!world_talks(link->state) || reply->generation != link->generation) return;
    if (reply->outcome == OUTCOME_YES) {
        if (op == OP_ACQUIRE || op == OP_RAISE) tokens_see(lock, reply);
        if (op == OP_ACQUIRE || op == OP_EXTEND) see_yes(world, lock, reply, event->now_us);
        see_absence(lock, reply, false);
    } else if (op != OP_REPAIR && (reply->outcome == OUTCOME_OTHER || reply->outcome == OUTCOME_MISSING)) {
        see_absence(lock, reply, true);
    }
}

/* The Qth largest end of the votes that were seen: nothing reported may go beyond. */
static uint64_t seen_validity(const struct world *world, const struct lock *lock, uint32_t *ret_votes)
{
    uint64_t ends_us[PLAN_NODES_MAX] = {0};
    uint32_t votes = 0;

    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        const struct seen_vote *vote = &lock->verdicts.votes[i];
        uint64_t end_us = vote->end_us;

        if (vote->attempt != core_attempt(lock->core)) continue;
        for (uint32_t k = 0; k < votes; k++) {
            if (ends_us[k] >= end_us) continue;
            uint64_t moved_us = ends_us[k];

            ends_us[k] = end_us;
            end_us = moved_us;
        }
        ends_us[votes++] = end_us;
    }
    *ret_votes = votes;
    return votes >= world->plan->quorum ? ends_us[world->plan->quorum - 1] : 0;
}

static void check_votes(struct world *world, struct lock *lock)
{
    enum core_phase phase = core_phase_now(lock->core);
    uint32_t seen;
    uint64_t validity_us;

    if (phase != CORE_GRANTED && phase != CORE_HELD) return;
    validity_us = seen_validity(world, lock, &seen);
    if (core_counted(lock->core) > seen) {
        judge_violated(world, I7_FOREIGN_VOTE, "lock %u counts %u votes, only %u were given", lock->index,
                       core_counted(lock->core), seen);
    }
    if (core_valid_until(lock->core) > validity_us) {
        judge_violated(world, I5_QUORUM_HOLDS, "lock %u reckons %llu us more than its votes give", lock->index,
                       (unsigned long long)(core_valid_until(lock->core) - validity_us));
    }
    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        if (core_vote(lock->core, i) != CORE_VOTE_YES) continue;
        if (lock->verdicts.votes[i].attempt == core_attempt(lock->core)) continue;
        judge_violated(world, I7_FOREIGN_VOTE, "lock %u counts a yes of node %u that it did not give", lock->index, i);
    }
}

/* Did the client have more time than that to act on it? */
static bool is_overdue(const struct world *world, const struct lock *lock, const struct operation *operation,
                       uint64_t bound_us)
{
    uint64_t paused_us = world->clients[lock->client].paused_total_us - operation->pauses_us;

    return operation->pending && world->now_us > operation->since_us + paused_us + bound_us + LATE_US;
}

static bool slept_just_now(const struct world *world, const struct lock *lock)
{
    uint64_t until_us = world->clients[lock->client].paused_until_us;

    return until_us != 0 && world->now_us < until_us + LATE_US;
}

void judge_in_time(struct world *world, struct lock *lock)
{
    const struct verdicts *verdicts = &lock->verdicts;
    const struct core_config *config = &lock->config;
    uint64_t bound_us = config->wait_us == 0 ? 3 * config->node_timeout_us : config->wait_us / 100 * 104;
    struct operation releasing = verdicts->releasing;

    if (lock->state == ACTOR_DEAD || slept_just_now(world, lock)) return;
    violated_if(world, lock, I10_FORGOTTEN,
                config->wait_us != CORE_NEVER && is_overdue(world, lock, &verdicts->acquiring, bound_us),
                "has an acquire that is overdue");
    violated_if(world, lock, I10_FORGOTTEN, is_overdue(world, lock, &verdicts->extending, 2 * config->node_timeout_us),
                "has an extend that is overdue");
    /* From when it could be sent; and an answer may lie there unread. */
    if (releasing.since_us < world->clients[lock->client].unsent_until_us) {
        releasing.since_us = world->clients[lock->client].unsent_until_us;
    }
    violated_if(world, lock, I10_FORGOTTEN, is_overdue(world, lock, &releasing, config->node_timeout_us / 4 * 5),
                "has a release that is overdue");
    violated_if(world, lock, I6_NOTIFIED_ONCE, verdicts->notified_held && clock_of(world, lock) >= verdicts->until_us,
                "did not report its loss before its validity ended");
}

static void begin(struct world *world, struct lock *lock, const struct core_event *event)
{
    struct verdicts *verdicts = &lock->verdicts;
    struct operation begun = {
        .pending = true, .since_us = world->now_us, .pauses_us = world->clients[lock->client].paused_total_us};

    switch (event->type) {
    case CORE_EV_ACQUIRE:
        verdicts->acquiring = begun;
        verdicts->other_seen = event->acquire.behind;
        verdicts->open = verdicts->lost = verdicts->past_lost_at = false;
        break;
    case CORE_EV_EXTEND: verdicts->extending = begun; break;
    case CORE_EV_RELEASE:
        verdicts->releasing = begun;
        verdicts->open = verdicts->notified_held = verdicts->lost = verdicts->past_lost_at = false;
        break;
    default: break;
    }
}

static void on_lost(struct world *world, struct lock *lock, const struct core_completion *completion)
{
    static const enum total of[] = {[CORE_LOSS_EXPIRED] = TOTAL_LOST_EXPIRED,
                                    [CORE_LOSS_GONE] = TOTAL_LOST_GONE,
                                    [CORE_LOSS_MAX_HOLD] = TOTAL_LOST_MAX_HOLD,
                                    [CORE_LOSS_NOT_RENEWED] = TOTAL_LOST_NOT_RENEWED,
                                    [CORE_LOSS_CLOCK] = TOTAL_LOST_CLOCK};
    struct verdicts *verdicts = &lock->verdicts;
    uint32_t spare = world->plan->n_nodes - world->plan->quorum;

    violated_if(world, lock, I6_NOTIFIED_ONCE, !verdicts->notified_held, "reports a loss, but it holds nothing");
    violated_if(world, lock, I6_NOTIFIED_ONCE,
                clock_of(world, lock) >= verdicts->until_us && !slept_just_now(world, lock),
                "reports its loss after its validity");
    violated_if(world, lock, I7_FOREIGN_VOTE,
                completion->loss == CORE_LOSS_GONE && (uint32_t)__builtin_popcount(verdicts->absent_nodes) <= spare,
                "reports that its key is gone, but a quorum may have it");
    if (completion->loss == CORE_LOSS_NONE) {
        judge_violated(world, I6_NOTIFIED_ONCE, "lock %u reports a loss without a reason", lock->index);
        return;
    }
    if (completion->loss == CORE_LOSS_GONE) verdicts->open = false;
    verdicts->notified_held = false;
    verdicts->lost = true;
    world->totals->of[of[completion->loss]]++;
    violated_if(world, lock, I6_NOTIFIED_ONCE, completion->loss == CORE_LOSS_CLOCK && !world->plan->outside,
                "reports that clocks stepped that never did");
}

static void on_granted(struct world *world, struct lock *lock, uint64_t now_us)
{
    struct verdicts *verdicts = &lock->verdicts;
    uint32_t seen;

    verdicts->notified_held = verdicts->open = true;
    verdicts->lost = verdicts->past_lost_at = false;
    verdicts->until_us = core_valid_until(lock->core);
    (void)seen_validity(world, lock, &seen);
    if (seen < world->plan->quorum) {
        judge_violated(world, I7_FOREIGN_VOTE, "lock %u is granted with %u votes", lock->index, seen);
    }
    violated_if(world, lock, I6_NOTIFIED_ONCE,
                core_lost_at(lock->core) <= now_us || verdicts->until_us < now_us + lock->config.min_valid_us,
                "is granted too late");
    world->totals->of[TOTAL_GRANTS]++;
    if (world->phase == PHASE_HEALED) {
        world->grants_healed[lock->key]++;
        world->totals->of[TOTAL_TURNS] += !lock->had_turn;
        lock->had_turn = true;
    }
    handover_granted(world, lock);
    tokens_granted(world, lock);
    check_exclusion(world, lock, true);
    check_quorum(world, lock);
}

static void on_refused(struct world *world, struct lock *lock, int status)
{
    switch (status) {
    case CORE_HELD_BY_OTHER:
        world->totals->of[TOTAL_HELD_BY_OTHER]++;
        violated_if(world, lock, I7_FOREIGN_VOTE, !lock->verdicts.other_seen, "is refused, but no holder was seen");
        break;
    case CORE_NOQUORUM: world->totals->of[TOTAL_NOQUORUM]++; break;
    case CORE_TIMEDOUT: world->totals->of[TOTAL_TIMEDOUT]++; break;
    case CORE_CANCELED: world->totals->of[TOTAL_CANCELED]++; break;
    case CORE_INVAL:
        world->totals->of[TOTAL_CONFIG]++;
        if (world->plan->clients[lock->client].twins) break;
        judge_violated(world, I6_NOTIFIED_ONCE, "lock %u reports that nodes refuse its configuration", lock->index);
        break;
    default: judge_violated(world, I6_NOTIFIED_ONCE, "lock %u reports status %d", lock->index, status); break;
    }
}

static void on_completion(struct world *world, struct lock *lock, const struct core_completion *completion,
                          uint64_t now_us)
{
    struct verdicts *verdicts = &lock->verdicts;
    uint64_t *of = world->totals->of;
    bool expected = true;

    trace_mix(world, ((uint64_t)completion->kind << 16) | (uint32_t)completion->status);
    switch (completion->kind) {
    case CORE_NOTIFY_NOTHING: return;
    case CORE_NOTIFY_LOST: on_lost(world, lock, completion); return;
    case CORE_NOTIFY_ACQUIRED:
        expected = verdicts->acquiring.pending;
        verdicts->acquiring.pending = false;
        if (completion->status == CORE_OK) {
            on_granted(world, lock, now_us);
        } else {
            on_refused(world, lock, completion->status);
        }
        break;
    case CORE_NOTIFY_EXTENDED:
        expected = verdicts->extending.pending;
        verdicts->extending.pending = false;
        of[completion->status == CORE_OK ? TOTAL_EXTENDED : TOTAL_EXTEND_FAILED]++;
        violated_if(world, lock, I6_NOTIFIED_ONCE, completion->status == CORE_OK && !verdicts->notified_held,
                    "reports an extend after its loss");
        break;
    case CORE_NOTIFY_RELEASED:
        expected = verdicts->releasing.pending;
        verdicts->releasing.pending = false;
        of[completion->expired ? TOTAL_RELEASED_EXPIRED : TOTAL_RELEASED]++;
        if (completion->status == CORE_NOQUORUM) of[TOTAL_RELEASE_NOQUORUM]++;
        break;
    }
    if (!expected) judge_violated(world, I6_NOTIFIED_ONCE, "lock %u reports twice, or what was not asked", lock->index);
}

/* I8: what an idle lock that owes nothing left on a node. Excused is what was executed late: after its
 * connection had ended, or after the debt of it was rightly forgotten. */
static void check_clean(struct world *world, struct lock *lock)
{
    /* A client that lists a server twice may extend by one entry the key that it acquired by the other. */
    if (world->plan->clients[lock->client].twins) return;
    for (uint32_t i = 0; i < world->plan->n_nodes; i++) {
        const struct slot *slot = &world->nodes[i].slots[lock->key];
        uint64_t ends_us;

        if (!slot->set || slot->lock != lock->index || slot->life != lock->life || slot->late) continue;
        /* A clock that was set back keeps keys for longer. */
        if (!world->nodes[i].up || world->nodes[i].stepped_back) continue;
        ends_us = world_client_clock(world, lock->client, server_expires_at(world, i, lock->key));
        if (ends_us > slot->last_sent_us + slot->last_lease_us / 100 * 101) continue;
        if (ends_us <= clock_of(world, lock)) continue;
        judge_violated(world, I8_LEFT_BEHIND, "lock %u owes nothing more, but left its key on node %u", lock->index, i);
    }
    world->totals->of[TOTAL_QUIET]++;
}

static void check_notified_state(struct world *world, struct lock *lock, uint64_t now_us)
{
    uint64_t left_us = core_valid_us(lock->core, now_us);
    bool holds = core_notified_held(lock->core) || left_us != 0;

    violated_if(world, lock, I6_NOTIFIED_ONCE, !lock->verdicts.notified_held && holds,
                "says held after it reported otherwise");
    violated_if(world, lock, I6_NOTIFIED_ONCE, lock->verdicts.past_lost_at && holds,
                "is held on although lost_at had passed");
    violated_if(world, lock, I6_NOTIFIED_ONCE, left_us != 0 && now_us >= core_lost_at(lock->core),
                "has validity left after lost_at");
}

void judge_after(struct world *world, struct lock *lock, const struct core_event *event,
                 const struct core_update *update, int status)
{
    struct verdicts *verdicts = &lock->verdicts;

    if (verdicts->attempt != core_attempt(lock->core)) {
        verdicts->attempt = core_attempt(lock->core);
        verdicts->attempt_begun_us = world->now_us;
    }
    if (status == 0) begin(world, lock, event);
    violated_if(world, lock, I6_NOTIFIED_ONCE, status != 0 && update->n_commands != 0,
                "refused a call, but sends commands");
    on_completion(world, lock, &update->completion, event->now_us);
    check_votes(world, lock);
    check_notified_state(world, lock, event->now_us);
    if (verdicts->notified_held && core_notified_held(lock->core) &&
        core_valid_until(lock->core) > verdicts->until_us) {
        verdicts->until_us = core_valid_until(lock->core);
        check_exclusion(world, lock, false);
        check_quorum(world, lock);
    }
    if (lock->active && core_quiet(lock->core)) check_clean(world, lock);
}

void judge_death(struct world *world, struct lock *lock)
{
    if (is_open(world, lock) && world->n_ghosts < PLAN_CLIENTS_MAX) {
        world->ghosts[world->n_ghosts++] =
            (struct ghost){.until_us = lock->verdicts.until_us, .client = lock->client, .key = lock->key};
    }
    lock->verdicts.open = lock->verdicts.notified_held = false;
    lock->verdicts.acquiring.pending = lock->verdicts.extending.pending = false;
    lock->verdicts.releasing.pending = false;
}

void judge_silent(struct world *world)
{
    for (uint32_t node = 0; node < world->plan->n_nodes; node++) {
        for (uint32_t key = 0; key < world->plan->n_keys; key++) {
            const struct slot *slot = &world->nodes[node].slots[key];

            if (!slot->set || world_node_ms(world, node) >= slot->expires_ms) continue;
            if (world->nodes[node].stepped_back || slot->life == SERVER_ODD_LIFE) continue;
            judge_violated(world, I8_LEFT_BEHIND, "the key of lock %u is still on node %u at rest", slot->lock, node);
        }
    }
}
