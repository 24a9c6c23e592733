/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash.h - FNV-1a with 64 bits (Fowler, Noll, Vo), for hash tables and for comparing texts. It does not protect against
 * chosen collisions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325u

/* hash_bytes - continue a hash with more bytes; begin with HASH_START. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < length; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

/* hash_text - continue a hash with a string, and end it with a byte that no text contains, so that "ab", "c" and "a",
 * "bc" differ. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    static const unsigned char end = 0xff;

    return hash_bytes(hash_bytes(hash, text, strlen(text)), &end, 1);
}
