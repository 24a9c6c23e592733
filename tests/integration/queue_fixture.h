/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue_fixture.h - handles of one client that queue for one key, and the result of each
 */
#ifndef TESTS_QUEUE_FIXTURE_H
#define TESTS_QUEUE_FIXTURE_H

#include "fixture.h"

#define QUEUE_MAX 50

struct queue_fixture {
    quorlock_lock *locks[QUEUE_MAX];
    struct seen seen[QUEUE_MAX];
};

/* The one queue of this program, on "key". */
extern struct queue_fixture queue;

/* enqueue - new handles [from .. to) of fixture.client begin to acquire; free_queue frees them. */
void enqueue(int from, int to, uint32_t wait_ms);
void free_queue(int from, int to);
/* completed - how many of them got their callback, none twice. await_completed: all of them. */
int completed(int from, int to);
void await_completed(int from, int to, const char *what);
/* hold_key - a handle of fixture.client that holds the key. */
quorlock_lock *hold_key(struct seen *);

#endif
