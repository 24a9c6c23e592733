/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - all that exists in one simulated run of the whole library, and the run itself
 *
 * The functions of each part stand in a header of its name:
 *
 *   plan      what the run is made of, drawn from the seed
 *   world     builds it, and leads it through its phases
 *   process   a process on a machine: its clients, its deaths, and the faults that strike inside of it
 *   user      the calls of the library's public API, and its callbacks, as promises
 *   actor     what users do with their locks, by chance
 *   crowd     a client that wants thousands of locks at once
 *   operator  faults of servers and links, and what operators do about them
 *   executed  what servers execute and change
 *   membership  the clients get another set of nodes, one process after the other
 *   judge     what must hold in true time, seen from outside of the library
 *   holds     what servers hold of locks, slots and readers
 *   keep      locks that are kept after their release
 *   peer      a client of another kind
 *   fair      the order of fair locks
 *   passing   locks that pass from one actor to another
 *   rest      what is left on the servers in the end
 *   tokens    fencing tokens, and a register that they guard
 *   election  candidates and observers of one election
 *   handover  how long a lock is free while others wait, where nothing fails
 *   modes     how long readers and writers wait for each other, and for a permit
 *   rare      states that must be reached
 *   trace     the story of a run
 *   actions   the same as actions of the model in tests/model
 *   shrink    the same run with less in it
 *   controls  rules broken on purpose, which the judge must notice
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <quorlock/election.h>

#include "base/expiry.h"
#include "parts/machine.h"
#include "parts/net.h"
#include "parts/queue.h"
#include "parts/rng.h"
#include "parts/server.h"
#include "plan.h"
#include "totals.h"

#define MS            UINT64_C(1000)
#define LATE_US       40000u /* what a loop's lateness may add to any bound */
#define NOBODY        UINT32_MAX
#define KEY_SIZE      32u
#define TOKEN_SIZE    160u
#define PROMISES_MAX  131072u
#define GRANTS_MAX    16384u
#define SHADOWS_MAX   4096u
#define GHOSTS_MAX    256u
#define GIVEN_UP_MAX  256u
#define KEPT_MAX      256u
#define PASSED_MAX    256u
#define HOLDS_MAX     64u                     /* takings of a key on a server whose order is remembered */
#define MACHINES_ALL  (PLAN_MACHINES_MAX + 1) /* with the operator's */
#define OWNER_CLIENTS (PLAN_CLIENTS_MAX + 1)

/* Where something is held on a server: the key, or the slots of a name with permits; and the readers of the key. */
enum { PLACE_READERS = PLAN_PERMITS_MAX, PLACES_OF_KEY, PLACES = PLAN_KEYS_MAX * PLACES_OF_KEY };

/* I1 to I18: chapter 16 of src/protocol.md. */
enum invariant {
    INVARIANT_NONE,
    I1_EXCLUSION,
    I2_UNIQUE,
    I3_RISES,
    I4_ORDER,
    I5_QUORUM_HOLDS,
    I6_TOLD_ONCE,
    I7_FOREIGN_VOTE,
    I8_LEFT_BEHIND,
    I9_LIVENESS,
    I10_FORGOTTEN,
    I11_OWN_LOAD,
    I12_PERMITS,
    I13_READERS,
    I14_GIVEN_UP,
    I15_ORDER_OF_COMING,
    I16_ONE_LEADER,
    I17_TERMS_RISE,
    I18_KEPT,
    SERVERS_KEEP,
    STALE_WRITE,
    REQUEST_STORM,
    UNEXPLAINED,
    LEAK,
    CRASH, /* found by nobody in the process: of controls, which run it in a process of its own */
    INVARIANTS
};

enum promise_kind {
    PROMISE_ACQUIRE,
    PROMISE_EXTEND,
    PROMISE_RELEASE,
    PROMISE_INSPECT,
    PROMISE_BREAK,
    PROMISE_EXAMINE,
    PROMISE_BOOTSTRAP,
    PROMISE_CLOSE,
    PROMISES
};

struct world;

/* A callback that a call promised by returning 0. */
struct promise {
    struct world *world;
    struct actor *actor; /* NULL: nobody's */
    quorlock_lock *lock;
    uint8_t kind, client;
    bool pending, freed;
    uint32_t handle; /* the actor's, when it was made */
    uint32_t flood;  /* of a crowd's lock; else NOBODY */
    uint64_t since_us, stood_us, bound_us;
};

