/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.h - every maximum of the core */
#pragma once

#define CORE_NODES_MAX  31
#define CORE_TOKEN_SIZE 20
/* A token, and 8 bytes for jitter. */
#define CORE_RANDOM_SIZE 28
/* Permits of one name. */
#define CORE_SLOTS_MAX 64
/* No slot; in a release: any slot of the token. */
#define CORE_SLOT_NONE 255
/* Debts of one lock at one node. A node with so many debts is not asked for its vote. */
#define CORE_DEBTS_MAX  4
#define CORE_DEBTS_LENT (CORE_DEBTS_MAX - 1) /* of these, room is lent for so many; see debt.h */
/* At most, a step releases one attempt, begins another, sends its intent, and repeats one release for each node. */
#define CORE_COMMANDS_MAX (4 * CORE_NODES_MAX)
/* Some 35 years: leases, waits and sums of them stay far below 2^64 us. */
#define CORE_TIME_MAX_US (1ull << 50)
