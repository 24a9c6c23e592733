/* SPDX-License-Identifier: BSD-3-Clause */
/* options_client.h - the options in the environment of a chaos client; quorlock-chaos(7) describes them */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quorlock/quorlock.h>

#define CHAOS_LIST_MAX 31

struct chaos_range {
    uint32_t min, max;
};

/* How a key is taken. */
enum chaos_mode { MODE_LOCK, MODE_PERMITS, MODE_SHARED, MODE_ELECTION };

struct chaos_options {
    const char *name;
    char *nodes[CHAOS_LIST_MAX], *keys[CHAOS_LIST_MAX];
    enum chaos_mode modes[CHAOS_LIST_MAX]; /* one for each key */
    size_t n_nodes, n_keys;
    uint32_t permits, n_users;
    struct chaos_range lease_ms, hold_ms, think_ms, wait_ms;
    uint32_t max_lease_ms;
    uint64_t seed;
    const char *broken_rule; /* the rule to break in a negative control; NULL: none */
    int guard;
    bool fencing, verbose;
    bool mixed; /* keys of several modes: locks then also wait fairly, are kept after their release, and change hands */
};

/* options_read - read the environment; -1 after a line on stderr that names the variable and its value */
int options_read(struct chaos_options *ret_options);

/* options_draw - draw a number: all choices of a client follow from its seed
 * options_pick - draw one of the range, both ends included */
uint64_t options_draw(uint64_t *seed);
uint32_t options_pick(uint64_t *seed, struct chaos_range range);

/* options_of_client - fill in what they say about the library's client. The texts stay theirs. */
void options_of_client(struct quorlock_client_options *ret, const struct chaos_options *options);
