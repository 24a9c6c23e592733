/* SPDX-License-Identifier: BSD-3-Clause */
/* histogram.h - counts of durations by length; see struct quorlock_histogram */
#pragma once

#include <quorlock/quorlock.h>

/* histogram_add - count one more duration. */
void histogram_add(struct quorlock_histogram *, uint64_t us);
