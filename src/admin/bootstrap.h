/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUORLOCK_ADMIN_BOOTSTRAP_H
#define QUORLOCK_ADMIN_BOOTSTRAP_H

#include "admin/inspect.h"

/* bootstrap_begin - behind quorlock_bootstrap. */
int bootstrap_begin(struct admin *, const struct quorlock_bootstrap_options *, quorlock_report_cb cb,
                    void *arg);

#endif
