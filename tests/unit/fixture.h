/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixture.h - one lock's core alone: tests say what nodes answer and how time passes, and see what is sent
 *
 * Nodes and times are few and exact, so that a test reads like a narrative. Nothing here waits.
 */
#ifndef QUORLOCK_UNIT_FIXTURE_H
#define QUORLOCK_UNIT_FIXTURE_H

#include "core/core.h"
#include "core/slots.h"
#include "test.h"

/* CORE_TEST - a test whose `f` is to be opened by one of the fixture_open functions, as often as it likes. */
#define CORE_TEST(name) TEST_WITH(fixture, name, fixture_setup, fixture_teardown)

#define FIXTURE_BEGIN_US 1000000u
#define MS               UINT64_C(1000)
#define HOLDER           77u /* the id of another lock, which holds the keys */

struct fixture_sent {
    struct core_command command;
    uint32_t generation;
    bool answered;
};

struct fixture {
    struct core_lock *lock;
    struct core_slots *slots; /* where the config has permits */
    struct debt *debts;       /* lent to the lock; NULL: there is no memory */
    struct core_config config, successor;
    uint64_t now_us;
    uint64_t wall_us; /* what the wall clock shows with the next attempt */
    uint32_t generations[CORE_NODES_MAX];
    bool ready[CORE_NODES_MAX];
    uint64_t life_us[CORE_NODES_MAX];
    uint64_t connected_us[CORE_NODES_MAX];
    uint32_t n_sent;
    struct core_update update;            /* of the latest step */
    uint32_t log;                         /* of all steps */
    uint32_t srtt_us;                     /* that node states bring along; 0: not measured */
    uint8_t randoms;                      /* the random bytes of the latest step; counts up */
    bool no_attempt, no_round, no_repair; /* the nodes have no room for these */
    bool logged_in;                       /* a node accepted a login of this client */
    bool no_random;                       /* the system gives no random bytes */
    struct fixture_sent sent[4096];
};

/* fixture_config - lease 3 s, renewal every 1 s, node timeout 100 ms, 400 ms to connect, wait 0, drift 1 % and 2 ms: a
 * grant is valid for 2968 ms after its send, and lost 64 ms before that. */
struct core_config fixture_config(uint32_t n_nodes, uint32_t quorum);
/* fixture_open - an idle lock with fixture_config, all nodes READY on generation 1. What was open is closed. */
void fixture_open(struct fixture *, uint32_t n_nodes, uint32_t quorum);
/* fixture_open_waiting - the same with this wait bound. */
void fixture_open_waiting(struct fixture *, uint32_t n_nodes, uint32_t quorum, uint64_t wait_us);
void fixture_open_config(struct fixture *, const struct core_config *);
/* fixture_open_held - granted on all nodes. */
void fixture_open_held(struct fixture *, uint32_t n_nodes, uint32_t quorum);
int fixture_setup(void **state);
int fixture_teardown(void **state);

int fixture_acquire(struct fixture *);
/* fixture_adopt - ask the nodes to extend the keys of that token.
 * fixture_detach - stop holding, and let the keys stay. */
int fixture_adopt(struct fixture *, const struct core_token *);
int fixture_detach(struct fixture *);
/* fixture_acquire_behind - the same, while another lock of this process holds the keys. */
int fixture_acquire_behind(struct fixture *);
/* fixture_acquire_late - the same, while these nodes leave requests of the client unanswered, a bit each. */
int fixture_acquire_late(struct fixture *, uint32_t late);
/* fixture_hand_off - the acquire goes on for a successor. */
int fixture_hand_off(struct fixture *, uint64_t begun_us, uint64_t wait_us);
/* fixture_acquire_after - acquire; seen: what was in the way before, bits of enum core_seen. */
int fixture_acquire_after(struct fixture *, uint32_t seen);
/* fixture_notice - a node reports a release by that holder; 0: it does not name one. */
void fixture_notice(struct fixture *, uint32_t node, uint64_t holder_id);
/* fixture_told - a node tells by itself that the key changed. */
void fixture_told(struct fixture *, uint32_t node);
/* fixture_listening - a node confirms the subscription. */
void fixture_listening(struct fixture *, uint32_t node);
/* fixture_wake - another lock of this process released the keys. */
void fixture_wake(struct fixture *);
/* fixture_yield - the same, and other processes come first. */
void fixture_yield(struct fixture *);
/* fixture_listening_before - it was confirmed before this acquire. */
void fixture_listening_before(struct fixture *, uint32_t node);
/* fixture_begin - there is room for what the lock wants.
 * fixture_room - the node has room for a release. */
