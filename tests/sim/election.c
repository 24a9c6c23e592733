/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * election.c - in some runs each client has a candidate and an observer of one election
 *
 * The window of a leader opens when the candidate is told that it leads. The window ends when the candidate resigns or
 * is freed, when the time is over that a reported loss leaves, or when validity ends by the machine's clock. Now and
 * then a client takes the key as a lock without a term.
 */
#include "election.h"

#include <string.h>

#include "api/client.h"
#include "judge.h"
#include "process.h"
#include "trace.h"

#define AGAIN_US 20000u
#define NAME     "election"

static uint64_t lease_us(const struct electorate *of)
{
    return of->world->plan->lease_ms * MS;
}

static struct process *process_at_home(struct electorate *of)
{
    return process_of(of->world, of->client);
}

static bool is_here(struct electorate *of)
{
    return process_at_home(of)->alive && !of->world->over;
}

static void act_inside(struct electorate *);

/* ---- who leads ---- */

/* True: it may act as the leader now. */
static bool leads(struct electorate *of)
{
    uint64_t now_us;

    if (of->ghost_until_us > world_now(of->world)) return true;
    if (!of->open || !process_at_home(of)->alive) return false;
    now_us = process_now_us(process_at_home(of));
    if (!of->deposed) {
        uint64_t left_us;

        of->world->judging = true;
        left_us = quorlock_candidate_valid_ms(of->candidate) * MS;
        of->world->judging = false;
        judge_shown(process_at_home(of), &of->shown, &of->world->clients[of->client].clock, left_us / MS);
        if (left_us > 0 && now_us + left_us > of->until_us) of->until_us = now_us + left_us;
    }
    return now_us < of->until_us;
}

static void check_others(struct electorate *of)
{
    struct world *world = of->world;

    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        struct electorate *other = &world->electorates[i];

        if (other == of || !leads(other)) continue;
        judge_violated(world, I16_ONE_LEADER, "client %u leads by term %llu, and client %u may by %llu", of->client,
                       (unsigned long long)of->term, i, (unsigned long long)other->term);
    }
}

/* Where counters are lost, too: whoever writes by an older term is refused. */
static void check_term(struct electorate *of)
{
    struct world *world = of->world;

    if (of->term <= world->term && !world->plan->outside)
        judge_violated(world, I17_TERMS_RISE, "client %u is elected by term %llu after %llu", of->client,
                       (unsigned long long)of->term, (unsigned long long)world->term);
    if (of->term > world->term) world->term = of->term;
}

static void close_window(struct electorate *of)
{
    of->open = of->deposed = false;
}

static void on_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    struct electorate *of = arg;

    if (!is_here(of) || candidate != of->candidate) return;
    world_mix(of->world, term);
    TRACE(of->world, "client %u  > ELECTED, term %llu", of->client, (unsigned long long)term);
    of->world->totals->of[TOTAL_ELECTED]++;
    /* Of a loss what remained must be over. */
    if (!of->standing || (of->open && (!of->deposed || leads(of))))
        judge_violated(of->world, I6_TOLD_ONCE, "client %u is elected, and does not stand, or leads", of->client);
    of->open = true;
    of->deposed = false;
    of->term = term;
    of->until_us = 0;
    /* Its machine may have stalled between its look at the clock and this. */
    if (leads(of)) {
        check_others(of);
        check_term(of);
    }
    (void)process_at(process_at_home(of), AT_CALLBACK);
    act_inside(of);
}

static void on_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    struct electorate *of = arg;
    uint64_t until_us;

    if (!is_here(of) || candidate != of->candidate) return;
    TRACE(of->world, "client %u  > DEPOSED: %s, %u ms remain", of->client, loss->text, loss->remaining_ms);
    of->world->totals->of[TOTAL_DEPOSED]++;
    if (!of->open || of->deposed)
        judge_violated(of->world, I6_TOLD_ONCE, "client %u is deposed, and did not lead", of->client);
    until_us = process_now_us(process_at_home(of)) + loss->remaining_ms * MS;
    if (until_us < of->until_us) of->until_us = until_us;
    of->deposed = true;
    (void)process_at(process_at_home(of), AT_CALLBACK);
    act_inside(of);
}

static void on_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    struct electorate *of = arg;

    if (!is_here(of) || candidate != of->candidate) return;
    world_mix(of->world, (uint64_t)status);
    TRACE(of->world, "client %u  > stands no more: %s, %s", of->client, quorlock_status_name(status), text);
    if (!of->standing) judge_violated(of->world, I6_TOLD_ONCE, "client %u is told its end twice", of->client);
    of->standing = false;
    close_window(of);
    (void)process_at(process_at_home(of), AT_CALLBACK);
    act_inside(of);
}

/* ---- what observers are told ---- */

