/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - everything that exists in one simulated run of the whole library
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
    quorlock *lock;
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
    bool ended;          /* quorlock_valid_ms() has said 0 */
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

    quorlock *lock; /* NULL: none */
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
    quorlock *plain;               /* a lock on the key, without a term */
};

struct crowd {
    quorlock **locks;
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

/* world_open, world_close - memory that serves many runs. */
void world_open(struct world *);
void world_close(struct world *);
/* world_run - one whole run; true where nothing was violated. Totals are added to. */
bool world_run(struct world *, const struct plan *, struct totals *);
/* world_full_key - as it stands on the servers. */
const char *world_full_key(const struct world *, uint32_t key);
/* world_key_index - of the name of a key on a server; NOBODY: it is none of the plan's. */
uint32_t world_key_index(const struct world *, const char *key, size_t length);
/* world_mix - this happened now: the same seed must give the same hash. */
void world_mix(struct world *, uint64_t what);
uint64_t world_hash(const void *bytes, size_t length);
static inline uint64_t world_now(const struct world *world)
{
    return world->queue.now_us;
}

/* ---- process.c ---- */

void process_boot(struct world *, uint32_t index);
/* process_kill - its process ends here and now. again_us: is started again then; NEVER: not. */
void process_kill(struct process *, bool host, uint64_t again_us);
/* process_stall - stands still, from inside one of its own callbacks or not. */
void process_stall(struct process *, uint64_t for_us, bool suspend);
/* process_at - an opportunity for a fault; false: the process has ended in it. */
bool process_at(struct process *, enum opportunity);
/* process_bury_all - the end of the run: kills what lives, closes all clients, frees all memory. */
void process_bury_all(struct world *);
/* process_stood - it stands still, or did a moment ago. */
bool process_stood(const struct process *);
/* process_lacks_random - calls may fail for it. */
bool process_lacks_random(const struct process *);
uint64_t process_now_us(struct process *);
/* process_true_us - the first true time at which its clock may show that. */
uint64_t process_true_us(struct process *, uint64_t shown_us);
static inline struct process *process_of(struct world *world, uint32_t client)
{
    return &world->processes[world->clients[client].machine];
}

/* ---- user.c ---- */

/* user_open - makes the client of that index; tried again where memory is out. */
void user_open(struct user_client *);
/* user_close - false: it was closed already. */
bool user_close(struct user_client *, bool inside);
void user_forget(struct user_client *); /* its process has ended */
/* user_wait_ms - a node timeout of the client's that is not a lock's. */
uint32_t user_timeout_ms(const struct world *, uint32_t client);
uint32_t user_connect_ms(const struct world *, uint32_t client);
/* What actors call: the library's status, promises kept in mind. */
int user_new(struct actor *);
int user_acquire(struct actor *, const char *adopts); /* a token; NULL: it acquires */
int user_detach(struct actor *, char ret_token[128]);
int user_extend(struct actor *, uint32_t lease_ms);
int user_release(struct actor *, bool quietly);
int user_cancel(struct actor *);
void user_free(struct actor *);
int user_inspect(struct user_client *, uint32_t key);
int user_break(struct user_client *, uint32_t key);
int user_examine(struct user_client *);
int user_bootstrap(struct user_client *, bool reconfigure);
/* user_promise - a new one; NULL: there are too many. user_kept: its callback has come; false: the process has
 * ended, nothing counts. user_drop: the call failed. */
struct promise *user_promise(struct world *, uint32_t client, struct actor *, enum promise_kind, uint64_t bound_us);
bool user_kept(struct promise *);
void user_drop(struct promise *);
uint32_t user_node_timeout_ms(const struct world *, const struct actor *);

/* ---- election.c ---- */

void election_build(struct world *);
/* election_begin - the client is open. election_forget: it closes, or its process has ended. */
void election_begin(struct user_client *);
void election_forget(struct user_client *);
void election_killed(struct process *);
/* election_is_settled - somebody leads, and observers know it. election_hurry: all act soon. */
bool election_is_settled(struct world *);
void election_hurry(struct world *);

/* ---- actor.c ---- */

void actor_begin(struct actor *);
void actor_hurry(struct actor *);
void actor_reset(struct actor *); /* its handle is gone */
void actor_acquired(struct actor *, const struct quorlock_result *);
void actor_extended(struct actor *, const struct quorlock_result *);
void actor_released(struct actor *, const struct quorlock_result *);
void actor_lost(struct actor *, const struct quorlock_loss *);
static inline struct user_client *actor_client(struct actor *actor)
{
    return &actor->world->clients[actor->plan->client];
}
static inline struct process *actor_process(struct actor *actor)
{
    return process_of(actor->world, actor->plan->client);
}

/* ---- crowd.c ---- */

void crowd_begin(struct user_client *);
void crowd_forget(struct user_client *);
bool crowd_is_done(const struct user_client *);
void crowd_free(struct user_client *);

/* ---- operator.c ---- */

void operator_begin(struct world *);
void operator_heal(struct world *);
/* operator_is_out - that server cannot be reached, or cannot vote, for good. */
bool operator_is_out(const struct world *, uint32_t server);
bool operator_is_needed(const struct world *);
/* site_model - the memory of that server. site_command: redis-cli there, words up to the first NULL; the reply.
 * site_look_again: keys came or went there without a command of a client. */
void site_password(uint32_t number, char ret[16]);
struct model *site_model(struct site *);
const char *site_command(struct site *, const char *a, const char *b, const char *c, const char *d);
void site_look_again(struct site *);
/* site_stop - for good. */
void site_stop(struct site *);

/* ---- membership.c ---- */

/* membership_set - that client's nodes. membership_server: the server behind one of them. membership_quorum: how many
 * of them must grant. */
const struct plan_set *membership_set(const struct world *, uint32_t client);
uint32_t membership_server(const struct world *, uint32_t client, uint32_t node);
uint32_t membership_quorum(const struct world *, uint32_t client);
/* membership_is_renewed - it is made with what is new. membership_is_settled: all are, where there is a change. */
bool membership_is_renewed(const struct world *, const struct user_client *);
bool membership_is_settled(const struct world *);
/* membership_begin - before a reconfigure; membership_changed: it has ended with 0; membership_heal: the faults have.
 */
void membership_begin(struct world *);
void membership_changed(struct world *);
void membership_heal(struct world *);

/* ---- executed.c ---- */

/* executed_events - what happens on that server is told to them. */
const struct model_events *executed_events(struct world *, uint32_t server);

/* ---- peer.c ---- */

/* peer_takes - a plain peer asks for the fault's key, and gives it back later. */
void peer_takes(struct world *, const struct plan_fault *);
void operator_strike(struct process *, enum opportunity);

/* ---- judge.c ---- */

void judge_violated(struct world *, enum invariant, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* judge_shown - what another thread of that process reads now, beside what its loop knows: never more. */
void judge_shown(struct process *, const struct expiry *, const struct expiry_clock *, uint64_t known_ms);
/* judge_granted - the callback says so. judge_given_back: the holder may not act on it any more; action: what the model
 * calls it, or NULL. */
void judge_granted(struct actor *, const struct quorlock_result *);
void judge_given_back(struct actor *, const char *action);
void judge_lost(struct actor *, const struct quorlock_loss *);
void judge_ended(const struct promise *, int status);
/* judge_called - a callback of that client begins, of whatever but a loss. */
void judge_called(struct world *, uint32_t client);
void judge_turned(struct process *);
/* judge_stalls - the process is about to stand still: what it holds by now is seen before. */
void judge_stalls(struct process *);
void judge_killed(struct process *);
void judge_peer(struct world *);
/* judge_look - what can be seen at any time: what is overdue, and what was not told. */
void judge_look(struct world *);
bool judge_is_open(struct actor *);
/* judge_quorum - by what servers hold now a quorum must stand behind what the actor was told. */
void judge_quorum(struct actor *);

/* ---- holds.c ---- */

/* holds_place - of a key's slot, 0 where it has none. */
static inline uint32_t holds_place(uint32_t key, uint32_t slot)
{
    return key * PLACES_OF_KEY + slot;
}
/* holds_conflict - which invariant it violates that both are held at once. */
enum invariant holds_conflict(const struct held *, const struct held *);
/* holds_changed - a key of that server has come, or gone, or another value. holds_look_again: all of
 * that key may have changed. holds_forgets: its memory is about to go.
 */
void holds_changed(struct site *, const char *key, size_t length);
void holds_look_again(struct site *, uint32_t key);
void holds_forgets(struct site *);
/* holds_until_us - the true time until which the server holds all keys of the window for it, or would, if no fault had
 * made it forget: it does not vote against it. 0: it does not. */
uint64_t holds_until_us(struct world *, uint32_t server, const struct window *);
/* holds_taking - when all keys of the window were taken there first, by the last of them; NULL: not all were. */
const struct taking *holds_taking(struct site *, const struct window *);
/* holds_as_taken - to read inside of what its owner writes takes nothing: it is held as it was taken first, also when
 * that hold is gone. */
void holds_as_taken(struct world *, struct window *);
/* holds_latest - of the place; NULL: nobody took it. */
const struct taking *holds_latest(const struct site *, uint32_t place);
bool holds_is_quarantined(struct world *, uint32_t server);
/* holds_each - each token of a lock, slot or reader that stands on that server, and its place. */
typedef void (*holds_standing)(void *arg, uint32_t place, const char *token, size_t length);
void holds_each(struct world *, uint32_t server, holds_standing, void *arg);

/* ---- keep.c ---- */

/* keep_given_back - the owner gives its hold back, now. keep_answered: the release has ended. */
void keep_given_back(struct actor *);
void keep_answered(struct actor *, const struct quorlock_result *);
/* keep_check - what the actor was granted is kept for nobody else. */
void keep_check(struct actor *);
/* keep_may_stand - that token's keys may stand on servers although nobody holds them. */
bool keep_may_stand(const struct world *, uint64_t token_hash);

/* ---- passing.c ---- */

/* passing_hand_on - detach the lock, now and then where the plan is of that. False: it is to be released. */
bool passing_hand_on(struct actor *);
/* passing_take - return a token that the actor is to adopt, or NULL. */
const char *passing_take(struct actor *);
/* passing_refused - the acquire has failed. passing_adopted: the actor has adopted its token. */
void passing_refused(struct actor *, int status);
void passing_adopted(struct actor *);
/* passing_may_stand - that token's keys may stand on servers although nobody holds them. */
bool passing_may_stand(const struct world *, uint64_t token_hash);

/* ---- rest.c ---- */

/* rest_look - after the faults, at any time. rest_is_due: all that was executed late was long ago enough to be judged.
 */
void rest_look(struct world *);
bool rest_is_due(const struct world *);
void rest_quiet(struct world *);  /* all is released, nothing fails */
void rest_late(struct world *);   /* also what was executed late */
void rest_silent(struct world *); /* and every lease has ended */

/* ---- tokens.c ---- */

void tokens_granted(struct actor *);
void tokens_write(struct actor *, uint64_t delay_us);

/* ---- handover.c ---- */

/* handover_freed - the owner of a hold calls release. handover_asked: a request for the key is executed.
 * handover_granted: the owner is told of a grant. handover_end: no hand-over is waited for any more. */
void handover_freed(struct actor *);
void handover_asked(struct world *);
void handover_granted(struct actor *);
/* fair_granted - judge the order of fair locks, I15. */
void fair_granted(struct actor *);
void handover_end(struct world *);
/* handover_table - hand-overs among 2, 3, 10 and 30 contenders; prints, and returns whether what must hold of them
 * does: with notices and without faults the median is 3 round trips at most. */
bool handover_table(struct world *, FILE *);

/* ---- modes.c ---- */

/* modes_waited - its wait is over, or goes on: there may be a bound. */
void modes_waited(struct actor *);
/* modes_table - the longest waits in all scenes; prints, and returns whether they are within their bounds. */
bool modes_table(struct world *, FILE *);

/* ---- rare.c ---- */

void rare_given_back(struct actor *);
void rare_released(struct world *, uint32_t client);
void rare_abandoned(struct world *, uint32_t keys); /* its holder is gone, and no notice comes */
void rare_granted(struct actor *);
void rare_refused(struct actor *);
void rare_quarantined(struct site *); /* its guard says so now */
void rare_executed(struct site *, struct session *);
void rare_closed(struct process *, bool owed);

/* ---- trace.c ---- */

void trace_line(const struct world *, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *trace_invariant(enum invariant);
const char *trace_promise(enum promise_kind);
#define TRACE(world, ...)                                                                                              \
    do {                                                                                                               \
        if ((world)->trace) trace_line(world, __VA_ARGS__);                                                            \
    } while (0)

/* ---- actions.c ---- */

/* actions_begin, actions_end - a run. actions_server, actions_holder: one action of a server, or of who holds, where
 * they are asked for. */
void actions_begin(const struct world *, enum plan_bias);
void actions_end(const struct world *);
void actions_server(const struct site *, const char *what);
void actions_replied(void *arg, struct session *, const char *script, const struct word *words, size_t n_words,
                     const struct word *reply);
void actions_holder(struct actor *, const char *what);

/* ---- shrink.c ---- */

struct shrunk {
    uint32_t without; /* features */
};

/* shrink_plan - leaves out faults, users and features while the same invariant is violated. */
void shrink_plan(struct world *, struct plan *, enum plan_bias, struct shrunk *ret);
/* shrink_only - leaves out what the list "f3,f17,a2" does not name: of f and a, where one of the kind is named;
 * shrink_without - features by number. False: no such list. */
bool shrink_only(struct plan *, const char *list);
bool shrink_without(const char *list, uint32_t *ret);
void shrink_report(const struct world *, const struct plan *, enum plan_bias, const struct shrunk *, FILE *);

/* ---- controls.c ---- */

bool controls_run(struct world *, uint64_t first_seed, const char *name);
bool controls_set(struct world *, const char *name, enum plan_bias *ret_bias);
