/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <quorlock/sync.h>

/* sync_election_shutdown - end the candidacies of all candidates that do not lead. The loop's thread only. */
void sync_election_shutdown(quorlock_sync_client *);
