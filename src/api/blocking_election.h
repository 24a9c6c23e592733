/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/blocking.h>

/* blocking_election_free - what is left of candidates and observers; the thread has ended, and no call waits. */
void blocking_election_free(quorlock_blocking *);
