/* SPDX-License-Identifier: BSD-3-Clause */
/* machine_loop.c - turns as libevent makes them: descriptors and precise timers, then plain timers, each runs what
 * it runs, and behind them whatever was made active meanwhile */
#include <stdlib.h>

#include "machine_parts.h"
#include "panic.h"

#define TURN_US_MAX      30
#define CALLBACKS_A_TURN 1000000

/* ---- turns ---- */

void machine_due(struct due *due, struct list *list)
{
    if (due->in != NULL) list_remove(due->in, &due->at);
    due->in = list;
    if (list != NULL) list_add(list, &due->at);
}

void machine_soon(struct machine *machine)
{
    uint64_t now_us = machine->queue->now_us;
    uint64_t at_us = machine->awake_us > now_us ? machine->awake_us : now_us;

    /* The end of a turn looks itself. */
    if (machine->running || !machine_lives(machine)) return;
    if (machine->turn.index == 0 || machine->turn.at_us > at_us) queue_set(machine->queue, &machine->turn, at_us);
}

static void touch(struct watch *watch)
{
    list_add(&watch->machine->touched, &watch->at);
    machine_soon(watch->machine);
}

/* Of a dead one's descriptors all are broken. */
static unsigned ready_for(const struct watch *watch)
{
    if (watch->wanted == 0) return 0;
    if (watch->machine->dead) return watch->wanted;
    return net_ready(watch->machine->net, watch->fd) & watch->wanted;
}

/* Leaves those that are ready; whether there are any. */
static bool look(struct machine *machine)
{
    struct watch *next;

    for (struct watch *watch = FIRST_OF(&machine->touched, struct watch, at); watch != NULL; watch = next) {
        next = CONTAINER_OF(list_next(&watch->at), struct watch, at);
        if (ready_for(watch) == 0) list_remove(&machine->touched, &watch->at);
    }
    return machine->touched.count > 0;
}

static void shuffle(struct machine *machine, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t other = (size_t)rng_below(&machine->turn_rng, i);
        struct due *due = machine->scratch[i - 1];

        machine->scratch[i - 1] = machine->scratch[other];
        machine->scratch[other] = due;
    }
}

static void reserve(struct machine *machine, size_t n)
{
    if (n <= machine->scratch_room) return;
    machine->scratch_room = n * 2;
    free(machine->scratch);
    machine->scratch = malloc(machine->scratch_room * sizeof(struct due *));
    if (machine->scratch == NULL) panic("no memory for %zu events of a turn", n);
}

/* What is due becomes active: what is pending in any order, for so a kernel hands it over; timers in theirs. */
static void collect(struct machine *machine)
{
    size_t n = 0;

    look(machine);
    reserve(machine, machine->touched.count * 2 + machine->pending.count);
    LIST_EACH (struct watch, watch, &machine->touched, at) {
        unsigned ready = ready_for(watch);

        if ((ready & WATCH_READ) != 0) machine->scratch[n++] = &watch->readable;
        if ((ready & WATCH_WRITE) != 0) machine->scratch[n++] = &watch->writable;
    }
    LIST_EACH (struct due, due, &machine->pending, at) machine->scratch[n++] = due;
    shuffle(machine, n);
    for (size_t i = 0; i < n; i++) machine_due(machine->scratch[i], &machine->active);
    while (machine->expired.count > 0) machine_due(FIRST_OF(&machine->expired, struct due, at), &machine->active);
}

static void run_active(struct machine *machine)
{
    uint64_t limit = machine->counts.callbacks + CALLBACKS_A_TURN;

    machine->running = true;
    while (machine->active.count > 0 && machine_lives(machine)) {
        struct due *due = FIRST_OF(&machine->active, struct due, at);

        machine_due(due, NULL);
        if (++machine->counts.callbacks == limit) panic("a turn of machine %u does not end", machine->index);
        due->run(due);
    }
    machine->running = false;
}

static uint64_t plain_us(const struct machine *machine)
{
    return machine_shows_us(machine, MACHINE_BOOT) - machine->suspended_us;
}

