/* SPDX-License-Identifier: BSD-3-Clause */
/* options_client.h - what the supervisor tells a chaos client on its command line */
#ifndef QUORLOCK_CHAOS_OPTIONS_CLIENT_H
#define QUORLOCK_CHAOS_OPTIONS_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#define CHAOS_LIST_MAX 31

struct chaos_range {
    uint32_t min, max;
};

struct chaos_options {
    const char *name;
    char *nodes[CHAOS_LIST_MAX], *keys[CHAOS_LIST_MAX];
    size_t n_nodes, n_keys;
    struct chaos_range lease_ms, hold_ms, think_ms, wait_ms;
    uint32_t max_lease_ms;
    uint64_t seed;
    const char *history;     /* file that the client appends its lines to */
    const char *registers;   /* folder of the protected registers */
    const char *source;      /* own IPv4 address to connect from; NULL: any */
    const char *broken_rule; /* negative control; NULL: none */
    int policy, guard, fencing, verbose;
};

/*
 * options_read - reads the command line; writes into argv's strings, which must outlive the options
 *
 * Returns 0, or -1 after a line on stderr that names the value.
 */
int options_read(struct chaos_options *ret_options, int argc, char **argv);

#endif
