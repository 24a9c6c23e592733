/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/blocking.h>

/* blocking_election_shutdown - who stands and does not lead stands no more, in the loop's thread. */
void blocking_election_shutdown(quorlock_blocking *);
