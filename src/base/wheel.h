/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wheel.h - a timing wheel: any number of deadlines behind one timer
 *
 * An entry is embedded in the struct that it wakes, and hangs in a list. So setting a deadline cannot fail, and touches
 * only the neighbours in that list, although a million entries may be spread over memory. Time is cut into slots, and
 * the wheel has a list for each of the next WHEEL_SLOTS ones. When a slot begins, those of its deadlines that have not
 * passed yet move to a list of their own (`later`), which is searched when the earliest of them has come. A deadline
 * beyond the wheel's range waits in the last slot, and is inserted again when that slot begins.
 *
 * A deadline that only moves later, as those of a lock mostly do, stays in its slot until that begins. Deadlines that
 * passed together come in no particular order.
 *
 * Source: Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, scheme 4.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WHEEL_SLOT_US 8192u /* a power of two */
#define WHEEL_SLOTS   2048u /* the range is 16 s, so the default renewals, 10 s away, are within it */

/* A zeroed entry has no deadline. */
struct wheel_entry {
    uint64_t at_us; /* while it is in the wheel; UINT64_MAX: none */
    struct wheel_entry *next;
    struct wheel_entry **from; /* the pointer to this entry; NULL: it is in no list */
    uint16_t place;            /* the index of its slot, or WHEEL_SLOTS if that has begun */
    uint16_t kind;             /* for the caller */
};

struct wheel {
    struct wheel_entry *slots[WHEEL_SLOTS]; /* the first of each list */
    uint64_t filled[WHEEL_SLOTS / 64];      /* one bit a slot: the slot may have entries */
    uint64_t begun;                         /* the last slot that has begun, counted from time 0 */
    struct wheel_entry *looked_at;          /* entries of slots that have begun, which wheel_take has yet to look at */
    struct wheel_entry *later;              /* entries of slots that have begun, whose time has not come */
    uint64_t later_us;                      /* not after the earliest of `later`; UINT64_MAX: it is empty */
    uint64_t ahead_us;                      /* not after the next slot that has entries; UINT64_MAX: no slot has any */
};

/* wheel_start - initialize a zeroed struct. */
void wheel_start(struct wheel *, uint64_t now_us);
/* wheel_set - insert the entry, or move it; UINT64_MAX: wheel_take does not return it any more.
 * wheel_remove - remove the entry; call this before its memory is freed. */
void wheel_set(struct wheel *, struct wheel_entry *, uint64_t at_us);
void wheel_remove(struct wheel_entry *);
/* wheel_take - remove and return an entry whose time has come; NULL: there are no more. */
struct wheel_entry *wheel_take(struct wheel *, uint64_t now_us);
/* wheel_next_us - return when to call wheel_take again: not after the earliest deadline; UINT64_MAX: there is none. */
uint64_t wheel_next_us(const struct wheel *);
