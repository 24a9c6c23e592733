/* SPDX-License-Identifier: BSD-3-Clause */
/* counts.h - what has become of the locks of a client, for its statistics */
#pragma once

#include <quorlock/quorlock.h>

#include "base/histogram.h"

#define COUNTS_STATUSES (-QUORLOCK_ERR_UNSUPPORTED + 1)
#define COUNTS_LOSSES   (QUORLOCK_LOSS_CLOCK + 1)

struct counts {
    struct histogram acquires[COUNTS_STATUSES]; /* by -status */
    struct histogram holds;
    uint64_t losses[COUNTS_LOSSES]; /* by enum quorlock_loss_reason */
    uint64_t renewals, renewals_failed, degradations;
    uint64_t held, degraded, waiting; /* now */
};
