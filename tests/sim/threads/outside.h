/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outside.h - what the sync facade sees in place of threads, libevent and the real system
 *
 * Its sources are compiled for this program with this header in front of them (-include). Whatever they do with a mutex
 * or a condition goes to turns.h, and their loop is that of a simulated machine.
 */
#pragma once

#include <event2/event.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/client.h"
#include "base/own_base.h"
#include "base/system_os.h"
#include "turns.h"

/* ---- main.c ---- */

struct event_base *outside_base_new(void);
void outside_base_free(struct event_base *);
int outside_dispatch(struct event_base *);
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
#endif
