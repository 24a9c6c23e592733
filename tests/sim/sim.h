/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h - what each file of the simulator does for the others
 */
#ifndef QUORLOCK_SIM_H
#define QUORLOCK_SIM_H

#include <stdio.h>

#include "world.h"

/* ---- actor.c: what the user of a lock does with it, by chance ---- */

/* actor_begin - plans the first act of a new lock. */
void actor_begin(struct world *, struct lock *);
void actor_act(struct world *, const struct event *);
/* actor_notify - a callback of the library. */
void actor_notify(struct world *, struct lock *, const struct core_completion *);
/* actor_hurry - the phase has changed: the actor acts again soon. */
void actor_hurry(struct world *, struct lock *);

/* ---- process.c: a client's loop around its locks, as the library's own around the core ---- */

/* process_new_lock - a lock in IDLE, in fresh memory. */
void process_new_lock(struct world *, struct lock *);
/* process_postponed - the client stands still: the event is planned again for when it goes on. */
bool process_postponed(struct world *, const struct event *);
/* process_pause - the client stands still from now on for so long. */
void process_pause(struct world *, uint32_t client, uint64_t for_us);
/* process_suspend - the same, and its clock stands still with it. */
void process_suspend(struct world *, uint32_t client, uint64_t for_us);
/* process_clock - what the client reads from its clock now. */
uint64_t process_clock(struct world *, uint32_t client);
void process_die(struct world *, uint32_t client);
void process_born(struct world *, uint32_t client);
/* Calls of the user; results are core_status. */
int process_acquire(struct world *, struct lock *);
int process_extend(struct world *, struct lock *, uint64_t lease_us);
int process_release(struct world *, struct lock *);
int process_cancel(struct world *, struct lock *, int reason);
/* What comes from the nodes. */
void process_node_state(struct world *, uint32_t client, uint32_t node);
/* process_room - the client's queues, which were full, take requests again. */
void process_room(struct world *, uint32_t client);
void process_reply(struct world *, struct lock *, uint32_t life, const struct core_reply *);
/* process_node_clock - a reading of a node's clock (0: none) by a request that was sent then. */
void process_node_clock(struct world *, uint32_t client, uint32_t node, uint64_t sent_us, uint64_t received_us,
                        uint64_t node_us);
void process_listening(struct world *, struct lock *, uint32_t node);
void process_notice(struct world *, struct lock *, uint32_t node, uint64_t holder_id);
void process_timer(struct world *, const struct event *);
void process_dispatch(struct world *, const struct event *);

/* ---- link.c: a client's connections to a node, as node.h of the library promises them ---- */

/* What becomes of requests that were sent on a connection when it ends. */
enum link_fate { FATE_ANY, FATE_LATE, FATE_DROPPED };

/* link_open_all - a new client starts to connect. */
void link_open_all(struct world *, uint32_t client);
/* link_send - queues a request whose bytes leave at leaves_us; false: it could not be queued. */
bool link_send(struct world *, struct lock *, const struct core_command *, uint64_t leaves_us);
/* link_end - the client sees its present connection end: outcomes unknown first, then the node state. */
void link_end(struct world *, struct link *, enum link_fate);
/* link_die - the client is dead: nothing is reported to it any more. */
void link_die(struct world *, uint32_t client);
/* link_node_died - the server's ends of all its connections are gone; clients see it a little later. */
void link_node_died(struct world *, uint32_t node);
/* link_delay - how long a message takes on its way now, by chance. */
uint64_t link_delay(const struct world *, struct rng *, uint32_t client, uint32_t node);
void link_arrive(struct world *, const struct event *);
void link_answer(struct world *, const struct event *);
void link_timeout(struct world *, const struct event *);
void link_stall(struct world *, const struct event *);
void link_closed(struct world *, const struct event *);
void link_greet(struct world *, const struct event *);
void link_connect(struct world *, const struct event *);
void link_guard(struct world *, const struct event *);
void link_retry(struct world *, const struct event *);

/* ---- subscriptions.c: subscriber connections, which bring notices of releases ---- */

