/* SPDX-License-Identifier: BSD-3-Clause */
/* actions.h - the same as actions of the model in tests/model */
#pragma once

#include "world.h"

/*
 * actions_begin   - print the head of the run's trace
 * actions_end     - print its end
 * actions_server  - print an action of a server
 * actions_replied - print a reply of a server to a script
 * actions_holder  - print an action of a holder
 *
 * Nothing is printed unless the world's `actions` is set.
 */
void actions_begin(const struct world *, enum plan_bias);
void actions_end(const struct world *);
void actions_server(const struct site *, const char *what);
void actions_replied(void *arg, struct session *, const char *script, const struct word *words, size_t n_words,
                     const struct word *reply);
void actions_holder(struct actor *, const char *what);
