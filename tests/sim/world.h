/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - everything that exists in one simulated run
 *
 * True time is microseconds from 0, which no client or node knows; each has a clock of its own.
 *
 * sim.h says which file does what.
 */
#ifndef QUORLOCK_SIM_WORLD_H
#define QUORLOCK_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "../../src/core/core.h"
#include "../../src/core/nodeclock.h"
#include "events.h"
#include "plan.h"
#include "rng.h"
#include "totals.h"

#define WORLD_NOBODY UINT32_MAX

enum invariant {
    INVARIANT_NONE,
    I1_EXCLUSION,
    I2_UNIQUE,
    I3_RISES,
    I4_ORDER,
    I5_QUORUM_HOLDS,
    I6_NOTIFIED_ONCE,
    I7_FOREIGN_VOTE,
    I8_LEFT_BEHIND,
    I9_LIVENESS,
    I10_FORGOTTEN,
    STALE_WRITE,
    REQUEST_STORM,
    INVARIANTS
};

/* Rules of the server's scripts, and of the guard, that a control breaks. */
enum server_rule {
    SERVER_SOUND,
    SERVER_SHORTENS,        /* an extend sets the expiry although it is earlier */
    SERVER_RESURRECTS,      /* an extend sets a missing key */
    SERVER_DELETES_ANY,     /* a release deletes the key of any owner */
    SERVER_NO_GUARD,        /* the guard is not looked at */
    SERVER_UPTIME_GUARD,    /* the guard is the server's uptime, as INFO reports it */
    SERVER_TWINS_UNSEEN,    /* run_ids are not compared */
    SERVER_TWINS_FORGOTTEN, /* run_ids of nodes that are connected right now are, and no others */
    SERVER_NO_FLOOR,        /* a token is the counter's successor, whatever the time */
    SERVER_TAKES_ANY,       /* the register takes every write, whatever its token */
    SERVER_RAISES_ANY,      /* no floor; a raise sets the counter of any owner's lock to any value */
};

/* The value of the guard key. */
struct guard {
    bool there;
    uint32_t run, replid;
    uint64_t until_ms; /* node's clock */
};

struct slot {
    bool set;
    struct core_token token;
    uint64_t expires_ms;   /* node's clock; expired from then on */
    uint64_t last_sent_us; /* of the command that wrote it last, owner's clock */
    uint64_t last_lease_us;
    uint32_t generation; /* of the connection that wrote it last */
    uint32_t lock, life;
    bool late;           /* written after its connection had ended for the client */
    uint64_t watched_us; /* the expiry that is planned for, 0: none */
};

/* The memory of an earlier moment. */
struct replica {
    bool there;
    struct slot slots[PLAN_KEYS_MAX];
    uint64_t counters[PLAN_KEYS_MAX];
    struct guard guard;
};

struct node {
    bool up;
    uint32_t life;        /* connections do not outlive it */
    uint32_t run, replid; /* run_id and master_replid */
    uint64_t started_us;
    uint64_t offset_us; /* its clock's, steps included */
    bool stepped_back;
    uint64_t frozen_until_us, busy_until_us;
    uint64_t refuse_writes_until_us, refuse_all_until_us;
    uint64_t notices_lost_until_us; /* its notices get lost until then */
    uint32_t scripts;               /* a bit for each enum op it knows the script of */
    struct slot slots[PLAN_KEYS_MAX];
    uint64_t counters[PLAN_KEYS_MAX]; /* of fencing tokens */
    struct guard guard;
    struct replica replica;
    uint32_t acquires; /* counts up: the order in which attempts took it */
};

struct request {
    struct core_command command;
    struct core_reply reply;
    uint64_t sent_us; /* true time */
    uint64_t late_us; /* arrives so much later */
    uint32_t serial;
    uint32_t next; /* in its connection's order, or in the free list */
    uint32_t generation;
    uint32_t lock, life;
    struct guard seen;    /* the guard as its connection knew it */
    uint64_t node_us;     /* the node's clock, where the reply reports it; 0: not */
    uint8_t client, node; /* the client's entry; plan_server() answers */
    bool guard_broken;    /* the reply says so */
    bool queued;          /* still in its connection's order */
    bool landed;          /* nothing more will happen to it on the wire */
    bool reported;        /* the core knows of its end */
    bool served;          /* its turn at the server is planned */
    bool executed;
    bool dropped;
};

struct link {
    uint32_t client, node;
    enum node_state state;
    enum fault_class fault;
    uint32_t generation;  /* of the connection that is READY, or was last */
    uint32_t server_gone; /* the server's end of connections up to this generation is gone */
    uint32_t tries, failures;
    uint32_t node_life; /* of the server that the present try talks to */
    uint64_t try_until_us;
    uint64_t to_last_us, from_last_us; /* order on the wire */
    uint64_t to_cut_until_us, from_cut_until_us, slow_until_us;
    uint64_t slow_us;
    uint32_t srtt_us;
    uint32_t first, last; /* requests in order */
    bool watched;         /* a STALL is planned */