void fixture_begin(struct fixture *);
void fixture_room(struct fixture *, uint32_t node);
int fixture_extend(struct fixture *, uint64_t lease_us);
int fixture_release(struct fixture *);
int fixture_cancel(struct fixture *);
/* fixture_step - a request sent then found that the node's clock has stepped. */
void fixture_step(struct fixture *, uint32_t node, uint64_t before_us);
/* fixture_lose - the hold is to be lost. */
void fixture_lose(struct fixture *);
/* fixture_node_state - a node's connection changes; READY begins a new generation.
 * fixture_node_states - one letter a node: r ready, q quarantined, d down, c connecting, . as before. */
void fixture_node_states(struct fixture *, const char *states);
void fixture_node_state(struct fixture *, uint32_t node, enum node_state);
void fixture_node_state_fault(struct fixture *, uint32_t node, enum node_state, enum fault_class);
/* fixture_revive - the node restarts; another life of it is met now, in that state. */
void fixture_revive(struct fixture *, uint32_t node, enum node_state);
/* fixture_reconnect - the same server process is connected anew. */
void fixture_reconnect(struct fixture *, uint32_t node);
/* fixture_look - our key may be gone from that node. */
void fixture_look(struct fixture *, uint32_t node, bool by_server);
/* fixture_round_trip - to all connected nodes. Set it behind answers: they take no time here, and are measured.
 */
void fixture_round_trip(struct fixture *, uint32_t us);
/* fixture_pass - so much time passes; the timer fires whenever the core wants it. */
void fixture_pass(struct fixture *, uint64_t us);
/* fixture_pass_to_attempt - time passes until the next attempt begins; returns how much. */
uint64_t fixture_pass_to_attempt(struct fixture *);
/* fixture_sleep - let time pass while the process is suspended: no timer fires. */
void fixture_sleep(struct fixture *, uint64_t us);
/* fixture_answer - the node answers its oldest pending request of that kind. Fails the test where none is. */
void fixture_answer(struct fixture *, uint32_t node, enum op, enum outcome);
/* fixture_answer_with - the same, with a whole reply. */
void fixture_answer_with(struct fixture *, uint32_t node, enum op, const struct core_reply *);
/* fixture_answers - one letter a node: y yes, o held by another, m missing, u unknown, e error, n not
 * sent, . no answer. */
void fixture_answers(struct fixture *, enum op, const char *outcomes);
/* fixture_refuse, fixture_refuse_all - the oldest pending acquire of the node, or of each, meets this holder. */
void fixture_refuse(struct fixture *, uint32_t node, uint64_t holder_id, int64_t ttl_us);
void fixture_refuse_all(struct fixture *, uint64_t holder_id, int64_t ttl_us);
/* fixture_refuse_keys - it meets this holder, and others; refusing: the keys in the way, a bit each.
 * fixture_notice_key - a node reports that this key was released. */
void fixture_refuse_keys(struct fixture *, uint32_t node, uint64_t holder_id, uint64_t refusing);
void fixture_notice_key(struct fixture *, uint32_t node, uint32_t key, uint64_t holder_id);
/* fixture_refuse_slot - it meets this holder in that slot; free: the slots that are free at the node, a bit each;
 * first_us: when the first lease ends. */
void fixture_refuse_slot(struct fixture *, uint32_t node, uint64_t holder_id, int64_t ttl_us, uint64_t free,
                         int64_t first_us);
/* fixture_give_slot - the oldest pending acquire of the node took that slot. */
void fixture_give_slot(struct fixture *, uint32_t node, uint8_t slot);
/* fixture_answer_releases - all nodes answer yes to all pending releases. */
void fixture_answer_releases(struct fixture *);
/* fixture_replay - an answer to this request, whether it was answered before or not. */
void fixture_replay(struct fixture *, const struct fixture_sent *, enum outcome);
/* fixture_pending - how many requests of that kind are pending at the node. */
uint32_t fixture_pending(const struct fixture *, uint32_t node, enum op);
/* fixture_expect_pending - one digit a node: how many are pending; . whatever. */
void fixture_expect_pending(const struct fixture *, enum op, const char *counts);
/* fixture_expect_alone - one acquire is pending at that node, and none at others. */
void fixture_expect_alone(const struct fixture *, uint32_t node);
/* fixture_latest - the latest request of that kind to that node; fails the test where there is none. */
const struct fixture_sent *fixture_latest(const struct fixture *, uint32_t node, enum op);
/* fixture_completion - what the owner is notified of next, now. */
struct core_completion fixture_completion(struct fixture *);
/* fixture_expect - the owner is notified of this next. */
void fixture_expect(struct fixture *, enum core_notify, int status);
void fixture_expect_lost(struct fixture *, enum core_loss);
void fixture_expect_nothing(struct fixture *);
/* fixture_grant - acquires; all nodes answer yes; the owner is notified. */
void fixture_grant(struct fixture *);
/* fixture_drop - forgets all pending requests: their answers never come. */
void fixture_drop(struct fixture *);

#endif
