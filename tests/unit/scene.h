/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scene.h - one lock's core on a stage: tests say what nodes answer and how time passes, and look at what is
 * sent
 *
 * Nodes and times are few and exact, so that a test reads like a story. Nothing here waits.
 */
#ifndef QUORLOCK_UNIT_SCENE_H
#define QUORLOCK_UNIT_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"

#define SCENE_BEGIN_US 1000000u
#define MS             UINT64_C(1000)

struct scene_sent {
    struct core_command command;
    uint32_t generation;
    bool answered;
};

struct scene {
    struct core_lock *lock;
    struct core_config config;
    uint64_t now_us;
    uint64_t wall_us; /* what the wall clock shows with the next attempt */
    uint32_t generations[CORE_NODES_MAX];
    bool ready[CORE_NODES_MAX];
    struct scene_sent sent[4096];
    uint32_t n_sent;
    struct core_update update; /* of the latest step */
    uint32_t log;              /* of all steps */
    uint8_t randoms;           /* fresh bytes: counts up */
    bool no_attempt, no_round; /* the nodes have no room for either */
};

/* scene_config - lease 3 s, renewal every 1 s, node timeout 100 ms, wait 0, drift 1 % and 2 ms: a grant is
 * valid for 2968 ms after its send, and lost 64 ms before that. */
struct core_config scene_config(uint32_t n_nodes, uint32_t quorum);
/* scene_open - an idle lock, all nodes READY on generation 1. scene_close frees it. */
struct scene *scene_open(const struct core_config *);
/* scene_open_waiting - the same with scene_config, and this wait bound. */
struct scene *scene_open_waiting(uint32_t n_nodes, uint32_t quorum, uint64_t wait_us);
void scene_close(struct scene *);

int scene_acquire(struct scene *);
/* scene_acquire_behind - a lock of this process holds the keys. */
int scene_acquire_behind(struct scene *);
/* scene_acquire_since - it waits since then already. */
int scene_acquire_since(struct scene *, uint64_t begun_us);
/* scene_hand_off - the acquire goes on for another. */
int scene_hand_off(struct scene *, uint64_t begun_us, uint64_t wait_us);
/* scene_acquire_after - the same, and this stood in the way meanwhile: bits of enum core_seen. */
int scene_acquire_after(struct scene *, uint32_t seen);
/* scene_notice - a node tells of a release; holder_id is whose, 0: it does not say. */
void scene_notice(struct scene *, uint32_t node, uint64_t holder_id);
/* scene_listening - a node confirms the subscription. */
void scene_listening(struct scene *, uint32_t node);
/* scene_wake - a lock of this process gave the keys back. */
void scene_wake(struct scene *);
/* scene_yield - the same, and others shall come first. */
void scene_yield(struct scene *);
/* scene_listening_before - it was confirmed before this acquire. */
void scene_listening_before(struct scene *, uint32_t node);
/* scene_begin - there is room for what the lock wants. scene_room: the node has room for a release. */
void scene_begin(struct scene *);
void scene_room(struct scene *, uint32_t node);
int scene_extend(struct scene *, uint64_t lease_us);
int scene_release(struct scene *);
int scene_cancel(struct scene *);
/* scene_step - a node's clock was found to have stepped, by a request sent then. */
void scene_step(struct scene *, uint32_t node, uint64_t before_us);
/* scene_node_state - a node's connection changes; READY begins a new generation. */
void scene_node_state(struct scene *, uint32_t node, enum core_node_state);
void scene_node_state_fault(struct scene *, uint32_t node, enum core_node_state, enum core_fault);
/* scene_round_trip - to each node that can talk it takes so long: told anew, for answers here take no time, and
 * the core measures them. */
void scene_round_trip(struct scene *, uint32_t us);
/* scene_pass - so much time goes by; the timer fires whenever the core wants it. */
void scene_pass(struct scene *, uint64_t us);
/* scene_pass_to_attempt - time goes by until the next attempt begins; returns how much. */
uint64_t scene_pass_to_attempt(struct scene *);
/* scene_sleep - so much time goes by and the process stands still: no timer fires. */
void scene_sleep(struct scene *, uint64_t us);
/* scene_answer - the oldest request of that kind that the node has not answered is answered. Fails the test
 * where there is none. */
void scene_answer(struct scene *, uint32_t node, enum core_op, enum core_outcome);
/* scene_answer_with - the same, with everything that a reply can say. */
void scene_answer_with(struct scene *, uint32_t node, enum core_op, const struct core_reply *);
/* scene_refuse - the oldest acquire that the node has not answered meets somebody, and says whom. */
void scene_refuse(struct scene *, uint32_t node, uint64_t holder_id, int64_t ttl_us);
/* scene_answer_releases - all nodes have done all releases that were asked. */
void scene_answer_releases(struct scene *);
/* scene_replay - an answer to this very request, whether it was answered before or not. */
void scene_replay(struct scene *, const struct scene_sent *, enum core_outcome);
/* scene_asked - how many requests of that kind the node has not answered. */
uint32_t scene_asked(const struct scene *, uint32_t node, enum core_op);
/* scene_expect_asked_alone - that node has one acquire to answer, and nobody else has any. */
void scene_expect_asked_alone(const struct scene *, uint32_t node);
/* scene_latest - the latest request of that kind to that node; fails the test where there is none. */
const struct scene_sent *scene_latest(const struct scene *, uint32_t node, enum core_op);
/* scene_told - what the owner is told next, now. */
struct core_completion scene_told(struct scene *);
/* scene_expect - the owner is told exactly this next, and nothing is asked twice. */
void scene_expect(struct scene *, enum core_notify, int status);
void scene_expect_lost(struct scene *, enum core_loss);
void scene_expect_nothing(struct scene *);
/* scene_grant - acquires; all nodes say yes; the owner is told. */
void scene_grant(struct scene *);
/* scene_drop - forgets all requests under way: their answers never come. */
void scene_drop(struct scene *);

#endif
