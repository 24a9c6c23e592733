/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - what one run is made of: the world's shape, its users and its faults, drawn from one seed beforehand
 *
 * Users and faults are lists and features are bits, so that a failing run can be tried again without some of them.
 * Faults inside of what is promised may be in every plan; those outside only in plans that say so, where exclusion
 * is not judged.
 */
#pragma once

#include <quorlock/quorlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    PLAN_MACHINES_MAX = 30,
    PLAN_CLIENTS_MAX = 30,
    PLAN_SERVERS_MAX = 7,
    PLAN_ACTORS_MAX = 48,
    PLAN_KEYS_MAX = 6,
    PLAN_PERMITS_MAX = 5,
    PLAN_FAULTS_MAX = 48,
    PLAN_WAIT_MIN_MS = 60, /* a lock that waits less may never be granted */
};

/* What the wall clocks show when true time is 0, but for their errors. */
#define PLAN_EPOCH_US UINT64_C(1700000000000000)

/* What users do, and how; a run has some of it. Name and text for reports. */
#define PLAN_FEATURE_MAP(X)                                                                                            \
    X(FENCING, "fencing tokens")                                                                                       \
    X(KEYLISTS, "locks of several keys")                                                                               \
    X(OWNERS, "owners, whose holds nest")                                                                              \
    X(EXTENDS, "extends")                                                                                              \
    X(CANCELS, "cancels")                                                                                              \
    X(FREES, "handles are freed in any state")                                                                         \
    X(CLOSES, "clients are closed in any state")                                                                       \
    X(INSIDE, "callbacks free, close and acquire")                                                                     \
    X(MISUSES, "calls that must be refused")                                                                           \
    X(READS, "inspect and examine")                                                                                    \
    X(TRIES, "locks that try once")                                                                                    \
    X(BOUNDS, "waits with a bound")                                                                                    \
    X(UNRENEWED, "leases that are not renewed")                                                                        \
    X(MIN_VALID, "grants that need a least validity")                                                                  \
    X(MAX_HOLD, "holds with a bound")                                                                                  \
    X(MARGINS, "losses that are told early")                                                                           \
    X(NAMES, "servers have host names")                                                                                \
    X(PREFIX, "a prefix of all keys")                                                                                  \
    X(REDISSON, "locks are hashes")                                                                                    \
    X(ALL, "all nodes must grant")                                                                                     \
    X(PEERS, "plain peers")                                                                                            \
    X(PAIRS, "two clients in a process")                                                                               \
    X(LATE_LOOP, "the user's own callbacks take long")                                                                 \
    X(BOOTSTRAP, "guards are made by a client")                                                                        \
    X(COLD, "no node has a guard yet")                                                                                 \
    X(LOG, "lines of the log are passed on")                                                                           \
    X(BEAT, "locks act at the same moments")                                                                           \
    X(PERMITS, "names with permits")                                                                                   \
    X(SHARED, "keys that some lock shared")                                                                            \
    X(KEEP, "locks that are kept after their release") /* plan_keep draws it, */                                       \
    X(FAIR, "fair locks")                              /* and plan_fair this one: the last two */

enum plan_feature {
#define PLAN_FEATURE_ENUM(name, text) FEATURE_##name,
    PLAN_FEATURE_MAP(PLAN_FEATURE_ENUM)
#undef PLAN_FEATURE_ENUM
        FEATURES
};

