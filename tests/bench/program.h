/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - what the programs of the benchmark share */
#pragma once

#include <event2/event.h>
#include <quorlock/quorlock.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"

/* program_fail - ends the process with 69, and says so under its own name. */
_Noreturn void program_fail(const char *what);
/* program_number - from 1 to `most`; false: the word is none. */
bool program_number(uint32_t *ret, const char *word, uint32_t most);
/* program_loop - with timers of microseconds. Ends the process where there is none. */
struct event_base *program_loop(void);
/* program_client - of the nodes NODE,NODE,... with what else the options say. Ends the process where that fails. */
quorlock_client *program_client(struct event_base *, const char *nodes, struct quorlock_client_options);
/* program_client_on - the same, with hooks for its memory */
quorlock_client *program_client_on(struct event_base *, const char *nodes, struct quorlock_client_options,
                                   const struct alloc_hooks *);
