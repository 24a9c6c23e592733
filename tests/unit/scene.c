/* SPDX-License-Identifier: BSD-3-Clause */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct core_config scene_config(uint32_t n_nodes, uint32_t quorum)
{
    return (struct core_config){
        .n_nodes = n_nodes,
        .quorum = quorum,
        .lease_us = 3000 * MS,
        .renew_us = 1000 * MS,
        .wait_us = 0,
        .max_hold_us = CORE_NEVER,
        .node_timeout_us = 100 * MS,
        .drift_ppm = 10000,
        .drift_fixed_us = 2 * MS,
    };
}

static int step(struct scene *scene, struct core_event *event)
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
        memset(random, ++scene->randoms, sizeof(random));
        event->random = random;
        event->wall_us = scene->wall_us;
        break;
    default: break;
    }
    event->no_attempt = scene->no_attempt;
    event->no_round = scene->no_round;
    event->now_us = scene->now_us;
    status = core_step(scene->lock, event, &scene->update);
    scene->log |= scene->update.log;
    for (uint32_t i = 0; i < scene->update.n_commands; i++) {
        const struct core_command *command = &scene->update.commands[i];

        assert_true(scene->n_sent < sizeof(scene->sent) / sizeof(scene->sent[0]));
        scene->sent[scene->n_sent++] =
            (struct scene_sent){.command = *command, .generation = scene->generations[command->tag.node]};
    }
    return status;
}

struct scene *scene_open(const struct core_config *config)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    assert_non_null(scene);
    scene->config = *config;
    scene->now_us = SCENE_BEGIN_US;
    scene->lock = calloc(1, core_size(config->n_nodes));
    assert_non_null(scene->lock);
    core_init(scene->lock, config);
    for (uint32_t i = 0; i < config->n_nodes; i++) scene_node_state(scene, i, CORE_NODE_READY);
    return scene;
}

struct scene *scene_open_waiting(uint32_t n_nodes, uint32_t quorum, uint64_t wait_us)
{
    struct core_config config = scene_config(n_nodes, quorum);

    config.wait_us = wait_us;
    return scene_open(&config);
}

void scene_close(struct scene *scene)
{
    free(scene->lock);
    free(scene);
}

int scene_acquire(struct scene *scene)
{
    return step(scene, &(struct core_event){.type = CORE_EV_ACQUIRE});
}

int scene_acquire_behind(struct scene *scene)
{
    return step(scene, &(struct core_event){.type = CORE_EV_ACQUIRE, .behind = true});
}

int scene_acquire_since(struct scene *scene, uint64_t begun_us)
{
    return step(scene, &(struct core_event){.type = CORE_EV_ACQUIRE, .begun_us = begun_us});
}

int scene_hand_off(struct scene *scene, uint64_t begun_us, uint64_t wait_us)
{
    return step(scene,
                &(struct core_event){.type = CORE_EV_HAND_OFF, .begun_us = begun_us, .wait_us = wait_us});
}

int scene_acquire_after(struct scene *scene, uint32_t seen)
{
    return step(scene, &(struct core_event){.type = CORE_EV_ACQUIRE, .seen = seen});
}

void scene_notice(struct scene *scene, uint32_t node, uint64_t holder_id)
{
    step(scene, &(struct core_event){.type = CORE_EV_NOTICE, .node = node, .holder_id = holder_id});
}

void scene_listening(struct scene *scene, uint32_t node)
{
    step(scene, &(struct core_event){.type = CORE_EV_LISTENING, .node = node});
}

void scene_wake(struct scene *scene)
{
    step(scene, &(struct core_event){.type = CORE_EV_WAKE});
}

void scene_yield(struct scene *scene)
{
    step(scene, &(struct core_event){.type = CORE_EV_WAKE, .behind = true});
}

void scene_listening_before(struct scene *scene, uint32_t node)
{
    step(scene, &(struct core_event){.type = CORE_EV_LISTENING, .node = node, .behind = true});
}

