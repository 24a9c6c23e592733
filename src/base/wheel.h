/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wheel.h - deadlines of any number of things behind one timer: a timing wheel
 *
 * An entry is embedded in what it wakes and hangs in a list, so nothing can fail, and of a million, each of which is
 * somewhere else in memory, only neighbours are touched. Time is cut into slots; the wheel has a list for each of the
 * next ones. When a slot begins, those of its deadlines that have not come yet wait in a list of their own, which is
 * looked through when the earliest of them comes. What is further away than the wheel reaches waits in its last slot,
 * and is put in again when that begins.
 *
 * A deadline that only moves later, as those of a lock mostly do, stays where it is until its slot begins. Deadlines
 * that passed together come in no order.
 *
 * Source: Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, scheme 4.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WHEEL_SLOT_US 8192u /* a power of two */
#define WHEEL_SLOTS   2048u /* so the default renewals, ten seconds away, are within it */

/* Zeroed: it has no deadline. */
struct wheel_entry {
    uint64_t at_us; /* while it is in the wheel; UINT64_MAX: none */
    struct wheel_entry *next;
    struct wheel_entry **from; /* what points to it; NULL: it is in no list */
    uint16_t place;            /* its slot's index, or WHEEL_SLOTS: that has begun */
    uint16_t kind;             /* the caller's */
};

struct wheel {
    struct wheel_entry *slots[WHEEL_SLOTS]; /* the first of each list */
    uint64_t filled[WHEEL_SLOTS / 64];      /* a bit each: the slot may have entries */
    uint64_t begun;                         /* the last slot that has begun, counted from the time 0 */
    struct wheel_entry *looked_at;          /* of slots that have begun, where wheel_take goes on */
    struct wheel_entry *later;              /* of slots that have begun, those whose time was still to come */
    uint64_t later_us;                      /* not after the earliest of these; UINT64_MAX: there are none */
    uint64_t ahead_us;                      /* not after the first slot ahead that has any; UINT64_MAX: there is none */
};

/* wheel_start - of a zeroed struct. */
void wheel_start(struct wheel *, uint64_t now_us);
/* wheel_set - puts the entry in, or moves it; UINT64_MAX: it is not taken any more. wheel_remove: out, before its
 * memory goes. */
void wheel_set(struct wheel *, struct wheel_entry *, uint64_t at_us);
void wheel_remove(struct wheel_entry *);
/* wheel_take - one whose time has come, out of the wheel; NULL: there is none any more. */
struct wheel_entry *wheel_take(struct wheel *, uint64_t now_us);
/* wheel_next_us - when to call that again: not after the earliest deadline; UINT64_MAX: there is none. */
uint64_t wheel_next_us(const struct wheel *);
