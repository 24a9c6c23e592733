/* SPDX-License-Identifier: BSD-3-Clause */
/* tokens.h - fencing tokens, and a register that they guard */
#pragma once

#include "world.h"

void tokens_granted(struct actor *);
void tokens_write(struct actor *, uint64_t delay_us);
