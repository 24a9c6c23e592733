/* SPDX-License-Identifier: BSD-3-Clause */
/* holds.h - what servers hold of locks, slots and readers */
#pragma once

#include "world.h"

/* holds_place - return the place of a key's slot; a key without permits has slot 0. */
static inline uint32_t holds_place(uint32_t key, uint32_t slot)
{
    return key * PLACES_OF_KEY + slot;
}
/* holds_conflict - return the invariant that is violated if both are held at once. */
enum invariant holds_conflict(const struct held *, const struct held *);
/*
 * holds_changed    - a key of the server has appeared, disappeared or changed: update who holds it there
 * holds_look_again - read all of that key on the server again
 * holds_forgets    - the server is about to lose its memory: record until when it would have held each key
 */
void holds_changed(struct site *, const char *key, size_t length);
void holds_look_again(struct site *, uint32_t key);
void holds_forgets(struct site *);
/* holds_until_us - return the true time until which the server holds all keys of the window, or would hold them if no
 * fault had taken them away. 0: it does not hold them. */
uint64_t holds_until_us(struct world *, uint32_t server, const struct window *);
/* holds_taking - return when the last of the window's keys was first taken on the server. NULL: one was never taken. */
const struct taking *holds_taking(struct site *, const struct window *);
/* holds_as_taken - count a key of the window as exclusive if its token has taken the key so: a reader that nests in its
 * owner's writer takes nothing on the servers, also when the outer hold is gone. */
void holds_as_taken(struct world *, struct window *);
/* holds_latest - return the latest taking of the place, or NULL. */
const struct taking *holds_latest(const struct site *, uint32_t place);
bool holds_is_quarantined(struct world *, uint32_t server);
/* holds_each - call the function for each token of a lock, slot or reader on the server, with its place. */
typedef void (*holds_standing)(void *arg, uint32_t place, const char *token, size_t length);
void holds_each(struct world *, uint32_t server, holds_standing, void *arg);
