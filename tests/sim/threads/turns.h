/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turns.h - threads that take turns in an order that a seed draws
 *
 * One thread runs at a time. At each call here, and nowhere else, another may go on in its place: so one seed always
 * gives the same order of all that threads do to each other. Between two calls a thread is not interrupted; at some it
 * is held back for long, as by a busy machine. What such a program does wrong with a mutex, and threads that wait for
 * each other for ever, end the process with a message.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* turns_begin - the calling thread is the only one, and draws begin with that seed. turns_end - free what all runs
 * used.
 */
void turns_begin(uint64_t seed);
void turns_end(void);
/* turns_pass - let another thread go on, or none. turns_between - draw a number, both ends included. */
void turns_pass(void);
uint64_t turns_between(uint64_t low, uint64_t high);
/* turns_waits - return whether that thread waits for a condition or on a futex. turns_self - return the number of this
 * thread. */
bool turns_waits(unsigned thread);
unsigned turns_self(void);
/* turns_each - call look() before each pass, in the thread that passes. NULL: no more. */
void turns_each(void (*look)(void));
/* turns_fail - print the message, the seed and what each thread waits for, and end the process with 1. */
_Noreturn void turns_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As the functions of <pthread.h>. A waiting thread also wakes without a signal, now and then. */
int turns_create(pthread_t *, const pthread_attr_t *, void *(*run)(void *), void *arg);
int turns_join(pthread_t, void **);
pthread_t turns_id(void);
int turns_lock(pthread_mutex_t *);
int turns_unlock(pthread_mutex_t *);
int turns_destroy_mutex(pthread_mutex_t *);
int turns_wait(pthread_cond_t *, pthread_mutex_t *);
int turns_signal(pthread_cond_t *);
int turns_broadcast(pthread_cond_t *);
int turns_destroy_condition(pthread_cond_t *);
/* turns_has_room - always true: the stacks here are none of the system's threads. */
bool turns_has_room(void);

/* As those of base/futex.h. */
void turns_futex_wait(const void *word, unsigned value);
void turns_futex_wait_for(const void *word, unsigned value, unsigned most_us);
void turns_futex_wake(const void *word);
