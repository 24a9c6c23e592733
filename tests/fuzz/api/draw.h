/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * draw.h - numbers that follow from a seed alone
 *
 * Each call, and what is done inside its callback, has a stream of its own: so the calls of a seed are the same
 * in every run, however the replies fall.
 */
#ifndef TESTS_FUZZ_API_DRAW_H
#define TESTS_FUZZ_API_DRAW_H

#include <stdbool.h>
#include <stdint.h>

struct draw {
    uint64_t state;
};

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static inline uint64_t draw_number(struct draw *draw)
{
    uint64_t z = draw->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* draw_of - the stream with that name under a seed. */
static inline struct draw draw_of(uint64_t seed, uint64_t name)
{
    struct draw mix = {seed ^ (name * 0xd6e8feb86659fd93u)};

    return (struct draw){draw_number(&mix)};
}

/* draw_below - 0 to bound - 1. */
static inline uint32_t draw_below(struct draw *draw, uint32_t bound)
{
    return (uint32_t)(draw_number(draw) % bound);
}

/* draw_once_in - true once in n. */
static inline bool draw_once_in(struct draw *draw, uint32_t n)
{
    return draw_below(draw, n) == 0;
}

#endif
