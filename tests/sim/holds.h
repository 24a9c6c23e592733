/* SPDX-License-Identifier: BSD-3-Clause */
/* holds.h - what servers hold of locks, slots and readers */
#pragma once

#include "world.h"

/* holds_place - of a key's slot, 0 where it has none. */
static inline uint32_t holds_place(uint32_t key, uint32_t slot)
{
    return key * PLACES_OF_KEY + slot;
}
/* holds_conflict - which invariant it violates that both are held at once. */
enum invariant holds_conflict(const struct held *, const struct held *);
/* holds_changed - a key of that server has come, or gone, or another value. holds_look_again: all of
 * that key may have changed. holds_forgets: its memory is about to go.
 */
void holds_changed(struct site *, const char *key, size_t length);
void holds_look_again(struct site *, uint32_t key);
void holds_forgets(struct site *);
/* holds_until_us - the true time until which the server holds all keys of the window for it, or would, if no fault had
 * made it forget: it does not vote against it. 0: it does not. */
uint64_t holds_until_us(struct world *, uint32_t server, const struct window *);
/* holds_taking - when all keys of the window were taken there first, by the last of them; NULL: not all were. */
const struct taking *holds_taking(struct site *, const struct window *);
/* holds_as_taken - to read inside of what its owner writes takes nothing: it is held as it was taken first, also when
 * that hold is gone. */
void holds_as_taken(struct world *, struct window *);
/* holds_latest - of the place; NULL: nobody took it. */
const struct taking *holds_latest(const struct site *, uint32_t place);
bool holds_is_quarantined(struct world *, uint32_t server);
/* holds_each - each token of a lock, slot or reader that stands on that server, and its place. */
typedef void (*holds_standing)(void *arg, uint32_t place, const char *token, size_t length);
void holds_each(struct world *, uint32_t server, holds_standing, void *arg);
