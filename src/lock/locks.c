/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/locks.h"

#include "lock/lock.h"
#include "lock/message.h"
#include "lock/notify.h"
#include "lock/queue.h"

/* ---- what claims report ---- */

static void on_claim_destroyed(struct claim *claim)
{
    if (claim->handle != NULL) claim->handle->claim = NULL;
}

static const struct claim_events claim_events = {.logs = message_log,
                                                 .lost = message_log_loss,
                                                 .keys_released = queue_keys_released,
                                                 .due = queue_due,
                                                 .destroyed = on_claim_destroyed};

/* ---- what the nodes report ---- */

static void on_node_changed(struct node_observer *observer, uint32_t node)
{
    struct locks *all = CONTAINER_OF(observer, struct locks, observer);

    LIST_WALK (struct claim, claim, &all->claims.active, in_active) claim_on_node_state(claim, node);
}

static void on_clock_stepped(struct node_observer *observer, uint32_t node, uint64_t before_us)
{
    struct locks *all = CONTAINER_OF(observer, struct locks, observer);

    LIST_WALK (struct claim, claim, &all->claims.active, in_active) claim_clock_stepped(claim, node, before_us);
}

static void on_has_room(struct node_observer *observer, uint32_t node)
{
    struct locks *all = CONTAINER_OF(observer, struct locks, observer);

    (void)node;
    if (admission_is_wanted(&all->claims.admission)) runtime_run_soon(all->runtime);
}

/* ---- the turn ---- */

static void begin_turn(struct turn *turn)
{
    struct locks *all = CONTAINER_OF(turn, struct locks, turn);

    admission_serve(&all->claims.admission);
    notify_budget(all);
}

static bool next_in_turn(struct turn *turn)
{
    return notify_next(CONTAINER_OF(turn, struct locks, turn));
}

static void end_turn(struct turn *turn)
{
    admission_serve(&CONTAINER_OF(turn, struct locks, turn)->claims.admission);
}

static bool waits(struct turn *turn, bool closing)
{
    const struct locks *all = CONTAINER_OF(turn, struct locks, turn);

    return notify_waits(all) || (closing && admission_owes(&all->claims.admission));
}

/* ---- life ---- */

int locks_start(struct locks *all, struct runtime *runtime)
{
    all->runtime = runtime;
    all->keylists.runtime = runtime;
    all->keylists.events = &queue_listener;
    all->claims.events = &claim_events;
    all->observer = (struct node_observer){
        .changed = on_node_changed, .clock_stepped = on_clock_stepped, .has_room = on_has_room};
    all->turn = (struct turn){.begin = begin_turn, .next = next_in_turn, .end = end_turn, .waits = waits};
    nodes_observe(runtime, &all->observer);
    runtime_add_turn(runtime, &all->turn);
    if (claims_start(&all->claims, runtime) != 0) return -1;
    return subscriptions_start(&all->keylists.subscriptions, runtime);
}

void locks_close(struct locks *all)
{
    LIST_WALK (struct quorlock, lock, &all->handles, in_all) lock_give_up(lock, QUORLOCK_CLOSED);
}

void locks_stop(struct locks *all)
{
    struct claim *claim;
    struct quorlock *lock;

    while ((claim = FIRST_OF(&all->claims.all, struct claim, in_all)) != NULL) claim_destroy(claim);
    while ((lock = FIRST_OF(&all->handles, struct quorlock, in_all)) != NULL) handle_destroy(lock);
    if (all->runtime == NULL) return;
    hashtable_clear(&all->keylists.table, &all->runtime->alloc);
    claims_stop(&all->claims);
    subscriptions_stop(&all->keylists.subscriptions);
}
