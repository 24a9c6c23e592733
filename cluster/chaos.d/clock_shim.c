/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock_shim.c - preloaded into a Redis server, steps its wall clock
 *
 * QUORLOCK_CHAOS_CLOCK names a file of eight bytes: a signed number of microseconds that is added to the wall clock. A
 * write to the file moves the clock of the running server at once, forward or back. Monotonic clocks are not changed.
 * Without the variable, or if the file is too short, nothing changes. If QUORLOCK_CHAOS_CLOCK_STANDS is set, the number
 * is the wall clock itself, which does not advance between writes. In a file of sixteen bytes the second number counts
 * how often the server read its clock and found it moved.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "shim.h"

static _Atomic int64_t *clock_offset_us, *clock_moves;
static bool clock_stands;

__attribute__((constructor)) static void clock_map(void)
{
    _Atomic int64_t *both = shim_map("QUORLOCK_CHAOS_CLOCK", 2 * sizeof(*both));

    clock_stands = getenv("QUORLOCK_CHAOS_CLOCK_STANDS") != NULL;
    clock_offset_us = both != NULL ? both : shim_map("QUORLOCK_CHAOS_CLOCK", sizeof(*both));
    if (both != NULL) clock_moves = &both[1];
}

static int64_t read_offset(void)
{
    static _Atomic int64_t before_us;
    int64_t offset_us = atomic_load(clock_offset_us);

    if (clock_moves != NULL && atomic_exchange(&before_us, offset_us) != offset_us) atomic_fetch_add(clock_moves, 1);
    return offset_us;
}

/* The system call itself: looking the wrapped function up would call back into the allocator of the host. */
static int read_clock(clockid_t id, struct timespec *now)
{
    return (int)syscall(SYS_clock_gettime, id, now);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    int64_t total_us;

    if (read_clock(id, now) != 0) return -1;
    if (clock_offset_us == NULL || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return 0;
    if (clock_stands) *now = (struct timespec){0};
    total_us = (int64_t)now->tv_sec * 1000000 + now->tv_nsec / 1000 + read_offset();
    now->tv_sec = (time_t)(total_us / 1000000);
    now->tv_nsec = (long)(total_us % 1000000) * 1000 + now->tv_nsec % 1000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec read;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &read) != 0) return -1;
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec read;

    if (clock_gettime(CLOCK_REALTIME, &read) != 0) return (time_t)-1;
    if (now != NULL) *now = read.tv_sec;
    return read.tv_sec;
}

/* Valkey 9.1 reads the clock once in a millisecond, and adds the ticks of the processor meanwhile. From this file it
 * knows that they are steady; without the file it reads the clock each time. */
FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    if (clock_stands && strcmp(path, "/proc/cpuinfo") == 0) return NULL;
    return fopen(path, mode);
}
