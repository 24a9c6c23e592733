/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_core.c - bytes decide a lock's options and what happens to it; the core's promises are checked
 * throughout
 *
 * The world is hostile but keeps the contract of core.h: time does not go back, every command gets exactly one
 * reply, however late and whatever it says, and each READY connection of a node has a new generation. The check
 * of validity has an arithmetic of its own and does not use validity.c. Clocks of nodes step; the replies tell
 * them, and what they prove is told to the core as the client tells it. With permits the nodes name slots, also such
 * that nobody asked for, and that the name does not have.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/compact.h"
#include "core_world.h"

#define STEPS_AT_ONCE 200 /* timers that may follow one another without time passing */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_nodes(const struct world *world)
{
    for (uint32_t i = 0; i < world->config.n_nodes; i++) {
        CHECK(core_debts(world->lock, i) <= CORE_DEBTS_MAX);
        CHECK(core_vote(world->lock, i) <= CORE_VOTE_MISSING);
    }
}

static void check_state(const struct world *world)
{
    uint64_t valid_us = core_valid_us(world->lock, world->now_us);
    enum core_phase phase = core_phase_now(world->lock);

    if (valid_us > 0) {
        CHECK(world->held);
        CHECK(core_notified_held(world->lock));
        CHECK(phase == CORE_HELD);
        CHECK(world->now_us < core_lost_at(world->lock));
        CHECK(world->now_us + valid_us == core_valid_until(world->lock));
    }
    if (core_valid_until(world->lock) != 0) {
        CHECK(core_lost_at(world->lock) <= core_valid_until(world->lock));
        CHECK(core_valid_until(world->lock) <= quorum_end_us(world));
    }
    CHECK(core_counted(world->lock) <= world->config.n_nodes);
    check_nodes(world);
    CHECK(core_remaining_us(world->lock, world->now_us) >= valid_us);
    CHECK(core_lease_us(world->lock) >= world->config.lease_us);
    CHECK((core_seen(world->lock) & ~(uint32_t)(CORE_SEEN_HELD | CORE_SEEN_NOQUORUM)) == 0);
    if (core_loss_pending(world->lock)) CHECK(phase == CORE_LOST && world->held && valid_us == 0);
    CHECK(core_rounds(world->lock) <= core_attempt(world->lock));
    if (world->acquiring || world->extending || world->releasing) CHECK(!core_quiet(world->lock));
    /* A lock that is held, or wants nothing, ignores notices. */
    if (core_listens(world->lock))
        CHECK(world->acquiring && (phase == CORE_ASKING || phase == CORE_WAITING || phase == CORE_GRANTED));
    CHECK(core_wait_verdict(world->lock) != CORE_OK);
    if ((phase == CORE_ASKING || phase == CORE_WAITING) && world->config.wait_us != 0) {
        CHECK(core_deadline(world->lock) <= world->wait_until_us);
    }
}

static void check_tell(struct world *world, const struct core_completion *tell)
{
    switch (tell->kind) {
    case CORE_NOTIFY_NOTHING: break;
    case CORE_NOTIFY_ACQUIRED:
        CHECK(world->acquiring);
        CHECK(!world->held);
        world->acquiring = false;
        world->held = tell->status == CORE_OK;
        if (world->held && world->slots != NULL) core_slots_hold(world->slots, core_slot(world->lock), true);
        if (world->held) {
            CHECK(core_valid_us(world->lock, world->now_us) >= world->config.min_valid_us);
            CHECK(core_valid_us(world->lock, world->now_us) > 0);
            CHECK(world->config.permits == 0 || core_slot(world->lock) < world->config.permits);
            /* A reader's is what nodes show, which may be nothing yet. */
            CHECK(!world->config.fencing || world->config.reads || core_fence(world->lock) > world->fence);
            CHECK(world->config.fencing || core_fence(world->lock) == 0);
            world->fence = core_fence(world->lock);
        }
        break;
    case CORE_NOTIFY_EXTENDED:
        CHECK(world->extending);
        world->extending = false;
        if (tell->status == CORE_OK) CHECK(world->held);
        break;
    case CORE_NOTIFY_RELEASED:
        CHECK(world->releasing);
        CHECK(tell->status == CORE_OK || tell->status == CORE_NOQUORUM);
        world->releasing = false;
        break;
    case CORE_NOTIFY_LOST:
        CHECK(world->held);
        CHECK(tell->loss != CORE_LOSS_NONE && core_loss(world->lock) == tell->loss);
        /* Where our own clock stood still it is not known what is left. */
        if (tell->loss == CORE_LOSS_CLOCK) CHECK(core_remaining_us(world->lock, world->now_us) == 0);
        world->held = false;
        CHECK(core_valid_us(world->lock, world->now_us) == 0);
        if (world->slots != NULL) core_slots_hold(world->slots, core_slot(world->lock), false);
        break;
    }
}

