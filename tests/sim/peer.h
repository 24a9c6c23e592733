/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h - a client of another kind, which takes a key on all servers and gives it back */
#pragma once

#include "world.h"

/* peer_takes - let a plain peer ask for the fault's key, and release it later. */
void peer_takes(struct world *, const struct plan_fault *);
