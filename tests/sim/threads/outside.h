/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outside.h - what the sync facade sees in place of threads, libevent and the real system
 *
 * Its sources are compiled for this program with this header in front of them (-include). Whatever they do with a
 * mutex, a condition or a futex goes to turns.h, before each atomic operation another thread may go on, and their loop
 * is that of a simulated machine.
 */
#pragma once

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/client.h"
#include "base/futex.h"
#include "base/guest.h"
#include "base/own_base.h"
#include "base/system_os.h"
#include "turns.h"

/* ---- main.c ---- */

struct event_base *outside_base_new(void);
void outside_base_free(struct event_base *);
int outside_dispatch(struct event_base *);
int outside_loop(struct event_base *, int flags);
struct event *outside_event_new(struct event_base *, int fd, short what, event_callback_fn, void *arg);
int outside_event_add(struct event *, const struct timeval *);
int outside_event_del(struct event *);
void outside_event_free(struct event *);
int outside_eventfd(unsigned count, int flags);
ssize_t outside_read(int fd, void *ret, size_t size);
ssize_t outside_write(int fd, const void *bytes, size_t size);
int outside_close(int fd);
struct system outside_system(struct event_base *, const struct alloc *);
int outside_client_new(quorlock_client **ret, struct event_base *, const struct quorlock_client_options *,
                       struct expiry_clock *, struct quorlock_error *);

#ifdef OUTSIDE
#define own_base_new           outside_base_new
#define event_base_free        outside_base_free
#define event_base_dispatch    outside_dispatch
#define event_base_loop        outside_loop
#define event_new              outside_event_new
#define event_add              outside_event_add
#define event_del              outside_event_del
#define event_free             outside_event_free
#define eventfd                outside_eventfd
#define read                   outside_read
#define write                  outside_write
#define close                  outside_close
#define system_libevent        outside_system
#define client_new_shown       outside_client_new
#define pthread_create         turns_create
#define pthread_join           turns_join
#define pthread_self           turns_id
#define pthread_mutex_lock     turns_lock
#define pthread_mutex_unlock   turns_unlock
#define pthread_mutex_destroy  turns_destroy_mutex
#define pthread_cond_wait      turns_wait
#define pthread_cond_signal    turns_signal
#define pthread_cond_broadcast turns_broadcast
#define pthread_cond_destroy   turns_destroy_condition
#define futex_wait             turns_futex_wait
#define guest_has_room         turns_has_room
#define futex_wait_for         turns_futex_wait_for
#define futex_wake             turns_futex_wake
#define futex_yield            turns_pass

#undef atomic_load
#undef atomic_store
#undef atomic_exchange
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_strong
#undef atomic_fetch_add
#undef atomic_fetch_sub
#undef atomic_fetch_or
#define OUTSIDE_ORDER              memory_order_seq_cst
#define atomic_load(at)            (turns_pass(), atomic_load_explicit(at, OUTSIDE_ORDER))
#define atomic_store(at, value)    (turns_pass(), atomic_store_explicit(at, value, OUTSIDE_ORDER))
#define atomic_exchange(at, value) (turns_pass(), atomic_exchange_explicit(at, value, OUTSIDE_ORDER))
#define atomic_compare_exchange_weak(at, expected, value)                                                              \
    (turns_pass(), atomic_compare_exchange_weak_explicit(at, expected, value, OUTSIDE_ORDER, OUTSIDE_ORDER))
#define atomic_compare_exchange_strong(at, expected, value)                                                            \
    (turns_pass(), atomic_compare_exchange_strong_explicit(at, expected, value, OUTSIDE_ORDER, OUTSIDE_ORDER))
#define atomic_fetch_add(at, value) (turns_pass(), atomic_fetch_add_explicit(at, value, OUTSIDE_ORDER))
#define atomic_fetch_sub(at, value) (turns_pass(), atomic_fetch_sub_explicit(at, value, OUTSIDE_ORDER))
#define atomic_fetch_or(at, value)  (turns_pass(), atomic_fetch_or_explicit(at, value, OUTSIDE_ORDER))
#endif