static void launch(struct world *world, const struct core_command *command)
{
    struct model_node *node = &world->nodes[command->tag.node];

    CHECK(command->tag.node < world->config.n_nodes);
    CHECK(can_talk(node));
    CHECK(command->tag.sent_us == world->now_us);
    CHECK(command->tag.attempt <= core_attempt(world->lock));
    if (command->tag.op == OP_ACQUIRE || command->tag.op == OP_EXTEND || command->tag.op == OP_REPAIR) {
        CHECK(command->tag.attempt == core_attempt(world->lock));
        CHECK(command->tag.lease_us >= world->config.lease_us);
        CHECK(memcmp(command->token.bytes, core_token_now(world->lock)->bytes, CORE_TOKEN_SIZE) == 0);
    }
    if (command->silent || command->if_deleted) CHECK(command->tag.op == OP_RELEASE);
    if (command->explain) CHECK(command->tag.op == OP_ACQUIRE);
    /* Nothing is ever written for a lock that the owner does not want or have. */
    if (command->tag.op == OP_ACQUIRE) CHECK((world->acquiring || world->held) && node->state == NODE_READY);
    if (command->tag.op == OP_RAISE) CHECK(world->config.fencing && (world->acquiring || world->held));
    if (command->tag.op == OP_EXTEND || command->tag.op == OP_REPAIR) CHECK(world->held);
    /* 0: it waits no more. */
    if (command->tag.op == OP_INTEND) CHECK(command->tag.lease_us == 0 || world->acquiring);
    if (world->slots == NULL) CHECK(!command->any && command->passed == 0);
    if (world->slots != NULL)
        CHECK(command->tag.slot < world->config.permits ||
              (command->tag.op == OP_RELEASE && command->tag.slot == CORE_SLOT_NONE));
    if (world->n_flying == FLYING_MAX) return; /* never answered: an endless stall */
    world->flying[world->n_flying++] = (struct flying){*command, node->generation};
}

/* The token of the present attempt is the latest random that was handed in and used. */
static int step(struct world *world, struct core_event *event, struct core_update *update)
{
    unsigned char random[CORE_RANDOM_SIZE] = {0};
    void *work = NULL;
    int status;

    world->token_count++;
    memcpy(random, &world->token_count, sizeof(world->token_count));
    memcpy(random + CORE_TOKEN_SIZE, &world->token_count, sizeof(world->token_count));
    event->now_us = world->now_us;
    event->random = random;
    event->wall_us = world->config.fencing ? world->now_us : 0;
    event->no_attempt = world->no_attempt;
    event->no_round = world->no_round;
    event->slots = world->slots;
    if (!core_has_work(world->lock)) work = event->work = malloc(core_work_size(world->config.n_nodes));
    status = core_step(world->lock, event, update);
    event->random = NULL;
    if (!core_has_work(world->lock)) free(work);
    free(core_end_work(world->lock, false));
    CHECK(update->n_commands <= CORE_COMMANDS_MAX);
    CHECK(core_attempt(world->lock) >= world->attempt);
    if (core_attempt(world->lock) != world->attempt) {
        world->attempt = core_attempt(world->lock);
        CHECK(memcmp(core_token_now(world->lock)->bytes, random, CORE_TOKEN_SIZE) == 0);
        for (uint32_t i = 0; i < world->config.n_nodes; i++) world->nodes[i].yes_until_us = 0;
    }
    return status;
}

