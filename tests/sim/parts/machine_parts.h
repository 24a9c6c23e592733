/* SPDX-License-Identifier: BSD-3-Clause */
/* machine_parts.h - inside a machine: the loop (machine_loop.c), what else the library asks a system for
 * (machine_system.c), its memory (machine_memory.c), its life and death (machine.c) */
#pragma once

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "machine.h"

/* What the loop can run: a callback that is due. */
struct due {
    struct link at;
    struct list *in; /* one of the loop's, or NULL */
    void (*run)(struct due *);
};

struct timer {
    struct due due;
    struct link at; /* in machine->timers */
    struct machine *machine;
    struct moment moment;
    uint64_t shown_us; /* fires when its clock shows that; NEVER: it is not set */
    bool precise;
    void (*fire)(void *arg);
    void *arg;
};

struct task {
    struct due due;
    struct machine *machine;
    void (*run)(void *arg);
    void *arg;
};

struct watch {
    struct due readable, writable;
    struct link at; /* in machine->touched */
    struct machine *machine;
    int fd;
    unsigned wanted;
    void (*ready)(void *arg, unsigned events);
    void *arg;
};

/* Of the user. */
struct call {
    struct due due;
    struct link at; /* in machine->calls */
    struct machine *machine;
    struct call *next_spare;
    void (*call)(void *arg);
    void *arg;
};

struct lookup {
    struct due due;
    struct link at; /* in machine->lookups */
    struct machine *machine;
    struct moment moment;
    uint32_t server;
    uint16_t port;
    void (*done)(void *arg, const struct addresses *);
    void *arg;
};

/* A descriptor as the machine knows it; the network may have forgotten it, when the machine is dead. */
struct slot {
    int fd; /* -1: none */
    struct watch *watch;
};

struct block {
    struct block *next, *previous;
    size_t size;
    struct machine *machine; /* NULL: freed */
};

#define FREED_KEPT 64u

struct machine {
    struct queue *queue; /* the world's; after the end its own */
    struct queue *world_queue;
    struct queue own_queue;
    struct net *net;
    uint32_t index;
    struct system system;
    struct alloc alloc;
    struct alloc_hooks hooks;
    struct machine_events events;
    struct machine_counts counts;
    struct rng turn_rng, random_rng, lookup_rng;

    struct skew clocks[MACHINE_CLOCKS];
    uint64_t lost_until_us; /* true time: until then clocks have lost what they are to lose */
    uint64_t suspended_us;  /* in all: the clock of the plain timers does not count it */
    uint64_t looked_us;     /* what that clock showed when the loop last looked */
    struct clock clock;

    /* The loop. Touched: watches that may be ready. Pending: precise timers, calls and lookups that are, until the
     * next turn; expired: plain timers that are. Active: what is run now, in this order. */
    struct moment turn, clocks_changed;
    struct list touched, pending, expired, active, timers, lookups, calls;
    struct due **scratch;
    size_t scratch_room;
    struct call *spare_calls;
    uint64_t awake_us; /* no turn before */
    uint64_t in_a_row; /* turns without a pause between them */
    bool running, dead, burying;

    uint64_t names_us;
    bool names_fail;
    struct slot *slots;
    uint32_t slots_room;
    uint32_t descriptors, descriptors_limit;

    struct block *blocks;
    size_t n_blocks;
    struct block *freed[FREED_KEPT]; /* the latest, so that a write into them shows */
    uint32_t freed_at;
};

struct quorlock_loop machine_loop(struct machine *);
extern const struct system_ops machine_ops;
struct alarm *machine_alarm_new(struct system *, void (*fire)(void *), void *arg);
void machine_alarm_set(struct alarm *, uint64_t after_us);
void machine_alarm_free(struct alarm *);

/* machine_lives - return whether its loop runs, which it also does while it is buried. */
static inline bool machine_lives(const struct machine *machine)
{
    return !machine->dead || machine->burying;
}

/*
 * machine_turn       - run one turn of the loop
 * machine_soon       - run the next turn as soon as possible
 * machine_due        - put a callback into a list of the loop; NULL: take it out of its list
 * machine_woken      - the callback of type net_woken: the descriptor may be ready
 * machine_timers_set - set the moments of all timers by what the clocks show now
 */
void machine_turn(void *machine);
void machine_soon(struct machine *);
void machine_due(struct due *, struct list *);
void machine_woken(void *machine, int fd);
void machine_timers_set(struct machine *);
/* machine_lookups_set - set the moments of all lookups, counted from now. */
void machine_lookups_set(struct machine *);
/* machine_slot - return the slot of the descriptor. */
struct slot *machine_slot(struct machine *, int fd);
/* machine_memory_init - set the hooks of the allocator.
 * machine_memory_free - free what is left, and check that nobody wrote into freed blocks. */
void machine_memory_init(struct machine *);
void machine_memory_free(struct machine *);
uint64_t machine_shows_us(const struct machine *, int which);
