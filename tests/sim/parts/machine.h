/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h - a process that uses the library, and the host that it runs on: clocks, loop, memory, descriptors
 *
 * The library sees it through machine_system() only. Its loop does as libevent does: what is ready (descriptors in
 * any order, then timers, then tasks) runs one after the other; a task that is set active meanwhile runs behind it
 * in the same turn. A turn takes some time.
 */
#pragma once

#include <quorlock/quorlock.h>

#include "base/system.h"
#include "net.h"
#include "queue.h"
#include "rng.h"
#include "skew.h"

struct machine;

enum { MACHINE_BOOT, MACHINE_RAW, MACHINE_WALL, MACHINE_CLOCKS };

/* Callbacks for those who watch the machine: the judge, and the faults that strike at a certain point. */
struct machine_events {
    void (*turned)(void *arg, struct machine *); /* a turn of the loop has ended */
    /* The library reads the clock, sends or allocates. In these machine_stall() and machine_kill() may be called. */
    void (*reads_clock)(void *arg, struct machine *);
    void (*sends)(void *arg, struct machine *, uint32_t server, size_t size);
    bool (*allocates)(void *arg, struct machine *, size_t size); /* false: there is no memory */
    void (*closes)(void *arg, struct machine *, bool owed); /* a connection; owed: with requests without an answer */
    bool (*draws)(void *arg, struct machine *);             /* false: there are no random bytes */
    void *arg;
};

struct machine_counts {
    uint64_t turns, callbacks, clock_reads, sends, bytes_sent, received, bytes_received, connects, allocations, lookups;
    uint64_t spins; /* the most turns in a row without a pause between them */
};

struct machine *machine_new(struct queue *, struct net *);
void machine_free(struct machine *);
/* machine_boot - start a new process on a new host, whose clocks boot_us, raw_us and wall_us are as the skews say. The
 * memory of the process before must have been freed: see machine_bury(). */
void machine_boot(struct machine *, uint32_t index, uint64_t seed, const struct skew skews[MACHINE_CLOCKS],
                  const struct machine_events *);
/* machine_system - return the system for client_new_on().
 * machine_allocator - return memory that is counted, for a client. */
const struct system *machine_system(struct machine *);
const struct alloc_hooks *machine_allocator(struct machine *);

/* machine_stall - stall the machine for that time, while the others go on. From one of its callbacks or events the call
 * returns when the time is over; otherwise the next turn comes then. Inside another machine's stall the time ends with
 * that one. suspend: boot_us goes on, raw_us does not. */
void machine_stall(struct machine *, uint64_t for_us, bool suspend);
/* machine_pause - stall it from outside of its callbacks, and stop boot_us and raw_us meanwhile. */
void machine_pause(struct machine *, uint64_t for_us);
/* machine_kill - end the process now. host: the servers do not see it. What a callback does from now on has no effect.
 */
void machine_kill(struct machine *, bool host);
/* machine_is_running - return whether one of its callbacks runs, perhaps stalled. machine_bury() must wait for it. */
bool machine_is_running(const struct machine *);
/* machine_bury - free all memory of a killed process. Call it from the world's loop. close() must close all its
 * clients. Then its loop runs alone, in a time of its own in which every connection fails, until no memory is left.
 * Return how many blocks are left; they are a leak, and are freed. */
size_t machine_bury(struct machine *, void (*close)(void *arg), void *arg);

/*
 * machine_limit_descriptors - limit the number of sockets and precise timers; EMFILE beyond
 * machine_blocks            - return how many blocks are allocated now
 * machine_descriptors       - return how many descriptors are open
 */
void machine_limit_descriptors(struct machine *, uint32_t n);
size_t machine_blocks(const struct machine *);
uint32_t machine_descriptors(const struct machine *);

/* machine_clock - return a clock, to change it; the loop looks at its timers again.
 * machine_now_us - return what the library's clock shows, which base/clock makes of boot_us and raw_us. */
struct skew *machine_clock(struct machine *, int which);
uint64_t machine_now_us(struct machine *);
const struct machine_counts *machine_counted(const struct machine *);

/* machine_call - run code of the user once, in the next turn of the loop.
 * machine_names - let lookups of node0, node1 and so on take that long on average (NEVER: no answer comes), or fail. A
 * name resolves to the address that the server has then. Without a call a lookup takes a millisecond. */
void machine_call(struct machine *, void (*call)(void *arg), void *arg);
void machine_names(struct machine *, uint64_t mean_us, bool fail);
