/* SPDX-License-Identifier: BSD-3-Clause */
#include "control.h"

#ifdef QUORLOCK_CONTROLS
enum core_control core_control = CONTROL_NONE;
#endif
