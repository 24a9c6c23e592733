/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - a loop that looks at both sides of another: whether its user keeps what quorlock/loop.h promises, and
 * the loop what it is asked for there
 *
 * A rule that is broken fails the running test.
 */
#ifndef TESTS_LOOPS_GUARD_H
#define TESTS_LOOPS_GUARD_H

#include <stddef.h>

#include <quorlock/loop.h>

/* guard_begin - the guarded table of that loop. guard_end frees what it knows of the past; nothing may be live. */
struct quorlock_loop guard_begin(const struct quorlock_loop *);
void guard_end(void);

/* guard_live - watches, timers and tasks that are made and not freed. guard_calls - calls of the table so far. */
size_t guard_live(void);
size_t guard_calls(void);

#endif
