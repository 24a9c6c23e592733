/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h - a client of another kind, which takes a key on all servers and gives it back */
#pragma once

#include "world.h"

/* peer_takes - a plain peer asks for the fault's key, and gives it back later. */
void peer_takes(struct world *, const struct plan_fault *);