/* The lock is what it was, but for numbers of attempts and for jitter. */
static void check_expanded(const struct world *world, const struct core_lock *before, const struct core_compact *record,
                           const struct core_node_change *nodes)
{
    const struct core_lock *after = world->lock;
    const struct core_config *config = &world->config;

    CHECK(core_phase_now(after) == core_phase_now(before) && core_loss(after) == core_loss(before));
    /* What was overdue is due at once, and so is a repair; one that is not wanted any more is not. */
    if (core_compact_repair_at(record, config, nodes, world->now_us) != CORE_NEVER) {
        CHECK(core_deadline(after) <= world->now_us);
    } else {
        CHECK(core_deadline(after) == core_compact_deadline(record, config));
        CHECK(core_deadline(after) >= core_deadline(before));
    }
    CHECK(core_fence(after) == core_fence(before) && core_rounds(after) == core_rounds(before));
    CHECK(core_lease_us(after) == core_lease_us(before) && core_granted_us(after) == core_granted_us(before));
    for (uint32_t i = 0; i < config->n_nodes; i++) CHECK(core_vote(after, i) == core_vote(before, i));
    CHECK(core_valid_us(after, world->now_us) == core_compact_valid_us(record, config, world->now_us));
    if (!core_compact_holds(record)) return;
    CHECK(core_valid_until(after) == core_valid_until(before) && core_counted(after) == core_counted(before));
}

/* As the client does it where nothing is under way: the lock becomes a record, and a lock again. */
static const struct core_lock *compact_and_expand(struct world *world)
{
    struct core_node_change nodes[NODES_MAX];
    struct core_lock *before = world->lock;
    struct core_compact *record = malloc(core_compact_size(&world->config));

    if (world->n_flying == 0 && core_compact(before, world->now_us, record)) {
        for (uint32_t i = 0; i < world->config.n_nodes; i++) {
            nodes[i] = (struct core_node_change){
                .index = i, .state = world->nodes[i].state, .generation = world->nodes[i].generation};
        }
        world->lock = malloc(core_size(world->config.n_nodes));
        core_expand(world->lock, &world->config, record, nodes, world->now_us);
        check_expanded(world, before, record, nodes);
        world->attempt = core_attempt(world->lock);
        free(before);
    }
    free(record);
    return world->lock;
}

/* One event; its commands fly. */
static int happen(struct world *world, struct core_event event, bool *dispatch)
{
    struct core_update update;
    /* Whatever comes now comes too late for the lock. */
    bool lost = world->now_us >= core_lost_at(compact_and_expand(world)) && world->held;
    int status = step(world, &event, &update);

    CHECK(!lost || !core_notified_held(world->lock));

    /* Set before the commands are looked at: what begins may send. */
    if (status == 0 && event.type == CORE_EV_ACQUIRE) {
        uint64_t begun_us = event.acquire.begun_us != 0 ? event.acquire.begun_us : world->now_us;

        world->acquiring = true;
        world->wait_until_us = world->config.wait_us == CORE_NEVER ? CORE_NEVER : begun_us + world->config.wait_us;
    }
    if (status == 0 && event.type == CORE_EV_HAND_OFF) {
        CHECK(world->acquiring);
        world->handed++;
        world->config.wait_us = event.hand_off.config->wait_us;
        world->wait_until_us =
            world->config.wait_us == CORE_NEVER ? CORE_NEVER : event.hand_off.begun_us + world->config.wait_us;
    }
    if (status == 0 && event.type == CORE_EV_EXTEND) world->extending = true;
    if (status == 0 && event.type == CORE_EV_RELEASE) {
        if (world->held && world->slots != NULL) core_slots_hold(world->slots, core_slot(world->lock), false);
        world->releasing = true;
        world->held = false;
    }
    for (uint32_t i = 0; i < update.n_commands; i++) launch(world, &update.commands[i]);
    if (event.type == CORE_EV_DISPATCH) {
        check_tell(world, &update.completion);
    } else {
        CHECK(update.completion.kind == CORE_NOTIFY_NOTHING);
    }
    if (dispatch != NULL) *dispatch = update.dispatch;
    check_state(world);
    return status;
}