/* What is held, and how. */
struct held {
    uint8_t keys, shared; /* bits */
    uint8_t slot, permits;
};

/* What a handle reports to hold, and until when. */
struct window {
    struct held held;
    bool open;
    bool fresh;          /* not checked since it was opened or grew */
    bool ended;          /* quorlock_lock_valid_ms() has said 0 */
    uint64_t until_us;   /* machine's clock */
    uint64_t asked_us;   /* the same: not later than the vote that its validity counts from was asked for */
    uint64_t granted_us; /* the same: when the callback said granted */
    uint64_t token_hash; /* of its owner token */
    uint64_t fence;
    char token[TOKEN_SIZE];
};

enum actor_state { ACTOR_IDLE, ACTOR_ACQUIRING, ACTOR_HOLDING, ACTOR_EXTENDING, ACTOR_LOST, ACTOR_RELEASING };

/* A user of one lock. */
struct actor {
    struct world *world;
    const struct plan_actor *plan;
    uint32_t index;
    struct rng rng;
    struct moment moment;
    enum actor_state state;
    bool called; /* machine_call() has it */
    bool had_turn;
    uint64_t hold_until_us;
    uint64_t quiet_until_us; /* its user's code is busy until then */

    quorlock_lock *lock; /* NULL: none */
    struct expiry shown;
    uint32_t handle;   /* counts up with each */
    uint32_t lease_ms; /* of the handle, as extended */
    uint32_t holds;    /* granted, and not released */
    bool lost;         /* told so since the grant */
    bool no_lost;      /* its owner does not listen */
    uint32_t releasing;
    struct promise *acquiring, *extending;
    uint64_t acquire_since_us, longest_us; /* it has waited, in the time of faults */
    uint32_t n_grants;
    uint64_t round_begun_us; /* its token cannot be older */
    uint64_t granted_us;
    struct window window;
    uint32_t grant;          /* of world->grants; NOBODY: none */
    uint32_t kept;           /* of world->kept, until its release has ended; NOBODY: none */
    struct passed *adopting; /* whose token it adopts; NULL: it does not */
};

/* A client's part in the election. */
struct electorate {
    struct world *world;
    uint32_t client, margin_ms;
    struct rng rng, inside; /* of what it does, and does in callbacks */
    struct moment moment;
    bool called;
    quorlock_candidate *candidate;
    struct expiry shown;
    bool standing; /* its end is owed */
    /* The window in which it may act as the leader. */
    bool open, deposed;
    uint64_t term, until_us; /* machine's clock */
    uint64_t ghost_until_us; /* true time: of a process that died leading */
    quorlock_observer *observer;
    uint64_t newest, newest_owner; /* that it was told of */
    uint64_t known_term;           /* 0: it knows of no leader */
    quorlock_lock *plain;          /* a lock on the key, without a term */
};

struct crowd {
    quorlock_lock **locks;
    bool *held;
    uint64_t *hold_until_us;
    uint32_t n, next, granted, done;
    bool begun;
    struct moment moment;
};

enum client_state { CLIENT_NONE, CLIENT_OPEN, CLIENT_CLOSING };

struct user_client {
    struct world *world;
    uint32_t index, machine;
    quorlock_client *client;
    struct expiry_clock clock; /* for other threads, as the judge is one */
    enum client_state state;
    uint32_t life;
    bool renewed; /* has the settings of after the change */
    bool let_in;  /* it has had a lock, so nodes have accepted its login */
    struct rng rng;
    struct moment moment; /* it is made, or made again */
    struct promise *closing;
    uint32_t pending; /* promises of it */
    char label[16];
    struct crowd crowd;
};

/* Opportunities of a kind, counted for faults that strike at the nth. */
enum opportunity { AT_CALLBACK, AT_CLOCK, AT_SEND, OPPORTUNITIES };

