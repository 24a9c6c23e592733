/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * validity.h - lease arithmetic (rules 1.3, 2.4 and 3.5)
 *
 * Times are microseconds. Sums and differences saturate instead of wrapping round, so an absurd input can end a lock
 * early but never late.
 */
#pragma once

#include <stdint.h>

/* validity_add - return a + b, at most UINT64_MAX. */
uint64_t validity_add(uint64_t a, uint64_t b);
/* validity_sub - return a - b, at least 0. */
uint64_t validity_sub(uint64_t a, uint64_t b);

/* validity_allowance_us - return how far two clocks may drift apart over one lease: ceil(lease x drift) + fixed. This
 * is the drift term of the Redlock specification (1 % and 2 ms by default). It covers the rate errors of both the
 * client and the node. */
uint64_t validity_allowance_us(uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us);

/* validity_of_vote - return until when a node's yes counts: send time + lease - allowance. The node sets the expiry
 * after the send time, so its key lives longer by every clock within the allowance. */
uint64_t validity_of_vote(uint64_t sent_us, uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us);

/* validity_of_quorum - return the quorum-th largest of the votes' ends, or 0 if there are fewer. Reorders ends. */
uint64_t validity_of_quorum(uint64_t *ends, uint32_t n, uint32_t quorum);

/* validity_lost_margin_us - return how long before the end of its validity a lock is lost: 2 x allowance, at least
 * 10 ms. */
uint64_t validity_lost_margin_us(uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us);

/* validity_debt_until - return when a key has certainly expired that a command from sent_us set: send time + lease +
 * 1 %. */
uint64_t validity_debt_until(uint64_t sent_us, uint64_t lease_us);
