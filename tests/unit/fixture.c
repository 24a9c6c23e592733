/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

struct core_config fixture_config(uint32_t n_nodes, uint32_t quorum)
{
    struct core_config config = {
        .n_nodes = n_nodes,
        .quorum = quorum,
        .lease_us = 3000 * MS,
        .holder = {.renew_us = 1000 * MS, .max_hold_us = CORE_NEVER},
        .node_timeout_us = 100 * MS,
        .connect_us = 400 * MS,
        .drift_ppm = 10000,
        .drift_fixed_us = 2 * MS,
    };

    for (uint32_t i = 0; i < n_nodes; i++) config.arbiters[i] = (uint8_t)i;
    return config;
}

static int step(struct fixture *f, struct core_event *event)
{
    unsigned char random[CORE_RANDOM_SIZE];
    int status;

    switch (event->type) {
    case CORE_EV_ACQUIRE:
    case CORE_EV_TIMER:
    case CORE_EV_NOTICE:
    case CORE_EV_LISTENING:
    case CORE_EV_WAKE:
    case CORE_EV_BEGIN:
        memset(random, ++f->randoms, sizeof(random));
        event->random = f->no_random ? NULL : random;
        event->wall_us = f->wall_us;
        break;
    default: break;
    }
    event->no_attempt = f->no_attempt;
    event->logged_in = f->logged_in;
    event->no_round = f->no_round;
    event->no_repair = f->no_repair;
    event->now_us = f->now_us;
    event->slots = f->slots;
    event->debts = core_debts_block(f->lock) == NULL ? f->debts : NULL;
    status = core_step(f->lock, event, &f->update);
    f->log |= f->update.log;
    for (uint32_t i = 0; i < f->update.n_commands; i++) {
        const struct core_command *command = &f->update.commands[i];

        assert_true(f->n_sent < LENGTH(f->sent));
        f->sent[f->n_sent++] =
            (struct fixture_sent){.command = *command, .generation = f->generations[command->tag.node]};
    }
    return status;
}

static void close_lock(struct fixture *f)
{
    free(f->lock);
    free(f->slots);
    free(f->debts);
}

void fixture_open_config(struct fixture *f, const struct core_config *config)
{
    close_lock(f);
    memset(f, 0, offsetof(struct fixture, sent));
    f->config = *config;
    f->now_us = FIXTURE_BEGIN_US;
    f->srtt_us = 500;
    f->lock = calloc(1, core_size(config->n_nodes));
    assert_non_null(f->lock);
    if (config->permits != 0) {
        f->slots = calloc(1, core_slots_size(config->permits));
        assert_non_null(f->slots);
        core_slots_init(f->slots, config->permits);
    }
    f->debts = calloc(1, core_debts_size(config->n_nodes));
    assert_non_null(f->debts);
    core_init(f->lock, &f->config, 0);
    for (uint32_t i = 0; i < config->n_nodes; i++) fixture_node_state(f, i, NODE_READY);
}

void fixture_open_waiting(struct fixture *f, uint32_t n_nodes, uint32_t quorum, uint64_t wait_us)
{
    struct core_config config = fixture_config(n_nodes, quorum);

    config.holder.wait_us = wait_us;
    fixture_open_config(f, &config);
}

void fixture_open(struct fixture *f, uint32_t n_nodes, uint32_t quorum)
{
    fixture_open_waiting(f, n_nodes, quorum, 0);
}

void fixture_open_held(struct fixture *f, uint32_t n_nodes, uint32_t quorum)
{
    fixture_open(f, n_nodes, quorum);
    fixture_grant(f);
}

int fixture_setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    close_lock(f);
    free(f);
    return 0;
}

int fixture_acquire(struct fixture *f)
{
    return step(f, &(struct core_event){.type = CORE_EV_ACQUIRE});
}

int fixture_adopt(struct fixture *f, const struct core_token *token)
{
    return step(f, &(struct core_event){.type = CORE_EV_ACQUIRE, .acquire = {.adopts = token}});
}

int fixture_detach(struct fixture *f)
{
    return step(f, &(struct core_event){.type = CORE_EV_DETACH});
}

int fixture_acquire_behind(struct fixture *f)
{
    return step(f, &(struct core_event){.type = CORE_EV_ACQUIRE, .acquire = {.behind = true}});
}

int fixture_acquire_late(struct fixture *f, uint32_t late)
{
    return step(f, &(struct core_event){.type = CORE_EV_ACQUIRE, .acquire = {.late = late}});
}

