/* SPDX-License-Identifier: BSD-3-Clause */
/* duration.h - durations as text */
#pragma once

#include <stdint.h>

#include "settings/text.h"

/*
 * duration_read - read "250ms", "30s", "2m" or "1h": a whole number and a unit
 *
 * Return NULL, or the error as the rest of a sentence; *ret_ms is untouched then.
 */
const char *duration_read(const char *text, uint32_t *ret_ms);
/* duration_add - write a duration as it can be given: 10ms, 60s, 24h. */
void duration_add(struct text *text, uint32_t ms);
