/* SPDX-License-Identifier: BSD-3-Clause */
/* keeper.h - what the on_*.c examples share: a lock that a daemon keeps, whatever loop it has */
#ifndef EXAMPLES_KEEPER_H
#define EXAMPLES_KEEPER_H

#include <quorlock/loop.h>

struct keeper {
    quorlock_client *client;
    quorlock_lock *lock;
    void (*held)(void *arg);  /* the lock is there: the daemon begins its work */
    void (*ended)(void *arg); /* the lock is gone and everything is freed */
    void *arg;
};

/* keeper_begin - waits for the lock on these nodes, and keeps it. keeper_end - the work is done: gives it back. */
void keeper_begin(struct keeper *, const struct quorlock_loop *, const char *const *nodes, size_t n_nodes);
void keeper_end(struct keeper *);

#endif