static void dispatch(struct world *world)
{
    bool more = true;

    for (int i = 0; more; i++) {
        CHECK(i < 16);
        happen(world, (struct core_event){.type = CORE_EV_DISPATCH}, &more);
    }
}

static void count_yes(struct world *world, const struct flying *flying, enum outcome outcome, uint8_t slot)
{
    const struct core_tag *tag = &flying->command.tag;
    struct model_node *node = &world->nodes[tag->node];
    uint64_t end_us;

    if (outcome != OUTCOME_YES || tag->attempt != world->attempt) return;
    if (tag->op != OP_ACQUIRE && tag->op != OP_EXTEND) return;
    if (!can_talk(node) || node->generation != flying->generation) return;
    end_us = tag->sent_us + tag->lease_us - allowance_us(&world->config, tag->lease_us);
    if (end_us > node->yes_until_us) {
        node->yes_until_us = end_us;
        node->yes_sent_us = tag->sent_us;
        node->yes_slot = tag->op == OP_ACQUIRE ? slot : tag->slot;
    }
}

/* Nothing that was asked before on this connection is unanswered, so this is the next reply there. */
static bool is_next(const struct world *world, const struct flying *flying)
{
    for (uint32_t i = 0; i < world->n_flying; i++) {
        const struct flying *other = &world->flying[i];

        if (other->command.tag.node == flying->command.tag.node && other->generation == flying->generation &&
            other->command.tag.sent_us <= flying->command.tag.sent_us)
            return false;
    }
    return true;
}

/*
 * A reply that tells the node's clock, which was read at some time between the question and now. A clock that
 * runs as ours is never accused; one that stepped by more than the ways can hide is always.
 */
static bool prove_step(struct world *world, const struct core_tag *tag, uint8_t shade)
{
    struct model_node *node = &world->nodes[tag->node];
    const struct core_config *config = &world->config;
    uint64_t way_us = world->now_us - tag->sent_us;
    uint64_t node_us = tag->sent_us + way_us / 256 * shade + node->ahead_us;
    uint64_t stepped_us = node->ahead_us - node->read_ahead_us;
    bool known = node->clock.known;
    uint64_t passed_us = known ? world->now_us - node->clock.sent_us : 0;
    bool stepped = nodeclock_stepped(&node->clock, tag->sent_us, world->now_us, node_us, config->drift_ppm,
                                     config->drift_fixed_us);

    node->read_ahead_us = node->ahead_us;
    if (stepped) CHECK(known && stepped_us > 0);
    if (known && stepped_us > passed_us + allowance_us(config, passed_us)) CHECK(stepped);
    return stepped;
}

/* A grant increments the node's counter to the floor at least; a raise only ever lifts it. */
static uint64_t count_fence(struct world *world, const struct core_command *command, uint8_t shade)
{
    struct model_node *node = &world->nodes[command->tag.node];

    if (!world->config.fencing) return 0;
    if (command->tag.op == OP_ACQUIRE && !world->config.reads) node->counter += 1 + shade % 4;
    if (command->fence > node->counter) node->counter = command->fence;
    return node->counter;
}

/* The number of listeners that a refusal reports: none, a few, many. */
static uint32_t listeners(uint8_t shade)
{
    static const uint32_t crowds[8] = {0, 0, 1, 2, 3, 30, 1000, UINT32_MAX};

    return crowds[shade >> 3 & 7];
}

static struct flying land(struct world *world, uint32_t index)
{
    struct flying flying = world->flying[index];

    world->n_flying--;
    memmove(&world->flying[index], &world->flying[index + 1], (world->n_flying - index) * sizeof(world->flying[0]));
    return flying;
}

/* As the client does it: every vote there that was asked for before the reading counts no more. */
static void clock_stepped(struct world *world, const struct core_tag *tag)
{
    struct model_node *node = &world->nodes[tag->node];
    struct core_event event = {.type = CORE_EV_STEP, .step = {.node = tag->node, .before_us = tag->sent_us}};

    if (node->yes_sent_us < tag->sent_us) node->yes_until_us = 0;
    happen(world, event, NULL);
}

