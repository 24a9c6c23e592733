/* SPDX-License-Identifier: BSD-3-Clause */
/* actions.h - the same as actions of the model in tests/model */
#pragma once

#include "world.h"

/* actions_begin, actions_end - a run. actions_server, actions_holder: one action of a server, or of who holds, where
 * they are asked for. */
void actions_begin(const struct world *, enum plan_bias);
void actions_end(const struct world *);
void actions_server(const struct site *, const char *what);
void actions_replied(void *arg, struct session *, const char *script, const struct word *words, size_t n_words,
                     const struct word *reply);
void actions_holder(struct actor *, const char *what);