    struct guard seen;            /* the node's guard as reported last */
    struct guard answer;          /* on its way to us: */
    uint64_t answer_left_ms;      /* what is left of the quarantine */
    bool greeted;                 /* the present handshake has got its answer */
    uint64_t quarantine_until_us; /* own clock; 0: none */
    uint32_t run;                 /* run_id of the server behind the connection, now or last */
    bool expelled;                /* a server listed twice: leave it alone for long */
    struct nodeclock clock;
};

struct client {
    bool alive;
    uint64_t last_now_us; /* own clock never runs backwards */
    uint64_t paused_until_us;
    uint64_t paused_total_us;
    uint64_t unsent_until_us; /* cannot queue until then */
    /* Its clock stood still from .. until, and altogether. */
    uint64_t suspended_from_us, suspended_until_us, suspended_us;
    uint32_t callbacks, sends; /* opportunities for PAUSE_ and DEATH_ of CALLBACK and SEND so far */
    struct rng rng;
    struct link links[PLAN_NODES_MAX];
};

/* What a node said yes to, as seen from outside of the core. */
struct seen_vote {
    uint64_t attempt;
    uint64_t end_us; /* send time + lease - allowance */
};

/* The counter a node showed, and its place in the order of the attempts that took this node. */
struct shown {
    uint64_t attempt;
    uint64_t fence;
};

/* Begun, and its end is not reported yet. */
struct operation {
    bool pending;
    uint64_t since_us, pauses_us; /* of the client, until then */
};

struct verdicts {
    struct operation acquiring, extending, releasing;
    bool notified_held; /* granted, and neither lost nor released since */
    bool lost;          /* loss of this grant was reported */
    bool past_lost_at;  /* a step came at lost_at or later */
    bool open;          /* the reported validity window is open, as far as was reported */
    bool other_seen;    /* since the acquire began a node refused us */
    uint64_t until_us;  /* its end, client's clock */
    uint64_t absent_attempt;
    uint32_t absent_nodes; /* bits: nodes that said "not there" in that attempt */
    struct seen_vote votes[PLAN_NODES_MAX];
    struct shown shown[PLAN_NODES_MAX];
    uint64_t attempt; /* whose begin is */
    uint64_t attempt_begun_us;
    uint32_t grant; /* of world->grants: the present one, with a token */
};

/* One lock's subscription at one node. */
struct subscription {
    uint32_t serial;  /* what belongs to another one is dropped */
    bool subscribed;  /* at the server */
    uint64_t last_us; /* order on the wire */
};

/* A key that a node lost by a fault: until then the node would have held it. */
struct shadow {
    struct core_token token;
    uint64_t expires_ms;
};

/* One that was reported, with a token. */
struct grant {
    uint64_t token;
    uint64_t begun_us, reported_us;
    uint32_t order[PLAN_NODES_MAX]; /* when it took the nodes that it counts; 0: does not count */
    uint32_t lock;
    uint8_t key;
};

/* A resource that refuses tokens older than it has seen. */
struct guarded_register {
    uint64_t newest;
    uint64_t latest_begun_us; /* of the grants whose writes it took */
};

enum actor_state {
    ACTOR_IDLE,
    ACTOR_ACQUIRING,
    ACTOR_HOLDING,
    ACTOR_EXTENDING,
    ACTOR_LOST,
    ACTOR_RELEASING,
    ACTOR_FREED,
    ACTOR_DEAD
};

struct lock {
    uint32_t index;
    struct core_lock *core;
    struct core_config config;
    uint8_t client, key;
    uint32_t life;     /* counts core_init */
    uint64_t timer_us; /* true time a TIMER is planned for, 0: none */
    bool dispatch_planned;
    bool listens; /* to notices: */
    struct subscription subscriptions[PLAN_NODES_MAX];
    bool had_turn; /* was granted after the faults had ended */
    bool active;   /* gets node states and replies: not quiet */
    uint64_t taken_attempt[PLAN_NODES_MAX];
    uint32_t taken_order[PLAN_NODES_MAX]; /* of servers, by that attempt */

    enum actor_state state;
    uint32_t act_serial;
    uint64_t hold_until_us; /* true time the actor means to release at */

    struct verdicts verdicts;
};

/* The window of a client that died holding. */
struct ghost {
    uint64_t until_us; /* owner's clock */
    uint8_t client, key;
};

/* Since the owner of a hold has called release, while another lock waits. */
struct handover {
    bool open;
    uint64_t since_us;
    uint32_t requests; /* since then */
    uint32_t all;      /* since the grant before */
};

