/* SPDX-License-Identifier: BSD-3-Clause */
#include "validity.h"

#include <assert.h>

#define PPM                1000000u
#define LOST_MARGIN_MIN_US 10000u

uint64_t validity_add(uint64_t a, uint64_t b)
{
    uint64_t sum = a > UINT64_MAX - b ? UINT64_MAX : a + b;

    assert(sum >= a && sum >= b);
    return sum;
}

uint64_t validity_sub(uint64_t a, uint64_t b)
{
    uint64_t left = a > b ? a - b : 0;

    assert(left <= a);
    return left;
}

/* ceil(value x ppm / 1000000). A large value is split at PPM, so that no product overflows. */
static uint64_t validity_share(uint64_t value, uint32_t ppm)
{
    uint64_t whole = value / PPM;
    uint64_t rest = value % PPM;
    uint64_t of_rest = (rest * ppm + PPM - 1) / PPM;

    /* Every real lease: one division by a constant. */
    if (value <= UINT32_MAX) return (value * ppm + PPM - 1) / PPM;
    if (ppm != 0 && whole > UINT64_MAX / ppm) return UINT64_MAX;
    return validity_add(whole * ppm, of_rest);
}

uint64_t validity_allowance_us(uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us)
{
    return validity_add(validity_share(lease_us, drift_ppm), drift_fixed_us);
}

/* Rule 1.3. */
uint64_t validity_of_vote(uint64_t sent_us, uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us)
{
    uint64_t allowance = validity_allowance_us(lease_us, drift_ppm, drift_fixed_us);
    uint64_t until_us = validity_add(sent_us, validity_sub(lease_us, allowance));

    /* Never longer than the lease; a debt lasts at least as long (validity_debt_until). */
    assert(until_us >= sent_us);
    assert(until_us <= validity_add(sent_us, lease_us));
    return until_us;
}

/* Rule 1.3. */
uint64_t validity_of_quorum(uint64_t *ends, uint32_t n, uint32_t quorum)
{
    if (quorum == 0 || quorum > n) return 0;
    /* A selection sort of the quorum largest: n is 31 at most. */
    for (uint32_t i = 0; i < quorum; i++) {
        uint32_t largest = i;
        uint64_t end;

        for (uint32_t k = i + 1; k < n; k++) {
            if (ends[k] > ends[largest]) largest = k;
        }
        end = ends[largest];
        ends[largest] = ends[i];
        ends[i] = end;
        assert(i == 0 || ends[i - 1] >= end);
    }
    return ends[quorum - 1];
}

/* Rule 3.5. */
uint64_t validity_lost_margin_us(uint64_t lease_us, uint32_t drift_ppm, uint64_t drift_fixed_us)
{
    uint64_t allowance = validity_allowance_us(lease_us, drift_ppm, drift_fixed_us);
    uint64_t margin = validity_add(allowance, allowance);

    if (margin < LOST_MARGIN_MIN_US) margin = LOST_MARGIN_MIN_US;
    assert(margin >= allowance);
    return margin;
}

/* Rule 2.4. */
uint64_t validity_debt_until(uint64_t sent_us, uint64_t lease_us)
{
    uint64_t until_us = validity_add(sent_us, validity_add(lease_us, validity_share(lease_us, PPM / 100)));

    /* No yes for this key counts any more by then (validity_of_vote). */
    assert(until_us >= validity_add(sent_us, lease_us));
    return until_us;
}
