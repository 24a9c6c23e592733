/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nodeclock.h - has a node's clock stepped forward?
 *
 * Leases end by the node's clock. Two of its readings prove a step if the node's clock advanced by more than
 * the time between sending the first request and receiving the second reply, by our clock, plus the drift
 * allowance for that time. A step before the first reading, or a small one, cannot be seen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nodeclock {
    bool known;
    uint64_t sent_us; /* our clock when the last reading was asked for */
    uint64_t node_us; /* the last reading */
};

/* nodeclock_stepped - takes one more reading; true where it proves a step since the one before. Readings come
 * in the order in which they were asked for. */
bool nodeclock_stepped(struct nodeclock *, uint64_t sent_us, uint64_t received_us, uint64_t node_us, uint32_t drift_ppm,
                       uint64_t drift_fixed_us);