void scene_begin(struct scene *scene)
{
    scene->no_attempt = scene->no_round = false;
    step(scene, &(struct core_event){.type = CORE_EV_BEGIN});
}

void scene_room(struct scene *scene, uint32_t node)
{
    step(scene, &(struct core_event){.type = CORE_EV_ROOM, .node = node});
}

int scene_extend(struct scene *scene, uint64_t lease_us)
{
    return step(scene, &(struct core_event){.type = CORE_EV_EXTEND, .lease_us = lease_us});
}

int scene_release(struct scene *scene)
{
    return step(scene, &(struct core_event){.type = CORE_EV_RELEASE});
}

int scene_cancel(struct scene *scene)
{
    return step(scene, &(struct core_event){.type = CORE_EV_CANCEL, .reason = CORE_CANCELED});
}

void scene_step(struct scene *scene, uint32_t node, uint64_t before_us)
{
    step(scene, &(struct core_event){.type = CORE_EV_STEP, .node = node, .before_us = before_us});
}

void scene_node_state_fault(struct scene *scene, uint32_t node, enum core_node_state state,
                            enum core_fault fault)
{
    bool talks = state == CORE_NODE_READY || state == CORE_NODE_QUARANTINED;

    if (talks && !scene->ready[node]) scene->generations[node]++;
    scene->ready[node] = talks;
    step(scene, &(struct core_event){.type = CORE_EV_NODE,
                                     .node = node,
                                     .state = state,
                                     .generation = talks ? scene->generations[node] : 0,
                                     .fault = fault,
                                     .srtt_us = 500});
}

void scene_node_state(struct scene *scene, uint32_t node, enum core_node_state state)
{
    scene_node_state_fault(scene, node, state, state == CORE_NODE_READY ? CORE_FAULT_NONE : CORE_FAULT_PASSING);
}

void scene_round_trip(struct scene *scene, uint32_t us)
{
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) {
        if (!scene->ready[i]) continue;
        step(scene, &(struct core_event){.type = CORE_EV_NODE,
                                         .node = i,
                                         .state = CORE_NODE_READY,
                                         .generation = scene->generations[i],
                                         .srtt_us = us});
    }
}

void scene_pass(struct scene *scene, uint64_t us)
{
    uint64_t until_us = scene->now_us + us;
    uint32_t fired = 0;

    while (core_deadline(scene->lock) <= until_us) {
        uint64_t deadline_us = core_deadline(scene->lock);

        /* A deadline that does not move on would be a loop that spins. */
        assert_true(fired++ < 1000);
        if (deadline_us > scene->now_us) scene->now_us = deadline_us;
        step(scene, &(struct core_event){.type = CORE_EV_TIMER});
    }
    scene->now_us = until_us;
}

uint64_t scene_pass_to_attempt(struct scene *scene)
{
    uint64_t attempt = core_attempt(scene->lock);
    uint64_t begun_us = scene->now_us;

    while (core_attempt(scene->lock) == attempt) {
        uint64_t deadline_us = core_deadline(scene->lock);

        assert_int_not_equal(deadline_us, CORE_NEVER);
        scene_pass(scene, deadline_us > scene->now_us ? deadline_us - scene->now_us : 0);
    }
    return scene->now_us - begun_us;
}

void scene_sleep(struct scene *scene, uint64_t us)
{
    scene->now_us += us;
}

static void hear(struct scene *scene, const struct core_reply *reply)
{
    step(scene, &(struct core_event){.type = CORE_EV_REPLY, .reply = *reply});
}