/* The slot that was asked for; where any was, one that is not passed over; now and then whatever a node may say. */
static uint8_t name_slot(const struct world *world, const struct core_command *command, uint8_t shade)
{
    uint32_t n = world->config.permits, slot = command->tag.slot % n;

    if (shade % 16 == 15) return shade / 4;
    for (uint32_t i = 0; i < n && command->any; i++) {
        uint32_t other = (slot + shade + i) % n;

        if ((command->passed >> other & 1) == 0) return (uint8_t)other;
    }
    return (uint8_t)slot;
}

static void tell_slots(struct world *world, const struct core_command *command, uint8_t shade, struct core_reply *reply)
{
    if (world->slots == NULL) return;
    reply->slot = name_slot(world, command, shade);
    reply->free = shade % 3 == 0 ? 0 : UINT64_MAX / (1 + shade);
    reply->first_us = shade % 5 == 0 ? -1 : (int64_t)shade * 1000;
}

static void answer(struct world *world, uint32_t index, enum outcome outcome, uint8_t shade)
{
    struct flying flying = land(world, index);
    struct core_event event = {.type = CORE_EV_REPLY};

    event.reply = (struct core_reply){.tag = flying.command.tag,
                                      .generation = flying.generation,
                                      .outcome = outcome,
                                      .fault = FAULT_CLASS_NONE,
                                      .holder_id = shade & 3,
                                      .ttl_us = (int64_t)(shade >> 2) * 1000 - 2};
    /* A connection that ended answers no more: what is still unknown stays so, however late it is told. */
    if (world->nodes[flying.command.tag.node].generation != flying.generation) {
        event.reply.outcome = outcome = OUTCOME_UNKNOWN;
    }
    if (outcome >= OUTCOME_ERROR) event.reply.fault = FAULT_CLASS_TEMPORARY + shade % 5;
    if (outcome == OUTCOME_YES) event.reply.fence = count_fence(world, &flying.command, shade);
    tell_slots(world, &flying.command, shade, &event.reply);
    if (outcome == OUTCOME_OTHER && flying.command.tag.op == OP_ACQUIRE) {
        event.reply.listeners = listeners(shade);
        event.reply.readers = shade % 2 == 1;
    }
    count_yes(world, &flying, event.reply.outcome, event.reply.slot);
    happen(world, event, NULL);
    /* Told in every script's yes, but by release and peek. */
    if (outcome == OUTCOME_YES && flying.command.tag.op != OP_RELEASE && flying.command.tag.op != OP_PEEK &&
        flying.command.tag.op != OP_INTEND && is_next(world, &flying) &&
        prove_step(world, &flying.command.tag, shade)) {
        clock_stepped(world, &flying.command.tag);
    }
}

static void change_level(struct world *world, uint32_t index, enum node_state state, uint8_t shade)
{
    struct model_node *node = &world->nodes[index];
    struct core_event event = {.type = CORE_EV_NODE, .node = {.index = index, .state = state}};
    enum node_state before = node->state;
    uint32_t ended = node->generation;
    /* A quarantine may end on the connection it began on; every other change is another connection. */
    bool goes_on = before == NODE_QUARANTINED && state == NODE_READY && shade % 2 == 0;
    bool ends = can_talk(node) && !goes_on;

    node->state = state;
    if (!goes_on) node->generation = can_talk(node) ? ++node->generations : 0;
    event.node.generation = node->generation;
    event.node.fault = state == NODE_DOWN ? FAULT_CLASS_TEMPORARY + shade % 5 : FAULT_CLASS_NONE;
    event.node.srtt_us = shade * 10u;
    /* What flies on a connection that ends has an unknown outcome: told before, or, now and then, much later.
     */
    for (uint32_t i = 0; ends && shade % 4 != 0 && i < world->n_flying;) {
        if (world->flying[i].command.tag.node == index && world->flying[i].generation == ended) {
            struct flying flying = land(world, i);
            struct core_event unknown = {.type = CORE_EV_REPLY};

            unknown.reply = (struct core_reply){.tag = flying.command.tag,
                                                .generation = ended,
                                                .outcome = OUTCOME_UNKNOWN,
                                                .fault = FAULT_CLASS_TEMPORARY,
                                                .ttl_us = -2};
            /* The core still takes this node for READY and may ask it again: that is not sent any more. */
            node->state = before;
            node->generation = ended;
            happen(world, unknown, NULL);
            node->state = state;
            node->generation = event.node.generation;
            i = 0;
        } else {
            i++;
        }
    }
    happen(world, event, NULL);
}