int fixture_hand_off(struct fixture *f, uint64_t begun_us, uint64_t wait_us)
{
    f->successor = f->config;
    f->successor.holder.wait_us = wait_us;
    return step(
        f, &(struct core_event){.type = CORE_EV_HAND_OFF, .hand_off = {.begun_us = begun_us, .config = &f->successor}});
}

int fixture_acquire_after(struct fixture *f, uint32_t seen)
{
    return step(f, &(struct core_event){.type = CORE_EV_ACQUIRE, .acquire = {.seen = seen}});
}

void fixture_notice(struct fixture *f, uint32_t node, uint64_t holder_id)
{
    step(f, &(struct core_event){.type = CORE_EV_NOTICE, .notice = {.node = node, .holder_id = holder_id}});
}

void fixture_listening(struct fixture *f, uint32_t node)
{
    step(f, &(struct core_event){.type = CORE_EV_LISTENING, .listening = {.node = node}});
}

void fixture_wake(struct fixture *f)
{
    step(f, &(struct core_event){.type = CORE_EV_WAKE});
}

void fixture_yield(struct fixture *f)
{
    step(f, &(struct core_event){.type = CORE_EV_WAKE, .wake = {.yield = true}});
}

void fixture_listening_before(struct fixture *f, uint32_t node)
{
    step(f, &(struct core_event){.type = CORE_EV_LISTENING, .listening = {.node = node, .before_acquire = true}});
}

void fixture_begin(struct fixture *f)
{
    f->no_attempt = f->no_round = f->no_repair = f->logged_in = false;
    step(f, &(struct core_event){.type = CORE_EV_BEGIN});
}

void fixture_room(struct fixture *f, uint32_t node)
{
    step(f, &(struct core_event){.type = CORE_EV_ROOM, .room = {.node = node}});
}

int fixture_extend(struct fixture *f, uint64_t lease_us)
{
    return step(f, &(struct core_event){.type = CORE_EV_EXTEND, .extend = {.lease_us = lease_us}});
}

int fixture_release(struct fixture *f)
{
    return step(f, &(struct core_event){.type = CORE_EV_RELEASE});
}

int fixture_cancel(struct fixture *f)
{
    return step(f, &(struct core_event){.type = CORE_EV_CANCEL, .cancel = {.status = CORE_CANCELED}});
}

void fixture_step(struct fixture *f, uint32_t node, uint64_t before_us)
{
    step(f, &(struct core_event){.type = CORE_EV_STEP, .step = {.node = node, .before_us = before_us}});
}

void fixture_lose(struct fixture *f)
{
    step(f, &(struct core_event){.type = CORE_EV_LOSE});
}

void fixture_node_state_fault(struct fixture *f, uint32_t node, enum node_state state, enum fault_class fault)
{
    bool talks = state == NODE_READY || state == NODE_QUARANTINED;

    if (talks && !f->ready[node]) f->generations[node]++;
    f->ready[node] = talks;
    step(f, &(struct core_event){.type = CORE_EV_NODE,
                                 .node = {.index = node,
                                          .state = state,
                                          .generation = talks ? f->generations[node] : 0,
                                          .fault = fault,
                                          .srtt_us = f->srtt_us,
                                          .life_us = f->life_us[node],
                                          .connected_us = f->connected_us[node]}});
}

void fixture_revive(struct fixture *f, uint32_t node, enum node_state state)
{
    fixture_node_state(f, node, NODE_CONNECTING);
    f->life_us[node] = f->now_us;
    fixture_node_state(f, node, state);
}

void fixture_reconnect(struct fixture *f, uint32_t node)
{
    fixture_node_state(f, node, NODE_CONNECTING);
    f->connected_us[node] = f->now_us;
    fixture_node_state(f, node, NODE_READY);
}

void fixture_told(struct fixture *f, uint32_t node)
{
    step(f, &(struct core_event){.type = CORE_EV_HINT, .hint = {.node = node}});
}

void fixture_look(struct fixture *f, uint32_t node, bool by_server)
{
    step(f, &(struct core_event){.type = CORE_EV_LOOK, .look = {.node = node, .by_server = by_server}});
}

void fixture_node_state(struct fixture *f, uint32_t node, enum node_state state)
{
    fixture_node_state_fault(f, node, state, state == NODE_READY ? FAULT_CLASS_NONE : FAULT_CLASS_TEMPORARY);
}

