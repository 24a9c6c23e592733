/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - checks every option, fills in defaults, and explains errors */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/caller.h"
#include "core/core.h"

#define OPTIONS_LABEL_MAX  64
#define OPTIONS_LABEL_SIZE (OPTIONS_LABEL_MAX + 2) /* with a colon and the NUL */
#define OPTIONS_SET_SIZE   65

/* options_client - copy and check the options, and fill in defaults. Strings are not copied. node_timeout_ms stays 0 if
 * the caller gave none: then each lock's lease determines its node timeout. */
int options_client(struct quorlock_client_options *ret, const struct quorlock_client_options *given,
                   struct quorlock_error *);
/* options_max_lease_given - tell whether the caller gave max_lease_ms. */
bool options_max_lease_given(const struct quorlock_client_options *given);
/* options_lock - copy and check the options, fill in defaults, and make the core's config. given may be NULL. */
int options_lock(struct core_config *ret, struct quorlock_lock_options *ret_options,
                 const struct quorlock_client_options *client, const char *const *keys, size_t n_keys,
                 const struct quorlock_lock_options *given, struct quorlock_error *);
/* options_wait_us - return the core's form of a lock's wait_ms, whose zero is another one: it tries once. */
uint64_t options_wait_us(uint32_t wait_ms);
/* options_lost_margin_max_ms - do quorlock_client_lost_margin_max_ms. */
uint32_t options_lost_margin_max_ms(const struct quorlock_client_options *client, uint32_t lease_ms, uint32_t renew_ms);
/* options_bootstrap - copy and check the options. given may be NULL. */
int options_bootstrap(struct quorlock_bootstrap_options *ret, const struct quorlock_bootstrap_options *given,
                      struct quorlock_error *);
/* options_advertise - check a candidate's text; NULL is fine. */
int options_advertise(const char *text, struct quorlock_error *);
/* options_buggify - read the seed from the environment's text. NULL leaves *ret untouched. */
int options_buggify(uint64_t *ret, const char *text, struct quorlock_error *);
/* options_key - check one key. */
int options_key(const char *key, const struct quorlock_client_options *client, struct quorlock_error *);
/* options_quorum - return the number of nodes that form a quorum. */
uint32_t options_quorum(int policy, uint32_t n_nodes);
