/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_loop.h - the loop that the clients of a test live on: libevent, or libuv with QUORLOCK_TEST_LOOP=libuv, or that
 * of a simulated machine (simulated/loop.c)
 *
 * Tests run their libevent base in either case. libuv is a guest of it, as in a program that has both: the base watches
 * the descriptor of the libuv loop, and has a timer for its next one.
 */
#ifndef TESTS_HOST_LOOP_H
#define TESTS_HOST_LOOP_H

#include "api/client.h"
#include "base/system_os.h"
#include "quorlock/quorlock.h"

struct event_base;

/* host_loop_begin - a new loop; returns its base, or NULL where it has none.
 * host_loop_end - how much is left on it, and on the base; frees both.
 * host_loop_turn - run it until something has happened there, for some ms at most, or until clock_us() shows that. */
struct event_base *host_loop_begin(void);
int host_loop_end(void);
void host_loop_turn(uint64_t until_us);

/* host_loop_client - quorlock_client_new on it; client_new_on with extras. host_loop_system - for parts of the library.
 */
int host_loop_client(quorlock_client **ret, const struct quorlock_client_options *, const struct client_extras *,
                     struct quorlock_error *);
struct system host_loop_system(const struct alloc *);

#endif