#define PLAN_FAULT_MAP(X)                                                                                              \
    X(CRASH, "server is killed, and comes back with its memory")                                                       \
    X(CRASH_EMPTY, "server is killed, and comes back empty")                                                           \
    X(CRASH_OLD, "server is killed, and comes back with older memory")                                                 \
    X(VANISH, "server's host vanishes for a while")                                                                    \
    X(PROMOTE, "a replica that fell behind takes the server's place")                                                  \
    X(FLIP, "server turns replica and back, with older memory")                                                        \
    X(FLIP_LIVE, "the same, and no connection ends")                                                                   \
    X(FLUSH, "FLUSHALL on a server, or all")                                                                           \
    X(STEP_BACK, "server's clock steps back")                                                                          \
    X(STEP_FORWARD, "server's clock steps forward")                                                                    \
    X(FREEZE, "server is frozen")                                                                                      \
    X(BUSY, "server runs a long script")                                                                               \
    X(LOADING, "server is killed, and loads for long")                                                                 \
    X(FULL, "server is out of memory")                                                                                 \
    X(MISCONF, "server cannot save")                                                                                   \
    X(MUTE, "server forbids PUBLISH")                                                                                  \
    X(KILL_CLIENTS, "server ends all its connections")                                                                 \
    X(FORGET_SCRIPTS, "server forgets its scripts")                                                                    \
    X(ODD, "a key that is no lock's stays on a server for good")                                                       \
    X(PEER_KEY, "a peer's key stands on a server")                                                                     \
    X(MOVE, "server moves to another address")                                                                         \
    X(CUT_TO, "one-way cut towards the server")                                                                        \
    X(CUT_FROM, "one-way cut from the server")                                                                         \
    X(CUT, "link is cut both ways")                                                                                    \
    X(LOSSY, "packets are lost")                                                                                       \
    X(PROXY, "a proxy is cut off, and goes on when a connection is reset")                                             \
    X(FORGET, "a middlebox forgets idle connections")                                                                  \
    X(RESET, "connections end")                                                                                        \
    X(RESET_LATE, "connections end, what was sent executes later")                                                     \
    X(SLOW, "link is slow")                                                                                            \
    X(REFUSE, "connecting is refused")                                                                                 \
    X(HANG, "connecting hangs")                                                                                        \
    X(SPLIT, "bytes come in pieces")                                                                                   \
    X(NARROW, "little is sent at a time")                                                                              \
    X(LOOKUP, "host names resolve late or never")                                                                      \
    X(STALL, "machine stalls")                                                                                         \
    X(STALL_CALLBACK, "machine stalls in a callback")                                                                  \
    X(STALL_CLOCK, "machine stalls when it reads the clock")                                                           \
    X(STALL_SEND, "machine stalls before its bytes leave")                                                             \
    X(SUSPEND, "machine is suspended")                                                                                 \
    X(PAUSE, "machine is suspended, and all its clocks stop")                                                          \
    X(KILL, "process is killed")                                                                                       \
    X(KILL_CALLBACK, "process is killed in a callback")                                                                \
    X(KILL_CLOCK, "process is killed at a look at the clock")                                                          \
    X(KILL_SEND, "process is killed while its bytes leave")                                                            \
    X(KILL_HOST, "machine vanishes")                                                                                   \
    X(NO_MEMORY, "machine is out of memory")                                                                           \
    X(NO_DESCRIPTORS, "process is out of descriptors")                                                                 \
    X(NO_RANDOM, "machine has no random bytes")                                                                        \
    X(BREAK, "an operator breaks a lock")                                                                              \
    X(RECONFIGURE, "an operator reconfigures the nodes")                                                               \
    X(ROTATE, "a server's password changes, and its connections end") /* the last: only its bias draws it */

enum plan_fault_kind {
#define PLAN_FAULT_ENUM(name, text) FAULT_##name,
    PLAN_FAULT_MAP(PLAN_FAULT_ENUM)
#undef PLAN_FAULT_ENUM
        FAULT_KINDS
};

struct plan_fault {
    enum plan_fault_kind kind;
    uint64_t at_us, for_us;
    uint32_t nth; /* of CALLBACK, CLOCK, SEND: at the nth opportunity of that machine after at_us */
    uint8_t machine, server, key;
    bool all;      /* of links: every machine's to that server, or that machine's to all servers */
    bool for_ever; /* beyond the time of faults */
    bool left_out; /* by shrinking */
};

