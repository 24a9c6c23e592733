/* SPDX-License-Identifier: BSD-3-Clause */
/* duration.h - durations as people write them */
#pragma once

#include <stdint.h>

#include "text.h"

/*
 * duration_read - "250ms", "30s", "2m", "1h" in milliseconds
 *
 * NULL, or what is wrong with it in words; *ret_ms is untouched then. Whole numbers only, a unit always.
 */
const char *duration_read(const char *text, uint32_t *ret_ms);
/* duration_add - as it can be given: 10ms, 60s, 24h. */
void duration_add(struct text *text, uint32_t ms);