static void count_turn(struct machine *machine)
{
    struct machine_counts *counts = &machine->counts;

    counts->turns++;
    machine->in_a_row = machine->queue->now_us == machine->awake_us ? machine->in_a_row + 1 : 1;
    if (machine->in_a_row > counts->spins) counts->spins = machine->in_a_row;
}

void machine_turn(void *arg)
{
    struct machine *machine = arg;
    const struct machine_events *events = &machine->events;

    if (machine->running) return;
    if (machine->queue->now_us < machine->awake_us) {
        machine_soon(machine);
        return;
    }
    if (plain_us(machine) < machine->looked_us && !machine->burying)
        panic("a clock of machine %u goes back", machine->index);
    machine->looked_us = plain_us(machine);
    collect(machine);
    if (machine->active.count == 0) return;
    count_turn(machine);
    run_active(machine);
    if (!machine_lives(machine)) return;
    machine->awake_us = machine->queue->now_us + 1 + rng_below(&machine->turn_rng, TURN_US_MAX);
    if (look(machine) || machine->pending.count > 0 || machine->expired.count > 0) machine_soon(machine);
    if (!machine->dead && events->turned != NULL) events->turned(events->arg, machine);
}

/* ---- descriptors ---- */

static void run_readable(struct due *due)
{
    struct watch *watch = CONTAINER_OF(due, struct watch, readable);

    watch->ready(watch->arg, WATCH_READ);
}

static void run_writable(struct due *due)
{
    struct watch *watch = CONTAINER_OF(due, struct watch, writable);

    watch->ready(watch->arg, WATCH_WRITE);
}

void machine_woken(void *arg, int fd)
{
    struct watch *watch = machine_slot(arg, fd)->watch;

    if (watch != NULL) touch(watch);
}

static void *watch_new(void *of, int fd, void (*ready)(void *, unsigned), void *arg)
{
    struct machine *machine = of;
    struct slot *slot = machine_slot(machine, fd);
    struct watch *watch = alloc_zero(&machine->alloc, sizeof(*watch));

    if (slot->watch != NULL) panic("machine %u watches descriptor %d twice", machine->index, fd);
    if (watch == NULL) return NULL;
    *watch = (struct watch){.readable.run = run_readable,
                            .writable.run = run_writable,
                            .machine = machine,
                            .fd = fd,
                            .ready = ready,
                            .arg = arg};
    slot->watch = watch;
    return watch;
}

static int watch_set(void *arg, unsigned events)
{
    struct watch *watch = arg;

    watch->wanted = events;
    if ((events & WATCH_READ) == 0) machine_due(&watch->readable, NULL);
    if ((events & WATCH_WRITE) == 0) machine_due(&watch->writable, NULL);
    if (events != 0) touch(watch);
    return 0;
}

static void watch_free(void *arg)
{
    struct watch *watch = arg;
    struct machine *machine = watch->machine;

    machine_due(&watch->readable, NULL);
    machine_due(&watch->writable, NULL);
    list_remove(&machine->touched, &watch->at);
    machine_slot(machine, watch->fd)->watch = NULL;
    alloc_free(&machine->alloc, watch);
}

/* ---- timers ---- */

static void run_timer(struct due *due)
{
    struct timer *timer = CONTAINER_OF(due, struct timer, due);

    timer->fire(timer->arg);
}

static void set_moment(struct timer *timer)
{
    struct machine *machine = timer->machine;
    uint64_t boot_us = timer->shown_us + (timer->precise ? 0 : machine->suspended_us);

    if (timer->shown_us != NEVER && machine_lives(machine))
        queue_set(machine->queue, &timer->moment, skew_when(&machine->clocks[MACHINE_BOOT], boot_us));
}

void machine_timers_set(struct machine *machine)
{
    LIST_EACH (struct timer, timer, &machine->timers, at) set_moment(timer);
}

static uint64_t timer_shows_us(const struct timer *timer)
{
    return timer->precise ? machine_shows_us(timer->machine, MACHINE_BOOT) : plain_us(timer->machine);
}

