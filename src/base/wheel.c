/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/wheel.h"

#include <assert.h>
#include <stdbool.h>

#include "base/prefetch.h"

#define NEVER UINT64_MAX
#define MASK  (WHEEL_SLOTS - 1)
#define BEGUN WHEEL_SLOTS

_Static_assert((WHEEL_SLOTS & MASK) == 0 && WHEEL_SLOTS % 64 == 0 && BEGUN <= UINT16_MAX, "indexes are masked");
_Static_assert((WHEEL_SLOT_US & (WHEEL_SLOT_US - 1)) == 0,
               "the beginning of a slot divides all powers of two below it");

void wheel_start(struct wheel *wheel, uint64_t now_us)
{
    wheel->begun = now_us / WHEEL_SLOT_US;
    wheel->later_us = wheel->ahead_us = NEVER;
}

static bool is_in(const struct wheel_entry *entry)
{
    return entry->from != NULL;
}

static void lower(uint64_t *time_us, uint64_t to_us)
{
    if (to_us < *time_us) *time_us = to_us;
}

/* Return how many slots the time is ahead of the last one that has begun: 0 if its slot has begun, and the wheel's
 * range at most. */
static uint64_t slots_ahead(const struct wheel *wheel, uint64_t at_us)
{
    uint64_t slot = at_us / WHEEL_SLOT_US;

    if (slot <= wheel->begun) return 0;
    return slot - wheel->begun < MASK ? slot - wheel->begun : MASK;
}

static void put_first(struct wheel_entry **list, struct wheel_entry *entry)
{
    entry->next = *list;
    if (entry->next != NULL) entry->next->from = &entry->next;
    entry->from = list;
    *list = entry;
}

static void wheel_put(struct wheel *wheel, struct wheel_entry *entry)
{
    uint64_t ahead = slots_ahead(wheel, entry->at_us);
    uint64_t slot = wheel->begun + ahead;

    if (ahead == 0) {
        entry->place = BEGUN;
        put_first(&wheel->later, entry);
        lower(&wheel->later_us, entry->at_us);
        return;
    }
    entry->place = (uint16_t)(slot & MASK);
    put_first(&wheel->slots[entry->place], entry);
    wheel->filled[entry->place / 64] |= 1ull << entry->place % 64;
    lower(&wheel->ahead_us, slot * WHEEL_SLOT_US);
}

void wheel_remove(struct wheel_entry *entry)
{
    if (!is_in(entry)) return;
    *entry->from = entry->next;
    if (entry->next != NULL) entry->next->from = entry->from;
    entry->from = NULL;
}

/* Whether an entry that stays where it is will be looked at by then. */
static bool comes_in_time(struct wheel *wheel, const struct wheel_entry *entry, uint64_t at_us)
{
    if (entry->place == BEGUN) {
        lower(&wheel->later_us, at_us);
        return true;
    }
    return slots_ahead(wheel, at_us) >= ((entry->place - wheel->begun) & MASK);
}

void wheel_set(struct wheel *wheel, struct wheel_entry *entry, uint64_t at_us)
{
    entry->at_us = at_us;
    if (at_us == NEVER || (is_in(entry) && comes_in_time(wheel, entry, at_us))) return;
    wheel_remove(entry);
    wheel_put(wheel, entry);
}

/* Return the next slot with entries; NEVER: there is none. */
static uint64_t next_filled(struct wheel *wheel)
{
    for (uint64_t ahead = 1; ahead <= MASK;) {
        uint64_t index = (wheel->begun + ahead) & MASK;
        uint64_t bits = wheel->filled[index / 64] >> index % 64;

        if (bits == 0) {
            ahead += 64 - index % 64;
            continue;
        }
        ahead += (uint64_t)__builtin_ctzll(bits);
        index = (wheel->begun + ahead) & MASK;
        if (ahead > MASK) break;
        if (wheel->slots[index] != NULL) return wheel->begun + ahead;
        wheel->filled[index / 64] &= ~(1ull << index % 64);
    }
    return NEVER;
}

static void wheel_look_at(struct wheel *wheel, struct wheel_entry **list)
{
    assert(wheel->looked_at == NULL);
    wheel->looked_at = *list;
    if (*list != NULL) (*list)->from = &wheel->looked_at;
    *list = NULL;
}

/* Take one more list to look at, which may be empty. False: nothing is due yet. */
static bool look_on(struct wheel *wheel, uint64_t now_us)
{
    uint64_t present = now_us / WHEEL_SLOT_US, next;

    if (wheel->later_us <= now_us) {
        wheel->later_us = NEVER;
        wheel_look_at(wheel, &wheel->later);
        return true;
    }
    next = next_filled(wheel);
    wheel->ahead_us = next == NEVER ? NEVER : next * WHEEL_SLOT_US;
    if (next > present) {
        if (wheel->begun < present) wheel->begun = present;
        return false;
    }
    wheel->begun = next;
    wheel_look_at(wheel, &wheel->slots[next & MASK]);
    return true;
}

/* Most entries are locks. By the time that one is returned, the entry behind it has been prefetched, so its pointer to
 * the next one can be read. */
static void prefetch_next(const struct wheel *wheel)
{
    const struct wheel_entry *next = wheel->looked_at;

    if (next != NULL && next->next != NULL) prefetch(next->next, PREFETCH_LOCK);
}

struct wheel_entry *wheel_take(struct wheel *wheel, uint64_t now_us)
{
    struct wheel_entry *entry;

    do {
        while ((entry = wheel->looked_at) != NULL) {
            wheel_remove(entry);
            if (entry->at_us <= now_us) {
                prefetch_next(wheel);
                entry->at_us = NEVER;
                return entry;
            }
            if (entry->at_us != NEVER) wheel_put(wheel, entry);
        }
    } while (now_us >= wheel_next_us(wheel) && look_on(wheel, now_us));
    return NULL;
}

uint64_t wheel_next_us(const struct wheel *wheel)
{
    if (wheel->looked_at != NULL) return 0;
    return wheel->later_us < wheel->ahead_us ? wheel->later_us : wheel->ahead_us;
}
