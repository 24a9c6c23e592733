/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash.h - FNV-1a with 64 bits (Fowler, Noll, Vo), for tables and for comparing texts; no defence against
 * malice
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325u

/* hash_bytes - goes on from the hash of what came before, or from HASH_START. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < length; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

/* hash_text - likewise, with a byte at the end that no text contains: "ab", "c" differs from "a", "bc". */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    static const unsigned char end = 0xff;

    return hash_bytes(hash_bytes(hash, text, strlen(text)), &end, 1);
}
