/* SPDX-License-Identifier: BSD-3-Clause */
/* kind.h - one event loop as its user has it; each kind_*.c is a program's only one */
#ifndef TESTS_LOOPS_KIND_H
#define TESTS_LOOPS_KIND_H

#include <quorlock/loop.h>

struct loop_kind {
    void (*open)(void);
    struct quorlock_loop (*table)(void); /* by the adapter */
    void (*turn)(void);                  /* waits until something is ready, and does it */
    void (*close)(void);                 /* fails the test where something is left on it, if the loop can tell */
};

extern const struct loop_kind loop_kind;

#endif
