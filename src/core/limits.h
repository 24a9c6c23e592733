/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.h - every maximum of the core */
#pragma once

#define CORE_NODES_MAX  31
#define CORE_TOKEN_SIZE 20
/* 20 bytes for a token, 8 for jitter. */
#define CORE_RANDOM_SIZE 28
/* Permits of one name. */
#define CORE_SLOTS_MAX 64
/* No slot; in a release: whichever is ours. */
#define CORE_SLOT_NONE 255
/* Releases that a node may owe one lock; a node that owes so many is not asked to vote. */
#define CORE_DEBTS_MAX 4
/* A step releases one attempt, begins another, tells all nodes that it waits and sends n_nodes releases again at most.
 */
#define CORE_COMMANDS_MAX (4 * CORE_NODES_MAX)
/* Some 35 years: leases, waits and sums of them stay far below 2^64 us. */
#define CORE_TIME_MAX_US (1ull << 50)