void fixture_round_trip(struct fixture *f, uint32_t us)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        if (!f->ready[i]) continue;
        step(f, &(struct core_event){
                    .type = CORE_EV_NODE,
                    .node = {.index = i, .state = NODE_READY, .generation = f->generations[i], .srtt_us = us}});
    }
}

void fixture_pass(struct fixture *f, uint64_t us)
{
    uint64_t until_us = f->now_us + us;
    uint32_t fired = 0;

    while (core_deadline(f->lock) <= until_us) {
        uint64_t deadline_us = core_deadline(f->lock);

        /* A deadline that does not move on would be a loop that spins. */
        assert_true(fired++ < 1000);
        if (deadline_us > f->now_us) f->now_us = deadline_us;
        step(f, &(struct core_event){.type = CORE_EV_TIMER});
    }
    f->now_us = until_us;
}

uint64_t fixture_pass_to_attempt(struct fixture *f)
{
    uint64_t attempt = core_attempt(f->lock);
    uint64_t begun_us = f->now_us;

    while (core_attempt(f->lock) == attempt) {
        uint64_t deadline_us = core_deadline(f->lock);

        assert_int_not_equal(deadline_us, CORE_NEVER);
        fixture_pass(f, deadline_us > f->now_us ? deadline_us - f->now_us : 0);
    }
    return f->now_us - begun_us;
}

void fixture_sleep(struct fixture *f, uint64_t us)
{
    f->now_us += us;
}

static void reply_event(struct fixture *f, const struct core_reply *reply)
{
    step(f, &(struct core_event){.type = CORE_EV_REPLY, .reply = *reply});
}

void fixture_answer_with(struct fixture *f, uint32_t node, enum op op, const struct core_reply *answer)
{
    for (uint32_t i = 0; i < f->n_sent; i++) {
        struct fixture_sent *sent = &f->sent[i];
        struct core_reply reply = *answer;

        if (sent->answered || sent->command.tag.node != node || sent->command.tag.op != op) continue;
        sent->answered = true;
        reply.tag = sent->command.tag;
        reply.generation = sent->generation;
        if (reply.slot == CORE_SLOT_NONE) reply.slot = sent->command.tag.slot;
        reply_event(f, &reply);
        return;
    }
    fail_msg("node %u was not asked for op %u", node, (unsigned)op);
}

void fixture_answer(struct fixture *f, uint32_t node, enum op op, enum outcome outcome)
{
    struct core_reply reply = {.outcome = outcome, .ttl_us = -2, .slot = CORE_SLOT_NONE};

    if (outcome == OUTCOME_ERROR || outcome == OUTCOME_UNKNOWN) reply.fault = FAULT_CLASS_TEMPORARY;
    fixture_answer_with(f, node, op, &reply);
}

static size_t letter(const char *letters, char wanted)
{
    const char *at = strchr(letters, wanted);

    assert_true(wanted != '\0' && at != NULL);
    return (size_t)(at - letters);
}

void fixture_answers(struct fixture *f, enum op op, const char *outcomes)
{
    static const enum outcome of[] = {OUTCOME_YES,     OUTCOME_OTHER, OUTCOME_MISSING,
                                      OUTCOME_UNKNOWN, OUTCOME_ERROR, OUTCOME_UNSENT};

    assert_int_equal(strlen(outcomes), f->config.n_nodes);
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        if (outcomes[i] != '.') fixture_answer(f, i, op, of[letter("yomuen", outcomes[i])]);
    }
}

void fixture_node_states(struct fixture *f, const char *states)
{
    static const enum node_state of[] = {NODE_READY, NODE_QUARANTINED, NODE_DOWN, NODE_CONNECTING};

    assert_int_equal(strlen(states), f->config.n_nodes);
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        if (states[i] != '.') fixture_node_state(f, i, of[letter("rqdc", states[i])]);
    }
}

void fixture_refuse(struct fixture *f, uint32_t node, uint64_t holder_id, int64_t ttl_us)
{
    fixture_answer_with(f, node, OP_ACQUIRE,
                        &(struct core_reply){.outcome = OUTCOME_OTHER, .holder_id = holder_id, .ttl_us = ttl_us});
}

void fixture_refuse_all(struct fixture *f, uint64_t holder_id, int64_t ttl_us)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) fixture_refuse(f, i, holder_id, ttl_us);
}

void fixture_refuse_keys(struct fixture *f, uint32_t node, uint64_t holder_id, uint64_t refusing)
{
    fixture_answer_with(
        f, node, OP_ACQUIRE,
        &(struct core_reply){.outcome = OUTCOME_OTHER, .holder_id = holder_id, .ttl_us = -1, .refusing = refusing});
}