/* subscriptions_follow - after each step: the lock begins to listen, or ends. */
void subscriptions_follow(struct world *, struct lock *);
/* subscriptions_close - the lock is gone, with all that was on its way to it. */
void subscriptions_close(struct world *, struct lock *);
/* subscriptions_publish - a script on this server has deleted the key of this token. */
void subscriptions_publish(struct world *, uint32_t server, uint32_t key, const struct core_token *);
/* subscriptions_count - how many listen there for a release of the key. */
uint32_t subscriptions_count(const struct world *, uint32_t server, uint32_t key);
/* subscriptions_end - the client's subscriber connection to that node ends; it connects again. */
void subscriptions_end(struct world *, uint32_t client, uint32_t node);
/* subscriptions_node_died - all of them to that server end. */
void subscriptions_node_died(struct world *, uint32_t server);
void subscriptions_subscribe(struct world *, const struct event *);
void subscriptions_listening(struct world *, const struct event *);
void subscriptions_notice(struct world *, const struct event *);

/* ---- server.c: what a Redis server does with our requests ---- */

/* Of the slot of an odd key: no lock lives as often. */
#define SERVER_ODD_LIFE UINT32_MAX

/* server_execute - executes the request, and fills in request->reply. */
void server_execute(struct world *, struct request *);
/* server_expire - the key's expiry may have come. */
void server_expire(struct world *, uint32_t server, uint32_t key);
/* server_delete - an operator deletes the key. */
void server_delete(struct world *, uint32_t server, uint32_t key);
/* server_leave_odd - sets a key that is no lock's, for good; false where a key is there. */
bool server_leave_odd(struct world *, uint32_t server, uint32_t key);
/* server_forget_all - locks, counters and guard are gone. */
void server_forget_all(struct world *, uint32_t server);
/* server_remember - what a replica has got so far; server_recall - it is the server's memory now. */
void server_remember(struct world *, uint32_t server);
void server_recall(struct world *, uint32_t server);
/* server_step_clock - keys that have expired by the new clock expire. */
void server_step_clock(struct world *, uint32_t server, int64_t by_us);
/* server_holds - does the node hold this token now, by its own clock? */
bool server_holds(const struct world *, uint32_t server, uint32_t key, const struct core_token *);
/* server_name_of - the holder that a refusal or a notice names. */
uint64_t server_name_of(const struct core_token *);
/* server_expires_at - true time at which the key ends unless it is extended. */
uint64_t server_expires_at(const struct world *, uint32_t server, uint32_t key);

/* ---- guard.c: the restart guard ---- */

/* guard_new_run - the server is another process than before. guard_new_replid - it was no master meanwhile. */
void guard_new_run(struct world *, uint32_t server);
void guard_new_replid(struct world *, uint32_t server);
/* guard_bootstrap - an operator declares that no lock is held there. */
void guard_bootstrap(struct world *, uint32_t server);
/* guard_look - the script at the end of a handshake, and of a quarantine: writes the guard where it must, and
 * answers it, with what is left of the quarantine. False: it cannot be written. */
bool guard_look(struct world *, uint32_t server, struct guard *ret_seen, uint64_t *ret_left_ms);
/* guard_broken - is the guard not what this request's connection has seen? */
bool guard_broken(const struct world *, const struct request *);
/* guard_is_strict_broken - the acquire of the strict mode looks at the server too. */
bool guard_is_strict_broken(const struct world *, const struct request *);

/* ---- judge.c: the invariants, checked from outside of the core over the true history ---- */

/* judge_violated - ends the run where this invariant is judged; counts it where nothing is promised. */
void judge_violated(struct world *, enum invariant, const char *format, ...) __attribute__((format(printf, 3, 4)));
void judge_before(struct world *, struct lock *, const struct core_event *);
/* judge_after - after every step of a core; status is what core_step returned. */
void judge_after(struct world *, struct lock *, const struct core_event *, const struct core_update *, int status);
/* judge_key_gone - a node has just lost a key of this lock, for whatever reason. */
void judge_key_gone(struct world *, struct lock *, uint32_t life);
/* judge_key_forgotten - before that, where a fault is the reason. */
void judge_key_forgotten(struct world *, uint32_t server, struct lock *, const struct core_token *,
                         uint64_t expires_ms);