static void on_leader(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    struct electorate *of = arg;
    uint64_t owner;

    if (!is_here(of) || observer != of->observer) return;
    world_mix(of->world, leader->term + (uint64_t)leader->state);
    TRACE(of->world, "client %u  > observes: %s, term %llu", of->client,
          leader->state == QUORLOCK_LEADER_KNOWN  ? leader->owner
          : leader->state == QUORLOCK_LEADER_NONE ? "nobody"
                                                  : "unknown",
          (unsigned long long)leader->term);
    of->world->totals->of[TOTAL_OBSERVED]++;
    of->known_term = leader->state == QUORLOCK_LEADER_KNOWN ? leader->term : 0;
    if (leader->term < of->newest)
        judge_violated(of->world, I17_TERMS_RISE, "client %u is told of term %llu after %llu", of->client,
                       (unsigned long long)leader->term, (unsigned long long)of->newest);
    if (leader->state == QUORLOCK_LEADER_KNOWN) {
        owner = world_hash(leader->owner, strlen(leader->owner));
        if (leader->term == of->newest && owner != of->newest_owner)
            judge_violated(of->world, I17_TERMS_RISE, "client %u is told of two leaders by term %llu", of->client,
                           (unsigned long long)leader->term);
        of->newest = leader->term;
        of->newest_owner = owner;
    }
    (void)process_at(process_at_home(of), AT_CALLBACK);
    act_inside(of);
}

/* ---- what clients do ---- */

static void expect(struct electorate *of, const char *call, int status)
{
    if (status == QUORLOCK_OK || !is_here(of)) return;
    if (status == QUORLOCK_ERR_NOMEM || (status == QUORLOCK_ERR_STATE && process_lacks_random(process_at_home(of))))
        return;
    judge_violated(of->world, UNEXPLAINED, "client %u: %s answered %s: %s", of->client, call,
                   quorlock_status_name(status), quorlock_client_error(of->world->clients[of->client].client));
}

static void make_candidate(struct electorate *of)
{
    const struct plan *plan = of->world->plan;
    const struct quorlock_candidate_options options = {.size = sizeof(options),
                                                       .elected = on_elected,
                                                       .deposed = on_deposed,
                                                       .ended = on_ended,
                                                       .arg = of,
                                                       .lease_ms = plan->lease_ms,
                                                       .lost_margin_ms = of->margin_ms};

    expect(of, "candidate_new",
           quorlock_candidate_new(&of->candidate, of->world->clients[of->client].client, NAME, &options));
    if (of->candidate != NULL) client_show_candidate(of->candidate, &of->shown);
}

static void make_observer(struct electorate *of)
{
    const struct quorlock_observer_options options = {
        .size = sizeof(options), .changed = on_leader, .arg = of, .poll_ms = of->world->plan->lease_ms / 2};

    of->newest = of->newest_owner = of->known_term = 0;
    expect(of, "observe", quorlock_observer_new(&of->observer, of->world->clients[of->client].client, NAME, &options));
}

static void stand(struct electorate *of)
{
    int status = quorlock_candidate_stand(of->candidate);

    expect(of, "stand", status);
    of->standing = status == QUORLOCK_OK;
}

static void free_candidate(struct electorate *of)
{
    quorlock_candidate *candidate = of->candidate;

    TRACE(of->world, "client %u  < frees its candidate", of->client);
    of->candidate = NULL;
    of->standing = false;
    close_window(of);
    quorlock_candidate_free(candidate);
}

static void free_observer(struct electorate *of)
{
    quorlock_observer *observer = of->observer;

    of->observer = NULL;
    quorlock_observer_free(observer);
}

/* Its hold is nobody's window: it has no term. */
static void take_plainly(struct electorate *of)
{
    const char *const name = NAME;
    const struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = of->world->plan->lease_ms, .wait_ms = QUORLOCK_TRY_ONCE};

    if (of->plain != NULL) {
        quorlock_lock_free(of->plain);
        of->plain = NULL;
    } else if (quorlock_lock_new(&of->plain, of->world->clients[of->client].client, &name, 1, &options) ==
               QUORLOCK_OK) {
        (void)quorlock_lock_acquire(of->plain, NULL, NULL);
    }
}

static void stop(struct electorate *of)
{
    if (of->candidate != NULL) free_candidate(of);
    if (of->observer != NULL) free_observer(of);
    if (of->plain != NULL) quorlock_lock_free(of->plain);
    of->plain = NULL;
}

static void resign(struct electorate *of)
{
    TRACE(of->world, "client %u  < resigns", of->client);
    close_window(of);
    (void)quorlock_candidate_resign(of->candidate);
}

/* A callback may do anything. */
static void act_inside(struct electorate *of)
{
    bool is_open = is_here(of) && of->world->clients[of->client].state == CLIENT_OPEN;

    if (!is_open || of->world->phase >= PHASE_HEALED || !rng_one_in(&of->inside, 6)) return;
    switch (rng_below(&of->inside, 5)) {
    case 0:
        if (of->candidate != NULL) resign(of);
        break;
    case 1:
        if (of->candidate != NULL) free_candidate(of);
        break;
    case 2:
        if (of->candidate == NULL) make_candidate(of);
        if (of->candidate != NULL && !of->standing) stand(of);
        break;
    case 3:
        if (of->observer != NULL) free_observer(of);
        break;
    default:
        if (of->observer == NULL) make_observer(of);
        break;
    }
}