void fixture_notice_key(struct fixture *f, uint32_t node, uint32_t key, uint64_t holder_id)
{
    step(f, &(struct core_event){.type = CORE_EV_NOTICE, .notice = {.node = node, .key = key, .holder_id = holder_id}});
}

void fixture_refuse_slot(struct fixture *f, uint32_t node, uint64_t holder_id, int64_t ttl_us, uint64_t free,
                         int64_t first_us)
{
    fixture_answer_with(
        f, node, OP_ACQUIRE,
        &(struct core_reply){
            .outcome = OUTCOME_OTHER, .holder_id = holder_id, .ttl_us = ttl_us, .free = free, .first_us = first_us});
}

void fixture_give_slot(struct fixture *f, uint32_t node, uint8_t slot)
{
    fixture_answer_with(f, node, OP_ACQUIRE, &(struct core_reply){.outcome = OUTCOME_YES, .ttl_us = -2, .slot = slot});
}

void fixture_answer_releases(struct fixture *f)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        while (fixture_pending(f, i, OP_RELEASE) > 0) {
            fixture_answer(f, i, OP_RELEASE, OUTCOME_YES);
        }
    }
}

void fixture_replay(struct fixture *f, const struct fixture_sent *sent, enum outcome outcome)
{
    struct core_reply reply = {
        .tag = sent->command.tag, .generation = sent->generation, .outcome = outcome, .ttl_us = -2};

    reply_event(f, &reply);
}

uint32_t fixture_pending(const struct fixture *f, uint32_t node, enum op op)
{
    uint32_t pending = 0;

    for (uint32_t i = 0; i < f->n_sent; i++) {
        const struct fixture_sent *sent = &f->sent[i];

        pending += !sent->answered && sent->command.tag.node == node && sent->command.tag.op == op;
    }
    return pending;
}

void fixture_expect_pending(const struct fixture *f, enum op op, const char *counts)
{
    assert_int_equal(strlen(counts), f->config.n_nodes);
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        uint32_t n = fixture_pending(f, i, op);

        if (counts[i] != '.' && n != (uint32_t)(counts[i] - '0')) {
            fail_msg("op %u: %u pending at node %u, expected \"%s\"", (unsigned)op, n, i, counts);
        }
    }
}

void fixture_expect_alone(const struct fixture *f, uint32_t node)
{
    for (uint32_t i = 0; i < f->config.n_nodes; i++) {
        assert_int_equal(fixture_pending(f, i, OP_ACQUIRE), i == node);
    }
}

const struct fixture_sent *fixture_latest(const struct fixture *f, uint32_t node, enum op op)
{
    for (uint32_t i = f->n_sent; i > 0; i--) {
        const struct fixture_sent *sent = &f->sent[i - 1];

        if (sent->command.tag.node == node && sent->command.tag.op == op) return sent;
    }
    fail_msg("node %u was never asked for op %u", node, (unsigned)op);
    return NULL;
}

struct core_completion fixture_completion(struct fixture *f)
{
    step(f, &(struct core_event){.type = CORE_EV_DISPATCH});
    return f->update.completion;
}

void fixture_expect(struct fixture *f, enum core_notify kind, int status)
{
    struct core_completion completion = fixture_completion(f);

    assert_int_equal(completion.kind, kind);
    assert_int_equal(completion.status, status);
}

void fixture_expect_lost(struct fixture *f, enum core_loss loss)
{
    struct core_completion completion = fixture_completion(f);

    assert_int_equal(completion.kind, CORE_NOTIFY_LOST);
    assert_int_equal(completion.status, CORE_LOST_LOCK);
    assert_int_equal(completion.loss, loss);
}

void fixture_expect_nothing(struct fixture *f)
{
    fixture_expect(f, CORE_NOTIFY_NOTHING, CORE_OK);
}

void fixture_grant(struct fixture *f)
{
    assert_int_equal(fixture_acquire(f), CORE_OK);
    for (uint32_t i = 0; i < f->config.n_nodes; i++) fixture_answer(f, i, OP_ACQUIRE, OUTCOME_YES);
    fixture_expect(f, CORE_NOTIFY_ACQUIRED, CORE_OK);
    fixture_expect_nothing(f);
}

void fixture_drop(struct fixture *f)
{
    for (uint32_t i = 0; i < f->n_sent; i++) f->sent[i].answered = true;
}
