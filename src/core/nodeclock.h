/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nodeclock.h - has a node's clock stepped forward?
 *
 * Leases end by the node's clock. Two of its readings, and ours around them, prove a step: the node's clock
 * advanced by more than the time between sending the first question and receiving the second answer, and the
 * drift allowance for that time. A step before the first reading, or a small one, cannot be seen.
 */
#ifndef QUORLOCK_CORE_NODECLOCK_H
#define QUORLOCK_CORE_NODECLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct nodeclock {
    bool known;
    uint64_t sent_us; /* our clock, when the last reading was asked for */
    uint64_t node_us; /* what it said */
};

/* nodeclock_stepped - takes one more reading; true where it proves a step since the one before. Readings are to
 * be given in the order in which they were asked. */
bool nodeclock_stepped(struct nodeclock *, uint64_t sent_us, uint64_t received_us, uint64_t node_us,
                       uint32_t drift_ppm, uint64_t drift_fixed_us);

#endif
