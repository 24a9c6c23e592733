/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rng.h - the simulator's only source of chance
 *
 * xoshiro256** (Blackman, Vigna, 2018), seeded by splitmix64. Every room draws from a stream of its own, so
 * that leaving out one fault does not reshuffle everything else: this is what makes shrinking work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

/* rng_mix - a good hash of two numbers. */
static inline uint64_t rng_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a + 0x9e3779b97f4a7c15u * (b + 1);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void rng_seed(struct rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t base = rng_mix(seed, stream);

    for (unsigned i = 0; i < 4; i++) rng->s[i] = rng_mix(base, i);
}

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t five = s[1] * 5;
    uint64_t result = ((five << 7) | (five >> 57)) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* rng_below - evenly in 0 .. n-1, for n from 1 to 2^32. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
    return ((rng_next(rng) >> 32) * n) >> 32;
}

/* rng_between - evenly, both ends included. */
static inline uint64_t rng_between(struct rng *rng, uint64_t low, uint64_t high)
{
    return low + rng_below(rng, high - low + 1);
}

static inline bool rng_one_in(struct rng *rng, uint32_t n)
{
    return rng_below(rng, n) == 0;
}

/* rng_long_tail - around the mean mostly, now and then many times of it. */
static inline uint64_t rng_long_tail(struct rng *rng, uint64_t mean)
{
    uint64_t draw = rng_next(rng);
    uint64_t value = ((draw >> 32) * (2 * mean)) >> 32;

    if ((draw & 15) == 0) value *= 4;
    if ((draw & 255) == 1) value *= 16;
    return value;
}

static inline void rng_bytes(struct rng *rng, unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(rng_next(rng) >> 56);
}