struct process {
    struct world *world;
    uint32_t index;
    struct machine *machine;
    bool alive, inside; /* a callback or an event of it is on the stack */
    uint32_t life;
    uint64_t stands_until_us;      /* true time */
    uint64_t stood_us;             /* altogether */
    bool stood_in_turn;            /* behind the last callback, so perhaps behind the last look at the clock */
    bool stood_at_look;            /* in this turn, where the library looked at the clock or sent */
    uint32_t armed[OPPORTUNITIES]; /* faults that wait for one */
    struct machine_events events;
    uint64_t no_memory_until_us;
    uint32_t allocations, no_memory_one_in;
    uint64_t no_random_until_us;
    uint32_t draws, no_random_one_in;
    int32_t rate_ppm;
    struct moment birth, renewal;
    bool renewed; /* the clients that it makes are */
};

/* The window of a process that died holding. */
struct ghost {
    uint64_t until_us; /* true time */
    uint64_t token_hash;
    uint32_t actor;
    struct held held;
};

/* A key that a server lost by a fault: until then it would have held it. */
struct shadow {
    uint64_t token_hash;
    uint64_t expires_ms; /* server's clock */
    uint8_t server, place;
};

/* A token that nobody holds stands on a server, since then in a row. */
struct given_up {
    uint64_t token_hash, since_us;
    uint8_t server, place;
    bool stands;
};

/* A lock that one actor has detached. */
struct passed {
    uint64_t token_hash, fence;
    char token[128];
    uint8_t keys;
    bool fencing;
    bool waits; /* for an actor that adopts it */
};

/* A lock that is kept after its release. */
struct kept {
    uint64_t token_hash;
    struct held held;
    uint32_t actor;
    uint64_t released_us;     /* true time of the call */
    uint64_t least_us;        /* machine's clock: it is kept until then at least */
    uint64_t rest_us;         /* for how long from the call on, at most */
    uint64_t closed_until_us; /* true time: nobody else is granted the key before; 0: that is not known yet */
};

/* An owner took a place on a server. */
struct taking {
    uint64_t token_hash;
    uint32_t order;
    bool quarantined; /* the server had no vote then */
};

struct site {
    struct world *world;
    uint32_t index;
    struct taking takings[PLACES][HOLDS_MAX];
    uint32_t n_takings[PLACES];
    uint32_t order;
    struct moment second_look; /* when the command that changed something has ended */
    uint8_t readers_changed;   /* bits of keys */
    uint64_t frozen_until_us;
    struct moment back; /* of a crash */
    enum server_memory memory;
    uint64_t loading_us;
    bool new_replid, down, gone, stepped_back, late;
    bool old;                  /* it came back with older memory */
    uint64_t executed_late_us; /* when it executed something of a connection that had been closed */
    struct model_memory *snapshot;
    struct model_events events;
    /* Its password, by its number, and the one that clients have; 0: none. */
    uint32_t newest_password, told_password;
    char password[16];
};

/* A client of another kind: it holds a key on all servers, and gives it back. */
struct peer {
    struct moment moment;
    uint64_t until_us;
    uint8_t key;
    bool held;
    char token[24];
};

struct fault_run {
    struct world *world;
    uint32_t index;
    struct moment begin, end;
    uint64_t until_us;
    uint32_t count;
    bool begun, ended, armed;
};

struct grant {
    uint64_t token, begun_us, reported_us, token_hash;
    uint32_t order[PLAN_SERVERS_MAX]; /* when it took the servers that hold it; 0: does not hold it */
    uint32_t actor;
    struct held held;
};

struct written {
    struct moment moment;
    struct world *world;
    uint32_t grant;
};

/* A resource that refuses tokens older than it has seen. */
struct guarded_register {
    uint64_t newest;
    uint64_t latest_begun_us; /* of the grants whose writes it took */
};

/* How a hold of a key ended, as far as the next one has not begun. */
struct freed {
    uint64_t at_us;
    uint32_t client;
    enum { FREED_NOT, FREED_BY_RELEASE, FREED_BY_NOBODY } by;
};

/* Since the owner of a hold has called release, while another waits. */
struct handover {
    bool open;
    uint64_t since_us;
    uint32_t requests, all; /* since then; since the grant before */
    uint32_t n, n_slow;
};

enum { HANDOVER_BUCKETS = 4096, HANDOVER_PER_TRIP = 20 };

