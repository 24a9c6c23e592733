/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line_world.h - handles of one client that stand in line for one key, and what each was told
 */
#ifndef TESTS_LINE_WORLD_H
#define TESTS_LINE_WORLD_H

#include "fixture.h"

#define LINE_MAX 50

struct line_world {
    quorlock *locks[LINE_MAX];
    struct seen seen[LINE_MAX];
};

/* The one line of this program, on "key". */
extern struct line_world line;

/* stand_in_line - new handles [from .. to) of fixture.client begin to acquire; free_line frees them. */
void stand_in_line(int from, int to, uint32_t wait_ms);
void free_line(int from, int to);
/* told - how many of them were told, none twice. await_told: all of them. */
int told(int from, int to);
void await_told(int from, int to, const char *what);
/* hold_key - a handle of fixture.client that holds the key. by_hand_on: somebody else does, on the first
 * servers.
 */
quorlock *hold_key(struct seen *);
void by_hand_on(const char *key, int n_servers);

#endif