enum world_phase { PHASE_FAULTS, PHASE_HEALED, PHASE_STOPPED, PHASE_SILENT };

struct violation {
    enum invariant invariant;
    uint64_t at_us;
    char text[240];
};

struct world {
    const struct plan *plan;
    struct totals *totals;
    uint64_t now_us;
    enum world_phase phase;
    uint64_t phase_until_us;
    struct events events;
    struct rng chance;            /* of links and servers */
    struct rng subscriptions_rng; /* of notices */
    struct node nodes[PLAN_NODES_MAX];
    struct client clients[PLAN_CLIENTS_MAX];
    struct lock locks[PLAN_LOCKS_MAX];
    struct ghost ghosts[PLAN_CLIENTS_MAX];
    uint32_t n_ghosts;
    struct shadow shadows[PLAN_NODES_MAX][PLAN_LOCKS_MAX];
    struct guarded_register registers[PLAN_KEYS_MAX];
    struct grant *grants;
    uint32_t n_grants, grants_capacity;
    uint32_t runs; /* of servers, so far: run_ids and replids are made of it */
    uint32_t grants_healed[PLAN_KEYS_MAX];
    struct handover handover[PLAN_KEYS_MAX];
    struct handovers *handovers; /* measured here; NULL: not */
    struct request *requests;
    uint32_t n_requests, requests_capacity, free_request;
    unsigned char *memory; /* of all core_locks */

    enum server_rule server_rule;
    uint32_t judged; /* a bit for each enum invariant that ends the run */
    struct violation violation;
    bool over;
    uint64_t hash;
    bool trace;
};

/* world_open, world_close - memory that serves many runs. */
void world_open(struct world *);
void world_close(struct world *);
/* world_room - room for one more item behind n; ends the program when memory is out. */
void *world_room(void *items, uint32_t n, uint32_t *capacity, size_t size);
/* world_lock_size - of a core_lock in world->memory. */
static inline size_t world_lock_size(void)
{
    return (core_size(PLAN_NODES_MAX) + 63) / 64 * 64;
}
/* world_run - one whole run; true where nothing was violated. Totals are added to. */
bool world_run(struct world *, const struct plan *, struct totals *);

/* fault.c */
void fault_plan_all(struct world *);
/* fault_event - its begin, or a later part of it. */
void fault_event(struct world *, uint32_t index, uint32_t part);
void fault_restart(struct world *, uint32_t node, uint32_t life);
/* fault_heal - ends every fault; nodes that are planned to be gone stay or go down. */
void fault_heal(struct world *);

/* clocks: what a clock shows, and the first true time at which it shows at least that */
uint64_t clock_read(uint64_t offset_us, int32_t rate_ppm, uint64_t true_us);
uint64_t clock_when(uint64_t offset_us, int32_t rate_ppm, uint64_t shown_us);
uint64_t world_client_clock(const struct world *, uint32_t client, uint64_t true_us);
uint64_t world_client_when(const struct world *, uint32_t client, uint64_t shown_us);
/* world_node_us, world_node_ms - of the server, now. */
uint64_t world_node_us(const struct world *, uint32_t server);
uint64_t world_node_ms(const struct world *, uint32_t server);
/* world_wall_us - a client's wall clock, now. */
uint64_t world_wall_us(const struct world *, uint32_t client);

static inline bool world_talks(enum node_state state)
{
    return state == NODE_READY || state == NODE_QUARANTINED;
}

/* world_in_order - not before what went before on the same way. */
static inline uint64_t world_in_order(uint64_t *last_us, uint64_t at_us)
{
    if (at_us > *last_us) *last_us = at_us;
    return *last_us;
}

static inline void world_plan(struct world *world, uint64_t at_us, enum event_type type, uint32_t client, uint32_t node,
                              uint32_t index, uint32_t serial)
{
    events_plan(&world->events, &(struct event){.at_us = at_us,
                                                .type = (uint8_t)type,
                                                .client = (uint8_t)client,
                                                .node = (uint8_t)node,
                                                .index = index,
                                                .serial = serial});
}

/* world_postpone - the same event again, at that time. */
static inline void world_postpone(struct world *world, const struct event *event, uint64_t at_us)
{
    struct event again = *event;

    again.at_us = at_us;
    events_plan(&world->events, &again);
}

/* world_apart - a small pause, the same for all that is on one connection after one standstill: what waited on
 * different connections goes on in any order, on one connection in its own. */
static inline uint64_t world_apart(const struct world *world, uint64_t until_us, uint32_t a, uint32_t b)
{
    return rng_mix(world->plan->seed ^ until_us, ((uint64_t)a << 32) | b) % 400;
}

#endif
