/* SPDX-License-Identifier: BSD-3-Clause */
/* histogram.h - times by length; see struct quorlock_histogram */
#pragma once

#include <quorlock/quorlock.h>

/* histogram_add - one more time. */
void histogram_add(struct quorlock_histogram *, uint64_t us);