/* judge_asked - a command leaves the core. */
void judge_asked(struct world *, struct lock *, const struct core_command *);
/* judge_stepped - a client found that a node's clock has stepped forward. */
void judge_stepped(struct world *, uint32_t client, uint32_t node);
void judge_death(struct world *, struct lock *);
/* judge_in_time - is anything overdue? Asked now and then. */
void judge_in_time(struct world *, struct lock *);
/* judge_silent - at the end no key of a lock is left anywhere. */
void judge_silent(struct world *);

/* ---- tokens.c: fencing tokens are unique, rise, and protect a register ---- */

/* tokens_see - a node shows its counter with a yes to an acquire or a raise. */
void tokens_see(struct lock *, const struct core_reply *);
/* tokens_granted - the owner was notified of a grant: I2, I3, I4. */
void tokens_granted(struct world *, struct lock *);
/* tokens_write - the owner writes, under the token of its latest grant. */
void tokens_write(struct world *, struct lock *, uint64_t delay_us);
void tokens_write_arrives(struct world *, uint32_t grant);

/* ---- handover.c: from the release of a lock that others wait for to the next grant of its key ---- */

enum { HANDOVER_BUCKETS = 4096, HANDOVER_PER_TRIP = 20 };

struct handovers {
    uint64_t n;
    uint64_t requests;             /* from release to grant */
    uint64_t all;                  /* from grant to grant */
    uint64_t most;                 /* the same, of the grant that cost most */
    uint32_t of[HANDOVER_BUCKETS]; /* by length, in parts of a round trip */
};

/* handover_freed - the owner of a hold calls release. */
void handover_freed(struct world *, struct lock *);
/* handover_asked - a request for the key leaves. */
void handover_asked(struct world *, uint32_t key);
/* handover_granted - the owner is notified of a grant. */
void handover_granted(struct world *, struct lock *);
/* handover_end - no hand-over is waited for any more. */
void handover_end(struct world *);
/* handover_table - hand-overs among 2, 3, 10 and 30 contenders; prints, and returns whether what must hold of
 * them does: with notices and without faults the median is 3 round trips at most. */
bool handover_table(struct world *, FILE *);

/* ---- trace.c: the trace that a person reads, and its hash that a test compares ---- */

/* trace_line - one line of the trace: "[   1110.042] client 2 > granted by node 1". */
void trace_line(const struct world *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trace_step(const struct world *, const struct lock *, const struct core_event *);
void trace_command(const struct world *, const struct lock *, const struct core_command *);
void trace_completion(const struct world *, const struct lock *, const struct core_completion *);
const char *trace_status(int status);
const char *trace_op(unsigned op);
const char *trace_outcome(unsigned outcome);
const char *trace_invariant(enum invariant);

#define TRACE(world, ...)                                                                                              \
    do {                                                                                                               \
        if ((world)->trace) trace_line(world, __VA_ARGS__);                                                            \
    } while (0)

/* trace_mix - what happened, into the hash. */
static inline void trace_mix(struct world *world, uint64_t what)
{
    world->hash = (world->hash ^ what ^ (world->now_us << 16)) * 0x9e3779b97f4a7c15u;
    world->hash ^= world->hash >> 29;
}

/* ---- shrink.c: a violation with as few faults as it needs ---- */

/* shrink_plan - leaves faults out of the plan while the same invariant is violated. The violation of what is
 * left is in world->violation then. */
void shrink_plan(struct world *, struct plan *);
/* shrink_only - leaves out every fault that is not in the list "3,17,20"; "" is none. False: no such list. */
bool shrink_only(struct plan *, const char *list);
/* shrink_report - the violation, the faults that are left, and how to replay it. */
void shrink_report(const struct world *, const struct plan *, enum plan_bias, FILE *);

/* ---- controls.c: rules broken on purpose, which the judge must notice; in sim_controls only ---- */

/* controls_run - breaks every rule in turn, over seeds from first_seed on, until each was caught its minimum
 * number of times; then the same seeds with nothing broken. Prints a table; false where one was not caught. */
bool controls_run(struct world *, uint64_t first_seed);
/* controls_set - breaks the rule of this name, for a replay; false: there is none. */
bool controls_set(struct world *, const char *name, enum plan_bias *ret_bias);

#endif
