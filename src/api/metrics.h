/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h - statistics as text for Prometheus */
#pragma once

#include <quorlock/quorlock.h>

#include "base/caller.h"

/* metrics_options - check and copy the caller's options, which may be NULL; return 0 or INVAL. */
int metrics_options(struct quorlock_metrics_options *ret, const struct quorlock_metrics_options *given,
                    struct quorlock_error *);
/* metrics_write - write at most size bytes, with a NUL at the end; return the length of the whole text. */
size_t metrics_write(const struct quorlock_statistics *, const struct quorlock_metrics_options *, char *ret,
                     size_t size);
