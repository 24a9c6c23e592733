/* SPDX-License-Identifier: BSD-3-Clause */
/* skew.h - a clock that is wrong: what it shows at a true time, and when it will show something */
#pragma once

#include <stdint.h>

struct skew {
    uint64_t begun_us, shown_us; /* at the true time begun_us it showed shown_us */
    int32_t rate_ppm;            /* runs so much too fast since */
};

/* skew_read - what it shows at that true time. skew_when: the first true time at which it shows that, or later.
 * skew_step: from true time now_us on it shows by_us more, or less. skew_rate: from then on it runs at that rate.
 * skew_pause: from now_us on it shows less by what it passes from from_us, which is not earlier, to until_us. */
uint64_t skew_read(const struct skew *, uint64_t true_us);
uint64_t skew_when(const struct skew *, uint64_t shown_us);
void skew_step(struct skew *, uint64_t now_us, int64_t by_us);
void skew_rate(struct skew *, uint64_t now_us, int32_t rate_ppm);
void skew_pause(struct skew *, uint64_t now_us, uint64_t from_us, uint64_t until_us);
