/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mangle.h - a proxy in front of one server that spoils what the server says
 *
 * It runs on the test's own loop. Requests pass untouched; replies are flipped, split, kept back, cut off or
 * lost, as it is told.
 */
#ifndef TESTS_FUZZ_API_MANGLE_H
#define TESTS_FUZZ_API_MANGLE_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct mangle;

/* What it does to replies; a bit each. */
enum mangle_way {
    MANGLE_FLIP = 1,  /* one bit of some pieces: what comes of it proves nothing about exclusion */
    MANGLE_SPLIT = 2, /* a few bytes at a time */
    MANGLE_CUT = 4,   /* now and then the beginning of a piece, and then the end */
    MANGLE_LOSE = 8,  /* now and then nothing, and then the end: executed, without a reply */
    MANGLE_HOLD = 16, /* nothing, until it is set otherwise */
};

/* mangle_new - NULL where there is no port. */
struct mangle *mangle_new(struct event_base *, uint16_t upstream, uint64_t seed);
void mangle_free(struct mangle *);
uint16_t mangle_port(const struct mangle *);
/* mangle_set - bits of enum mangle_way, for all connections from now on. */
void mangle_set(struct mangle *, unsigned ways);
/* mangle_cut - ends all connections. */
void mangle_cut(struct mangle *);
/* mangle_is_idle - there are none, and what was asked on them has been handed on. */
bool mangle_is_idle(const struct mangle *);

#endif
