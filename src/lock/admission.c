/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/admission.h"

#include <assert.h>

#define WINDOW_MIN   16u
#define WINDOW_FIRST 256u
#define WINDOW_MAX   1024u
#define ROOM_MIN     32u
#define ROOM_FIRST   2048u
#define SLOW_PART    8u /* an answer is slow that waited for more than this part of the node timeout */
#define WAY_PART     8u
/* Room may appear without an event: when a node becomes late, or memory is free again. */
#define LOOK_AGAIN_US 20000u

/* Only lets the turn run, which serves what waits. */
static void admission_on_look(struct waker *waker)
{
    (void)waker;
}

/* At the begin and the end of what changes the window or a pace. */
static void admission_check(const struct admission *admission)
{
    (void)admission; /* without assertions */
    assert(admission->window >= WINDOW_MIN && admission->window <= WINDOW_MAX);
}

void admission_start(struct admission *admission, struct runtime *runtime)
{
    assert(admission->begin != NULL && admission->send != NULL);
    assert(runtime->n_nodes >= 1 && runtime->n_nodes <= CORE_NODES_MAX);
    admission->runtime = runtime;
    admission->window = WINDOW_FIRST;
    for (uint32_t i = 0; i < CORE_NODES_MAX; i++) admission->paces[i].room = ROOM_FIRST;
    runtime_start_waker(runtime, &admission->look, admission_on_look);
}

/* ---- is there room? ---- */

static const struct node *node_at(const struct admission *admission, uint32_t index)
{
    assert(index < admission->runtime->n_nodes);
    return admission->runtime->nodes[index].node;
}

bool admission_has_release_room(const struct admission *admission, uint32_t index)
{
    const struct node *node = node_at(admission, index);

    return node_has_room(node, NODE_ROOM_KEEP) && node_in_flight(node) < admission->paces[index].room;
}

static bool has_round_room(const struct admission *admission)
{
    for (uint32_t i = 0; i < admission->runtime->n_nodes; i++) {
        const struct node *node = node_at(admission, i);

        if (nodes_can_talk(node) && !admission_has_release_room(admission, i) && !node_is_late(node)) {
            return false;
        }
    }
    return true;
}

static bool has_repair_room(const struct admission *admission)
{
    if (admission->rounds.count > 0) return false;
    for (uint32_t i = 0; i < admission->runtime->n_nodes; i++) {
        const struct node *node = node_at(admission, i);
        bool free = node_has_room(node, NODE_ROOM_NEW) && node_in_flight(node) < admission->paces[i].room / 2;

        if (!free && nodes_can_talk(node) && !node_is_late(node)) return false;
    }
    return true;
}

/* Rule 14.2. */
static bool has_attempt_room(const struct admission *admission)
{
    if (admission->asking >= admission->window || admission->rounds.count + admission->repairs.count > 0) return false;
    for (uint32_t i = 0; i < admission->runtime->n_nodes; i++) {
        const struct node *node = node_at(admission, i);
        bool free = admission->unsent[i].count == 0 && node_has_room(node, NODE_ROOM_NEW);

        if (node_state_now(node) == NODE_READY && !free && !node_is_late(node)) return false;
    }
    return true;
}

bool admission_has_room(const struct admission *admission, enum core_wants wants)
{
    assert(wants != CORE_WANTS_NOTHING);
    if (wants == CORE_WANTS_ROUND) return admission->rounds.count == 0 && has_round_room(admission);
    if (wants == CORE_WANTS_REPAIR) return admission->repairs.count == 0 && has_repair_room(admission);
    return admission->attempts.count == 0 && has_attempt_room(admission);
}

void admission_limit(const struct admission *admission, struct core_event *event)
{
    bool attempt = event->type == CORE_EV_ACQUIRE || event->type == CORE_EV_NOTICE || event->type == CORE_EV_WAKE;
    bool round = event->type == CORE_EV_EXTEND;
    bool either = event->type == CORE_EV_TIMER || event->type == CORE_EV_NODE;

    assert(!event->no_attempt && !event->no_round && !event->no_repair);
    if (attempt || either) event->no_attempt = !admission_has_room(admission, CORE_WANTS_ATTEMPT);
    if (round || either) event->no_round = !admission_has_room(admission, CORE_WANTS_ROUND);
    if (event->type == CORE_EV_TIMER) event->no_repair = !admission_has_room(admission, CORE_WANTS_REPAIR);
}

/* ---- waiting ---- */

static void look_again(struct admission *admission)
{
    struct runtime *runtime = admission->runtime;

    if (runtime_wakes_at(&admission->look) != UINT64_MAX) return;
    runtime_wake_at(runtime, &admission->look, runtime_now_us(runtime) + LOOK_AGAIN_US);
}

static struct list *queue_for(struct admission *admission, enum core_wants wants)
{
    assert(wants != CORE_WANTS_NOTHING);
    if (wants == CORE_WANTS_ROUND) return &admission->rounds;
    return wants == CORE_WANTS_REPAIR ? &admission->repairs : &admission->attempts;
}