/* What the run is bent towards. A negative control needs the situation in which its rule matters. */
#define PLAN_BIAS_MAP(X)                                                                                               \
    X(NONE, "mixed")                                                                                                   \
    X(LATE_EXECUTION, "connections end, what was sent executes late")                                                  \
    X(LATE_CLIENT, "machines stall at the worst moments")                                                              \
    X(LOSS, "servers lose their memory, under the guard")                                                              \
    X(TOKENS, "fencing, by clients whose clocks differ")                                                               \
    X(TOKENS_LOST, "fencing, and servers lose their counters")                                                         \
    X(TWINS, "clients list one server twice")                                                                          \
    X(CROWD, "many contenders, slow servers, no faults")                                                               \
    X(OUTSIDE, "faults that nothing is promised under")                                                                \
    X(QUEUE, "many contenders, lost notices, peers, one server frozen for good")                                       \
    X(CALM, "contenders, steady links, no faults: how long does a hand-over take")                                     \
    X(FROZEN, "the same, and one server freezes for good")                                                             \
    X(ODD, "the same, and one server gets a key that is no lock's")                                                    \
    X(LIVENESS, "faults that stay: a minority dead or cut one way, an odd key")                                        \
    X(FLOOD, "thousands of locks at once")                                                                             \
    X(LIVES, "clients close and handles are freed, anywhere")                                                          \
    X(MEMORY, "memory runs out again and again")                                                                       \
    X(MEMBERS, "an operator gives the clients other nodes and settings, one process after the other")                  \
    X(DEBTS, "releases meet busy servers and ends of connections, under long leases")                                  \
    X(NESTS, "owners with many holds, which are lost at once")                                                         \
    X(RECONNECTS, "many requests are on their way, and connections end again and again")                               \
    X(FARTHER, "contenders, steady links, which become longer for good")                                               \
    X(LATE_RENEWAL, "machines that hold locks stall between two answers")                                              \
    X(LATE_EXTEND, "extends are on their way for long, and are executed late")                                         \
    X(BEAT, "many locks of a client act at the same moments")                                                          \
    X(ELECTION, "candidates and observers, early losses, machines and servers that stall")                             \
    X(PERMITS, "names with permits, more users than those")                                                            \
    X(SHARED, "readers and writers, beside plain peers")                                                               \
    X(SCENES, "all do the same again and again, and each wait has a bound")                                            \
    X(PASSWORDS, "passwords change at servers and at clients, at one before the other")                                \
    X(PACKETS, "links lose packets, under leases that outlive that")                                                   \
    X(KEEP, "locks that are kept after their release")                                                                 \
    X(PASSING, "locks that pass from one client to another")                                                           \
    X(FAIR, "as calm, and all locks are fair")

enum plan_bias {
#define PLAN_BIAS_ENUM(name, text) BIAS_##name,
    PLAN_BIAS_MAP(PLAN_BIAS_ENUM)
#undef PLAN_BIAS_ENUM
        BIASES
};

struct plan_machine {
    int32_t rate_ppm;
    uint64_t boot_us, raw_us;
    int64_t wall_error_us;
};

struct plan_client {
    uint8_t machine;
    uint8_t policy, guard;
    bool twins;                 /* lists one server twice: */
    uint8_t twin, twin_instead; /* the server of that entry stands in this entry too */
    uint32_t reconnect_min_ms, reconnect_max_ms, node_timeout_ms, connect_timeout_ms;
};

/* Whose nodes which servers are; what their guards say of it. */
struct plan_set {
    uint32_t n, max_lease_ms;
    uint8_t servers[PLAN_SERVERS_MAX];
    bool renamed;
};

struct plan_server {
    int32_t rate_ppm;
    uint64_t wall_us;
    uint32_t delay_us;
};

/* What a user does, where chance has no part in it. */
struct plan_course {
    bool set;
    uint64_t begin_us, hold_us, rest_us;
    uint64_t most_us; /* that it may wait; 0: not judged */
    bool keeps;       /* no fault of the plan is a reason to lose its lock */
};

struct plan_actor {
    uint8_t client;
    uint8_t keys;                         /* bits */
    uint8_t shared;                       /* those of them that it locks shared */
    uint8_t owner;                        /* 0: none; those of one client with one number nest */
    bool left_out;                        /* by shrinking */
    struct quorlock_lock_options options; /* but for the owner's name */
    struct plan_course course;
};

