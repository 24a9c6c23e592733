/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h - statistics as text for Prometheus and the like */
#pragma once

#include <quorlock/quorlock.h>

#include "base/caller.h"

/* metrics_options - the caller's options, checked; given may be NULL. 0 or INVAL. */
int metrics_options(struct quorlock_metrics_options *ret, const struct quorlock_metrics_options *given,
                    struct caller_error *);
/* metrics_write - writes at most size bytes, with a NUL at the end. Returns how long the whole text is. */
size_t metrics_write(const struct quorlock_statistics *, const struct quorlock_metrics_options *, char *ret,
                     size_t size);