/* No deadline stays in the past: the timer is served, and after a bounded number of turns time must pass. */
static void serve_timers(struct world *world)
{
    for (int i = 0; core_deadline(world->lock) <= world->now_us; i++) {
        CHECK(i < STEPS_AT_ONCE);
        happen(world, (struct core_event){.type = CORE_EV_TIMER}, NULL);
        dispatch(world);
    }
}

/* Signs of releases: from any node, of anybody, at any time, in whatever phase. */
static void hear_of_release(struct world *world, uint8_t what)
{
    uint8_t byte = next_byte(world);
    uint32_t node = byte % world->config.n_nodes;
    bool other = (what & 64) != 0;
    struct core_event event = {.type = CORE_EV_NOTICE, .notice = {.node = node, .holder_id = what >> 4 & 3}};

    if (byte >> 6 == 0) {
        event = (struct core_event){.type = CORE_EV_LISTENING, .listening = {.node = node, .before_acquire = other}};
    }
    if (byte >> 6 == 1) event = (struct core_event){.type = CORE_EV_WAKE, .wake = {.yield = other}};
    happen(world, event, NULL);
}

/* The acquire goes on for a successor, which has a bound of its own. */
static void inherit(struct world *world)
{
    struct core_config *successor = &world->successors[world->handed % 2];
    struct core_event event = {
        .type = CORE_EV_HAND_OFF,
        .hand_off = {.begun_us = world->now_us - next_span_us(world) % START_US, .config = successor}};
    uint8_t byte = next_byte(world);

    *successor = world->config;
    successor->wait_us = byte == 0 ? CORE_NEVER : byte * UINT64_C(5000);
    happen(world, event, NULL);
}

/* As the first try of all, or behind a lock of the same process; it may wait for some time already. */
static void acquire(struct world *world, uint8_t what)
{
    struct core_event event = {.type = CORE_EV_ACQUIRE, .acquire = {.behind = (what & 32) != 0, .seen = what >> 4 & 3}};

    bool may = core_may_acquire(world->lock);

    if ((what & 64) != 0) event.acquire.begun_us = world->now_us - next_span_us(world) % START_US;
    CHECK((happen(world, event, NULL) == 0) == may);
}

/* What finds no room waits, until it is told to begin. */
static void begin_wanted(struct world *world)
{
    world->no_attempt = world->no_round = false;
    if (core_wants(world->lock) != CORE_WANTS_NOTHING) {
        happen(world, (struct core_event){.type = CORE_EV_BEGIN}, NULL);
    }
}

static void change_room(struct world *world, uint8_t what)
{
    switch (what >> 4 & 3) {
    case 0: world->no_attempt = !world->no_attempt; break;
    case 1: world->no_round = !world->no_round; break;
    case 2: begin_wanted(world); break;
    default: {
        uint32_t node = next_byte(world) % world->config.n_nodes;

        happen(world, (struct core_event){.type = CORE_EV_ROOM, .room = {.node = node}}, NULL);
        break;
    }
    }
}

