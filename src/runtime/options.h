/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - every option checked, defaults filled in, and the text of what is wrong
 */
#ifndef QUORLOCK_OPTIONS_H
#define QUORLOCK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/caller.h"
#include "core/core.h"

#define OPTIONS_LABEL_MAX 64
#define OPTIONS_SET_SIZE  65
/* Where the caller does not say it. */
#define OPTIONS_MAX_LEASE_MS 30000u

/* options_client - a checked copy with defaults filled in; its strings are still the caller's. node_timeout_ms
 * stays 0 where it was not given: then it follows from each lock's lease. */
int options_client(struct quorlock_client_options *ret, const struct quorlock_client_options *given,
                   struct caller_error *);

/* options_max_lease_given - of options that were checked: by the caller, and not by default. */
bool options_max_lease_given(const struct quorlock_client_options *given);

/* options_lock - a checked lock as the core's config. */
int options_lock(struct core_config *ret, const struct quorlock_client_options *client, const char *const *keys,
                 size_t n_keys, const struct quorlock_options *given, struct caller_error *);

/* options_bootstrap - a checked copy; given may be NULL. */
int options_bootstrap(struct quorlock_bootstrap_options *ret, const struct quorlock_bootstrap_options *given,
                      struct caller_error *);

/* options_fence_ttl_ms - of options that were checked; they may be NULL. */
uint32_t options_fence_ttl_ms(const struct quorlock_options *given);

/* options_owner - of options that were checked; they may be NULL. NULL: a lock that does not nest. */
const char *options_owner(const struct quorlock_options *given);

/* options_key - one key for an operation, as given by the caller. */
int options_key(const char *key, const struct quorlock_client_options *client, struct caller_error *);

uint32_t options_quorum(int policy, uint32_t n_nodes);

#endif
