/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/admission.h"

#include "lock/lock.h"

#define WINDOW_MIN   16u
#define WINDOW_FIRST 256u
#define WINDOW_MAX   1024u
#define KEEP_WINDOWS 2u
/* An answer is slow when it took more than this part of the node timeout. */
#define SLOW_PART 8u
/* Room may appear without a word: a node becomes late, memory is there again. */
#define LOOK_AGAIN_US 20000u

void admission_init(struct quorlock_client *client)
{
    client->admission.window = WINDOW_FIRST;
}

static bool can_talk(const struct node *node)
{
    enum node_state state = node_state_now(node);

    return state == NODE_READY || state == NODE_QUARANTINED;
}

/* ---- is there room? ---- */

bool admission_has_release_room(const struct quorlock_client *client, uint32_t index)
{
    const struct node *node = client->nodes[index].node;

    return node_has_room(node, NODE_ROOM_KEEP) &&
           node_in_flight(node) < KEEP_WINDOWS * (size_t)client->admission.window;
}

static bool room_for_round(const struct quorlock_client *client)
{
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        const struct node *node = client->nodes[i].node;

        if (can_talk(node) && !admission_has_release_room(client, i) && !node_is_late(node)) return false;
    }
    return true;
}

static bool room_for_attempt(const struct quorlock_client *client)
{
    if (client->admission.asking >= client->admission.window || client->admission.rounds.count > 0)
        return false;
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        const struct client_node *at = &client->nodes[i];
        bool free = at->unpaid.count == 0 && node_has_room(at->node, NODE_ROOM_NEW);

        if (node_state_now(at->node) == NODE_READY && !free && !node_is_late(at->node)) return false;
    }
    return true;
}

void admission_limit(const struct quorlock_client *client, struct core_event *event)
{
    switch (event->type) {
    case CORE_EV_ACQUIRE:
    case CORE_EV_EXTEND:
    case CORE_EV_TIMER:
    case CORE_EV_NODE:
    case CORE_EV_NOTICE:
    case CORE_EV_WAKE:
        event->no_attempt = client->admission.attempts.count > 0 || !room_for_attempt(client);
        event->no_round = client->admission.rounds.count > 0 || !room_for_round(client);
        break;
    default: break;
    }
}

/* ---- who waits ---- */

static void look_again(struct quorlock_client *client)
{
    uint64_t at_us = client_now_us(client) + LOOK_AGAIN_US;

    if (client->admission_look.entry.index == HEAP_OUT) client_wake_at(client, &client->admission_look, at_us);
}

static struct list *list_for(struct quorlock_client *client, enum core_wants wants)
{
    switch (wants) {
    case CORE_WANTS_ATTEMPT: return &client->admission.attempts;
    case CORE_WANTS_ROUND: return &client->admission.rounds;
    case CORE_WANTS_NOTHING: break;
    }
    return NULL;
}

void admission_follow(struct claim *claim)
{
    struct quorlock_client *client = claim->client;
    enum core_wants wants = core_wants(claim->core);
    struct list *list = list_for(client, wants);
    bool asking = core_phase_now(claim->core) == CORE_ASKING;

    if (claim->waits_in != NULL && claim->waits_in != list) list_remove(claim->waits_in, &claim->waits);
    claim->waits_in = list;
    if (wants != CORE_WANTS_NOTHING) {
        list_add(list, &claim->waits);
        look_again(client);
    }
    if (asking == claim->asking) return;
    claim->asking = asking;
    if (asking) {
        client->admission.asking++;
        return;
    }
    client->admission.asking--;
    if (client->admission.attempts.count > 0) client_run_soon(client);
}

void admission_unpaid(struct claim *claim, uint32_t index)
{
    struct unpaid *unpaid = &claim->results[index].unpaid;

    unpaid->claim = claim;
    list_add(&claim->client->nodes[index].unpaid, &unpaid->link);
    look_again(claim->client);
}

void admission_leave(struct claim *claim)
{
    struct quorlock_client *client = claim->client;

    if (claim->waits_in != NULL) list_remove(claim->waits_in, &claim->waits);
    if (claim->asking) client->admission.asking--;
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        list_remove(&client->nodes[i].unpaid, &claim->results[i].unpaid.link);
    }
}

void admission_update_rtt(struct claim *claim, const struct core_tag *tag, const struct node_reply *reply)
{
    struct admission *admission = &claim->client->admission;

    if (tag->op == CORE_OP_PEEK || reply->outcome == NODE_UNKNOWN) return;
    if (reply->latency_us > claim->config.node_timeout_us / SLOW_PART) {
        if (admission->window > WINDOW_MIN) admission->window--;
    } else if (admission->window < WINDOW_MAX) {
        admission->window++;
    }
}

/* ---- serving ---- */

/* False: it could not begin, for want of random bytes. */
static bool begin(struct claim *claim)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct core_event event = {.type = CORE_EV_BEGIN, .random = random};
    bool drawn = claim_draw(random) == 0;

    if (!drawn) event.random = NULL;
    event.wall_us = claim_fence_floor(claim->client, &claim->config);
    (void)claim_step(claim, &event);
    return drawn;
}

static void serve_rounds(struct quorlock_client *client)
{
    struct list *rounds = &client->admission.rounds;

    for (size_t n = rounds->count; n > 0 && rounds->count > 0 && room_for_round(client); n--) {
        (void)begin(LIST_ITEM(rounds->first, struct claim, waits));
    }
}

static void serve_attempts(struct quorlock_client *client)
{
    struct list *attempts = &client->admission.attempts;

    while (attempts->count > 0 && room_for_attempt(client)) {
        if (!begin(LIST_ITEM(attempts->first, struct claim, waits))) return;
    }
}

/* A release that finds no room after all stands at the end again: each is tried once. */
static void serve_releases(struct quorlock_client *client, uint32_t index)
{
    struct client_node *at = &client->nodes[index];
    struct core_event event = {.type = CORE_EV_ROOM, .node = index};

    for (size_t n = at->unpaid.count; n > 0; n--) {
        struct unpaid *unpaid = LIST_ITEM(at->unpaid.first, struct unpaid, link);
        struct claim *claim;

        if (unpaid == NULL || !admission_has_release_room(client, index)) return;
        claim = unpaid->claim;
        list_remove(&at->unpaid, &unpaid->link);
        event.now_us = 0;
        (void)claim_step(claim, &event);
        /* A client that closes waits for the answer of each release as for the first. */
        client->close_until_us = client_now_us(client) + client_timeout_ms(client) * 1000ull;
        claim_reap(claim);
    }
}

void admission_serve(struct quorlock_client *client)
{
    if (!admission_is_wanted(client)) return;
    serve_rounds(client);
    for (uint32_t i = 0; i < client->n_nodes; i++) serve_releases(client, i);
    serve_attempts(client);
    if (admission_is_wanted(client)) look_again(client);
}

bool admission_is_wanted(const struct quorlock_client *client)
{
    size_t waiting = client->admission.rounds.count + client->admission.attempts.count;

    for (uint32_t i = 0; i < client->n_nodes; i++) waiting += client->nodes[i].unpaid.count;
    return waiting > 0;
}

bool admission_owes(const struct quorlock_client *client)
{
    for (uint32_t i = 0; i < client->n_nodes; i++) {
        const struct client_node *at = &client->nodes[i];

        if (at->unpaid.count > 0 && can_talk(at->node) && !node_is_late(at->node)) return true;
    }
    return false;
}