static void something_happens(struct world *world)
{
    static const enum node_state levels[8] = {NODE_READY, NODE_READY, NODE_READY,      NODE_READY,
                                              NODE_DOWN,  NODE_DOWN,  NODE_CONNECTING, NODE_QUARANTINED};
    static const enum outcome outcomes[8] = {OUTCOME_YES,     OUTCOME_YES,   OUTCOME_YES,     OUTCOME_OTHER,
                                             OUTCOME_MISSING, OUTCOME_ERROR, OUTCOME_UNKNOWN, OUTCOME_ERROR};
    uint8_t what = next_byte(world);

    switch (what & 15) {
    case 0: world->now_us += next_span_us(world); break;
    case 1:
        if (core_deadline(world->lock) != CORE_NEVER && core_deadline(world->lock) > world->now_us) {
            world->now_us = core_deadline(world->lock);
        }
        serve_timers(world);
        break;
    case 2: happen(world, (struct core_event){.type = (what & 240) == 240 ? CORE_EV_LOSE : CORE_EV_TIMER}, NULL); break;
    case 3: acquire(world, what); break;
    case 4: happen(world, (struct core_event){.type = CORE_EV_RELEASE}, NULL); break;
    case 5: {
        uint64_t lease_us = (what & 16) != 0 ? 0 : world->config.lease_us - 5000 + (uint64_t)(what >> 5) * 5000;

        happen(world, (struct core_event){.type = CORE_EV_EXTEND, .extend = {.lease_us = lease_us}}, NULL);
        break;
    }
    case 6:
        happen(world,
               (struct core_event){.type = CORE_EV_CANCEL,
                                   .cancel = {.status = (what & 16) != 0 ? CORE_CLOSED : CORE_CANCELED}},
               NULL);
        break;
    case 7:
        change_level(world, (what >> 4) % world->config.n_nodes, levels[next_byte(world) & 7], next_byte(world));
        break;
    case 8: dispatch(world); break;
    case 9: happen(world, (struct core_event){.type = CORE_EV_DISPATCH}, NULL); break;
    case 10:
        /* All nodes answer alike, in the order of sending. */
        for (uint32_t n = world->n_flying; n > 0; n--) answer(world, 0, outcomes[what >> 5], what);
        break;
    case 11: /* could not be sent at all: the latest */
        if (world->n_flying > 0 && world->flying[world->n_flying - 1].command.tag.sent_us == world->now_us) {
            answer(world, world->n_flying - 1, OUTCOME_UNSENT, what);
        }
        break;
    case 12: hear_of_release(world, what); break;
    case 13:
        if ((what & 128) != 0) {
            inherit(world);
        } else if ((what & 64) != 0) {
            change_room(world, what);
        } else {
            world->nodes[(what >> 4) % world->config.n_nodes].ahead_us += next_span_us(world) % START_US;
        }
        break;
    default:
        if (world->n_flying > 0) {
            uint32_t index = (what & 16) != 0 ? next_byte(world) % world->n_flying : 0;

            answer(world, index, outcomes[what >> 5], next_byte(world));
        }
        break;
    }
}

/* Whatever happened: once the nodes answer again and the owner lets go, all is told and nothing is owed. */
static void settle(struct world *world)
{
    for (uint32_t i = 0; i < world->config.n_nodes; i++) change_level(world, i, NODE_READY, 1);
    for (int turn = 0; !core_quiet(world->lock) || world->acquiring || world->extending || world->releasing; turn++) {
        uint64_t deadline_us;

        CHECK(turn < 1000);
        while (world->n_flying > 0) answer(world, 0, OUTCOME_YES, 0);
        dispatch(world);
        begin_wanted(world);
        serve_timers(world);
        if (happen(world, (struct core_event){.type = CORE_EV_CANCEL, .cancel = {.status = CORE_CANCELED}}, NULL) == 0)
            continue;
        if (happen(world, (struct core_event){.type = CORE_EV_RELEASE}, NULL) == 0) continue;
        deadline_us = core_deadline(world->lock);
        if (deadline_us != CORE_NEVER && deadline_us > world->now_us) world->now_us = deadline_us;
        serve_timers(world);
    }
    CHECK(!world->held);
    CHECK(core_deadline(world->lock) == CORE_NEVER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world *world = calloc(1, sizeof(*world));

    CHECK(world != NULL);
    world->data = data;
    world->left = size;
    world->now_us = START_US;
    choose_config(world);
    world->lock = malloc(core_size(world->config.n_nodes));
    CHECK(world->lock != NULL);
    core_init(world->lock, &world->config, world->first_arbiter);
    for (uint32_t i = 0; i < NODES_MAX; i++) world->nodes[i].state = NODE_DOWN;
    while (world->left > 0) something_happens(world);
    settle(world);
    free(core_end_work(world->lock, true));
    free(world->lock);
    free(world->slots);
    free(world);
    return 0;
}