static void on_moment(void *arg)
{
    struct timer *timer = arg;
    struct machine *machine = timer->machine;

    if (timer_shows_us(timer) < timer->shown_us) {
        set_moment(timer);
        return;
    }
    timer->shown_us = NEVER;
    machine_due(&timer->due, timer->precise ? &machine->pending : &machine->expired);
    /* With what else is to come at this very time, where a turn is set for it already. */
    if (machine->turn.index > 0 || machine->running)
        machine_soon(machine);
    else
        machine_turn(machine);
}

static struct timer *new_timer(struct machine *machine, bool precise, void (*fire)(void *), void *arg)
{
    struct timer *timer = alloc_zero(&machine->alloc, sizeof(*timer));

    if (timer == NULL) return NULL;
    *timer = (struct timer){.due.run = run_timer,
                            .machine = machine,
                            .moment = {.happen = on_moment, .arg = timer},
                            .shown_us = NEVER,
                            .precise = precise,
                            .fire = fire,
                            .arg = arg};
    list_add(&machine->timers, &timer->at);
    return timer;
}

static void *timer_new(void *machine, void (*fire)(void *), void *arg)
{
    return new_timer(machine, false, fire, arg);
}

static void timer_stop(void *arg)
{
    struct timer *timer = arg;

    timer->shown_us = NEVER;
    machine_due(&timer->due, NULL);
    queue_set(timer->machine->queue, &timer->moment, NEVER);
}

/* A plain one counts from the time at which the loop last looked, while it runs. */
static int timer_set(void *arg, uint64_t after_us)
{
    struct timer *timer = arg;
    uint64_t from_us = !timer->precise && timer->machine->running ? timer->machine->looked_us : timer_shows_us(timer);

    machine_due(&timer->due, NULL);
    timer->shown_us = after_us < NEVER / 2 ? from_us + after_us : NEVER / 2;
    set_moment(timer);
    return 0;
}

static void timer_free(void *arg)
{
    struct timer *timer = arg;
    struct machine *machine = timer->machine;

    timer_stop(timer);
    list_remove(&machine->timers, &timer->at);
    alloc_free(&machine->alloc, timer);
}

/* ---- alarms: precise timers, each with a descriptor ---- */

struct alarm *machine_alarm_new(struct system *system, void (*fire)(void *), void *arg)
{
    struct machine *machine = system->arg;
    struct timer *timer;

    if (machine->descriptors >= machine->descriptors_limit) return NULL;
    timer = new_timer(machine, true, fire, arg);
    if (timer == NULL) return NULL;
    machine->descriptors++;
    return (struct alarm *)timer;
}

void machine_alarm_set(struct alarm *alarm, uint64_t after_us)
{
    timer_set(alarm, after_us);
}

void machine_alarm_free(struct alarm *alarm)
{
    ((struct timer *)alarm)->machine->descriptors--;
    timer_free(alarm);
}

/* ---- tasks ---- */

static void run_task(struct due *due)
{
    struct task *task = CONTAINER_OF(due, struct task, due);

    task->run(task->arg);
}

static void *task_new(void *of, void (*run)(void *), void *arg)
{
    struct machine *machine = of;
    struct task *task = alloc_zero(&machine->alloc, sizeof(*task));

    if (task == NULL) return NULL;
    *task = (struct task){.due.run = run_task, .machine = machine, .run = run, .arg = arg};
    return task;
}

static void task_run(void *arg)
{
    struct task *task = arg;

    if (task->due.in != NULL) return;
    machine_due(&task->due, &task->machine->active);
    machine_soon(task->machine);
}

static void task_stop(void *task)
{
    machine_due(&((struct task *)task)->due, NULL);
}

static void task_free(void *arg)
{
    struct task *task = arg;

    task_stop(task);
    alloc_free(&task->machine->alloc, task);
}

struct quorlock_loop machine_loop(struct machine *machine)
{
    return (struct quorlock_loop){.size = sizeof(struct quorlock_loop),
                                  .arg = machine,
                                  .watch_new = watch_new,
                                  .watch_set = watch_set,
                                  .watch_free = watch_free,
                                  .timer_new = timer_new,
                                  .timer_set = timer_set,
                                  .timer_stop = timer_stop,
                                  .timer_free = timer_free,
                                  .task_new = task_new,
                                  .task_run = task_run,
                                  .task_stop = task_stop,
                                  .task_free = task_free};
}
