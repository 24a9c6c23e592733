/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/blocking.h>

/* blocking_election_shutdown - end the candidacies of all candidates that do not lead. The loop's thread only. */
void blocking_election_shutdown(quorlock_blocking *);