void scene_answer_with(struct scene *scene, uint32_t node, enum core_op op, const struct core_reply *answer)
{
    for (uint32_t i = 0; i < scene->n_sent; i++) {
        struct scene_sent *sent = &scene->sent[i];
        struct core_reply reply = *answer;

        if (sent->answered || sent->command.tag.node != node || sent->command.tag.op != op) continue;
        sent->answered = true;
        reply.tag = sent->command.tag;
        reply.generation = sent->generation;
        hear(scene, &reply);
        return;
    }
    fail_msg("node %u was not asked for op %u", node, (unsigned)op);
}

void scene_answer(struct scene *scene, uint32_t node, enum core_op op, enum core_outcome outcome)
{
    struct core_reply reply = {.outcome = outcome, .ttl_us = -2};

    if (outcome == CORE_ERROR || outcome == CORE_UNKNOWN) reply.fault = CORE_FAULT_PASSING;
    scene_answer_with(scene, node, op, &reply);
}

void scene_refuse(struct scene *scene, uint32_t node, uint64_t holder_id, int64_t ttl_us)
{
    scene_answer_with(scene, node, CORE_OP_ACQUIRE,
                      &(struct core_reply){.outcome = CORE_OTHER, .holder_id = holder_id, .ttl_us = ttl_us});
}

void scene_answer_releases(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) {
        while (scene_asked(scene, i, CORE_OP_RELEASE) > 0) {
            scene_answer(scene, i, CORE_OP_RELEASE, CORE_YES);
        }
    }
}

void scene_replay(struct scene *scene, const struct scene_sent *sent, enum core_outcome outcome)
{
    struct core_reply reply = {
        .tag = sent->command.tag, .generation = sent->generation, .outcome = outcome, .ttl_us = -2};

    hear(scene, &reply);
}

uint32_t scene_asked(const struct scene *scene, uint32_t node, enum core_op op)
{
    uint32_t asked = 0;

    for (uint32_t i = 0; i < scene->n_sent; i++) {
        const struct scene_sent *sent = &scene->sent[i];

        asked += !sent->answered && sent->command.tag.node == node && sent->command.tag.op == op;
    }
    return asked;
}

void scene_expect_asked_alone(const struct scene *scene, uint32_t node)
{
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) {
        assert_int_equal(scene_asked(scene, i, CORE_OP_ACQUIRE), i == node);
    }
}

const struct scene_sent *scene_latest(const struct scene *scene, uint32_t node, enum core_op op)
{
    for (uint32_t i = scene->n_sent; i > 0; i--) {
        const struct scene_sent *sent = &scene->sent[i - 1];

        if (sent->command.tag.node == node && sent->command.tag.op == op) return sent;
    }
    fail_msg("node %u was never asked for op %u", node, (unsigned)op);
    return NULL;
}

struct core_completion scene_told(struct scene *scene)
{
    step(scene, &(struct core_event){.type = CORE_EV_DISPATCH});
    return scene->update.completion;
}

void scene_expect(struct scene *scene, enum core_notify kind, int status)
{
    struct core_completion tell = scene_told(scene);

    assert_int_equal(tell.kind, kind);
    assert_int_equal(tell.status, status);
}

void scene_expect_lost(struct scene *scene, enum core_loss loss)
{
    struct core_completion tell = scene_told(scene);

    assert_int_equal(tell.kind, CORE_NOTIFY_LOST);
    assert_int_equal(tell.status, CORE_LOST_LOCK);
    assert_int_equal(tell.loss, loss);
}

void scene_expect_nothing(struct scene *scene)
{
    scene_expect(scene, CORE_NOTIFY_NOTHING, CORE_OK);
}

void scene_grant(struct scene *scene)
{
    assert_int_equal(scene_acquire(scene), CORE_OK);
    for (uint32_t i = 0; i < scene->config.n_nodes; i++) scene_answer(scene, i, CORE_OP_ACQUIRE, CORE_YES);
    scene_expect(scene, CORE_NOTIFY_ACQUIRED, CORE_OK);
    scene_expect_nothing(scene);
}

void scene_drop(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->n_sent; i++) scene->sent[i].answered = true;
}
