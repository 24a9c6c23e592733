/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ours.h - our side of the interoperation tests: a program that takes orders on stdin and prints what happens
 *
 * It sees the public header only. Every contender is a slot with a name; an order is a line
 * "SLOT VERB WORDS...", an event a line "SLOT EVENT WORDS...". The peers speak the same.
 */
#ifndef INTEROP_OURS_H
#define INTEROP_OURS_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>
#include <quorlock/quorlock.h>

#define SLOT_NAME_MAX 31

/* One contender's part in a contention test; see contention.c. */
struct contention {
    bool bare; /* contends without a lock */
    int file;  /* the counter */
    int trace; /* which contenders were inside, and when */
    struct event *timer;
    uint64_t end_ms;
    bool acquiring;
    bool inside;
    uint64_t counter; /* as read when we came in */
    uint32_t turns;   /* increments that this contender made */
    uint32_t late;    /* grants that were over before it wrote: it did not */
};

struct slot {
    char name[SLOT_NAME_MAX + 1];
    struct event_base *base;
    quorlock_client *client;
    quorlock_lock *lock;
    struct contention contention;
};

/* slot_lock - a new lock for the slot in place of its last one; lease and wait as in struct quorlock_lock_options */
void slot_lock(struct slot *slot, const char *key, uint32_t lease_ms, uint32_t wait_ms);

/* contention_start - the slot contends for `key` until so many ms are over: again and again it reads the
 * counter in the file, takes its time, writes the next number and pauses. NULL for key: without the lock. */
void contention_start(struct slot *slot, const char *key, uint32_t lease_ms, const char *path, uint32_t length_ms);

/* say - prints one event; die - ends the process with a line on stderr */
void say(const struct slot *slot, const char *format, ...) __attribute__((format(printf, 2, 3)));
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
