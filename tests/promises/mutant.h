/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mutant.h - chooses among the faults of the list, in a library that ./run has made
 */
#pragma once

#include <stdbool.h>

extern bool mutant_chosen[]; /* by their places in the list */
/* mutant_choose - breaks that promise from now on, too; NULL: keeps all. False: there is no such mutant. */
bool mutant_choose(const char *name);
/* mutant_register - change() is called now and after each choice. */
void mutant_register(void (*change)(void));