static void act_in(struct electorate *of, uint64_t pause_us);

static void act(void *arg)
{
    struct electorate *of = arg;
    bool steady = of->world->phase >= PHASE_HEALED;
    uint64_t choice = rng_below(&of->rng, 12);

    of->called = false;
    if (!is_here(of) || of->world->clients[of->client].state != CLIENT_OPEN) return;
    if (of->world->phase >= PHASE_STOPPED) {
        stop(of);
        return;
    }
    if (of->candidate == NULL) {
        make_candidate(of);
    } else if (!of->standing) {
        stand(of);
    } else if (!steady && (choice == 2 || (choice < 2 && of->open && !of->deposed))) {
        resign(of);
    } else if (!steady && choice == 3) {
        free_candidate(of);
    }
    if (of->observer == NULL) {
        make_observer(of);
    } else if (!steady && choice == 4) {
        free_observer(of);
    }
    if (is_here(of) && (of->plain != NULL || (!steady && choice > 8))) take_plainly(of);
    if (leads(of)) check_others(of);
    act_in(of, AGAIN_US + rng_below(&of->rng, (uint32_t)lease_us(of)));
}

static void on_moment(void *arg)
{
    struct electorate *of = arg;

    if (!is_here(of) || of->world->clients[of->client].state != CLIENT_OPEN || of->called) return;
    of->called = true;
    machine_call(process_at_home(of)->machine, act, of);
}

static void act_in(struct electorate *of, uint64_t pause_us)
{
    of->moment.happen = on_moment;
    of->moment.arg = of;
    queue_set(&of->world->queue, &of->moment, world_now(of->world) + pause_us);
}

/* ---- for the rest of the world ---- */

void election_build(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_clients; i++) {
        struct electorate *of = &world->electorates[i];

        memset(of, 0, sizeof(*of));
        of->world = world;
        of->client = i;
        rng_seed(&of->rng, world->plan->seed, 6000 + i);
        rng_seed(&of->inside, world->plan->seed, 6500 + i);
        of->margin_ms = rng_one_in(&of->rng, 2) ? world->plan->lease_ms / 4 : 0;
    }
}

void election_begin(struct user_client *client)
{
    struct electorate *of = &client->world->electorates[client->index];

    if (!client->world->plan->elections) return;
    act_in(of, rng_below(&of->rng, (uint32_t)lease_us(of)));
}

void election_forget(struct user_client *client)
{
    struct electorate *of = &client->world->electorates[client->index];

    if (!client->world->plan->elections) return;
    close_window(of);
    of->candidate = NULL;
    of->observer = NULL;
    of->plain = NULL;
    of->standing = of->called = false;
    of->known_term = 0;
    queue_set(&client->world->queue, &of->moment, NEVER);
}

void election_killed(struct process *process)
{
    struct world *world = process->world;

    for (uint32_t i = 0; i < world->plan->n_clients && world->plan->elections; i++) {
        struct electorate *of = &world->electorates[i];

        if (process_of(world, i) != process || !leads(of) || !of->open) continue;
        of->ghost_until_us = process_true_us(process, of->until_us);
        close_window(of);
    }
}

/* A client that lists one server twice never leads, and one of all nodes perhaps not. */
static bool counts(const struct world *world, uint32_t client)
{
    return !world->plan->clients[client].twins && world->plan->clients[client].policy != QUORLOCK_POLICY_ALL;
}

/* Somebody leads, and all observers know it that can. */
bool election_is_settled(struct world *world)
{
    uint32_t n = 0;
    uint64_t term = 0;

    for (uint32_t i = 0; i < world->plan->n_clients && world->plan->elections; i++) {
        struct electorate *of = &world->electorates[i];

        n += counts(world, i);
        if (of->open && !of->deposed && leads(of)) term = of->term;
    }
    if (n == 0) return true;
    for (uint32_t i = 0; i < world->plan->n_clients && term != 0; i++) {
        if (!counts(world, i) || world->clients[i].state != CLIENT_OPEN) continue;
        /* Of a leader whose key every node has forgotten once, and was given back, the counters may show too much. */
        if (world->electorates[i].known_term < term) return false;
    }
    world->totals->of[TOTAL_ELECTION_SETTLED] += term != 0;
    return term != 0;
}

void election_hurry(struct world *world)
{
    for (uint32_t i = 0; i < world->plan->n_clients && world->plan->elections; i++) {
        struct electorate *of = &world->electorates[i];

        if (world->clients[i].state == CLIENT_OPEN) act_in(of, rng_below(&of->rng, 1000));
    }
}
