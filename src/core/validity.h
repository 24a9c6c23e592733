/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * validity.h - lease arithmetic
 *
 * Times are microseconds. Everything saturates: no sum wraps round, so an absurd input can end a lock early but
 * never late.
 */
#pragma once

#include <stdint.h>

/* validity_add - a + b, UINT64_MAX at most. */
uint64_t validity_add(uint64_t a, uint64_t b);
/* validity_sub - a - b, 0 at least. */
uint64_t validity_sub(uint64_t a, uint64_t b);

/* validity_allowance_us - how far two clocks may drift apart over one lease: ceil(lease x drift) + fixed. This
 * is the drift term of the Redlock specification (1 % and 2 ms by default); it covers the client's rate error
 * plus the node's. */
uint64_t validity_allowance_us(uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us);

/* validity_of_vote - until when one node's yes counts: send time + lease - allowance. The node set its expiry
 * after the send, so by every clock within the allowance its key lives longer. */
uint64_t validity_of_vote(uint64_t sent_us, uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us);

/* validity_of_quorum - the quorum-th largest of the votes' ends, 0 where there are fewer. Reorders ends. */
uint64_t validity_of_quorum(uint64_t *ends, uint32_t n, uint32_t quorum);

/* validity_lost_margin_us - how long before the end of validity a lock is lost: 2 x allowance, at least 10 ms.
 */
uint64_t validity_lost_margin_us(uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us);

/* validity_debt_until - when a key set by a command sent then has certainly expired: send time + lease + 1 %.
 */
uint64_t validity_debt_until(uint64_t sent_us, uint64_t lease_us);