/* Of many runs. */
struct handovers {
    uint64_t n;
    uint64_t requests;             /* from release to grant */
    uint64_t all;                  /* from grant to grant */
    uint64_t most;                 /* the same, of the grant that cost most */
    uint32_t of[HANDOVER_BUCKETS]; /* by length, in parts of a round trip */
};

enum world_phase { PHASE_FAULTS, PHASE_HEALED, PHASE_STOPPED, PHASE_QUIET, PHASE_LATE, PHASE_CLOSING, PHASE_SILENT };

struct violation {
    enum invariant invariant;
    uint64_t at_us;
    char text[300];
};

#define WRITES_MAX 64u

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what belongs together stands together. */
struct world {
    const struct plan *plan;
    struct totals *totals;
    struct queue queue;
    struct net *net;
    struct process processes[MACHINES_ALL];
    struct server *servers[PLAN_SERVERS_MAX];
    struct site sites[PLAN_SERVERS_MAX];
    struct user_client clients[OWNER_CLIENTS];
    struct actor actors[PLAN_ACTORS_MAX];
    struct fault_run faults[PLAN_FAULTS_MAX];
    struct electorate electorates[PLAN_CLIENTS_MAX];
    uint64_t term; /* the newest of a leader */
    struct peer peer;
    struct moment boot_moment, phase_moment, operator_moment;
    bool bootstraps, bootstrap_again; /* the operator does; once more */
    bool rewrites;                    /* it wrote guards over others */
    bool bootstraps_after_heal;       /* also when what it does now went well */
    bool changed;                     /* a reconfigure has ended with 0 */
    uint32_t reconfigures;
    enum world_phase phase;
    uint64_t healed_us, phase_until_us;
    char prefix[8];
    char keys[PLAN_KEYS_MAX][KEY_SIZE], full_keys[PLAN_KEYS_MAX][KEY_SIZE];
    char set_name[16];

    struct ghost ghosts[GHOSTS_MAX];
    uint32_t n_ghosts;
    struct shadow *shadows;
    uint32_t n_shadows;
    struct given_up given_up[GIVEN_UP_MAX];
    uint32_t n_given_up;
    struct kept kept[KEPT_MAX];       /* the latest ones */
    uint32_t n_kept;                  /* ever */
    struct passed passed[PASSED_MAX]; /* the latest ones */
    uint32_t n_passed;                /* ever */
    struct grant *grants;
    uint32_t n_grants;
    struct promise *promises;
    uint32_t n_promises;
    struct written writes[WRITES_MAX];
    struct guarded_register registers[PLACES];
    struct freed freed[PLAN_KEYS_MAX];
    struct handover handover;                 /* where nothing fails there is one key */
    struct handovers *handovers;              /* measured here; NULL: not */
    uint32_t grants_healed[PLAN_KEYS_MAX][2]; /* to writers, or of permits; to readers */
    uint64_t runs;                            /* of servers */
    uint64_t commands, rounds;                /* executed; attempts that calls were told of */

    uint32_t judged; /* a bit for each enum invariant that ends the run */
    struct violation violation;
    bool over, judging;
    bool register_checks; /* a control takes every write */
    bool buggify;         /* clients make troubles up, */
    uint64_t made_up;     /* as their logs say */
    uint64_t hash;
    bool trace;
    bool actions; /* the run is printed as actions of the model */
};

/* world_open, world_close - allocate and free memory that serves many runs. */
void world_open(struct world *);
void world_close(struct world *);
/* world_run - run the plan, and add to the totals; return whether no invariant was violated. */
bool world_run(struct world *, const struct plan *, struct totals *);
/* world_full_key - return the key as it is on the servers. */
const char *world_full_key(const struct world *, uint32_t key);
/* world_bare - return a name of the servers without the prefix; and its length. NULL: it has another front. */
const char *world_bare(const struct world *, const char *name, size_t length, size_t *ret_length);
/* world_key_index - return the index of a key of the servers. NOBODY: the plan does not have it. */
uint32_t world_key_index(const struct world *, const char *key, size_t length);
/* world_mix - add an event to the hash of the run. The same seed must give the same hash. */
void world_mix(struct world *, uint64_t what);
uint64_t world_hash(const void *bytes, size_t length);
static inline uint64_t world_now(const struct world *world)
{
    return world->queue.now_us;
}
