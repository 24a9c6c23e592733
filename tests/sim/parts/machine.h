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

/* What is told to whoever watches it: the judge, and the faults that strike at a certain point. */
struct machine_events {
    void (*turned)(void *arg, struct machine *); /* a turn of the loop has ended */
    /* The library reads the clock, sends, allocates: now may machine_stall() be called, or machine_kill(). */
    void (*reads_clock)(void *arg, struct machine *);
    void (*sends)(void *arg, struct machine *, uint32_t server, size_t size);
    bool (*allocates)(void *arg, struct machine *, size_t size); /* false: there is no memory */
    void (*closes)(void *arg, struct machine *, bool owed); /* a connection; what it had sent was not all answered */
    bool (*draws)(void *arg, struct machine *);             /* false: there are no random bytes */
    void *arg;
};

struct machine_counts {
    uint64_t turns, callbacks, clock_reads, sends, bytes_sent, received, bytes_received, connects, allocations, lookups;
    uint64_t spins; /* the most turns in a row without a pause between them */
};

struct machine *machine_new(struct queue *, struct net *);
void machine_free(struct machine *);
/* machine_boot - a fresh process on a fresh host. Its clocks show what skews say: of boot_us, raw_us, wall_us. All
 * memory of the process before must have been freed, see machine_bury(). */
void machine_boot(struct machine *, uint32_t index, uint64_t seed, const struct skew skews[MACHINE_CLOCKS],
                  const struct machine_events *);
/* machine_system - for client_new_on(); machine_allocator: counted memory, for the client's options. */
const struct system *machine_system(struct machine *);
const struct quorlock_allocator *machine_allocator(struct machine *);

/* machine_stall - stands still for so long: called from one of its own callbacks or events it returns when that
 * time is over (the others go on meanwhile), else no turn comes before. Inside another machine's stall it is
 * shortened to the end of that. suspend: boot_us goes on, raw_us does not. */
void machine_stall(struct machine *, uint64_t for_us, bool suspend);
/* machine_pause - the same from outside of its callbacks, and neither boot_us nor raw_us counts that time. */
void machine_pause(struct machine *, uint64_t for_us);
/* machine_kill - its process has ended here and now (host: and nobody says so to the servers). Nothing that it does
 * from now on has an effect: sends vanish, no callback counts. */
void machine_kill(struct machine *, bool host);
/* machine_is_running - one of its callbacks is under way, and perhaps stalls: so machine_bury() is to wait. */
bool machine_is_running(const struct machine *);
/* machine_bury - after machine_kill(), from the world's loop and not from its own: close() is to close all its
 * clients; runs its loop alone, in a time of its own where every connection fails, until its memory is zero. The
 * number of blocks left: 0, or there is a leak; then they are freed. */
size_t machine_bury(struct machine *, void (*close)(void *arg), void *arg);

/* Descriptors and memory. */
void machine_limit_descriptors(struct machine *, uint32_t n); /* of sockets and precise timers; EMFILE beyond */
size_t machine_blocks(const struct machine *);                /* that are allocated now */
uint32_t machine_descriptors(const struct machine *);

/* Clocks. machine_clock: to change one, and its loop looks at its timers again. machine_now_us: the library's own
 * clock, as base/clock defines it from boot_us and raw_us. */
struct skew *machine_clock(struct machine *, int which);
uint64_t machine_now_us(struct machine *);
const struct machine_counts *machine_counted(const struct machine *);

/* machine_call - the user's own code runs in the loop's next turn, once: as an event of the user's.
 * machine_names: host names node0, node1... resolve to where that server is then, after so long on average (NEVER:
 * never); where it fails, to nothing. At first after a millisecond. */
void machine_call(struct machine *, void (*call)(void *arg), void *arg);
void machine_names(struct machine *, uint64_t mean_us, bool fail);
