/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - checks every option, fills in defaults, and says what is wrong */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/caller.h"
#include "core/core.h"

#define OPTIONS_LABEL_MAX  64
#define OPTIONS_LABEL_SIZE (OPTIONS_LABEL_MAX + 2) /* with a colon and the NUL */
#define OPTIONS_SET_SIZE   65

/* options_client - a checked copy with defaults filled in; its strings are still the caller's. node_timeout_ms
 * stays 0 where it was not given: then it follows from each lock's lease. */
int options_client(struct quorlock_client_options *ret, const struct quorlock_client_options *given,
                   struct caller_error *);
/* options_max_lease_given - whether checked options name it, so that it is not the default. */
bool options_max_lease_given(const struct quorlock_client_options *given);
/* options_lock, options_bootstrap - checked copies with defaults filled in, of a lock also as the core's
 * config; given may be NULL. */
int options_lock(struct core_config *ret, struct quorlock_options *ret_options,
                 const struct quorlock_client_options *client, const char *const *keys, size_t n_keys,
                 const struct quorlock_options *given, struct caller_error *);
int options_bootstrap(struct quorlock_bootstrap_options *ret, const struct quorlock_bootstrap_options *given,
                      struct caller_error *);
/* options_advertise - checks the text of a candidate; NULL: it gave none. */
int options_advertise(const char *text, struct caller_error *);
/* options_buggify - the seed that the environment has; text may be NULL. *ret is untouched where it has none. */
int options_buggify(uint64_t *ret, const char *text, struct caller_error *);
/* options_key - checks one key. */
int options_key(const char *key, const struct quorlock_client_options *client, struct caller_error *);
uint32_t options_quorum(int policy, uint32_t n_nodes);