struct plan {
    uint64_t seed;
    enum plan_bias bias;
    uint32_t features; /* bits */
    uint32_t n_machines, n_clients, n_servers, n_actors, n_keys, n_faults;
    uint32_t n_flood;                           /* locks of each client, beside those of its actors */
    struct plan_set sets[2];                    /* before a change, and after it */
    bool changes;                               /* they differ */
    bool hasty;                                 /* processes get what is new before the change has ended */
    uint64_t operator_again_us;                 /* until what failed is tried again */
    uint32_t lease_ms, max_lease_ms, drift_ppm; /* the longer of both sets' max_lease_ms */
    uint64_t active_us;                         /* faults and contention until here */
    uint64_t pace_us;                           /* of holds, rests and faults; 0: that of the leases */
    uint64_t late_us;                           /* what outlives its connection may execute so much later */
    uint64_t back_us;                           /* all steps back of all clocks */
    uint32_t service_us, split_one_in;
    uint8_t keys_void;                    /* bits: an operator breaks them, so nothing is promised of them */
    uint8_t permits[PLAN_KEYS_MAX];       /* of a name; 0: an ordinary key */
    uint8_t other_permits[PLAN_KEYS_MAX]; /* that some users believe in; 0: none do */
    bool outside;                         /* faults outside of what is promised: exclusion is not judged */
    bool counters_void;                   /* among them such that lose counters without a quarantine */
    bool keeps_counters;                  /* no fault makes a server forget */
    bool loses_memory;                    /* some fault does */
    bool no_info;                         /* scripts may not run INFO */
    bool elections;                       /* clients have candidates and observers */
    bool turns;                           /* after the faults each lock that waits for ever must be granted once */
    bool calm;                            /* delays hardly vary; no lock cancels */
    bool far;                             /* ways are long */
    uint64_t round_trip_us, handover_most_us, handover_mostly_us; /* calm: each; most of them */
    uint64_t listens_us;                                          /* calm: who waits for so long is told of releases */
    uint32_t requests_most;                                       /* calm: from grant to grant; 0: not judged */
    uint32_t lost_permille;                                       /* of notices */
    uint32_t push_one_in; /* commands: the server tells of a change of a tracked key that is none; 0: never */
    uint32_t untracked;   /* bits: servers that let nobody track keys, and so tell nobody of a FLUSHALL */
    struct plan_machine machines[PLAN_MACHINES_MAX];
    struct plan_client clients[PLAN_CLIENTS_MAX];
    struct plan_server servers[PLAN_SERVERS_MAX];
    struct plan_actor actors[PLAN_ACTORS_MAX];
    struct plan_fault faults[PLAN_FAULTS_MAX];
};

struct rng;

/* plan_bend, plan_clocks, plan_stays, plan_calm, plan_modes, plan_keep, plan_fair - draw them, for plan_make(). */
void plan_bend(struct plan *, struct rng *);
void plan_clocks(struct plan *, struct rng *);
void plan_stays(struct plan *, struct rng *);
void plan_calm(struct plan *, struct rng *);
void plan_modes(struct plan *, struct rng *);
void plan_keep(struct plan *, struct rng *);
void plan_fair(struct plan *, struct rng *);
/* plan_fair_steps - set clocks of servers back under a plan with BIAS_FAIR, in one seed of two. */
void plan_fair_steps(struct plan *, struct rng *);
/* plan_fair_permits - give the names of a plan with BIAS_FAIR permits, in one seed of two. */
void plan_fair_permits(struct plan *, struct rng *);
/* plan_scene - makes a scene of a calm plan; which one follows from the seed. plan_scenes: how many there are. */
void plan_scene(struct plan *, uint64_t seed);
uint32_t plan_scenes(void);
const char *plan_scene_name(uint64_t seed);
/* plan_first_arbiter - the server that waiters for the first key ask first. */
uint8_t plan_first_arbiter(const struct plan *);
/* plan_make - the plan of this seed, but for these features; the same for ever for the same arguments. */
void plan_make(struct plan *, uint64_t seed, enum plan_bias, uint32_t without);
/* plan_server - which server stands behind this client's entry for a node. */
static inline uint32_t plan_server(const struct plan *plan, uint32_t client, uint32_t node)
{
    const struct plan_client *of = &plan->clients[client];

    return of->twins && of->twin_instead == node ? of->twin : node;
}
static inline uint32_t plan_shorter_max_lease_ms(const struct plan *plan)
{
    uint32_t one_ms = plan->sets[0].max_lease_ms, two_ms = plan->sets[1].max_lease_ms;

    return one_ms < two_ms ? one_ms : two_ms;
}
static inline bool plan_has(const struct plan *plan, enum plan_feature feature)
{
    return (plan->features & 1u << feature) != 0;
}
/* plan_draw_sets, plan_draw_change - part of plan_make. plan_leaves: that server is a node before the change only. */
struct rng;
void plan_draw_sets(struct plan *, struct rng *);
void plan_draw_change(struct plan *, struct rng *);
void plan_print_sets(const struct plan *, FILE *); /* nothing where they do not change */
bool plan_leaves(const struct plan *, uint32_t server);
/* For people. */
const char *plan_fault_text(enum plan_fault_kind);
const char *plan_feature_text(enum plan_feature);
const char *plan_bias_text(enum plan_bias);
