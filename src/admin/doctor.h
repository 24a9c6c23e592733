/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUORLOCK_ADMIN_DOCTOR_H
#define QUORLOCK_ADMIN_DOCTOR_H

#include "admin/report.h"

/* doctor_begin - behind quorlock_examine: examines all nodes at once. */
int doctor_begin(struct admin *, quorlock_examination_cb cb, void *arg);

#endif