void admission_follow(struct admission *admission, struct applicant *applicant, enum core_wants wants, bool asking)
{
    /* A handle asks by its claim. */
    assert(!asking || !applicant->of_handle);
    assert(!applicant->asking || admission->asking > 0);
    if (applicant->waits != CORE_WANTS_NOTHING && applicant->waits != wants) {
        list_remove(queue_for(admission, applicant->waits), &applicant->link);
    }
    applicant->waits = wants;
    if (wants != CORE_WANTS_NOTHING) {
        list_add(queue_for(admission, wants), &applicant->link);
        look_again(admission);
    }
    if (asking == applicant->asking) return;
    applicant->asking = asking;
    if (asking) {
        admission->asking++;
        return;
    }
    admission->asking--;
    if (admission->attempts.count > 0) runtime_run_soon(admission->runtime);
}

void admission_leave(struct admission *admission, struct applicant *applicant)
{
    assert(!applicant->asking || admission->asking > 0);
    if (applicant->waits != CORE_WANTS_NOTHING) list_remove(queue_for(admission, applicant->waits), &applicant->link);
    if (applicant->asking) admission->asking--;
}

void admission_add_unsent(struct admission *admission, struct unsent_release *release, uint32_t node)
{
    assert(node < admission->runtime->n_nodes);
    list_add(&admission->unsent[node], &release->link);
    look_again(admission);
}

/* Learn the time that the way alone takes: the least that any answer took. While few requests are in flight, it follows
 * their time, so that a way which became longer is learned. */
static void learn_way(struct pace *pace, uint32_t latency_us, size_t in_flight)
{
    if (latency_us < pace->way_us || pace->way_us == 0) {
        pace->way_us = latency_us;
    } else if (in_flight <= ROOM_MIN) {
        pace->way_us += (latency_us - pace->way_us) / WAY_PART;
    }
}

/* Halve the room once for all requests that were in flight together, because they are slow together. */
static void narrow(struct pace *pace, uint64_t now_us, uint32_t latency_us)
{
    assert(pace->room >= ROOM_MIN);
    if (now_us - latency_us < pace->narrowed_us) return;
    pace->narrowed_us = now_us;
    pace->room = pace->room / 2 < ROOM_MIN ? ROOM_MIN : pace->room / 2;
    assert(pace->room >= ROOM_MIN);
}

void admission_update_rtt(struct admission *admission, uint32_t index, uint32_t latency_us, uint64_t timeout_us)
{
    struct pace *pace = &admission->paces[index];
    size_t in_flight = node_in_flight(node_at(admission, index));

    admission_check(admission);
    learn_way(pace, latency_us, in_flight);
    if (latency_us - pace->way_us > timeout_us / SLOW_PART) {
        if (admission->window > WINDOW_MIN) admission->window--;
        narrow(pace, runtime_now_us(admission->runtime), latency_us);
    } else {
        if (admission->window < WINDOW_MAX) admission->window++;
        if (in_flight * 2 >= pace->room) pace->room++;
    }
    admission_check(admission);
}

/* ---- serving ---- */

/* Who begins waits no more. */
static void serve(struct admission *admission, struct list *waiting, bool (*has_room)(const struct admission *))
{
    while (waiting->count > 0 && has_room(admission)) {
        if (!admission->begin(FIRST_OF(waiting, struct applicant, link))) return;
    }
}

/* Try each release once. A release that finds no room or memory after all goes to the end of the queue; then no answer
 * will come that a close should wait for. */
static void serve_releases(struct admission *admission, uint32_t node)
{
    struct runtime *runtime = admission->runtime;
    struct list *unsent = &admission->unsent[node];

    for (size_t n = unsent->count; n > 0; n--) {
        struct unsent_release *release = FIRST_OF(unsent, struct unsent_release, link);
        size_t in_flight = runtime->in_flight;

        if (release == NULL || !admission_has_release_room(admission, node)) return;
        list_remove(unsent, &release->link);
        admission->send(release, node);
        if (runtime->in_flight > in_flight) runtime_extend_close(runtime);
    }
}

/* Rule 14.1. */
void admission_serve(struct admission *admission)
{
    if (!admission_is_wanted(admission)) return;
    serve(admission, &admission->rounds, has_round_room);
    for (uint32_t i = 0; i < admission->runtime->n_nodes; i++) serve_releases(admission, i);
    serve(admission, &admission->repairs, has_repair_room);
    serve(admission, &admission->attempts, has_attempt_room);
    if (admission_is_wanted(admission)) look_again(admission);
    admission_check(admission);
    /* While anything waits, the waker is set. */
    assert(!admission_is_wanted(admission) || runtime_wakes_at(&admission->look) != UINT64_MAX);
}

bool admission_is_wanted(const struct admission *admission)
{
    size_t waiting = admission->rounds.count + admission->repairs.count + admission->attempts.count;

    for (uint32_t i = 0; i < admission->runtime->n_nodes; i++) waiting += admission->unsent[i].count;
    return waiting > 0;
}

bool admission_owes(const struct admission *admission)
{
    for (uint32_t i = 0; i < admission->runtime->n_nodes; i++) {
        const struct node *node = node_at(admission, i);

        if (admission->unsent[i].count > 0 && nodes_can_talk(node) && !node_is_late(node)) return true;
    }
    return false;
}
