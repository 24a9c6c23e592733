/* SPDX-License-Identifier: BSD-3-Clause */
/* init.c - structs of options with all defaults, for callers that cannot write {.size = sizeof options} */
#include <quorlock/election.h>
#include <quorlock/quorlock.h>
#include <string.h>

/* Each struct begins with its size. */
static void init(void *options, size_t size)
{
    memset(options, 0, size);
    memcpy(options, &size, sizeof(size));
}

void quorlock_client_options_init(struct quorlock_client_options *options, size_t size)
{
    init(options, size);
}

void quorlock_lock_options_init(struct quorlock_lock_options *options, size_t size)
{
    init(options, size);
}

void quorlock_candidate_options_init(struct quorlock_candidate_options *options, size_t size)
{
    init(options, size);
}

void quorlock_observer_options_init(struct quorlock_observer_options *options, size_t size)
{
    init(options, size);
}

void quorlock_bootstrap_options_init(struct quorlock_bootstrap_options *options, size_t size)
{
    init(options, size);
}

void quorlock_metrics_options_init(struct quorlock_metrics_options *options, size_t size)
{
    init(options, size);
}
