/* SPDX-License-Identifier: BSD-3-Clause */
/* skew.h - a clock that is wrong: what it shows at a true time, and when it will show something */
#pragma once

#include <stdint.h>

struct skew {
    uint64_t begun_us, shown_us; /* at the true time begun_us it showed shown_us */
    int32_t rate_ppm;            /* runs so much too fast since */
};

/*
 * skew_read  - return what the clock shows at that true time
 * skew_when  - return the first true time at which it shows that, or more
 * skew_step  - let it show by_us more, or less, from true time now_us on
 * skew_rate  - let it run at that rate from then on
 * skew_pause - let it show less, from now_us on, by what passes on it from from_us, which is not earlier, to until_us
 */
uint64_t skew_read(const struct skew *, uint64_t true_us);
uint64_t skew_when(const struct skew *, uint64_t shown_us);
void skew_step(struct skew *, uint64_t now_us, int64_t by_us);
void skew_rate(struct skew *, uint64_t now_us, int32_t rate_ppm);
void skew_pause(struct skew *, uint64_t now_us, uint64_t from_us, uint64_t until_us);
